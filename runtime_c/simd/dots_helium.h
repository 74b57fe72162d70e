/* The products of dots.h with Helium, the vectors of Cortex-M55 and later: bytes of four rows at once.  Floats are those of dots_portable.h. */
#include "../version.h"

#include <arm_mve.h>

#define OIC_DOTS_GROUPS 1
#include "dots_portable.h"

/* Sums of 16 bits of four rows, two of each, added up to 32. */
static inline int32x4_t oic_dots_pairs(int32x4_t sum, int16x8_t pairs)
{
    return vaddq_s32(vaddq_s32(sum, vmovlbq_s16(pairs)), vmovltq_s16(pairs));
}

/* Products of four neighbours of four rows, added up to two sums of 16 bits of each row: -128 * -127 twice fits. */
static inline int16x8_t oic_dots_fours(int8x16_t w, int8x16_t x)
{
    return vaddq_s16(vmullbq_int_s8(w, x), vmulltq_int_s8(w, x));
}

/* Four neighbours of x, for each of four rows. */
static inline int8x16_t oic_dots_of(const uint8_t *x)
{
    uint32_t four;
    memcpy(&four, x, sizeof four);
    return vreinterpretq_s8_u32(vdupq_n_u32(four));
}

/* a = start + the products of a row of a group of x with a panel of w. */
OIC_LOOP void oic_dots_panel_8(oic_dots *a, const uint8_t *w, const uint8_t *x, const uint8_t *start)
{
    int32_t from;
    memcpy(&from, start, sizeof from);
    int32x4_t s0 = vdupq_n_s32(from), s1 = s0, s2 = s0, s3 = s0;
    for (const uint8_t *const end = x + OIC_GROUP; x < end; x += 4, w += 64) {
        const int8x16_t four = oic_dots_of(x);
        s0 = oic_dots_pairs(s0, oic_dots_fours(vreinterpretq_s8_u8(vldrbq_u8(w)), four));
        s1 = oic_dots_pairs(s1, oic_dots_fours(vreinterpretq_s8_u8(vldrbq_u8(w + 16)), four));
        s2 = oic_dots_pairs(s2, oic_dots_fours(vreinterpretq_s8_u8(vldrbq_u8(w + 32)), four));
        s3 = oic_dots_pairs(s3, oic_dots_fours(vreinterpretq_s8_u8(vldrbq_u8(w + 48)), four));
    }
    vstrwq_s32(a->v, s0);
    vstrwq_s32(a->v + 4, s1);
    vstrwq_s32(a->v + 8, s2);
    vstrwq_s32(a->v + 12, s3);
}

/* The same for numbers of 0 to 15, of which all products of a group fit sums of 16 bits: 16 times 15 * 127. */
OIC_LOOP void oic_dots_panel_4(oic_dots *a, const uint8_t *w, const uint8_t *x, const uint8_t *start)
{
    int32_t from;
    memcpy(&from, start, sizeof from);
    for (int l = 0; l < OIC_PANEL; l += 4) {
        int16x8_t sum = vdupq_n_s16(0);
        for (int c = 0; c < 4; ++c) {
            const uint8x16_t v = vldrbq_u8(w + 64 * c + 4 * l), low = vandq_u8(v, vdupq_n_u8(15)), high = vshrq_n_u8(v, 4);
            sum = vaddq_s16(sum, oic_dots_fours(vreinterpretq_s8_u8(low), oic_dots_of(x + 4 * c)));
            sum = vaddq_s16(sum, oic_dots_fours(vreinterpretq_s8_u8(high), oic_dots_of(x + 4 * c + 16)));
        }
        vstrwq_s32(a->v + l, oic_dots_pairs(vdupq_n_s32(from), sum));
    }
}

static inline void oic_dots_group_8(oic_dots *a, int R, int P, const uint8_t *w, const uint8_t *x, const uint8_t *start,
                                    ptrdiff_t apart, ptrdiff_t ahead)
{
    (void)ahead;
    for (int i = 0; i < P * R; ++i) {
        oic_dots_panel_8(&a[i], w + i / R * apart, x + i % R * OIC_DOTS_X, start + 4 * (i % R));
    }
}

static inline void oic_dots_group_4(oic_dots *a, int R, int P, const uint8_t *w, const uint8_t *x, const uint8_t *start,
                                    ptrdiff_t apart, ptrdiff_t ahead)
{
    (void)ahead;
    for (int i = 0; i < P * R; ++i) {
        oic_dots_panel_4(&a[i], w + i / R * apart, x + i % R * OIC_DOTS_X, start + 4 * (i % R));
    }
}
