/* oic_matmul_words_X_W: oic_matmul of type i8 that wraps in type W of at most 32 bits: y[shape, M, N] = a[.., M, K] * b[.., K, N],
   where a has the strides as of shape[rank], am of M and ak of K, and b the strides bs, bk and bn.  y overlaps no operand.

   A lane is a column.  Columns of b are turned into words (simd/words.h), of neighbours of a column each, as many columns at a time
   as `room` bytes of work hold beside the words of some rows of a.  Each thread has so many bytes.  Sums are modulo 2^32, whatever the
   order. */
#include "element.h"

#include "common/batch.h"
#include "common/own.h"
#include "../simd/words.h"

#define OIC_MATMUL_PART 48               /* rows that a thread takes at a time, at least */
#define OIC_MATMUL_LINE (4 * OIC_LANES)  /* columns whose bytes are a line of a cache */
#define OIC_MATMUL_AHEAD 16              /* rows of b whose parts are asked for before they are read */
#define OIC_MATMUL_SPAN (16 * OIC_LANES) /* sums of a row on the stack */

typedef struct {
    const T *a, *b;
    W_T *y;
    void *work;
    ptrdiff_t rank;
    const ptrdiff_t *shape, *as, *bs;
    ptrdiff_t M, K, N, am, ak, bk, bn, room;
} ARGS(oic_matmul_words);

/* A call.
   words   of a column
   wide    columns that are turned at a time: whole registers, or lines
   blocks  of so many columns
   parts   of the rows of a
   tiles   [words, wide]: of b
   rows    [OIC_WORD_ROWS, words]: of a
   at      where the words of column 0 lie */
typedef struct {
    const ARGS(oic_matmul_words) *m;
    ptrdiff_t words, wide, blocks, parts;
    uint32_t *tiles, *rows;
    int32_t *at;
} NAME(oic_matmul_view);

static inline NAME(oic_matmul_view) NAME(oic_matmul_words_view)(const ARGS(oic_matmul_words) *m, int worker)
{
    const ptrdiff_t words = (m->K + OIC_WORD - 1) / OIC_WORD, each = words > 0 ? words : 1;
    const ptrdiff_t fit = m->room / (ptrdiff_t)sizeof(uint32_t) / each - OIC_WORD_ROWS - 1;
    const ptrdiff_t unit = fit < m->N && fit >= OIC_MATMUL_LINE ? OIC_MATMUL_LINE : OIC_LANES, most = fit / unit * unit;
    const ptrdiff_t blocks = (m->N + most - 1) / most, even = blocks > 0 ? (m->N + blocks * unit - 1) / (blocks * unit) * unit : 0;
    uint32_t *const tiles = oic_own(m->work, worker, (size_t)m->room), *const rows = tiles + words * even;
    return (NAME(oic_matmul_view)){
        .m = m, .words = words, .wide = even, .blocks = blocks,
        .parts = m->M < 2 * OIC_MATMUL_PART ? 1 : m->M / OIC_MATMUL_PART, .tiles = tiles, .rows = rows,
        .at = (int32_t *)(void *)(rows + OIC_WORD_ROWS * words),
    };
}

/* n columns from b on are turned into words.  Numbers behind the last one of a column meet zeros: whatever lies there. */
static inline void NAME(oic_matmul_turn)(const NAME(oic_matmul_view) *v, const int8_t *b, ptrdiff_t n)
{
    const ptrdiff_t bk = v->m->bk, bn = v->m->bn, whole = v->m->K / OIC_WORD;
    for (ptrdiff_t c = 0, some; c < n && bk == 1; c += some) { /* of some columns, whose numbers stay in a cache */
        some = n - c < OIC_LANES ? n - c : OIC_LANES;
        for (ptrdiff_t k = 0; k < whole; ++k) {
            oic_words_of_row(v->tiles + k * v->wide + c, b + c * bn + k * OIC_WORD, some, bn);
        }
    }
    for (ptrdiff_t k = bk == 1 ? whole : 0; k < v->words; ++k) {
        const int8_t *from[OIC_WORD];
        for (ptrdiff_t i = 0; i < OIC_WORD; ++i) {
            const ptrdiff_t at = k * OIC_WORD + i;
            from[i] = b + (at < v->m->K ? at : v->m->K - 1) * bk;
            for (ptrdiff_t c = 0; bn == 1 && at + OIC_MATMUL_AHEAD < v->m->K && c < n; c += OIC_MATMUL_LINE) {
                OIC_TILE_AHEAD_NEAR(from[i] + OIC_MATMUL_AHEAD * bk + c);
            }
        }
        oic_words_of_w(v->tiles + k * v->wide, from, n, bn);
    }
}

