/* oic_requantize_X: y[outer, n, inner] of integer type X = x scaled by multiplier[n] * 2^(shift[n] - 31), plus
   zero_point, saturated; with one rounding if `nearest`, else as TensorFlow Lite does.  y overlaps no operand. */
#include "element.h"

#include "../simd/sums.h"
#include "common/requantized.h"
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

/* v = n results, of elements of x from i on: all by number p, or each by one from there on. */
static inline void NAME(oic_requantize_some)(const ARGS(oic_requantize) *a, uint32_t *restrict v, ptrdiff_t i, ptrdiff_t n,
                                             ptrdiff_t p, int each, oic_requantized_range within)
{
    const int32_t *restrict const x = a->x + i, *restrict const multiplier = a->multiplier + p;
    const int8_t *restrict const shift = a->shift + p;
    if (!each) {
        memcpy(v, x, (size_t)n * sizeof(int32_t));
        oic_requantized_alike(v, n, *multiplier, *shift, a->nearest, within);
    } else if (a->nearest) {
        for (ptrdiff_t e = 0; e < n; ++e) {
            v[e] = (uint32_t)oic_scale_nearest(x[e], multiplier[e], shift[e]);
        }
        oic_requantized_limits(v, n, within);
    } else {
        for (ptrdiff_t e = 0; e < n; ++e) {
            v[e] = (uint32_t)oic_scale_tflite(x[e], multiplier[e], oic_shift_of(shift[e]), oic_shift_of(-shift[e]));
        }
        oic_requantized_limits(v, n, within);
    }
}

/* Units first..end-1 of elements. */
static inline void NAME(oic_requantize_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(oic_requantize) *const a = args;
    const oic_requantized_range within = oic_requantized_within((int64_t)LOW, (int64_t)HIGH, a->zero_point);
    const int each = a->inner == 1; /* they go along the last axis */
    const ptrdiff_t columns = each ? a->n : a->inner, last = oic_scaled_end(a->outer * a->n * a->inner, end);
    oic_scaled_run run = oic_scaled_before(first * OIC_SCALED_UNIT, columns);
    (void)worker;
    while (oic_scaled_next(&run, columns, OIC_PART, last)) {
        uint32_t v[OIC_PART];
        NAME(oic_requantize_some)(a, v, run.at, run.count, each ? run.column : run.row % a->n, each, within);
        for (ptrdiff_t e = 0; e < run.count; ++e) {
            STORE(a->y, run.at + e, WRAP(v[e]));
        }
    }
}

static inline void NAME(oic_requantize)(const ARGS(oic_requantize) *a)
{
    NAME(oic_requantize_part)(a, 0, oic_scaled_units(a->outer * a->n * a->inner), 0);
}

#undef WRAP
#include "end.h"
