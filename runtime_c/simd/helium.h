/* The M-profile vector extension of Cortex-M55 and later, for integers: dot products of bytes.  Its vectors of floats take
   subnormal numbers for zeros, whatever mode is set, so floats are those of portable.h. */
#ifndef OIC_SIMD_HELIUM_H
#define OIC_SIMD_HELIUM_H

#include "../version.h"

#include <arm_mve.h>

#include "portable.h"

#define OIC_DOTS 1

/* sum[i] += w[4 i] x[0] + ... + w[4 i + 3] x[3] for 16 sums, n times with the next 64 and 4 bytes.  Rows of four bytes are
   taken apart by loads; two products fit 16 bits; row 4 i + j is number i of part j. */
static inline void oic_dots_i8(int32_t *sum, const int8_t *w, const int8_t *x, ptrdiff_t n)
{
    int32x4x4_t all = vld4q_s32(sum);
    for (ptrdiff_t k = 0; k < n; ++k) {
        const int8x16x4_t bytes = vld4q_s8(w + 64 * k);
        const int8x16_t x0 = vdupq_n_s8(x[4 * k]), x1 = vdupq_n_s8(x[4 * k + 1]);
        const int8x16_t x2 = vdupq_n_s8(x[4 * k + 2]), x3 = vdupq_n_s8(x[4 * k + 3]);
        const int16x8_t even0 = vaddq_s16(vmullbq_int_s8(bytes.val[0], x0), vmullbq_int_s8(bytes.val[1], x1));
        const int16x8_t even1 = vaddq_s16(vmullbq_int_s8(bytes.val[2], x2), vmullbq_int_s8(bytes.val[3], x3));
        const int16x8_t odd0 = vaddq_s16(vmulltq_int_s8(bytes.val[0], x0), vmulltq_int_s8(bytes.val[1], x1));
        const int16x8_t odd1 = vaddq_s16(vmulltq_int_s8(bytes.val[2], x2), vmulltq_int_s8(bytes.val[3], x3));
        all.val[0] = vaddq_s32(all.val[0], vaddq_s32(vmovlbq_s16(even0), vmovlbq_s16(even1)));
        all.val[1] = vaddq_s32(all.val[1], vaddq_s32(vmovlbq_s16(odd0), vmovlbq_s16(odd1)));
        all.val[2] = vaddq_s32(all.val[2], vaddq_s32(vmovltq_s16(even0), vmovltq_s16(even1)));
        all.val[3] = vaddq_s32(all.val[3], vaddq_s32(vmovltq_s16(odd0), vmovltq_s16(odd1)));
    }
    vst4q_s32(sum, all);
}

#endif
