/* oic_conv_winograd_X_W_B: oic_conv of type i8 that wraps in type W of at most 32 bits, of windows of three taps, or of three by
   three, that move by one, with constant w[outputs, fours of channels / groups, taps_y, 3, 4]: the last four filled up.

   By Winograd's minimal filtering (Lavin, Gray: "Fast Algorithms for Convolutional Neural Networks", 2016), in integers.  Of a
   row, a tile of two results takes four products instead of six, of four neighbours d of x and taps g:

       p0 = (d0 - d2) 2 g0   p1 = (d1 + d2) (g0 + g1 + g2)   p2 = (d2 - d1) (g0 - g1 + g2)   p3 = (d1 - d3) 2 g2
       2 y0 = p0 + p1 + p2   2 y1 = p1 - p2 - p3

   and the same along columns makes 16 products of 36 for a tile of 2 x 2.  A point is the place of a product in a tile.  Its
   factors fit 16 bits.  Sums over channels, of one point, are products with words of halves (simd/words.h); `fits` of the
   kernel (operators/conv.py) leaves out where 4 y could exceed 32 bits, so that the division is exact.

   Of taps that lie apart, results as far from each other meet the same elements of x: each of these phases has tiles of its own,
   as rows behind those of the phase before.

   A lane is a tile.  A block has at most `rows` rows of `columns` tiles; `room` bytes of work have its points and those of
   some outputs' weights. */
#include "common/conv_axis.h"
#include "common/conv_range.h"
#include "common/own.h"
#include "../simd/words.h"
#include "element.h"

#define FOUR 4    /* channels that lie together in w */
#define LINE 4    /* points of a line, and lines that a tile of 2 x 2 meets */

typedef struct {
    const T *x, *w;
    const B_T *b;
    W_T *y;
    void *work;
    ptrdiff_t batch, channels, height, width, outputs, taps_y, out_height, out_width, padding_y, padding_x;
    ptrdiff_t dilation_y, dilation_x, groups, rows, columns, room;
#if defined(OIC_REQUANTIZES)
    oic_requantized by;
#endif
} ARGS(oic_conv_winograd);

/* A call.
   inputs, outputs  channels of a group
   high             rows of tiles of a phase
   words            of the channels of one point
   tall, lines      rows of results of a tile, and lines of points, which are lines of x that it meets
   pitch            words from one channel's tiles to the next's
   tiles            [lines, 4, words, pitch]: of x
   at               where words of one point lie for tile 0
   filters          [OIC_WORD_ROWS, lines, 4, words]: of w
   sums             [OIC_WORD_ROWS, tall, 2 * pitch]: results of a block
   even, odd        [lines, columns + 1]: words of x, in lines, of columns 2 i and 2 i + 1
   all              [2 * (columns + 1)]: those of both
   taps             [3 * 3, fours of channels] of an output; [4 * 3, fours of channels], with columns transformed; and bytes */
typedef struct {
    const ARGS(oic_conv_winograd) *a;
    ptrdiff_t inputs, outputs, high, words, tall, lines, pitch, wide;
    uint32_t *tiles, *filters, *sums, *even, *odd, *all;
    int32_t *at;
    int16_t *taps;
#if defined(OIC_REQUANTIZES)
    oic_requantized_range within;
#endif
} NAME(oic_winograd_view);

/* Where a row of tiles lies: of a phase, number `row`. */
typedef struct {
    ptrdiff_t fy, fx, row;
} NAME(oic_winograd_place);

static inline NAME(oic_winograd_place) NAME(oic_winograd_at)(const NAME(oic_winograd_view) *v, ptrdiff_t y)
{
    const ptrdiff_t phase = y / v->high;
    return (NAME(oic_winograd_place)){phase / v->a->dilation_x, phase % v->a->dilation_x, y % v->high};
}

