/* The body that kernels of attention share.  The kernel that includes it defines PART(f), the names of its functions, and
   Q_T, Q_LOAD, Q_STORE: queries and results; keys and values are of type W_T.

   y[.., N, Hq, Dv] = softmax(cap(scale * q * k') + bias) * v over the keys that take part; zeros where none does.
   cap(s) = softcap * tanh(s / softcap), or s.

   Order: a score is the sum of its products in sixteen sums, product d in sum d mod 16, and their tree (keys lie as rows
   in the state, and are not copied into panels).  Keys come in blocks of OIC_ATTENTION_KEYS, at multiples of it; a block
   brings sum and results to the largest score so far, adds its weights in sixteen sums, and its values key by key.  Blocks
   make spans of OIC_ATTENTION_SPAN keys, at multiples of it: each begins from nothing, and what it gives is joined to what
   those before it gave.  A query's bits depend on the keys that take part and on nothing else: not on the other queries of
   a step, nor on the division into units.

   A unit is a leading index, a key head, and OIC_ATTENTION_ROWS of the queries that share its keys.  Where a key head has no
   more of them, neighbouring heads go through a block together, a few keys of all heads at a time: as they lie in memory, so
   that the machine sees what will be read.

   Where one unit has all queries of a key head, threads share spans of the keys, so that each reads memory in order.  `parts`
   has room for the results of all rows, and for what `spans` spans give each; then for as many PART(marks).

   Scratch, in numbers, for rows that go together, at most OIC_ATTENTION_TOGETHER or those of one unit, widths rounded up to
   whole lanes: rows * (Dk + 2 * Dv + keys), of keys those of a block at most; then keys * min(Dv, 64) where a unit has
   OIC_ATTENTION_PACKED rows or values are widened, and 4 * Dk, in the same place, where keys are. */

/* Keys and values are read as they are stored, if registers can be made of them, or they are widened before. */
#if OIC_JOIN_3(OIC_AS_STORED, OIC_COMPUTED, OIC_W)
#define ROWS_AS_STORED 1
#define ROW_T W_T
#define ROWS(f) OIC_JOIN_3(f, OIC_COMPUTED, OIC_W)
#else
#define ROWS_AS_STORED 0
#define ROW_T C
#define ROWS(f) OIC_JOIN_3(f, OIC_COMPUTED, OIC_COMPUTED)
#endif
#define WIDE(f) OIC_JOIN_3(f, OIC_COMPUTED, OIC_COMPUTED)

/* Rows of queries that go through the keys together: `heads` key heads from hk on, of leading index b, and of each of them
   `count` rows from `first` on; a row is a query, and one of the heads that share its keys. */
typedef struct {
    ptrdiff_t b, hk, heads, first, count, pitch; /* pitch: scores of a row, whole lanes */
    ptrdiff_t lo[OIC_ATTENTION_ROWS], hi[OIC_ATTENTION_ROWS]; /* keys that take part, of each row of a head */
    C top[OIC_ATTENTION_TOGETHER], sum[OIC_ATTENTION_TOGETHER];
    uint8_t any[OIC_ATTENTION_TOGETHER];
    C *q, *acc, *total, *s, *wide; /* [rows, padded Dk], [rows, padded Dv] twice, [rows, pitch]; widened keys and values */
} PART(group);

/* What the keys of a span, or of several, give a row, beside its values: the largest score, the sum of weights, and not 0
   if a key takes part. */
typedef struct {
    C top, sum, any;
} PART(marks);