/* The words of some rows from `row` on of the matrix at a, and where their sums start. */
static inline void NAME(oic_matmul_rows)(const NAME(oic_matmul_view) *v, const int8_t *a, ptrdiff_t row, ptrdiff_t count, uint32_t *start)
{
    const ptrdiff_t am = v->m->am, ak = v->m->ak, whole = v->m->K / OIC_WORD, words = v->words;
    const ptrdiff_t beside = am == 1 && v->m->M - row >= OIC_LANES ? OIC_LANES : count; /* rows: as many as fill a register */
    for (ptrdiff_t k = 0; k < whole && ak != 1; ++k) {
        uint32_t some[OIC_LANES];
        const int8_t *from[OIC_WORD];
        for (ptrdiff_t i = 0; i < OIC_WORD; ++i) {
            from[i] = a + row * am + (k * OIC_WORD + i) * ak;
        }
        oic_words_of_w(some, from, beside, am);
        for (ptrdiff_t r = 0; r < count; ++r) {
            v->rows[r * words + k] = some[r] ^ (OIC_WORD_BIAS ? 0x80808080u : 0u);
        }
    }
    for (ptrdiff_t r = 0; r < count; ++r) {
        const int8_t *const from = a + (row + r) * am;
        uint32_t *const to = v->rows + r * words;
        if (ak == 1) {
            oic_words_of_x(to, from, whole * OIC_WORD);
        }
        if (whole < words) {
            int8_t rest[OIC_WORD] = {0};
            for (ptrdiff_t k = whole * OIC_WORD; k < v->m->K; ++k) {
                rest[k % OIC_WORD] = from[k * ak];
            }
            oic_words_of_x(to + whole, rest, OIC_WORD);
        }
        start[r] = 0u - oic_words_higher(to, words);
    }
}

/* Units first..end-1: parts of the rows at a block of columns of a matrix. */
static inline void NAME(oic_matmul_words_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(oic_matmul_words) *const m = args;
    const NAME(oic_matmul_view) v = NAME(oic_matmul_words_view)(m, worker);
    int32_t place[OIC_MATMUL_SPAN / OIC_EIGHT];
    for (ptrdiff_t i = 0; i < OIC_MATMUL_SPAN / OIC_EIGHT; ++i) {
        place[i] = (int32_t)i * OIC_EIGHT;
    }
    for (ptrdiff_t k = 0; k < v.words; ++k) {
        v.at[k] = (int32_t)(k * v.wide);
    }
    for (ptrdiff_t unit = first; unit < end; ++unit) {
        const ptrdiff_t part = unit % v.parts, c = unit / v.parts % v.blocks * v.wide, i = unit / v.parts / v.blocks;
        const ptrdiff_t n = m->N - c < v.wide ? m->N - c : v.wide;
        const int8_t *const a = m->a + oic_offset(i, m->rank, m->shape, m->as);
        const ptrdiff_t r0 = m->M * part / v.parts, r1 = m->M * (part + 1) / v.parts;
        if (unit == first || part == 0) {
            NAME(oic_matmul_turn)(&v, m->b + oic_offset(i, m->rank, m->shape, m->bs) + c * m->bn, n);
        }
        for (ptrdiff_t row = r0, count; row < r1; row += count) {
            const ptrdiff_t tiles = (r1 - row + OIC_WORD_ROWS - 1) / OIC_WORD_ROWS;
            uint32_t start[OIC_WORD_ROWS] = {0}, sum[OIC_WORD_ROWS * OIC_MATMUL_SPAN];
            count = (r1 - row + tiles - 1) / tiles; /* as even as can be */
            NAME(oic_matmul_rows)(&v, a, row, count, start);
            for (ptrdiff_t e = 0, some; e < n; e += some) {
                some = n - e < OIC_MATMUL_SPAN ? n - e : OIC_MATMUL_SPAN;
                oic_words_sum(sum, OIC_MATMUL_SPAN, count, v.rows, v.words, v.tiles + e, v.at, v.words, start, place, some);
                for (ptrdiff_t r = 0; r < count; ++r) {
                    W_T *restrict const to = m->y + (i * m->M + row + r) * m->N + c + e;
                    for (ptrdiff_t l = 0; l < some; ++l) {
                        W_STORE(to, l, (W_C)sum[r * OIC_MATMUL_SPAN + l]);
                    }
                }
            }
        }
    }
}

static inline void NAME(oic_matmul_words)(const ARGS(oic_matmul_words) *m)
{
    const NAME(oic_matmul_view) v = NAME(oic_matmul_words_view)(m, 0);
    NAME(oic_matmul_words_part)(m, 0, oic_product(m->rank, m->shape) * v.blocks * v.parts, 0);
}

#if defined(OIC_POOL_H)
/* The same, divided among threads; into few chunks, each of which turns columns. */
static inline void NAME(oic_matmul_words_divided)(oic_pool *pool, int most, ptrdiff_t units, int64_t work,
                                                  const ARGS(oic_matmul_words) *m)
{
    const NAME(oic_matmul_view) v = NAME(oic_matmul_words_view)(m, 0);
    const ptrdiff_t turned = oic_product(m->rank, m->shape) * v.blocks;
    (void)units;
    oic_divide_in(pool, most, 2 * turned, turned * v.parts, work, NAME(oic_matmul_words_part), m);
}
#endif

#undef OIC_MATMUL_PART
#undef OIC_MATMUL_AHEAD
#undef OIC_MATMUL_LINE
#undef OIC_MATMUL_SPAN
#include "end.h"
