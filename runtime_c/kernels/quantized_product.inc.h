/* The body of products with quantised weights.  The kernel that includes it defines PRODUCT, its name, PRODUCT_…, those of its
   functions, and WEIGHT_BITS, 8 or 4
   bits of a weight.

   w is N rows of K numbers in groups of 32 along K, rows filled up to sixteen and groups to 32 with zeros: all bytes, then
   a scale (f16) for each row and group.  Both lie in streams of 64 rows, the last narrower; in a stream group by group; in
   a group panels of sixteen rows (simd/dots.h).  Scales are finite; q8 may hold any i8.

   x is quantised by row and group, its last group filled up with zeros: dx = max |x| / 127, inv = 127 / max |x|, and
   q = x * inv to nearest, halves to even.  Where max |x| is below 2^-119, inv is 0; where it is infinite or a NaN is among
   them, q is 0 and dx NaN.

   Order: y = 0 + t_0 + t_1 + ... over the groups, t = (float)(sum of q * w, exact) * (dw * dx), each operation rounded by
   itself; then b is added.  No other element and no size but K has a part in it.

   Members: batches shape[rank] of x lie at the strides xs, its rows ldx apart; rows are counted through all batches.
   `work` has room for `room` of them: OIC_QUANTIZED_BYTES bytes for each group of each; it need not be aligned beyond 4.
   Where there are more rows, they are taken in turns.  A turn is two phases: ..._prepare quantises rows first..end-1 of
   those from `from` on, ..._part computes streams first..end-1 of rows of w for all of them.  Where there is `then`, it is
   given the results (common/then.h), and y is NULL, or where it writes what it makes of them, as they would lie there. */
#include "element.h"

#include "common/batch.h"
#include "common/quantized.h"
#include "common/then.h"

#define FEW OIC_JOIN_2(OIC_FEW, WEIGHT_BITS)

typedef struct {
    const T *x;
    const void *w;
    const B_T *b;
    T *y;
    void *work;
    ptrdiff_t rank;
    const ptrdiff_t *shape, *xs;
    ptrdiff_t M, K, N, ldx, room, from;
    oic_then *then;
    const void *context;
} ARGS(PRODUCT);

/* Rows of the turn that begins at a->from. */
static inline ptrdiff_t PRODUCT_ROWS(const ARGS(PRODUCT) *a)
{
    const ptrdiff_t left = oic_product(a->rank, a->shape) * a->M - a->from;
    return left < a->room ? left : a->room;
}

static inline void PRODUCT_PREPARE(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(PRODUCT) *const a = args;
    const ptrdiff_t rows = PRODUCT_ROWS(a), groups = oic_groups(a->K);
    (void)worker;
    for (ptrdiff_t r = first; r < end; ++r) {
        const ptrdiff_t batch = a->rank > 0 ? (a->from + r) / a->M : 0, row = a->from + r - batch * a->M;
        const T *const x = a->x + oic_offset(batch, a->rank, a->shape, a->xs) + row * a->ldx;
        const ptrdiff_t n = oic_block_rows(r, rows);
        uint8_t *record = (uint8_t *)a->work + oic_block(r, groups);
        for (ptrdiff_t k = 0; k < a->K; k += OIC_GROUP, record += n * OIC_RECORD) {
            const ptrdiff_t left = a->K - k < OIC_GROUP ? a->K - k : OIC_GROUP;
            float all[OIC_GROUP];
            const float *from = WIDEN(x + k, left, all);
            if (left < OIC_GROUP) {
                memmove(all, from, (size_t)left * sizeof *all);
                memset(all + left, 0, (size_t)(OIC_GROUP - left) * sizeof *all);
                from = all;
            }
            oic_quantize_group(record, r % OIC_TURN, n, from, WEIGHT_BITS);
        }
    }
}

