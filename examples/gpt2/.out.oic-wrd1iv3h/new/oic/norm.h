/* Normalisations and softmax.  Computed in C (float; double for f64), rounded once.  y may be x.

   Sums of a part are kept in eight lanes, added in pairs; sums of exponentials lose nothing between parts.
   Stack: OIC_NORM_PART numbers, in which a part of the result is computed before it is stored, so that x and y
   may be the same memory and loops still vectorise. */
#ifndef OIC_NORM_H
#define OIC_NORM_H

#include "version.h"

#include "num.h"
#include "scalar_math.h"

#define OIC_NORM_PART 256

/* sum + v, where *lost keeps what the sum has lost to rounding (Kahan 1965). */
#define OIC_NORM_ADD(C)                                              \
    static inline C oic_norm_add_##C(C sum, C v, C *restrict lost)   \
    {                                                                \
        const C y = v - *lost;                                       \
        const C t = sum + y;                                         \
        *lost = (t - sum) - y;                                       \
        return t;                                                    \
    }

OIC_NORM_ADD(float)
OIC_NORM_ADD(double)

/* row_sum: sum of x[n], or of (x - centre)^2, a part at a time.  row_max: the largest that is a number, or -inf. */
#define OIC_NORM_ROWS(T, S, C)                                                                              \
    static inline C oic_row_part_##T(const S *x, ptrdiff_t n, C centre, int squared)                        \
    {                                                                                                       \
        const ptrdiff_t whole = n - n % 8;                                                                  \
        C a[8] = {0}, sum;                                                                                  \
        if (squared) {                                                                                      \
            for (ptrdiff_t i = 0; i < whole; i += 8) {                                                      \
                for (ptrdiff_t l = 0; l < 8; ++l) {                                                         \
                    const C v = oic_load_##T(x, i + l) - centre;                                            \
                    a[l] += v * v;                                                                          \
                }                                                                                           \
            }                                                                                               \
        } else {                                                                                            \
            for (ptrdiff_t i = 0; i < whole; i += 8) {                                                      \
                for (ptrdiff_t l = 0; l < 8; ++l) {                                                         \
                    a[l] += oic_load_##T(x, i + l);                                                         \
                }                                                                                           \
            }                                                                                               \
        }                                                                                                   \
        sum = ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]));                            \
        for (ptrdiff_t i = whole; i < n; ++i) {                                                             \
            const C v = oic_load_##T(x, i) - centre;                                                        \
            sum += squared ? v * v : v;                                                                     \
        }                                                                                                   \
        return sum;                                                                                         \
    }                                                                                                       \
                                                                                                            \
    static inline C oic_row_sum_##T(const S *x, ptrdiff_t n, C centre, int squared)                         \
    {                                                                                                       \
        C sum = (C)0;                                                                                       \
        for (ptrdiff_t i = 0; i < n; i += OIC_NORM_PART) {                                                  \
            const ptrdiff_t m = n - i < OIC_NORM_PART ? n - i : OIC_NORM_PART;                              \
            sum += oic_row_part_##T(x + i, m, centre, squared);                                             \
        }                                                                                                   \
        return sum;                                                                                         \
    }                                                                                                       \
                                                                                                            \
    static inline C oic_row_max_##T(const S *x, ptrdiff_t n)                                                \
    {                                                                                                       \
        const ptrdiff_t whole = n - n % 8;                                                                  \
        C a[8], top = (C)-INFINITY;                                                                         \
        for (ptrdiff_t l = 0; l < 8; ++l) {                                                                 \
            a[l] = top;                                                                                     \
        }                                                                                                   \
        for (ptrdiff_t i = 0; i < whole; i += 8) {                                                          \
            for (ptrdiff_t l = 0; l < 8; ++l) {                                                             \
                const C v = oic_load_##T(x, i + l);                                                         \
                a[l] = v > a[l] ? v : a[l];                                                                 \
            }                                                                                               \
        }                                                                                                   \
        for (ptrdiff_t l = 0; l < 8; ++l) {                                                                 \
            top = a[l] > top ? a[l] : top;                                                                  \
        }                                                                                                   \
        for (ptrdiff_t i = whole; i < n; ++i) {                                                             \
            const C v = oic_load_##T(x, i);                                                                 \
            top = v > top ? v : top;                                                                        \
        }                                                                                                   \
        return top;                                                                                         \
    }

/* layer_norm: y[outer, n] = (x - mean) / sqrt(variance + eps) * gamma[n] + beta[n], the variance about the mean in
   a second pass; beta may be NULL.  rms_norm: y = x / sqrt(mean of squares + eps) * gamma. */
