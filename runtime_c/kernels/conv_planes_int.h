/* oic_conv_planes_X_W_B of bytes: oic_conv of type i8 that wraps in type W of at most 32 bits, with constant
   w[outputs, fours of channels / groups, taps_y, taps_x, 4], or, `along` a row of x, w[outputs, channels / groups, taps_y,
   fours of taps_x, 4]: the last four filled up.

   A lane is a position of the result.  A block of x is copied into planes of words (simd/words.h), with zeros for the padding:
   of as many input channels of a group each as a word has, or of what as many neighbouring taps meet of one.  Where the stride
   is above 1, there is a plane for each phase of it that words lie in.  In planes, what neighbouring positions meet are
   neighbours, also behind the end of a row, where there is nothing to store.  Where an output has one input channel, rows are
   computed one by one, or in pairs that share what they load, which needs the fewest loads and stores; short ones together.

   Where an output has one row of one input channel, or all of that lies in two registers, its words are made in registers, if a
   machine has an instruction for that (oic_words_near), and its sums stored from there.

   oic_conv_transpose_planes_X_W_B: oic_conv_transpose with such weights, where those of an output lie class by class of positions that
   meet the same taps (common/conv_axis.h): in each w[fours of channels / groups, taps, 4].

   Of few positions, each has its window gathered instead, in the order of w, whose rows it goes along.

   A block is at most `rows` rows of `columns` positions; `room` bytes of work have its planes, where the words lie that a position
   meets, as words the weights of some outputs, and which block that is.  Sums are modulo 2^32, whatever the order. */
#include "common/conv_axis.h"
#include "common/conv_lanes.h"
#include "common/conv_range.h"
#include "common/own.h"
#include "../simd/bytes.h"
#include "../simd/words.h"
#include "element.h"

#define FEW 4               /* positions of a block, for fewer than which planes do not pay */
#define FOUR 4              /* channels that lie together in w */
#define SPAN (16 * OIC_LANES) /* positions whose sums are on the stack */
#define ROW 8               /* registers of sums of a row */
#define PAIRS (OIC_WIDTH >= 8) /* rows are computed in pairs: with narrower registers that does not pay */
#define NEAR 4              /* registers of positions whose words are made as they are needed */
#define NEARS 8             /* and of those of a plane, */
#define LAST (OIC_NEAR - 1) /* where the last number lies then, a 0 */
#define SPARE OIC_LANES     /* words behind the planes that lanes without a position may meet */

#include "common/conv_planes.inc.h"

typedef ARGS(oic_conv_planes) ARGS(oic_conv_transpose_planes);

/* A call.
   inputs, outputs  channels of a group
   x                its taps are those of a word each, `along` rows
   each             bytes of w of an output
   words            that a position meets
   lanes            of a block
   planes           [words of channels, phases of y, phases of x, extent of y, extent of x]
   at               where they lie for position 0
   weights          of OIC_WORD_ROWS outputs
   within           the range of results, of sums that are requantised */
typedef struct {
    const ARGS(oic_conv_planes) *a;
    oic_conv_axis y, x;
    ptrdiff_t inputs, outputs, each, words, size;
    oic_conv_lanes lanes;
    uint32_t *planes, *weights;
    int32_t *at;
#if defined(OIC_REQUANTIZES)
    oic_requantized_range within;
#endif
} NAME(oic_conv_view);

/* How many words are made of the numbers from i on of a row of n in fours. */
static inline ptrdiff_t NAME(oic_conv_words)(ptrdiff_t n, ptrdiff_t i)
{
    return n - i < FOUR ? (n - i + OIC_WORD - 1) / OIC_WORD : FOUR / OIC_WORD;
}

/* Planes that begin at one channel or at as many as a word has. */
static inline ptrdiff_t NAME(oic_conv_deep)(const NAME(oic_conv_view) *v)
{
    return v->a->along ? v->inputs : (v->inputs + OIC_WORD - 1) / OIC_WORD;
}

/* Where words lie that position 0 of class (fy, fx) meets, in the order of w, from `at` on; where those of the next begin. */
static inline int32_t *NAME(oic_conv_table)(const NAME(oic_conv_view) *v, ptrdiff_t fy, ptrdiff_t fx, int32_t *at)
{
    const ptrdiff_t side = v->a->along ? 1 : FOUR;
    for (ptrdiff_t c = 0; c < v->inputs; c += side) {
        const ptrdiff_t first = v->a->along ? c : c / OIC_WORD, words = v->a->along ? 1 : NAME(oic_conv_words)(v->inputs, c);
        for (ptrdiff_t ky = 0; ky < v->y.taps; ++ky) {
            ptrdiff_t py, px;
            const ptrdiff_t row = oic_conv_tap(&v->y, fy, ky, &py);
            for (ptrdiff_t kx = 0; kx < v->x.taps && row >= 0; ++kx) {
                const ptrdiff_t column = oic_conv_tap(&v->x, fx, kx, &px);
                for (ptrdiff_t i = 0; i < words && column >= 0; ++i) {
                    const ptrdiff_t plane = ((first + i) * v->y.phases + py) * v->x.phases + px;
                    *at++ = (int32_t)(plane * v->size + row * v->x.extent + column);
                }
            }
        }
    }
    return at;
}

/* The weights of outputs o..o+m-1, `each` bytes of each from w on, which are of so many taps, as n words, copied unless they lie as
   such; and where their sums start: at b, if there is one.  Words of one output and of the next lie *apart. */