/* y[width] = sum[width] + b, elements j0.. of it. */
OIC_INLINE void PRODUCT_STORE(const ARGS(PRODUCT) *a, const float *restrict sum, T *restrict y, ptrdiff_t j0, ptrdiff_t width)
{
    if (a->b == NULL) {
        for (ptrdiff_t l = 0; l < width; ++l) {
            STORE(y, l, sum[l]);
        }
    } else {
        const B_T *restrict const b = a->b;
        for (ptrdiff_t l = 0; l < width; ++l) {
            STORE(y, l, sum[l] + (float)B_LOAD(b, j0 + l));
        }
    }
}

/* Columns from..to-1 of n rows, whose first is row `row` of all, go to a->then. */
static inline void PRODUCT_THEN(const ARGS(PRODUCT) *a, float *sum, ptrdiff_t ld, ptrdiff_t row, ptrdiff_t n, ptrdiff_t from,
                                ptrdiff_t to)
{
    for (ptrdiff_t i = 0; a->b != NULL && i < n; ++i) {
        for (ptrdiff_t l = 0; l < to - from; ++l) {
            sum[i * ld + l] += (float)B_LOAD(a->b, from + l);
        }
    }
    a->then(a->context, sum, ld, row, row + n, from, to);
}

/* What a product with `count` streams, `share` from each other, has left in `sums`, is stored, or handed on; where there is
   `held`, which begins with column h0, a row waits there until all of it can be handed on. */
static inline void PRODUCT_STREAMS(const ARGS(PRODUCT) *a, float *restrict sums, float *restrict held, ptrdiff_t h0,
                                   ptrdiff_t row, ptrdiff_t n, ptrdiff_t stream, ptrdiff_t count, ptrdiff_t share)
{
    for (ptrdiff_t q = 0; q < count; ++q) {
        const ptrdiff_t j0 = (stream + q * share) * OIC_STREAM, width = a->N - j0 < OIC_STREAM ? a->N - j0 : OIC_STREAM;
        float *const sum = sums + q * n * OIC_STREAM;
        if (held != NULL) {
            memcpy(held + j0 - h0, sum, (size_t)width * sizeof *sum);
            continue;
        }
        if (a->then != NULL) {
            PRODUCT_THEN(a, sum, OIC_STREAM, row, n, j0, j0 + width);
            continue;
        }
        for (ptrdiff_t i = 0; i < n; ++i) {
            T *const y = a->y + (row + i) * a->N + j0;
            if (width == OIC_STREAM) {
                PRODUCT_STORE(a, sum + i * OIC_STREAM, y, j0, OIC_STREAM);
            } else {
                PRODUCT_STORE(a, sum + i * OIC_STREAM, y, j0, width);
            }
        }
    }
}

static inline void PRODUCT_PART(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(PRODUCT) *const a = args;
    const ptrdiff_t rows = PRODUCT_ROWS(a), N = a->N, h0 = first * OIC_STREAM, h1 = end * OIC_STREAM < N ? end * OIC_STREAM : N;
    float sums[OIC_TURN * OIC_STREAM];
    (void)worker;
    for (ptrdiff_t r0 = 0; r0 < rows; r0 += OIC_TURN) {
        const ptrdiff_t n = rows - r0 < OIC_TURN ? rows - r0 : OIC_TURN;
        /* The sums of one row leave room for those of all streams: one call of then, instead of one for each. */
        const int one = a->then != NULL && n == 1 && h1 - h0 <= (OIC_TURN - OIC_STREAMS) * OIC_STREAM;
        float *const held = one ? sums + OIC_STREAMS * OIC_STREAM : NULL;
        /* Few rows: OIC_STREAMS shares of the streams, each of which lies in one piece, are read side by side; but one row goes
           through what may well be in a cache stream by stream, with sums in registers. */
        const ptrdiff_t whole = (end < N / OIC_STREAM ? end : N / OIC_STREAM) - first;
        const int near = n == 1 && N * a->K <= OIC_QUANTIZED_NEAR * 8 / WEIGHT_BITS;
        const ptrdiff_t share = OIC_STREAMS > 1 && n <= FEW && !near ? whole / OIC_STREAMS : 0;
        for (ptrdiff_t s = first; s < end; s = s == first + share - 1 ? first + OIC_STREAMS * share : s + 1) {
            const int beside = s < first + share;
            const ptrdiff_t width = N - s * OIC_STREAM < OIC_STREAM ? N - s * OIC_STREAM : OIC_STREAM;
            const oic_quantized_results to = {a->y == NULL ? NULL : a->y + (a->from + r0) * N + s * OIC_STREAM,
                                              N * (ptrdiff_t)sizeof(T), width * (ptrdiff_t)sizeof(T)};
            OIC_JOIN_2(oic_quantized_product, WEIGHT_BITS)(sums, a->work, r0, n, a->w, s, beside ? share : 0, a->K, N, &to);
            PRODUCT_STREAMS(a, sums, held, h0, a->from + r0, n, s, beside ? OIC_STREAMS : 1, share);
        }
        if (held != NULL && h0 < h1) {
            PRODUCT_THEN(a, held, h1 - h0, a->from + r0, 1, h0, h1);
        }
    }
}

