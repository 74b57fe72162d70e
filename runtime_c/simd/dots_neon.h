/* The products of dots.h with NEON of 64 bits: with the dot products of ARMv8.2 where they are, for more than two rows of x with
   the products of small matrices of ARMv8.6 (i8mm), else with products of 16 bits, of which two can be added before they
   are widened. */
#include "../version.h"

#include <arm_neon.h>

#if defined(__ARM_FEATURE_MATMUL_INT8)
#define OIC_DOTS_ROWS 8
#else
#define OIC_DOTS_ROWS 4
#endif
#define OIC_DOTS_X 32

typedef struct {
    int32x4_t v[4];
} oic_dots;

typedef struct {
    float32x4_t v[4];
} oic_dots_factors;

static inline int32_t oic_dots_quantize(const float *x, uint8_t *to, float *dx, int bits)
{
    int32_t sum = 0;
    int8_t q[OIC_GROUP];
    *dx = oic_quantized_group(x, q);
    for (int i = 0; i < OIC_GROUP; ++i) {
        sum += q[i];
    }
    memcpy(to, q, sizeof q);
    return bits == 4 ? -8 * sum : 0;
}

/* Sixteen numbers of a step; of q4 their lower or upper nibbles. */
static inline int8x16_t oic_dots_some(const uint8_t *from, int bits, int high)
{
    const uint8x16_t v = vld1q_u8(from);
    if (bits == 8) {
        return vreinterpretq_s8_u8(v);
    }
    return vreinterpretq_s8_u8(high ? vshrq_n_u8(v, 4) : vandq_u8(v, vdupq_n_u8(15)));
}

/* Four of x, over and over. */
static inline int8x16_t oic_dots_four(const uint8_t *from)
{
    int32_t four;
    memcpy(&four, from, sizeof four);
    return vreinterpretq_s8_s32(vdupq_n_s32(four));
}

static inline void oic_dots_begin(oic_dots *a, const uint8_t *start)
{
    int32_t from;
    memcpy(&from, start, sizeof from);
    for (int i = 0; i < 4; ++i) {
        a->v[i] = vdupq_n_s32(from);
    }
}

/* sum + the products of steps of w with x: four rows' sums, of two steps. */
static inline int32x4_t oic_dots_madd(int32x4_t sum, int8x16_t w0, int8x16_t x0, int8x16_t w1, int8x16_t x1)
{
#if defined(__ARM_FEATURE_DOTPROD)
    return vdotq_s32(vdotq_s32(sum, w0, x0), w1, x1);
#else
    int16x8_t low = vmull_s8(vget_low_s8(w0), vget_low_s8(x0)), high = vmull_high_s8(w0, x0);
    low = vmlal_s8(low, vget_low_s8(w1), vget_low_s8(x1));
    high = vmlal_high_s8(high, w1, x1);
    return vaddq_s32(sum, vpaddq_s32(vpaddlq_s16(low), vpaddlq_s16(high)));
#endif
}

#if defined(__ARM_FEATURE_MATMUL_INT8)
/* a[R] = start[R] + the products of a group of x, R rows, with one of w, of so many bits: two rows of w times two of x, eight
   neighbours along K of each, at a time. */
OIC_INLINE void oic_dots_group_of_rows(oic_dots *a, int R, const uint8_t *w, const uint8_t *x, const uint8_t *start,
                                       ptrdiff_t ahead, int bits)
{
    int8x16_t xs[OIC_DOTS_ROWS / 2][4];
    int32x4_t from[OIC_DOTS_ROWS / 2];
    for (int q = 0; q < (R + 1) / 2; ++q) {
        const int other = 2 * q + 1 < R ? 2 * q + 1 : 2 * q; /* a last row goes with itself */
        int32_t begin[2];
        memcpy(&begin[0], start + 8 * q, sizeof begin[0]);
        memcpy(&begin[1], start + 4 * other, sizeof begin[1]);
        from[q] = vcombine_s32(vld1_s32(begin), vld1_s32(begin));
        for (int e = 0; e < 4; ++e) {
            const uint8_t *const eight = x + 8 * e;
            xs[q][e] = vreinterpretq_s8_u8(vcombine_u8(vld1_u8(eight + 2 * q * OIC_DOTS_X), vld1_u8(eight + other * OIC_DOTS_X)));
        }
    }
    for (int i = 0; i < 4; ++i) {
        int32x4_t low[OIC_DOTS_ROWS / 2], high[OIC_DOTS_ROWS / 2];
        for (int q = 0; q < (R + 1) / 2; ++q) {
            low[q] = high[q] = from[q];
        }
        for (int c = 0; c < bits / 2; ++c) { /* two steps: of q4, whose upper nibbles lie sixteen further along K */
            const uint8_t *const first = w + 128 * c, *const second = first + 64;
            if (i == 0) {
                OIC_AHEAD(first + ahead);
                OIC_AHEAD(second + ahead);
            }
            const uint32x4_t v0 = vreinterpretq_u32_u8(vld1q_u8(first + 16 * i)), v1 = vreinterpretq_u32_u8(vld1q_u8(second + 16 * i));
            const uint8x16_t w0 = vreinterpretq_u8_u32(vzip1q_u32(v0, v1)), w2 = vreinterpretq_u8_u32(vzip2q_u32(v0, v1));
            const uint8x16_t below = vdupq_n_u8(bits == 8 ? 255 : 15);
            for (int q = 0; q < (R + 1) / 2; ++q) {
                low[q] = vmmlaq_s32(low[q], vreinterpretq_s8_u8(vandq_u8(w0, below)), xs[q][c]);
                high[q] = vmmlaq_s32(high[q], vreinterpretq_s8_u8(vandq_u8(w2, below)), xs[q][c]);
            }
            for (int q = 0; bits == 4 && q < (R + 1) / 2; ++q) {
                low[q] = vmmlaq_s32(low[q], vreinterpretq_s8_u8(vshrq_n_u8(w0, 4)), xs[q][c + 2]);
                high[q] = vmmlaq_s32(high[q], vreinterpretq_s8_u8(vshrq_n_u8(w2, 4)), xs[q][c + 2]);
            }
        }
        for (int r = 0; r < R; ++r) {
            a[r].v[i] = r % 2 ? vuzp2q_s32(low[r / 2], high[r / 2]) : vuzp1q_s32(low[r / 2], high[r / 2]);
        }
    }
}
#endif

