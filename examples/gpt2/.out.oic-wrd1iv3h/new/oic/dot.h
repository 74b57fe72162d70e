/* Sums of products of floats in C (float or double), the core of matrix products and attention.

   A sum is kept in vectors (lanes.h), whose lanes are added in pairs at the end. */
#ifndef OIC_DOT_H
#define OIC_DOT_H

#include "version.h"

#include "lanes.h"
#include "num.h"

/* a += x * w on vectors at any address. */
#define OIC_MULTIPLY_ADD(a, x, w)        \
    do {                                 \
        memcpy(&p, (x), sizeof p);       \
        memcpy(&q, (w), sizeof q);       \
        (a) += p * q;                    \
    } while (0)

/* dot_4x4, dot_4x2, dot_1x4: add to sum[4 * i + j] row i of x times row j of w, rows ldx and ldw
   apart; dot_1x1: one row times another.
   axpy_4: sum[4, two vectors] = four rows of a, at (am, ak), times as many columns of b. */
#define OIC_FLOAT_CORE(C)                                                                                   \
    static inline C oic_dot_1x1_##C(const C *restrict x, const C *restrict w, ptrdiff_t K)                  \
    {                                                                                                       \
        const ptrdiff_t L = OIC_LANES_##C, most = K - K % (8 * L), whole = K - K % L;                       \
        oic_vector_##C p, q, a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0}, a4 = {0}, a5 = {0}, a6 = {0}, a7 = {0}; \
        C sum;                                                                                              \
        for (ptrdiff_t k = 0; k < most; k += 8 * L) {                                                       \
            OIC_MULTIPLY_ADD(a0, x + k, w + k);                                                             \
            OIC_MULTIPLY_ADD(a1, x + k + L, w + k + L);                                                     \
            OIC_MULTIPLY_ADD(a2, x + k + 2 * L, w + k + 2 * L);                                             \
            OIC_MULTIPLY_ADD(a3, x + k + 3 * L, w + k + 3 * L);                                             \
            OIC_MULTIPLY_ADD(a4, x + k + 4 * L, w + k + 4 * L);                                             \
            OIC_MULTIPLY_ADD(a5, x + k + 5 * L, w + k + 5 * L);                                             \
            OIC_MULTIPLY_ADD(a6, x + k + 6 * L, w + k + 6 * L);                                             \
            OIC_MULTIPLY_ADD(a7, x + k + 7 * L, w + k + 7 * L);                                             \
        }                                                                                                   \
        for (ptrdiff_t k = most; k < whole; k += L) {                                                       \
            OIC_MULTIPLY_ADD(a0, x + k, w + k);                                                             \
        }                                                                                                   \
        a0 += a1;                                                                                           \
        a2 += a3;                                                                                           \
        a4 += a5;                                                                                           \
        a6 += a7;                                                                                           \
        a0 += a2;                                                                                           \
        a4 += a6;                                                                                           \
        a0 += a4;                                                                                           \
        sum = oic_sum_lanes_##C(&a0);                                                                       \
        for (ptrdiff_t k = whole; k < K; ++k) {                                                             \
            sum += x[k] * w[k];                                                                             \
        }                                                                                                   \
        return sum;                                                                                         \
    }                                                                                                       \
                                                                                                            \
    static inline void oic_dot_1x4_##C(const C *restrict x, const C *restrict w, ptrdiff_t ldw, ptrdiff_t K, \
                                       C *restrict sum)                                                     \
    {                                                                                                       \
        const ptrdiff_t L = OIC_LANES_##C, most = K - K % (2 * L), whole = K - K % L;                       \
        const C *const w1 = w + ldw, *const w2 = w1 + ldw, *const w3 = w2 + ldw;                            \
        oic_vector_##C p, q, a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0}, b0 = {0}, b1 = {0}, b2 = {0}, b3 = {0}; \
        C s0, s1, s2, s3;                                                                                   \
        for (ptrdiff_t k = 0; k < most; k += 2 * L) {                                                       \
            memcpy(&p, x + k, sizeof p);                                                                    \
            memcpy(&q, w + k, sizeof q);                                                                    \
            a0 += p * q;                                                                                    \
            memcpy(&q, w1 + k, sizeof q);                                                                   \
            a1 += p * q;                                                                                    \
            memcpy(&q, w2 + k, sizeof q);                                                                   \
            a2 += p * q;                                                                                    \
            memcpy(&q, w3 + k, sizeof q);                                                                   \
            a3 += p * q;                                                                                    \
            memcpy(&p, x + k + L, sizeof p);                                                                \
            memcpy(&q, w + k + L, sizeof q);                                                                \
            b0 += p * q;                                                                                    \
            memcpy(&q, w1 + k + L, sizeof q);                                                               \
            b1 += p * q;                                                                                    \
            memcpy(&q, w2 + k + L, sizeof q);                                                               \
            b2 += p * q;                                                                                    \
            memcpy(&q, w3 + k + L, sizeof q);                                                               \
            b3 += p * q;                                                                                    \
        }                                                                                                   \
        for (ptrdiff_t k = most; k < whole; k += L) {                                                       \
            memcpy(&p, x + k, sizeof p);                                                                    \
            memcpy(&q, w + k, sizeof q);                                                                    \
            a0 += p * q;                                                                                    \
            memcpy(&q, w1 + k, sizeof q);                                                                   \
            a1 += p * q;                                                                                    \
            memcpy(&q, w2 + k, sizeof q);                                                                   \
            a2 += p * q;                                                                                    \
            memcpy(&q, w3 + k, sizeof q);                                                                   \
            a3 += p * q;                                                                                    \
        }                                                                                                   \
        a0 += b0;                                                                                           \
        a1 += b1;                                                                                           \
        a2 += b2;                                                                                           \
        a3 += b3;                                                                                           \
        s0 = oic_sum_lanes_##C(&a0);                                                                        \
        s1 = oic_sum_lanes_##C(&a1);                                                                        \
        s2 = oic_sum_lanes_##C(&a2);                                                                        \
        s3 = oic_sum_lanes_##C(&a3);                                                                        \
        for (ptrdiff_t k = whole; k < K; ++k) {                                                             \
            s0 += x[k] * w[k];                                                                              \
            s1 += x[k] * w1[k];                                                                             \
            s2 += x[k] * w2[k];                                                                             \
            s3 += x[k] * w3[k];                                                                             \
        }                                                                                                   \
        sum[0] += s0;                                                                                       \
        sum[1] += s1;                                                                                       \
        sum[2] += s2;                                                                                       \
        sum[3] += s3;                                                                                       \
    }                                                                                                       \
                                                                                                            \
    static inline void oic_dot_4x2_##C(const C *restrict x, ptrdiff_t ldx, const C *restrict w, ptrdiff_t ldw, \
                                       ptrdiff_t K, C *restrict sum)                                        \
    {                                                                                                       \
        const ptrdiff_t L = OIC_LANES_##C, whole = K - K % L;                                               \
        oic_vector_##C p, q0, q1;                                                                           \
        oic_vector_##C a00 = {0}, a10 = {0}, a20 = {0}, a30 = {0}, a01 = {0}, a11 = {0}, a21 = {0}, a31 = {0}; \
        for (ptrdiff_t k = 0; k < whole; k += L) {                                                          \
            memcpy(&q0, w + k, sizeof q0);                                                                  \
            memcpy(&q1, w + ldw + k, sizeof q1);                                                            \
            memcpy(&p, x + k, sizeof p);                                                                    \
            a00 += p * q0;                                                                                  \
            a01 += p * q1;                                                                                  \
            memcpy(&p, x + ldx + k, sizeof p);                                                              \
            a10 += p * q0;                                                                                  \
            a11 += p * q1;                                                                                  \
            memcpy(&p, x + 2 * ldx + k, sizeof p);                                                          \
            a20 += p * q0;                                                                                  \
            a21 += p * q1;                                                                                  \
            memcpy(&p, x + 3 * ldx + k, sizeof p);                                                          \
            a30 += p * q0;                                                                                  \
            a31 += p * q1;                                                                                  \
        }                                                                                                   \
        sum[0] += oic_sum_lanes_##C(&a00);                                                                  \
        sum[1] += oic_sum_lanes_##C(&a01);                                                                  \
        sum[4] += oic_sum_lanes_##C(&a10);                                                                  \
        sum[5] += oic_sum_lanes_##C(&a11);                                                                  \
        sum[8] += oic_sum_lanes_##C(&a20);                                                                  \
        sum[9] += oic_sum_lanes_##C(&a21);                                                                  \
        sum[12] += oic_sum_lanes_##C(&a30);                                                                 \
        sum[13] += oic_sum_lanes_##C(&a31);                                                                 \
        for (ptrdiff_t k = whole; k < K; ++k) {                                                             \
            for (ptrdiff_t i = 0; i < 4; ++i) {                                                             \
                sum[4 * i] += x[i * ldx + k] * w[k];                                                        \
                sum[4 * i + 1] += x[i * ldx + k] * w[ldw + k];                                              \
            }                                                                                               \
        }                                                                                                   \
    }                                                                                                       \
                                                                                                            \
    static inline void oic_dot_4x4_##C(const C *restrict x, ptrdiff_t ldx, const C *restrict w, ptrdiff_t ldw, \
                                       ptrdiff_t K, C *restrict sum)                                        \
    {                                                                                                       \
        const ptrdiff_t L = OIC_LANES_##C, whole = K - K % L;                                               \
        oic_vector_##C p, q0, q1, q2, q3;                                                                   \
        oic_vector_##C a00 = {0}, a10 = {0}, a20 = {0}, a30 = {0}, a01 = {0}, a11 = {0}, a21 = {0}, a31 = {0}; \
        oic_vector_##C a02 = {0}, a12 = {0}, a22 = {0}, a32 = {0}, a03 = {0}, a13 = {0}, a23 = {0}, a33 = {0}; \
        for (ptrdiff_t k = 0; k < whole; k += L) {                                                          \
            memcpy(&q0, w + k, sizeof q0);                                                                  \
            memcpy(&q1, w + ldw + k, sizeof q1);                                                            \
            memcpy(&q2, w + 2 * ldw + k, sizeof q2);                                                        \
            memcpy(&q3, w + 3 * ldw + k, sizeof q3);                                                        \
            memcpy(&p, x + k, sizeof p);                                                                    \
            a00 += p * q0;                                                                                  \
            a01 += p * q1;                                                                                  \
            a02 += p * q2;                                                                                  \
            a03 += p * q3;                                                                                  \
            memcpy(&p, x + ldx + k, sizeof p);                                                              \
            a10 += p * q0;                                                                                  \
            a11 += p * q1;                                                                                  \
            a12 += p * q2;                                                                                  \
            a13 += p * q3;                                                                                  \
            memcpy(&p, x + 2 * ldx + k, sizeof p);                                                          \
            a20 += p * q0;                                                                                  \
            a21 += p * q1;                                                                                  \
            a22 += p * q2;                                                                                  \
            a23 += p * q3;                                                                                  \
            memcpy(&p, x + 3 * ldx + k, sizeof p);                                                          \
            a30 += p * q0;                                                                                  \
            a31 += p * q1;                                                                                  \
            a32 += p * q2;                                                                                  \
            a33 += p * q3;                                                                                  \
        }                                                                                                   \
        sum[0] += oic_sum_lanes_##C(&a00);                                                                  \
        sum[1] += oic_sum_lanes_##C(&a01);                                                                  \
        sum[2] += oic_sum_lanes_##C(&a02);                                                                  \
        sum[3] += oic_sum_lanes_##C(&a03);                                                                  \
        sum[4] += oic_sum_lanes_##C(&a10);                                                                  \
        sum[5] += oic_sum_lanes_##C(&a11);                                                                  \
        sum[6] += oic_sum_lanes_##C(&a12);                                                                  \
        sum[7] += oic_sum_lanes_##C(&a13);                                                                  \
        sum[8] += oic_sum_lanes_##C(&a20);                                                                  \
        sum[9] += oic_sum_lanes_##C(&a21);                                                                  \
        sum[10] += oic_sum_lanes_##C(&a22);                                                                 \
        sum[11] += oic_sum_lanes_##C(&a23);                                                                 \
        sum[12] += oic_sum_lanes_##C(&a30);                                                                 \
        sum[13] += oic_sum_lanes_##C(&a31);                                                                 \
        sum[14] += oic_sum_lanes_##C(&a32);                                                                 \
        sum[15] += oic_sum_lanes_##C(&a33);                                                                 \
        for (ptrdiff_t k = whole; k < K; ++k) {                                                             \
            for (ptrdiff_t i = 0; i < 4; ++i) {                                                             \
                for (ptrdiff_t j = 0; j < 4; ++j) {                                                         \
                    sum[4 * i + j] += x[i * ldx + k] * w[j * ldw + k];                                      \
                }                                                                                           \
            }                                                                                               \
        }                                                                                                   \
    }                                                                                                       \
                                                                                                            \
    static inline void oic_axpy_4_##C(const C *restrict a, ptrdiff_t am, ptrdiff_t ak, const C *restrict b, \
                                      ptrdiff_t bk, ptrdiff_t K, C *restrict sum)                           \
    {                                                                                                       \
        const ptrdiff_t L = OIC_LANES_##C;                                                                  \
        oic_vector_##C q0, q1;                                                                              \
        oic_vector_##C a00 = {0}, a10 = {0}, a20 = {0}, a30 = {0}, a01 = {0}, a11 = {0}, a21 = {0}, a31 = {0}; \
        for (ptrdiff_t k = 0; k < K; ++k) {                                                                 \
            const C p0 = a[k * ak], p1 = a[am + k * ak], p2 = a[2 * am + k * ak], p3 = a[3 * am + k * ak];  \
            memcpy(&q0, b + k * bk, sizeof q0);                                                             \
            memcpy(&q1, b + k * bk + L, sizeof q1);                                                         \
            a00 += p0 * q0;                                                                                 \
            a01 += p0 * q1;                                                                                 \
            a10 += p1 * q0;                                                                                 \
            a11 += p1 * q1;                                                                                 \
            a20 += p2 * q0;                                                                                 \
            a21 += p2 * q1;                                                                                 \
            a30 += p3 * q0;                                                                                 \
            a31 += p3 * q1;                                                                                 \
        }                                                                                                   \
        memcpy(sum, &a00, sizeof a00);                                                                      \
        memcpy(sum + L, &a01, sizeof a01);                                                                  \
        memcpy(sum + 2 * L, &a10, sizeof a10);                                                              \
        memcpy(sum + 3 * L, &a11, sizeof a11);                                                              \
        memcpy(sum + 4 * L, &a20, sizeof a20);                                                              \
        memcpy(sum + 5 * L, &a21, sizeof a21);                                                              \
        memcpy(sum + 6 * L, &a30, sizeof a30);                                                              \
        memcpy(sum + 7 * L, &a31, sizeof a31);                                                              \
    }

