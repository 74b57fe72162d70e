/* Reductions.

   x is [outer, n, inner], y [outer, inner]; y must not overlap x.  The forms that end in _axes take
   x as rank dimensions of the given sizes, any of which are reduced (1) or kept (0), where the
   reduced ones are not adjacent.

   Float sums: 16 lanes of at most 64 elements are added as a tree, 64 of these sums in order, and
   then those; with `inner` > 1 blocks of 64 in order, and then those.  The error is at most
   150 + n/65536, or 64 + n/64, roundings of the sum of magnitudes.  f8, f16 and bf16 accumulate in
   f32; products of f32 in f64.  Integers accumulate in 64 bits and are wrapped once. */
#ifndef OIC_REDUCE_H
#define OIC_REDUCE_H

#include "version.h"

#include "scalar_cast.h"

enum { OIC_REDUCE_LANES = 16, OIC_REDUCE_ROWS = 64, OIC_REDUCE_TILE = 32 };

/* Element i of y, of the integer type `to`, is v modulo 2^width. */
static inline void oic_store_int(void *y, ptrdiff_t i, uint64_t v, oic_dtype to)
{
    const uint32_t low = (uint32_t)v;
    switch (to) {
    case OIC_I1: oic_store_i1((uint8_t *)y, i, oic_wrap_i1(low)); break;
    case OIC_I2: oic_store_i2((uint8_t *)y, i, oic_wrap_i2(low)); break;
    case OIC_I4: oic_store_i4((uint8_t *)y, i, oic_wrap_i4(low)); break;
    case OIC_I8: oic_store_i8((int8_t *)y, i, oic_wrap_i8(low)); break;
    case OIC_I16: oic_store_i16((int16_t *)y, i, oic_wrap_i16(low)); break;
    case OIC_I32: oic_store_i32((int32_t *)y, i, oic_wrap_i32(low)); break;
    case OIC_I64: oic_store_i64((int64_t *)y, i, oic_wrap_i64(v)); break;
    case OIC_U1: oic_store_u1((uint8_t *)y, i, oic_wrap_u1(low)); break;
    case OIC_U2: oic_store_u2((uint8_t *)y, i, oic_wrap_u2(low)); break;
    case OIC_U4: oic_store_u4((uint8_t *)y, i, oic_wrap_u4(low)); break;
    case OIC_U8: oic_store_u8((uint8_t *)y, i, oic_wrap_u8(low)); break;
    case OIC_U16: oic_store_u16((uint16_t *)y, i, oic_wrap_u16(low)); break;
    case OIC_U32: oic_store_u32((uint32_t *)y, i, low); break;
    case OIC_U64: oic_store_u64((uint64_t *)y, i, v); break;
    default: break;
    }
}

/* Where element `flat` of the dimensions with reduced[d] == which begins in a dense tensor. */
static inline ptrdiff_t oic_reduce_offset(ptrdiff_t flat, ptrdiff_t rank, const ptrdiff_t *sizes,
                                          const ptrdiff_t *reduced, ptrdiff_t which)
{
    ptrdiff_t offset = 0;
    ptrdiff_t stride = 1;
    for (ptrdiff_t d = rank - 1; d >= 0; --d) {
        if (reduced[d] == which) {
            offset += flat % sizes[d] * stride;
            flat /= sizes[d];
        }
        stride *= sizes[d];
    }
    return offset;
}

/* The product of the sizes with reduced[d] == which; *size and *stride are those of the last. */
static inline ptrdiff_t oic_reduce_count(ptrdiff_t rank, const ptrdiff_t *sizes,
                                         const ptrdiff_t *reduced, ptrdiff_t which,
                                         ptrdiff_t *size, ptrdiff_t *stride)
{
    ptrdiff_t count = 1;
    ptrdiff_t inner = 1;
    *size = 1;
    *stride = 1;
    for (ptrdiff_t d = rank - 1; d >= 0; --d) {
        if (reduced[d] == which) {
            if (count == 1) {
                *size = sizes[d];
                *stride = inner;
            }
            count *= sizes[d];
        }
        inner *= sizes[d];
    }
    return count;
}

