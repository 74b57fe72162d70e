/* Convolutions of integers, wrapping in the result's type.

   A is the unsigned type of the sum: sums modulo 2^32 are enough for results of 32 bits or fewer. */
#ifndef OIC_CONV_INT_H
#define OIC_CONV_INT_H

#include "version.h"

#include "conv_range.h"
#include "matmul_int.h"

/* conv: y[B, Co, OH, OW] = x[B, Ci, H, W] convolved with w[Co, Ci/groups, KH, KW], plus b[Co] of type tb (NULL: none),
   with strides sh, sw, zeros ph, pw at both ends and dilations dh, dw; in one dimension H, KH and OH are 1.
   conv_transpose: its adjoint, with w[Ci, Co/groups, KH, KW]. */
#define OIC_CONV_INT(T, S, Y, SY, VY, A)                                                                    \
    static inline void oic_conv_##T##_##Y(const S *restrict x, const S *restrict w, const void *restrict b, \
        oic_dtype tb, SY *restrict y,                                                                       \
        ptrdiff_t B, ptrdiff_t Ci, ptrdiff_t H, ptrdiff_t W, ptrdiff_t Co, ptrdiff_t KH, ptrdiff_t KW, ptrdiff_t OH, \
        ptrdiff_t OW, ptrdiff_t sh, ptrdiff_t sw, ptrdiff_t ph, ptrdiff_t pw, ptrdiff_t dh, ptrdiff_t dw,   \
        ptrdiff_t groups)                                                                                   \
    {                                                                                                       \
        const ptrdiff_t ci = Ci / groups, co = Co / groups;                                                 \
        for (ptrdiff_t row = 0; row < B * Co * OH; ++row) {                                                 \
            const ptrdiff_t oy = row % OH, o = row / OH % Co, n = row / OH / Co;                            \
            for (ptrdiff_t x0 = 0; x0 < OW; x0 += OIC_CONV_PART) {                                          \
                const ptrdiff_t m = OW - x0 < OIC_CONV_PART ? OW - x0 : OIC_CONV_PART;                      \
                A sum[OIC_CONV_PART] = {0};                                                                 \
                for (ptrdiff_t c = 0; c < ci; ++c) {                                                        \
                    for (ptrdiff_t ky = 0; ky < KH; ++ky) {                                                 \
                        const ptrdiff_t iy = oy * sh + ky * dh - ph;                                        \
                        for (ptrdiff_t kx = 0; kx < KW && iy >= 0 && iy < H; ++kx) {                        \
                            const ptrdiff_t from = ((n * Ci + o / co * ci + c) * H + iy) * W;               \
                            const ptrdiff_t left = kx * dw - pw; /* column of x under column 0 of y */      \
                            const A p = (A)oic_load_##T(w, ((o * ci + c) * KH + ky) * KW + kx);             \
                            const ptrdiff_t first = oic_conv_first(left, sw, x0);                           \
                            const ptrdiff_t last = oic_conv_last(left, sw, W, x0 + m);                      \
                            for (ptrdiff_t e = first; e < last; ++e) {                                      \
                                const A q = (A)oic_load_##T(x, from + e * sw + left);                       \
                                sum[e - x0] = sum[e - x0] + p * q;                                          \
                            }                                                                               \
                        }                                                                                   \
                    }                                                                                       \
                }                                                                                           \
                for (ptrdiff_t e = 0; e < m; ++e) {                                                         \
                    oic_store_##Y(y, row * OW + x0 + e, (VY)(sum[e] + (b ? (A)oic_whole(b, tb, o) : (A)0))); \
                }                                                                                           \
            }                                                                                               \
        }                                                                                                   \
    }                                                                                                       \
                                                                                                            \
    static inline void oic_conv_transpose_##T##_##Y(const S *restrict x, const S *restrict w, const void *restrict b, \
        oic_dtype tb, SY *restrict y,                                                                       \
        ptrdiff_t B, ptrdiff_t Ci, ptrdiff_t H, ptrdiff_t W, ptrdiff_t Co, ptrdiff_t KH, ptrdiff_t KW, ptrdiff_t OH, \
        ptrdiff_t OW, ptrdiff_t sh, ptrdiff_t sw, ptrdiff_t ph, ptrdiff_t pw, ptrdiff_t dh, ptrdiff_t dw,   \
        ptrdiff_t groups)                                                                                   \
    {                                                                                                       \
        const ptrdiff_t ci = Ci / groups, co = Co / groups;                                                 \
        for (ptrdiff_t row = 0; row < B * Co * OH; ++row) {                                                 \
            const ptrdiff_t oy = row % OH, o = row / OH % Co, n = row / OH / Co;                            \
            for (ptrdiff_t x0 = 0; x0 < OW; x0 += OIC_CONV_PART) {                                          \
                const ptrdiff_t m = OW - x0 < OIC_CONV_PART ? OW - x0 : OIC_CONV_PART;                      \
                A sum[OIC_CONV_PART] = {0};                                                                 \
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
                            const A p = (A)oic_load_##T(w, ((channel * co + o % co) * KH + ky) * KW + kx);  \
                            for (ptrdiff_t e = 0; e < W; ++e) {                                             \
                                const ptrdiff_t at = e * sw + left - x0;                                    \
                                if (at >= 0 && at < m) {                                                    \
                                    const A q = (A)oic_load_##T(x, from + e);                               \
                                    sum[at] = sum[at] + p * q;                                              \
                                }                                                                           \
                            }                                                                               \
                        }                                                                                   \
                    }                                                                                       \
                }                                                                                           \
                for (ptrdiff_t e = 0; e < m; ++e) {                                                         \
                    oic_store_##Y(y, row * OW + x0 + e, (VY)(sum[e] + (b ? (A)oic_whole(b, tb, o) : (A)0))); \
                }                                                                                           \
            }                                                                                               \
        }                                                                                                   \
    }

