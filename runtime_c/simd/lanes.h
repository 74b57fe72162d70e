/* Sixteen numbers in as many registers as they need: a lane is one element of a result, and never a part of its sum.

   The width of a register is that of the machine's vectors, with gcc and clang through their extension of C
   (`vector_size`), else of one number.  All machines compute the same: width decides how many lanes are computed at
   once, not in which order anything is added. */
#ifndef OIC_SIMD_LANES_H
#define OIC_SIMD_LANES_H

#include "../version.h"

#include <string.h>

#include "../num.h"

#define OIC_LANES 16

#if defined(__GNUC__) && defined(__AVX512F__)
#define OIC_REGISTER 64
#elif defined(__GNUC__) && defined(__AVX__)
#define OIC_REGISTER 32
#elif defined(__GNUC__) && (defined(__SSE2__) || defined(__ARM_NEON) || defined(__ALTIVEC__) || defined(__wasm_simd128__))
#define OIC_REGISTER 16
#else
#define OIC_REGISTER 0 /* no vectors */
#endif

/* Registers enough for four rows of two groups of lanes. */
#if OIC_REGISTER == 64 || defined(__aarch64__)
#define OIC_MANY_REGISTERS 1
#else
#define OIC_MANY_REGISTERS 0
#endif

/* sum + a * b, rounded twice: a step of a sum of products. */
static inline float oic_madd_f32(float a, float b, float sum)
{
    return sum + a * b;
}

static inline double oic_madd_f64(double a, double b, double sum)
{
    return sum + a * b;
}

static inline uint32_t oic_madd_u32(uint32_t a, uint32_t b, uint32_t sum)
{
    return sum + a * b;
}

static inline uint64_t oic_madd_u64(uint64_t a, uint64_t b, uint64_t sum)
{
    return sum + a * b;
}

#if OIC_REGISTER
typedef float oic_register_f32 __attribute__((vector_size(OIC_REGISTER)));
typedef double oic_register_f64 __attribute__((vector_size(OIC_REGISTER)));
#else
typedef float oic_register_f32;
typedef double oic_register_f64;
#endif

/* A loop that several kernels call: one copy of it, which a debugger and a reader find. */
#if defined(__GNUC__)
#define OIC_LOOP static __attribute__((noinline, unused))
#else
#define OIC_LOOP static inline
#endif

#define OIC_S f32
#include "lanes.inc.h"

#define OIC_S f64
#include "lanes.inc.h"

#endif
