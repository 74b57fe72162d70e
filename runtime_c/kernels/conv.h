/* oic_conv_X_W_B: y[batch, outputs, out_height, out_width] of type W = x[batch, channels, height, width]
   convolved with w[outputs, channels / groups, taps_y, taps_x], both of type X, plus b[outputs] of type B (NULL:
   none), with zeros `padding` at both ends; in one dimension height, taps_y and out_height are 1.
   oic_conv_transpose_X_W_B: its adjoint, with w[channels, outputs / groups, taps_y, taps_x].  y overlaps no
   operand.

   Floats are computed in float (double for f64), rounded once; integers wrap.

   Order: the products of an element over (channel, tap) ascending, in chunks of OIC_CHUNK from zero, and the
   sums of chunks in order; then b.  Taps that reach no element of x are passed over, and count for the borders
   of chunks. Stack: 2 * OIC_CONV_ROWS * OIC_CONV_PART numbers. */
#include "element.h"

#include "common/conv_range.h"
#include "../simd/sums.h"

typedef struct {
    const T *x, *w;
    const B_T *b;
    W_T *y;
    ptrdiff_t batch, channels, height, width, outputs, taps_y, taps_x, out_height, out_width;
    ptrdiff_t stride_y, stride_x, padding_y, padding_x, dilation_y, dilation_x, groups;
#if defined(OIC_REQUANTIZES)
    oic_requantized by;
#endif
} ARGS(oic_conv);

typedef ARGS(oic_conv) ARGS(oic_conv_transpose);

/* sum[rows][n] += p[rows] times n elements of x from `from` on, `step` apart. */
static inline void NAME(oic_conv_tap)(W_SUM *restrict sum, ptrdiff_t rows, const W_SUM *restrict p,
                                      const T *restrict x, ptrdiff_t from, ptrdiff_t n, ptrdiff_t step)
{
    if (rows == OIC_CONV_ROWS && step == 1) {
        for (ptrdiff_t e = 0; e < n; ++e) {
            const W_SUM q = (W_SUM)LOAD(x, from + e);
            for (ptrdiff_t r = 0; r < OIC_CONV_ROWS; ++r) {
                sum[r * OIC_CONV_PART + e] = ADDED(oic_madd)(p[r], q, sum[r * OIC_CONV_PART + e]);
            }
        }
        return;
    }
    if (rows == OIC_CONV_ROWS) {
        for (ptrdiff_t e = 0; e < n; ++e) {
            const W_SUM q = (W_SUM)LOAD(x, from + e * step);
            for (ptrdiff_t r = 0; r < OIC_CONV_ROWS; ++r) {
                sum[r * OIC_CONV_PART + e] = ADDED(oic_madd)(p[r], q, sum[r * OIC_CONV_PART + e]);
            }
        }
        return;
    }
    for (ptrdiff_t r = 0; r < rows; ++r) {
        for (ptrdiff_t e = 0; e < n; ++e) {
            const W_SUM q = (W_SUM)LOAD(x, from + e * step);
            sum[r * OIC_CONV_PART + e] = ADDED(oic_madd)(p[r], q, sum[r * OIC_CONV_PART + e]);
        }
    }
}

/* total[rows][m] += sum[rows][m], a chunk that ends. */
static inline void NAME(oic_conv_chunk)(W_SUM *restrict total, W_SUM *restrict sum, ptrdiff_t rows, ptrdiff_t m)
{
    for (ptrdiff_t r = 0; r < rows; ++r) {
        for (ptrdiff_t e = 0; e < m; ++e) {
            total[r * OIC_CONV_PART + e] += sum[r * OIC_CONV_PART + e];
            sum[r * OIC_CONV_PART + e] = (W_SUM)0;
        }
    }
}

/* Store total[rows][m]: columns x0 on, `gap` apart, of row oy of output channels o on, image n. */
static inline void NAME(oic_conv_keep)(const ARGS(oic_conv) *a, W_SUM *total, ptrdiff_t n, ptrdiff_t o,
                                       ptrdiff_t rows, ptrdiff_t oy, ptrdiff_t x0, ptrdiff_t gap, ptrdiff_t m)
{
    for (ptrdiff_t r = 0; r < rows; ++r) {
        const ptrdiff_t to = ((n * a->outputs + o + r) * a->out_height + oy) * a->out_width + x0;
        const W_SUM b = a->b != NULL ? (W_SUM)B_LOAD(a->b, o + r) : (W_SUM)0;
        W_SUM *const sum = total + r * OIC_CONV_PART;
#if defined(OIC_REQUANTIZES)
        for (ptrdiff_t e = 0; e < m; ++e) {
            sum[e] += b;
        }
        oic_requantized_sums(&a->by, sum, m, o + r, oic_requantized_within((int64_t)W_LOW, (int64_t)W_HIGH, a->by.zero_point));
        for (ptrdiff_t e = 0; e < m; ++e) {
            W_STORE(a->y, to + e * gap, (W_C)sum[e]);
        }
#else
        for (ptrdiff_t e = 0; e < m; ++e) {
            W_STORE(a->y, to + e * gap, (W_C)(a->b != NULL ? sum[e] + b : sum[e]));
        }
#endif
    }
}

