/* oic_linear_words_X_W_B: oic_linear of type i8 that wraps in type W of at most 32 bits, of many rows: y[M, N] = x[M, K] times the
   transpose of w[N, K], plus b[N] of type B (NULL: none), where w has the stride ldw of N.  y overlaps no operand.

   A lane is a row.  In each turn a block of at most `rows` rows, a multiple of OIC_LANES, is turned into words (simd/words.h), of
   neighbours of a row each; what is left of few rows is computed row by row.  `from` is 0 where this is called.  `room` bytes of
   work have the words of a block, which threads share, and, of each thread, those of the weights of some outputs.  Sums are
   modulo 2^32, whatever the order. */
#include "element.h"

#include "common/own.h"
#include "../simd/bytes.h"
#include "../simd/words.h"

#define OIC_LINEAR_PART 48 /* outputs of a block that a thread takes at a time at most */
#define FEW 8 /* rows, for fewer than which lanes do not pay */

typedef struct {
    const T *x, *w;
    const B_T *b;
    W_T *y;
    void *work;
    ptrdiff_t M, K, N, ldw, rows, room, from;
#if defined(OIC_REQUANTIZES)
    oic_requantized by;
#endif
} ARGS(oic_linear_words);

/* A turn.
   words    of a row
   count    rows
   lanes    of which are turned
   tiles    [words, rows]: of x
   turned   [OIC_LANES, words]: of some rows, for each thread
   weights  [OIC_WORD_ROWS, words]: of w, for each thread
   at       where the words of row 0 lie */
typedef struct {
    const ARGS(oic_linear_words) *a;
    ptrdiff_t words, count, lanes;
    uint32_t *tiles, *turned, *weights;
    int32_t *at;
#if defined(OIC_REQUANTIZES)
    oic_requantized_range within;
#endif
} NAME(oic_linear_view);

/* Numbers of a row behind those that fill words, as a word, with zeros. */
static inline void NAME(oic_linear_rest)(int8_t *rest, const int8_t *from, ptrdiff_t K)
{
    memset(rest, 0, OIC_WORD);
    for (ptrdiff_t k = K / OIC_WORD * OIC_WORD; k < K; ++k) {
        rest[k % OIC_WORD] = from[k];
    }
}

/* The turn from row `from` on, with the memory of a thread. */
static inline NAME(oic_linear_view) NAME(oic_linear_words_view)(const ARGS(oic_linear_words) *a, int worker)
{
    const ptrdiff_t words = (a->K + OIC_WORD - 1) / OIC_WORD, count = a->M - a->from < a->rows ? a->M - a->from : a->rows;
    const ptrdiff_t left = count % OIC_LANES, tiles = words * a->rows;
    uint32_t *const own = (uint32_t *)oic_own(a->work, worker, (size_t)a->room) + tiles;
    return (NAME(oic_linear_view)){
        .a = a, .words = words, .count = count, .lanes = left < FEW ? count - left : count, .tiles = a->work, .turned = own,
        .weights = own + OIC_LANES * words, .at = (int32_t *)(void *)(own + (OIC_LANES + OIC_WORD_ROWS) * words),
    };
}

/* Rows first..end-1 of a turn, in units of OIC_LANES, are turned into words, those of as many rows beside each other. */
static inline void NAME(oic_linear_words_prepare)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(oic_linear_words) *const a = args;
    const NAME(oic_linear_view) v = NAME(oic_linear_words_view)(a, worker);
    const ptrdiff_t whole = a->K / OIC_WORD;
    for (ptrdiff_t l = first * OIC_LANES; l < end * OIC_LANES && l < v.lanes; l += OIC_LANES) {
        const ptrdiff_t some = v.lanes - l < OIC_LANES ? v.lanes - l : OIC_LANES;
        for (ptrdiff_t r = 0; r < some; ++r) {
            const int8_t *const from = a->x + (a->from + l + r) * a->K;
            uint32_t *const row = v.turned + r * v.words;
            oic_words_of_row(row, from, whole, OIC_WORD);
            if (whole < v.words) {
                int8_t rest[OIC_WORD];
                NAME(oic_linear_rest)(rest, from, a->K);
                oic_words_of_row(row + whole, rest, 1, OIC_WORD);
            }
        }
        for (ptrdiff_t k = 0; k < v.words; ++k) { /* of rows that are none, whatever lies there: their sums are not stored */
            for (ptrdiff_t r = 0; r < OIC_LANES; ++r) {
                v.tiles[k * a->rows + l + r] = v.turned[r * v.words + k];
            }
        }
    }
}

/* The weights of outputs o..o+m-1 as words, and where their sums start: at b, if there is one. */
static inline void NAME(oic_linear_weights)(const NAME(oic_linear_view) *v, ptrdiff_t o, ptrdiff_t m, uint32_t *start)
{
    const ARGS(oic_linear_words) *const a = v->a;
    const ptrdiff_t whole = a->K / OIC_WORD;
    for (ptrdiff_t r = 0; r < m; ++r) {
        const int8_t *const from = a->w + (o + r) * a->ldw;
        uint32_t *const to = v->weights + r * v->words;
        int32_t low = 0;
        for (ptrdiff_t k = 0; OIC_WORD_BIAS && k < a->K; ++k) {
            low += from[k];
        }
        start[r] = (a->b != NULL ? (uint32_t)B_LOAD(a->b, o + r) : 0u) - 128u * (uint32_t)low;
        oic_words_of_x(to, from, whole * OIC_WORD);
        if (whole < v->words) {
            int8_t rest[OIC_WORD];
            NAME(oic_linear_rest)(rest, from, a->K);
            oic_words_of_x(to + whole, rest, OIC_WORD);
        }
    }
}

