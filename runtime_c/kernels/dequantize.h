/* oic_dequantize_X_W_B: y[outer, n, inner] of float type W = (x - zero_point[n]) * scale[n]; zero_point is of
   type B, or NULL.  y overlaps no operand. */
#include "element.h"

typedef struct {
    const T *x;
    const float *scale;
    const B_T *zero_point;
    W_T *y;
    ptrdiff_t outer, n, inner;
} ARGS(oic_dequantize);

static inline void NAME(oic_dequantize)(const ARGS(oic_dequantize) *a)
{
    const T *restrict const x = a->x;
    W_T *restrict const y = a->y;
    const ptrdiff_t inner = a->inner;
    for (ptrdiff_t o = 0; o < a->outer; ++o) {
        for (ptrdiff_t p = 0; p < a->n; ++p) {
            const W_C scale = (W_C)a->scale[p];
            const int64_t zero = a->zero_point != NULL ? (int64_t)B_LOAD(a->zero_point, p) : 0;
            for (ptrdiff_t e = 0; e < inner; ++e) {
                const ptrdiff_t i = (o * a->n + p) * inner + e;
                W_STORE(y, i, (W_C)((int64_t)LOAD(x, i) - zero) * scale);
            }
        }
    }
}

#include "end.h"