/* total[rows][m] = columns x0 to x0 + m of row oy of output channels o on, image n. */
static inline void NAME(oic_conv_columns)(const ARGS(oic_conv) *a, ptrdiff_t n, ptrdiff_t o, ptrdiff_t rows, ptrdiff_t oy,
                                          ptrdiff_t x0, ptrdiff_t m, W_SUM *restrict total)
{
    const ptrdiff_t inputs = a->channels / a->groups, taps = inputs * a->taps_y * a->taps_x, step = a->stride_x;
    const ptrdiff_t plane = n * a->channels + o / (a->outputs / a->groups) * inputs;
    W_SUM sum[OIC_CONV_ROWS * OIC_CONV_PART] = {0}, p[OIC_CONV_ROWS] = {0};
    ptrdiff_t k = 0;
    for (ptrdiff_t c = 0; c < inputs; ++c) {
        for (ptrdiff_t ky = 0; ky < a->taps_y; ++ky) {
            const ptrdiff_t iy = oy * a->stride_y + ky * a->dilation_y - a->padding_y;
            const ptrdiff_t row = ((plane + c) * a->height + iy) * a->width;
            for (ptrdiff_t kx = 0; kx < a->taps_x; ++kx) {
                const ptrdiff_t left = kx * a->dilation_x - a->padding_x; /* column of x under column 0 of y */
                const ptrdiff_t first = oic_conv_first(left, step, x0);
                const ptrdiff_t last = oic_conv_last(left, step, a->width, x0 + m);
                if (iy >= 0 && iy < a->height && first < last) {
                    for (ptrdiff_t r = 0; r < rows; ++r) {
                        p[r] = (W_SUM)LOAD(a->w, (o + r) * taps + k);
                    }
                    NAME(oic_conv_tap)(sum + first - x0, rows, p, a->x, row + left + first * step, last - first, step);
                }
                if (++k % OIC_CHUNK == 0 || k == taps) {
                    NAME(oic_conv_chunk)(total, sum, rows, m);
                }
            }
        }
    }
}

/* A row of output channels o on, image n. */
static inline void NAME(oic_conv_line)(const ARGS(oic_conv) *a, ptrdiff_t n, ptrdiff_t o, ptrdiff_t rows, ptrdiff_t oy)
{
    for (ptrdiff_t x0 = 0; x0 < a->out_width; x0 += OIC_CONV_PART) {
        const ptrdiff_t m = a->out_width - x0 < OIC_CONV_PART ? a->out_width - x0 : OIC_CONV_PART;
        W_SUM total[OIC_CONV_ROWS * OIC_CONV_PART] = {0};
        NAME(oic_conv_columns)(a, n, o, rows, oy, x0, m, total);
        NAME(oic_conv_keep)(a, total, n, o, rows, oy, x0, 1, m);
    }
}

/* total[rows][m] = columns phase + stride_x * j, for j from j0 on, of row oy of output channels o on, image n: they
   meet the same taps, at neighbours of x. */
static inline void NAME(oic_conv_transpose_columns)(const ARGS(oic_conv) *a, ptrdiff_t n, ptrdiff_t o, ptrdiff_t rows,
                                                    ptrdiff_t oy, ptrdiff_t phase, ptrdiff_t j0, ptrdiff_t m,
                                                    W_SUM *restrict total)
{
    const ptrdiff_t inputs = a->channels / a->groups, outputs = a->outputs / a->groups, step = a->stride_x;
    const ptrdiff_t window = a->taps_y * a->taps_x, taps = inputs * window, group = o / outputs * inputs;
    /* Tap kx lies at kx * dilation_x - padding_x - phase = shift * step + rest; it takes part where rest is 0.  Tap ky
       meets row iy of x where oy + padding_y - ky * dilation_y = iy * stride_y + over and over is 0. */
    const ptrdiff_t back = a->padding_x + phase, shift0 = -((back + step - 1) / step), rest0 = -shift0 * step - back;
    const ptrdiff_t more = a->dilation_x / step, more_rest = a->dilation_x % step;
    const ptrdiff_t less = a->dilation_y / a->stride_y, less_over = a->dilation_y % a->stride_y;
    const ptrdiff_t iy0 = (oy + a->padding_y) / a->stride_y, over0 = (oy + a->padding_y) % a->stride_y;
    W_SUM sum[OIC_CONV_ROWS * OIC_CONV_PART] = {0}, p[OIC_CONV_ROWS] = {0};
    ptrdiff_t k = 0;
    for (ptrdiff_t c = group; c < group + inputs; ++c) {
        ptrdiff_t iy = iy0, over = over0;
        for (ptrdiff_t ky = 0; ky < a->taps_y; ++ky) {
            const ptrdiff_t row = ((n * a->channels + c) * a->height + iy) * a->width;
            const int inside = over == 0 && iy >= 0 && iy < a->height;
            ptrdiff_t shift = shift0, rest = rest0;
            for (ptrdiff_t kx = 0; kx < a->taps_x; ++kx) {
                const int meets = inside && rest == 0;
                const ptrdiff_t first = meets ? oic_conv_first(-shift, 1, j0) : 0;
                const ptrdiff_t last = meets ? oic_conv_last(-shift, 1, a->width, j0 + m) : 0;
                if (first < last) {
                    const ptrdiff_t w0 = (c * outputs + o % outputs) * window + ky * a->taps_x + kx;
                    for (ptrdiff_t r = 0; r < rows; ++r) {
                        p[r] = (W_SUM)LOAD(a->w, w0 + r * window);
                    }
                    NAME(oic_conv_tap)(sum + first - j0, rows, p, a->x, row - shift + first, last - first, 1);
                }
                shift += more + (rest + more_rest >= step);
                rest += rest + more_rest >= step ? more_rest - step : more_rest;
                if (++k % OIC_CHUNK == 0 || k == taps) {
                    NAME(oic_conv_chunk)(total, sum, rows, m);
                }
            }
            iy -= less + (over < less_over);
            over += over < less_over ? a->stride_y - less_over : -less_over;
        }
    }
}

