/* Vector registers of f32 and f64, and the step of a chain of products: sum + a * b.

   A register is as wide as the machine's vectors, with gcc and clang through their extension of C (`vector_size`), else
   one number.  All widths compute the same: they decide how many lanes are computed at once, not in which order anything
   is added.

   OIC_FUSED   0: a * b is rounded, then the sum (the class `separate`); 1: both are rounded once (`fused`).  Generated
               code sets it, by `--numerics`.  The same C gives the same bits on all machines of a class.

   A fused step is one instruction.  Machines without it are refused, because libm's fmaf is slow on all of them and wrong
   on some.  OIC_FMA_F32 and OIC_FMA_F64 may name functions of three numbers that are used instead, whatever the machine
   has: those of slow_fma.h are exact. */
#ifndef OIC_SIMD_REGISTERS_H
#define OIC_SIMD_REGISTERS_H

#include "../version.h"

#include <stdint.h>
#include <string.h>

#ifndef OIC_FUSED
#define OIC_FUSED 0
#endif

#if defined(OIC_FMA_F32) != defined(OIC_FMA_F64)
#error "oic: OIC_FMA_F32 and OIC_FMA_F64 are given both or not at all"
#endif

#if !OIC_FUSED || defined(OIC_FMA_F32)
#define OIC_INTRINSICS 0
#elif defined(__AVX512F__) || (defined(__AVX__) && defined(__FMA__))
#define OIC_INTRINSICS 1
#include <immintrin.h>
#elif defined(__aarch64__) && defined(__GNUC__)
#define OIC_INTRINSICS 1
#include <arm_neon.h>
#else
#define OIC_INTRINSICS 0
#endif

#if !defined(__GNUC__) || (OIC_FUSED && !OIC_INTRINSICS)
#define OIC_REGISTER 0 /* one number: the compiler may still see vectors in loops */
#elif defined(__AVX512F__)
#define OIC_REGISTER 64
#elif defined(__AVX__)
#define OIC_REGISTER 32
#elif defined(__SSE2__) || (defined(__ARM_NEON) && defined(__aarch64__)) || defined(__ALTIVEC__) || defined(__wasm_simd128__)
#define OIC_REGISTER 16 /* not NEON of 32 bits, which flushes subnormals */
#else
#define OIC_REGISTER 0
#endif

/* Registers enough for four rows of two groups of lanes. */
#if OIC_REGISTER == 64 || defined(__aarch64__)
#define OIC_MANY_REGISTERS 1
#else
#define OIC_MANY_REGISTERS 0
#endif

#if OIC_REGISTER
typedef float oic_register_f32 __attribute__((vector_size(OIC_REGISTER)));
typedef double oic_register_f64 __attribute__((vector_size(OIC_REGISTER)));
#else
typedef float oic_register_f32;
typedef double oic_register_f64;
#endif

/* ------------------------------------------------------------ a step of a chain */

#if !OIC_FUSED
#define OIC_STEP_F32(a, b, sum) ((sum) + (a) * (b))
#define OIC_STEP_F64(a, b, sum) ((sum) + (a) * (b))
#elif defined(OIC_FMA_F32)
#define OIC_STEP_F32(a, b, sum) OIC_FMA_F32(a, b, sum)
#define OIC_STEP_F64(a, b, sum) OIC_FMA_F64(a, b, sum)
#elif !defined(__GNUC__)
#error "oic: this code multiplies and adds in one rounding, which it can with gcc or clang alone: build it with --numerics separate"
#elif defined(__FMA__) || defined(__AVX512F__) || defined(__aarch64__) || (defined(__riscv_flen) && __riscv_flen >= 64) || defined(_ARCH_PPC) || \
    defined(__s390x__) || (defined(__ARM_FEATURE_FMA) && defined(__ARM_FP) && (__ARM_FP & 12) == 12)
#define OIC_STEP_F32(a, b, sum) __builtin_fmaf(a, b, sum)
#define OIC_STEP_F64(a, b, sum) __builtin_fma(a, b, sum)
#elif defined(__ARM_FEATURE_FMA) /* of single precision alone: kernels of f64 are an #error (element.h) */
#define OIC_STEP_F32(a, b, sum) __builtin_fmaf(a, b, sum)
#define OIC_NO_F64 1
#else
#error "oic: this machine has no instruction that multiplies and adds: build with --numerics separate, or compile for one that has (-march=, -mfma)"
#endif

static inline float oic_madd_f32(float a, float b, float sum)
{
    return OIC_STEP_F32(a, b, sum);
}

#if !defined(OIC_NO_F64)
static inline double oic_madd_f64(double a, double b, double sum)
{
    return OIC_STEP_F64(a, b, sum);
}
#endif

/* Integers modulo 2^32 and 2^64. */
static inline uint32_t oic_madd_u32(uint32_t a, uint32_t b, uint32_t sum)
{
    return sum + a * b;
}

static inline uint64_t oic_madd_u64(uint64_t a, uint64_t b, uint64_t sum)
{
    return sum + a * b;
}

/* The same lane by lane, of registers. */
static inline oic_register_f32 oic_register_madd_f32(oic_register_f32 a, oic_register_f32 b, oic_register_f32 sum)
{
#if OIC_INTRINSICS && OIC_REGISTER == 64
    return (oic_register_f32)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)sum);
#elif OIC_INTRINSICS && OIC_REGISTER == 32
    return (oic_register_f32)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)sum);
#elif OIC_INTRINSICS
    return (oic_register_f32)vfmaq_f32((float32x4_t)sum, (float32x4_t)a, (float32x4_t)b);
#else
    return OIC_STEP_F32(a, b, sum);
#endif
}

#if !defined(OIC_NO_F64)
static inline oic_register_f64 oic_register_madd_f64(oic_register_f64 a, oic_register_f64 b, oic_register_f64 sum)
{
#if OIC_INTRINSICS && OIC_REGISTER == 64
    return (oic_register_f64)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)sum);
#elif OIC_INTRINSICS && OIC_REGISTER == 32
    return (oic_register_f64)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)sum);
#elif OIC_INTRINSICS
    return (oic_register_f64)vfmaq_f64((float64x2_t)sum, (float64x2_t)a, (float64x2_t)b);
#else
    return OIC_STEP_F64(a, b, sum);
#endif
}
#endif

/* Numbers at any address; one number by an assignment, for gcc loads a copied one by way of an integer register. */
static inline oic_register_f32 oic_register_load_f32(const float *from)
{
#if OIC_REGISTER
    oic_register_f32 to;
    memcpy(&to, from, sizeof to);
    return to;
#else
    return *from;
#endif
}

static inline oic_register_f64 oic_register_load_f64(const double *from)
{
#if OIC_REGISTER
    oic_register_f64 to;
    memcpy(&to, from, sizeof to);
    return to;
#else
    return *from;
#endif
}

/* One number in all lanes. */
static inline oic_register_f32 oic_register_of_f32(float x)
{
    return x - (oic_register_f32){0};
}

static inline oic_register_f64 oic_register_of_f64(double x)
{
    return x - (oic_register_f64){0};
}

#endif
