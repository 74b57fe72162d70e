/* The lanes of lanes.h for numbers of type OIC_S, f32 or f64, and chains of products on them. */
#define S OIC_PASTE(oic_stored_, OIC_S)
#define OF(f) OIC_PASTE(f##_, OIC_S)
#define REGISTER OF(oic_register)
#define LANES OF(oic_lanes)
#define WIDTH ((int)(sizeof(REGISTER) / sizeof(S)))
#define COUNT ((int)(OIC_LANES * sizeof(S) / sizeof(REGISTER)))

typedef struct {
    REGISTER part[OIC_LANES * sizeof(S) / sizeof(REGISTER)];
} LANES;

/* Sixteen numbers at any address, a register at a time: so that lanes stay in registers. */
static inline void OF(oic_lanes_load)(LANES *to, const S *from)
{
    for (int i = 0; i < COUNT; ++i) {
        memcpy(&to->part[i], from + i * WIDTH, sizeof(REGISTER));
    }
}

static inline void OF(oic_lanes_store)(S *to, const LANES *from)
{
    for (int i = 0; i < COUNT; ++i) {
        memcpy(to + i * WIDTH, &from->part[i], sizeof(REGISTER));
    }
}

static inline void OF(oic_lanes_zero)(LANES *to)
{
    for (int i = 0; i < COUNT; ++i) {
        to->part[i] = (REGISTER){0};
    }
}

/* sum += x * w[lanes] */
static inline void OF(oic_lanes_madd)(LANES *sum, S x, const S *w)
{
    const REGISTER all = OF(oic_register_of)(x);
    for (int i = 0; i < COUNT; ++i) {
        sum->part[i] = OF(oic_register_madd)(all, OF(oic_register_load)(w + i * WIDTH), sum->part[i]);
    }
}

/* n steps of four chains of sixteen: sum[4][lanes] += x[k] * w[k][lanes], the lanes of a chain `group` apart. */
OIC_LOOP void OF(oic_chains_1x4)(S *restrict sum, const S *restrict x, ptrdiff_t xk, const S *restrict w,
                                      ptrdiff_t wk, ptrdiff_t group, ptrdiff_t n)
{
    LANES a0, a1, a2, a3;
    OF(oic_lanes_load)(&a0, sum);
    OF(oic_lanes_load)(&a1, sum + OIC_LANES);
    OF(oic_lanes_load)(&a2, sum + 2 * OIC_LANES);
    OF(oic_lanes_load)(&a3, sum + 3 * OIC_LANES);
    for (ptrdiff_t k = 0; k < n; ++k) {
        const S p = x[k * xk], *const q = w + k * wk;
        OF(oic_lanes_madd)(&a0, p, q);
        OF(oic_lanes_madd)(&a1, p, q + group);
        OF(oic_lanes_madd)(&a2, p, q + 2 * group);
        OF(oic_lanes_madd)(&a3, p, q + 3 * group);
    }
    OF(oic_lanes_store)(sum, &a0);
    OF(oic_lanes_store)(sum + OIC_LANES, &a1);
    OF(oic_lanes_store)(sum + 2 * OIC_LANES, &a2);
    OF(oic_lanes_store)(sum + 3 * OIC_LANES, &a3);
}

/* The same for one chain. */
OIC_LOOP void OF(oic_chains_1x1)(S *restrict sum, const S *restrict x, ptrdiff_t xk, const S *restrict w,
                                      ptrdiff_t wk, ptrdiff_t n)
{
    LANES a;
    OF(oic_lanes_load)(&a, sum);
    for (ptrdiff_t k = 0; k < n; ++k) {
        OF(oic_lanes_madd)(&a, x[k * xk], w + k * wk);
    }
    OF(oic_lanes_store)(sum, &a);
}

/* n steps of any number of neighbouring chains: sum[count] += x[k] * w[k][count], four steps at a time. */
OIC_LOOP void OF(oic_chains)(S *restrict sum, const S *restrict x, ptrdiff_t xk, const S *restrict w, ptrdiff_t wk,
                             ptrdiff_t n, ptrdiff_t count)
{
    ptrdiff_t k = 0;
    for (; k + 4 <= n; k += 4) {
        const S p0 = x[k * xk], p1 = x[(k + 1) * xk], p2 = x[(k + 2) * xk], p3 = x[(k + 3) * xk];
        const S *const w0 = w + k * wk, *const w1 = w0 + wk, *const w2 = w1 + wk, *const w3 = w2 + wk;
        for (ptrdiff_t l = 0; l < count; ++l) {
            const S two = OF(oic_madd)(p1, w1[l], OF(oic_madd)(p0, w0[l], sum[l]));
            sum[l] = OF(oic_madd)(p3, w3[l], OF(oic_madd)(p2, w2[l], two));
        }
    }
    for (; k < n; ++k) {
        for (ptrdiff_t l = 0; l < count; ++l) {
            sum[l] = OF(oic_madd)(x[k * xk], w[k * wk + l], sum[l]);
        }
    }
}

/* The sum of sixteen numbers: 8 + 8, 4 + 4, 2 + 2, 1 + 1. */
static inline S OF(oic_lanes_sum)(const LANES *v)
{
    LANES a = *v;
    for (int half = COUNT / 2; half > 0; half /= 2) {
        for (int i = 0; i < half; ++i) {
            a.part[i] += a.part[i + half];
        }
    }
    return OF(oic_register_sum)(a.part[0]);
}

/* The sum of x[i] * w[i] in sixteen sums, product i in sum i mod 16: for rows that lie where no panel can be made. */
OIC_LOOP S OF(oic_dot)(const S *x, const S *w, ptrdiff_t n)
{
    const ptrdiff_t whole = n - n % OIC_LANES;
    LANES a;
    S rest[OIC_LANES];
    OF(oic_lanes_zero)(&a);
    for (ptrdiff_t i = 0; i < whole; i += OIC_LANES) {
        for (int r = 0; r < COUNT; ++r) {
            REGISTER p, q;
            memcpy(&p, x + i + r * WIDTH, sizeof p);
            memcpy(&q, w + i + r * WIDTH, sizeof q);
            a.part[r] = OF(oic_register_madd)(p, q, a.part[r]);
        }
    }
    if (whole < n) {
        OF(oic_lanes_store)(rest, &a);
        for (ptrdiff_t i = whole; i < n; ++i) {
            rest[i - whole] = OF(oic_madd)(x[i], w[i], rest[i - whole]);
        }
        OF(oic_lanes_load)(&a, rest);
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
