/* oic_prod_axis_X of floats: y[outer, inner] = the product of x[outer, n, inner] along n, in double, rounded once; or,
   if rank is not 0, of x[sizes[rank]] along the dimensions with reduced[d] == 1.  y must not overlap x.

   Order: element i of a result in row-major order belongs to product i mod 16, and the sixteen are multiplied as a
   tree, as in sums.h.  With `columns`, which the operator's axes decide and no size, in order. */
#include "element.h"

#include "common/reduced_axes.h"
#include "../math/rounding.h"
#include "../math/scalar_cast.h"
#include "../simd/sums.h"

typedef struct {
    const T *x;
    T *y;
    ptrdiff_t outer, n, inner, rank;
    const ptrdiff_t *sizes, *reduced;
    int columns;
} ARGS(oic_prod_axis);

/* Element i of y is v. */
static inline void NAME(oic_prod_keep)(T *y, ptrdiff_t i, double v)
{
    STORE(y, i, sizeof(T) < sizeof(C) ? (C)oic_cast_f64_narrow(v) : (C)v);
}

/* The product of sixteen numbers, which are used up. */
static inline double NAME(oic_prod_tree)(double *restrict p)
{
    for (ptrdiff_t half = OIC_LANES / 2; half > 0; half /= 2) {
        for (ptrdiff_t l = 0; l < half; ++l) {
            p[l] *= p[l + half];
        }
    }
    return p[0];
}

/* The product of x[n]. */
static inline double NAME(oic_prod_row)(const T *x, ptrdiff_t n)
{
    const ptrdiff_t whole = n - n % OIC_LANES;
    double p[OIC_LANES];
    for (ptrdiff_t l = 0; l < OIC_LANES; ++l) {
        p[l] = 1.0;
    }
    for (ptrdiff_t i = 0; i < whole; i += OIC_LANES) {
        for (ptrdiff_t l = 0; l < OIC_LANES; ++l) {
            p[l] *= (double)LOAD(x, i + l);
        }
    }
    for (ptrdiff_t i = whole; i < n; ++i) {
        p[i - whole] *= (double)LOAD(x, i);
    }
    return NAME(oic_prod_tree)(p);
}

/* The product of result `kept` of dimensions that are not adjacent. */
static inline double NAME(oic_prod_apart)(const ARGS(oic_prod_axis) *a, ptrdiff_t kept)
{
    ptrdiff_t size, step;
    const ptrdiff_t at = oic_reduced_offset(kept, a->rank, a->sizes, a->reduced, 0);
    const ptrdiff_t n = oic_reduced_count(a->rank, a->sizes, a->reduced, 1, &size, &step);
    double p[OIC_LANES];
    for (ptrdiff_t l = 0; l < OIC_LANES; ++l) {
        p[l] = 1.0;
    }
    for (ptrdiff_t r = 0; r < n; r += size) {
        const ptrdiff_t row = at + oic_reduced_offset(r, a->rank, a->sizes, a->reduced, 1);
        for (ptrdiff_t k = 0; k < size; ++k) {
            p[(r + k) % OIC_LANES] *= (double)LOAD(a->x, row + k * step);
        }
    }
    return NAME(oic_prod_tree)(p);
}

/* Units first..end-1 of reduced_axes.h. */
static inline void NAME(oic_prod_axis_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(oic_prod_axis) *const a = args;
    const ptrdiff_t n = a->n, inner = a->inner;
    (void)worker;
    if (a->rank > 0) {
        for (ptrdiff_t o = first; o < end; ++o) {
            NAME(oic_prod_keep)(a->y, o, NAME(oic_prod_apart)(a, o));
        }
        return;
    }
    if (!a->columns) {
        for (ptrdiff_t o = first; o < end; ++o) {
            NAME(oic_prod_keep)(a->y, o, NAME(oic_prod_row)(a->x + o * n, n));
        }
        return;
    }
    for (ptrdiff_t u = first; u < end;) {
        const oic_columns at = oic_columns_at(u, end, inner, OIC_COLUMNS);
        const T *const x = a->x + at.outer * n * inner + at.first;
        double p[OIC_COLUMNS];
        for (ptrdiff_t e = 0; e < at.count; ++e) {
            p[e] = 1.0;
        }
        for (ptrdiff_t r = 0; r < n; ++r) {
            for (ptrdiff_t e = 0; e < at.count; ++e) {
                p[e] *= (double)LOAD(x, r * inner + e);
            }
        }
        for (ptrdiff_t e = 0; e < at.count; ++e) {
            NAME(oic_prod_keep)(a->y, at.outer * inner + at.first + e, p[e]);
        }
        u += at.units;
    }
}

static inline void NAME(oic_prod_axis)(const ARGS(oic_prod_axis) *a)
{
    NAME(oic_prod_axis_part)(a, 0, oic_reduced_units(a->rank, a->sizes, a->reduced, a->outer, a->inner), 0);
}

#include "end.h"
