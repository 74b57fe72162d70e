/* oic_conv_X_W_B: y[batch, outputs, out_height, out_width] of type W = x[batch, channels, height, width] convolved with
   w[outputs, channels / groups, taps_y, taps_x], both of type X, plus b[outputs] of type B (NULL: none), with zeros
   `padding` at both ends; in one dimension height, taps_y and out_height are 1.  y overlaps no operand.

   Floats are computed in float (double for f64), rounded once; integers wrap.

   Order: the products of an element over (channel, tap) ascending, in chunks of OIC_CHUNK from zero, and the sums of
   chunks in order; then b.  Taps on padding are passed over, and count for the borders of chunks.  Stack:
   2 * OIC_CONV_PART numbers. */
#include "element.h"

#include "../conv_range.h"
#include "../sums.h"

typedef struct {
    const T *x, *w;
    const B_T *b;
    W_T *y;
    ptrdiff_t batch, channels, height, width, outputs, taps_y, taps_x, out_height, out_width;
    ptrdiff_t stride_y, stride_x, padding_y, padding_x, dilation_y, dilation_x, groups;
} ARGS(oic_conv);

/* sum[m] += the products of one tap, of weight p, with a row of x: column 0 of the row is under column -left of y. */
static inline void NAME(oic_conv_tap)(W_SUM *restrict sum, ptrdiff_t x0, ptrdiff_t m, W_SUM p, const T *restrict x,
                                      ptrdiff_t row, ptrdiff_t width, ptrdiff_t left, ptrdiff_t step)
{
    const ptrdiff_t first = oic_conv_first(left, step, x0), last = oic_conv_last(left, step, width, x0 + m);
    if (step == 1 && last - first == OIC_CONV_PART) { /* as many as the compiler knows */
        for (ptrdiff_t e = 0; e < OIC_CONV_PART; ++e) {
            sum[e] = ADDED(oic_madd)(p, (W_SUM)LOAD(x, row + left + x0 + e), sum[e]);
        }
        return;
    }
    if (step == 1) {
        for (ptrdiff_t e = first; e < last; ++e) {
            sum[e - x0] = ADDED(oic_madd)(p, (W_SUM)LOAD(x, row + left + e), sum[e - x0]);
        }
        return;
    }
    for (ptrdiff_t e = first; e < last; ++e) {
        sum[e - x0] = ADDED(oic_madd)(p, (W_SUM)LOAD(x, row + left + e * step), sum[e - x0]);
    }
}

/* total[m] = columns x0 to x0 + m of row oy of output channel o, image n. */
static inline void NAME(oic_conv_part)(const ARGS(oic_conv) *a, ptrdiff_t n, ptrdiff_t o, ptrdiff_t oy, ptrdiff_t x0,
                                       ptrdiff_t m, W_SUM *restrict total)
{
    const ptrdiff_t inputs = a->channels / a->groups, taps = inputs * a->taps_y * a->taps_x;
    const ptrdiff_t plane = n * a->channels + o / (a->outputs / a->groups) * inputs;
    W_SUM sum[OIC_CONV_PART] = {0};
    ptrdiff_t k = 0;
    for (ptrdiff_t c = 0; c < inputs; ++c) {
        for (ptrdiff_t ky = 0; ky < a->taps_y; ++ky) {
            const ptrdiff_t iy = oy * a->stride_y + ky * a->dilation_y - a->padding_y;
            const ptrdiff_t row = ((plane + c) * a->height + iy) * a->width;
            const int inside = iy >= 0 && iy < a->height;
            for (ptrdiff_t kx = 0; kx < a->taps_x; ++kx) {
                if (inside) {
                    const W_SUM p = (W_SUM)LOAD(a->w, o * taps + k);
                    const ptrdiff_t left = kx * a->dilation_x - a->padding_x;
                    NAME(oic_conv_tap)(sum, x0, m, p, a->x, row, a->width, left, a->stride_x);
                }
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

static inline void NAME(oic_conv)(const ARGS(oic_conv) *a)
{
    for (ptrdiff_t row = 0; row < a->batch * a->outputs * a->out_height; ++row) {
        const ptrdiff_t oy = row % a->out_height, o = row / a->out_height % a->outputs;
        const ptrdiff_t n = row / a->out_height / a->outputs;
        for (ptrdiff_t x0 = 0; x0 < a->out_width; x0 += OIC_CONV_PART) {
            const ptrdiff_t m = a->out_width - x0 < OIC_CONV_PART ? a->out_width - x0 : OIC_CONV_PART;
            W_SUM total[OIC_CONV_PART] = {0};
            NAME(oic_conv_part)(a, n, o, oy, x0, m, total);
            for (ptrdiff_t e = 0; e < m; ++e) {
                if (a->b != NULL) {
                    const W_SUM b = (W_SUM)B_LOAD(a->b, o);
                    total[e] += b;
                }
                W_STORE(a->y, row * a->out_width + x0 + e, (W_C)total[e]);
            }
        }
    }
}

#include "end.h"
