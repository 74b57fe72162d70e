/* Sums of 32 bits scaled to integers of fewer, as oic_requantize does. */
#ifndef OIC_REQUANTIZED_H
#define OIC_REQUANTIZED_H

#include "../../version.h"

#include "../../math/fixed_point.h"
#include "../../simd/tiles.h"

#include <stddef.h>
#include <stdint.h>

/* Lanes are shifted by numbers of their own in one instruction. */
#if OIC_WIDTH >= 8
#define OIC_SHIFTS_EACH 1
#else
#define OIC_SHIFTS_EACH 0
#endif

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

/* Scaled sums, of which no product saturates, with two roundings. */
static inline oic_register_i32 oic_requantized_scaled(oic_register_u32 sums, int32_t multiplier, int shift)
{
    const oic_register_i32 left = oic_register_signed(sums << (uint32_t)oic_shift_of(shift)), by = oic_register_of_i32(multiplier);
    return oic_register_shift_rounded_i32(oic_register_high_half_i32(left, by), oic_shift_of(-shift));
}

/* The same, of a multiplier and a shift each. */
OIC_INLINE oic_register_i32 oic_requantized_scaled_each(oic_register_u32 sums, oic_register_i32 multiplier, oic_register_i32 shift)
{
    const oic_register_i32 none = oic_register_of_i32(0), most = oic_register_of_i32(31), least = oic_register_of_i32(INT32_MIN);
    const oic_register_i32 left = oic_register_min_i32(oic_register_max_i32(shift, none), most);
    const oic_register_i32 down = oic_register_min_i32(oic_register_max_i32(none - shift, none), most);
    const oic_register_u32 right = oic_register_unsigned(down), half = (oic_register_of_u32(1u) << right) >> 1;
    const oic_register_i32 x = oic_register_signed(sums << oic_register_unsigned(left));
    const oic_mask over = oic_mask_and(oic_register_equal_i32(x, least), oic_register_equal_i32(multiplier, least));
    const oic_register_u32 product = oic_register_unsigned(oic_register_high_half_i32(x, multiplier));
    const oic_register_u32 bits = oic_register_select_u32(over, oic_register_of_u32(INT32_MAX), product);
    const oic_register_u32 sign = 0u - (bits >> 31), size = (bits ^ sign) - sign;
    return oic_register_signed((((size + half) >> right) ^ sign) - sign);
}

/* Scaled sums, in their range, plus the zero point. */
static inline oic_register_u32 oic_requantized_limited(oic_register_i32 scaled, oic_requantized_range within)
{
    const oic_register_i32 raised = oic_register_max_i32(scaled, oic_register_of_i32(within.low));
    return oic_register_unsigned(oic_register_min_i32(raised, oic_register_of_i32(within.high))) + within.zero;
}

