/* oic_conv_panels_X_W_B: oic_conv of type W, which is computed in type X, of one group of channels, with
   w[outputs, channels * taps_y * taps_x] in panels of sixteen rows, all finite.

   A position of the result is a row of a product: of the window of x that it sees, with zeros for the padding.  Windows are
   gathered into work, `room` rows of channels * taps_y * taps_x numbers, the products of these rows lie behind them, `room`
   rows of `outputs` numbers, and go to y.  Windows that lie in x as rows do are used there, if they need not be widened.

   Order: product.inc.h, which is oic_conv's: a chunk begins at +0 and is added to +0, so that zeros of the padding times
   finite weights change nothing. */
#include "common/products.h"
#include "element.h"

typedef struct {
    const W_T *x, *w;
    const B_T *b;
    W_T *y;
    T *work;
    ptrdiff_t batch, channels, height, width, outputs, taps_y, taps_x, out_height, out_width;
    ptrdiff_t stride_y, stride_x, padding_y, padding_x, dilation_y, dilation_x, groups, room;
    ptrdiff_t image, from; /* what a turn begins at: an image, and a position of the result */
} ARGS(oic_conv_panels);

#define PANELS 1
#define OPERANDS NAME(oic_conv_panels_operands)
#define PRODUCT NAME(oic_conv_panels_product)
#define PRODUCT_ROWS NAME(oic_conv_panels_product_rows)
#define PRODUCT_FEW NAME(oic_conv_panels_product_few)
#define PRODUCT_ROW NAME(oic_conv_panels_product_row)
#define PRODUCT_STORE NAME(oic_conv_panels_product_store)
#define PRODUCT_GATHER NAME(oic_conv_panels_product_gather)
#define PRODUCT_AHEAD NAME(oic_conv_panels_product_ahead)
#define PRODUCT_COPY NAME(oic_conv_panels_product_copy)
#define PRODUCT_GIVE NAME(oic_conv_panels_product_give)
#include "product.inc.h"

/* Positions of a turn. */
static inline ptrdiff_t NAME(oic_conv_panels_rows)(const ARGS(oic_conv_panels) *a)
{
    return oic_rows(a->out_height * a->out_width - a->from, a->room, 1);
}

/* to[channels, taps_y, taps_x] = the window of an image that position (oy, ox) sees. */
static inline void NAME(oic_conv_panels_window)(const ARGS(oic_conv_panels) *a, const W_T *restrict x, ptrdiff_t oy,
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
#if !W_IS_COMPUTED
    W_T some[OIC_BLOCK]; /* which are widened together: whole rows of taps */
    ptrdiff_t n = 0;
#endif
    for (ptrdiff_t c = 0; c < a->channels; ++c) {
        for (ptrdiff_t ky = 0; ky < a->taps_y; ++ky) {
            const ptrdiff_t iy = top + ky * a->dilation_y, row = (c * a->height + iy) * a->width + left;
            const int inside = iy >= 0 && iy < a->height;
#if !W_IS_COMPUTED
            if (n + a->taps_x > OIC_BLOCK) {
                (void)W_WIDEN(some, n, to);
                to += n;
                n = 0;
            }
            if (a->taps_x <= OIC_BLOCK) {
                for (ptrdiff_t kx = 0; kx < a->taps_x; ++kx) {
                    some[n + kx] = inside && kx >= first && kx < end ? x[row + kx * step] : (W_T)0;
                }
                n += a->taps_x;
                continue;
            }
#endif
            for (ptrdiff_t kx = 0; kx < a->taps_x; ++kx) {
                to[kx] = inside && kx >= first && kx < end ? W_LOAD(x, row + kx * step) : (T)0;
            }
            to += a->taps_x;
        }
    }
#if !W_IS_COMPUTED
    (void)W_WIDEN(some, n, to);
#endif
}

/* The windows of rows of positions lie in x, neighbours `xm` apart, their elements `xk`: else these stay as they are. */
static inline int NAME(oic_conv_panels_direct)(const ARGS(oic_conv_panels) *a, ptrdiff_t *xm, ptrdiff_t *xk)
{
    if (!W_IS_COMPUTED || a->padding_x != 0 || a->padding_y != 0) {
        return 0;
    }
    if (a->channels == 1 && a->height == 1) {
        *xm = a->stride_x;
        *xk = a->dilation_x;
        return 1;
    }
    if (a->taps_y == 1 && a->taps_x == 1 && a->stride_y == 1 && a->stride_x == 1) {
        *xm = 1;
        *xk = a->height * a->width;
        return 1;
    }
    return 0;
}

