/* The body that kernels of attention share.  The kernel that includes it defines PART(f), the names of its functions, and
   PAIRED, 1 for products in pairs (attention_pairs.h), whose order is as said there.  Keys and values are of type W_T.

   y[.., N, Hq, Dv] = softmax(cap(scale * q * k') + bias) * v over the keys that take part; zeros where none does.
   cap(s) = softcap * tanh(s / softcap), or s.

   Order: a score is the sum of its products in sixteen sums, product d in sum d mod 16, and their tree: keys lie as rows in
   the state, where few queries go along them; for many they become panels, whose lanes are keys.  Keys come in blocks of
   OIC_ATTENTION_KEYS, at multiples of it; a block brings sum and results to the largest score so far, adds its weights in
   sixteen sums, and its values key by key.  Blocks make spans of OIC_ATTENTION_SPAN keys, at multiples of it: each begins
   from nothing, and what it gives is joined to what those before it gave.  A query's bits depend on the keys that take part
   and on nothing else: not on the other queries of a step, nor on the division into units.

   A unit is a leading index, a key head, and at most OIC_ATTENTION_MOST of the queries that share its keys, fewer where threads
   would have too few units.  Where a key head has no more of them, neighbouring heads go through a block together, a few keys of all heads at a time: as they lie in memory, so
   that the machine sees what will be read.

   Where a key head has OIC_ATTENTION_SHARED rows, threads share spans of the keys, so that each reads memory in order.  `parts`
   has room for the results of all rows, and for what `spans` spans give each; then for as many PART(marks).

   A machine reads ahead along lines in memory, of which it follows several at once, and more is under way than along one.
   So where few queries go along keys, these are OIC_FOLDED as far from each other as a block has them; and values of up to
   OIC_ATTENTION_BESIDE spans go side by side, each to results of its own, but where several queries of a head take a row
   together, which is widened once for all.  One query goes along both in turn, as far as heads
   lie side by side: what is read without a gap, and asked for before, comes fastest.  A machine takes a while to follow other
   memory, so keys of as many blocks as scores have room for go by before their values do.

   Many queries of a key head go through a block in strips, whose scores, weights and results stay near: for them all, the keys
   of a block become panels once, and values rows side by side.

   Scratch, in numbers, Dk of pairs halved, widths rounded up to whole lanes; rows are those that go together, at most
   OIC_ATTENTION_MOST of one unit or OIC_ATTENTION_TOGETHER of several, and keys those of a block at most:

     queries, results   rows * (Dk + Dv)
     results of spans   rows * Dv, of all rows of all spans side by side
     scores             rows * keys, likewise; of the longest strip where a key head has OIC_ATTENTION_PACKED rows ("many");
                        heads of 8: of whole fours of rows
     panels             the most of these:
       keys, many rows    16 * Dk, and 4 * Dk more where they are widened
       keys, few rows     OIC_FOLDED * Dk, of pairs, and where they are not taken as they are stored
       values             keys * min(Dv, 64), of pairs half of it: many rows, masks, pairs, and few rows that do not take them
                          as they are stored; these do if it is one, if numbers are narrow, or if rows are whole lanes
       several strips     keys * (Dk + Dv), keys and values apart, values of pairs half of it; their place serves to widen keys

   */

/* Keys and values are read as they are stored, if registers can be made of them, or they are widened before. */
#if PAIRED
#define ROWS_AS_STORED 1
#define ROWS(f) OIC_JOIN_3(f, OIC_COMPUTED, pairs)
#define WIDE ROWS
#define WEIGH oic_weigh_pairs
#define AHEAD oic_weigh_ahead_pairs
#define MIX oic_mix_pairs
#define KEYS C   /* what products take of keys, */
#define IN_ONE 2 /* elements of queries and keys in one of it, */
#elif OIC_IS_ONE(OIC_JOIN_3(OIC_AS_STORED, OIC_COMPUTED, OIC_W))
#define ROWS_AS_STORED 1
#define ROWS(f) OIC_JOIN_3(f, OIC_COMPUTED, OIC_W)
#else
#define ROWS_AS_STORED 0
#define ROWS(f) OIC_JOIN_3(f, OIC_COMPUTED, OIC_COMPUTED)
#endif
#if !PAIRED
#define WIDE(f) OIC_JOIN_3(f, OIC_COMPUTED, OIC_COMPUTED)
#define WEIGH MATH(oic_weigh)
#define AHEAD MATH(oic_weigh_ahead)
#define MIX WIDE(oic_mix)
#define KEYS W_T
#define IN_ONE 1
#endif
#define TAKEN(n) (((n) + IN_ONE - 1) / IN_ONE) /* and how many they take of n */
#define SOME OIC_JOIN_3(oic_row_some, OIC_COMPUTED, OIC_COMPUTED)

/* Rows of queries that go through the keys together: `heads` key heads from hk on, of leading index b, and of each of them
   `count` rows from `first` on; a row is a query, and one of the heads that share its keys.  They go through `spans` spans side
   by side, for each of which they have results and scores. */
typedef struct {
    ptrdiff_t b, hk, heads, first, count, spans, at, pitch; /* at: results before those of the span; pitch: scores of a row */
    ptrdiff_t shared; /* heads of queries that share a key head */
    ptrdiff_t begin; /* the first block's first key */
    ptrdiff_t bias, mask; /* where those of b begin */
    ptrdiff_t blocks; /* of a span, that there is room for scores of: 1, but where keys go by in turn */
    ptrdiff_t lo[OIC_ATTENTION_MOST], hi[OIC_ATTENTION_MOST]; /* keys that take part, of each row of a head */
    C top[OIC_ATTENTION_MOST], sum[OIC_ATTENTION_MOST];
    uint8_t any[OIC_ATTENTION_MOST];
    C *q, *acc, *total, *s, *wide; /* [rows, padded Dk], [spans, rows, padded Dv], [rows, padded Dv], [spans, rows, pitch]; widened */
} PART(group);

/* What the keys of a span, or of several, give a row, beside its values: the largest score, the sum of weights, and not 0
   if a key takes part. */
typedef struct {
    C top, sum, any;
} PART(marks);

/* Where everything lies, in elements; arrays of strides are those of the leading axes, then as said. */
typedef struct {
    const T *q;           /* [.., N, Hq, Dk], strides qs of N and heads */
    const W_T *k, *v;       /* [.., T, Hk, D], strides ks and vs of T and heads */
    const float *bias;      /* strides bs of heads, N and T; NULL: none */
    const uint8_t *mask;    /* strides ms of heads, N and T; NULL: none */
    const int32_t *kv_len;  /* strides ls; NULL: `length` */
    const float *k_scale;   /* strides kss of T and heads; NULL: 1 */
    const float *v_scale;   /* strides vss of T and heads; NULL: 1 */
    T *y;                 /* dense */
    C *work;                /* scratch of a unit, `room` numbers for each worker */
    ptrdiff_t room;
    C *parts;               /* NULL: spans are not shared */
    ptrdiff_t spans, from;  /* from: the first of those that are in `parts` */
    ptrdiff_t together;     /* rows of a unit, at most; 0: OIC_ATTENTION_MOST */
    ptrdiff_t rank;
    const ptrdiff_t *shape; /* [rank] */
    ptrdiff_t N, keys, Hq, Hk, Dk, Dv;
    const ptrdiff_t *qs, *ks, *vs, *bs, *ms, *kss, *vss, *ls;
    int64_t length;         /* keys in use */
    C scale, softcap;       /* 0: no cap */
    int causal;
    int64_t window;         /* INT64_MAX: none */
} PART(args);

#define NONE (C)-0.0, (C)-0.0, (C)-0.0, (C)-0.0
#define LAST (C)-INFINITY, (C)-INFINITY, (C)-INFINITY, (C)-INFINITY
/* Of the scores s of a row's block, those from `lo` to `hi` with ok (NULL: all) stay, the others become -inf, up to whole lanes. */
static inline void PART(leave)(C *restrict s, const uint8_t *restrict ok, ptrdiff_t lo, ptrdiff_t hi)
{
    for (ptrdiff_t j = 0; j < lo; ++j) {
        s[j] = (C)-INFINITY;
    }
    if (ok != NULL) {
        for (ptrdiff_t j = lo; j < hi; ++j) {
            s[j] = ok[j] ? s[j] : (C)-INFINITY;
        }
    }
    static const C ends[2 * OIC_LANES] = {NONE, NONE, NONE, NONE, LAST, LAST, LAST, LAST}; /* -0 changes no number */
    const ptrdiff_t lanes = (ptrdiff_t)(sizeof(MATH(oic_register)) / sizeof(C)), rest = hi % OIC_LANES;
    for (ptrdiff_t l = 0; rest > 0 && l < OIC_LANES; l += lanes) {
        C *const at = s + hi - rest + l;
        const MATH(oic_register) some = l < rest ? SOME(at, rest - l) : MATH(oic_register_of)((C)0);
        MATH(oic_register_store)(at, some + MATH(oic_register_load)(ends + OIC_LANES - rest + l));
    }
}
#undef NONE
#undef LAST

/* A row's results, acc[D], and its sum are brought from the scale of its largest score so far, *top, to that of `high`, which
   is not less: by this factor.  Returns how many of n scores are to become weights; 0 where they are already. */
