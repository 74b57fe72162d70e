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

/* The first n of a register's numbers, 0 < n; the others are 0. */
static inline REGISTER ROWS(oic_row_some)(const R *from, ptrdiff_t n)
{
    if (n >= WIDTH) {
        return ROW(from);
    }
#if OIC_PASTE(OIC_SOME_, OIC_R)
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
        sum->part[i] = OF(oic_register_madd)(all, ROW(w + i * WIDTH), sum->part[i]);
    }
}

/* sum[4] = x[n] times four rows; zeros follow x up to whole lanes. */
static inline void ROWS(oic_row_dots_4)(const S *restrict x, const R *restrict r0, const R *restrict r1, const R *restrict r2,
                                  const R *restrict r3, ptrdiff_t n, S *restrict sum)
{
    const ptrdiff_t whole = n - n % OIC_LANES;
    LANES a0, a1, a2, a3;
    OF(oic_lanes_zero)(&a0);
    OF(oic_lanes_zero)(&a1);
    OF(oic_lanes_zero)(&a2);
    OF(oic_lanes_zero)(&a3);
    for (ptrdiff_t k = 0; k < whole; k += OIC_LANES) {
        for (int i = 0; i < COUNT; ++i) {
            const ptrdiff_t at = k + i * WIDTH;
            const REGISTER p = OF(oic_register_load)(x + at);
            a0.part[i] = OF(oic_register_madd)(p, ROW(r0 + at), a0.part[i]);
            a1.part[i] = OF(oic_register_madd)(p, ROW(r1 + at), a1.part[i]);
            a2.part[i] = OF(oic_register_madd)(p, ROW(r2 + at), a2.part[i]);
            a3.part[i] = OF(oic_register_madd)(p, ROW(r3 + at), a3.part[i]);
        }
    }
    OIC_UNROLLED
    for (int i = 0; i < COUNT; ++i) {
        const ptrdiff_t at = whole + i * WIDTH, left = n - at;
        if (left > 0) {
            const REGISTER p = OF(oic_register_load)(x + at);
            a0.part[i] = OF(oic_register_madd)(p, ROWS(oic_row_some)(r0 + at, left), a0.part[i]);
            a1.part[i] = OF(oic_register_madd)(p, ROWS(oic_row_some)(r1 + at, left), a1.part[i]);
            a2.part[i] = OF(oic_register_madd)(p, ROWS(oic_row_some)(r2 + at, left), a2.part[i]);
            a3.part[i] = OF(oic_register_madd)(p, ROWS(oic_row_some)(r3 + at, left), a3.part[i]);
        }
    }
    OF(oic_fold)(sum, &a0, &a1, &a2, &a3);
}

/* sum[heads, count, sm apart][4] = x[heads, count, xm apart][n] times four rows or fewer, `ld` apart, those of a head `next`
   after those of the one before it; sums are written up to four.  Zeros follow those of x up to whole lanes. */
OIC_LOOP void ROWS(oic_row_dots)(const S *restrict x, ptrdiff_t xm, ptrdiff_t heads, ptrdiff_t count, const R *restrict row,
                           ptrdiff_t ld, ptrdiff_t next, ptrdiff_t rows, ptrdiff_t n, S *restrict sum, ptrdiff_t sm)
{
    const ptrdiff_t d1 = rows > 1 ? ld : 0, d2 = rows > 2 ? d1 + ld : d1, d3 = rows > 3 ? d2 + ld : d2;
    for (ptrdiff_t h = 0; h < heads; ++h, row += next) {
        for (ptrdiff_t m = 0; m < count; ++m, x += xm, sum += sm) {
            ROWS(oic_row_dots_4)(x, row, row + d1, row + d2, row + d3, n, sum);
        }
    }
}

/* to[heads, tm apart][D] += w[heads, wm apart][n] times rows, `ld` apart, those of a head `next` after those of the one
   before it; D is whole lanes. */
