/* Elementary functions of double, from additions, multiplications, divisions and exact operations only: the same
   bits with every compiler and on every target.  NaN gives NaN.

   Largest error found, in units in the last place of the exact result (tests/runtime/test_math.py): exp 0.85, log 0.79,
   sin and cos 0.78, tanh 1.9, erf 1.2, sigmoid 2.3, silu 3.2, softplus 1.6, rsqrt 1.5, pow 0.85. */
#ifndef OIC_MATH_F64_H
#define OIC_MATH_F64_H

#include "../version.h"

#include "rounding.h"

/* A number as the sum of two, the second at most half a unit in the last place of the first. */
typedef struct {
    double high, low;
} oic_pair;

/* a + b exactly, for |a| >= |b| or a = 0. */
static inline oic_pair oic_sum_pair(double a, double b)
{
    const double high = a + b;
    const oic_pair sum = {high, b - (high - a)};
    return sum;
}

/* x without its 27 last bits: products of two such numbers are exact. */
static inline double oic_upper_f64(double x)
{
    return oic_from_bits_f64(oic_bits_f64(x) & 0xfffffffff8000000u);
}

/* a * b exactly, where nothing overflows or is subnormal. */
static inline oic_pair oic_product_pair(double a, double b)
{
    const double ah = oic_upper_f64(a), al = a - ah, bh = oic_upper_f64(b), bl = b - bh;
    const double high = a * b;
    const oic_pair product = {high, ((ah * bh - high) + (ah * bl + al * bh)) + al * bl};
    return product;
}

/* a * b for pairs, to about 2^-100. */
OIC_ELEMENT oic_pair oic_multiply_pairs(oic_pair a, oic_pair b)
{
    const oic_pair p = oic_product_pair(a.high, b.high);
    return oic_sum_pair(p.high, p.low + (a.high * b.low + a.low * b.high));
}

/* e^x = (1 + t + rest) * s1 * s2, where rest is what t lost to rounding, and s1 and s2 are powers of two: two, because
   their product may be subnormal or overflow, and is to be rounded once.  For -1400 < x < 1400.  Here and below k has 32 bits: few
   vectors have conversions of integers of 64. */
typedef struct {
    double t, rest, s1, s2;
} oic_exp_parts_f64;

/* x + low = k ln 2 + r with |r| <= ln 2 / 2; e^r by its series, whose next term is below 2^-60 of it. */
OIC_ELEMENT oic_exp_parts_f64 oic_exp_split_f64(double x, double low)
{
    const double scaled = oic_select_f64(x == x, x * 0x1.71547652b82fep+0, 0.0);
    const int32_t k = (int32_t)(scaled + oic_copysign_f64(0.5, scaled));
    const double r0 = x - (double)k * 0x1.62e42fefp-1, rest = low - (double)k * 0x1.473de6af278edp-34;
    const double r = r0 + rest, lost = rest - (r - r0);
    const double q = 1.0 / 2 + r * (1.0 / 6 + r * (1.0 / 24 + r * (1.0 / 120 + r * (1.0 / 720 + r * (1.0 / 5040
                     + r * (1.0 / 40320 + r * (1.0 / 362880 + r * (1.0 / 3628800 + r * (1.0 / 39916800
                     + r * (1.0 / 479001600 + r * (1.0 / 6227020800.0)))))))))));
    const double curve = r * r * q;
    const int32_t half = k / 2;
    oic_exp_parts_f64 e;
    e.t = r + curve;
    e.rest = (curve - (e.t - r)) + (lost + lost * r);
    e.s1 = oic_from_bits_f64((uint64_t)(uint32_t)(half + 1023) << 52);
    e.s2 = oic_from_bits_f64((uint64_t)(uint32_t)(k - half + 1023) << 52);
    return e;
}

/* x limited to low..high; NaN stays. */
OIC_ELEMENT double oic_limit_f64(double x, double low, double high)
{
    return oic_select_f64(x < low, low, oic_select_f64(x > high, high, x));
}

