/* oic_log_softmax_X: y[outer, n, inner] = x - max - ln of the sum of exp(x - max), along n.  y may be x. */
#include "element.h"

#include "../math/scalar_math.h"
#include "../simd/sums.h"

typedef struct {
    const T *x;
    T *y;
    ptrdiff_t outer, n, inner;
} ARGS(oic_log_softmax);

static inline void NAME(oic_log_softmax)(const ARGS(oic_log_softmax) *a)
{
    const ptrdiff_t n = a->n, inner = a->inner;
    for (ptrdiff_t o = 0; o < a->outer; ++o) {
        const T *const x = a->x + o * n * inner;
        T *const y = a->y + o * n * inner;
        for (ptrdiff_t e = 0; e < inner; ++e) {
            C top = (C)-INFINITY, sum = (C)0, lost = (C)0;
            for (ptrdiff_t i = 0; i < n; ++i) {
                const C v = LOAD(x, i * inner + e);
                top = v > top ? v : top;
            }
            for (ptrdiff_t i = 0; i < n; ++i) {
                sum = MATH(oic_add_exactly)(sum, MATH(oic_exp)(LOAD(x, i * inner + e) - top), &lost);
            }
            const C ln = MATH(oic_log)(sum);
            for (ptrdiff_t i = 0; i < n; ++i) {
                STORE(y, i * inner + e, LOAD(x, i * inner + e) - top - ln);
            }
        }
    }
}

#include "end.h"
