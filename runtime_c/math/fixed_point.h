/* Products with a number in [-1, 1) times a power of two, as integers. */
#ifndef OIC_FIXED_POINT_H
#define OIC_FIXED_POINT_H

#include "../version.h"

#include "../num.h"

#include <stdint.h>

/* v limited to low..high. */
static inline int64_t oic_saturated_i64(int64_t v, int64_t low, int64_t high)
{
    const int64_t raised = v < low ? low : v;
    return raised > high ? high : raised;
}

/* v / 2^n, rounded toward minus infinity. */
static inline int64_t oic_shift_right(int64_t v, int n)
{
    return v >= 0 ? v >> n : -((-(v + 1)) >> n) - 1;
}

/* How far a shift to the left goes, at most 31; that of -shift is to the right. */
static inline int oic_shift_of(int shift)
{
    return shift > 0 ? (shift < 31 ? shift : 31) : 0;
}

/* The high half of twice a product, rounded (halves toward plus infinity), saturated. */
static inline int32_t oic_high_half(int32_t x, int32_t multiplier)
{
    const uint64_t doubled = (uint64_t)((int64_t)x * multiplier) + (UINT64_C(1) << 30);
    const int over = x == INT32_MIN && multiplier == INT32_MIN; /* the one product that saturates */
    return over ? INT32_MAX : oic_wrap_i32((uint32_t)(doubled >> 31));
}

/* v / 2^n, n of 0 to 31, halves away from zero.  Without branches: a loop over v becomes vector code. */
static inline int32_t oic_shift_rounded(int32_t v, int n)
{
    const uint32_t sign = 0u - (uint32_t)(v < 0), size = ((uint32_t)v ^ sign) - sign, half = (UINT32_C(1) << n) >> 1;
    return oic_wrap_i32((((size + half) >> n) ^ sign) - sign);
}

/* Whether a shift is one of oic_scale_down. */
static inline int oic_is_down(int shift)
{
    return shift < -1 && shift > -32;
}

/* TensorFlow Lite's MultiplyByQuantizedMultiplier, for a shift by n places to the right, of 2 to 31.  With the product P and s = 1 where
   it is negative, else 0, it is h = floor((P + 2^30) / 2^31), and of that floor((h - s + 2^(n - 1)) / 2^n).  Halved within, this is
   floor((u + 2^(n - 2)) / 2^(n - 1)) of u = floor((P + 2^30 - s 2^31) / 2^32), a product's upper half; what saturates is as without. */
static inline int32_t oic_scale_down(int32_t x, int32_t multiplier, int n)
{
    const uint32_t sign = 0u - (uint32_t)((x ^ multiplier) < 0), low = (sign & (UINT32_C(1) << 31)) | (UINT32_C(1) << 30);
    const uint64_t sum = (((uint64_t)sign << 32) | low) + (uint64_t)((int64_t)x * multiplier);
    const uint32_t upper = (uint32_t)(sum >> 32) + (UINT32_C(1) << 31); /* u + 2^31 */
    return oic_wrap_i32((((upper >> (n - 2)) + 1u) >> 1) - ((UINT32_C(1) << 30) >> (n - 2)));
}

/* The same for any shift; to the left it wraps. */
static inline int32_t oic_scale_tflite(int32_t x, int32_t multiplier, int shift)
{
    if (oic_is_down(shift)) {
        return oic_scale_down(x, multiplier, -shift);
    }
    return oic_shift_rounded(oic_high_half(oic_wrap_i32((uint32_t)x << oic_shift_of(shift)), multiplier), oic_shift_of(-shift));
}

/* Its form with one rounding, halves upward, saturated to 32 bits. */
static inline int32_t oic_scale_nearest(int32_t x, int32_t multiplier, int shift)
{
    const int right = 31 - shift < 1 ? 1 : 31 - shift > 62 ? 62 : 31 - shift;
    const int64_t half = oic_shift_right((int64_t)x * multiplier, right - 1);
    return (int32_t)oic_saturated_i64(oic_shift_right(half + 1, 1), INT32_MIN, INT32_MAX);
}

#endif
