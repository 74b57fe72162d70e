/* Element types: how a stored element becomes the value that is computed with, and back.

   Stored         f8 (e5m2), f16, bf16: their bits; i1 i2 i4 u1 u2 u4 t1 t2: several in a byte,
                  least significant bits first; all others as their C type.
   Computed       float for f8, f16, bf16; int8_t or uint8_t for the packed types; bool is 0 or 1.

   For every element type T there are

       V    oic_load_T(const S *p, ptrdiff_t i)           element i, exactly
       void oic_store_T(S *p, ptrdiff_t i, V v)           v rounded or wrapped once to T

   A store to a packed type rewrites its byte and keeps the neighbours.  Rounding is to nearest,
   ties to even; subnormals are kept, overflow gives infinity, a NaN stays one with its sign. */
#ifndef OIC_NUM_H
#define OIC_NUM_H

#include "version.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "machine.h"
#include "oic.h"

/* Element types by number, for functions that store several of them. */
typedef enum {
    OIC_F8, OIC_F16, OIC_BF16, OIC_F32, OIC_F64,
    OIC_I1, OIC_I2, OIC_I4, OIC_I8, OIC_I16, OIC_I32, OIC_I64,
    OIC_U1, OIC_U2, OIC_U4, OIC_U8, OIC_U16, OIC_U32, OIC_U64,
    OIC_BOOL, OIC_BITSET, OIC_T1, OIC_T2
} oic_dtype;

/* ------------------------------------------------------------ names for kernels */

/* The C type of a stored element, by element type; what it is computed in is another element type. */
typedef oic_f8 oic_stored_f8;
typedef oic_f16 oic_stored_f16;
typedef oic_bf16 oic_stored_bf16;
typedef float oic_stored_f32;
typedef double oic_stored_f64;
typedef int8_t oic_stored_i8;
typedef int16_t oic_stored_i16;
typedef int32_t oic_stored_i32;
typedef int64_t oic_stored_i64;
typedef uint8_t oic_stored_u8;
typedef uint16_t oic_stored_u16;
typedef uint32_t oic_stored_u32;
typedef uint64_t oic_stored_u64;
typedef uint8_t oic_stored_bool;
typedef uint8_t oic_stored_bitset;
typedef uint8_t oic_stored_i1;
typedef uint8_t oic_stored_i2;
typedef uint8_t oic_stored_i4;
typedef uint8_t oic_stored_u1;
typedef uint8_t oic_stored_u2;
typedef uint8_t oic_stored_u4;
typedef uint8_t oic_stored_t1;
typedef uint8_t oic_stored_t2;

#define OIC_COMPUTED_f8 f32
#define OIC_COMPUTED_f16 f32
#define OIC_COMPUTED_bf16 f32
#define OIC_COMPUTED_f32 f32
#define OIC_COMPUTED_f64 f64
#define OIC_COMPUTED_i1 i8
#define OIC_COMPUTED_i2 i8
#define OIC_COMPUTED_i4 i8
#define OIC_COMPUTED_i8 i8
#define OIC_COMPUTED_i16 i16
#define OIC_COMPUTED_i32 i32
#define OIC_COMPUTED_i64 i64
#define OIC_COMPUTED_u1 u8
#define OIC_COMPUTED_u2 u8
#define OIC_COMPUTED_u4 u8
#define OIC_COMPUTED_u8 u8
#define OIC_COMPUTED_u16 u16
#define OIC_COMPUTED_u32 u32
#define OIC_COMPUTED_u64 u64
#define OIC_COMPUTED_bool bool
#define OIC_COMPUTED_bitset u8
#define OIC_COMPUTED_t1 i8
#define OIC_COMPUTED_t2 i8

