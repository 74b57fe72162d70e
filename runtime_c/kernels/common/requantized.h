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

/* A result. */
static inline uint32_t oic_requantized_one(uint32_t sum, int32_t multiplier, int shift, int nearest, oic_requantized_range within)
{
    const int32_t x = oic_wrap_i32(sum);
    const int32_t scaled = nearest ? oic_scale_nearest(x, multiplier, shift)
                                   : oic_scale_tflite(x, multiplier, oic_shift_of(shift), oic_shift_of(-shift));
    return oic_requantized_limit(scaled, within);
}

/* Results, of which no product saturates, with two roundings. */
static inline oic_register_u32 oic_requantized_some(oic_register_u32 sums, int32_t multiplier, int shift, oic_requantized_range within)
{
    const oic_register_i32 left = oic_register_signed(sums << (uint32_t)oic_shift_of(shift)), by = oic_register_of_i32(multiplier);
    const oic_register_i32 scaled = oic_register_shift_rounded_i32(oic_register_high_half_i32(left, by), oic_shift_of(-shift));
    const oic_register_i32 raised = oic_register_max_i32(scaled, oic_register_of_i32(within.low));
    return oic_register_unsigned(oic_register_min_i32(raised, oic_register_of_i32(within.high))) + within.zero;
}

/* v = n results, of sums that one multiplier and shift scale. */
static inline void oic_requantized_alike(uint32_t *v, ptrdiff_t n, int32_t multiplier, int shift, int nearest,
                                         oic_requantized_range within)
{
    ptrdiff_t e = 0;
    for (; !nearest && multiplier != INT32_MIN && e + OIC_WIDTH <= n; e += OIC_WIDTH) {
        oic_register_u32 some;
        memcpy(&some, v + e, sizeof some);
        some = oic_requantized_some(some, multiplier, shift, within);
        memcpy(v + e, &some, sizeof some);
    }
    for (; e < n; ++e) {
        v[e] = oic_requantized_one(v[e], multiplier, shift, nearest, within);
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

/* to = n results of bytes, of sums of number p. */
static inline void oic_requantized_bytes(const oic_requantized *by, const uint32_t *v, ptrdiff_t n, ptrdiff_t p,
                                         oic_requantized_range within, int8_t *to)
{
    const int32_t multiplier = by->multiplier[p * by->each];
    const int shift = by->shift[p * by->each], plain = by->nearest || multiplier == INT32_MIN || n < OIC_WIDTH;
    for (ptrdiff_t e = 0; !plain && e < n; e += OIC_WIDTH) {
        const ptrdiff_t first = e + OIC_WIDTH <= n ? e : n - OIC_WIDTH; /* the last ones, some of them once more */
        oic_register_u32 some;
        memcpy(&some, v + first, sizeof some);
        oic_register_store_i8(to + first, oic_register_signed(oic_requantized_some(some, multiplier, shift, within)));
    }
    for (ptrdiff_t e = 0; plain && e < n; ++e) {
        to[e] = (int8_t)oic_wrap_i32(oic_requantized_one(v[e], multiplier, shift, by->nearest, within));
    }
}

#endif