/* e^(x + low), |low| below half a unit in the last place of x. */
OIC_ELEMENT double oic_exp_pair(double x, double low)
{
    const double near = oic_limit_f64(x, -1000.0, 1000.0);
    const oic_exp_parts_f64 e = oic_exp_split_f64(near, oic_select_f64(near == x, low, 0.0));
    return (1.0 + (e.t + e.rest)) * e.s1 * e.s2;
}

OIC_ELEMENT double oic_exp_f64(double x)
{
    return oic_exp_pair(x, 0.0);
}

/* x = 2^k * (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2), for finite x > 0. */
OIC_ELEMENT double oic_log_split_f64(double x, int32_t *k)
{
    const uint64_t root = 0x3fe6a09e667f3bcdu; /* sqrt(1/2) */
    const int subnormal = x < 0x1p-1022;
    const double scaled = oic_select_f64(subnormal, x * 0x1p+54, x);
    const uint64_t moved = oic_bits_f64(scaled) + (0x3ff0000000000000u - root);
    *k = (int32_t)(moved >> 52) - 1023 - (subnormal ? 54 : 0);
    return oic_from_bits_f64((moved & 0x000fffffffffffffu) + root) - 1.0;
}

/* log((1 + s) / (1 - s)) = 2 s (1 + z / 3 + z^2 / 5 + z^3 / 7 + ...), z = s^2 <= 0.0295: the terms behind z / 3. */
OIC_ELEMENT double oic_log_series_f64(double z)
{
    return z * z * (1.0 / 5 + z * (1.0 / 7 + z * (1.0 / 9 + z * (1.0 / 11 + z * (1.0 / 13 + z * (1.0 / 15
           + z * (1.0 / 17 + z * (1.0 / 19 + z * (1.0 / 21 + z * (1.0 / 23))))))))));
}

/* What log x is where the series does not apply; `value` elsewhere. */
OIC_ELEMENT double oic_log_special_f64(double x, double value)
{
    const double usual = oic_select_f64(x == (double)INFINITY, x, value);
    return oic_select_f64(x > 0.0, usual, oic_select_f64(x == 0.0, -(double)INFINITY, (double)NAN));
}

/* log((1 + f) * 2^k) + low.  With s = f / (2 + f), 2 s = f - s f = f - f^2 / 2 + s f^2 / 2. */
OIC_ELEMENT double oic_log_sum_f64(double f, int32_t k, double low)
{
    const double s = f / (2.0 + f), z = s * s, half = 0.5 * f * f, n = (double)k;
    const double tail = s * (half + 2.0 * (z * (1.0 / 3) + oic_log_series_f64(z)));
    return n * 0x1.62e42fefp-1 - ((half - (tail + (n * 0x1.473de6af278edp-34 + low))) - f);
}

OIC_ELEMENT double oic_log_f64(double x)
{
    int32_t k;
    const double f = oic_log_split_f64(oic_select_f64((x > 0.0) & (x < (double)INFINITY), x, 1.0), &k);
    return oic_log_special_f64(x, oic_log_sum_f64(f, k, 0.0));
}

/* log(1 + x) for 0 <= x <= 1 (and NaN), with what 1 + x loses to rounding. */
static inline double oic_log1p_f64(double x)
{
    int32_t k;
    const double one = 1.0 + oic_select_f64(x == x, x, 0.0);
    const double lost = x - (one - 1.0);
    const double f = oic_log_split_f64(one, &k);
    return oic_select_f64(one == 1.0, x, oic_log_sum_f64(f, k, lost / one));
}

/* Word i of 2 / pi after the binary point, 64 zero bits first. */
static inline uint32_t oic_two_over_pi(int64_t i)
{
    static const uint32_t words[40] = {
        0x00000000u, 0x00000000u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u,
        0xfe5163abu, 0xdebbc561u, 0xb7246e3au, 0x424dd2e0u, 0x06492eeau, 0x09d1921cu, 0xfe1deb1cu, 0xb129a73eu,
        0xe88235f5u, 0x2ebb4484u, 0xe99c7026u, 0xb45f7e41u, 0x3991d639u, 0x835339f4u, 0x9c845f8bu, 0xbdf9283bu,
        0x1ff897ffu, 0xde05980fu, 0xef2f118bu, 0x5a0a6d1fu, 0x6d367ecfu, 0x27cb09b7u, 0x4f463f66u, 0x9e5fea2du,
        0x7527bac7u, 0xebe5f17bu, 0x3d0739f7u, 0x8a5292eau, 0x6bfb5fb1u, 0x1f8d5d08u, 0x56033046u, 0xfc7b6babu,
    };
    return words[i];
}

