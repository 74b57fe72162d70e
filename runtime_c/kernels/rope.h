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
#include "../simd/sums.h"

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

/* Pairs d0 to d0 + n of all heads of a row, d with d + dims/2, turned by the angles of these cosines and sines. */
static inline void NAME(oic_rope_halves)(const ARGS(oic_rope) *a, const T *in, T *out, ptrdiff_t d0, ptrdiff_t n,
                                         const float *c, const float *s, const float *negated)
{
    const ptrdiff_t pair = a->dims / 2, xh = a->xs[a->rank + 1];
    for (ptrdiff_t h = 0; h < a->H; ++h) {
        const T *const x = in + h * xh + d0;
        T *const y = out + h * a->D + d0;
        for (ptrdiff_t d = 0; d < n; ++d) {
            const C p = LOAD(x, d), q = LOAD(x, d + pair);
            STORE(y, d, p * (C)c[d] + q * (C)negated[d]);
            STORE(y, d + pair, q * (C)c[d] + p * (C)s[d]);
        }
    }
}

/* The same of neighbours, 2d with 2d + 1: c and s have a number for each of them, of the first the negated sine. */
static inline void NAME(oic_rope_neighbours)(const ARGS(oic_rope) *a, const T *in, T *out, ptrdiff_t d0, ptrdiff_t n,
                                             const float *c, const float *s)
{
    const ptrdiff_t xh = a->xs[a->rank + 1];
    for (ptrdiff_t h = 0; h < a->H; ++h) {
        const T *const x = in + h * xh + 2 * d0;
        T *const y = out + h * a->D + 2 * d0;
        ptrdiff_t d = 0;
        for (; d + 8 <= 2 * n; d += 8) {
            C v[8], turned[8];
            for (int l = 0; l < 8; ++l) {
                v[l] = LOAD(x, d + l);
            }
            for (int l = 0; l < 8; ++l) {
                turned[l] = v[l] * (C)c[d + l] + v[l ^ 1] * (C)s[d + l];
            }
            for (int l = 0; l < 8; ++l) {
                STORE(y, d + l, turned[l]);
            }
        }
        for (; d < 2 * n; d += 2) {
            const C p = LOAD(x, d), q = LOAD(x, d + 1);
            STORE(y, d, p * (C)c[d] + q * (C)s[d]);
            STORE(y, d + 1, q * (C)c[d + 1] + p * (C)s[d + 1]);
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
                                          : (int64_t)((uint64_t)a->first + (uint64_t)i);
        double power = 1.0;
        for (ptrdiff_t d0 = 0; d0 < half; d0 += OIC_ROPE_PART) {
            const ptrdiff_t n = half - d0 < OIC_ROPE_PART ? half - d0 : OIC_ROPE_PART;
            const ptrdiff_t whole = (n + OIC_WIDTH - 1) / OIC_WIDTH * OIC_WIDTH; /* registers */
            float angle[OIC_ROPE_PART], c[OIC_ROPE_PART], s[OIC_ROPE_PART], negated[OIC_ROPE_PART];
            float r[OIC_ROPE_PART], rest[OIC_ROPE_PART];
            uint32_t quarter[OIC_ROPE_PART];
            for (ptrdiff_t d = 0; d < n; ++d) {
                angle[d] = (float)at * (a->freqs != NULL ? a->freqs[d0 + d] : (float)power);
                power *= ratio;
            }
            for (ptrdiff_t d = n; d < whole; ++d) {
                angle[d] = 0.0f;
            }
            for (ptrdiff_t d = 0; d < whole; ++d) {
                const oic_angle_f32 reduced = oic_reduce_angle_f32(angle[d]);
                r[d] = reduced.r;
                rest[d] = reduced.rest;
                quarter[d] = reduced.quarter;
            }
            for (ptrdiff_t d = 0; d < whole; ++d) {
                const oic_angle_f32 reduced = {r[d], rest[d], quarter[d]};
                c[d] = oic_cos_of_f32(angle[d], reduced);
                s[d] = oic_sin_of_f32(angle[d], reduced);
                negated[d] = oic_from_bits_f32(oic_bits_f32(s[d]) ^ 0x80000000u);
            }
            if (a->interleaved) {
                float both[2 * OIC_ROPE_PART], other[2 * OIC_ROPE_PART];
                for (ptrdiff_t d = 0; d < whole; ++d) {
                    both[2 * d] = both[2 * d + 1] = c[d];
                    other[2 * d] = negated[d];
                    other[2 * d + 1] = s[d];
                }
                NAME(oic_rope_neighbours)(a, in, out, d0, n, both, other);
            } else {
                NAME(oic_rope_halves)(a, in, out, d0, n, c, s, negated);
            }
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