/* Where everything lies, in elements; arrays of strides are those of the leading axes, then as said. */
typedef struct {
    const Q_T *q;           /* [.., N, Hq, Dk], strides qs of N and heads */
    const W_T *k, *v;       /* [.., T, Hk, D], strides ks and vs of T and heads */
    const float *bias;      /* strides bs of heads, N and T; NULL: none */
    const uint8_t *mask;    /* strides ms of heads, N and T; NULL: none */
    const int32_t *kv_len;  /* strides ls; NULL: `length` */
    const float *k_scale;   /* strides kss of T and heads; NULL: 1 */
    const float *v_scale;   /* strides vss of T and heads; NULL: 1 */
    Q_T *y;                 /* dense */
    C *work;                /* scratch of a unit, `room` numbers for each worker */
    ptrdiff_t room;
    C *parts;               /* NULL: spans are not shared */
    ptrdiff_t spans, from;  /* from: the first of those that are in `parts` */
    ptrdiff_t rank;
    const ptrdiff_t *shape; /* [rank] */
    ptrdiff_t N, keys, Hq, Hk, Dk, Dv;
    const ptrdiff_t *qs, *ks, *vs, *bs, *ms, *kss, *vss, *ls;
    int64_t length;         /* keys in use */
    C scale, softcap;       /* 0: no cap */
    int causal;
    int64_t window;         /* -1: none */
} PART(args);

/* One block of one row: of the scores s, those from `lo` to `hi` with ok (NULL: all) become weights relative to the largest
   so far, *top, the others 0; the sum of weights so far, *sum, and acc[D] are brought to the same scale. */
static inline void PART(weigh)(C *restrict s, const uint8_t *restrict ok, ptrdiff_t lo, ptrdiff_t hi, C *restrict top,
                               C *restrict sum, C *restrict acc, ptrdiff_t D)
{
    const ptrdiff_t n = oic_padded(hi);
    C high = *top;
    for (ptrdiff_t j = 0; j < lo; ++j) {
        s[j] = (C)-INFINITY;
    }
    for (ptrdiff_t j = lo; ok != NULL && j < hi; ++j) {
        s[j] = ok[j] ? s[j] : (C)-INFINITY;
    }
    for (ptrdiff_t j = hi; j < n; ++j) {
        s[j] = (C)-INFINITY;
    }
    high = MATH(oic_largest_of)(s, n, high);
    if (high > *top && *top == (C)-INFINITY) { /* the first keys: results are 0 or NaN, and stay what they are */
        *top = high;
    } else if (high > *top) {
        const C factor = MATH(oic_exp)(*top - high);
        *sum *= factor;
        for (ptrdiff_t d = 0; d < D; ++d) {
            acc[d] *= factor;
        }
        *top = high;
    }
    if (high == (C)-INFINITY) { /* only -inf so far, or NaN, which the sum keeps */
        for (ptrdiff_t j = 0; j < n; ++j) {
            *sum += s[j] != s[j] ? s[j] : (C)0;
            s[j] = (C)0;
        }
        return;
    }
    for (ptrdiff_t j = 0; j < n; ++j) { /* 0 for -inf */
        s[j] = MATH(oic_exp)(s[j] - high);
    }
    *sum += MATH(oic_sum_of)(s, n);
}

/* The query of row r of head hh of a group, and its head of queries. */
static inline ptrdiff_t PART(query)(const PART(args) *a, const PART(group) *g, ptrdiff_t r, ptrdiff_t hh, ptrdiff_t *head)
{
    const ptrdiff_t group = a->Hq == a->Hk ? 1 : a->Hq / a->Hk;
    *head = (g->hk + hh) * group;
    if (group == 1) { /* no divisions */
        return g->first + r;
    }
    *head += (g->first + r) % group;
    return (g->first + r) / group;
}

/* The part of a block's keys j0 to j0 + n that row r may see: from *lo to *hi, of the block. */
static inline int PART(sees)(const PART(group) *g, ptrdiff_t r, ptrdiff_t j0, ptrdiff_t n, ptrdiff_t *lo, ptrdiff_t *hi)
{
    *lo = g->lo[r] > j0 ? g->lo[r] - j0 : 0;
    *hi = g->hi[r] - j0 < n ? g->hi[r] - j0 : n;
    return *lo < *hi;
}

