/* Integer matrix products, wrapping in the result's type, and those of bool (OR of ANDs) and bitset.

   Sums modulo 2^32 are enough for results of 32 bits or fewer; A is the unsigned type of the sum. */
#ifndef OIC_MATMUL_INT_H
#define OIC_MATMUL_INT_H

#include "version.h"

#include "batch.h"
#include "num.h"

/* The low bits of element i of an integer tensor whose type is known at run time. */
static inline uint64_t oic_whole(const void *p, oic_dtype t, ptrdiff_t i)
{
    switch (t) {
    case OIC_I1: return (uint64_t)oic_load_i1(p, i);
    case OIC_I2: return (uint64_t)oic_load_i2(p, i);
    case OIC_I4: return (uint64_t)oic_load_i4(p, i);
    case OIC_I8: return (uint64_t)oic_load_i8(p, i);
    case OIC_I16: return (uint64_t)oic_load_i16(p, i);
    case OIC_I32: return (uint64_t)oic_load_i32(p, i);
    case OIC_U1: return (uint64_t)oic_load_u1(p, i);
    case OIC_U2: return (uint64_t)oic_load_u2(p, i);
    case OIC_U4: return (uint64_t)oic_load_u4(p, i);
    case OIC_U8: return (uint64_t)oic_load_u8(p, i);
    case OIC_U16: return (uint64_t)oic_load_u16(p, i);
    case OIC_U32: return (uint64_t)oic_load_u32(p, i);
    case OIC_U64: return (uint64_t)oic_load_u64(p, i);
    default: return (uint64_t)oic_load_i64(p, i);
    }
}

#define OIC_INT_TILE 256

/* oic_int_matrix_T_Y   y[M, N] = a[M, K] * b[K, N] + bias[N], elements from a0, b0, y0 on; bias of type tb or NULL.
   oic_matmul_T_Y, oic_linear_T_Y   as in matmul_float.h.  Matrices of packed elements need no whole bytes. */
#define OIC_INT_MATMUL(T, S, Y, SY, VY, A)                                                                  \
    static inline void oic_int_matrix_##T##_##Y(const S *restrict a, ptrdiff_t a0, const S *restrict b, ptrdiff_t b0, \
                                                const void *restrict bias, oic_dtype tb, SY *restrict y,    \
                                                ptrdiff_t y0, ptrdiff_t M, ptrdiff_t K, ptrdiff_t N, ptrdiff_t am, \
                                                ptrdiff_t ak, ptrdiff_t bk, ptrdiff_t bn)                   \
    {                                                                                                       \
        for (ptrdiff_t i = 0; i < M; ++i) {                                                                 \
            for (ptrdiff_t j = 0; j < N; j += OIC_INT_TILE) {                                               \
                const ptrdiff_t n = N - j < OIC_INT_TILE ? N - j : OIC_INT_TILE;                            \
                A sum[OIC_INT_TILE];                                                                        \
                for (ptrdiff_t l = 0; l < n; ++l) {                                                         \
                    sum[l] = bias ? (A)oic_whole(bias, tb, j + l) : (A)0;                                   \
                }                                                                                           \
                if (ak == 1 && bk == 1) {                                                                   \
                    for (ptrdiff_t l = 0; l < n; ++l) {                                                     \
                        A total = 0;                                                                        \
                        for (ptrdiff_t k = 0; k < K; ++k) {                                                 \
                            const A p = (A)oic_load_##T(a, a0 + i * am + k);                                \
                            const A q = (A)oic_load_##T(b, b0 + (j + l) * bn + k);                          \
                            total = total + p * q;                                                          \
                        }                                                                                   \
                        sum[l] += total;                                                                    \
                    }                                                                                       \
                } else {                                                                                    \
                    for (ptrdiff_t k = 0; k < K; ++k) {                                                     \
                        const A p = (A)oic_load_##T(a, a0 + i * am + k * ak);                               \
                        for (ptrdiff_t l = 0; l < n; ++l) {                                                 \
                            const A q = (A)oic_load_##T(b, b0 + k * bk + (j + l) * bn);                     \
                            sum[l] = sum[l] + p * q;                                                        \
                        }                                                                                   \
                    }                                                                                       \
                }                                                                                           \
                for (ptrdiff_t l = 0; l < n; ++l) {                                                         \
                    oic_store_##Y(y, y0 + i * N + j + l, (VY)sum[l]);                                       \
                }                                                                                           \
            }                                                                                               \
        }                                                                                                   \
    }                                                                                                       \
                                                                                                            \
    static inline void oic_matmul_##T##_##Y(const S *restrict a, const S *restrict b, SY *restrict y, ptrdiff_t rank, \
                                            const ptrdiff_t *shape, const ptrdiff_t *as, const ptrdiff_t *bs, \
                                            ptrdiff_t M, ptrdiff_t K, ptrdiff_t N, ptrdiff_t am, ptrdiff_t ak, \
                                            ptrdiff_t bk, ptrdiff_t bn)                                     \
    {                                                                                                       \
        const ptrdiff_t batches = oic_product(rank, shape);                                                 \
        for (ptrdiff_t i = 0; i < batches; ++i) {                                                           \
            oic_int_matrix_##T##_##Y(a, oic_offset(i, rank, shape, as), b, oic_offset(i, rank, shape, bs), NULL, \
                                     OIC_I64, y, i * M * N, M, K, N, am, ak, bk, bn);                       \
        }                                                                                                   \
    }                                                                                                       \
                                                                                                            \
    static inline void oic_linear_##T##_##Y(const S *restrict x, const S *restrict w, const void *restrict b, \
                                            oic_dtype tb, SY *restrict y, ptrdiff_t rank, const ptrdiff_t *shape, \
                                            const ptrdiff_t *xs, ptrdiff_t M, ptrdiff_t K, ptrdiff_t N, ptrdiff_t ldx, \
                                            ptrdiff_t ldw)                                                  \
    {                                                                                                       \
        const ptrdiff_t batches = oic_product(rank, shape);                                                 \
        for (ptrdiff_t i = 0; i < batches; ++i) {                                                           \
            oic_int_matrix_##T##_##Y(x, oic_offset(i, rank, shape, xs), w, 0, b, tb, y, i * M * N, M, K, N, ldx, 1, 1, \
                                     ldw);                                                                  \
        }                                                                                                   \
    }

