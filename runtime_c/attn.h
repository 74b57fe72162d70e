/* The operator of the persistent-memory page: attention of h * w over keys and values. */
#ifndef OIC_ATTN_H
#define OIC_ATTN_H

#include "version.h"

#include "attention.h"

/* y[B, Hq * Dv] = attention of h[B, D] * w[D, Hq * Dh] over k[T, Hk, Dh] and v[T, Hk, Dv], every key taking part.  The
   product is summed in order of D and kept in C.  h and w have rows hs and ws apart; k and v lie at (kt, kh) and
   (vt, vh).  work holds Hq * (Dh + Dv) + OIC_ATTENTION_ROWS * (Dh + Dv) numbers. */
#define OIC_ATTN(H, SH, K, SK, W, SW, Q, C)                                                                 \
    static inline void oic_attn_##H##_##K##_##W(const SH *restrict h, const SK *restrict k, const SK *restrict v, \
                                                const SW *restrict w, SH *restrict y, C *restrict work, ptrdiff_t B, \
                                                ptrdiff_t D, ptrdiff_t T, ptrdiff_t Hq, ptrdiff_t Hk, ptrdiff_t Dh, \
                                                ptrdiff_t Dv, ptrdiff_t hs, ptrdiff_t kt, ptrdiff_t kh, ptrdiff_t vt, \
                                                ptrdiff_t vh, ptrdiff_t ws, C scale)                        \
    {                                                                                                       \
        C *restrict const q = work, *restrict const out = q + Hq * Dh;                                      \
        C *const rest = out + Hq * Dv;                                                                      \
        const ptrdiff_t qs[2] = {0, Dh}, ks[2] = {kt, kh}, vs[2] = {vt, vh};                                \
        for (ptrdiff_t b = 0; b < B; ++b) {                                                                 \
            for (ptrdiff_t j = 0; j < Hq * Dh; ++j) {                                                       \
                q[j] = (C)0;                                                                                \
            }                                                                                               \
            for (ptrdiff_t i = 0; i < D; ++i) {                                                             \
                const C p = oic_load_##H(h, b * hs + i);                                                    \
                for (ptrdiff_t j = 0; j < Hq * Dh; ++j) {                                                   \
                    q[j] += p * (C)oic_load_##W(w, i * ws + j);                                             \
                }                                                                                           \
            }                                                                                               \
            oic_attention_##Q##_##K(q, k, v, NULL, NULL, NULL, NULL, NULL, out, rest, 0, NULL, 1, T, Hq, Hk, Dh, Dv, \
                                    qs, ks, vs, NULL, NULL, NULL, NULL, NULL, (int64_t)T, scale, 0, -1);    \
            for (ptrdiff_t j = 0; j < Hq * Dv; ++j) {                                                       \
                oic_store_##H(y, b * Hq * Dv + j, out[j]);                                                  \
            }                                                                                               \
        }                                                                                                   \
    }

#define OIC_ATTN_F8(K, SK) \
    OIC_ATTN(f8, oic_f8, K, SK, f8, oic_f8, f32, float)

OIC_ATTN_F8(f8, oic_f8)
OIC_ATTN_F8(f16, oic_f16)
OIC_ATTN_F8(bf16, oic_bf16)
OIC_ATTN_F8(f32, float)

#define OIC_ATTN_F16(K, SK) \
    OIC_ATTN(f16, oic_f16, K, SK, f8, oic_f8, f32, float) \
    OIC_ATTN(f16, oic_f16, K, SK, f16, oic_f16, f32, float)

OIC_ATTN_F16(f8, oic_f8)
OIC_ATTN_F16(f16, oic_f16)
OIC_ATTN_F16(bf16, oic_bf16)
OIC_ATTN_F16(f32, float)

#define OIC_ATTN_BF16(K, SK) \
    OIC_ATTN(bf16, oic_bf16, K, SK, f8, oic_f8, f32, float) \
    OIC_ATTN(bf16, oic_bf16, K, SK, bf16, oic_bf16, f32, float)

OIC_ATTN_BF16(f8, oic_f8)
OIC_ATTN_BF16(f16, oic_f16)
OIC_ATTN_BF16(bf16, oic_bf16)
OIC_ATTN_BF16(f32, float)

#define OIC_ATTN_F32(K, SK) \
    OIC_ATTN(f32, float, K, SK, f8, oic_f8, f32, float) \
    OIC_ATTN(f32, float, K, SK, f16, oic_f16, f32, float) \
    OIC_ATTN(f32, float, K, SK, bf16, oic_bf16, f32, float) \
    OIC_ATTN(f32, float, K, SK, f32, float, f32, float)

OIC_ATTN_F32(f8, oic_f8)
OIC_ATTN_F32(f16, oic_f16)
OIC_ATTN_F32(bf16, oic_bf16)
OIC_ATTN_F32(f32, float)

#define OIC_ATTN_F64(K, SK) \
    OIC_ATTN(f64, double, K, SK, f8, oic_f8, f64, double) \
    OIC_ATTN(f64, double, K, SK, f16, oic_f16, f64, double) \
    OIC_ATTN(f64, double, K, SK, bf16, oic_bf16, f64, double) \
    OIC_ATTN(f64, double, K, SK, f32, float, f64, double) \
    OIC_ATTN(f64, double, K, SK, f64, double, f64, double)

OIC_ATTN_F64(f8, oic_f8)
OIC_ATTN_F64(f16, oic_f16)
OIC_ATTN_F64(bf16, oic_bf16)
OIC_ATTN_F64(f32, float)
OIC_ATTN_F64(f64, double)

#endif
