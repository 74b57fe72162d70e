/* Products with rows of type OIC_R, which become numbers of type OIC_S in registers: ROW(p) is a register of them from p on.

   OIC_S, OIC_R   f32 and f32, f16, bf16 or i8, or f64 and f64: oic_row_dots_f32_f16 */
#define S OIC_PASTE(oic_stored_, OIC_S)
#define R OIC_PASTE(oic_stored_, OIC_R)
#define OF(f) OIC_PASTE(f##_, OIC_S)
#define ROWS(f) OIC_JOIN_3(f, OIC_S, OIC_R)
#define ROW(p) OIC_PASTE(oic_row_, OIC_R)(p)
#define REGISTER OF(oic_register)
#define LANES OF(oic_lanes)
#define WIDTH ((ptrdiff_t)(sizeof(REGISTER) / sizeof(S)))
#define COUNT ((int)(OIC_LANES * sizeof(S) / sizeof(REGISTER)))
#define ROW_TILE (WIDTH == 16 ? 4 : 2) /* rows whose sums stay in registers, of 32 more than of 16, */
#define ROW_KEYS 4 /* beside so many keys, */
#define ROW_KEYS_OF_ONE (sizeof(R) < sizeof(S) ? 4 : 8) /* and with those of one row */
#define ROW_SUMS (WIDTH == 16 ? 16 : 8)
#define ROW_HEADS 16 /* heads whose sums go side by side before they are folded */
#define ROW_AHEAD (OIC_ASKED_NEAR ? 8192 : 4096) /* bytes, and some of a row, from what is read in turn to what is asked for */
#define ROW_STEP (OIC_ASKED_NEAR ? 64 : 128)      /* from one line that is asked for to the next */
#define ROW_GROUP (sizeof(R) == 1 ? 4 : 1) /* rows that are added together, which spares results the way to memory */
#define ROW_MIXES (WIDTH > 1 ? 6 : 1) /* rows of weights whose results stay in registers, */
#define ROW_WIDE (WIDTH > 1 ? 4 * OIC_LANES : OIC_LANES) /* columns whose code has no loops */
#define ROW_MIXED (WIDTH == 1 ? OIC_LANES : OIC_MANY_REGISTERS ? 4 : 2) /* so many of each */

/* A step of a chain, and its first; the length of a head that has code of its own. */
#if OIC_IS_ONE(OIC_PASTE(OIC_PAIRED_, OIC_R))
#define ROW_OFTEN (2 * OIC_LANES) /* heads of 64, of which most models are */
#define ROW_MADD(a, b, sum) OIC_PASTE(oic_row_madd_, OIC_R)(a, b, sum)
#define ROW_PRODUCT(a, b) ROW_MADD(a, b, (REGISTER){0})
#else
#define ROW_OFTEN (4 * OIC_LANES)
#define ROW_MADD(a, b, sum) OF(oic_register_madd)(a, b, sum)
#define ROW_PRODUCT(a, b) ((a) * (b))
#endif

/* The first n of a register's numbers, 0 < n; the others are 0. */
static inline REGISTER ROWS(oic_row_some)(const R *from, ptrdiff_t n)
{
    if (n >= WIDTH) {
        return ROW(from);
    }
#if OIC_IS_ONE(OIC_PASTE(OIC_SOME_, OIC_R))
    return OF(oic_register_load_some)(from, n);
#else
    R some[sizeof(REGISTER) / sizeof(S)] = {0};
    for (ptrdiff_t i = 0; i < n; ++i) {
        some[i] = from[i];
    }
    return ROW(some);
#endif
}

/* sum += x * w[lanes] */
static inline void ROWS(oic_row_madd)(LANES *sum, S x, const R *w)
{
    const REGISTER all = OF(oic_register_of)(x);
    for (int i = 0; i < COUNT; ++i) {
        sum->part[i] = ROW_MADD(all, ROW(w + i * WIDTH), sum->part[i]);
    }
}

/* sum[rows, keys] += a register of each of so many rows of x, and of as many of keys, from column k on. */
OIC_INLINE void ROWS(oic_row_step)(const S *restrict x, ptrdiff_t xm, int rows, const R *const *restrict row, int keys, ptrdiff_t k,
                                   REGISTER *restrict sum)
{
    REGISTER p[ROW_TILE];
    OIC_UNROLLED
    for (int r = 0; r < rows; ++r) {
        p[r] = OF(oic_register_load)(x + r * xm + k);
        OIC_TILE_HELD(p[r]);
    }
    OIC_UNROLLED
    for (int e = 0; e < keys; ++e) {
        const REGISTER w = ROW(row[e] + k);
        OIC_UNROLLED
        for (int r = 0; r < rows; ++r) {
            sum[r * keys + e] = ROW_MADD(p[r], w, sum[r * keys + e]);
        }
    }
}

/* folded[rows, OIC_FOLDED apart][keys] = x[rows, xm apart][n] times `keys` rows: a register of the sums of each at a time. */
OIC_INLINE void ROWS(oic_row_tile)(const S *restrict x, ptrdiff_t xm, int rows, const R *const *restrict row, int keys, ptrdiff_t n,
                                   OF(oic_folding) *restrict folded)
{
    const ptrdiff_t whole = n - n % OIC_LANES;
    LANES all[ROW_SUMS];
    OIC_UNROLLED
    for (int i = 0; i < COUNT; ++i) {
        const ptrdiff_t left = n - whole - i * WIDTH;
        ptrdiff_t k = i * WIDTH;
        REGISTER sum[ROW_SUMS];
        OIC_UNROLLED
        for (int e = 0; e < rows * keys; ++e) {
            sum[e] = (REGISTER){0};
        }
        for (; k + 3 * OIC_LANES < whole; k += 4 * OIC_LANES) {
            OIC_UNROLLED
            for (int u = 0; u < 4; ++u) {
                ROWS(oic_row_step)(x, xm, rows, row, keys, k + u * OIC_LANES, sum);
            }
        }
        for (; k < whole; k += OIC_LANES) {
            ROWS(oic_row_step)(x, xm, rows, row, keys, k, sum);
        }
        if (left > 0) {
            OIC_UNROLLED
            for (int e = 0; e < keys; ++e) {
                const REGISTER w = ROWS(oic_row_some)(row[e] + n - left, left);
                OIC_UNROLLED
                for (int r = 0; r < rows; ++r) {
                    const REGISTER p = OF(oic_register_load)(x + r * xm + n - left);
                    sum[r * keys + e] = ROW_MADD(p, w, sum[r * keys + e]);
                }
            }
        }
        OIC_UNROLLED
        for (int e = 0; e < rows * keys; ++e) {
            all[e].part[i] = sum[e];
        }
    }
    OIC_UNROLLED
    for (int e = 0; e < rows * keys; ++e) {
        folded[e / keys * OIC_FOLDED + e % keys] = OF(oic_folding_of)(&all[e]);
    }
}