/* a[P][R] = start[R] + the products of a group of x, R rows, with one of w, P panels `apart` bytes from each other, of so many bits. */
OIC_INLINE void oic_dots_group(oic_dots *a, int R, int P, const uint8_t *w, const uint8_t *x, const uint8_t *start,
                               ptrdiff_t apart, ptrdiff_t ahead, int bits)
{
#if defined(__ARM_FEATURE_MATMUL_INT8)
    if (R > 2) {
        for (int p = 0; p < P; ++p) {
            oic_dots_group_of_rows(a + p * R, R, w + apart * p, x, start, ahead, bits);
        }
        return;
    }
#endif
    for (int i = 0; i < P * R; ++i) {
        oic_dots_begin(&a[i], start + 4 * (i % R));
    }
    for (int c = 0; c < 4; ++c) { /* steps 2 c and 2 c + 1 of q8; c and c + 4 of q4 */
        const int first = bits == 8 ? 2 * c : c, second = bits == 8 ? 2 * c + 1 : c + 4;
        for (int p = 0; p < P; ++p) {
            const uint8_t *const w0 = w + apart * p + 64 * first, *const w1 = bits == 8 ? w0 + 64 : w0;
            OIC_AHEAD_IF(w0, ahead);
            if (bits == 8) {
                OIC_AHEAD_IF(w1, ahead);
            }
            for (int i = 0; i < 4; ++i) {
                const int8x16_t some0 = oic_dots_some(w0 + 16 * i, bits, 0), some1 = oic_dots_some(w1 + 16 * i, bits, 1);
                for (int r = 0; r < R; ++r) {
                    const uint8_t *const row = x + r * OIC_DOTS_X;
                    int32x4_t *const sum = &a[p * R + r].v[i];
                    *sum = oic_dots_madd(*sum, some0, oic_dots_four(row + 4 * first), some1, oic_dots_four(row + 4 * second));
                }
            }
        }
    }
}

OIC_INLINE void oic_dots_group_8(oic_dots *a, int R, int P, const uint8_t *w, const uint8_t *x, const uint8_t *start,
                                 ptrdiff_t apart, ptrdiff_t ahead)
{
    oic_dots_group(a, R, P, w, x, start, apart, ahead, 8);
}

OIC_INLINE void oic_dots_group_4(oic_dots *a, int R, int P, const uint8_t *w, const uint8_t *x, const uint8_t *start,
                                 ptrdiff_t apart, ptrdiff_t ahead)
{
    oic_dots_group(a, R, P, w, x, start, apart, ahead, 4);
}

static inline void oic_dots_scales(oic_dots_factors *to, const oic_f16 *from)
{
    for (int i = 0; i < 4; ++i) {
        to->v[i] = vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from + 4 * i)));
    }
}

/* y += a * (dw * dx) */
static inline void oic_dots_add(float *y, const oic_dots *a, const oic_dots_factors *dw, float dx)
{
    for (int i = 0; i < 4; ++i) {
        const float32x4_t t = vmulq_f32(vcvtq_f32_s32(a->v[i]), vmulq_n_f32(dw->v[i], dx));
        vst1q_f32(y + 4 * i, vaddq_f32(vld1q_f32(y + 4 * i), t));
    }
}
