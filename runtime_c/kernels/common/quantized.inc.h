/* Products with weights of OIC_Q bits, 8 or 4: sums over groups in order, of a block of rows of x and a stream of weights. */
#define Q(f) OIC_JOIN_2(f, OIC_Q)
#define STEP (OIC_GROUP * OIC_PANEL / 8 * OIC_Q) /* bytes of a panel of a group */

/* sum[streams][R][OIC_STREAM] += a block of R rows of x times panels of streams, P streams at a time. */
OIC_INLINE void Q(oic_quantized_rows)(float *restrict sum, int R, int P, const oic_quantized *m)
{
    for (ptrdiff_t g = m->first; g < m->end; ++g) {
        const uint8_t *record = m->x + g * R * OIC_RECORD;
        for (ptrdiff_t j = 0; j < m->panels; ++j) {
            const int last = g == m->end - 1 && j == m->panels - 1; /* of these streams: behind it lies another of them */
            const ptrdiff_t ahead = last ? m->ahead + (m->streams - 1) * m->gap * STEP : m->ahead;
            for (ptrdiff_t s = 0; s < m->streams; s += P) {
                const ptrdiff_t at = s * m->gap + g * m->panels + j;
                oic_dots a[OIC_DOTS_ROWS];
                OIC_OPAQUE(record); /* or what belongs to x is kept in registers that there are not */
                Q(oic_dots_group)(a, R, P, m->w + at * STEP, record, record + R * (OIC_DOTS_X + 4), m->gap * STEP, ahead);
                for (int p = 0; p < P; ++p) {
                    const oic_f16 *const scales = m->scales + (at + p * m->gap) * OIC_PANEL;
                    oic_dots_factors dw;
                    OIC_AHEAD(scales + OIC_STREAM);
                    oic_dots_scales(&dw, scales);
                    for (int r = 0; r < R; ++r) {
                        float dx;
                        memcpy(&dx, record + R * OIC_DOTS_X + r * 4, sizeof dx);
                        oic_dots_add(sum + (((s + p) * R + r) * OIC_STREAM_PANELS + j) * OIC_PANEL, &a[p * R + r], &dw, dx);
                    }
                }
            }
        }
    }
}

/* The same for any number of rows. */
OIC_LOOP void Q(oic_quantized_rows_of)(float *restrict sum, ptrdiff_t R, const oic_quantized *m)
{
    switch (R) {
    case 1:
        if (m->streams % 4 == 0) {
            Q(oic_quantized_rows)(sum, 1, 4, m);
        } else {
            Q(oic_quantized_rows)(sum, 1, 1, m);
        }
        break;
    case 2:
        Q(oic_quantized_rows)(sum, 2, 1, m);
        break;
    case 3:
        Q(oic_quantized_rows)(sum, 3, 1, m);
        break;
#if OIC_DOTS_ROWS == 8
    case 5:
        Q(oic_quantized_rows)(sum, 5, 1, m);
        break;
    case 6:
        Q(oic_quantized_rows)(sum, 6, 1, m);
        break;
    case 7:
        Q(oic_quantized_rows)(sum, 7, 1, m);
        break;
    case 8:
        Q(oic_quantized_rows)(sum, 8, 1, m);
        break;
#endif
    default:
        Q(oic_quantized_rows)(sum, 4, 1, m);
    }
}

/* sum[streams][n][OIC_STREAM] = rows r0..r0+n-1 of the `rows` in work times some streams of w, from `stream` on: one, or for a
   block of rows several of full width. */
static inline void Q(oic_quantized_product)(float *restrict sum, const void *work, ptrdiff_t rows, ptrdiff_t r0,
                                            ptrdiff_t n, const void *w, ptrdiff_t stream, ptrdiff_t streams, ptrdiff_t K,
                                            ptrdiff_t N)
{
    const ptrdiff_t groups = oic_groups(K), all = oic_panels(N), first = stream * OIC_STREAM_PANELS;
    const ptrdiff_t width = all - first < OIC_STREAM_PANELS ? all - first : OIC_STREAM_PANELS;
    const ptrdiff_t at = first * groups; /* panels of groups before */
    const ptrdiff_t part = n <= OIC_DOTS_ROWS ? groups : OIC_PART_GROUPS; /* a part is read again for every block */
    oic_quantized m = {.w = (const uint8_t *)w + at * STEP,
                       .scales = (const oic_f16 *)(const void *)((const uint8_t *)w + all * groups * STEP) + at * OIC_PANEL,
                       .streams = streams, .gap = width * groups, .panels = width,
                       .ahead = n <= OIC_DOTS_ROWS ? OIC_AHEAD_BYTES : part * width * STEP};
    memset(sum, 0, (size_t)(streams * n * OIC_STREAM) * sizeof *sum);
    for (m.first = 0; m.first < groups; m.first = m.end) {
        m.end = groups - m.first < part ? groups : m.first + part;
        for (ptrdiff_t r = 0; r < n; r += OIC_DOTS_ROWS) {
            m.x = (const uint8_t *)work + oic_block(r0 + r, groups);
            Q(oic_quantized_rows_of)(sum + r * OIC_STREAM, oic_block_rows(r0 + r, rows), &m);
        }
    }
}

#undef Q
#undef STEP
#undef OIC_Q
