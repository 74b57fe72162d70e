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

/* Units first..end-1 of elements. */
static inline void NAME(oic_requantize_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(oic_requantize) *const a = args;
    const oic_requantized_range within = oic_requantized_within((int64_t)LOW, (int64_t)HIGH, a->zero_point);
    const int each = a->inner == 1; /* they go along the last axis */
    const ptrdiff_t columns = each ? a->n : a->inner, last = oic_scaled_end(a->outer * a->n * a->inner, end);
    oic_scaled_run run = oic_scaled_before(first * OIC_SCALED_UNIT, columns);
    const oic_requantized by = {a->multiplier, a->shift, a->n > 1, a->zero_point, a->nearest};
    (void)worker;
    while (oic_scaled_next(&run, columns, OIC_HELD, last)) {
        uint32_t v[OIC_HELD];
        memcpy(v, a->x + run.at, (size_t)run.count * sizeof *a->x);
        if (each) {
            oic_requantized_each(&by, v, run.count, run.column, within);
        } else {
            oic_requantized_sums(&by, v, run.count, run.row % a->n, within);
        }
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
