/* Products with matrices whose rows lie where no panel can be made of them, as keys and values do in a state.

   A dot product is sixteen sums, product i in sum i mod 16, and their tree: 8 + 8, 4 + 4, 2 + 2, 1 + 1.  A weighted sum of rows
   is a chain for each column, row by row.  Neither depends on the width of a register, nor on what is computed along. */
#ifndef OIC_SIMD_ROWS_H
#define OIC_SIMD_ROWS_H

#include "../version.h"

#include "lanes.h"
#include "tiles.h"

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

/* A register of numbers from elements of a row; there is a function for fewer than a register has. */
#define OIC_SOME_f32 1
static inline oic_register_f32 oic_row_f32(const float *p) { return oic_register_load_f32(p); }
static inline oic_register_f32 oic_row_f16(const oic_f16 *p) { return oic_register_load_f16(p); }
static inline oic_register_f32 oic_row_bf16(const oic_bf16 *p) { return oic_register_load_bf16(p); }
static inline oic_register_f32 oic_row_i8(const int8_t *p) { return oic_register_to_f32(oic_register_load_i8(p)); }

#define OIC_S f32
#define OIC_R f32
#include "rows_of.inc.h"

#define OIC_S f32
#define OIC_R f16
#include "rows_of.inc.h"

#define OIC_S f32
#define OIC_R bf16
#include "rows_of.inc.h"

#define OIC_S f32
#define OIC_R i8
#include "rows_of.inc.h"

#if !defined(OIC_NO_F64)
#define OIC_S f64
#define OIC_FOLD OIC_FOLD_F64
#include "rows.inc.h"

static inline oic_register_f64 oic_row_f64(const double *p) { return oic_register_load_f64(p); }

#define OIC_S f64
#define OIC_R f64
#include "rows_of.inc.h"
#endif

/* Whether rows of a type become numbers of another in registers. */
#define OIC_AS_STORED_f32_f32 1
#define OIC_AS_STORED_f32_f16 1
#define OIC_AS_STORED_f32_bf16 1
#define OIC_AS_STORED_f32_i8 1
#define OIC_AS_STORED_f64_f64 1

#endif
