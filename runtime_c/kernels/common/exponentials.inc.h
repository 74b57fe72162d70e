/* OIC_EXPONENTIALS, a function of the element type of element.h: maxima of columns, and the sums of exp(x - max), of each column one
   after the other, exactly (Kahan).  Columns are lanes. */
#define OIC_EXP_COLUMNS (OIC_SMALL_STACK ? 16 : 64) /* at a time */
#define OIC_EXP_FEW 8 /* fewer than these are faster one by one */

/* top and sum of `count` columns, at most OIC_EXP_COLUMNS, of n elements that lie `apart`. */
static inline void OIC_EXPONENTIALS(const T *restrict x, ptrdiff_t n, ptrdiff_t apart, ptrdiff_t count, C *restrict top, C *restrict sum)
{
    C lost[OIC_EXP_COLUMNS];
    const ptrdiff_t lanes = count < OIC_EXP_FEW ? 0 : count;
    for (ptrdiff_t e = 0; e < count; ++e) {
        top[e] = (C)-INFINITY;
        sum[e] = lost[e] = (C)0;
    }
    for (ptrdiff_t i = 0; i < n; ++i) {
        for (ptrdiff_t e = 0; e < count; ++e) {
            const C v = LOAD(x, i * apart + e);
            top[e] = v > top[e] ? v : top[e];
        }
    }
    for (ptrdiff_t i = 0; i < n; ++i) {
        for (ptrdiff_t e = 0; e < lanes; ++e) {
            sum[e] = MATH(oic_add_exactly)(sum[e], MATH(oic_exp)(LOAD(x, i * apart + e) - top[e]), &lost[e]);
        }
    }
    for (ptrdiff_t e = lanes; e < count; ++e) {
        C all = (C)0, less = (C)0;
        for (ptrdiff_t i = 0; i < n; ++i) {
            all = MATH(oic_add_exactly)(all, MATH(oic_exp)(LOAD(x, i * apart + e) - top[e]), &less);
        }
        sum[e] = all;
    }
}