/* ok[j]: whether the mask lets a query see key j0 + j; NULL without a mask. */
static inline const uint8_t *PART(masked)(const PART(args) *a, const PART(group) *g, ptrdiff_t r, ptrdiff_t hh,
                                          ptrdiff_t j0, ptrdiff_t lo, ptrdiff_t hi, uint8_t *restrict ok)
{
    if (a->mask == NULL) {
        return NULL;
    }
    ptrdiff_t h;
    const ptrdiff_t i = PART(query)(a, g, r, hh, &h), rank = a->rank;
    const ptrdiff_t m0 = oic_offset(g->b, rank, a->shape, a->ms) + h * a->ms[rank] + i * a->ms[rank + 1];
    for (ptrdiff_t j = lo; j < hi; ++j) {
        ok[j] = a->mask[m0 + (j0 + j) * a->ms[rank + 2]];
    }
    return ok;
}

/* Keys or values as they are computed with. */
static inline void PART(widen)(const W_T *restrict from, ptrdiff_t n, C *restrict to)
{
#if W_IS_COMPUTED
    memcpy(to, from, (size_t)n * sizeof(C));
#else
    if (sizeof(C) == sizeof(float)) {
        (void)W_WIDEN(from, n, (float *)(void *)to);
        return;
    }
    for (ptrdiff_t d = 0; d < n; ++d) {
        to[d] = (C)W_LOAD(from, d);
    }
#endif
}

/* The products of all rows with keys j0 to j0 + n, which begin at element k0, four keys of all heads at a time. */
static inline void PART(scores)(const PART(args) *a, const PART(group) *g, ptrdiff_t j0, ptrdiff_t n, ptrdiff_t k0)
{
    const ptrdiff_t Dk = a->Dk, width = oic_padded(Dk), kt = a->ks[a->rank], kh = a->ks[a->rank + 1];
    for (ptrdiff_t j = 0; j < n; j += 4) {
        const ptrdiff_t rows = n - j < 4 ? n - j : 4;
        ptrdiff_t r = 0, end = g->count; /* the first rows see the least of the last keys, the last rows of the first */
        while (r < end && g->hi[r] <= j0 + j) {
            ++r;
        }
        while (r < end && g->lo[end - 1] >= j0 + j + 4) {
            --end;
        }
#if ROWS_AS_STORED
        if (end - r == g->count && (W_IS_COMPUTED || g->count < OIC_ATTENTION_PACKED)) {
            ROWS(oic_row_dots)(g->q, width, g->heads, g->count, a->k + k0 + j * kt, kt, kh, rows, Dk, g->s + j, g->pitch);
            continue;
        }
#endif
        for (ptrdiff_t hh = 0; hh < g->heads; ++hh) {
            const ptrdiff_t at = k0 + hh * kh + j * kt, row = hh * g->count + r;
            const C *from = (const C *)(const void *)(a->k + (W_IS_COMPUTED ? at : 0));
            for (ptrdiff_t e = 0; !W_IS_COMPUTED && e < rows; ++e) {
                PART(widen)(a->k + at + e * kt, Dk, g->wide + e * width);
                from = g->wide;
            }
            WIDE(oic_row_dots)(g->q + row * width, width, 1, end - r, from, W_IS_COMPUTED ? kt : width, 0, rows, Dk,
                           g->s + row * g->pitch + j, g->pitch);
        }
    }
}

