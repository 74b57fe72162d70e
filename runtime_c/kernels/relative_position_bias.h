/* oic_relative_position_bias_X: y[H, n, t] = table[bucket(j - (q_start + i)), h].  Distances below `exact` have
   a bucket each; further ones as many more as there are borders[count] not beyond them.  `half` buckets are for
   keys after the query, if bidirectional.  y overlaps no operand.  q_start may be any number: none is further away than
   OIC_FAR, which is behind all borders. */
#include "element.h"

#define OIC_FAR (INT64_C(1) << 62)

typedef struct {
    const T *table;
    float *y;
    ptrdiff_t H, n, t;
    int64_t q_start;
    ptrdiff_t half, exact;
    const ptrdiff_t *borders;
    ptrdiff_t count;
    int bidirectional;
} ARGS(oic_relative_position_bias);

/* Queries first..end-1. */
static inline void NAME(oic_relative_position_bias_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(oic_relative_position_bias) *const a = args;
    const ptrdiff_t H = a->H, n = a->n, t = a->t;
    const int64_t start = a->q_start < -OIC_FAR ? -OIC_FAR : a->q_start > OIC_FAR ? OIC_FAR : a->q_start;
    (void)worker;
    for (ptrdiff_t i = first; i < end; ++i) {
        for (ptrdiff_t j = 0; j < t; ++j) {
            const int64_t r = (int64_t)j - (start + (int64_t)i);
            const int64_t far = r < 0 ? -r : a->bidirectional ? r : 0;
            ptrdiff_t bucket = a->bidirectional && r > 0 ? a->half : 0;
            if (far < (int64_t)a->exact) {
                bucket += (ptrdiff_t)far;
            } else {
                ptrdiff_t beyond = 0;
                while (beyond < a->count && far >= (int64_t)a->borders[beyond]) {
                    ++beyond;
                }
                bucket += a->exact + beyond;
            }
            for (ptrdiff_t h = 0; h < H; ++h) {
                a->y[(h * n + i) * t + j] = (float)LOAD(a->table, bucket * H + h);
            }
        }
    }
}

static inline void NAME(oic_relative_position_bias)(const ARGS(oic_relative_position_bias) *a)
{
    NAME(oic_relative_position_bias_part)(a, 0, a->n, 0);
}

#undef OIC_FAR
#include "end.h"
