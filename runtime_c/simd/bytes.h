/* Sums of products of signed bytes along rows, modulo 2^32. */
#ifndef OIC_BYTES_H
#define OIC_BYTES_H

#include "../version.h"

#include "../num.h"
#include "tiles.h"

#define OIC_BYTE_ROWS 4 /* rows of w at a time */

#if !defined(OIC_PORTABLE) && defined(__AVX2__) && defined(__GNUC__)
#include <immintrin.h>

/* Sixteen bytes, widened to 16 bits: the sum of two products fits 32. */
static inline __m256i oic_bytes_wide(const int8_t *from)
{
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)from));
}

/* The products of the first numbers of x with those of rows of w, which lie ldw apart; how many, at most K. */
static inline ptrdiff_t oic_bytes_first(uint32_t *restrict sum, const int8_t *x, const int8_t *w, ptrdiff_t ldw, ptrdiff_t K)
{
    const ptrdiff_t whole = K / 16 * 16;
    __m256i a[OIC_BYTE_ROWS];
    for (int r = 0; r < OIC_BYTE_ROWS; ++r) {
        a[r] = _mm256_setzero_si256();
    }
    for (ptrdiff_t k = 0; k < whole; k += 16) {
        const __m256i wide = oic_bytes_wide(x + k);
        for (int r = 0; r < OIC_BYTE_ROWS; ++r) {
            a[r] = _mm256_add_epi32(a[r], _mm256_madd_epi16(wide, oic_bytes_wide(w + r * ldw + k)));
        }
    }
    const __m256i pairs = _mm256_hadd_epi32(_mm256_hadd_epi32(a[0], a[1]), _mm256_hadd_epi32(a[2], a[3]));
    const __m128i all = _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
    _mm_storeu_si128((__m128i *)(void *)sum, all);
    return whole;
}
#elif !defined(OIC_PORTABLE) && defined(__ARM_FEATURE_MVE) && defined(__GNUC__) && !defined(__ARM_BIG_ENDIAN)
#include <arm_mve.h>

static inline ptrdiff_t oic_bytes_first(uint32_t *restrict sum, const int8_t *x, const int8_t *w, ptrdiff_t ldw, ptrdiff_t K)
{
    const int8_t *const end = x + (K & ~(ptrdiff_t)15);
    const int8_t *w1 = w + ldw, *w2 = w1 + ldw, *w3 = w2 + ldw;
    int32_t a = 0, b = 0, c = 0, d = 0;
    for (; x < end; x += 16, w += 16, w1 += 16, w2 += 16, w3 += 16) {
        const int8x16_t from = vldrbq_s8(x);
        a = vmladavaq_s8(a, from, vldrbq_s8(w)); /* wraps */
        b = vmladavaq_s8(b, from, vldrbq_s8(w1));
        c = vmladavaq_s8(c, from, vldrbq_s8(w2));
        d = vmladavaq_s8(d, from, vldrbq_s8(w3));
    }
    if (K % 16 > 0) { /* lanes behind the last are 0 */
        const mve_pred16_t some = vctp8q((uint32_t)(K % 16));
        const int8x16_t from = vldrbq_z_s8(x, some);
        a = vmladavaq_s8(a, from, vldrbq_z_s8(w, some));
        b = vmladavaq_s8(b, from, vldrbq_z_s8(w1, some));
        c = vmladavaq_s8(c, from, vldrbq_z_s8(w2, some));
        d = vmladavaq_s8(d, from, vldrbq_z_s8(w3, some));
    }
    sum[0] = (uint32_t)a;
    sum[1] = (uint32_t)b;
    sum[2] = (uint32_t)c;
    sum[3] = (uint32_t)d;
    return K;
}

#define OIC_BYTE_DOT 1
static inline uint32_t oic_byte_dot(const int8_t *x, const int8_t *w, ptrdiff_t K)
{
    int32_t sum = 0;
    for (; K > 0; K -= 16, x += 16, w += 16) {
        const mve_pred16_t some = vctp8q((uint32_t)K);
        sum = vmladavaq_s8(sum, vldrbq_z_s8(x, some), vldrbq_z_s8(w, some)); /* wraps */
    }
    return (uint32_t)sum;
}

