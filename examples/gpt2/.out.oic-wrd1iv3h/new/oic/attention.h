/* Attention over keys and values where they lie, in one pass with a running maximum.

   Queries that share a key head go through the keys together, OIC_ATTENTION_ROWS of them, OIC_ATTENTION_KEYS keys
   at a time; no scores are kept beyond that.  Computed in C (float; double for f64), rounded once.
   Stack: OIC_ATTENTION_ROWS * OIC_ATTENTION_KEYS + 4 * OIC_ATTENTION_PART numbers, and as many bytes: 5 KB in float. */
#ifndef OIC_ATTENTION_H
#define OIC_ATTENTION_H

#include "version.h"

#include "batch.h"
#include "dot.h"
#include "scalar_math.h"

#define OIC_ATTENTION_ROWS 8
#define OIC_ATTENTION_KEYS 64
#define OIC_ATTENTION_PART 128 /* elements of a key or value that are widened at a time */

/* Keys lo..hi-1 take part for query i of N, when `length` keys are in use of T. */
static inline void oic_attention_range(ptrdiff_t i, ptrdiff_t N, ptrdiff_t T, int64_t length, int causal,
                                       int64_t window, ptrdiff_t *lo, ptrdiff_t *hi)
{
    const int64_t at = (int64_t)i + (length - (int64_t)N); /* the key that the query is aligned with */
    int64_t last = length < (int64_t)T ? length : (int64_t)T;
    int64_t first = 0;
    last = causal && at + 1 < last ? at + 1 : last;
    if (window >= 0 && at - window >= 0) {
        first = at - window + 1;
    }
    last = last < 0 ? 0 : last;
    *lo = (ptrdiff_t)(first < last ? first : last);
    *hi = (ptrdiff_t)last;
}

#define OIC_ATTENTION_WEIGH(C, F)                                                                           \
    /* One tile of one row: the scores s[n] become weights relative to the largest so far, *top; the sum of weights so \
       far, *sum, and acc[D] are brought to the same scale. */                                              \
    static inline void oic_attention_weigh_##C(C *restrict s, const uint8_t *restrict ok, ptrdiff_t n,      \
                                               C *restrict top, C *restrict sum, C *restrict acc, ptrdiff_t D) \
    {                                                                                                       \
        C high = *top, lane[4] = {0};                                                                       \
        for (ptrdiff_t j = 0; j < n; ++j) {                                                                 \
            high = ok[j] && s[j] > high ? s[j] : high;                                                      \
        }                                                                                                   \
        if (high > *top) {                                                                                  \
            const C factor = oic_exp_##F(*top - high);                                                      \
            *sum *= factor;                                                                                 \
            for (ptrdiff_t d = 0; d < D; ++d) {                                                             \
                acc[d] *= factor;                                                                           \
            }                                                                                               \
            *top = high;                                                                                    \
        }                                                                                                   \
        if (high == (C)-INFINITY) { /* only -inf so far, or NaN, which the sum keeps */                     \
            for (ptrdiff_t j = 0; j < n; ++j) {                                                             \
                *sum += ok[j] && s[j] != s[j] ? s[j] : (C)0;                                                \
                s[j] = (C)0;                                                                                \
            }                                                                                               \
            return;                                                                                         \
        }                                                                                                   \
        for (ptrdiff_t j = 0; j < OIC_ATTENTION_KEYS; ++j) {                                                \
            s[j] = oic_exp_##F(s[j] - high);                                                                \
        }                                                                                                   \
        for (ptrdiff_t j = 0; j < OIC_ATTENTION_KEYS; ++j) {                                                \
            s[j] = j < n && ok[j] ? s[j] : (C)0;                                                            \
        }                                                                                                   \
        for (ptrdiff_t j = 0; j < OIC_ATTENTION_KEYS; j += 4) {                                             \
            for (ptrdiff_t l = 0; l < 4; ++l) {                                                             \
                lane[l] += s[j + l];                                                                        \
            }                                                                                               \
        }                                                                                                   \
        *sum += (lane[0] + lane[2]) + (lane[1] + lane[3]);                                                  \
    }

