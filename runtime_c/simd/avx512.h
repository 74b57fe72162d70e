/* Sixteen numbers a register: AVX-512, with its dot products of bytes (VNNI) where the compiler may use them. */
#ifndef OIC_SIMD_AVX512_H
#define OIC_SIMD_AVX512_H

#include "../version.h"

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define OIC_WIDTH 16
#define OIC_WIDTH_F64 8

typedef float oic_register_f32 __attribute__((vector_size(64)));
typedef double oic_register_f64 __attribute__((vector_size(64)));
typedef int32_t oic_register_i32 __attribute__((vector_size(64)));
typedef uint32_t oic_register_u32 __attribute__((vector_size(64)));
typedef __mmask16 oic_mask; /* a bit a number */

#define OIC_FUSED_REGISTERS 1

static inline oic_register_f32 oic_register_fused_f32(oic_register_f32 a, oic_register_f32 b, oic_register_f32 sum)
{
    return (oic_register_f32)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)sum);
}

static inline oic_register_f64 oic_register_fused_f64(oic_register_f64 a, oic_register_f64 b, oic_register_f64 sum)
{
    return (oic_register_f64)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)sum);
}

#define OIC_EIGHTS 1

static inline oic_register_f32 oic_register_eights_f32(const float *low, const float *high)
{
    const __m512d first = (__m512d)_mm512_castps256_ps512(_mm256_loadu_ps(low));
    return (oic_register_f32)_mm512_insertf64x4(first, (__m256d)_mm256_loadu_ps(high), 1);
}

static inline oic_register_u32 oic_register_eights_u32(const uint32_t *low, const uint32_t *high)
{
    const __m512i first = _mm512_castsi256_si512(_mm256_loadu_si256((const void *)low));
    return (oic_register_u32)_mm512_inserti64x4(first, _mm256_loadu_si256((const void *)high), 1);
}

/* The lanes below n. */
static inline __mmask16 oic_register_first(ptrdiff_t n)
{
    return (__mmask16)((1u << n) - 1u);
}

static inline oic_register_f32 oic_register_load_some_f32(const float *from, ptrdiff_t n)
{
    return (oic_register_f32)_mm512_maskz_loadu_ps(oic_register_first(n), from);
}

static inline oic_register_i32 oic_register_load_i8(const int8_t *from)
{
    return (oic_register_i32)_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)from));
}

static inline oic_register_u32 oic_register_load_u8(const uint8_t *from)
{
    return (oic_register_u32)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)from));
}

static inline oic_register_u32 oic_register_load_u16(const uint16_t *from)
{
    return (oic_register_u32)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)from));
}

static inline void oic_register_store_i8(int8_t *to, oic_register_i32 v)
{
    _mm_storeu_si128((__m128i *)(void *)to, _mm512_cvtepi32_epi8((__m512i)v));
}

static inline __m512i oic_register_limited(const oic_register_i32 *v, int16_t more, int sign)
{
    const oic_register_u32 order = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
    const __m512i all = _mm512_set1_epi16(more);
    const __m512i low = _mm512_adds_epi16(_mm512_packs_epi32((__m512i)v[0], (__m512i)v[1]), all);
    const __m512i high = _mm512_adds_epi16(_mm512_packs_epi32((__m512i)v[2], (__m512i)v[3]), all);
    const __m512i bytes = sign ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high);
    return _mm512_permutexvar_epi32((__m512i)order, bytes);
}

static inline void oic_register_store_limited(uint8_t *to, const oic_register_i32 *v, int16_t more, int sign)
{
    _mm512_storeu_si512((void *)to, oic_register_limited(v, more, sign));
}

#define OIC_STORES_SOME 1

static inline void oic_register_store_limited_some(uint8_t *to, const oic_register_i32 *v, int16_t more, int sign, ptrdiff_t n)
{
    _mm512_mask_storeu_epi8((void *)to, UINT64_MAX >> (64 - n), oic_register_limited(v, more, sign));
}

static inline void oic_register_store_u16(uint16_t *to, oic_register_u32 v)
{
    _mm256_storeu_si256((__m256i *)(void *)to, _mm512_cvtepi32_epi16((__m512i)v));
}

#define OIC_LOADS_BF16 1

