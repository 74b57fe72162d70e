/* Products with matrices whose rows lie where no panel can be made of them, as keys and values do in a state.

   A dot product is sixteen sums, product i in sum i mod 16, and their tree: 8 + 8, 4 + 4, 2 + 2, 1 + 1.  A weighted sum of rows
   is a chain for each column, row by row.  Neither depends on the width of a register, nor on what is computed along. */
#ifndef OIC_SIMD_ROWS_H
#define OIC_SIMD_ROWS_H

#include "../version.h"

#include "lanes.h"
#include "tiles.h"
#include "../math/scalar_math.h"

#if OIC_REGISTER >= 32 || (OIC_REGISTER == 16 && defined(__SSE2__))
#include <immintrin.h>
#define OIC_FOLD_F32 1 /* registers of f32 are folded by shuffles */
#elif OIC_REGISTER == 16 && defined(__aarch64__)
#include <arm_neon.h>
#define OIC_FOLD_F32 1
#else
#define OIC_FOLD_F32 0
#endif
#define OIC_FOLD_F64 0

#define OIC_FOLDED 8 /* dot products that are folded together */

/* n rounded up to whole lanes. */
static inline ptrdiff_t oic_padded(ptrdiff_t n)
{
    return (n + OIC_LANES - 1) / OIC_LANES * OIC_LANES;
}

/* oic_folding: what is left of sixteen sums when registers are added, before anything is shuffled; oic_fold: the trees of
   eight of them.  oic_folding_of_eight: of eight sums of a product each, and eight without any. */
#if OIC_FOLD_F32 && OIC_REGISTER >= 32
typedef __m256 oic_folding_f32; /* after 8 + 8 */

static inline oic_folding_f32 oic_folding_of_f32(const oic_lanes_f32 *a)
{
#if OIC_REGISTER == 64
    const __m512 whole = (__m512)a->part[0];
    return _mm256_add_ps(_mm512_castps512_ps256(whole),
                         _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(whole), 1)));
#else
    return _mm256_add_ps((__m256)a->part[0], (__m256)a->part[1]);
#endif
}

static inline oic_folding_f32 oic_folding_of_eight_f32(const float *x, const float *w)
{
    return _mm256_mul_ps(_mm256_loadu_ps(x), _mm256_loadu_ps(w));
}

/* 4 + 4 of two. */
static inline __m256 oic_fold_two(__m256 a, __m256 b)
{
    return _mm256_add_ps(_mm256_blend_ps(a, b, 0xf0), _mm256_permute2f128_ps(a, b, 0x21));
}

/* 2 + 2 of two in each half. */
static inline __m256 oic_fold_four(__m256 a, __m256 b)
{
    const __m256 crossed = _mm256_castpd_ps(_mm256_shuffle_pd(_mm256_castps_pd(a), _mm256_castps_pd(b), 5));
    return _mm256_add_ps(_mm256_blend_ps(a, b, 0xcc), crossed);
}

static inline void oic_fold_f32(float *restrict to, const oic_folding_f32 *a)
{
    const __m256 low = oic_fold_four(oic_fold_two(a[0], a[4]), oic_fold_two(a[1], a[5]));
    const __m256 high = oic_fold_four(oic_fold_two(a[2], a[6]), oic_fold_two(a[3], a[7]));
    _mm256_storeu_ps(to, _mm256_add_ps(_mm256_shuffle_ps(low, high, 0x88), _mm256_shuffle_ps(low, high, 0xdd)));
}
#elif OIC_FOLD_F32 && defined(__SSE2__)
typedef __m128 oic_folding_f32; /* after 8 + 8 and 4 + 4 */

static inline oic_folding_f32 oic_folding_of_f32(const oic_lanes_f32 *a)
{
    return _mm_add_ps(_mm_add_ps((__m128)a->part[0], (__m128)a->part[2]), _mm_add_ps((__m128)a->part[1], (__m128)a->part[3]));
}

static inline oic_folding_f32 oic_folding_of_eight_f32(const float *x, const float *w)
{
    return _mm_add_ps(_mm_mul_ps(_mm_loadu_ps(x), _mm_loadu_ps(w)), _mm_mul_ps(_mm_loadu_ps(x + 4), _mm_loadu_ps(w + 4)));
}