OIC_ATTENTION_WEIGH(float, f32)
OIC_ATTENTION_WEIGH(double, f64)

/* Keys and values of type K for sums in C; DK: they are stored as C. */
#define OIC_ATTENTION_TILE(K, SK, DK, C)                                                                    \
    /* s[R][KEYS] = q[R, D] * k[n, D]', keys ld apart from element at on. */                                \
    static inline void oic_attention_scores_##C##_##K(const C *restrict q, const SK *restrict k, ptrdiff_t at, \
                                                      ptrdiff_t ld, ptrdiff_t R, ptrdiff_t n, ptrdiff_t D,  \
                                                      C *restrict s)                                        \
    {                                                                                                       \
        const ptrdiff_t most = DK ? (D > 0 ? D : 1) : OIC_ATTENTION_PART;                                   \
        C part[DK ? 1 : 4 * OIC_ATTENTION_PART];                                                            \
        for (ptrdiff_t j = 0; j < n; j += 4) {                                                              \
            const ptrdiff_t keys = n - j < 4 ? n - j : 4;                                                   \
            C sum[4 * OIC_ATTENTION_ROWS] = {0};                                                            \
            for (ptrdiff_t d = 0; d < D; d += most) {                                                       \
                const ptrdiff_t m = D - d < most ? D - d : most;                                            \
                const ptrdiff_t step = DK ? ld : OIC_ATTENTION_PART;                                        \
                const C *const p = DK ? (const C *)(const void *)(k + at + j * ld + d) : part;              \
                for (ptrdiff_t c = 0; !DK && c < keys; ++c) {                                               \
                    oic_widen_##K##_##C(k, at + (j + c) * ld + d, m, part + c * OIC_ATTENTION_PART);        \
                }                                                                                           \
                for (ptrdiff_t r = 0; r < R;) {                                                             \
                    if (keys == 4 && R - r >= 4) {                                                          \
                        oic_dot_four_##C(q + r * D + d, D, p, step, m, sum + 4 * r);                        \
                        r += 4;                                                                             \
                    } else if (keys == 4) {                                                                 \
                        oic_dot_1x4_##C(q + r * D + d, p, step, m, sum + 4 * r);                            \
                        r += 1;                                                                             \
                    } else {                                                                                \
                        for (ptrdiff_t c = 0; c < keys; ++c) {                                              \
                            sum[4 * r + c] += oic_dot_1x1_##C(q + r * D + d, p + c * step, m);              \
                        }                                                                                   \
                        r += 1;                                                                             \
                    }                                                                                       \
                }                                                                                           \
            }                                                                                               \
            for (ptrdiff_t r = 0; r < R; ++r) {                                                             \
                for (ptrdiff_t c = 0; c < keys; ++c) {                                                      \
                    s[r * OIC_ATTENTION_KEYS + j + c] = sum[4 * r + c];                                     \
                }                                                                                           \
            }                                                                                               \
        }                                                                                                   \
    }                                                                                                       \
                                                                                                            \
    /* acc[R, D] += s[R][KEYS] * v[n, D] for the keys with ok[R][KEYS]; whole: all of them for every row. */ \
    static inline void oic_attention_values_##C##_##K(const C *restrict s, const uint8_t *restrict ok, int whole, \
                                                      const SK *restrict v, ptrdiff_t at, ptrdiff_t ld, ptrdiff_t R, \
                                                      ptrdiff_t n, ptrdiff_t D, C *restrict acc)            \
    {                                                                                                       \
        C part[DK ? 1 : 4 * OIC_ATTENTION_PART];                                                            \
        const ptrdiff_t step = DK ? ld : OIC_ATTENTION_PART;                                                \
        for (ptrdiff_t d = 0; d < D; d += OIC_ATTENTION_PART) {                                             \
            const ptrdiff_t m = D - d < OIC_ATTENTION_PART ? D - d : OIC_ATTENTION_PART;                    \
            for (ptrdiff_t j = 0; j < n; j += 4) {                                                          \
                const ptrdiff_t keys = n - j < 4 ? n - j : 4;                                               \
                const C *const p = DK ? (const C *)(const void *)(v + at + j * ld + d) : part;              \
                for (ptrdiff_t c = 0; !DK && c < keys; ++c) {                                               \
                    oic_widen_##K##_##C(v, at + (j + c) * ld + d, m, part + c * OIC_ATTENTION_PART);        \
                }                                                                                           \
                for (ptrdiff_t r = 0; r < R; ++r) {                                                         \
                    const C *const w = s + r * OIC_ATTENTION_KEYS + j;                                      \
                    const uint8_t *const in = ok + r * OIC_ATTENTION_KEYS + j;                              \
                    C *restrict const to = acc + r * D + d;                                                 \
                    if (keys == 4 && whole) {                                                               \
                        for (ptrdiff_t e = 0; e < m; ++e) {                                                 \
                            to[e] += (w[0] * p[e] + w[1] * p[step + e])                                     \
                                     + (w[2] * p[2 * step + e] + w[3] * p[3 * step + e]);                   \
                        }                                                                                   \
                        continue;                                                                           \
                    }                                                                                       \
                    for (ptrdiff_t c = 0; c < keys; ++c) {                                                  \
                        for (ptrdiff_t e = 0; in[c] && e < m; ++e) {                                        \
                            to[e] += w[c] * p[c * step + e];                                                \
                        }                                                                                   \
                    }                                                                                       \
                }                                                                                           \
            }                                                                                               \
        }                                                                                                   \
    }