static inline oic_register_f32 oic_register_load_bf16(const uint16_t *from)
{
    const oic_register_u32 lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, order = lane << 16 | 0xffffu;
    const __m512i numbers = _mm512_castsi256_si512(_mm256_loadu_si256((const void *)from));
    return (oic_register_f32)_mm512_maskz_permutexvar_epi16(0xaaaaaaaau, (__m512i)order, numbers);
}

#define OIC_HALVES 1

static inline oic_register_f32 oic_register_load_f16(const uint16_t *from)
{
    return (oic_register_f32)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)from));
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion" /* of the mask, in a macro of gcc's at -O0 */
static inline void oic_register_store_f16(uint16_t *to, oic_register_f32 v)
{
    _mm256_storeu_si256((__m256i *)(void *)to,
                        _mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
#pragma GCC diagnostic pop

static inline oic_mask oic_register_less_f32(oic_register_f32 a, oic_register_f32 b)
{
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LT_OQ);
}

static inline oic_mask oic_register_equal_f32(oic_register_f32 a, oic_register_f32 b)
{
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_EQ_OQ);
}

static inline oic_mask oic_register_less_i32(oic_register_i32 a, oic_register_i32 b)
{
    return _mm512_cmplt_epi32_mask((__m512i)a, (__m512i)b);
}

static inline oic_mask oic_register_equal_i32(oic_register_i32 a, oic_register_i32 b)
{
    return _mm512_cmpeq_epi32_mask((__m512i)a, (__m512i)b);
}

static inline oic_mask oic_mask_and(oic_mask a, oic_mask b)
{
    return (oic_mask)(a & b);
}

static inline oic_mask oic_mask_or(oic_mask a, oic_mask b)
{
    return (oic_mask)(a | b);
}

static inline oic_mask oic_mask_not(oic_mask a)
{
    return (oic_mask)~a;
}

static inline int oic_mask_any(oic_mask a)
{
    return a != 0;
}

static inline oic_register_u32 oic_register_select_u32(oic_mask m, oic_register_u32 yes, oic_register_u32 no)
{
    return (oic_register_u32)_mm512_mask_blend_epi32(m, (__m512i)no, (__m512i)yes);
}

static inline oic_register_f32 oic_register_select_f32(oic_mask m, oic_register_f32 yes, oic_register_f32 no)
{
    return (oic_register_f32)_mm512_mask_blend_ps(m, (__m512)no, (__m512)yes);
}

static inline oic_register_f32 oic_register_max_f32(oic_register_f32 a, oic_register_f32 b)
{
    return (oic_register_f32)_mm512_max_ps((__m512)a, (__m512)b);
}

static inline oic_register_f32 oic_register_min_f32(oic_register_f32 a, oic_register_f32 b)
{
    return (oic_register_f32)_mm512_min_ps((__m512)a, (__m512)b);
}

static inline oic_register_f32 oic_register_sqrt_f32(oic_register_f32 a)
{
    return (oic_register_f32)_mm512_sqrt_ps((__m512)a);
}

static inline oic_register_f64 oic_register_sqrt_f64(oic_register_f64 a)
{
    return (oic_register_f64)_mm512_sqrt_pd((__m512d)a);
}

static inline oic_register_f32 oic_register_to_f32(oic_register_i32 a)
{
    return (oic_register_f32)_mm512_cvtepi32_ps((__m512i)a);
}

static inline oic_register_i32 oic_register_to_i32(oic_register_f32 a)
{
    return (oic_register_i32)_mm512_cvttps_epi32((__m512)a);
}

