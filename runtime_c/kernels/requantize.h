/* oic_requantize_X: y[outer, n, inner] of integer type X = x scaled by multiplier[n] * 2^(shift[n] - 31), plus
   zero_point, saturated; with one rounding if `nearest`, else as TensorFlow Lite does.  y overlaps no operand. */
#include "element.h"

#include "../math/fixed_point.h"
#include "../simd/sums.h"
#include "common/scaled.h"

#define WRAP OIC_PASTE(oic_wrap_, OIC_X)

typedef struct {
    const int32_t *x, *multiplier;
    const int8_t *shift;
    T *y;
    ptrdiff_t outer, n, inner;
    int64_t zero_point;
    int nearest;
} ARGS(oic_requantize);

/* to = n elements of x from i on, scaled: all by number p, or each by one from there on. */
static inline void NAME(oic_requantize_scale)(const ARGS(oic_requantize) *a, int32_t *restrict to, ptrdiff_t i, ptrdiff_t n,
                                              ptrdiff_t p, int each)
{
    const int32_t *restrict const x = a->x + i, *restrict const multiplier = a->multiplier + p;
    const int8_t *restrict const shift = a->shift + p;
    const int32_t m = *multiplier;
    const int s = *shift, left = oic_shift_of(s), right = oic_shift_of(-s);
    if (a->nearest && each) {
        for (ptrdiff_t e = 0; e < n; ++e) {
            to[e] = oic_scale_nearest(x[e], multiplier[e], shift[e]);
        }
    } else if (a->nearest) {
        for (ptrdiff_t e = 0; e < n; ++e) {
            to[e] = oic_scale_nearest(x[e], m, s);
        }
    } else if (each) {
        for (ptrdiff_t e = 0; e < n; ++e) {
            to[e] = oic_scale_tflite(x[e], multiplier[e], oic_shift_of(shift[e]), oic_shift_of(-shift[e]));
        }
    } else {
        for (ptrdiff_t e = 0; e < n; ++e) {
            to[e] = oic_scale_tflite(x[e], m, left, right);
        }
    }
}

/* Units first..end-1 of elements. */
static inline void NAME(oic_requantize_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(oic_requantize) *const a = args;
    /* A zero point beyond these saturates everything, as these do. */
    const int64_t zero = oic_saturated_i64(a->zero_point, (int64_t)LOW - INT32_MAX, (int64_t)HIGH - INT32_MIN);
    const int32_t low = (int32_t)oic_saturated_i64((int64_t)LOW - zero, INT32_MIN, INT32_MAX);
    const int32_t high = (int32_t)oic_saturated_i64((int64_t)HIGH - zero, INT32_MIN, INT32_MAX);
    const int each = a->inner == 1; /* they go along the last axis */
    const ptrdiff_t columns = each ? a->n : a->inner, last = oic_scaled_end(a->outer * a->n * a->inner, end);
    oic_scaled_run run = oic_scaled_before(first * OIC_SCALED_UNIT, columns);
    (void)worker;
    while (oic_scaled_next(&run, columns, OIC_PART, last)) {
        int32_t v[OIC_PART];
        NAME(oic_requantize_scale)(a, v, run.at, run.count, each ? run.column : run.row % a->n, each);
        for (ptrdiff_t j = 0; j < run.count; ++j) {
            const int32_t raised = v[j] < low ? low : v[j], limited = raised > high ? high : raised;
            STORE(a->y, run.at + j, WRAP((uint32_t)limited + (uint32_t)zero));
        }
    }
}

static inline void NAME(oic_requantize)(const ARGS(oic_requantize) *a)
{
    NAME(oic_requantize_part)(a, 0, oic_scaled_units(a->outer * a->n * a->inner), 0);
}

#undef WRAP
#include "end.h"