/* The sums of OIC_FOLDED rows, or of the first of them, `apart` from each other. */
OIC_INLINE void ROWS(oic_row_sums)(S *restrict sum, ptrdiff_t apart, ptrdiff_t rows, const OF(oic_folding) *restrict folded)
{
    if (apart == 1) {
        OF(oic_fold)(sum, folded);
    } else {
        S all[OIC_FOLDED];
        OF(oic_fold)(all, folded);
        for (ptrdiff_t e = 0; e < rows; ++e) {
            sum[e * apart] = all[e];
        }
    }
}

/* oic_row_dots for one row a head, n being whole lanes: nothing but chains in registers. */
OIC_LOOP void ROWS(oic_row_dots_one)(const S *restrict x, ptrdiff_t xm, ptrdiff_t heads, const R *restrict row, ptrdiff_t ld,
                                     ptrdiff_t next, ptrdiff_t rows, ptrdiff_t n, S *restrict sum, ptrdiff_t sm,
                                     ptrdiff_t apart)
{
    const R *at[OIC_FOLDED];
    OIC_UNROLLED
    for (ptrdiff_t e = 0; e < OIC_FOLDED; ++e) {
        at[e] = row + (e < rows ? e : 0) * ld;
    }
    for (ptrdiff_t h = 0; h < heads; ++h, x += xm, sum += sm) {
        LANES all[OIC_FOLDED];
        OF(oic_folding) folded[OIC_FOLDED];
        OIC_UNROLLED
        for (int e = 0; e < OIC_FOLDED; e += ROW_KEYS_OF_ONE) {
            OIC_UNROLLED
            for (int i = 0; i < COUNT; ++i) {
                REGISTER s[ROW_KEYS_OF_ONE];
                OIC_UNROLLED
                for (int f = 0; f < (int)ROW_KEYS_OF_ONE; ++f) {
                    s[f] = (REGISTER){0};
                }
                ptrdiff_t k = i * WIDTH;
                for (; k + 3 * OIC_LANES < n; k += 4 * OIC_LANES) {
                    OIC_UNROLLED
                    for (int u = 0; u < 4; ++u) {
                        const REGISTER p = OF(oic_register_load)(x + k + u * OIC_LANES);
                        OIC_UNROLLED
                        for (int f = 0; f < (int)ROW_KEYS_OF_ONE; ++f) {
                            s[f] = ROW_MADD(p, ROW(at[e + f] + k + u * OIC_LANES), s[f]);
                        }
                    }
                }
                for (; k < n; k += OIC_LANES) {
                    const REGISTER p = OF(oic_register_load)(x + k);
                    OIC_UNROLLED
                    for (int f = 0; f < (int)ROW_KEYS_OF_ONE; ++f) {
                        s[f] = ROW_MADD(p, ROW(at[e + f] + k), s[f]);
                    }
                }
                OIC_UNROLLED
                for (int f = 0; f < (int)ROW_KEYS_OF_ONE; ++f) {
                    all[e + f].part[i] = s[f];
                }
            }
        }
        OIC_UNROLLED
        for (int e = 0; e < OIC_FOLDED; ++e) {
            folded[e] = OF(oic_folding_of)(&all[e]);
            at[e] += next;
        }
        ROWS(oic_row_sums)(sum, apart, rows, folded);
    }
}

/* oic_row_dots for any number of rows a head, and any n. */
OIC_INLINE void ROWS(oic_row_dots_some)(const S *restrict x, ptrdiff_t xm, ptrdiff_t heads, ptrdiff_t count, const R *restrict row,
                                        ptrdiff_t ld, ptrdiff_t next, ptrdiff_t rows, ptrdiff_t n, S *restrict sum, ptrdiff_t sm,
                                        ptrdiff_t apart)
{
    for (ptrdiff_t h = 0; h < heads; ++h, row += next) {
        const R *at[OIC_FOLDED];
        for (ptrdiff_t e = 0; e < OIC_FOLDED; ++e) {
            at[e] = row + (e < rows ? e : 0) * ld;
        }
        for (ptrdiff_t m = count; m > 0;) {
            OF(oic_folding) folded[ROW_TILE * OIC_FOLDED];
            const ptrdiff_t together = m >= ROW_TILE ? ROW_TILE : ROW_TILE > 2 && m >= 2 ? 2 : 1;
            if (together == 1) {
                for (int e = 0; e < OIC_FOLDED; e += ROW_KEYS_OF_ONE) {
                    ROWS(oic_row_tile)(x, xm, 1, at + e, ROW_KEYS_OF_ONE, n, folded + e);
                }
            } else if (together == 2) {
                for (int e = 0; e < OIC_FOLDED; e += ROW_KEYS) {
                    ROWS(oic_row_tile)(x, xm, 2, at + e, ROW_KEYS, n, folded + e);
                }
            } else {
                for (int e = 0; e < OIC_FOLDED; e += ROW_KEYS) {
                    ROWS(oic_row_tile)(x, xm, ROW_TILE, at + e, ROW_KEYS, n, folded + e);
                }
            }
            for (ptrdiff_t r = 0; r < together; ++r) {
                ROWS(oic_row_sums)(sum + r * sm, apart, rows, folded + r * OIC_FOLDED);
            }
            m -= together;
            x += together * xm;
            sum += together * sm;
        }
    }
}

#if OIC_IS_ONE(OIC_PASTE(OIC_EIGHT_, OIC_R))
/* oic_row_dots of rows of eight numbers, of whose sixteen sums eight have one product each, and the others none: no sums before
   the tree.  What was no product gave 0 to add, but for the sign of a zero, which no weight shows. */