static inline void oic_fold_f32(float *restrict to, const oic_folding_f32 *a)
{
    for (int i = 0; i < OIC_FOLDED; i += 4) {
        const __m128 v = a[i], w = a[i + 1], x = a[i + 2], y = a[i + 3];
        const __m128 p = _mm_add_ps(_mm_movelh_ps(v, w), _mm_movehl_ps(w, v));
        const __m128 q = _mm_add_ps(_mm_movelh_ps(x, y), _mm_movehl_ps(y, x));
        _mm_storeu_ps(to + i, _mm_add_ps(_mm_shuffle_ps(p, q, 0x88), _mm_shuffle_ps(p, q, 0xdd)));
    }
}
#elif OIC_FOLD_F32
typedef float32x4_t oic_folding_f32; /* after 8 + 8 and 4 + 4 */

static inline oic_folding_f32 oic_folding_of_f32(const oic_lanes_f32 *a)
{
    return vaddq_f32(vaddq_f32((float32x4_t)a->part[0], (float32x4_t)a->part[2]),
                     vaddq_f32((float32x4_t)a->part[1], (float32x4_t)a->part[3]));
}

static inline oic_folding_f32 oic_folding_of_eight_f32(const float *x, const float *w)
{
    return vaddq_f32(vmulq_f32(vld1q_f32(x), vld1q_f32(w)), vmulq_f32(vld1q_f32(x + 4), vld1q_f32(w + 4)));
}

static inline void oic_fold_f32(float *restrict to, const oic_folding_f32 *a)
{
    for (int i = 0; i < OIC_FOLDED; i += 4) {
        const float32x4_t v = a[i], w = a[i + 1], x = a[i + 2], y = a[i + 3];
        const float32x4_t p = vaddq_f32(vcombine_f32(vget_low_f32(v), vget_low_f32(w)),
                                        vcombine_f32(vget_high_f32(v), vget_high_f32(w)));
        const float32x4_t q = vaddq_f32(vcombine_f32(vget_low_f32(x), vget_low_f32(y)),
                                        vcombine_f32(vget_high_f32(x), vget_high_f32(y)));
        vst1q_f32(to + i, vaddq_f32(vuzp1q_f32(p, q), vuzp2q_f32(p, q)));
    }
}
#endif

/* to[4][16 apart][4] = the columns of four rows. */
#if OIC_FOLD_F32 && defined(__SSE2__)
static inline void oic_turn_f32(const float *r0, const float *r1, const float *r2, const float *r3, float *restrict to)
{
    __m128 a = _mm_loadu_ps(r0), b = _mm_loadu_ps(r1), c = _mm_loadu_ps(r2), d = _mm_loadu_ps(r3);
    _MM_TRANSPOSE4_PS(a, b, c, d);
    _mm_storeu_ps(to, a);
    _mm_storeu_ps(to + OIC_LANES, b);
    _mm_storeu_ps(to + 2 * OIC_LANES, c);
    _mm_storeu_ps(to + 3 * OIC_LANES, d);
}
#elif OIC_FOLD_F32
static inline void oic_turn_f32(const float *r0, const float *r1, const float *r2, const float *r3, float *restrict to)
{
    const float32x4x2_t a = vtrnq_f32(vld1q_f32(r0), vld1q_f32(r1)), b = vtrnq_f32(vld1q_f32(r2), vld1q_f32(r3));
    vst1q_f32(to, vcombine_f32(vget_low_f32(a.val[0]), vget_low_f32(b.val[0])));
    vst1q_f32(to + OIC_LANES, vcombine_f32(vget_low_f32(a.val[1]), vget_low_f32(b.val[1])));
    vst1q_f32(to + 2 * OIC_LANES, vcombine_f32(vget_high_f32(a.val[0]), vget_high_f32(b.val[0])));
    vst1q_f32(to + 3 * OIC_LANES, vcombine_f32(vget_high_f32(a.val[1]), vget_high_f32(b.val[1])));
}
#endif

#define OIC_S f32
#define OIC_FOLD OIC_FOLD_F32
#define OIC_MAXIMA 1
#include "rows.inc.h"

#if OIC_FOLD_F32 && OIC_REGISTER == 64
/* to[rows, OIC_LANES apart][8] += w[n][side] times the eight numbers that begin at[lane] from each of n rows, `ld` apart: a register
   for every two of them. */
