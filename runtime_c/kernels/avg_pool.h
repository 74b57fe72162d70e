/* oic_avg_pool_X: y[planes, out_height, out_width] of x[planes, height, width]: the mean of window_y x window_x elements,
   `stride` apart; `padding` more at both ends do not take part, but with `all` they count.  y does not overlap x.

   Order: rows, and columns of a row, are added in order, from zero. */
#include "element.h"

#include "../pool_range.h"

typedef struct {
    const T *x;
    T *y;
    ptrdiff_t planes, height, width, out_height, out_width, window_y, window_x, stride_y, stride_x, padding_y, padding_x;
    int all;
} ARGS(oic_avg_pool);

static inline void NAME(oic_avg_pool)(const ARGS(oic_avg_pool) *a)
{
    const ptrdiff_t width = a->width;
    for (ptrdiff_t at = 0; at < a->planes * a->out_height * a->out_width; ++at) {
        const ptrdiff_t row = at / a->out_width, plane = row / a->out_height;
        const ptrdiff_t top = row % a->out_height * a->stride_y - a->padding_y;
        const ptrdiff_t left = at % a->out_width * a->stride_x - a->padding_x;
        const ptrdiff_t first_y = oic_pool_first(top), last_y = oic_pool_last(top, a->window_y, a->height);
        const ptrdiff_t first_x = oic_pool_first(left), last_x = oic_pool_last(left, a->window_x, width);
        const ptrdiff_t rows = last_y > first_y ? last_y - first_y : 0, columns = last_x > first_x ? last_x - first_x : 0;
        C sum = (C)0;
        for (ptrdiff_t iy = first_y; iy < last_y; ++iy) {
            for (ptrdiff_t ix = first_x; ix < last_x; ++ix) {
                sum += LOAD(a->x, (plane * a->height + iy) * width + ix);
            }
        }
        STORE(a->y, at, sum / (C)(a->all ? a->window_y * a->window_x : rows * columns));
    }
}

#include "end.h"
