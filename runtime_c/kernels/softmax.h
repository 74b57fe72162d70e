/* oic_softmax_X: y[outer, n, inner] = exp(x - max) / sum of exp(x - max), along n.  y may be x.

   Exponentials are added in parts of OIC_PART, each in the order of sums.h; the parts in order, exactly (Kahan).  With
   `columns`, which the operator's axis decides and no size, each element is a part. */
#include "element.h"

#include "common/columns.h"
#include "../math/scalar_math.h"
#include "../simd/sums.h"

typedef struct {
    const T *x;
    T *y;
    ptrdiff_t outer, n, inner;
    int columns;
} ARGS(oic_softmax);

#define OIC_EXPONENTIALS NAME(oic_softmax_columns)
#include "common/exponentials.inc.h"

/* One row; y may be x. */
static inline void NAME(oic_softmax_row)(const T *x, T *y, ptrdiff_t n)
{
    C wide[OIC_PART], part[OIC_PART], top = (C)-INFINITY, sum = (C)0, lost = (C)0;
    for (ptrdiff_t i = 0; i < n; i += OIC_PART) {
        const ptrdiff_t m = n - i < OIC_PART ? n - i : OIC_PART;
        top = MATH(oic_largest)(WIDEN(x + i, m, wide), m, top);
    }
    for (ptrdiff_t i = 0; i < n; i += OIC_PART) {
        const ptrdiff_t m = n - i < OIC_PART ? n - i : OIC_PART;
        const C *const from = WIDEN(x + i, m, wide);
        for (ptrdiff_t e = 0; e < m; ++e) {
            part[e] = MATH(oic_exp)(from[e] - top);
        }
        sum = MATH(oic_add_exactly)(sum, MATH(oic_sum)(part, m), &lost);
    }
    const C r = (C)1 / sum;
    for (ptrdiff_t i = 0; i < n; i += OIC_PART) {
        const ptrdiff_t m = n - i < OIC_PART ? n - i : OIC_PART;
        if (n > OIC_PART) { /* else the only part is still there */
            const C *const from = WIDEN(x + i, m, wide);
            for (ptrdiff_t e = 0; e < m; ++e) {
                part[e] = MATH(oic_exp)(from[e] - top);
            }
        }
        for (ptrdiff_t e = 0; e < m; ++e) {
            STORE(y, i + e, part[e] * r);
        }
    }
}

/* Units first..end-1: rows, or those of columns.h. */
static inline void NAME(oic_softmax_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(oic_softmax) *const a = args;
    const ptrdiff_t n = a->n, inner = a->inner;
    (void)worker;
    if (!a->columns) {
        for (ptrdiff_t o = first; o < end; ++o) {
            NAME(oic_softmax_row)(a->x + o * n, a->y + o * n, n);
        }
        return;
    }
    for (ptrdiff_t u = first; u < end;) {
        const oic_columns at = oic_columns_at(u, end, inner, OIC_EXP_COLUMNS);
        const T *const x = a->x + at.outer * n * inner;
        T *const y = a->y + at.outer * n * inner;
        const ptrdiff_t e0 = at.first, m = at.count;
        C top[OIC_EXP_COLUMNS], sum[OIC_EXP_COLUMNS];
        OIC_EXPONENTIALS(x + e0, n, inner, m, top, sum);
        for (ptrdiff_t e = 0; e < m && m < OIC_EXP_FEW; ++e) {
            for (ptrdiff_t i = 0; i < n; ++i) {
                STORE(y, i * inner + e0 + e, MATH(oic_exp)(LOAD(x, i * inner + e0 + e) - top[e]) / sum[e]);
            }
        }
        for (ptrdiff_t i = 0; i < n && m >= OIC_EXP_FEW; ++i) {
            for (ptrdiff_t e = 0; e < m; ++e) {
                STORE(y, i * inner + e0 + e, MATH(oic_exp)(LOAD(x, i * inner + e0 + e) - top[e]) / sum[e]);
            }
        }
        u += at.units;
    }
}

static inline void NAME(oic_softmax)(const ARGS(oic_softmax) *a)
{
    NAME(oic_softmax_part)(a, 0, a->outer * oic_columns_units(a->inner), 0);
}

#undef OIC_EXPONENTIALS
#undef OIC_EXP_COLUMNS
#undef OIC_EXP_FEW
#include "end.h"
