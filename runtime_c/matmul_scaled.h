/* Float matrix products with integer weights of 8 bits or fewer and a factor for each column. */
#ifndef OIC_MATMUL_SCALED_H
#define OIC_MATMUL_SCALED_H

#include "version.h"

#include "matmul_float.h"

/* y[.., M, N] = a[.., M, K] * b[.., K, N] * scale[.., N], the factor applied to the finished sum; strides as in
   oic_matmul, ss and sn those of scale.  Matrices of packed elements start at whole bytes. */
#define OIC_SCALED_ENTRY(X, SX, W, SW, BITS)                                                                \
    static inline void oic_matmul_##X##_##W(const SX *restrict a, const SW *restrict b, const float *restrict scale, \
                                            SX *restrict y, ptrdiff_t rank, const ptrdiff_t *shape,         \
                                            const ptrdiff_t *as, const ptrdiff_t *bs, ptrdiff_t M, ptrdiff_t K, \
                                            ptrdiff_t N, ptrdiff_t am, ptrdiff_t ak, ptrdiff_t bk, ptrdiff_t bn, \
                                            const ptrdiff_t *ss, ptrdiff_t sn)                              \
    {                                                                                                       \
        const ptrdiff_t batches = oic_product(rank, shape);                                                 \
        for (ptrdiff_t i = 0; i < batches; ++i) {                                                           \
            const SW *const part = b + oic_offset(i, rank, shape, bs) * BITS / 8;                           \
            oic_matrix_##X##_##W(a + oic_offset(i, rank, shape, as), part, y + i * M * N, M, K, N, am, ak, bk, bn, \
                                 scale + oic_offset(i, rank, shape, ss), sn);                               \
        }                                                                                                   \
    }

#define OIC_SCALED_MATMUL(X, SX, DX, W, SW, C, BITS) \
    OIC_FLOAT_DOTS(X, SX, DX, W, SW, 0, C)           \
    OIC_FLOAT_MATRIX(X, SX, DX, W, SW, 0, C)         \
    OIC_SCALED_ENTRY(X, SX, W, SW, BITS)

#define OIC_SCALED_ROW(X, SX, DX, C) \
    OIC_SCALED_MATMUL(X, SX, DX, i8, int8_t, C, 8) \
    OIC_SCALED_MATMUL(X, SX, DX, u8, uint8_t, C, 8) \
    OIC_SCALED_MATMUL(X, SX, DX, i4, uint8_t, C, 4) \
    OIC_SCALED_MATMUL(X, SX, DX, u4, uint8_t, C, 4) \
    OIC_SCALED_MATMUL(X, SX, DX, i2, uint8_t, C, 2) \
    OIC_SCALED_MATMUL(X, SX, DX, u2, uint8_t, C, 2) \
    OIC_SCALED_MATMUL(X, SX, DX, i1, uint8_t, C, 1) \
    OIC_SCALED_MATMUL(X, SX, DX, u1, uint8_t, C, 1) \
    OIC_SCALED_MATMUL(X, SX, DX, t2, uint8_t, C, 2) \
    OIC_SCALED_MATMUL(X, SX, DX, t1, uint8_t, C, 1)

OIC_SCALED_ROW(f32, float, 1, float)
OIC_SCALED_ROW(f16, oic_f16, 0, float)
OIC_SCALED_ROW(bf16, oic_bf16, 0, float)
OIC_SCALED_ROW(f8, oic_f8, 0, float)
OIC_SCALED_ROW(f64, double, 1, double)

#endif
