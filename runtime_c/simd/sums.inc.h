/* The functions of sums.h for OIC_S, f32 or f64. */
#define S OIC_PASTE(oic_stored_, OIC_S)
#define OF(f) OIC_PASTE(f##_, OIC_S)

/* The sum of x[n]. */
static inline S OF(oic_sum)(const S *x, ptrdiff_t n)
{
    const ptrdiff_t whole = n - n % OIC_LANES;
    S a[OIC_LANES] = {0};
    for (ptrdiff_t i = 0; i < whole; i += OIC_LANES) {
        for (ptrdiff_t l = 0; l < OIC_LANES; ++l) {
            a[l] += x[i + l];
        }
    }
    for (ptrdiff_t i = whole; i < n; ++i) {
        a[i - whole] += x[i];
    }
    return OF(oic_tree)(a);
}

/* The sum of (x[n] - centre)^2. */
static inline S OF(oic_sum_squares)(const S *x, ptrdiff_t n, S centre)
{
    const ptrdiff_t whole = n - n % OIC_LANES;
    S a[OIC_LANES] = {0};
    for (ptrdiff_t i = 0; i < whole; i += OIC_LANES) {
        for (ptrdiff_t l = 0; l < OIC_LANES; ++l) {
            const S v = x[i + l] - centre;
            a[l] += v * v;
        }
    }
    for (ptrdiff_t i = whole; i < n; ++i) {
        const S v = x[i] - centre;
        a[i - whole] += v * v;
    }
    return OF(oic_tree)(a);
}

/* The largest of x[n] that is a number, or `top`. */
static inline S OF(oic_largest)(const S *x, ptrdiff_t n, S top)
{
    const ptrdiff_t whole = n - n % OIC_LANES;
    S a[OIC_LANES];
    for (ptrdiff_t l = 0; l < OIC_LANES; ++l) {
        a[l] = top;
    }
    OF(oic_larger)(a, x, whole);
    for (ptrdiff_t i = whole; i < n; ++i) {
        a[i - whole] = x[i] > a[i - whole] ? x[i] : a[i - whole];
    }
    for (ptrdiff_t l = 0; l < OIC_LANES; ++l) {
        top = a[l] > top ? a[l] : top;
    }
    return top;
}

/* A sum of the sums of parts, in order: OIC_PARTS of them, and these sums then. */
typedef struct {
    S whole, some;
    ptrdiff_t parts; /* that `some` is the sum of */
} OF(oic_total);

static inline void OF(oic_total_add)(OF(oic_total) *t, S part)
{
    t->some += part;
    if (++t->parts == OIC_PARTS) {
        t->whole += t->some;
        t->some = (S)0;
        t->parts = 0;
    }
}

static inline S OF(oic_total_of)(const OF(oic_total) *t)
{
    return t->whole + t->some;
}

/* sum + v; *lost keeps what the sum has lost to rounding (Kahan 1965). */
static inline S OF(oic_add_exactly)(S sum, S v, S *restrict lost)
{
    const S y = v - *lost;
    const S t = sum + y;
    *lost = (t - sum) - y;
    return t;
}

#undef S
#undef OF
#undef OIC_S
