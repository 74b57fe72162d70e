/* oic_conv_planes_X_W_B: oic_conv with constant w[outputs, channels / groups * taps_y * taps_x], all finite.
   oic_conv_transpose_planes_X_W_B: oic_conv_transpose with such weights, where those of an output lie class by class of the
   positions that meet them (common/conv_axis.h), and in a class by input channels.  Where `given`, w is as these have it, and may
   have infinities and NaN: then they are looked for before, and if there are some, zeros of the padding could meet them, and
   positions are computed one by one.

   A lane is a position of the result; where few outputs have one input channel, rows are computed one by one, or in pairs, with
   as few loads and stores as that needs, unless they fill less than half of a register.  A block of x is copied into planes,
   one for each input channel of a group, with zeros for the padding; where the stride is above 1, one for each phase of it that
   taps meet.  In planes, what neighbouring positions meet are neighbours, also behind the end of a row, where there is nothing
   to store.  Planes are of the type that is computed in; narrower weights are widened, those of a tile at a time, which are
   then used for all positions of a block.

   A block is at most `rows` rows of `columns` positions of a class; `room` bytes of work have its planes, for each product of a
   position where its element of x lies, and which block that is (common/conv_axis.h).

   Order: oic_conv's: a chunk begins at +0 and is added to +0, so that zeros of the padding times finite weights change
   nothing.  Stack: the sums of OIC_CONV_LANES positions. */
#include "common/conv_axis.h"
#include "common/conv_lanes.h"
#include "common/conv_range.h"
#include "common/conv_tiles.h"
#include "common/own.h"
#include "common/short_rows.h"
#include "element.h"

#include "common/conv_planes.inc.h"

typedef ARGS(oic_conv_planes) ARGS(oic_conv_transpose_planes);

#define WIDTH ((ptrdiff_t)(sizeof(MATH(oic_register)) / sizeof(C)))
#define TILE MATH(oic_tile)
#define TILE_ROWS MATH(oic_tile_rows)
#define ROW 8   /* registers of sums of one row, */
#define PAIR 4  /* and of each of two */
#define FEW 3   /* channels of one input that go row by row: more are a tile */
#define SPARE (OIC_LANES * OIC_TILE_PANELS) /* elements behind the planes that lanes without a position may meet */
#if OIC_IS_ONE(OIC_PASTE(OIC_WIDENS_, OIC_PASTE(OIC_X, OIC_PASTE(_, OIC_COMPUTED))))
#define WIDENS 1 /* registers are loaded from, and stored to, narrower elements */
#else
#define WIDENS 0
#endif

/* A call.
   inputs, outputs  channels of a group
   products         of an output, of all classes of positions together
   planes           [inputs, phases of y, phases of x, extent of y, extent of x]
   at               for each product of a class, where the element of x lies for its position 0; the classes one after the other
   ends             for each class, how many of its products lie before the end of each chunk
   filters          [OIC_CONV_FILTERS, products]: weights of a tile, if they are not used where they lie; else NULL
   taps             of the window, those of a class after those of another, if filters are put into that order; else NULL */
typedef struct {
    const ARGS(oic_conv_planes) *a;
    oic_conv_axis y, x;
    ptrdiff_t inputs, outputs, products, chunks, size;
    C *planes, *filters;
    int32_t *at, *ends, *taps;
} NAME(oic_conv_view);

/* What rows of a channel are computed of.
   w, at, n  products, as above
   apart     products of a row that lie before those that it has in common with the next row, at most n
   below     between rows of a plane
   down      between rows of y
   more      the channel's element of b */
typedef struct {
    const C *w;
    const int32_t *at;
    ptrdiff_t n, apart, below, down;
    C more;
} NAME(oic_conv_lines);

/* How many of the first n taps of a window a class meets; to, if it is not NULL, = where they lie in input channel 0; and taps,
   which they are. */
static inline int32_t NAME(oic_conv_met)(const NAME(oic_conv_view) *v, ptrdiff_t f, ptrdiff_t n, int32_t *to, int32_t *taps)
{
    int32_t found = 0;
    for (ptrdiff_t k = 0, ky = 0, kx = 0; k < n; ++k) {
        ptrdiff_t py, px;
        const ptrdiff_t row = oic_conv_tap(&v->y, f / v->x.classes, ky, &py);
        const ptrdiff_t column = oic_conv_tap(&v->x, f % v->x.classes, kx, &px);
        if (row >= 0 && column >= 0) {
            if (to != NULL) {
                to[found] = (int32_t)((py * v->x.phases + px) * v->size + row * v->x.extent + column);
            }
            if (taps != NULL) {
                taps[found] = (int32_t)k;
            }
            ++found;
        }
        kx = kx + 1 < v->x.taps ? kx + 1 : 0;
        ky += kx == 0;
    }
    return found;
}

