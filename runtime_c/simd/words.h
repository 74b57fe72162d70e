/* Exact sums of products of small integers, modulo 2^32, sixteen side by side.

   A word is 32 bits that hold OIC_WORD neighbours of a sum: four bytes where a machine multiplies four at once, else two
   numbers of 16 bits.  The products of a word of x and one of w are added to a sum.  Numbers of x are those of bytes from -128
   to 127, and so are w's; where an instruction takes unsigned ones, those of w lie 128 higher, and a sum starts 128 times
   those of x lower. */
#ifndef OIC_WORDS_H
#define OIC_WORDS_H

#include "../version.h"

#include "../num.h"
#include "tiles.h"

#if defined(OIC_PORTABLE) || !defined(__GNUC__)
#define OIC_WORD 2
#define WORDS_PARTS 16
#define OIC_WORD_ROWS 1 /* of x that go through words of w together: as many as registers can hold the sums of */
typedef uint32_t oic_words;

static inline oic_words oic_words_of(uint32_t x)
{
    return x;
}

static inline oic_words oic_words_load(const uint32_t *from)
{
    return *from;
}

static inline oic_words oic_words_madd(oic_words sum, oic_words w, oic_words x)
{
    const int32_t low = (int16_t)(uint16_t)x * (int16_t)(uint16_t)w, high = (int16_t)(uint16_t)(x >> 16) * (int16_t)(uint16_t)(w >> 16);
    return sum + (uint32_t)low + (uint32_t)high;
}
#elif defined(__AVX512VNNI__)
#include <immintrin.h>

#define OIC_WORD 4
#define OIC_WORD_BIAS 1
#define WORDS_PARTS 1
#define OIC_WORD_ROWS 12
typedef __m512i oic_words;

static inline oic_words oic_words_of(uint32_t x)
{
    return _mm512_set1_epi32((int32_t)x);
}

static inline oic_words oic_words_load(const uint32_t *from)
{
    return _mm512_loadu_si512((const void *)from);
}

static inline oic_words oic_words_madd(oic_words sum, oic_words w, oic_words x)
{
    return _mm512_dpbusd_epi32(sum, w, x);
}
#elif defined(__AVX2__)
#include <immintrin.h>

#if defined(__AVXVNNI__)
#define OIC_WORD 4
#define OIC_WORD_BIAS 1
#else
#define OIC_WORD 2
#endif
#define WORDS_PARTS 2
#define OIC_WORD_ROWS 6
typedef __m256i oic_words;

static inline oic_words oic_words_of(uint32_t x)
{
    return _mm256_set1_epi32((int32_t)x);
}

static inline oic_words oic_words_load(const uint32_t *from)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)from);
}

static inline oic_words oic_words_madd(oic_words sum, oic_words w, oic_words x)
{
#if defined(__AVXVNNI__)
    return _mm256_dpbusd_avx_epi32(sum, w, x);
#else
    return _mm256_add_epi32(sum, _mm256_madd_epi16(w, x));
#endif
}
#elif defined(__SSE2__)
#include <emmintrin.h>

#define OIC_WORD 2
#define WORDS_PARTS 4
#define OIC_WORD_ROWS 3
typedef __m128i oic_words;

static inline oic_words oic_words_of(uint32_t x)
{
    return _mm_set1_epi32((int32_t)x);
}

static inline oic_words oic_words_load(const uint32_t *from)
{
    return _mm_loadu_si128((const __m128i *)(const void *)from);
}

static inline oic_words oic_words_madd(oic_words sum, oic_words w, oic_words x)
{
    return _mm_add_epi32(sum, _mm_madd_epi16(w, x));
}
#elif defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>

#define WORDS_PARTS 4
#define OIC_WORD_ROWS 6
typedef uint32x4_t oic_words;

static inline oic_words oic_words_of(uint32_t x)
{
    return vdupq_n_u32(x);
}

static inline oic_words oic_words_load(const uint32_t *from)
{
    return vld1q_u32(from);
}

#if defined(__ARM_FEATURE_DOTPROD)
#define OIC_WORD 4
static inline oic_words oic_words_madd(oic_words sum, oic_words w, oic_words x)
{
    const int8x16_t bytes = vreinterpretq_s8_u32(w), same = vreinterpretq_s8_u32(x);
    return vreinterpretq_u32_s32(vdotq_s32(vreinterpretq_s32_u32(sum), bytes, same));
}
#else
#define OIC_WORD 2
static inline oic_words oic_words_madd(oic_words sum, oic_words w, oic_words x)
{
    const int16x8_t pairs = vreinterpretq_s16_u32(w), same = vreinterpretq_s16_u32(x);
    const int32x4_t first = vmull_s16(vget_low_s16(pairs), vget_low_s16(same)), second = vmull_high_s16(pairs, same);
    return vaddq_u32(sum, vreinterpretq_u32_s32(vpaddq_s32(first, second)));
}
#endif
#else
#define OIC_WORD 2
#define WORDS_PARTS 4
#define OIC_WORD_ROWS 2
typedef uint32_t oic_words __attribute__((vector_size(16)));

static inline oic_words oic_words_of(uint32_t x)
{
    return (oic_words){x, x, x, x};
}

static inline oic_words oic_words_load(const uint32_t *from)
{
    oic_words v;
    memcpy(&v, from, sizeof v);
    return v;
}

static inline oic_words oic_words_madd(oic_words sum, oic_words w, oic_words x)
{
    typedef int32_t signed_words __attribute__((vector_size(16)));
    const signed_words high_w = (signed_words)w >> 16, high_x = (signed_words)x >> 16;
    const signed_words low_w = (signed_words)(w << 16) >> 16, low_x = (signed_words)(x << 16) >> 16;
    return sum + (oic_words)(low_w * low_x) + (oic_words)(high_w * high_x);
}
#endif

