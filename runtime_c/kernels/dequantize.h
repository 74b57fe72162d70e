/* oic_dequantize_X_W_B: y[outer, n, inner] of float type W = (x - zero_point[n]) * scale[n]; zero_point is of
   type B, or NULL.  y overlaps no operand. */
#include "element.h"

#include "common/scaled.h"

typedef struct {
    const T *x;
    const float *scale;
    const B_T *zero_point;
    W_T *y;
    ptrdiff_t outer, n, inner;
} ARGS(oic_dequantize);

/* Units first..end-1 of elements. */
static inline void NAME(oic_dequantize_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(oic_dequantize) *const a = args;
    const T *restrict const x = a->x;
    W_T *restrict const y = a->y;
    const ptrdiff_t last = oic_scaled_end(a->outer * a->n * a->inner, end);
    oic_scaled_run run = oic_scaled_before(first * OIC_SCALED_UNIT, a->inner);
    (void)worker;
    while (oic_scaled_next(&run, a->inner, last, last)) {
        const ptrdiff_t p = run.row % a->n;
        const W_C scale = (W_C)a->scale[p];
        const int64_t zero = a->zero_point != NULL ? (int64_t)B_LOAD(a->zero_point, p) : 0;
        for (ptrdiff_t i = run.at; i < run.at + run.count; ++i) {
            W_STORE(y, i, (W_C)((int64_t)LOAD(x, i) - zero) * scale);
        }
    }
}

static inline void NAME(oic_dequantize)(const ARGS(oic_dequantize) *a)
{
    NAME(oic_dequantize_part)(a, 0, oic_scaled_units(a->outer * a->n * a->inner), 0);
}

#include "end.h"
