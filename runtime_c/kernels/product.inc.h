/* The body that products of matrices share.  The kernel that includes it defines PRODUCT and PRODUCT_…, the names of
   the functions, OPERANDS, that of their struct, and PANELS: w lies in panels, sixteen columns side by side for each k, the
   last ones filled up with zeros.  One that defines PRODUCT_THEN, too, hands its results on where there is `then`
   (common/then.h), and y is NULL.

   y[M, N] = x[M, K] * w[K, N] * scale[N] + b[N], columns of panels first..end-1; scale (float, neighbours ds apart) and b may
   be NULL.

   Order: the products of an element are added over k ascending, in chunks of OIC_CHUNK from zero, and the sums of the
   chunks in order, from zero; then come scale and b.  No other element and no size but K has a part in it.

   x lies at the strides xm and xk.  Column j = 16 * g + l of w, element k, is w[g * wg + l * wn + k * wk].  Tiles of a few rows
   and panels are computed at a time (simd/tiles.h).  Few rows go through all of a tile's columns of w at once, and where memory
   is the limit the columns of a tile lie in shares of w that are read side by side; many go chunk by chunk through
   columns, as many as a cache holds sums of, and these wait in y.  Where y is of another type than the sums are computed in,
   or NULL, or a panel is cut off, sums are on the stack: at most 16 * OIC_ROWS_OF_SUMS panels of a tile.  What has to be widened or gathered
   is, OIC_BLOCK values of k of a tile at a time, on the stack, too; so is a chunk of K of many rows of x, where it goes through
   many panels: read in order, it comes in time; OIC_TILE_AS_IS: only where its elements are no neighbours. */
#define TILE MATH(oic_tile)
#define TILE_ROWS MATH(oic_tile_rows)
#define TILE_SIDE MATH(oic_tile_side)
#if PANELS && OIC_IS_ONE(OIC_PASTE(OIC_WIDENS_, OIC_PASTE(OIC_W, OIC_PASTE(_, OIC_COMPUTED))))
#define WIDENS 1 /* the tile does it: few rows take w as it lies, or all */
#else
#define WIDENS 0
#endif
#define COPIES (OIC_COPIES && sizeof(C) <= 4)

typedef struct {
    const T *x;
    const W_T *w;
    const float *scale;
    const B_T *b;
    T *y;
    ptrdiff_t M, K, N, xm, xk, wk, wg, wn, ds;
    ptrdiff_t before_w; /* elements that the first byte of a packed w has before w begins */
#if defined(PRODUCT_THEN)
    ptrdiff_t before; /* rows of other batches */
    oic_then *then;
    const void *context;
#endif
} OPERANDS;

#if !PANELS
/* One row of x times neighbouring columns lo..hi-1 of a w that is used where it lies. */
static inline void PRODUCT_ROW(const OPERANDS *o, ptrdiff_t lo, ptrdiff_t hi)
{
    const C *const x = (const C *)(const void *)o->x, *const w = (const C *)(const void *)o->w;
    for (ptrdiff_t j = lo; j < hi; j += OIC_STRETCH) {
        const ptrdiff_t n = hi - j < OIC_STRETCH ? hi - j : OIC_STRETCH;
        C sum[OIC_STRETCH] = {0};
        for (ptrdiff_t k = 0; k < o->K; k += OIC_CHUNK) {
            C chunk[OIC_STRETCH] = {0};
            MATH(oic_chains)(chunk, x + k * o->xk, o->xk, w + k * o->wk + j, o->wk,
                             o->K - k < OIC_CHUNK ? o->K - k : OIC_CHUNK, n);
            for (ptrdiff_t l = 0; l < n; ++l) {
                sum[l] += chunk[l];
            }
        }
        for (ptrdiff_t l = 0; l < n; ++l) {
            const C v = o->scale != NULL ? sum[l] * (C)o->scale[(j + l) * o->ds] : sum[l];
            STORE(o->y, j + l, o->b != NULL ? v + (C)B_LOAD(o->b, j + l) : v);
        }
    }
}
#endif

