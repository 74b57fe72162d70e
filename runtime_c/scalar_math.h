/* Elementary functions.

   exp, sigmoid, silu, tanh, erf and gelu in f32 have no branches and call nothing, so that a loop
   over them becomes vector code; all others come from <math.h>.  Every function gives NaN for NaN.

   Largest error in units in the last place of the exact result, over all floats:
   exp 0.99, sigmoid 1.26, silu 1.50, tanh 1.53, erf 1.32; over a sample of all magnitudes,
   and with glibc: rsqrt 1.5, softplus 1.5, log 0.8, sin and cos 0.6.
   gelu is within 2^-23 |x| of its form (erf: all floats, tanh: the sample); the bound is twice
   that. */
#ifndef OIC_SCALAR_MATH_H
#define OIC_SCALAR_MATH_H

#include "num.h"

/* e^x = (1 + t + rest) * s1 * s2, where rest is what t lost to rounding, and s1 and s2 are powers
   of two: two, because their product may be a subnormal or overflow, and is to be rounded once.
   For -174 < x < 174. */
typedef struct {
    float t, rest, s1, s2;
} oic_exp_parts;

/* x = k ln 2 + r with |r| <= ln 2 / 2.  Adding 1.5 * 2^23 rounds k to an integer in the low bits;
   the upper part of ln 2 has few bits, so that k times it is exact. */
static inline oic_exp_parts oic_exp_split(float x)
{
    const float magic = 12582912.0f;
    const float shifted = x * 1.44269504f + magic;
    const float k = shifted - magic;
    const float r = (x - k * 0.693359375f) - k * -2.12194440e-4f;
    const float q = 0.4999999403953552f + r * (0.1666651964187622f + r * (0.04166839271783829f
                    + r * (0.008368780836462975f + r * 0.0013814467238262296f)));
    const uint32_t biased = oic_bits_f32(shifted) - 0x4b400000u + 512u;
    const uint32_t half = biased >> 1;
    const float curve = r * r * q;
    oic_exp_parts e;
    e.t = r + curve;
    e.rest = curve - (e.t - r);
    e.s1 = oic_from_bits_f32((half + 127u - 256u) << 23);
    e.s2 = oic_from_bits_f32((biased - half + 127u - 256u) << 23);
    return e;
}

/* x limited to low..high; NaN stays. */
static inline float oic_limit_f32(float x, float low, float high)
{
    return oic_select_f32(x < low, low, oic_select_f32(x > high, high, x));
}

static inline float oic_exp_f32(float x)
{
    const oic_exp_parts e = oic_exp_split(oic_limit_f32(x, -105.0f, 89.0f));
    return (1.0f + e.t) * e.s1 * e.s2;
}

/* n / d for n = n1 + n2 and d = d1 + d2, 1 <= d <= 2, where n2 and d2 are what n1 and d1 lost to
   rounding.  1/d is only needed roughly for so small a correction. */
static inline float oic_quotient_f32(float n1, float n2, float d1, float d2)
{
    const float q = n1 / d1;
    return q + (n2 - q * d2) * (1.4571068f - 0.5f * d1);
}

/* y * sigmoid(x), for y = 1 or y = x.  With e = e^-|x| it is y / (1 + e) for x >= 0 and
   y * e / (1 + e) below, so that nothing overflows; the scale of e is applied last. */
static inline float oic_logistic_f32(float x, float y)
{
    const float a = oic_limit_f32(fabsf(x), 0.0f, 110.0f);
    const oic_exp_parts e = oic_exp_split(-a);
    const float scale = e.s1 * e.s2;
    const float small = scale + scale * e.t;
    const float small_rest = (scale * e.t - (small - scale)) + scale * e.rest;
    const float d = 1.0f + small;
    const float d_rest = (small - (d - 1.0f)) + small_rest;
    const float part = y * e.t;
    const float n = y + part;
    const float n_rest = (part - (n - y)) + y * e.rest;
    const int negative = x < 0.0f;
    const float q = oic_quotient_f32(oic_select_f32(negative, n, y),
                                     oic_select_f32(negative, n_rest, 0.0f), d, d_rest);
    return q * oic_select_f32(negative, e.s1, 1.0f) * oic_select_f32(negative, e.s2, 1.0f);
}

static inline float oic_sigmoid_f32(float x)
{
    return oic_logistic_f32(x, 1.0f);
}

/* x * sigmoid(x); NaN for -inf, as in NumPy and PyTorch. */
static inline float oic_silu_f32(float x)
{
    const float y = oic_logistic_f32(x, oic_limit_f32(x, -110.0f, 110.0f));
    const float upper = oic_select_f32(x > 20.0f, x, y); /* sigmoid rounds to 1 */
    return copysignf(oic_select_f32(x == -INFINITY, NAN, upper), x);
}