/* What follows the product of a row with the keys that it sees: scale of keys, cap, bias. */
static inline void PART(adjust)(const PART(args) *a, const PART(group) *g, ptrdiff_t r, ptrdiff_t hh, ptrdiff_t j0,
                                ptrdiff_t lo, ptrdiff_t hi, C *restrict s)
{
    ptrdiff_t h;
    const ptrdiff_t i = PART(query)(a, g, r, hh, &h), rank = a->rank;
    if (a->k_scale != NULL) {
        const ptrdiff_t c0 = oic_offset(g->b, rank, a->shape, a->kss) + (g->hk + hh) * a->kss[rank + 1];
        for (ptrdiff_t j = lo; j < hi; ++j) {
            s[j] *= (C)a->k_scale[c0 + (j0 + j) * a->kss[rank]];
        }
    }
    if (a->softcap > (C)0) {
        for (ptrdiff_t j = lo; j < hi; ++j) {
            s[j] = a->softcap * MATH(oic_tanh)(s[j] / a->softcap);
        }
    }
    if (a->bias != NULL) {
        const ptrdiff_t c0 = oic_offset(g->b, rank, a->shape, a->bs) + h * a->bs[rank] + i * a->bs[rank + 1];
        const float *restrict const bias = a->bias + c0;
        const ptrdiff_t step = a->bs[rank + 2];
        for (ptrdiff_t j = lo; step == 1 && j < hi; ++j) {
            s[j] += (C)bias[j0 + j];
        }
        for (ptrdiff_t j = lo; step != 1 && j < hi; ++j) {
            s[j] += (C)bias[(j0 + j) * step];
        }
    }
}

/* The scores of a block become weights. */
static inline void PART(weights)(const PART(args) *a, PART(group) *g, ptrdiff_t j0, ptrdiff_t n)
{
    const ptrdiff_t rank = a->rank, width = oic_padded(a->Dv);
    for (ptrdiff_t row = 0; row < g->heads * g->count; ++row) {
        const ptrdiff_t hh = row / g->count, r = row % g->count;
        C *const s = g->s + row * g->pitch;
        uint8_t seen[OIC_ATTENTION_KEYS];
        ptrdiff_t lo, hi;
        if (!PART(sees)(g, r, j0, n, &lo, &hi)) {
            continue;
        }
        const uint8_t *const ok = PART(masked)(a, g, r, hh, j0, lo, hi, seen);
        PART(adjust)(a, g, r, hh, j0, lo, hi, s);
        g->any[row] |= ok == NULL;
        for (ptrdiff_t j = lo; ok != NULL && j < hi; ++j) {
            g->any[row] |= ok[j];
        }
        PART(weigh)(s, ok, lo, hi, &g->top[row], &g->sum[row], g->acc + row * width, a->Dv);
        if (a->v_scale != NULL) {
            const ptrdiff_t c0 = oic_offset(g->b, rank, a->shape, a->vss) + (g->hk + hh) * a->vss[rank + 1];
            for (ptrdiff_t j = lo; j < hi; ++j) {
                s[j] *= ok == NULL || ok[j] ? (C)a->v_scale[c0 + (j0 + j) * a->vss[rank]] : (C)0;
            }
        }
    }
}

/* acc[D] += w[n] times rows v, `ld` apart, where ok; NULL: all. */
static inline void PART(add)(C *restrict acc, const C *restrict w, const ROW_T *restrict v, ptrdiff_t ld, ptrdiff_t n,
                             ptrdiff_t D)
{
    const ptrdiff_t lanes = (ptrdiff_t)(sizeof(MATH(oic_register)) / sizeof(C));
    ptrdiff_t d = 0;
    for (; D - d >= 4 * OIC_LANES; d += 4 * OIC_LANES) {
        ROWS(oic_weighted)(acc + d, 0, 1, w, 0, v + d, ld, 0, n, 4 * OIC_LANES);
    }
    for (; D - d >= OIC_LANES; d += OIC_LANES) {
        ROWS(oic_weighted)(acc + d, 0, 1, w, 0, v + d, ld, 0, n, OIC_LANES);
    }
    for (; d < D; d += lanes) {
        ROWS(oic_weighted_narrow)(acc + d, 0, 1, w, 0, v + d, ld, 0, n, D - d);
    }
}

