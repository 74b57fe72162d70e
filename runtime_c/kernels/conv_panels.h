/* oic_conv_panels_X_W_B: oic_conv of one group of channels with w[outputs, channels * taps_y * taps_x] in panels of sixteen
   rows, in the type that is computed in, all finite.

   A position of the result is a row of a product: of the window of x that it sees, with zeros for the padding.  Windows are
   gathered into work, `room` rows of channels * taps_y * taps_x numbers, the products of these rows lie behind them, `room`
   rows of `outputs` numbers, and go to y.  Windows that lie in x as rows do are used there.

   Order: product.inc.h, which is oic_conv's: a chunk begins at +0 and is added to +0, so that zeros of the padding times
   finite weights change nothing. */
#include "common/products.h"
#include "element.h"

typedef struct {
    const T *x, *w;
    const B_T *b;
    T *y, *work;
    ptrdiff_t batch, channels, height, width, outputs, taps_y, taps_x, out_height, out_width;
    ptrdiff_t stride_y, stride_x, padding_y, padding_x, dilation_y, dilation_x, groups, room;
} ARGS(oic_conv_panels);

#define PANELS 1
#define OPERANDS NAME(oic_conv_panels_operands)
#define PRODUCT NAME(oic_conv_panels_product)
#define PRODUCT_ROWS NAME(oic_conv_panels_product_rows)
#define PRODUCT_ROW NAME(oic_conv_panels_product_row)
#define PRODUCT_STORE NAME(oic_conv_panels_product_store)
#define PRODUCT_GATHER NAME(oic_conv_panels_product_gather)
#define PRODUCT_AHEAD NAME(oic_conv_panels_product_ahead)
#define PRODUCT_COPY NAME(oic_conv_panels_product_copy)
#include "product.inc.h"

/* to[channels, taps_y, taps_x] = the window of an image that position (oy, ox) sees. */
static inline void NAME(oic_conv_panels_window)(const ARGS(oic_conv_panels) *a, const T *restrict x, ptrdiff_t oy,
                                                ptrdiff_t ox, T *restrict to)
{
    const ptrdiff_t top = oy * a->stride_y - a->padding_y, left = ox * a->stride_x - a->padding_x, step = a->dilation_x;
    ptrdiff_t first = 0, end = a->taps_x; /* the taps that lie in x */
    while (first < end && left + first * step < 0) {
        ++first;
    }
    while (end > first && left + (end - 1) * step >= a->width) {
        --end;
    }
    for (ptrdiff_t c = 0; c < a->channels; ++c) {
        for (ptrdiff_t ky = 0; ky < a->taps_y; ++ky, to += a->taps_x) {
            const ptrdiff_t iy = top + ky * a->dilation_y, row = (c * a->height + iy) * a->width + left;
            const int inside = iy >= 0 && iy < a->height;
            for (ptrdiff_t kx = 0; kx < a->taps_x; ++kx) {
                to[kx] = inside && kx >= first && kx < end ? x[row + kx * step] : (T)0;
            }
        }
    }
}

/* The windows of rows of positions lie in x, neighbours `xm` apart, their elements `xk`. */
static inline int NAME(oic_conv_panels_direct)(const ARGS(oic_conv_panels) *a, ptrdiff_t *xm, ptrdiff_t *xk)
{
    if (a->padding_x != 0 || a->padding_y != 0) {
        return 0;
    }
    if (a->channels == 1 && a->height == 1) {
        *xm = a->stride_x;
        *xk = a->dilation_x;
        return 1;
    }
    *xm = 1;
    *xk = a->height * a->width;
    return a->taps_y == 1 && a->taps_x == 1 && a->stride_y == 1 && a->stride_x == 1;
}

static inline void NAME(oic_conv_panels)(const ARGS(oic_conv_panels) *a)
{
    const ptrdiff_t K = a->channels * a->taps_y * a->taps_x, positions = a->out_height * a->out_width, N = a->outputs;
    ptrdiff_t xm = K, xk = 1;
    const int direct = NAME(oic_conv_panels_direct)(a, &xm, &xk);
    T *const rows = a->work + a->room * K;
    for (ptrdiff_t n = 0; n < a->batch; ++n) {
        const T *const x = a->x + n * a->channels * a->height * a->width;
        T *const y = a->y + n * N * positions;
        for (ptrdiff_t p = 0, M; p < positions; p += M) {
            M = oic_rows(positions - p, a->room, 1);
            for (ptrdiff_t i = 0; !direct && i < M; ++i) {
                NAME(oic_conv_panels_window)(a, x, (p + i) / a->out_width, (p + i) % a->out_width, a->work + i * K);
            }
            PRODUCT(&(const OPERANDS){
                        .x = direct ? x + p * xm : a->work, .w = a->w, .b = a->b, .y = positions == 1 ? y : rows,
                        .M = M, .K = K, .N = N, .xm = direct ? xm : K, .xk = xk,
                        .wk = OIC_LANES, .wg = OIC_LANES * K, .wn = 1,
                    },
                    0, oic_product_panels(N));
            for (ptrdiff_t o = 0; positions > 1 && o < N; ++o) {
                for (ptrdiff_t i = 0; i < M; ++i) {
                    y[o * positions + p + i] = rows[i * N + o];
                }
            }
        }
    }
}

#include "product.end.h"
#include "end.h"
