/* oic_pad_X: y = x[shape] with before[a] and after[a] elements more along axis a: `value` (mode 0), the border
   (1) or the mirror image (2).  y does not overlap x. */
#include "element.h"

#include "common/move.h"

typedef struct {
    const T *x;
    T *y;
    ptrdiff_t rank;
    const ptrdiff_t *shape, *before, *after;
    ptrdiff_t mode;
    C value;
} ARGS(oic_pad);

static inline void NAME(oic_pad)(const ARGS(oic_pad) *a)
{
    T value[1] = {0};
    ptrdiff_t count = 1;
    STORE(value, 0, a->value);
    for (ptrdiff_t d = 0; d < a->rank; ++d) {
        count *= a->before[d] + a->shape[d] + a->after[d];
    }
    for (ptrdiff_t i = 0; i < count; ++i) {
        ptrdiff_t from = 0, rest = i, step = 1;
        for (ptrdiff_t d = a->rank - 1; d >= 0; --d) {
            const ptrdiff_t size = a->before[d] + a->shape[d] + a->after[d];
            const ptrdiff_t at = oic_pad_source(rest % size - a->before[d], a->shape[d], a->mode);
            from = at < 0 || from < 0 ? -1 : from + at * step;
            step *= a->shape[d];
            rest /= size;
        }
        if (from < 0) {
            oic_move(a->y, i, value, 0, 1, BITS);
        } else {
            oic_move(a->y, i, a->x, from, 1, BITS);
        }
    }
}

#include "end.h"
