/* One number a register, in plain C: for every machine, and what the functions of the other files are equal to.

   oic_register_f32, _f64, _i32, _u32   OIC_WIDTH numbers (f64: OIC_WIDTH_F64), which the operators of C compute with;
                                        those of integers wrap.  registers.h has what can be written with them alone
   oic_mask                             which of OIC_WIDTH numbers */
#ifndef OIC_SIMD_PORTABLE_H
#define OIC_SIMD_PORTABLE_H

#include "../version.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define OIC_WIDTH 1
#define OIC_WIDTH_F64 1

typedef float oic_register_f32;
typedef double oic_register_f64;
typedef int32_t oic_register_i32;
typedef uint32_t oic_register_u32;
typedef uint32_t oic_mask; /* 0 or all ones */

/* The first n of a register, 0 <= n <= OIC_WIDTH, the others 0. */
static inline oic_register_f32 oic_register_load_some_f32(const float *from, ptrdiff_t n)
{
    return n > 0 ? *from : 0.0f;
}

/* Narrower integers, widened. */
static inline oic_register_i32 oic_register_load_i8(const int8_t *from)
{
    return *from;
}

static inline oic_register_u32 oic_register_load_u8(const uint8_t *from)
{
    return *from;
}

static inline oic_register_u32 oic_register_load_u16(const uint16_t *from)
{
    return *from;
}

/* Numbers of the range of the narrower type. */
static inline void oic_register_store_i8(int8_t *to, oic_register_i32 v)
{
    *to = (int8_t)v;
}

/* Four registers plus a number of at most 32512 either way, limited to bytes, with a sign or without one. */
static inline void oic_register_store_limited(uint8_t *to, const oic_register_i32 *v, int16_t more, int sign)
{
    const int32_t low = sign ? -128 : 0, high = sign ? 127 : 255;
    for (int i = 0; i < 4; ++i) {
        const int32_t least = low - more, most = high - more;
        to[i] = (uint8_t)((v[i] < least ? least : v[i] > most ? most : v[i]) + more);
    }
}

static inline void oic_register_store_u16(uint16_t *to, oic_register_u32 v)
{
    *to = (uint16_t)v;
}

/* ------------------------------------------------------------ comparisons, none of which holds for a NaN */

static inline oic_mask oic_register_less_f32(oic_register_f32 a, oic_register_f32 b)
{
    return 0u - (uint32_t)(a < b);
}

static inline oic_mask oic_register_equal_f32(oic_register_f32 a, oic_register_f32 b)
{
    return 0u - (uint32_t)(a == b);
}

static inline oic_mask oic_register_less_i32(oic_register_i32 a, oic_register_i32 b)
{
    return 0u - (uint32_t)(a < b);
}

static inline oic_mask oic_register_equal_i32(oic_register_i32 a, oic_register_i32 b)
{
    return 0u - (uint32_t)(a == b);
}

static inline oic_mask oic_mask_and(oic_mask a, oic_mask b)
{
    return a & b;
}

static inline oic_mask oic_mask_or(oic_mask a, oic_mask b)
{
    return a | b;
}

static inline oic_mask oic_mask_not(oic_mask a)
{
    return ~a;
}

/* 1 if any is in the mask. */
static inline int oic_mask_any(oic_mask a)
{
    return a != 0u;
}

/* Numbers of `yes` where the mask has them, else of `no`; both are always computed. */
static inline oic_register_u32 oic_register_select_u32(oic_mask m, oic_register_u32 yes, oic_register_u32 no)
{
    return (yes & m) | (no & ~m);
}

static inline oic_register_f32 oic_register_select_f32(oic_mask m, oic_register_f32 yes, oic_register_f32 no)
{
    uint32_t a, b;
    memcpy(&a, &yes, sizeof a);
    memcpy(&b, &no, sizeof b);
    a = (a & m) | (b & ~m);
    memcpy(&yes, &a, sizeof a);
    return yes;
}

/* a > b ? a : b, and a < b ? a : b: that is b where one is a NaN, or both are zeros. */
static inline oic_register_f32 oic_register_max_f32(oic_register_f32 a, oic_register_f32 b)
{
    return oic_register_select_f32(oic_register_less_f32(b, a), a, b);
}

static inline oic_register_f32 oic_register_min_f32(oic_register_f32 a, oic_register_f32 b)
{
    return oic_register_select_f32(oic_register_less_f32(a, b), a, b);
}

/* ------------------------------------------------------------ roots and conversions */

