/* Four numbers a register: AArch64, with its dot products of bytes where the compiler may use them.  Not the NEON of 32
   bits, which takes subnormal numbers for zeros. */
#ifndef OIC_SIMD_NEON_H
#define OIC_SIMD_NEON_H

#include "../version.h"

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define OIC_WIDTH 4
#define OIC_WIDTH_F64 2

typedef float oic_register_f32 __attribute__((vector_size(16)));
typedef double oic_register_f64 __attribute__((vector_size(16)));
typedef int32_t oic_register_i32 __attribute__((vector_size(16)));
typedef uint32_t oic_register_u32 __attribute__((vector_size(16)));
typedef oic_register_u32 oic_mask; /* 0 or all ones */

#define OIC_FUSED_REGISTERS 1

static inline oic_register_f32 oic_register_fused_f32(oic_register_f32 a, oic_register_f32 b, oic_register_f32 sum)
{
    return (oic_register_f32)vfmaq_f32((float32x4_t)sum, (float32x4_t)a, (float32x4_t)b);
}

static inline oic_register_f64 oic_register_fused_f64(oic_register_f64 a, oic_register_f64 b, oic_register_f64 sum)
{
    return (oic_register_f64)vfmaq_f64((float64x2_t)sum, (float64x2_t)a, (float64x2_t)b);
}

static inline oic_register_f32 oic_register_load_some_f32(const float *from, ptrdiff_t n)
{
    oic_register_f32 to = {0};
    if (n >= 4) {
        memcpy(&to, from, sizeof to);
    } else if (n == 3) {
        to = (oic_register_f32){from[0], from[1], from[2]};
    } else if (n == 2) {
        to = (oic_register_f32){from[0], from[1]};
    } else if (n == 1) {
        to = (oic_register_f32){from[0]};
    }
    return to;
}

static inline oic_register_i32 oic_register_load_i8(const int8_t *from)
{
    int32_t bits;
    memcpy(&bits, from, sizeof bits);
    const int16x8_t words = vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(bits)));
    return (oic_register_i32)vmovl_s16(vget_low_s16(words));
}

static inline oic_register_u32 oic_register_load_u8(const uint8_t *from)
{
    uint32_t bits;
    memcpy(&bits, from, sizeof bits);
    const uint16x8_t words = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(bits)));
    return (oic_register_u32)vmovl_u16(vget_low_u16(words));
}

static inline oic_register_u32 oic_register_load_u16(const uint16_t *from)
{
    return (oic_register_u32)vmovl_u16(vld1_u16(from));
}

static inline void oic_register_store_i8(int8_t *to, oic_register_i32 v)
{
    const int16x4_t words = vmovn_s32((int32x4_t)v);
    const int32_t bits = vget_lane_s32(vreinterpret_s32_s8(vmovn_s16(vcombine_s16(words, words))), 0);
    memcpy(to, &bits, sizeof bits);
}

static inline void oic_register_store_limited(uint8_t *to, const oic_register_i32 *v, int16_t more, int sign)
{
    const int16x8_t all = vdupq_n_s16(more);
    const int16x8_t low = vqaddq_s16(vcombine_s16(vqmovn_s32((int32x4_t)v[0]), vqmovn_s32((int32x4_t)v[1])), all);
    const int16x8_t high = vqaddq_s16(vcombine_s16(vqmovn_s32((int32x4_t)v[2]), vqmovn_s32((int32x4_t)v[3])), all);
    if (sign) {
        vst1q_s8((int8_t *)to, vcombine_s8(vqmovn_s16(low), vqmovn_s16(high)));
    } else {
        vst1q_u8(to, vcombine_u8(vqmovun_s16(low), vqmovun_s16(high)));
    }
}

static inline void oic_register_store_u16(uint16_t *to, oic_register_u32 v)
{
    vst1_u16(to, vmovn_u32((uint32x4_t)v));
}

#define OIC_HALVES 1

static inline oic_register_f32 oic_register_load_f16(const uint16_t *from)
{
    return (oic_register_f32)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from)));
}

static inline void oic_register_store_f16(uint16_t *to, oic_register_f32 v)
{
    vst1_u16(to, vreinterpret_u16_f16(vcvt_f16_f32((float32x4_t)v)));
}

static inline oic_mask oic_register_less_f32(oic_register_f32 a, oic_register_f32 b)
{
    return (oic_mask)vcltq_f32((float32x4_t)a, (float32x4_t)b);
}

static inline oic_mask oic_register_equal_f32(oic_register_f32 a, oic_register_f32 b)
{
    return (oic_mask)vceqq_f32((float32x4_t)a, (float32x4_t)b);
}

static inline oic_mask oic_register_less_i32(oic_register_i32 a, oic_register_i32 b)
{
    return (oic_mask)vcltq_s32((int32x4_t)a, (int32x4_t)b);
}

static inline oic_mask oic_register_equal_i32(oic_register_i32 a, oic_register_i32 b)
{
    return (oic_mask)vceqq_s32((int32x4_t)a, (int32x4_t)b);
}

static inline oic_mask oic_mask_and(oic_mask a, oic_mask b)
{
    return a & b;
}

static inline oic_mask oic_mask_or(oic_mask a, oic_mask b)
{
    return a | b;
}

static inline oic_mask oic_mask_not(oic_mask a)
{
    return ~a;
}