OIC_LOOP void ROWS(oic_weighted)(S *restrict to, ptrdiff_t tm, ptrdiff_t heads, const S *restrict w, ptrdiff_t wm,
                               const R *restrict row, ptrdiff_t ld, ptrdiff_t next, ptrdiff_t n, ptrdiff_t D)
{
    for (ptrdiff_t h = 0; h < heads; ++h, to += tm, w += wm, row += next) {
        ptrdiff_t d = 0;
        for (; D - d >= 4 * OIC_LANES; d += 4 * OIC_LANES) {
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
}

/* Sixteen columns of four weighted sums: to[4, tm apart][lanes] += w[4, wm apart][n] times rows v, ld apart. */
OIC_LOOP void ROWS(oic_weighted_4)(S *restrict to, ptrdiff_t tm, const S *restrict w, ptrdiff_t wm, const R *restrict v,
                                 ptrdiff_t ld, ptrdiff_t n)
{
    const S *const w1 = w + wm, *const w2 = w1 + wm, *const w3 = w2 + wm;
    LANES a0, a1, a2, a3;
    OF(oic_lanes_load)(&a0, to);
    OF(oic_lanes_load)(&a1, to + tm);
    OF(oic_lanes_load)(&a2, to + 2 * tm);
    OF(oic_lanes_load)(&a3, to + 3 * tm);
    for (ptrdiff_t k = 0; k < n; ++k) {
        const R *const q = v + k * ld;
        ROWS(oic_row_madd)(&a0, w[k], q);
        ROWS(oic_row_madd)(&a1, w1[k], q);
        ROWS(oic_row_madd)(&a2, w2[k], q);
        ROWS(oic_row_madd)(&a3, w3[k], q);
    }
    OF(oic_lanes_store)(to, &a0);
    OF(oic_lanes_store)(to + tm, &a1);
    OF(oic_lanes_store)(to + 2 * tm, &a2);
    OF(oic_lanes_store)(to + 3 * tm, &a3);
}

/* A register of columns, m of which there are, of four weighted sums, each with weights and rows of its own. */
OIC_LOOP void ROWS(oic_weighted_narrow_4)(S *const *restrict to, const S *const *restrict w, const R *const *restrict v,
                                        ptrdiff_t ld, ptrdiff_t n, ptrdiff_t m)
{
    const R *const v0 = v[0], *const v1 = v[1], *const v2 = v[2], *const v3 = v[3];
    const S *const w0 = w[0], *const w1 = w[1], *const w2 = w[2], *const w3 = w[3];
    REGISTER a0 = OF(oic_register_load)(to[0]), a1 = OF(oic_register_load)(to[1]);
    REGISTER a2 = OF(oic_register_load)(to[2]), a3 = OF(oic_register_load)(to[3]);
    if (m >= WIDTH) {
        for (ptrdiff_t k = 0, at = 0; k < n; ++k, at += ld) {
            a0 = OF(oic_register_madd)(OF(oic_register_of)(w0[k]), ROW(v0 + at), a0);
            a1 = OF(oic_register_madd)(OF(oic_register_of)(w1[k]), ROW(v1 + at), a1);
            a2 = OF(oic_register_madd)(OF(oic_register_of)(w2[k]), ROW(v2 + at), a2);
            a3 = OF(oic_register_madd)(OF(oic_register_of)(w3[k]), ROW(v3 + at), a3);
        }
    } else {
        for (ptrdiff_t k = 0, at = 0; k < n; ++k, at += ld) {
            a0 = OF(oic_register_madd)(OF(oic_register_of)(w0[k]), ROWS(oic_row_some)(v0 + at, m), a0);
            a1 = OF(oic_register_madd)(OF(oic_register_of)(w1[k]), ROWS(oic_row_some)(v1 + at, m), a1);
            a2 = OF(oic_register_madd)(OF(oic_register_of)(w2[k]), ROWS(oic_row_some)(v2 + at, m), a2);
            a3 = OF(oic_register_madd)(OF(oic_register_of)(w3[k]), ROWS(oic_row_some)(v3 + at, m), a3);
        }
    }
    memcpy(to[0], &a0, sizeof a0);
    memcpy(to[1], &a1, sizeof a1);
    memcpy(to[2], &a2, sizeof a2);
    memcpy(to[3], &a3, sizeof a3);
}

/* The same of the sums of several heads: to[heads, tm apart], w[heads, wm apart][n], rows of a head `next` after those of the
   one before it. */
OIC_LOOP void ROWS(oic_weighted_narrow)(S *restrict to, ptrdiff_t tm, ptrdiff_t heads, const S *restrict w, ptrdiff_t wm,
                                      const R *restrict v, ptrdiff_t ld, ptrdiff_t next, ptrdiff_t n, ptrdiff_t m)
{
    for (ptrdiff_t h = 0; h < heads; ++h, to += tm, w += wm, v += next) {
        REGISTER a = OF(oic_register_load)(to);
        for (ptrdiff_t k = 0; m >= WIDTH && k < n; ++k) {
            a = OF(oic_register_madd)(OF(oic_register_of)(w[k]), ROW(v + k * ld), a);
        }
        for (ptrdiff_t k = 0; m < WIDTH && k < n; ++k) {
            a = OF(oic_register_madd)(OF(oic_register_of)(w[k]), ROWS(oic_row_some)(v + k * ld, m), a);
        }
        memcpy(to, &a, sizeof a);
    }
}

#undef S
#undef R
#undef OF
#undef ROWS
#undef ROW
#undef REGISTER
#undef LANES
#undef WIDTH
#undef COUNT
#undef OIC_S
#undef OIC_R
