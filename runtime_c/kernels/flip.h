/* oic_flip_X: y[shape] = x[shape], reversed along the axes with marks[a] == 1.  y does not overlap x. */
#include "element.h"

#include "common/batch.h"
#include "common/move.h"

typedef struct {
    const T *x;
    T *y;
    ptrdiff_t rank;
    const ptrdiff_t *shape, *marks;
} ARGS(oic_flip);

static inline void NAME(oic_flip)(const ARGS(oic_flip) *a)
{
    const ptrdiff_t count = oic_product(a->rank, a->shape);
    for (ptrdiff_t i = 0; i < count; ++i) {
        ptrdiff_t from = 0, rest = i, step = 1;
        for (ptrdiff_t d = a->rank - 1; d >= 0; --d) {
            const ptrdiff_t size = a->shape[d], at = rest % size;
            from += (a->marks[d] ? size - 1 - at : at) * step;
            step *= size;
            rest /= size;
        }
        oic_move(a->y, i, a->x, from, 1, BITS);
    }
}

#include "end.h"