/* oic_<OP>_run_T: FOLD over n elements `step` apart, from element `at`, starting with `first`.
   oic_<OP>_columns_T: the same for `width` neighbouring columns of rows `inner` apart.
   S stored, A accumulated; FIRST(v) is what to start with, where v would be the first element. */
#define OIC_FOLD(OP, T, S, A, LOAD, FIRST, FOLD)                                              \
    static inline A oic_##OP##_run_##T(const S *x, ptrdiff_t at, ptrdiff_t n, ptrdiff_t step, \
                                       A first)                                               \
    {                                                                                         \
        A total = first;                                                                      \
        A part = first;                                                                       \
        ptrdiff_t k = 0;                                                                      \
        for (ptrdiff_t block = 1; n - k >= OIC_REDUCE_LANES; ++block) {                       \
            A lane[OIC_REDUCE_LANES];                                                         \
            ptrdiff_t end = k + OIC_REDUCE_LANES * OIC_REDUCE_ROWS;                           \
            end = end > n ? n : end;                                                          \
            for (int l = 0; l < OIC_REDUCE_LANES; ++l) {                                      \
                lane[l] = first;                                                              \
            }                                                                                 \
            for (; k + OIC_REDUCE_LANES <= end; k += OIC_REDUCE_LANES) {                      \
                for (int l = 0; l < OIC_REDUCE_LANES; ++l) {                                  \
                    lane[l] = FOLD(lane[l], LOAD(x, at + (k + l) * step));                    \
                }                                                                             \
            }                                                                                 \
            for (int w = OIC_REDUCE_LANES / 2; w > 0; w /= 2) {                               \
                for (int l = 0; l < w; ++l) {                                                 \
                    lane[l] = FOLD(lane[l], lane[l + w]);                                     \
                }                                                                             \
            }                                                                                 \
            part = FOLD(part, lane[0]);                                                       \
            if (block % OIC_REDUCE_ROWS == 0) {                                               \
                total = FOLD(total, part);                                                    \
                part = first;                                                                 \
            }                                                                                 \
        }                                                                                     \
        for (; k < n; ++k) {                                                                  \
            part = FOLD(part, LOAD(x, at + k * step));                                        \
        }                                                                                     \
        return FOLD(total, part);                                                             \
    }                                                                                         \
    static inline void oic_##OP##_columns_##T(const S *x, ptrdiff_t at, ptrdiff_t n,          \
                                              ptrdiff_t inner, ptrdiff_t width, A *total)     \
    {                                                                                         \
        A part[OIC_REDUCE_TILE];                                                              \
        for (ptrdiff_t c = 0; c < width; ++c) {                                               \
            total[c] = FIRST(LOAD(x, at + c));                                                \
        }                                                                                     \
        for (ptrdiff_t r = 0; r < n;) {                                                       \
            const ptrdiff_t end = n - r > OIC_REDUCE_ROWS ? r + OIC_REDUCE_ROWS : n;          \
            for (ptrdiff_t c = 0; c < width; ++c) {                                           \
                part[c] = FIRST(LOAD(x, at + c));                                             \
            }                                                                                 \
            for (; r < end; ++r) {                                                            \
                for (ptrdiff_t c = 0; c < width; ++c) {                                       \
                    part[c] = FOLD(part[c], LOAD(x, at + r * inner + c));                     \
                }                                                                             \
            }                                                                                 \
            for (ptrdiff_t c = 0; c < width; ++c) {                                           \
                total[c] = FOLD(total[c], part[c]);                                           \
            }                                                                                 \
        }                                                                                     \
    }

/* The kernels oic_<NAME>_axis_T and oic_<NAME>_axes_T.  KEEP(y, i, v, n) stores a result of n
   elements; PARAMETER and ARGUMENT are what KEEP needs beside, each with its comma, or empty: macros without
   parameters, so that no argument has a comma. */