static inline oic_register_i32 oic_register_nearest_i32(oic_register_f32 a)
{
    return (oic_register_i32)_mm512_cvtps_epi32((__m512)a);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion" /* of the mask, in a macro of gcc's at -O0 */
static inline oic_register_f32 oic_register_round_f32(oic_register_f32 a)
{
    return (oic_register_f32)_mm512_roundscale_ps((__m512)a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
#pragma GCC diagnostic pop

/* The upper eight. */
static inline __m256 oic_register_upper_f32(oic_register_f32 a)
{
    return _mm256_castpd_ps(_mm512_extractf64x4_pd((__m512d)a, 1));
}

static inline oic_register_i32 oic_register_max_i32(oic_register_i32 a, oic_register_i32 b)
{
    return (oic_register_i32)_mm512_max_epi32((__m512i)a, (__m512i)b);
}

static inline oic_register_i32 oic_register_min_i32(oic_register_i32 a, oic_register_i32 b)
{
    return (oic_register_i32)_mm512_min_epi32((__m512i)a, (__m512i)b);
}

static inline oic_register_i32 oic_register_high_half_i32(oic_register_i32 a, oic_register_i32 b)
{
    const __m512i x = (__m512i)a, y = (__m512i)b, half = _mm512_set1_epi64(INT64_C(1) << 30);
    const __m512i even = _mm512_add_epi64(_mm512_mul_epi32(x, y), half);
    const __m512i odd = _mm512_add_epi64(_mm512_mul_epi32(_mm512_srli_epi64(x, 32), _mm512_srli_epi64(y, 32)), half);
    return (oic_register_i32)_mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 31), _mm512_slli_epi64(odd, 1));
}

#define OIC_SCALES 1

static inline oic_register_f32 oic_register_scale_f32(oic_register_f32 x, oic_register_i32 k)
{
    return (oic_register_f32)_mm512_scalef_ps((__m512)x, (__m512)oic_register_to_f32(k));
}

#define OIC_SHIFTS 1

static inline oic_register_i32 oic_register_shift_rounded_i32(oic_register_i32 v, int n)
{
    const oic_register_u32 size = (oic_register_u32)_mm512_abs_epi32((__m512i)v);
    const __m512i shifted = (__m512i)((size + ((UINT32_C(1) << n) >> 1)) >> (uint32_t)n);
    const __mmask16 negative = _mm512_movepi32_mask((__m512i)v);
    return (oic_register_i32)_mm512_mask_sub_epi32(shifted, negative, _mm512_setzero_si512(), shifted);
}

#define OIC_APART_f32 1 /* compilers do not always see shuffles in what short_rows.inc.h says */

/* Sixteen pairs, their first and their second numbers apart. */
static inline void oic_register_apart_f32(float *even, float *odd, const float *from)
{
    const __m512i first = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512 low = _mm512_loadu_ps(from), high = _mm512_loadu_ps(from + 16);
    _mm512_storeu_ps(even, _mm512_permutex2var_ps(low, first, high));
    _mm512_storeu_ps(odd, _mm512_permutex2var_ps(low, _mm512_add_epi32(first, _mm512_set1_epi32(1)), high));
}

static inline float oic_register_sum_f32(oic_register_f32 a)
{
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256((__m512)a), oic_register_upper_f32(a));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

static inline double oic_register_sum_f64(oic_register_f64 a)
{
    const __m256d four = _mm256_add_pd(_mm512_castpd512_pd256((__m512d)a), _mm512_extractf64x4_pd((__m512d)a, 1));
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

static inline float oic_register_largest_f32(oic_register_f32 a)
{
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256((__m512)a), oic_register_upper_f32(a));
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

/* With VNNI x + 128 times w, which has no sign, less 128 times w.  Else halves of a register, as AVX2 does them. */
static inline oic_register_i32 oic_register_dot_i8(oic_register_i32 sum, const int8_t *w, const int8_t *x)
{
    int32_t bits;
    memcpy(&bits, x, sizeof bits);
#if defined(__AVX512VNNI__)
    const __m512i bytes = _mm512_loadu_si512((const void *)w), four = _mm512_set1_epi32(bits);
    const __m512i all = _mm512_set1_epi32((int)0x80808080u);
    const __m512i more = _mm512_dpbusd_epi32((__m512i)sum, _mm512_xor_si512(four, all), bytes);
    return (oic_register_i32)_mm512_sub_epi32(more, _mm512_dpbusd_epi32(_mm512_setzero_si512(), all, bytes));
#else
    const __m256i four = _mm256_set1_epi32(bits), size = _mm256_abs_epi8(four), ones = _mm256_set1_epi16(1);
    const __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)w);
    const __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(w + 32));
    const __m256i a = _mm256_madd_epi16(_mm256_maddubs_epi16(size, _mm256_sign_epi8(low, four)), ones);
    const __m256i b = _mm256_madd_epi16(_mm256_maddubs_epi16(size, _mm256_sign_epi8(high, four)), ones);
    return sum + (oic_register_i32)_mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1);
