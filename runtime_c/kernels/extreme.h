/* oic_max_axis_X, oic_min_axis_X: y[outer, inner] = the largest, or smallest, element of x[outer, n, inner]
   along n; or, if rank is not 0, of x[sizes[rank]] along the dimensions with reduced[d] == 1.  y must not
   overlap x; n >= 1. NaN where the first element is one; later ones are passed over.
   oic_argmax_axis_X, oic_argmin_axis_X: where along n: of equal ones the first, or the last if `last`; 0 where
   the first element is NaN.

   Of zeros of both signs the first. */
#include "element.h"

#include "common/reduced_axes.h"
#include "../simd/sums.h"

typedef struct {
    const T *x;
    T *y;
    ptrdiff_t outer, n, inner, rank;
    const ptrdiff_t *sizes, *reduced;
} ARGS(oic_max_axis);

typedef ARGS(oic_max_axis) ARGS(oic_min_axis);

typedef struct {
    const T *x;
    int64_t *y;
    ptrdiff_t outer, n, inner;
    int last;
} ARGS(oic_argmax_axis);

typedef ARGS(oic_argmax_axis) ARGS(oic_argmin_axis);

/* v, if it is larger than `best`, or smaller if `least`. */
static inline C NAME(oic_better)(C v, C best, int least)
{
    return least ? (v < best ? v : best) : (v > best ? v : best);
}

/* The extreme of n neighbours from element `at` on. */
static inline C NAME(oic_extreme_row)(const T *x, ptrdiff_t at, ptrdiff_t n, int least)
{
    const ptrdiff_t whole = n - n % OIC_LANES;
    C best[OIC_LANES];
    for (ptrdiff_t l = 0; l < OIC_LANES; ++l) {
        best[l] = LOAD(x, at);
    }
    for (ptrdiff_t i = 0; i < whole; i += OIC_LANES) {
        for (ptrdiff_t l = 0; l < OIC_LANES; ++l) {
            best[l] = NAME(oic_better)(LOAD(x, at + i + l), best[l], least);
        }
    }
    for (ptrdiff_t i = whole; i < n; ++i) {
        best[i - whole] = NAME(oic_better)(LOAD(x, at + i), best[i - whole], least);
    }
    for (ptrdiff_t l = 1; l < OIC_LANES; ++l) {
        best[0] = NAME(oic_better)(best[l], best[0], least);
    }
    if (best[0] == (C)0) { /* maybe not the first zero */
        ptrdiff_t first = at;
        while (LOAD(x, first) != (C)0) {
            ++first;
        }
        best[0] = LOAD(x, first);
    }
    return best[0];
}

/* The extreme of result `kept` of dimensions that are not adjacent. */
static inline C NAME(oic_extreme_apart)(const ARGS(oic_max_axis) *a, ptrdiff_t kept, int least)
{
    ptrdiff_t size, step;
    const ptrdiff_t at = oic_reduced_offset(kept, a->rank, a->sizes, a->reduced, 0);
    const ptrdiff_t n = oic_reduced_count(a->rank, a->sizes, a->reduced, 1, &size, &step);
    C best = LOAD(a->x, at);
    for (ptrdiff_t r = 0; r < n; r += size) {
        const ptrdiff_t row = at + oic_reduced_offset(r, a->rank, a->sizes, a->reduced, 1);
        for (ptrdiff_t k = 0; k < size; ++k) {
            best = NAME(oic_better)(LOAD(a->x, row + k * step), best, least);
        }
    }
    return best;
}