/* Where the elements of x lie that the positions of classes meet. */
OIC_LOOP void NAME(oic_conv_tables)(const NAME(oic_conv_view) *v)
{
    const ptrdiff_t window = v->y.taps * v->x.taps, planes = v->y.phases * v->x.phases;
    int32_t *at = v->at, *end = v->ends, *taps = v->taps;
    for (ptrdiff_t f = 0; f < v->y.classes * v->x.classes; ++f) {
        const int32_t met = NAME(oic_conv_met)(v, f, window, at, taps);
        for (ptrdiff_t i = met; i < v->inputs * met; ++i) {
            at[i] = at[i - met] + (int32_t)(planes * v->size);
        }
        for (ptrdiff_t k = OIC_CHUNK; k < v->products + OIC_CHUNK; k += OIC_CHUNK) {
            const ptrdiff_t last = k < v->products ? k : v->products;
            *end++ = (int32_t)(last / window) * met + NAME(oic_conv_met)(v, f, last % window, NULL, NULL);
        }
        at += v->inputs * met;
        taps += taps != NULL ? met : 0;
    }
}

/* to = n elements. */
OIC_INLINE void NAME(oic_conv_take)(C *restrict to, const T *restrict from, ptrdiff_t n)
{
#if X_IS_COMPUTED
    MATH(oic_row_copy)(to, from, n);
#else
#if WIDENS
    if (n >= WIDTH) {
        for (ptrdiff_t i = 0; i < n; i += WIDTH) {
            const ptrdiff_t at = i + WIDTH <= n ? i : n - WIDTH; /* the last ones, perhaps twice */
            MATH(oic_register_store)(to + at, OIC_PASTE(oic_row_, OIC_X)(from + at));
        }
        return;
    }
#endif
    for (ptrdiff_t i = 0; i < n; ++i) {
        to[i] = LOAD(from, i);
    }
#endif
}

/* to = a register of numbers, as elements. */
OIC_INLINE void NAME(oic_conv_give)(T *to, MATH(oic_register) v)
{
#if X_IS_COMPUTED
    MATH(oic_register_store)(to, v);
#elif WIDENS
    OIC_PASTE(oic_register_store_, OIC_X)(to, v);
#else
    C all[WIDTH];
    MATH(oic_register_store)(all, v);
    for (ptrdiff_t i = 0; i < WIDTH; ++i) {
        STORE(to, i, all[i]);
    }
#endif
}

/* filters = those of m outputs from o on, n products of a class behind k of others. */
OIC_LOOP void NAME(oic_conv_laid)(const NAME(oic_conv_view) *v, ptrdiff_t o, ptrdiff_t m, ptrdiff_t k, ptrdiff_t n)
{
    const ptrdiff_t window = v->y.taps * v->x.taps, met = n / v->inputs, g = o / v->outputs;
    if (v->taps == NULL) {
        for (ptrdiff_t r = 0; r < m; ++r) {
            NAME(oic_conv_take)(v->filters + r * v->products, v->a->w + (o + r) * v->products + k, n);
        }
        return;
    }
    for (ptrdiff_t c = 0; c < v->inputs; ++c) {
        const T *const from = v->a->w + ((g * v->inputs + c) * v->outputs + o % v->outputs) * window;
        for (ptrdiff_t i = 0; i < met; ++i) {
            const ptrdiff_t tap = v->taps[k / v->inputs + i];
            for (ptrdiff_t r = 0; r < m; ++r) {
                v->filters[r * v->products + c * met + i] = LOAD(from, r * window + tap);
            }
        }
    }
}

/* to = n zeros, mostly few, for which a call or a loop on registers is too much. */
OIC_INLINE void NAME(oic_conv_clear)(C *restrict to, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < OIC_ROW_FEW; ++i) {
        if (i < n) {
            to[i] = (C)0;
        }
    }
    for (ptrdiff_t i = OIC_ROW_FEW; i < n; ++i) {
        to[i] = (C)0;
    }
}

/* to = n zeros; up to a register of what lies behind them, which is written later, becomes 0. */
OIC_INLINE void NAME(oic_conv_between)(C *to, ptrdiff_t n)
{
    MATH(oic_register_store)(to, MATH(oic_register_of)((C)0)); /* mostly all */
    for (ptrdiff_t i = WIDTH; i < n; i += WIDTH) {
        MATH(oic_register_store)(to + i, MATH(oic_register_of)((C)0));
    }
}

/* to = n elements of a row of x of so many: left, left + step and so on; zeros where there are none. */
OIC_INLINE void NAME(oic_conv_phase)(C *restrict to, ptrdiff_t n, const T *restrict x, ptrdiff_t width, ptrdiff_t left,
                                     ptrdiff_t step)
{
    const ptrdiff_t low = oic_conv_first(left, step, 0), first = low < n ? low : n;
    const ptrdiff_t last = oic_conv_last(left, step, width, n), end = last > first ? last : first;
    NAME(oic_conv_clear)(to, first);
    if (step == 1) {
        NAME(oic_conv_take)(to + first, x + left + first, end - first);
    } else if (end - first <= OIC_ROW_FEW) {
        for (ptrdiff_t i = 0; i < OIC_ROW_FEW; ++i) {
            if (i < end - first) {
                to[first + i] = LOAD(x, left + (first + i) * step);
            }
        }
    } else {
        for (ptrdiff_t i = first; i < end; ++i) {
            to[i] = LOAD(x, left + i * step);
        }
    }
    NAME(oic_conv_clear)(to + end, n - end);
}

