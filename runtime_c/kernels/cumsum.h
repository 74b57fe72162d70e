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

static inline void NAME(oic_cumsum)(const ARGS(oic_cumsum) *a)
{
    const T *const x = a->x;
    T *const y = a->y;
    const ptrdiff_t n = a->n, inner = a->inner;
    for (ptrdiff_t o = 0; o < a->outer; ++o) {
        for (ptrdiff_t c = 0; c < inner; c += OIC_COLUMNS) {
            const ptrdiff_t width = inner - c < OIC_COLUMNS ? inner - c : OIC_COLUMNS;
            C total[OIC_COLUMNS] = {0};
            for (ptrdiff_t k = 0; k < n; ++k) {
                const ptrdiff_t row = (o * n + k) * inner + c;
                for (ptrdiff_t e = 0; e < width; ++e) {
                    const C before = total[e];
                    total[e] = before + LOAD(x, row + e);
                    STORE(y, row + e, a->exclusive ? before : total[e]);
                }
            }
        }
    }
}

#include "end.h"
