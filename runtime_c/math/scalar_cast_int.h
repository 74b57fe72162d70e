/* Conversions from and to integers of type OIC_X, whose values have the C type V.

   oic_cast_X_f32, _f64, _narrow, _bool   as in scalar_cast.h
   oic_cast_<F>_X_<mode>                  of f32 or f64: rounded by mode, NaN to 0, saturated
   oic_cast_<i64|u64>_X_sat, _wrap        every integer type but u64 widens to i64 first */
#include "scalar_cast.h"

#define OF(f) OIC_PASTE(f##_, OIC_X)
#define FROM(to) OIC_JOIN_3(oic_cast, OIC_X, to)
#define TO(from, how) OIC_JOIN_4(oic_cast, from, OIC_X, how)
#define V OIC_PASTE(oic_stored_, OF(OIC_COMPUTED))
#define W OIC_PASTE(oic_stored_, OF(OIC_SUMS))
#define LOW OF(OIC_LOW)
#define HIGH OF(OIC_HIGH)
#if OF(OIC_SIGNED)
#define BEYOND(F) (-(F)(LOW)) /* the number above the highest, exactly */
#else
#define BEYOND(F) ((F)(HIGH / 2 + 1) * 2)
#endif

static inline float FROM(f32)(V x) { return (float)x; }
static inline double FROM(f64)(V x) { return (double)x; }
static inline uint8_t FROM(bool)(V x) { return (uint8_t)(x != 0); }

/* x with its fraction dropped, if that is a value of the type.  The float that is converted is always in range, so that
   a loop may convert before it chooses: at most the one below BEYOND. */
static inline V TO(f32, trunc)(float x)
{
    const float number = x == x ? x : 0;
    const float raised = number > (float)(LOW) ? number : (float)(LOW);
    const float inside = raised < BEYOND(float) ? raised : BEYOND(float) * 0.99999994f;
    const V whole = (V)inside;
    return number >= BEYOND(float) ? (V)(HIGH) : whole;
}

static inline V TO(f64, trunc)(double x)
{
    const double number = x == x ? x : 0;
    const double raised = number > (double)(LOW) ? number : (double)(LOW);
    const double inside = raised < BEYOND(double) ? raised : BEYOND(double) * 0.99999999999999989;
    const V whole = (V)inside;
    return number >= BEYOND(double) ? (V)(HIGH) : whole;
}

static inline V TO(f32, floor)(float x) { return TO(f32, trunc)(oic_floor_f32(x)); }
static inline V TO(f32, ceil)(float x) { return TO(f32, trunc)(oic_ceil_f32(x)); }
static inline V TO(f32, nearest)(float x) { return TO(f32, trunc)(oic_round_half_away_f32(x)); }
static inline V TO(f64, floor)(double x) { return TO(f64, trunc)(oic_floor_f64(x)); }
static inline V TO(f64, ceil)(double x) { return TO(f64, trunc)(oic_ceil_f64(x)); }
static inline V TO(f64, nearest)(double x) { return TO(f64, trunc)(oic_round_half_away_f64(x)); }

static inline V TO(i64, wrap)(int64_t x) { return OF(oic_wrap)((W)x); }
static inline V TO(u64, wrap)(uint64_t x) { return OF(oic_wrap)((W)x); }

#if OF(OIC_BITS) < 64

static inline float FROM(narrow)(V x) { return oic_cast_f64_narrow((double)x); }
static inline V TO(u64, sat)(uint64_t x) { return x > (uint64_t)(HIGH) ? (V)(HIGH) : (V)x; }

static inline V TO(i64, sat)(int64_t x)
{
    const int64_t raised = x < (int64_t)(LOW) ? (int64_t)(LOW) : x;
    return raised > (int64_t)(HIGH) ? (V)(HIGH) : (V)raised;
}

#elif OF(OIC_SIGNED)

static inline V TO(i64, sat)(int64_t x) { return x; }
static inline V TO(u64, sat)(uint64_t x) { return x > (uint64_t)(HIGH) ? (V)(HIGH) : (V)x; }

static inline float FROM(narrow)(V x)
{
    const float magnitude = oic_cast_whole_narrow(x < 0 ? 0u - (uint64_t)x : (uint64_t)x);
    return x < 0 ? -magnitude : magnitude;
}

#else

static inline V TO(i64, sat)(int64_t x) { return x < 0 ? 0 : (V)x; }
static inline V TO(u64, sat)(uint64_t x) { return x; }
static inline float FROM(narrow)(V x) { return oic_cast_whole_narrow(x); }

#endif

#undef OF
#undef FROM
#undef TO
#undef V
#undef W
#undef LOW
#undef HIGH
#undef BEYOND
#undef OIC_X
