/* Sums of a product of two matrices of integers, for matmul_int.h and linear_int.h, modulo 2^32 or 2^64, whatever the order.
   Matrices of packed elements need no whole bytes. */

#include "../simd/bytes.h"

#define OIC_IS_I8_i8 1

/* sum[n] = a[K] * b[K, n], elements from a0 and b0 on, at the strides ak, bk, bn. */
static inline void NAME(oic_int_sums)(W_SUM *restrict sum, const T *restrict a, ptrdiff_t a0, const T *restrict b, ptrdiff_t b0,
                                      ptrdiff_t K, ptrdiff_t n, ptrdiff_t ak, ptrdiff_t bk, ptrdiff_t bn)
{
    ptrdiff_t whole = 0;
    if (ak != 1 || bk != 1) {
        memset(sum, 0, (size_t)n * sizeof *sum);
        for (ptrdiff_t k = 0; k < K; ++k) {
            const W_SUM p = (W_SUM)LOAD(a, a0 + k * ak);
            for (ptrdiff_t l = 0; l < n; ++l) {
                const W_SUM q = (W_SUM)LOAD(b, b0 + k * bk + l * bn);
                sum[l] = sum[l] + p * q;
            }
        }
        return;
    }
#if OIC_IS_ONE(OIC_PASTE(OIC_IS_I8_, OIC_X))
    whole = sizeof(W_SUM) == sizeof(uint32_t) ? n / OIC_BYTE_ROWS * OIC_BYTE_ROWS : 0;
    for (ptrdiff_t l = 0; l < whole; l += OIC_BYTE_ROWS) {
        oic_byte_rows((uint32_t *)(void *)(sum + l), a + a0, b + b0 + l * bn, bn, K);
    }
#endif
    for (ptrdiff_t l = whole; l < n; ++l) {
        W_SUM total = 0;
        for (ptrdiff_t k = 0; k < K; ++k) {
            const W_SUM p = (W_SUM)LOAD(a, a0 + k);
            const W_SUM q = (W_SUM)LOAD(b, b0 + k + l * bn);
            total = total + p * q;
        }
        sum[l] = total;
    }
}

#undef OIC_IS_I8_i8
