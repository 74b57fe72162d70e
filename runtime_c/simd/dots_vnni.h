/* The products of dots.h with the dot products of AVX-512, or of AVX on machines without it: four products of unsigned and
   signed bytes, added to 32 bits, exactly.  w of q8 gets 128 more, as bits inverted, and sums start 128 times x lower. */
#include "../version.h"

#include "dots_bytes_avx2.h"

#define OIC_DOTS_X 32

#if defined(__AVX512VNNI__)
#define DOTS_PARTS 1
#define OIC_DOTS_ROWS 8
#define OIC_DOTS_CHAIN 8 /* groups for which the sums of a tile stay in registers */
typedef __m512i oic_dots_part;
typedef __m512 oic_dots_part_f32;
#else
#define DOTS_PARTS 2
#define OIC_DOTS_ROWS 4
typedef __m256i oic_dots_part;
typedef __m256 oic_dots_part_f32;
#endif

typedef struct {
    oic_dots_part v[DOTS_PARTS];
} oic_dots;

typedef struct {
    oic_dots_part_f32 v[DOTS_PARTS];
} oic_dots_factors;

static inline int32_t oic_dots_quantize(const float *x, uint8_t *to, float *dx, int bits)
{
    const __m256i q = oic_dots_bytes_of(x, dx), below = oic_dots_negative(q);
    _mm256_storeu_si256((__m256i *)(void *)to, q);
    return (bits == 4 ? 8 : 128) * oic_dots_total(_mm256_sub_epi64(_mm256_add_epi64(below, below), oic_dots_sizes(q)));
}

#if DOTS_PARTS == 1
static inline oic_dots_part oic_dots_some(const uint8_t *from)
{
    return _mm512_loadu_si512(from);
}

static inline oic_dots_part oic_dots_four(const uint8_t *from)
{
    int32_t four;
    memcpy(&four, from, sizeof four);
    return _mm512_set1_epi32(four);
}

static inline oic_dots_part oic_dots_unsigned(oic_dots_part w)
{
    return _mm512_xor_si512(w, _mm512_set1_epi32((int32_t)0x80808080u));
}

static inline oic_dots_part oic_dots_nibbles(oic_dots_part w, int high)
{
    return _mm512_and_si512(high ? _mm512_srli_epi32(w, 4) : w, _mm512_set1_epi32(0x0f0f0f0f));
}

static inline oic_dots_part oic_dots_madd(oic_dots_part sum, oic_dots_part w, oic_dots_part x)
{
    return _mm512_dpbusd_epi32(sum, w, x);
}
#else
static inline oic_dots_part oic_dots_some(const uint8_t *from)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)from);
}

static inline oic_dots_part oic_dots_four(const uint8_t *from)
{
    int32_t four;
    memcpy(&four, from, sizeof four);
    return _mm256_set1_epi32(four);
}

static inline oic_dots_part oic_dots_unsigned(oic_dots_part w)
{
    return _mm256_xor_si256(w, _mm256_set1_epi32((int32_t)0x80808080u));
}

static inline oic_dots_part oic_dots_nibbles(oic_dots_part w, int high)
{
    return _mm256_and_si256(high ? _mm256_srli_epi32(w, 4) : w, _mm256_set1_epi32(0x0f0f0f0f));
}

static inline oic_dots_part oic_dots_madd(oic_dots_part sum, oic_dots_part w, oic_dots_part x)
{
    return _mm256_dpbusd_avx_epi32(sum, w, x);
}
#endif

/* a[P][R] = start[R] + the products of a group of x, R rows, with one of w, P panels `apart` bytes from each other. */
OIC_INLINE void oic_dots_group_8(oic_dots *a, int R, int P, const uint8_t *w, const uint8_t *x, const uint8_t *start,
                                 ptrdiff_t apart, ptrdiff_t ahead)
{
    for (int i = 0; i < P * R * DOTS_PARTS; ++i) {
        a[i / DOTS_PARTS].v[i % DOTS_PARTS] = oic_dots_four(start + 4 * (i / DOTS_PARTS % R));
    }
    for (int c = 0; c < 8; ++c) {
        for (int p = 0; p < P; ++p) {
            const uint8_t *const from = w + apart * p + 64 * c;
            OIC_AHEAD_LINE(from, c, P, ahead);
            for (int i = 0; i < DOTS_PARTS; ++i) {
                const oic_dots_part all = oic_dots_unsigned(oic_dots_some(from + i * (64 / DOTS_PARTS)));
                for (int r = 0; r < R; ++r) {
                    const oic_dots_part four = oic_dots_four(x + r * OIC_DOTS_X + 4 * c);
                    a[p * R + r].v[i] = oic_dots_madd(a[p * R + r].v[i], all, four);
                }
            }
        }
    }
}