#define OIC_NORM(T, S, C, ROOT)                                                                             \
    static inline void oic_layer_norm_##T(const S *x, const S *restrict gamma, const S *restrict beta, S *y, \
                                          ptrdiff_t outer, ptrdiff_t n, C eps)                              \
    {                                                                                                       \
        for (ptrdiff_t o = 0; o < outer; ++o) {                                                             \
            const S *const row = x + o * n;                                                                 \
            const C mean = oic_row_sum_##T(row, n, (C)0, 0) / (C)n;                                         \
            const C r = (C)1 / ROOT(oic_row_sum_##T(row, n, mean, 1) / (C)n + eps);                         \
            for (ptrdiff_t i = 0; i < n; i += OIC_NORM_PART) {                                              \
                const ptrdiff_t m = n - i < OIC_NORM_PART ? n - i : OIC_NORM_PART;                          \
                C part[OIC_NORM_PART];                                                                      \
                for (ptrdiff_t e = 0; e < m; ++e) {                                                         \
                    part[e] = (oic_load_##T(row, i + e) - mean) * r * oic_load_##T(gamma, i + e);           \
                }                                                                                           \
                for (ptrdiff_t e = 0; beta && e < m; ++e) {                                                 \
                    part[e] += oic_load_##T(beta, i + e);                                                   \
                }                                                                                           \
                for (ptrdiff_t e = 0; e < m; ++e) {                                                         \
                    oic_store_##T(y, o * n + i + e, part[e]);                                               \
                }                                                                                           \
            }                                                                                               \
        }                                                                                                   \
    }                                                                                                       \
                                                                                                            \
    static inline void oic_rms_norm_##T(const S *x, const S *restrict gamma, S *y, ptrdiff_t outer, ptrdiff_t n, \
                                        C eps)                                                              \
    {                                                                                                       \
        for (ptrdiff_t o = 0; o < outer; ++o) {                                                             \
            const S *const row = x + o * n;                                                                 \
            const C r = (C)1 / ROOT(oic_row_sum_##T(row, n, (C)0, 1) / (C)n + eps);                         \
            for (ptrdiff_t i = 0; i < n; i += OIC_NORM_PART) {                                              \
                const ptrdiff_t m = n - i < OIC_NORM_PART ? n - i : OIC_NORM_PART;                          \
                C part[OIC_NORM_PART];                                                                      \
                for (ptrdiff_t e = 0; e < m; ++e) {                                                         \
                    part[e] = oic_load_##T(row, i + e) * r * oic_load_##T(gamma, i + e);                    \
                }                                                                                           \
                for (ptrdiff_t e = 0; e < m; ++e) {                                                         \
                    oic_store_##T(y, o * n + i + e, part[e]);                                               \
                }                                                                                           \
            }                                                                                               \
        }                                                                                                   \
    }

/* part[n] *= by[at..at + n], or += with `plus`; `by` has the float type `kind`, which C holds every value of. */
#define OIC_NORM_BY(C, KIND, T, S)                                                                          \
    case KIND:                                                                                              \
        for (ptrdiff_t e = 0; e < n; ++e) {                                                                 \
            const C v = (C)oic_load_##T((const S *)by, at + e);                                             \
            part[e] = plus ? part[e] + v : part[e] * v;                                                     \
        }                                                                                                   \
        break;

#define OIC_NORM_NARROW_BY(C)                                                                               \
    OIC_NORM_BY(C, OIC_F8, f8, oic_f8)                                                                      \
    OIC_NORM_BY(C, OIC_F16, f16, oic_f16)                                                                   \
    OIC_NORM_BY(C, OIC_BF16, bf16, oic_bf16)                                                                \
    OIC_NORM_BY(C, OIC_F32, f32, float)

static inline void oic_norm_by_float(float *restrict part, const void *restrict by, int kind, ptrdiff_t at,
                                     ptrdiff_t n, int plus)
{
    switch (kind) {
    OIC_NORM_NARROW_BY(float)
    default:
        break;
    }
}

static inline void oic_norm_by_double(double *restrict part, const void *restrict by, int kind, ptrdiff_t at,
                                      ptrdiff_t n, int plus)
{
    switch (kind) {
    OIC_NORM_NARROW_BY(double)
    OIC_NORM_BY(double, OIC_F64, f64, double)
    default:
        break;
    }
}

/* The same with gamma of the type `gammas` and beta of the type `betas`. */
#define OIC_NORM_MIXED(T, S, C, ROOT)                                                                       \
    static inline void oic_layer_norm_mixed_##T(const S *x, const void *restrict gamma, int gammas,         \
                                                const void *restrict beta, int betas, S *y, ptrdiff_t outer, \
                                                ptrdiff_t n, C eps)                                         \
    {                                                                                                       \
        for (ptrdiff_t o = 0; o < outer; ++o) {                                                             \
            const S *const row = x + o * n;                                                                 \
            const C mean = oic_row_sum_##T(row, n, (C)0, 0) / (C)n;                                         \
            const C r = (C)1 / ROOT(oic_row_sum_##T(row, n, mean, 1) / (C)n + eps);                         \
            for (ptrdiff_t i = 0; i < n; i += OIC_NORM_PART) {                                              \
                const ptrdiff_t m = n - i < OIC_NORM_PART ? n - i : OIC_NORM_PART;                          \
                C part[OIC_NORM_PART];                                                                      \
                for (ptrdiff_t e = 0; e < m; ++e) {                                                         \
                    part[e] = (oic_load_##T(row, i + e) - mean) * r;                                        \
                }                                                                                           \
                oic_norm_by_##C(part, gamma, gammas, i, m, 0);                                              \
                if (beta) {                                                                                 \
                    oic_norm_by_##C(part, beta, betas, i, m, 1);                                            \
                }                                                                                           \
                for (ptrdiff_t e = 0; e < m; ++e) {                                                         \
                    oic_store_##T(y, o * n + i + e, part[e]);                                               \
                }                                                                                           \
            }                                                                                               \
        }                                                                                                   \
    }                                                                                                       \
                                                                                                            \
    static inline void oic_rms_norm_mixed_##T(const S *x, const void *restrict gamma, int gammas, S *y,     \
                                              ptrdiff_t outer, ptrdiff_t n, C eps)                          \
    {                                                                                                       \
        for (ptrdiff_t o = 0; o < outer; ++o) {                                                             \
            const S *const row = x + o * n;                                                                 \
            const C r = (C)1 / ROOT(oic_row_sum_##T(row, n, (C)0, 1) / (C)n + eps);                         \
            for (ptrdiff_t i = 0; i < n; i += OIC_NORM_PART) {                                              \
                const ptrdiff_t m = n - i < OIC_NORM_PART ? n - i : OIC_NORM_PART;                          \
                C part[OIC_NORM_PART];                                                                      \
                for (ptrdiff_t e = 0; e < m; ++e) {                                                         \
                    part[e] = oic_load_##T(row, i + e) * r;                                                 \
                }                                                                                           \
                oic_norm_by_##C(part, gamma, gammas, i, m, 0);                                              \
                for (ptrdiff_t e = 0; e < m; ++e) {                                                         \
                    oic_store_##T(y, o * n + i + e, part[e]);                                               \
                }                                                                                           \
            }                                                                                               \
        }                                                                                                   \
    }

/* batch_norm: y[outer, channels, inner] = (x - mean) / sqrt(var + eps) * gamma + beta, parameters [channels].
   softmax: y[outer, n, inner] = exp(x - max) / sum along n.  log_softmax: x - max - ln sum. */
#define OIC_SOFTMAX(T, S, C, F, ROOT)                                                                       \
    static inline void oic_batch_norm_##T(const S *x, const S *restrict gamma, const S *restrict beta,      \
                                          const S *restrict mean, const S *restrict var, S *y, ptrdiff_t outer, \
                                          ptrdiff_t channels, ptrdiff_t inner, C eps)                       \
    {                                                                                                       \
        for (ptrdiff_t o = 0; o < outer * channels; ++o) {                                                  \
            const ptrdiff_t c = o % channels;                                                               \
            const C scale = oic_load_##T(gamma, c) / ROOT(oic_load_##T(var, c) + eps);                      \
            const C centre = oic_load_##T(mean, c), added = oic_load_##T(beta, c);                          \
            for (ptrdiff_t i = 0; i < inner; ++i) {                                                         \
                oic_store_##T(y, o * inner + i, (oic_load_##T(x, o * inner + i) - centre) * scale + added); \
            }                                                                                               \
        }                                                                                                   \
    }                                                                                                       \
                                                                                                            \
    static inline void oic_softmax_row_##T(const S *x, S *y, ptrdiff_t n)                                   \
    {                                                                                                       \
        const C top = oic_row_max_##T(x, n);                                                                \
        C part[OIC_NORM_PART], sum = (C)0, lost = (C)0, r;                                                  \
        for (ptrdiff_t i = 0; i < n; i += OIC_NORM_PART) {                                                  \
            const ptrdiff_t m = n - i < OIC_NORM_PART ? n - i : OIC_NORM_PART;                              \
            C a[8] = {0};                                                                                   \
            for (ptrdiff_t e = 0; e < m; ++e) {                                                             \
                part[e] = oic_exp_##F(oic_load_##T(x, i + e) - top);                                        \
            }                                                                                               \
            for (ptrdiff_t e = m; e % 8; ++e) {                                                             \
                part[e] = (C)0;                                                                             \
            }                                                                                               \
            for (ptrdiff_t e = 0; e < m; e += 8) {                                                          \
                for (ptrdiff_t l = 0; l < 8; ++l) {                                                         \
                    a[l] += part[e + l];                                                                    \
                }                                                                                           \
            }                                                                                               \
            sum = oic_norm_add_##C(sum, ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7])), &lost); \
        }                                                                                                   \
        r = (C)1 / sum;                                                                                     \
        for (ptrdiff_t i = 0; i < n; i += OIC_NORM_PART) {                                                  \
            const ptrdiff_t m = n - i < OIC_NORM_PART ? n - i : OIC_NORM_PART;                              \
            if (n > OIC_NORM_PART) { /* else the only part is still there */                                \
                for (ptrdiff_t e = 0; e < m; ++e) {                                                         \
                    part[e] = oic_exp_##F(oic_load_##T(x, i + e) - top);                                    \
                }                                                                                           \
            }                                                                                               \
            for (ptrdiff_t e = 0; e < m; ++e) {                                                             \
                oic_store_##T(y, i + e, part[e] * r);                                                       \
            }                                                                                               \
        }                                                                                                   \
    }                                                                                                       \
                                                                                                            \
    static inline void oic_softmax_##T(const S *x, S *y, ptrdiff_t outer, ptrdiff_t n, ptrdiff_t inner)     \
    {                                                                                                       \
        for (ptrdiff_t o = 0; o < outer; ++o) {                                                             \
            if (inner == 1) {                                                                               \
                oic_softmax_row_##T(x + o * n, y + o * n, n);                                               \
                continue;                                                                                   \
            }                                                                                               \
            for (ptrdiff_t e = 0; e < inner; ++e) {                                                         \
                const ptrdiff_t at = o * n * inner + e;                                                     \
                C top = (C)-INFINITY, sum = (C)0, lost = (C)0;                                              \
                for (ptrdiff_t i = 0; i < n; ++i) {                                                         \
                    const C v = oic_load_##T(x, at + i * inner);                                            \
                    top = v > top ? v : top;                                                                \
                }                                                                                           \
                for (ptrdiff_t i = 0; i < n; ++i) {                                                         \
                    sum = oic_norm_add_##C(sum, oic_exp_##F(oic_load_##T(x, at + i * inner) - top), &lost); \
                }                                                                                           \
                for (ptrdiff_t i = 0; i < n; ++i) {                                                         \
                    const C v = oic_exp_##F(oic_load_##T(x, at + i * inner) - top);                         \
                    oic_store_##T(y, at + i * inner, v / sum);                                              \
                }                                                                                           \
            }                                                                                               \
        }                                                                                                   \
    }                                                                                                       \
                                                                                                            \
    static inline void oic_log_softmax_##T(const S *x, S *y, ptrdiff_t outer, ptrdiff_t n, ptrdiff_t inner) \
    {                                                                                                       \
        for (ptrdiff_t o = 0; o < outer; ++o) {                                                             \
            for (ptrdiff_t e = 0; e < inner; ++e) {                                                         \
                const ptrdiff_t at = o * n * inner + e;                                                     \
                C top = (C)-INFINITY, sum = (C)0, lost = (C)0;                                              \
                for (ptrdiff_t i = 0; i < n; ++i) {                                                         \
                    const C v = oic_load_##T(x, at + i * inner);                                            \
                    top = v > top ? v : top;                                                                \
                }                                                                                           \
                for (ptrdiff_t i = 0; i < n; ++i) {                                                         \
                    sum = oic_norm_add_##C(sum, oic_exp_##F(oic_load_##T(x, at + i * inner) - top), &lost); \
                }                                                                                           \
                sum = oic_log_##F(sum);                                                                     \
                for (ptrdiff_t i = 0; i < n; ++i) {                                                         \
                    oic_store_##T(y, at + i * inner, oic_load_##T(x, at + i * inner) - top - sum);          \
                }                                                                                           \
            }                                                                                               \
        }                                                                                                   \
    }

#define OIC_NORMS(T, S, C, F, ROOT)  \
    OIC_NORM_ROWS(T, S, C)           \
    OIC_NORM(T, S, C, ROOT)          \
    OIC_NORM_MIXED(T, S, C, ROOT)    \
    OIC_SOFTMAX(T, S, C, F, ROOT)

OIC_NORMS(f32, float, float, f32, sqrtf)
OIC_NORMS(f64, double, double, f64, sqrt)
OIC_NORMS(f8, oic_f8, float, f32, sqrtf)
OIC_NORMS(f16, oic_f16, float, f32, sqrtf)
OIC_NORMS(bf16, oic_bf16, float, f32, sqrtf)

#endif