#define OIC_REDUCE(NAME, OP, T, S, Y, A, LOAD, FIRST, FOLD, KEEP, PARAMETER, ARGUMENT)        \
    static inline void oic_##NAME##_axis_##T(const S *x, Y *y, ptrdiff_t outer, ptrdiff_t n,  \
                                        ptrdiff_t inner PARAMETER())                          \
    {                                                                                         \
        for (ptrdiff_t o = 0; o < outer; ++o) {                                               \
            const ptrdiff_t at = o * n * inner;                                               \
            if (inner == 1) {                                                                 \
                const A v = oic_##OP##_run_##T(x, at, n, 1, FIRST(LOAD(x, at)));              \
                KEEP(y, o, v, n ARGUMENT());                                                  \
                continue;                                                                     \
            }                                                                                 \
            for (ptrdiff_t c = 0; c < inner; c += OIC_REDUCE_TILE) {                          \
                A total[OIC_REDUCE_TILE];                                                     \
                ptrdiff_t width = inner - c;                                                  \
                width = width > OIC_REDUCE_TILE ? OIC_REDUCE_TILE : width;                    \
                oic_##OP##_columns_##T(x, at + c, n, inner, width, total);                    \
                for (ptrdiff_t i = 0; i < width; ++i) {                                       \
                    KEEP(y, o * inner + c + i, total[i], n ARGUMENT());                       \
                }                                                                             \
            }                                                                                 \
        }                                                                                     \
    }                                                                                         \
    static inline void oic_##NAME##_axes_##T(const S *x, Y *y, ptrdiff_t rank,                \
                                             const ptrdiff_t *sizes,                          \
                                             const ptrdiff_t *reduced PARAMETER())            \
    {                                                                                         \
        ptrdiff_t size, step;                                                                 \
        const ptrdiff_t kept = oic_reduce_count(rank, sizes, reduced, 0, &size, &step);       \
        const ptrdiff_t n = oic_reduce_count(rank, sizes, reduced, 1, &size, &step);          \
        for (ptrdiff_t o = 0; o < kept; ++o) {                                                \
            const ptrdiff_t at = oic_reduce_offset(o, rank, sizes, reduced, 0);               \
            const A first = FIRST(LOAD(x, at));                                               \
            A v = first;                                                                      \
            for (ptrdiff_t r = 0; r < n;) {                                                   \
                A part = first;                                                               \
                for (int k = 0; k < OIC_REDUCE_ROWS && r < n; ++k, r += size) {               \
                    const ptrdiff_t row = oic_reduce_offset(r, rank, sizes, reduced, 1);      \
                    part = FOLD(part, oic_##OP##_run_##T(x, at + row, size, step, first));    \
                }                                                                             \
                v = FOLD(v, part);                                                            \
            }                                                                                 \
            KEEP(y, o, v, n ARGUMENT());                                                      \
        }                                                                                     \
    }

#define OIC_FIRST_ZERO(v) 0
#define OIC_FIRST_ONE(v) 1
#define OIC_FIRST_ITSELF(v) (v)
#define OIC_FOLD_SUM(a, v) ((a) + (v))
#define OIC_FOLD_PROD(a, v) ((a) * (v))
#define OIC_FOLD_DOUBLE(a, v) ((a) * (double)(v))
/* The first NaN stays, a later one is passed over. */
#define OIC_FOLD_MAX(a, v) ((v) > (a) ? (v) : (a))
#define OIC_FOLD_MIN(a, v) ((v) < (a) ? (v) : (a))
#define OIC_NOTHING()
#define OIC_TO_PARAMETER() , oic_dtype to
#define OIC_TO_ARGUMENT() , to

/* The largest and smallest element of a type, for n >= 1. */
#define OIC_EXTREMES(T, S, V)                                                                 \
    static inline void oic_keep_##T(S *y, ptrdiff_t i, V v, ptrdiff_t n)                      \
    {                                                                                         \
        (void)n;                                                                              \
        oic_store_##T(y, i, v);                                                               \
    }                                                                                         \
    OIC_FOLD(max, T, S, V, oic_load_##T, OIC_FIRST_ITSELF, OIC_FOLD_MAX)                      \
    OIC_FOLD(min, T, S, V, oic_load_##T, OIC_FIRST_ITSELF, OIC_FOLD_MIN)                      \
    OIC_REDUCE(max, max, T, S, S, V, oic_load_##T, OIC_FIRST_ITSELF, OIC_FOLD_MAX,            \
               oic_keep_##T, OIC_NOTHING, OIC_NOTHING)                                        \
    OIC_REDUCE(min, min, T, S, S, V, oic_load_##T, OIC_FIRST_ITSELF, OIC_FOLD_MIN,            \
               oic_keep_##T, OIC_NOTHING, OIC_NOTHING)                                        \
    OIC_ARG(argmax, max, T, S, V, >)                                                          \
    OIC_ARG(argmin, min, T, S, V, <)

/* Position in the axis of the largest (smallest) element: of equal ones the first, or the last
   unless `first`; 0 where the first element is NaN.  n >= 1. */
#define OIC_ARG(NAME, OP, T, S, V, BETTER)                                                    \
    static inline int64_t oic_##NAME##_run_##T(const S *x, ptrdiff_t at, ptrdiff_t n,         \
                                               int first)                                     \
    {                                                                                         \
        const V best = oic_##OP##_run_##T(x, at, n, 1, oic_load_##T(x, at));                  \
        for (ptrdiff_t k = 0; k < n; ++k) {                                                   \
            const ptrdiff_t position = first ? k : n - 1 - k;                                 \
            if (oic_load_##T(x, at + position) == best) {                                     \
                return (int64_t)position;                                                     \
            }                                                                                 \
        }                                                                                     \
        return 0;                                                                             \
    }                                                                                         \
    static inline void oic_##NAME##_columns_##T(const S *x, ptrdiff_t at, ptrdiff_t n,        \
                                                ptrdiff_t inner, ptrdiff_t width,             \
                                                int64_t *y, int first)                        \
    {                                                                                         \
        V best[OIC_REDUCE_TILE];                                                              \
        for (ptrdiff_t c = 0; c < width; ++c) {                                               \
            best[c] = oic_load_##T(x, at + c);                                                \
            y[c] = 0;                                                                         \
        }                                                                                     \
        for (ptrdiff_t k = 1; k < n; ++k) {                                                   \
            for (ptrdiff_t c = 0; c < width; ++c) {                                           \
                const V v = oic_load_##T(x, at + k * inner + c);                              \
                const int better = v BETTER best[c] || (!first && v == best[c]);              \
                best[c] = better ? v : best[c];                                               \
                y[c] = better ? (int64_t)k : y[c];                                            \
            }                                                                                 \
        }                                                                                     \
    }                                                                                         \
    static inline void oic_##NAME##_axis_##T(const S *x, int64_t *y, ptrdiff_t outer,        \
                                             ptrdiff_t n, ptrdiff_t inner, int first)         \
    {                                                                                         \
        for (ptrdiff_t o = 0; o < outer; ++o) {                                               \
            const ptrdiff_t at = o * n * inner;                                               \
            if (inner == 1) {                                                                 \
                y[o] = oic_##NAME##_run_##T(x, at, n, first);                                 \
                continue;                                                                     \
            }                                                                                 \
            for (ptrdiff_t c = 0; c < inner; c += OIC_REDUCE_TILE) {                          \
                const ptrdiff_t left = inner - c;                                             \
                const ptrdiff_t width = left > OIC_REDUCE_TILE ? OIC_REDUCE_TILE : left;      \
                oic_##NAME##_columns_##T(x, at + c, n, inner, width, y + o * inner + c,       \
                                         first);                                              \
            }                                                                                 \
        }                                                                                     \
    }

/* ------------------------------------------------------------ floats */

/* ROUND is applied to a product, which is an f64; the mean of nothing is NaN. */
#define OIC_REDUCE_FLOAT(T, S, A, ROUND)                                                      \
    OIC_EXTREMES(T, S, A)                                                                     \
    static inline void oic_keep_mean_##T(S *y, ptrdiff_t i, A v, ptrdiff_t n)                 \
    {                                                                                         \
        oic_store_##T(y, i, n == 0 ? (A)NAN : v / (A)n);                                      \
    }                                                                                         \
    static inline void oic_keep_prod_##T(S *y, ptrdiff_t i, double v, ptrdiff_t n)            \
    {                                                                                         \
        (void)n;                                                                              \
        oic_store_##T(y, i, ROUND(v));                                                        \
    }                                                                                         \
    OIC_FOLD(sum, T, S, A, oic_load_##T, OIC_FIRST_ZERO, OIC_FOLD_SUM)                        \
    OIC_FOLD(prod, T, S, double, oic_load_##T, OIC_FIRST_ONE, OIC_FOLD_DOUBLE)        \
    OIC_REDUCE(sum, sum, T, S, S, A, oic_load_##T, OIC_FIRST_ZERO, OIC_FOLD_SUM,              \
               oic_keep_##T, OIC_NOTHING, OIC_NOTHING)                                        \
    OIC_REDUCE(mean, sum, T, S, S, A, oic_load_##T, OIC_FIRST_ZERO, OIC_FOLD_SUM,             \
               oic_keep_mean_##T, OIC_NOTHING, OIC_NOTHING)                                   \
    OIC_REDUCE(prod, prod, T, S, S, double, oic_load_##T, OIC_FIRST_ONE, OIC_FOLD_DOUBLE,     \
               oic_keep_prod_##T, OIC_NOTHING, OIC_NOTHING)                                   \
    /* y[k] = x[0] + ... + x[k], or to x[k-1] if exclusive; added in order. */                \
    static inline void oic_cumsum_##T(const S *x, S *y, ptrdiff_t outer, ptrdiff_t n,         \
                                      ptrdiff_t inner, int exclusive)                         \
    {                                                                                         \
        for (ptrdiff_t o = 0; o < outer; ++o) {                                               \
            for (ptrdiff_t c = 0; c < inner; c += OIC_REDUCE_TILE) {                          \
                const ptrdiff_t left = inner - c;                                             \
                const ptrdiff_t width = left > OIC_REDUCE_TILE ? OIC_REDUCE_TILE : left;      \
                A total[OIC_REDUCE_TILE] = {0};                                               \
                for (ptrdiff_t k = 0; k < n; ++k) {                                           \
                    const ptrdiff_t row = (o * n + k) * inner + c;                            \
                    for (ptrdiff_t i = 0; i < width; ++i) {                                   \
                        const A before = total[i];                                            \
                        total[i] = before + oic_load_##T(x, row + i);                         \
                        oic_store_##T(y, row + i, exclusive ? before : total[i]);             \
                    }                                                                         \
                }                                                                             \
            }                                                                                 \
        }                                                                                     \
    }

OIC_REDUCE_FLOAT(f8, oic_f8, float, oic_cast_f64_narrow)
OIC_REDUCE_FLOAT(f16, oic_f16, float, oic_cast_f64_narrow)
OIC_REDUCE_FLOAT(bf16, oic_bf16, float, oic_cast_f64_narrow)
OIC_REDUCE_FLOAT(f32, float, float, oic_cast_f64_f32)
OIC_REDUCE_FLOAT(f64, double, double, oic_cast_f64_f64)

/* Whether all n elements are finite; EXPONENT is the mask of an infinity. */
#define OIC_IS_FINITE(T, S, BITS, EXPONENT)                                                   \
    static inline void oic_is_finite_##T(const S *x, uint8_t *y, ptrdiff_t n)                 \
    {                                                                                         \
        unsigned infinite = 0;                                                                \
        for (ptrdiff_t i = 0; i < n; ++i) {                                                   \
            infinite |= (BITS(x[i]) & EXPONENT) == EXPONENT;                                  \
        }                                                                                     \
        *y = (uint8_t)(infinite == 0);                                                        \
    }

OIC_IS_FINITE(f8, oic_f8, (unsigned), 0x7cu)
OIC_IS_FINITE(f16, oic_f16, (unsigned), 0x7c00u)
OIC_IS_FINITE(bf16, oic_bf16, (unsigned), 0x7f80u)
OIC_IS_FINITE(f32, float, oic_bits_f32, 0x7f800000u)
OIC_IS_FINITE(f64, double, oic_bits_f64, UINT64_C(0x7ff0000000000000))

/* ------------------------------------------------------------ integers */

/* WIDE is the 64-bit type of the sign; sums and products do not depend on it.  The mean is toward
   zero, of nothing 0. */
#define OIC_REDUCE_INT(T, S, V, WIDE)                                                         \
    OIC_EXTREMES(T, S, V)                                                                     \
    static inline uint64_t oic_load_64_##T(const S *x, ptrdiff_t i)                           \
    {                                                                                         \
        return (uint64_t)(WIDE)oic_load_##T(x, i);                                            \
    }                                                                                         \
    static inline void oic_keep_total_##T(void *y, ptrdiff_t i, uint64_t v, ptrdiff_t n,      \
                                          oic_dtype to)                                       \
    {                                                                                         \
        (void)n;                                                                              \
        oic_store_int(y, i, v, to);                                                           \
    }                                                                                         \
    static inline void oic_keep_mean_##T(void *y, ptrdiff_t i, uint64_t v, ptrdiff_t n,       \
                                         oic_dtype to)                                        \
    {                                                                                         \
        oic_store_int(y, i, n == 0 ? 0 : (uint64_t)((WIDE)v / (WIDE)n), to);                  \
    }                                                                                         \
    OIC_FOLD(sum, T, S, uint64_t, oic_load_64_##T, OIC_FIRST_ZERO, OIC_FOLD_SUM)              \
    OIC_FOLD(prod, T, S, uint64_t, oic_load_64_##T, OIC_FIRST_ONE, OIC_FOLD_PROD)             \
    OIC_REDUCE(sum, sum, T, S, void, uint64_t, oic_load_64_##T, OIC_FIRST_ZERO, OIC_FOLD_SUM, \
               oic_keep_total_##T, OIC_TO_PARAMETER, OIC_TO_ARGUMENT)                         \
    OIC_REDUCE(mean, sum, T, S, void, uint64_t, oic_load_64_##T, OIC_FIRST_ZERO,              \
               OIC_FOLD_SUM, oic_keep_mean_##T, OIC_TO_PARAMETER, OIC_TO_ARGUMENT)            \
    OIC_REDUCE(prod, prod, T, S, void, uint64_t, oic_load_64_##T, OIC_FIRST_ONE,              \
               OIC_FOLD_PROD, oic_keep_total_##T, OIC_TO_PARAMETER, OIC_TO_ARGUMENT)

OIC_REDUCE_INT(i1, uint8_t, int8_t, int64_t)
OIC_REDUCE_INT(i2, uint8_t, int8_t, int64_t)
OIC_REDUCE_INT(i4, uint8_t, int8_t, int64_t)
OIC_REDUCE_INT(i8, int8_t, int8_t, int64_t)
OIC_REDUCE_INT(i16, int16_t, int16_t, int64_t)
OIC_REDUCE_INT(i32, int32_t, int32_t, int64_t)
OIC_REDUCE_INT(i64, int64_t, int64_t, int64_t)
OIC_REDUCE_INT(u1, uint8_t, uint8_t, uint64_t)
OIC_REDUCE_INT(u2, uint8_t, uint8_t, uint64_t)
OIC_REDUCE_INT(u4, uint8_t, uint8_t, uint64_t)
OIC_REDUCE_INT(u8, uint8_t, uint8_t, uint64_t)
OIC_REDUCE_INT(u16, uint16_t, uint16_t, uint64_t)
OIC_REDUCE_INT(u32, uint32_t, uint32_t, uint64_t)
OIC_REDUCE_INT(u64, uint64_t, uint64_t, uint64_t)

#undef OIC_FOLD
#undef OIC_REDUCE
#undef OIC_ARG
#undef OIC_EXTREMES
#undef OIC_REDUCE_FLOAT
#undef OIC_REDUCE_INT
#undef OIC_IS_FINITE
#undef OIC_FIRST_ZERO
#undef OIC_FIRST_ONE
#undef OIC_FIRST_ITSELF
#undef OIC_FOLD_SUM
#undef OIC_FOLD_PROD
#undef OIC_FOLD_DOUBLE
#undef OIC_FOLD_MAX
#undef OIC_FOLD_MIN
#undef OIC_NOTHING
#undef OIC_TO_PARAMETER
#undef OIC_TO_ARGUMENT

#endif
