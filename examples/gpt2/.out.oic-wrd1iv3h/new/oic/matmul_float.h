/* Float matrix products and linear layers, of operands X and W computed in C (float or double).

   They come in three forms, chosen by where the elements lie:

     dots    both operands dense along K: rows of x times rows of w.  One row of x streams w in order, four
             rows at a time; more rows share a tile of 4 x 4 products.  Narrow operands are widened a tile
             at a time.
     axpys   b dense along N: rows of b times elements of a.
     plain   any strides.

   A product is summed as in dot.h, tiles in order of k.  Results are dense, rounded once, and overlap no operand.
   Stack: at most 8 * OIC_TILE + 4 * OIC_ROWS, or OIC_AXPY, numbers. */
#ifndef OIC_MATMUL_FLOAT_H
#define OIC_MATMUL_FLOAT_H

#include "version.h"

#include "batch.h"
#include "dot.h"

#define OIC_TILE (16 * OIC_LANES_float + 64) /* elements of a row that are widened at a time */
#define OIC_PANEL 2048                       /* elements of a row that stay in the first caches */
#define OIC_ROWS 32                          /* rows of x that share them */
#define OIC_AXPY 512                         /* columns that are summed at a time */

/* Element i of a float tensor whose type is known at run time, exactly. */
static inline double oic_real(const void *p, oic_dtype t, ptrdiff_t i)
{
    switch (t) {
    case OIC_F8: return (double)oic_load_f8(p, i);
    case OIC_F16: return (double)oic_load_f16(p, i);
    case OIC_BF16: return (double)oic_load_bf16(p, i);
    case OIC_F64: return oic_load_f64(p, i);
    default: return (double)oic_load_f32(p, i);
    }
}

/* DX, DW: the operand is stored as C and is used where it lies.
   dots: y[M, N] = x[M, K] * w[N, K]' * scale[N] + b[N]; scale (neighbours ds apart) and b may be NULL.
   dots_few: the same for M < 4 and a narrow w, widened a row after the other as it comes from memory. */