OIC_INLINE void oic_dots_group_4(oic_dots *a, int R, int P, const uint8_t *w, const uint8_t *x, const uint8_t *start,
                                 ptrdiff_t apart, ptrdiff_t ahead)
{
    for (int i = 0; i < P * R * DOTS_PARTS; ++i) {
        a[i / DOTS_PARTS].v[i % DOTS_PARTS] = oic_dots_four(start + 4 * (i / DOTS_PARTS % R));
    }
    for (int c = 0; c < 4; ++c) {
        for (int p = 0; p < P; ++p) {
            const uint8_t *const from = w + apart * p + 64 * c;
            OIC_AHEAD_LINE(from, c, P, ahead);
            for (int i = 0; i < DOTS_PARTS; ++i) {
                const oic_dots_part all = oic_dots_some(from + i * (64 / DOTS_PARTS));
                const oic_dots_part low = oic_dots_nibbles(all, 0), high = oic_dots_nibbles(all, 1);
                for (int r = 0; r < R; ++r) {
                    const uint8_t *const row = x + r * OIC_DOTS_X + 4 * c;
                    oic_dots_part *const sum = &a[p * R + r].v[i];
                    *sum = oic_dots_madd(oic_dots_madd(*sum, low, oic_dots_four(row)), high, oic_dots_four(row + 16));
                }
            }
        }
    }
}

#if defined(OIC_DOTS_CHAIN)
#define OIC_DOTS_PLAIN 512 /* bytes of a panel of a group */

/* A panel of a group of w as the products take it: eight steps of bytes without a sign. */
OIC_INLINE void oic_dots_plain_8(uint8_t *to, const uint8_t *w)
{
    for (int c = 0; c < 8; ++c) {
        _mm512_storeu_si512(to + 64 * c, oic_dots_unsigned(oic_dots_some(w + 64 * c)));
    }
}

OIC_INLINE void oic_dots_plain_4(uint8_t *to, const uint8_t *w)
{
    for (int c = 0; c < 4; ++c) {
        const oic_dots_part all = oic_dots_some(w + 64 * c);
        _mm512_storeu_si512(to + 64 * c, oic_dots_nibbles(all, 0));
        _mm512_storeu_si512(to + 64 * (c + 4), oic_dots_nibbles(all, 1));
    }
}

/* oic_dots_group_8 or 4 of such panels, side by side. */
OIC_INLINE void oic_dots_group_plain(oic_dots *a, int R, int P, const uint8_t *plain, const uint8_t *x, const uint8_t *start)
{
    for (int i = 0; i < P * R; ++i) {
        a[i].v[0] = oic_dots_four(start + 4 * (i % R));
    }
    for (int c = 0; c < 8; ++c) {
        for (int p = 0; p < P; ++p) {
            const oic_dots_part all = oic_dots_some(plain + OIC_DOTS_PLAIN * p + 64 * c);
            for (int r = 0; r < R; ++r) {
                a[p * R + r].v[0] = oic_dots_madd(a[p * R + r].v[0], all, oic_dots_four(x + r * OIC_DOTS_X + 4 * c));
            }
        }
    }
}
#endif

static inline void oic_dots_scales(oic_dots_factors *to, const oic_f16 *from)
{
#if DOTS_PARTS == 1
    to->v[0] = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)from));
#else
    to->v[0] = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)from));
    to->v[1] = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + 8)));
#endif
}

#if defined(OIC_DOTS_CHAIN)
/* Sums in registers: y, or 0; *y += a * (dw * dx); back. */
static inline void oic_dots_load(oic_dots_factors *to, const float *y, int zero)
{
    to->v[0] = zero ? _mm512_set1_ps(0.0f) : _mm512_loadu_ps(y);
}

static inline void oic_dots_go_on(oic_dots_factors *y, const oic_dots *a, const oic_dots_factors *dw, float dx)
{
    const __m512 t = _mm512_mul_ps(_mm512_cvtepi32_ps(a->v[0]), _mm512_mul_ps(dw->v[0], _mm512_set1_ps(dx)));
    y->v[0] = _mm512_add_ps(y->v[0], t);
}

static inline void oic_dots_store(float *to, const oic_dots_factors *y)
{
    _mm512_storeu_ps(to, y->v[0]);
}
#endif

/* y += a * (dw * dx) */
static inline void oic_dots_add(float *y, const oic_dots *a, const oic_dots_factors *dw, float dx)
{
#if DOTS_PARTS == 1
    oic_dots_factors sum;
    oic_dots_load(&sum, y, 0);
    oic_dots_go_on(&sum, a, dw, dx);
    oic_dots_store(y, &sum);
#else
    for (int i = 0; i < 2; ++i) {
        const __m256 t = _mm256_mul_ps(_mm256_cvtepi32_ps(a->v[i]), _mm256_mul_ps(dw->v[i], _mm256_set1_ps(dx)));
        _mm256_storeu_ps(y + 8 * i, _mm256_add_ps(_mm256_loadu_ps(y + 8 * i), t));
    }
#endif
}

#undef DOTS_PARTS
