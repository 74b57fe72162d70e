/* Elementary functions.

   All are additions, multiplications, divisions and exact operations, so that every compiler and target gives the
   same bits; nothing but the square root comes from <math.h>.  Those in f32 have no branches, so that a loop over them
   becomes vector code.  Every function gives NaN for NaN.

   Largest error in units in the last place of the exact result, over all floats:
   exp 0.99, sigmoid 1.70, silu 1.74, tanh 1.35, erf 1.32, log 0.81, softplus 1.88,
   sin and cos 0.78, rsqrt 1.48.
   gelu is within 1.3 (erf) and 1.03 (tanh) times 2^-23 |x| of its form; the bound is 2^-22 |x|. */
#ifndef OIC_SCALAR_MATH_H
#define OIC_SCALAR_MATH_H

#include "../version.h"

#include "math_f64.h"

/* e^x = (1 + t) 2^k. */
typedef struct {
    float t;
    int32_t k;
} oic_exp_parts;

/* x = k ln 2 + r with |r| <= ln 2 / 2, for -174 < x < 174.  k is rounded by a conversion, which no option of a compiler may
   reorder as it may sums; the upper part of ln 2 has few bits, so that k times it is exact. */
OIC_ELEMENT oic_exp_parts oic_exp_split(float x)
{
    const float above = oic_select_f32(x == x, x * 1.44269504f + 256.5f, 0.0f); /* a NaN has no integer */
    const int32_t whole = (int32_t)above - 256;
    const float k = (float)whole;
    const float r = (x - k * 0.693359375f) - k * -2.12194440e-4f;
    const float q = 0.4999999403953552f + r * (0.1666651964187622f + r * (0.04166839271783829f
                    + r * (0.008368780836462975f + r * 0.0013814467238262296f)));
    const oic_exp_parts e = {r + r * r * q, whole};
    return e;
}

/* 2^k, for -127 < k < 128. */
OIC_ELEMENT float oic_two_to_f32(int32_t k)
{
    return oic_from_bits_f32((uint32_t)(k + 127) << 23);
}

/* x limited to low..high; NaN stays. */
OIC_ELEMENT float oic_limit_f32(float x, float low, float high)
{
    return oic_select_f32(x < low, low, oic_select_f32(x > high, high, x));
}

/* |x|, at most `high`; NaN stays. */
OIC_ELEMENT float oic_size_f32(float x, float high)
{
    const float a = oic_abs_f32(x);
    return oic_select_f32(a > high, high, a);
}

/* The power of two is two factors, because it may be a subnormal or overflow, and is to be rounded once. */
OIC_ELEMENT float oic_exp_f32(float x)
{
    const oic_exp_parts e = oic_exp_split(oic_limit_f32(x, -105.0f, 89.0f));
    const int32_t half = (int32_t)((uint32_t)(e.k + 256) >> 1) - 128;
    return (1.0f + e.t) * oic_two_to_f32(half) * oic_two_to_f32(e.k - half);
}

/* y * sigmoid(x) = y / (1 + e^-x) = y a / (a + b (1 + t)), for y = 1 or y = x >= -110: a is 1 for x >= 0, and below it shares
   2^k with b, so that nothing overflows, and that the division rounds what becomes subnormal. */
OIC_ELEMENT float oic_logistic_f32(float x, float y)
{
    const oic_exp_parts e = oic_exp_split(-oic_limit_f32(x, -110.0f, 80.0f));
    const int32_t half = (int32_t)((uint32_t)(e.k > 0 ? e.k : 0) >> 1);
    const float a = oic_two_to_f32(-half), b = oic_two_to_f32(e.k - half);
    const float large = oic_select_f32(e.k > 0, b, a + b), small = oic_select_f32(e.k > 0, a, 0.0f);
    return y * a / (large + (b * e.t + small));
}

OIC_ELEMENT float oic_sigmoid_f32(float x)
{
    return oic_logistic_f32(x, 1.0f);
}

/* x * sigmoid(x); NaN for -inf, as in NumPy and PyTorch. */
OIC_ELEMENT float oic_silu_f32(float x)
{
    const float y = oic_logistic_f32(x, oic_select_f32(x < -110.0f, -110.0f, x));
    return oic_select_f32(x == -INFINITY, NAN, y);
}

/* x + x^3 p(x^2) up to 0.55; above 1 - 2 / (1 + e^2x). */
OIC_ELEMENT float oic_tanh_f32(float x)
{
    const float a = oic_size_f32(x, 10.0f), s = a * a;
    const float p = -0.33333317558426867f + s * (0.13332586092114684f + s * (-0.05385230462918044f
                    + s * (0.02107165568782638f + s * -0.006274204296314379f)));
    const oic_exp_parts e = oic_exp_split(2.0f * a);
    const float scale = oic_two_to_f32(e.k);
    const float large = 1.0f - 2.0f / ((1.0f + scale) + scale * e.t);
    return oic_copysign_f32(oic_select_f32(a < 0.55f, a + a * s * p, large), x);
}

