/* oic_avg_pool_X: y[planes, out_height, out_width] of x[planes, height, width]: the mean of window_y x window_x
   elements, `stride` apart; `padding` more at both ends do not take part, but with `all` they count.  y does not
   overlap x.

   Order: rows, and columns of a row, are added in order, from zero. */
#include "element.h"

#include "common/conv_range.h"
#include "common/move.h"
#include "common/pool_range.h"
#include "common/short_rows.h"

typedef struct {
    const T *x;
    T *y;
    ptrdiff_t planes, height, width, out_height, out_width;
    ptrdiff_t window_y, window_x, stride_y, stride_x, padding_y, padding_x;
    int all;
} ARGS(oic_avg_pool);

#define POOL(f) NAME(oic_avg_pool_##f)
#define POOL_ARGS ARGS(oic_avg_pool)
#define FIRST ((C)0) /* sums are never -0 */
#define NEXT(r, v) ((r) += (v))
#define LAST(r, n) ((r) / (n))
#define ALL(a) ((a)->all)
#define FEW 0
#include "common/pool_lines.inc.h"

/* Planes begin..end-1. */
static inline void NAME(oic_avg_pool_part)(const void *args, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const ARGS(oic_avg_pool) *const a = args;
    const ptrdiff_t width = a->width, step = a->stride_x;
    (void)worker;
    if (OIC_UNLIKELY(NAME(oic_avg_pool_by_lines)(a, begin, end))) { /* else the loops below were taken for what hardly runs */
        return;
    }
    for (ptrdiff_t row = begin * a->out_height; row < end * a->out_height; ++row) {
        const ptrdiff_t plane = row / a->out_height;
        const ptrdiff_t top = row % a->out_height * a->stride_y - a->padding_y;
        const ptrdiff_t first_y = oic_pool_first(top), last_y = oic_pool_last(top, a->window_y, a->height);
        for (ptrdiff_t x0 = 0; x0 < a->out_width; x0 += OIC_CONV_PART) {
            const ptrdiff_t m = a->out_width - x0 < OIC_CONV_PART ? a->out_width - x0 : OIC_CONV_PART;
            C sum[OIC_CONV_PART] = {0};
            for (ptrdiff_t iy = first_y; iy < last_y; ++iy) {
                for (ptrdiff_t left = -a->padding_x; left < a->window_x - a->padding_x; ++left) {
                    const ptrdiff_t first = oic_conv_first(left, step, x0);
                    const ptrdiff_t last = oic_conv_last(left, step, width, x0 + m);
                    const ptrdiff_t from = (plane * a->height + iy) * width + left;
                    for (ptrdiff_t e = first; e < last; ++e) {
                        sum[e - x0] += LOAD(a->x, from + e * step);
                    }
                }
            }
            for (ptrdiff_t e = 0; e < m; ++e) {
                const ptrdiff_t left = (x0 + e) * step - a->padding_x;
                const ptrdiff_t columns = oic_pool_last(left, a->window_x, width) - oic_pool_first(left);
                const ptrdiff_t count = a->all ? a->window_y * a->window_x : (last_y - first_y) * columns;
                STORE(a->y, row * a->out_width + x0 + e, sum[e] / (C)count);
            }
        }
    }
}

static inline void NAME(oic_avg_pool)(const ARGS(oic_avg_pool) *a)
{
    NAME(oic_avg_pool_part)(a, 0, a->planes, 0);
}

#include "end.h"
