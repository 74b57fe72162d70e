/* Rotary position embedding, and T5's relative position bias. */
#ifndef OIC_POSITION_H
#define OIC_POSITION_H

#include "version.h"

#include "batch.h"
#include "num.h"
#include "scalar_math.h"

#define OIC_ROPE_PART 64 /* pairs whose sines are kept at a time */

/* y[.., N, H, D] = x with the first `dims` elements of each head turned in pairs: d with d + dims/2, or, interleaved,
   2d with 2d + 1.  x lies at the strides xs of the leading axes shape[rank], of N and of H, and is dense along D; y is
   dense and may be x.  Row i is at position pos[ps of the leading axes and N], or first + i where pos is NULL.
   angle = (float)position * freq in float; freq is freqs[d], or base^(-2d/dims) rounded from double. */
#define OIC_ROPE(T, S, C)                                                                                   \
    static inline void oic_rope_##T(const S *x, const int32_t *restrict pos, S *y, ptrdiff_t rank,          \
                                    const ptrdiff_t *shape, ptrdiff_t N, ptrdiff_t H, ptrdiff_t D,          \
                                    const ptrdiff_t *xs, const ptrdiff_t *ps, int64_t first,                \
                                    const float *restrict freqs, double base, ptrdiff_t dims, ptrdiff_t interleaved) \
    {                                                                                                       \
        const ptrdiff_t batches = oic_product(rank, shape), half = dims / 2;                                \
        const ptrdiff_t pair = interleaved ? 1 : half, step = interleaved ? 2 : 1;                          \
        const double ratio = dims > 0 ? oic_pow_f64(base, -2.0 / (double)dims) : 1.0;                               \
        for (ptrdiff_t b = 0; b < batches; ++b) {                                                           \
            for (ptrdiff_t i = 0; i < N; ++i) {                                                             \
                const S *const in = x + oic_offset(b, rank, shape, xs) + i * xs[rank];                      \
                S *const out = y + (b * N + i) * H * D;                                                     \
                const int64_t at = pos ? pos[oic_offset(b, rank, shape, ps) + i * ps[rank]] : first + (int64_t)i; \
                double power = 1.0;                                                                         \
                for (ptrdiff_t d0 = 0; d0 < half; d0 += OIC_ROPE_PART) {                                    \
                    const ptrdiff_t n = half - d0 < OIC_ROPE_PART ? half - d0 : OIC_ROPE_PART;              \
                    float c[OIC_ROPE_PART], s[OIC_ROPE_PART];                                               \
                    for (ptrdiff_t d = 0; d < n; ++d) {                                                     \
                        const float angle = (float)at * (freqs ? freqs[d0 + d] : (float)power);             \
                        c[d] = oic_cos_f32(angle);                                                          \
                        s[d] = oic_sin_f32(angle);                                                          \
                        power *= ratio;                                                                     \
                    }                                                                                       \
                    for (ptrdiff_t h = 0; h < H; ++h) {                                                     \
                        for (ptrdiff_t d = 0; d < n; ++d) {                                                 \
                            const ptrdiff_t e = (d0 + d) * step;                                            \
                            const C p = oic_load_##T(in, h * xs[rank + 1] + e);                             \
                            const C q = oic_load_##T(in, h * xs[rank + 1] + e + pair);                      \
                            oic_store_##T(out, h * D + e, p * (C)c[d] - q * (C)s[d]);                       \
                            oic_store_##T(out, h * D + e + pair, q * (C)c[d] + p * (C)s[d]);                \
                        }                                                                                   \
                    }                                                                                       \
                }                                                                                           \
                for (ptrdiff_t h = 0; h < H; ++h) {                                                         \
                    for (ptrdiff_t d = dims; d < D; ++d) {                                                  \
                        out[h * D + d] = in[h * xs[rank + 1] + d];                                          \
                    }                                                                                       \
                }                                                                                           \
            }                                                                                               \
        }                                                                                                   \
    }

OIC_ROPE(f8, oic_f8, float)
OIC_ROPE(f16, oic_f16, float)
OIC_ROPE(bf16, oic_bf16, float)
OIC_ROPE(f32, float, float)
OIC_ROPE(f64, double, double)

/* y[H, n, t] = table[bucket(j - (q_start + i)), h].  Distances below `exact` have a bucket each; further ones as many
   more as there are borders[count] not beyond them.  `half` buckets are for keys after the query, if bidirectional. */
#define OIC_RELATIVE_POSITION_BIAS(T, S)                                                                    \
    static inline void oic_relative_position_bias_##T(const S *restrict table, float *restrict y, ptrdiff_t H, \
                                                      ptrdiff_t n, ptrdiff_t t, int64_t q_start, ptrdiff_t half, \
                                                      ptrdiff_t exact, const ptrdiff_t *borders, ptrdiff_t count, \
                                                      ptrdiff_t bidirectional)                              \
    {                                                                                                       \
        for (ptrdiff_t i = 0; i < n; ++i) {                                                                 \
            for (ptrdiff_t j = 0; j < t; ++j) {                                                             \
                const int64_t r = (int64_t)j - (q_start + (int64_t)i);                                      \
                const int64_t far = bidirectional ? (r < 0 ? -r : r) : (r < 0 ? -r : 0);                    \
                ptrdiff_t bucket = bidirectional && r > 0 ? half : 0;                                       \
                if (far < (int64_t)exact) {                                                                 \
                    bucket += (ptrdiff_t)far;                                                               \
                } else {                                                                                    \
                    ptrdiff_t beyond = 0;                                                                   \
                    while (beyond < count && far >= (int64_t)borders[beyond]) {                             \
                        ++beyond;                                                                           \
                    }                                                                                       \
                    bucket += exact + beyond;                                                               \
                }                                                                                           \
                for (ptrdiff_t h = 0; h < H; ++h) {                                                         \
                    y[(h * n + i) * t + j] = (float)oic_load_##T(table, bucket * H + h);                    \
                }                                                                                           \
            }                                                                                               \
        }                                                                                                   \
    }

OIC_RELATIVE_POSITION_BIAS(f8, oic_f8)
OIC_RELATIVE_POSITION_BIAS(f16, oic_f16)
OIC_RELATIVE_POSITION_BIAS(bf16, oic_bf16)
OIC_RELATIVE_POSITION_BIAS(f32, float)
OIC_RELATIVE_POSITION_BIAS(f64, double)

#endif
