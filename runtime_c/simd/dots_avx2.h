/* The products of dots.h with AVX2.

   One instruction multiplies unsigned by signed bytes and adds pairs in 16 bits, saturating.  For q8 it gets |x| and w, whose
   bits are inverted where x is negative: ~w = -w - 1, so that |x| * ~w = x * w - |x|, and no pair reaches 2 * 127 * 128.  The
   |x| that are too much there are in the start.  For q4 all sixteen products of a lane fit 16 bits.

   For OIC_DOTS_MANY rows or more there is a table of a group of q8 with the second of a pair inverted, or not, in both pairs
   of a step: four variants, of which a row takes, at each step, the one where signs of pairs are as in x.  The sign that is left
   is a pair's, and its sum is multiplied by it instead of by one. */
#include "../version.h"

#include "dots_bytes_avx2.h"

#define OIC_KEEP(v) __asm__("" : "+x"(v)) /* in a register, and computed where it is written */

#define OIC_DOTS_ROWS 4
#define OIC_DOTS_ROWS_8 1 /* with four panels: fewer loads for a multiplication than of four rows with one */
#define OIC_DOTS_X 72 /* |x|, then a byte of ones where it is negative; for q4 x itself first */
#define OIC_DOTS_MANY 48
#define OIC_DOTS_TABLE (4 * 8 * 256) /* bytes of the variants of four panels of a group */

typedef struct {
    __m256i v[2];
} oic_dots;

typedef struct {
    __m256 v[2];
} oic_dots_factors;

static inline int32_t oic_dots_quantize(const float *x, uint8_t *to, float *dx, int bits)
{
    const __m256i q = oic_dots_bytes_of(x, dx), below = oic_dots_negative(q);
    if (bits == 4) {
        _mm256_storeu_si256((__m256i *)(void *)to, q);
        return 8 * oic_dots_total(_mm256_sub_epi64(_mm256_add_epi64(below, below), oic_dots_sizes(q)));
    }
    _mm256_storeu_si256((__m256i *)(void *)to, _mm256_abs_epi8(q));
    _mm256_storeu_si256((__m256i *)(void *)(to + 32), _mm256_cmpgt_epi8(_mm256_setzero_si256(), q));
    return oic_dots_total(below);
}

static inline __m256i oic_dots_bytes(const uint8_t *from)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)from);
}

/* Four bytes, over and over. */
static inline __m256i oic_dots_four(const uint8_t *from)
{
    int32_t four;
    memcpy(&four, from, sizeof four);
    return _mm256_set1_epi32(four);
}

/* A row for the table, of what oic_dots_quantize made of it for q8: |x|, the signs of pairs in 16 bits, and for each step
   which variant it takes, in units of eight bytes.  Where its sums start. */
static inline int32_t oic_dots_quantize_many(uint8_t *to)
{
    const __m256i size = oic_dots_bytes(to), minus = oic_dots_bytes(to + 32), first = _mm256_slli_epi16(minus, 8);
    const __m256i sign = _mm256_or_si256(_mm256_srai_epi16(first, 8), _mm256_set1_epi16(1));
    const __m256i inverted = _mm256_srai_epi16(_mm256_xor_si256(minus, first), 8); /* the second of a pair */
    const __m256i extra = _mm256_madd_epi16(_mm256_and_si256(_mm256_srli_epi16(size, 8), inverted), sign);
    const __m256i bits = _mm256_and_si256(inverted, _mm256_set1_epi32(64 << 16 | 32));
    const __m256i steps = _mm256_madd_epi16(bits, _mm256_set1_epi16(1));
    const __m256i bytes = _mm256_shuffle_epi8(steps, _mm256_set1_epi32(0x0c080400));
    const int32_t low = _mm256_extract_epi32(bytes, 0), high = _mm256_extract_epi32(bytes, 4);
    __m128i start = _mm_add_epi32(_mm256_castsi256_si128(extra), _mm256_extracti128_si256(extra, 1));
    start = _mm_add_epi32(start, _mm_shuffle_epi32(start, 0x4e));
    start = _mm_add_epi32(start, _mm_shuffle_epi32(start, 0xb1));
    _mm256_storeu_si256((__m256i *)(void *)(to + 32), sign);
    memcpy(to + 64, &low, sizeof low);
    memcpy(to + 68, &high, sizeof high);
    return _mm_cvtsi128_si32(start);
}