/* Scale, b and the store of columns j..j+n-1 of rows i0..i0+rows-1, from their sums, or where these are in y already. */
static inline void PRODUCT_STORE(const OPERANDS *o, const C *sum, ptrdiff_t ld, ptrdiff_t i0, ptrdiff_t rows, ptrdiff_t j,
                                 ptrdiff_t n)
{
    const float *const scale = o->scale;
    const B_T *const b = o->b;
    const ptrdiff_t ds = o->ds;
    for (ptrdiff_t i = 0; i < rows; ++i, sum += ld) {
        T *const y = o->y + (i0 + i) * o->N + j;
        ptrdiff_t l = 0;
        for (; l + OIC_LANES <= n; l += OIC_LANES) { /* by way of v, which nothing else lies in: sum may be y */
            C v[OIC_LANES];
            memcpy(v, sum + l, sizeof v);
            for (ptrdiff_t e = 0; scale != NULL && e < OIC_LANES; ++e) {
                v[e] *= (C)scale[(j + l + e) * ds];
            }
            for (ptrdiff_t e = 0; b != NULL && e < OIC_LANES; ++e) {
                v[e] += (C)B_LOAD(b, j + l + e);
            }
            for (ptrdiff_t e = 0; e < OIC_LANES; ++e) {
                STORE(y, l + e, v[e]);
            }
        }
        for (; l < n; ++l) {
            const C v = scale != NULL ? sum[l] * (C)scale[(j + l) * ds] : sum[l];
            STORE(y, l, b != NULL ? v + (C)B_LOAD(b, j + l) : v);
        }
    }
}

/* They are stored, or handed on. */
static inline void PRODUCT_GIVE(const OPERANDS *o, C *sum, ptrdiff_t ld, ptrdiff_t i0, ptrdiff_t rows, ptrdiff_t j, ptrdiff_t n)
{
#if defined(PRODUCT_THEN)
    if (o->then != NULL) {
        for (ptrdiff_t i = 0; o->b != NULL && i < rows; ++i) {
            for (ptrdiff_t l = 0; l < n; ++l) {
                sum[i * ld + l] += (C)B_LOAD(o->b, j + l);
            }
        }
        o->then(o->context, (const float *)(const void *)sum, ld, o->before + i0, o->before + i0 + rows, j, j + n);
        return;
    }
#endif
    PRODUCT_STORE(o, sum, ld, i0, rows, j, n);
}

/* Elements k..k+n-1 of `panels` panels from g, as numbers of type C; what w does not have is zero. */
static inline void PRODUCT_GATHER(const OPERANDS *o, C *restrict to, ptrdiff_t g, ptrdiff_t panels, ptrdiff_t k, ptrdiff_t n)
{
    for (ptrdiff_t p = 0; p < panels; ++p, to += OIC_LANES * OIC_BLOCK) {
        const ptrdiff_t at = o->before_w + (g + p) * o->wg + k * o->wk, left = o->N - (g + p) * OIC_LANES;
#if WIDENS
        (void)left;
        for (ptrdiff_t e = 0; e < OIC_LANES * n; e += OIC_WIDTH) {
            oic_register_store_f32(to + e, OIC_PASTE(oic_row_, OIC_W)(o->w + at + e));
        }
#elif PANELS
        (void)left;
        for (ptrdiff_t e = 0; e < OIC_LANES * n; ++e) {
            to[e] = (C)W_LOAD(o->w, at + e);
        }
#else
        const ptrdiff_t lanes = left < OIC_LANES ? left : OIC_LANES;
        for (ptrdiff_t e = 0; lanes == OIC_LANES && o->wn == 1 && e < n; ++e) {
            for (ptrdiff_t l = 0; l < OIC_LANES; ++l) {
                to[e * OIC_LANES + l] = (C)W_LOAD(o->w, at + e * o->wk + l);
            }
        }
        for (ptrdiff_t e = 0; (lanes < OIC_LANES || o->wn != 1) && e < n; ++e) {
            for (ptrdiff_t l = 0; l < OIC_LANES; ++l) {
                to[e * OIC_LANES + l] = l < lanes ? (C)W_LOAD(o->w, at + e * o->wk + l * o->wn) : (C)0;
            }
        }
#endif
    }
}

