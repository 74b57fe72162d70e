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

static inline void NAME(oic_batch_norm)(const ARGS(oic_batch_norm) *a)
{
    const ptrdiff_t channels = a->channels, inner = a->inner;
    for (ptrdiff_t o = 0; o < a->outer * channels; ++o) {
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

#include "end.h"