/* x + x p(x^2) up to 1; above 1 - e^-(a + a p(a)). */
OIC_ELEMENT float oic_erf_f32(float x)
{
    const float a = oic_size_f32(x, 4.0f);
    const float s = a * a;
    const float p = 0.12837916612625122f + s * (-0.3761262595653534f + s * (0.1128358542919159f
                    + s * (-0.026853812858462334f + s * (0.005188327748328447f
                    + s * (-0.0008010193705558777f + s * 7.853861461626366e-05f)))));
    const float q = 0.1286943405866623f + a * (0.6349695324897766f + a * (0.10653083086013794f
                    + a * (-0.024010051041841507f + a * (0.00375746819190681f
                    + a * (-0.00035058989305980504f + a * 1.3962227967567742e-05f)))));
    const oic_exp_parts e = oic_exp_split(-(a + a * q));
    const float scale = oic_two_to_f32(e.k), large = (1.0f - scale) - scale * e.t;
    return oic_copysign_f32(oic_select_f32(a < 1.0f, a + a * p, large), x);
}

/* x / (1 + 2^y).  The error is relative to x, not to the result, so that 2^y = 2^k (1 + r p(r)) needs no power but one, and is
   infinite where y is 128. */
OIC_ELEMENT float oic_gelu_of_f32(float x, float y)
{
    const int32_t k = (int32_t)(oic_select_f32(y == y, y, 0.0f) + 128.5f) - 128; /* a NaN has no integer; -126..128 */
    const float r = y - (float)k;
    const float power = 1.0f + r * (0.6931471824645996f + r * (0.24022647738456726f + r * (0.055503323674201965f
                        + r * (0.00961843691766262f + r * (0.0013398875016719103f + r * 0.00015353361959569156f)))));
    return x / (1.0f + power * oic_two_to_f32(k));
}

/* x/2 (1 + erf(x / sqrt 2)) = x / (1 + 2^y), y = x p(x^2); -0 below -5.6, NaN for -inf. */
OIC_ELEMENT float oic_gelu_erf_f32(float x)
{
    const float a = oic_limit_f32(x, -5.6f, 5.6f), s = a * a;
    const float p = -2.302209296490162f + s * (-0.10483512186950893f + s * (9.404921945553531e-05f
                    + s * (0.00015957994249778682f + s * (-1.1439834143715279e-05f
                    + s * (3.8163132124596766e-07f + s * -5.0672374629634476e-09f)))));
    return oic_gelu_of_f32(x, oic_select_f32(x < -5.6f, 128.0f, a * p));
}

/* x/2 (1 + tanh u) = x / (1 + 2^y) with u = sqrt(2/pi) (x + 0.044715 x^3), y = -2 u / ln 2. */
OIC_ELEMENT float oic_gelu_tanh_f32(float x)
{
    const float a = oic_limit_f32(x, -10.05f, 10.0f);
    return oic_gelu_of_f32(x, a * (-2.3022082f - 0.102943242f * a * a));
}

/* x = 2^k (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2), for finite x > 0; gives f. */
OIC_ELEMENT float oic_log_split_f32(float x, float *k)
{
    const uint32_t root = 0x3f3504f3u; /* sqrt(1/2) */
    const int subnormal = x < 0x1p-126f;
    const float scaled = oic_select_f32(subnormal, x * 0x1p+25f, x);
    const uint32_t moved = oic_bits_f32(scaled) + (0x3f800000u - root);
    *k = (float)((int32_t)(moved >> 23) - 127) - oic_select_f32(subnormal, 25.0f, 0.0f);
    return oic_from_bits_f32((moved & 0x007fffffu) + root) - 1.0f;
}

/* log((1 + f) 2^k) + low.  With s = f / (2 + f) it is 2 s + 2/3 s^3 + ..., and 2 s = f - s f. */
OIC_ELEMENT float oic_log_sum_f32(float f, float k, float low)
{
    const float s = f / (2.0f + f), z = s * s, half = 0.5f * f * f;
    const float series = z * (0x1.555556p-1f + z * (0x1.99999ap-2f + z * (0x1.24924ap-2f + z * 0x1.c71c72p-3f)));
    const float tail = s * (half + series) + (k * 0x1.7f7d1cp-20f + low);
    return k * 0x1.62e4p-1f - ((half - tail) - f);
}