static inline const uint32_t *NAME(oic_conv_weights)(const NAME(oic_conv_view) *v, const T *w, ptrdiff_t each, ptrdiff_t taps,
                                                     ptrdiff_t n, ptrdiff_t o, ptrdiff_t m, uint32_t *start, uint32_t *copied,
                                                     ptrdiff_t *apart)
{
    const ARGS(oic_conv_planes) *const a = v->a;
    const ptrdiff_t run = a->along ? (a->taps_x + FOUR - 1) / FOUR * FOUR : FOUR; /* bytes, the last of which words may leave out */
    const ptrdiff_t words = a->along ? v->x.taps : NAME(oic_conv_words)(v->inputs, v->inputs / FOUR * FOUR);
    const ptrdiff_t before = a->along ? 0 : v->inputs / FOUR * FOUR * taps; /* bytes, which fill words */
    const ptrdiff_t full = words * OIC_WORD == run ? each : before;
    const int as_they_are = OIC_WORD == FOUR && full == each;
    const uint32_t *const first = as_they_are ? (const uint32_t *)(const void *)(w + o * v->each) : copied;
    *apart = as_they_are ? v->each / OIC_WORD : n;
    for (ptrdiff_t r = 0; r < m; ++r) {
        const int8_t *const from = w + (o + r) * v->each;
        uint32_t *const to = copied + r * n, *rest = to + full / OIC_WORD;
        if (!as_they_are) {
            oic_words_of_x(to, from, full);
        }
        for (ptrdiff_t k = full; k < each; k += run, rest += words) {
            oic_words_of_x(rest, from + k, words * OIC_WORD);
        }
        start[r] = (a->b != NULL ? (uint32_t)B_LOAD(a->b, o + r) : 0u) - oic_words_higher(first + r * *apart, n);
    }
    return first;
}

/* to = words first..end-1 of a row of a plane, of x from `left` on, some of whose numbers may lie outside: these are 0. */
static inline void NAME(oic_conv_edge)(const NAME(oic_conv_view) *v, const int8_t *x, ptrdiff_t left, uint32_t *to,
                                       ptrdiff_t first, ptrdiff_t end)
{
    if (!v->a->along) {
        oic_words_zero(to + first, end - first);
        return;
    }
    for (ptrdiff_t e = first; e < end; ++e) {
        const int8_t *from[OIC_WORD];
        int8_t numbers[OIC_WORD];
        for (ptrdiff_t i = 0; i < OIC_WORD; ++i) {
            const ptrdiff_t ix = left + e * v->x.step + i * v->a->dilation_x;
            numbers[i] = ix >= 0 && ix < v->a->width ? x[ix] : (int8_t)0;
            from[i] = &numbers[i];
        }
        oic_words_of_w(to + e, from, 1, 1);
    }
}

/* Copy what the block of positions from (y0, x0) on meets of image n and group g, of rows of that many positions. */
static inline void NAME(oic_conv_fill)(const NAME(oic_conv_view) *v, ptrdiff_t n, ptrdiff_t g, ptrdiff_t y0, ptrdiff_t rows,
                                       ptrdiff_t x0)
{
    const ARGS(oic_conv_planes) *const a = v->a;
    const ptrdiff_t high = v->y.extent - v->y.count + rows, wide = v->x.extent, step = v->x.step, image = a->height * a->width;
    const ptrdiff_t apart = a->along ? a->dilation_x : image, side = a->along ? 1 : OIC_WORD;
    const T *const x = a->x + (n * a->channels + g * v->inputs) * image;
    const int neighbours = a->along && a->dilation_x == 1, padded = neighbours && oic_words_pad(step);
    for (ptrdiff_t plane = 0; plane < NAME(oic_conv_deep)(v) * v->y.phases * v->x.phases; ++plane) {
        const ptrdiff_t c = plane / v->x.phases / v->y.phases * side, py = plane / v->x.phases % v->y.phases;
        const ptrdiff_t left = x0 * step + plane % v->x.phases + v->x.low;       /* where word 0 begins, */
        const ptrdiff_t right = a->along ? left + (OIC_WORD - 1) * apart : left; /* and ends */
        const ptrdiff_t low = oic_conv_first(left, step, 0), first = low < wide ? low : wide;
        const ptrdiff_t last = oic_conv_last(right, step, a->width, wide), end = last > first ? last : first;
        uint32_t *to = v->planes + plane * v->size;
        if (padded) {
            const ptrdiff_t top = y0 * v->y.step + py + v->y.low, above = oic_conv_first(top, v->y.step, 0);
            const ptrdiff_t below = oic_conv_last(top, v->y.step, a->height, high);
            const ptrdiff_t r0 = above < high ? above : high, r1 = below > r0 ? below : r0, down = v->y.step * a->width;
            oic_words_zero(to, r0 * wide);
            if (r1 > r0) {
                const T *const from = x + c * image + (top + r0 * v->y.step) * a->width;
                oic_words_of_padded(to + r0 * wide, wide, from, down, r1 - r0, a->width, left, step);
            }
            oic_words_zero(to + r1 * wide, (high - r1) * wide);
            continue;
        }
        for (ptrdiff_t r = 0; r < high; ++r, to += wide) {
            const ptrdiff_t iy = (y0 + r) * v->y.step + py + v->y.low;
            if (iy < 0 || iy >= a->height) {
                oic_words_zero(to, wide);
                continue;
            }
            const int8_t *from[OIC_WORD], *const row = x + c * image + iy * a->width;
            NAME(oic_conv_edge)(v, row, left, to, 0, first);
            if (end > first) {
                for (ptrdiff_t i = 0; i < OIC_WORD; ++i) { /* what is there in place of a channel meets weights of zero */
                    from[i] = row + (a->along || c + i < v->inputs ? i : 0) * apart + left + first * step;
                }
                if (neighbours) {
                    oic_words_of_row(to + first, from[0], end - first, step);
                } else {
                    oic_words_of_w(to + first, from, end - first, step);
                }
            }
            NAME(oic_conv_edge)(v, row, left, to, end, wide);
        }
    }
}