OIC_LOOP void ROWS(oic_row_dots_eight)(const S *restrict x, ptrdiff_t xm, ptrdiff_t heads, ptrdiff_t count, const R *restrict row,
                                       ptrdiff_t ld, ptrdiff_t next, ptrdiff_t rows, S *restrict sum, ptrdiff_t sm, ptrdiff_t apart)
{
    const R *at[OIC_FOLDED];
    OIC_UNROLLED
    for (ptrdiff_t e = 0; e < OIC_FOLDED; ++e) {
        at[e] = row + (e < rows ? e : 0) * ld;
    }
    for (ptrdiff_t h = 0; h < heads; ++h) {
        for (ptrdiff_t m = 0; m < count; ++m, x += xm, sum += sm) {
            OF(oic_folding) folded[OIC_FOLDED];
            OIC_UNROLLED
            for (int e = 0; e < OIC_FOLDED; ++e) {
                folded[e] = OF(oic_folding_of_eight)(x, at[e] + h * next);
            }
            ROWS(oic_row_sums)(sum, apart, rows, folded);
        }
    }
}
#endif

/* oic_row_dots where a register is one number: all sums of a dot product go by together, for code that has them one after the other
   is many times as long then. */
OIC_INLINE void ROWS(oic_row_dots_of_numbers)(const S *restrict x, ptrdiff_t xm, ptrdiff_t heads, ptrdiff_t count, const R *restrict row,
                                              ptrdiff_t ld, ptrdiff_t next, ptrdiff_t rows, ptrdiff_t n, S *restrict sum, ptrdiff_t sm,
                                              ptrdiff_t apart)
{
    const ptrdiff_t whole = n - n % OIC_LANES;
    for (ptrdiff_t h = 0; h < heads; ++h, row += next) {
        for (ptrdiff_t m = 0; m < count; ++m, x += xm, sum += sm) {
            for (ptrdiff_t e = 0; e < rows; ++e) {
                const R *const from = row + e * ld;
                LANES all;
                OF(oic_lanes_zero)(&all);
                for (ptrdiff_t k = 0; k < whole; k += OIC_LANES) {
                    OIC_UNROLLED
                    for (int i = 0; i < COUNT; ++i) {
                        all.part[i] = ROW_MADD(OF(oic_register_load)(x + k + i * WIDTH), ROW(from + k + i * WIDTH), all.part[i]);
                    }
                }
                if (whole < n) {
                    LANES rest = all;
                    for (ptrdiff_t k = whole, i = 0; k < n; k += WIDTH, ++i) {
                        rest.part[i] = ROW_MADD(OF(oic_register_load)(x + k), ROWS(oic_row_some)(from + k, n - k), rest.part[i]);
                    }
                    all = rest;
                }
                sum[e * apart] = OF(oic_lanes_sum)(&all);
            }
            for (ptrdiff_t e = rows; apart == 1 && e < OIC_FOLDED; ++e) {
                sum[e] = sum[0];
            }
        }
    }
}

/* sum[heads, count, sm apart][OIC_FOLDED, `apart`] = x[heads, count, xm apart][n] times so many rows or fewer, `ld` apart,
   those of a head `next` after those of the one before it; of sums next to each other all are written.  Zeros follow those
   of x up to whole lanes. */
OIC_LOOP void ROWS(oic_row_dots)(const S *restrict x, ptrdiff_t xm, ptrdiff_t heads, ptrdiff_t count, const R *restrict row,
                                 ptrdiff_t ld, ptrdiff_t next, ptrdiff_t rows, ptrdiff_t n, S *restrict sum, ptrdiff_t sm,
                                 ptrdiff_t apart)
{
    if (WIDTH == 1) {
        ROWS(oic_row_dots_of_numbers)(x, xm, heads, count, row, ld, next, rows, n, sum, sm, apart);
    } else if (count == 1 && n % OIC_LANES == 0) {
        ROWS(oic_row_dots_one)(x, xm, heads, row, ld, next, rows, n, sum, sm, apart);
    } else if (n == 8) { /* few registers a row: what n decides is decided here */
#if OIC_IS_ONE(OIC_PASTE(OIC_EIGHT_, OIC_R))
        ROWS(oic_row_dots_eight)(x, xm, heads, count, row, ld, next, rows, sum, sm, apart);
#else
        ROWS(oic_row_dots_some)(x, xm, heads, count, row, ld, next, rows, 8, sum, sm, apart);
#endif
    } else {
        ROWS(oic_row_dots_some)(x, xm, heads, count, row, ld, next, rows, n, sum, sm, apart);
    }
}

#if OIC_IS_ONE(OIC_PASTE(OIC_EIGHT_, OIC_R))
OIC_INLINE void ROWS(oic_dots_beside_of)(const S *restrict x, ptrdiff_t xm, ptrdiff_t rows, int side, const R *restrict row,
                                         const ptrdiff_t *restrict at, ptrdiff_t ld, ptrdiff_t keys, S *restrict sum)
{
    const S *q[OIC_FOLDED];
    OIC_UNROLLED
    for (int e = 0; e < OIC_FOLDED; ++e) {
        q[e] = x + (e % side < rows ? e % side : 0) * xm;
    }
    for (ptrdiff_t k = 0; k < keys; k += OIC_FOLDED / side) {
        OF(oic_folding) folded[OIC_FOLDED];
        OIC_UNROLLED
        for (int e = 0; e < OIC_FOLDED; ++e) {
            const ptrdiff_t key = e < side || k + 1 < keys ? k + e / side : k;
            folded[e] = OF(oic_folding_of_eight)(q[e], row + key * ld + at[e % side]);
        }
        OF(oic_fold)(sum + k * side, folded);
    }
}

/* sum[keys][side] = x[rows, xm apart][8] times, of each key, the eight numbers that begin at[lane] from its row; keys lie `ld` apart.
   Lanes that are no rows, and a key behind the last, are other numbers. */
OIC_LOOP void ROWS(oic_dots_beside)(const S *restrict x, ptrdiff_t xm, ptrdiff_t rows, int side, const R *restrict row,
                                    const ptrdiff_t *restrict at, ptrdiff_t ld, ptrdiff_t keys, S *restrict sum)
{
    if (side == 8) {
        ROWS(oic_dots_beside_of)(x, xm, rows, 8, row, at, ld, keys, sum);
    } else {
        ROWS(oic_dots_beside_of)(x, xm, rows, 4, row, at, ld, keys, sum);
    }
}
#endif

/* How many rows of so many elements what is asked for lies ahead of what is read in turn. */
static inline ptrdiff_t ROWS(oic_row_ahead)(ptrdiff_t elements)
{
    return ROW_AHEAD / (elements * (ptrdiff_t)sizeof(R)) + 1;
}