/* `some` pairs of elements, apart. */
OIC_INLINE void NAME(oic_conv_pairs)(int some, C *restrict even, C *restrict odd, const T *restrict from)
{
#if X_IS_COMPUTED
    MATH(oic_row_pairs)(some, even, odd, from);
#else
    C both[2 * OIC_ROW_PAIRS];
    NAME(oic_conv_take)(both, from, 2 * some);
    MATH(oic_row_pairs)(some, even, odd, both);
#endif
}

/* oic_conv_phase for elements left and left + 1, of a step of 2, of `rows` rows of x, `down` apart; rows of a phase follow each other, and
   those of the second lie `size` behind those of the first.  Where pairs begin and end is the same in all rows. */
static inline void NAME(oic_conv_halves)(C *restrict to, ptrdiff_t size, ptrdiff_t n, ptrdiff_t rows, const T *restrict x, ptrdiff_t down,
                                         ptrdiff_t width, ptrdiff_t left)
{
    const ptrdiff_t below = left < 0 ? (1 - left) / 2 : 0, pairs = width > left ? (width - left) / 2 : 0;
    const ptrdiff_t low = below < n ? below : n, high = pairs < n ? pairs : n, last = high > low ? high : low;
    const int head = width > 0 && left % 2 != 0 && below > 0 && below <= n; /* pairs of which only one is there: the second, */
    const int tail = width > 0 && width > left && (width - left) % 2 != 0 && pairs < n; /* and the first */
    const ptrdiff_t some = last - low >= OIC_ROW_PAIRS ? OIC_ROW_PAIRS : OIC_ROW_FEW;
    for (ptrdiff_t r = 0; r < rows; ++r, to += n, x += down) {
        C *const even = to, *const odd = to + size;
        NAME(oic_conv_clear)(even, low);
        NAME(oic_conv_clear)(odd, low);
        NAME(oic_conv_clear)(even + last, n - last);
        NAME(oic_conv_clear)(odd + last, n - last);
        if (head) {
            odd[low - 1] = LOAD(x, 0);
        }
        if (tail) {
            even[last] = LOAD(x, width - 1);
        }
        if (last - low < OIC_ROW_FEW) {
            for (ptrdiff_t i = low; i < last; ++i) {
                even[i] = LOAD(x, left + 2 * i);
                odd[i] = LOAD(x, left + 2 * i + 1);
            }
            continue;
        }
        for (ptrdiff_t i = low; i < last; i += some) {
            const ptrdiff_t at = i + some <= last ? i : last - some; /* the last ones, perhaps twice */
            if (some == OIC_ROW_PAIRS) {
                NAME(oic_conv_pairs)(OIC_ROW_PAIRS, even + at, odd + at, x + left + 2 * at);
            } else {
                NAME(oic_conv_pairs)(OIC_ROW_FEW, even + at, odd + at, x + left + 2 * at);
            }
        }
    }
}