OIC_CONV_INT(i1, uint8_t, i1, uint8_t, int8_t, uint32_t)
OIC_CONV_INT(i1, uint8_t, i2, uint8_t, int8_t, uint32_t)
OIC_CONV_INT(i1, uint8_t, i4, uint8_t, int8_t, uint32_t)
OIC_CONV_INT(i1, uint8_t, i8, int8_t, int8_t, uint32_t)
OIC_CONV_INT(i1, uint8_t, i16, int16_t, int16_t, uint32_t)
OIC_CONV_INT(i1, uint8_t, i32, int32_t, int32_t, uint32_t)
OIC_CONV_INT(i1, uint8_t, i64, int64_t, int64_t, uint64_t)
OIC_CONV_INT(i2, uint8_t, i2, uint8_t, int8_t, uint32_t)
OIC_CONV_INT(i2, uint8_t, i4, uint8_t, int8_t, uint32_t)
OIC_CONV_INT(i2, uint8_t, i8, int8_t, int8_t, uint32_t)
OIC_CONV_INT(i2, uint8_t, i16, int16_t, int16_t, uint32_t)
OIC_CONV_INT(i2, uint8_t, i32, int32_t, int32_t, uint32_t)
OIC_CONV_INT(i2, uint8_t, i64, int64_t, int64_t, uint64_t)
OIC_CONV_INT(i4, uint8_t, i4, uint8_t, int8_t, uint32_t)
OIC_CONV_INT(i4, uint8_t, i8, int8_t, int8_t, uint32_t)
OIC_CONV_INT(i4, uint8_t, i16, int16_t, int16_t, uint32_t)
OIC_CONV_INT(i4, uint8_t, i32, int32_t, int32_t, uint32_t)
OIC_CONV_INT(i4, uint8_t, i64, int64_t, int64_t, uint64_t)
OIC_CONV_INT(i8, int8_t, i8, int8_t, int8_t, uint32_t)
OIC_CONV_INT(i8, int8_t, i16, int16_t, int16_t, uint32_t)
OIC_CONV_INT(i8, int8_t, i32, int32_t, int32_t, uint32_t)
OIC_CONV_INT(i8, int8_t, i64, int64_t, int64_t, uint64_t)
OIC_CONV_INT(i16, int16_t, i16, int16_t, int16_t, uint32_t)
OIC_CONV_INT(i16, int16_t, i32, int32_t, int32_t, uint32_t)
OIC_CONV_INT(i16, int16_t, i64, int64_t, int64_t, uint64_t)
OIC_CONV_INT(i32, int32_t, i32, int32_t, int32_t, uint32_t)
OIC_CONV_INT(i32, int32_t, i64, int64_t, int64_t, uint64_t)
OIC_CONV_INT(i64, int64_t, i64, int64_t, int64_t, uint64_t)
OIC_CONV_INT(u1, uint8_t, u1, uint8_t, uint8_t, uint32_t)
OIC_CONV_INT(u1, uint8_t, u2, uint8_t, uint8_t, uint32_t)
OIC_CONV_INT(u1, uint8_t, u4, uint8_t, uint8_t, uint32_t)
OIC_CONV_INT(u1, uint8_t, u8, uint8_t, uint8_t, uint32_t)
OIC_CONV_INT(u1, uint8_t, u16, uint16_t, uint16_t, uint32_t)
OIC_CONV_INT(u1, uint8_t, u32, uint32_t, uint32_t, uint32_t)
OIC_CONV_INT(u1, uint8_t, u64, uint64_t, uint64_t, uint64_t)
OIC_CONV_INT(u2, uint8_t, u2, uint8_t, uint8_t, uint32_t)
OIC_CONV_INT(u2, uint8_t, u4, uint8_t, uint8_t, uint32_t)
OIC_CONV_INT(u2, uint8_t, u8, uint8_t, uint8_t, uint32_t)
OIC_CONV_INT(u2, uint8_t, u16, uint16_t, uint16_t, uint32_t)
OIC_CONV_INT(u2, uint8_t, u32, uint32_t, uint32_t, uint32_t)
OIC_CONV_INT(u2, uint8_t, u64, uint64_t, uint64_t, uint64_t)
OIC_CONV_INT(u4, uint8_t, u4, uint8_t, uint8_t, uint32_t)
OIC_CONV_INT(u4, uint8_t, u8, uint8_t, uint8_t, uint32_t)
OIC_CONV_INT(u4, uint8_t, u16, uint16_t, uint16_t, uint32_t)
OIC_CONV_INT(u4, uint8_t, u32, uint32_t, uint32_t, uint32_t)
OIC_CONV_INT(u4, uint8_t, u64, uint64_t, uint64_t, uint64_t)
OIC_CONV_INT(u8, uint8_t, u8, uint8_t, uint8_t, uint32_t)
OIC_CONV_INT(u8, uint8_t, u16, uint16_t, uint16_t, uint32_t)
OIC_CONV_INT(u8, uint8_t, u32, uint32_t, uint32_t, uint32_t)
OIC_CONV_INT(u8, uint8_t, u64, uint64_t, uint64_t, uint64_t)
OIC_CONV_INT(u16, uint16_t, u16, uint16_t, uint16_t, uint32_t)
OIC_CONV_INT(u16, uint16_t, u32, uint32_t, uint32_t, uint32_t)
OIC_CONV_INT(u16, uint16_t, u64, uint64_t, uint64_t, uint64_t)
OIC_CONV_INT(u32, uint32_t, u32, uint32_t, uint32_t, uint32_t)
OIC_CONV_INT(u32, uint32_t, u64, uint64_t, uint64_t, uint64_t)
OIC_CONV_INT(u64, uint64_t, u64, uint64_t, uint64_t, uint64_t)

#endif