/* to[2 * n] = halves of two channels from column `left` on, so many columns apart; 0 outside of x. */
static inline void NAME(oic_winograd_halves)(const NAME(oic_winograd_view) *v, const T *p, const T *q, ptrdiff_t left, ptrdiff_t n,
                                             int16_t *restrict to)
{
    const ptrdiff_t step = v->a->dilation_x, low = oic_conv_first(left, step, 0), first = low < n ? low : n;
    const ptrdiff_t last = oic_conv_last(left, step, v->a->width, n), end = last > first ? last : first;
    memset(to, 0, 2 * (size_t)first * sizeof *to);
    if (step == 1) {
        for (ptrdiff_t i = first; i < end; ++i) {
            to[2 * i] = p[left + i];
            to[2 * i + 1] = q[left + i];
        }
    } else {
        for (ptrdiff_t i = first; i < end; ++i) {
            to[2 * i] = p[left + i * step];
            to[2 * i + 1] = q[left + i * step];
        }
    }
    memset(to + 2 * end, 0, 2 * (size_t)(n - end) * sizeof *to);
}

/* Lines of x of two channels, in the order in which rows of tiles meet them: number `line` of those of the phase. */
static inline void NAME(oic_winograd_line)(const NAME(oic_winograd_view) *v, const T *p, const T *q, NAME(oic_winograd_place) at,
                                           ptrdiff_t line, ptrdiff_t x0, ptrdiff_t columns)
{
    const ptrdiff_t from = line * v->a->dilation_y + at.fy - v->a->padding_y, n = 2 * (columns + 1);
    const ptrdiff_t left = 2 * x0 * v->a->dilation_x + at.fx - v->a->padding_x;
    uint32_t *restrict const even = v->even + (line & (v->lines - 1)) * v->wide, *restrict const odd = even + v->lines * v->wide;
    const uint32_t *const all = v->all;
    if (from < 0 || from >= v->a->height) {
        memset(v->all, 0, (size_t)n * sizeof *all);
    } else {
        p += from * v->a->width;
        q += from * v->a->width;
        NAME(oic_winograd_halves)(v, p, q, left, n, (int16_t *)(void *)v->all);
    }
    for (ptrdiff_t i = 0; i <= columns; ++i) {
        even[i] = all[2 * i];
        odd[i] = all[2 * i + 1];
    }
}

/* Number i of a line, or of a line plus or minus another. */
OIC_INLINE int16_t NAME(oic_winograd_of)(const int16_t *line, const int16_t *other, ptrdiff_t i, int sign)
{
    return (int16_t)(sign == 0 ? line[i] : sign > 0 ? line[i] + other[i] : line[i] - other[i]);
}

/* p0..p3 = the points of n halves of a line of tiles, of even and odd columns of x. */
OIC_INLINE void NAME(oic_winograd_row)(int16_t *restrict p0, int16_t *restrict p1, int16_t *restrict p2, int16_t *restrict p3,
                                       const int16_t *even, const int16_t *odd, const int16_t *other_even,
                                       const int16_t *other_odd, ptrdiff_t n, int sign)
{
    for (ptrdiff_t i = 0; i < n; ++i) {
        const int16_t d0 = NAME(oic_winograd_of)(even, other_even, i, sign), d1 = NAME(oic_winograd_of)(odd, other_odd, i, sign);
        const int16_t d2 = NAME(oic_winograd_of)(even, other_even, i + 2, sign);
        const int16_t d3 = NAME(oic_winograd_of)(odd, other_odd, i + 2, sign);
        p0[i] = (int16_t)(d0 - d2);
        p1[i] = (int16_t)(d1 + d2);
        p2[i] = (int16_t)(d2 - d1);
        p3[i] = (int16_t)(d1 - d3);
    }
}

