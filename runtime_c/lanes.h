/* Vectors of as many floats as a register of the target holds, and sums in lanes.

   With gcc and clang a vector is their extension of C (`vector_size`), without SIMD or with another compiler
   one number; code that uses + and * on them is the same.  Vectors are loaded and stored with memcpy, at any
   address, and are never passed to functions by value. */
#ifndef OIC_LANES_H
#define OIC_LANES_H

#include <stddef.h>
#include <string.h>

#if !defined(__GNUC__)
#define OIC_LANES_float 1
#elif defined(__AVX512F__)
#define OIC_LANES_float 16
#elif defined(__AVX__)
#define OIC_LANES_float 8
#elif defined(__SSE2__) || defined(__ARM_NEON) || defined(__ALTIVEC__) || defined(__wasm_simd128__)
#define OIC_LANES_float 4
#else
#define OIC_LANES_float 1
#endif

#if OIC_LANES_float == 1
#define OIC_LANES_double 1
typedef float oic_vector_float;
typedef double oic_vector_double;
#else
#define OIC_LANES_double (OIC_LANES_float / 2)
typedef float oic_vector_float __attribute__((vector_size(4 * OIC_LANES_float)));
typedef double oic_vector_double __attribute__((vector_size(4 * OIC_LANES_float)));
#endif

/* Sum of the lanes, added in pairs. */
#define OIC_SUM_LANES(C)                                               \
    static inline C oic_sum_lanes_##C(const oic_vector_##C *v)         \
    {                                                                  \
        C a[OIC_LANES_##C];                                            \
        memcpy(a, v, sizeof a);                                        \
        for (int half = OIC_LANES_##C / 2; half > 0; half /= 2) {      \
            for (int l = 0; l < half; ++l) {                           \
                a[l] += a[l + half];                                   \
            }                                                          \
        }                                                              \
        return a[0];                                                   \
    }

OIC_SUM_LANES(float)
OIC_SUM_LANES(double)

#endif
