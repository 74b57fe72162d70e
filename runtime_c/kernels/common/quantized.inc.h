/* Products with weights of OIC_Q bits, 8 or 4: sums over groups in order, of rows of x and streams of weights. */
#define Q(f) OIC_JOIN_2(f, OIC_Q)
#define STEP (OIC_GROUP * OIC_PANEL / 8 * OIC_Q) /* bytes of a panel of a group */

#if OIC_Q == 8
#define ROWS OIC_DOTS_ROWS_8
#else
#define ROWS OIC_DOTS_ROWS
#endif

/* sum[R][OIC_STREAM] += R rows of x times P panels of a group, which are `apart` bytes and `next` sums from each other. */
OIC_INLINE void Q(oic_quantized_tile)(float *restrict sum, int R, int P, const oic_quantized_rows *x, const uint8_t *w,
                                      const oic_dots_factors *dw, ptrdiff_t apart, ptrdiff_t next, ptrdiff_t ahead)
{
    oic_dots a[ROWS > OIC_STREAM_PANELS ? ROWS : OIC_STREAM_PANELS];
    Q(oic_dots_group)(a, R, P, w, x->numbers, x->starts, apart, ahead);
    for (int p = 0; p < P; ++p) {
        for (int r = 0; r < R; ++r) {
            float dx;
            memcpy(&dx, x->scales + r * 4, sizeof dx);
            oic_dots_add(sum + r * OIC_STREAM + p * next, &a[p * R + r], &dw[p], dx);
        }
    }
}

/* sum[R][OIC_STREAM] += R rows of x, at most ROWS, times a panel of a group. */
OIC_INLINE void Q(oic_quantized_panel)(float *restrict sum, ptrdiff_t R, const oic_quantized_rows *x, const uint8_t *w,
                                       const oic_dots_factors *dw)
{
    switch (R) {
    case 1:
        Q(oic_quantized_tile)(sum, 1, 1, x, w, dw, 0, 0, 0);
        break;
#if OIC_DOTS_ROWS == 8
    case 5:
        Q(oic_quantized_tile)(sum, 5, 1, x, w, dw, 0, 0, 0);
        break;
    case 6:
        Q(oic_quantized_tile)(sum, 6, 1, x, w, dw, 0, 0, 0);
        break;
    case 7:
        Q(oic_quantized_tile)(sum, 7, 1, x, w, dw, 0, 0, 0);
        break;
    case 8:
        Q(oic_quantized_tile)(sum, 8, 1, x, w, dw, 0, 0, 0);
        break;
#endif
    case 2:
        Q(oic_quantized_tile)(sum, 2, 1, x, w, dw, 0, 0, 0);
        break;
    case 3:
        Q(oic_quantized_tile)(sum, 3, 1, x, w, dw, 0, 0, 0);
        break;
    default:
        Q(oic_quantized_tile)(sum, 4, 1, x, w, dw, 0, 0, 0);
    }
}

#if OIC_Q == 8 && defined(OIC_DOTS_MANY)
/* sum[n][OIC_STREAM] = n rows of x, OIC_DOTS_MANY or more, times a stream. */
OIC_LOOP void oic_quantized_many(float *restrict sum, ptrdiff_t n, const oic_quantized *m)
{
    uint8_t variants[OIC_DOTS_TABLE + 63], *const table = variants + (63 & -(uintptr_t)variants); /* on lines of the cache */
    memset(sum, 0, (size_t)(n * OIC_STREAM) * sizeof *sum);
    for (ptrdiff_t g = 0; g < m->groups; ++g) {
        const uint8_t *const record = m->x + g * n * OIC_RECORD;
        oic_dots_factors dw[OIC_STREAM_PANELS];
        for (ptrdiff_t j = 0; j < m->panels; ++j) {
            oic_dots_scales(&dw[j], m->scales + (g * m->panels + j) * OIC_PANEL);
        }
        oic_dots_variants(table, m->w + g * m->panels * STEP, m->panels);
        for (ptrdiff_t r = 0; r < n; ++r) {
            const oic_quantized_rows x = oic_quantized_at(record, n, r);
            float *const to = sum + r * OIC_STREAM;
            oic_dots a[OIC_STREAM_PANELS];
            float dx;
            memcpy(&dx, x.scales, sizeof dx);
            if (m->panels == OIC_STREAM_PANELS) {
                oic_dots_group_many(a, OIC_STREAM_PANELS, table, x.numbers, x.starts);
                for (int j = 0; j < OIC_STREAM_PANELS; ++j) {
                    oic_dots_add(to + j * OIC_PANEL, &a[j], &dw[j], dx);
                }
            } else {
                for (ptrdiff_t j = 0; j < m->panels; ++j) {
                    oic_dots_group_many(a, 1, table + 64 * j, x.numbers, x.starts);
                    oic_dots_add(to + j * OIC_PANEL, a, &dw[j], dx);
                }
            }
        }
    }
}
#endif

