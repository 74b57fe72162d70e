/* oic_layer_norm_X_W_B: y[outer, n] = (x - mean) / sqrt(variance + eps) * gamma[n] + beta[n], the variance about the
   mean, in a second pass; gamma of type W, beta of type B or NULL.  y may be x.

   Elements and squares are added in parts of OIC_PART, each in the order of sums.h, the parts in order. */
#include "element.h"

#include "../math/scalar_math.h"
#include "../simd/sums.h"

typedef struct {
    const T *x;
    const W_T *gamma;
    const B_T *beta;
    T *y;
    ptrdiff_t outer, n;
    C eps;
} ARGS(oic_layer_norm);

/* Rows first..end-1. */
static inline void NAME(oic_layer_norm_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(oic_layer_norm) *const a = args;
    const W_T *restrict const gamma = a->gamma;
    const B_T *restrict const beta = a->beta;
    const ptrdiff_t n = a->n;
    (void)worker;
    for (ptrdiff_t o = first; o < end; ++o) {
        const T *const x = a->x + o * n;
        T *const y = a->y + o * n;
        C wide[OIC_PART], part[OIC_HELD], sum = (C)0, squares = (C)0;
        for (ptrdiff_t i = 0; i < n; i += OIC_PART) {
            const ptrdiff_t m = n - i < OIC_PART ? n - i : OIC_PART;
            sum += MATH(oic_sum)(WIDEN(x + i, m, wide), m);
        }
        const C mean = sum / (C)n;
        for (ptrdiff_t i = 0; i < n; i += OIC_PART) {
            const ptrdiff_t m = n - i < OIC_PART ? n - i : OIC_PART;
            squares += MATH(oic_sum_squares)(WIDEN(x + i, m, wide), m, mean);
        }
        const C r = (C)1 / MATH(oic_sqrt)(squares / (C)n + a->eps);
        for (ptrdiff_t i = 0; i < n; i += OIC_HELD) {
            const ptrdiff_t m = n - i < OIC_HELD ? n - i : OIC_HELD;
            const C *const from = WIDEN(x + i, m, wide);
            for (ptrdiff_t e = 0; e < m; ++e) {
                part[e] = (from[e] - mean) * r * (C)W_LOAD(gamma, i + e);
            }
            for (ptrdiff_t e = 0; beta != NULL && e < m; ++e) {
                part[e] += (C)B_LOAD(beta, i + e);
            }
            for (ptrdiff_t e = 0; e < m; ++e) {
                STORE(y, i + e, part[e]);
            }
        }
    }
}

static inline void NAME(oic_layer_norm)(const ARGS(oic_layer_norm) *a)
{
    NAME(oic_layer_norm_part)(a, 0, a->outer, 0);
}

#include "end.h"
