/* Eight numbers a register: AVX2, with FMA and F16C where the compiler may use them, as it may with -march=x86-64-v3. */
#ifndef OIC_SIMD_AVX2_H
#define OIC_SIMD_AVX2_H

#include "../version.h"

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define OIC_WIDTH 8
#define OIC_WIDTH_F64 4

typedef float oic_register_f32 __attribute__((vector_size(32)));
typedef double oic_register_f64 __attribute__((vector_size(32)));
typedef int32_t oic_register_i32 __attribute__((vector_size(32)));
typedef uint32_t oic_register_u32 __attribute__((vector_size(32)));
typedef oic_register_u32 oic_mask; /* 0 or all ones */

#if defined(__FMA__)
#define OIC_FUSED_REGISTERS 1

static inline oic_register_f32 oic_register_fused_f32(oic_register_f32 a, oic_register_f32 b, oic_register_f32 sum)
{
    return (oic_register_f32)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)sum);
}

static inline oic_register_f64 oic_register_fused_f64(oic_register_f64 a, oic_register_f64 b, oic_register_f64 sum)
{
    return (oic_register_f64)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)sum);
}
#endif

/* The lanes below n. */
static inline __m256i oic_register_first(ptrdiff_t n)
{
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lanes);
}

static inline oic_register_f32 oic_register_load_some_f32(const float *from, ptrdiff_t n)
{
    return (oic_register_f32)_mm256_maskload_ps(from, oic_register_first(n));
}

static inline oic_register_i32 oic_register_load_i8(const int8_t *from)
{
    return (oic_register_i32)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)from));
}

static inline oic_register_u32 oic_register_load_u8(const uint8_t *from)
{
    return (oic_register_u32)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)from));
}

static inline oic_register_u32 oic_register_load_u16(const uint16_t *from)
{
    return (oic_register_u32)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)from));
}

static inline void oic_register_store_i8(int8_t *to, oic_register_i32 v)
{
    const __m128i low = _mm256_castsi256_si128((__m256i)v), high = _mm256_extracti128_si256((__m256i)v, 1);
    const __m128i words = _mm_packs_epi32(low, high);
    _mm_storel_epi64((__m128i *)(void *)to, _mm_packs_epi16(words, words));
}

static inline void oic_register_store_limited(uint8_t *to, const oic_register_i32 *v, int16_t more, int sign)
{
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7), all = _mm256_set1_epi16(more);
    const __m256i low = _mm256_adds_epi16(_mm256_packs_epi32((__m256i)v[0], (__m256i)v[1]), all);
    const __m256i high = _mm256_adds_epi16(_mm256_packs_epi32((__m256i)v[2], (__m256i)v[3]), all);
    const __m256i bytes = sign ? _mm256_packs_epi16(low, high) : _mm256_packus_epi16(low, high);
    _mm256_storeu_si256((__m256i *)(void *)to, _mm256_permutevar8x32_epi32(bytes, order));
}

static inline void oic_register_store_u16(uint16_t *to, oic_register_u32 v)
{
    const __m256i words = _mm256_and_si256((__m256i)v, _mm256_set1_epi32(0xffff));
    const __m128i low = _mm256_castsi256_si128(words), high = _mm256_extracti128_si256(words, 1);
    _mm_storeu_si128((__m128i *)(void *)to, _mm_packus_epi32(low, high));
}

#if defined(__F16C__)
#define OIC_HALVES 1

static inline oic_register_f32 oic_register_load_f16(const uint16_t *from)
{
    return (oic_register_f32)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)from));
}

static inline void oic_register_store_f16(uint16_t *to, oic_register_f32 v)
{
    _mm_storeu_si128((__m128i *)(void *)to, _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
#endif

static inline oic_mask oic_register_less_f32(oic_register_f32 a, oic_register_f32 b)
{
    return (oic_mask)_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_LT_OQ);
}

static inline oic_mask oic_register_equal_f32(oic_register_f32 a, oic_register_f32 b)
{
    return (oic_mask)_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_EQ_OQ);
}

static inline oic_mask oic_register_less_i32(oic_register_i32 a, oic_register_i32 b)
{
    return (oic_mask)_mm256_cmpgt_epi32((__m256i)b, (__m256i)a);
}

static inline oic_mask oic_register_equal_i32(oic_register_i32 a, oic_register_i32 b)
{
    return (oic_mask)_mm256_cmpeq_epi32((__m256i)a, (__m256i)b);
}

static inline oic_mask oic_mask_and(oic_mask a, oic_mask b)
{
    return a & b;
}

static inline oic_mask oic_mask_or(oic_mask a, oic_mask b)
{
    return a | b;
}

static inline oic_mask oic_mask_not(oic_mask a)
{
    return ~a;
}

static inline int oic_mask_any(oic_mask a)
{
    return _mm256_movemask_ps((__m256)a) != 0;
}

static inline oic_register_u32 oic_register_select_u32(oic_mask m, oic_register_u32 yes, oic_register_u32 no)
{
    return (oic_register_u32)_mm256_blendv_epi8((__m256i)no, (__m256i)yes, (__m256i)m);
}

static inline oic_register_f32 oic_register_select_f32(oic_mask m, oic_register_f32 yes, oic_register_f32 no)
{
    return (oic_register_f32)_mm256_blendv_ps((__m256)no, (__m256)yes, (__m256)m);
}