#if defined(OIC_DOTS_CHAIN)
/* sum[R][OIC_STREAM] += R rows from r on times P panels from j on; zero: = */
OIC_INLINE void Q(oic_quantized_chained)(float *restrict sum, int R, int P, oic_quantized_chain *c, ptrdiff_t r, ptrdiff_t j, int zero)
{
    oic_quantized_rows x = oic_quantized_at(c->x, c->n, r);
    const uint8_t *w = OIC_DOTS_ONCE ? c->plain + j * OIC_DOTS_PLAIN : c->w + j * STEP, *ahead = c->ahead;
    float *const to = sum + r * OIC_STREAM + j * OIC_PANEL;
    oic_dots_factors y[OIC_CHAINS];
    for (int i = 0; i < P * R; ++i) {
        oic_dots_load(&y[i], to + i % R * OIC_STREAM + i / R * OIC_PANEL, zero);
    }
    for (ptrdiff_t g = 0; g < c->groups; ++g) {
        oic_dots a[OIC_CHAINS];
        for (const uint8_t *const end = ahead + 64 * c->lines; ahead < end; ahead += 64) {
            OIC_AHEAD_FAR(ahead);
        }
        if (OIC_DOTS_ONCE) {
            oic_dots_group_plain(a, R, P, w, x.numbers, x.starts);
        } else {
            Q(oic_dots_group)(a, R, P, w, x.numbers, x.starts, STEP, 0);
        }
        for (int i = 0; i < P * R; ++i) {
            float dx;
            memcpy(&dx, x.scales + i % R * 4, sizeof dx);
            oic_dots_go_on(&y[i], &a[i], &c->dw[j + i / R][g], dx);
        }
        w += c->panels * (OIC_DOTS_ONCE ? OIC_DOTS_PLAIN : STEP);
        x.numbers += c->n * OIC_RECORD;
        x.scales += c->n * OIC_RECORD;
        x.starts += c->n * OIC_RECORD;
    }
    for (int i = 0; i < P * R; ++i) {
        oic_dots_store(to + i % R * OIC_STREAM + i / R * OIC_PANEL, &y[i]);
    }
    c->ahead = ahead;
}

