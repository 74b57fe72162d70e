/* The functions of rows.h for OIC_S, f32 or f64; OIC_FOLD: oic_fold and oic_turn
   are there already; OIC_MAXIMA: registers have maxima. */
#define S OIC_PASTE(oic_stored_, OIC_S)
#define OF(f) OIC_PASTE(f##_, OIC_S)
#define REGISTER OF(oic_register)
#define LANES OF(oic_lanes)
#define WIDTH ((ptrdiff_t)(sizeof(REGISTER) / sizeof(S)))
#define COUNT ((int)(OIC_LANES * sizeof(S) / sizeof(REGISTER)))

#if !OIC_FOLD
typedef S OF(oic_folding);

static inline S OF(oic_folding_of)(const LANES *a)
{
    return OF(oic_lanes_sum)(a);
}

static inline void OF(oic_fold)(S *restrict to, const S *a)
{
    memcpy(to, a, OIC_FOLDED * sizeof(S));
}
#endif

#if !OIC_FOLD
static inline void OF(oic_turn)(const S *r0, const S *r1, const S *r2, const S *r3, S *restrict to)
{
    for (int d = 0; d < 4; ++d) {
        to[d * OIC_LANES] = r0[d];
        to[d * OIC_LANES + 1] = r1[d];
        to[d * OIC_LANES + 2] = r2[d];
        to[d * OIC_LANES + 3] = r3[d];
    }
}
#endif

/* Four columns of a panel, to[n, 16 apart][4], from four rows of n numbers, or from `rows` and the last of them again. */
static inline void OF(oic_columns)(const S *row, ptrdiff_t ld, ptrdiff_t rows, ptrdiff_t n, S *restrict to)
{
    const S *const r1 = row + (rows > 1 ? ld : 0), *const r2 = rows > 2 ? row + 2 * ld : r1;
    const S *const r3 = rows > 3 ? row + 3 * ld : r2;
    const ptrdiff_t whole = n - n % 4;
    ptrdiff_t d = 0;
    for (; d < whole; d += 4) {
        OF(oic_turn)(row + d, r1 + d, r2 + d, r3 + d, to + d * OIC_LANES);
    }
    for (; d < n; ++d) {
        to[d * OIC_LANES] = row[d];
        to[d * OIC_LANES + 1] = r1[d];
        to[d * OIC_LANES + 2] = r2[d];
        to[d * OIC_LANES + 3] = r3[d];
    }
}

enum {
    OF(oic_panel_tree) = OIC_LANES == WIDTH && OF(oic_tile_rows) == 8, /* registers hold all sums of four rows */
    OF(oic_panel_rows) = OF(oic_panel_tree) ? 4 : OF(oic_tile_rows), /* rows of x beside a panel, */
    OF(oic_panels_beside) = OF(oic_panel_tree) ? 2 : 1, /* or so many panels, */
    OF(oic_panel_sums) = OF(oic_panel_rows) * COUNT /* and registers of the sums of one */
};

/* sum[4][panels] += a number of each of four rows, xm apart, times sixteen of each of one or two panels, `apart` from each other.
   Of two, each loads what the other would load, too: loads are the limit of one. */
OIC_INLINE void OF(oic_panel_step)(REGISTER *restrict sum, const S *x, ptrdiff_t xm, const S *w, int panels, ptrdiff_t apart)
{
    REGISTER held[2];
    OIC_UNROLLED
    for (int p = 0; p < panels; ++p) {
        held[p] = OF(oic_register_load)(w + p * apart);
        OIC_TILE_HELD(held[p]);
    }
    OIC_UNROLLED
    for (int r = 0; r < 4; ++r) {
        REGISTER all = OF(oic_register_of)(x[r * xm]);
        if (panels > 1) {
            OIC_TILE_HELD(all);
        }
        OIC_UNROLLED
        for (int p = 0; p < panels; ++p) {
            sum[r * panels + p] = OF(oic_register_madd)(all, held[p], sum[r * panels + p]);
        }
    }
}

/* Sums l and l + 8 of the dot products of four rows x[n] with the columns of panels w[n][16]: added. */
OIC_INLINE void OF(oic_panel_pair)(const S *restrict x, ptrdiff_t xm, const S *restrict w, int panels, ptrdiff_t apart, ptrdiff_t n,
                                   ptrdiff_t l, REGISTER *restrict sum)
{
    enum { HALF = OIC_LANES / 2 };
    REGISTER a[8], more[8];
    OIC_UNROLLED
    for (int i = 0; i < 4 * panels; ++i) {
        a[i] = more[i] = (REGISTER){0};
    }
    ptrdiff_t k = l;
    for (; k + HALF < n; k += OIC_LANES) {
        OF(oic_panel_step)(a, x + k, xm, w + k * OIC_LANES, panels, apart);
        OF(oic_panel_step)(more, x + k + HALF, xm, w + (k + HALF) * OIC_LANES, panels, apart);
    }
    if (k < n) { /* the first of the two has one product more */
        OF(oic_panel_step)(a, x + k, xm, w + k * OIC_LANES, panels, apart);
    }
    OIC_UNROLLED
    for (int i = 0; i < 4 * panels; ++i) {
        sum[i] = a[i] + more[i];
    }
}