/* Outputs o..o+n-1 of one row. */
static inline void NAME(oic_linear_row)(const NAME(oic_linear_view) *v, ptrdiff_t row, ptrdiff_t o, ptrdiff_t n)
{
    const ARGS(oic_linear_words) *const a = v->a;
    uint32_t sum[OIC_LINEAR_PART];
    for (ptrdiff_t l = 0, m; l < n; l += m) {
        uint32_t all[OIC_BYTE_ROWS];
        m = n - l < OIC_BYTE_ROWS ? 1 : OIC_BYTE_ROWS;
        oic_byte_rows(all, a->x + row * a->K, a->w + (o + l) * a->ldw, m == 1 ? 0 : a->ldw, a->K); /* of one all are its sum */
        memcpy(sum + l, all, (size_t)m * sizeof *sum);
    }
    for (ptrdiff_t l = 0; a->b != NULL && l < n; ++l) {
        const uint32_t b = (uint32_t)B_LOAD(a->b, o + l);
        sum[l] = sum[l] + b;
    }
#if defined(OIC_REQUANTIZES)
    oic_requantized_each(&a->by, sum, n, o, v->within);
#endif
    for (ptrdiff_t l = 0; l < n; ++l) {
        W_STORE(a->y, row * a->N + o + l, (W_C)sum[l]);
    }
}

/* Units first..end-1 of a turn: OIC_LINEAR_PART outputs, or fewer. */
static inline void NAME(oic_linear_words_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(oic_linear_words) *const a = args;
    const ptrdiff_t parts = (a->N + OIC_LINEAR_PART - 1) / OIC_LINEAR_PART;
    NAME(oic_linear_view) v = NAME(oic_linear_words_view)(a, worker);
#if defined(OIC_REQUANTIZES)
    v.within = oic_requantized_within((int64_t)W_LOW, (int64_t)W_HIGH, a->by.zero_point);
#endif
    for (ptrdiff_t k = 0; k < v.words; ++k) {
        v.at[k] = (int32_t)(k * a->rows);
    }
    for (ptrdiff_t part = first; part < end; ++part) {
        const ptrdiff_t o0 = a->N * part / parts, o1 = a->N * (part + 1) / parts;
        for (ptrdiff_t o = o0, m; o < o1 && v.lanes > 0; o += m) {
            const ptrdiff_t tiles = (o1 - o + OIC_WORD_ROWS - 1) / OIC_WORD_ROWS;
            const int32_t place[] = {0, OIC_EIGHT};
            uint32_t start[OIC_WORD_ROWS] = {0}, sum[OIC_WORD_ROWS * OIC_LANES];
            m = (o1 - o + tiles - 1) / tiles; /* as even as can be */
            NAME(oic_linear_weights)(&v, o, m, start);
            for (ptrdiff_t e = 0; e < v.lanes; e += OIC_LANES) {
                const ptrdiff_t some = v.lanes - e < OIC_LANES ? v.lanes - e : OIC_LANES;
                oic_words_sum(sum, OIC_LANES, m, v.weights, v.words, v.tiles + e, v.at, v.words, start, place, OIC_LANES);
#if defined(OIC_REQUANTIZES)
                for (ptrdiff_t r = 0; r < m; ++r) {
                    oic_requantized_sums(&a->by, sum + r * OIC_LANES, OIC_LANES, o + r, v.within);
                }
#endif
                for (ptrdiff_t l = 0; l < some; ++l) {
                    for (ptrdiff_t r = 0; r < m; ++r) {
                        W_STORE(a->y, (a->from + e + l) * a->N + o + r, (W_C)sum[r * OIC_LANES + l]);
                    }
                }
            }
        }
        for (ptrdiff_t row = a->from + v.lanes; row < a->from + v.count; ++row) {
            NAME(oic_linear_row)(&v, row, o0, o1 - o0);
        }
    }
}

/* Units of `prepare`. */
static inline ptrdiff_t NAME(oic_linear_words_tiles)(const ARGS(oic_linear_words) *a)
{
    return (NAME(oic_linear_words_view)(a, 0).lanes + OIC_LANES - 1) / OIC_LANES;
}

static inline void NAME(oic_linear_words)(const ARGS(oic_linear_words) *a)
{
    ARGS(oic_linear_words) turn = *a;
    for (; turn.from < a->M; turn.from += a->rows) {
        NAME(oic_linear_words_prepare)(&turn, 0, NAME(oic_linear_words_tiles)(&turn), 0);
        NAME(oic_linear_words_part)(&turn, 0, (a->N + OIC_LINEAR_PART - 1) / OIC_LINEAR_PART, 0);
    }
}

#if defined(OIC_POOL_H)
/* The same, each turn's rows and then its outputs divided among threads. */
static inline void NAME(oic_linear_words_divided)(oic_pool *pool, int most, ptrdiff_t units, int64_t work,
                                                  const ARGS(oic_linear_words) *a)
{
    ARGS(oic_linear_words) turn = *a;
    (void)work;
    for (; turn.from < a->M; turn.from += a->rows) {
        const ptrdiff_t tiles = NAME(oic_linear_words_tiles)(&turn), rows = NAME(oic_linear_words_view)(&turn, 0).count;
        oic_divide(pool, most, tiles, (int64_t)rows * a->K, NAME(oic_linear_words_prepare), &turn);
        oic_divide(pool, most, units, (int64_t)rows * a->K * a->N, NAME(oic_linear_words_part), &turn);
    }
}
#endif

#undef OIC_LINEAR_PART
#undef FEW
#include "end.h"