/* v = n results, of sums that one multiplier and shift scale. */
static inline void oic_requantized_alike(uint32_t *v, ptrdiff_t n, int32_t multiplier, int shift, int nearest,
                                         oic_requantized_range within)
{
    ptrdiff_t e = 0;
    if (nearest) { /* loops of their own, which become vector code */
        for (; e < n; ++e) {
            v[e] = (uint32_t)oic_scale_nearest(oic_wrap_i32(v[e]), multiplier, shift);
        }
        oic_requantized_limits(v, n, within);
    }
    for (; OIC_WIDTH > 1 && multiplier != INT32_MIN && e + OIC_WIDTH <= n; e += OIC_WIDTH) {
        oic_register_u32 sums;
        memcpy(&sums, v + e, sizeof sums);
        const oic_register_u32 some = oic_requantized_limited(oic_requantized_scaled(sums, multiplier, shift), within);
        memcpy(v + e, &some, sizeof some);
    }
    for (; e < n; ++e) {
        v[e] = oic_requantized_limit(oic_scale_tflite(oic_wrap_i32(v[e]), multiplier, shift), within);
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
    ptrdiff_t e = 0;
    if (by->nearest) {
        for (; e < n; ++e) {
            v[e] = (uint32_t)oic_scale_nearest(oic_wrap_i32(v[e]), multiplier[e], shift[e]);
        }
        oic_requantized_limits(v, n, within);
        return;
    }
    for (; OIC_SHIFTS_EACH && e + OIC_WIDTH <= n; e += OIC_WIDTH) {
        const oic_register_i32 by_them = oic_register_load_i32(multiplier + e), moved = oic_register_load_i8(shift + e);
        oic_register_u32 sums;
        memcpy(&sums, v + e, sizeof sums);
        sums = oic_requantized_limited(oic_requantized_scaled_each(sums, by_them, moved), within);
        memcpy(v + e, &sums, sizeof sums);
    }
    for (; e < n; ++e) {
        v[e] = oic_requantized_limit(oic_scale_tflite(oic_wrap_i32(v[e]), multiplier[e], shift[e]), within);
    }
}

/* v = n results, of sums of number p. */
static inline void oic_requantized_sums(const oic_requantized *by, uint32_t *v, ptrdiff_t n, ptrdiff_t p,
                                        oic_requantized_range within)
{
    oic_requantized_alike(v, n, by->multiplier[p * by->each], by->shift[p * by->each], by->nearest, within);
}

/* Whether oic_requantized_bytes scales sums of number p. */
static inline int oic_requantized_to_bytes(const oic_requantized *by, ptrdiff_t p, oic_requantized_range within)
{
    const int32_t zero = oic_wrap_i32(within.zero);
    return !by->nearest && by->multiplier[p * by->each] != INT32_MIN && zero >= -32512 && zero <= 32512;
}

/* to = n results that are bytes, with a sign or without one, of `count` registers of sums, at most four. */
OIC_INLINE void oic_requantized_some(int count, const oic_register_u32 *sums, ptrdiff_t n, int32_t multiplier, int shift,
                                     int32_t zero, int sign, uint8_t *to)
{
    oic_register_i32 scaled[4];
    OIC_UNROLLED
    for (int i = 0; i < 4; ++i) {
        scaled[i] = i < count ? oic_requantized_scaled(sums[i], multiplier, shift) : oic_register_of_i32(0);
    }
    if (n == 4 * OIC_WIDTH) {
        oic_register_store_limited(to, scaled, (int16_t)zero, sign);
        return;
    }
#if defined(OIC_STORES_SOME)
    oic_register_store_limited_some(to, scaled, (int16_t)zero, sign, n);
#else
    uint8_t bytes[4 * OIC_WIDTH];
    oic_register_store_limited(bytes, scaled, (int16_t)zero, sign);
    memcpy(to, bytes, (size_t)n);
#endif
}

/* to = n results that are all bytes with a sign, or without one, of sums of number p. */
static inline void oic_requantized_bytes(const oic_requantized *by, const uint32_t *v, ptrdiff_t n, ptrdiff_t p,
                                         oic_requantized_range within, int sign, uint8_t *to)
{
    enum { FOUR = 4 * OIC_WIDTH };
    const int32_t multiplier = by->multiplier[p * by->each], zero = oic_wrap_i32(within.zero);
    const int shift = by->shift[p * by->each];
    if (n > 0 && n < FOUR) {
        oic_register_u32 few[4];
        memset(few, 0, sizeof few);
        memcpy(few, v, (size_t)n * sizeof *v);
        oic_requantized_some(4, few, n, multiplier, shift, zero, sign, to);
        return;
    }
    for (ptrdiff_t e = 0; e < n; e += FOUR) {
        const ptrdiff_t first = e + FOUR <= n ? e : n - FOUR; /* the last ones, some of them once more */
        oic_register_u32 sums[4];
        OIC_UNROLLED
        for (int i = 0; i < 4; ++i) {
            memcpy(&sums[i], v + first + i * OIC_WIDTH, sizeof *sums);
        }
        oic_requantized_some(4, sums, FOUR, multiplier, shift, zero, sign, to + first);
    }
}

#endif
