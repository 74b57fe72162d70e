/* oic_top_k_X: y and where [outer, k, inner], the k largest of x[outer, n, inner] along n, largest first, the
   lower index first of equals, NaN largest.  Results overlap no operand. */
#include "element.h"

typedef struct {
    const T *x;
    T *y;
    int32_t *where;
    ptrdiff_t outer, n, inner, k;
} ARGS(oic_top_k);

static inline void NAME(oic_top_k)(const ARGS(oic_top_k) *a)
{
    const ptrdiff_t n = a->n, inner = a->inner, k = a->k;
    for (ptrdiff_t o = 0; o < a->outer * inner; ++o) {
        const T *const x = a->x + o / inner * n * inner + o % inner;
        T *const y = a->y + o / inner * k * inner + o % inner;
        int32_t *const where = a->where + o / inner * k * inner + o % inner;
        for (ptrdiff_t i = 0; i < n && k > 0; ++i) {
            const C v = LOAD(x, i * inner);
            ptrdiff_t at = i < k ? i : k;
            while (at > 0) { /* behind all that are as large or NaN */
                const C w = LOAD(y, (at - 1) * inner);
                if (w >= v || w != w) {
                    break;
                }
                if (at < k) {
                    y[at * inner] = y[(at - 1) * inner];
                    where[at * inner] = where[(at - 1) * inner];
                }
                --at;
            }
            if (at < k) {
                y[at * inner] = x[i * inner];
                where[at * inner] = (int32_t)i;
            }
        }
    }
}

#include "end.h"
