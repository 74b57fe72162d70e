/* oic_gather_X_W: y[outer, n, inner] = the n entries ids (i32 or i64) of table[outer, size, inner].  The ids have been
   checked; y overlaps no operand. */
#include "element.h"

#include "common/move.h"

typedef struct {
    const T *table;
    const W_T *ids;
    T *y;
    ptrdiff_t outer, size, inner, n;
} ARGS(oic_gather);

static inline void NAME(oic_gather)(const ARGS(oic_gather) *a)
{
    const ptrdiff_t inner = a->inner, n = a->n;
    for (ptrdiff_t o = 0; o < a->outer; ++o) {
        for (ptrdiff_t i = 0; i < n; ++i) {
            const ptrdiff_t entry = o * a->size + (ptrdiff_t)a->ids[i];
            oic_move(a->y, (o * n + i) * inner, a->table, entry * inner, inner, BITS);
        }
    }
}

#include "end.h"
