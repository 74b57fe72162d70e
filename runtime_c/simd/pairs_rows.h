/* Products by pairs of bf16 with rows that lie where no panel can be made of them, as keys and values do in a state (the class
   `native`): those of rows.h with the step of pairs.h.  A pair goes as a number of f32, which is nothing but its bits: the first
   of the two is the lower half.

   A dot product is sixteen sums, pair i in sum i mod 16, and their tree.  In a weighted sum of rows a pair is the numbers of two
   neighbouring rows, 2 i and 2 i + 1, in one column, beside the pair of their weights; one of them that has no part in it has zero
   for number and weight, and a pair of which neither has is left out. */
#ifndef OIC_PAIRS_ROWS_H
#define OIC_PAIRS_ROWS_H

#include "../version.h"

#include "pairs.h"
#include "rows.h"

typedef float oic_stored_pairs;
#define OIC_PAIRED_pairs 1
#define OIC_SOME_pairs 1
#define OIC_PANELS_pairs 1
static inline oic_register_f32 oic_row_pairs(const float *p) { return oic_register_load_f32(p); }

static inline oic_register_f32 oic_row_madd_pairs(oic_register_f32 a, oic_register_f32 b, oic_register_f32 sum)
{
    return oic_register_pairs(sum, oic_register_bits_f32(b), oic_register_bits_f32(a));
}

#define OIC_S f32
#define OIC_R pairs
#include "rows_of.inc.h"

/* Pairs of neighbours, rounded to bf16 as the machine does, which may take subnormal numbers for zeros; and pairs of a register
   of numbers of each of two rows. */
#if defined(__AVX512BF16__)
static inline oic_register_f32 oic_register_paired(oic_register_f32 first, oic_register_f32 second)
{
    return (oic_register_f32)_mm512_cvtne2ps_pbh((__m512)second, (__m512)first);
}

static inline oic_register_u32 oic_register_load_two(const uint16_t *first, const uint16_t *second)
{
    typedef uint16_t numbers __attribute__((vector_size(64)));
    const numbers order = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23,
                           8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    const __m512i low = _mm512_castsi256_si512(_mm256_loadu_si256((const void *)first));
    const __m512i both = _mm512_inserti64x4(low, _mm256_loadu_si256((const void *)second), 1);
    return (oic_register_u32)_mm512_permutexvar_epi16((__m512i)order, both);
}
#else
static inline oic_register_f32 oic_register_paired(oic_register_f32 first, oic_register_f32 second)
{
    return (oic_register_f32)vcvtq_high_bf16_f32(vcvtq_low_bf16_f32((float32x4_t)first), (float32x4_t)second);
}

static inline oic_register_u32 oic_register_load_two(const uint16_t *first, const uint16_t *second)
{
    const uint16x4_t even = vld1_u16(first), odd = vld1_u16(second);
    return (oic_register_u32)vzip1q_u16(vcombine_u16(even, even), vcombine_u16(odd, odd));
}
#endif

/* to[16]: the pairs of 32 numbers that follow each other. */
static inline void oic_lanes_rounded(float *restrict to, const float *from)
{
    for (ptrdiff_t i = 0; i < OIC_LANES; i += OIC_WIDTH) {
        const oic_register_f32 first = oic_register_load_f32(from + 2 * i), second = oic_register_load_f32(from + 2 * i + OIC_WIDTH);
        oic_register_store_f32(to + i, oic_register_paired(first, second));
    }
}

/* to[16]: the pairs of sixteen numbers of each of two rows. */
static inline void oic_lanes_paired(float *restrict to, const uint16_t *first, const uint16_t *second)
{
    for (ptrdiff_t d = 0; d < OIC_LANES; d += OIC_WIDTH) {
        oic_register_store_f32(to + d, oic_register_from_bits_f32(oic_register_load_two(first + d, second + d)));
    }
}

/* The constants of exponentials, and pairs of ones. */
OIC_INLINE void oic_exps_paired_begin(oic_register_f32 *restrict c)
{
    uint32_t one = 0x3f803f80u;
    OIC_OPAQUE(one); /* gcc would take an instruction for it that not every machine has which has these */
    oic_exps_begin(c);
    c[OIC_EXP_ALL] = oic_register_from_bits_f32(oic_register_of_u32(one));
}

