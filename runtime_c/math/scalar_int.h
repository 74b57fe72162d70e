/* Elementwise operators on integers, bool and bitset.

   Arithmetic is done in an unsigned type W, where overflow is defined, and wrapped to the width of
   the type: i4 holds -8..7 in an int8_t.  Signed right shifts fill with the sign. */
#ifndef OIC_SCALAR_INT_H
#define OIC_SCALAR_INT_H

#include "../version.h"

#include "../num.h"

/* oic_wrap_T: the low bits of a W, as a value of T. */
#define OIC_WRAP_WHOLE(T, V, W)                                  \
    static inline V oic_wrap_##T(W bits) { return (V)bits; }

#define OIC_WRAP_SIGNED(T, BITS)                                                          \
    static inline int8_t oic_wrap_##T(uint32_t bits)                                      \
    {                                                                                     \
        const uint32_t sign = 1u << (BITS - 1);                                           \
        return (int8_t)((int32_t)((bits & (2u * sign - 1u)) ^ sign) - (int32_t)sign);     \
    }

#define OIC_WRAP_UNSIGNED(T, BITS)                                                        \
    static inline uint8_t oic_wrap_##T(uint32_t bits)                                     \
    {                                                                                     \
        return (uint8_t)(bits & ((1u << BITS) - 1u));                                     \
    }

OIC_WRAP_WHOLE(i8, int8_t, uint32_t)
OIC_WRAP_WHOLE(i16, int16_t, uint32_t)
OIC_WRAP_WHOLE(i32, int32_t, uint32_t)
OIC_WRAP_WHOLE(i64, int64_t, uint64_t)
OIC_WRAP_WHOLE(u8, uint8_t, uint32_t)
OIC_WRAP_WHOLE(u16, uint16_t, uint32_t)
OIC_WRAP_WHOLE(u32, uint32_t, uint32_t)
OIC_WRAP_WHOLE(u64, uint64_t, uint64_t)
OIC_WRAP_WHOLE(bitset, uint8_t, uint32_t)
OIC_WRAP_SIGNED(i1, 1)
OIC_WRAP_SIGNED(i2, 2)
OIC_WRAP_SIGNED(i4, 4)
OIC_WRAP_UNSIGNED(u1, 1)
OIC_WRAP_UNSIGNED(u2, 2)
OIC_WRAP_UNSIGNED(u4, 4)

#undef OIC_WRAP_WHOLE
#undef OIC_WRAP_SIGNED
#undef OIC_WRAP_UNSIGNED