/* The same of four rows, `am` and `wm` apart, each with values of its own if there are fewer columns than lanes. */
static inline void PART(add_4)(C *restrict acc, ptrdiff_t am, const C *restrict w, ptrdiff_t wm, const ROW_T *restrict v,
                               ptrdiff_t ld, ptrdiff_t n, ptrdiff_t D)
{
    const ptrdiff_t lanes = (ptrdiff_t)(sizeof(MATH(oic_register)) / sizeof(C));
    ptrdiff_t d = 0;
    for (; D - d >= OIC_LANES; d += OIC_LANES) {
        ROWS(oic_weighted_4)(acc + d, am, w, wm, v + d, ld, n);
    }
    for (; d < D; d += lanes) {
        C *const to[4] = {acc + d, acc + am + d, acc + 2 * am + d, acc + 3 * am + d};
        const C *const ws[4] = {w, w + wm, w + 2 * wm, w + 3 * wm};
        const ROW_T *const vs[4] = {v + d, v + d, v + d, v + d};
        ROWS(oic_weighted_narrow_4)(to, ws, vs, ld, n, D - d);
    }
}

/* A row's values where its mask leaves gaps: the keys between them. */
static inline void PART(add_seen)(C *restrict acc, const C *restrict w, const uint8_t *restrict ok, ptrdiff_t lo,
                                  ptrdiff_t hi, const ROW_T *restrict v, ptrdiff_t ld, ptrdiff_t D)
{
    for (ptrdiff_t j = lo; j < hi;) {
        ptrdiff_t end = j;
        while (end < hi && ok[end]) {
            ++end;
        }
        PART(add)(acc, w + j, v + j * ld, ld, end - j, D);
        for (j = end; j < hi && !ok[j]; ++j) {
        }
    }
}

/* The values of keys j0 + j to j0 + j + n, v[n, ld apart][D], to columns d on of all rows of a head. */
static inline void PART(head_values)(const PART(args) *a, const PART(group) *g, ptrdiff_t hh, ptrdiff_t j0, ptrdiff_t j,
                                     ptrdiff_t n, const ROW_T *restrict v, ptrdiff_t ld, ptrdiff_t d, ptrdiff_t D)
{
    const ptrdiff_t width = oic_padded(a->Dv);
    for (ptrdiff_t r = 0; r < g->count;) {
        C *const acc = g->acc + (hh * g->count + r) * width + d;
        const C *const w = g->s + (hh * g->count + r) * g->pitch + j;
        uint8_t seen[OIC_ATTENTION_KEYS];
        ptrdiff_t lo, hi, lows[4], highs[4];
        if (a->mask == NULL && r + 4 <= g->count) {
            ptrdiff_t from = 0, to = n;
            for (ptrdiff_t e = 0; e < 4; ++e) {
                if (!PART(sees)(g, r + e, j0 + j, n, &lows[e], &highs[e])) {
                    lows[e] = highs[e] = 0;
                }
                from = lows[e] > from ? lows[e] : from;
                to = highs[e] < to ? highs[e] : to;
            }
            to = to < from ? from : to;
            for (ptrdiff_t e = 0; e < 4; ++e) { /* what one sees before all four do */
                const ptrdiff_t end = highs[e] < from ? highs[e] : from;
                if (lows[e] < end) {
                    PART(add)(acc + e * width, w + e * g->pitch + lows[e], v + lows[e] * ld, ld, end - lows[e], D);
                }
            }
            PART(add_4)(acc, width, w + from, g->pitch, v + from * ld, ld, to - from, D);
            for (ptrdiff_t e = 0; e < 4; ++e) {
                const ptrdiff_t begin = lows[e] > to ? lows[e] : to;
                if (begin < highs[e]) {
                    PART(add)(acc + e * width, w + e * g->pitch + begin, v + begin * ld, ld, highs[e] - begin, D);
                }
            }
            r += 4;
            continue;
        }
        if (PART(sees)(g, r, j0 + j, n, &lo, &hi)) {
            const uint8_t *const ok = PART(masked)(a, g, r, hh, j0 + j, lo, hi, seen);
            if (ok == NULL) {
                PART(add)(acc, w + lo, v + lo * ld, ld, hi - lo, D);
            } else {
                PART(add_seen)(acc, w, ok, lo, hi, v, ld, D);
            }
        }
        ++r;
    }
}