static inline void NAME(oic_extremes)(const ARGS(oic_max_axis) *a, int least)
{
    const T *const x = a->x;
    const ptrdiff_t n = a->n, inner = a->inner;
    ptrdiff_t size, step;
    if (a->rank > 0) {
        const ptrdiff_t kept = oic_reduced_count(a->rank, a->sizes, a->reduced, 0, &size, &step);
        for (ptrdiff_t o = 0; o < kept; ++o) {
            STORE(a->y, o, NAME(oic_extreme_apart)(a, o, least));
        }
        return;
    }
    for (ptrdiff_t o = 0; o < a->outer; ++o) {
        const ptrdiff_t at = o * n * inner;
        if (inner == 1) {
            STORE(a->y, o, NAME(oic_extreme_row)(x, at, n, least));
            continue;
        }
        for (ptrdiff_t c = 0; c < inner; c += OIC_COLUMNS) {
            const ptrdiff_t width = inner - c < OIC_COLUMNS ? inner - c : OIC_COLUMNS;
            C best[OIC_COLUMNS];
            for (ptrdiff_t e = 0; e < width; ++e) {
                best[e] = LOAD(x, at + c + e);
            }
            for (ptrdiff_t r = 1; r < n; ++r) {
                for (ptrdiff_t e = 0; e < width; ++e) {
                    best[e] = NAME(oic_better)(LOAD(x, at + r * inner + c + e), best[e], least);
                }
            }
            for (ptrdiff_t e = 0; e < width; ++e) {
                STORE(a->y, o * inner + c + e, best[e]);
            }
        }
    }
}

static inline void NAME(oic_max_axis)(const ARGS(oic_max_axis) *a)
{
    NAME(oic_extremes)(a, 0);
}

static inline void NAME(oic_min_axis)(const ARGS(oic_min_axis) *a)
{
    NAME(oic_extremes)(a, 1);
}

/* Where n neighbours from element `at` on have their extreme. */
static inline int64_t NAME(oic_arg_extreme_row)(const T *x, ptrdiff_t at, ptrdiff_t n, int least, int last)
{
    const C best = NAME(oic_extreme_row)(x, at, n, least);
    for (ptrdiff_t k = 0; k < n; ++k) {
        const ptrdiff_t position = last ? n - 1 - k : k;
        if (LOAD(x, at + position) == best) {
            return (int64_t)position;
        }
    }
    return 0;
}

/* y[width]: the same for neighbouring columns of rows `inner` apart. */
static inline void NAME(oic_arg_extreme_columns)(const T *x, ptrdiff_t at, ptrdiff_t n, ptrdiff_t inner,
                                                 ptrdiff_t width, int64_t *restrict y, int least, int last)
{
    C best[OIC_COLUMNS];
    for (ptrdiff_t c = 0; c < width; ++c) {
        best[c] = LOAD(x, at + c);
        y[c] = 0;
    }
    for (ptrdiff_t k = 1; k < n; ++k) {
        for (ptrdiff_t c = 0; c < width; ++c) {
            const C v = LOAD(x, at + k * inner + c);
            const int better = (least ? v < best[c] : v > best[c]) || (last && v == best[c]);
            best[c] = better ? v : best[c];
            y[c] = better ? (int64_t)k : y[c];
        }
    }
}

static inline void NAME(oic_arg_extremes)(const ARGS(oic_argmax_axis) *a, int least)
{
    const ptrdiff_t n = a->n, inner = a->inner;
    for (ptrdiff_t o = 0; o < a->outer; ++o) {
        const ptrdiff_t at = o * n * inner;
        if (inner == 1) {
            a->y[o] = NAME(oic_arg_extreme_row)(a->x, at, n, least, a->last);
            continue;
        }
        for (ptrdiff_t c = 0; c < inner; c += OIC_COLUMNS) {
            const ptrdiff_t width = inner - c < OIC_COLUMNS ? inner - c : OIC_COLUMNS;
            NAME(oic_arg_extreme_columns)(a->x, at + c, n, inner, width, a->y + o * inner + c, least, a->last);
        }
    }
}

static inline void NAME(oic_argmax_axis)(const ARGS(oic_argmax_axis) *a)
{
    NAME(oic_arg_extremes)(a, 0);
}

static inline void NAME(oic_argmin_axis)(const ARGS(oic_argmin_axis) *a)
{
    NAME(oic_arg_extremes)(a, 1);
}

#include "end.h"