/* The same, of which p1 and so on lie `next` after the one before, and another line `apart`. */
static inline void NAME(oic_winograd_points)(int16_t *p, ptrdiff_t next, const int16_t *even, const int16_t *odd, ptrdiff_t apart,
                                             ptrdiff_t n, int sign)
{
    if (sign < 0) {
        NAME(oic_winograd_row)(p, p + next, p + 2 * next, p + 3 * next, even, odd, even + apart, odd + apart, n, -1);
    } else if (sign > 0) {
        NAME(oic_winograd_row)(p, p + next, p + 2 * next, p + 3 * next, even, odd, even + apart, odd + apart, n, 1);
    } else {
        NAME(oic_winograd_row)(p, p + next, p + 2 * next, p + 3 * next, even, odd, even, odd, n, 0);
    }
}

/* The points of rows of tiles from (y0, x0) on, of image n and group g. */
static inline void NAME(oic_winograd_fill)(const NAME(oic_winograd_view) *v, ptrdiff_t n, ptrdiff_t g, ptrdiff_t y0, ptrdiff_t rows,
                                           ptrdiff_t x0, ptrdiff_t columns)
{
    static const int8_t firsts[LINE] = {0, 1, 2, 1}, seconds[LINE] = {2, 2, 1, 3};
    const ARGS(oic_conv_winograd) *const a = v->a;
    const ptrdiff_t image = a->height * a->width, next = 2 * v->words * v->pitch;
    const T *const x = a->x + (n * a->channels + g * v->inputs) * image;
    const int16_t *const even = (const int16_t *)(const void *)v->even, *const odd = (const int16_t *)(const void *)v->odd;
    for (ptrdiff_t k = 0; k < v->words; ++k) {
        const T *const p = x + 2 * k * image, *const q = 2 * k + 1 < v->inputs ? p + image : p; /* meets weights of 0 */
        for (ptrdiff_t r = 0; r < rows; ++r) {
            const NAME(oic_winograd_place) at = NAME(oic_winograd_at)(v, y0 + r);
            const ptrdiff_t top = at.row * v->tall, held = r == 0 || at.row == 0 ? 0 : v->lines - v->tall; /* of the row before */
            for (ptrdiff_t line = top + held; line < top + v->lines; ++line) {
                NAME(oic_winograd_line)(v, p, q, at, line, x0, columns);
            }
            for (ptrdiff_t i = 0; i < v->lines; ++i) {
                int16_t *const to = (int16_t *)(void *)(v->tiles + (LINE * i * v->words + k) * v->pitch + r * columns);
                const ptrdiff_t one = ((top + firsts[i]) & (v->lines - 1)) * v->wide;
                const ptrdiff_t two = ((top + seconds[i]) & (v->lines - 1)) * v->wide;
                NAME(oic_winograd_points)(to, next, even + 2 * one, odd + 2 * one, 2 * (two - one), 2 * columns,
                                          v->lines == 1 ? 0 : i == 1 ? 1 : -1);
            }
        }
    }
}

/* to[4] = the points of three taps, each n halves, `apart` from the next. */
static inline void NAME(oic_winograd_taps)(int16_t *restrict to, ptrdiff_t apart, const int16_t *g, ptrdiff_t next, ptrdiff_t n)
{
    for (ptrdiff_t c = 0; c < n; ++c) {
        const int16_t g0 = g[c], g1 = g[next + c], g2 = g[2 * next + c];
        to[c] = (int16_t)(2 * g0);
        to[apart + c] = (int16_t)(g0 + g1 + g2);
        to[2 * apart + c] = (int16_t)(g0 - g1 + g2);
        to[3 * apart + c] = (int16_t)(2 * g2);
    }
}

/* to[n] = bytes as halves. */
static inline void NAME(oic_winograd_widened)(int16_t *restrict to, const T *from, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; ++i) {
        to[i] = from[i];
    }
}

