/* oic_dequantize_X_W_B: y[outer, n, inner] of float type W = (x - zero_point[n]) * scale[n]; zero_point is of
   type B, or NULL.  y overlaps no operand. */
#include "element.h"

#include "../simd/sums.h"
#include "common/scaled.h"
#include "common/affine.inc.h"

typedef ARGS(oic_affine) ARGS(oic_dequantize);

/* y[from..from+m-1], which are a part. */
static inline void NAME(oic_dequantize_some)(const ARGS(oic_dequantize) *a, ptrdiff_t from, ptrdiff_t m,
                                             const NAME(oic_affine_each) *by)
{
    const T *restrict const x = a->x;
    W_T *restrict const y = a->y;
    const float *restrict const scale = by->scale;
    if (sizeof(T) > 2 || !by->small) {
        for (ptrdiff_t e = 0; e < m; ++e) {
            W_STORE(y, from + e, (W_C)((int64_t)LOAD(x, from + e) - by->zero[e]) * (W_C)scale[e]);
        }
        return;
    }
    for (ptrdiff_t e = 0; e < m; ++e) {
        W_STORE(y, from + e, (W_C)((int32_t)LOAD(x, from + e) - by->low[e]) * (W_C)scale[e]);
    }
}

/* Units first..end-1 of elements. */
static inline void NAME(oic_dequantize_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(oic_dequantize) *const a = args;
    const ptrdiff_t last = oic_scaled_end(a->outer * a->n * a->inner, end);
    NAME(oic_affine_each) by = {.many = 0};
    (void)worker;
    for (ptrdiff_t at = first * OIC_SCALED_UNIT, m; at < last; at += m) {
        m = NAME(oic_affine_next)(a, at, last, &by);
        for (ptrdiff_t i = 0; i < m; i += OIC_HELD) {
            NAME(oic_dequantize_some)(a, at + i, m - i < OIC_HELD ? m - i : OIC_HELD, &by);
        }
    }
}

static inline void NAME(oic_dequantize)(const ARGS(oic_dequantize) *a)
{
    NAME(oic_dequantize_part)(a, 0, oic_scaled_units(a->outer * a->n * a->inner), 0);
}

#include "end.h"
