/* oic_conv_planes_X_W_B of bytes: oic_conv of type i8 that wraps in type W of at most 32 bits, with constant
   w[outputs, fours of channels / groups, taps_y, taps_x, 4], the last four filled up.

   A lane is a position of the result.  A block of x is copied into planes of words, of as many input channels of a group each
   as a word has (simd/words.h), with zeros for the padding; where the stride is above 1, one for each phase of it that taps
   meet.  In planes, what neighbouring positions meet are neighbours, also behind the end of a row, where there is nothing to
   store.

   Of few positions, each has its window gathered instead, in the order of w, whose rows it goes along.

   A block is `rows` rows of `columns` positions; `room` bytes of work have its planes, where the words lie that a position
   meets, and as words the weights of some outputs.  Sums are modulo 2^32, whatever the order. */
#include "common/conv_axis.h"
#include "common/conv_range.h"
#include "common/own.h"
#include "../simd/bytes.h"
#include "../simd/words.h"
#include "element.h"

#define FEW 4               /* positions of a block, for fewer than which planes do not pay */
#define FOUR 4              /* channels that lie together in w */
#define SPAN (16 * OIC_LANES) /* positions whose sums are on the stack */
#define SPARE OIC_LANES     /* words behind the planes that lanes without a position may meet */

#include "common/conv_planes.inc.h"

/* A call.
   inputs, outputs  channels of a group
   words            that a position meets
   planes           [words of channels, phases of y, phases of x, extent of y, extent of x]
   at               where they lie for position 0
   weights, start   of OIC_WORD_ROWS outputs */
typedef struct {
    const ARGS(oic_conv_planes) *a;
    oic_conv_axis y, x;
    ptrdiff_t inputs, outputs, words, size;
    uint32_t *planes, *weights;
    int32_t *at;
} NAME(oic_conv_view);

/* Words of channels of the four from c on. */
static inline ptrdiff_t NAME(oic_conv_words)(const NAME(oic_conv_view) *v, ptrdiff_t c)
{
    const ptrdiff_t left = v->inputs - c;
    return left < FOUR ? (left + OIC_WORD - 1) / OIC_WORD : FOUR / OIC_WORD;
}

/* Where words lie that position 0 meets, in the order of w. */
static inline void NAME(oic_conv_tables)(NAME(oic_conv_view) *v)
{
    int32_t *at = v->at;
    for (ptrdiff_t c = 0; c < v->inputs; c += FOUR) {
        for (ptrdiff_t ky = 0; ky < v->y.taps; ++ky) {
            ptrdiff_t py, px;
            const ptrdiff_t row = oic_conv_tap(&v->y, 0, ky, &py);
            for (ptrdiff_t kx = 0; kx < v->x.taps; ++kx) {
                const ptrdiff_t column = oic_conv_tap(&v->x, 0, kx, &px);
                for (ptrdiff_t i = 0; i < NAME(oic_conv_words)(v, c); ++i) {
                    const ptrdiff_t plane = ((c / OIC_WORD + i) * v->y.phases + py) * v->x.phases + px;
                    *at++ = (int32_t)(plane * v->size + row * v->x.extent + column);
                }
            }
        }
    }
    v->words = at - v->at;
}

/* The weights of outputs o..o+m-1 as words, and where their sums start. */
static inline void NAME(oic_conv_weights)(const NAME(oic_conv_view) *v, ptrdiff_t o, ptrdiff_t m, uint32_t *start)
{
    const ptrdiff_t taps = v->y.taps * v->x.taps, each = (v->inputs + FOUR - 1) / FOUR * FOUR * taps;
    const ptrdiff_t words = (v->inputs % FOUR + OIC_WORD - 1) / OIC_WORD; /* of the last four */
    const ptrdiff_t whole = words == 0 || words == FOUR / OIC_WORD ? each : v->inputs / FOUR * FOUR * taps;
    for (ptrdiff_t r = 0; r < m; ++r) {
        const int8_t *const from = v->a->w + (o + r) * each;
        uint32_t *const to = v->weights + r * v->words, *rest = to + whole / OIC_WORD;
        int32_t low = 0;
        for (ptrdiff_t k = 0; OIC_WORD_BIAS && k < each; ++k) {
            low += from[k];
        }
        start[r] = 0u - 128u * (uint32_t)low;
        oic_words_of_x(to, from, whole);
        for (ptrdiff_t k = whole; k < each; k += FOUR, rest += words) {
            oic_words_of_x(rest, from + k, words * OIC_WORD);
        }
    }
}