/* 32 bits of 2 / pi, the first of them `bit` bits behind the start of the words. */
static inline uint32_t oic_two_over_pi_bits(int64_t bit)
{
    const uint64_t both = (uint64_t)oic_two_over_pi(bit / 32) << 32 | oic_two_over_pi(bit / 32 + 1);
    return (uint32_t)(both << (bit % 32) >> 32);
}

/* |x| = quarter * pi/2 + r modulo 2 pi, |r| <= pi/4, as a pair. */
typedef struct {
    double r, rest;
    uint32_t quarter;
} oic_angle_f64;

/* For |x| < pi/4 x itself.  Else x = m 2^p, and m is multiplied by those 192 bits of 2 / pi whose products are below 4:
   two bits of quarters, 126 bits of fraction are kept, so that 60 are left where x is nearest to a multiple of pi/2. */
static inline oic_angle_f64 oic_reduce_angle_f64(double x)
{
    const double a = oic_abs_f64(x);
    oic_angle_f64 angle = {a, 0.0, 0};
    if (!(a >= 0x1.921fb54442d18p-1) || a == (double)INFINITY) {
        return angle;
    }
    const uint64_t bits = oic_bits_f64(a), m = (bits & 0x000fffffffffffffu) | 0x0010000000000000u;
    const int64_t start = (int64_t)(bits >> 52) - 1075 - 2 + 64;
    uint32_t product[6], carry = 0, word_after = 0;
    uint64_t carry_above = 0;
    for (int64_t i = 5; i >= 0; --i) { /* one digit of m times the words: its lower and its upper half */
        const uint32_t word = oic_two_over_pi_bits(start + 32 * i);
        const uint64_t by_lower = (uint64_t)word * (m & 0xffffffffu) + carry;
        const uint64_t digit = (by_lower & 0xffffffffu) + (uint64_t)word_after * (m >> 32) + carry_above;
        product[i] = (uint32_t)digit;
        carry = (uint32_t)(by_lower >> 32);
        carry_above = digit >> 32;
        word_after = word;
    }
    uint64_t upper = (uint64_t)product[0] << 32 | product[1], lower = (uint64_t)product[2] << 32 | product[3];
    angle.quarter = (uint32_t)((upper + 0x2000000000000000u) >> 62);
    upper <<= 2; /* now the fraction of a quarter; its upper half counts down from the next one */
    upper |= lower >> 62;
    lower <<= 2;
    const int negative = (int)(upper >> 63);
    if (negative) {
        lower = ~lower + 1u;
        upper = ~upper + (lower == 0 ? 1u : 0u);
    }
    const double top = (double)upper; /* may round up to 2^63 */
    const double under = upper >= (uint64_t)top ? (double)(upper - (uint64_t)top) : -(double)((uint64_t)top - upper);
    const oic_pair fraction = oic_sum_pair(top, under + (double)lower * 0x1p-64);
    const oic_pair unit = {0x1.921fb54442d18p-64, 0x1.1a62633145c07p-118};
    const oic_pair r = oic_multiply_pairs(fraction, unit);
    angle.r = negative ? -r.high : r.high;
    angle.rest = negative ? -r.low : r.low;
    return angle;
}

/* The sine of r + rest, |r| <= pi/4: the series, whose next term is below 2^-60 of it. */
static inline double oic_sin_series_f64(double r, double rest)
{
    const double z = r * r;
    const double p = -1.0 / 6 + z * (1.0 / 120 + z * (-1.0 / 5040 + z * (1.0 / 362880 + z * (-1.0 / 39916800
                     + z * (1.0 / 6227020800.0 + z * (-1.0 / 1307674368000.0 + z * (1.0 / 355687428096000.0)))))));
    return r + (r * z * p + rest * (1.0 - 0.5 * z));
}