/* What sums of products are taken in: integers modulo 2^32 or 2^64, by the type of the result. */
#define OIC_SUMS_f8 f32
#define OIC_SUMS_f16 f32
#define OIC_SUMS_bf16 f32
#define OIC_SUMS_f32 f32
#define OIC_SUMS_f64 f64
#define OIC_SUMS_i1 u32
#define OIC_SUMS_i2 u32
#define OIC_SUMS_i4 u32
#define OIC_SUMS_i8 u32
#define OIC_SUMS_i16 u32
#define OIC_SUMS_i32 u32
#define OIC_SUMS_i64 u64
#define OIC_SUMS_u1 u32
#define OIC_SUMS_u2 u32
#define OIC_SUMS_u4 u32
#define OIC_SUMS_u8 u32
#define OIC_SUMS_u16 u32
#define OIC_SUMS_u32 u32
#define OIC_SUMS_u64 u64
#define OIC_SUMS_bitset u32

/* Bits of a stored element. */
enum {
    OIC_BITS_f8 = 8, OIC_BITS_f16 = 16, OIC_BITS_bf16 = 16, OIC_BITS_f32 = 32, OIC_BITS_f64 = 64,
    OIC_BITS_i1 = 1, OIC_BITS_i2 = 2, OIC_BITS_i4 = 4, OIC_BITS_i8 = 8, OIC_BITS_i16 = 16, OIC_BITS_i32 = 32,
    OIC_BITS_i64 = 64, OIC_BITS_u1 = 1, OIC_BITS_u2 = 2, OIC_BITS_u4 = 4, OIC_BITS_u8 = 8, OIC_BITS_u16 = 16,
    OIC_BITS_u32 = 32, OIC_BITS_u64 = 64, OIC_BITS_bool = 8, OIC_BITS_bitset = 8, OIC_BITS_t1 = 1, OIC_BITS_t2 = 2
};

#define OIC_PASTED(a, b) a##b
#define OIC_PASTE(a, b) OIC_PASTED(a, b)
/* a_b_c, of what they are defined as; in one step, which every preprocessor can. */
#define OIC_JOINED_2(a, b) a##_##b
#define OIC_JOINED_3(a, b, c) a##_##b##_##c
#define OIC_JOINED_4(a, b, c, d) a##_##b##_##c##_##d
#define OIC_JOINED_5(a, b, c, d, e) a##_##b##_##c##_##d##_##e
#define OIC_JOIN_2(a, b) OIC_JOINED_2(a, b)
#define OIC_JOIN_3(a, b, c) OIC_JOINED_3(a, b, c)
#define OIC_JOIN_4(a, b, c, d) OIC_JOINED_4(a, b, c, d)
#define OIC_JOIN_5(a, b, c, d, e) OIC_JOINED_5(a, b, c, d, e)

/* ------------------------------------------------------------ bits of floats */

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

/* ------------------------------------------------------------ narrow floats */

/* Exact.  The exponent is moved by an addition; a subnormal gets an exponent of its own and loses
   the implied bit by a subtraction, so that no float subnormal (slow on many CPUs) ever arises. */
static inline float oic_f16_to_f32(oic_f16 h)
{
    const uint32_t sign = ((uint32_t)h & 0x8000u) << 16;
    const uint32_t body = ((uint32_t)h & 0x7fffu) << 13;
    const uint32_t exponent = body & 0x0f800000u;
    const uint32_t special = exponent == 0x0f800000u ? 0x38000000u : 0u;
    const uint32_t normal = body + 0x38000000u + special;
    const float tiny = oic_from_bits_f32(body + 0x38800000u) - 6.103515625e-05f; /* 2^-14 */
    const uint32_t bits = oic_select_u32(exponent == 0u, oic_bits_f32(tiny), normal);
    return oic_from_bits_f32(bits | sign);
}

/* Bits of |x| in a float with a 5-bit exponent of bias 15 and 23 - `drop` mantissa bits, where
   `bits` are those of |x|.  Below the smallest normal, adding 2^(9 - 23 + drop) makes the adder
   itself round at the last place of the narrow subnormals. */