/* One dot product, n being whole lanes; or of pairs, with zeros behind those of x up to whole lanes. */
OIC_INLINE OF(oic_folding) ROWS(oic_row_dot)(const S *restrict x, const R *restrict row, ptrdiff_t n)
{
    LANES all;
    OIC_UNROLLED
    for (int i = 0; i < COUNT; ++i) {
        REGISTER s = {0};
        ptrdiff_t k = i * WIDTH;
        for (; k + 3 * OIC_LANES < n; k += 4 * OIC_LANES) {
            OIC_UNROLLED
            for (int u = 0; u < 4; ++u) {
                s = ROW_MADD(OF(oic_register_load)(x + k + u * OIC_LANES), ROW(row + k + u * OIC_LANES), s);
            }
        }
        for (; k + WIDTH <= n; k += OIC_LANES) {
            s = ROW_MADD(OF(oic_register_load)(x + k), ROW(row + k), s);
        }
#if OIC_IS_ONE(OIC_PASTE(OIC_PAIRED_, OIC_R))
        if (k < n) {
            s = ROW_MADD(OF(oic_register_load)(x + k), ROWS(oic_row_some)(row + k, n - k), s);
        }
#endif
        all.part[i] = s;
    }
    return OF(oic_folding_of)(&all);
}

/* folded[heads][OIC_FOLDED apart] = x[heads, xm apart][n] times those of a row, side by side; of as much, `ahead` elements further on, one
   line in two is asked for, which brings the other, or each; it may lie behind the last. */
OIC_INLINE void ROWS(oic_row_dots_of)(const S *restrict x, ptrdiff_t xm, ptrdiff_t heads, const R *restrict row, ptrdiff_t n, ptrdiff_t ahead,
                                      OF(oic_folding) *restrict folded)
{
    uintptr_t at = (uintptr_t)row + (uintptr_t)ahead * sizeof(R), end = at;
    for (ptrdiff_t h = 0; h < heads; ++h, x += xm, row += n, folded += OIC_FOLDED) {
        for (end += (uintptr_t)n * sizeof(R); at < end; at += ROW_STEP) {
            OIC_TILE_AHEAD_ROW((const void *)at);
        }
        *folded = ROWS(oic_row_dot)(x, row, n);
    }
}

/* oic_row_dots for one row a head, where heads lie side by side and n is whole lanes, or in pairs: rows are read one after the
   other, which a machine follows best, and asked for. */
OIC_LOOP void ROWS(oic_row_dots_in_turn)(const S *restrict x, ptrdiff_t heads, const R *restrict row, ptrdiff_t ld, ptrdiff_t rows,
                                         ptrdiff_t n, S *restrict sum, ptrdiff_t sm)
{
    const ptrdiff_t xm = oic_padded(n);
    for (ptrdiff_t h = 0, some; h < heads; h += some, x += some * xm, row += some * n, sum += some * sm) {
        OF(oic_folding) folded[ROW_HEADS][OIC_FOLDED];
        some = heads - h < ROW_HEADS ? heads - h : ROW_HEADS;
        const ptrdiff_t ahead = ROWS(oic_row_ahead)(some * n) * ld;
        for (ptrdiff_t e = 0; e < OIC_FOLDED; ++e) {
            const R *const from = row + (e < rows ? e : 0) * ld;
            if (n == ROW_OFTEN) { /* no loops in a head */
                ROWS(oic_row_dots_of)(x, ROW_OFTEN, some, from, ROW_OFTEN, ahead, folded[0] + e);
#if OIC_IS_ONE(OIC_PASTE(OIC_PAIRED_, OIC_R))
            } else if (n == OIC_LANES / 2) {
                ROWS(oic_row_dots_of)(x, OIC_LANES, some, from, OIC_LANES / 2, ahead, folded[0] + e);
#endif
            } else {
                ROWS(oic_row_dots_of)(x, xm, some, from, n, ahead, folded[0] + e);
            }
        }
        for (ptrdiff_t i = 0; i < some; ++i) {
            OF(oic_fold)(sum + i * sm, folded[i]);
        }
    }
}

/* to[D] += w[n] times n rows, `ld` apart; D is whole lanes. */
OIC_INLINE void ROWS(oic_weighted_rows)(S *restrict to, const S *restrict w, const R *restrict row, ptrdiff_t ld, ptrdiff_t n, ptrdiff_t D)
{
    ptrdiff_t d = 0;
    for (; WIDTH > 1 && D - d >= 4 * OIC_LANES; d += 4 * OIC_LANES) {
        LANES a0, a1, a2, a3;
        OF(oic_lanes_load)(&a0, to + d);
        OF(oic_lanes_load)(&a1, to + d + OIC_LANES);
        OF(oic_lanes_load)(&a2, to + d + 2 * OIC_LANES);
        OF(oic_lanes_load)(&a3, to + d + 3 * OIC_LANES);
        for (ptrdiff_t k = 0; k < n; ++k) {
            const R *const q = row + k * ld + d;
            ROWS(oic_row_madd)(&a0, w[k], q);
            ROWS(oic_row_madd)(&a1, w[k], q + OIC_LANES);
            ROWS(oic_row_madd)(&a2, w[k], q + 2 * OIC_LANES);
            ROWS(oic_row_madd)(&a3, w[k], q + 3 * OIC_LANES);
        }
        OF(oic_lanes_store)(to + d, &a0);
        OF(oic_lanes_store)(to + d + OIC_LANES, &a1);
        OF(oic_lanes_store)(to + d + 2 * OIC_LANES, &a2);
        OF(oic_lanes_store)(to + d + 3 * OIC_LANES, &a3);
    }
    for (; d < D; d += OIC_LANES) {
        LANES a;
        OF(oic_lanes_load)(&a, to + d);
        for (ptrdiff_t k = 0; k < n; ++k) {
            ROWS(oic_row_madd)(&a, w[k], row + k * ld + d);
        }
        OF(oic_lanes_store)(to + d, &a);
    }
}

/* to[spans, ts apart][heads, tm apart][D] += w[spans, ws apart][heads, wm apart][n] times rows, `ld` apart, those of a head
   `next` after those of the one before it, those of a span `rs`; D is whole lanes.  Where heads lie side by side, rows go
   by one after the other, of every span in turn: a processor reads ahead in each of a few places, as far as it does. */
