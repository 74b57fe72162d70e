/* The functions of rows.h for OIC_S, f32 or f64; OIC_FOLD: oic_fold and oic_turn
   are there already; OIC_MAXIMA: registers have maxima. */
#define S OIC_PASTE(oic_stored_, OIC_S)
#define OF(f) OIC_PASTE(f##_, OIC_S)
#define REGISTER OF(oic_register)
#define LANES OF(oic_lanes)
#define WIDTH ((ptrdiff_t)(sizeof(REGISTER) / sizeof(S)))
#define COUNT ((int)(OIC_LANES * sizeof(S) / sizeof(REGISTER)))

#if !OIC_FOLD
typedef S OF(oic_folding);

static inline S OF(oic_folding_of)(const LANES *a)
{
    return OF(oic_lanes_sum)(a);
}

static inline void OF(oic_fold)(S *restrict to, const S *a)
{
    memcpy(to, a, OIC_FOLDED * sizeof(S));
}
#endif

#if !OIC_FOLD
static inline void OF(oic_turn)(const S *r0, const S *r1, const S *r2, const S *r3, S *restrict to)
{
    for (int d = 0; d < 4; ++d) {
        to[d * OIC_LANES] = r0[d];
        to[d * OIC_LANES + 1] = r1[d];
        to[d * OIC_LANES + 2] = r2[d];
        to[d * OIC_LANES + 3] = r3[d];
    }
}
#endif

/* Four columns of a panel, to[n, 16 apart][4], from four rows of n numbers, or from `rows` and the last of them again. */
static inline void OF(oic_columns)(const S *row, ptrdiff_t ld, ptrdiff_t rows, ptrdiff_t n, S *restrict to)
{
    const S *const r1 = row + (rows > 1 ? ld : 0), *const r2 = rows > 2 ? row + 2 * ld : r1;
    const S *const r3 = rows > 3 ? row + 3 * ld : r2;
    const ptrdiff_t whole = n - n % 4;
    ptrdiff_t d = 0;
    for (; d < whole; d += 4) {
        OF(oic_turn)(row + d, r1 + d, r2 + d, r3 + d, to + d * OIC_LANES);
    }
    for (; d < n; ++d) {
        to[d * OIC_LANES] = row[d];
        to[d * OIC_LANES + 1] = r1[d];
        to[d * OIC_LANES + 2] = r2[d];
        to[d * OIC_LANES + 3] = r3[d];
    }
}

#if OIC_MAXIMA
/* high[rows] = the largest of top and of the numbers of rows of x, pitch apart, n of row r being whole lanes, that are numbers. */
OIC_LOOP void OF(oic_largest_of)(const S *x, ptrdiff_t pitch, ptrdiff_t rows, const uint8_t *restrict n, const S *restrict top,
                                 S *restrict high)
{
    for (ptrdiff_t r = 0; r < rows; ++r, x += pitch) {
        if (WIDTH == 1) {
            high[r] = top[r];
            for (ptrdiff_t j = 0; j < n[r]; ++j) {
                high[r] = x[j] > high[r] ? x[j] : high[r];
            }
            continue;
        }
        LANES a;
        OIC_UNROLLED
        for (int i = 0; i < COUNT; ++i) {
            a.part[i] = OF(oic_register_of)(top[r]);
        }
        for (ptrdiff_t j = 0; j < n[r]; j += OIC_LANES) {
            OIC_UNROLLED
            for (int i = 0; i < COUNT; ++i) {
                a.part[i] = OF(oic_register_max)(OF(oic_register_load)(x + j + i * WIDTH), a.part[i]);
            }
        }
        high[r] = OF(oic_lanes_largest)(&a);
    }
}
#else
OIC_LOOP void OF(oic_largest_of)(const S *x, ptrdiff_t pitch, ptrdiff_t rows, const uint8_t *restrict n, const S *restrict top,
                                 S *restrict high)
{
    for (ptrdiff_t r = 0; r < rows; ++r, x += pitch) {
        S a[OIC_LANES];
        for (int l = 0; l < OIC_LANES; ++l) {
            a[l] = top[r];
        }
        for (ptrdiff_t j = 0; j < n[r]; j += OIC_LANES) {
            for (int l = 0; l < OIC_LANES; ++l) {
                a[l] = x[j + l] > a[l] ? x[j + l] : a[l];
            }
        }
        high[r] = a[0];
        for (int l = 1; l < OIC_LANES; ++l) {
            high[r] = a[l] > high[r] ? a[l] : high[r];
        }
    }
}
#endif

#if OIC_MAXIMA
/* high[16] = the largest of top[16] and of x[n], number i beside top[i mod 16], that are numbers; n is whole lanes. */
static inline void OF(oic_largest_beside)(const S *restrict x, ptrdiff_t n, const S *restrict top, S *restrict high)
{
    LANES a;
    OF(oic_lanes_load)(&a, top);
    for (ptrdiff_t j = 0; j < n; j += OIC_LANES) {
        OIC_UNROLLED
        for (int i = 0; i < COUNT; ++i) {
            a.part[i] = OF(oic_register_max)(OF(oic_register_load)(x + j + i * WIDTH), a.part[i]);
        }
    }
    OF(oic_lanes_store)(high, &a);
}
#endif

/* to[n] *= factor, n being whole lanes. */
static inline void OF(oic_scaled)(S *restrict to, ptrdiff_t n, S factor)
{
    const REGISTER all = OF(oic_register_of)(factor);
    for (ptrdiff_t i = 0; i < n; i += OIC_LANES) {
        OIC_UNROLLED
        for (int r = 0; r < COUNT; ++r) {
            S *const at = to + i + r * WIDTH;
            OF(oic_register_store)(at, OF(oic_register_load)(at) * all);
        }
    }
}

/* to[n] = few * factor + many, n being whole lanes; `to` may be either. */
static inline void OF(oic_joined)(S *to, const S *few, const S *many, ptrdiff_t n, S factor)
{
    const REGISTER all = OF(oic_register_of)(factor);
    for (ptrdiff_t i = 0; i < n; i += OIC_LANES) {
        OIC_UNROLLED
        for (int r = 0; r < COUNT; ++r) {
            const ptrdiff_t at = i + r * WIDTH;
            OF(oic_register_store)(to + at, OF(oic_register_madd)(OF(oic_register_load)(few + at), all, OF(oic_register_load)(many + at)));
        }
    }
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
#undef OIC_MAXIMA
