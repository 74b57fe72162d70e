/* oic_linear_pairs_X_W_B: y[.., M, N] = x[.., M, K] * w[N, K]' + b[N], w of bf16 in panels of sixteen rows, two neighbours of a
   row side by side, the last of an odd number beside a zero; x of f32 or bf16, b of type B or NULL; of the class `native`.

   x is rounded to bf16, to nearest, halves to even, once a row.

   Order: the products of an element are added in pairs (simd/pairs.h), k ascending, in chunks of OIC_CHUNK from zero, and the
   sums of the chunks in order, from zero; then comes b.  No other element and no size but K has a part in it.

   Members: batches shape[rank] of x lie at the strides xs, its rows ldx apart; rows are counted through all batches.
   `work` has room for `room` of them: 2 bytes an element, of an even number.  Where there are more rows, they are taken in
   turns.  A turn is two phases: ..._prepare rounds rows first..end-1 of those from `from` on, ..._part computes streams
   first..end-1, four panels each, for all of them.  Where there is `then`, it is given the results (common/then.h), and y is
   NULL, or where it writes what it makes of them, as they would lie there.  Sums are on the stack: 28 KiB. */
#include "common/products.h"
#include "common/then.h"
#include "../simd/pairs.h"
#include "element.h"

typedef struct {
    const T *x;
    const W_T *w;
    const B_T *b;
    T *y;
    void *work;
    ptrdiff_t rank;
    const ptrdiff_t *shape, *xs;
    ptrdiff_t M, K, N, ldx, room, from;
    oic_then *then;
    const void *context;
} ARGS(oic_linear_pairs);

/* Rows of the turn that begins at a->from. */
static inline ptrdiff_t NAME(oic_linear_pairs_rows)(const ARGS(oic_linear_pairs) *a)
{
    const ptrdiff_t left = oic_product(a->rank, a->shape) * a->M - a->from;
    return left < a->room ? left : a->room;
}

static inline void NAME(oic_linear_pairs_prepare)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(oic_linear_pairs) *const a = args;
    const ptrdiff_t K = a->K;
    uint16_t *to = (uint16_t *)a->work + first * (K + K % 2);
    (void)worker;
    for (ptrdiff_t r = first; r < end; ++r, to += K + K % 2) {
        const ptrdiff_t batch = (a->from + r) / a->M, row = (a->from + r) % a->M;
        const T *const x = a->x + oic_offset(batch, a->rank, a->shape, a->xs) + row * a->ldx;
#if X_IS_COMPUTED
        const ptrdiff_t whole = K - K % OIC_WIDTH;
        ptrdiff_t k = 0;
        for (; k < whole; k += OIC_WIDTH) {
            oic_register_store_bf16(to + k, oic_register_load_f32(x + k));
        }
        for (; k < K; ++k) {
            to[k] = oic_f32_to_bf16(x[k]);
        }
#else
        memcpy(to, x, (size_t)K * sizeof *to);
#endif
        if (K % 2) {
            to[K] = 0;
        }
    }
}

/* Columns j..j+n-1 of a row of y, of their sums and b. */
static inline void NAME(oic_linear_pairs_store)(const ARGS(oic_linear_pairs) *a, const float *restrict sum, ptrdiff_t row,
                                                ptrdiff_t j, ptrdiff_t n)
{
    const B_T *const b = a->b;
    T *const y = a->y + row * a->N + j;
    ptrdiff_t l = 0;
    for (; l + OIC_WIDTH <= n; l += OIC_WIDTH) {
        const oic_register_f32 v = oic_register_load_f32(sum + l);
        OIC_PASTE(oic_register_store_, OIC_X)(y + l, b != NULL ? v + OIC_PASTE(oic_register_load_, OIC_B)(b + j + l) : v);
    }
    for (; l < n; ++l) {
        STORE(y, l, b != NULL ? sum[l] + (float)B_LOAD(b, j + l) : sum[l]);
    }
}