OIC_LOOP void ROWS(oic_weighted)(S *restrict to, ptrdiff_t ts, ptrdiff_t tm, ptrdiff_t spans, ptrdiff_t heads, const S *restrict w,
                                 ptrdiff_t ws, ptrdiff_t wm, const R *restrict row, ptrdiff_t rs, ptrdiff_t ld, ptrdiff_t next,
                                 ptrdiff_t n, ptrdiff_t D)
{
    if (heads == 1) {
        for (ptrdiff_t s = 0; s < spans; ++s) {
            ROWS(oic_weighted_rows)(to + s * ts, w + s * ws, row + s * rs, ld, n, D);
        }
        return;
    }
    const ptrdiff_t many = D - D % ROW_WIDE;
    for (ptrdiff_t k = 0; k < n; ++k, row += ld, ++w) {
        for (ptrdiff_t h = 0; h < heads; ++h) {
            S *t = to + h * tm;
            const S *x = w + h * wm;
            const R *q = row + h * next;
            for (ptrdiff_t s = spans; s > 0; --s, t += ts, x += ws, q += rs) {
                const REGISTER all = OF(oic_register_of)(*x);
                ptrdiff_t d = 0;
                for (; d < many; d += ROW_WIDE) {
                    OIC_UNROLLED
                    for (ptrdiff_t i = 0; i < ROW_WIDE; i += WIDTH) {
                        OF(oic_register_store)(t + d + i, ROW_MADD(all, ROW(q + d + i), OF(oic_register_load)(t + d + i)));
                    }
                }
                for (; d < D; d += WIDTH) {
                    OF(oic_register_store)(t + d, ROW_MADD(all, ROW(q + d), OF(oic_register_load)(t + d)));
                }
            }
        }
    }
}

/* to[heads][D] += w[heads, wm apart][rows] times so many rows, in which heads lie side by side; D is whole lanes.  As much memory,
   `ahead` elements further on, is asked for: for one row as of oic_row_dots_of; where there are several, a machine sees no order
   in what is read of them, but in what is asked for, if it is all and goes into L1. */
OIC_INLINE void ROWS(oic_weighted_group)(S *restrict to, ptrdiff_t heads, const S *restrict w, ptrdiff_t wm, const R *restrict row,
                                         ptrdiff_t ld, int rows, ptrdiff_t D, ptrdiff_t ahead)
{
    enum { MANY = 4 * OIC_LANES * (int)sizeof(S) / (int)sizeof(REGISTER), BYTES = 4 * OIC_LANES * (int)sizeof(R) };
    const ptrdiff_t many = D - D % (4 * OIC_LANES);
    uintptr_t at = (uintptr_t)row + (uintptr_t)ahead * sizeof(R);
    for (const S *const end = to + heads * D; to != end; w += wm) {
        for (const S *const part = to + many; to != part; to += 4 * OIC_LANES, row += 4 * OIC_LANES) {
            REGISTER a[MANY];
            OIC_UNROLLED
            for (int i = 0; i < MANY; ++i) {
                a[i] = OF(oic_register_load)(to + i * WIDTH);
            }
            OIC_UNROLLED
            for (int e = 0; e < rows; ++e, at += BYTES) {
                const REGISTER all = OF(oic_register_of)(w[e]);
                OIC_UNROLLED
                for (int i = 0; i < MANY; ++i) {
                    a[i] = ROW_MADD(all, ROW(row + e * ld + i * WIDTH), a[i]);
                }
                OIC_UNROLLED
                for (int i = 0; i < BYTES; i += rows > 1 ? 64 : ROW_STEP) {
                    if (rows > 1) {
                        OIC_TILE_AHEAD_NEAR((const void *)(at + (uintptr_t)i));
                    } else {
                        OIC_TILE_AHEAD_ROW((const void *)(at + (uintptr_t)i));
                    }
                }
            }
            OIC_UNROLLED
            for (int i = 0; i < MANY; ++i) {
                OF(oic_register_store)(to + i * WIDTH, a[i]);
            }
        }
        for (ptrdiff_t d = many; d < D; d += WIDTH, to += WIDTH, row += WIDTH) {
            REGISTER a = OF(oic_register_load)(to);
            OIC_UNROLLED
            for (int e = 0; e < rows; ++e) {
                a = ROW_MADD(OF(oic_register_of)(w[e]), ROW(row + e * ld), a);
            }
            OF(oic_register_store)(to, a);
        }
    }
}

/* The same for n rows, `ld` apart, which are some groups. */
OIC_INLINE void ROWS(oic_weighted_groups)(S *restrict to, ptrdiff_t heads, const S *restrict w, ptrdiff_t wm, const R *restrict row,
                                          ptrdiff_t ld, ptrdiff_t n, int rows, ptrdiff_t D, ptrdiff_t ahead)
{
    for (ptrdiff_t k = 0; k < n; k += rows, w += rows, row += rows * ld) {
        if (D == 4 * OIC_LANES) { /* no loops in a head */
            ROWS(oic_weighted_group)(to, heads, w, wm, row, ld, rows, 4 * OIC_LANES, ahead);
        } else {
            ROWS(oic_weighted_group)(to, heads, w, wm, row, ld, rows, D, ahead);
        }
    }
}

/* to[heads][D] += w[heads, wm apart][n] times n rows, `ld` apart, in which heads lie side by side; D is whole lanes. */
OIC_LOOP void ROWS(oic_weighted_in_turn)(S *restrict to, ptrdiff_t heads, const S *restrict w, ptrdiff_t wm, const R *restrict row,
                                         ptrdiff_t ld, ptrdiff_t n, ptrdiff_t D)
{
    const ptrdiff_t grouped = ROW_GROUP > 1 && ld == heads * D ? n - n % ROW_GROUP : 0, ahead = ROWS(oic_row_ahead)(heads * D) * ld;
    if (ROW_GROUP > 1) {
        ROWS(oic_weighted_groups)(to, heads, w, wm, row, ld, grouped, ROW_GROUP, D, (OIC_ASKED_NEAR ? 3 : 1) * ROW_GROUP * ld);
    }
    ROWS(oic_weighted_groups)(to, heads, w + grouped, wm, row + grouped * ld, ld, n - grouped, 1, D, ahead);
}