/* sum[end][OIC_STREAM] = rows before `end`, whole tiles of the n of a block or all of them, times a stream. */
OIC_LOOP void Q(oic_quantized_tiles)(float *restrict sum, ptrdiff_t end, ptrdiff_t n, const oic_quantized *m)
{
    const int beside = OIC_ALL_BESIDE && m->panels == OIC_STREAM_PANELS; /* tiles have all panels */
    const ptrdiff_t tiles = beside ? (end + OIC_ROWS_BESIDE - 1) / OIC_ROWS_BESIDE : end / ROWS * m->panels;
    uint8_t plains[OIC_DOTS_ONCE ? OIC_DOTS_CHAIN * OIC_STREAM_PANELS * OIC_DOTS_PLAIN + 63 : 64];
    uint8_t *const plain = plains + (63 & -(uintptr_t)plains); /* on lines of the cache */
    oic_quantized_chain c = {.plain = plain, .n = n, .panels = m->panels, .lines = (m->panels * STEP / 64 + tiles - 1) / tiles};
    for (ptrdiff_t g = 0; g < m->groups; g += OIC_DOTS_CHAIN) {
        c.x = m->x + g * n * OIC_RECORD;
        c.w = m->w + g * m->panels * STEP;
        c.groups = m->groups - g < OIC_DOTS_CHAIN ? m->groups - g : OIC_DOTS_CHAIN;
        c.ahead = c.w + c.groups * m->panels * STEP;
        for (ptrdiff_t i = 0; i < c.groups * m->panels; ++i) {
            const oic_f16 *const scales = m->scales + (g * m->panels + i) * OIC_PANEL;
            const uintptr_t next = (uintptr_t)(OIC_DOTS_CHAIN * m->panels * OIC_PANEL) * sizeof *scales;
            OIC_AHEAD_FAR((const void *)((uintptr_t)scales + next)); /* of the next chain, which may lie behind the last */
            oic_dots_scales(&c.dw[i % m->panels][i / m->panels], scales);
            if (OIC_DOTS_ONCE) {
                Q(oic_dots_plain)(plain + i * OIC_DOTS_PLAIN, c.w + i * STEP);
            }
        }
        for (ptrdiff_t r = 0; beside && r < end; r += OIC_ROWS_BESIDE) {
            const ptrdiff_t rows = end - r < OIC_ROWS_BESIDE ? end - r : OIC_ROWS_BESIDE;
            if (g + OIC_DOTS_CHAIN >= m->groups) {
                oic_quantized_ask(m->results, r, rows);
            }
            if (rows == OIC_ROWS_BESIDE) {
                Q(oic_quantized_chained)(sum, OIC_ROWS_BESIDE, OIC_STREAM_PANELS, &c, r, 0, g == 0);
            } else if (rows == 2) {
                Q(oic_quantized_chained)(sum, 2, OIC_STREAM_PANELS, &c, r, 0, g == 0);
            } else {
                Q(oic_quantized_chained)(sum, 1, OIC_STREAM_PANELS, &c, r, 0, g == 0);
            }
        }
        for (ptrdiff_t r = 0; !beside && r < end; r += ROWS) {
            ptrdiff_t j = 0;
            if (g + OIC_DOTS_CHAIN >= m->groups) {
                oic_quantized_ask(m->results, r, ROWS);
            }
            for (; j + 2 <= m->panels; j += 2) { /* half of the rows with two panels: fewer loads than all with one */
                Q(oic_quantized_chained)(sum, ROWS / 2, 2, &c, r, j, g == 0);
                Q(oic_quantized_chained)(sum, ROWS / 2, 2, &c, r + ROWS / 2, j, g == 0);
            }
            if (j < m->panels) {
                Q(oic_quantized_chained)(sum, ROWS, 1, &c, r, j, g == 0);
            }
        }
    }
}

/* sum[OIC_STREAM] = a row of x times a stream of so many panels, whose sums stay in registers. */
OIC_INLINE void Q(oic_quantized_row)(float *restrict sum, int panels, const oic_quantized *m)
{
    oic_dots_factors y[OIC_STREAM_PANELS];
    for (int j = 0; j < panels; ++j) {
        oic_dots_load(&y[j], sum, 1);
    }
    for (ptrdiff_t g = 0; g < m->groups; ++g) {
        const oic_quantized_rows x = oic_quantized_at(m->x + g * OIC_RECORD, 1, 0);
        oic_dots a[OIC_STREAM_PANELS];
        float dx;
        memcpy(&dx, x.scales, sizeof dx);
        Q(oic_dots_group)(a, 1, panels, m->w + g * panels * STEP, x.numbers, x.starts, STEP, 0);
        for (int j = 0; j < panels; ++j) {
            oic_dots_factors dw;
            oic_dots_scales(&dw, m->scales + (g * panels + j) * OIC_PANEL);
            oic_dots_go_on(&y[j], &a[j], &dw, dx);
        }
    }
    for (int j = 0; j < panels; ++j) {
        oic_dots_store(sum + j * OIC_PANEL, &y[j]);
    }
}

/* The same, however many panels there are. */
OIC_LOOP void Q(oic_quantized_one)(float *restrict sum, const oic_quantized *m)
{
    switch (m->panels) {
    case 1:
        Q(oic_quantized_row)(sum, 1, m);
        break;
    case 2:
        Q(oic_quantized_row)(sum, 2, m);
        break;
    case 3:
        Q(oic_quantized_row)(sum, 3, m);
        break;
    default:
        Q(oic_quantized_row)(sum, OIC_STREAM_PANELS, m);
    }
}
#endif

