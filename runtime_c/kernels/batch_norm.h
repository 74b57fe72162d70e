/* oic_batch_norm_X: y[outer, channels, inner] = (x - mean) / sqrt(var + eps) * gamma + beta, parameters [channels].
   y may be x. */
#include "element.h"

#include "../math/scalar_math.h"

typedef struct {
    const T *x, *gamma, *beta, *mean, *var;
    T *y;
    ptrdiff_t outer, channels, inner;
    C eps;
} ARGS(oic_batch_norm);

/* Channels first..end-1 of all elements of the outer axes. */
static inline void NAME(oic_batch_norm_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(oic_batch_norm) *const a = args;
    const ptrdiff_t channels = a->channels, inner = a->inner;
    (void)worker;
    for (ptrdiff_t o = first; o < end; ++o) {
        const ptrdiff_t c = o % channels;
        const C scale = LOAD(a->gamma, c) / MATH(oic_sqrt)(LOAD(a->var, c) + a->eps);
        const C centre = LOAD(a->mean, c), added = LOAD(a->beta, c);
        const T *const x = a->x + o * inner;
        T *const y = a->y + o * inner;
        for (ptrdiff_t i = 0; i < inner; ++i) {
            STORE(y, i, (LOAD(x, i) - centre) * scale + added);
        }
    }
}

static inline void NAME(oic_batch_norm)(const ARGS(oic_batch_norm) *a)
{
    NAME(oic_batch_norm_part)(a, 0, a->outer * a->channels, 0);
}

#include "end.h"