OIC_ATTENTION_TILE(f32, float, 1, float)
OIC_ATTENTION_TILE(f16, oic_f16, 0, float)
OIC_ATTENTION_TILE(bf16, oic_bf16, 0, float)
OIC_ATTENTION_TILE(f8, oic_f8, 0, float)
OIC_ATTENTION_TILE(i8, int8_t, 0, float)
OIC_ATTENTION_TILE(f64, double, 1, double)
OIC_ATTENTION_TILE(f32, float, 0, double)
OIC_ATTENTION_TILE(f16, oic_f16, 0, double)
OIC_ATTENTION_TILE(bf16, oic_bf16, 0, double)
OIC_ATTENTION_TILE(f8, oic_f8, 0, double)

/* y[.., N, Hq, Dv] = softmax(scale * q * k' + bias) * v over the keys that take part; zeros where none does.

   q[.., N, Hq, Dk], k[.., T, Hk, Dk], v[.., T, Hk, Dv] lie at the strides qs, ks, vs of the leading axes shape[rank],
   of N or T, and of the heads, dense along the last axis.  bias and mask (NULL: none) lie at bs, ms of the leading
   axes, heads, N and T; k_scale and v_scale (NULL: 1) at kss, vss of the leading axes, T and heads; kv_len at ls of
   the leading axes, or NULL: `length`.  window -1: none.  y is dense; work holds OIC_ATTENTION_ROWS * (Dk + Dv). */