OIC_ELEMENT float oic_log_f32(float x)
{
    float k;
    const float f = oic_log_split_f32(oic_select_f32((x > 0.0f) & (x < INFINITY), x, 1.0f), &k);
    const float usual = oic_select_f32(x == INFINITY, x, oic_log_sum_f32(f, k, 0.0f));
    return oic_select_f32(x > 0.0f, usual, oic_select_f32(x == 0.0f, -INFINITY, NAN));
}

/* log(1 + e^x) = max(x, 0) + log(1 + e) with e = e^-|x| and log(1 + e) = e + e^2 p(e - 1/2). */
OIC_ELEMENT float oic_softplus_f32(float x)
{
    const float e = oic_exp_f32(-oic_abs_f32(x)), u = e - 0.5f;
    const float p = -0.37813955941063965f + u * (0.1792248861514201f + u * (-0.09323185612668985f
                    + u * (0.05108905900961096f + u * (-0.028904998155985927f + u * (0.01665698743413188f
                    + u * (-0.010177715270700372f + u * (0.006930689119049321f + u * -0.003318445927280808f)))))));
    return e + (oic_select_f32(x > 0.0f, x, 0.0f) + e * e * p);
}

/* |x| = quarter * pi/2 + r modulo 2 pi, |r| <= pi/4, where rest is what r lost to rounding. */
typedef struct {
    float r, rest;
    uint32_t quarter;
} oic_angle_f32;

/* Angles are reduced without branches where vectors have a shift for each lane, and else with them: there every element would
   be computed as if it were large. */
#if defined(__GNUC__) && defined(__OPTIMIZE__) && !defined(__OPTIMIZE_SIZE__) && (defined(__AVX2__) || defined(__aarch64__))
#define OIC_ANGLES_TOGETHER 1
#else
#define OIC_ANGLES_TOGETHER 0
#endif

/* Words 0, 1 and 2 of those bits of 2 / pi whose products with the mantissa of a float are below 4, for its biased exponent,
   126..254. */
typedef struct {
    uint32_t w0, w1, w2;
} oic_two_over_pi_words;

#if OIC_ANGLES_TOGETHER
/* Four neighbouring words of a table by its index, a bit of it at a time, and of these 96 bits; of other exponents any. */
OIC_ELEMENT oic_two_over_pi_words oic_two_over_pi_of(uint32_t exponent)
{
    const uint32_t start = exponent - 120u, by = start & 31u, back = 31u - by;
    const int one = (int)(start & 32u), two = (int)(start & 64u), four = (int)(start & 128u);
    const uint32_t p0 = oic_select_u32(one, 0xa2f9836eu, 0x00000000u), p1 = oic_select_u32(one, 0x4e441529u, 0xa2f9836eu);
    const uint32_t p2 = oic_select_u32(one, 0xfc2757d1u, 0x4e441529u), p3 = oic_select_u32(one, 0xf534ddc0u, 0xfc2757d1u);
    const uint32_t p4 = oic_select_u32(one, 0xdb629599u, 0xf534ddc0u), p5 = oic_select_u32(one, 0x3c439041u, 0xdb629599u);
    const uint32_t q0 = oic_select_u32(four, 0xf534ddc0u, oic_select_u32(two, p2, p0));
    const uint32_t q1 = oic_select_u32(four, 0xdb629599u, oic_select_u32(two, p3, p1));
    const uint32_t q2 = oic_select_u32(four, 0x3c439041u, oic_select_u32(two, p4, p2));
    const uint32_t q3 = oic_select_u32(four, 0xfe5163abu, oic_select_u32(two, p5, p3));
    const oic_two_over_pi_words found = {
        q0 << by | q1 >> 1 >> back,
        q1 << by | q2 >> 1 >> back,
        q2 << by | q3 >> 1 >> back,
    };
    return found;
}
#else
static inline oic_two_over_pi_words oic_two_over_pi_of(uint32_t exponent)
{
    const int64_t start = (int64_t)exponent - 150 - 2 + 64;
    const oic_two_over_pi_words found = {
        oic_two_over_pi_bits(start),
        oic_two_over_pi_bits(start + 32),
        oic_two_over_pi_bits(start + 64),
    };
    return found;
}
#endif

/* x rounded once: AVX2 has no vectors of this conversion, but of that of each half. */
OIC_ELEMENT double oic_nearest_f64(int64_t x)
{
#if defined(__AVX2__) && !defined(__AVX512DQ__)
    const uint32_t upper = (uint32_t)((uint64_t)x >> 32), lower = (uint32_t)x ^ 0x80000000u;
    return (double)(int32_t)upper * 0x1p+32 + ((double)(int32_t)lower + 0x1p+31);
#else
    return (double)x;
#endif
}

/* As oic_reduce_angle_f64, with 96 bits of 2 / pi and 62 bits of fraction, of which 32 are left at least; they are brought to the
   top of 64, so that their sign is that of the distance to the next quarter. */
