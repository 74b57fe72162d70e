/* oic_sample_X: *y is one index of logits[V] drawn by u (oic_sample_weights); temperature 0 takes the first of the
   largest.  `work` is memory of V doubles and as many int32_t.

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

static inline void NAME(oic_sample)(const ARGS(oic_sample) *a)
{
    const ptrdiff_t V = a->V;
    double *const p = a->work;
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
    for (ptrdiff_t i = 0; i < V; ++i) {
        const double v = (double)(LOAD(a->logits, i) / a->temperature);
        p[i] = v == v ? v : -(double)INFINITY; /* NaN is never drawn */
    }
    *a->y = oic_sample_weights(p, (int32_t *)(void *)(p + V), V, a->top_k, (double)a->top_p, (double)*a->u);
}

#include "end.h"
