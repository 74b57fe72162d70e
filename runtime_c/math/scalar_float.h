/* Elementwise operators on floats that are exact or rounded once: arithmetic, comparison, choice.
   Absolute value and rounding to whole numbers are in rounding.h. */
#ifndef OIC_SCALAR_FLOAT_H
#define OIC_SCALAR_FLOAT_H

#include "../version.h"

#include "rounding.h"

#define OIC_FLOAT(T, V, BITS_T, SIGN_SHIFT)                                                   \
    static inline V oic_add_##T(V a, V b) { return a + b; }                                   \
    static inline V oic_sub_##T(V a, V b) { return a - b; }                                   \
    static inline V oic_mul_##T(V a, V b) { return a * b; }                                   \
    static inline V oic_div_##T(V a, V b, V mask) { return b == 0 ? mask : a / b; }           \
    static inline V oic_recip_##T(V x, V mask) { return x == 0 ? mask : 1 / x; }              \
    static inline V oic_fma_##T(V a, V b, V c) /* two roundings */                            \
    {                                                                                         \
        const V product = a * b;                                                              \
        return product + c;                                                                   \
    }                                                                                         \
    static inline V oic_neg_##T(V x) { return -x; }                                           \
    static inline int8_t oic_sign_##T(V x) { return (int8_t)((x > 0) - (x < 0)); }            \
    static inline V oic_relu_##T(V x, V alpha, V clamp_max)                                   \
    {                                                                                         \
        const V y = x >= 0 ? x : x * alpha;                                                   \
        return y > clamp_max ? clamp_max : y;                                                 \
    }                                                                                         \
    /* A number wins over a NaN; of two equal values (zeros) the first. */                    \
    static inline V oic_min_##T(V a, V b) { return a != a ? b : b < a ? b : a; }              \
    static inline V oic_max_##T(V a, V b) { return a != a ? b : b > a ? b : a; }              \
    /* A bound that is NaN does not bind; a NaN becomes `low`. */                             \
    static inline V oic_clamp_##T(V x, V low, V high)                                         \
    {                                                                                         \
        const V y = oic_max_##T(x, low);                                                      \
        return y > high ? high : y;                                                           \
    }                                                                                         \
    static inline uint8_t oic_eq_##T(V a, V b) { return (uint8_t)(a == b); }                  \
    static inline uint8_t oic_ne_##T(V a, V b) { return (uint8_t)(a != b); }                  \
    static inline uint8_t oic_lt_##T(V a, V b) { return (uint8_t)(a < b); }                   \
    static inline uint8_t oic_le_##T(V a, V b) { return (uint8_t)(a <= b); }                  \
    static inline uint8_t oic_gt_##T(V a, V b) { return (uint8_t)(a > b); }                   \
    static inline uint8_t oic_ge_##T(V a, V b) { return (uint8_t)(a >= b); }                  \
    static inline V oic_where_##T(uint8_t c, V a, V b) { return c ? a : b; }                  \
    static inline V oic_filter_##T(V a, V b, V c) { return c != 0 ? a : b; }                  \
    static inline V oic_fill_##T(V value) { return value; }                                   \
    static inline uint8_t oic_is_nan_##T(V x) { return (uint8_t)(x != x); }                   \
    static inline uint8_t oic_is_inf_##T(V x) { return (uint8_t)(oic_abs_##T(x) == (V)INFINITY); }\
    static inline uint8_t oic_is_neg_##T(V x)                                                 \
    {                                                                                         \
        return (uint8_t)(BITS_T(x) >> SIGN_SHIFT);                                            \
    }

OIC_FLOAT(f32, float, oic_bits_f32, 31)
OIC_FLOAT(f64, double, oic_bits_f64, 63)
#undef OIC_FLOAT

#endif
