/* The products of dots.h with SSE2 or WebAssembly: pairs of products of 16 bits, added to 32.  Of each row there are two
   sums, which are added at the end. */
#include "../version.h"

#define OIC_DOTS_ROWS 4
#define OIC_DOTS_X 64 /* x of 16 bits */

#if defined(__SSE2__)
#include <emmintrin.h>

typedef __m128i oic_dots_part;
typedef __m128 oic_dots_part_f32;

/* Bytes, widened to 16 bits: the lower or upper eight of sixteen. */
static inline oic_dots_part oic_dots_low(oic_dots_part v)
{
    return _mm_srai_epi16(_mm_unpacklo_epi8(v, v), 8);
}

static inline oic_dots_part oic_dots_high(oic_dots_part v)
{
    return _mm_srai_epi16(_mm_unpackhi_epi8(v, v), 8);
}

static inline oic_dots_part oic_dots_madd(oic_dots_part sum, oic_dots_part w, oic_dots_part x)
{
    return _mm_add_epi32(sum, _mm_madd_epi16(w, x));
}

/* The sums of neighbours of two registers. */
static inline oic_dots_part oic_dots_pairs(oic_dots_part a, oic_dots_part b)
{
    const __m128 x = _mm_castsi128_ps(a), y = _mm_castsi128_ps(b);
    return _mm_add_epi32(_mm_castps_si128(_mm_shuffle_ps(x, y, 0x88)), _mm_castps_si128(_mm_shuffle_ps(x, y, 0xdd)));
}

static inline oic_dots_part oic_dots_nibbles(oic_dots_part v, int high)
{
    return _mm_and_si128(high ? _mm_srli_epi16(v, 4) : v, _mm_set1_epi8(15));
}

static inline oic_dots_part oic_dots_plus(oic_dots_part a, int32_t b)
{
    return _mm_add_epi32(a, _mm_set1_epi32(b));
}

/* Four of x, twice. */
static inline oic_dots_part oic_dots_four(const uint8_t *from)
{
    const __m128i four = _mm_loadl_epi64((const __m128i *)(const void *)from);
    return _mm_unpacklo_epi64(four, four);
}

static inline oic_dots_part_f32 oic_dots_floats(oic_dots_part v)
{
    return _mm_cvtepi32_ps(v);
}
#else
#include <wasm_simd128.h>

typedef v128_t oic_dots_part;
typedef float oic_dots_part_f32 __attribute__((vector_size(16)));

static inline oic_dots_part oic_dots_low(oic_dots_part v)
{
    return wasm_i16x8_extend_low_i8x16(v);
}

static inline oic_dots_part oic_dots_high(oic_dots_part v)
{
    return wasm_i16x8_extend_high_i8x16(v);
}

static inline oic_dots_part oic_dots_madd(oic_dots_part sum, oic_dots_part w, oic_dots_part x)
{
    return wasm_i32x4_add(sum, wasm_i32x4_dot_i16x8(w, x));
}

static inline oic_dots_part oic_dots_pairs(oic_dots_part a, oic_dots_part b)
{
    return wasm_i32x4_add(wasm_i32x4_shuffle(a, b, 0, 2, 4, 6), wasm_i32x4_shuffle(a, b, 1, 3, 5, 7));
}

static inline oic_dots_part oic_dots_nibbles(oic_dots_part v, int high)
{
    return wasm_v128_and(high ? wasm_u16x8_shr(v, 4) : v, wasm_i8x16_splat(15));
}

static inline oic_dots_part oic_dots_plus(oic_dots_part a, int32_t b)
{
    return wasm_i32x4_add(a, wasm_i32x4_splat(b));
}

static inline oic_dots_part oic_dots_four(const uint8_t *from)
{
    return wasm_v128_load64_splat(from);
}

static inline oic_dots_part_f32 oic_dots_floats(oic_dots_part v)
{
    return (oic_dots_part_f32)wasm_f32x4_convert_i32x4(v);
}
#endif

typedef struct {
    oic_dots_part v[4];
} oic_dots;

typedef struct {
    oic_dots_part_f32 v[4];
} oic_dots_factors;

