/* Sums of 32 bits scaled to integers of fewer, as oic_requantize does. */
#ifndef OIC_REQUANTIZED_H
#define OIC_REQUANTIZED_H

#include "../../version.h"

#include "../../math/fixed_point.h"
#include "../../simd/registers.h"

#include <stddef.h>
#include <stdint.h>

/* What sums are scaled with: those of number p by multiplier and shift p * each. */
typedef struct {
    const int32_t *multiplier;
    const int8_t *shift;
    ptrdiff_t each;
    int64_t zero_point;
    int nearest;
} oic_requantized;

/* The range of scaled sums before the zero point is added, modulo 2^32. */
typedef struct {
    int32_t low, high;
    uint32_t zero;
} oic_requantized_range;

/* That of results between low and high. */
static inline oic_requantized_range oic_requantized_within(int64_t low, int64_t high, int64_t zero_point)
{
    /* A zero point beyond these saturates everything, as these do. */
    const int64_t zero = oic_saturated_i64(zero_point, low - INT32_MAX, high - INT32_MIN);
    return (oic_requantized_range){
        .low = (int32_t)oic_saturated_i64(low - zero, INT32_MIN, INT32_MAX),
        .high = (int32_t)oic_saturated_i64(high - zero, INT32_MIN, INT32_MAX),
        .zero = (uint32_t)zero,
    };
}

/* A scaled sum, in its range, plus the zero point. */
static inline uint32_t oic_requantized_limit(int32_t scaled, oic_requantized_range within)
{
    const int32_t raised = scaled < within.low ? within.low : scaled;
    return (uint32_t)(raised > within.high ? within.high : raised) + within.zero;
}

/* v = n results, of scaled sums. */
static inline void oic_requantized_limits(uint32_t *v, ptrdiff_t n, oic_requantized_range within)
{
    for (ptrdiff_t e = 0; e < n; ++e) {
        v[e] = oic_requantized_limit(oic_wrap_i32(v[e]), within);
    }
}

/* v = n results, of sums that one multiplier and shift scale. */
static inline void oic_requantized_alike(uint32_t *v, ptrdiff_t n, int32_t multiplier, int shift, int nearest,
                                         oic_requantized_range within)
{
    const int left = oic_shift_of(shift), right = oic_shift_of(-shift);
    ptrdiff_t e = 0;
    if (nearest) {
        for (; e < n; ++e) {
            v[e] = (uint32_t)oic_scale_nearest(oic_wrap_i32(v[e]), multiplier, shift);
        }
        oic_requantized_limits(v, n, within);
    }
    for (; e + OIC_WIDTH <= n && multiplier != INT32_MIN; e += OIC_WIDTH) { /* no product saturates */
        oic_register_u32 x;
        memcpy(&x, v + e, sizeof x);
        const oic_register_i32 sum = oic_register_signed(x << (uint32_t)left), by = oic_register_of_i32(multiplier);
        const oic_register_i32 scaled = oic_register_shift_rounded_i32(oic_register_high_half_i32(sum, by), right);
        const oic_register_i32 raised = oic_register_max_i32(scaled, oic_register_of_i32(within.low));
        x = oic_register_unsigned(oic_register_min_i32(raised, oic_register_of_i32(within.high))) + within.zero;
        memcpy(v + e, &x, sizeof x);
    }
    for (; e < n; ++e) {
        v[e] = oic_requantized_limit(oic_scale_tflite(oic_wrap_i32(v[e]), multiplier, left, right), within);
    }
}

/* v = n results, of sums of numbers p, p + 1 and so on. */
static inline void oic_requantized_each(const oic_requantized *by, uint32_t *restrict v, ptrdiff_t n, ptrdiff_t p,
                                        oic_requantized_range within)
{
    const int32_t *restrict const multiplier = by->multiplier + p;
    const int8_t *restrict const shift = by->shift + p;
    if (!by->each) {
        oic_requantized_alike(v, n, *by->multiplier, *by->shift, by->nearest, within);
        return;
    }
    if (by->nearest) {
        for (ptrdiff_t e = 0; e < n; ++e) {
            v[e] = (uint32_t)oic_scale_nearest(oic_wrap_i32(v[e]), multiplier[e], shift[e]);
        }
    } else {
        for (ptrdiff_t e = 0; e < n; ++e) {
            const int left = oic_shift_of(shift[e]), right = oic_shift_of(-shift[e]);
            v[e] = (uint32_t)oic_scale_tflite(oic_wrap_i32(v[e]), multiplier[e], left, right);
        }
    }
    oic_requantized_limits(v, n, within);
}

/* v = n results, of sums of number p. */
static inline void oic_requantized_sums(const oic_requantized *by, uint32_t *v, ptrdiff_t n, ptrdiff_t p,
                                        oic_requantized_range within)
{
    oic_requantized_alike(v, n, by->multiplier[p * by->each], by->shift[p * by->each], by->nearest, within);
}

#endif
