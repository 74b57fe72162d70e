/* Products with weights of OIC_Q bits, 8 or 4: sums over groups in order, of a block of rows of x and a stream of weights. */
#define Q(f) OIC_JOIN_2(f, OIC_Q)
#define STEP (OIC_GROUP * OIC_PANEL / 8 * OIC_Q) /* bytes of a panel of a group */

/* sum[R][OIC_STREAM] += groups first..end-1 of a block of x times `panels` neighbours of a stream that is `width` wide; w
   and scales are those of the first one's first group. */
OIC_INLINE void Q(oic_quantized_rows)(float *restrict sum, int R, const uint8_t *restrict x, const uint8_t *restrict w,
                                      const oic_f16 *restrict scales, ptrdiff_t panels, ptrdiff_t width, ptrdiff_t first,
                                      ptrdiff_t end)
{
    for (ptrdiff_t g = first; g < end; ++g) {
        const uint8_t *const record = x + g * R * OIC_RECORD;
        for (ptrdiff_t j = 0; j < panels; ++j) {
            const ptrdiff_t at = g * width + j;
            oic_dots a[OIC_DOTS_ROWS];
            oic_dots_f32 dw;
            Q(oic_dots_group)(a, R, w + at * STEP, record, record + R * (OIC_DOTS_X + 4));
            oic_dots_scales(&dw, scales + at * OIC_PANEL);
            for (int r = 0; r < R; ++r) {
                float dx;
                memcpy(&dx, record + R * OIC_DOTS_X + r * 4, sizeof dx);
                oic_dots_add(sum + r * OIC_STREAM + j * OIC_PANEL, &a[r], &dw, dx);
            }
        }
    }
}

/* The same for any number of rows; each a function of its own, for registers. */
OIC_LOOP void Q(oic_quantized_rows_of)(float *restrict sum, ptrdiff_t R, const uint8_t *restrict x,
                                       const uint8_t *restrict w, const oic_f16 *restrict scales, ptrdiff_t panels,
                                       ptrdiff_t width, ptrdiff_t first, ptrdiff_t end)
{
    switch (R) {
    case 1:
        Q(oic_quantized_rows)(sum, 1, x, w, scales, panels, width, first, end);
        break;
    case 2:
        Q(oic_quantized_rows)(sum, 2, x, w, scales, panels, width, first, end);
        break;
    case 3:
        Q(oic_quantized_rows)(sum, 3, x, w, scales, panels, width, first, end);
        break;
    default:
        Q(oic_quantized_rows)(sum, 4, x, w, scales, panels, width, first, end);
    }
}

/* sum[n][OIC_STREAM] = rows r0..r0+n-1 of the `rows` in work times panels first..end-1 of w, which are of one stream. */
static inline void Q(oic_quantized_product)(float *restrict sum, const void *work, ptrdiff_t rows, ptrdiff_t r0,
                                            ptrdiff_t n, const void *w, ptrdiff_t first, ptrdiff_t end, ptrdiff_t K,
                                            ptrdiff_t N)
{
    const ptrdiff_t groups = oic_groups(K), all = oic_panels(N), stream = first - first % OIC_STREAM_PANELS;
    const ptrdiff_t width = all - stream < OIC_STREAM_PANELS ? all - stream : OIC_STREAM_PANELS;
    const uint8_t *const bytes = (const uint8_t *)w + stream * groups * STEP + (first - stream) * STEP;
    const oic_f16 *const scales = (const oic_f16 *)(const void *)((const uint8_t *)w + all * groups * STEP) +
                                  (stream * groups + first - stream) * OIC_PANEL;
    const ptrdiff_t part = n <= OIC_DOTS_ROWS ? groups : OIC_PART_GROUPS; /* a part is read again for every block */
    memset(sum, 0, (size_t)(n * OIC_STREAM) * sizeof *sum);
    for (ptrdiff_t g = 0; g < groups; g += part) {
        const ptrdiff_t to = groups - g < part ? groups : g + part;
        for (ptrdiff_t r = 0; r < n; r += OIC_DOTS_ROWS) {
            Q(oic_quantized_rows_of)(sum + r * OIC_STREAM, oic_block_rows(r0 + r, rows), oic_block(work, r0 + r, groups),
                                     bytes, scales, end - first, width, g, to);
        }
    }
}

#undef Q
#undef STEP
#undef OIC_Q
