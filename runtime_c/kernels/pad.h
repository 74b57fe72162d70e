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

/* y[at..at+n-1] = the number of which `many` has OIC_MOVE_FEW bytes. */
static inline void NAME(oic_pad_fill)(T *restrict y, ptrdiff_t at, ptrdiff_t n, const T *restrict many)
{
    enum { PART = 8 * OIC_MOVE_FEW / BITS };
    for (; n > 0; n -= PART, at += PART) {
        oic_move(y, at, many, 0, n < PART ? n : PART, BITS);
    }
}

/* `inner` elements for each position of an axis of `size` and of what is added along it, from element `to` of y on; those of x
   begin at `from`, less than 0 if there are none.  The middle is moved whole. */
static inline void NAME(oic_pad_row)(const ARGS(oic_pad) *a, ptrdiff_t to, ptrdiff_t from, ptrdiff_t before, ptrdiff_t size,
                                     ptrdiff_t after, ptrdiff_t inner, const T *many)
{
    const ptrdiff_t middle = to + before * inner, behind = middle + size * inner;
    if (from < 0) {
        NAME(oic_pad_fill)(a->y, to, (before + size + after) * inner, many);
        return;
    }
    oic_move(a->y, middle, a->x, from, size * inner, BITS);
    if (a->mode == 0 || size == 0) {
        NAME(oic_pad_fill)(a->y, to, before * inner, many);
        NAME(oic_pad_fill)(a->y, behind, after * inner, many);
        return;
    }
    for (ptrdiff_t i = 0; i < before; ++i) {
        oic_move(a->y, to + i * inner, a->x, from + oic_pad_source(i - before, size, a->mode) * inner, inner, BITS);
    }
    for (ptrdiff_t i = 0; i < after; ++i) {
        oic_move(a->y, behind + i * inner, a->x, from + oic_pad_source(size + i, size, a->mode) * inner, inner, BITS);
    }
}

/* A row, which lies along the last axis that is padded, at a time. */
static inline void NAME(oic_pad)(const ARGS(oic_pad) *a)
{
    ptrdiff_t last = a->rank - 1, inner = 1, planes = 1;
    T many[OIC_MOVE_FEW / sizeof(T)] = {0};
    for (ptrdiff_t i = 0; i < 8 * OIC_MOVE_FEW / BITS; ++i) {
        STORE(many, i, a->value);
    }
    for (; last >= 0 && a->before[last] == 0 && a->after[last] == 0; --last) {
        inner *= a->shape[last];
    }
    if (last < 0) {
        oic_move(a->y, 0, a->x, 0, inner, BITS);
        return;
    }
    const ptrdiff_t size = a->shape[last], before = a->before[last], after = a->after[last];
    const ptrdiff_t above = last > 0 ? a->before[last - 1] : 0, height = last > 0 ? a->shape[last - 1] : 1;
    const ptrdiff_t rows = last > 0 ? above + height + a->after[last - 1] : 1;
    for (ptrdiff_t d = 0; d < last - 1; ++d) {
        planes *= a->before[d] + a->shape[d] + a->after[d];
    }
    for (ptrdiff_t plane = 0; plane < planes; ++plane) {
        ptrdiff_t top = 0, rest = plane, step = height; /* the plane's first row in x */
        for (ptrdiff_t d = last - 2; d >= 0; --d) {
            const ptrdiff_t all = a->before[d] + a->shape[d] + a->after[d];
            const ptrdiff_t at = oic_pad_source(rest % all - a->before[d], a->shape[d], a->mode);
            top = at < 0 || top < 0 ? -1 : top + at * step;
            step *= a->shape[d];
            rest /= all;
        }
        for (ptrdiff_t row = 0; row < rows; ++row) {
            const ptrdiff_t at = oic_pad_source(row - above, height, a->mode);
            const ptrdiff_t from = top < 0 || at < 0 ? -1 : (top + at) * size * inner;
            const ptrdiff_t to = (plane * rows + row) * (before + size + after) * inner;
            NAME(oic_pad_row)(a, to, from, before, size, after, inner, many);
        }
    }
}

#include "end.h"