#define OIC_FLOAT_DOTS(X, SX, DX, W, SW, DW, C)                                                             \
    static inline void oic_dots_put_##X##_##W(SX *restrict y, ptrdiff_t at, ptrdiff_t j, C sum,             \
                                              const float *restrict scale, ptrdiff_t ds, const void *restrict b, \
                                              oic_dtype tb)                                                 \
    {                                                                                                       \
        const C v = scale ? sum * (C)scale[j * ds] : sum;                                                   \
        oic_store_##X(y, at + j, b ? v + (C)oic_real(b, tb, j) : v);                                        \
    }                                                                                                       \
                                                                                                            \
    static inline void oic_dots_few_##X##_##W(const SX *restrict x, const SW *restrict w, SX *restrict y, ptrdiff_t M, \
                                              ptrdiff_t K, ptrdiff_t N, ptrdiff_t ldx, ptrdiff_t ldw,       \
                                              const float *restrict scale, ptrdiff_t ds, const void *restrict b, \
                                              oic_dtype tb)                                                 \
    {                                                                                                       \
        C xt[DX ? 1 : 4 * OIC_TILE], wt[4 * OIC_TILE];                                                      \
        for (ptrdiff_t j = 0; j < N; ++j) {                                                                 \
            C sum[4] = {0};                                                                                 \
            for (ptrdiff_t k = 0; k < K; k += 4 * OIC_TILE) {                                               \
                const ptrdiff_t n = K - k < 4 * OIC_TILE ? K - k : 4 * OIC_TILE;                            \
                oic_widen_##W##_##C(w, j * ldw + k, n, wt);                                                 \
                for (ptrdiff_t i = 0; i < M; ++i) {                                                         \
                    if (!DX) {                                                                              \
                        oic_widen_##X##_##C(x, i * ldx + k, n, xt);                                         \
                    }                                                                                       \
                    sum[i] += oic_dot_1x1_##C(DX ? (const C *)(const void *)(x + i * ldx + k) : xt, wt, n); \
                }                                                                                           \
            }                                                                                               \
            for (ptrdiff_t i = 0; i < M; ++i) {                                                             \
                oic_dots_put_##X##_##W(y, i * N, j, sum[i], scale, ds, b, tb);                              \
            }                                                                                               \
        }                                                                                                   \
    }                                                                                                       \
                                                                                                            \
    static inline void oic_dots_##X##_##W(const SX *restrict x, const SW *restrict w, SX *restrict y, ptrdiff_t M, \
                                          ptrdiff_t K, ptrdiff_t N, ptrdiff_t ldx, ptrdiff_t ldw,           \
                                          const float *restrict scale, ptrdiff_t ds, const void *restrict b, \
                                          oic_dtype tb)                                                     \
    {                                                                                                       \
        const ptrdiff_t most = DX && DW ? (M == 1 ? K : OIC_PANEL) : OIC_TILE;                              \
        C xt[DX ? 1 : 4 * OIC_TILE], wt[DW ? 1 : 4 * OIC_TILE];                                             \
        if (!DW && M < 4) {                                                                                 \
            oic_dots_few_##X##_##W(x, w, y, M, K, N, ldx, ldw, scale, ds, b, tb);                           \
            return;                                                                                         \
        }                                                                                                   \
        for (ptrdiff_t j = 0; j < N; j += 4) {                                                              \
            const ptrdiff_t columns = N - j < 4 ? N - j : 4;                                                \
            for (ptrdiff_t i0 = 0; i0 < M; i0 += OIC_ROWS) {                                                \
                const ptrdiff_t rows = M - i0 < OIC_ROWS ? M - i0 : OIC_ROWS;                               \
                C sum[4 * OIC_ROWS];                                                                        \
                for (ptrdiff_t i = 0; i < 4 * rows; ++i) {                                                  \
                    sum[i] = (C)0;                                                                          \
                }                                                                                           \
                for (ptrdiff_t k = 0; k < K; k += most) {                                                   \
                    const ptrdiff_t n = K - k < most ? K - k : most;                                        \
                    const C *const wp = DW ? (const C *)(const void *)(w + j * ldw + k) : wt;               \
                    for (ptrdiff_t c = 0; !DW && c < columns; ++c) {                                        \
                        oic_widen_##W##_##C(w, (j + c) * ldw + k, n, wt + c * OIC_TILE);                    \
                    }                                                                                       \
                    for (ptrdiff_t i = 0; i < rows;) {                                                      \
                        const ptrdiff_t group = columns == 4 && rows - i >= 4 ? 4 : 1;                      \
                        const C *const xp = DX ? (const C *)(const void *)(x + (i0 + i) * ldx + k) : xt;    \
                        for (ptrdiff_t r = 0; !DX && r < group; ++r) {                                      \
                            oic_widen_##X##_##C(x, (i0 + i + r) * ldx + k, n, xt + r * OIC_TILE);           \
                        }                                                                                   \
                        if (group == 4) {                                                                   \
                            oic_dot_four_##C(xp, DX ? ldx : OIC_TILE, wp, DW ? ldw : OIC_TILE, n, sum + 4 * i); \
                        } else if (columns == 4 && OIC_FOUR_ROWS) {                                         \
                            oic_dot_1x4_##C(xp, wp, DW ? ldw : OIC_TILE, n, sum + 4 * i);                   \
                        } else {                                                                            \
                            for (ptrdiff_t c = 0; c < columns; ++c) {                                       \
                                sum[4 * i + c] += oic_dot_1x1_##C(xp, wp + c * (DW ? ldw : OIC_TILE), n);   \
                            }                                                                               \
                        }                                                                                   \
                        i += group;                                                                         \
                    }                                                                                       \
                }                                                                                           \
                for (ptrdiff_t i = 0; i < rows; ++i) {                                                      \
                    for (ptrdiff_t c = 0; c < columns; ++c) {                                               \
                        oic_dots_put_##X##_##W(y, (i0 + i) * N, j + c, sum[4 * i + c], scale, ds, b, tb);   \
                    }                                                                                       \
                }                                                                                           \
            }                                                                                               \
        }                                                                                                   \
    }

/* axpy_1: sum[n] = a row of a times n columns of b, from elements a0 and b0 on.
   axpys: y[M, N] = a[M, K] * b[K, N] * scale[N], b dense along N, scale NULL for 1.
   matrix: the same for any strides: a at (am, ak), b at (bk, bn). */