/* Copy what the block of positions from (y0, x0) on meets of image n and group g, of rows of that many positions. */
static inline void NAME(oic_conv_fill)(const NAME(oic_conv_view) *v, ptrdiff_t n, ptrdiff_t g, ptrdiff_t y0, ptrdiff_t rows,
                                       ptrdiff_t x0)
{
    const ARGS(oic_conv_planes) *const a = v->a;
    const T *const x = a->x + (n * a->channels + g * v->inputs) * a->height * a->width;
    const ptrdiff_t high = v->y.extent - v->y.count + rows, wide = v->x.extent, step = v->x.step;
    const ptrdiff_t left = x0 * step + v->x.low, top = y0 * v->y.step + v->y.low;
    if (left == 0 && step == 1 && wide == a->width && v->y.step == 1 && top >= 0 && top + high <= a->height) {
        for (ptrdiff_t c = 0; c < v->inputs; ++c) { /* rows lie in x as they do in a plane */
            C *const to = v->planes + c * v->size;
#if X_IS_COMPUTED
            memcpy(to, x + (c * a->height + top) * wide, (size_t)(high * wide) * sizeof(C));
#else
            NAME(oic_conv_take)(to, x + (c * a->height + top) * wide, high * wide);
#endif
        }
        return;
    }
    if (step == 1 && v->y.step == 1) { /* rows are copied with zeros around them */
        const ptrdiff_t first = left < 0 ? -left : 0, end = a->width - left < wide ? a->width - left : wide;
        const ptrdiff_t above = top < 0 ? -top : 0, below = a->height - top < high ? a->height - top : high;
        if (first < end && above < below) {
            for (ptrdiff_t c = 0; c < v->inputs; ++c) {
                const T *from = x + (c * a->height + top + above) * a->width + left + first;
                C *to = v->planes + c * v->size;
                NAME(oic_conv_between)(to, above * wide + first);
                to += above * wide + first;
                for (ptrdiff_t r = above; r < below; ++r, from += a->width, to += wide) {
                    const ptrdiff_t between = r + 1 < below ? wide : (high - r) * wide - first;
                    NAME(oic_conv_take)(to, from, end - first);
                    NAME(oic_conv_between)(to + end - first, between - (end - first));
                }
            }
            return;
        }
    }
    for (ptrdiff_t plane = 0; plane < v->inputs * v->y.phases; ++plane) {
        const ptrdiff_t c = plane / v->y.phases, py = plane % v->y.phases;
        const ptrdiff_t from = oic_conv_first(top + py, v->y.step, 0), above = from < high ? from : high; /* rows beyond x are zeros */
        const ptrdiff_t to = oic_conv_last(top + py, v->y.step, a->height, high), below = to > above ? to : above;
        const T *const row = above < below ? x + (c * a->height + top + py + above * v->y.step) * a->width : x;
        C *const first = v->planes + plane * v->x.phases * v->size;
        for (ptrdiff_t px = 0; px < v->x.phases; ++px) {
            NAME(oic_conv_clear)(first + px * v->size, above * wide);
            NAME(oic_conv_clear)(first + px * v->size + below * wide, (high - below) * wide);
        }
        if (step == 2 && v->x.phases == 2) {
            NAME(oic_conv_halves)(first + above * wide, v->size, wide, below - above, row, v->y.step * a->width, a->width, left);
            continue;
        }
        for (ptrdiff_t r = above; r < below; ++r) {
            for (ptrdiff_t px = 0; px < v->x.phases; ++px) {
                NAME(oic_conv_phase)(first + px * v->size + r * wide, wide, row + (r - above) * v->y.step * a->width, a->width, left + px, step);
            }
        }
    }
}

/* to, `step` apart, = n numbers and `more`. */
OIC_INLINE void NAME(oic_conv_row_of)(T *restrict to, ptrdiff_t step, const C *restrict from, ptrdiff_t n, C more)
{
    if (step == 1 && n >= WIDTH) {
        for (ptrdiff_t i = 0; i < n; i += WIDTH) {
            const ptrdiff_t at = i + WIDTH <= n ? i : n - WIDTH; /* the last ones may be stored twice */
            NAME(oic_conv_give)(to + at, MATH(oic_register_load)(from + at) + MATH(oic_register_of)(more));
        }
        return;
    }
    ptrdiff_t i = 0;
#if !X_IS_COMPUTED
    for (; i + WIDTH <= n; i += WIDTH) {
        T some[WIDTH];
        NAME(oic_conv_give)(some, MATH(oic_register_load)(from + i) + MATH(oic_register_of)(more));
        for (ptrdiff_t l = 0; l < WIDTH; ++l) {
            to[(i + l) * step] = some[l];
        }
    }
#endif
    for (; i < n; ++i) {
        STORE(to, i * step, from[i] + more);
    }
}

/* Store n positions from (row, column) of a block on, of so many channels; what lies behind the last column is none. */
static inline void NAME(oic_conv_put)(const NAME(oic_conv_view) *v, const C *sum, ptrdiff_t ld, T *y, const B_T *b,
                                      ptrdiff_t channels, ptrdiff_t row, ptrdiff_t column, ptrdiff_t columns, ptrdiff_t pitch,
                                      ptrdiff_t n)
{
    const ptrdiff_t step = v->x.classes, down = v->y.classes * v->a->out_width, plane = v->a->out_height * v->a->out_width;
    for (ptrdiff_t r = 0; r < channels; ++r) {
        const C *const from = sum + r * ld;
        const C more = b != NULL ? (C)B_LOAD(b, r) : (C)0; /* sums are never -0 */
        T *to = y + r * plane + row * down;
        for (ptrdiff_t e = 0, at = column; e < n; e += pitch - at, at = 0, to += down) {
            const ptrdiff_t left = columns - at;
            NAME(oic_conv_row_of)(to + at * step, step, from + e, left < n - e ? left : n - e, more);
        }
    }
}

/* Ask for where so many channels and panels of positions from (row, column) of a block on will be stored. */
static inline void NAME(oic_conv_ahead)(const NAME(oic_conv_view) *v, const T *y, ptrdiff_t channels, ptrdiff_t row,
                                        ptrdiff_t column, ptrdiff_t panels)
{
    const ptrdiff_t down = v->y.classes * v->a->out_width, plane = v->a->out_height * v->a->out_width;
    const uintptr_t to = (uintptr_t)(const void *)y;
    for (ptrdiff_t r = 0; r < channels; ++r) {
        for (ptrdiff_t p = 0; p < panels; ++p) {
            const ptrdiff_t at = r * plane + row * down + column + p * OIC_LANES;
            OIC_TILE_AHEAD_SUMS((const void *)(to + (uintptr_t)at * sizeof(T)));
        }
    }
}