static inline int oic_mask_any(oic_mask a)
{
    return vmaxvq_u32((uint32x4_t)a) != 0;
}

static inline oic_register_u32 oic_register_select_u32(oic_mask m, oic_register_u32 yes, oic_register_u32 no)
{
    return (oic_register_u32)vbslq_u32((uint32x4_t)m, (uint32x4_t)yes, (uint32x4_t)no);
}

static inline oic_register_f32 oic_register_select_f32(oic_mask m, oic_register_f32 yes, oic_register_f32 no)
{
    return (oic_register_f32)vbslq_f32((uint32x4_t)m, (float32x4_t)yes, (float32x4_t)no);
}

static inline oic_register_f32 oic_register_max_f32(oic_register_f32 a, oic_register_f32 b)
{
    return oic_register_select_f32(oic_register_less_f32(b, a), a, b);
}

static inline oic_register_f32 oic_register_min_f32(oic_register_f32 a, oic_register_f32 b)
{
    return oic_register_select_f32(oic_register_less_f32(a, b), a, b);
}

static inline oic_register_f32 oic_register_sqrt_f32(oic_register_f32 a)
{
    return (oic_register_f32)vsqrtq_f32((float32x4_t)a);
}

static inline oic_register_f64 oic_register_sqrt_f64(oic_register_f64 a)
{
    return (oic_register_f64)vsqrtq_f64((float64x2_t)a);
}

static inline oic_register_f32 oic_register_to_f32(oic_register_i32 a)
{
    return (oic_register_f32)vcvtq_f32_s32((int32x4_t)a);
}

static inline oic_register_i32 oic_register_to_i32(oic_register_f32 a)
{
    return (oic_register_i32)vcvtq_s32_f32((float32x4_t)a);
}

static inline oic_register_i32 oic_register_nearest_i32(oic_register_f32 a)
{
    return (oic_register_i32)vcvtnq_s32_f32((float32x4_t)a);
}

static inline oic_register_f32 oic_register_round_f32(oic_register_f32 a)
{
    return (oic_register_f32)vrndnq_f32((float32x4_t)a);
}

static inline float oic_register_sum_f32(oic_register_f32 a)
{
    return (a[0] + a[2]) + (a[1] + a[3]);
}

static inline oic_register_i32 oic_register_max_i32(oic_register_i32 a, oic_register_i32 b)
{
    return (oic_register_i32)vmaxq_s32((int32x4_t)a, (int32x4_t)b);
}

static inline oic_register_i32 oic_register_min_i32(oic_register_i32 a, oic_register_i32 b)
{
    return (oic_register_i32)vminq_s32((int32x4_t)a, (int32x4_t)b);
}

static inline oic_register_i32 oic_register_high_half_i32(oic_register_i32 a, oic_register_i32 b)
{
    return (oic_register_i32)vqrdmulhq_s32((int32x4_t)a, (int32x4_t)b);
}

static inline double oic_register_sum_f64(oic_register_f64 a)
{
    return a[0] + a[1];
}

static inline float oic_register_largest_f32(oic_register_f32 a)
{
    const float even = a[0] > a[2] ? a[0] : a[2], odd = a[1] > a[3] ? a[1] : a[3];
    return even > odd ? even : odd;
}

static inline oic_register_i32 oic_register_dot_i8(oic_register_i32 sum, const int8_t *w, const int8_t *x)
{
    int32_t bits;
    memcpy(&bits, x, sizeof bits);
    const int8x16_t bytes = vld1q_s8(w), four = vreinterpretq_s8_s32(vdupq_n_s32(bits));
#if defined(__ARM_FEATURE_DOTPROD)
    return (oic_register_i32)vdotq_s32((int32x4_t)sum, bytes, four);
#else
    const int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(bytes), vget_low_s8(four)));
    const int32x4_t high = vpaddlq_s16(vmull_s8(vget_high_s8(bytes), vget_high_s8(four)));
    return sum + (oic_register_i32)vpaddq_s32(low, high);
#endif
}

static inline oic_register_u32 oic_register_dot_i16(oic_register_u32 sum, oic_register_u32 w, oic_register_u32 x)
{
    const int16x8_t ws = (int16x8_t)w, xs = (int16x8_t)x;
    const int32x4_t low = vmull_s16(vget_low_s16(ws), vget_low_s16(xs)), high = vmull_high_s16(ws, xs);
    return sum + (oic_register_u32)vpaddq_s32(low, high);
}

#if defined(__ARM_FEATURE_DOTPROD)
#define OIC_DOT_BYTES 1

static inline oic_register_u32 oic_register_dot_bytes(oic_register_u32 sum, oic_register_u32 w, oic_register_u32 x)
{
    return (oic_register_u32)vdotq_s32((int32x4_t)sum, (int8x16_t)w, (int8x16_t)x);
}

static inline oic_register_u32 oic_register_fours(const int8_t *p, const int8_t *q, const int8_t *r, const int8_t *s)
{
    const uint8x16_t order = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
    uint32_t rows[4];
    memcpy(&rows[0], p, 4);
    memcpy(&rows[1], q, 4);
    memcpy(&rows[2], r, 4);
    memcpy(&rows[3], s, 4);
    return (oic_register_u32)vqtbl1q_u8((uint8x16_t)vld1q_u32(rows), order);
}
#endif

#endif
