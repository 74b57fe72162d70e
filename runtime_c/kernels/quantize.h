/* oic_quantize_X_W_B: y[outer, n, inner] = round(x / scale[n]) + zero_point[n] as integers of type W, saturated; halves
   to even, NaN gives 0.  zero_point is of type B, or NULL.  y overlaps no operand. */
#include "element.h"

#include "../math/rounding.h"
#include "../simd/sums.h"
#include "common/scaled.h"

#define ZERO (1 << 22) /* with narrow integers, sums that f32 has exactly */

typedef struct {
    const T *x;
    const float *scale;
    const B_T *zero_point;
    W_T *y;
    ptrdiff_t outer, n, inner;
} ARGS(oic_quantize);

/* y[from..from+m-1], of one scale and zero point. */
static inline void NAME(oic_quantize_row)(const ARGS(oic_quantize) *a, ptrdiff_t from, ptrdiff_t m, C scale, int64_t zero)
{
    const T *restrict const x = a->x;
    W_T *restrict const y = a->y;
    if (sizeof(C) > 4 || W_BITS > 16 || zero < -ZERO || zero > ZERO) {
        for (ptrdiff_t i = from; i < from + m; ++i) {
            const double v = oic_round_half_even_f64((double)(LOAD(x, i) / scale)) + (double)zero;
            W_STORE(y, i, (W_C)oic_saturated_f64(v, W_LOW, W_HIGH));
        }
        return;
    }
    const int32_t add = (int32_t)zero, low = (int32_t)W_LOW - add, high = (int32_t)W_HIGH - add;
    for (ptrdiff_t i = 0, n; i < m; i += n) {
        int32_t v[OIC_PART];
        n = m - i < OIC_PART ? m - i : OIC_PART;
        for (ptrdiff_t e = 0; e < n; ++e) { /* limits are whole, so that it is the same before and after rounding */
            const float ratio = (float)(LOAD(x, from + i + e) / scale);
            const float raised = oic_select_f32(ratio > (float)low, ratio, (float)low);
            const float limited = oic_select_f32(raised < (float)high, raised, (float)high);
            v[e] = ((int32_t)oic_round_half_even_f32(limited) + add) & -(int32_t)(ratio == ratio);
        }
        for (ptrdiff_t e = 0; e < n; ++e) {
            W_STORE(y, from + i + e, (W_C)v[e]);
        }
    }
}

/* Units first..end-1 of elements. */
static inline void NAME(oic_quantize_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(oic_quantize) *const a = args;
    const ptrdiff_t last = oic_scaled_end(a->outer * a->n * a->inner, end);
    oic_scaled_run run = oic_scaled_before(first * OIC_SCALED_UNIT, a->inner);
    (void)worker;
    while (oic_scaled_next(&run, a->inner, last, last)) {
        const ptrdiff_t p = run.row % a->n;
        const int64_t zero = a->zero_point != NULL ? (int64_t)B_LOAD(a->zero_point, p) : 0;
        NAME(oic_quantize_row)(a, run.at, run.count, (C)a->scale[p], zero);
    }
}

static inline void NAME(oic_quantize)(const ARGS(oic_quantize) *a)
{
    NAME(oic_quantize_part)(a, 0, oic_scaled_units(a->outer * a->n * a->inner), 0);
}

#undef ZERO
#include "end.h"
