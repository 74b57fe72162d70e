/* Sums of 32 bits scaled to bytes as they are stored, with the results of requantized.h: for machines whose registers hold one number. */
#ifndef OIC_REQUANTIZED_BYTES_H
#define OIC_REQUANTIZED_BYTES_H

#include "../../version.h"

#include "requantized.h"

/* Whether these scale them: with two roundings, to a zero point that no scaled sum takes out of 32 bits. */
static inline int oic_requantized_stores(const oic_requantized *by, oic_requantized_range within)
{
    const int32_t zero = oic_wrap_i32(within.zero);
    return OIC_WIDTH == 1 && !by->nearest && zero >= -32512 && zero <= 32512;
}

#if !defined(OIC_PORTABLE) && defined(__ARM_FEATURE_MVE) && defined(__GNUC__) && !defined(__ARM_BIG_ENDIAN)
/* Four scaled sums: as oic_scale_tflite. */
static inline int32x4_t oic_requantized_four(int32x4_t sum, int32x4_t multiplier, int32x4_t shift)
{
    const int32x4_t none = vdupq_n_s32(0);
    const int32x4_t left = vminq_s32(vmaxq_s32(shift, none), vdupq_n_s32(31));
    const int32x4_t right = vmaxq_s32(vminq_s32(shift, none), vdupq_n_s32(-31)); /* as it is given: less than 0 */
    const int32x4_t high = vqrdmulhq_s32(vshlq_s32(sum, left), multiplier);
    const int32x4_t away = vshrq_n_s32(vandq_s32(high, right), 31); /* -1 where what is shifted is negative: halves go down */
    return vrshlq_s32(vaddq_s32(high, away), right);
}

/* y[l step], bytes with a sign or without one, = n sums, and what b has for them (NULL: nothing), scaled: all as number p, or each as
   one more. */
OIC_LOOP void oic_requantized_store(const oic_requantized *by, uint32_t *restrict sum, const int32_t *b, ptrdiff_t n, ptrdiff_t p,
                                    int each, oic_requantized_range within, uint8_t *y, ptrdiff_t step)
{
    const int32x4_t low = vdupq_n_s32(within.low), high = vdupq_n_s32(within.high);
    const uint32x4_t places = vmulq_n_u32(vidupq_n_u32(0, 1), (uint32_t)step);
    int32x4_t multiplier = vdupq_n_s32(by->multiplier[p * by->each]), shift = vdupq_n_s32(by->shift[p * by->each]);
    for (ptrdiff_t e = 0; e < n; e += 4, y += 4 * step) {
        const mve_pred16_t some = vctp32q((uint32_t)(n - e));
        int32x4_t v = vreinterpretq_s32_u32(vldrwq_z_u32(sum + e, some));
        if (each && by->each) {
            multiplier = vldrwq_z_s32(by->multiplier + p + e, some);
            shift = vldrbq_z_s32(by->shift + p + e, some);
        }
        if (b != NULL) {
            v = vaddq_s32(v, vldrwq_z_s32(b + e, some));
        }
        v = vminq_s32(vmaxq_s32(oic_requantized_four(v, multiplier, shift), low), high);
        v = vaddq_n_s32(v, oic_wrap_i32(within.zero));
        vstrbq_scatter_offset_p_s32((int8_t *)y, places, v, some);
    }
}
#else
/* v within the bytes that have a sign. */
static inline int32_t oic_limited_byte(int32_t v)
{
#if !defined(OIC_PORTABLE) && defined(__ARM_FEATURE_SAT) && defined(__GNUC__)
    __asm__("ssat %0, #8, %1" : "=r"(v) : "r"(v)); /* gcc adds to both bounds what comes next, and then has none to limit to */
    return v;
#else
    return v < -128 ? -128 : v > 127 ? 127 : v;
#endif
}

/* What is seldom: not scaled down.  A scaled sum, in its range. */
OIC_LOOP int32_t oic_requantized_other(uint32_t sum, int32_t multiplier, int shift, const oic_requantized_range *within)
{
    const int32_t scaled = oic_scale_tflite(oic_wrap_i32(sum), multiplier, shift);
    return scaled < within->low ? within->low : scaled > within->high ? within->high : scaled;
}

/* y[l step], bytes with a sign or without one, = n sums, and what b has for them (NULL: nothing), scaled: all as number p, or each as
   one more. */
OIC_LOOP void oic_requantized_store(const oic_requantized *by, uint32_t *restrict sum, const int32_t *b, ptrdiff_t n, ptrdiff_t p,
                                    int each, oic_requantized_range within, uint8_t *restrict y, ptrdiff_t step)
{
    const int32_t byte = oic_wrap_i32(within.zero + (uint32_t)within.low) + 128; /* 128 of bytes without a sign, else 0 */
    const int32_t more = oic_wrap_i32(within.zero) - byte;
    const int32_t *const multiplier = by->multiplier + p * by->each, by_all = *multiplier;
    const int8_t *const shift = by->shift + p * by->each;
    const int shift_all = *shift;
    for (ptrdiff_t e = 0; b != NULL && e < n; ++e) {
        sum[e] += (uint32_t)b[e];
    }
    if (each && by->each) {
        for (ptrdiff_t e = 0; e < n; ++e, y += step) {
            const int32_t v = oic_is_down(shift[e]) ? oic_scale_down(oic_wrap_i32(sum[e]), multiplier[e], -shift[e])
                                                    : oic_requantized_other(sum[e], multiplier[e], shift[e], &within);
            *y = (uint8_t)(oic_limited_byte(v + more) + byte);
        }
    } else if (oic_is_down(shift_all)) {
        for (ptrdiff_t e = 0; e < n; ++e, y += step) {
            *y = (uint8_t)(oic_limited_byte(oic_scale_down(oic_wrap_i32(sum[e]), by_all, -shift_all) + more) + byte);
        }
    } else {
        for (ptrdiff_t e = 0; e < n; ++e, y += step) {
            *y = (uint8_t)(oic_limited_byte(oic_requantized_other(sum[e], by_all, shift_all, &within) + more) + byte);
        }
    }
}
#endif

#endif