/* What is read next, of use while other memory is waited for: panel g from element k, in `parts` tiles. */
static inline void PRODUCT_AHEAD(const OPERANDS *o, TILE *t, ptrdiff_t g, ptrdiff_t k, ptrdiff_t parts)
{
    const int lines = W_BITS >= 8 && (PANELS || o->wn == 1) && parts > 0; /* sixteen columns are one, or half of one */
    t->next = (uintptr_t)(const void *)(lines ? o->w + g * o->wg + k * o->wk : o->w);
    t->step = lines ? ((uintptr_t)o->wk * sizeof(W_T) + (uintptr_t)parts - 1) / (uintptr_t)parts : 0;
    t->apart = lines ? (uintptr_t)o->wg * sizeof(W_T) : 0;
}

/* n elements of `rows` rows of x from i and k, as numbers of type C, rows OIC_BLOCK apart. */
static inline void PRODUCT_COPY(const OPERANDS *o, C *restrict to, ptrdiff_t i, ptrdiff_t rows, ptrdiff_t k, ptrdiff_t n)
{
    for (ptrdiff_t m = 0; m < rows; ++m, to += OIC_BLOCK) {
        const ptrdiff_t at = (i + m) * o->xm + k * o->xk;
        if (X_IS_COMPUTED && o->xk == 1 && n > 0) {
            memcpy(to, o->x + at, (size_t)n * sizeof *to);
            continue;
        }
        for (ptrdiff_t e = 0; e < n; ++e) {
            to[e] = (C)LOAD(o->x, at + e * o->xk);
        }
    }
}