/* sum[n][OIC_STREAM] = rows of x from `first` on, of the n of a block, times a stream. */
OIC_LOOP void Q(oic_quantized_block)(float *restrict sum, ptrdiff_t first, ptrdiff_t n, const oic_quantized *m)
{
    memset(sum + first * OIC_STREAM, 0, (size_t)((n - first) * OIC_STREAM) * sizeof *sum);
    for (ptrdiff_t g = 0; g < m->groups; ++g) {
        const uint8_t *const w = m->w + g * m->panels * STEP, *const record = m->x + g * n * OIC_RECORD;
        oic_dots_factors dw[OIC_STREAM_PANELS];
        for (ptrdiff_t j = 0; j < m->panels; ++j) {
            oic_dots_scales(&dw[j], m->scales + (g * m->panels + j) * OIC_PANEL);
        }
        for (ptrdiff_t r = first, count; r < n; r += count) {
            const oic_quantized_rows x = oic_quantized_at(record, n, r);
            float *const to = sum + r * OIC_STREAM;
            const uint8_t *from = w;
            OIC_OPAQUE(from); /* or the compiler keeps a group in registers, of which there are too few */
            for (ptrdiff_t i = 0; r == first && i < m->panels * STEP; i += 64) {
                OIC_AHEAD(from + OIC_AHEAD_BYTES + i);
            }
            count = n - r < ROWS ? n - r : ROWS;
            if (count == 1 && m->panels == OIC_STREAM_PANELS) {
                Q(oic_quantized_tile)(to, 1, OIC_STREAM_PANELS, &x, from, dw, STEP, OIC_PANEL, 0);
            } else {
                for (ptrdiff_t j = 0; j < m->panels; ++j) {
                    Q(oic_quantized_panel)(to + j * OIC_PANEL, ROWS == 1 ? 1 : count, &x, from + j * STEP, &dw[j]);
                }
            }
        }
    }
}

#if OIC_HOSTED
/* y[N] = the one row of x in work times w, stream by stream. */
OIC_LOOP void Q(oic_quantized_near)(float *restrict y, const void *work, const void *w, ptrdiff_t K, ptrdiff_t N)
{
    const ptrdiff_t groups = oic_groups(K), all = oic_panels(N), step = groups * OIC_STREAM_PANELS;
    oic_quantized m = {.x = work, .w = w, .panels = OIC_STREAM_PANELS, .groups = groups, .apart = 0, .results = NULL,
                       .scales = (const oic_f16 *)(const void *)((const uint8_t *)w + all * groups * STEP)};
    for (; N >= OIC_STREAM; N -= OIC_STREAM, y += OIC_STREAM, m.w += step * STEP, m.scales += step * OIC_PANEL) {
#if defined(OIC_DOTS_CHAIN)
        Q(oic_quantized_row)(y, OIC_STREAM_PANELS, &m);
#else
        Q(oic_quantized_block)(y, 0, 1, &m);
#endif
    }
    if (N > 0) {
        float sum[OIC_STREAM];
        m.panels = oic_panels(N);
#if defined(OIC_DOTS_CHAIN)
        Q(oic_quantized_one)(sum, &m);
#else
        Q(oic_quantized_block)(sum, 0, 1, &m);
#endif
        memcpy(y, sum, (size_t)N * sizeof *y);
    }
}
#endif

#if OIC_STREAMS > 1
/* sum[OIC_STREAMS][n][OIC_STREAM] = n rows of x times OIC_STREAMS streams of full width, a panel of each in turn. */
OIC_INLINE void Q(oic_quantized_streams)(float *restrict sum, int n, const oic_quantized *m)
{
    const ptrdiff_t ahead = OIC_AHEAD_FEW(n, OIC_JOIN_2(OIC_NEARER, OIC_Q));
    memset(sum, 0, (size_t)(OIC_STREAMS * n * OIC_STREAM) * sizeof *sum);
    for (ptrdiff_t g = 0; g < m->groups; ++g) {
        const uint8_t *const record = m->x + g * n * OIC_RECORD;
        for (ptrdiff_t j = 0; j < OIC_STREAM_PANELS; ++j) {
            const ptrdiff_t at = g * OIC_STREAM_PANELS + j;
            const int P = n == 1 || ROWS == 1 ? OIC_STREAMS : 1; /* panels at a time */
            for (int s = 0; s < OIC_STREAMS; s += P) {
                const uint8_t *w = m->w + (at + s * m->apart) * STEP;
                float *const to = sum + s * n * OIC_STREAM + j * OIC_PANEL;
                oic_dots_factors dw[OIC_STREAMS];
                for (int p = 0; p < P; ++p) {
                    const oic_f16 *const scales = m->scales + (at + (s + p) * m->apart) * OIC_PANEL;
                    OIC_AHEAD_LINE((const uint8_t *)scales, 0, P, 2 * OIC_STREAM);
                    oic_dots_scales(&dw[p], scales);
                }
                for (int r = 0; r < n; r += ROWS) {
                    const oic_quantized_rows x = oic_quantized_at(record, n, r);
                    OIC_OPAQUE(w);
                    if (r == 0) {
                        Q(oic_quantized_tile)(to, ROWS == 1 ? 1 : n, P, &x, w, dw, m->apart * STEP, n * OIC_STREAM, ahead);
                    } else {
                        Q(oic_quantized_tile)(to + r * OIC_STREAM, 1, P, &x, w, dw, m->apart * STEP, n * OIC_STREAM, 0);
                    }
                }
            }
        }
    }
}

