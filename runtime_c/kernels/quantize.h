/* oic_quantize_X_W_B: y[outer, n, inner] = round(x / scale[n]) + zero_point[n] as integers of type W, saturated; halves
   to even, NaN gives 0.  zero_point is of type B, or NULL.  y overlaps no operand. */
#include "element.h"

#include "../math/rounding.h"

typedef struct {
    const T *x;
    const float *scale;
    const B_T *zero_point;
    W_T *y;
    ptrdiff_t outer, n, inner;
} ARGS(oic_quantize);

static inline void NAME(oic_quantize)(const ARGS(oic_quantize) *a)
{
    const T *restrict const x = a->x;
    W_T *restrict const y = a->y;
    const ptrdiff_t inner = a->inner;
    for (ptrdiff_t o = 0; o < a->outer; ++o) {
        for (ptrdiff_t p = 0; p < a->n; ++p) {
            const C scale = (C)a->scale[p];
            const double zero = a->zero_point != NULL ? (double)B_LOAD(a->zero_point, p) : 0.0;
            for (ptrdiff_t e = 0; e < inner; ++e) {
                const ptrdiff_t i = (o * a->n + p) * inner + e;
                const double v = oic_round_half_even_f64((double)(LOAD(x, i) / scale)) + zero;
                W_STORE(y, i, (W_C)oic_saturated_f64(v, W_LOW, W_HIGH));
            }
        }
    }
}

#include "end.h"