/* The same for one register of columns, m of which there are. */
OIC_LOOP void ROWS(oic_weighted_narrow)(S *restrict to, ptrdiff_t tm, ptrdiff_t heads, const S *restrict w, ptrdiff_t wm,
                                      const R *restrict v, ptrdiff_t ld, ptrdiff_t next, ptrdiff_t n, ptrdiff_t m)
{
    for (ptrdiff_t h = 0; h < heads; ++h, to += tm, w += wm, v += next) {
        REGISTER a = OF(oic_register_load)(to);
        for (ptrdiff_t k = 0; m >= WIDTH && k < n; ++k) {
            a = ROW_MADD(OF(oic_register_of)(w[k]), ROW(v + k * ld), a);
        }
        for (ptrdiff_t k = 0; m < WIDTH && k < n; ++k) {
            a = ROW_MADD(OF(oic_register_of)(w[k]), ROWS(oic_row_some)(v + k * ld, m), a);
        }
        memcpy(to, &a, sizeof a);
    }
}

/* `regs` registers of columns for `heads` rows of w, with a chain each; v: where their rows begin.  Of the last register there
   are m columns, which is 0 for all. */
OIC_INLINE void ROWS(oic_weighted_tile)(S *restrict to, ptrdiff_t tm, int heads, const S *restrict w, ptrdiff_t wm,
                                        ptrdiff_t wk, const R *const *restrict v, ptrdiff_t ld, ptrdiff_t n, int regs, ptrdiff_t m)
{
    REGISTER a[ROW_SUMS];
    OIC_UNROLLED
    for (int e = 0; e < heads * regs; ++e) {
        a[e] = OF(oic_register_load)(to + e / regs * tm + e % regs * WIDTH);
    }
    for (ptrdiff_t k = 0; k < n; ++k) {
        OIC_UNROLLED
        for (int h = 0; h < heads; ++h) {
            const REGISTER all = OF(oic_register_of)(w[h * wm + k * wk]);
            OIC_UNROLLED
            for (int i = 0; i < regs; ++i) {
                const R *const p = v[h] + k * ld + i * WIDTH;
                a[h * regs + i] = ROW_MADD(all, m > 0 ? ROWS(oic_row_some)(p, m) : ROW(p), a[h * regs + i]);
            }
        }
    }
    OIC_UNROLLED
    for (int e = 0; e < heads * regs; ++e) {
        OF(oic_register_store)(to + e / regs * tm + e % regs * WIDTH, a[e]);
    }
}

/* The same for few columns D, of heads whose rows `share` neighbouring ones have in common: heads go together, for as many
   chains as keep a machine busy. */
OIC_LOOP void ROWS(oic_weighted_heads)(S *restrict to, ptrdiff_t tm, ptrdiff_t heads, ptrdiff_t share, ptrdiff_t of, const S *restrict w,
                                       ptrdiff_t wm, ptrdiff_t wk, const R *restrict row, ptrdiff_t ld, ptrdiff_t next, ptrdiff_t n,
                                       ptrdiff_t D)
{
    for (ptrdiff_t h = 0, some; h < heads; h += some, to += some * tm, w += some * wm) {
        const R *v[4];
        some = heads - h >= 4 && WIDTH > 1 ? 4 : heads - h >= 2 ? 2 : 1;
        for (ptrdiff_t e = 0; e < some; ++e) { /* no divisions */
            v[e] = row;
            of = of + 1 < share ? of + 1 : 0;
            row += of == 0 ? next : 0;
        }
        for (ptrdiff_t d = 0, left; d < D; d += left * WIDTH) {
            left = (D - d) / WIDTH;
            left = left < 3 ? left : left == 4 ? 2 : 3;
            if (some == 4 && left == 3) {
                ROWS(oic_weighted_tile)(to + d, tm, 2, w, wm, wk, v, ld, n, 3, 0);
                ROWS(oic_weighted_tile)(to + d + 2 * tm, tm, 2, w + 2 * wm, wm, wk, v + 2, ld, n, 3, 0);
            } else if (some == 4 && left == 2) {
                ROWS(oic_weighted_tile)(to + d, tm, 4, w, wm, wk, v, ld, n, 2, 0);
            } else if (some == 4 && left == 1) {
                ROWS(oic_weighted_tile)(to + d, tm, 4, w, wm, wk, v, ld, n, 1, 0);
            } else if (some == 4) {
                ROWS(oic_weighted_tile)(to + d, tm, 4, w, wm, wk, v, ld, n, 1, D - d);
                left = 1;
            } else if (some == 2 && left == 3) {
                ROWS(oic_weighted_tile)(to + d, tm, 2, w, wm, wk, v, ld, n, 3, 0);
            } else if (some == 2 && left == 2) {
                ROWS(oic_weighted_tile)(to + d, tm, 2, w, wm, wk, v, ld, n, 2, 0);
            } else if (some == 2 && left == 1) {
                ROWS(oic_weighted_tile)(to + d, tm, 2, w, wm, wk, v, ld, n, 1, 0);
            } else if (some == 2) {
                ROWS(oic_weighted_tile)(to + d, tm, 2, w, wm, wk, v, ld, n, 1, D - d);
                left = 1;
            } else if (left == 3) {
                ROWS(oic_weighted_tile)(to + d, tm, 1, w, wm, wk, v, ld, n, 3, 0);
            } else if (left == 2) {
                ROWS(oic_weighted_tile)(to + d, tm, 1, w, wm, wk, v, ld, n, 2, 0);
            } else if (left == 1) {
                ROWS(oic_weighted_tile)(to + d, tm, 1, w, wm, wk, v, ld, n, 1, 0);
            } else {
                ROWS(oic_weighted_tile)(to + d, tm, 1, w, wm, wk, v, ld, n, 1, D - d);
                left = 1;
            }
            for (ptrdiff_t e = 0; e < some; ++e) {
                v[e] += left * WIDTH;
            }
        }
    }
}

/* One k of rows first..end-1 of a tile of `regs` registers a row. */
OIC_INLINE void ROWS(oic_mix_step)(REGISTER *restrict a, int first, int end, int regs, const S *w, ptrdiff_t wm, const R *v)
{
    REGISTER held[ROW_MIXED];
    OIC_UNROLLED
    for (int i = 0; i < regs; ++i) {
        held[i] = ROW(v + i * WIDTH);
        OIC_TILE_HELD(held[i]);
    }
    OIC_UNROLLED
    for (int r = first; r < end; ++r) {
        const REGISTER all = OF(oic_register_of)(w[r * wm]);
        OIC_UNROLLED
        for (int i = 0; i < regs; ++i) {
            a[r * regs + i] = ROW_MADD(all, held[i], a[r * regs + i]);
        }
    }
}

