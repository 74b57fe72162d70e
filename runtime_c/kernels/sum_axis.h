/* oic_sum_axis_X, oic_mean_axis_X of floats: y[outer, inner] = the sum, or the mean, of x[outer, n, inner] along n; or,
   if rank is not 0, of x[sizes[rank]] along the dimensions with reduced[d] == 1.  y must not overlap x.

   Order: the elements of a result in row-major order are added in parts of OIC_PART, each in the order of sums.h;
   OIC_PARTS parts in order, and these sums in order.  With `columns`, which the operator's axes decide and no size,
   each element is a part. */
#include "element.h"

#include "common/columns.h"
#include "common/reduced_axes.h"
#include "../simd/sums.h"

typedef struct {
    const T *x;
    T *y;
    ptrdiff_t outer, n, inner, rank;
    const ptrdiff_t *sizes, *reduced;
    int columns;
} ARGS(oic_sum_axis);

typedef ARGS(oic_sum_axis) ARGS(oic_mean_axis);

/* The sum of x[n]. */
static inline C NAME(oic_sum_row)(const T *x, ptrdiff_t n)
{
    MATH(oic_total) sum = {0};
    C wide[OIC_PART];
    for (ptrdiff_t i = 0; i < n; i += OIC_PART) {
        const ptrdiff_t m = n - i < OIC_PART ? n - i : OIC_PART;
        MATH(oic_total_add)(&sum, MATH(oic_sum)(WIDEN(x + i, m, wide), m));
    }
    return MATH(oic_total_of)(&sum);
}

/* total[width] = the sums of the columns of x[n, width], rows `inner` apart. */
static inline void NAME(oic_sum_columns)(const T *restrict x, ptrdiff_t n, ptrdiff_t inner, ptrdiff_t width,
                                         C *restrict total)
{
    for (ptrdiff_t c = 0; c < width; ++c) {
        total[c] = (C)0;
    }
    for (ptrdiff_t r = 0; r < n;) {
        const ptrdiff_t end = n - r < OIC_PARTS ? n : r + OIC_PARTS;
        C some[OIC_COLUMNS] = {0};
        for (; r < end; ++r) {
            for (ptrdiff_t c = 0; c < width; ++c) {
                some[c] += LOAD(x, r * inner + c);
            }
        }
        for (ptrdiff_t c = 0; c < width; ++c) {
            total[c] += some[c];
        }
    }
}

/* The sum of result `kept` of dimensions that are not adjacent; *n elements. */
static inline C NAME(oic_sum_apart)(const ARGS(oic_sum_axis) *a, ptrdiff_t kept, ptrdiff_t *n)
{
    ptrdiff_t size, step, held = 0;
    const ptrdiff_t at = oic_reduced_offset(kept, a->rank, a->sizes, a->reduced, 0);
    MATH(oic_total) sum = {0};
    C part[OIC_PART];
    *n = oic_reduced_count(a->rank, a->sizes, a->reduced, 1, &size, &step);
    for (ptrdiff_t r = 0; r < *n; r += size) {
        const ptrdiff_t row = at + oic_reduced_offset(r, a->rank, a->sizes, a->reduced, 1);
        for (ptrdiff_t k = 0, m; k < size; k += m) {
            m = size - k < OIC_PART - held ? size - k : OIC_PART - held;
            for (ptrdiff_t e = 0; e < m; ++e) {
                part[held + e] = LOAD(a->x, row + (k + e) * step);
            }
            held += m;
            if (held == OIC_PART) {
                MATH(oic_total_add)(&sum, MATH(oic_sum)(part, held));
                held = 0;
            }
        }
    }
    MATH(oic_total_add)(&sum, MATH(oic_sum)(part, held));
    return MATH(oic_total_of)(&sum);
}

/* v, or with `mean` v over n; of nothing NaN. */
static inline C NAME(oic_sum_or_mean)(C v, ptrdiff_t n, int mean)
{
    return !mean ? v : n == 0 ? (C)NAN : v / (C)n;
}

/* Units first..end-1 of reduced_axes.h. */
static inline void NAME(oic_sums)(const ARGS(oic_sum_axis) *a, ptrdiff_t first, ptrdiff_t end, int mean)
{
    const ptrdiff_t inner = a->inner;
    ptrdiff_t n = a->n;
    if (a->rank > 0) {
        for (ptrdiff_t o = first; o < end; ++o) {
            const C v = NAME(oic_sum_apart)(a, o, &n);
            STORE(a->y, o, NAME(oic_sum_or_mean)(v, n, mean));
        }
        return;
    }
    if (!a->columns) {
        for (ptrdiff_t o = first; o < end; ++o) {
            STORE(a->y, o, NAME(oic_sum_or_mean)(NAME(oic_sum_row)(a->x + o * n, n), n, mean));
        }
        return;
    }
    for (ptrdiff_t u = first; u < end;) {
        const oic_columns at = oic_columns_at(u, end, inner, OIC_COLUMNS);
        C total[OIC_COLUMNS];
        NAME(oic_sum_columns)(a->x + at.outer * n * inner + at.first, n, inner, at.count, total);
        for (ptrdiff_t e = 0; e < at.count; ++e) {
            STORE(a->y, at.outer * inner + at.first + e, NAME(oic_sum_or_mean)(total[e], n, mean));
        }
        u += at.units;
    }
}

static inline void NAME(oic_sum_axis_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    (void)worker;
    NAME(oic_sums)(args, first, end, 0);
}

static inline void NAME(oic_mean_axis_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    (void)worker;
    NAME(oic_sums)(args, first, end, 1);
}

static inline void NAME(oic_sum_axis)(const ARGS(oic_sum_axis) *a)
{
    NAME(oic_sums)(a, 0, oic_reduced_units(a->rank, a->sizes, a->reduced, a->outer, a->inner), 0);
}

static inline void NAME(oic_mean_axis)(const ARGS(oic_mean_axis) *a)
{
    NAME(oic_sums)(a, 0, oic_reduced_units(a->rank, a->sizes, a->reduced, a->outer, a->inner), 1);
}

#include "end.h"