OIC_INT_MATMUL(i1, uint8_t, i1, uint8_t, int8_t, uint32_t)
OIC_INT_MATMUL(i1, uint8_t, i2, uint8_t, int8_t, uint32_t)
OIC_INT_MATMUL(i1, uint8_t, i4, uint8_t, int8_t, uint32_t)
OIC_INT_MATMUL(i1, uint8_t, i8, int8_t, int8_t, uint32_t)
OIC_INT_MATMUL(i1, uint8_t, i16, int16_t, int16_t, uint32_t)
OIC_INT_MATMUL(i1, uint8_t, i32, int32_t, int32_t, uint32_t)
OIC_INT_MATMUL(i1, uint8_t, i64, int64_t, int64_t, uint64_t)
OIC_INT_MATMUL(i2, uint8_t, i2, uint8_t, int8_t, uint32_t)
OIC_INT_MATMUL(i2, uint8_t, i4, uint8_t, int8_t, uint32_t)
OIC_INT_MATMUL(i2, uint8_t, i8, int8_t, int8_t, uint32_t)
OIC_INT_MATMUL(i2, uint8_t, i16, int16_t, int16_t, uint32_t)
OIC_INT_MATMUL(i2, uint8_t, i32, int32_t, int32_t, uint32_t)
OIC_INT_MATMUL(i2, uint8_t, i64, int64_t, int64_t, uint64_t)
OIC_INT_MATMUL(i4, uint8_t, i4, uint8_t, int8_t, uint32_t)
OIC_INT_MATMUL(i4, uint8_t, i8, int8_t, int8_t, uint32_t)
OIC_INT_MATMUL(i4, uint8_t, i16, int16_t, int16_t, uint32_t)
OIC_INT_MATMUL(i4, uint8_t, i32, int32_t, int32_t, uint32_t)
OIC_INT_MATMUL(i4, uint8_t, i64, int64_t, int64_t, uint64_t)
OIC_INT_MATMUL(i8, int8_t, i8, int8_t, int8_t, uint32_t)
OIC_INT_MATMUL(i8, int8_t, i16, int16_t, int16_t, uint32_t)
OIC_INT_MATMUL(i8, int8_t, i32, int32_t, int32_t, uint32_t)
OIC_INT_MATMUL(i8, int8_t, i64, int64_t, int64_t, uint64_t)
OIC_INT_MATMUL(i16, int16_t, i16, int16_t, int16_t, uint32_t)
OIC_INT_MATMUL(i16, int16_t, i32, int32_t, int32_t, uint32_t)
OIC_INT_MATMUL(i16, int16_t, i64, int64_t, int64_t, uint64_t)
OIC_INT_MATMUL(i32, int32_t, i32, int32_t, int32_t, uint32_t)
OIC_INT_MATMUL(i32, int32_t, i64, int64_t, int64_t, uint64_t)
OIC_INT_MATMUL(i64, int64_t, i64, int64_t, int64_t, uint64_t)
OIC_INT_MATMUL(u1, uint8_t, u1, uint8_t, uint8_t, uint32_t)
OIC_INT_MATMUL(u1, uint8_t, u2, uint8_t, uint8_t, uint32_t)
OIC_INT_MATMUL(u1, uint8_t, u4, uint8_t, uint8_t, uint32_t)
OIC_INT_MATMUL(u1, uint8_t, u8, uint8_t, uint8_t, uint32_t)
OIC_INT_MATMUL(u1, uint8_t, u16, uint16_t, uint16_t, uint32_t)
OIC_INT_MATMUL(u1, uint8_t, u32, uint32_t, uint32_t, uint32_t)
OIC_INT_MATMUL(u1, uint8_t, u64, uint64_t, uint64_t, uint64_t)
OIC_INT_MATMUL(u2, uint8_t, u2, uint8_t, uint8_t, uint32_t)
OIC_INT_MATMUL(u2, uint8_t, u4, uint8_t, uint8_t, uint32_t)
OIC_INT_MATMUL(u2, uint8_t, u8, uint8_t, uint8_t, uint32_t)
OIC_INT_MATMUL(u2, uint8_t, u16, uint16_t, uint16_t, uint32_t)
OIC_INT_MATMUL(u2, uint8_t, u32, uint32_t, uint32_t, uint32_t)
OIC_INT_MATMUL(u2, uint8_t, u64, uint64_t, uint64_t, uint64_t)
OIC_INT_MATMUL(u4, uint8_t, u4, uint8_t, uint8_t, uint32_t)
OIC_INT_MATMUL(u4, uint8_t, u8, uint8_t, uint8_t, uint32_t)
OIC_INT_MATMUL(u4, uint8_t, u16, uint16_t, uint16_t, uint32_t)
OIC_INT_MATMUL(u4, uint8_t, u32, uint32_t, uint32_t, uint32_t)
OIC_INT_MATMUL(u4, uint8_t, u64, uint64_t, uint64_t, uint64_t)
OIC_INT_MATMUL(u8, uint8_t, u8, uint8_t, uint8_t, uint32_t)
OIC_INT_MATMUL(u8, uint8_t, u16, uint16_t, uint16_t, uint32_t)
OIC_INT_MATMUL(u8, uint8_t, u32, uint32_t, uint32_t, uint32_t)
OIC_INT_MATMUL(u8, uint8_t, u64, uint64_t, uint64_t, uint64_t)
OIC_INT_MATMUL(u16, uint16_t, u16, uint16_t, uint16_t, uint32_t)
OIC_INT_MATMUL(u16, uint16_t, u32, uint32_t, uint32_t, uint32_t)
OIC_INT_MATMUL(u16, uint16_t, u64, uint64_t, uint64_t, uint64_t)
OIC_INT_MATMUL(u32, uint32_t, u32, uint32_t, uint32_t, uint32_t)
OIC_INT_MATMUL(u32, uint32_t, u64, uint64_t, uint64_t, uint64_t)
OIC_INT_MATMUL(u64, uint64_t, u64, uint64_t, uint64_t, uint64_t)
OIC_INT_MATMUL(bitset, uint8_t, bitset, uint8_t, uint8_t, uint32_t)