/* The points of the weights of outputs o..o+m-1. */
static inline void NAME(oic_winograd_weights)(const NAME(oic_winograd_view) *v, ptrdiff_t o, ptrdiff_t m)
{
    const ARGS(oic_conv_winograd) *const a = v->a;
    const ptrdiff_t fours = (v->inputs + FOUR - 1) / FOUR, deep = FOUR * fours, taps = 3 * a->taps_y, points = LINE * v->lines;
    T *const bytes = (T *)(void *)(v->taps + (taps + LINE * 3) * deep);
    int16_t *const lines = v->lines > 1 ? v->taps + taps * deep : v->taps;
    for (ptrdiff_t r = 0; r < m; ++r) {
        const T *const from = a->w + (o + r) * taps * deep;
        int16_t *const to = (int16_t *)(void *)(v->filters + r * points * v->words);
        for (ptrdiff_t k = 0; k < taps; ++k) {
            for (ptrdiff_t c = 0; c < fours; ++c) {
                memcpy(bytes + k * deep + FOUR * c, from + (c * taps + k) * FOUR, FOUR);
            }
        }
        NAME(oic_winograd_widened)(v->taps, bytes, taps * deep);
        if (v->lines > 1) { /* three columns side by side */
            NAME(oic_winograd_taps)(lines, 3 * deep, v->taps, 3 * deep, 3 * deep);
        }
        for (ptrdiff_t i = 0; i < v->lines; ++i) {
            NAME(oic_winograd_taps)(to + 2 * LINE * i * v->words, 2 * v->words, lines + 3 * i * deep, deep, 2 * v->words);
        }
    }
}

/* to[2 * 16] = the pairs of results of sixteen tiles, of sums of the four points of a line. */
static inline void NAME(oic_winograd_pairs)(uint32_t *restrict to, const uint32_t *p, int tall, uint32_t more)
{
    const int shift = tall == 2 ? 2 : 1;
    for (int l = 0; l < OIC_LANES; ++l) {
        const uint32_t p0 = p[l], p1 = p[OIC_LANES + l], p2 = p[2 * OIC_LANES + l], p3 = p[3 * OIC_LANES + l];
        const uint32_t one = p0 + p1 + p2 + UINT32_C(0x80000000), two = p1 - p2 - p3 + UINT32_C(0x80000000);
        to[2 * l] = (one >> shift) + more; /* divided with the sign, as numbers of a range that begins at 0 */
        to[2 * l + 1] = (two >> shift) + more;
    }
}

/* Results of m outputs, of sixteen tiles from e on, of sums[m, lines, 4, 16]; b are the biases. */
static inline void NAME(oic_winograd_results)(const NAME(oic_winograd_view) *v, const uint32_t *sum, ptrdiff_t m, ptrdiff_t e,
                                              const uint32_t *b)
{
    for (ptrdiff_t r = 0; r < m; ++r) {
        uint32_t *const to = v->sums + r * v->tall * 2 * v->pitch + 2 * e;
        const uint32_t *const p = sum + r * v->lines * LINE * OIC_LANES;
        if (v->tall == 1) {
            NAME(oic_winograd_pairs)(to, p, 1, b[r] - (UINT32_C(0x80000000) >> 1));
            continue;
        }
        uint32_t upper[LINE * OIC_LANES], lower[LINE * OIC_LANES];
        for (int l = 0; l < LINE * OIC_LANES; ++l) {
            const uint32_t p0 = p[l], p1 = p[LINE * OIC_LANES + l], p2 = p[2 * LINE * OIC_LANES + l];
            upper[l] = p0 + p1 + p2;
            lower[l] = p1 - p2 - p[3 * LINE * OIC_LANES + l];
        }
        NAME(oic_winograd_pairs)(to, upper, 2, b[r] - (UINT32_C(0x80000000) >> 2));
        NAME(oic_winograd_pairs)(to + 2 * v->pitch, lower, 2, b[r] - (UINT32_C(0x80000000) >> 2));
    }
}

