/* Numbers to 8 bits with AVX2, for dots_avx2.h and dots_vnni.h. */
#include "../version.h"

#include <immintrin.h>

/* 32 numbers to 8 bits; their scale. */
static inline __m256i oic_dots_bytes_of(const float *x, float *dx)
{
    const __m256i size = _mm256_set1_epi32(0x7fffffff);
    const __m128 most = _mm_set_ss(127.0f);
    __m256i v[4], q;
    for (int i = 0; i < 4; ++i) {
        v[i] = _mm256_loadu_si256((const __m256i *)(const void *)(x + 8 * i));
    }
    q = _mm256_max_epi32(_mm256_max_epi32(_mm256_and_si256(v[0], size), _mm256_and_si256(v[1], size)),
                         _mm256_max_epi32(_mm256_and_si256(v[2], size), _mm256_and_si256(v[3], size)));
    __m128i top = _mm_max_epi32(_mm256_castsi256_si128(q), _mm256_extracti128_si256(q, 1));
    top = _mm_max_epi32(top, _mm_shuffle_epi32(top, 0x4e));
    top = _mm_max_epi32(top, _mm_shuffle_epi32(top, 0xb1));
    const uint32_t largest = (uint32_t)_mm_cvtsi128_si32(top);
    if (largest >= 0x7f800000u || largest < 0x04000000u) { /* not finite; below 2^-119 */
        *dx = oic_from_bits_f32(largest < 0x7f800000u ? largest : 0x7fc00000u) / 127.0f;
        return _mm256_setzero_si256();
    }
    /* amax / 127 and 127 / amax in one */
    const __m128 amax = _mm_castsi128_ps(top);
    const __m128 both = _mm_div_ps(_mm_unpacklo_ps(amax, most), _mm_unpacklo_ps(most, amax));
    const __m256 inv = _mm256_broadcastss_ps(_mm_shuffle_ps(both, both, 0x55));
    *dx = _mm_cvtss_f32(both);
    for (int i = 0; i < 4; ++i) {
        v[i] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_castsi256_ps(v[i]), inv));
    }
    q = _mm256_packs_epi16(_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3]));
    return _mm256_permutevar8x32_epi32(q, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

/* The sum of four. */
static inline int32_t oic_dots_total(__m256i v)
{
    const __m128i half = _mm_add_epi64(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    return _mm_cvtsi128_si32(_mm_add_epi64(half, _mm_unpackhi_epi64(half, half)));
}

/* Of |q|, the sums of eight each; and of those where q is negative. */
static inline __m256i oic_dots_sizes(__m256i q)
{
    return _mm256_sad_epu8(_mm256_abs_epi8(q), _mm256_setzero_si256());
}

static inline __m256i oic_dots_negative(__m256i q)
{
    const __m256i minus = _mm256_cmpgt_epi8(_mm256_setzero_si256(), q);
    return _mm256_sad_epu8(_mm256_and_si256(_mm256_abs_epi8(q), minus), _mm256_setzero_si256());
}