OIC_FLOAT_CORE(float)
OIC_FLOAT_CORE(double)

/* With 32 vector registers a tile is 4 x 4, and one row of x goes with four of w; with 16, the sums would not
   fit, and one row of w after the other keeps memory busier. */
#if OIC_LANES_float == 16 || defined(__aarch64__)
#define OIC_FOUR_ROWS 1
#else
#define OIC_FOUR_ROWS 0
#endif

#define OIC_FLOAT_FOUR(C)                                                                                    \
    static inline void oic_dot_four_##C(const C *restrict x, ptrdiff_t ldx, const C *restrict w, ptrdiff_t ldw, \
                                        ptrdiff_t K, C *restrict sum)                                        \
    {                                                                                                        \
        if (OIC_FOUR_ROWS) {                                                                                 \
            oic_dot_4x4_##C(x, ldx, w, ldw, K, sum);                                                         \
        } else {                                                                                             \
            oic_dot_4x2_##C(x, ldx, w, ldw, K, sum);                                                         \
            oic_dot_4x2_##C(x, ldx, w + 2 * ldw, ldw, K, sum + 2);                                           \
        }                                                                                                    \
    }

OIC_FLOAT_FOUR(float)
OIC_FLOAT_FOUR(double)

/* to[n] = elements at, at + 1, … of p. */
#define OIC_WIDEN(T, S, C)                                                                                  \
    static inline void oic_widen_##T##_##C(const S *restrict p, ptrdiff_t at, ptrdiff_t n, C *restrict to)  \
    {                                                                                                       \
        for (ptrdiff_t i = 0; i < n; ++i) {                                                                 \
            to[i] = (C)oic_load_##T(p, at + i);                                                             \
        }                                                                                                   \
    }