OIC_INLINE void oic_weighted_beside_of(float *restrict to, ptrdiff_t rows, int side, const float *restrict w, const float *restrict v,
                                       const ptrdiff_t *restrict at, ptrdiff_t ld, ptrdiff_t n)
{
    const oic_register_i32 halves = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
    oic_register_f32 a[OIC_FOLDED / 2];
    OIC_UNROLLED
    for (int p = 0; p < side / 2; ++p) {
        a[p] = oic_register_eights_f32(to + (2 * p < rows ? 2 * p : 0) * OIC_LANES, to + (2 * p + 1 < rows ? 2 * p + 1 : 0) * OIC_LANES);
    }
    for (ptrdiff_t k = 0; k < n; ++k, v += ld, w += side) {
        const __m256i some = side == 8 ? _mm256_loadu_si256((const void *)w) : _mm256_castsi128_si256(_mm_loadu_si128((const void *)w));
        OIC_UNROLLED
        for (int p = 0; p < side / 2; ++p) {
            const __m512i both = _mm512_permutexvar_epi32((__m512i)(halves + 2 * p), _mm512_castsi256_si512(some));
            a[p] = oic_register_madd_f32((oic_register_f32)both, oic_register_eights_f32(v + at[2 * p], v + at[2 * p + 1]), a[p]);
        }
    }
    OIC_UNROLLED
    for (int r = 0; r < side; ++r) {
        const __m512d two = (__m512d)a[r / 2];
        if (r < rows) {
            _mm256_storeu_ps(to + r * OIC_LANES, (__m256)(r % 2 == 0 ? _mm512_castpd512_pd256(two) : _mm512_extractf64x4_pd(two, 1)));
        }
    }
}

OIC_LOOP void oic_weighted_beside(float *restrict to, ptrdiff_t rows, int side, const float *restrict w, const float *restrict v,
                                  const ptrdiff_t *restrict at, ptrdiff_t ld, ptrdiff_t n)
{
    if (side == 8) {
        oic_weighted_beside_of(to, rows, 8, w, v, at, ld, n);
    } else {
        oic_weighted_beside_of(to, rows, 4, w, v, at, ld, n);
    }
}
#endif

/* For rows of a type there are functions for fewer elements than a register has, for products of eight, and for panels. */
#define OIC_SOME_f32 1
#define OIC_EIGHT_f32 OIC_FOLD_F32
#define OIC_BESIDE_f32_f32 OIC_FOLD_F32
#define OIC_PANELS_f32 1

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

#define OIC_EXPS (OIC_REGISTER ? 4 : 1) /* registers at a time: one function is a long chain, and several of them take little longer */

/* The constants of oic_exp_f32, in registers once for many rows. */
enum { OIC_EXP_LEAST, OIC_EXP_PER, OIC_EXP_HALF, OIC_EXP_HIGH, OIC_EXP_LOW, OIC_EXP_Q, OIC_EXP_ALL = OIC_EXP_Q + 6 };

OIC_INLINE void oic_exps_begin(oic_register_f32 *restrict c)
{
    static const float all[OIC_EXP_ALL] = {-105.0f, 1.44269504f, 256.5f, -0.693359375f, -2.12194440e-4f, 0.0013814467238262296f,
                                           0.008368780836462975f, 0.04166839271783829f, 0.1666651964187622f, 0.4999999403953552f, 1.0f};
    OIC_UNROLLED
    for (int i = 0; i < OIC_EXP_ALL; ++i) {
        c[i] = oic_register_of_f32(all[i]);
        OIC_TILE_HELD(c[i]);
    }
}

/* v[count] = oic_exp_f32(v), of numbers that are not above 0, or NaN. */
OIC_INLINE void oic_exps_below(oic_register_f32 *v, int count, const oic_register_f32 *restrict c)
{
    oic_register_f32 k[OIC_EXPS], q[OIC_EXPS];
    oic_register_i32 whole[OIC_EXPS];
    OIC_UNROLLED
    for (int i = 0; i < count; ++i) {
        k[i] = oic_register_max_f32(v[i], c[OIC_EXP_LEAST]); /* a NaN has no integer */
        v[i] = oic_register_max_f32(c[OIC_EXP_LEAST], v[i]);
        whole[i] = oic_register_to_i32(k[i] * c[OIC_EXP_PER] + c[OIC_EXP_HALF]) - 256;
        k[i] = oic_register_to_f32(whole[i]);
    }
    OIC_UNROLLED
    for (int i = 0; i < count; ++i) {
        v[i] = oic_register_madd_f32(k[i], c[OIC_EXP_HIGH], v[i]) - k[i] * c[OIC_EXP_LOW]; /* the first product is exact */
        q[i] = c[OIC_EXP_Q + 1] + v[i] * c[OIC_EXP_Q];
    }
    OIC_UNROLLED
    for (int e = 2; e < 5; ++e) {
        OIC_UNROLLED
        for (int i = 0; i < count; ++i) {
            q[i] = c[OIC_EXP_Q + e] + v[i] * q[i];
        }
    }
    OIC_UNROLLED
    for (int i = 0; i < count; ++i) {
        q[i] = c[OIC_EXP_Q + 5] + (v[i] + v[i] * v[i] * q[i]);
        v[i] = oic_register_scale_f32(q[i], whole[i]);
    }
}

