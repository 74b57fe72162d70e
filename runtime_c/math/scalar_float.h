/* Elementwise operators on floats of type OIC_X, f32 or f64, that are exact or rounded once: arithmetic, comparison,
   choice.  Absolute value and rounding to whole numbers are in rounding.h. */
#include "rounding.h"

#define V OIC_PASTE(oic_stored_, OIC_X)
#define OF(f) OIC_PASTE(f##_, OIC_X)

static inline V OF(oic_add)(V a, V b) { return a + b; }
static inline V OF(oic_sub)(V a, V b) { return a - b; }
static inline V OF(oic_mul)(V a, V b) { return a * b; }
static inline V OF(oic_div)(V a, V b, V mask) { return b == 0 ? mask : a / b; }
static inline V OF(oic_recip)(V x, V mask) { return x == 0 ? mask : 1 / x; }
static inline V OF(oic_neg)(V x) { return -x; }
static inline int8_t OF(oic_sign)(V x) { return (int8_t)((x > 0) - (x < 0)); }

/* Two roundings. */
static inline V OF(oic_fma)(V a, V b, V c)
{
    const V product = a * b;
    return product + c;
}

/* What is multiplied in a branch keeps a loop from becoming vector code, so it is multiplied in any case. */
OIC_ELEMENT V OF(oic_relu)(V x, V alpha, V clamp_max)
{
    const V y = OF(oic_select)(x >= 0, x, x * alpha);
    return y > clamp_max ? clamp_max : y;
}

/* A number wins over a NaN; of two equal values (zeros) the first. */
OIC_ELEMENT V OF(oic_min)(V a, V b) { return ((a != a) | (b < a)) ? b : a; }
OIC_ELEMENT V OF(oic_max)(V a, V b) { return ((a != a) | (b > a)) ? b : a; }

/* A bound that is NaN does not bind; a NaN becomes `low`. */
OIC_ELEMENT V OF(oic_clamp)(V x, V low, V high)
{
    const V y = OF(oic_max)(x, low);
    return y > high ? high : y;
}

static inline uint8_t OF(oic_eq)(V a, V b) { return (uint8_t)(a == b); }
static inline uint8_t OF(oic_ne)(V a, V b) { return (uint8_t)(a != b); }
static inline uint8_t OF(oic_lt)(V a, V b) { return (uint8_t)(a < b); }
static inline uint8_t OF(oic_le)(V a, V b) { return (uint8_t)(a <= b); }
static inline uint8_t OF(oic_gt)(V a, V b) { return (uint8_t)(a > b); }
static inline uint8_t OF(oic_ge)(V a, V b) { return (uint8_t)(a >= b); }
static inline V OF(oic_where)(uint8_t c, V a, V b) { return c ? a : b; }
static inline V OF(oic_filter)(V a, V b, V c) { return c != 0 ? a : b; }
static inline uint8_t OF(oic_is_nan)(V x) { return (uint8_t)(x != x); }
static inline uint8_t OF(oic_is_inf)(V x) { return (uint8_t)(OF(oic_abs)(x) == (V)INFINITY); }
static inline uint8_t OF(oic_is_neg)(V x) { return (uint8_t)(OF(oic_bits)(x) >> (OF(OIC_BITS) - 1)); }

#undef V
#undef OF
#undef OIC_X