/* Columns j..j+n-1 of rows i0..i0+rows-1 of the turn, which are written soon, are asked for. */
static inline void NAME(oic_linear_pairs_ask)(const ARGS(oic_linear_pairs) *a, ptrdiff_t i0, ptrdiff_t rows, ptrdiff_t j,
                                              ptrdiff_t n)
{
    for (ptrdiff_t i = 0; a->y != NULL && i < rows; ++i) {
        for (ptrdiff_t e = 0; e < n + OIC_LANES - 1; e += OIC_LANES) {
            OIC_TILE_AHEAD_SUMS(a->y + (a->from + i0 + i) * a->N + j + (e < n ? e : n - 1));
        }
    }
}

/* The sums of columns j..j+n-1 of rows i0..i0+rows-1 of the turn, ld apart, with b, are stored or handed on. */
static inline void NAME(oic_linear_pairs_give)(const ARGS(oic_linear_pairs) *a, float *sum, ptrdiff_t ld, ptrdiff_t i0,
                                               ptrdiff_t rows, ptrdiff_t j, ptrdiff_t n)
{
    if (a->then == NULL) {
        for (ptrdiff_t i = 0; i < rows; ++i) {
            NAME(oic_linear_pairs_store)(a, sum + i * ld, a->from + i0 + i, j, n);
        }
        return;
    }
    for (ptrdiff_t i = 0; a->b != NULL && i < rows; ++i) {
        for (ptrdiff_t l = 0; l < n; ++l) {
            sum[i * ld + l] += (float)B_LOAD(a->b, j + l);
        }
    }
    a->then(a->context, sum, ld, a->from + i0, a->from + i0 + rows, j, j + n);
}

#if OIC_PAIRS_BESIDE
/* All rows, few, of two shares of `share` panels each from panel `first` on.  Each lies in one piece and is read from its beginning
   to its end, beside the other. */
static inline void NAME(oic_linear_pairs_beside)(const ARGS(oic_linear_pairs) *a, ptrdiff_t rows, ptrdiff_t first, ptrdiff_t share)
{
    const ptrdiff_t K = a->K + a->K % 2;
    for (ptrdiff_t g = first; g < first + share; ++g) {
        float sums[oic_pairs_rows * 2 * OIC_LANES];
        for (ptrdiff_t k = 0; k < K; k += OIC_CHUNK) {
            const oic_pairs t = {.x = (const uint16_t *)a->work + k, .w = a->w + (g * K + k) * OIC_LANES, .xm = K,
                                 .wg = share * OIC_LANES * K, .n = (K - k < OIC_CHUNK ? K - k : OIC_CHUNK) / 2};
            oic_pairs_sum(&t, rows, 2, sums, 2 * OIC_LANES, k == 0 ? OIC_TILE_SET : OIC_TILE_ADD);
        }
        for (ptrdiff_t p = 0; p < 2; ++p) {
            const ptrdiff_t j = (g + p * share) * OIC_LANES, left = a->N - j;
            NAME(oic_linear_pairs_give)(a, sums + p * OIC_LANES, 2 * OIC_LANES, 0, rows, j, left < OIC_LANES ? left : OIC_LANES);
        }
    }
}
#endif