/* The values of a block, n of them from element v0 on, to the results: as they lie in memory, a few keys of all heads at a
   time, where there are several. */
static inline void PART(values)(const PART(args) *a, const PART(group) *g, ptrdiff_t j0, ptrdiff_t n, ptrdiff_t v0)
{
    const ptrdiff_t vt = a->vs[a->rank], vh = a->vs[a->rank + 1], width = oic_padded(a->Dv);
#if ROWS_AS_STORED
    const ptrdiff_t lanes = (ptrdiff_t)(sizeof(MATH(oic_register)) / sizeof(C));
#endif
    const ptrdiff_t few = g->heads == 1 ? n : g->count < 4 ? 8 : 32;
    for (ptrdiff_t j = 0; j < n; j += few) {
        const ptrdiff_t m = n - j < few ? n - j : few;
#if ROWS_AS_STORED
        if (g->count == 1 && a->mask == NULL && g->lo[0] <= j0 + j && g->hi[0] >= j0 + j + m) {
            const W_T *const v = a->v + v0 + j * vt;
            ptrdiff_t d = a->Dv - a->Dv % OIC_LANES;
            ROWS(oic_weighted)(g->acc, width, g->heads, g->s + j, g->pitch, v, vt, vh, m, d);
            for (; d < a->Dv; d += lanes) {
                ROWS(oic_weighted_narrow)(g->acc + d, width, g->heads, g->s + j, g->pitch, v + d, vt, vh, m, a->Dv - d);
            }
            continue;
        }
#endif
        for (ptrdiff_t hh = 0; hh < g->heads; ++hh) {
            const ptrdiff_t at = v0 + hh * vh + j * vt;
#if ROWS_AS_STORED
            if (!W_IS_COMPUTED || g->count < OIC_ATTENTION_PACKED) {
                PART(head_values)(a, g, hh, j0, j, m, a->v + at, vt, 0, a->Dv);
                continue;
            }
#endif
#if W_IS_COMPUTED || !ROWS_AS_STORED
            const ptrdiff_t stripe = width < 4 * OIC_LANES ? width : 4 * OIC_LANES; /* columns side by side */
            for (ptrdiff_t d = 0; d < a->Dv; d += stripe) {
                const ptrdiff_t D = a->Dv - d < stripe ? a->Dv - d : stripe;
                for (ptrdiff_t e = 0; e < m; ++e) {
                    PART(widen)(a->v + at + e * vt + d, D, g->wide + e * stripe);
                }
                PART(head_values)(a, g, hh, j0, j, m, g->wide, stripe, d, D);
            }
#endif
        }
    }
}

/* The keys that rows of a group see, from *first to *to, all together. */
static inline void PART(ranges)(const PART(args) *a, PART(group) *g, ptrdiff_t *first, ptrdiff_t *to)
{
    const int64_t used = a->kv_len != NULL ? a->kv_len[oic_offset(g->b, a->rank, a->shape, a->ls)] : a->length;
    ptrdiff_t h;
    *first = a->keys;
    *to = 0;
    for (ptrdiff_t r = 0; r < g->count; ++r) {
        const ptrdiff_t i = PART(query)(a, g, r, 0, &h);
        oic_attention_range(i, a->N, a->keys, used, a->causal, a->window, &g->lo[r], &g->hi[r]);
        *first = g->lo[r] < *first ? g->lo[r] : *first;
        *to = g->hi[r] > *to ? g->hi[r] : *to;
    }
}

/* Queries as they are computed with. */
static inline void PART(queries)(const PART(args) *a, const PART(group) *g)
{
    const ptrdiff_t Dk = a->Dk, width = oic_padded(Dk), q0 = oic_offset(g->b, a->rank, a->shape, a->qs);
    const C scale = a->scale;
    for (ptrdiff_t row = 0; row < g->heads * g->count; ++row) {
        ptrdiff_t h;
        const ptrdiff_t i = PART(query)(a, g, row % g->count, row / g->count, &h);
        const Q_T *restrict const from = a->q + q0 + i * a->qs[a->rank] + h * a->qs[a->rank + 1];
        C *restrict const q = g->q + row * width;
        for (ptrdiff_t d = 0; d < Dk; ++d) {
            q[d] = (C)Q_LOAD(from, d) * scale;
        }
        for (ptrdiff_t d = Dk; d < width; ++d) {
            q[d] = (C)0;
        }
    }
}