static inline uint8_t oic_popcount_bits(uint64_t x)
{
    x = x - ((x >> 1) & UINT64_C(0x5555555555555555));
    x = (x & UINT64_C(0x3333333333333333)) + ((x >> 2) & UINT64_C(0x3333333333333333));
    x = (x + (x >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    return (uint8_t)((x * UINT64_C(0x0101010101010101)) >> 56);
}

/* What every type has, bool included. */
#define OIC_SELECT(T, V)                                                                      \
    static inline uint8_t oic_eq_##T(V a, V b) { return (uint8_t)(a == b); }                  \
    static inline uint8_t oic_ne_##T(V a, V b) { return (uint8_t)(a != b); }                  \
    static inline V oic_where_##T(uint8_t c, V a, V b) { return c ? a : b; }                  \
    static inline V oic_filter_##T(V a, V b, V c) { return c != 0 ? a : b; }                  \
    static inline V oic_fill_##T(V value) { return value; }

/* What signed and unsigned integers share; W is the unsigned type of the arithmetic. */
#define OIC_INTEGER(T, V, W, BITS)                                                            \
    OIC_SELECT(T, V)                                                                          \
    static inline V oic_add_##T(V a, V b) { return oic_wrap_##T((W)((W)a + (W)b)); }          \
    static inline V oic_sub_##T(V a, V b) { return oic_wrap_##T((W)((W)a - (W)b)); }          \
    static inline V oic_mul_##T(V a, V b) { return oic_wrap_##T((W)((W)a * (W)b)); }          \
    static inline V oic_min_##T(V a, V b) { return b < a ? b : a; }                           \
    static inline V oic_max_##T(V a, V b) { return b > a ? b : a; }                           \
    static inline V oic_clamp_##T(V x, V low, V high)                                         \
    {                                                                                         \
        return oic_min_##T(oic_max_##T(x, low), high);                                        \
    }                                                                                         \
    static inline uint8_t oic_lt_##T(V a, V b) { return (uint8_t)(a < b); }                   \
    static inline uint8_t oic_le_##T(V a, V b) { return (uint8_t)(a <= b); }                  \
    static inline uint8_t oic_gt_##T(V a, V b) { return (uint8_t)(a > b); }                   \
    static inline uint8_t oic_ge_##T(V a, V b) { return (uint8_t)(a >= b); }                  \
    static inline V oic_and_##T(V a, V b) { return oic_wrap_##T((W)a & (W)b); }               \
    static inline V oic_or_##T(V a, V b) { return oic_wrap_##T((W)a | (W)b); }                \
    static inline V oic_xor_##T(V a, V b) { return oic_wrap_##T((W)a ^ (W)b); }               \
    static inline V oic_not_##T(V x) { return oic_wrap_##T((W)~(W)x); }                       \
    static inline V oic_shl_##T(V x, int64_t bits) /* a shift of the width or more gives 0 */ \
    {                                                                                         \
        return (uint64_t)bits >= BITS ? (V)0 : oic_wrap_##T((W)((W)x << bits));               \
    }                                                                                         \
    static inline uint8_t oic_popcount_##T(V x)                                               \
    {                                                                                         \
        const uint64_t one = 1;                                                               \
        return oic_popcount_bits((uint64_t)(W)x & (((one << (BITS - 1)) << 1) - one));        \
    }

/* Division is toward zero; by zero it gives the mask, and rem gives 0.  The least value divided
   by -1 wraps to itself. */
#define OIC_SIGNED(T, V, W, BITS)                                                             \
    OIC_INTEGER(T, V, W, BITS)                                                                \
    static inline V oic_neg_##T(V x) { return oic_wrap_##T((W)((W)0 - (W)x)); }               \
    static inline V oic_abs_##T(V x) { return x < 0 ? oic_neg_##T(x) : x; }                   \
    static inline int8_t oic_sign_##T(V x) { return (int8_t)((x > 0) - (x < 0)); }            \
    static inline uint8_t oic_is_neg_##T(V x) { return (uint8_t)(x < 0); }                    \
    static inline V oic_relu_##T(V x, V alpha, V clamp_max)                                   \
    {                                                                                         \
        const V y = x >= 0 ? x : oic_mul_##T(x, alpha);                                       \
        return y > clamp_max ? clamp_max : y;                                                 \
    }                                                                                         \
    static inline V oic_div_##T(V a, V b, V mask)                                             \
    {                                                                                         \
        return b == 0 ? mask : b == -1 ? oic_neg_##T(a) : (V)(a / b);                         \
    }                                                                                         \
    static inline V oic_floor_div_##T(V a, V b, V mask)                                       \
    {                                                                                         \
        if (b == 0 || b == -1) {                                                              \
            return b == 0 ? mask : oic_neg_##T(a);                                            \
        }                                                                                     \
        return (V)(a / b - (a % b != 0 && (a < 0) != (b < 0)));                               \
    }                                                                                         \
    static inline V oic_rem_##T(V a, V b) { return b == 0 || b == -1 ? (V)0 : (V)(a % b); }   \
    static inline V oic_shr_##T(V x, int64_t bits)                                            \
    {                                                                                         \
        const int64_t n = (uint64_t)bits >= BITS ? BITS - 1 : bits;                           \
        return x < 0 ? (V)~(~x >> n) : (V)(x >> n);                                           \
    }

#define OIC_UNSIGNED(T, V, W, BITS)                                                           \
    OIC_INTEGER(T, V, W, BITS)                                                                \
    static inline uint8_t oic_is_neg_##T(V x) { return (uint8_t)(x != x); }                   \
    static inline V oic_div_##T(V a, V b, V mask) { return b == 0 ? mask : (V)(a / b); }      \
    static inline V oic_floor_div_##T(V a, V b, V mask) { return oic_div_##T(a, b, mask); }   \
    static inline V oic_rem_##T(V a, V b) { return b == 0 ? (V)0 : (V)(a % b); }              \
    static inline V oic_shr_##T(V x, int64_t bits)                                            \
    {                                                                                         \
        return (uint64_t)bits >= BITS ? (V)0 : (V)(x >> bits);                                \
    }

OIC_SIGNED(i1, int8_t, uint32_t, 1)
OIC_SIGNED(i2, int8_t, uint32_t, 2)
OIC_SIGNED(i4, int8_t, uint32_t, 4)
OIC_SIGNED(i8, int8_t, uint32_t, 8)
OIC_SIGNED(i16, int16_t, uint32_t, 16)
OIC_SIGNED(i32, int32_t, uint32_t, 32)
OIC_SIGNED(i64, int64_t, uint64_t, 64)
OIC_UNSIGNED(u1, uint8_t, uint32_t, 1)
OIC_UNSIGNED(u2, uint8_t, uint32_t, 2)
OIC_UNSIGNED(u4, uint8_t, uint32_t, 4)
OIC_UNSIGNED(u8, uint8_t, uint32_t, 8)
OIC_UNSIGNED(u16, uint16_t, uint32_t, 16)
OIC_UNSIGNED(u32, uint32_t, uint32_t, 32)
OIC_UNSIGNED(u64, uint64_t, uint64_t, 64)

/* A bitset adds and multiplies as a wrapping 8-bit number; bool adds by OR, multiplies by AND. */
OIC_SELECT(bitset, uint8_t)
static inline uint8_t oic_add_bitset(uint8_t a, uint8_t b) { return oic_add_u8(a, b); }
static inline uint8_t oic_mul_bitset(uint8_t a, uint8_t b) { return oic_mul_u8(a, b); }

OIC_SELECT(bool, uint8_t)
static inline uint8_t oic_add_bool(uint8_t a, uint8_t b) { return (uint8_t)(a | b); }
static inline uint8_t oic_mul_bool(uint8_t a, uint8_t b) { return (uint8_t)(a & b); }
static inline uint8_t oic_and_bool(uint8_t a, uint8_t b) { return (uint8_t)(a & b); }
static inline uint8_t oic_or_bool(uint8_t a, uint8_t b) { return (uint8_t)(a | b); }
static inline uint8_t oic_xor_bool(uint8_t a, uint8_t b) { return (uint8_t)(a ^ b); }
static inline uint8_t oic_not_bool(uint8_t x) { return (uint8_t)(x ^ 1u); }

#undef OIC_SELECT
#undef OIC_INTEGER
#undef OIC_SIGNED
#undef OIC_UNSIGNED

#endif