/* The variants of so many panels of a group of q8: steps, variants, panels. */
static inline void oic_dots_variants(uint8_t *table, const uint8_t *w, ptrdiff_t panels)
{
    for (ptrdiff_t p = 0; p < panels; ++p, w += 512) {
        for (int c = 0; c < 16; ++c) {
            const __m256i all = oic_dots_bytes(w + 32 * c);
            uint8_t *const to = table + c / 2 * 1024 + 64 * p + c % 2 * 32;
            for (int v = 0; v < 4; ++v) {
                const uint32_t inverted = (v & 1 ? 0xff00u : 0u) | (v & 2 ? 0xff000000u : 0u);
                _mm256_storeu_si256((__m256i *)(void *)(to + 256 * v), _mm256_xor_si256(all, _mm256_set1_epi32((int32_t)inverted)));
            }
        }
    }
}

/* a[P] = start + the products of a group of x, a row for the table, with P panels, the first of which is at `table`. */
OIC_INLINE void oic_dots_group_many(oic_dots *a, int P, const uint8_t *table, const uint8_t *x, const uint8_t *start)
{
    for (int p = 0; p < P; ++p) {
        a[p].v[0] = a[p].v[1] = oic_dots_four(start);
    }
    OIC_UNROLLED
    for (int c = 0; c < 8; ++c) {
        const __m256i size = oic_dots_four(x + 4 * c), sign = oic_dots_four(x + 32 + 4 * c);
        const uint8_t *const w = table + 1024 * c + 8 * (ptrdiff_t)x[64 + c];
        for (int i = 0; i < 2 * P; ++i) {
            const __m256i pairs = _mm256_maddubs_epi16(size, oic_dots_bytes(w + 32 * i));
            a[i / 2].v[i % 2] = _mm256_add_epi32(a[i / 2].v[i % 2], _mm256_madd_epi16(pairs, sign));
            OIC_KEEP(a[i / 2].v[i % 2]);
        }
    }
}

/* A step of two registers of w for R rows of x, whose sums are `i`. */
OIC_INLINE void oic_dots_step_8(oic_dots *a, int R, __m256i w0, __m256i w1, const uint8_t *x)
{
    const __m256i ones = _mm256_set1_epi16(1);
    if (R > 1) {
        OIC_KEEP(w0);
        OIC_KEEP(w1);
    }
    for (int r = 0; r < R; ++r) {
        const __m256i p = oic_dots_four(x + r * OIC_DOTS_X), minus = oic_dots_four(x + r * OIC_DOTS_X + 32);
        const __m256i s0 = _mm256_maddubs_epi16(p, _mm256_xor_si256(w0, minus));
        a[r].v[0] = _mm256_add_epi32(a[r].v[0], _mm256_madd_epi16(s0, ones));
        OIC_KEEP(a[r].v[0]);
        const __m256i s1 = _mm256_maddubs_epi16(p, _mm256_xor_si256(w1, minus));
        a[r].v[1] = _mm256_add_epi32(a[r].v[1], _mm256_madd_epi16(s1, ones));
        OIC_KEEP(a[r].v[1]);
    }
}

