/* oic_depthwise_bytes_X_W_B: conv_bytes.h where each output channel sees one plane, and few see the same.  Taps go along rows of
   it, which lie between zeros in `work` where there is padding. */
#include "element.h"

#include "../simd/bytes.h"

#define BYTES oic_depthwise_bytes
#include "common/conv_bytes.inc.h"

/* A plane between zeros. */
static inline void NAME(oic_depthwise_bytes_padded)(const ARGS(BYTES) *a, const T *from, T *restrict to)
{
    const ptrdiff_t wide = a->width + 2 * a->padding_x;
    memset(to, 0, (size_t)((a->height + 2 * a->padding_y) * wide));
    to += a->padding_y * wide + a->padding_x;
    for (ptrdiff_t y = 0; a->width > 0 && y < a->height; ++y) {
        memcpy(to + y * wide, from + y * a->width, (size_t)a->width);
    }
}

/* Output channel o of an image, which sees the plane at `from`, rows `wide` apart and padding in it; y: where it begins. */
static inline void NAME(oic_depthwise_bytes_plane)(const ARGS(BYTES) *a, const T *from, ptrdiff_t wide, ptrdiff_t o, ptrdiff_t y)
{
    const T *const w = a->w + o * a->taps_y * a->taps_x;
    const uint32_t b = a->b != NULL ? (uint32_t)B_LOAD(a->b, o) : 0u;
    /* Rows of y that lie side by side in x go together, and what is between them, which is left out. */
    const int inside = wide > 0 && a->out_width <= wide && wide <= OIC_CONV_RUN; /* windows without taps go on behind a row of x */
    const ptrdiff_t beside = a->stride_y == 1 && a->stride_x == 1 && inside ? OIC_CONV_RUN / wide : 1;
    for (ptrdiff_t oy = 0, rows; oy < a->out_height; oy += rows) {
        rows = a->out_height - oy < beside ? a->out_height - oy : beside;
        for (ptrdiff_t x0 = 0, m; x0 < a->out_width; x0 += m) {
            uint32_t sum[OIC_CONV_RUN];
            m = a->out_width - x0 < OIC_CONV_RUN ? a->out_width - x0 : OIC_CONV_RUN;
            const ptrdiff_t run = (rows - 1) * wide + m;
            oic_byte_windows(sum, run, b, from + oy * a->stride_y * wide + x0 * a->stride_x, a->stride_x, a->dilation_y * wide, w,
                             a->taps_y, a->taps_x, a->dilation_x);
            for (ptrdiff_t r = 1; r < rows; ++r) {
                for (ptrdiff_t e = 0; e < m; ++e) {
                    sum[r * m + e] = sum[r * wide + e];
                }
            }
            NAME(OIC_JOIN_2(BYTES, keep))(a, sum, rows * m, o, 0, y + oy * a->out_width + x0, 1);
        }
    }
}

/* All output channels of an image, which see one plane each, all of it: x. */
static inline void NAME(oic_depthwise_bytes_whole)(const ARGS(BYTES) *a, const T *x, ptrdiff_t y)
{
    const ptrdiff_t taps = a->taps_y * a->taps_x;
    for (ptrdiff_t o = 0; o < a->outputs; o += OIC_CONV_RUN) {
        const ptrdiff_t n = a->outputs - o < OIC_CONV_RUN ? a->outputs - o : OIC_CONV_RUN;
        uint32_t sum[OIC_CONV_RUN];
        for (ptrdiff_t l = 0; l < n; ++l) {
            sum[l] = oic_byte_dot(x + (o + l) * taps, a->w + (o + l) * taps, taps);
        }
        NAME(OIC_JOIN_2(BYTES, keep))(a, sum, n, o, 1, y + o, 1);
    }
}

static inline void NAME(oic_depthwise_bytes)(const ARGS(oic_depthwise_bytes) *a)
{
    const ptrdiff_t group = a->outputs / a->groups, size = a->height * a->width, plane = a->out_height * a->out_width;
    const int pads = a->padding_y > 0 || a->padding_x > 0, near = a->dilation_y == 1 && a->dilation_x == 1;
    const int whole = a->height == a->taps_y && a->width == a->taps_x && near && !pads;
    for (ptrdiff_t n = 0; n < a->batch; ++n) {
        const T *from = a->x + n * a->channels * size;
        const ptrdiff_t y = n * a->outputs * plane;
        if (whole && group == 1) {
            NAME(oic_depthwise_bytes_whole)(a, from, y);
            continue;
        }
        for (ptrdiff_t g = 0; g < a->groups; ++g, from += size) {
            if (pads) {
                NAME(oic_depthwise_bytes_padded)(a, from, a->work);
            }
            for (ptrdiff_t o = g * group; o < (g + 1) * group; ++o) {
                NAME(oic_depthwise_bytes_plane)(a, pads ? a->work : from, a->width + 2 * a->padding_x, o, y + o * plane);
            }
        }
    }
}

#undef BYTES
#undef OIC_CONV_RUN
#include "end.h"