/* Rows i0..i0+rows-1 of panels first..end-1; their sums are in y, if in_y, and else on the stack. */
static inline void PRODUCT_ROWS(const OPERANDS *o, ptrdiff_t i0, ptrdiff_t rows, ptrdiff_t first, ptrdiff_t end, int in_y)
{
    C xs[COPIES ? OIC_ROWS * OIC_BLOCK : X_IS_COMPUTED ? 1 : TILE_ROWS * OIC_BLOCK];
    C ws[(PANELS && W_IS_COMPUTED) || (WIDENS && OIC_WIDENS_AGAIN >= OIC_ROWS) ? 1 : TILE_SIDE * OIC_LANES * OIC_BLOCK];
    C sums[OIC_ROWS_OF_SUMS * TILE_SIDE * OIC_LANES], chains[OIC_BLOCK < OIC_CHUNK ? OIC_ROWS * TILE_SIDE * OIC_LANES : 1];
    const ptrdiff_t groups = (rows + TILE_ROWS - 1) / TILE_ROWS, even = rows / groups, larger = rows % groups;
    const int few = rows <= TILE_ROWS;
    const int as_is = W_IS_COMPUTED && (PANELS || (o->wn == 1 && rows <= OIC_ROWS_AS_IS && end * OIC_LANES <= o->N));
    const int direct = as_is || (WIDENS && (few || rows <= OIC_WIDENS_AGAIN));
    const ptrdiff_t block = X_IS_COMPUTED && direct ? OIC_CHUNK : OIC_BLOCK;
    const ptrdiff_t side = direct ? MATH(oic_tile_panels)(few ? rows : TILE_ROWS) : rows > 3 ? TILE_SIDE : 1;
    const int kept = COPIES && !few; /* what is copied of x is there for all panels */
    const int many = !OIC_TILE_AS_IS && in_y && rows >= OIC_ROWS_COPIED && end - first >= OIC_PANELS_COPIED;
    const int copied = !X_IS_COMPUTED || (kept && (o->xk != 1 || many));
    const ptrdiff_t span = few || !in_y ? side : (COPIES ? OIC_PANELS_OF_MANY : OIC_PANELS) / side * side, row = side * OIC_LANES;
    for (ptrdiff_t g0 = first; g0 < end; g0 += span) {
        const ptrdiff_t g1 = end - g0 < span ? end : g0 + span;
        ptrdiff_t k0 = 0;
        do {
            const ptrdiff_t k1 = o->K - k0 < OIC_CHUNK ? o->K : k0 + OIC_CHUNK;
            for (ptrdiff_t g = g0, panels; g < g1; g += panels) {
                panels = g1 - g < side ? MATH(oic_tile_rest)(few ? rows : TILE_ROWS, g1 - g) : side;
                const ptrdiff_t j = g * OIC_LANES, ld = in_y ? o->N : row;
                C *const sum = in_y ? (C *)(void *)(o->y + i0 * o->N + j) : sums + (g - g0) * OIC_LANES;
                ptrdiff_t k = k0;
                do {
                    const ptrdiff_t n = k1 - k < block ? k1 - k : block;
                    TILE t = {
                        .w = direct ? (const void *)(o->w + g * o->wg + k * o->wk) : ws,
                        .wk = direct ? o->wk : OIC_LANES, .wg = direct ? o->wg : OIC_LANES * OIC_BLOCK, .n = n,
                        .xm = copied ? OIC_BLOCK : o->xm, .xk = copied ? 1 : o->xk,
                        .x = NULL, .times = 1, .at = NULL, .next = 0, .step = 0, .apart = 0,
                        .ahead = 0, .many = rows >= OIC_ROWS_COPIED, /* all are named: else zeros are stored first */
                    };
                    if (!direct) {
                        PRODUCT_GATHER(o, ws, g, panels, k, n);
                    }
                    if (few || g + panels < g1) {
                        PRODUCT_AHEAD(o, &t, g + panels, k, g + panels < end ? groups : 0);
                    } else if (k1 < o->K) {
                        PRODUCT_AHEAD(o, &t, g0, k1, groups);
                    } else {
                        PRODUCT_AHEAD(o, &t, g1, 0, g1 < end ? groups : 0);
                    }
                    const uintptr_t next = t.next;
                    if (kept && copied && g == g0) {
                        PRODUCT_COPY(o, xs, i0, rows, k, n);
                    }
                    for (ptrdiff_t i = 0, r, part = 0; i < rows; i += r * t.times, part += t.times) {
                        r = even + (part < larger); /* as even as can be */
                        t.times = copied && !kept ? 1 : part < larger ? larger : groups - part;
                        t.next = next + (uintptr_t)(part * n) * t.step;
                        if (copied && !kept) {
                            PRODUCT_COPY(o, xs, i0 + i, r, k, n);
                        }
                        t.x = copied ? xs + (kept ? i : 0) * OIC_BLOCK
                                     : (const C *)(const void *)o->x + (i0 + i) * o->xm + k * o->xk;
                        C *const into = block < OIC_CHUNK ? chains + i * row : sum + i * ld;
                        const ptrdiff_t apart = block < OIC_CHUNK ? row : ld;
                        const int how = k > k0 ? OIC_TILE_GO_ON : block < OIC_CHUNK || k0 == 0 ? OIC_TILE_SET : OIC_TILE_ADD;
#if WIDENS
                        if (direct) {
                            OIC_JOIN_3(oic_tile_sum, OIC_W, f32)(&t, r, panels, into, apart, how);
                            continue;
                        }
#endif
                        MATH(oic_tile_sum)(&t, r, panels, into, apart, how);
                    }
                    k += block;
                } while (k < k1);
                for (ptrdiff_t i = 0; block < OIC_CHUNK && i < rows; ++i) {
                    for (ptrdiff_t l = 0; l < panels * OIC_LANES; ++l) {
                        sum[i * ld + l] = (k0 == 0 ? (C)0 : sum[i * ld + l]) + chains[i * row + l];
                    }
                }
                if (k1 == o->K && (!in_y || o->scale != NULL || o->b != NULL)) {
                    const ptrdiff_t columns = o->N - j < panels * OIC_LANES ? o->N - j : panels * OIC_LANES;
                    PRODUCT_GIVE(o, sum, ld, i0, rows, j, columns);
                }
            }
            k0 += OIC_CHUNK;
        } while (k0 < o->K);
    }
}

#if PANELS && OIC_HOSTED
/* All rows, few, of `side` shares of `share` panels each, from `first` on.  A share lies in one piece and is read from its
   beginning to its end, side by side with the others. */