OIC_WIDEN(f8, oic_f8, float)
OIC_WIDEN(f16, oic_f16, float)
OIC_WIDEN(bf16, oic_bf16, float)
OIC_WIDEN(f32, float, float)
OIC_WIDEN(i8, int8_t, float)
OIC_WIDEN(u8, uint8_t, float)
OIC_WIDEN(i4, uint8_t, float)
OIC_WIDEN(u4, uint8_t, float)
OIC_WIDEN(i2, uint8_t, float)
OIC_WIDEN(u2, uint8_t, float)
OIC_WIDEN(i1, uint8_t, float)
OIC_WIDEN(u1, uint8_t, float)
OIC_WIDEN(t2, uint8_t, float)
OIC_WIDEN(t1, uint8_t, float)
OIC_WIDEN(f8, oic_f8, double)
OIC_WIDEN(f16, oic_f16, double)
OIC_WIDEN(bf16, oic_bf16, double)
OIC_WIDEN(f32, float, double)
OIC_WIDEN(i8, int8_t, double)
OIC_WIDEN(u8, uint8_t, double)
OIC_WIDEN(i4, uint8_t, double)
OIC_WIDEN(u4, uint8_t, double)
OIC_WIDEN(i2, uint8_t, double)
OIC_WIDEN(u2, uint8_t, double)
OIC_WIDEN(i1, uint8_t, double)
OIC_WIDEN(u1, uint8_t, double)
OIC_WIDEN(t2, uint8_t, double)
OIC_WIDEN(t1, uint8_t, double)
OIC_WIDEN(f64, double, double)

#endif
