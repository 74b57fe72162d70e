/* Vectors of as many floats as a register of the target holds, and sums in lanes.

   With gcc and clang a vector is their extension of C (`vector_size`), without SIMD or with another compiler
   one number; code that uses + and * on them is the same.  Vectors are loaded and stored with memcpy, at any
   address, and are never passed to functions by value. */
#ifndef OIC_LANES_H
#define OIC_LANES_H

#include "version.h"

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

/* Sum of the lanes, added in pairs: each step adds the upper half to the lower one, in a register. */
#if OIC_LANES_float == 1
static inline float oic_sum_lanes_float(const oic_vector_float *v)
{
    return *v;
}

static inline double oic_sum_lanes_double(const oic_vector_double *v)
{
    return *v;
}
#else
typedef float oic_vector_float_4 __attribute__((vector_size(16)));
typedef float oic_vector_float_8 __attribute__((vector_size(32)));
typedef double oic_vector_double_2 __attribute__((vector_size(16)));
typedef double oic_vector_double_4 __attribute__((vector_size(32)));

#define OIC_SUM_LANES(C, W, N, H)                              \
    static inline C oic_sum_##N##_##C(const C *v)              \
    {                                                          \
        oic_vector_##C##_##W low, high;                        \
        memcpy(&low, v, sizeof low);                           \
        memcpy(&high, v + (W), sizeof high);                   \
        low += high;                                           \
        return oic_sum_##H##_##C((const C *)(const void *)&low); \
    }

static inline float oic_sum_4_float(const float *v)
{
    float a[4];
    memcpy(a, v, sizeof a);
    return (a[0] + a[2]) + (a[1] + a[3]);
}

static inline double oic_sum_2_double(const double *v)
{
    double a[2];
    memcpy(a, v, sizeof a);
    return a[0] + a[1];
}

#if OIC_LANES_float >= 8
OIC_SUM_LANES(float, 4, 8, 4)
OIC_SUM_LANES(double, 2, 4, 2)
#endif
#if OIC_LANES_float >= 16
OIC_SUM_LANES(float, 8, 16, 8)
OIC_SUM_LANES(double, 4, 8, 4)
#endif

static inline float oic_sum_lanes_float(const oic_vector_float *v)
{
    const float *p = (const float *)(const void *)v;
#if OIC_LANES_float == 16
    return oic_sum_16_float(p);
#elif OIC_LANES_float == 8
    return oic_sum_8_float(p);
#else
    return oic_sum_4_float(p);
#endif
}

static inline double oic_sum_lanes_double(const oic_vector_double *v)
{
    const double *p = (const double *)(const void *)v;
#if OIC_LANES_float == 16
    return oic_sum_8_double(p);
#elif OIC_LANES_float == 8
    return oic_sum_4_double(p);
#else
    return oic_sum_2_double(p);
#endif
}
#endif

#endif