static inline oic_register_f32 oic_register_sqrt_f32(oic_register_f32 a)
{
    return sqrtf(a);
}

static inline oic_register_f64 oic_register_sqrt_f64(oic_register_f64 a)
{
    return sqrt(a);
}

/* An integer, rounded. */
static inline oic_register_f32 oic_register_to_f32(oic_register_i32 a)
{
    return (float)a;
}

/* What lies before the point of a number from -2^31 to 2^31 - 128. */
static inline oic_register_i32 oic_register_to_i32(oic_register_f32 a)
{
    return (int32_t)a;
}

/* The integer nearest to such a number, of two the even one. */
static inline oic_register_i32 oic_register_nearest_i32(oic_register_f32 a)
{
    const int32_t whole = (int32_t)a;
    const float beyond = a - (float)whole, size = beyond < 0.0f ? -beyond : beyond; /* exact */
    const int32_t up = (size > 0.5f) | ((size == 0.5f) & (whole & 1));
    return whole + (a < 0.0f ? -up : up);
}

/* The nearest whole number, with the sign of a; a NaN stays one. */
static inline oic_register_f32 oic_register_round_f32(oic_register_f32 a)
{
    uint32_t bits, made;
    memcpy(&bits, &a, sizeof bits);
    if ((bits & 0x7fffffffu) >= 0x4b000000u) { /* 2^23: no digits after the point */
        return a;
    }
    const float whole = (float)oic_register_nearest_i32(a);
    memcpy(&made, &whole, sizeof made);
    made = (made & 0x7fffffffu) | (bits & 0x80000000u);
    memcpy(&a, &made, sizeof made);
    return a;
}

/* ------------------------------------------------------------ integers */

static inline oic_register_i32 oic_register_max_i32(oic_register_i32 a, oic_register_i32 b)
{
    return a > b ? a : b;
}

static inline oic_register_i32 oic_register_min_i32(oic_register_i32 a, oic_register_i32 b)
{
    return a < b ? a : b;
}

/* The high half of twice a product, rounded (halves toward plus infinity); not that of -2^31 with itself. */
static inline oic_register_i32 oic_register_high_half_i32(oic_register_i32 a, oic_register_i32 b)
{
    const uint32_t half = (uint32_t)(((uint64_t)((int64_t)a * b) + (UINT64_C(1) << 30)) >> 31);
    return half <= (uint32_t)INT32_MAX ? (int32_t)half : -(int32_t)~half - 1;
}

/* ------------------------------------------------------------ over the numbers of a register, as a tree of halves */

static inline float oic_register_sum_f32(oic_register_f32 a)
{
    return a;
}

static inline double oic_register_sum_f64(oic_register_f64 a)
{
    return a;
}

/* oic_register_max_f32(lower half, upper half), and so on. */
static inline float oic_register_largest_f32(oic_register_f32 a)
{
    return a;
}

/* ------------------------------------------------------------ products of bytes */

/* sum[i] += w[4 i] x[0] + ... + w[4 i + 3] x[3], exactly; no byte of w is -128. */
static inline oic_register_i32 oic_register_dot_i8(oic_register_i32 sum, const int8_t *w, const int8_t *x)
{
    return sum + w[0] * x[0] + w[1] * x[1] + w[2] * x[2] + w[3] * x[3];
}

/* sum + the product of the lower halves of words, numbers of 16 bits with a sign, + that of the upper ones, modulo 2^32. */
static inline oic_register_u32 oic_register_dot_i16(oic_register_u32 sum, oic_register_u32 w, oic_register_u32 x)
{
    const int32_t low = (int16_t)(uint16_t)w * (int16_t)(uint16_t)x, high = (int16_t)(uint16_t)(w >> 16) * (int16_t)(uint16_t)(x >> 16);
    return sum + (uint32_t)low + (uint32_t)high;
}

/* Where a machine multiplies four bytes of words at once, oic_register_dot_bytes does the same with those, and OIC_DOT_BYTES is 1;
   it is 2 where the bytes of w have no sign.  There, oic_register_fours gives words of the bytes of four rows, the first row's
   lowest; oic_register_neighbours, where OIC_NEIGHBOURS is defined, those of four neighbours of a row of `size` numbers
   that is 0 outside, from first + i * step on, for steps of up to OIC_NEIGHBOURS; what is inside, oic_neighbours_inside says for
   all rows that are as long.  oic_register_load_row, where OIC_NEAR is defined, has that many numbers of such a row from `first`
   on, and oic_register_near the words of w of four of them each, a byte of `places` a number. */

#endif