static inline uint32_t oic_narrow_5bit(uint32_t bits, uint32_t drop)
{
    const uint32_t magic = (127u - 15u + drop + 1u) << 23;
    const uint32_t infinity = 0x0f800000u >> drop;
    const uint32_t odd = (bits >> drop) & 1u;
    const uint32_t normal = (bits - 0x38000000u + (1u << (drop - 1u)) - 1u + odd) >> drop;
    const uint32_t tiny =
        oic_bits_f32(oic_from_bits_f32(bits) + oic_from_bits_f32(magic)) - magic;
    const uint32_t finite = oic_select_u32(bits < 0x38800000u, tiny, normal);
    const uint32_t quiet = oic_select_u32(bits > 0x7f800000u, 0x00400000u >> drop, 0u);
    return oic_select_u32(bits >= 0x47800000u, infinity | quiet, finite);
}

static inline oic_f16 oic_f32_to_f16(float x)
{
    const uint32_t bits = oic_bits_f32(x);
    return (oic_f16)(oic_narrow_5bit(bits & 0x7fffffffu, 13u) | ((bits >> 16) & 0x8000u));
}

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

/* An f8 is the upper byte of an f16. */
static inline float oic_f8_to_f32(oic_f8 h)
{
    return oic_f16_to_f32((oic_f16)((uint32_t)h << 8));
}

static inline oic_f8 oic_f32_to_f8(float x)
{
    const uint32_t bits = oic_bits_f32(x);
    return (oic_f8)(oic_narrow_5bit(bits & 0x7fffffffu, 21u) | ((bits >> 24) & 0x80u));
}

/* The value after a store and a load. */
static inline float oic_round_f16(float x) { return oic_f16_to_f32(oic_f32_to_f16(x)); }
static inline float oic_round_bf16(float x) { return oic_bf16_to_f32(oic_f32_to_bf16(x)); }
static inline float oic_round_f8(float x) { return oic_f8_to_f32(oic_f32_to_f8(x)); }
static inline float oic_round_f32(float x) { return x; }
static inline double oic_round_f64(double x) { return x; }

/* Whether it is neither infinite nor NaN. */
static inline int oic_finite_f8(oic_f8 x) { return (x & 0x7cu) != 0x7cu; }
static inline int oic_finite_f16(oic_f16 x) { return (x & 0x7c00u) != 0x7c00u; }
static inline int oic_finite_bf16(oic_bf16 x) { return (x & 0x7f80u) != 0x7f80u; }
static inline int oic_finite_f32(float x) { return (oic_bits_f32(x) & 0x7f800000u) != 0x7f800000u; }
static inline int oic_finite_f64(double x) { return (oic_bits_f64(x) >> 52 & 0x7ffu) != 0x7ffu; }

static inline float oic_load_f8(const oic_f8 *p, ptrdiff_t i) { return oic_f8_to_f32(p[i]); }
static inline float oic_load_f16(const oic_f16 *p, ptrdiff_t i) { return oic_f16_to_f32(p[i]); }
static inline float oic_load_bf16(const oic_bf16 *p, ptrdiff_t i) { return oic_bf16_to_f32(p[i]); }
static inline void oic_store_f8(oic_f8 *p, ptrdiff_t i, float v) { p[i] = oic_f32_to_f8(v); }
static inline void oic_store_f16(oic_f16 *p, ptrdiff_t i, float v) { p[i] = oic_f32_to_f16(v); }
static inline void oic_store_bf16(oic_bf16 *p, ptrdiff_t i, float v) { p[i] = oic_f32_to_bf16(v); }

/* n floats as they are computed with: where they lie, or widened into `to`, exactly. */
static inline const float *oic_widen_f8(const oic_f8 *restrict p, ptrdiff_t n, float *restrict to)
{
    for (ptrdiff_t i = 0; i < n; ++i) {
        to[i] = oic_f8_to_f32(p[i]);
    }
    return to;
}