/* Copy what the block of positions from (y0, x0) on meets of image n and group g, of rows of that many positions. */
static inline void NAME(oic_conv_fill)(const NAME(oic_conv_view) *v, ptrdiff_t n, ptrdiff_t g, ptrdiff_t y0, ptrdiff_t rows,
                                       ptrdiff_t x0)
{
    const ARGS(oic_conv_planes) *const a = v->a;
    const ptrdiff_t high = v->y.extent - v->y.count + rows, wide = v->x.extent, step = v->x.step, image = a->height * a->width;
    const T *const x = a->x + (n * a->channels + g * v->inputs) * image;
    for (ptrdiff_t c = 0; c < v->inputs; c += OIC_WORD) {
        for (ptrdiff_t p = 0; p < v->y.phases * v->x.phases; ++p) {
            const ptrdiff_t py = p / v->x.phases, left = x0 * step + p % v->x.phases + v->x.low; /* of word 0 */
            const ptrdiff_t low = oic_conv_first(left, step, 0), first = low < wide ? low : wide;
            const ptrdiff_t last = oic_conv_last(left, step, a->width, wide), end = last > first ? last : first;
            uint32_t *to = v->planes + (c / OIC_WORD * v->y.phases * v->x.phases + p) * v->size;
            for (ptrdiff_t r = 0; r < high; ++r, to += wide) {
                const ptrdiff_t iy = (y0 + r) * v->y.step + py + v->y.low;
                const int8_t *from[OIC_WORD];
                if (iy < 0 || iy >= a->height || end == first) {
                    oic_words_zero(to, wide);
                    continue;
                }
                for (ptrdiff_t i = 0; i < OIC_WORD; ++i) { /* what is there in place of a channel meets weights of zero */
                    from[i] = x + (c + i < v->inputs ? c + i : c) * image + iy * a->width + left + first * step;
                }
                oic_words_zero(to, first);
                oic_words_of_w(to + first, from, end - first, step);
                oic_words_zero(to + end, wide - end);
            }
        }
    }
}

/* Store n positions from (row, column) of a block on, of so many channels; what lies behind the last column is none. */
static inline void NAME(oic_conv_put)(const NAME(oic_conv_view) *v, const uint32_t *sum, W_T *y, const B_T *b, ptrdiff_t channels,
                                      ptrdiff_t row, ptrdiff_t column, ptrdiff_t columns, ptrdiff_t n)
{
    const ptrdiff_t plane = v->a->out_height * v->a->out_width;
    for (ptrdiff_t e = 0, m; e < n; e += m, ++row, column = 0) {
        m = v->x.extent - column < n - e ? v->x.extent - column : n - e;
        const ptrdiff_t some = columns - column < m ? columns - column : m;
        for (ptrdiff_t r = 0; r < channels; ++r) {
            const uint32_t *restrict from = sum + r * SPAN + e;
            W_T *restrict to = y + r * plane + row * v->a->out_width + column;
            const uint32_t more = b != NULL ? (uint32_t)B_LOAD(b, r) : 0u;
            for (ptrdiff_t i = 0; i < some; ++i) {
                W_STORE(to, i, (W_C)(from[i] + more));
            }
        }
    }
}

/* to[fours of channels, taps_y, taps_x, 4] = the window that a position whose first taps lie at (top, left) of image n and group
   g sees. */
static inline void NAME(oic_conv_window)(const NAME(oic_conv_view) *v, ptrdiff_t n, ptrdiff_t g, ptrdiff_t top, ptrdiff_t left,
                                         int8_t *restrict to)
{
    const ARGS(oic_conv_planes) *const a = v->a;
    const T *const x = a->x + (n * a->channels + g * v->inputs) * a->height * a->width;
    for (ptrdiff_t c = 0; c < v->inputs; c += FOUR) {
        for (ptrdiff_t ky = 0; ky < a->taps_y; ++ky) {
            const ptrdiff_t iy = top + ky * a->dilation_y;
            for (ptrdiff_t kx = 0; kx < a->taps_x; ++kx, to += FOUR) {
                const ptrdiff_t ix = left + kx * a->dilation_x;
                const int inside = iy >= 0 && iy < a->height && ix >= 0 && ix < a->width;
                for (ptrdiff_t i = 0; i < FOUR; ++i) {
                    to[i] = inside && c + i < v->inputs ? x[((c + i) * a->height + iy) * a->width + ix] : (T)0;
                }
            }
        }
    }
}

/* Outputs o..end-1 of image n at position p of a plane: products of its window with rows of w. */
static inline void NAME(oic_conv_outputs)(const NAME(oic_conv_view) *v, const int8_t *window, ptrdiff_t n, ptrdiff_t o, ptrdiff_t end,
                                          ptrdiff_t p)
{
    const ARGS(oic_conv_planes) *const a = v->a;
    const ptrdiff_t K = (v->inputs + FOUR - 1) / FOUR * FOUR * v->y.taps * v->x.taps, plane = a->out_height * a->out_width;
    for (ptrdiff_t m; o < end; o += m) {
        uint32_t sum[OIC_BYTE_ROWS] = {0};
        m = end - o < OIC_BYTE_ROWS ? 1 : OIC_BYTE_ROWS;
        oic_byte_rows(sum, window, a->w + o * K, m == 1 ? 0 : K, K); /* of one row all are its sum */
        for (ptrdiff_t r = 0; r < m; ++r) {
            const uint32_t more = a->b != NULL ? (uint32_t)B_LOAD(a->b, o + r) : 0u;
            W_STORE(a->y, (n * a->outputs + o + r) * plane + p, (W_C)(sum[r] + more));
        }
    }
}

