/* oic_rope_angles_f32: y[.., N, dims] = cosines of the dims/2 angles of a row, then their sines.  Row i of a batch of
   shape[rank] is at position pos[ps of the leading axes and N], or first + i where pos is NULL.
   freq is freqs[d], or base^(-2d/dims) (common/angles.h). */
#include "element.h"

#include "common/angles.h"
#include "common/batch.h"

typedef struct {
    const int32_t *pos;
    T *y;
    ptrdiff_t rank;
    const ptrdiff_t *shape;
    ptrdiff_t N;
    const ptrdiff_t *ps;
    int64_t first;
    const float *freqs;
    double base;
    ptrdiff_t dims;
} ARGS(oic_rope_angles);

/* Rows first..end-1 of all leading axes. */
static inline void NAME(oic_rope_angles_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(oic_rope_angles) *const a = args;
    const ptrdiff_t rank = a->rank, half = a->dims / 2;
    const double ratio = oic_angle_ratio(a->base, a->dims);
    (void)worker;
    for (ptrdiff_t row = first; row < end; ++row) {
        const ptrdiff_t b = rank > 0 ? row / a->N : 0, i = row - b * a->N;
        const int64_t at = a->pos != NULL ? a->pos[oic_offset(b, rank, a->shape, a->ps) + i * a->ps[rank]]
                                          : (int64_t)((uint64_t)a->first + (uint64_t)i);
        T *const y = a->y + row * a->dims;
        double power = 1.0;
        for (ptrdiff_t d = 0; d < half; d += OIC_ANGLES) {
            const ptrdiff_t n = half - d < OIC_ANGLES ? half - d : OIC_ANGLES;
            float c[OIC_ANGLES], s[OIC_ANGLES];
            power = oic_angles(at, a->freqs == NULL ? NULL : a->freqs + d, power, ratio, n, c, s);
            memcpy(y + d, c, (size_t)n * sizeof *y);
            memcpy(y + half + d, s, (size_t)n * sizeof *y);
        }
    }
}

static inline void NAME(oic_rope_angles)(const ARGS(oic_rope_angles) *a)
{
    NAME(oic_rope_angles_part)(a, 0, oic_product(a->rank, a->shape) * a->N, 0);
}

#include "end.h"