/* What keys j0 to `to`, of one span, give the rows of a group. */
static inline void PART(span)(const PART(args) *a, PART(group) *g, ptrdiff_t j0, ptrdiff_t to)
{
    const ptrdiff_t rank = a->rank, rows = g->heads * g->count, width = oic_padded(a->Dv), kt = a->ks[rank], vt = a->vs[rank];
    const ptrdiff_t k0 = oic_offset(g->b, rank, a->shape, a->ks) + g->hk * a->ks[rank + 1];
    const ptrdiff_t v0 = oic_offset(g->b, rank, a->shape, a->vs) + g->hk * a->vs[rank + 1];
    for (ptrdiff_t row = 0; row < rows; ++row) {
        for (ptrdiff_t d = 0; d < width; ++d) {
            g->acc[row * width + d] = (C)0;
        }
        g->top[row] = (C)-INFINITY;
        g->sum[row] = (C)0;
        g->any[row] = 0;
    }
    for (; j0 < to; j0 += OIC_ATTENTION_KEYS) {
        const ptrdiff_t n = to - j0 < OIC_ATTENTION_KEYS ? to - j0 : OIC_ATTENTION_KEYS;
        PART(scores)(a, g, j0, n, k0 + j0 * kt);
        PART(weights)(a, g, j0, n);
        PART(values)(a, g, j0, n, v0 + j0 * vt);
    }
}

/* What spans give a row so far, and one more. */
static inline void PART(join)(PART(marks) *all, C *restrict acc, const PART(marks) *more, const C *restrict added, ptrdiff_t D)
{
    if (more->top > all->top) { /* where there was no score, results are 0 or NaN, and stay what they are */
        const C factor = all->top == (C)-INFINITY ? (C)1 : MATH(oic_exp)(all->top - more->top);
        all->sum = MATH(oic_madd)(all->sum, factor, more->sum);
        for (ptrdiff_t d = 0; d < D; ++d) {
            acc[d] = MATH(oic_madd)(acc[d], factor, added[d]);
        }
        all->top = more->top;
    } else {
        const C factor = more->top == (C)-INFINITY ? (C)1 : MATH(oic_exp)(more->top - all->top);
        all->sum = MATH(oic_madd)(more->sum, factor, all->sum);
        for (ptrdiff_t d = 0; d < D; ++d) {
            acc[d] = MATH(oic_madd)(added[d], factor, acc[d]);
        }
    }
    all->any += more->any;
}

/* The results of a row: zeros where no key takes part. */
static inline void PART(finish)(const PART(args) *a, const PART(group) *g, ptrdiff_t row, const PART(marks) *all,
                                C *restrict acc)
{
    const ptrdiff_t D = a->Dv, width = oic_padded(D);
    ptrdiff_t h;
    const ptrdiff_t i = PART(query)(a, g, row % g->count, row / g->count, &h);
    Q_T *restrict const y = a->y + g->b * a->N * a->Hq * D + (i * a->Hq + h) * D;
    if (all->any != (C)0) {
        for (ptrdiff_t d = 0; d < width; ++d) {
            acc[d] /= all->sum;
        }
    }
    for (ptrdiff_t d = 0; d < D; ++d) {
        Q_STORE(y, d, acc[d]);
    }
}