/* sum += w times registers of x, which lie next to each other, the last one at `last`. */
OIC_INLINE void NAME(oic_conv_tap_sums)(int count, C w, const C *x, ptrdiff_t last, MATH(oic_register) *sum)
{
    const MATH(oic_register) all = MATH(oic_register_of)(w);
    OIC_UNROLLED
    for (int i = 0; i < count; ++i) {
        const ptrdiff_t at = i < count - 1 ? i * WIDTH : last;
        sum[i] = MATH(oic_register_madd)(all, MATH(oic_register_load)(x + at), sum[i]);
    }
}

/* `count` registers of positions of one row, or of two, the last one `last` behind the first: y = all products and `more`.
   What the second row meets at a tap is what the first meets `apart` taps later: it is loaded once for both. */
OIC_INLINE void NAME(oic_conv_registers)(int rows, int count, const NAME(oic_conv_lines) *l, const C *from, ptrdiff_t last, T *y)
{
    MATH(oic_register) sum[2][ROW];
    const ptrdiff_t apart = rows == 2 ? l->apart : 0;
    OIC_UNROLLED
    for (int i = 0; i < count; ++i) {
        sum[0][i] = sum[1][i] = MATH(oic_register_of)((C)0);
    }
    for (ptrdiff_t k = 0; k < apart; ++k) {
        NAME(oic_conv_tap_sums)(count, l->w[k], from + l->at[k], last, sum[0]);
    }
    for (ptrdiff_t k = apart; k < l->n; ++k) {
        const C *const x = from + l->at[k];
        NAME(oic_conv_tap_sums)(count, l->w[k], x, last, sum[0]);
        if (rows == 2) {
            NAME(oic_conv_tap_sums)(count, l->w[k - apart], x, last, sum[1]);
        }
    }
    for (ptrdiff_t k = l->n - apart; k < l->n; ++k) {
        NAME(oic_conv_tap_sums)(count, l->w[k], from + l->below + l->at[k], last, sum[1]);
    }
    OIC_UNROLLED
    for (int r = 0; r < rows; ++r) {
        OIC_UNROLLED
        for (int i = 0; i < count; ++i) { /* added to zero first: -0 becomes 0 */
            const MATH(oic_register) all = (MATH(oic_register_of)((C)0) + sum[r][i]) + MATH(oic_register_of)(l->more);
            NAME(oic_conv_give)(y + r * l->down + (i < count - 1 ? i * WIDTH : last), all);
        }
    }
}

/* The same for all columns, a register of them at least; some of the last ones are computed twice.  `most` registers at once:
   more than PAIR of one row alone. */
OIC_INLINE void NAME(oic_conv_row)(int rows, int most, const NAME(oic_conv_lines) *l, const C *from, ptrdiff_t columns, T *y)
{
    for (ptrdiff_t left = columns; left > 0; left -= most * WIDTH, from += most * WIDTH, y += most * WIDTH) {
        const ptrdiff_t last = (left < most * WIDTH ? left : most * WIDTH) - WIDTH, count = (last + 2 * WIDTH - 1) / WIDTH;
        if (most > PAIR && count > PAIR) {
            switch (count) {
            case 8: NAME(oic_conv_registers)(rows, 8, l, from, last, y); break;
            case 7: NAME(oic_conv_registers)(rows, 7, l, from, last, y); break;
            case 6: NAME(oic_conv_registers)(rows, 6, l, from, last, y); break;
            default: NAME(oic_conv_registers)(rows, 5, l, from, last, y); break;
            }
            continue;
        }
        switch (count) {
        case 4: NAME(oic_conv_registers)(rows, 4, l, from, last, y); break;
        case 3: NAME(oic_conv_registers)(rows, 3, l, from, last, y); break;
        case 2: NAME(oic_conv_registers)(rows, 2, l, from, last, y); break;
        default: NAME(oic_conv_registers)(rows, 1, l, from, last, y); break;
        }
    }
}