static inline double oic_cos_series_f64(double r, double rest)
{
    const double z = r * r, half = 0.5 * z, w = 1.0 - half;
    const double p = 1.0 / 24 + z * (-1.0 / 720 + z * (1.0 / 40320 + z * (-1.0 / 3628800 + z * (1.0 / 479001600
                     + z * (-1.0 / 87178291200.0 + z * (1.0 / 20922789888000.0 + z * (-1.0 / 6402373705728000.0)))))));
    return w + (((1.0 - w) - half) + (z * z * p - r * rest));
}

/* The sine of the angle `quarters` quarters on. */
static inline double oic_sin_angle_f64(oic_angle_f64 angle, uint32_t quarters)
{
    const uint32_t q = angle.quarter + quarters;
    const double s = oic_sin_series_f64(angle.r, angle.rest), c = oic_cos_series_f64(angle.r, angle.rest);
    const double y = oic_select_f64((int)(q & 1u), c, s);
    return oic_select_f64((int)(q & 2u), -y, y);
}

static inline double oic_sin_f64(double x)
{
    const double y = oic_sin_angle_f64(oic_reduce_angle_f64(x), 0);
    return oic_abs_f64(x) < (double)INFINITY ? (oic_bits_f64(x) >> 63 ? -y : y) : (double)NAN;
}

static inline double oic_cos_f64(double x)
{
    const double y = oic_sin_angle_f64(oic_reduce_angle_f64(x), 1);
    return oic_abs_f64(x) < (double)INFINITY ? y : (double)NAN;
}

static inline double oic_sqrt_f64(double x) { return sqrt(x); }
static inline double oic_rsqrt_f64(double x) { return 1.0 / sqrt(x); }

/* (1 - e) / (1 + e) with e = e^-2|x|, where 1 - e = (1 - s) - s t for e = (1 + t) s. */
static inline double oic_tanh_f64(double x)
{
    const double a = oic_limit_f64(oic_abs_f64(x), 0.0, 20.0);
    const oic_exp_parts_f64 e = oic_exp_split_f64(-2.0 * a, 0.0);
    const double scale = e.s1 * e.s2, part = scale * (e.t + e.rest);
    return oic_copysign_f64(((1.0 - scale) - part) / ((1.0 + scale) + part), x);
}

/* e^(x^2) (1 - erf(x)) for 1 <= x <= 6: polynomials about the middle of three intervals. */
static inline double oic_scaled_erfc_f64(double x)
{
    static const double p[3][18] = {
        {0.0, 0x1.c702a07f72a49p-27, -0x1.a998623712d22p-25, 0x1.66efcc06ca710p-23, -0x1.3f2aec68e0ef9p-21,
         0x1.156fd6fb88da9p-19, -0x1.d41bcf828a13dp-18, 0x1.7f996b47b4062p-16, -0x1.30c0deef7e30bp-14,
         0x1.d4509d2e96628p-13, -0x1.5b0ac006ded44p-11, 0x1.ee705e7339ea0p-10, -0x1.513ed75fe3aa1p-8,
         0x1.b65944f34f932p-7, -0x1.0dc51d2941fe8p-5, 0x1.37ea271bc54bdp-4, -0x1.4f1988444caf6p-3,
         0x1.494daffa2ad68p-2},
        {0.0, 0x1.846f065667fc6p-34, -0x1.be0b7fa1543f8p-32, 0x1.bd80ed135ad53p-30, -0x1.ebc9e63604badp-28,
         0x1.0c20a45da3a28p-25, -0x1.1cdc394369dbcp-23, 0x1.2856c7c23201dp-21, -0x1.2da2ed60d2934p-19,
         0x1.2bfb5b98b7037p-17, -0x1.2312b2fd05ab4p-15, 0x1.131bb1605f58ep-13, -0x1.f99e41eadb01dp-12,
         0x1.c2c72fd72862cp-10, -0x1.84e9ab30e7d97p-8, 0x1.43b98bac83820p-6, -0x1.0305781330095p-4,
         0x1.8c9eb68ff27d7p-3},
        {-0x1.e9ddbe7787f65p-46, 0x1.7c679cea4c018p-43, -0x1.dcffcbfd6da5bp-41, 0x1.68d9ef20708d9p-38,
         -0x1.12d385818216dp-35, 0x1.96b09755a0fb0p-33, -0x1.29125e407e6dep-30, 0x1.acf7cef907723p-28,
         -0x1.31c3e672392f2p-25, 0x1.ae1fb69a83d46p-23, -0x1.2a625a12e0f2cp-20, 0x1.9818c089d8d3bp-18,
         -0x1.12f1743bd8101p-15, 0x1.6cc10c16428e5p-13, -0x1.dc1af883a32b3p-11, 0x1.317c144f8b33ep-8,
         -0x1.81149bc4a104bp-6, 0x1.dc603a3e77e9bp-4},
    };
    const int part = (x >= 2.0) + (x >= 3.5);
    const double u = x - (part == 0 ? 1.5 : part == 1 ? 2.75 : 4.75);
    double y = 0.0;
    for (int i = 0; i < 18; ++i) {
        y = p[part][i] + u * y;
    }
    return y;
}

