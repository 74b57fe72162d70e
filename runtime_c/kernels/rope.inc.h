/* The body of rope.h, which computes cosines and sines, and of rope_turned.h, which is given them: TURNED.  Each defines ROPE, its
   name.

   y[.., N, H, D] = x with the first `dims` elements of each head turned in pairs: d with d + dims/2, or, interleaved, 2d with
   2d + 1.  x lies at the strides xs of the leading axes shape[rank], of N and of H, and is dense along D; y is dense and may be x.

   Order: a * cos - b * sin, b * cos + a * sin.  The sine is negated first, and both are sums: of a difference beside a sum gcc 12
   makes one instruction that rounds once, in spite of -ffp-contract=off. */
#include "element.h"

#include "common/angles.h"
#include "common/batch.h"

#define OF(f) NAME(OIC_PASTE(ROPE, OIC_PASTE(_, f)))

typedef struct {
    const T *x;
#if TURNED
    const float *turns;
    const ptrdiff_t *ts;
#else
    const int32_t *pos;
    const ptrdiff_t *ps;
    int64_t first;
    const float *freqs;
    double base;
#endif
    T *y;
    ptrdiff_t rank;
    const ptrdiff_t *shape;
    ptrdiff_t N, H, D;
    const ptrdiff_t *xs;
    ptrdiff_t dims;
    int interleaved;
} ARGS(ROPE);

/* Pairs d0 to d0 + n of all heads of a row, d with d + dims/2, turned by the angles of these cosines and sines. */
static inline void OF(halves)(const ARGS(ROPE) *a, const T *in, T *out, ptrdiff_t d0, ptrdiff_t n,
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
static inline void OF(neighbours)(const ARGS(ROPE) *a, const T *in, T *out, ptrdiff_t d0, ptrdiff_t n,
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

/* Rows first..end-1 of all leading axes. */
static inline void OF(part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(ROPE) *const a = args;
    const ptrdiff_t rank = a->rank, half = a->dims / 2;
    (void)worker;
#if !TURNED
    const double ratio = oic_angle_ratio(a->base, a->dims);
#endif
    for (ptrdiff_t row = first; row < end; ++row) {
        const ptrdiff_t b = rank > 0 ? row / a->N : 0, i = row - b * a->N; /* a division takes as long as a head */
        const T *const in = a->x + oic_offset(b, rank, a->shape, a->xs) + i * a->xs[rank];
        T *const out = a->y + row * a->H * a->D;
#if TURNED
        const float *const turns = a->turns + oic_offset(b, rank, a->shape, a->ts) + i * a->ts[rank];
#else
        const int64_t at = a->pos != NULL ? a->pos[oic_offset(b, rank, a->shape, a->ps) + i * a->ps[rank]]
                                          : (int64_t)((uint64_t)a->first + (uint64_t)i);
        double power = 1.0;
#endif
        for (ptrdiff_t d0 = 0; d0 < half; d0 += OIC_ANGLES) {
            const ptrdiff_t n = half - d0 < OIC_ANGLES ? half - d0 : OIC_ANGLES;
            float negated[OIC_ANGLES];
#if TURNED
            const float *const c = turns + d0, *const s = turns + half + d0;
#else
            float c[OIC_ANGLES], s[OIC_ANGLES];
            power = oic_angles(at, a->freqs == NULL ? NULL : a->freqs + d0, power, ratio, n, c, s);
#endif
            for (ptrdiff_t d = 0; d < n; ++d) {
                negated[d] = oic_from_bits_f32(oic_bits_f32(s[d]) ^ 0x80000000u);
            }
            if (a->interleaved) {
                float both[2 * OIC_ANGLES], other[2 * OIC_ANGLES];
                for (ptrdiff_t d = 0; d < n; ++d) {
                    both[2 * d] = both[2 * d + 1] = c[d];
                    other[2 * d] = negated[d];
                    other[2 * d + 1] = s[d];
                }
                OF(neighbours)(a, in, out, d0, n, both, other);
            } else {
                OF(halves)(a, in, out, d0, n, c, s, negated);
            }
        }
        for (ptrdiff_t h = 0; h < a->H; ++h) {
            for (ptrdiff_t d = a->dims; d < a->D; ++d) {
                out[h * a->D + d] = in[h * a->xs[rank + 1] + d];
            }
        }
    }
}

static inline void NAME(ROPE)(const ARGS(ROPE) *a)
{
    OF(part)(a, 0, oic_product(a->rank, a->shape) * a->N, 0);
}

#undef OF
#undef ROPE
#undef TURNED
#include "end.h"