/* Row after row, of one input channel and at most a chunk of products, which are too few for tiles; arguments as below. */
static inline void NAME(oic_conv_rows)(const NAME(oic_conv_view) *v, const C *w, const int32_t *at, ptrdiff_t n, T *y, const B_T *b,
                                       ptrdiff_t channels, ptrdiff_t rows, ptrdiff_t columns)
{
    const ptrdiff_t plane = v->a->out_height * v->a->out_width, down = v->y.classes * v->a->out_width;
    const int pairs = !v->y.transposed && v->y.stride % v->y.dilation == 0;
    const ptrdiff_t apart = v->y.stride / v->y.dilation * v->x.taps;
    for (ptrdiff_t r = 0; r < channels; ++r) {
        const NAME(oic_conv_lines) l = {
            .w = w + r * v->products, .at = at, .n = n, .apart = apart < n ? apart : n, .below = v->x.extent, .down = columns < WIDTH ? WIDTH : down,
            .more = b != NULL ? (C)B_LOAD(b, r) : (C)0,
        };
        ptrdiff_t i = 0;
        if (columns < WIDTH) { /* what would be stored behind a row is not its own */
            T row[2 * WIDTH];
            for (ptrdiff_t m; i < rows; i += m) {
                const C *const from = v->planes + i * v->x.extent;
                m = pairs && i + 2 <= rows ? 2 : 1;
                if (m == 2) {
                    NAME(oic_conv_registers)(2, 1, &l, from, 0, row);
                } else {
                    NAME(oic_conv_registers)(1, 1, &l, from, 0, row);
                }
                for (ptrdiff_t j = 0; j < m; ++j) {
#if X_IS_COMPUTED
                    MATH(oic_row_copy)(y + r * plane + (i + j) * down, row + j * WIDTH, columns);
#else
                    memcpy(y + r * plane + (i + j) * down, row + j * WIDTH, (size_t)columns * sizeof(T));
#endif
                }
            }
        }
        for (; pairs && i + 2 <= rows; i += 2) {
            NAME(oic_conv_row)(2, PAIR, &l, v->planes + i * v->x.extent, columns, y + r * plane + i * down);
        }
        for (; i < rows; ++i) {
            NAME(oic_conv_row)(1, ROW, &l, v->planes + i * v->x.extent, columns, y + r * plane + i * down);
        }
    }
}

/* Some output channels at the positions of a class in a block, tile by tile; arguments as below. */
OIC_LOOP void NAME(oic_conv_tiles)(const NAME(oic_conv_view) *v, const C *w, const int32_t *at, const int32_t *ends, T *y,
                                   const B_T *b, ptrdiff_t channels, ptrdiff_t rows, const oic_conv_lanes *lanes)
{
    const ptrdiff_t side = MATH(oic_tile_panels)(channels), columns = lanes->columns, pitch = lanes->pitch, span = lanes->span;
    const ptrdiff_t positions = (rows - 1) * pitch + columns;
    C sum[OIC_CONV_LANES * TILE_ROWS];
    for (ptrdiff_t first = 0; first < positions; first += span) {
        const ptrdiff_t n = positions - first < span ? positions - first : span, panels = (n + OIC_LANES - 1) / OIC_LANES;
        const ptrdiff_t row = first / pitch, column = first % pitch;
        int32_t few[OIC_CONV_PLACES];
        const int32_t *const place = oic_conv_places(lanes, n, few);
        ptrdiff_t k = 0;
        for (ptrdiff_t i = 0; i < v->chunks; k = ends[i++]) {
            for (ptrdiff_t p = 0, m; p < panels; p += m) {
                m = panels - p < side ? MATH(oic_tile_rest)(channels, panels - p) : side;
                const TILE t = {
                    .x = w + k, .xm = v->products, .w = v->planes + row * v->x.extent + column, .at = at + k, .n = ends[i] - k,
                    .place = place + p * OIC_LANES / OIC_EIGHT,
                };
                if (i == v->chunks - 1 && v->x.classes == 1 && 2 * columns >= WIDTH) {
                    const ptrdiff_t e = column + p * OIC_LANES;
                    NAME(oic_conv_ahead)(v, y, channels, row + e / pitch, e % pitch, m);
                }
                MATH(oic_tile_sum_at)(&t, channels, m, sum + p * OIC_LANES, OIC_CONV_LANES,
                                      i == 0 ? OIC_TILE_SET : OIC_TILE_ADD);
            }
        }
        NAME(oic_conv_put)(v, sum, OIC_CONV_LANES, y, b, channels, row, column, columns, pitch, n);
    }
}

/* Some output channels at the positions of a class in a block, which are so many rows of columns, and begin at y: of the first
   channel the products begin at w, and for all at `at`. */
OIC_INLINE void NAME(oic_conv_class)(const NAME(oic_conv_view) *v, const NAME(oic_conv_view) *seen, oic_conv_lanes *lanes,
                                     const C *w, const int32_t *at, const int32_t *ends, T *y, const B_T *b, ptrdiff_t channels,
                                     ptrdiff_t rows, ptrdiff_t columns)
{
    if (v->inputs == 1 && v->chunks == 1 && v->x.classes == 1 && 2 * columns >= WIDTH && channels <= FEW) {
        NAME(oic_conv_rows)(v, w, at, ends[0], y, b, channels, rows, columns);
        return;
    }
    const ptrdiff_t side = channels > 3 ? MATH(oic_tile_panels)(channels) : 1;
    oic_conv_lanes_set(lanes, columns, v->x.extent, OIC_CONV_LANES, side * OIC_LANES);
    NAME(oic_conv_tiles)(seen, w, at, ends, y, b, channels, rows, lanes);
}

/* How many units there are. */
static inline ptrdiff_t NAME(oic_conv_units)(const ARGS(oic_conv_planes) *a, int transposed)
{
    const ptrdiff_t down = transposed ? (a->out_height + a->stride_y - 1) / a->stride_y : a->out_height;
    const ptrdiff_t along = transposed ? (a->out_width + a->stride_x - 1) / a->stride_x : a->out_width;
    const ptrdiff_t blocks_y = (down + a->rows - 1) / a->rows, blocks_x = (along + a->columns - 1) / a->columns;
    return a->batch * a->groups * oic_conv_parts(a->outputs / a->groups) * blocks_y * blocks_x;
}