/* Four sums of oic_byte_windows, of which those of `some` are stored; places: where their numbers begin in x, NULL: side by side. */
static inline void oic_byte_windows_four(uint32_t *sum, mve_pred16_t some, uint32_t b, const int8_t *x, const uint32x4_t *places,
                                         ptrdiff_t wide, const int8_t *w, ptrdiff_t taps_y, ptrdiff_t taps_x, ptrdiff_t apart)
{
    int32x4_t a = vdupq_n_s32((int32_t)b);
    for (ptrdiff_t ky = 0; ky < taps_y; ++ky, x += wide) {
        const int8_t *from = x;
        for (ptrdiff_t kx = 0; kx < taps_x; ++kx, from += apart) {
            const int32x4_t v = places == NULL ? vldrbq_z_s32(from, some) : vldrbq_gather_offset_z_s32(from, *places, some);
            a = vmlaq_n_s32(a, v, *w++); /* wraps */
        }
    }
    vstrwq_p_u32(sum, vreinterpretq_u32_s32(a), some);
}

#define OIC_BYTE_WINDOWS 1
OIC_LOOP void oic_byte_windows(uint32_t *restrict sum, ptrdiff_t m, uint32_t b, const int8_t *x, ptrdiff_t step, ptrdiff_t wide,
                               const int8_t *w, ptrdiff_t taps_y, ptrdiff_t taps_x, ptrdiff_t apart)
{
    const uint32x4_t places = vmulq_n_u32(vidupq_n_u32(0, 1), (uint32_t)step);
    for (ptrdiff_t e = 0; step == 1 && e < m; e += 4) {
        oic_byte_windows_four(sum + e, vctp32q((uint32_t)(m - e)), b, x + e, NULL, wide, w, taps_y, taps_x, apart);
    }
    for (ptrdiff_t e = 0; step != 1 && e < m; e += 4) {
        oic_byte_windows_four(sum + e, vctp32q((uint32_t)(m - e)), b, x + e * step, &places, wide, w, taps_y, taps_x, apart);
    }
}
#elif !defined(OIC_PORTABLE) && defined(__ARM_FEATURE_SIMD32) && defined(__GNUC__) && !defined(__ARM_BIG_ENDIAN)
#include <arm_acle.h>

/* Of four bytes, those of places 1 and 3, widened to 16 bits. */
static inline int16x2_t oic_bytes_odd(int8x4_t four)
{
    int16x2_t odd;
    __asm__("sxtb16 %0, %1, ror #8" : "=r"(odd) : "r"(four)); /* gcc rotates first */
    return odd;
}

/* sum + the products of four bytes with four others, widened. */
static inline int32_t oic_bytes_four(const int8_t *w, int16x2_t even, int16x2_t odd, int32_t sum)
{
    int8x4_t four;
    memcpy(&four, w, sizeof four);
    return __smlad(oic_bytes_odd(four), odd, __smlad(__sxtb16(four), even, sum)); /* wraps */
}

/* What lies at w is read once the sum is made: compilers otherwise read all rows at once, and have too few registers. */
#define OIC_BYTES_AFTER(w, sum) __asm__("" : "+r"(w), "+r"(sum))

static inline ptrdiff_t oic_bytes_first(uint32_t *restrict sum, const int8_t *x, const int8_t *w, ptrdiff_t ldw, ptrdiff_t K)
{
    const ptrdiff_t whole = K & ~(ptrdiff_t)3;
    const int8_t *const end = x + whole, *v = w + 2 * ldw; /* no more addresses than there are registers for */
    int32_t a = 0, b = 0, c = 0, d = 0;
    while (x < end) {
        int8x4_t four;
        memcpy(&four, x, sizeof four);
        const int16x2_t even = __sxtb16(four), odd = oic_bytes_odd(four);
        x += 4;
        b = oic_bytes_four(w + ldw, even, odd, b);
        OIC_BYTES_AFTER(w, b);
        a = oic_bytes_four(w, even, odd, a);
        w += 4;
        OIC_BYTES_AFTER(v, a);
        d = oic_bytes_four(v + ldw, even, odd, d);
        OIC_BYTES_AFTER(v, d);
        c = oic_bytes_four(v, even, odd, c);
        v += 4;
    }
    sum[0] = (uint32_t)a;
    sum[1] = (uint32_t)b;
    sum[2] = (uint32_t)c;
    sum[3] = (uint32_t)d;
    return whole;
}

