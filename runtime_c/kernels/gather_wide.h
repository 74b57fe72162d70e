/* oic_gather_X_W_B: y[outer, n, inner] = the n entries ids (B: i32 or i64) of table[outer, size, inner], each element
   widened from X to W, whose values hold all of X's.  The ids have been checked; y overlaps no operand. */
#include "element.h"

typedef struct {
    const T *table;
    const B_T *ids;
    W_T *y;
    ptrdiff_t outer, size, inner, n;
} ARGS(oic_gather);

static inline void NAME(oic_gather)(const ARGS(oic_gather) *a)
{
    const T *restrict const table = a->table;
    const ptrdiff_t inner = a->inner, n = a->n;
    for (ptrdiff_t o = 0; o < a->outer; ++o) {
        for (ptrdiff_t i = 0; i < n; ++i) {
            const ptrdiff_t from = (o * a->size + (ptrdiff_t)a->ids[i]) * inner;
            W_T *restrict const to = a->y + (o * n + i) * inner;
            for (ptrdiff_t e = 0; e < inner; ++e) {
                to[e] = (W_T)LOAD(table, from + e);
            }
        }
    }
}

#include "end.h"
