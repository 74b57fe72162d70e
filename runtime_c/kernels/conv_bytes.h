/* oic_conv_bytes_X_W_B: the convolution of conv.h for bytes X and sums of 32 bits, modulo 2^32, for machines that multiply
   few of them at once.  What each window of x has is gathered for all output channels of a group: `work`.

   Stack: OIC_CONV_RUN sums. */
#include "element.h"

#include "int_matrix.inc.h"

#define BYTES oic_conv_bytes
#include "common/conv_bytes.inc.h"

/* to = n bytes, `step` apart. */
static inline void NAME(oic_conv_bytes_taps)(T *restrict to, const T *from, ptrdiff_t n, ptrdiff_t step)
{
    if (n == 3 && step == 1) { /* the most frequent */
        to[0] = from[0];
        to[1] = from[1];
        to[2] = from[2];
        return;
    }
    for (ptrdiff_t k = 0; k < n; ++k) {
        to[k] = from[k * step];
    }
}

/* to = what the window of row oy and column ox of y has of the planes from `from` on, zeros outside. */
static inline void NAME(oic_conv_bytes_window)(const ARGS(BYTES) *a, const T *from, ptrdiff_t inputs, ptrdiff_t oy, ptrdiff_t ox,
                                               T *restrict to)
{
    const ptrdiff_t plane = a->height * a->width, n = a->taps_x, all = inputs * a->taps_y * n;
    const ptrdiff_t y0 = oy * a->stride_y - a->padding_y, x0 = ox * a->stride_x - a->padding_x;
    const ptrdiff_t low = oic_conv_first(x0, a->dilation_x, 0), high = oic_conv_last(x0, a->dilation_x, a->width, n);
    const ptrdiff_t lo = low < high ? low : 0, hi = low < high ? high : 0; /* taps of a row that are not outside */
    ptrdiff_t at = low < high ? x0 + low * a->dilation_x : 0; /* no pointer: behind the last plane there is nothing */
    if (a->taps_y == 1 && n == 1 && hi == 1 && y0 >= 0 && y0 < a->height) {
        for (at += y0 * a->width; inputs > 0; --inputs, at += plane) {
            *to++ = from[at];
        }
        return;
    }
    if (all == 0) {
        return;
    }
    const ptrdiff_t above = oic_conv_first(y0, a->dilation_y, 0), below = oic_conv_last(y0, a->dilation_y, a->height, a->taps_y);
    const ptrdiff_t apart = a->dilation_y * a->width; /* and rows of taps from `above` to `below` */
    if (lo > 0 || hi < n || above > 0 || below < a->taps_y) {
        memset(to, 0, (size_t)all);
    }
    at += (y0 + above * a->dilation_y) * a->width;
    for (ptrdiff_t c = 0; c < inputs; ++c, at += plane, to += a->taps_y * n) {
        for (ptrdiff_t ky = above, row = at; ky < below; ++ky, row += apart) {
            NAME(oic_conv_bytes_taps)(to + ky * n + lo, from + row, hi - lo, a->dilation_x);
        }
    }
}

/* Output channels o to o + group of an image, which see the planes from `from` on; y: where they begin. */
static inline void NAME(oic_conv_bytes_windows)(const ARGS(BYTES) *a, const T *from, ptrdiff_t inputs, ptrdiff_t o,
                                                ptrdiff_t group, ptrdiff_t y)
{
    const ptrdiff_t taps = inputs * a->taps_y * a->taps_x, plane = a->out_height * a->out_width;
    for (ptrdiff_t oy = 0, at = y; oy < a->out_height; ++oy) {
        for (ptrdiff_t ox = 0; ox < a->out_width; ++ox, ++at) {
            NAME(oic_conv_bytes_window)(a, from, inputs, oy, ox, a->work);
            for (ptrdiff_t l = 0; l < group; l += OIC_CONV_RUN) {
                const ptrdiff_t n = group - l < OIC_CONV_RUN ? group - l : OIC_CONV_RUN;
                W_SUM sum[OIC_CONV_RUN];
                NAME(oic_int_sums)(sum, a->work, 0, a->w, (o + l) * taps, taps, n, 1, 1, taps);
                NAME(OIC_JOIN_2(BYTES, keep))(a, sum, n, o + l, 1, at + l * plane, plane);
            }
        }
    }
}

static inline void NAME(oic_conv_bytes)(const ARGS(oic_conv_bytes) *a)
{
    const ptrdiff_t inputs = a->channels / a->groups, group = a->outputs / a->groups;
    for (ptrdiff_t n = 0; n < a->batch; ++n) {
        for (ptrdiff_t g = 0; g < a->groups; ++g) {
            const T *const from = a->x + (n * a->channels + g * inputs) * a->height * a->width;
            const ptrdiff_t y = (n * a->outputs + g * group) * a->out_height * a->out_width;
            NAME(oic_conv_bytes_windows)(a, from, inputs, g * group, group, y);
        }
    }
}

#undef BYTES
#undef OIC_CONV_RUN
#include "end.h"
