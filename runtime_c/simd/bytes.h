/* Sums of products of signed bytes along rows, modulo 2^32. */
#ifndef OIC_BYTES_H
#define OIC_BYTES_H

#include "../version.h"

#include "../num.h"

#define OIC_BYTE_ROWS 4 /* rows of w at a time */

#if defined(__AVX2__) && defined(__GNUC__)
#include <immintrin.h>

/* Sixteen bytes, widened to 16 bits: the sum of two products fits 32. */
static inline __m256i oic_bytes_wide(const int8_t *from)
{
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)from));
}

/* The products of the first numbers of x with those of rows of w, which lie ldw apart; how many, at most K. */
static inline ptrdiff_t oic_bytes_first(uint32_t *restrict sum, const int8_t *x, const int8_t *w, ptrdiff_t ldw, ptrdiff_t K)
{
    __m256i a[OIC_BYTE_ROWS];
    ptrdiff_t k = 0;
    for (int r = 0; r < OIC_BYTE_ROWS; ++r) {
        a[r] = _mm256_setzero_si256();
    }
    for (; K - k >= 16; k += 16) {
        const __m256i wide = oic_bytes_wide(x + k);
        for (int r = 0; r < OIC_BYTE_ROWS; ++r) {
            a[r] = _mm256_add_epi32(a[r], _mm256_madd_epi16(wide, oic_bytes_wide(w + r * ldw + k)));
        }
    }
    const __m256i pairs = _mm256_hadd_epi32(_mm256_hadd_epi32(a[0], a[1]), _mm256_hadd_epi32(a[2], a[3]));
    const __m128i all = _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
    _mm_storeu_si128((__m128i *)(void *)sum, all);
    return k;
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
static inline void oic_byte_rows(uint32_t *restrict sum, const int8_t *x, const int8_t *w, ptrdiff_t ldw, ptrdiff_t K)
{
    const ptrdiff_t first = oic_bytes_first(sum, x, w, ldw, K);
    for (int r = 0; r < OIC_BYTE_ROWS; ++r) {
        uint32_t total = sum[r];
        for (ptrdiff_t k = first; k < K; ++k) {
            total += (uint32_t)(x[k] * w[r * ldw + k]);
        }
        sum[r] = total;
    }
}

#endif