#define OIC_FLOAT_MATRIX(X, SX, DX, W, SW, DW, C)                                                           \
    static inline void oic_axpy_1_##X##_##W(const SX *restrict a, ptrdiff_t a0, ptrdiff_t ak, const SW *restrict b, \
                                            ptrdiff_t b0, ptrdiff_t bk, ptrdiff_t K, ptrdiff_t n, C *restrict sum) \
    {                                                                                                       \
        const ptrdiff_t whole = K - K % 4;                                                                  \
        for (ptrdiff_t l = 0; l < n; ++l) {                                                                 \
            sum[l] = (C)0;                                                                                  \
        }                                                                                                   \
        for (ptrdiff_t k = 0; k < whole; k += 4) {                                                          \
            const C p0 = oic_load_##X(a, a0 + k * ak), p1 = oic_load_##X(a, a0 + (k + 1) * ak);             \
            const C p2 = oic_load_##X(a, a0 + (k + 2) * ak), p3 = oic_load_##X(a, a0 + (k + 3) * ak);       \
            const ptrdiff_t k0 = b0 + k * bk, k1 = k0 + bk, k2 = k1 + bk, k3 = k2 + bk;                     \
            for (ptrdiff_t l = 0; l < n; ++l) {                                                             \
                const C low = p0 * (C)oic_load_##W(b, k0 + l) + p1 * (C)oic_load_##W(b, k1 + l);            \
                const C high = p2 * (C)oic_load_##W(b, k2 + l) + p3 * (C)oic_load_##W(b, k3 + l);           \
                sum[l] += low + high;                                                                       \
            }                                                                                               \
        }                                                                                                   \
        for (ptrdiff_t k = whole; k < K; ++k) {                                                             \
            const C p = oic_load_##X(a, a0 + k * ak);                                                       \
            for (ptrdiff_t l = 0; l < n; ++l) {                                                             \
                sum[l] += p * (C)oic_load_##W(b, b0 + k * bk + l);                                          \
            }                                                                                               \
        }                                                                                                   \
    }                                                                                                       \
                                                                                                            \
    static inline void oic_axpys_##X##_##W(const SX *restrict a, const SW *restrict b, SX *restrict y, ptrdiff_t M, \
                                           ptrdiff_t K, ptrdiff_t N, ptrdiff_t am, ptrdiff_t ak, ptrdiff_t bk, \
                                           const float *restrict scale, ptrdiff_t ds)                       \
    {                                                                                                       \
        for (ptrdiff_t i = 0; i < M;) {                                                                     \
            const ptrdiff_t rows = DX && DW && M - i >= 4 ? 4 : 1;                                          \
            for (ptrdiff_t j = 0; j < N;) {                                                                 \
                C sum[OIC_AXPY];                                                                            \
                ptrdiff_t n = 2 * OIC_LANES_##C;                                                            \
                if (rows == 4 && N - j >= n) {                                                              \
                    const C *const p = (const C *)(const void *)(a + i * am);                               \
                    oic_axpy_4_##C(p, am, ak, (const C *)(const void *)(b + j), bk, K, sum);                \
                } else {                                                                                    \
                    n = N - j < OIC_AXPY / rows ? N - j : OIC_AXPY / rows;                                  \
                    for (ptrdiff_t r = 0; r < rows; ++r) {                                                  \
                        oic_axpy_1_##X##_##W(a, (i + r) * am, ak, b, j, bk, K, n, sum + r * n);             \
                    }                                                                                       \
                }                                                                                           \
                for (ptrdiff_t r = 0; r < rows; ++r) {                                                      \
                    for (ptrdiff_t c = 0; c < n; ++c) {                                                     \
                        const C factor = scale ? (C)scale[(j + c) * ds] : (C)1;                             \
                        oic_store_##X(y, (i + r) * N + j + c, sum[r * n + c] * factor);                     \
                    }                                                                                       \
                }                                                                                           \
                j += n;                                                                                     \
            }                                                                                               \
            i += rows;                                                                                      \
        }                                                                                                   \
    }                                                                                                       \
                                                                                                            \
    static inline void oic_matrix_##X##_##W(const SX *restrict a, const SW *restrict b, SX *restrict y, ptrdiff_t M, \
                                            ptrdiff_t K, ptrdiff_t N, ptrdiff_t am, ptrdiff_t ak, ptrdiff_t bk, \
                                            ptrdiff_t bn, const float *restrict scale, ptrdiff_t ds)        \
    {                                                                                                       \
        if (ak == 1 && bk == 1) {                                                                           \
            oic_dots_##X##_##W(a, b, y, M, K, N, am, bn, scale, ds, NULL, OIC_F32);                         \
        } else if (bn == 1) {                                                                               \
            oic_axpys_##X##_##W(a, b, y, M, K, N, am, ak, bk, scale, ds);                                   \
        } else {                                                                                            \
            for (ptrdiff_t i = 0; i < M; ++i) {                                                             \
                for (ptrdiff_t j = 0; j < N; ++j) {                                                         \
                    C sum = (C)0;                                                                           \
                    for (ptrdiff_t k = 0; k < K; ++k) {                                                     \
                        sum += oic_load_##X(a, i * am + k * ak) * (C)oic_load_##W(b, k * bk + j * bn);      \
                    }                                                                                       \
                    oic_store_##X(y, i * N + j, scale ? sum * (C)scale[j * ds] : sum);                      \
                }                                                                                           \
            }                                                                                               \
        }                                                                                                   \
    }