/* x[n], n being whole lanes, becomes n / 2 pairs of oic_exp_f32(x - top), of numbers that are not above top, or NaN, and as many
   numbers behind them are lost; what pairs add up to, times one: pair i in sum i mod 16. */
OIC_INLINE void oic_exps_paired(float *x, ptrdiff_t n, float top, const oic_register_f32 *restrict c, oic_lanes_f32 *sum)
{
    enum { MANY = 2 * OIC_PARTS_OF_LANES, AT_ONCE = MANY < OIC_EXPS ? MANY : OIC_EXPS };
    oic_lanes_zero_f32(sum);
    for (ptrdiff_t j = 0; j < n; j += 2 * OIC_LANES) {
        oic_register_f32 v[MANY];
        OIC_UNROLLED
        for (int i = 0; i < MANY; ++i) {
            v[i] = j + i * OIC_WIDTH < n ? oic_register_load_f32(x + j + i * OIC_WIDTH) : oic_register_of_f32(-INFINITY);
        }
        OIC_UNROLLED
        for (int i = 0; i < MANY; i += AT_ONCE) {
            oic_exps_of(v + i, AT_ONCE, top, c);
        }
        OIC_UNROLLED
        for (int i = 0; i < MANY; i += 2) {
            const oic_register_f32 pairs = oic_register_paired(v[i], v[i + 1]);
            sum->part[i / 2] = oic_row_madd_pairs(c[OIC_EXP_ALL], pairs, sum->part[i / 2]);
            if (j + i * OIC_WIDTH < n) {
                oic_register_store_f32(x + j / 2 + i / 2 * OIC_WIDTH, pairs);
            }
        }
    }
}

/* Sixteen pairs of it, beside other work. */
OIC_INLINE void oic_exps_paired_some(float *x, ptrdiff_t j, int keep, float top, const oic_register_f32 *restrict c,
                                     oic_lanes_f32 *sum)
{
    oic_register_f32 v[2] = {oic_register_load_f32(x + j), oic_register_load_f32(x + j + OIC_LANES)};
    oic_exps_of(v, 2, top, c);
    v[0] = oic_register_paired(v[0], v[1]);
    sum->part[0] = oic_row_madd_pairs(c[OIC_EXP_ALL], v[0], sum->part[0]);
    if (keep) {
        oic_register_store_f32(x + j / 2, v[0]);
    }
}

#define OIC_R pairs
#define OIC_WEIGHED (2 * OIC_LANES)
#define OIC_EXPS_BEGIN oic_exps_paired_begin
#define OIC_EXPS_ROW oic_exps_paired
#define OIC_EXPS_SOME oic_exps_paired_some
#include "weigh.inc.h"

#define OIC_PAIR_FIRST 0x0000ffffu
#define OIC_PAIR_SECOND 0xffff0000u

/* to[D] += w times v[D], of whose pairs `left` leaves one number, beside a weight of zero; D is whole lanes. */
static inline void oic_weighted_half(float *restrict to, const float *w, const float *v, ptrdiff_t D, uint32_t left)
{
    uint32_t bits;
    memcpy(&bits, w, sizeof bits);
    for (ptrdiff_t d = 0; d < D; d += OIC_WIDTH) {
        const oic_register_u32 numbers = oic_register_bits_f32(oic_register_load_f32(v + d)) & left;
        oic_register_store_f32(to + d, oic_register_pairs(oic_register_load_f32(to + d), numbers, oic_register_of_u32(bits)));
    }
}