static inline oic_register_f32 oic_register_max_f32(oic_register_f32 a, oic_register_f32 b)
{
    return (oic_register_f32)_mm256_max_ps((__m256)a, (__m256)b);
}

static inline oic_register_f32 oic_register_min_f32(oic_register_f32 a, oic_register_f32 b)
{
    return (oic_register_f32)_mm256_min_ps((__m256)a, (__m256)b);
}

static inline oic_register_f32 oic_register_sqrt_f32(oic_register_f32 a)
{
    return (oic_register_f32)_mm256_sqrt_ps((__m256)a);
}

static inline oic_register_f64 oic_register_sqrt_f64(oic_register_f64 a)
{
    return (oic_register_f64)_mm256_sqrt_pd((__m256d)a);
}

static inline oic_register_f32 oic_register_to_f32(oic_register_i32 a)
{
    return (oic_register_f32)_mm256_cvtepi32_ps((__m256i)a);
}

static inline oic_register_i32 oic_register_to_i32(oic_register_f32 a)
{
    return (oic_register_i32)_mm256_cvttps_epi32((__m256)a);
}

static inline oic_register_i32 oic_register_nearest_i32(oic_register_f32 a)
{
    return (oic_register_i32)_mm256_cvtps_epi32((__m256)a);
}

static inline oic_register_f32 oic_register_round_f32(oic_register_f32 a)
{
    return (oic_register_f32)_mm256_round_ps((__m256)a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static inline oic_register_i32 oic_register_max_i32(oic_register_i32 a, oic_register_i32 b)
{
    return (oic_register_i32)_mm256_max_epi32((__m256i)a, (__m256i)b);
}

static inline oic_register_i32 oic_register_min_i32(oic_register_i32 a, oic_register_i32 b)
{
    return (oic_register_i32)_mm256_min_epi32((__m256i)a, (__m256i)b);
}

static inline oic_register_i32 oic_register_high_half_i32(oic_register_i32 a, oic_register_i32 b)
{
    const __m256i x = (__m256i)a, y = (__m256i)b, half = _mm256_set1_epi64x(INT64_C(1) << 30);
    const __m256i even = _mm256_add_epi64(_mm256_mul_epi32(x, y), half);
    const __m256i odd = _mm256_add_epi64(_mm256_mul_epi32(_mm256_srli_epi64(x, 32), _mm256_srli_epi64(y, 32)), half);
    return (oic_register_i32)_mm256_blend_epi32(_mm256_srli_epi64(even, 31), _mm256_slli_epi64(odd, 1), 0xaa);
}

#define OIC_SHIFTS 1

static inline oic_register_i32 oic_register_shift_rounded_i32(oic_register_i32 v, int n)
{
    const __m256i half = _mm256_set1_epi32((int)((UINT32_C(1) << n) >> 1)), size = _mm256_abs_epi32((__m256i)v);
    const __m256i shifted = _mm256_srl_epi32(_mm256_add_epi32(size, half), _mm_cvtsi32_si128(n));
    return (oic_register_i32)_mm256_sign_epi32(shifted, (__m256i)v);
}

static inline float oic_register_sum_f32(oic_register_f32 a)
{
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128((__m256)a), _mm256_extractf128_ps((__m256)a, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

static inline double oic_register_sum_f64(oic_register_f64 a)
{
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128((__m256d)a), _mm256_extractf128_pd((__m256d)a, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

static inline float oic_register_largest_f32(oic_register_f32 a)
{
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128((__m256)a), _mm256_extractf128_ps((__m256)a, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

/* |x| times w with the sign of x: two products of 127 * 128 still fit 16 bits. */
static inline oic_register_i32 oic_register_dot_i8(oic_register_i32 sum, const int8_t *w, const int8_t *x)
{
    int32_t bits;
    memcpy(&bits, x, sizeof bits);
    const __m256i four = _mm256_set1_epi32(bits), bytes = _mm256_loadu_si256((const __m256i *)(const void *)w);
    const __m256i twos = _mm256_maddubs_epi16(_mm256_abs_epi8(four), _mm256_sign_epi8(bytes, four));
    return sum + (oic_register_i32)_mm256_madd_epi16(twos, _mm256_set1_epi16(1));
}

static inline oic_register_u32 oic_register_dot_i16(oic_register_u32 sum, oic_register_u32 w, oic_register_u32 x)
{
    return sum + (oic_register_u32)_mm256_madd_epi16((__m256i)w, (__m256i)x);
}

#if defined(__AVXVNNI__)
#define OIC_DOT_BYTES 2

static inline oic_register_u32 oic_register_dot_bytes(oic_register_u32 sum, oic_register_u32 w, oic_register_u32 x)
{
    return (oic_register_u32)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)w, (__m256i)x);
}

static inline oic_register_u32 oic_register_fours(const int8_t *p, const int8_t *q, const int8_t *r, const int8_t *s)
{
    const __m128i *const from[] = {(const void *)p, (const void *)q, (const void *)r, (const void *)s};
    const __m128i low = _mm_unpacklo_epi8(_mm_loadl_epi64(from[0]), _mm_loadl_epi64(from[1]));
    const __m128i high = _mm_unpacklo_epi8(_mm_loadl_epi64(from[2]), _mm_loadl_epi64(from[3]));
    return (oic_register_u32)_mm256_set_m128i(_mm_unpackhi_epi16(low, high), _mm_unpacklo_epi16(low, high));
}
#endif

#endif