/* oic_matmul_X_W    y[.., M, N] = a[.., M, K] * b[.., K, N] for every index of shape[rank]; operands lie at the
                     batch strides as and bs (0 repeats) and the matrix strides am, ak, bk, bn.
   oic_linear_X_W    y[.., M, N] = x[.., M, K] * w[N, K]' + b[N]; b has elements of type tb or is NULL. */
#define OIC_FLOAT_ENTRY(X, SX, W, SW)                                                                       \
    static inline void oic_matmul_##X##_##W(const SX *restrict a, const SW *restrict b, SX *restrict y,     \
                                            ptrdiff_t rank, const ptrdiff_t *shape, const ptrdiff_t *as,    \
                                            const ptrdiff_t *bs, ptrdiff_t M, ptrdiff_t K, ptrdiff_t N,     \
                                            ptrdiff_t am, ptrdiff_t ak, ptrdiff_t bk, ptrdiff_t bn)         \
    {                                                                                                       \
        const ptrdiff_t batches = oic_product(rank, shape);                                                 \
        for (ptrdiff_t i = 0; i < batches; ++i) {                                                           \
            oic_matrix_##X##_##W(a + oic_offset(i, rank, shape, as), b + oic_offset(i, rank, shape, bs),    \
                                 y + i * M * N, M, K, N, am, ak, bk, bn, NULL, 0);                          \
        }                                                                                                   \
    }                                                                                                       \
                                                                                                            \
    static inline void oic_linear_##X##_##W(const SX *restrict x, const SW *restrict w, const void *restrict b, \
                                            oic_dtype tb, SX *restrict y, ptrdiff_t rank, const ptrdiff_t *shape, \
                                            const ptrdiff_t *xs, ptrdiff_t M, ptrdiff_t K, ptrdiff_t N,     \
                                            ptrdiff_t ldx, ptrdiff_t ldw)                                   \
    {                                                                                                       \
        const ptrdiff_t batches = oic_product(rank, shape);                                                 \
        for (ptrdiff_t i = 0; i < batches; ++i) {                                                           \
            oic_dots_##X##_##W(x + oic_offset(i, rank, shape, xs), w, y + i * M * N, M, K, N, ldx, ldw, NULL, 0, b, \
                               tb);                                                                         \
        }                                                                                                   \
    }

#define OIC_FLOAT_MATMUL(X, SX, DX, W, SW, DW, C) \
    OIC_FLOAT_DOTS(X, SX, DX, W, SW, DW, C)       \
    OIC_FLOAT_MATRIX(X, SX, DX, W, SW, DW, C)     \
    OIC_FLOAT_ENTRY(X, SX, W, SW)

OIC_FLOAT_MATMUL(f32, float, 1, f32, float, 1, float)
OIC_FLOAT_MATMUL(f32, float, 1, f16, oic_f16, 0, float)
OIC_FLOAT_MATMUL(f32, float, 1, bf16, oic_bf16, 0, float)
OIC_FLOAT_MATMUL(f32, float, 1, f8, oic_f8, 0, float)

#endif