/* oic_mix_f32_f32 of pairs: of weights, and of the numbers of n rows, in which borders are given; weights beyond them are zeros. */
OIC_LOOP void oic_mix_pairs(float *restrict to, ptrdiff_t tm, const float *restrict w, ptrdiff_t wm, ptrdiff_t rows, const float *restrict v,
                            ptrdiff_t ld, const ptrdiff_t *from, const ptrdiff_t *end, ptrdiff_t at, ptrdiff_t n, ptrdiff_t D)
{
    enum { SOME = 12 }; /* a multiple of what oic_mix takes at a time */
    for (ptrdiff_t r = 0; r < rows; r += SOME, to += SOME * tm, w += SOME * wm) {
        const ptrdiff_t some = rows - r < SOME ? rows - r : SOME;
        ptrdiff_t lo[SOME], hi[SOME], half[SOME];
        for (ptrdiff_t e = 0; e < some; ++e) {
            hi[e] = end[r + e] - at > n ? n : end[r + e] > at ? end[r + e] - at : 0;
            lo[e] = from[r + e] - at > hi[e] ? hi[e] : from[r + e] > at ? from[r + e] - at : 0;
            half[e] = lo[e] < hi[e] && hi[e] % 2;
            if (lo[e] < hi[e] && lo[e] % 2) {
                oic_weighted_half(to + e * tm, w + e * wm + lo[e] / 2, v + lo[e] / 2 * ld, D, OIC_PAIR_SECOND);
            }
            lo[e] = (lo[e] + 1) / 2;
            hi[e] /= 2;
        }
        oic_mix_f32_pairs(to, tm, w, wm, some, v, ld, lo, hi, 0, n / 2, D);
        for (ptrdiff_t e = 0; e < some; ++e) {
            if (half[e]) {
                oic_weighted_half(to + e * tm, w + e * wm + hi[e], v + hi[e] * ld, D, OIC_PAIR_FIRST);
            }
        }
    }
}

/* to[heads][D] += the pairs w[heads, wm apart] times those of two rows, of which `left` leaves one or both (the weight of the
   other is zero), and in which heads lie side by side; D is whole lanes.  Of memory `ahead` elements further on, each line is
   asked for in order. */
OIC_INLINE void oic_weighted_two(float *restrict to, ptrdiff_t heads, const float *restrict w, ptrdiff_t wm, const uint16_t *first,
                                 const uint16_t *second, uint32_t left, ptrdiff_t D, ptrdiff_t ahead)
{
    uintptr_t at = (uintptr_t)first + (uintptr_t)ahead * sizeof *first, end = at;
    for (ptrdiff_t h = 0; h < heads; ++h, to += D, w += wm, first += D, second += D) {
        uint32_t bits;
        memcpy(&bits, w, sizeof bits);
        const oic_register_u32 all = oic_register_of_u32(bits);
        for (end += 2 * (uintptr_t)D * sizeof *first; at < end; at += 64) {
            OIC_TILE_AHEAD_ROW((const void *)at);
        }
        for (ptrdiff_t d = 0; d < D; d += OIC_WIDTH) {
            const oic_register_u32 numbers = oic_register_load_two(first + d, second + d) & left;
            oic_register_store_f32(to + d, oic_register_pairs(oic_register_load_f32(to + d), numbers, all));
        }
    }
}

/* to[heads][D] += the pairs w[heads, wm apart] times rows lo..hi-1, `ld` apart, in which heads lie side by side; D is whole lanes. */
OIC_LOOP void oic_weighted_pairs_in_turn(float *restrict to, ptrdiff_t heads, const float *restrict w, ptrdiff_t wm,
                                         const uint16_t *restrict row, ptrdiff_t ld, ptrdiff_t lo, ptrdiff_t hi, ptrdiff_t D)
{
    const ptrdiff_t ahead = (oic_row_ahead_f32_bf16(heads * D) + 2) * ld; /* two rows at a time */
    for (ptrdiff_t k = lo - lo % 2; k < hi; k += 2) {
        const uint16_t *const first = row + (k < lo ? lo : k) * ld, *const second = row + (k + 1 < hi ? k + 1 : k) * ld;
        const uint32_t left = k < lo ? OIC_PAIR_SECOND : k + 1 < hi ? UINT32_MAX : OIC_PAIR_FIRST;
        if (left == UINT32_MAX && D == 4 * OIC_LANES) { /* no loops in a head */
            oic_weighted_two(to, heads, w + k / 2, wm, first, second, UINT32_MAX, 4 * OIC_LANES, ahead);
        } else if (left == UINT32_MAX && D == OIC_LANES) {
            oic_weighted_two(to, heads, w + k / 2, wm, first, second, UINT32_MAX, OIC_LANES, ahead);
        } else {
            oic_weighted_two(to, heads, w + k / 2, wm, first, second, left, D, ahead);
        }
    }
}

#endif
