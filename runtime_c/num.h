/* Element types: how a stored element becomes the value that is computed with, and back.  One block a type:

   oic_stored_T        the C type of a stored element; for i1 i2 i4 u1 u2 u4 t1 t2 the byte that holds several,
                       least significant bits first; for f8 (e5m2), f16, bf16 their bits
   OIC_COMPUTED_T      the element type that it is computed in: f32 for narrow floats, i8 or u8 for packed types
   OIC_SUMS_T          what sums of products are taken in, where there are any: integers modulo 2^32 or 2^64
   OIC_BITS_T          of a stored element
   oic_load_T(p, i)    element i, exactly, as the type that is computed in
   oic_store_T(p, i, v)   v rounded or cut once to T; for a packed type the neighbours in its byte stay

   of a float
   oic_round_T(v)      the value after a store and a load
   oic_finite_T(x)     whether a stored element is neither infinite nor NaN
   oic_widen_T(p, n, to)   n elements as they are computed with: where they lie, or widened into `to`, exactly

   of an integer
   oic_widen_T(p, n, to)   the same, for i8 alone
   OIC_SIGNED_T, OIC_LOW_T, OIC_HIGH_T   1 or 0, and the range of its values
   oic_wrap_T(bits)    the low bits of a number, as a value of T

   Rounding is to nearest, ties to even; subnormals are kept, overflow gives infinity, a NaN stays one with its sign. */
#ifndef OIC_NUM_H
#define OIC_NUM_H

#include "version.h"

#include <math.h>
#include <stdbool.h> /* headers of machines include it: arm_mve.h, wasm_simd128.h */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "machine.h"
#include "oic.h"

#if defined(bool) /* it is a part of names, as that of an element type: else they have _Bool in them */
#undef bool
typedef _Bool bool;
#endif

/* ab and a_b_c, of what they are defined as; in one step, which every preprocessor can. */
#define OIC_PASTED(a, b) a##b
#define OIC_PASTE(a, b) OIC_PASTED(a, b)
/* 1 if x is defined as 1, else 0: a name that may be none, for #if (the second of `~, 1, 0, 0`, or of `x, 0, 0`). */
#define OIC_SET_1 ~, 1
#define OIC_SECOND(a, b, ...) b
#define OIC_APART(...) OIC_SECOND(__VA_ARGS__)
#define OIC_IS_ONE(x) OIC_APART(OIC_PASTE(OIC_SET_, x), 0, 0)
#define OIC_JOINED_2(a, b) a##_##b
#define OIC_JOINED_3(a, b, c) a##_##b##_##c
#define OIC_JOINED_4(a, b, c, d) a##_##b##_##c##_##d
#define OIC_JOINED_5(a, b, c, d, e) a##_##b##_##c##_##d##_##e
#define OIC_JOIN_2(a, b) OIC_JOINED_2(a, b)
#define OIC_JOIN_3(a, b, c) OIC_JOINED_3(a, b, c)
#define OIC_JOIN_4(a, b, c, d) OIC_JOINED_4(a, b, c, d)
#define OIC_JOIN_5(a, b, c, d, e) OIC_JOINED_5(a, b, c, d, e)

/* ------------------------------------------------------------ f32 */

typedef float oic_stored_f32;
#define OIC_COMPUTED_f32 f32
#define OIC_SUMS_f32 f32
#define OIC_BITS_f32 32

static inline float oic_load_f32(const float *p, ptrdiff_t i) { return p[i]; }
static inline void oic_store_f32(float *p, ptrdiff_t i, float v) { p[i] = v; }
static inline float oic_round_f32(float v) { return v; }

