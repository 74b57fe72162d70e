/* oic_rope_X: y[.., N, H, D] = x with the first `dims` elements of each head turned in pairs: d with d + dims/2, or,
   interleaved, 2d with 2d + 1.  x lies at the strides xs of the leading axes shape[rank], of N and of H, and is dense
   along D; y is dense and may be x.  Row i is at position pos[ps of the leading axes and N], or first + i where pos is
   NULL.  angle = (float)position * freq in float; freq is freqs[d], or base^(-2d/dims) rounded from double.

   Order: the powers of base by one product after the other; a * cos - b * sin, b * cos + a * sin.  The sine is negated
   first, and both are sums: of a difference beside a sum gcc 12 makes one instruction that rounds once, in spite of
   -ffp-contract=off. */
#include "element.h"

#include "common/batch.h"
#include "../math/scalar_math.h"

#define OIC_ROPE_PART (OIC_SMALL_STACK ? 16 : 64) /* pairs whose sines are kept at a time */

typedef struct {
    const T *x;
    const int32_t *pos;
    T *y;
    ptrdiff_t rank;
    const ptrdiff_t *shape;
    ptrdiff_t N, H, D;
    const ptrdiff_t *xs, *ps;
    int64_t first;
    const float *freqs;
    double base;
    ptrdiff_t dims;
    int interleaved;
} ARGS(oic_rope);

/* Pairs d0 to d0 + n of all heads of a row, turned by the angles of these cosines and sines. */
static inline void NAME(oic_rope_turn)(const ARGS(oic_rope) *a, const T *in, T *out, ptrdiff_t d0, ptrdiff_t n,
                                       const float *c, const float *s, const float *negated)
{
    const ptrdiff_t pair = a->interleaved ? 1 : a->dims / 2, step = a->interleaved ? 2 : 1;
    for (ptrdiff_t h = 0; h < a->H; ++h) {
        const T *const x = in + h * a->xs[a->rank + 1];
        T *const y = out + h * a->D;
        for (ptrdiff_t d = 0; d < n; ++d) {
            const ptrdiff_t e = (d0 + d) * step;
            const C p = LOAD(x, e), q = LOAD(x, e + pair);
            STORE(y, e, p * (C)c[d] + q * (C)negated[d]);
            STORE(y, e + pair, q * (C)c[d] + p * (C)s[d]);
        }
    }
}

static inline void NAME(oic_rope)(const ARGS(oic_rope) *a)
{
    const ptrdiff_t rank = a->rank, half = a->dims / 2;
    const ptrdiff_t batches = oic_product(rank, a->shape);
    const double ratio = a->dims > 0 ? oic_pow_f64(a->base, -2.0 / (double)a->dims) : 1.0;
    for (ptrdiff_t row = 0; row < batches * a->N; ++row) {
        const ptrdiff_t b = row / a->N, i = row % a->N;
        const T *const in = a->x + oic_offset(b, rank, a->shape, a->xs) + i * a->xs[rank];
        T *const out = a->y + row * a->H * a->D;
        const int64_t at = a->pos != NULL ? a->pos[oic_offset(b, rank, a->shape, a->ps) + i * a->ps[rank]]
                                          : a->first + (int64_t)i;
        double power = 1.0;
        for (ptrdiff_t d0 = 0; d0 < half; d0 += OIC_ROPE_PART) {
            const ptrdiff_t n = half - d0 < OIC_ROPE_PART ? half - d0 : OIC_ROPE_PART;
            float c[OIC_ROPE_PART], s[OIC_ROPE_PART], negated[OIC_ROPE_PART];
            for (ptrdiff_t d = 0; d < n; ++d) {
                const float angle = (float)at * (a->freqs != NULL ? a->freqs[d0 + d] : (float)power);
                c[d] = oic_cos_f32(angle);
                s[d] = oic_sin_f32(angle);
                negated[d] = oic_from_bits_f32(oic_bits_f32(s[d]) ^ 0x80000000u);
                power *= ratio;
            }
            NAME(oic_rope_turn)(a, in, out, d0, n, c, s, negated);
        }
        for (ptrdiff_t h = 0; h < a->H; ++h) {
            for (ptrdiff_t d = a->dims; d < a->D; ++d) {
                out[h * a->D + d] = in[h * a->xs[rank + 1] + d];
            }
        }
    }
}

#undef OIC_ROPE_PART

#include "end.h"