/* Units first..end-1: OIC_CONV_OUTPUTS output channels of a group, or fewer, in a block of an image. */
static inline void NAME(oic_conv_planes_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(oic_conv_planes) *const a = args;
    NAME(oic_conv_view) v = {
        .a = a, .inputs = a->channels / a->groups, .outputs = a->outputs / a->groups,
        .y = {a->height, a->out_height, a->taps_y, a->stride_y, a->padding_y, a->dilation_y, .count = a->rows},
        .x = {a->width, a->out_width, a->taps_x, a->stride_x, a->padding_x, a->dilation_x, .count = a->columns},
    };
    oic_conv_axis_set(&v.y);
    oic_conv_axis_set(&v.x);
    v.size = v.y.extent * v.x.extent;
    v.planes = oic_own(a->work, worker, (size_t)a->room);
    uint32_t *const spare = v.planes + (v.inputs + OIC_WORD - 1) / OIC_WORD * v.y.phases * v.x.phases * v.size;
    oic_words_zero(spare, SPARE);
    v.at = (int32_t *)(void *)(spare + SPARE);
    NAME(oic_conv_tables)(&v);
    v.weights = (uint32_t *)(void *)(v.at + v.words);
    const ptrdiff_t parts = (v.outputs + OIC_CONV_OUTPUTS - 1) / OIC_CONV_OUTPUTS;
    const ptrdiff_t blocks_y = (a->out_height + a->rows - 1) / a->rows, blocks_x = (a->out_width + a->columns - 1) / a->columns;
    for (ptrdiff_t unit = first; unit < end; ++unit) {
        const ptrdiff_t part = unit % parts, block = unit / parts, y0 = block / blocks_x % blocks_y * a->rows;
        const ptrdiff_t x0 = block % blocks_x * a->columns, g = block / blocks_x / blocks_y % a->groups;
        const ptrdiff_t n = block / blocks_x / blocks_y / a->groups;
        const ptrdiff_t high = a->out_height - y0, rows = high < a->rows ? high : a->rows;
        const ptrdiff_t along = a->out_width - x0, columns = along < a->columns ? along : a->columns;
        const ptrdiff_t positions = (rows - 1) * v.x.extent + columns, o1 = v.outputs * (part + 1) / parts;
        if (a->rows * a->columns < FEW) {
            for (ptrdiff_t i = 0; i < rows * columns; ++i) {
                const ptrdiff_t oy = y0 + i / columns, ox = x0 + i % columns, o0 = v.outputs * part / parts;
                int8_t *const window = (int8_t *)(void *)v.weights;
                NAME(oic_conv_window)(&v, n, g, oy * a->stride_y - a->padding_y, ox * a->stride_x - a->padding_x, window);
                NAME(oic_conv_outputs)(&v, window, n, g * v.outputs + o0, g * v.outputs + o1, oy * a->out_width + ox);
            }
            continue;
        }
        if (unit == first || part == 0) {
            NAME(oic_conv_fill)(&v, n, g, y0, rows, x0);
        }
        for (ptrdiff_t o = v.outputs * part / parts, m; o < o1; o += m) {
            const ptrdiff_t tiles = (o1 - o + OIC_WORD_ROWS - 1) / OIC_WORD_ROWS, to = g * v.outputs + o;
            W_T *const y = a->y + ((n * a->outputs + to) * a->out_height + y0) * a->out_width + x0;
            uint32_t start[OIC_WORD_ROWS], sum[OIC_WORD_ROWS * SPAN];
            m = (o1 - o + tiles - 1) / tiles; /* as even as can be */
            NAME(oic_conv_weights)(&v, to, m, start);
            for (ptrdiff_t p = 0; p < positions; p += SPAN) {
                const ptrdiff_t some = positions - p < SPAN ? positions - p : SPAN;
                for (ptrdiff_t e = 0; e < some; e += OIC_LANES) {
                    oic_words_sum(sum + e, SPAN, m, v.weights, v.words, v.planes + p + e, v.at, v.words, start);
                }
                NAME(oic_conv_put)(&v, sum, y, a->b != NULL ? a->b + to : NULL, m, p / v.x.extent, p % v.x.extent, columns, some);
            }
        }
    }
}

static inline void NAME(oic_conv_planes)(const ARGS(oic_conv_planes) *a)
{
    const ptrdiff_t parts = (a->outputs / a->groups + OIC_CONV_OUTPUTS - 1) / OIC_CONV_OUTPUTS;
    const ptrdiff_t blocks_y = (a->out_height + a->rows - 1) / a->rows, blocks_x = (a->out_width + a->columns - 1) / a->columns;
    NAME(oic_conv_planes_part)(a, 0, a->batch * a->groups * parts * blocks_y * blocks_x, 0);
}

#undef FEW
#undef FOUR
#undef SPAN
#undef SPARE
#include "end.h"