static inline void PRODUCT_FEW(const OPERANDS *o, ptrdiff_t first, ptrdiff_t side, ptrdiff_t share)
{
    C xs[X_IS_COMPUTED ? 1 : TILE_ROWS * OIC_BLOCK], sums[TILE_ROWS * OIC_TILE_BESIDE * OIC_LANES];
    TILE t = {
        .x = NULL, .w = NULL, .n = 0, .times = 1, .at = NULL, .next = 0, .step = 0, .apart = 0,
        .ahead = sizeof(C) > 4 ? 0 : OIC_PRODUCT_AHEAD(WIDENS), .many = 0, .wk = o->wk, .wg = share * o->wg,
        .xm = X_IS_COMPUTED ? o->xm : OIC_BLOCK, .xk = X_IS_COMPUTED ? o->xk : 1,
    };
    PRODUCT_AHEAD(o, &t, first, 0, 0); /* nothing: machines ask for what lies on in so few places, but for what is `ahead` */
    for (ptrdiff_t g = first; g < first + share; ++g) {
        for (ptrdiff_t k = 0; k < o->K; k += OIC_CHUNK) {
            const int how = k == 0 ? OIC_TILE_SET : OIC_TILE_ADD;
            t.n = o->K - k < OIC_CHUNK ? o->K - k : OIC_CHUNK;
            t.w = o->w + g * o->wg + k * o->wk;
            t.x = X_IS_COMPUTED ? (const C *)(const void *)o->x + k * o->xk : xs;
            if (!X_IS_COMPUTED) {
                PRODUCT_COPY(o, xs, 0, o->M, k, t.n);
            }
#if WIDENS
            OIC_JOIN_3(oic_tile_sum, OIC_W, f32)(&t, o->M, side, sums, side * OIC_LANES, how);
#else
            MATH(oic_tile_sum)(&t, o->M, side, sums, side * OIC_LANES, how);
#endif
        }
        for (ptrdiff_t p = 0; p < side; ++p) {
            const ptrdiff_t j = (g + p * share) * OIC_LANES, n = o->N - j < OIC_LANES ? o->N - j : OIC_LANES;
            PRODUCT_GIVE(o, sums + p * OIC_LANES, side * OIC_LANES, 0, o->M, j, n);
        }
    }
}
#endif

/* All rows, of panels first..end-1. */
static inline void PRODUCT(const OPERANDS *o, ptrdiff_t first, ptrdiff_t end)
{
    const ptrdiff_t whole = o->N / OIC_LANES, in_y = !X_IS_COMPUTED || o->y == NULL ? first : whole < end ? whole : end;
#if !PANELS
    const int tile = OIC_REGISTER > 0 && end <= whole && end - first <= MATH(oic_tile_panels)(1); /* its sums fit registers */
    if (o->M == 1 && o->wn == 1 && X_IS_COMPUTED && W_IS_COMPUTED && !tile) {
        PRODUCT_ROW(o, first * OIC_LANES, end <= whole ? end * OIC_LANES : o->N);
        return;
    }
#endif
#if PANELS && OIC_HOSTED
    const ptrdiff_t few = WIDENS && OIC_ASKED_NEAR ? 3 : (ptrdiff_t)sizeof(W_T); /* memory is the limit of so many */
    if ((W_IS_COMPUTED || WIDENS) && o->M > 0 && o->M <= (few < TILE_ROWS ? few : (ptrdiff_t)TILE_ROWS)) {
        const ptrdiff_t side = MATH(oic_tile_beside)(o->M), share = (end - first) / side;
        const ptrdiff_t bytes = oic_product_panels(o->N) * o->wg * (ptrdiff_t)sizeof(W_T);
        if (side > 1 && share > 0 && bytes >= OIC_SHARED_BYTES(WIDENS)) {
            PRODUCT_FEW(o, first, side, share);
            first += side * share;
        }
    }
#endif
    for (ptrdiff_t i = 0, rows; first < in_y && i < o->M; i += rows) {
        rows = oic_rows(o->M - i, OIC_ROWS, TILE_ROWS);
        PRODUCT_ROWS(o, i, rows, first, in_y, 1);
    }
    for (ptrdiff_t i = 0, rows; in_y < end && i < o->M; i += rows) {
        rows = oic_rows(o->M - i, OIC_ROWS_OF_SUMS, TILE_ROWS);
        PRODUCT_ROWS(o, i, rows, in_y > first ? in_y : first, end, 0);
    }
}
