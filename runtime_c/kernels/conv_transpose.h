/* oic_conv_transpose_X_W_B: the adjoint of a convolution: y[batch, outputs, out_height, out_width] of type W from
   x[batch, channels, height, width] and w[channels, outputs / groups, taps_y, taps_x], both of type X, plus b[outputs] of
   type B (NULL: none); in one dimension height, taps_y and out_height are 1.  y overlaps no operand.

   Floats are computed in float (double for f64), rounded once; integers wrap.

   Order: the products of an element over (channel, tap) ascending, in chunks of OIC_CHUNK from zero, and the sums of
   chunks in order; then b.  Taps that reach no element of x are passed over, and count for the borders of chunks.
   Stack: 2 * OIC_CONV_PART numbers. */
#include "element.h"

#include "../conv_range.h"
#include "../sums.h"

typedef struct {
    const T *x, *w;
    const B_T *b;
    W_T *y;
    ptrdiff_t batch, channels, height, width, outputs, taps_y, taps_x, out_height, out_width;
    ptrdiff_t stride_y, stride_x, padding_y, padding_x, dilation_y, dilation_x, groups;
} ARGS(oic_conv_transpose);

/* sum[m] += the products of one tap, of weight p, with elements j0 - shift to j0 - shift + m of a row of x. */
static inline void NAME(oic_conv_transpose_tap)(W_SUM *restrict sum, ptrdiff_t j0, ptrdiff_t m, W_SUM p,
                                                const T *restrict x, ptrdiff_t row, ptrdiff_t width, ptrdiff_t shift)
{
    const ptrdiff_t first = oic_conv_first(-shift, 1, j0), last = oic_conv_last(-shift, 1, width, j0 + m);
    for (ptrdiff_t j = first; j < last; ++j) {
        sum[j - j0] = ADDED(oic_madd)(p, (W_SUM)LOAD(x, row - shift + j), sum[j - j0]);
    }
}

/* total[m] = columns phase + stride_x * j, for j from j0 on, of row oy of output channel o, image n: they meet the same
   taps, at neighbours of x. */
static inline void NAME(oic_conv_transpose_part)(const ARGS(oic_conv_transpose) *a, ptrdiff_t n, ptrdiff_t o,
                                                 ptrdiff_t oy, ptrdiff_t phase, ptrdiff_t j0, ptrdiff_t m,
                                                 W_SUM *restrict total)
{
    const ptrdiff_t inputs = a->channels / a->groups, outputs = a->outputs / a->groups;
    const ptrdiff_t window = a->taps_y * a->taps_x, taps = inputs * window;
    const ptrdiff_t from = o / outputs * inputs, column = o % outputs, step = a->stride_x;
    /* Tap kx lies at kx * dilation_x - padding_x - phase = shift * step + rest; it takes part where rest is 0. */
    const ptrdiff_t back = a->padding_x + phase, shift0 = -((back + step - 1) / step), rest0 = -shift0 * step - back;
    const ptrdiff_t more = a->dilation_x / step, more_rest = a->dilation_x % step;
    W_SUM sum[OIC_CONV_PART] = {0};
    ptrdiff_t k = 0;
    for (ptrdiff_t c = from; c < from + inputs; ++c) {
        for (ptrdiff_t ky = 0; ky < a->taps_y; ++ky) {
            const ptrdiff_t above = oy + a->padding_y - ky * a->dilation_y, iy = above / a->stride_y;
            const ptrdiff_t row = ((n * a->channels + c) * a->height + iy) * a->width;
            const int inside = above >= 0 && iy * a->stride_y == above && iy < a->height;
            ptrdiff_t shift = shift0, rest = rest0;
            for (ptrdiff_t kx = 0; kx < a->taps_x; ++kx) {
                if (inside && rest == 0) {
                    const W_SUM p = (W_SUM)LOAD(a->w, (c * outputs + column) * window + ky * a->taps_x + kx);
                    NAME(oic_conv_transpose_tap)(sum, j0, m, p, a->x, row, a->width, shift);
                }
                shift += more + (rest + more_rest >= step);
                rest += rest + more_rest >= step ? more_rest - step : more_rest;
                if (++k % OIC_CHUNK == 0 || k == taps) {
                    for (ptrdiff_t e = 0; e < m; ++e) {
                        total[e] += sum[e];
                        sum[e] = (W_SUM)0;
                    }
                }
            }
        }
    }
}

static inline void NAME(oic_conv_transpose)(const ARGS(oic_conv_transpose) *a)
{
    const ptrdiff_t step = a->stride_x;
    for (ptrdiff_t row = 0; row < a->batch * a->outputs * a->out_height; ++row) {
        const ptrdiff_t oy = row % a->out_height, o = row / a->out_height % a->outputs;
        const ptrdiff_t n = row / a->out_height / a->outputs;
        for (ptrdiff_t phase = 0; phase < step && phase < a->out_width; ++phase) {
            const ptrdiff_t columns = (a->out_width - phase + step - 1) / step;
            for (ptrdiff_t j0 = 0; j0 < columns; j0 += OIC_CONV_PART) {
                const ptrdiff_t m = columns - j0 < OIC_CONV_PART ? columns - j0 : OIC_CONV_PART;
                W_SUM total[OIC_CONV_PART] = {0};
                NAME(oic_conv_transpose_part)(a, n, o, oy, phase, j0, m, total);
                for (ptrdiff_t e = 0; e < m; ++e) {
                    if (a->b != NULL) {
                        const W_SUM b = (W_SUM)B_LOAD(a->b, o);
                        total[e] += b;
                    }
                    W_STORE(a->y, row * a->out_width + phase + step * (j0 + e), (W_C)total[e]);
                }
            }
        }
    }
}

#include "end.h"