/* (1 - e) / (1 + e) with e = e^-2|x|; for small x, where e = 1 + t, this is -t / (2 + t). */
static inline float oic_tanh_f32(float x)
{
    const float a = oic_limit_f32(fabsf(x), 0.0f, 10.0f);
    const oic_exp_parts e = oic_exp_split(-2.0f * a);
    const float scale = e.s1 * e.s2;
    const float part = scale * e.t;
    const float rest = 1.0f - scale;
    const float n = rest - part;
    const float n_rest = ((rest - n) - part) - scale * e.rest;
    const float one = 1.0f + scale;
    const float d = one + part;
    const float d_rest = ((one - d) + part) + scale * e.rest;
    return copysignf(oic_quotient_f32(n, n_rest, d, d_rest), x);
}

/* x + x p(x^2) up to 1; above 1 - e^-(a + a p(a)). */
static inline float oic_erf_f32(float x)
{
    const float a = oic_limit_f32(fabsf(x), 0.0f, 4.0f);
    const float s = a * a;
    const float p = 0.12837916612625122f + s * (-0.3761262595653534f + s * (0.1128358542919159f
                    + s * (-0.026853812858462334f + s * (0.005188327748328447f
                    + s * (-0.0008010193705558777f + s * 7.853861461626366e-05f)))));
    const float q = 0.1286943405866623f + a * (0.6349695324897766f + a * (0.10653083086013794f
                    + a * (-0.024010051041841507f + a * (0.00375746819190681f
                    + a * (-0.00035058989305980504f + a * 1.3962227967567742e-05f)))));
    const oic_exp_parts e = oic_exp_split(-(a + a * q));
    const float scale = e.s1 * e.s2;
    const float large = (1.0f - scale) - scale * e.t;
    return copysignf(oic_select_f32(a < 1.0f, a + a * p, large), x);
}

/* x/2 (1 + erf(x / sqrt 2)). */
static inline float oic_gelu_erf_f32(float x)
{
    return 0.5f * x * (1.0f + oic_erf_f32(x * 0.70710678f));
}

/* x/2 (1 + tanh u) = x sigmoid(2 u), u = sqrt(2/pi) (x + 0.044715 x^3). */
static inline float oic_gelu_tanh_f32(float x)
{
    const float a = oic_limit_f32(x, -20.0f, 20.0f);
    return x * oic_sigmoid_f32(a * (1.59576912f + 0.0713548162f * a * a));
}

/* log(1 + e^x). */
static inline float oic_softplus_f32(float x)
{
    return (x > 0.0f ? x : 0.0f) + log1pf(expf(-fabsf(x)));
}

static inline float oic_log_f32(float x) { return logf(x); }
static inline float oic_sqrt_f32(float x) { return sqrtf(x); }
static inline float oic_rsqrt_f32(float x) { return 1.0f / sqrtf(x); }
static inline float oic_sin_f32(float x) { return sinf(x); }
static inline float oic_cos_f32(float x) { return cosf(x); }
static inline float oic_pow_f32(float x, float y) { return powf(x, y); }

/* ------------------------------------------------------------ f64 */

static inline double oic_exp_f64(double x) { return exp(x); }
static inline double oic_log_f64(double x) { return log(x); }
static inline double oic_sqrt_f64(double x) { return sqrt(x); }
static inline double oic_rsqrt_f64(double x) { return 1.0 / sqrt(x); }
static inline double oic_sin_f64(double x) { return sin(x); }
static inline double oic_cos_f64(double x) { return cos(x); }
static inline double oic_tanh_f64(double x) { return tanh(x); }
static inline double oic_erf_f64(double x) { return erf(x); }
static inline double oic_pow_f64(double x, double y) { return pow(x, y); }

static inline double oic_sigmoid_f64(double x)
{
    const double e = exp(-fabs(x));
    return (x < 0.0 ? e : 1.0) / (1.0 + e);
}

static inline double oic_silu_f64(double x)
{
    return x * oic_sigmoid_f64(x);
}

static inline double oic_softplus_f64(double x)
{
    return (x > 0.0 ? x : 0.0) + log1p(exp(-fabs(x)));
}

static inline double oic_gelu_erf_f64(double x)
{
    return 0.5 * x * erfc(x * -0.70710678118654752440);
}

static inline double oic_gelu_tanh_f64(double x)
{
    return x * oic_sigmoid_f64(x * (1.5957691216057307118 + 0.071354816272600248 * x * x));
}

#endif
