/* oic_sum_axis_X_W, oic_mean_axis_X_W, oic_prod_axis_X_W of integers of type X, to type W: y[outer, inner] = the sum,
   mean or product of x[outer, n, inner] along n; or, if rank is not 0, of x[sizes[rank]] along the dimensions with
   reduced[d] == 1.  y must not overlap x.

   Modulo 2^64, then wrapped, whatever the order; the mean is toward zero, of nothing 0. */
#include "element.h"

#include "common/reduced_axes.h"

typedef struct {
    const T *x;
    W_T *y;
    ptrdiff_t outer, n, inner, rank;
    const ptrdiff_t *sizes, *reduced;
} ARGS(oic_sum_axis);

typedef ARGS(oic_sum_axis) ARGS(oic_mean_axis);
typedef ARGS(oic_sum_axis) ARGS(oic_prod_axis);

/* v and n elements of x from `at` on, `step` apart, added or multiplied. */
static inline uint64_t NAME(oic_totals_run)(uint64_t v, const T *x, ptrdiff_t at, ptrdiff_t n, ptrdiff_t step,
                                            int product)
{
    if (product) {
        for (ptrdiff_t i = 0; i < n; ++i) {
            v *= (uint64_t)LOAD(x, at + i * step);
        }
    } else {
        for (ptrdiff_t i = 0; i < n; ++i) {
            v += (uint64_t)LOAD(x, at + i * step);
        }
    }
    return v;
}

/* total[width]: the same for neighbouring columns of rows `inner` apart. */
static inline void NAME(oic_totals_columns)(uint64_t *restrict total, const T *restrict x, ptrdiff_t at, ptrdiff_t n,
                                            ptrdiff_t inner, ptrdiff_t width, int product)
{
    for (ptrdiff_t c = 0; c < width; ++c) {
        total[c] = product ? 1 : 0;
    }
    for (ptrdiff_t r = 0; r < n; ++r) {
        for (ptrdiff_t c = 0; c < width; ++c) {
            const uint64_t v = (uint64_t)LOAD(x, at + r * inner + c);
            total[c] = product ? total[c] * v : total[c] + v;
        }
    }
}

/* Element i of y is v, or with `mean` v over n. */
static inline void NAME(oic_totals_keep)(W_T *y, ptrdiff_t i, uint64_t v, ptrdiff_t n, int mean)
{
    const int is_unsigned = (C)-1 > (C)0;
    if (mean && n == 0) {
        v = 0;
    } else if (mean) {
        v = is_unsigned ? v / (uint64_t)n : (uint64_t)((int64_t)v / (int64_t)n);
    }
    W_STORE(y, i, (W_C)v);
}

/* Units first..end-1 of reduced_axes.h. */
static inline void NAME(oic_totals)(const ARGS(oic_sum_axis) *a, ptrdiff_t first, ptrdiff_t end, int product, int mean)
{
    const ptrdiff_t inner = a->inner, rank = a->rank;
    ptrdiff_t n = a->n, size, step;
    if (rank > 0) {
        n = oic_reduced_count(rank, a->sizes, a->reduced, 1, &size, &step);
        for (ptrdiff_t o = first; o < end; ++o) {
            const ptrdiff_t at = oic_reduced_offset(o, rank, a->sizes, a->reduced, 0);
            uint64_t v = product ? 1 : 0;
            for (ptrdiff_t r = 0; r < n; r += size) {
                const ptrdiff_t row = at + oic_reduced_offset(r, rank, a->sizes, a->reduced, 1);
                v = NAME(oic_totals_run)(v, a->x, row, size, step, product);
            }
            NAME(oic_totals_keep)(a->y, o, v, n, mean);
        }
        return;
    }
    if (inner == 1) {
        for (ptrdiff_t o = first; o < end; ++o) {
            const uint64_t v = NAME(oic_totals_run)(product ? 1 : 0, a->x, o * n, n, 1, product);
            NAME(oic_totals_keep)(a->y, o, v, n, mean);
        }
        return;
    }
    for (ptrdiff_t u = first; u < end;) {
        const oic_columns at = oic_columns_at(u, end, inner, OIC_COLUMNS);
        uint64_t total[OIC_COLUMNS];
        NAME(oic_totals_columns)(total, a->x, at.outer * n * inner + at.first, n, inner, at.count, product);
        for (ptrdiff_t e = 0; e < at.count; ++e) {
            NAME(oic_totals_keep)(a->y, at.outer * inner + at.first + e, total[e], n, mean);
        }
        u += at.units;
    }
}

static inline void NAME(oic_sum_axis_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    (void)worker;
    NAME(oic_totals)(args, first, end, 0, 0);
}

static inline void NAME(oic_mean_axis_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    (void)worker;
    NAME(oic_totals)(args, first, end, 0, 1);
}

static inline void NAME(oic_prod_axis_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    (void)worker;
    NAME(oic_totals)(args, first, end, 1, 0);
}

static inline void NAME(oic_sum_axis)(const ARGS(oic_sum_axis) *a)
{
    NAME(oic_totals)(a, 0, oic_reduced_units(a->rank, a->sizes, a->reduced, a->outer, a->inner), 0, 0);
}

static inline void NAME(oic_mean_axis)(const ARGS(oic_mean_axis) *a)
{
    NAME(oic_totals)(a, 0, oic_reduced_units(a->rank, a->sizes, a->reduced, a->outer, a->inner), 0, 1);
}

static inline void NAME(oic_prod_axis)(const ARGS(oic_prod_axis) *a)
{
    NAME(oic_totals)(a, 0, oic_reduced_units(a->rank, a->sizes, a->reduced, a->outer, a->inner), 1, 0);
}

#include "end.h"