/* Windows first..end-1 of a turn are gathered. */
static inline void NAME(oic_conv_panels_prepare)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(oic_conv_panels) *const a = args;
    const ptrdiff_t K = a->channels * a->taps_y * a->taps_x;
    const W_T *const x = a->x + a->image * a->channels * a->height * a->width;
    ptrdiff_t xm, xk;
    (void)worker;
    for (ptrdiff_t i = first; !NAME(oic_conv_panels_direct)(a, &xm, &xk) && i < end; ++i) {
        const ptrdiff_t p = a->from + i;
        NAME(oic_conv_panels_window)(a, x, p / a->out_width, p % a->out_width, a->work + i * K);
    }
}

/* Streams first..end-1 of the output channels of a turn, four panels each: any division has the same bits. */
static inline void NAME(oic_conv_panels_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(oic_conv_panels) *const a = args;
    const ptrdiff_t K = a->channels * a->taps_y * a->taps_x, positions = a->out_height * a->out_width, N = a->outputs;
    const ptrdiff_t M = NAME(oic_conv_panels_rows)(a), panels = oic_product_panels(N);
    const ptrdiff_t last = 4 * end * OIC_LANES < N ? 4 * end * OIC_LANES : N;
    const W_T *const x = a->x + a->image * a->channels * a->height * a->width;
    ptrdiff_t xm = K, xk = 1;
    const int direct = NAME(oic_conv_panels_direct)(a, &xm, &xk), whole = W_IS_COMPUTED && positions == 1;
    T *const rows = a->work + a->room * K;
    W_T *const y = a->y + a->image * N * positions;
    (void)worker;
    PRODUCT(&(const OPERANDS){
                .x = direct ? (const T *)(const void *)(x + a->from * xm) : a->work, .w = a->w, .b = a->b,
                .y = whole ? (T *)(void *)y : rows,
                .M = M, .K = K, .N = N, .xm = xm, .xk = xk,
                .wk = OIC_LANES, .wg = OIC_LANES * K, .wn = 1,
            },
            4 * first, 4 * end < panels ? 4 * end : panels);
    for (ptrdiff_t o = 4 * first * OIC_LANES; !whole && o < last; ++o) {
        W_T *const to = y + o * positions + a->from;
        ptrdiff_t i = 0;
        for (; !W_IS_COMPUTED && i + OIC_LANES <= M; i += OIC_LANES) { /* what is narrowed lies side by side */
            T some[OIC_LANES];
            for (ptrdiff_t l = 0; l < OIC_LANES; ++l) {
                some[l] = rows[(i + l) * N + o];
            }
            for (ptrdiff_t l = 0; l < OIC_LANES; ++l) {
                W_STORE(to, i + l, some[l]);
            }
        }
        for (; i < M; ++i) {
            W_STORE(to, i, rows[i * N + o]);
        }
    }
}

static inline void NAME(oic_conv_panels)(const ARGS(oic_conv_panels) *a)
{
    ARGS(oic_conv_panels) turn = *a;
    for (turn.image = 0; turn.image < a->batch; ++turn.image) {
        for (turn.from = 0; turn.from < a->out_height * a->out_width; turn.from += NAME(oic_conv_panels_rows)(&turn)) {
            NAME(oic_conv_panels_prepare)(&turn, 0, NAME(oic_conv_panels_rows)(&turn), 0);
            NAME(oic_conv_panels_part)(&turn, 0, (oic_product_panels(a->outputs) + 3) / 4, 0);
        }
    }
}

#if defined(OIC_POOL_H)
/* The same, each turn's windows and then its streams divided among threads. */
static inline void NAME(oic_conv_panels_divided)(oic_pool *pool, int most, ptrdiff_t units, int64_t work,
                                                 const ARGS(oic_conv_panels) *a)
{
    const ptrdiff_t K = a->channels * a->taps_y * a->taps_x;
    ARGS(oic_conv_panels) turn = *a;
    (void)work;
    for (turn.image = 0; turn.image < a->batch; ++turn.image) {
        for (turn.from = 0; turn.from < a->out_height * a->out_width; turn.from += NAME(oic_conv_panels_rows)(&turn)) {
            const ptrdiff_t room = NAME(oic_conv_panels_rows)(&turn);
            oic_divide(pool, most, room, (int64_t)room * K, NAME(oic_conv_panels_prepare), &turn);
            oic_divide(pool, most, units, (int64_t)room * K * a->outputs, NAME(oic_conv_panels_part), &turn);
        }
    }
}
#endif

#include "product.end.h"
#include "end.h"
