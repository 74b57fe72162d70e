/* Convolutions of floats, computed in C (float; double for f64) and rounded once.  Results overlap no operand.

   Each row of the result is summed in parts over channels and taps, so that the inner loop runs along a row of x.
   Stack: OIC_CONV_PART numbers. */
#ifndef OIC_CONV_H
#define OIC_CONV_H

#include "version.h"

#include "conv_range.h"
#include "num.h"

/* conv: y[B, Co, OH, OW] = x[B, Ci, H, W] convolved with w[Co, Ci/groups, KH, KW], plus b[Co] (NULL: none),
   with strides sh, sw, zeros ph, pw at both ends and dilations dh, dw; in one dimension H, KH and OH are 1.
   conv_transpose: its adjoint, with w[Ci, Co/groups, KH, KW]. */
#define OIC_CONV(T, S, C)                                                                                   \
    static inline void oic_conv_##T(const S *restrict x, const S *restrict w, const void *restrict b,       \
        oic_dtype tb, S *restrict y,                                                                        \
        ptrdiff_t B, ptrdiff_t Ci, ptrdiff_t H, ptrdiff_t W, ptrdiff_t Co, ptrdiff_t KH, ptrdiff_t KW, ptrdiff_t OH, \
        ptrdiff_t OW, ptrdiff_t sh, ptrdiff_t sw, ptrdiff_t ph, ptrdiff_t pw, ptrdiff_t dh, ptrdiff_t dw,   \
        ptrdiff_t groups)                                                                                   \
    {                                                                                                       \
        const ptrdiff_t ci = Ci / groups, co = Co / groups;                                                 \
        (void)tb; /* b has the type of x */                                                                 \
        for (ptrdiff_t row = 0; row < B * Co * OH; ++row) {                                                 \
            const ptrdiff_t oy = row % OH, o = row / OH % Co, n = row / OH / Co;                            \
            for (ptrdiff_t x0 = 0; x0 < OW; x0 += OIC_CONV_PART) {                                          \
                const ptrdiff_t m = OW - x0 < OIC_CONV_PART ? OW - x0 : OIC_CONV_PART;                      \
                C sum[OIC_CONV_PART] = {0};                                                                 \
                for (ptrdiff_t c = 0; c < ci; ++c) {                                                        \
                    for (ptrdiff_t ky = 0; ky < KH; ++ky) {                                                 \
                        const ptrdiff_t iy = oy * sh + ky * dh - ph;                                        \
                        for (ptrdiff_t kx = 0; kx < KW && iy >= 0 && iy < H; ++kx) {                        \
                            const ptrdiff_t from = ((n * Ci + o / co * ci + c) * H + iy) * W;               \
                            const ptrdiff_t left = kx * dw - pw; /* column of x under column 0 of y */      \
                            const C p = oic_load_##T(w, ((o * ci + c) * KH + ky) * KW + kx);                \
                            const ptrdiff_t first = oic_conv_first(left, sw, x0);                           \
                            const ptrdiff_t last = oic_conv_last(left, sw, W, x0 + m);                      \
                            for (ptrdiff_t e = first; e < last; ++e) {                                      \
                                const C q = oic_load_##T(x, from + e * sw + left);                          \
                                sum[e - x0] = sum[e - x0] + p * q;                                          \
                            }                                                                               \
                        }                                                                                   \
                    }                                                                                       \
                }                                                                                           \
                for (ptrdiff_t e = 0; e < m; ++e) {                                                         \
                    oic_store_##T(y, row * OW + x0 + e, sum[e] + (b ? oic_load_##T((const S *)b, o) : (C)0)); \
                }                                                                                           \
            }                                                                                               \
        }                                                                                                   \
    }                                                                                                       \
                                                                                                            \
    static inline void oic_conv_transpose_##T(const S *restrict x, const S *restrict w, const void *restrict b, \
        oic_dtype tb, S *restrict y,                                                                        \
        ptrdiff_t B, ptrdiff_t Ci, ptrdiff_t H, ptrdiff_t W, ptrdiff_t Co, ptrdiff_t KH, ptrdiff_t KW, ptrdiff_t OH, \
        ptrdiff_t OW, ptrdiff_t sh, ptrdiff_t sw, ptrdiff_t ph, ptrdiff_t pw, ptrdiff_t dh, ptrdiff_t dw,   \
        ptrdiff_t groups)                                                                                   \
    {                                                                                                       \
        const ptrdiff_t ci = Ci / groups, co = Co / groups;                                                 \
        (void)tb; /* b has the type of x */                                                                 \
        for (ptrdiff_t row = 0; row < B * Co * OH; ++row) {                                                 \
            const ptrdiff_t oy = row % OH, o = row / OH % Co, n = row / OH / Co;                            \
            for (ptrdiff_t x0 = 0; x0 < OW; x0 += OIC_CONV_PART) {                                          \
                const ptrdiff_t m = OW - x0 < OIC_CONV_PART ? OW - x0 : OIC_CONV_PART;                      \
                C sum[OIC_CONV_PART] = {0};                                                                 \
                for (ptrdiff_t c = 0; c < ci; ++c) {                                                        \
                    const ptrdiff_t channel = o / co * ci + c;                                              \
                    for (ptrdiff_t ky = 0; ky < KH; ++ky) {                                                 \
                        const ptrdiff_t iy = (oy + ph - ky * dh) / sh;                                      \
                        if (oy + ph < ky * dh || iy * sh != oy + ph - ky * dh || iy >= H) {                 \
                            continue;                                                                       \
                        }                                                                                   \
                        for (ptrdiff_t kx = 0; kx < KW; ++kx) {                                             \
                            const ptrdiff_t from = ((n * Ci + channel) * H + iy) * W;                       \
                            const ptrdiff_t left = kx * dw - pw; /* column of y over column 0 of x */       \
                            const C p = oic_load_##T(w, ((channel * co + o % co) * KH + ky) * KW + kx);     \
                            for (ptrdiff_t e = 0; e < W; ++e) {                                             \
                                const ptrdiff_t at = e * sw + left - x0;                                    \
                                if (at >= 0 && at < m) {                                                    \
                                    const C q = oic_load_##T(x, from + e);                                  \
                                    sum[at] = sum[at] + p * q;                                              \
                                }                                                                           \
                            }                                                                               \
                        }                                                                                   \
                    }                                                                                       \
                }                                                                                           \
                for (ptrdiff_t e = 0; e < m; ++e) {                                                         \
                    oic_store_##T(y, row * OW + x0 + e, sum[e] + (b ? oic_load_##T((const S *)b, o) : (C)0)); \
                }                                                                                           \
            }                                                                                               \
        }                                                                                                   \
    }

OIC_CONV(f8, oic_f8, float)
OIC_CONV(f16, oic_f16, float)
OIC_CONV(bf16, oic_bf16, float)
OIC_CONV(f32, float, float)
OIC_CONV(f64, double, double)

#endif