/* `regs` registers of each of so many rows of oic_mix_from: keys of all rows, then of those whose keys end after the others'. */
OIC_INLINE void ROWS(oic_mix_tile)(S *restrict to, ptrdiff_t tm, int rows, int regs, const S *restrict w, ptrdiff_t wm,
                                   const R *restrict v, ptrdiff_t ld, ptrdiff_t k, const ptrdiff_t *restrict hi)
{
    REGISTER a[ROW_MIXES * ROW_MIXED];
    OIC_UNROLLED
    for (int e = 0; e < rows * regs; ++e) {
        a[e] = OF(oic_register_load)(to + e / regs * tm + e % regs * WIDTH);
    }
    OIC_UNROLLED_TWICE
    for (; k < hi[0]; ++k) {
        ROWS(oic_mix_step)(a, 0, rows, regs, w + k, wm, v + k * ld);
    }
    OIC_UNROLLED
    for (int e = 1; e < rows; ++e) {
        for (; k < hi[e]; ++k) {
            ROWS(oic_mix_step)(a, e, rows, regs, w + k, wm, v + k * ld);
        }
    }
    OIC_UNROLLED
    for (int e = 0; e < rows * regs; ++e) {
        OF(oic_register_store)(to + e / regs * tm + e % regs * WIDTH, a[e]);
    }
}

/* The same for a number of rows that is known when it runs: ROW_MIXES, 4, 2 or 1. */
OIC_INLINE void ROWS(oic_mix_rows)(S *restrict to, ptrdiff_t tm, ptrdiff_t rows, int regs, const S *restrict w, ptrdiff_t wm,
                                   const R *restrict v, ptrdiff_t ld, ptrdiff_t k, const ptrdiff_t *restrict hi)
{
    if (rows == ROW_MIXES) {
        ROWS(oic_mix_tile)(to, tm, ROW_MIXES, regs, w, wm, v, ld, k, hi);
    } else if (ROW_MIXES > 4 && rows == 4) {
        ROWS(oic_mix_tile)(to, tm, 4, regs, w, wm, v, ld, k, hi);
    } else if (ROW_MIXES > 2 && rows == 2) {
        ROWS(oic_mix_tile)(to, tm, 2, regs, w, wm, v, ld, k, hi);
    } else {
        ROWS(oic_mix_tile)(to, tm, 1, regs, w, wm, v, ld, k, hi);
    }
}

/* oic_mix of rows that all begin at key k, as many as oic_mix_rows takes. */
OIC_LOOP void ROWS(oic_mix_from)(S *restrict to, ptrdiff_t tm, ptrdiff_t rows, const S *restrict w, ptrdiff_t wm, const R *restrict v,
                                 ptrdiff_t ld, ptrdiff_t k, const ptrdiff_t *restrict hi, ptrdiff_t D)
{
    ptrdiff_t d = 0;
    for (; D - d >= ROW_MIXED * WIDTH; d += ROW_MIXED * WIDTH) {
        ROWS(oic_mix_rows)(to + d, tm, rows, ROW_MIXED, w, wm, v + d, ld, k, hi);
    }
    for (; ROW_MIXED > 2 * COUNT && D - d >= 2 * OIC_LANES; d += 2 * OIC_LANES) { /* heads of 32: chains enough for two units */
        ROWS(oic_mix_rows)(to + d, tm, rows, 2 * COUNT, w, wm, v + d, ld, k, hi);
    }
    for (; ROW_MIXED > COUNT && d < D; d += OIC_LANES) { /* what is left of several lanes */
        ROWS(oic_mix_rows)(to + d, tm, rows, COUNT, w, wm, v + d, ld, k, hi);
    }
}

/* to[rows, tm apart][D] += w[rows, wm apart][n] times n rows of v, `ld` apart, those that are from[r] - at to end[r] - at - 1
   for row r, neither of which falls from row to row; D is whole lanes.  Rows whose keys begin before the others' catch up first. */
OIC_LOOP void ROWS(oic_mix)(S *restrict to, ptrdiff_t tm, const S *restrict w, ptrdiff_t wm, ptrdiff_t rows, const R *restrict v,
                            ptrdiff_t ld, const ptrdiff_t *from, const ptrdiff_t *end, ptrdiff_t at, ptrdiff_t n, ptrdiff_t D)
{
    for (ptrdiff_t r = 0, some; r < rows; r += some, to += some * tm, w += some * wm, from += some, end += some) {
        ptrdiff_t lo[ROW_MIXES] = {0}, hi[ROW_MIXES] = {0}; /* gcc -O1 does not see that all are set */
        some = ROW_MIXES == 1 ? 1 : rows - r < ROW_MIXES ? rows - r : ROW_MIXES; /* 1: gcc -O1 sees it */
        some = some < ROW_MIXES && some > 1 ? some & ~(ptrdiff_t)1 : some; /* 6, 4, 2 and 1 */
        for (ptrdiff_t e = 0; e < some; ++e) {
            hi[e] = end[e] - at > n ? n : end[e] > at ? end[e] - at : 0;
            lo[e] = from[e] - at > hi[e] ? hi[e] : from[e] > at ? from[e] - at : 0;
        }
        some = lo[some - 1] <= hi[0] ? some : 1;
        const ptrdiff_t first = lo[some - 1];
        for (ptrdiff_t e = 0; e < some; ++e) {
            if (lo[e] < first) {
                ROWS(oic_mix_from)(to + e * tm, tm, 1, w + e * wm, wm, v, ld, lo[e], &first, D);
            }
        }
        if (first < hi[some - 1]) {
            ROWS(oic_mix_from)(to, tm, some, w, wm, v, ld, first, hi, D);
        }
    }
}

#if OIC_IS_ONE(OIC_PASTE(OIC_PANELS_, OIC_R))
enum {
    ROWS(oic_panel_tree) = OIC_LANES == WIDTH && OF(oic_tile_rows) == 8, /* registers hold all sums of four rows */
    ROWS(oic_panel_rows) = ROWS(oic_panel_tree) ? 4 : OF(oic_tile_rows), /* rows of x beside a panel, */
    ROWS(oic_panels_beside) = ROWS(oic_panel_tree) ? 2 : 1, /* or so many panels, */
    ROWS(oic_panel_sums) = ROWS(oic_panel_rows) * COUNT /* and registers of the sums of one */
};