#define OIC_ATTENTION(Q, SQ, K, SK, C)                                                                      \
    static inline void oic_attention_##Q##_##K(const SQ *restrict q, const SK *restrict k, const SK *restrict v, \
                                               const float *restrict bias, const uint8_t *restrict mask,    \
                                               const int32_t *restrict kv_len, const float *restrict k_scale, \
                                               const float *restrict v_scale, SQ *restrict y, C *restrict work, \
                                               ptrdiff_t rank, const ptrdiff_t *shape, ptrdiff_t N, ptrdiff_t T, \
                                               ptrdiff_t Hq, ptrdiff_t Hk, ptrdiff_t Dk, ptrdiff_t Dv,      \
                                               const ptrdiff_t *qs, const ptrdiff_t *ks, const ptrdiff_t *vs, \
                                               const ptrdiff_t *bs, const ptrdiff_t *ms, const ptrdiff_t *kss, \
                                               const ptrdiff_t *vss, const ptrdiff_t *ls, int64_t length, C scale, \
                                               ptrdiff_t causal, int64_t window)                            \
    {                                                                                                       \
        const ptrdiff_t group = Hk > 0 ? Hq / Hk : 0, count = oic_product(rank, shape) * Hk;                \
        C *const rows = work, *const acc = work + OIC_ATTENTION_ROWS * Dk;                                  \
        for (ptrdiff_t bh = 0; bh < count; ++bh) {                                                          \
            const ptrdiff_t b = bh / Hk, hk = bh % Hk;                                                      \
            const int64_t used = kv_len ? kv_len[oic_offset(b, rank, shape, ls)] : length;                  \
            const ptrdiff_t k0 = oic_offset(b, rank, shape, ks) + hk * ks[rank + 1];                        \
            const ptrdiff_t v0 = oic_offset(b, rank, shape, vs) + hk * vs[rank + 1];                        \
            const ptrdiff_t q0 = oic_offset(b, rank, shape, qs), y0 = b * N * Hq * Dv;                      \
            for (ptrdiff_t first = 0; first < N * group; first += OIC_ATTENTION_ROWS) {                     \
                const ptrdiff_t left = N * group - first, R = left < OIC_ATTENTION_ROWS ? left : OIC_ATTENTION_ROWS; \
                ptrdiff_t lo[OIC_ATTENTION_ROWS], hi[OIC_ATTENTION_ROWS], from = T, to = 0;                 \
                C top[OIC_ATTENTION_ROWS], sum[OIC_ATTENTION_ROWS] = {0};                                   \
                int any[OIC_ATTENTION_ROWS] = {0};                                                          \
                for (ptrdiff_t r = 0; r < R; ++r) { /* rows of one key head: queries, and heads within them */ \
                    const ptrdiff_t i = (first + r) / group, h = hk * group + (first + r) % group;          \
                    oic_attention_range(i, N, T, used, (int)causal, window, &lo[r], &hi[r]);                \
                    from = lo[r] < from ? lo[r] : from;                                                     \
                    to = hi[r] > to ? hi[r] : to;                                                           \
                    top[r] = (C)-INFINITY;                                                                  \
                    oic_widen_##Q##_##C(q, q0 + i * qs[rank] + h * qs[rank + 1], Dk, rows + r * Dk);        \
                    for (ptrdiff_t d = 0; d < Dk; ++d) {                                                    \
                        rows[r * Dk + d] *= scale;                                                          \
                    }                                                                                       \
                    for (ptrdiff_t d = 0; d < Dv; ++d) {                                                    \
                        acc[r * Dv + d] = (C)0;                                                             \
                    }                                                                                       \
                }                                                                                           \
                for (ptrdiff_t j0 = from; j0 < to; j0 += OIC_ATTENTION_KEYS) {                              \
                    const ptrdiff_t n = to - j0 < OIC_ATTENTION_KEYS ? to - j0 : OIC_ATTENTION_KEYS;        \
                    C s[OIC_ATTENTION_ROWS * OIC_ATTENTION_KEYS] = {0};                                     \
                    uint8_t ok[OIC_ATTENTION_ROWS * OIC_ATTENTION_KEYS];                                    \
                    int whole = 1;                                                                          \
                    oic_attention_scores_##C##_##K(rows, k, k0 + j0 * ks[rank], ks[rank], R, n, Dk, s);     \
                    for (ptrdiff_t r = 0; r < R; ++r) {                                                     \
                        const ptrdiff_t i = (first + r) / group, h = hk * group + (first + r) % group;      \
                        C *const sr = s + r * OIC_ATTENTION_KEYS;                                           \
                        uint8_t *const in = ok + r * OIC_ATTENTION_KEYS;                                    \
                        for (ptrdiff_t j = 0; j < n; ++j) {                                                 \
                            in[j] = (uint8_t)(j0 + j >= lo[r] && j0 + j < hi[r]);                           \
                        }                                                                                   \
                        if (mask) {                                                                         \
                            const ptrdiff_t m0 = oic_offset(b, rank, shape, ms) + h * ms[rank] + i * ms[rank + 1]; \
                            for (ptrdiff_t j = 0; j < n; ++j) {                                             \
                                in[j] &= mask[m0 + (j0 + j) * ms[rank + 2]];                                \
                            }                                                                               \
                        }                                                                                   \
                        if (k_scale) {                                                                      \
                            const ptrdiff_t c0 = oic_offset(b, rank, shape, kss) + hk * kss[rank + 1];      \
                            for (ptrdiff_t j = 0; j < n; ++j) {                                             \
                                sr[j] *= (C)k_scale[c0 + (j0 + j) * kss[rank]];                             \
                            }                                                                               \
                        }                                                                                   \
                        if (bias) {                                                                         \
                            const ptrdiff_t c0 = oic_offset(b, rank, shape, bs) + h * bs[rank] + i * bs[rank + 1]; \
                            for (ptrdiff_t j = 0; j < n; ++j) {                                             \
                                sr[j] += (C)bias[c0 + (j0 + j) * bs[rank + 2]];                             \
                            }                                                                               \
                        }                                                                                   \
                        for (ptrdiff_t j = 0; j < n; ++j) {                                                 \
                            any[r] |= in[j];                                                                \
                            whole &= in[j];                                                                 \
                        }                                                                                   \
                        oic_attention_weigh_##C(sr, in, n, &top[r], &sum[r], acc + r * Dv, Dv);             \
                        if (v_scale) {                                                                      \
                            const ptrdiff_t c0 = oic_offset(b, rank, shape, vss) + hk * vss[rank + 1];      \
                            for (ptrdiff_t j = 0; j < n; ++j) {                                             \
                                sr[j] *= in[j] ? (C)v_scale[c0 + (j0 + j) * vss[rank]] : (C)0;              \
                            }                                                                               \
                        }                                                                                   \
                    }                                                                                       \
                    oic_attention_values_##C##_##K(s, ok, whole, v, v0 + j0 * vs[rank], vs[rank], R, n, Dv, acc); \
                }                                                                                           \
                for (ptrdiff_t r = 0; r < R; ++r) {                                                         \
                    const ptrdiff_t i = (first + r) / group, h = hk * group + (first + r) % group;          \
                    for (ptrdiff_t d = 0; d < Dv; ++d) {                                                    \
                        oic_store_##Q(y, y0 + (i * Hq + h) * Dv + d, any[r] ? acc[r * Dv + d] / sum[r] : (C)0); \
                    }                                                                                       \
                }                                                                                           \
            }                                                                                               \
        }                                                                                                   \
    }

OIC_ATTENTION(f32, float, f32, float, float)
OIC_ATTENTION(f32, float, f16, oic_f16, float)
OIC_ATTENTION(f32, float, bf16, oic_bf16, float)
OIC_ATTENTION(f32, float, f8, oic_f8, float)
OIC_ATTENTION(f32, float, i8, int8_t, float)
OIC_ATTENTION(f16, oic_f16, f16, oic_f16, float)
OIC_ATTENTION(bf16, oic_bf16, bf16, oic_bf16, float)
OIC_ATTENTION(f8, oic_f8, f8, oic_f8, float)
OIC_ATTENTION(f64, double, f64, double, double)
OIC_ATTENTION(f64, double, f32, float, double)
OIC_ATTENTION(f64, double, f16, oic_f16, double)
OIC_ATTENTION(f64, double, bf16, oic_bf16, double)
OIC_ATTENTION(f64, double, f8, oic_f8, double)

#endif
