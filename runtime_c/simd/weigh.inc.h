/* Scores that become weights of type OIC_R, f32 or pairs of bf16 (pairs_rows.h).

   OIC_EXPS_BEGIN   the constants of exponentials, OIC_EXP_ALL of them, and one more
   OIC_EXPS_ROW     the weights of a row, and their sum
   OIC_EXPS_SOME    OIC_WEIGHED of them, beside other work */
#define WEIGH(f) OIC_PASTE(f##_, OIC_R)

/* Scores become weights: x[rows, pitch apart][n] = oic_exp_f32(x - top), n of row r being whole lanes, of numbers that are not
   above top, or NaN; what a row adds up to, as oic_sum_of or that of pairs, is added to its sum. */
OIC_LOOP void WEIGH(oic_weigh)(float *restrict x, ptrdiff_t pitch, ptrdiff_t rows, const uint8_t *restrict n, const float *restrict top,
                           float *restrict sum)
{
    oic_register_f32 c[OIC_EXP_ALL + 1];
    OIC_EXPS_BEGIN(c);
    for (ptrdiff_t r = 0; r < rows; r += OIC_FOLDED) {
        oic_folding_f32 folded[OIC_FOLDED];
        float sums[OIC_FOLDED];
        for (ptrdiff_t e = 0; e < OIC_FOLDED; ++e) {
            oic_lanes_f32 all;
            if (r + e < rows) {
                OIC_EXPS_ROW(x + (r + e) * pitch, n[r + e], top[r + e], c, &all);
            } else {
                oic_lanes_zero_f32(&all);
            }
            folded[e] = oic_folding_of_f32(&all);
        }
        oic_fold_f32(sums, folded);
        for (ptrdiff_t e = 0; e < OIC_FOLDED && r + e < rows; ++e) {
            sum[r + e] += sums[e];
        }
    }
}

#if OIC_WEIGHS_AHEAD_f32
/* oic_weigh of rows with n scores each, and of their weights oic_mix with n rows of v, to 4 * OIC_LANES columns: while some
   rows are mixed, which multiplies, the scores of the next become weights, which adds more than it multiplies.  n is a multiple
   of OIC_WEIGHED, rows of OIC_AHEAD_ROWS. */
OIC_LOOP void WEIGH(oic_weigh_ahead)(float *restrict to, ptrdiff_t tm, float *restrict x, ptrdiff_t pitch, ptrdiff_t rows, ptrdiff_t n,
                                  const float *restrict top, float *restrict sum, const float *restrict v, ptrdiff_t ld)
{
    enum { REGS = 4, STEPS = OIC_LANES / OIC_AHEAD_ROWS }; /* of k, beside a register of scores */
    oic_folding_f32 folded[OIC_FOLDED];
    oic_register_f32 c[OIC_EXP_ALL + 1];
    OIC_EXPS_BEGIN(c);
    for (ptrdiff_t e = 0; e < OIC_FOLDED; ++e) {
        oic_lanes_f32 all;
        oic_lanes_zero_f32(&all);
        if (e < OIC_AHEAD_ROWS) { /* the first rows, beside nothing */
            OIC_EXPS_ROW(x + e * pitch, n, top[e], c, &all);
        }
        folded[e] = oic_folding_of_f32(&all);
    }
    for (ptrdiff_t r = 0, next = OIC_AHEAD_ROWS; r < rows; r = next, next += OIC_AHEAD_ROWS, to += OIC_AHEAD_ROWS * tm) {
        const ptrdiff_t before = r - r % OIC_FOLDED;
        const int more = next < rows;
        const float *w = x + r * pitch, *q = v;
        oic_register_f32 a[OIC_AHEAD_ROWS * REGS];
        if (next % OIC_FOLDED == 0 || !more) {
            float sums[OIC_FOLDED];
            oic_fold_f32(sums, folded);
            for (ptrdiff_t e = before; e < next; ++e) {
                sum[e] += sums[e - before];
            }
        }
        OIC_UNROLLED
        for (int i = 0; i < OIC_AHEAD_ROWS * REGS; ++i) {
            a[i] = oic_register_load_f32(to + i / REGS * tm + i % REGS * OIC_WIDTH);
        }
        for (ptrdiff_t e = next; e < next + OIC_AHEAD_ROWS; ++e) {
            oic_lanes_f32 all;
            oic_lanes_zero_f32(&all);
            for (ptrdiff_t j = 0; j < n; j += OIC_WEIGHED, w += STEPS, q += STEPS * ld) {
                OIC_UNROLLED
                for (int k = 0; k < STEPS; ++k) {
                    OIC_JOIN_3(oic_mix_step, f32, OIC_R)(a, 0, OIC_AHEAD_ROWS, REGS, w + k, pitch, q + k * ld);
                }
                /* of the last rows again, for nothing */
                OIC_EXPS_SOME(x + (more ? e : r) * pitch, j, more, top[more ? e : r], c, &all);
            }
            folded[e % OIC_FOLDED] = oic_folding_of_f32(&all);
        }
        OIC_UNROLLED
        for (int i = 0; i < OIC_AHEAD_ROWS * REGS; ++i) {
            oic_register_store_f32(to + i / REGS * tm + i % REGS * OIC_WIDTH, a[i]);
        }
    }
}
#endif

#undef WEIGH
#undef OIC_R
#undef OIC_WEIGHED
#undef OIC_EXPS_BEGIN
#undef OIC_EXPS_ROW
#undef OIC_EXPS_SOME