/* Store the results of output o in a block of so many rows of tiles from (y0, x0) on; y is its plane. */
static inline void NAME(oic_winograd_store)(const NAME(oic_winograd_view) *v, uint32_t *sum, W_T *y, ptrdiff_t o, ptrdiff_t y0,
                                            ptrdiff_t rows, ptrdiff_t x0, ptrdiff_t columns)
{
    const ARGS(oic_conv_winograd) *const a = v->a;
    for (ptrdiff_t i = 0; i < v->tall; ++i) {
        uint32_t *from = sum + i * 2 * v->pitch;
#if defined(OIC_REQUANTIZES)
        oic_requantized_sums(&a->by, from, 2 * rows * columns, o, v->within);
#else
        (void)o;
#endif
        for (ptrdiff_t r = 0; r < rows; ++r, from += 2 * columns) {
            const NAME(oic_winograd_place) at = NAME(oic_winograd_at)(v, y0 + r);
            const ptrdiff_t left = (a->out_width - at.fx + a->dilation_x - 1) / a->dilation_x - 2 * x0;
            const ptrdiff_t wide = left < 2 * columns ? left : 2 * columns, row = (at.row * v->tall + i) * a->dilation_y + at.fy;
            if (row >= a->out_height || wide <= 0) { /* other phases have them */
                continue;
            }
            W_T *restrict const to = y + row * a->out_width + 2 * x0 * a->dilation_x + at.fx;
            if (a->dilation_x == 1) {
                for (ptrdiff_t e = 0; e < wide; ++e) {
                    W_STORE(to, e, (W_C)from[e]);
                }
            } else {
                for (ptrdiff_t e = 0; e < wide; ++e) {
                    W_STORE(to, e * a->dilation_x, (W_C)from[e]);
                }
            }
        }
    }
}

/* Rows or columns of tiles of the first phase, which has as many as any other: of so many results, so many of one tile. */
static inline ptrdiff_t NAME(oic_winograd_count)(ptrdiff_t results, ptrdiff_t dilation, ptrdiff_t each)
{
    return ((results + dilation - 1) / dilation + each - 1) / each;
}

