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

/* size * inner elements, `inner` neighbours at a time in reverse order. */
static inline void NAME(oic_flip_row)(T *restrict y, ptrdiff_t to, const T *restrict x, ptrdiff_t from, ptrdiff_t size, ptrdiff_t inner)
{
    if (inner == 1 && BITS >= 8) { /* a loop of its own, which becomes vector code */
        for (ptrdiff_t i = 0; i < size; ++i) {
            y[to + i] = x[from + size - 1 - i];
        }
        return;
    }
    for (ptrdiff_t i = 0; i < size; ++i) {
        oic_move(y, to + i * inner, x, from + (size - 1 - i) * inner, inner, BITS);
    }
}

/* A row, which lies along the last axis that is reversed, at a time. */
static inline void NAME(oic_flip)(const ARGS(oic_flip) *a)
{
    ptrdiff_t last = a->rank - 1, inner = 1;
    for (; last >= 0 && !a->marks[last]; --last) {
        inner *= a->shape[last];
    }
    if (last < 0) {
        oic_move(a->y, 0, a->x, 0, inner, BITS);
        return;
    }
    const ptrdiff_t size = a->shape[last], rows = last > 0 ? a->shape[last - 1] : 1;
    const int upward = last > 0 && a->marks[last - 1];
    const ptrdiff_t planes = last > 0 ? oic_product(last - 1, a->shape) : 1;
    for (ptrdiff_t plane = 0; plane < planes; ++plane) {
        ptrdiff_t from = 0, rest = plane, step = 1; /* the plane in x */
        for (ptrdiff_t d = last - 2; d >= 0; --d) {
            const ptrdiff_t at = rest % a->shape[d];
            from += (a->marks[d] ? a->shape[d] - 1 - at : at) * step;
            step *= a->shape[d];
            rest /= a->shape[d];
        }
        for (ptrdiff_t row = 0; row < rows; ++row) {
            const ptrdiff_t at = upward ? rows - 1 - row : row, elements = size * inner;
            NAME(oic_flip_row)(a->y, (plane * rows + row) * elements, a->x, (from * rows + at) * elements, size, inner);
        }
    }
}

#include "end.h"
