/* oic_gather_X_W_B: y[outer, n, inner] = the n entries ids (B: i32 or i64) of table[outer, size, inner], each element
   widened from X to W, whose values hold all of X's.  The ids have been checked; y overlaps no operand. */
#include "element.h"

typedef struct {
    const T *table;
    const B_T *ids;
    W_T *y;
    ptrdiff_t outer, size, inner, n;
} ARGS(oic_gather);

/* Entries first..end-1 of y. */
static inline void NAME(oic_gather_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(oic_gather) *const a = args;
    const T *restrict const table = a->table;
    const ptrdiff_t inner = a->inner, n = a->n;
    (void)worker;
    for (ptrdiff_t at = first; at < end;) {
        const ptrdiff_t o = at / n, i0 = at - o * n, i1 = end - at < n - i0 ? i0 + end - at : n;
        for (ptrdiff_t i = i0; i < i1; ++i) {
            const ptrdiff_t from = (o * a->size + (ptrdiff_t)a->ids[i]) * inner;
            W_T *restrict const to = a->y + (o * n + i) * inner;
            for (ptrdiff_t e = 0; e < inner; ++e) {
                to[e] = (W_T)LOAD(table, from + e);
            }
        }
        at += i1 - i0;
    }
}

static inline void NAME(oic_gather)(const ARGS(oic_gather) *a)
{
    NAME(oic_gather_part)(a, 0, a->outer * a->n, 0);
}

#include "end.h"
