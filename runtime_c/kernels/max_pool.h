/* oic_max_pool_X: y[planes, out_height, out_width] of x[planes, height, width]: the largest of window_y x window_x
   elements, `stride` apart; `padding` more at both ends do not take part.  A NaN is the largest.  y does not overlap x.

   Order (which of two zeros): rows, and columns of a row, in order. */
#include "element.h"

#include "../pool_range.h"

typedef struct {
    const T *x;
    T *y;
    ptrdiff_t planes, height, width, out_height, out_width, window_y, window_x, stride_y, stride_x, padding_y, padding_x;
} ARGS(oic_max_pool);

static inline void NAME(oic_max_pool)(const ARGS(oic_max_pool) *a)
{
    const ptrdiff_t width = a->width;
    for (ptrdiff_t at = 0; at < a->planes * a->out_height * a->out_width; ++at) {
        const ptrdiff_t row = at / a->out_width, plane = row / a->out_height;
        const ptrdiff_t top = row % a->out_height * a->stride_y - a->padding_y;
        const ptrdiff_t left = at % a->out_width * a->stride_x - a->padding_x;
        const ptrdiff_t last_y = oic_pool_last(top, a->window_y, a->height);
        const ptrdiff_t last_x = oic_pool_last(left, a->window_x, width);
        C best = (C)-INFINITY;
        for (ptrdiff_t iy = oic_pool_first(top); iy < last_y; ++iy) {
            for (ptrdiff_t ix = oic_pool_first(left); ix < last_x; ++ix) {
                const C v = LOAD(a->x, (plane * a->height + iy) * width + ix);
                best = best != best || v <= best ? best : v; /* a NaN stays */
            }
        }
        STORE(a->y, at, best);
    }
}

#include "end.h"
