/* oic_conv_planes_X_W_B: oic_conv with constant w[outputs, channels / groups * taps_y * taps_x], in the type that is computed
   in, all finite.  oic_conv_transpose_planes_X_W_B: oic_conv_transpose with such weights, where those of an output lie class by
   class of the positions that meet them (common/conv_axis.h), and in a class by input channels.

   A lane is a position of the result.  A block of x is copied into planes, one for each input channel of a group, with zeros
   for the padding; where the stride is above 1, one for each phase of it that taps meet.  In planes, what neighbouring
   positions meet are neighbours, also behind the end of a row, where there is nothing to store.

   A block is `rows` rows of `columns` positions of a class; `room` bytes of work have its planes and, for each product of a
   position, where its element of x lies.

   Order: oic_conv's: a chunk begins at +0 and is added to +0, so that zeros of the padding times finite weights change
   nothing.  Stack: the sums of OIC_CONV_PANELS registers of positions. */
#include "common/conv_axis.h"
#include "common/conv_range.h"
#include "common/conv_tiles.h"
#include "common/own.h"
#include "element.h"

#include "common/conv_planes.inc.h"

typedef ARGS(oic_conv_planes) ARGS(oic_conv_transpose_planes);

#define WIDTH ((ptrdiff_t)(sizeof(MATH(oic_register)) / sizeof(C)))
#define TILE MATH(oic_tile)
#define TILE_ROWS MATH(oic_tile_rows)
#define SPARE (OIC_LANES * OIC_TILE_PANELS) /* elements behind the planes that lanes without a position may meet */

/* A call.
   inputs, outputs  channels of a group
   products         of an output, of all classes of positions together
   planes           [inputs, phases of y, phases of x, extent of y, extent of x]
   at               for each product of a class, where the element of x lies for its position 0; the classes one after the other
   ends             for each class, how many of its products lie before the end of each chunk */
typedef struct {
    const ARGS(oic_conv_planes) *a;
    oic_conv_axis y, x;
    ptrdiff_t inputs, outputs, products, chunks, size;
    T *planes;
    int32_t *at, *ends;
} NAME(oic_conv_view);