/* n sums of output o as they are stored. */
OIC_INLINE void NAME(oic_conv_results)(const NAME(oic_conv_view) *v, uint32_t *sum, ptrdiff_t n, ptrdiff_t o)
{
#if defined(OIC_REQUANTIZES)
    oic_requantized_sums(&v->a->by, sum, n, o, v->within);
#else
    (void)v, (void)sum, (void)n, (void)o;
#endif
}

/* Store n sums of output o, of positions from number p of a block on, which has so many columns and begins at y. */
static inline void NAME(oic_conv_store)(const NAME(oic_conv_view) *v, uint32_t *sum, ptrdiff_t n, ptrdiff_t o, W_T *y, ptrdiff_t p,
                                        ptrdiff_t columns)
{
    const int whole = columns == v->a->out_width; /* rows lie one behind the other */
#if defined(OIC_REQUANTIZES)
    if (whole && sizeof *y == 1 && oic_requantized_to_bytes(&v->a->by, o, v->within)) {
        oic_requantized_bytes(&v->a->by, sum, n, o, v->within, W_LOW < 0, (uint8_t *)(void *)(y + p));
        return;
    }
#endif
    NAME(oic_conv_results)(v, sum, n, o);
    for (ptrdiff_t e = 0, m; e < n; e += m) {
        const ptrdiff_t column = (p + e) % columns, left = columns - column;
        W_T *restrict const to = y + (p + e) / columns * v->a->out_width + column;
        m = whole || n - e < left ? n - e : left;
        for (ptrdiff_t i = 0; i < m; ++i) {
            W_STORE(to, i, (W_C)sum[e + i]);
        }
    }
}

/* Leave out of n sums, from a column on, those that lie behind the last one; how many that leaves. */
static inline ptrdiff_t NAME(oic_conv_packed)(uint32_t *sum, ptrdiff_t pitch, ptrdiff_t column, ptrdiff_t columns, ptrdiff_t n)
{
    ptrdiff_t kept = 0;
    if (columns == pitch) {
        return n;
    }
    for (ptrdiff_t e = 0, m; e < n; e += m, column = 0) {
        m = pitch - column < n - e ? pitch - column : n - e;
        const ptrdiff_t some = columns - column < m ? columns - column : m;
        for (ptrdiff_t i = 0; i < some; ++i) {
            sum[kept + i] = sum[e + i];
        }
        kept += some > 0 ? some : 0;
    }
    return kept;
}

/* A row with what lies behind it is so much shorter than its registers that rows are computed as one. */
static inline int NAME(oic_conv_short)(const NAME(oic_conv_view) *v, ptrdiff_t columns)
{
    return 4 * v->x.extent <= 3 * ((columns + OIC_WIDTH - 1) / OIC_WIDTH * OIC_WIDTH);
}

/* Some output channels from o on in a block of so many short rows, as many at a time as are on the stack. */
OIC_LOOP void NAME(oic_conv_short_rows)(const NAME(oic_conv_view) *v, const uint32_t *weights, const uint32_t *start, W_T *y,
                                        ptrdiff_t o, ptrdiff_t channels, ptrdiff_t rows, ptrdiff_t columns)
{
    const ptrdiff_t plane = v->a->out_height * v->a->out_width, wide = v->x.extent, most = ROW * OIC_WIDTH;
    for (ptrdiff_t r = 0; r < channels; ++r) {
        const oic_words_lines l = {.x = weights + r * v->words, .at = v->at, .n = v->words, .start = start[r]};
        for (ptrdiff_t i = 0, m; i < rows; i += m) {
            uint32_t sum[SPAN + OIC_WIDTH];
            m = rows - i < SPAN / wide ? rows - i : SPAN / wide;
            const ptrdiff_t n = (m - 1) * wide + columns;
            for (ptrdiff_t e = 0; e < n; e += most) {
                oic_words_row(&l, v->planes + i * wide + e, n - e < most ? n - e : most, sum + e);
            }
            const ptrdiff_t kept = NAME(oic_conv_packed)(sum, wide, 0, columns, n);
            NAME(oic_conv_store)(v, sum, kept, o + r, y + r * plane, i * columns, columns);
        }
    }
}