static inline double oic_erf_f64(double x)
{
    const double a = oic_limit_f64(oic_abs_f64(x), 0.0, 6.0), s = a * a;
    const double p = 0x1.06eba8214db69p-3 + s * (-0x1.812746b0379e6p-2 + s * (0x1.ce2f21a042b30p-4
                     + s * (-0x1.b82ce31284e00p-6 + s * (0x1.565bcd0dbaa38p-8 + s * (-0x1.c02db3dac435fp-11
                     + s * (0x1.f9a321d5b8e1ep-14 + s * (-0x1.f4d1e3183f7aep-17 + s * (0x1.b9df224ca4b97p-20
                     + s * (-0x1.5f1ecb6f0764cp-23 + s * (0x1.f7b4bf3b13964p-27 + s * (-0x1.389d4f2641625p-30
                     + s * 0x1.05ffd737fb32ep-34)))))))))));
    const double large = 1.0 - oic_exp_f64(-s) * oic_scaled_erfc_f64(oic_limit_f64(a, 1.0, 6.0));
    return oic_copysign_f64(oic_select_f64(a >= 1.0, large, a + a * p), x);
}

/* y * sigmoid(x), for y = 1 or y = x: y / (1 + e) with e = e^-|x| for x >= 0, and y e / (1 + e) below, where the
   second power of two of e is applied last, so that subnormals lose nothing. */
static inline double oic_logistic_f64(double x, double y)
{
    const oic_exp_parts_f64 e = oic_exp_split_f64(-oic_limit_f64(oic_abs_f64(x), 0.0, 1000.0), 0.0);
    const double first = (1.0 + (e.t + e.rest)) * e.s1;
    const int negative = x < 0.0;
    const double n = oic_select_f64(negative, y * first, y) / (1.0 + first * e.s2);
    return oic_select_f64(negative, n * e.s2, n);
}

static inline double oic_sigmoid_f64(double x)
{
    return oic_logistic_f64(x, 1.0);
}

/* x * sigmoid(x); NaN for -inf, as in NumPy and PyTorch. */
static inline double oic_silu_f64(double x)
{
    const double y = oic_logistic_f64(x, oic_limit_f64(x, -1000.0, 1000.0));
    const double upper = oic_select_f64(x > 40.0, x, y); /* sigmoid rounds to 1 */
    return oic_copysign_f64(oic_select_f64(x == -(double)INFINITY, (double)NAN, upper), x);
}

/* log(1 + e^x). */
static inline double oic_softplus_f64(double x)
{
    return (x > 0.0 ? x : 0.0) + oic_log1p_f64(oic_exp_f64(-oic_abs_f64(x)));
}