/* Where the elements of x lie that the positions of classes meet. */
static inline void NAME(oic_conv_tables)(const NAME(oic_conv_view) *v)
{
    int32_t *at = v->at, *end = v->ends;
    for (ptrdiff_t f = 0; f < v->y.classes * v->x.classes; ++f) {
        int32_t found = 0;
        ptrdiff_t k = 0;
        for (ptrdiff_t c = 0; c < v->inputs; ++c) {
            for (ptrdiff_t ky = 0; ky < v->y.taps; ++ky) {
                ptrdiff_t py, px;
                const ptrdiff_t row = oic_conv_tap(&v->y, f / v->x.classes, ky, &py);
                for (ptrdiff_t kx = 0; kx < v->x.taps; ++kx) {
                    const ptrdiff_t column = oic_conv_tap(&v->x, f % v->x.classes, kx, &px);
                    if (row >= 0 && column >= 0) {
                        const ptrdiff_t plane = (c * v->y.phases + py) * v->x.phases + px;
                        *at++ = (int32_t)(plane * v->size + row * v->x.extent + column);
                        ++found;
                    }
                    if (++k % OIC_CHUNK == 0 || k == v->products) {
                        *end++ = found;
                    }
                }
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
    for (ptrdiff_t px = 0; px < v->x.phases; ++px) {
        const ptrdiff_t left = x0 * step + px + v->x.low; /* of element 0 */
        const ptrdiff_t low = oic_conv_first(left, step, 0), first = low < wide ? low : wide;
        const ptrdiff_t last = oic_conv_last(left, step, a->width, wide), end = last > first ? last : first;
        const ptrdiff_t top = y0 * v->y.step + v->y.low;
        const int whole = left == 0 && step == 1 && wide == a->width && v->y.step == 1 && top >= 0 && top + high <= a->height;
        for (ptrdiff_t c = 0; c < v->inputs; ++c) {
            if (whole) { /* rows lie in x as they do in a plane */
                memcpy(v->planes + c * v->size, x + (c * a->height + top) * wide, (size_t)(high * wide) * sizeof(T));
            }
            for (ptrdiff_t py = 0; !whole && py < v->y.phases; ++py) {
                T *restrict to = v->planes + ((c * v->y.phases + py) * v->x.phases + px) * v->size;
                for (ptrdiff_t r = 0; r < high; ++r, to += wide) {
                    const ptrdiff_t iy = (y0 + r) * v->y.step + py + v->y.low;
                    const T *restrict from = x + (c * a->height + iy) * a->width + left;
                    if (iy < 0 || iy >= a->height) {
                        memset(to, 0, (size_t)wide * sizeof(T));
                        continue;
                    }
                    for (ptrdiff_t i = 0; i < first; ++i) {
                        to[i] = (T)0;
                    }
                    if (step == 1) {
                        memcpy(to + first, from + first, (size_t)(end - first) * sizeof(T));
                    } else if (step == 2) {
                        for (ptrdiff_t i = first; i < end; ++i) {
                            to[i] = from[i * 2];
                        }
                    } else {
                        for (ptrdiff_t i = first; i < end; ++i) {
                            to[i] = from[i * step];
                        }
                    }
                    for (ptrdiff_t i = end; i < wide; ++i) {
                        to[i] = (T)0;
                    }
                }
            }
        }
    }
}

/* Store n positions from (row, column) of a block on, of so many channels; what lies behind the last column is none. */
static inline void NAME(oic_conv_put)(const NAME(oic_conv_view) *v, const C *sum, ptrdiff_t ld, T *y, const B_T *b,
                                      ptrdiff_t channels, ptrdiff_t row, ptrdiff_t column, ptrdiff_t columns, ptrdiff_t n)
{
    const ptrdiff_t step = v->x.classes, down = v->y.classes * v->a->out_width, plane = v->a->out_height * v->a->out_width;
    for (ptrdiff_t e = 0, m; e < n; e += m, ++row, column = 0) {
        m = v->x.extent - column < n - e ? v->x.extent - column : n - e;
        const ptrdiff_t some = columns - column < m ? columns - column : m;
        for (ptrdiff_t r = 0; r < channels; ++r) {
            const C *restrict from = sum + r * ld + e;
            T *restrict to = y + r * plane + row * down + column * step;
            const C more = b != NULL ? (C)B_LOAD(b, r) : (C)0; /* sums are never -0 */
            if (step == 1 && some >= WIDTH) {
                for (ptrdiff_t i = 0; i < some; i += WIDTH) {
                    const ptrdiff_t at = i + WIDTH <= some ? i : some - WIDTH; /* the last ones may be stored twice */
                    MATH(oic_register_store)(to + at, MATH(oic_register_load)(from + at) + MATH(oic_register_of)(more));
                }
            } else {
                for (ptrdiff_t i = 0; i < some; ++i) {
                    to[i * step] = from[i] + more;
                }
            }
        }
    }
}

/* Some output channels at the positions of a class in a block, which are so many rows of columns, and begin at y: of the first
   channel the products begin at w, and for all at `at`. */
static inline void NAME(oic_conv_class)(const NAME(oic_conv_view) *v, const T *w, const int32_t *at, const int32_t *ends,
                                            T *y, const B_T *b, ptrdiff_t channels, ptrdiff_t rows, ptrdiff_t columns)
{
    const ptrdiff_t positions = (rows - 1) * v->x.extent + columns, panels = (positions + OIC_LANES - 1) / OIC_LANES;
    const ptrdiff_t side = MATH(oic_tile_panels)(channels), span = OIC_CONV_PANELS / side * side, ld = span * OIC_LANES;
    C sum[OIC_CONV_PANELS * OIC_LANES * TILE_ROWS];
    ptrdiff_t row = 0, column = 0;
    for (ptrdiff_t first = 0; first < panels; first += span) {
        const ptrdiff_t end = panels - first < span ? panels : first + span;
        ptrdiff_t k = 0;
        for (ptrdiff_t i = 0; i < v->chunks; k = ends[i++]) {
            for (ptrdiff_t p = first, m; p < end; p += m) {
                m = end - p < side ? MATH(oic_tile_rest)(channels, end - p) : side;
                const TILE t = {
                    .x = w + k, .xm = v->products, .xk = 1, .w = v->planes + p * OIC_LANES, .wg = OIC_LANES, .at = at + k,
                    .n = ends[i] - k, .times = 1,
                };
                C *const to = sum + (p - first) * OIC_LANES;
                MATH(oic_tile_sum_at)(&t, channels, m, to, ld, i == 0 ? OIC_TILE_SET : OIC_TILE_ADD);
            }
        }
        const ptrdiff_t left = positions - first * OIC_LANES, n = left < ld ? left : ld;
        NAME(oic_conv_put)(v, sum, ld, y, b, channels, row, column, columns, n);
        for (column += n; column >= v->x.extent; column -= v->x.extent) {
            ++row;
        }
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
    oic_conv_axis_set(&v.y);
    oic_conv_axis_set(&v.x);
    v.size = v.y.extent * v.x.extent;
    v.products = v.inputs * a->taps_y * a->taps_x;
    v.chunks = (v.products + OIC_CHUNK - 1) / OIC_CHUNK;
    v.planes = oic_own(a->work, worker, (size_t)a->room);
    T *const spare = v.planes + v.inputs * v.y.phases * v.x.phases * v.size;
    for (ptrdiff_t i = 0; i < SPARE; ++i) {
        spare[i] = (T)0;
    }
    v.at = (int32_t *)(void *)(spare + SPARE);
    v.ends = v.at + v.products;
    NAME(oic_conv_tables)(&v);
    const ptrdiff_t parts = (v.outputs + OIC_CONV_OUTPUTS - 1) / OIC_CONV_OUTPUTS;
    const ptrdiff_t blocks_y = (oic_conv_positions(&v.y, 0) + a->rows - 1) / a->rows;
    const ptrdiff_t blocks_x = (oic_conv_positions(&v.x, 0) + a->columns - 1) / a->columns;
    for (ptrdiff_t unit = first; unit < end; ++unit) {
        const ptrdiff_t part = unit % parts, block = unit / parts, y0 = block / blocks_x % blocks_y * a->rows;
        const ptrdiff_t x0 = block % blocks_x * a->columns, g = block / blocks_x / blocks_y % a->groups;
        const ptrdiff_t n = block / blocks_x / blocks_y / a->groups;
        const ptrdiff_t high = oic_conv_positions(&v.y, 0) - y0;
        const ptrdiff_t o0 = v.outputs * part / parts, o1 = v.outputs * (part + 1) / parts;
        if (unit == first || part == 0) {
            NAME(oic_conv_fill)(&v, n, g, y0, high < a->rows ? high : a->rows, x0);
        }
        ptrdiff_t k = 0;
        for (ptrdiff_t f = 0; f < v.y.classes * v.x.classes; ++f) {
            const int32_t *const ends = v.ends + f * v.chunks;
            const ptrdiff_t fy = f / v.x.classes, fx = f % v.x.classes;
            const ptrdiff_t down = oic_conv_positions(&v.y, fy) - y0, rows = down < a->rows ? down : a->rows;
            const ptrdiff_t along = oic_conv_positions(&v.x, fx) - x0, columns = along < a->columns ? along : a->columns;
            for (ptrdiff_t o = g * v.outputs + o0, rest = o1 - o0, m; rows > 0 && columns > 0 && rest > 0; o += m, rest -= m) {
                const ptrdiff_t tiles = (rest + TILE_ROWS - 1) / TILE_ROWS;
                m = (rest + tiles - 1) / tiles; /* as even as can be */
                T *const y = a->y + ((n * a->outputs + o) * a->out_height + fy + y0 * v.y.classes) * a->out_width +
                             fx + x0 * v.x.classes;
                NAME(oic_conv_class)(&v, a->w + o * v.products + k, v.at + k, ends, y, a->b != NULL ? a->b + o : NULL, m,
                                         rows, columns);
            }
            k += ends[v.chunks - 1];
        }
    }
}

/* How many units there are. */
static inline ptrdiff_t NAME(oic_conv_units)(const ARGS(oic_conv_planes) *a, ptrdiff_t down, ptrdiff_t along)
{
    const ptrdiff_t parts = (a->outputs / a->groups + OIC_CONV_OUTPUTS - 1) / OIC_CONV_OUTPUTS;
    return a->batch * a->groups * parts * ((down + a->rows - 1) / a->rows) * ((along + a->columns - 1) / a->columns);
}

static inline void NAME(oic_conv_planes_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    NAME(oic_conv_in_planes)(args, 0, first, end, worker);
}

static inline void NAME(oic_conv_planes)(const ARGS(oic_conv_planes) *a)
{
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
    NAME(oic_conv_in_planes)(a, 1, 0, NAME(oic_conv_units)(a, down, along), 0);
}

#undef WIDTH
#undef TILE
#undef TILE_ROWS
#undef SPARE
#include "end.h"
