/* Vector registers: what a machine computes at once, chosen by what the compiler says of it.  A file an instruction set has the
   same functions, and each gives the bits of those of portable.h (tests/runtime/test_registers.py): the width decides how
   many lanes are computed at once, not in which order anything is added.  Below is what can be written with them.

   Registers of one type are added, subtracted, multiplied and divided by the operators of C, rounded once each; those of
   integers have & | ^ ~ << >> too, and u32 wraps.

   OIC_FUSED   0: in a step of a chain, sum + a * b, the product is rounded, then the sum (the class `separate`); 1: both are
               rounded once (`fused`); 2: as 1, and products with bf16 are the machine's own (`native`, pairs.h).
               Generated code sets it, by `--numerics`.  The same C gives the same bits on all machines of the first two.

   A fused step is one instruction.  Machines without it are refused, because libm's fmaf is slow on all of them and wrong
   on some.  OIC_FMA_F32 and OIC_FMA_F64 may name functions of three numbers that are used instead, whatever the machine
   has: those of slow_fma.h are exact.  OIC_PORTABLE, where it is defined, takes portable.h on every machine. */
#ifndef OIC_SIMD_REGISTERS_H
#define OIC_SIMD_REGISTERS_H

#include "../version.h"

#include <stdint.h>
#include <string.h>

#include "../num.h"

#ifndef OIC_FUSED
#define OIC_FUSED 0
#endif

#if defined(OIC_FMA_F32) != defined(OIC_FMA_F64)
#error "oic: OIC_FMA_F32 and OIC_FMA_F64 are given both or not at all"
#endif

#if OIC_FUSED == 2 && (defined(OIC_PORTABLE) || !defined(__GNUC__) || defined(OIC_FMA_F32) || \
    !(defined(__AVX512BF16__) || (defined(__aarch64__) && defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC))))
#error "oic: this code takes the machine's own products of bf16, and there are none: build with --numerics fused or separate, or compile for a machine that has them (-mavx512bf16, -march=armv8.6-a)"
#endif

#if defined(OIC_PORTABLE) || !defined(__GNUC__) || (OIC_FUSED && defined(OIC_FMA_F32))
#include "portable.h"
#elif defined(__AVX512F__)
#include "avx512.h"
#elif defined(__AVX2__)
#include "avx2.h"
#elif defined(__SSE2__) && (!OIC_FUSED || defined(__FMA__))
#include "sse2.h"
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include "neon.h"
#elif defined(__wasm_simd128__)
#include "wasm.h"
#elif defined(__ARM_FEATURE_MVE) && (__ARM_FEATURE_MVE & 1)
#include "helium.h"
#else
#include "portable.h"
#endif

#define OIC_REGISTER (OIC_WIDTH > 1 ? 4 * OIC_WIDTH : 0) /* bytes; 0: one number */

/* Machines that fetch memory ahead by themselves best in few places, and unasked: measured on Zen 4 (Zen 3 is another), and taken
   to be so of all with AVX-512. */
#define OIC_FETCHES (OIC_WIDTH == 16)

/* Of these, Intel's have two units, which multiply, for everything that registers do, and AMD's have others beside them.  Compilers
   are older than most processors, so what tells them apart is what a processor can: floats of 16 bits, which Intel's have since
   Sapphire Rapids, the oldest that was measured, and SSE4a, which AMD's have.  A wrong guess costs no more than time. */
#if defined(OIC_INTEL) /* by a flag: of an instruction set of --dispatch */
#elif OIC_WIDTH == 16 && defined(__AVX512FP16__) && !defined(__SSE4A__)
#define OIC_INTEL 1
#else
#define OIC_INTEL 0
#endif

/* They want to be asked for every line, into L1, and so does Zen 5, which of the others alone has both of these instruction sets. */
#if OIC_INTEL || (OIC_WIDTH == 16 && defined(__AVXVNNI__) && defined(__AVX512VP2INTERSECT__))
#define OIC_ASKED_NEAR 1
#else
#define OIC_ASKED_NEAR 0
#endif

/* Registers enough for four rows of two groups of lanes. */
#if OIC_WIDTH == 16 || defined(__aarch64__)
#define OIC_MANY_REGISTERS 1
#else
#define OIC_MANY_REGISTERS 0
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