#if !defined(OIC_WORD_BIAS)
#define OIC_WORD_BIAS 0
#endif

#define WORDS_WIDTH (OIC_LANES / WORDS_PARTS)

/* to = words of x of n neighbours, which fill them. */
static inline void oic_words_of_x(uint32_t *restrict to, const int8_t *restrict from, ptrdiff_t n)
{
#if OIC_WORD == 4
    memcpy(to, from, (size_t)n);
#else
    for (ptrdiff_t i = 0; i < n / 2; ++i) {
        to[i] = (uint32_t)(uint16_t)(int16_t)from[2 * i] | (uint32_t)(int32_t)from[2 * i + 1] << 16;
    }
#endif
}

/* to[i] = a word of w of numbers i * step of as many rows as a word has; of the same, where a sum has fewer. */
static inline void oic_words_of_w(uint32_t *restrict to, const int8_t *const *rows, ptrdiff_t n, ptrdiff_t step)
{
    const int8_t *const p = rows[0], *const q = rows[1];
#if OIC_WORD == 4
    const int8_t *const r = rows[2], *const s = rows[3];
    const uint32_t bias = OIC_WORD_BIAS ? 0x80808080u : 0u;
    for (ptrdiff_t i = 0, at = 0; i < n; ++i, at += step) {
        to[i] = ((uint32_t)(uint8_t)p[at] | (uint32_t)(uint8_t)q[at] << 8 | (uint32_t)(uint8_t)r[at] << 16 |
                 (uint32_t)(uint8_t)s[at] << 24) ^ bias;
    }
#else
    if (step == 1) {
        for (ptrdiff_t i = 0; i < n; ++i) {
            to[i] = (uint32_t)(uint16_t)(int16_t)p[i] | (uint32_t)(int32_t)q[i] << 16;
        }
        return;
    }
    for (ptrdiff_t i = 0, at = 0; i < n; ++i, at += step) {
        to[i] = (uint32_t)(uint16_t)(int16_t)p[at] | (uint32_t)(int32_t)q[at] << 16;
    }
#endif
}

/* Zeros as words of w. */
static inline void oic_words_zero(uint32_t *to, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; ++i) {
        to[i] = OIC_WORD_BIAS ? 0x80808080u : 0u;
    }
}

/* sum[rows][16], rows ld apart: start[row] + the products of x[row][n], rows xm apart, with sixteen words at w + at[n]. */
OIC_INLINE void oic_words_tile(uint32_t *sum, ptrdiff_t ld, int rows, const uint32_t *x, ptrdiff_t xm, const uint32_t *w,
                               const int32_t *at, ptrdiff_t n, const uint32_t *start)
{
    oic_words a[OIC_WORD_ROWS * WORDS_PARTS];
    OIC_UNROLLED
    for (int i = 0; i < rows * WORDS_PARTS; ++i) {
        a[i] = oic_words_of(start[i / WORDS_PARTS]);
    }
    for (ptrdiff_t k = 0; k < n; ++k) {
        const uint32_t *const from = w + at[k];
        oic_words held[WORDS_PARTS];
        OIC_UNROLLED
        for (int i = 0; i < WORDS_PARTS; ++i) {
            held[i] = oic_words_load(from + i * WORDS_WIDTH);
        }
        OIC_UNROLLED
        for (int r = 0; r < rows; ++r) {
            const oic_words all = oic_words_of(x[r * xm + k]);
            OIC_UNROLLED
            for (int i = 0; i < WORDS_PARTS; ++i) {
                a[r * WORDS_PARTS + i] = oic_words_madd(a[r * WORDS_PARTS + i], held[i], all);
            }
        }
    }
    OIC_UNROLLED
    for (int i = 0; i < rows * WORDS_PARTS; ++i) {
        memcpy(sum + i / WORDS_PARTS * ld + i % WORDS_PARTS * WORDS_WIDTH, &a[i], sizeof a[i]);
    }
}

/* The same for 1 to OIC_WORD_ROWS rows. */
static inline void oic_words_sum(uint32_t *sum, ptrdiff_t ld, ptrdiff_t rows, const uint32_t *x, ptrdiff_t xm, const uint32_t *w,
                                 const int32_t *at, ptrdiff_t n, const uint32_t *start)
{
    switch (rows) {
#if OIC_WORD_ROWS >= 12
    case 12: oic_words_tile(sum, ld, 12, x, xm, w, at, n, start); return;
    case 11: oic_words_tile(sum, ld, 11, x, xm, w, at, n, start); return;
    case 10: oic_words_tile(sum, ld, 10, x, xm, w, at, n, start); return;
    case 9: oic_words_tile(sum, ld, 9, x, xm, w, at, n, start); return;
    case 8: oic_words_tile(sum, ld, 8, x, xm, w, at, n, start); return;
    case 7: oic_words_tile(sum, ld, 7, x, xm, w, at, n, start); return;
#endif
#if OIC_WORD_ROWS >= 6
    case 6: oic_words_tile(sum, ld, 6, x, xm, w, at, n, start); return;
    case 5: oic_words_tile(sum, ld, 5, x, xm, w, at, n, start); return;
    case 4: oic_words_tile(sum, ld, 4, x, xm, w, at, n, start); return;
#endif
#if OIC_WORD_ROWS >= 3
    case 3: oic_words_tile(sum, ld, 3, x, xm, w, at, n, start); return;
#endif
#if OIC_WORD_ROWS >= 2
    case 2: oic_words_tile(sum, ld, 2, x, xm, w, at, n, start); return;
#endif
    default: oic_words_tile(sum, ld, 1, x, xm, w, at, n, start); return;
    }
}

#undef WORDS_PARTS
#undef WORDS_WIDTH

#endif
