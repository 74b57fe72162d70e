/* Products with a number in [-1, 1) times a power of two, as integers. */
#ifndef OIC_FIXED_POINT_H
#define OIC_FIXED_POINT_H

#include "../version.h"

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

/* TensorFlow Lite's MultiplyByQuantizedMultiplier: the shift left wraps, the high half of the doubled product is
   rounded (halves away from zero below, toward plus infinity above) and saturates, the shift right rounds halves away
   from zero. */
static inline int64_t oic_scale_tflite(int32_t x, int32_t multiplier, int8_t shift)
{
    const int left = shift > 0 ? (shift < 31 ? shift : 31) : 0, right = shift < 0 ? (shift > -31 ? -shift : 31) : 0;
    const uint32_t bits = (uint32_t)x << left;
    const int64_t shifted = bits & 0x80000000u ? (int64_t)bits - 4294967296 : (int64_t)bits;
    const int64_t ab = shifted * multiplier;
    const int64_t total = ab + (ab >= 0 ? 1073741824 : -1073741823);
    const int64_t most = total / 2147483648; /* toward zero */
    const int64_t high = most > 2147483647 ? 2147483647 : most;
    const int64_t mask = ((int64_t)1 << right) - 1;
    const int64_t whole = oic_shift_right(high, right);
    const int64_t rest = high - whole * (mask + 1);
    return whole + (rest > (mask >> 1) + (high < 0) ? 1 : 0);
}

/* Its form with one rounding, halves upward, saturated to 32 bits. */
static inline int64_t oic_scale_nearest(int32_t x, int32_t multiplier, int8_t shift)
{
    const int right = 31 - shift < 1 ? 1 : 31 - shift > 62 ? 62 : 31 - shift;
    const int64_t half = oic_shift_right((int64_t)x * multiplier, right - 1);
    const int64_t v = oic_shift_right(half + 1, 1);
    return v < -2147483647 - 1 ? -2147483647 - 1 : v > 2147483647 ? 2147483647 : v;
}

#endif