/* v[count] = oic_exp_f32(v - top), of numbers that are not above top, or NaN. */
OIC_INLINE void oic_exps_of(oic_register_f32 *v, int count, float top, const oic_register_f32 *restrict c)
{
    OIC_UNROLLED
    for (int i = 0; i < count; ++i) {
        v[i] = v[i] - top;
    }
    oic_exps_below(v, count, c);
}

/* x[n] = oic_exp_f32(x - top), n being whole lanes, of numbers that are not above top, or NaN; their sum, as of oic_sum_of. */
OIC_INLINE void oic_exps_row(float *x, ptrdiff_t n, float top, const oic_register_f32 *restrict c, oic_lanes_f32 *sum)
{
    enum { MANY = OIC_EXPS > OIC_PARTS_OF_LANES ? OIC_EXPS : OIC_PARTS_OF_LANES };
    ptrdiff_t j = 0;
    oic_lanes_zero_f32(sum);
    for (; j + MANY * OIC_WIDTH <= n; j += MANY * OIC_WIDTH) {
        for (int p = 0; p < MANY; p += OIC_EXPS) {
            float *const from = x + j + p * OIC_WIDTH;
            oic_register_f32 v[OIC_EXPS];
            OIC_UNROLLED
            for (int i = 0; i < OIC_EXPS; ++i) {
                v[i] = oic_register_load_f32(from + i * OIC_WIDTH);
            }
            oic_exps_of(v, OIC_EXPS, top, c);
            OIC_UNROLLED
            for (int i = 0; i < OIC_EXPS; ++i) {
                oic_register_store_f32(from + i * OIC_WIDTH, v[i]);
                sum->part[(p + i) % OIC_PARTS_OF_LANES] += v[i];
            }
        }
    }
    for (; j < n; j += OIC_LANES) {
        for (int i = 0; i < OIC_PARTS_OF_LANES; ++i) {
            oic_register_f32 v = oic_register_load_f32(x + j + i * OIC_WIDTH);
            oic_exps_of(&v, 1, top, c);
            oic_register_store_f32(x + j + i * OIC_WIDTH, v);
            sum->part[i] += v;
        }
    }
}

/* A register of it, beside other work: x[j..], which stays what it was but where it is to be kept. */
OIC_INLINE void oic_exps_some(float *x, ptrdiff_t j, int keep, float top, const oic_register_f32 *restrict c, oic_lanes_f32 *sum)
{
    oic_register_f32 v = oic_register_load_f32(x + j);
    oic_exps_of(&v, 1, top, c);
    sum->part[0] += v;
    if (keep) {
        oic_register_store_f32(x + j, v);
    }
}

/* Whether a machine has registers to weigh and mix at once, and units that would wait: Intel's, whose units are the same for both,
   take 1.15 times as long. */
#define OIC_WEIGHS_AHEAD_f32 (OIC_WIDTH == 16 && !OIC_INTEL)
enum { OIC_AHEAD_ROWS = 4 };

#define OIC_R f32
#define OIC_WEIGHED OIC_LANES
#define OIC_EXPS_BEGIN oic_exps_begin
#define OIC_EXPS_ROW oic_exps_row
#define OIC_EXPS_SOME oic_exps_some
#include "weigh.inc.h"

/* Scores become weights, of rows that are `side` lanes: x[n] = oic_exp_f32(x - top), number i below top[i mod 16], n being whole
   lanes; sum[side]: what a row's add up to, as oic_sum_of. */
