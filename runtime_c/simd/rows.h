/* Products with matrices whose rows lie where no panel can be made of them, as keys and values do in a state.

   A dot product is sixteen sums, product i in sum i mod 16, and their tree: 8 + 8, 4 + 4, 2 + 2, 1 + 1.  A weighted sum of rows
   is a chain for each column, row by row.  Neither depends on the width of a register, nor on what is computed along. */
#ifndef OIC_SIMD_ROWS_H
#define OIC_SIMD_ROWS_H

#include "../version.h"

#include "lanes.h"

#if OIC_REGISTER >= 32
#include <immintrin.h>
#define OIC_FOLD_F32 1 /* registers of f32 are folded by shuffles */
#elif OIC_REGISTER == 16 && defined(__SSE2__)
#include <immintrin.h>
#define OIC_FOLD_F32 1
#elif OIC_REGISTER == 16 && defined(__aarch64__)
#include <arm_neon.h>
#define OIC_FOLD_F32 1
#else
#define OIC_FOLD_F32 0
#endif
#define OIC_FOLD_F64 0

/* n rounded up to whole lanes. */
static inline ptrdiff_t oic_padded(ptrdiff_t n)
{
    return (n + OIC_LANES - 1) / OIC_LANES * OIC_LANES;
}

#if OIC_REGISTER == 64
static inline oic_register_f32 oic_register_some_f32(const float *from, ptrdiff_t n)
{
    return n >= 16 ? oic_register_load_f32(from)
                   : (oic_register_f32)_mm512_maskz_loadu_ps((__mmask16)((1u << (unsigned)n) - 1u), from);
}
#elif OIC_REGISTER == 32
static inline oic_register_f32 oic_register_some_f32(const float *from, ptrdiff_t n)
{
    const __m256 number = _mm256_setr_ps(0.0f, 1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f, 7.0f);
    const __m256 there = _mm256_cmp_ps(_mm256_set1_ps((float)n), number, _CMP_GT_OQ);
    return n >= 8 ? oic_register_load_f32(from) : (oic_register_f32)_mm256_maskload_ps(from, _mm256_castps_si256(there));
}
#endif

#if OIC_FOLD_F32
/* Four sums of sixteen numbers a, after 8 + 8 and 4 + 4. */
#if defined(__aarch64__)
static inline float32x4_t oic_quarter_f32(const oic_lanes_f32 *a)
{
    return vaddq_f32(vaddq_f32((float32x4_t)a->part[0], (float32x4_t)a->part[2]),
                     vaddq_f32((float32x4_t)a->part[1], (float32x4_t)a->part[3]));
}
#else
static inline __m128 oic_quarter_f32(const oic_lanes_f32 *a)
{
#if OIC_REGISTER == 64
    const __m512 whole = (__m512)a->part[0];
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(whole),
                                       _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(whole), 1)));
    return _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
#elif OIC_REGISTER == 32
    const __m256 eight = _mm256_add_ps((__m256)a->part[0], (__m256)a->part[1]);
    return _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
#else
    return _mm_add_ps(_mm_add_ps((__m128)a->part[0], (__m128)a->part[2]), _mm_add_ps((__m128)a->part[1], (__m128)a->part[3]));
#endif
}
#endif

/* to[4] = the trees of sixteen numbers a, b, c and d. */
static inline void oic_fold_f32(float *restrict to, const oic_lanes_f32 *a, const oic_lanes_f32 *b, const oic_lanes_f32 *c,
                                const oic_lanes_f32 *d)
{
#if defined(__aarch64__)
    const float32x4_t v = oic_quarter_f32(a), w = oic_quarter_f32(b), x = oic_quarter_f32(c), y = oic_quarter_f32(d);
    const float32x4_t p = vaddq_f32(vcombine_f32(vget_low_f32(v), vget_low_f32(w)),
                                    vcombine_f32(vget_high_f32(v), vget_high_f32(w)));
    const float32x4_t q = vaddq_f32(vcombine_f32(vget_low_f32(x), vget_low_f32(y)),
                                    vcombine_f32(vget_high_f32(x), vget_high_f32(y)));
    vst1q_f32(to, vaddq_f32(vuzp1q_f32(p, q), vuzp2q_f32(p, q)));
#else
    const __m128 v = oic_quarter_f32(a), w = oic_quarter_f32(b), x = oic_quarter_f32(c), y = oic_quarter_f32(d);
    const __m128 p = _mm_add_ps(_mm_movelh_ps(v, w), _mm_movehl_ps(w, v));
    const __m128 q = _mm_add_ps(_mm_movelh_ps(x, y), _mm_movehl_ps(y, x));
    _mm_storeu_ps(to, _mm_add_ps(_mm_shuffle_ps(p, q, 0x88), _mm_shuffle_ps(p, q, 0xdd)));
#endif
}
#endif

#define OIC_S f32
#define OIC_FOLD OIC_FOLD_F32
#include "rows.inc.h"

#if !defined(OIC_NO_F64)
#define OIC_S f64
#define OIC_FOLD OIC_FOLD_F64
#include "rows.inc.h"
#endif

#endif