/* Every second of the sixteen sums, from l on: added. */
OIC_INLINE void OF(oic_panel_half)(const S *restrict x, ptrdiff_t xm, const S *restrict w, int panels, ptrdiff_t apart, ptrdiff_t n,
                                   ptrdiff_t l, REGISTER *restrict sum)
{
    REGISTER more[8], next[8];
    OF(oic_panel_pair)(x, xm, w, panels, apart, n, l, sum);
    OF(oic_panel_pair)(x, xm, w, panels, apart, n, l + 4, more);
    OIC_UNROLLED
    for (int i = 0; i < 4 * panels; ++i) {
        sum[i] = sum[i] + more[i];
    }
    OF(oic_panel_pair)(x, xm, w, panels, apart, n, l + 2, next);
    OF(oic_panel_pair)(x, xm, w, panels, apart, n, l + 6, more);
    OIC_UNROLLED
    for (int i = 0; i < 4 * panels; ++i) {
        sum[i] = sum[i] + (next[i] + more[i]);
    }
}

/* oic_panel_dots of four rows and one or two panels. */
OIC_INLINE void OF(oic_panel_four)(const S *restrict x, ptrdiff_t xm, const S *restrict w, int panels, ptrdiff_t apart, ptrdiff_t n,
                                   S *restrict sum, ptrdiff_t sm)
{
    REGISTER all[8], more[8];
    OF(oic_panel_half)(x, xm, w, panels, apart, n, 0, all);
    OF(oic_panel_half)(x, xm, w, panels, apart, n, 1, more);
    OIC_UNROLLED
    for (int i = 0; i < 4 * panels; ++i) {
        OF(oic_register_store)(sum + i / panels * sm + i % panels * OIC_LANES, all[i] + more[i]);
    }
}

/* sum[oic_panel_rows, sm apart][16 * panels] = as many rows x[n], xm apart, times the sixteen columns of each of one or two panels
   w[n][16], `apart` from each other; two only where oic_panels_beside is 2: a lane is a column, and has the sixteen sums of its
   dot product one after the other, in the order in which their tree needs them. */
OIC_LOOP void OF(oic_panel_dots)(const S *restrict x, ptrdiff_t xm, const S *restrict w, ptrdiff_t panels, ptrdiff_t apart, ptrdiff_t n,
                                 S *restrict sum, ptrdiff_t sm)
{
    if (OF(oic_panel_tree)) {
        if (panels == 2) {
            OF(oic_panel_four)(x, xm, w, 2, apart, n, sum, sm);
        } else {
            OF(oic_panel_four)(x, xm, w, 1, apart, n, sum, sm);
        }
        return;
    }
    static const uint8_t order[OIC_LANES] = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};
    REGISTER held[4][OF(oic_panel_sums)], a[OF(oic_panel_sums)]; /* held[i]: sums of 2^i of them */
    for (int done = 0; done < OIC_LANES; ++done) {
        const ptrdiff_t l = order[done];
        const S *p = x + l, *q = w + l * OIC_LANES, *const end = w + n * OIC_LANES;
        OIC_UNROLLED
        for (int i = 0; i < OF(oic_panel_sums); ++i) { /* 0 + x * w, but for the sign of a zero, which no weight shows */
            a[i] = q < end ? OF(oic_register_of)(p[i / COUNT * xm]) * OF(oic_register_load)(q + i % COUNT * WIDTH) : (REGISTER){0};
        }
        OIC_UNROLLED_TWICE
        for (ptrdiff_t k = (end - q - 1) / (OIC_LANES * OIC_LANES); k > 0; --k) {
            REGISTER v[COUNT];
            p += OIC_LANES;
            q += OIC_LANES * OIC_LANES;
            OIC_UNROLLED
            for (int i = 0; i < COUNT; ++i) {
                v[i] = OF(oic_register_load)(q + i * WIDTH);
            }
            OIC_UNROLLED
            for (int r = 0; r < OF(oic_panel_rows); ++r) {
                const REGISTER all = OF(oic_register_of)(p[r * xm]);
                OIC_UNROLLED
                for (int i = 0; i < COUNT; ++i) {
                    a[r * COUNT + i] = OF(oic_register_madd)(all, v[i], a[r * COUNT + i]);
                }
            }
        }
        int level = 0;
        for (; done >> level & 1; ++level) {
            OIC_UNROLLED
            for (int i = 0; i < OF(oic_panel_sums); ++i) {
                a[i] = held[level][i] + a[i];
            }
        }
        if (level < 4) {
            OIC_UNROLLED
            for (int i = 0; i < OF(oic_panel_sums); ++i) {
                held[level][i] = a[i];
            }
        }
    }
    OIC_UNROLLED
    for (int i = 0; i < OF(oic_panel_sums); ++i) {
        OF(oic_register_store)(sum + i / COUNT * sm + i % COUNT * WIDTH, a[i]);
    }
}