/* Some output channels from o on in a block of so many rows, one row after the other, or two and two. */
static inline void NAME(oic_conv_rows)(const NAME(oic_conv_view) *v, const uint32_t *weights, const uint32_t *start, W_T *y,
                                       ptrdiff_t o, ptrdiff_t channels, ptrdiff_t rows, ptrdiff_t columns)
{
    const ptrdiff_t plane = v->a->out_height * v->a->out_width, most = ROW * OIC_WIDTH;
    const ptrdiff_t apart = v->y.stride / v->y.dilation * v->x.taps;
    const int pairs = PAIRS && v->y.stride % v->y.dilation == 0 && 2 * columns <= SPAN;
    for (ptrdiff_t r = 0; r < channels; ++r) {
        const oic_words_lines l = {
            .x = weights + r * v->words, .at = v->at, .n = v->words, .apart = apart < v->words ? apart : v->words,
            .below = v->x.extent, .start = start[r],
        };
        uint32_t sum[PAIRS ? 2 * SPAN + OIC_WIDTH : SPAN + ROW * OIC_WIDTH];
        ptrdiff_t held = 0, stored = 0;
        for (ptrdiff_t i = 0, e = 0; i < rows;) {
            const uint32_t *const from = v->planes + i * v->x.extent + e;
            if (pairs && i + 2 <= rows) {
                oic_words_two_rows(&l, from, columns, sum + held);
                held += 2 * columns;
                i += 2;
            } else {
                const ptrdiff_t n = columns - e < most ? columns - e : most;
                oic_words_row(&l, from, n, sum + held);
                held += n;
                e += n;
                if (e == columns) {
                    e = 0;
                    ++i;
                }
            }
            if (held >= SPAN || stored + held == rows * columns) {
                NAME(oic_conv_store)(v, sum, held, o + r, y + r * plane, stored, columns);
                stored += held;
                held = 0;
            }
        }
    }
}

/* Whether windows are of the only row, not of padding above it, with the same places wherever they begin; else of planes. */
static inline int NAME(oic_conv_is_row)(const ARGS(oic_conv_planes) *a)
{
    return a->height == 1 && a->taps_y == 1 && a->out_height == 1 && a->padding_y == 0;
}

/* Whether words are made in registers: those of NEAR registers of positions of a row of x, or of a plane and a number that is 0, lie
   among as many numbers as there are places for, of which work has NEARS times as many registers as a position has words. */
static inline int NAME(oic_conv_is_near)(const NAME(oic_conv_view) *v)
{
    const ARGS(oic_conv_planes) *const a = v->a;
    const ptrdiff_t some = a->out_width < NEAR * OIC_WIDTH ? a->out_width : NEAR * OIC_WIDTH;
    const ptrdiff_t reach = (some - 1) * a->stride_x + (v->x.taps * OIC_WORD - 1) * a->dilation_x + 1;
    if (!a->along || v->inputs != 1 || v->outputs != 1 || a->rows != a->out_height || a->columns != a->out_width) {
        return 0;
    }
    return NAME(oic_conv_is_row)(a) ? oic_words_are_near(reach)
                                    : a->out_height * a->out_width <= NEARS * OIC_WIDTH && oic_words_are_near(a->height * a->width + 1);
}

/* The numbers that are at least 0 and less than n. */
static inline oic_mask NAME(oic_conv_within)(oic_register_i32 v, int32_t n)
{
    return oic_mask_and(oic_register_less_i32(oic_register_of_i32(-1), v), oic_register_less_i32(v, oic_register_of_i32(n)));
}

/* to[words][4], a byte a number: where n positions from p on find the numbers of their words, or, where there are none, LAST. */
OIC_LOOP void NAME(oic_conv_places)(const NAME(oic_conv_view) *v, ptrdiff_t p, ptrdiff_t n, uint32_t *to)
{
    const ARGS(oic_conv_planes) *const a = v->a;
    const int row = NAME(oic_conv_is_row)(a);
    const int32_t high = row ? 1 : (int32_t)a->height, wide = row ? LAST : (int32_t)a->width;
    ptrdiff_t oy = p / a->out_width, ox = p % a->out_width;
    for (ptrdiff_t i = 0; i < n; i += OIC_WIDTH) {
        int32_t top[OIC_WIDTH] = {0}, left[OIC_WIDTH] = {0};
        for (ptrdiff_t l = 0; l < OIC_WIDTH && i + l < n; ++l) {
            top[l] = row ? 0 : (int32_t)(oy * a->stride_y - a->padding_y);
            left[l] = (int32_t)(ox * a->stride_x - (row ? 0 : a->padding_x));
            ox = ox + 1 < a->out_width ? ox + 1 : 0;
            oy += ox == 0;
        }
        for (ptrdiff_t k = 0; k < v->each / OIC_WORD; ++k) {
            const int32_t down = (int32_t)(k / v->x.taps * a->dilation_y), along = (int32_t)(k % v->x.taps * v->x.dilation);
            const oic_register_i32 y = oic_register_load_i32(top) + down, first = oic_register_load_i32(left) + along;
            const oic_mask met = NAME(oic_conv_within)(y, high);
            oic_register_u32 word = oic_register_of_u32(0u);
            for (int32_t b = 0; b < OIC_WORD; ++b) {
                const oic_register_i32 x = first + b * (int32_t)a->dilation_x;
                const oic_register_u32 at = oic_register_unsigned(y * wide + x), none = oic_register_of_u32((uint32_t)LAST);
                word |= oic_register_select_u32(oic_mask_and(met, NAME(oic_conv_within)(x, wide)), at, none) << (uint32_t)(8 * b);
            }
            memcpy(to + (k * NEAR + i / OIC_WIDTH) * OIC_WIDTH, &word, sizeof word);
        }
    }
}

