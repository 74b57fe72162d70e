/* oic_sample_X: *y is one index of logits[V] drawn by u; temperature 0 takes the first of the largest.  Kept are values at
   least as large as the top_k-th largest (0: all), and if top_p is less than 1, of these the largest whose probabilities
   reach it, of equal ones the first.  `work` is memory of V doubles and as many int32_t.

   Order: probabilities are added in index order, for top_p those kept in order of size, all in double. */
#include "element.h"

#include "common/sampling.h"

typedef struct {
    const T *logits;
    const float *u;
    int32_t *y;
    double *work;
    ptrdiff_t V;
    C temperature;
    int64_t top_k;
    float top_p;
} ARGS(oic_sample);

/* x[n] = n logits from `first` on, divided by the temperature; NaN becomes -infinity, which is never drawn. */
OIC_LOOP void NAME(oic_sample_divided)(const ARGS(oic_sample) *a, ptrdiff_t first, ptrdiff_t n, double *restrict x)
{
    const T *const logits = a->logits;
    const C temperature = a->temperature;
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double v = (double)(LOAD(logits, first + i) / temperature);
        x[i] = oic_select_f64(v == v, v, -(double)INFINITY);
    }
}

/* Divides all logits and leaves in `work` those above `low` and the first `equals` equal to it, with their indices;
   returns their number. */
OIC_LOOP ptrdiff_t NAME(oic_sample_keep)(const ARGS(oic_sample) *a, double low, ptrdiff_t equals)
{
    double *const x = a->work;
    int32_t *const where = (int32_t *)(void *)(x + a->V);
    ptrdiff_t kept = 0;
    for (ptrdiff_t i = 0; i < a->V; i += OIC_HELD) {
        const ptrdiff_t n = a->V - i < OIC_HELD ? a->V - i : OIC_HELD;
        NAME(oic_sample_divided)(a, i, n, x + kept);
        kept += oic_sample_kept(x + kept, where + kept, n, i, low, &equals);
    }
    return kept;
}

static inline void NAME(oic_sample)(const ARGS(oic_sample) *a)
{
    const ptrdiff_t V = a->V;
    double *const x = a->work;
    if (a->temperature == (C)0) {
        ptrdiff_t best = 0;
        C top = (C)-INFINITY;
        for (ptrdiff_t i = 0; i < V; ++i) {
            const C v = LOAD(a->logits, i);
            best = v > top ? i : best;
            top = v > top ? v : top;
        }
        *a->y = (int32_t)best;
        return;
    }
    NAME(oic_sample_divided)(a, 0, V, x);
    const double top = oic_sample_top(x, V);
    const int few = a->top_k > 0 && a->top_k < (int64_t)V, likely = a->top_p < 1.0f;
    ptrdiff_t n = V;
    if (few) {
        n = NAME(oic_sample_keep)(a, oic_sample_kth(x, V, (ptrdiff_t)a->top_k), V);
    }
    if (likely) {
        ptrdiff_t equals = 0;
        const double enough = (double)a->top_p * oic_sample_total(x, n, top, 0);
        const double low = oic_sample_least(x, n, top, enough, &equals);
        n = NAME(oic_sample_keep)(a, low, equals);
    }
    const ptrdiff_t drawn = oic_sample_drawn(x, n, top, (double)*a->u);
    *a->y = few || likely ? ((const int32_t *)(const void *)(x + V))[drawn] : (int32_t)drawn;
}

#include "end.h"
