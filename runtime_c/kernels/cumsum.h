/* oic_cumsum_X: y[outer, k, inner] = x[outer, 0, inner] + … + x[outer, k, inner], or, if exclusive, to k - 1.  y
   may be x.

   Order: added in order. */
#include "element.h"

#include "common/reduced_axes.h"

typedef struct {
    const T *x;
    T *y;
    ptrdiff_t outer, n, inner;
    int exclusive;
} ARGS(oic_cumsum);

/* Units first..end-1 of columns.h. */
static inline void NAME(oic_cumsum_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(oic_cumsum) *const a = args;
    const T *const x = a->x;
    T *const y = a->y;
    const ptrdiff_t n = a->n, inner = a->inner;
    (void)worker;
    for (ptrdiff_t u = first; u < end;) {
        const oic_columns at = oic_columns_at(u, end, inner, OIC_COLUMNS);
        C total[OIC_COLUMNS] = {0};
        for (ptrdiff_t k = 0; k < n; ++k) {
            const ptrdiff_t row = (at.outer * n + k) * inner + at.first;
            for (ptrdiff_t e = 0; e < at.count; ++e) {
                const C before = total[e];
                total[e] = before + LOAD(x, row + e);
                STORE(y, row + e, a->exclusive ? before : total[e]);
            }
        }
        u += at.units;
    }
}

static inline void NAME(oic_cumsum)(const ARGS(oic_cumsum) *a)
{
    NAME(oic_cumsum_part)(a, 0, a->outer * oic_columns_units(a->inner), 0);
}

#include "end.h"