static inline ptrdiff_t PART(raise)(C *restrict s, ptrdiff_t n, C high, C factor, C *restrict top, C *restrict sum, C *restrict acc,
                                    ptrdiff_t D)
{
    if (high == (C)-INFINITY) { /* only -inf so far, or NaN, which the sum keeps */
        for (ptrdiff_t j = 0; j < n; ++j) {
            *sum += s[j] != s[j] ? s[j] : (C)0;
            s[j] = (C)0;
        }
        return 0;
    }
    if (*top != (C)-INFINITY) { /* before the first keys results are 0 or NaN, and stay what they are */
        *sum *= factor;
        MATH(oic_scaled)(acc, D, factor);
    }
    *top = high;
    return n;
}

/* The same of rows whose scores are a pitch from each other: n[rows] of them become those that are to become weights. */
static inline void PART(raise_rows)(C *restrict s, ptrdiff_t pitch, ptrdiff_t rows, uint8_t *restrict n, C *restrict top, C *restrict sum,
                                    C *restrict acc, ptrdiff_t D)
{
    C high[OIC_ATTENTION_TOGETHER], factor[OIC_ATTENTION_TOGETHER];
    int any = 0;
    MATH(oic_largest_of)(s, pitch, rows, n, top, high);
    for (ptrdiff_t i = 0; i < rows; ++i) {
        factor[i] = high[i] > top[i] ? top[i] - high[i] : (C)0;
        any |= high[i] > top[i] && top[i] > (C)-INFINITY;
    }
    if (any) { /* else no factor is used */
        for (ptrdiff_t i = rows; i < oic_padded(rows); ++i) {
            factor[i] = (C)0;
        }
        MATH(oic_factors)(factor, rows);
    }
    for (ptrdiff_t i = 0; i < rows; ++i, s += pitch, acc += D) {
        if (n[i] > 0 && (high[i] > top[i] || high[i] == (C)-INFINITY)) {
            n[i] = (uint8_t)PART(raise)(s, n[i], high[i], factor[i], &top[i], &sum[i], acc, D);
        }
    }
}

/* The query of row r of head hh of a group, and its head of queries. */
static inline ptrdiff_t PART(query)(const PART(args) *a, const PART(group) *g, ptrdiff_t r, ptrdiff_t hh, ptrdiff_t *head)
{
    const ptrdiff_t row = g->first + r;
    *head = (g->hk + hh) * g->shared;
    if (g->shared == 1) { /* no divisions */
        return row;
    }
    if (a->N == 1) {
        *head += row;
        return 0;
    }
    *head += row % g->shared;
    return row / g->shared;
}

/* The row after row r of head hh. */
static inline void PART(next)(const PART(group) *g, ptrdiff_t *r, ptrdiff_t *hh)
{
    if (++*r == g->count) {
        *r = 0;
        ++*hh;
    }
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
    const ptrdiff_t m0 = g->mask + h * a->ms[rank] + i * a->ms[rank + 1];
    for (ptrdiff_t j = lo; j < hi; ++j) {
        ok[j] = a->mask[m0 + (j0 + j) * a->ms[rank + 2]];
    }
    return ok;
}