/* n positions of channel c, from number `first` of a row of so many numbers of x on, with their places; from y on. */
OIC_INLINE void NAME(oic_conv_some)(const NAME(oic_conv_view) *v, int count, ptrdiff_t c, const uint32_t *places, const T *x,
                                    ptrdiff_t size, ptrdiff_t first, W_T *y, ptrdiff_t n)
{
    const ARGS(oic_conv_planes) *const a = v->a;
    oic_register_u32 sums[NEAR];
    uint32_t sum[NEAR * OIC_WIDTH];
    oic_words_near(count, a->w + c * v->each, v->each / OIC_WORD, places, x, size, first,
                   a->b != NULL ? (uint32_t)B_LOAD(a->b, c) : 0u, sums);
#if defined(OIC_REQUANTIZES)
    if (sizeof *y == 1 && oic_requantized_to_bytes(&a->by, c, v->within)) {
        const int32_t multiplier = a->by.multiplier[c * a->by.each], zero = oic_wrap_i32(v->within.zero);
        oic_requantized_some(count, sums, n, multiplier, a->by.shift[c * a->by.each], zero, W_LOW < 0, (uint8_t *)(void *)y);
        return;
    }
#endif
    memcpy(sum, sums, (size_t)count * sizeof *sums);
    NAME(oic_conv_results)(v, sum, n, c);
    for (ptrdiff_t i = 0; i < n; ++i) {
        W_STORE(y, i, (W_C)sum[i]);
    }
}

/* Planes first..end-1, which are all of their channels, with one output each. */
static inline void NAME(oic_conv_near)(const NAME(oic_conv_view) *v, ptrdiff_t first, ptrdiff_t end, uint32_t *places)
{
    const ARGS(oic_conv_planes) *const a = v->a;
    const int row = NAME(oic_conv_is_row)(a);
    const ptrdiff_t size = a->height * a->width, outputs = a->out_height * a->out_width, some = NEAR * OIC_WIDTH;
    const ptrdiff_t each = row ? 0 : v->each / OIC_WORD * some;
    for (ptrdiff_t p = 0; p < (row && outputs > some ? some : outputs); p += some) {
        NAME(oic_conv_places)(v, p, outputs - p < some ? outputs - p : some, places + p / some * each);
    }
    for (ptrdiff_t plane = first, c = first % a->channels; plane < end; ++plane, c = c + 1 < a->channels ? c + 1 : 0) {
        const T *const x = a->x + plane * size;
        W_T *y = a->y + plane * outputs;
        const uint32_t *from = places;
        ptrdiff_t at = row ? -a->padding_x : 0;
        for (ptrdiff_t left = outputs; left > 0; left -= some, y += some, from += each, at += row ? some * a->stride_x : 0) {
            switch ((left - 1) / OIC_WIDTH) {
            case 2: NAME(oic_conv_some)(v, 3, c, from, x, size, at, y, left); break;
            case 1: NAME(oic_conv_some)(v, 2, c, from, x, size, at, y, left); break;
            case 0: NAME(oic_conv_some)(v, 1, c, from, x, size, at, y, left); break;
            default: NAME(oic_conv_some)(v, NEAR, c, from, x, size, at, y, left < some ? left : some); break;
            }
        }
    }
}