#define OIC_BYTE_FOUR_TAPS 1
static inline void oic_byte_four_taps(uint32_t *restrict sum, ptrdiff_t m, const int8_t *x, ptrdiff_t step, const int8_t *w)
{
    int8x4_t four;
    memcpy(&four, w, sizeof four);
    const int16x2_t even = __sxtb16(four), odd = oic_bytes_odd(four);
    for (ptrdiff_t e = 0; e < m; ++e, x += step) {
        sum[e] = (uint32_t)oic_bytes_four(x, even, odd, (int32_t)sum[e]);
    }
}

#define OIC_BYTE_DOT 1
static inline uint32_t oic_byte_dot(const int8_t *x, const int8_t *w, ptrdiff_t K)
{
    int32_t sum = 0;
    for (; K >= 4; K -= 4, x += 4, w += 4) {
        int8x4_t four;
        memcpy(&four, x, sizeof four);
        sum = oic_bytes_four(w, __sxtb16(four), oic_bytes_odd(four), sum);
    }
    for (; K > 0; --K) {
        sum = __smlabb(*x++, *w++, sum);
    }
    return (uint32_t)sum;
}

/* Two neighbouring numbers of 16 bits. */
static inline int16x2_t oic_bytes_pair(int8_t low, int8_t high)
{
    return (int16x2_t)((uint32_t)(uint16_t)low | (uint32_t)(uint16_t)high << 16);
}

/* Of four neighbours x, a[0] + the products of the first three with three taps, a[1] + those of the last three: `sides` are the first
   and the last tap. */
static inline void oic_bytes_three(int32_t *a, const int8_t *x, int16x2_t sides, int32_t middle)
{
    int8x4_t four;
    memcpy(&four, x, sizeof four);
    const int16x2_t even = __sxtb16(four), odd = oic_bytes_odd(four);
    a[0] = __smlabb((int32_t)odd, middle, __smlad(even, sides, a[0])); /* wraps */
    a[1] = __smlatb((int32_t)even, middle, __smlad(odd, sides, a[1]));
}

#define OIC_BYTE_NINE_TAPS 1
/* See oic_byte_windows: the first of m sums of three rows of three taps; how many. */
static inline ptrdiff_t oic_byte_nine_taps(uint32_t *restrict sum, ptrdiff_t m, uint32_t b, const int8_t *x, ptrdiff_t wide, const int8_t *w)
{
    const int16x2_t top = oic_bytes_pair(w[0], w[2]), next = oic_bytes_pair(w[3], w[5]), last = oic_bytes_pair(w[6], w[8]);
    const int32_t top_middle = w[1], next_middle = w[4], last_middle = w[7];
    const ptrdiff_t whole = m & ~(ptrdiff_t)1;
    for (const uint32_t *const end = sum + whole; sum < end; sum += 2, x += 2) {
        int32_t a[2] = {(int32_t)b, (int32_t)b};
        oic_bytes_three(a, x, top, top_middle);
        oic_bytes_three(a, x + wide, next, next_middle);
        oic_bytes_three(a, x + 2 * wide, last, last_middle);
        sum[0] = (uint32_t)a[0];
        sum[1] = (uint32_t)a[1];
    }
    return whole;
}
#elif defined(__thumb__) && !defined(__thumb2__)
/* Eight registers: two rows at a time. */
static inline ptrdiff_t oic_bytes_first(uint32_t *restrict sum, const int8_t *x, const int8_t *w, ptrdiff_t ldw, ptrdiff_t K)
{
    for (int r = 0; r < OIC_BYTE_ROWS; r += 2, w += 2 * ldw) {
        const int8_t *const v = w + ldw;
        uint32_t a = 0, b = 0;
        for (ptrdiff_t k = 0; k < K; ++k) {
            const int32_t of = x[k];
            a += (uint32_t)(of * w[k]);
            b += (uint32_t)(of * v[k]);
        }
        sum[r] = a;
        sum[r + 1] = b;
    }
    return K;
}
#else
static inline ptrdiff_t oic_bytes_first(uint32_t *restrict sum, const int8_t *x, const int8_t *w, ptrdiff_t ldw, ptrdiff_t K)
{
    (void)x;
    (void)w;
    (void)ldw;
    (void)K;
    memset(sum, 0, OIC_BYTE_ROWS * sizeof *sum);
    return 0;
}
#endif