/* ------------------------------------------------------------ registers */

/* a * b + sum as a step of a chain, lane by lane. */
static inline oic_register_f32 oic_register_madd_f32(oic_register_f32 a, oic_register_f32 b, oic_register_f32 sum)
{
#if OIC_FUSED && defined(OIC_FUSED_REGISTERS)
    return oic_register_fused_f32(a, b, sum);
#else
    return OIC_STEP_F32(a, b, sum);
#endif
}

#if !defined(OIC_NO_F64)
static inline oic_register_f64 oic_register_madd_f64(oic_register_f64 a, oic_register_f64 b, oic_register_f64 sum)
{
#if OIC_FUSED && defined(OIC_FUSED_REGISTERS)
    return oic_register_fused_f64(a, b, sum);
#else
    return OIC_STEP_F64(a, b, sum);
#endif
}
#endif

/* Numbers at any address; one number by an assignment, for gcc loads a copied one by way of an integer register. */
static inline oic_register_f32 oic_register_load_f32(const float *from)
{
#if OIC_WIDTH > 1
    oic_register_f32 to;
    memcpy(&to, from, sizeof to);
    return to;
#else
    return *from;
#endif
}

static inline oic_register_f64 oic_register_load_f64(const double *from)
{
#if OIC_WIDTH > 1
    oic_register_f64 to;
    memcpy(&to, from, sizeof to);
    return to;
#else
    return *from;
#endif
}

static inline void oic_register_store_f32(float *to, oic_register_f32 v)
{
#if OIC_WIDTH > 1
    memcpy(to, &v, sizeof v);
#else
    *to = v;
#endif
}

static inline void oic_register_store_f64(double *to, oic_register_f64 v)
{
#if OIC_WIDTH > 1
    memcpy(to, &v, sizeof v);
#else
    *to = v;
#endif
}

static inline oic_register_i32 oic_register_load_i32(const int32_t *from)
{
    oic_register_i32 to;
    memcpy(&to, from, sizeof to);
    return to;
}

