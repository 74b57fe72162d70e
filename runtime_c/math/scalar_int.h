/* Elementwise operators on integers of type OIC_X, whose values have the C type V.

   Arithmetic is done in the unsigned type W, where overflow is defined, and wrapped to the width of
   the type: i4 holds -8..7 in an int8_t.  Signed right shifts fill with the sign. */
#include "../num.h"

#define OF(f) OIC_PASTE(f##_, OIC_X)
#define V OIC_PASTE(oic_stored_, OF(OIC_COMPUTED))
#define W OIC_PASTE(oic_stored_, OF(OIC_SUMS))
#define BITS OF(OIC_BITS)

static inline V OF(oic_add)(V a, V b) { return OF(oic_wrap)((W)((W)a + (W)b)); }
static inline V OF(oic_sub)(V a, V b) { return OF(oic_wrap)((W)((W)a - (W)b)); }
static inline V OF(oic_mul)(V a, V b) { return OF(oic_wrap)((W)((W)a * (W)b)); }
static inline V OF(oic_min)(V a, V b) { return b < a ? b : a; }
static inline V OF(oic_max)(V a, V b) { return b > a ? b : a; }
static inline V OF(oic_clamp)(V x, V low, V high) { return OF(oic_min)(OF(oic_max)(x, low), high); }

static inline uint8_t OF(oic_eq)(V a, V b) { return (uint8_t)(a == b); }
static inline uint8_t OF(oic_ne)(V a, V b) { return (uint8_t)(a != b); }
static inline uint8_t OF(oic_lt)(V a, V b) { return (uint8_t)(a < b); }
static inline uint8_t OF(oic_le)(V a, V b) { return (uint8_t)(a <= b); }
static inline uint8_t OF(oic_gt)(V a, V b) { return (uint8_t)(a > b); }
static inline uint8_t OF(oic_ge)(V a, V b) { return (uint8_t)(a >= b); }
static inline V OF(oic_where)(uint8_t c, V a, V b) { return c ? a : b; }
static inline V OF(oic_filter)(V a, V b, V c) { return c != 0 ? a : b; }

static inline V OF(oic_and)(V a, V b) { return OF(oic_wrap)((W)a & (W)b); }
static inline V OF(oic_or)(V a, V b) { return OF(oic_wrap)((W)a | (W)b); }
static inline V OF(oic_xor)(V a, V b) { return OF(oic_wrap)((W)a ^ (W)b); }
static inline V OF(oic_not)(V x) { return OF(oic_wrap)((W)~(W)x); }

/* A shift of the width or more gives 0, or the sign in every bit. */
static inline V OF(oic_shl)(V x, int64_t bits)
{
    return (uint64_t)bits >= BITS ? (V)0 : OF(oic_wrap)((W)((W)x << bits));
}

static inline uint8_t OF(oic_count)(uint64_t bits)
{
    bits = bits - ((bits >> 1) & UINT64_C(0x5555555555555555));
    bits = (bits & UINT64_C(0x3333333333333333)) + ((bits >> 2) & UINT64_C(0x3333333333333333));
    bits = (bits + (bits >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    return (uint8_t)((bits * UINT64_C(0x0101010101010101)) >> 56);
}

static inline uint8_t OF(oic_popcount)(V x)
{
    const uint64_t one = 1;
    return OF(oic_count)((uint64_t)(W)x & (((one << (BITS - 1)) << 1) - one));
}

/* Division is toward zero; by zero it gives the mask, and rem gives 0.  The least value divided
   by -1 wraps to itself. */
#if OF(OIC_SIGNED)

static inline V OF(oic_neg)(V x) { return OF(oic_wrap)((W)((W)0 - (W)x)); }
static inline V OF(oic_abs)(V x) { return x < 0 ? OF(oic_neg)(x) : x; }
static inline int8_t OF(oic_sign)(V x) { return (int8_t)((x > 0) - (x < 0)); }
static inline uint8_t OF(oic_is_neg)(V x) { return (uint8_t)(x < 0); }

static inline V OF(oic_relu)(V x, V alpha, V clamp_max)
{
    const V y = x >= 0 ? x : OF(oic_mul)(x, alpha);
    return y > clamp_max ? clamp_max : y;
}

static inline V OF(oic_div)(V a, V b, V mask)
{
    return b == 0 ? mask : b == -1 ? OF(oic_neg)(a) : (V)(a / b);
}

static inline V OF(oic_floor_div)(V a, V b, V mask)
{
    if (b == 0 || b == -1) {
        return b == 0 ? mask : OF(oic_neg)(a);
    }
    return (V)(a / b - (a % b != 0 && (a < 0) != (b < 0)));
}

static inline V OF(oic_rem)(V a, V b) { return b == 0 || b == -1 ? (V)0 : (V)(a % b); }

static inline V OF(oic_shr)(V x, int64_t bits)
{
    const int64_t n = (uint64_t)bits >= BITS ? BITS - 1 : bits;
    return x < 0 ? (V)~(~x >> n) : (V)(x >> n);
}

#else

static inline uint8_t OF(oic_is_neg)(V x)
{
    (void)x;
    return 0;
}

static inline V OF(oic_div)(V a, V b, V mask) { return b == 0 ? mask : (V)(a / b); }
static inline V OF(oic_floor_div)(V a, V b, V mask) { return OF(oic_div)(a, b, mask); }
static inline V OF(oic_rem)(V a, V b) { return b == 0 ? (V)0 : (V)(a % b); }

static inline V OF(oic_shr)(V x, int64_t bits)
{
    return (uint64_t)bits >= BITS ? (V)0 : (V)(x >> bits);
}

#endif

#undef OF
#undef V
#undef W
#undef BITS
#undef OIC_X