#endif
}

static inline oic_register_u32 oic_register_dot_i16(oic_register_u32 sum, oic_register_u32 w, oic_register_u32 x)
{
#if defined(__AVX512BW__)
    return sum + (oic_register_u32)_mm512_madd_epi16((__m512i)w, (__m512i)x);
#else
    const oic_register_i32 high = ((oic_register_i32)w >> 16) * ((oic_register_i32)x >> 16);
    const oic_register_i32 low = ((oic_register_i32)(w << 16) >> 16) * ((oic_register_i32)(x << 16) >> 16);
    return sum + (oic_register_u32)low + (oic_register_u32)high;
#endif
}

#if defined(__AVX512VNNI__)
#define OIC_DOT_BYTES 2

static inline oic_register_u32 oic_register_dot_bytes(oic_register_u32 sum, oic_register_u32 w, oic_register_u32 x)
{
    return (oic_register_u32)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)w, (__m512i)x);
}

#define OIC_NEIGHBOURS 4

static inline uint64_t oic_neighbours_inside(ptrdiff_t size, ptrdiff_t first, int step)
{
    const ptrdiff_t before = first < 0 ? (first > -64 ? -first : 64) : 0, left = size - first;
    const ptrdiff_t behind = left < 64 ? (left > 0 ? 64 - left : 64) : 0;
    const uint64_t inside = before < 64 && behind < 64 ? UINT64_MAX << before & UINT64_MAX >> behind : 0u;
    return inside & UINT64_MAX >> (60 - 15 * step);
}

static inline oic_register_u32 oic_register_neighbours(const int8_t *row, uint64_t inside, ptrdiff_t first, int step)
{
    const oic_register_u32 four = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3};
    const oic_register_u32 word = {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3};
    const uint32_t by = (uint32_t)step;
    const __m512i numbers = _mm512_maskz_loadu_epi8(inside, (const void *)((uintptr_t)row + (uintptr_t)first));
    const __m512i fours = _mm512_permutexvar_epi32((__m512i)(four * by + word), numbers); /* 16 bytes that have four words */
    return (oic_register_u32)_mm512_shuffle_epi8(fours, (__m512i)(word * by * 0x01010101u + 0x03020100u));
}

#if defined(__AVX512VBMI__)
#define OIC_NEAR 128

typedef struct {
    __m512i low, high;
} oic_register_row;

static inline oic_register_row oic_register_load_row(const int8_t *row, ptrdiff_t size, ptrdiff_t first)
{
    const void *const from = (const void *)((uintptr_t)row + (uintptr_t)first);
    const void *const next = (const void *)((uintptr_t)row + (uintptr_t)first + 64u);
    const __m512i bias = _mm512_set1_epi8(-128), low = _mm512_maskz_loadu_epi8(oic_neighbours_inside(size, first, 4), from);
    const __m512i high = _mm512_maskz_loadu_epi8(oic_neighbours_inside(size, first + 64, 4), next);
    return (oic_register_row){_mm512_xor_si512(low, bias), _mm512_xor_si512(high, bias)};
}

static inline oic_register_u32 oic_register_near(oic_register_row row, oic_register_u32 places)
{
    return (oic_register_u32)_mm512_permutex2var_epi8(row.low, (__m512i)places, row.high);
}
#endif

static inline oic_register_u32 oic_register_fours(const int8_t *p, const int8_t *q, const int8_t *r, const int8_t *s)
{
    const oic_register_u32 lanes = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
    const __m128i bytes = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m256i two = _mm256_set_m128i(bytes, bytes), low = _mm256_loadu2_m128i((const void *)q, (const void *)p);
    const __m256i high = _mm256_loadu2_m128i((const void *)s, (const void *)r);
    const __m512i all = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    const __m512i order = _mm512_inserti64x4(_mm512_castsi256_si512(two), two, 1);
    return (oic_register_u32)_mm512_shuffle_epi8(_mm512_permutexvar_epi32((__m512i)lanes, all), order);
}
#endif

#endif
