/* oic_requantize_X: y[outer, n, inner] of integer type X = x scaled by multiplier[n] * 2^(shift[n] - 31), plus
   zero_point, saturated; with one rounding if `nearest`, else as TensorFlow Lite does.  y overlaps no operand. */
#include "element.h"

#include "../math/fixed_point.h"

typedef struct {
    const int32_t *x, *multiplier;
    const int8_t *shift;
    T *y;
    ptrdiff_t outer, n, inner;
    int64_t zero_point;
    int nearest;
} ARGS(oic_requantize);

static inline void NAME(oic_requantize)(const ARGS(oic_requantize) *a)
{
    const ptrdiff_t inner = a->inner;
    for (ptrdiff_t o = 0; o < a->outer; ++o) {
        for (ptrdiff_t p = 0; p < a->n; ++p) {
            const int32_t multiplier = a->multiplier[p];
            const int8_t shift = a->shift[p];
            for (ptrdiff_t e = 0; e < inner; ++e) {
                const ptrdiff_t i = (o * a->n + p) * inner + e;
                const int64_t v = a->nearest ? oic_scale_nearest(a->x[i], multiplier, shift)
                                             : oic_scale_tflite(a->x[i], multiplier, shift);
                STORE(a->y, i, (C)oic_saturated_i64(v + a->zero_point, LOW, HIGH));
            }
        }
    }
}

#include "end.h"