/* The same for few rows, at most OIC_FEW_8 or OIC_FEW_4. */
#define FEW_OF(n) \
    case n: \
        if ((n) <= OIC_ROWS_MOST) { \
            Q(oic_quantized_streams)(sum, n, m); \
        } \
        break;
OIC_LOOP void Q(oic_quantized_few)(float *restrict sum, ptrdiff_t n, const oic_quantized *m)
{
    switch (n) {
    FEW_OF(1)
#if OIC_Q == 8 && OIC_DOTS_ROWS_8 == 1
    default: Q(oic_quantized_streams)(sum, (int)n, m);
#else
    FEW_OF(2)
    FEW_OF(3)
    FEW_OF(4)
#if OIC_DOTS_ROWS == 8
    FEW_OF(5)
    FEW_OF(6)
    FEW_OF(7)
    FEW_OF(8)
#endif
    default: break;
#endif
    }
}
#undef FEW_OF
#endif

/* sum[streams][n][OIC_STREAM] = rows r0..r0+n-1, a block of those in work, times streams of w: the one given, or, where `apart` is
   not 0, OIC_STREAMS of full width for few rows, that one first and the others so many streams from each other. */
static inline void Q(oic_quantized_product)(float *restrict sum, const void *work, ptrdiff_t r0, ptrdiff_t n, const void *w,
                                            ptrdiff_t stream, ptrdiff_t apart, ptrdiff_t K, ptrdiff_t N,
                                            const oic_quantized_results *results)
{
    const ptrdiff_t groups = oic_groups(K), all = oic_panels(N), first = stream * OIC_STREAM_PANELS;
    const ptrdiff_t at = first * groups; /* panels of groups before */
    const oic_quantized m = {
        .x = (const uint8_t *)work + r0 * groups * OIC_RECORD,
        .w = (const uint8_t *)w + at * STEP,
        .scales = (const oic_f16 *)(const void *)((const uint8_t *)w + all * groups * STEP) + at * OIC_PANEL,
        .panels = all - first < OIC_STREAM_PANELS ? all - first : OIC_STREAM_PANELS, .groups = groups,
        .apart = apart * OIC_STREAM_PANELS * groups, .results = results};
#if OIC_STREAMS > 1
    if (apart > 0) {
        Q(oic_quantized_few)(sum, n, &m);
        return;
    }
#endif
#if defined(OIC_DOTS_CHAIN)
    if (n == 1) {
        Q(oic_quantized_one)(sum, &m);
        return;
    }
#endif
#if OIC_Q == 8 && defined(OIC_DOTS_MANY)
    if (n >= OIC_DOTS_MANY) {
        oic_quantized_many(sum, n, &m);
        return;
    }
#endif
    ptrdiff_t done = 0;
#if defined(OIC_DOTS_CHAIN)
    if (OIC_ROWS_MOST >= 8 && n >= OIC_JOIN_2(OIC_CHAINED, OIC_Q)) {
        done = OIC_ALL_BESIDE && m.panels == OIC_STREAM_PANELS ? n : n - n % ROWS;
        Q(oic_quantized_tiles)(sum, done, n, &m);
    }
#endif
    if (done < n) {
        Q(oic_quantized_block)(sum, done, n, &m);
    }
}

#undef ROWS
#undef Q
#undef STEP
#undef OIC_Q
