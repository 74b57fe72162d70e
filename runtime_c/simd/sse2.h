/* Four numbers a register: x86-64 as it is everywhere; with -mfma they multiply and add in one instruction. */
#ifndef OIC_SIMD_SSE2_H
#define OIC_SIMD_SSE2_H

#include "../version.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__FMA__)
#include <immintrin.h>
#else
#include <emmintrin.h>
#endif

#define OIC_WIDTH 4
#define OIC_WIDTH_F64 2

typedef float oic_register_f32 __attribute__((vector_size(16)));
typedef double oic_register_f64 __attribute__((vector_size(16)));
typedef int32_t oic_register_i32 __attribute__((vector_size(16)));
typedef uint32_t oic_register_u32 __attribute__((vector_size(16)));
typedef oic_register_u32 oic_mask; /* 0 or all ones */

#if defined(__FMA__)
#define OIC_FUSED_REGISTERS 1

static inline oic_register_f32 oic_register_fused_f32(oic_register_f32 a, oic_register_f32 b, oic_register_f32 sum)
{
    return (oic_register_f32)_mm_fmadd_ps((__m128)a, (__m128)b, (__m128)sum);
}

static inline oic_register_f64 oic_register_fused_f64(oic_register_f64 a, oic_register_f64 b, oic_register_f64 sum)
{
    return (oic_register_f64)_mm_fmadd_pd((__m128d)a, (__m128d)b, (__m128d)sum);
}
#endif

static inline oic_register_f32 oic_register_load_some_f32(const float *from, ptrdiff_t n)
{
    oic_register_f32 to = {0};
    if (n >= 4) {
        memcpy(&to, from, sizeof to);
    } else if (n == 3) {
        to = (oic_register_f32){from[0], from[1], from[2]};
    } else if (n == 2) {
        to = (oic_register_f32){from[0], from[1]};
    } else if (n == 1) {
        to = (oic_register_f32){from[0]};
    }
    return to;
}

static inline oic_register_i32 oic_register_load_i8(const int8_t *from)
{
    int32_t bits;
    memcpy(&bits, from, sizeof bits);
    const __m128i bytes = _mm_cvtsi32_si128(bits), twice = _mm_unpacklo_epi8(bytes, bytes);
    return (oic_register_i32)_mm_srai_epi32(_mm_unpacklo_epi16(twice, twice), 24);
}

static inline oic_register_u32 oic_register_load_u8(const uint8_t *from)
{
    int32_t bits;
    memcpy(&bits, from, sizeof bits);
    const __m128i zero = _mm_setzero_si128();
    return (oic_register_u32)_mm_unpacklo_epi16(_mm_unpacklo_epi8(_mm_cvtsi32_si128(bits), zero), zero);
}

static inline oic_register_u32 oic_register_load_u16(const uint16_t *from)
{
    return (oic_register_u32)_mm_unpacklo_epi16(_mm_loadl_epi64((const __m128i *)(const void *)from),
                                                _mm_setzero_si128());
}

static inline void oic_register_store_i8(int8_t *to, oic_register_i32 v)
{
    const __m128i words = _mm_packs_epi32((__m128i)v, (__m128i)v);
    const int32_t bits = _mm_cvtsi128_si32(_mm_packs_epi16(words, words));
    memcpy(to, &bits, sizeof bits);
}

static inline void oic_register_store_limited(uint8_t *to, const oic_register_i32 *v, int16_t more, int sign)
{
    const __m128i all = _mm_set1_epi16(more);
    const __m128i low = _mm_adds_epi16(_mm_packs_epi32((__m128i)v[0], (__m128i)v[1]), all);
    const __m128i high = _mm_adds_epi16(_mm_packs_epi32((__m128i)v[2], (__m128i)v[3]), all);
    _mm_storeu_si128((__m128i *)(void *)to, sign ? _mm_packs_epi16(low, high) : _mm_packus_epi16(low, high));
}

static inline void oic_register_store_u16(uint16_t *to, oic_register_u32 v)
{
    const __m128i low = _mm_srai_epi32(_mm_slli_epi32((__m128i)v, 16), 16); /* as numbers with a sign, to be packed */
    _mm_storel_epi64((__m128i *)(void *)to, _mm_packs_epi32(low, low));
}

static inline oic_mask oic_register_less_f32(oic_register_f32 a, oic_register_f32 b)
{
    return (oic_mask)_mm_cmplt_ps((__m128)a, (__m128)b);
}

static inline oic_mask oic_register_equal_f32(oic_register_f32 a, oic_register_f32 b)
{
    return (oic_mask)_mm_cmpeq_ps((__m128)a, (__m128)b);
}

static inline oic_mask oic_register_less_i32(oic_register_i32 a, oic_register_i32 b)
{
    return (oic_mask)_mm_cmplt_epi32((__m128i)a, (__m128i)b);
}

static inline oic_mask oic_register_equal_i32(oic_register_i32 a, oic_register_i32 b)
{
    return (oic_mask)_mm_cmpeq_epi32((__m128i)a, (__m128i)b);
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
    return _mm_movemask_ps((__m128)a) != 0;
}

static inline oic_register_u32 oic_register_select_u32(oic_mask m, oic_register_u32 yes, oic_register_u32 no)
{
    return (yes & m) | (no & ~m);
}

static inline oic_register_f32 oic_register_select_f32(oic_mask m, oic_register_f32 yes, oic_register_f32 no)
{
    return (oic_register_f32)oic_register_select_u32(m, (oic_register_u32)yes, (oic_register_u32)no);
}

