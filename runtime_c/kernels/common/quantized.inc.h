/* Products with weights of OIC_Q bits, 8 or 4: sums over groups in order, of a block of rows of x and a stream of weights. */
#define Q(f) OIC_JOIN_2(f, OIC_Q)
#define STEP (OIC_GROUP * OIC_PANEL / 8 * OIC_Q) /* bytes of a panel of a group */

/* sum[R][OIC_STREAM] += groups first..end-1 of a block of x times `panels` neighbours of a stream that is `width` wide, P at a
   time; w and scales are those of the first one's first group.  What lies `ahead` bytes behind is asked for, in w. */
OIC_INLINE void Q(oic_quantized_rows)(float *restrict sum, int R, int P, const uint8_t *restrict x,
                                      const uint8_t *restrict w, const oic_f16 *restrict scales, ptrdiff_t panels,
                                      ptrdiff_t width, ptrdiff_t first, ptrdiff_t end, ptrdiff_t ahead)
{
    for (ptrdiff_t g = first; g < end; ++g) {
        const uint8_t *record = x + g * R * OIC_RECORD;
        for (ptrdiff_t j = 0; j < panels; j += P) {
            const ptrdiff_t at = g * width + j;
            oic_dots a[OIC_DOTS_ROWS];
            OIC_OPAQUE(record); /* or what belongs to x is kept in registers that there are not */
            OIC_AHEAD(scales + (at + OIC_STREAM_PANELS) * OIC_PANEL);
            Q(oic_dots_group)(a, R, P, w + at * STEP, record, record + R * (OIC_DOTS_X + 4), ahead);
            for (int p = 0; p < P; ++p) {
                oic_dots_f32 dw;
                oic_dots_scales(&dw, scales + (at + p) * OIC_PANEL);
                for (int r = 0; r < R; ++r) {
                    float dx;
                    memcpy(&dx, record + R * OIC_DOTS_X + r * 4, sizeof dx);
                    oic_dots_add(sum + r * OIC_STREAM + (j + p) * OIC_PANEL, &a[p * R + r], &dw, dx);
                }
            }
        }
    }
}

/* The same for any number of rows.  Panels are read in the order in which they lie: for memory, two streams side by side are
   slower than one, unless they are as narrow as those of q4. */
OIC_LOOP void Q(oic_quantized_rows_of)(float *restrict sum, ptrdiff_t R, const uint8_t *restrict x,
                                       const uint8_t *restrict w, const oic_f16 *restrict scales, ptrdiff_t panels,
                                       ptrdiff_t width, ptrdiff_t first, ptrdiff_t end, ptrdiff_t ahead)
{
    switch (R) {
    case 1:
        if (OIC_Q == 4 && panels % 2 == 0) {
            Q(oic_quantized_rows)(sum, 1, 2, x, w, scales, panels, width, first, end, ahead);
        } else {
            Q(oic_quantized_rows)(sum, 1, 1, x, w, scales, panels, width, first, end, ahead);
        }
        break;
    case 2:
        Q(oic_quantized_rows)(sum, 2, 1, x, w, scales, panels, width, first, end, ahead);
        break;
    case 3:
        Q(oic_quantized_rows)(sum, 3, 1, x, w, scales, panels, width, first, end, ahead);
        break;
#if OIC_DOTS_ROWS == 8
    case 5:
        Q(oic_quantized_rows)(sum, 5, 1, x, w, scales, panels, width, first, end, ahead);
        break;
    case 6:
        Q(oic_quantized_rows)(sum, 6, 1, x, w, scales, panels, width, first, end, ahead);
        break;
    case 7:
        Q(oic_quantized_rows)(sum, 7, 1, x, w, scales, panels, width, first, end, ahead);
        break;
    case 8:
        Q(oic_quantized_rows)(sum, 8, 1, x, w, scales, panels, width, first, end, ahead);
        break;
#endif
    default:
        Q(oic_quantized_rows)(sum, 4, 1, x, w, scales, panels, width, first, end, ahead);
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
    const ptrdiff_t ahead = n <= OIC_DOTS_ROWS ? OIC_AHEAD_BYTES : part * width * STEP;
    memset(sum, 0, (size_t)(n * OIC_STREAM) * sizeof *sum);
    for (ptrdiff_t g = 0; g < groups; g += part) {
        const ptrdiff_t to = groups - g < part ? groups : g + part;
        for (ptrdiff_t r = 0; r < n; r += OIC_DOTS_ROWS) {
            Q(oic_quantized_rows_of)(sum + r * OIC_STREAM, oic_block_rows(r0 + r, rows), (const uint8_t *)work + oic_block(r0 + r, groups),
                                     bytes, scales, end - first, width, g, to, ahead);
        }
    }
}

#undef Q
#undef STEP
#undef OIC_Q
