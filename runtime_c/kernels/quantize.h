/* oic_quantize_X_W_B: y[outer, n, inner] = round(x / scale[n]) + zero_point[n] as integers of type W, saturated; halves
   to even, NaN gives 0.  zero_point is of type B, or NULL.  y overlaps no operand. */
#include "element.h"

#include "../math/rounding.h"
#include "../simd/sums.h"
#include "common/scaled.h"
#include "common/affine.inc.h"

typedef ARGS(oic_affine) ARGS(oic_quantize);

/* y[from..from+m-1], which are a part. */
static inline void NAME(oic_quantize_some)(const ARGS(oic_quantize) *a, ptrdiff_t from, ptrdiff_t m,
                                           const NAME(oic_affine_each) *by)
{
    const T *restrict const x = a->x + from;
    W_T *restrict const y = a->y;
    const float *restrict const scale = by->scale;
    int32_t v[OIC_HELD];
    if (sizeof(C) == 4 && (W_BITS > 16 || !by->small)) { /* beyond 2^33 no zero point matters; a small FPU has no doubles */
        for (ptrdiff_t e = 0; e < m; ++e) {
            const float ratio = (float)(LOAD(x, e) / (C)scale[e]), raised = oic_select_f32(ratio > -0x1p33f, ratio, -0x1p33f);
            const float whole = oic_round_half_even_f32(oic_select_f32(raised < 0x1p33f, raised, 0x1p33f));
            const int32_t high = (int32_t)(whole * 0x1p-16f), low = (int32_t)(whole - (float)high * 0x1p16f); /* all exact */
            const int64_t sum = ratio == ratio ? (int64_t)high * 65536 + low + by->zero[e] : 0;
            W_STORE(y, from + e, (W_C)(sum < (int64_t)W_LOW ? (int64_t)W_LOW : sum > (int64_t)W_HIGH ? (int64_t)W_HIGH : sum));
        }
        return;
    }
    if (sizeof(C) > 4) {
        for (ptrdiff_t e = 0; e < m; ++e) {
            const double sum = oic_round_half_even_f64((double)(LOAD(x, e) / (C)scale[e])) + (double)by->zero[e];
            W_STORE(y, from + e, (W_C)oic_saturated_f64(sum, W_LOW, W_HIGH));
        }
        return;
    }
    for (ptrdiff_t e = 0; e < m; ++e) { /* limits are whole, so that it is the same before and after rounding */
        const float ratio = (float)(LOAD(x, e) / (C)scale[e]);
        const float low = (float)((int32_t)W_LOW - by->low[e]), high = (float)((int32_t)W_HIGH - by->low[e]);
        const float raised = oic_select_f32(ratio > low, ratio, low);
        const float limited = oic_select_f32(raised < high, raised, high);
        v[e] = ((int32_t)oic_round_half_even_f32(limited) + by->low[e]) & -(int32_t)(ratio == ratio);
    }
    for (ptrdiff_t e = 0; e < m; ++e) {
        W_STORE(y, from + e, (W_C)v[e]);
    }
}

/* Units first..end-1 of elements. */
static inline void NAME(oic_quantize_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(oic_quantize) *const a = args;
    const ptrdiff_t last = oic_scaled_end(a->outer * a->n * a->inner, end);
    NAME(oic_affine_each) by = {.many = 0};
    (void)worker;
    for (ptrdiff_t at = first * OIC_SCALED_UNIT, m; at < last; at += m) {
        m = NAME(oic_affine_next)(a, at, last, &by);
        for (ptrdiff_t i = 0; i < m; i += OIC_HELD) {
            NAME(oic_quantize_some)(a, at + i, m - i < OIC_HELD ? m - i : OIC_HELD, &by);
        }
    }
}

static inline void NAME(oic_quantize)(const ARGS(oic_quantize) *a)
{
    NAME(oic_quantize_part)(a, 0, oic_scaled_units(a->outer * a->n * a->inner), 0);
}

#include "end.h"