/* All of a group, span by span. */
static inline void PART(attend)(const PART(args) *a, PART(group) *g)
{
    const ptrdiff_t rows = g->heads * g->count, width = oic_padded(a->Dv);
    C *restrict const total = g->total;
    PART(marks) all[OIC_ATTENTION_TOGETHER];
    ptrdiff_t j0, first, to;
    PART(ranges)(a, g, &first, &to);
    PART(queries)(a, g);
    for (ptrdiff_t row = 0; row < rows; ++row) {
        all[row] = (PART(marks)){(C)-INFINITY, (C)0, (C)0};
        for (ptrdiff_t d = 0; d < width; ++d) {
            total[row * width + d] = (C)0;
        }
    }
    for (j0 = first - first % OIC_ATTENTION_KEYS; j0 < to; j0 += OIC_ATTENTION_SPAN - j0 % OIC_ATTENTION_SPAN) {
        const ptrdiff_t end = j0 - j0 % OIC_ATTENTION_SPAN + OIC_ATTENTION_SPAN;
        PART(span)(a, g, j0, end < to ? end : to);
        for (ptrdiff_t row = 0; row < rows; ++row) {
            const ptrdiff_t r = row % g->count;
            if (g->lo[r] < end && g->hi[r] > j0) {
                const PART(marks) more = {g->top[row], g->sum[row], (C)g->any[row]};
                PART(join)(&all[row], total + row * width, &more, g->acc + row * width, width);
            }
        }
    }
    for (ptrdiff_t row = 0; row < rows; ++row) {
        PART(finish)(a, g, row, &all[row], total + row * width);
    }
}

/* Rows of a key head, and units of them. */
static inline ptrdiff_t PART(rows)(const PART(args) *a)
{
    return a->Hk > 0 ? a->N * (a->Hq / a->Hk) : 0;
}

static inline ptrdiff_t PART(units)(const PART(args) *a)
{
    return oic_product(a->rank, a->shape) * a->Hk * ((PART(rows)(a) + OIC_ATTENTION_ROWS - 1) / OIC_ATTENTION_ROWS);
}

/* A group: rows of head hk from `first` on, and of as many of `heads` heads as go together; where its scratch lies. */
static inline PART(group) PART(grouped)(const PART(args) *a, ptrdiff_t b, ptrdiff_t hk, ptrdiff_t heads, ptrdiff_t first,
                                        C *work)
{
    const ptrdiff_t left = PART(rows)(a) - first;
    PART(group) g;
    g.b = b;
    g.hk = hk;
    g.first = first;
    g.count = left < OIC_ATTENTION_ROWS ? left : OIC_ATTENTION_ROWS;
    g.heads = 1;
    g.pitch = a->keys < OIC_ATTENTION_KEYS ? oic_padded(a->keys) : OIC_ATTENTION_KEYS;
    while (g.heads < heads && (g.heads + 1) * g.count <= OIC_ATTENTION_TOGETHER) {
        g.heads++;
    }
    g.q = work;
    g.acc = g.q + g.heads * g.count * oic_padded(a->Dk);
    g.total = g.acc + g.heads * g.count * oic_padded(a->Dv);
    g.s = g.total + g.heads * g.count * oic_padded(a->Dv);
    g.wide = g.s + g.heads * g.count * g.pitch;
    return g;
}

/* Units `unit` to `end`, with scratch of their own. */
static inline void PART(some)(const PART(args) *a, ptrdiff_t unit, ptrdiff_t end, C *restrict work)
{
    const ptrdiff_t blocks = (PART(rows)(a) + OIC_ATTENTION_ROWS - 1) / OIC_ATTENTION_ROWS;
    while (unit < end) {
        const ptrdiff_t bh = unit / blocks, hk = bh % a->Hk, left = a->Hk - hk < end - unit ? a->Hk - hk : end - unit;
        PART(group) g = PART(grouped)(a, bh / a->Hk, hk, blocks == 1 ? left : 1, unit % blocks * OIC_ATTENTION_ROWS, work);
        PART(attend)(a, &g);
        unit += g.heads;
    }
}

static inline void PART(heads)(const PART(args) *a)
{
    PART(some)(a, 0, PART(units)(a), a->work);
}

#undef ROWS_AS_STORED
#undef ROW_T
#undef ROWS
#undef WIDE