/* to, in the order of w, = the window that a position whose first taps lie at (top, left) of image n and group g sees. */
static inline void NAME(oic_conv_window)(const NAME(oic_conv_view) *v, ptrdiff_t n, ptrdiff_t g, ptrdiff_t top, ptrdiff_t left,
                                         int8_t *restrict to)
{
    const ARGS(oic_conv_planes) *const a = v->a;
    const T *const x = a->x + (n * a->channels + g * v->inputs) * a->height * a->width;
    const ptrdiff_t deep = a->along ? 1 : FOUR, wide = a->along ? FOUR : 1; /* of a four */
    for (ptrdiff_t c = 0; c < v->inputs; c += deep) {
        for (ptrdiff_t ky = 0; ky < a->taps_y; ++ky) {
            const ptrdiff_t iy = top + ky * a->dilation_y;
            for (ptrdiff_t kx = 0; kx < a->taps_x; kx += wide, to += FOUR) {
                for (ptrdiff_t i = 0; i < FOUR; ++i) {
                    const ptrdiff_t channel = a->along ? c : c + i, tap = a->along ? kx + i : kx, ix = left + tap * a->dilation_x;
                    const int inside = iy >= 0 && iy < a->height && ix >= 0 && ix < a->width;
                    to[i] = inside && channel < v->inputs && tap < a->taps_x ? x[(channel * a->height + iy) * a->width + ix] : (T)0;
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
    const ptrdiff_t K = v->each, plane = a->out_height * a->out_width;
    for (ptrdiff_t m; o < end; o += m) {
        uint32_t sum[OIC_BYTE_ROWS] = {0};
        m = end - o < OIC_BYTE_ROWS ? 1 : OIC_BYTE_ROWS;
        oic_byte_rows(sum, window, a->w + o * K, m == 1 ? 0 : K, K); /* of one row all are its sum */
        for (ptrdiff_t r = 0; r < m; ++r) {
            const uint32_t more = a->b != NULL ? (uint32_t)B_LOAD(a->b, o + r) : 0u;
            sum[r] = sum[r] + more;
            NAME(oic_conv_results)(v, sum + r, 1, o + r);
            W_STORE(a->y, (n * a->outputs + o + r) * plane + p, (W_C)sum[r]);
        }
    }
}

/* Taps that class f of positions meets. */
static inline ptrdiff_t NAME(oic_conv_met)(const oic_conv_axis *axis, ptrdiff_t f)
{
    ptrdiff_t met = 0, phase;
    for (ptrdiff_t k = 0; k < axis->taps; ++k) {
        met += oic_conv_tap(axis, f, k, &phase) >= 0;
    }
    return met;
}

/* to = n sums of output o as they are stored. */
static inline void NAME(oic_conv_stored)(const NAME(oic_conv_view) *v, uint32_t *sum, ptrdiff_t n, ptrdiff_t o, W_T *restrict to)
{
#if defined(OIC_REQUANTIZES)
    if (sizeof *to == 1 && oic_requantized_to_bytes(&v->a->by, o, v->within)) {
        oic_requantized_bytes(&v->a->by, sum, n, o, v->within, W_LOW < 0, (uint8_t *)(void *)to);
        return;
    }
#endif
    NAME(oic_conv_results)(v, sum, n, o);
    for (ptrdiff_t i = 0; i < n; ++i) {
        W_STORE(to, i, (W_C)sum[i]);
    }
}

/* Positions of a class in a row from a column on, of at most m, where it has `wide`. */
static inline ptrdiff_t NAME(oic_conv_left)(ptrdiff_t wide, ptrdiff_t column, ptrdiff_t m)
{
    return wide - column < m ? wide - column : m;
}

/* Store n results at positions from number p of a block on, which has so many columns and begins at y: those of a row `apart`, rows
   `down`.  A row has as many as wide[0] says; where that is not NULL, `beside` are results of the next class, of which a row has
   wide[1], as many or one less. */
static inline void NAME(oic_conv_scatter)(const W_T *restrict from, const W_T *restrict beside, ptrdiff_t n, ptrdiff_t p, ptrdiff_t columns,
                                          const ptrdiff_t *wide, W_T *y, ptrdiff_t apart, ptrdiff_t down)
{
    for (ptrdiff_t e = 0, m; e < n; e += m) {
        const ptrdiff_t column = (p + e) % columns;
        W_T *restrict const to = y + (p + e) / columns * down + column * apart;
        m = NAME(oic_conv_left)(columns, column, n - e);
        const ptrdiff_t all = NAME(oic_conv_left)(wide[0], column, m);
        ptrdiff_t i = 0;
        if (beside != NULL) {
            for (const ptrdiff_t both = NAME(oic_conv_left)(wide[1], column, m); i < both; ++i) {
                to[2 * i] = from[e + i];
                to[2 * i + 1] = beside[e + i];
            }
        }
        for (; i < all; ++i) {
            to[i * apart] = from[e + i];
        }
    }
}

/* Outputs o0..o1-1 of group g of image n in a block of rows and columns of positions of each class, from (y0, x0) on, at most.  Of two
   classes of columns, results are stored together. */
OIC_LOOP void NAME(oic_conv_classes)(const NAME(oic_conv_view) *v, ptrdiff_t n, ptrdiff_t g, ptrdiff_t o0, ptrdiff_t o1, ptrdiff_t y0,
                                     ptrdiff_t rows, ptrdiff_t x0, ptrdiff_t columns)
{
    const ARGS(oic_conv_planes) *const a = v->a;
    const ptrdiff_t plane = a->out_height * a->out_width, fours = (v->inputs + FOUR - 1) / FOUR, rest = v->inputs / FOUR * FOUR;
    const ptrdiff_t deep = rest / OIC_WORD + (rest < v->inputs ? NAME(oic_conv_words)(v->inputs, rest) : 0); /* words of a tap */
    const ptrdiff_t down = v->y.classes * a->out_width, apart = v->x.classes, beside = apart == 2 ? 2 : 1;
    const int32_t *at = v->at;
    const T *w = a->w;
    for (ptrdiff_t fy = 0; fy < v->y.classes; ++fy) {
        const ptrdiff_t met = NAME(oic_conv_met)(&v->y, fy), last = oic_conv_positions(&v->y, fy) - y0;
        const ptrdiff_t high = rows < last ? rows : last, positions = high > 0 ? (high - 1) * v->lanes.pitch + columns : 0;
        for (ptrdiff_t fx = 0; fx < apart; fx += beside) {
            ptrdiff_t taps[2] = {0}, wide[2] = {0}, step[2] = {0};
            for (ptrdiff_t i = 0; i < beside; ++i) {
                const ptrdiff_t here = oic_conv_positions(&v->x, fx + i) - x0;
                taps[i] = met * NAME(oic_conv_met)(&v->x, fx + i);
                wide[i] = here < columns ? here : columns;
            }
            for (ptrdiff_t o = o0, m; o < o1 && positions > 0; o += m) {
                const ptrdiff_t tiles = (o1 - o + OIC_WORD_ROWS - 1) / OIC_WORD_ROWS, to = g * v->outputs + o;
                W_T *const y = a->y + ((n * a->outputs + to) * a->out_height + fy + y0 * v->y.classes) * a->out_width + fx + x0 * apart;
                uint32_t start[2][OIC_WORD_ROWS], sum[2][OIC_WORD_ROWS * SPAN];
                const uint32_t *weights[2] = {NULL, NULL};
                m = (o1 - o + tiles - 1) / tiles; /* as even as can be */
                for (ptrdiff_t i = 0; i < beside; ++i) {
                    weights[i] = NAME(oic_conv_weights)(v, w + i * fours * FOUR * taps[0], fours * FOUR * taps[i], taps[i], deep * taps[i],
                                                        to, m, start[i], v->weights + i * OIC_WORD_ROWS * deep * taps[0], &step[i]);
                }
                for (ptrdiff_t p = 0; p < positions; p += v->lanes.span) {
                    const ptrdiff_t some = positions - p < v->lanes.span ? positions - p : v->lanes.span;
                    const ptrdiff_t row = p / v->lanes.pitch, column = p % v->lanes.pitch;
                    const uint32_t *const from = v->planes + row * v->x.extent + column;
                    const ptrdiff_t first = row * columns + (column < columns ? column : columns);
                    int32_t few[OIC_CONV_PLACES];
                    const int32_t *const place = oic_conv_places(&v->lanes, some, few);
                    for (ptrdiff_t i = 0; i < beside; ++i) {
                        oic_words_sum(sum[i], SPAN, m, weights[i], step[i], from, at + i * deep * taps[0], deep * taps[i], start[i],
                                      place, some);
                    }
                    for (ptrdiff_t r = 0; r < m; ++r) {
                        W_T stored[2][SPAN];
                        ptrdiff_t kept = 0;
                        for (ptrdiff_t i = 0; i < beside; ++i) {
                            kept = NAME(oic_conv_packed)(sum[i] + r * SPAN, v->lanes.pitch, column, columns, some);
                            NAME(oic_conv_stored)(v, sum[i] + r * SPAN, kept, to + r, stored[i]);
                        }
                        NAME(oic_conv_scatter)(stored[0], beside == 2 ? stored[1] : NULL, kept, first, columns, wide, y + r * plane, apart,
                                               down);
                    }
                }
            }
            at += deep * (taps[0] + taps[1]);
            w += fours * FOUR * (taps[0] + taps[1]);
        }
    }
}

/* Units first..end-1: OIC_CONV_OUTPUTS output channels of a group, or fewer, in a block of an image. */
static inline void NAME(oic_conv_in_planes)(const ARGS(oic_conv_planes) *a, int transposed, ptrdiff_t first, ptrdiff_t end,
                                            int worker)
{
    NAME(oic_conv_view) v = {
        .a = a, .inputs = a->channels / a->groups, .outputs = a->outputs / a->groups,
        .y = {a->height, a->out_height, a->taps_y, a->stride_y, a->padding_y, a->dilation_y, transposed, .count = a->rows},
        .x = {a->width, a->out_width, a->taps_x, a->stride_x, a->padding_x, a->dilation_x, transposed, .count = a->columns},
    };
    v.each = a->taps_y * FOUR *
             (a->along ? v.inputs * ((a->taps_x + FOUR - 1) / FOUR) : (v.inputs + FOUR - 1) / FOUR * a->taps_x);
    if (a->along) {
        v.x.taps = (a->taps_x + OIC_WORD - 1) / OIC_WORD;
        v.x.dilation = OIC_WORD * a->dilation_x;
    }
    oic_conv_axis_set(&v.y);
    oic_conv_axis_set(&v.x);
    v.size = v.y.extent * v.x.extent;
#if defined(OIC_REQUANTIZES)
    v.within = oic_requantized_within((int64_t)W_LOW, (int64_t)W_HIGH, a->by.zero_point);
#endif
    v.planes = oic_own(a->work, worker, (size_t)a->room);
    if (!transposed && NAME(oic_conv_is_near)(&v)) {
        NAME(oic_conv_near)(&v, first, end, v.planes);
        return;
    }
    ptrdiff_t *const held = oic_conv_held(v.planes, a->room);
    uint32_t *const spare = v.planes + NAME(oic_conv_deep)(&v) * v.y.phases * v.x.phases * v.size;
    oic_words_zero(spare, SPARE);
    v.at = (int32_t *)(void *)(spare + SPARE);
    int32_t *behind = v.at;
    for (ptrdiff_t f = 0; f < v.y.classes * v.x.classes; ++f) {
        behind = NAME(oic_conv_table)(&v, f / v.x.classes, f % v.x.classes, behind);
    }
    v.words = behind - v.at;
    v.weights = (uint32_t *)(void *)behind;
    const ptrdiff_t parts = oic_conv_parts(v.outputs), plane = a->out_height * a->out_width;
    const ptrdiff_t blocks_y = oic_conv_blocks(&v.y), blocks_x = oic_conv_blocks(&v.x);
    for (ptrdiff_t unit = first; unit < end; ++unit) {
        const ptrdiff_t part = unit % parts, block = unit / parts, at_y = block / blocks_x % blocks_y;
        const ptrdiff_t x0 = block % blocks_x * a->columns, g = block / blocks_x / blocks_y % a->groups;
        const ptrdiff_t n = block / blocks_x / blocks_y / a->groups, y0 = oic_conv_start(&v.y, blocks_y, at_y);
        const ptrdiff_t rows = oic_conv_start(&v.y, blocks_y, at_y + 1) - y0;
        const ptrdiff_t along = oic_conv_positions(&v.x, 0) - x0, columns = along < a->columns ? along : a->columns;
        const ptrdiff_t o1 = v.outputs * (part + 1) / parts;
        if (!transposed && a->rows * a->columns < FEW) {
            for (ptrdiff_t i = 0; i < rows * columns; ++i) {
                const ptrdiff_t oy = y0 + i / columns, ox = x0 + i % columns, o0 = v.outputs * part / parts;
                int8_t *const window = (int8_t *)(void *)v.weights;
                NAME(oic_conv_window)(&v, n, g, oy * a->stride_y - a->padding_y, ox * a->stride_x - a->padding_x, window);
                NAME(oic_conv_outputs)(&v, window, n, g * v.outputs + o0, g * v.outputs + o1, oy * a->out_width + ox);
            }
            continue;
        }
        if (*held != block + 1) {
            NAME(oic_conv_fill)(&v, n, g, y0, rows, x0);
            *held = block + 1;
        }
        if (transposed || v.inputs > 1) {
            oic_conv_lanes_set(&v.lanes, columns, v.x.extent, SPAN, OIC_LANES);
        }
        if (transposed) {
            NAME(oic_conv_classes)(&v, n, g, v.outputs * part / parts, o1, y0, rows, x0, columns);
            continue;
        }
        const ptrdiff_t positions = v.inputs == 1 ? 0 : (rows - 1) * v.lanes.pitch + columns;
        for (ptrdiff_t o = v.outputs * part / parts, m; o < o1; o += m) {
            const ptrdiff_t tiles = (o1 - o + OIC_WORD_ROWS - 1) / OIC_WORD_ROWS, to = g * v.outputs + o;
            W_T *const y = a->y + ((n * a->outputs + to) * a->out_height + y0) * a->out_width + x0;
            uint32_t start[OIC_WORD_ROWS], sum[OIC_WORD_ROWS * SPAN];
            m = (o1 - o + tiles - 1) / tiles; /* as even as can be */
            ptrdiff_t apart;
            const uint32_t *const weights = NAME(oic_conv_weights)(&v, a->w, v.each, a->taps_y * a->taps_x, v.words, to, m, start,
                                                                   v.weights, &apart);
            if (v.inputs == 1) {
                if (NAME(oic_conv_short)(&v, columns)) {
                    NAME(oic_conv_short_rows)(&v, weights, start, y, to, m, rows, columns);
                } else {
                    NAME(oic_conv_rows)(&v, weights, start, y, to, m, rows, columns);
                }
                continue;
            }
            for (ptrdiff_t p = 0; p < positions; p += v.lanes.span) {
                const ptrdiff_t some = positions - p < v.lanes.span ? positions - p : v.lanes.span;
                const ptrdiff_t row = p / v.lanes.pitch, column = p % v.lanes.pitch;
                const uint32_t *const from = v.planes + row * v.x.extent + column;
                int32_t few[OIC_CONV_PLACES];
                oic_words_sum(sum, SPAN, m, weights, apart, from, v.at, v.words, start,
                              oic_conv_places(&v.lanes, some, few), some);
                const ptrdiff_t at = row * columns + (column < columns ? column : columns);
                for (ptrdiff_t r = 0; r < m; ++r) {
                    const ptrdiff_t kept = NAME(oic_conv_packed)(sum + r * SPAN, v.lanes.pitch, column, columns, some);
                    NAME(oic_conv_store)(&v, sum + r * SPAN, kept, to + r, y + r * plane, at, columns);
                }
            }
        }
    }
}

/* How many units there are, of so many positions of a class. */
static inline ptrdiff_t NAME(oic_conv_units)(const ARGS(oic_conv_planes) *a, ptrdiff_t down, ptrdiff_t along)
{
    const ptrdiff_t blocks_y = (down + a->rows - 1) / a->rows, blocks_x = (along + a->columns - 1) / a->columns;
    return a->batch * a->groups * oic_conv_parts(a->outputs / a->groups) * blocks_y * blocks_x;
}

static inline void NAME(oic_conv_planes_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    NAME(oic_conv_in_planes)(args, 0, first, end, worker);
}

static inline void NAME(oic_conv_planes)(const ARGS(oic_conv_planes) *a)
{
    oic_conv_begin(a->work, 1, a->room);
    NAME(oic_conv_in_planes)(a, 0, 0, NAME(oic_conv_units)(a, a->out_height, a->out_width), 0);
}

static inline void NAME(oic_conv_transpose_planes_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    NAME(oic_conv_in_planes)(args, 1, first, end, worker);
}

static inline void NAME(oic_conv_transpose_planes)(const ARGS(oic_conv_transpose_planes) *a)
{
    const ptrdiff_t down = (a->out_height + a->stride_y - 1) / a->stride_y;
    const ptrdiff_t along = (a->out_width + a->stride_x - 1) / a->stride_x;
    oic_conv_begin(a->work, 1, a->room);
    NAME(oic_conv_in_planes)(a, 1, 0, NAME(oic_conv_units)(a, down, along), 0);
}

#if defined(OIC_POOL_H)
/* The same two, divided among threads. */
static inline void NAME(oic_conv_planes_divided)(oic_pool *pool, int most, ptrdiff_t units, int64_t work,
                                                 const ARGS(oic_conv_planes) *a)
{
    oic_conv_begin(a->work, most, a->room);
    oic_divide(pool, most, units, work, NAME(oic_conv_planes_part), a);
}

static inline void NAME(oic_conv_transpose_planes_divided)(oic_pool *pool, int most, ptrdiff_t units, int64_t work,
                                                           const ARGS(oic_conv_transpose_planes) *a)
{
    oic_conv_begin(a->work, most, a->room);
    oic_divide(pool, most, units, work, NAME(oic_conv_transpose_planes_part), a);
}
#endif

#undef FEW
#undef FOUR
#undef LAST
#undef NEAR
#undef NEARS
#undef PAIRS
#undef ROW
#undef SPAN
#undef SPARE
#include "end.h"
