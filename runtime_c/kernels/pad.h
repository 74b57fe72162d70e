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

/* Elements i..end-1 of a row of y, which begins at `to`; `from` is where that of x does, less than 0 if there is none. */
static inline void NAME(oic_pad_border)(const ARGS(oic_pad) *a, ptrdiff_t to, ptrdiff_t i, ptrdiff_t end, ptrdiff_t from,
                                        ptrdiff_t before, ptrdiff_t size, const T *value)
{
    for (; i < end; ++i) {
        const ptrdiff_t at = from < 0 ? -1 : oic_pad_source(i - before, size, a->mode);
        if (at < 0) {
            oic_move(a->y, to + i, value, 0, 1, BITS);
        } else {
            oic_move(a->y, to + i, a->x, from + at, 1, BITS);
        }
    }
}

/* A row, which lies along the last axis, at a time: its middle is moved whole. */
static inline void NAME(oic_pad)(const ARGS(oic_pad) *a)
{
    const ptrdiff_t last = a->rank - 1, size = last < 0 ? 1 : a->shape[last];
    const ptrdiff_t before = last < 0 ? 0 : a->before[last], wide = last < 0 ? 1 : before + size + a->after[last];
    T value[1] = {0};
    ptrdiff_t rows = 1;
    STORE(value, 0, a->value);
    for (ptrdiff_t d = 0; d < last; ++d) {
        rows *= a->before[d] + a->shape[d] + a->after[d];
    }
    for (ptrdiff_t row = 0; row < rows; ++row) {
        ptrdiff_t from = 0, rest = row, step = size;
        for (ptrdiff_t d = last - 1; d >= 0; --d) {
            const ptrdiff_t all = a->before[d] + a->shape[d] + a->after[d];
            const ptrdiff_t at = oic_pad_source(rest % all - a->before[d], a->shape[d], a->mode);
            from = at < 0 || from < 0 ? -1 : from + at * step;
            step *= a->shape[d];
            rest /= all;
        }
        const ptrdiff_t to = row * wide, middle = from < 0 ? 0 : size;
        NAME(oic_pad_border)(a, to, 0, before, from, before, size, value);
        oic_move(a->y, to + before, a->x, from, middle, BITS);
        NAME(oic_pad_border)(a, to, before + middle, wide, from, before, size, value);
    }
}

#include "end.h"
