/* x[outer, n, inner] and y, where a number p of n has a scale and a zero point; zero_point is of type B, or NULL: all are 0.
   y overlaps no operand. */
typedef struct {
    const T *x;
    const float *scale;
    const B_T *zero_point;
    W_T *y;
    ptrdiff_t outer, n, inner;
} ARGS(oic_affine);

/* Of OIC_HELD elements, each its own; where all zero points are small, `low` has them.  All is 0 to begin with.
   scale  `own`, or where these lie one behind the other
   many   of how many it is known; 0: of none */
typedef struct {
    const float *scale;
    float own[OIC_HELD];
    int64_t zero[OIC_HELD];
    int32_t low[OIC_HELD];
    int small;
    ptrdiff_t many;
} NAME(oic_affine_each);

/* Elements from `many` on of a part have the zero points of so many numbers from p on: one each, or all that of the first. */
static inline void NAME(oic_affine_zeros)(const ARGS(oic_affine) *a, NAME(oic_affine_each) *to, ptrdiff_t m, ptrdiff_t p, int each)
{
    const ptrdiff_t i = to->many;
    for (ptrdiff_t e = 0; e < m && a->zero_point != NULL; ++e) {
        const int64_t zero = (int64_t)B_LOAD(a->zero_point, each ? p + e : p);
        to->zero[i + e] = zero;
        to->low[i + e] = (int32_t)zero;
        to->small &= zero >= -OIC_AFFINE_SMALL && zero <= OIC_AFFINE_SMALL;
    }
    to->many += m;
}

/* The same, and the scales. */
static inline void NAME(oic_affine_add)(const ARGS(oic_affine) *a, NAME(oic_affine_each) *to, ptrdiff_t m, ptrdiff_t p, int each)
{
    float *const own = to->own + to->many;
    const float scale = a->scale[p];
    to->scale = to->own;
    if (each) {
        memcpy(own, a->scale + p, (size_t)m * sizeof(float));
    } else {
        for (ptrdiff_t e = 0; e < m; ++e) {
            own[e] = scale;
        }
    }
    NAME(oic_affine_zeros)(a, to, m, p, each);
}

/* How many of the elements from `at` on, before `last`, have the parameters that `to` gets; of more than a part, every part
   has these.  Along the last axis all parts have the same, if they are whole rows. */
static inline ptrdiff_t NAME(oic_affine_next)(const ARGS(oic_affine) *a, ptrdiff_t at, ptrdiff_t last, NAME(oic_affine_each) *to)
{
    const ptrdiff_t left = last - at;
    if (a->inner == 1 && a->n > OIC_HELD) {
        const ptrdiff_t column = at % a->n, most = a->n - column < OIC_HELD ? a->n - column : OIC_HELD;
        to->many = 0;
        to->small = 1;
        to->scale = a->scale + column;
        NAME(oic_affine_zeros)(a, to, most, column, 1);
        return left < most ? left : most;
    }
    if (a->inner == 1) {
        const ptrdiff_t most = OIC_HELD / a->n * a->n, few = left < most ? left : most;
        if (to->many == 0) { /* the first part is the longest */
            to->small = 1;
            if (a->n == 1) {
                NAME(oic_affine_add)(a, to, few, 0, 0);
            }
            for (ptrdiff_t column = at % a->n, m; to->many < few; column = 0) {
                m = a->n - column < few - to->many ? a->n - column : few - to->many;
                NAME(oic_affine_add)(a, to, m, column, 1);
            }
        }
        return few;
    }
    to->many = 0;
    to->small = 1;
    oic_scaled_run run = oic_scaled_before(at, a->inner);
    ptrdiff_t m = 0;
    while (m < OIC_HELD && oic_scaled_next(&run, a->inner, m == 0 ? left : OIC_HELD - m, last)) {
        NAME(oic_affine_add)(a, to, run.count < OIC_HELD ? run.count : OIC_HELD, run.row % a->n, 0);
        m += run.count;
    }
    return m;
}