static inline void oic_register_store_i32(int32_t *to, oic_register_i32 v)
{
    memcpy(to, &v, sizeof v);
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

static inline oic_register_i32 oic_register_of_i32(int32_t x)
{
    return x + (oic_register_i32){0};
}

static inline oic_register_u32 oic_register_of_u32(uint32_t x)
{
    return x + (oic_register_u32){0};
}

/* The bits of numbers, and numbers of bits. */
static inline oic_register_u32 oic_register_bits_f32(oic_register_f32 x)
{
    oic_register_u32 bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline oic_register_f32 oic_register_from_bits_f32(oic_register_u32 bits)
{
    oic_register_f32 x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The same bits as integers with a sign, and without. */
static inline oic_register_i32 oic_register_signed(oic_register_u32 x)
{
    return (oic_register_i32)x;
}

static inline oic_register_u32 oic_register_unsigned(oic_register_i32 x)
{
    return (oic_register_u32)x;
}

static inline oic_register_f32 oic_register_abs_f32(oic_register_f32 x)
{
    return oic_register_from_bits_f32(oic_register_bits_f32(x) & 0x7fffffffu);
}

/* The magnitude of x with the sign of y. */
static inline oic_register_f32 oic_register_copysign_f32(oic_register_f32 x, oic_register_f32 y)
{
    return oic_register_from_bits_f32((oic_register_bits_f32(x) & 0x7fffffffu) |
                                      (oic_register_bits_f32(y) & 0x80000000u));
}

/* x limited to low..high, of which low is the smaller; NaN stays.  As oic_limit_f32. */
static inline oic_register_f32 oic_register_limit_f32(oic_register_f32 x, float low, float high)
{
    return oic_register_max_f32(oic_register_of_f32(low), oic_register_min_f32(oic_register_of_f32(high), x));
}

#if !defined(OIC_SHIFTS) /* of a file that has it in fewer instructions */
/* v / 2^n, n of 0 to 31, halves away from zero.  As oic_shift_rounded. */
static inline oic_register_i32 oic_register_shift_rounded_i32(oic_register_i32 v, int n)
{
    const oic_register_u32 bits = oic_register_unsigned(v), sign = 0u - (bits >> 31), size = (bits ^ sign) - sign;
    const uint32_t half = (UINT32_C(1) << n) >> 1;
    return oic_register_signed((((size + half) >> (uint32_t)n) ^ sign) - sign);
}
#endif

/* 2^k, for k from -126 to 127. */
static inline oic_register_f32 oic_register_power_f32(oic_register_i32 k)
{
    return oic_register_from_bits_f32((oic_register_unsigned(k) + 127u) << 23);
}

#if !defined(OIC_SCALES) /* of a file that has it in fewer instructions */
/* x * 2^k for k from -252 to 254, where the product with the half of it is exact: then rounded once. */
static inline oic_register_f32 oic_register_scale_f32(oic_register_f32 x, oic_register_i32 k)
{
    const oic_register_u32 biased = oic_register_unsigned(k) + 512u, half = biased >> 1;
    return x * oic_register_from_bits_f32((half - 129u) << 23) * oic_register_from_bits_f32((biased - half - 129u) << 23);
}
#endif

/* ------------------------------------------------------------ narrow floats, as num.h defines them */

#if !defined(OIC_LOADS_BF16) /* of a file that has it in fewer instructions */
static inline oic_register_f32 oic_register_load_bf16(const uint16_t *from)
{
    return oic_register_from_bits_f32(oic_register_load_u16(from) << 16);
}
#endif

static inline void oic_register_store_bf16(uint16_t *to, oic_register_f32 v)
{
    const oic_register_u32 bits = oic_register_bits_f32(v), upper = bits >> 16;
    const oic_register_u32 rounded = (bits + 0x7fffu + (upper & 1u)) >> 16;
    oic_register_store_u16(to, oic_register_select_u32(oic_register_equal_f32(v, v), rounded, upper | 0x0040u));
}

#if !defined(OIC_HALVES)
/* See oic_widened and oic_narrowed. */
static inline oic_register_f32 oic_register_load_f16(const uint16_t *from)
{
#if OIC_WIDTH == 1 /* perhaps by an instruction */
    return oic_f16_to_f32(*from);
#else
    const oic_register_u32 half = oic_register_load_u16(from), body = (half & 0x7fffu) << 13;
    const oic_register_u32 exponent = body & 0x0f800000u, zero = oic_register_of_u32(0u);
    const oic_mask special = oic_register_equal_i32(oic_register_signed(exponent), oic_register_of_i32(0x0f800000));
    const oic_mask subnormal = oic_register_equal_i32(oic_register_signed(exponent), oic_register_of_i32(0));
    const oic_register_u32 normal = body + 0x38000000u +
                                    oic_register_select_u32(special, oic_register_of_u32(0x38000000u), zero);
    const oic_register_f32 tiny = oic_register_from_bits_f32(body + 0x38800000u) - 0x1p-14f;
    const oic_register_u32 size = oic_register_select_u32(subnormal, oic_register_bits_f32(tiny), normal);
    return oic_register_from_bits_f32(size | (half & 0x8000u) << 16);
#endif
}

static inline void oic_register_store_f16(uint16_t *to, oic_register_f32 v)
{
    const oic_register_u32 all = oic_register_bits_f32(v), bits = all & 0x7fffffffu, odd = (bits >> 13) & 1u;
    const oic_register_i32 size = oic_register_signed(bits);
    const oic_register_u32 normal = (bits - 0x38000000u + 0xfffu + odd) >> 13;
    const oic_register_u32 tiny = oic_register_bits_f32(oic_register_from_bits_f32(bits) + 0.5f) - 0x3f000000u;
    const oic_register_u32 quiet = oic_register_select_u32(oic_register_equal_f32(v, v), oic_register_of_u32(0x7c00u),
                                                           oic_register_of_u32(0x7e00u));
    const oic_mask beyond = oic_register_less_i32(oic_register_of_i32(0x477fffff), size);
    const oic_mask subnormal = oic_register_less_i32(size, oic_register_of_i32(0x38800000));
    const oic_register_u32 finite = oic_register_select_u32(subnormal, tiny, normal);
    oic_register_store_u16(to, oic_register_select_u32(beyond, quiet, finite) | (all >> 16 & 0x8000u));
}
#endif

#endif