static inline oic_register_f32 oic_register_max_f32(oic_register_f32 a, oic_register_f32 b)
{
    return (oic_register_f32)_mm_max_ps((__m128)a, (__m128)b);
}

static inline oic_register_f32 oic_register_min_f32(oic_register_f32 a, oic_register_f32 b)
{
    return (oic_register_f32)_mm_min_ps((__m128)a, (__m128)b);
}

static inline oic_register_f32 oic_register_sqrt_f32(oic_register_f32 a)
{
    return (oic_register_f32)_mm_sqrt_ps((__m128)a);
}

static inline oic_register_f64 oic_register_sqrt_f64(oic_register_f64 a)
{
    return (oic_register_f64)_mm_sqrt_pd((__m128d)a);
}

static inline oic_register_f32 oic_register_to_f32(oic_register_i32 a)
{
    return (oic_register_f32)_mm_cvtepi32_ps((__m128i)a);
}

static inline oic_register_i32 oic_register_to_i32(oic_register_f32 a)
{
    return (oic_register_i32)_mm_cvttps_epi32((__m128)a);
}

static inline oic_register_i32 oic_register_nearest_i32(oic_register_f32 a)
{
    return (oic_register_i32)_mm_cvtps_epi32((__m128)a);
}

static inline oic_register_f32 oic_register_round_f32(oic_register_f32 a)
{
    const oic_register_u32 bits = (oic_register_u32)a, sign = bits & 0x80000000u;
    const oic_register_u32 whole = (oic_register_u32)oic_register_to_f32(oic_register_nearest_i32(a)) & 0x7fffffffu;
    const oic_mask digits = oic_register_less_i32((oic_register_i32)(bits & 0x7fffffffu),
                                                  (oic_register_i32)_mm_set1_epi32(0x4b000000));
    return (oic_register_f32)oic_register_select_u32(digits, whole | sign, bits);
}

static inline oic_register_i32 oic_register_max_i32(oic_register_i32 a, oic_register_i32 b)
{
    const oic_register_i32 more = a > b;
    return (a & more) | (b & ~more);
}

static inline oic_register_i32 oic_register_min_i32(oic_register_i32 a, oic_register_i32 b)
{
    const oic_register_i32 less = a < b;
    return (a & less) | (b & ~less);
}

/* Products of numbers without a sign, less what a sign counts for. */
static inline oic_register_i32 oic_register_high_half_i32(oic_register_i32 a, oic_register_i32 b)
{
    const __m128i x = (__m128i)a, y = (__m128i)b, half = _mm_set1_epi64x(INT64_C(1) << 30), odds = _mm_set1_epi64x(-(INT64_C(1) << 32));
    const __m128i less = _mm_add_epi32(_mm_and_si128(_mm_srai_epi32(x, 31), y), _mm_and_si128(_mm_srai_epi32(y, 31), x));
    const __m128i even = _mm_sub_epi64(_mm_mul_epu32(x, y), _mm_slli_epi64(less, 32));
    const __m128i odd = _mm_sub_epi64(_mm_mul_epu32(_mm_srli_epi64(x, 32), _mm_srli_epi64(y, 32)), _mm_and_si128(less, odds));
    const __m128i low = _mm_srli_epi64(_mm_add_epi64(even, half), 31), high = _mm_slli_epi64(_mm_add_epi64(odd, half), 1);
    return (oic_register_i32)_mm_or_si128(_mm_andnot_si128(odds, low), _mm_and_si128(odds, high));
}

static inline float oic_register_sum_f32(oic_register_f32 a)
{
    const __m128 two = _mm_add_ps((__m128)a, _mm_movehl_ps((__m128)a, (__m128)a));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

static inline double oic_register_sum_f64(oic_register_f64 a)
{
    return a[0] + a[1];
}

static inline float oic_register_largest_f32(oic_register_f32 a)
{
    const __m128 two = _mm_max_ps((__m128)a, _mm_movehl_ps((__m128)a, (__m128)a));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

static inline oic_register_i32 oic_register_dot_i8(oic_register_i32 sum, const int8_t *w, const int8_t *x)
{
    int32_t bits;
    memcpy(&bits, x, sizeof bits);
    const __m128i sixteen = _mm_loadu_si128((const __m128i *)(const void *)w), four = _mm_set1_epi32(bits);
    const __m128i xs = _mm_srai_epi16(_mm_unpacklo_epi8(four, four), 8);
    const __m128i low = _mm_madd_epi16(_mm_srai_epi16(_mm_unpacklo_epi8(sixteen, sixteen), 8), xs);
    const __m128i high = _mm_madd_epi16(_mm_srai_epi16(_mm_unpackhi_epi8(sixteen, sixteen), 8), xs);
    const __m128 even = _mm_shuffle_ps(_mm_castsi128_ps(low), _mm_castsi128_ps(high), _MM_SHUFFLE(2, 0, 2, 0));
    const __m128 odd = _mm_shuffle_ps(_mm_castsi128_ps(low), _mm_castsi128_ps(high), _MM_SHUFFLE(3, 1, 3, 1));
    return sum + (oic_register_i32)_mm_add_epi32(_mm_castps_si128(even), _mm_castps_si128(odd));
}

static inline oic_register_u32 oic_register_dot_i16(oic_register_u32 sum, oic_register_u32 w, oic_register_u32 x)
{
    return sum + (oic_register_u32)_mm_madd_epi16((__m128i)w, (__m128i)x);
}

#endif