/* Elements of y, a share of them for units first..end-1, one by one: weights that are not finite meet x alone. */
OIC_LOOP void NAME(oic_conv_apart)(const NAME(oic_conv_view) *v, ptrdiff_t first, ptrdiff_t end)
{
    const ARGS(oic_conv_planes) *const a = v->a;
    const ptrdiff_t window = v->y.taps * v->x.taps, units = NAME(oic_conv_units)(a, v->y.transposed);
    if (first >= end) { /* perhaps there are no units, and no elements */
        return;
    }
    const int64_t all = (int64_t)a->batch * a->outputs * a->out_height * a->out_width;
    const ptrdiff_t last = (ptrdiff_t)(all * end / units);
    for (ptrdiff_t i = (ptrdiff_t)(all * first / units); i < last; ++i) {
        const ptrdiff_t ox = i % a->out_width, oy = i / a->out_width % a->out_height;
        const ptrdiff_t o = i / a->out_width / a->out_height % a->outputs, n = i / a->out_width / a->out_height / a->outputs;
        C total = (C)0, sum = (C)0;
        for (ptrdiff_t k = 0, c = o / v->outputs * v->inputs, ky = 0, kx = 0; k < v->products; ++k) {
            const ptrdiff_t row = oic_conv_element(&v->y, oy, ky), column = oic_conv_element(&v->x, ox, kx);
            if (row >= 0 && column >= 0) {
                const ptrdiff_t at = v->y.transposed ? (c * v->outputs + o % v->outputs) * window + k % window : o * v->products + k;
                sum = MATH(oic_madd)(LOAD(a->w, at), LOAD(a->x, ((n * a->channels + c) * a->height + row) * a->width + column), sum);
            }
            if ((k + 1) % OIC_CHUNK == 0 || k + 1 == v->products) {
                total += sum;
                sum = (C)0;
            }
            kx = kx + 1 < v->x.taps ? kx + 1 : 0;
            ky = kx > 0 ? ky : ky + 1 < v->y.taps ? ky + 1 : 0;
            c += kx == 0 && ky == 0;
        }
        STORE(a->y, i, a->b != NULL ? total + (C)B_LOAD(a->b, o) : total);
    }
}

/* Units first..end-1: OIC_CONV_OUTPUTS output channels of a group, or fewer, in a block of an image.  Any division has the
   same bits. */
static inline void NAME(oic_conv_in_planes)(const ARGS(oic_conv_planes) *a, int transposed, ptrdiff_t first, ptrdiff_t end,
                                            int worker)
{
    NAME(oic_conv_view) v = {
        .a = a, .inputs = a->channels / a->groups, .outputs = a->outputs / a->groups,
        .y = {a->height, a->out_height, a->taps_y, a->stride_y, a->padding_y, a->dilation_y, transposed, .count = a->rows},
        .x = {a->width, a->out_width, a->taps_x, a->stride_x, a->padding_x, a->dilation_x, transposed, .count = a->columns},
    };
    oic_conv_lanes lanes = {.columns = 0};
    oic_conv_axis_set(&v.y);
    oic_conv_axis_set(&v.x);
    v.size = v.y.extent * v.x.extent;
    v.products = v.inputs * a->taps_y * a->taps_x;
    v.chunks = (v.products + OIC_CHUNK - 1) / OIC_CHUNK;
    v.planes = oic_own(a->work, worker, (size_t)a->room);
    ptrdiff_t *const held = oic_conv_held(v.planes, a->room);
    C *const spare = v.planes + v.inputs * v.y.phases * v.x.phases * v.size;
    for (ptrdiff_t i = 0; i < SPARE; ++i) {
        spare[i] = (C)0;
    }
    const int ordered = transposed && a->given != 0;
    v.filters = ordered || !X_IS_COMPUTED ? spare + SPARE : NULL;
    v.at = (int32_t *)(void *)(spare + SPARE + (v.filters != NULL ? OIC_CONV_FILTERS * v.products : 0));
    v.ends = v.at + v.products;
    v.taps = ordered ? v.ends + v.y.classes * v.x.classes * v.chunks : NULL;
    const NAME(oic_conv_view) seen = v; /* by what is not inlined, so that v need not be in memory */
    NAME(oic_conv_tables)(&seen);
    if (a->given > 1) {
        NAME(oic_conv_apart)(&seen, first, end);
        return;
    }
    const ptrdiff_t parts = oic_conv_parts(v.outputs), blocks_y = oic_conv_blocks(&v.y), blocks_x = oic_conv_blocks(&v.x);
    for (ptrdiff_t unit = first; unit < end; ++unit) {
        const ptrdiff_t part = unit % parts, block = unit / parts, at_y = block / blocks_x % blocks_y;
        const ptrdiff_t y0 = oic_conv_start(&v.y, blocks_y, at_y), y1 = oic_conv_start(&v.y, blocks_y, at_y + 1);
        const ptrdiff_t x0 = block % blocks_x * a->columns, g = block / blocks_x / blocks_y % a->groups;
        const ptrdiff_t n = block / blocks_x / blocks_y / a->groups;
        const ptrdiff_t o0 = v.outputs * part / parts, o1 = v.outputs * (part + 1) / parts;
        if (*held != block + 1) {
            NAME(oic_conv_fill)(&v, n, g, y0, y1 - y0, x0);
            *held = block + 1;
        }
        ptrdiff_t k = 0;
        for (ptrdiff_t f = 0; f < v.y.classes * v.x.classes; ++f) {
            const int32_t *const ends = v.ends + f * v.chunks;
            const ptrdiff_t fy = f / v.x.classes, fx = f % v.x.classes;
            const ptrdiff_t last = oic_conv_positions(&v.y, fy), rows = (y1 < last ? y1 : last) - y0;
            const ptrdiff_t along = oic_conv_positions(&v.x, fx) - x0, columns = along < a->columns ? along : a->columns;
            for (ptrdiff_t o = g * v.outputs + o0, rest = o1 - o0, m; rows > 0 && columns > 0 && rest > 0; o += m, rest -= m) {
                const ptrdiff_t tiles = (rest + TILE_ROWS - 1) / TILE_ROWS;
                m = (rest + tiles - 1) / tiles; /* as even as can be */
                T *const y = a->y + ((n * a->outputs + o) * a->out_height + fy + y0 * v.y.classes) * a->out_width +
                             fx + x0 * v.x.classes;
                const C *w = (const C *)(const void *)(a->w + o * v.products + k);
                if (v.filters != NULL) {
                    NAME(oic_conv_laid)(&seen, o, m, k, ends[v.chunks - 1]);
                    w = v.filters;
                }
                NAME(oic_conv_class)(&v, &seen, &lanes, w, v.at + k, ends, y, a->b != NULL ? a->b + o : NULL, m, rows, columns);
            }
            k += ends[v.chunks - 1];
        }
    }
}