static inline const float *oic_widen_f16(const oic_f16 *restrict p, ptrdiff_t n, float *restrict to)
{
    for (ptrdiff_t i = 0; i < n; ++i) {
        to[i] = oic_f16_to_f32(p[i]);
    }
    return to;
}

static inline const float *oic_widen_bf16(const oic_bf16 *restrict p, ptrdiff_t n, float *restrict to)
{
    for (ptrdiff_t i = 0; i < n; ++i) {
        to[i] = oic_bf16_to_f32(p[i]);
    }
    return to;
}

static inline const float *oic_widen_f32(const float *p, ptrdiff_t n, float *to)
{
    (void)n;
    (void)to;
    return p;
}

static inline const double *oic_widen_f64(const double *p, ptrdiff_t n, double *to)
{
    (void)n;
    (void)to;
    return p;
}

/* ------------------------------------------------------------ types stored as they are */

#define OIC_PLAIN(T, C)                                                            \
    static inline C oic_load_##T(const C *p, ptrdiff_t i) { return p[i]; }         \
    static inline void oic_store_##T(C *p, ptrdiff_t i, C v) { p[i] = v; }

OIC_PLAIN(f32, float)
OIC_PLAIN(f64, double)
OIC_PLAIN(i8, int8_t)
OIC_PLAIN(i16, int16_t)
OIC_PLAIN(i32, int32_t)
OIC_PLAIN(i64, int64_t)
OIC_PLAIN(u8, uint8_t)
OIC_PLAIN(u16, uint16_t)
OIC_PLAIN(u32, uint32_t)
OIC_PLAIN(u64, uint64_t)
OIC_PLAIN(bool, uint8_t)
OIC_PLAIN(bitset, uint8_t)

#undef OIC_PLAIN

/* ------------------------------------------------------------ packed types */

/* The BITS-bit code of element i, unsigned; BITS is 1, 2 or 4. */
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

#define OIC_PACKED_SIGNED(T, BITS)                                                           \
    static inline int8_t oic_load_##T(const uint8_t *p, ptrdiff_t i)                         \
    {                                                                                        \
        const uint32_t sign = 1u << (BITS - 1);                                              \
        return (int8_t)((int32_t)(oic_load_code(p, i, BITS) ^ sign) - (int32_t)sign);        \
    }                                                                                        \
    static inline void oic_store_##T(uint8_t *p, ptrdiff_t i, int8_t v)                      \
    {                                                                                        \
        oic_store_code(p, i, BITS, (uint32_t)(int32_t)v);                                    \
    }

#define OIC_PACKED_UNSIGNED(T, BITS)                                                         \
    static inline uint8_t oic_load_##T(const uint8_t *p, ptrdiff_t i)                        \
    {                                                                                        \
        return (uint8_t)oic_load_code(p, i, BITS);                                           \
    }                                                                                        \
    static inline void oic_store_##T(uint8_t *p, ptrdiff_t i, uint8_t v)                     \
    {                                                                                        \
        oic_store_code(p, i, BITS, v);                                                       \
    }

OIC_PACKED_SIGNED(i1, 1)
OIC_PACKED_SIGNED(i2, 2)
OIC_PACKED_SIGNED(i4, 4)
OIC_PACKED_SIGNED(t2, 2)
OIC_PACKED_UNSIGNED(u1, 1)
OIC_PACKED_UNSIGNED(u2, 2)
OIC_PACKED_UNSIGNED(u4, 4)

#undef OIC_PACKED_SIGNED
#undef OIC_PACKED_UNSIGNED

/* t1 is -1 (bit 0) or 1 (bit 1); zero is stored as -1. */
static inline int8_t oic_load_t1(const uint8_t *p, ptrdiff_t i)
{
    return (int8_t)((int32_t)oic_load_code(p, i, 1u) * 2 - 1);
}

static inline void oic_store_t1(uint8_t *p, ptrdiff_t i, int8_t v)
{
    oic_store_code(p, i, 1u, v > 0 ? 1u : 0u);
}

#endif