OIC_INLINE void oic_weigh_lanes(float *restrict x, ptrdiff_t n, const float *restrict top, float *restrict sum, int side)
{
    enum { TOGETHER = OIC_EXPS > OIC_PARTS_OF_LANES ? OIC_EXPS : OIC_PARTS_OF_LANES };
    float sums[OIC_FOLDED * OIC_LANES]; /* [16][side] */
    oic_register_f32 c[OIC_EXP_ALL], tops[OIC_PARTS_OF_LANES];
    const ptrdiff_t all = side * OIC_LANES;
    oic_exps_begin(c);
    OIC_UNROLLED
    for (int i = 0; i < OIC_PARTS_OF_LANES; ++i) {
        tops[i] = oic_register_load_f32(top + i * OIC_WIDTH);
    }
    OIC_UNROLLED
    for (ptrdiff_t i = 0; i < all; i += OIC_WIDTH) {
        oic_register_store_f32(sums + i, (oic_register_f32){0});
    }
    for (ptrdiff_t j = 0; j < n; j += TOGETHER * OIC_WIDTH) { /* what is behind the last changes no sum */
        OIC_UNROLLED
        for (int p = 0; p < TOGETHER; p += OIC_EXPS) {
            float *const from = x + j + p * OIC_WIDTH, *const to = sums + ((j + p * OIC_WIDTH) & (all - 1));
            oic_register_f32 v[OIC_EXPS];
            OIC_UNROLLED
            for (int i = 0; i < OIC_EXPS; ++i) {
                v[i] = oic_register_load_f32(from + i * OIC_WIDTH) - tops[(p + i) % OIC_PARTS_OF_LANES];
            }
            oic_exps_below(v, OIC_EXPS, c);
            OIC_UNROLLED
            for (int i = 0; i < OIC_EXPS; ++i) {
                oic_register_store_f32(from + i * OIC_WIDTH, v[i]);
                oic_register_store_f32(to + i * OIC_WIDTH, oic_register_load_f32(to + i * OIC_WIDTH) + v[i]);
            }
        }
    }
    for (ptrdiff_t half = all / 2; half >= side; half /= 2) {
        const ptrdiff_t width = half < OIC_WIDTH ? 4 : OIC_WIDTH;
        for (ptrdiff_t i = 0; width == OIC_WIDTH && i < half; i += OIC_WIDTH) {
            oic_register_store_f32(sums + i, oic_register_load_f32(sums + i) + oic_register_load_f32(sums + i + half));
        }
        for (ptrdiff_t i = 0; width < OIC_WIDTH && i < half; ++i) {
            sums[i] += sums[i + half];
        }
    }
    memcpy(sum, sums, (size_t)side * sizeof *sum);
}

OIC_LOOP void oic_weigh_beside_f32(float *restrict x, ptrdiff_t n, const float *restrict top, float *restrict sum, int side)
{
    if (side == 8) {
        oic_weigh_lanes(x, n, top, sum, 8);
    } else {
        oic_weigh_lanes(x, n, top, sum, 4);
    }
}

/* x[n] = oic_exp_f32(x), of numbers that are not above 0, or NaN; there is room for whole lanes. */
OIC_LOOP void oic_factors_f32(float *x, ptrdiff_t n)
{
    oic_register_f32 c[OIC_EXP_ALL];
    oic_exps_begin(c);
    for (ptrdiff_t j = 0; j < n; j += OIC_WIDTH) {
        oic_register_f32 v = oic_register_load_f32(x + j);
        oic_exps_of(&v, 1, 0.0f, c);
        oic_register_store_f32(x + j, v);
    }
}

#if !defined(OIC_NO_F64)
#define OIC_S f64
#define OIC_FOLD OIC_FOLD_F64
#define OIC_MAXIMA 0
#include "rows.inc.h"

static inline void oic_factors_f64(double *x, ptrdiff_t n)
{
    for (ptrdiff_t j = 0; j < n; ++j) {
        x[j] = oic_exp_f64(x[j]);
    }
}

OIC_LOOP void oic_weigh_f64(double *restrict x, ptrdiff_t pitch, ptrdiff_t rows, const uint8_t *restrict n, const double *restrict top,
                           double *restrict sum)
{
    for (ptrdiff_t r = 0; r < rows; ++r, x += pitch) {
        for (ptrdiff_t j = 0; j < n[r]; ++j) {
            x[j] = oic_exp_f64(x[j] - top[r]);
        }
        sum[r] += oic_sum_of_f64(x, n[r]);
    }
}

#define OIC_PANELS_f64 1
#define OIC_WEIGHS_AHEAD_f64 0
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