static inline int32_t oic_dots_quantize(const float *x, uint8_t *to, float *dx, int bits)
{
    int32_t sum = 0;
    int8_t q[OIC_GROUP];
    int16_t wide[OIC_GROUP];
    *dx = oic_quantized_group(x, q);
    for (int i = 0; i < OIC_GROUP; ++i) {
        wide[i] = q[i];
        sum += q[i];
    }
    memcpy(to, wide, sizeof wide);
    return bits == 4 ? -8 * sum : 0;
}

static inline oic_dots_part oic_dots_some(const uint8_t *from)
{
    oic_dots_part to;
    memcpy(&to, from, sizeof to);
    return to;
}

/* Step of 64 bytes: sum[8] += pairs. */
OIC_INLINE void oic_dots_step(oic_dots_part *sum, const oic_dots_part *w, const uint8_t *x)
{
    const oic_dots_part four = oic_dots_four(x);
    for (int i = 0; i < 4; ++i) {
        sum[2 * i] = oic_dots_madd(sum[2 * i], oic_dots_low(w[i]), four);
        sum[2 * i + 1] = oic_dots_madd(sum[2 * i + 1], oic_dots_high(w[i]), four);
    }
}

/* a = start + the sums of neighbours. */
OIC_INLINE void oic_dots_end(oic_dots *a, const oic_dots_part *sum, const uint8_t *start)
{
    int32_t from;
    memcpy(&from, start, sizeof from);
    for (int i = 0; i < 4; ++i) {
        a->v[i] = oic_dots_plus(oic_dots_pairs(sum[2 * i], sum[2 * i + 1]), from);
    }
}

/* a[P][R] = start[R] + the products of a group of x, R rows, with one of w, P panels `apart` bytes from each other. */
OIC_INLINE void oic_dots_group_8(oic_dots *a, int R, int P, const uint8_t *w, const uint8_t *x, const uint8_t *start,
                                 ptrdiff_t apart, ptrdiff_t ahead)
{
    for (int i = 0; i < P * R; ++i) {
        oic_dots_part sum[8] = {{0}};
        for (int c = 0; c < 8; ++c) {
            const uint8_t *const from = w + i / R * apart + 64 * c;
            const oic_dots_part all[4] = {oic_dots_some(from), oic_dots_some(from + 16), oic_dots_some(from + 32),
                                          oic_dots_some(from + 48)};
            OIC_AHEAD_IF(from, ahead);
            oic_dots_step(sum, all, x + i % R * OIC_DOTS_X + 8 * c);
        }
        oic_dots_end(&a[i], sum, start + 4 * (i % R));
    }
}

OIC_INLINE void oic_dots_group_4(oic_dots *a, int R, int P, const uint8_t *w, const uint8_t *x, const uint8_t *start,
                                 ptrdiff_t apart, ptrdiff_t ahead)
{
    for (int i = 0; i < P * R; ++i) {
        oic_dots_part sum[8] = {{0}};
        for (int c = 0; c < 8; ++c) {
            const uint8_t *const from = w + i / R * apart + c % 4 * 64;
            oic_dots_part all[4];
            OIC_AHEAD_IF(from, ahead);
            for (int n = 0; n < 4; ++n) {
                all[n] = oic_dots_nibbles(oic_dots_some(from + 16 * n), c >= 4);
            }
            oic_dots_step(sum, all, x + i % R * OIC_DOTS_X + 8 * c);
        }
        oic_dots_end(&a[i], sum, start + 4 * (i % R));
    }
}

static inline void oic_dots_scales(oic_dots_factors *to, const oic_f16 *from)
{
    float wide[OIC_PANEL];
    memcpy(to, oic_widen_f16(from, OIC_PANEL, wide), sizeof *to);
}

/* y += a * (dw * dx) */
static inline void oic_dots_add(float *y, const oic_dots *a, const oic_dots_factors *dw, float dx)
{
    for (int i = 0; i < 4; ++i) {
        oic_dots_part_f32 sum;
        memcpy(&sum, y + 4 * i, sizeof sum);
        sum = sum + oic_dots_floats(a->v[i]) * (dw->v[i] * dx);
        memcpy(y + 4 * i, &sum, sizeof sum);
    }
}
