/* Pooling of floats, in C (float; double for f64), rounded once.  Results overlap no operand. */
#ifndef OIC_POOLING_H
#define OIC_POOLING_H

#include "version.h"

#include "num.h"

/* y[planes, OH, OW] of x[planes, H, W]: the largest or the mean of KH x KW elements, sh, sw apart; ph, pw more at both
   ends do not take part.  avg_pool divides by the elements that take part, or with `all` by KH * KW. */
#define OIC_POOLING(T, S, C)                                                                                \
    static inline void oic_max_pool_##T(const S *restrict x, S *restrict y, ptrdiff_t planes, ptrdiff_t H,  \
                                        ptrdiff_t W, ptrdiff_t OH, ptrdiff_t OW, ptrdiff_t KH, ptrdiff_t KW, \
                                        ptrdiff_t sh, ptrdiff_t sw, ptrdiff_t ph, ptrdiff_t pw)             \
    {                                                                                                       \
        for (ptrdiff_t at = 0; at < planes * OH * OW; ++at) {                                               \
            const ptrdiff_t ox = at % OW, oy = at / OW % OH, from = at / OW / OH * H * W;                   \
            C top = (C)-INFINITY;                                                                           \
            for (ptrdiff_t iy = oy * sh - ph; iy < oy * sh - ph + KH; ++iy) {                               \
                for (ptrdiff_t ix = ox * sw - pw; ix < ox * sw - pw + KW; ++ix) {                           \
                    if (iy >= 0 && iy < H && ix >= 0 && ix < W) {                                           \
                        const C v = oic_load_##T(x, from + iy * W + ix);                                    \
                        top = top != top || v <= top ? top : v; /* a NaN stays */                           \
                    }                                                                                       \
                }                                                                                           \
            }                                                                                               \
            oic_store_##T(y, at, top);                                                                      \
        }                                                                                                   \
    }                                                                                                       \
                                                                                                            \
    static inline void oic_avg_pool_##T(const S *restrict x, S *restrict y, ptrdiff_t planes, ptrdiff_t H,  \
                                        ptrdiff_t W, ptrdiff_t OH, ptrdiff_t OW, ptrdiff_t KH, ptrdiff_t KW, \
                                        ptrdiff_t sh, ptrdiff_t sw, ptrdiff_t ph, ptrdiff_t pw, ptrdiff_t all) \
    {                                                                                                       \
        for (ptrdiff_t at = 0; at < planes * OH * OW; ++at) {                                               \
            const ptrdiff_t ox = at % OW, oy = at / OW % OH, from = at / OW / OH * H * W;                   \
            ptrdiff_t count = 0;                                                                            \
            C sum = (C)0;                                                                                   \
            for (ptrdiff_t iy = oy * sh - ph; iy < oy * sh - ph + KH; ++iy) {                               \
                for (ptrdiff_t ix = ox * sw - pw; ix < ox * sw - pw + KW; ++ix) {                           \
                    if (iy >= 0 && iy < H && ix >= 0 && ix < W) {                                           \
                        sum += oic_load_##T(x, from + iy * W + ix);                                         \
                        ++count;                                                                            \
                    }                                                                                       \
                }                                                                                           \
            }                                                                                               \
            oic_store_##T(y, at, sum / (C)(all ? KH * KW : count));                                         \
        }                                                                                                   \
    }

OIC_POOLING(f8, oic_f8, float)
OIC_POOLING(f16, oic_f16, float)
OIC_POOLING(bf16, oic_bf16, float)
OIC_POOLING(f32, float, float)
OIC_POOLING(f64, double, double)

#endif
