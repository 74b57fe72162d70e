/* The product of two matrices of integers, for matmul_int.h and linear_int.h.  Modulo 2^32 or 2^64, then wrapped
   to type W, whatever the order.  Matrices of packed elements need no whole bytes. */

#include "../simd/bytes.h"

#define OIC_INT_TILE 256 /* neighbouring results that are summed at a time */
#define OIC_IS_I8_i8 1

/* y[M, N] = a[M, K] * b[K, N], elements from a0, b0, y0 on, at the strides am, ak, bk, bn. */
static inline void NAME(oic_int_matrix)(const T *restrict a, ptrdiff_t a0, const T *restrict b, ptrdiff_t b0,
                                        W_T *restrict y, ptrdiff_t y0, ptrdiff_t M, ptrdiff_t K, ptrdiff_t N,
                                        ptrdiff_t am, ptrdiff_t ak, ptrdiff_t bk, ptrdiff_t bn)
{
    for (ptrdiff_t i = 0; i < M; ++i) {
        for (ptrdiff_t j = 0; j < N; j += OIC_INT_TILE) {
            const ptrdiff_t n = N - j < OIC_INT_TILE ? N - j : OIC_INT_TILE;
            W_SUM sum[OIC_INT_TILE] = {0};
            if (ak == 1 && bk == 1) {
                ptrdiff_t l = 0;
#if OIC_PASTE(OIC_IS_I8_, OIC_X)
                for (; sizeof(W_SUM) == sizeof(uint32_t) && n - l >= OIC_BYTE_ROWS; l += OIC_BYTE_ROWS) {
                    uint32_t total[OIC_BYTE_ROWS];
                    oic_byte_rows(total, a + a0 + i * am, b + b0 + (j + l) * bn, bn, K);
                    for (int r = 0; r < OIC_BYTE_ROWS; ++r) {
                        sum[l + r] = total[r];
                    }
                }
#endif
                for (; l < n; ++l) {
                    W_SUM total = 0;
                    for (ptrdiff_t k = 0; k < K; ++k) {
                        const W_SUM p = (W_SUM)LOAD(a, a0 + i * am + k);
                        const W_SUM q = (W_SUM)LOAD(b, b0 + (j + l) * bn + k);
                        total = total + p * q;
                    }
                    sum[l] = total;
                }
            } else {
                for (ptrdiff_t k = 0; k < K; ++k) {
                    const W_SUM p = (W_SUM)LOAD(a, a0 + i * am + k * ak);
                    for (ptrdiff_t l = 0; l < n; ++l) {
                        const W_SUM q = (W_SUM)LOAD(b, b0 + k * bk + (j + l) * bn);
                        sum[l] = sum[l] + p * q;
                    }
                }
            }
            for (ptrdiff_t l = 0; l < n; ++l) {
                W_STORE(y, y0 + i * N + j + l, (W_C)sum[l]);
            }
        }
    }
}

#undef OIC_IS_I8_i8
#undef OIC_INT_TILE