OIC_ELEMENT oic_angle_f32 oic_reduce_angle_f32(float x)
{
    const float a = oic_abs_f32(x);
    const int large = (a >= 0x1.921fb6p-1f) & (a < INFINITY);
    oic_angle_f32 angle = {a, 0.0f, 0};
    if (!OIC_ANGLES_TOGETHER && !large) {
        return angle;
    }
    const uint32_t bits = oic_bits_f32(a);
    const uint64_t m = (bits & 0x007fffffu) | 0x00800000u;
    const oic_two_over_pi_words by = oic_two_over_pi_of(bits >> 23);
    const uint64_t product = (m * by.w0 << 32) + (m * by.w1 + (m * by.w2 >> 32));
    const double r = oic_nearest_f64((int64_t)(product << 2)) * 0x1.921fb54442d18p-64;
    const float high = (float)r, rest = (float)(r - (double)high);
    angle.r = oic_select_f32(large, high, a);
    angle.rest = oic_select_f32(large, rest, 0.0f);
    angle.quarter = oic_select_u32(large, (uint32_t)((product + 0x2000000000000000u) >> 62), 0u);
    return angle;
}

/* The sine of the angle `quarters` quarters on, by the series of sine and cosine. */
OIC_ELEMENT float oic_sin_angle_f32(oic_angle_f32 angle, uint32_t quarters)
{
    const float r = angle.r, z = r * r, half = 0.5f * z, w = 1.0f - half;
    const float p = -0x1.555556p-3f + z * (0x1.111112p-7f + z * (-0x1.a01a02p-13f + z * 0x1.71de3ap-19f));
    const float q = 0x1.555556p-5f + z * (-0x1.6c16c2p-10f + z * (0x1.a01a02p-16f + z * -0x1.27e4fcp-22f));
    const float s = r + (r * z * p + angle.rest * w);
    const float c = w + (((1.0f - w) - half) + (z * z * q - r * angle.rest));
    const uint32_t quarter = angle.quarter + quarters;
    const float y = oic_select_f32((int)(quarter & 1u), c, s);
    return oic_select_f32((int)(quarter & 2u), -y, y);
}

/* The sine of x, whose reduced angle this is. */
OIC_ELEMENT float oic_sin_of_f32(float x, oic_angle_f32 angle)
{
    const float y = oic_sin_angle_f32(angle, 0);
    const float signed_ = oic_from_bits_f32(oic_bits_f32(y) ^ (oic_bits_f32(x) & 0x80000000u));
    return oic_select_f32(oic_abs_f32(x) < INFINITY, signed_, NAN);
}

OIC_ELEMENT float oic_cos_of_f32(float x, oic_angle_f32 angle)
{
    return oic_select_f32(oic_abs_f32(x) < INFINITY, oic_sin_angle_f32(angle, 1), NAN);
}

OIC_ELEMENT float oic_sin_f32(float x) { return oic_sin_of_f32(x, oic_reduce_angle_f32(x)); }
OIC_ELEMENT float oic_cos_f32(float x) { return oic_cos_of_f32(x, oic_reduce_angle_f32(x)); }

static inline float oic_sqrt_f32(float x) { return sqrtf(x); }
static inline float oic_rsqrt_f32(float x) { return 1.0f / sqrtf(x); }

/* e^(y log |x|) in double, rounded once more; signs and special values are those of IEEE 754, as of oic_pow_special_f64. */
OIC_ELEMENT float oic_pow_f32(float x, float y)
{
    const float a = oic_abs_f32(x), size = oic_abs_f32(y);
    const int32_t number = (int32_t)oic_select_f32(size < 0x1p+24f, y, 0.0f); /* larger ones are even, and a NaN has none */
    const int whole = ((float)number == y) | (size >= 0x1p+24f), unusual = (a == 0.0f) | (a == INFINITY);
    const float power = (float)oic_exp_f64((double)y * oic_log_f64((double)a));
    const float limit = oic_select_f32((a == 0.0f) == (y > 0.0f), 0.0f, INFINITY);
    const float known = oic_select_f32((x < 0.0f) & (whole == 0), NAN, power);
    const float usual = oic_select_f32(unusual, limit, known);
    const uint32_t sign = oic_bits_f32(x) & (uint32_t)number << 31;
    const float signed_ = oic_from_bits_f32(oic_bits_f32(usual) ^ oic_select_u32(whole, sign, 0u));
    const float end = oic_select_f32(a == 1.0f, 1.0f, oic_select_f32((a > 1.0f) == (y > 0.0f), INFINITY, 0.0f));
    const float some = oic_select_f32(size == INFINITY, end, signed_);
    const float number_or_nan = oic_select_f32((x != x) | (y != y), NAN, some);
    return oic_select_f32((y == 0.0f) | (x == 1.0f), 1.0f, number_or_nan);
}

#endif