OIC_INLINE void oic_dots_step_4(oic_dots *a, int R, __m256i w0, __m256i w1, const uint8_t *x)
{
    if (R > 1) {
        OIC_KEEP(w0);
        OIC_KEEP(w1);
    }
    for (int r = 0; r < R; ++r) {
        const __m256i p = oic_dots_four(x + r * OIC_DOTS_X);
        a[r].v[0] = _mm256_add_epi16(a[r].v[0], _mm256_maddubs_epi16(w0, p));
        a[r].v[1] = _mm256_add_epi16(a[r].v[1], _mm256_maddubs_epi16(w1, p));
        OIC_KEEP(a[r].v[0]);
        OIC_KEEP(a[r].v[1]);
    }
}

/* a[P][R] = start[R] + the products of a group of x, R rows, with one of w, P panels `apart` bytes from each other. */
OIC_INLINE void oic_dots_group_8(oic_dots *a, int R, int P, const uint8_t *w, const uint8_t *x, const uint8_t *start,
                                 ptrdiff_t apart, ptrdiff_t ahead)
{
    for (int i = 0; i < P * R; ++i) {
        a[i].v[0] = a[i].v[1] = oic_dots_four(start + 4 * (i % R));
    }
    OIC_UNROLLED
    for (int c = 0; c < 8; ++c) {
        for (int p = 0; p < P; ++p) {
            const uint8_t *const from = w + apart * p + 64 * c;
            OIC_AHEAD_LINE(from, c, P, ahead);
            oic_dots_step_8(a + p * R, R, oic_dots_bytes(from), oic_dots_bytes(from + 32), x + 4 * c);
        }
    }
}

OIC_INLINE void oic_dots_group_4(oic_dots *a, int R, int P, const uint8_t *w, const uint8_t *x, const uint8_t *start,
                                 ptrdiff_t apart, ptrdiff_t ahead)
{
    const __m256i ones = _mm256_set1_epi16(1), nibble = _mm256_set1_epi8(15);
    for (int i = 0; i < P * R; ++i) {
        a[i].v[0] = a[i].v[1] = _mm256_setzero_si256();
    }
    for (int c = 0; c < 4; ++c) {
        for (int p = 0; p < P; ++p) {
            const uint8_t *const from = w + apart * p + 64 * c;
            const __m256i w0 = oic_dots_bytes(from), w1 = oic_dots_bytes(from + 32);
            OIC_AHEAD_LINE(from, c, P, ahead);
            oic_dots_step_4(a + p * R, R, _mm256_and_si256(w0, nibble), _mm256_and_si256(w1, nibble), x + 4 * c);
            oic_dots_step_4(a + p * R, R, _mm256_and_si256(_mm256_srli_epi16(w0, 4), nibble),
                            _mm256_and_si256(_mm256_srli_epi16(w1, 4), nibble), x + 16 + 4 * c);
        }
    }
    for (int i = 0; i < P * R; ++i) {
        const __m256i from = oic_dots_four(start + 4 * (i % R));
        a[i].v[0] = _mm256_add_epi32(from, _mm256_madd_epi16(a[i].v[0], ones));
        a[i].v[1] = _mm256_add_epi32(from, _mm256_madd_epi16(a[i].v[1], ones));
    }
}

static inline void oic_dots_scales(oic_dots_factors *to, const oic_f16 *from)
{
#if defined(__F16C__)
    to->v[0] = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)from));
    to->v[1] = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + 8)));
#else
    float wide[OIC_PANEL];
    oic_widen_f16(from, OIC_PANEL, wide);
    to->v[0] = _mm256_loadu_ps(wide);
    to->v[1] = _mm256_loadu_ps(wide + 8);
#endif
}

static inline void oic_dots_add(float *y, const oic_dots *a, const oic_dots_factors *dw, float dx)
{
    const __m256 d = _mm256_set1_ps(dx);
    for (int i = 0; i < 2; ++i) {
        const __m256 t = _mm256_mul_ps(_mm256_cvtepi32_ps(a->v[i]), _mm256_mul_ps(dw->v[i], d));
        _mm256_storeu_ps(y + 8 * i, _mm256_add_ps(_mm256_loadu_ps(y + 8 * i), t));
    }
}