#if OIC_MAXIMA
/* high[rows] = the largest of top and of the numbers of rows of x, pitch apart, n of row r being whole lanes, that are numbers. */
OIC_LOOP void OF(oic_largest_of)(const S *x, ptrdiff_t pitch, ptrdiff_t rows, const uint8_t *restrict n, const S *restrict top,
                                 S *restrict high)
{
    for (ptrdiff_t r = 0; r < rows; ++r, x += pitch) {
        LANES a;
        OIC_UNROLLED
        for (int i = 0; i < COUNT; ++i) {
            a.part[i] = OF(oic_register_of)(top[r]);
        }
        for (ptrdiff_t j = 0; j < n[r]; j += OIC_LANES) {
            OIC_UNROLLED
            for (int i = 0; i < COUNT; ++i) {
                a.part[i] = OF(oic_register_max)(OF(oic_register_load)(x + j + i * WIDTH), a.part[i]);
            }
        }
        high[r] = OF(oic_lanes_largest)(&a);
    }
}
#else
OIC_LOOP void OF(oic_largest_of)(const S *x, ptrdiff_t pitch, ptrdiff_t rows, const uint8_t *restrict n, const S *restrict top,
                                 S *restrict high)
{
    for (ptrdiff_t r = 0; r < rows; ++r, x += pitch) {
        S a[OIC_LANES];
        for (int l = 0; l < OIC_LANES; ++l) {
            a[l] = top[r];
        }
        for (ptrdiff_t j = 0; j < n[r]; j += OIC_LANES) {
            for (int l = 0; l < OIC_LANES; ++l) {
                a[l] = x[j + l] > a[l] ? x[j + l] : a[l];
            }
        }
        high[r] = a[0];
        for (int l = 1; l < OIC_LANES; ++l) {
            high[r] = a[l] > high[r] ? a[l] : high[r];
        }
    }
}
#endif

/* to[n] *= factor, n being whole lanes. */
static inline void OF(oic_scaled)(S *restrict to, ptrdiff_t n, S factor)
{
    const REGISTER all = OF(oic_register_of)(factor);
    for (ptrdiff_t i = 0; i < n; i += OIC_LANES) {
        OIC_UNROLLED
        for (int r = 0; r < COUNT; ++r) {
            S *const at = to + i + r * WIDTH;
            OF(oic_register_store)(at, OF(oic_register_load)(at) * all);
        }
    }
}

/* to[n] = few * factor + many, n being whole lanes; `to` may be either. */
static inline void OF(oic_joined)(S *to, const S *few, const S *many, ptrdiff_t n, S factor)
{
    const REGISTER all = OF(oic_register_of)(factor);
    for (ptrdiff_t i = 0; i < n; i += OIC_LANES) {
        OIC_UNROLLED
        for (int r = 0; r < COUNT; ++r) {
            const ptrdiff_t at = i + r * WIDTH;
            OF(oic_register_store)(to + at, OF(oic_register_madd)(OF(oic_register_load)(few + at), all, OF(oic_register_load)(many + at)));
        }
    }
}

/* The sum of n numbers, whole lanes of them, in sixteen sums and their tree. */
static inline S OF(oic_sum_of)(const S *x, ptrdiff_t n)
{
    LANES a;
    OF(oic_lanes_zero)(&a);
    for (ptrdiff_t i = 0; i < n; i += OIC_LANES) {
        for (int r = 0; r < COUNT; ++r) {
            a.part[r] += OF(oic_register_load)(x + i + r * WIDTH);
        }
    }
    return OF(oic_lanes_sum)(&a);
}

#undef S
#undef OF
#undef REGISTER
#undef LANES
#undef WIDTH
#undef COUNT
#undef OIC_S
#undef OIC_FOLD
#undef OIC_MAXIMA