/* Bool: y[.., i, j] = OR over k of a[.., i, k] AND b[.., k, j]; operands and strides as in oic_matmul. */
static inline void oic_matmul_bool_bool(const uint8_t *restrict a, const uint8_t *restrict b, uint8_t *restrict y,
                                        ptrdiff_t rank, const ptrdiff_t *shape, const ptrdiff_t *as,
                                        const ptrdiff_t *bs, ptrdiff_t M, ptrdiff_t K, ptrdiff_t N, ptrdiff_t am,
                                        ptrdiff_t ak, ptrdiff_t bk, ptrdiff_t bn)
{
    const ptrdiff_t batches = oic_product(rank, shape);
    for (ptrdiff_t i = 0; i < batches; ++i) {
        const uint8_t *const p = a + oic_offset(i, rank, shape, as);
        const uint8_t *const q = b + oic_offset(i, rank, shape, bs);
        for (ptrdiff_t m = 0; m < M; ++m) {
            for (ptrdiff_t n = 0; n < N; ++n) {
                uint8_t any = 0;
                for (ptrdiff_t k = 0; k < K; ++k) {
                    any |= (uint8_t)(p[m * am + k * ak] & q[k * bk + n * bn]);
                }
                y[(i * M + m) * N + n] = any;
            }
        }
    }
}

#endif
