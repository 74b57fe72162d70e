/* Operations on floats that are exact: absolute value, sign, and rounding to a whole number.

   They are bit operations, conversions and comparisons, so that compilers neither call a library for them nor
   may reorder them.  NaN stays NaN, zeros and infinities stay as they are, and a result of zero has the sign of x.
   Without branches: a loop over them becomes vector code. */
#ifndef OIC_ROUNDING_H
#define OIC_ROUNDING_H

#include "../version.h"

#include "../num.h"

static inline float oic_abs_f32(float x)
{
    return oic_from_bits_f32(oic_bits_f32(x) & 0x7fffffffu);
}

static inline double oic_abs_f64(double x)
{
    return oic_from_bits_f64(oic_bits_f64(x) & 0x7fffffffffffffffu);
}

/* The magnitude of x with the sign of y. */
static inline float oic_copysign_f32(float x, float y)
{
    return oic_from_bits_f32((oic_bits_f32(x) & 0x7fffffffu) | (oic_bits_f32(y) & 0x80000000u));
}

static inline double oic_copysign_f64(double x, double y)
{
    const uint64_t sign = 0x8000000000000000u;
    return oic_from_bits_f64((oic_bits_f64(x) & ~sign) | (oic_bits_f64(y) & sign));
}

/* x limited to low..high, and NaN as 0: what may be converted to an integer of that range. */
static inline double oic_saturated_f64(double x, double low, double high)
{
    const double number = x == x ? x : 0.0;
    const double raised = number > low ? number : low;
    return raised < high ? raised : high;
}

/* x if it has digits after the binary point, which only magnitudes below 2^23 (2^52) have, or else 0: what may be
   converted to an integer and back. */
static inline float oic_fractional_f32(float x)
{
    return oic_select_f32(oic_abs_f32(x) < 8388608.0f, x, 0.0f);
}

static inline double oic_fractional_f64(double x)
{
    return oic_select_f64(oic_abs_f64(x) < 4503599627370496.0, x, 0.0);
}

/* `whole`, which was made from x, where x has digits after the binary point; else x. */
static inline float oic_rounded_f32(float x, float whole)
{
    return oic_copysign_f32(oic_select_f32(oic_abs_f32(x) < 8388608.0f, whole, x), x);
}

static inline double oic_rounded_f64(double x, double whole)
{
    return oic_copysign_f64(oic_select_f64(oic_abs_f64(x) < 4503599627370496.0, whole, x), x);
}

static inline float oic_trunc_f32(float x)
{
    return oic_rounded_f32(x, (float)(int32_t)oic_fractional_f32(x));
}

static inline double oic_trunc_f64(double x)
{
    return oic_rounded_f64(x, (double)(int64_t)oic_fractional_f64(x));
}

static inline float oic_floor_f32(float x)
{
    const float part = oic_fractional_f32(x), whole = (float)(int32_t)part;
    return oic_rounded_f32(x, whole - oic_select_f32(whole > part, 1.0f, 0.0f));
}

static inline double oic_floor_f64(double x)
{
    const double part = oic_fractional_f64(x), whole = (double)(int64_t)part;
    return oic_rounded_f64(x, whole - oic_select_f64(whole > part, 1.0, 0.0));
}

static inline float oic_ceil_f32(float x)
{
    const float part = oic_fractional_f32(x), whole = (float)(int32_t)part;
    return oic_rounded_f32(x, whole + (float)(whole < part));
}

static inline double oic_ceil_f64(double x)
{
    const double part = oic_fractional_f64(x), whole = (double)(int64_t)part;
    return oic_rounded_f64(x, whole + (double)(whole < part));
}

/* To the nearest whole number, half away from zero. */
static inline float oic_round_half_away_f32(float x)
{
    const float part = oic_abs_f32(oic_fractional_f32(x)), whole = (float)(int32_t)part;
    return oic_rounded_f32(x, whole + (float)(part - whole >= 0.5f));
}

static inline double oic_round_half_away_f64(double x)
{
    const double part = oic_abs_f64(oic_fractional_f64(x)), whole = (double)(int64_t)part;
    return oic_rounded_f64(x, whole + (double)(part - whole >= 0.5));
}

/* To the nearest whole number, half to the even one. */
static inline float oic_round_half_even_f32(float x)
{
    const float part = oic_abs_f32(oic_fractional_f32(x));
    const int32_t whole = (int32_t)part;
    const float beyond = part - (float)whole;
    const float least = oic_from_bits_f32(0x3f000001u - ((uint32_t)whole & 1u)); /* 0.5, of an even number the next float */
    const int32_t up = beyond >= least;
    return oic_rounded_f32(x, (float)(whole + up));
}

static inline double oic_round_half_even_f64(double x)
{
    const double part = oic_abs_f64(oic_fractional_f64(x));
    const int64_t whole = (int64_t)part;
    const double beyond = part - (double)whole;
    const double least = oic_from_bits_f64(0x3fe0000000000001u - ((uint64_t)whole & 1u));
    const int64_t up = beyond >= least;
    return oic_rounded_f64(x, (double)(whole + up));
}

#endif