/* sum[4][panels] += a number of each of four rows, xm apart, times sixteen of each of one or two panels, `apart` from each other.
   Of two, each loads what the other would load, too: loads are the limit of one. */
OIC_INLINE void ROWS(oic_panel_step)(REGISTER *restrict sum, const S *x, ptrdiff_t xm, const S *w, int panels, ptrdiff_t apart)
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
            sum[r * panels + p] = ROW_MADD(all, held[p], sum[r * panels + p]);
        }
    }
}

/* Sums l and l + 8 of the dot products of four rows x[n] with the columns of panels w[n][16]: added. */
OIC_INLINE void ROWS(oic_panel_pair)(const S *restrict x, ptrdiff_t xm, const S *restrict w, int panels, ptrdiff_t apart, ptrdiff_t n,
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
        ROWS(oic_panel_step)(a, x + k, xm, w + k * OIC_LANES, panels, apart);
        ROWS(oic_panel_step)(more, x + k + HALF, xm, w + (k + HALF) * OIC_LANES, panels, apart);
    }
    if (k < n) { /* the first of the two has one product more */
        ROWS(oic_panel_step)(a, x + k, xm, w + k * OIC_LANES, panels, apart);
    }
    OIC_UNROLLED
    for (int i = 0; i < 4 * panels; ++i) {
        sum[i] = a[i] + more[i];
    }
}

/* Every second of the sixteen sums, from l on: added. */
OIC_INLINE void ROWS(oic_panel_half)(const S *restrict x, ptrdiff_t xm, const S *restrict w, int panels, ptrdiff_t apart, ptrdiff_t n,
                                   ptrdiff_t l, REGISTER *restrict sum)
{
    REGISTER more[8], next[8];
    ROWS(oic_panel_pair)(x, xm, w, panels, apart, n, l, sum);
    ROWS(oic_panel_pair)(x, xm, w, panels, apart, n, l + 4, more);
    OIC_UNROLLED
    for (int i = 0; i < 4 * panels; ++i) {
        sum[i] = sum[i] + more[i];
    }
    ROWS(oic_panel_pair)(x, xm, w, panels, apart, n, l + 2, next);
    ROWS(oic_panel_pair)(x, xm, w, panels, apart, n, l + 6, more);
    OIC_UNROLLED
    for (int i = 0; i < 4 * panels; ++i) {
        sum[i] = sum[i] + (next[i] + more[i]);
    }
}

/* oic_panel_dots of four rows and one or two panels. */
OIC_INLINE void ROWS(oic_panel_four)(const S *restrict x, ptrdiff_t xm, const S *restrict w, int panels, ptrdiff_t apart, ptrdiff_t n,
                                   S *restrict sum, ptrdiff_t sm)
{
    REGISTER all[8], more[8];
    ROWS(oic_panel_half)(x, xm, w, panels, apart, n, 0, all);
    ROWS(oic_panel_half)(x, xm, w, panels, apart, n, 1, more);
    OIC_UNROLLED
    for (int i = 0; i < 4 * panels; ++i) {
        OF(oic_register_store)(sum + i / panels * sm + i % panels * OIC_LANES, all[i] + more[i]);
    }
}

/* sum[oic_panel_rows, sm apart][16 * panels] = as many rows x[n], xm apart, times the sixteen columns of each of one or two panels
   w[n][16], `apart` from each other; two only where oic_panels_beside is 2: a lane is a column, and has the sixteen sums of its
   dot product one after the other, in the order in which their tree needs them. */
OIC_LOOP void ROWS(oic_panel_dots)(const S *restrict x, ptrdiff_t xm, const S *restrict w, ptrdiff_t panels, ptrdiff_t apart, ptrdiff_t n,
                                 S *restrict sum, ptrdiff_t sm)
{
    if (ROWS(oic_panel_tree)) {
        if (panels == 2) {
            ROWS(oic_panel_four)(x, xm, w, 2, apart, n, sum, sm);
        } else {
            ROWS(oic_panel_four)(x, xm, w, 1, apart, n, sum, sm);
        }
        return;
    }
    static const uint8_t order[OIC_LANES] = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};
    REGISTER held[4][ROWS(oic_panel_sums)], a[ROWS(oic_panel_sums)]; /* held[i]: sums of 2^i of them */
    for (int done = 0; done < OIC_LANES; ++done) {
        const ptrdiff_t l = order[done];
        const S *p = x + l, *q = w + l * OIC_LANES, *const end = w + n * OIC_LANES;
        OIC_UNROLLED
        for (int i = 0; i < ROWS(oic_panel_sums); ++i) { /* 0 + x * w, but for the sign of a zero, which no weight shows */
            a[i] = q < end ? ROW_PRODUCT(OF(oic_register_of)(p[i / COUNT * xm]), OF(oic_register_load)(q + i % COUNT * WIDTH)) : (REGISTER){0};
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
            for (int r = 0; r < ROWS(oic_panel_rows); ++r) {
                const REGISTER all = OF(oic_register_of)(p[r * xm]);
                OIC_UNROLLED
                for (int i = 0; i < COUNT; ++i) {
                    a[r * COUNT + i] = ROW_MADD(all, v[i], a[r * COUNT + i]);
                }
            }
        }
        int level = 0;
        for (; done >> level & 1; ++level) {
            OIC_UNROLLED
            for (int i = 0; i < ROWS(oic_panel_sums); ++i) {
                a[i] = held[level][i] + a[i];
            }
        }
        if (level < 4) {
            OIC_UNROLLED
            for (int i = 0; i < ROWS(oic_panel_sums); ++i) {
                held[level][i] = a[i];
            }
        }
    }
    OIC_UNROLLED
    for (int i = 0; i < ROWS(oic_panel_sums); ++i) {
        OF(oic_register_store)(sum + i / COUNT * sm + i % COUNT * WIDTH, a[i]);
    }
}
#endif

#undef S
#undef R
#undef OF
#undef ROWS
#undef ROW
#undef REGISTER
#undef LANES
#undef WIDTH
#undef COUNT
#undef ROW_TILE
#undef ROW_KEYS
#undef ROW_KEYS_OF_ONE
#undef ROW_SUMS
#undef ROW_HEADS
#undef ROW_AHEAD
#undef ROW_STEP
#undef ROW_GROUP
#undef ROW_MIXES
#undef ROW_WIDE
#undef ROW_MIXED
#undef ROW_OFTEN
#undef ROW_MADD
#undef ROW_PRODUCT
#undef OIC_S
#undef OIC_R