#if !defined(OIC_BYTE_DOT)
/* The products of x[K] with w. */
static inline uint32_t oic_byte_dot(const int8_t *x, const int8_t *w, ptrdiff_t K)
{
    uint32_t sum = 0;
    for (ptrdiff_t k = 0; k < K; ++k) {
        sum += (uint32_t)(x[k] * w[k]);
    }
    return sum;
}
#endif

/* sum[OIC_BYTE_ROWS] = the products of x[K] with rows of w. */
OIC_LOOP void oic_byte_rows(uint32_t *restrict sum, const int8_t *x, const int8_t *w, ptrdiff_t ldw, ptrdiff_t K)
{
    for (ptrdiff_t k = oic_bytes_first(sum, x, w, ldw, K); k < K; ++k) {
        sum[0] += (uint32_t)(x[k] * w[k]);
        sum[1] += (uint32_t)(x[k] * w[ldw + k]);
        sum[2] += (uint32_t)(x[k] * w[2 * ldw + k]);
        sum[3] += (uint32_t)(x[k] * w[3 * ldw + k]);
    }
}

#if !defined(OIC_BYTE_FOUR_TAPS)
static inline void oic_byte_four_taps(uint32_t *restrict sum, ptrdiff_t m, const int8_t *x, ptrdiff_t step, const int8_t *w)
{
    const int32_t p = w[0], q = w[1], r = w[2], s = w[3];
    for (ptrdiff_t e = 0; e < m; ++e, x += step) {
        sum[e] += (uint32_t)(p * x[0] + q * x[1] + r * x[2] + s * x[3]);
    }
}
#endif

/* sum[m] += the products of n taps at w with numbers of x, which are `apart` for a sum and begin `step` apart. */
OIC_LOOP void oic_byte_taps(uint32_t *restrict sum, ptrdiff_t m, const int8_t *x, ptrdiff_t step, const int8_t *w, ptrdiff_t n,
                            ptrdiff_t apart)
{
    ptrdiff_t k = 0;
    for (; apart == 1 && n - k >= 4; k += 4) {
        oic_byte_four_taps(sum, m, x + k, step, w + k);
    }
    if (apart == 1 && n - k == 3) { /* windows of three are the most frequent */
        const int32_t p = w[k], q = w[k + 1], r = w[k + 2];
        const int8_t *from = x + k;
        for (ptrdiff_t e = 0; e < m; ++e, from += step) {
            sum[e] += (uint32_t)(p * from[0] + q * from[1] + r * from[2]);
        }
        return;
    }
    for (; k < n; ++k) {
        const int8_t *from = x + k * apart;
        for (ptrdiff_t e = 0; e < m; ++e, from += step) {
            sum[e] += (uint32_t)(w[k] * *from);
        }
    }
}

#if !defined(OIC_BYTE_WINDOWS)
/* sum[m] = b + the products of taps_y rows of taps at w with rows of x that are `wide` apart, each as oic_byte_taps. */
static inline void oic_byte_windows(uint32_t *restrict sum, ptrdiff_t m, uint32_t b, const int8_t *x, ptrdiff_t step, ptrdiff_t wide,
                                    const int8_t *w, ptrdiff_t taps_y, ptrdiff_t taps_x, ptrdiff_t apart)
{
    ptrdiff_t done = 0;
#if defined(OIC_BYTE_NINE_TAPS)
    done = taps_y == 3 && taps_x == 3 && step == 1 && apart == 1 ? oic_byte_nine_taps(sum, m, b, x, wide, w) : 0;
#endif
    for (ptrdiff_t e = done; e < m; ++e) {
        sum[e] = b;
    }
    for (ptrdiff_t ky = 0; ky < taps_y && done < m; ++ky) {
        oic_byte_taps(sum + done, m - done, x + done * step + ky * wide, step, w + ky * taps_x, taps_x, apart);
    }
}
#endif

#endif