/* A row of output channels o on, image n. */
static inline void NAME(oic_conv_transpose_row)(const ARGS(oic_conv) *a, ptrdiff_t n, ptrdiff_t o, ptrdiff_t rows,
                                                ptrdiff_t oy)
{
    const ptrdiff_t step = a->stride_x;
    for (ptrdiff_t phase = 0; phase < step && phase < a->out_width; ++phase) {
        const ptrdiff_t columns = (a->out_width - phase + step - 1) / step;
        for (ptrdiff_t j0 = 0; j0 < columns; j0 += OIC_CONV_PART) {
            const ptrdiff_t m = columns - j0 < OIC_CONV_PART ? columns - j0 : OIC_CONV_PART;
            W_SUM total[OIC_CONV_ROWS * OIC_CONV_PART] = {0};
            NAME(oic_conv_transpose_columns)(a, n, o, rows, oy, phase, j0, m, total);
            NAME(oic_conv_keep)(a, total, n, o, rows, oy, phase + step * j0, step, m);
        }
    }
}

/* Units first..end-1: a row of a few output channels of a group, of an image. */
static inline void NAME(oic_conv_of_units)(const ARGS(oic_conv) *a, int transposed, ptrdiff_t first, ptrdiff_t end)
{
    const ptrdiff_t group = a->outputs / a->groups, few = (group + OIC_CONV_ROWS - 1) / OIC_CONV_ROWS; /* of a group */
    if (first >= end) { /* perhaps no output channels, or no rows */
        return;
    }
    ptrdiff_t oy = first % a->out_height, n = first / a->out_height / (few * a->groups);
    ptrdiff_t part = first / a->out_height % few, g = first / a->out_height / few % a->groups;
    for (ptrdiff_t unit = first; unit < end; ++unit) {
        const ptrdiff_t o = part * OIC_CONV_ROWS, rows = group - o < OIC_CONV_ROWS ? group - o : OIC_CONV_ROWS;
        if (transposed) {
            NAME(oic_conv_transpose_row)(a, n, g * group + o, rows, oy);
        } else {
            NAME(oic_conv_line)(a, n, g * group + o, rows, oy);
        }
        oy = oy + 1 < a->out_height ? oy + 1 : 0;
        part = oy > 0 ? part : part + 1 < few ? part + 1 : 0;
        if (oy == 0 && part == 0) {
            g = g + 1 < a->groups ? g + 1 : 0;
            n += g == 0;
        }
    }
}

static inline ptrdiff_t NAME(oic_conv_unit_count)(const ARGS(oic_conv) *a)
{
    return a->batch * a->groups * ((a->outputs / a->groups + OIC_CONV_ROWS - 1) / OIC_CONV_ROWS) * a->out_height;
}

static inline void NAME(oic_conv_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    (void)worker;
    NAME(oic_conv_of_units)(args, 0, first, end);
}

static inline void NAME(oic_conv)(const ARGS(oic_conv) *a)
{
    NAME(oic_conv_of_units)(a, 0, 0, NAME(oic_conv_unit_count)(a));
}

static inline void NAME(oic_conv_transpose_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    (void)worker;
    NAME(oic_conv_of_units)(args, 1, first, end);
}

static inline void NAME(oic_conv_transpose)(const ARGS(oic_conv_transpose) *a)
{
    NAME(oic_conv_of_units)(a, 1, 0, NAME(oic_conv_unit_count)(a));
}

#include "end.h"