/* Units first..end-1: OIC_CONV_OUTPUTS output channels of a group, or fewer, in a block of an image. */
static inline void NAME(oic_conv_winograd_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(oic_conv_winograd) *const a = args;
    const ptrdiff_t tall = a->taps_y == 3 ? 2 : 1, lines = tall == 2 ? LINE : 1;
    const ptrdiff_t high = NAME(oic_winograd_count)(a->out_height, a->dilation_y, tall);
    const ptrdiff_t rows_y = high * a->dilation_y * a->dilation_x; /* of all phases */
    const ptrdiff_t across = NAME(oic_winograd_count)(a->out_width, a->dilation_x, 2);
    const ptrdiff_t blocks_y = (rows_y + a->rows - 1) / a->rows, blocks_x = (across + a->columns - 1) / a->columns;
    NAME(oic_winograd_view) v = {
        .a = a, .inputs = a->channels / a->groups, .outputs = a->outputs / a->groups, .high = high, .tall = tall, .lines = lines,
        .pitch = (a->rows * a->columns + OIC_LANES - 1) / OIC_LANES * OIC_LANES, .wide = a->columns + 1,
    };
    v.words = (v.inputs + 1) / 2;
    const ptrdiff_t points = lines * LINE, parts = oic_conv_parts(v.outputs);
#if defined(OIC_REQUANTIZES)
    v.within = oic_requantized_within((int64_t)W_LOW, (int64_t)W_HIGH, a->by.zero_point);
#endif
    v.tiles = oic_own(a->work, worker, (size_t)a->room);
    ptrdiff_t *const held = oic_conv_held(v.tiles, a->room);
    v.at = (int32_t *)(void *)(v.tiles + points * v.words * v.pitch);
    v.filters = (uint32_t *)(void *)(v.at + v.words);
    v.sums = v.filters + OIC_WORD_ROWS * points * v.words;
    v.even = v.sums + OIC_WORD_ROWS * tall * 2 * v.pitch;
    v.odd = v.even + lines * v.wide;
    v.all = v.odd + lines * v.wide;
    v.taps = (int16_t *)(void *)(v.all + 2 * v.wide);
    for (ptrdiff_t k = 0; k < v.words; ++k) {
        v.at[k] = (int32_t)(k * v.pitch);
    }
    for (ptrdiff_t unit = first; unit < end; ++unit) {
        const ptrdiff_t part = unit % parts, block = unit / parts, by = block / blocks_x % blocks_y, bx = block % blocks_x;
        const ptrdiff_t g = block / blocks_x / blocks_y % a->groups, n = block / blocks_x / blocks_y / a->groups;
        const ptrdiff_t y0 = rows_y * by / blocks_y, rows = rows_y * (by + 1) / blocks_y - y0;
        const ptrdiff_t x0 = across * bx / blocks_x, columns = across * (bx + 1) / blocks_x - x0;
        if (*held != block + 1) {
            NAME(oic_winograd_fill)(&v, n, g, y0, rows, x0, columns);
            *held = block + 1;
        }
        const ptrdiff_t o1 = v.outputs * (part + 1) / parts;
        for (ptrdiff_t o = v.outputs * part / parts, m; o < o1; o += m) {
            const ptrdiff_t tiles = (o1 - o + OIC_WORD_ROWS - 1) / OIC_WORD_ROWS, to = g * v.outputs + o;
            uint32_t b[OIC_WORD_ROWS] = {0}, zeros[OIC_WORD_ROWS] = {0}, sum[OIC_WORD_ROWS * LINE * LINE * OIC_LANES];
            m = (o1 - o + tiles - 1) / tiles; /* as even as can be */
            for (ptrdiff_t r = 0; r < m; ++r) {
                b[r] = a->b != NULL ? (uint32_t)B_LOAD(a->b, to + r) : 0u;
            }
            NAME(oic_winograd_weights)(&v, to, m);
            for (ptrdiff_t e = 0; e < rows * columns; e += OIC_LANES) {
                for (ptrdiff_t p = 0; p < points; ++p) {
                    oic_halves_sum(sum + p * OIC_LANES, points * OIC_LANES, m, v.filters + p * v.words, points * v.words,
                                   v.tiles + p * v.words * v.pitch + e, v.at, v.words, zeros);
                }
                NAME(oic_winograd_results)(&v, sum, m, e, b);
            }
            for (ptrdiff_t r = 0; r < m; ++r) {
                W_T *const y = a->y + (n * a->outputs + to + r) * a->out_height * a->out_width;
                NAME(oic_winograd_store)(&v, v.sums + r * tall * 2 * v.pitch, y, to + r, y0, rows, x0, columns);
            }
        }
    }
}

static inline void NAME(oic_conv_winograd)(const ARGS(oic_conv_winograd) *a)
{
    const ptrdiff_t high = NAME(oic_winograd_count)(a->out_height, a->dilation_y, a->taps_y == 3 ? 2 : 1);
    const ptrdiff_t across = NAME(oic_winograd_count)(a->out_width, a->dilation_x, 2);
    const ptrdiff_t blocks = (high * a->dilation_y * a->dilation_x + a->rows - 1) / a->rows * ((across + a->columns - 1) / a->columns);
    oic_conv_begin(a->work, 1, a->room);
    NAME(oic_conv_winograd_part)(a, 0, a->batch * a->groups * oic_conv_parts(a->outputs / a->groups) * blocks, 0);
}

#if defined(OIC_POOL_H)
/* The same, divided among threads. */
static inline void NAME(oic_conv_winograd_divided)(oic_pool *pool, int most, ptrdiff_t units, int64_t work,
                                                   const ARGS(oic_conv_winograd) *a)
{
    oic_conv_begin(a->work, most, a->room);
    oic_divide(pool, most, units, work, NAME(oic_conv_winograd_part), a);
}
#endif

#undef FOUR
#undef LINE
#include "end.h"