#if OIC_HOSTED
/* One row times all of w: sums go from registers to where they are wanted. */
static inline void PRODUCT_NEAR(const ARGS(PRODUCT) *a)
{
    float sums[OIC_TURN * OIC_STREAM];
    const int stored = X_IS_COMPUTED && a->b == NULL && a->then == NULL; /* as they are */
    float *const to = stored ? (float *)(void *)a->y : sums;
    PRODUCT_PREPARE(a, 0, 1, 0);
    OIC_JOIN_2(oic_quantized_near, WEIGHT_BITS)(to, a->work, a->w, a->K, a->N);
    if (a->then != NULL) {
        PRODUCT_THEN(a, to, a->N, 0, 1, 0, a->N);
    } else if (!stored) {
        PRODUCT_STORE(a, to, a->y, 0, a->N);
    }
}
#endif

static inline void NAME(PRODUCT)(const ARGS(PRODUCT) *a)
{
    const ptrdiff_t rows = oic_product(a->rank, a->shape) * a->M;
#if OIC_HOSTED
    if (rows == 1 && a->N <= OIC_TURN * OIC_STREAM && a->N * a->K <= OIC_QUANTIZED_NEAR * 8 / WEIGHT_BITS) {
        PRODUCT_NEAR(a);
        return;
    }
#endif
    if (rows <= a->room) { /* of one turn no copy is made: to read at once what has just been written in parts takes a while */
        PRODUCT_PREPARE(a, 0, rows, 0);
        PRODUCT_PART(a, 0, oic_streams(a->N), 0);
        return;
    }
    ARGS(PRODUCT) turn = *a;
    for (turn.from = 0; turn.from < rows; turn.from += a->room) {
        PRODUCT_PREPARE(&turn, 0, PRODUCT_ROWS(&turn), 0);
        PRODUCT_PART(&turn, 0, oic_streams(a->N), 0);
    }
}

#if defined(OIC_POOL_H)
/* The same, each turn's rows and then its streams divided among threads; for few rows into larger chunks, because
   a chunk of less than OIC_STREAMS streams goes through them one by one. */
static inline void PRODUCT_DIVIDED(oic_pool *pool, int most, ptrdiff_t units, int64_t work,
                                                      const ARGS(PRODUCT) *a)
{
    ARGS(PRODUCT) turn = *a;
    const ptrdiff_t rows = oic_product(a->rank, a->shape) * a->M;
    for (turn.from = 0; turn.from < rows; turn.from += a->room) {
        const ptrdiff_t room = PRODUCT_ROWS(&turn), chunks = room <= FEW ? units / OIC_STREAMS : units;
        oic_divide(pool, most, room, (int64_t)room * a->K * OIC_WORK_ELEMENT, PRODUCT_PREPARE, &turn);
        oic_divide_in(pool, most, chunks, units, work, PRODUCT_PART, &turn);
    }
}
#endif

#undef PRODUCT
#undef PRODUCT_ROWS
#undef PRODUCT_PREPARE
#undef PRODUCT_STORE
#undef PRODUCT_THEN
#undef PRODUCT_STREAMS
#undef PRODUCT_NEAR
#undef PRODUCT_PART
#undef PRODUCT_DIVIDED
#undef FEW
#undef WEIGHT_BITS
#include "end.h"