/* x/2 (1 + erf(x / sqrt 2)). */
static inline double oic_gelu_erf_f64(double x)
{
    return 0.5 * x * (1.0 + oic_erf_f64(x * 0x1.6a09e667f3bcdp-1));
}

/* x/2 (1 + tanh u) = x sigmoid(2 u), u = sqrt(2/pi) (x + 0.044715 x^3). */
static inline double oic_gelu_tanh_f64(double x)
{
    const double a = oic_limit_f64(x, -40.0, 40.0);
    return x * oic_sigmoid_f64(a * (1.5957691216057307118 + 0.071354816272600248 * a * a));
}

/* log x as a pair, to about 2^-70 of it, for finite x > 0: as above, with 2 s and its first correction in pairs. */
static inline oic_pair oic_log_pair(double x)
{
    int32_t k;
    const double f = oic_log_split_f64(x, &k), n = (double)k;
    const oic_pair d = oic_sum_pair(2.0, f);
    const double high = f / d.high;
    const oic_pair back = oic_product_pair(high, d.high);
    const oic_pair s = oic_sum_pair(high, (((f - back.high) - back.low) - high * d.low) / d.high);
    const oic_pair z = oic_multiply_pairs(s, s);
    const oic_pair third = {0x1.5555555555555p-2, 0x1.5555555555555p-56};
    const oic_pair first = oic_multiply_pairs(z, third);
    const oic_pair correction = oic_sum_pair(first.high, first.low + oic_log_series_f64(z.high));
    const oic_pair curve = oic_multiply_pairs(s, correction);
    const oic_pair series = oic_sum_pair(2.0 * s.high, 2.0 * curve.high);
    const double rest = series.low + 2.0 * (s.low + curve.low);
    const oic_pair whole = oic_sum_pair(n * 0x1.62e42fefp-1, series.high);
    const oic_pair sum = k == 0 ? oic_sum_pair(series.high, rest)
                                : oic_sum_pair(whole.high, whole.low + (rest + n * 0x1.473de6af278edp-34));
    return sum;
}

/* 0: y is not whole; 1: odd; 2: even. */
static inline int oic_parity_f64(double y)
{
    const double a = oic_abs_f64(y);
    if (!(a < 9007199254740992.0)) { /* 2^53 */
        return y != y ? 0 : 2;
    }
    const int64_t whole = (int64_t)a;
    return (double)whole != a ? 0 : whole % 2 != 0 ? 1 : 2;
}

/* What x^y is by IEEE 754 where it is not e^(y log |x|), given that as `value`. */
static inline double oic_pow_special_f64(double x, double y, double value)
{
    const int parity = oic_parity_f64(y);
    const double a = oic_abs_f64(x);
    if (y == 0.0 || x == 1.0) {
        return 1.0;
    }
    if (x != x || y != y) {
        return (double)NAN;
    }
    if (oic_abs_f64(y) == (double)INFINITY) {
        return a == 1.0 ? 1.0 : (a > 1.0) == (y > 0.0) ? (double)INFINITY : 0.0;
    }
    if (a == 0.0 || a == (double)INFINITY) {
        value = (a == 0.0) == (y > 0.0) ? 0.0 : (double)INFINITY;
    } else if (x < 0.0 && parity == 0) {
        return (double)NAN;
    }
    return oic_bits_f64(x) >> 63 && parity == 1 ? -value : value;
}

static inline double oic_pow_f64(double x, double y)
{
    const double a = oic_abs_f64(x);
    double value = 1.0;
    if (a > 0.0 && a < (double)INFINITY && oic_abs_f64(y) < (double)INFINITY) {
        const oic_pair log = oic_log_pair(a);
        const double few = oic_limit_f64(y, -0x1p+80, 0x1p+80); /* more changes no result */
        const oic_pair p = oic_product_pair(few, log.high);
        const oic_pair power = oic_sum_pair(p.high, p.low + few * log.low);
        value = oic_exp_pair(power.high, power.low);
    }
    return oic_pow_special_f64(x, y, value);
}

#endif
