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
    int32_t a[OIC_BYTE_ROWS] = {0};
    for (ptrdiff_t k = 0; k < K; k += 16) { /* lanes behind the last are 0 */
        const mve_pred16_t some = vctp8q((uint32_t)(K - k));
        const int8x16_t from = vldrbq_z_s8(x + k, some);
        OIC_UNROLLED
        for (int r = 0; r < OIC_BYTE_ROWS; ++r) {
            a[r] = vmladavaq_s8(a[r], from, vldrbq_z_s8(w + r * ldw + k, some)); /* wraps */
        }
    }
    memcpy(sum, a, sizeof a);
    return K;
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

static inline ptrdiff_t oic_bytes_first(uint32_t *restrict sum, const int8_t *x, const int8_t *w, ptrdiff_t ldw, ptrdiff_t K)
{
    const ptrdiff_t whole = K & ~(ptrdiff_t)3;
    const int8_t *const end = x + whole, *v = w + 2 * ldw; /* no more addresses than there are registers for */
    int32_t a = 0, b = 0, c = 0, d = 0;
    for (; x < end; x += 4, w += 4, v += 4) {
        int8x4_t four;
        memcpy(&four, x, sizeof four);
        const int16x2_t even = __sxtb16(four), odd = oic_bytes_odd(four);
        a = oic_bytes_four(w, even, odd, a);
        b = oic_bytes_four(w + ldw, even, odd, b);
        c = oic_bytes_four(v, even, odd, c);
        d = oic_bytes_four(v + ldw, even, odd, d);
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
static inline void oic_byte_taps(uint32_t *restrict sum, ptrdiff_t m, const int8_t *x, ptrdiff_t step, const int8_t *w, ptrdiff_t n,
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

#endif