static inline uint32_t oic_bits_f32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float oic_from_bits_f32(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* condition ? yes : no, where both are always computed: a compiler may otherwise move a float
   operation into a branch, because it could trap, and then not vectorise the loop around it. */
static inline uint32_t oic_select_u32(int condition, uint32_t yes, uint32_t no)
{
    const uint32_t mask = 0u - (uint32_t)(condition != 0);
    return (yes & mask) | (no & ~mask);
}

static inline float oic_select_f32(int condition, float yes, float no)
{
    return oic_from_bits_f32(oic_select_u32(condition, oic_bits_f32(yes), oic_bits_f32(no)));
}

static inline int oic_finite_f32(float x) { return (oic_bits_f32(x) & 0x7f800000u) != 0x7f800000u; }

static inline const float *oic_widen_f32(const float *p, ptrdiff_t n, float *to)
{
    (void)n;
    (void)to;
    return p;
}

/* ------------------------------------------------------------ f64 */

typedef double oic_stored_f64;
#define OIC_COMPUTED_f64 f64
#define OIC_SUMS_f64 f64
#define OIC_BITS_f64 64

static inline double oic_load_f64(const double *p, ptrdiff_t i) { return p[i]; }
static inline void oic_store_f64(double *p, ptrdiff_t i, double v) { p[i] = v; }
static inline double oic_round_f64(double v) { return v; }

static inline uint64_t oic_bits_f64(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline double oic_from_bits_f64(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* condition ? yes : no; see oic_select_f32. */
static inline double oic_select_f64(int condition, double yes, double no)
{
    const uint64_t mask = (uint64_t)0 - (uint64_t)(condition != 0);
    return oic_from_bits_f64((oic_bits_f64(yes) & mask) | (oic_bits_f64(no) & ~mask));
}

static inline int oic_finite_f64(double x) { return (oic_bits_f64(x) >> 52 & 0x7ffu) != 0x7ffu; }

static inline const double *oic_widen_f64(const double *p, ptrdiff_t n, double *to)
{
    (void)n;
    (void)to;
    return p;
}

/* ------------------------------------------------------------ narrow floats with infinities, as in IEEE 754 */

/* Bits of the float that a narrow one is, without its sign: `body` is its exponent, of this bias, and its mantissa, at
   their places in a float.  Exact.  The exponent is moved by an addition; a subnormal gets an exponent of its own and
   loses the implied bit by a subtraction, so that no float subnormal (slow on many CPUs) ever arises. */
static inline uint32_t oic_widened(uint32_t body, uint32_t bias)
{
    const uint32_t moved = (127u - bias) << 23, least = (128u - bias) << 23, special = (2u * bias + 1u) << 23;
    const uint32_t exponent = body & special;
    const uint32_t normal = body + moved + (exponent == special ? moved : 0u);
    const float tiny = oic_from_bits_f32(body + least) - oic_from_bits_f32(least);
    return oic_select_u32(exponent == 0u, oic_bits_f32(tiny), normal);
}

/* The reverse, rounded: exponent, of this bias, and 23 - `drop` bits of mantissa of the narrow float nearest to |x|,
   where `bits` are those of |x|.  Below the smallest normal, an addition makes the adder itself round at the last place
   of the narrow subnormals. */
static inline uint32_t oic_narrowed(uint32_t bits, uint32_t drop, uint32_t bias)
{
    const uint32_t magic = (128u - bias + drop) << 23;
    const uint32_t moved = (127u - bias) << 23, least = (128u - bias) << 23, beyond = (128u + bias) << 23;
    const uint32_t infinity = ((2u * bias + 1u) << 23) >> drop;
    const uint32_t odd = (bits >> drop) & 1u;
    const uint32_t normal = (bits - moved + (1u << (drop - 1u)) - 1u + odd) >> drop;
    const uint32_t tiny = oic_bits_f32(oic_from_bits_f32(bits) + oic_from_bits_f32(magic)) - magic;
    const uint32_t finite = oic_select_u32(bits < least, tiny, normal);
    const uint32_t quiet = oic_select_u32(bits > 0x7f800000u, 0x00400000u >> drop, 0u);
    return oic_select_u32(bits >= beyond, infinity | quiet, finite);
}

/* ------------------------------------------------------------ f8: e5m2 */

typedef oic_f8 oic_stored_f8;
#define OIC_COMPUTED_f8 f32
#define OIC_SUMS_f8 f32
#define OIC_BITS_f8 8

static inline float oic_f8_to_f32(oic_f8 h)
{
    const uint32_t body = ((uint32_t)h & 0x7fu) << 21;
    return oic_from_bits_f32(oic_widened(body, 15u) | ((uint32_t)h & 0x80u) << 24);
}

static inline oic_f8 oic_f32_to_f8(float x)
{
    const uint32_t bits = oic_bits_f32(x);
    return (oic_f8)(oic_narrowed(bits & 0x7fffffffu, 21u, 15u) | ((bits >> 24) & 0x80u));
}

static inline float oic_load_f8(const oic_f8 *p, ptrdiff_t i) { return oic_f8_to_f32(p[i]); }
static inline void oic_store_f8(oic_f8 *p, ptrdiff_t i, float v) { p[i] = oic_f32_to_f8(v); }
static inline float oic_round_f8(float v) { return oic_f8_to_f32(oic_f32_to_f8(v)); }
static inline int oic_finite_f8(oic_f8 x) { return (x & 0x7cu) != 0x7cu; }

static inline const float *oic_widen_f8(const oic_f8 *restrict p, ptrdiff_t n, float *restrict to)
{
    for (ptrdiff_t i = 0; i < n; ++i) {
        to[i] = oic_f8_to_f32(p[i]);
    }
    return to;
}

/* ------------------------------------------------------------ f16 */

typedef oic_f16 oic_stored_f16;
#define OIC_COMPUTED_f16 f32
#define OIC_SUMS_f16 f32
#define OIC_BITS_f16 16

/* Where Arm's processors of 32 bits have an instruction that widens halves: all of the M profile with floats, for which gcc does
   not say so. */
#if defined(__GNUC__) && !defined(__aarch64__) && defined(__ARM_FP) && \
    ((__ARM_FP & 2) || (defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'))
#define OIC_WIDENS_HALVES 1
#else
#define OIC_WIDENS_HALVES 0
#endif

static inline float oic_f16_to_f32(oic_f16 h)
{
#if OIC_WIDENS_HALVES /* by assembly: __fp16 is a type with some flags alone */
    float x = oic_from_bits_f32(h);
    __asm__("vcvtb.f32.f16 %0, %0" : "+t"(x));
    return x;
#else
    const uint32_t body = ((uint32_t)h & 0x7fffu) << 13;
    return oic_from_bits_f32(oic_widened(body, 15u) | ((uint32_t)h & 0x8000u) << 16);
#endif
}

static inline oic_f16 oic_f32_to_f16(float x)
{
    const uint32_t bits = oic_bits_f32(x);
    return (oic_f16)(oic_narrowed(bits & 0x7fffffffu, 13u, 15u) | ((bits >> 16) & 0x8000u));
}

static inline float oic_load_f16(const oic_f16 *p, ptrdiff_t i) { return oic_f16_to_f32(p[i]); }
static inline void oic_store_f16(oic_f16 *p, ptrdiff_t i, float v) { p[i] = oic_f32_to_f16(v); }
static inline float oic_round_f16(float v) { return oic_f16_to_f32(oic_f32_to_f16(v)); }
static inline int oic_finite_f16(oic_f16 x) { return (x & 0x7c00u) != 0x7c00u; }

static inline const float *oic_widen_f16(const oic_f16 *restrict p, ptrdiff_t n, float *restrict to)
{
    ptrdiff_t i = 0;
#if defined(__F16C__) && defined(__GNUC__) /* without immintrin.h, which takes longer to compile than most programs */
    typedef float floats __attribute__((vector_size(32)));
#if defined(__clang__) /* whose newest, since 22, have no function for it */
    typedef __fp16 halves __attribute__((vector_size(16)));
#define OIC_WIDER(h) __builtin_convertvector(h, floats)
#else
    typedef short halves __attribute__((vector_size(16)));
#define OIC_WIDER(h) __builtin_ia32_vcvtph2ps256(h)
#endif
    for (; i + 8 <= n; i += 8) {
        halves some;
        memcpy(&some, p + i, sizeof some);
        const floats wide = OIC_WIDER(some);
        memcpy(to + i, &wide, sizeof wide);
    }
#undef OIC_WIDER
#elif OIC_WIDENS_HALVES
    for (; i + 2 <= n; i += 2) {
        uint32_t two;
        memcpy(&two, p + i, sizeof two);
        __asm__("vcvtt.f32.f16 %0, %1" : "=t"(to[i + 1]) : "t"(oic_from_bits_f32(two)));
        __asm__("vcvtb.f32.f16 %0, %1" : "=t"(to[i]) : "t"(oic_from_bits_f32(two)));
    }
#endif
    for (; i < n; ++i) {
        to[i] = oic_f16_to_f32(p[i]);
    }
    return to;
}

/* ------------------------------------------------------------ bf16: the upper half of a float */

typedef oic_bf16 oic_stored_bf16;
#define OIC_COMPUTED_bf16 f32
#define OIC_SUMS_bf16 f32
#define OIC_BITS_bf16 16

static inline float oic_bf16_to_f32(oic_bf16 h)
{
    return oic_from_bits_f32((uint32_t)h << 16);
}

static inline oic_bf16 oic_f32_to_bf16(float x)
{
    const uint32_t bits = oic_bits_f32(x);
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    const uint32_t quiet = (bits >> 16) | 0x0040u;
    return (oic_bf16)((bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

static inline float oic_load_bf16(const oic_bf16 *p, ptrdiff_t i) { return oic_bf16_to_f32(p[i]); }
static inline void oic_store_bf16(oic_bf16 *p, ptrdiff_t i, float v) { p[i] = oic_f32_to_bf16(v); }
static inline float oic_round_bf16(float v) { return oic_bf16_to_f32(oic_f32_to_bf16(v)); }
static inline int oic_finite_bf16(oic_bf16 x) { return (x & 0x7f80u) != 0x7f80u; }

static inline const float *oic_widen_bf16(const oic_bf16 *restrict p, ptrdiff_t n, float *restrict to)
{
    for (ptrdiff_t i = 0; i < n; ++i) {
        to[i] = oic_bf16_to_f32(p[i]);
    }
    return to;
}

/* ------------------------------------------------------------ integers of whole bytes */

typedef int8_t oic_stored_i8;
#define OIC_COMPUTED_i8 i8
#define OIC_SUMS_i8 u32
#define OIC_BITS_i8 8
#define OIC_SIGNED_i8 1
#define OIC_LOW_i8 INT8_MIN
#define OIC_HIGH_i8 INT8_MAX
static inline int8_t oic_load_i8(const int8_t *p, ptrdiff_t i) { return p[i]; }
static inline void oic_store_i8(int8_t *p, ptrdiff_t i, int8_t v) { p[i] = v; }
static inline int8_t oic_wrap_i8(uint32_t bits) { return (int8_t)bits; }

static inline const float *oic_widen_i8(const int8_t *restrict p, ptrdiff_t n, float *restrict to)
{
    for (ptrdiff_t i = 0; i < n; ++i) {
        to[i] = (float)p[i];
    }
    return to;
}

typedef int16_t oic_stored_i16;
#define OIC_COMPUTED_i16 i16
#define OIC_SUMS_i16 u32
#define OIC_BITS_i16 16
#define OIC_SIGNED_i16 1
#define OIC_LOW_i16 INT16_MIN
#define OIC_HIGH_i16 INT16_MAX
static inline int16_t oic_load_i16(const int16_t *p, ptrdiff_t i) { return p[i]; }
static inline void oic_store_i16(int16_t *p, ptrdiff_t i, int16_t v) { p[i] = v; }
static inline int16_t oic_wrap_i16(uint32_t bits) { return (int16_t)bits; }

typedef int32_t oic_stored_i32;
#define OIC_COMPUTED_i32 i32
#define OIC_SUMS_i32 u32
#define OIC_BITS_i32 32
#define OIC_SIGNED_i32 1
#define OIC_LOW_i32 INT32_MIN
#define OIC_HIGH_i32 INT32_MAX
static inline int32_t oic_load_i32(const int32_t *p, ptrdiff_t i) { return p[i]; }
static inline void oic_store_i32(int32_t *p, ptrdiff_t i, int32_t v) { p[i] = v; }
static inline int32_t oic_wrap_i32(uint32_t bits) { return (int32_t)bits; }

typedef int64_t oic_stored_i64;
#define OIC_COMPUTED_i64 i64
#define OIC_SUMS_i64 u64
#define OIC_BITS_i64 64
#define OIC_SIGNED_i64 1
#define OIC_LOW_i64 INT64_MIN
#define OIC_HIGH_i64 INT64_MAX
static inline int64_t oic_load_i64(const int64_t *p, ptrdiff_t i) { return p[i]; }
static inline void oic_store_i64(int64_t *p, ptrdiff_t i, int64_t v) { p[i] = v; }
static inline int64_t oic_wrap_i64(uint64_t bits) { return (int64_t)bits; }

typedef uint8_t oic_stored_u8;
#define OIC_COMPUTED_u8 u8
#define OIC_SUMS_u8 u32
#define OIC_BITS_u8 8
#define OIC_SIGNED_u8 0
#define OIC_LOW_u8 0
#define OIC_HIGH_u8 UINT8_MAX
static inline uint8_t oic_load_u8(const uint8_t *p, ptrdiff_t i) { return p[i]; }
static inline void oic_store_u8(uint8_t *p, ptrdiff_t i, uint8_t v) { p[i] = v; }
static inline uint8_t oic_wrap_u8(uint32_t bits) { return (uint8_t)bits; }

typedef uint16_t oic_stored_u16;
#define OIC_COMPUTED_u16 u16
#define OIC_SUMS_u16 u32
#define OIC_BITS_u16 16
#define OIC_SIGNED_u16 0
#define OIC_LOW_u16 0
#define OIC_HIGH_u16 UINT16_MAX
static inline uint16_t oic_load_u16(const uint16_t *p, ptrdiff_t i) { return p[i]; }
static inline void oic_store_u16(uint16_t *p, ptrdiff_t i, uint16_t v) { p[i] = v; }
static inline uint16_t oic_wrap_u16(uint32_t bits) { return (uint16_t)bits; }

typedef uint32_t oic_stored_u32;
#define OIC_COMPUTED_u32 u32
#define OIC_SUMS_u32 u32
#define OIC_BITS_u32 32
#define OIC_SIGNED_u32 0
#define OIC_LOW_u32 0
#define OIC_HIGH_u32 UINT32_MAX
static inline uint32_t oic_load_u32(const uint32_t *p, ptrdiff_t i) { return p[i]; }
static inline void oic_store_u32(uint32_t *p, ptrdiff_t i, uint32_t v) { p[i] = v; }
static inline uint32_t oic_wrap_u32(uint32_t bits) { return (uint32_t)bits; }

typedef uint64_t oic_stored_u64;
#define OIC_COMPUTED_u64 u64
#define OIC_SUMS_u64 u64
#define OIC_BITS_u64 64
#define OIC_SIGNED_u64 0
#define OIC_LOW_u64 0
#define OIC_HIGH_u64 UINT64_MAX
static inline uint64_t oic_load_u64(const uint64_t *p, ptrdiff_t i) { return p[i]; }
static inline void oic_store_u64(uint64_t *p, ptrdiff_t i, uint64_t v) { p[i] = v; }
static inline uint64_t oic_wrap_u64(uint64_t bits) { return (uint64_t)bits; }

/* ------------------------------------------------------------ packed types */

/* The code of element i, unsigned, of 1, 2 or 4 bits. */
static inline uint32_t oic_load_code(const uint8_t *p, ptrdiff_t i, uint32_t bits)
{
    const size_t bit = (size_t)i * bits;
    return ((uint32_t)p[bit >> 3] >> (bit & 7u)) & ((1u << bits) - 1u);
}

static inline void oic_store_code(uint8_t *p, ptrdiff_t i, uint32_t bits, uint32_t code)
{
    const size_t bit = (size_t)i * bits;
    const uint32_t mask = ((1u << bits) - 1u) << (bit & 7u);
    p[bit >> 3] = (uint8_t)(((uint32_t)p[bit >> 3] & ~mask) | ((code << (bit & 7u)) & mask));
}

/* The number in two's complement that a code of so many bits is. */
static inline int8_t oic_signed_code(uint32_t code, uint32_t bits)
{
    const uint32_t sign = 1u << (bits - 1u);
    return (int8_t)((int32_t)((code & (2u * sign - 1u)) ^ sign) - (int32_t)sign);
}

typedef uint8_t oic_stored_i1;
#define OIC_COMPUTED_i1 i8
#define OIC_SUMS_i1 u32
#define OIC_BITS_i1 1
#define OIC_SIGNED_i1 1
#define OIC_LOW_i1 -1
#define OIC_HIGH_i1 0
static inline int8_t oic_load_i1(const uint8_t *p, ptrdiff_t i) { return oic_signed_code(oic_load_code(p, i, 1u), 1u); }
static inline void oic_store_i1(uint8_t *p, ptrdiff_t i, int8_t v) { oic_store_code(p, i, 1u, (uint32_t)(int32_t)v); }
static inline int8_t oic_wrap_i1(uint32_t bits) { return oic_signed_code(bits, 1u); }

typedef uint8_t oic_stored_i2;
#define OIC_COMPUTED_i2 i8
#define OIC_SUMS_i2 u32
#define OIC_BITS_i2 2
#define OIC_SIGNED_i2 1
#define OIC_LOW_i2 -2
#define OIC_HIGH_i2 1
static inline int8_t oic_load_i2(const uint8_t *p, ptrdiff_t i) { return oic_signed_code(oic_load_code(p, i, 2u), 2u); }
static inline void oic_store_i2(uint8_t *p, ptrdiff_t i, int8_t v) { oic_store_code(p, i, 2u, (uint32_t)(int32_t)v); }
static inline int8_t oic_wrap_i2(uint32_t bits) { return oic_signed_code(bits, 2u); }

typedef uint8_t oic_stored_i4;
#define OIC_COMPUTED_i4 i8
#define OIC_SUMS_i4 u32
#define OIC_BITS_i4 4
#define OIC_SIGNED_i4 1
#define OIC_LOW_i4 -8
#define OIC_HIGH_i4 7
static inline int8_t oic_load_i4(const uint8_t *p, ptrdiff_t i) { return oic_signed_code(oic_load_code(p, i, 4u), 4u); }
static inline void oic_store_i4(uint8_t *p, ptrdiff_t i, int8_t v) { oic_store_code(p, i, 4u, (uint32_t)(int32_t)v); }
static inline int8_t oic_wrap_i4(uint32_t bits) { return oic_signed_code(bits, 4u); }

typedef uint8_t oic_stored_u1;
#define OIC_COMPUTED_u1 u8
#define OIC_SUMS_u1 u32
#define OIC_BITS_u1 1
#define OIC_SIGNED_u1 0
#define OIC_LOW_u1 0
#define OIC_HIGH_u1 1
static inline uint8_t oic_load_u1(const uint8_t *p, ptrdiff_t i) { return (uint8_t)oic_load_code(p, i, 1u); }
static inline void oic_store_u1(uint8_t *p, ptrdiff_t i, uint8_t v) { oic_store_code(p, i, 1u, v); }
static inline uint8_t oic_wrap_u1(uint32_t bits) { return (uint8_t)(bits & 1u); }

typedef uint8_t oic_stored_u2;
#define OIC_COMPUTED_u2 u8
#define OIC_SUMS_u2 u32
#define OIC_BITS_u2 2
#define OIC_SIGNED_u2 0
#define OIC_LOW_u2 0
#define OIC_HIGH_u2 3
static inline uint8_t oic_load_u2(const uint8_t *p, ptrdiff_t i) { return (uint8_t)oic_load_code(p, i, 2u); }
static inline void oic_store_u2(uint8_t *p, ptrdiff_t i, uint8_t v) { oic_store_code(p, i, 2u, v); }
static inline uint8_t oic_wrap_u2(uint32_t bits) { return (uint8_t)(bits & 3u); }

typedef uint8_t oic_stored_u4;
#define OIC_COMPUTED_u4 u8
#define OIC_SUMS_u4 u32
#define OIC_BITS_u4 4
#define OIC_SIGNED_u4 0
#define OIC_LOW_u4 0
#define OIC_HIGH_u4 15
static inline uint8_t oic_load_u4(const uint8_t *p, ptrdiff_t i) { return (uint8_t)oic_load_code(p, i, 4u); }
static inline void oic_store_u4(uint8_t *p, ptrdiff_t i, uint8_t v) { oic_store_code(p, i, 4u, v); }
static inline uint8_t oic_wrap_u4(uint32_t bits) { return (uint8_t)(bits & 15u); }

/* t1 is -1 (bit 0) or 1 (bit 1); zero is stored as -1. */
typedef uint8_t oic_stored_t1;
#define OIC_COMPUTED_t1 i8
#define OIC_BITS_t1 1
static inline int8_t oic_load_t1(const uint8_t *p, ptrdiff_t i)
{
    return (int8_t)((int32_t)oic_load_code(p, i, 1u) * 2 - 1);
}

static inline void oic_store_t1(uint8_t *p, ptrdiff_t i, int8_t v) { oic_store_code(p, i, 1u, v > 0 ? 1u : 0u); }

typedef uint8_t oic_stored_t2;
#define OIC_COMPUTED_t2 i8
#define OIC_BITS_t2 2
static inline int8_t oic_load_t2(const uint8_t *p, ptrdiff_t i) { return oic_signed_code(oic_load_code(p, i, 2u), 2u); }
static inline void oic_store_t2(uint8_t *p, ptrdiff_t i, int8_t v) { oic_store_code(p, i, 2u, (uint32_t)(int32_t)v); }

/* ------------------------------------------------------------ bool, which is 0 or 1, and bitset */

typedef uint8_t oic_stored_bool;
#define OIC_COMPUTED_bool bool
#define OIC_BITS_bool 8
static inline uint8_t oic_load_bool(const uint8_t *p, ptrdiff_t i) { return p[i]; }
static inline void oic_store_bool(uint8_t *p, ptrdiff_t i, uint8_t v) { p[i] = v; }

typedef uint8_t oic_stored_bitset;
#define OIC_COMPUTED_bitset u8
#define OIC_SUMS_bitset u32
#define OIC_BITS_bitset 8
static inline uint8_t oic_load_bitset(const uint8_t *p, ptrdiff_t i) { return p[i]; }
static inline void oic_store_bitset(uint8_t *p, ptrdiff_t i, uint8_t v) { p[i] = v; }

#endif