/* Keys or values as they are computed with. */
static inline void PART(widen)(const W_T *restrict from, ptrdiff_t n, C *restrict to)
{
#if PAIRED
    if (n % 2 > 0) {
        to[n / 2] = (C)0;
    }
    memcpy(to, from, (size_t)n * sizeof *from);
#elif W_IS_COMPUTED
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

#if PAIRED
/* A row of a panel: sixteen pairs of numbers of two rows, those that are not there zeros. */
static inline void PART(panel)(const W_T *restrict from, ptrdiff_t next, ptrdiff_t n, C *restrict to)
{
    if (n >= OIC_LANES) {
        oic_lanes_paired(to, from, from + next);
        return;
    }
    W_T two[2 * OIC_LANES] = {0};
    memcpy(two, from, (size_t)n * sizeof *from);
    memcpy(two + OIC_LANES, from + next, (size_t)n * sizeof *from);
    oic_lanes_paired(to, two, two + OIC_LANES);
}
#else
/* A row of a panel: sixteen numbers, those that are not there zeros. */
static inline void PART(panel)(const W_T *restrict from, ptrdiff_t n, C *restrict to)
{
    if (n >= OIC_LANES) {
#if ROWS_AS_STORED
        for (ptrdiff_t d = 0; d < OIC_LANES; d += (ptrdiff_t)(sizeof(MATH(oic_register)) / sizeof(C))) {
            MATH(oic_register_store)(to + d, OIC_PASTE(oic_row_, OIC_W)(from + d));
        }
#else
        PART(widen)(from, OIC_LANES, to);
#endif
        return;
    }
    for (ptrdiff_t d = 0; d < OIC_LANES; ++d) {
        to[d] = (C)0;
    }
    PART(widen)(from, n, to);
}
#endif

/* Whether what products take of keys is as it lies in memory. */
static inline int PART(taken_there)(const PART(args) *a)
{
    return IN_ONE == 1 || (a->Dk % IN_ONE == 0 && a->ks[a->rank] % IN_ONE == 0 && a->ks[a->rank + 1] % IN_ONE == 0);
}

/* Sixteen keys, or n of them and the last again, which begin at element k0, become a panel. */
static inline void PART(panel_of)(const PART(args) *a, ptrdiff_t k0, ptrdiff_t n, C *restrict widened, C *restrict to)
{
    const ptrdiff_t Dk = a->Dk, width = oic_padded(TAKEN(Dk)), kt = a->ks[a->rank];
    for (ptrdiff_t e = 0; e < OIC_LANES; e += 4) {
        const ptrdiff_t from = e < n ? e : n - 1, keys = n - from < 4 ? n - from : 4;
        const W_T *const k = a->k + k0 + from * kt;
        const int there = W_IS_COMPUTED || (PAIRED && PART(taken_there)(a) && (uintptr_t)k % sizeof(C) == 0);
        for (ptrdiff_t i = 0; !there && i < keys; ++i) {
            PART(widen)(k + i * kt, Dk, widened + i * width);
        }
        MATH(oic_columns)(there ? (const C *)(const void *)k : widened, there ? kt / IN_ONE : width, keys, TAKEN(Dk), to + e);
    }
}

/* Ask for D elements of each of n rows, ld apart. */
static inline void PART(ask_rows)(const W_T *at, ptrdiff_t ld, ptrdiff_t n, ptrdiff_t D)
{
    for (uintptr_t from = (uintptr_t)at; n > 0; --n, from += (uintptr_t)ld * sizeof(W_T)) { /* may lie behind the last */
        for (uintptr_t i = 0; i < (uintptr_t)D * sizeof(W_T); i += 64) {
            OIC_TILE_AHEAD_NEAR((const void *)(from + i));
        }
    }
}

/* Ask for what n rows of head hh from r on will be written to, and for the queries of the group that follows. */
static inline void PART(ask_later)(const PART(args) *a, const PART(group) *g, ptrdiff_t hh, ptrdiff_t r, ptrdiff_t n)
{
    const ptrdiff_t all = a->N * g->shared, q0 = oic_offset(g->b, a->rank, a->shape, a->qs);
    OIC_ASKS;
    for (ptrdiff_t end = r + n, h; r < end; ++r) {
        const ptrdiff_t i = PART(query)(a, g, r, hh, &h), next = g->first + r + g->count;
        const T *const y = a->y + ((g->b * a->N + i) * a->Hq + h) * a->Dv;
        for (ptrdiff_t d = 0; d < a->Dv; d += 64 / (ptrdiff_t)sizeof(T)) {
            OIC_TILE_AHEAD(y + d);
        }
        if (next < all || g->hk + hh + 1 < a->Hk) { /* of the next head, where this one has no more */
            const ptrdiff_t at = PART(query)(a, g, next < all ? r + g->count : r - g->first, hh + (next >= all), &h);
            const T *const q = a->q + q0 + at * a->qs[a->rank] + h * a->qs[a->rank + 1];
            for (ptrdiff_t d = 0; d < a->Dk; d += 64 / (ptrdiff_t)sizeof(T)) {
                OIC_TILE_AHEAD(q + d);
            }
        }
    }
}

/* How many of a block's n keys become panels: a few that are left lie in the place of the last, as rows with zeros up to whole lanes. */
static inline ptrdiff_t PART(in_panels)(ptrdiff_t n)
{
    return n % OIC_LANES > OIC_ATTENTION_FEW ? n : n - n % OIC_LANES;
}

/* The products of rows r0 to r0 + rows of head hh with keys j0 to j0 + n, of which panels have been made; where a row sees none
   of sixteen, or the tile of the last rows begins before them, what is there is no matter.  Meanwhile as many keys and values
   from elements k1 and v1 on are asked for, by all rows of the head together. */
static inline void PART(panel_scores)(const PART(args) *a, const PART(group) *g, ptrdiff_t hh, ptrdiff_t r0, ptrdiff_t rows, ptrdiff_t j0,
                                      ptrdiff_t n, ptrdiff_t k1, ptrdiff_t v1, const C *panels, C *restrict s)
{
    const ptrdiff_t Dk = a->Dk, width = oic_padded(TAKEN(Dk)), most = WIDE(oic_panel_rows), kt = a->ks[a->rank], vt = a->vs[a->rank];
    const ptrdiff_t some = (n * most + g->count - 1) / g->count, whole = PART(in_panels)(n);
    for (ptrdiff_t r = 0, from = r0 / most * some; r < rows; r += most, from += some) {
        const ptrdiff_t at = r + most > rows ? rows - most : r, more = n - from < some ? n - from : some;
        PART(ask_rows)(a->k + k1 + from * kt, kt, more, Dk);
        PART(ask_rows)(a->v + v1 + from * vt, vt, more, a->Dv);
        if (j0 == g->begin) {
            PART(ask_later)(a, g, hh, r0 + at, most);
        }
        const C *const q = g->q + (hh * g->count + r0 + at) * width;
        /* whole panels, of which some row sees something */
        const ptrdiff_t lo = g->lo[r0 + at] > j0 ? (g->lo[r0 + at] - j0) / OIC_LANES * OIC_LANES : 0;
        const ptrdiff_t hi = g->hi[r0 + at + most - 1] - j0 < whole ? g->hi[r0 + at + most - 1] - j0 : whole;
        for (ptrdiff_t j = lo, beside; j < hi; j += beside * OIC_LANES) {
            beside = hi - j > OIC_LANES ? WIDE(oic_panels_beside) : 1;
            WIDE(oic_panel_dots)(q, width, panels + j * width, beside, OIC_LANES * width, TAKEN(Dk), s + at * g->pitch + j, g->pitch);
        }
    }
    for (ptrdiff_t r = 0; whole < n && r < rows; r += OIC_FOLDED) {
        const ptrdiff_t left = rows - r < OIC_FOLDED ? rows - r : OIC_FOLDED;
        WIDE(oic_row_dots)(panels + whole * width, width, 1, n - whole, g->q + (hh * g->count + r0 + r) * width, width, 0, left,
                           TAKEN(Dk), s + r * g->pitch + whole, 1, g->pitch);
    }
}

/* The products of few rows with these keys, some keys of all heads at a time. */
static inline void PART(scores)(const PART(args) *a, const PART(group) *g, ptrdiff_t n, ptrdiff_t k0)
{
    const ptrdiff_t Dk = TAKEN(a->Dk), width = oic_padded(Dk), kt = a->ks[a->rank], kh = a->ks[a->rank + 1];
#if ROWS_AS_STORED
    if (PART(taken_there)(a)) {
        const KEYS *const k = (const KEYS *)(const void *)(a->k + k0);
        const ptrdiff_t next = kt / IN_ONE, side = kh / IN_ONE;
        C *const s = g->s + g->at * g->pitch;
        if (Dk < OIC_LANES) { /* a block is little to read, and sums next to each other are stored as they come */
            for (ptrdiff_t j = 0; j < n; j += OIC_FOLDED) {
                ROWS(oic_row_dots)(g->q, width, g->heads, g->count, k + j * next, next, side, n - j < OIC_FOLDED ? n - j : OIC_FOLDED,
                                   Dk, s + j, g->pitch, 1);
            }
            return;
        }
        const ptrdiff_t apart = (n + OIC_FOLDED - 1) / OIC_FOLDED; /* as many places are read at, as far from each other as can be */
        for (ptrdiff_t j = 0; j < apart; ++j) {
            ROWS(oic_row_dots)(g->q, width, g->heads, g->count, k + j * next, apart * next, side, (n - j + apart - 1) / apart, Dk,
                               s + j, g->pitch, apart);
        }
        return;
    }
#endif
    for (ptrdiff_t j = 0; (!ROWS_AS_STORED || PAIRED) && j < n; j += OIC_FOLDED) {
        const ptrdiff_t keys = n - j < OIC_FOLDED ? n - j : OIC_FOLDED;
        for (ptrdiff_t hh = 0; hh < g->heads; ++hh) {
            const ptrdiff_t at = k0 + hh * kh + j * kt, row = hh * g->count;
            for (ptrdiff_t e = 0; e < keys; ++e) {
                PART(widen)(a->k + at + e * kt, a->Dk, g->wide + e * width);
            }
            WIDE(oic_row_dots)(g->q + row * width, width, 1, g->count, g->wide, width, 0, keys, Dk,
                               g->s + (g->at + row) * g->pitch + j, g->pitch, 1);
        }
    }
}

/* The factors of keys j0 to j0 + n of head hh; strides of T and heads. */
static inline const C *PART(factors)(const PART(args) *a, const PART(group) *g, ptrdiff_t hh, ptrdiff_t j0, ptrdiff_t n,
                                     const float *from, const ptrdiff_t *strides, C *restrict to)
{
    if (from == NULL) {
        return NULL;
    }
    const ptrdiff_t rank = a->rank, step = strides[rank];
    from += oic_offset(g->b, rank, a->shape, strides) + (g->hk + hh) * strides[rank + 1] + j0 * step;
    ptrdiff_t j = 0;
    for (; j + 4 <= n; j += 4) { /* stored together: one by one they take as long as a row of products */
        const float *const f = from + j * step;
        const C some[4] = {(C)f[0], (C)f[step], (C)f[2 * step], (C)f[3 * step]};
        memcpy(to + j, some, sizeof some);
    }
    for (; j < n; ++j) {
        to[j] = (C)from[j * step];
    }
    return to;
}

/* What follows the product of a row with the keys that it sees: scale of keys, cap, bias. */
static inline void PART(adjust)(const PART(args) *a, const PART(group) *g, ptrdiff_t r, ptrdiff_t hh, ptrdiff_t j0,
                                ptrdiff_t lo, ptrdiff_t hi, const C *restrict factors, C *restrict s)
{
    if (factors != NULL) {
        for (ptrdiff_t j = lo; j < hi; ++j) {
            s[j] *= factors[j];
        }
    }
    if (a->softcap > (C)0) {
        for (ptrdiff_t j = lo; j < hi; ++j) {
            s[j] = a->softcap * MATH(oic_tanh)(s[j] / a->softcap);
        }
    }
    if (a->bias != NULL) {
        ptrdiff_t h;
        const ptrdiff_t i = PART(query)(a, g, r, hh, &h), rank = a->rank;
        const float *restrict const bias = a->bias + g->bias + h * a->bs[rank] + i * a->bs[rank + 1];
        const ptrdiff_t step = a->bs[rank + 2];
        if (step == 1 && sizeof(C) == sizeof *bias) { /* registers, also of scores that do not stay */
            const C *restrict const same = (const C *)(const void *)(bias + j0);
            const ptrdiff_t lanes = (ptrdiff_t)(sizeof(MATH(oic_register)) / sizeof(C));
            for (ptrdiff_t j = lo - lo % lanes; j < hi; j += lanes) {
                MATH(oic_register_store)(s + j, MATH(oic_register_load)(s + j) + SOME(same + j, hi - j));
            }
            return;
        }
        for (ptrdiff_t j = lo; step == 1 && j < hi; ++j) {
            s[j] += (C)bias[j0 + j];
        }
        for (ptrdiff_t j = lo; step != 1 && j < hi; ++j) {
            s[j] += (C)bias[(j0 + j) * step];
        }
    }
}

/* The scores of a block become weights, those of `rows` rows of each of `heads` heads, from row r0 of head hh on: first the
   largest of every row, then what does not depend on any other row.  Scores are at s, a pitch from row to row; `first`: the
   first row's number in the group.  Where `later`, and all rows have n scores that become weights, that is left to the caller,
   and 1 returned. */
static inline int PART(weights)(const PART(args) *a, PART(group) *g, ptrdiff_t hh, ptrdiff_t heads, ptrdiff_t r0, ptrdiff_t rows,
                                ptrdiff_t first, C *restrict s, ptrdiff_t j0, ptrdiff_t n, int later)
{
    const ptrdiff_t width = oic_padded(a->Dv), all = heads * rows, pitch = g->pitch;
    uint8_t left[OIC_ATTENTION_TOGETHER] = {0}, seen[OIC_ATTENTION_KEYS];
    C scales[OIC_ATTENTION_KEYS];
    C *const top = g->top + first, *const sum = g->sum + first;
    ptrdiff_t lo, hi;
    for (ptrdiff_t h = 0, i = 0; h < heads; ++h) {
        const C *const factors = PART(factors)(a, g, hh + h, j0, n, a->k_scale, a->kss, scales);
        for (ptrdiff_t r = r0; r < r0 + rows; ++r, ++i) {
            if (PART(sees)(g, r, j0, n, &lo, &hi)) {
                C *const to = s + i * pitch;
                const uint8_t *const ok = PART(masked)(a, g, r, hh + h, j0, lo, hi, seen);
                PART(adjust)(a, g, r, hh + h, j0, lo, hi, factors, to);
                PART(leave)(to, ok, lo, hi);
                g->any[first + i] |= ok == NULL;
                for (ptrdiff_t j = lo; ok != NULL && j < hi; ++j) {
                    g->any[first + i] |= ok[j];
                }
                left[i] = (uint8_t)oic_padded(hi);
            }
        }
    }
    PART(raise_rows)(s, pitch, all, left, top, sum, g->acc + first * width, width);
    for (ptrdiff_t i = 0; later && i < all; ++i) {
        later = left[i] == n;
    }
    if (later) {
        return 1;
    }
    WEIGH(s, pitch, all, left, top, sum); /* 0 for -inf */
    for (ptrdiff_t h = 0, i = 0; a->v_scale != NULL && h < heads; ++h) {
        const C *const factors = PART(factors)(a, g, hh + h, j0, n, a->v_scale, a->vss, scales);
        for (ptrdiff_t r = r0; r < r0 + rows; ++r, ++i) {
            C *const to = s + i * pitch;
            if (PART(sees)(g, r, j0, n, &lo, &hi)) {
                const uint8_t *const ok = PART(masked)(a, g, r, hh + h, j0, lo, hi, seen);
                for (ptrdiff_t j = lo; j < hi; ++j) {
                    to[j] *= factors[j];
                }
                for (ptrdiff_t j = lo; ok != NULL && j < hi; ++j) {
                    to[j] = ok[j] ? to[j] : (C)0;
                }
            }
        }
    }
    return 0;
}

/* Columns d to d + D of the values of n keys, which begin at element v0, side by side; columns that are not there are zeros. */
static inline void PART(wide_values)(const PART(args) *a, ptrdiff_t v0, ptrdiff_t n, ptrdiff_t d, ptrdiff_t D, C *restrict to)
{
    const ptrdiff_t vt = a->vs[a->rank];
    for (ptrdiff_t e = 0; e < n; e += IN_ONE) {
        for (ptrdiff_t p = 0; p < D; p += OIC_LANES, to += OIC_LANES) {
            const W_T *const from = a->v + v0 + e * vt + d + p;
#if PAIRED
            PART(panel)(from, e + 1 < n ? vt : 0, D - p, to);
#else
            PART(panel)(from, D - p, to);
#endif
        }
    }
}

/* The values of keys j0 to j0 + n, D columns of them, `ld` apart, to columns d on of rows r0 to r0 + rows of head hh, whose
   weights are at s. */
static inline void PART(head_values)(const PART(args) *a, const PART(group) *g, ptrdiff_t hh, ptrdiff_t r0, ptrdiff_t rows, ptrdiff_t j0,
                                     ptrdiff_t n, const C *v, ptrdiff_t ld, ptrdiff_t d, ptrdiff_t D, const C *restrict s)
{
    const ptrdiff_t width = oic_padded(a->Dv);
    C *acc = g->acc + (g->at + hh * g->count + r0) * width + d;
    if (a->mask == NULL) {
        MIX(acc, width, s, g->pitch, rows, v, ld, g->lo + r0, g->hi + r0, j0, n, D);
        return;
    }
    for (ptrdiff_t r = 0, lo, hi; r < rows; ++r, acc += width, s += g->pitch) { /* the keys between the gaps of the mask */
        uint8_t seen[OIC_ATTENTION_KEYS];
        if (!PART(sees)(g, r0 + r, j0, n, &lo, &hi)) {
            continue;
        }
        const uint8_t *const ok = PART(masked)(a, g, r0 + r, hh, j0, lo, hi, seen);
        for (ptrdiff_t end; lo < hi; lo = end + 1) {
            for (end = lo; end < hi && ok[end]; ++end) {
            }
            MIX(acc, width, s, g->pitch, 1, v, ld, &lo, &end, 0, n, D);
        }
    }
}

#if ROWS_AS_STORED && !PAIRED
/* The values of n keys, j of a block on, to row r of all heads: side by side for the spans whose keys it sees.  The first
   span's block begins at key j0, values at element v0. */
static inline void PART(row_values)(const PART(args) *a, const PART(group) *g, ptrdiff_t r, ptrdiff_t j0, ptrdiff_t j, ptrdiff_t n,
                                    ptrdiff_t v0)
{
    const ptrdiff_t rows = g->heads * g->count, width = oic_padded(a->Dv), vt = a->vs[a->rank], vh = a->vs[a->rank + 1];
    const ptrdiff_t lanes = (ptrdiff_t)(sizeof(MATH(oic_register)) / sizeof(C)), whole = a->Dv - a->Dv % OIC_LANES;
    ptrdiff_t lo[OIC_ATTENTION_SPANS], hi[OIC_ATTENTION_SPANS];
    for (ptrdiff_t s = 0; s < g->spans; ++s) {
        if (!PART(sees)(g, r, j0 + s * OIC_ATTENTION_SPAN + j, n, &lo[s], &hi[s])) {
            lo[s] = hi[s] = 0;
        }
    }
    for (ptrdiff_t k = 0, next; k < n; k = next) { /* between borders, all or none of a span's keys; no two spans have a lower one */
        next = n;
        for (ptrdiff_t s = 0; s < g->spans; ++s) {
            next = lo[s] > k ? lo[s] : next;
            next = hi[s] > k && hi[s] < next ? hi[s] : next;
        }
        for (ptrdiff_t s = 0, end; s < g->spans; s = end) {
            for (end = s; end < g->spans && lo[end] <= k && hi[end] > k; ++end) {
            }
            if (end == s) {
                end++;
                continue;
            }
            const W_T *const v = a->v + v0 + (s * OIC_ATTENTION_SPAN + j + k) * vt;
            const C *const w = g->s + (s * rows + r) * g->pitch + j + k;
            C *const acc = g->acc + (s * rows + r) * width;
            const ptrdiff_t am = g->count * width, wm = g->count * g->pitch;
            ROWS(oic_weighted)(acc, rows * width, am, end - s, g->heads, w, rows * g->pitch, wm, v, OIC_ATTENTION_SPAN * vt, vt, vh,
                               next - k, whole);
            for (ptrdiff_t d = whole; d < a->Dv; d += lanes) {
                for (ptrdiff_t e = 0; e < end - s; ++e) {
                    ROWS(oic_weighted_narrow)(acc + e * rows * width + d, am, g->heads, w + e * rows * g->pitch, wm,
                                              v + e * OIC_ATTENTION_SPAN * vt + d, vt, vh, next - k, a->Dv - d);
                }
            }
        }
    }
}
#endif

#if ROWS_AS_STORED && !PAIRED
/* Whether heads are narrow, and all rows of one query, which sees the same keys in all of them. */
static inline int PART(narrow)(const PART(args) *a, ptrdiff_t count)
{
    return a->N == 1 && a->mask == NULL && count < OIC_ATTENTION_PACKED && a->Dv < 4 * OIC_LANES;
}

/* The values of a block, n of them from element v0 on, where heads are narrow: heads side by side. */
static inline void PART(narrow_values)(const PART(args) *a, const PART(group) *g, ptrdiff_t j0, ptrdiff_t n, ptrdiff_t v0)
{
    const ptrdiff_t vt = a->vs[a->rank], vh = a->vs[a->rank + 1], width = oic_padded(a->Dv);
    const ptrdiff_t row = g->heads * a->Dv * (ptrdiff_t)sizeof(W_T), few = row <= 512 ? n : OIC_FOLDED; /* stays in L1 until the last head */
    ptrdiff_t lo, hi;
    (void)PART(sees)(g, 0, j0, n, &lo, &hi); /* of any block, as all rows see the same */
    for (ptrdiff_t j = lo; j < hi; j += few) {
        ROWS(oic_weighted_heads)(g->acc + g->at * width, width, g->heads * g->count, g->count, 0, g->s + g->at * g->pitch + j, g->pitch, 1,
                                 a->v + v0 + j * vt, vt, vh, hi - j < few ? hi - j : few, a->Dv);
    }
}
#endif

/* Whether values go to results from where they lie, key by key: spans may go side by side. */
static inline int PART(from_rows)(const PART(args) *a, ptrdiff_t count)
{
#if ROWS_AS_STORED && !PAIRED
    const ptrdiff_t most = W_IS_COMPUTED || (OIC_REGISTER > 0 && a->Dv % OIC_LANES == 0) ? 1 : OIC_ATTENTION_PACKED - 1; /* else once for all rows */
    return count <= most && a->mask == NULL && !PART(narrow)(a, count);
#else
    (void)a;
    (void)count;
    return 0;
#endif
}

/* Whether keys, and values, go by in turn, as they lie in memory: where those of all heads lie side by side in whole lanes, and
   of each head there is one row.  Measured with AVX-512 and AVX2. */
static inline int PART(in_turn)(const PART(args) *a, const PART(group) *g)
{
    const ptrdiff_t Dk = a->Dk, Dv = a->Dv;
    const int side_by_side = a->ks[a->rank] % IN_ONE == 0 && a->ks[a->rank + 1] == Dk && a->vs[a->rank + 1] == Dv;
    const int whole_lanes = Dk > 0 && Dk % OIC_LANES == 0 && Dv > 0 && Dv % OIC_LANES == 0;
    return OIC_REGISTER >= 32 && g->heads > 1 && g->count == 1 && side_by_side && whole_lanes &&
           (PAIRED ? a->mask == NULL : PART(from_rows)(a, 1));
}

#if ROWS_AS_STORED
/* What keys `from` to `to`, of spans from key `first` on, give the rows of a group that go in turn; keys and values begin at
   elements k0 and v0.  Scores of all keys come first: a machine takes a while to follow other memory. */
static inline void PART(spans_in_turn)(const PART(args) *a, PART(group) *g, ptrdiff_t first, ptrdiff_t from, ptrdiff_t to,
                                       ptrdiff_t k0, ptrdiff_t v0)
{
    const ptrdiff_t kt = a->ks[a->rank], vt = a->vs[a->rank], end = first + g->spans * OIC_ATTENTION_SPAN;
    const ptrdiff_t keys = g->blocks * OIC_ATTENTION_KEYS; /* of a span, that scores have room for */
    for (ptrdiff_t part = 0; part < OIC_ATTENTION_SPAN; part += keys) {
        C *s = g->s;
        for (ptrdiff_t span = first + part; span < end; span += OIC_ATTENTION_SPAN) {
            for (ptrdiff_t j0 = span; j0 < span + keys; j0 += OIC_ATTENTION_KEYS, s += g->heads * g->pitch) {
                const ptrdiff_t n = to - j0 < OIC_ATTENTION_KEYS ? to - j0 : OIC_ATTENTION_KEYS;
                for (ptrdiff_t j = 0; j0 >= from && j < n; j += OIC_FOLDED) {
                    const KEYS *const k = (const KEYS *)(const void *)(a->k + k0 + (j0 + j) * kt);
                    const ptrdiff_t rows = n - j < OIC_FOLDED ? n - j : OIC_FOLDED;
                    ROWS(oic_row_dots_in_turn)(g->q, g->heads, k, kt / IN_ONE, rows, TAKEN(a->Dk), s + j, g->pitch);
                }
            }
        }
        s = g->s;
        for (ptrdiff_t span = first + part, at = 0; span < end; span += OIC_ATTENTION_SPAN, at += g->heads) {
            for (ptrdiff_t j0 = span; j0 < span + keys; j0 += OIC_ATTENTION_KEYS, s += g->heads * g->pitch) {
                const ptrdiff_t n = to - j0 < OIC_ATTENTION_KEYS ? to - j0 : OIC_ATTENTION_KEYS;
                ptrdiff_t lo, hi;
                if (PART(sees)(g, 0, j0, n, &lo, &hi)) {
                    (void)PART(weights)(a, g, 0, g->heads, 0, 1, at, s, j0, n, 0);
#if PAIRED
                    oic_weighted_pairs_in_turn(g->acc + at * a->Dv, g->heads, s, g->pitch, a->v + v0 + j0 * vt, vt, lo, hi, a->Dv);
#else
                    const W_T *const v = a->v + v0 + (j0 + lo) * vt;
                    ROWS(oic_weighted_in_turn)(g->acc + at * a->Dv, g->heads, s + lo, g->pitch, v, vt, hi - lo, a->Dv);
#endif
                }
            }
        }
    }
}
#endif

/* Ask for rows first..end-1 of values from element v0 on, where heads lie side by side: one head after the other goes through
   parts of rows, which no machine foresees.  Measured with AVX-512 only. */
static inline void PART(ask)(const PART(args) *a, const PART(group) *g, ptrdiff_t v0, ptrdiff_t first, ptrdiff_t end)
{
    const ptrdiff_t vt = a->vs[a->rank], width = g->heads * a->vs[a->rank + 1];
    for (ptrdiff_t e = first; OIC_WIDTH == 16 && g->heads > 1 && width <= vt && e < end; ++e) {
        const uintptr_t at = (uintptr_t)a->v + (uintptr_t)(v0 + e * vt) * sizeof(W_T); /* may lie behind the last */
        for (uintptr_t i = 0; i < (uintptr_t)width * sizeof(W_T); i += 64) {
            OIC_TILE_AHEAD((const void *)(at + i));
        }
    }
}

/* The values of a block, n of them from element v0 on, to the results: as they lie in memory, a few keys of all heads at a
   time, where there are several. */
static inline void PART(values)(const PART(args) *a, const PART(group) *g, ptrdiff_t j0, ptrdiff_t n, ptrdiff_t v0)
{
    const ptrdiff_t vt = a->vs[a->rank], vh = a->vs[a->rank + 1];
#if ROWS_AS_STORED && !PAIRED
    if (PART(narrow)(a, g->count)) {
        PART(narrow_values)(a, g, j0, n, v0);
        return;
    }
#endif
    const ptrdiff_t few = g->heads == 1 ? n : g->count < 4 ? 8 : 32;
    for (ptrdiff_t j = 0; j < n; j += few) {
        const ptrdiff_t m = n - j < few ? n - j : few;
        for (ptrdiff_t hh = 0; hh < g->heads; ++hh) {
            const ptrdiff_t at = v0 + hh * vh + j * vt;
            PART(ask)(a, g, v0 + (j + few) * vt, few * hh / g->heads, few * (hh + 1) / g->heads);
            const C *const s = g->s + (g->at + hh * g->count) * g->pitch + j / IN_ONE;
#if ROWS_AS_STORED && !PAIRED
            if (a->mask == NULL && a->Dv % OIC_LANES == 0) { /* a row is read, and widened, once for all queries of its head */
                const ptrdiff_t width = oic_padded(a->Dv);
                C *const acc = g->acc + (g->at + hh * g->count) * width;
                ROWS(oic_mix)(acc, width, s, g->pitch, g->count, a->v + at, vt, g->lo, g->hi, j0 + j, m, a->Dv);
                continue;
            }
#endif
            for (ptrdiff_t d = 0; d < a->Dv; d += 4 * OIC_LANES) { /* columns side by side */
                const ptrdiff_t D = a->Dv - d < 4 * OIC_LANES ? a->Dv - d : 4 * OIC_LANES;
                PART(wide_values)(a, at, m, d, D, g->wide);
                PART(head_values)(a, g, hh, 0, g->count, j0 + j, m, g->wide, oic_padded(D), d, oic_padded(D), s);
            }
        }
    }
}

/* Whether rows r to r + rows see all n keys from j0 on, whole lanes of them, and may become weights and be mixed in one. */
static inline int PART(all_see)(const PART(args) *a, const PART(group) *g, ptrdiff_t r, ptrdiff_t rows, ptrdiff_t j0, ptrdiff_t n)
{
#if OIC_PASTE(OIC_WEIGHS_AHEAD_, OIC_COMPUTED)
    return a->mask == NULL && a->v_scale == NULL && a->Dv >= 4 * OIC_LANES && rows % OIC_AHEAD_ROWS == 0 && n % (IN_ONE * OIC_LANES) == 0 &&
           g->lo[r + rows - 1] <= j0 && g->hi[r] >= j0 + n;
#else
    (void)a, (void)g, (void)r, (void)rows, (void)j0, (void)n;
    return 0;
#endif
}

/* The scores of `rows` rows, which all see n keys, become weights, and values of the first columns go to their results: how many. */
static inline ptrdiff_t PART(weigh_ahead)(const PART(args) *a, PART(group) *g, ptrdiff_t row, ptrdiff_t rows, ptrdiff_t n,
                                          const C *values)
{
#if OIC_PASTE(OIC_WEIGHS_AHEAD_, OIC_COMPUTED)
    const ptrdiff_t width = oic_padded(a->Dv), side = 4 * OIC_LANES;
    AHEAD(g->acc + row * width, width, g->s, g->pitch, rows, n, g->top + row, g->sum + row, values, side);
    return side;
#else
    (void)a, (void)g, (void)row, (void)rows, (void)n, (void)values;
    return 0;
#endif
}

/* A block's n keys from j0 on and their values, which begin at elements k0 and v0, for many rows: keys become panels.  Where
   rows make more than a strip, all panels are made before, else they are made one after the other in one place. */
static inline void PART(many)(const PART(args) *a, PART(group) *g, ptrdiff_t j0, ptrdiff_t n, ptrdiff_t k0, ptrdiff_t v0)
{
    const ptrdiff_t side = 4 * OIC_LANES, width = oic_padded(TAKEN(a->Dk)), kt = a->ks[a->rank], vt = a->vs[a->rank];
    const ptrdiff_t kh = a->ks[a->rank + 1], vh = a->vs[a->rank + 1];
    const ptrdiff_t k1 = k0 + OIC_ATTENTION_KEYS * kt, v1 = v0 + OIC_ATTENTION_KEYS * vt;
    const int one = g->count < OIC_ATTENTION_STRIPS;
    const ptrdiff_t whole = PART(in_panels)(n);
    C *const values = g->wide + (one ? 0 : g->pitch * width), *const widened = one ? g->wide + OIC_LANES * width : values;
    for (ptrdiff_t hh = 0; hh < g->heads; ++hh) {
        for (ptrdiff_t j = 0; j < n; j += OIC_LANES) {
            C *const panel = g->wide + (one ? 0 : j * width);
            if (j < whole) {
                PART(panel_of)(a, k0 + hh * kh + j * kt, n - j, widened, panel);
            }
            for (ptrdiff_t e = whole; j == whole && e < n; ++e) {
                C *const to = panel + (e - j) * width;
                for (ptrdiff_t d = TAKEN(a->Dk); d < width; ++d) {
                    to[d] = (C)0;
                }
                PART(widen)(a->k + k0 + hh * kh + e * kt, a->Dk, to);
            }
            if (one) {
                PART(panel_scores)(a, g, hh, 0, g->count, j0 + j, n - j < OIC_LANES ? n - j : OIC_LANES,
                                   k1 + hh * kh + j * kt, v1 + hh * vh + j * vt, panel, g->s + j);
            }
        }
        for (ptrdiff_t d = 0; !one && d < a->Dv; d += side) {
            PART(wide_values)(a, v0 + hh * vh, n, d, a->Dv - d < side ? a->Dv - d : side, values + d * TAKEN(n));
        }
        for (ptrdiff_t r = 0, rows; r < g->count; r += rows) {
            rows = g->count - r < OIC_ATTENTION_STRIPS ? g->count - r : OIC_ATTENTION_STRIP;
            if (g->hi[r + rows - 1] <= j0 || g->lo[r] >= j0 + n) {
                continue;
            }
            if (!one) {
                PART(panel_scores)(a, g, hh, r, rows, j0, n, k1 + hh * kh, v1 + hh * vh, g->wide, g->s);
            }
            const int later = !one && PART(all_see)(a, g, r, rows, j0, n);
            ptrdiff_t done = 0;
            if (PART(weights)(a, g, hh, 1, r, rows, hh * g->count + r, g->s, j0, n, later)) {
                done = PART(weigh_ahead)(a, g, hh * g->count + r, rows, n, values);
            }
            for (ptrdiff_t d = done; d < a->Dv; d += side) {
                const ptrdiff_t D = a->Dv - d < side ? a->Dv - d : side;
                if (one) {
                    PART(wide_values)(a, v0 + hh * vh, n, d, D, values);
                }
                PART(head_values)(a, g, hh, r, rows, j0, n, values + (one ? 0 : d * TAKEN(n)), oic_padded(D), d, oic_padded(D), g->s);
            }
        }
    }
}

/* The keys that rows of a group see, from *first to *to, all together; where there is none, *to is 0. */
static inline void PART(ranges)(const PART(args) *a, PART(group) *g, ptrdiff_t *first, ptrdiff_t *to)
{
    const int64_t used = a->kv_len != NULL ? a->kv_len[oic_offset(g->b, a->rank, a->shape, a->ls)] : a->length;
    ptrdiff_t h;
    *first = a->keys;
    *to = 0;
    for (ptrdiff_t r = 0; r < g->count; ++r) {
        if (r == 0 || (a->N > 1 && (a->causal || a->window < INT64_MAX))) {
            const ptrdiff_t i = PART(query)(a, g, r, 0, &h);
            oic_attention_range(i, a->N, a->keys, used, a->causal, a->window, &g->lo[r], &g->hi[r]);
        } else { /* all see the same */
            g->lo[r] = g->lo[0];
            g->hi[r] = g->hi[0];
        }
        if (g->lo[r] < g->hi[r]) {
            *first = g->lo[r] < *first ? g->lo[r] : *first;
            *to = g->hi[r] > *to ? g->hi[r] : *to;
        }
    }
}

/* Queries as they are computed with. */
static inline void PART(queries)(const PART(args) *a, const PART(group) *g)
{
    const ptrdiff_t Dk = a->Dk, width = oic_padded(TAKEN(Dk)), q0 = oic_offset(g->b, a->rank, a->shape, a->qs);
    const C scale = a->scale;
    const ptrdiff_t side = a->qs[a->rank + 1], one = q0 + (g->hk * g->shared + g->first) * side; /* heads of one query follow each other */
    for (ptrdiff_t row = 0, r = 0, hh = 0, at = one, h; row < g->heads * g->count; ++row, at += side) {
        if (a->N > 1) {
            at = q0 + PART(query)(a, g, r, hh, &h) * a->qs[a->rank];
            at += h * side;
            PART(next)(g, &r, &hh);
        }
        const T *restrict const from = a->q + at;
        C *restrict const q = g->q + row * width;
#if PAIRED
        for (ptrdiff_t p = 0; p < width; p += OIC_LANES) {
            const ptrdiff_t n = Dk - 2 * p < 2 * OIC_LANES ? Dk - 2 * p : 2 * OIC_LANES;
            C some[2 * OIC_LANES] = {(C)0};
            for (ptrdiff_t d = 0; d < n; ++d) {
                some[d] = (C)LOAD(from, 2 * p + d) * scale;
            }
            oic_lanes_rounded(q + p, some);
        }
#else
#if X_IS_COMPUTED
        if (scale - scale == (C)0) { /* zeros stay zeros: registers */
            const ptrdiff_t lanes = (ptrdiff_t)(sizeof(MATH(oic_register)) / sizeof(C));
            for (ptrdiff_t d = 0; d < width; d += lanes) {
                const MATH(oic_register) all = MATH(oic_register_of)(d < Dk ? scale : (C)0);
                MATH(oic_register_store)(q + d, d < Dk ? SOME(from + d, Dk - d) * all : all);
            }
            continue;
        }
#endif
        for (ptrdiff_t d = 0; d < Dk; ++d) {
            q[d] = (C)LOAD(from, d) * scale;
        }
        for (ptrdiff_t d = Dk; d < width; ++d) {
            q[d] = (C)0;
        }
#endif
    }
}

/* What keys `from` to `to` give the rows of a group, those of each of its spans apart: from a block's first on, and of no
   more spans. */
static inline void PART(span)(const PART(args) *a, PART(group) *g, ptrdiff_t from, ptrdiff_t to)
{
    const ptrdiff_t rank = a->rank, rows = g->heads * g->count, width = oic_padded(a->Dv), kt = a->ks[rank], vt = a->vs[rank];
    const ptrdiff_t k0 = oic_offset(g->b, rank, a->shape, a->ks) + g->hk * a->ks[rank + 1];
    const ptrdiff_t v0 = oic_offset(g->b, rank, a->shape, a->vs) + g->hk * a->vs[rank + 1];
    const ptrdiff_t first = from - from % OIC_ATTENTION_SPAN;
    const int from_rows = PART(from_rows)(a, g->count);
    memset(g->acc, 0, (size_t)(g->spans * rows * width) * sizeof(C));
    for (ptrdiff_t row = 0; row < g->spans * rows; ++row) {
        g->top[row] = (C)-INFINITY;
        g->sum[row] = (C)0;
        g->any[row] = 0;
    }
#if ROWS_AS_STORED
    if (PART(in_turn)(a, g)) {
        PART(spans_in_turn)(a, g, first, from, to, k0, v0);
        return;
    }
#endif
    for (ptrdiff_t block = first; block < first + OIC_ATTENTION_SPAN; block += OIC_ATTENTION_KEYS) {
        for (ptrdiff_t s = 0; s < g->spans; ++s) {
            const ptrdiff_t j0 = block + s * OIC_ATTENTION_SPAN, n = to - j0 < OIC_ATTENTION_KEYS ? to - j0 : OIC_ATTENTION_KEYS;
            if (j0 < from || n <= 0) {
                continue;
            }
            g->at = s * rows;
            if (g->count >= OIC_ATTENTION_PACKED) {
                PART(many)(a, g, j0, n, k0 + j0 * kt, v0 + j0 * vt);
                continue;
            }
            PART(scores)(a, g, n, k0 + j0 * kt);
            (void)PART(weights)(a, g, 0, g->heads, 0, g->count, g->at, g->s + g->at * g->pitch, j0, n, 0);
            if (!from_rows) {
                PART(values)(a, g, j0, n, v0 + j0 * vt);
            }
        }
#if ROWS_AS_STORED && !PAIRED
        const ptrdiff_t few = g->count == 1 ? OIC_ATTENTION_KEYS : OIC_FOLDED;
        for (ptrdiff_t j = 0; from_rows && j < OIC_ATTENTION_KEYS; j += few) {
            for (ptrdiff_t r = 0; r < g->count; ++r) {
                PART(row_values)(a, g, r, block, j, few, v0 + block * vt);
            }
        }
#endif
    }
}

/* What the smaller scale of two has to be raised by, as a logarithm: where there was no score, results are 0 or NaN, and stay
   what they are. */
static inline C PART(nearer)(C a, C b)
{
    const C low = a < b ? a : b, high = a < b ? b : a;
    return low == (C)-INFINITY ? (C)0 : low - high;
}

/* What spans give a row so far, and one more; the factor of what has the smaller scale. */
static inline void PART(join)(PART(marks) *all, C *acc, const PART(marks) *more, const C *added, C factor, ptrdiff_t D)
{
    const int raised = more->top > all->top;
    const C few = raised ? all->sum : more->sum, many = raised ? more->sum : all->sum;
    all->sum = MATH(oic_madd)(few, factor, many);
    MATH(oic_joined)(acc, raised ? acc : added, raised ? added : acc, D, factor);
    all->top = raised ? more->top : all->top;
    all->any += more->any;
}

/* The results of row r of head hh: zeros where no key takes part.  `none` is added: -0, or 0 where nothing was joined. */
static inline void PART(finish)(const PART(args) *a, const PART(group) *g, ptrdiff_t r, ptrdiff_t hh, const PART(marks) *all,
                                C none, C *restrict acc)
{
    const ptrdiff_t D = a->Dv, width = oic_padded(D);
    ptrdiff_t h;
    const ptrdiff_t i = PART(query)(a, g, r, hh, &h);
    T *restrict const y = a->y + g->b * a->N * a->Hq * D + (i * a->Hq + h) * D;
    for (ptrdiff_t d = 0; all->any != (C)0 && d < width; d += OIC_LANES) {
        const ptrdiff_t lanes = (ptrdiff_t)(sizeof(MATH(oic_register)) / sizeof(C));
        OIC_UNROLLED
        for (ptrdiff_t l = d; l < d + OIC_LANES; l += lanes) {
            const MATH(oic_register) sums = MATH(oic_register_load)(acc + l) + MATH(oic_register_of)(none);
            MATH(oic_register_store)(acc + l, sums / MATH(oic_register_of)(all->sum));
        }
    }
    const ptrdiff_t whole = D - D % 8; /* most heads are whole eights */
    for (ptrdiff_t done = 0; done < whole; done += 8) {
        for (int l = 0; l < 8; ++l) {
            STORE(y, done + l, acc[done + l]);
        }
    }
    for (ptrdiff_t done = whole; done < D; ++done) {
        STORE(y, done, acc[done]);
    }
}

/* What span s of those side by side, from key `at` on, gives the rows of a group that see any of it: factors of some at once. */
static inline void PART(join_rows)(const PART(group) *g, ptrdiff_t s, ptrdiff_t at, PART(marks) *all, ptrdiff_t width)
{
    const ptrdiff_t rows = g->heads * g->count;
    for (ptrdiff_t from = 0, end, r = 0, hh = 0; from < rows; from = end) {
        C factor[OIC_LANES] = {(C)0};
        int any = 0;
        end = rows - from < OIC_LANES ? rows : from + OIC_LANES;
        for (ptrdiff_t row = from; row < end; ++row) {
            factor[row - from] = PART(nearer)(all[row].top, g->top[s * rows + row]);
            any |= factor[row - from] != (C)0;
        }
        if (any) {
            MATH(oic_factors)(factor, end - from);
        } else {
            for (ptrdiff_t i = 0; i < OIC_LANES; ++i) {
                factor[i] = (C)1; /* e^0 */
            }
        }
        for (ptrdiff_t row = from; row < end; ++row, PART(next)(g, &r, &hh)) {
            const ptrdiff_t i = s * rows + row;
            if (g->lo[r] < at + OIC_ATTENTION_SPAN && g->hi[r] > at) {
                const PART(marks) more = {g->top[i], g->sum[i], (C)g->any[i]};
                PART(join)(&all[row], g->total + row * width, &more, g->acc + i * width, factor[row - from], width);
            }
        }
    }
}

#if ROWS_AS_STORED && !PAIRED
#define BESIDE OIC_IS_ONE(OIC_JOIN_3(OIC_BESIDE, OIC_COMPUTED, OIC_W))
#if BESIDE
/* The scores of some rows, `side` lanes each of which is a row, become weights: keys lo to hi of n that take part; results and sums
   are brought to the largest score. */
OIC_INLINE void PART(weights_beside)(C *restrict s, int side, ptrdiff_t rows, ptrdiff_t lo, ptrdiff_t hi, C *restrict top,
                                     C *restrict sum, C *restrict acc, ptrdiff_t width)
{
    C high[OIC_LANES], tops[OIC_LANES], sums[OIC_FOLDED], factor[OIC_LANES];
    const ptrdiff_t all = (hi * side + 4 * OIC_LANES - 1) / (4 * OIC_LANES) * (4 * OIC_LANES); /* as they become weights */
    int none = 0, raised = 0;
    for (ptrdiff_t i = 0; i < lo * side; ++i) {
        s[i] = (C)-INFINITY;
    }
    for (ptrdiff_t i = hi * side; i < all; ++i) {
        s[i] = (C)-INFINITY;
    }
    for (ptrdiff_t l = 0; l < OIC_LANES; ++l) {
        tops[l] = top[l % side < rows ? l % side : 0];
    }
    MATH(oic_largest_beside)(s, all, tops, high);
    for (ptrdiff_t half = OIC_LANES / 2; half >= side; half /= 2) {
        for (ptrdiff_t l = 0; l < half; ++l) {
            high[l] = high[l + half] > high[l] ? high[l + half] : high[l];
        }
    }
    for (ptrdiff_t r = 0; r < side; ++r) {
        const int more = high[r] > tops[r] && tops[r] > (C)-INFINITY; /* before the first keys results are 0 or NaN, and stay */
        factor[r] = more ? tops[r] - high[r] : (C)0;
        raised |= more;
        none |= high[r] == (C)-INFINITY;
    }
    for (ptrdiff_t l = side; l < OIC_LANES; ++l) {
        high[l] = high[l % side];
        factor[l] = (C)0;
    }
    if (raised) {
        MATH(oic_factors)(factor, side);
        for (ptrdiff_t r = 0; r < rows; ++r) {
            sum[r] *= factor[r];
            MATH(oic_scaled)(acc + r * width, width, factor[r]);
        }
    }
    memcpy(top, high, (size_t)rows * sizeof *top);
    for (ptrdiff_t l = 0; none && l < OIC_LANES; ++l) { /* only -inf so far, or NaN, which the sum keeps */
        for (ptrdiff_t i = l; high[l] == (C)-INFINITY && i < all; i += OIC_LANES) {
            if (l % side < rows) {
                sum[l % side] += s[i] != s[i] ? s[i] : (C)0;
            }
            s[i] = (C)-INFINITY;
        }
        high[l] = high[l] == (C)-INFINITY ? (C)0 : high[l]; /* e^-inf is 0 */
    }
    MATH(oic_weigh_beside)(s, all, high, sums, side);
    for (ptrdiff_t r = 0; r < rows; ++r) {
        sum[r] += sums[r];
    }
}

/* What a block's keys lo to hi of n, from k on, and their values, from v on, give rows of one query from row on, of eight numbers a key:
   OIC_FOLDED of them, or what is left, go beside each other. */
static inline void PART(some_beside)(const PART(args) *a, PART(group) *g, ptrdiff_t row, ptrdiff_t n, ptrdiff_t lo, ptrdiff_t hi,
                                     const W_T *k, const W_T *v)
{
    const ptrdiff_t rank = a->rank, width = oic_padded(a->Dv), left = g->heads * g->count - row, rows = left < OIC_FOLDED ? left : OIC_FOLDED;
    const int side = rows > 4 ? 8 : 4;
    ptrdiff_t of = row % g->count, hh = row / g->count, keys[OIC_FOLDED], values[OIC_FOLDED];
    C *const acc = g->acc + row * width, *const s = g->s;
    for (ptrdiff_t r = 0; r < OIC_FOLDED; ++r) {
        keys[r] = hh * a->ks[rank + 1];
        values[r] = hh * a->vs[rank + 1];
        of += r + 1 < rows;
        hh += of == g->count;
        of = of == g->count ? 0 : of;
    }
    ROWS(oic_dots_beside)(g->q + row * OIC_LANES, OIC_LANES, rows, side, k, keys, a->ks[rank], n, s);
    if (side == 8) {
        PART(weights_beside)(s, 8, rows, lo, hi, g->top + row, g->sum + row, acc, width);
    } else {
        PART(weights_beside)(s, 4, rows, lo, hi, g->top + row, g->sum + row, acc, width);
    }
#if OIC_REGISTER == 64
    if (a->Dv == 8) {
        oic_weighted_beside(acc, rows, side, s + lo * side, v + lo * a->vs[rank], values, a->vs[rank], hi - lo);
        return;
    }
#endif
    ROWS(oic_weighted_heads)(acc, width, rows, g->count, row % g->count, s + lo * side, 1, side, v + lo * a->vs[rank] + values[0],
                             a->vs[rank], a->vs[rank + 1], hi - lo, a->Dv);
}
#endif

/* All of a group of one query whose heads are narrow, and all see the same keys, to whose scores nothing is done. */
static inline void PART(attend_narrow)(const PART(args) *a, PART(group) *g)
{
    const ptrdiff_t rank = a->rank, rows = g->heads * g->count, width = oic_padded(a->Dv), kt = a->ks[rank], vt = a->vs[rank];
    const ptrdiff_t k0 = oic_offset(g->b, rank, a->shape, a->ks) + g->hk * a->ks[rank + 1];
    const ptrdiff_t v0 = oic_offset(g->b, rank, a->shape, a->vs) + g->hk * a->vs[rank + 1];
    PART(marks) all[OIC_ATTENTION_TOGETHER];
    uint8_t left[OIC_ATTENTION_TOGETHER];
    ptrdiff_t first, to, lo, hi;
    PART(ranges)(a, g, &first, &to);
    PART(queries)(a, g);
    const int one = to > 0 && to <= first - first % OIC_ATTENTION_SPAN + OIC_ATTENTION_SPAN; /* a span: joined to nothing */
    for (ptrdiff_t row = 0; row < rows; ++row) {
        all[row] = (PART(marks)){(C)-INFINITY, (C)0, (C)0};
    }
    if (!one) {
        memset(g->total, 0, (size_t)(rows * width) * sizeof(C));
    }
    for (ptrdiff_t j0 = first - first % OIC_ATTENTION_KEYS, end = 0; j0 < to; j0 += OIC_ATTENTION_KEYS) {
        const ptrdiff_t n = to - j0 < OIC_ATTENTION_KEYS ? to - j0 : OIC_ATTENTION_KEYS;
        if (j0 >= end) { /* a span begins */
            end = j0 - j0 % OIC_ATTENTION_SPAN + OIC_ATTENTION_SPAN;
            memset(g->acc, 0, (size_t)(rows * width) * sizeof(C));
            for (ptrdiff_t row = 0; row < rows; ++row) {
                g->top[row] = (C)-INFINITY;
                g->sum[row] = (C)0;
                g->any[row] = 1;
            }
        }
        (void)PART(sees)(g, 0, j0, n, &lo, &hi);
#if BESIDE
        if (a->Dk == 8) {
            for (ptrdiff_t row = 0, some; row < rows; row += some) {
                PART(some_beside)(a, g, row, n, lo, hi, a->k + k0 + j0 * kt, a->v + v0 + j0 * vt);
                some = rows - row < OIC_FOLDED ? rows - row : OIC_FOLDED;
            }
        } else
#endif
        {
            PART(scores)(a, g, n, k0 + j0 * kt);
            for (ptrdiff_t row = 0; row < rows; ++row) {
                PART(leave)(g->s + row * g->pitch, NULL, lo, hi);
                left[row] = (uint8_t)oic_padded(hi);
            }
            PART(raise_rows)(g->s, g->pitch, rows, left, g->top, g->sum, g->acc, width);
            WEIGH(g->s, g->pitch, rows, left, g->top, g->sum);
            PART(narrow_values)(a, g, j0, n, v0 + j0 * vt);
        }
        if (!one && (j0 + OIC_ATTENTION_KEYS >= end || j0 + OIC_ATTENTION_KEYS >= to)) {
            PART(join_rows)(g, 0, end - OIC_ATTENTION_SPAN, all, width);
        }
    }
    for (ptrdiff_t row = 0, r = 0, hh = 0; row < rows; ++row) {
        const PART(marks) mine = {one ? g->top[row] : (C)0, one ? g->sum[row] : (C)0, (C)one};
        PART(finish)(a, g, r, hh, one ? &mine : &all[row], one ? (C)0 : (C)-0.0, (one ? g->acc : g->total) + row * width);
        PART(next)(g, &r, &hh);
    }
}
#endif

/* All of a group, span by span. */
static inline void PART(attend)(const PART(args) *a, PART(group) *g)
{
    const ptrdiff_t rows = g->heads * g->count, width = oic_padded(a->Dv);
    C *restrict const total = g->total;
    PART(marks) all[OIC_ATTENTION_MOST];
    ptrdiff_t j0, begin, first, to;
#if ROWS_AS_STORED && !PAIRED
    if (PART(narrow)(a, g->count) && a->bias == NULL && a->k_scale == NULL && a->v_scale == NULL && !(a->softcap > (C)0)) {
        PART(attend_narrow)(a, g);
        return;
    }
#endif
    PART(ranges)(a, g, &first, &to);
    PART(queries)(a, g);
    g->begin = first - first % OIC_ATTENTION_KEYS;
    if (to > g->begin && to <= first - first % OIC_ATTENTION_SPAN + OIC_ATTENTION_SPAN) { /* one span: joined to nothing */
        g->spans = 1;
        PART(span)(a, g, g->begin, to);
        for (ptrdiff_t row = 0, r = 0, hh = 0; row < rows; ++row) {
            const PART(marks) mine = {g->top[row], g->sum[row], (C)g->any[row]};
            PART(finish)(a, g, r, hh, &mine, (C)0, g->acc + row * width);
            PART(next)(g, &r, &hh);
        }
        return;
    }
    memset(total, 0, (size_t)(rows * width) * sizeof(C));
    for (ptrdiff_t row = 0; row < rows; ++row) {
        all[row] = (PART(marks)){(C)-INFINITY, (C)0, (C)0};
    }
    for (j0 = g->begin; j0 < to; j0 = begin + g->spans * OIC_ATTENTION_SPAN) {
        begin = j0 - j0 % OIC_ATTENTION_SPAN;
        const ptrdiff_t left = (to - begin + OIC_ATTENTION_SPAN - 1) / OIC_ATTENTION_SPAN;
        g->spans = left < g->spans ? left : g->spans;
        const ptrdiff_t end = begin + g->spans * OIC_ATTENTION_SPAN;
        PART(span)(a, g, j0, end < to ? end : to);
        for (ptrdiff_t s = 0; s < g->spans; ++s) {
            PART(join_rows)(g, s, begin + s * OIC_ATTENTION_SPAN, all, width);
        }
    }
    for (ptrdiff_t row = 0, r = 0, hh = 0; row < rows; ++row) {
        PART(finish)(a, g, r, hh, &all[row], (C)-0.0, total + row * width);
        PART(next)(g, &r, &hh);
    }
}

/* Heads of queries that share a key head, its rows, and units of them; where a unit has all rows, nothing is divided. */
static inline ptrdiff_t PART(shared)(const PART(args) *a)
{
    return a->Hq == a->Hk ? 1 : a->Hk > 0 ? a->Hq / a->Hk : 0;
}

static inline ptrdiff_t PART(rows)(const PART(args) *a)
{
    return a->N * PART(shared)(a);
}

/* Rows of a unit: about as many in each. */
static inline ptrdiff_t PART(share)(const PART(args) *a)
{
    const ptrdiff_t rows = PART(rows)(a), most = a->together > 0 ? a->together : OIC_ATTENTION_MOST;
    const ptrdiff_t blocks = rows <= most ? 1 : (rows + most - 1) / most;
    const ptrdiff_t each = blocks == 1 ? rows : (rows + blocks - 1) / blocks, whole = each < 1 ? 4 : (each + 3) / 4 * 4;
    return whole < most ? whole : most;
}

/* Units of a key head. */
static inline ptrdiff_t PART(blocks)(const PART(args) *a)
{
    const ptrdiff_t rows = PART(rows)(a), share = PART(share)(a);
    return rows <= share ? rows > 0 : (rows + share - 1) / share;
}

static inline ptrdiff_t PART(units)(const PART(args) *a)
{
    return oic_product(a->rank, a->shape) * a->Hk * PART(blocks)(a);
}

/* A group: rows of head hk from `first` on, and of as many of `heads` heads, and then of `spans` spans, as go together; where
   its scratch lies. */
static inline PART(group) PART(grouped)(const PART(args) *a, ptrdiff_t b, ptrdiff_t hk, ptrdiff_t heads, ptrdiff_t first,
                                        ptrdiff_t spans, C *work)
{
    const ptrdiff_t left = PART(rows)(a) - first, share = PART(share)(a);
    PART(group) g;
    g.b = b;
    g.bias = a->bias == NULL ? 0 : oic_offset(b, a->rank, a->shape, a->bs);
    g.mask = a->mask == NULL ? 0 : oic_offset(b, a->rank, a->shape, a->ms);
    g.shared = PART(shared)(a);
    g.hk = hk;
    g.first = first;
    g.count = left < share ? left : share;
    g.heads = 1;
    g.pitch = a->keys < OIC_ATTENTION_KEYS ? oic_padded(a->keys) : OIC_ATTENTION_KEYS;
    while (g.heads < heads && (g.heads + 1) * g.count <= OIC_ATTENTION_TOGETHER) {
        g.heads++;
    }
    g.spans = 1;
    g.at = 0;
    g.begin = -1;
    const ptrdiff_t rows = g.heads * g.count, most = spans < OIC_ATTENTION_BESIDE ? spans : OIC_ATTENTION_BESIDE;
    const ptrdiff_t all = (a->keys + OIC_ATTENTION_SPAN - 1) / OIC_ATTENTION_SPAN;
    const ptrdiff_t room = all < OIC_ATTENTION_SPANS ? all : OIC_ATTENTION_SPANS; /* blocks of a row that scratch has scores for */
    g.blocks = PART(in_turn)(a, &g) && room > 1 && 2 * rows <= OIC_ATTENTION_TOGETHER ? 2 : 1;
    while ((PART(from_rows)(a, g.count) || PART(in_turn)(a, &g)) && g.spans < most && (g.spans + 1) * g.blocks <= room &&
           (g.spans + 1) * g.blocks * rows <= OIC_ATTENTION_TOGETHER) {
        g.spans++;
    }
    g.q = work;
    g.acc = g.q + rows * oic_padded(TAKEN(a->Dk));
    g.total = g.acc + g.spans * rows * oic_padded(a->Dv);
    g.s = g.total + rows * oic_padded(a->Dv);
    const ptrdiff_t strip = g.count < OIC_ATTENTION_STRIPS ? g.count : OIC_ATTENTION_STRIPS;
    g.wide = g.s + (g.count < OIC_ATTENTION_PACKED ? g.spans * g.blocks * rows : strip) * g.pitch;
    return g;
}

/* Units `unit` to `end`, with scratch of their own. */
static inline void PART(some)(const PART(args) *a, ptrdiff_t unit, ptrdiff_t end, C *restrict work)
{
    const ptrdiff_t share = PART(share)(a), blocks = PART(blocks)(a);
    while (unit < end) {
        const ptrdiff_t bh = blocks == 1 ? unit : unit / blocks, b = bh < a->Hk ? 0 : bh / a->Hk, hk = bh - b * a->Hk;
        const ptrdiff_t left = a->Hk - hk < end - unit ? a->Hk - hk : end - unit;
        PART(group) g = PART(grouped)(a, b, hk, blocks == 1 ? left : 1, (unit - bh * blocks) * share,
                                       (a->keys + OIC_ATTENTION_SPAN - 1) / OIC_ATTENTION_SPAN, work);
        PART(attend)(a, &g);
        unit += g.heads;
    }
}

static inline void PART(heads)(const PART(args) *a)
{
    PART(some)(a, 0, PART(units)(a), a->work);
}

#undef ROWS_AS_STORED
#undef ROWS
#undef WIDE
#undef WEIGH
#undef AHEAD
#undef MIX
#undef KEYS
#undef IN_ONE
#undef BESIDE
#undef TAKEN
#undef SOME
