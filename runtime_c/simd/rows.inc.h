/* The functions of rows.h for OIC_S, f32 or f64; OIC_FOLD: oic_fold is there already. */
#define S OIC_PASTE(oic_stored_, OIC_S)
#define OF(f) OIC_PASTE(f##_, OIC_S)
#define REGISTER OF(oic_register)
#define LANES OF(oic_lanes)
#define WIDTH ((ptrdiff_t)(sizeof(REGISTER) / sizeof(S)))
#define COUNT ((int)(OIC_LANES * sizeof(S) / sizeof(REGISTER)))

#if !OIC_FOLD
static inline void OF(oic_fold)(S *restrict to, const LANES *a, const LANES *b, const LANES *c, const LANES *d)
{
    to[0] = OF(oic_lanes_sum)(a);
    to[1] = OF(oic_lanes_sum)(b);
    to[2] = OF(oic_lanes_sum)(c);
    to[3] = OF(oic_lanes_sum)(d);
}
#endif

/* The largest of n numbers, whole lanes of them, that is a number, or `top`. */
static inline S OF(oic_largest_of)(const S *x, ptrdiff_t n, S top)
{
    S a[OIC_LANES];
    for (int l = 0; l < OIC_LANES; ++l) {
        a[l] = top;
    }
    for (ptrdiff_t i = 0; i < n; i += OIC_LANES) {
        for (int l = 0; l < OIC_LANES; ++l) {
            a[l] = x[i + l] > a[l] ? x[i + l] : a[l];
        }
    }
    for (int l = 0; l < 8; ++l) {
        a[l] = a[l + 8] > a[l] ? a[l + 8] : a[l];
    }
    for (int l = 0; l < 4; ++l) {
        a[l] = a[l + 4] > a[l] ? a[l + 4] : a[l];
    }
    a[0] = a[2] > a[0] ? a[2] : a[0];
    a[1] = a[3] > a[1] ? a[3] : a[1];
    return a[1] > a[0] ? a[1] : a[0];
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