static inline void NAME(oic_linear_pairs_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(oic_linear_pairs) *const a = args;
    const ptrdiff_t all = NAME(oic_linear_pairs_rows)(a), K = a->K + a->K % 2, N = a->N;
    const ptrdiff_t panels = oic_product_panels(N), last = 4 * end < panels ? 4 * end : panels;
    float sums[OIC_ROWS * oic_pairs_side * OIC_LANES], few_sums[oic_pairs_rows * 8 * OIC_LANES];
    ptrdiff_t from = 4 * first;
    (void)worker;
#if OIC_PAIRS_BESIDE
    if (all <= oic_pairs_rows && panels * K * OIC_LANES * (ptrdiff_t)sizeof *a->w >= OIC_SHARED_BYTES(1)) {
        const ptrdiff_t share = (last - from) / 2;
        NAME(oic_linear_pairs_beside)(a, all, from, share);
        from += 2 * share;
    }
#endif
    for (ptrdiff_t i0 = 0, rows; i0 < all; i0 += rows) {
        rows = oic_rows(all - i0, OIC_ROWS, oic_pairs_rows);
        const int few = rows <= oic_pairs_rows;
        const ptrdiff_t tiles = (rows + oic_pairs_rows - 1) / oic_pairs_rows;
        const ptrdiff_t side = oic_pairs_panels(few ? rows : oic_pairs_rows), span = tiles > 2 ? OIC_PAIRS_SPAN : OIC_CHUNK;
        float *const sum = few ? few_sums : sums;
        for (ptrdiff_t g = from, wide; g < last; g += wide) {
            wide = last - g < side ? 1 : side;
            const ptrdiff_t ld = wide * OIC_LANES, j = g * OIC_LANES, columns = N - j < ld ? N - j : ld;
            ptrdiff_t k0 = 0;
            do {
                const ptrdiff_t k1 = K - k0 < span ? K : k0 + span;
                oic_pairs t = {.xm = K, .wg = OIC_LANES * K};
                t.next = (uintptr_t)(a->w + (k1 < K ? g * K + k1 : (g + wide) * K) * OIC_LANES);
                t.step = (2 * OIC_LANES * sizeof *a->w + (uintptr_t)tiles - 1) / (uintptr_t)tiles;
                t.apart = (uintptr_t)t.wg * sizeof *a->w;
                for (ptrdiff_t i = 0, r, tile = 0; i < rows; i += r, ++tile) {
                    r = (rows - i + tiles - tile - 1) / (tiles - tile); /* as even as can be */
                    ptrdiff_t k = k0;
                    do {
                        const ptrdiff_t n = K - k < OIC_CHUNK ? K - k : OIC_CHUNK;
                        t.x = (const uint16_t *)a->work + (i0 + i) * K + k;
                        t.w = a->w + (g * K + k) * OIC_LANES;
                        t.n = n / 2;
                        if (k == k0 && k1 == K) {
                            NAME(oic_linear_pairs_ask)(a, i0 + i, r, j, columns);
                        }
                        oic_pairs_sum(&t, r, wide, sum + i * ld, ld, k == 0 ? OIC_TILE_SET : OIC_TILE_ADD);
                        t.next += (uintptr_t)t.n * t.step;
                        k += OIC_CHUNK;
                    } while (k < k1);
                    if (k1 == K) {
                        NAME(oic_linear_pairs_give)(a, sum + i * ld, ld, i0 + i, r, j, columns);
                    }
                }
                k0 += span;
            } while (k0 < K);
        }
    }
}

static inline void NAME(oic_linear_pairs)(const ARGS(oic_linear_pairs) *a)
{
    ARGS(oic_linear_pairs) turn = *a;
    const ptrdiff_t rows = oic_product(a->rank, a->shape) * a->M;
    for (turn.from = 0; turn.from < rows; turn.from += a->room) {
        NAME(oic_linear_pairs_prepare)(&turn, 0, NAME(oic_linear_pairs_rows)(&turn), 0);
        NAME(oic_linear_pairs_part)(&turn, 0, (oic_product_panels(a->N) + 3) / 4, 0);
    }
}

#if defined(OIC_POOL_H)
/* The same, each turn's rows and then its streams divided among threads. */
static inline void NAME(oic_linear_pairs_divided)(oic_pool *pool, int most, ptrdiff_t units, int64_t work,
                                                  const ARGS(oic_linear_pairs) *a)
{
    ARGS(oic_linear_pairs) turn = *a;
    const ptrdiff_t rows = oic_product(a->rank, a->shape) * a->M;
    for (turn.from = 0; turn.from < rows; turn.from += a->room) {
        const ptrdiff_t room = NAME(oic_linear_pairs_rows)(&turn);
        oic_divide(pool, most, room, (int64_t)room * a->K, NAME(oic_linear_pairs_prepare), &turn);
        oic_divide(pool, most, units, work, NAME(oic_linear_pairs_part), &turn);
    }
}
#endif

#include "end.h"