/* A call, with what is found among weights that are given: whether zeros would meet what is not finite. */
static inline ARGS(oic_conv_planes) NAME(oic_conv_found)(const ARGS(oic_conv_planes) *a, int transposed)
{
    ARGS(oic_conv_planes) found = *a;
    if (a->given && (transposed || a->padding_y > 0 || a->padding_x > 0)) {
        const ptrdiff_t n = (transposed ? a->channels : a->outputs) / a->groups * (transposed ? a->outputs : a->channels);
        int finite = 1;
        for (ptrdiff_t i = 0; i < n * a->taps_y * a->taps_x; ++i) {
            finite &= OIC_PASTE(oic_finite_, OIC_X)(a->w[i]);
        }
        found.given = finite ? 1 : 2;
    }
    return found;
}

static inline void NAME(oic_conv_planes_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    NAME(oic_conv_in_planes)(args, 0, first, end, worker);
}

static inline void NAME(oic_conv_planes)(const ARGS(oic_conv_planes) *a)
{
    const ARGS(oic_conv_planes) found = NAME(oic_conv_found)(a, 0);
    oic_conv_begin(a->work, 1, a->room);
    NAME(oic_conv_in_planes)(&found, 0, 0, NAME(oic_conv_units)(a, 0), 0);
}

static inline void NAME(oic_conv_transpose_planes_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    NAME(oic_conv_in_planes)(args, 1, first, end, worker);
}

static inline void NAME(oic_conv_transpose_planes)(const ARGS(oic_conv_transpose_planes) *a)
{
    const ARGS(oic_conv_planes) found = NAME(oic_conv_found)(a, 1);
    oic_conv_begin(a->work, 1, a->room);
    NAME(oic_conv_in_planes)(&found, 1, 0, NAME(oic_conv_units)(a, 1), 0);
}

#if defined(OIC_POOL_H)
/* The same two, divided among threads. */
static inline void NAME(oic_conv_planes_divided)(oic_pool *pool, int most, ptrdiff_t units, int64_t work,
                                                 const ARGS(oic_conv_planes) *a)
{
    const ARGS(oic_conv_planes) found = NAME(oic_conv_found)(a, 0);
    oic_conv_begin(a->work, most, a->room);
    oic_divide(pool, most, units, work, NAME(oic_conv_planes_part), &found);
}

static inline void NAME(oic_conv_transpose_planes_divided)(oic_pool *pool, int most, ptrdiff_t units, int64_t work,
                                                           const ARGS(oic_conv_transpose_planes) *a)
{
    const ARGS(oic_conv_planes) found = NAME(oic_conv_found)(a, 1);
    oic_conv_begin(a->work, most, a->room);
    oic_divide(pool, most, units, work, NAME(oic_conv_transpose_planes_part), &found);
}
#endif

#undef WIDTH
#undef TILE
#undef TILE_ROWS
#undef ROW
#undef FEW
#undef PAIR
#undef SPARE
#undef WIDENS
#include "end.h"
