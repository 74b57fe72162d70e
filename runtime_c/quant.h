/* Between real numbers and small integers.  Results overlap no operand. */
#ifndef OIC_QUANT_H
#define OIC_QUANT_H

#include "version.h"

#include "num.h"
#include "rounding.h"

/* Element i of a zero_point of type t, of 32 bits or fewer. */
static inline int64_t oic_quant_whole(const void *p, oic_dtype t, ptrdiff_t i)
{
    switch (t) {
    case OIC_I1: return (int64_t)oic_load_i1(p, i);
    case OIC_I2: return (int64_t)oic_load_i2(p, i);
    case OIC_I4: return (int64_t)oic_load_i4(p, i);
    case OIC_I8: return (int64_t)oic_load_i8(p, i);
    case OIC_I16: return (int64_t)oic_load_i16(p, i);
    case OIC_U1: return (int64_t)oic_load_u1(p, i);
    case OIC_U2: return (int64_t)oic_load_u2(p, i);
    case OIC_U4: return (int64_t)oic_load_u4(p, i);
    case OIC_U8: return (int64_t)oic_load_u8(p, i);
    case OIC_U16: return (int64_t)oic_load_u16(p, i);
    case OIC_U32: return (int64_t)oic_load_u32(p, i);
    default: return (int64_t)oic_load_i32(p, i);
    }
}

/* v / 2^n, rounded toward minus infinity. */
static inline int64_t oic_shift_right(int64_t v, int n)
{
    return v >= 0 ? v >> n : -((-(v + 1)) >> n) - 1;
}

/* TensorFlow Lite's MultiplyByQuantizedMultiplier: the shift left wraps, the high half of the doubled product is
   rounded (halves away from zero below, toward plus infinity above) and saturates, the shift right rounds halves away
   from zero. */
static inline int64_t oic_scale_tflite(int32_t x, int32_t multiplier, int8_t shift)
{
    const int left = shift > 0 ? (shift < 31 ? shift : 31) : 0, right = shift < 0 ? (shift > -31 ? -shift : 31) : 0;
    const uint32_t bits = (uint32_t)x << left;
    const int64_t shifted = bits & 0x80000000u ? (int64_t)bits - 4294967296 : (int64_t)bits;
    const int64_t ab = shifted * multiplier;
    const int64_t total = ab + (ab >= 0 ? 1073741824 : -1073741823);
    const int64_t most = total / 2147483648; /* toward zero */
    const int64_t high = most > 2147483647 ? 2147483647 : most;
    const int64_t mask = ((int64_t)1 << right) - 1;
    const int64_t whole = oic_shift_right(high, right);
    const int64_t rest = high - whole * (mask + 1);
    return whole + (rest > (mask >> 1) + (high < 0) ? 1 : 0);
}

/* Its form with one rounding, halves upward, saturated to 32 bits. */
static inline int64_t oic_scale_nearest(int32_t x, int32_t multiplier, int8_t shift)
{
    const int right = 31 - shift < 1 ? 1 : 31 - shift > 62 ? 62 : 31 - shift;
    const int64_t half = oic_shift_right((int64_t)x * multiplier, right - 1);
    const int64_t v = oic_shift_right(half + 1, 1);
    return v < -2147483647 - 1 ? -2147483647 - 1 : v > 2147483647 ? 2147483647 : v;
}

/* quantize: y[outer, n, inner] = round(x / scale[n]) + zero_point[n], saturated; halves to even, NaN gives 0.
   zero_point has type tz, or is NULL. */
#define OIC_QUANTIZE(T, S, C, Y, SY, VY, LOW, HIGH)                                                         \
    static inline void oic_quantize_##T##_##Y(const S *restrict x, const float *restrict scale,             \
                                              const void *restrict zero_point, oic_dtype tz, SY *restrict y, \
                                              ptrdiff_t outer, ptrdiff_t n, ptrdiff_t inner)                \
    {                                                                                                       \
        for (ptrdiff_t i = 0; i < outer * n * inner; ++i) {                                                 \
            const ptrdiff_t p = i / inner % n;                                                              \
            const double zero = zero_point ? (double)oic_quant_whole(zero_point, tz, p) : 0.0;              \
            const double v = oic_round_half_even_f64((double)(oic_load_##T(x, i) / (C)scale[p])) + zero;                       \
            oic_store_##Y(y, i, (VY)(v != v ? 0.0 : v < LOW ? LOW : v > HIGH ? HIGH : v));                  \
        }                                                                                                   \
    }

/* dequantize: y[outer, n, inner] = (x - zero_point[n]) * scale[n]. */
#define OIC_DEQUANTIZE(T, S, C, Y, SY)                                                                      \
    static inline void oic_dequantize_##Y##_##T(const SY *restrict x, const float *restrict scale,          \
                                                const void *restrict zero_point, oic_dtype tz, S *restrict y, \
                                                ptrdiff_t outer, ptrdiff_t n, ptrdiff_t inner)              \
    {                                                                                                       \
        for (ptrdiff_t i = 0; i < outer * n * inner; ++i) {                                                 \
            const ptrdiff_t p = i / inner % n;                                                              \
            const int64_t zero = zero_point ? oic_quant_whole(zero_point, tz, p) : 0;                       \
            oic_store_##T(y, i, (C)((int64_t)oic_load_##Y(x, i) - zero) * (C)scale[p]);                     \
        }                                                                                                   \
    }

/* requantize: y[outer, n, inner] = x scaled by multiplier[n] * 2^(shift[n] - 31), plus zero_point, saturated. */
#define OIC_REQUANTIZE(Y, SY, VY, LOW, HIGH)                                                                \
    static inline void oic_requantize_##Y(const int32_t *restrict x, const int32_t *restrict multiplier,    \
                                          const int8_t *restrict shift, SY *restrict y, ptrdiff_t outer, ptrdiff_t n, \
                                          ptrdiff_t inner, int64_t zero_point, ptrdiff_t nearest)           \
    {                                                                                                       \
        for (ptrdiff_t i = 0; i < outer * n * inner; ++i) {                                                 \
            const ptrdiff_t p = i / inner % n;                                                              \
            const int64_t v = (nearest ? oic_scale_nearest(x[i], multiplier[p], shift[p])                   \
                                       : oic_scale_tflite(x[i], multiplier[p], shift[p])) + zero_point;     \
            oic_store_##Y(y, i, (VY)(v < (int64_t)LOW ? (int64_t)LOW : v > (int64_t)HIGH ? (int64_t)HIGH : v)); \
        }                                                                                                   \
    }

#define OIC_QUANT(Y, SY, VY, LOW, HIGH)                      \
    OIC_QUANTIZE(f8, oic_f8, float, Y, SY, VY, LOW, HIGH)    \
    OIC_DEQUANTIZE(f8, oic_f8, float, Y, SY)                 \
    OIC_QUANTIZE(f16, oic_f16, float, Y, SY, VY, LOW, HIGH)  \
    OIC_DEQUANTIZE(f16, oic_f16, float, Y, SY)               \
    OIC_QUANTIZE(bf16, oic_bf16, float, Y, SY, VY, LOW, HIGH) \
    OIC_DEQUANTIZE(bf16, oic_bf16, float, Y, SY)             \
    OIC_QUANTIZE(f32, float, float, Y, SY, VY, LOW, HIGH)    \
    OIC_DEQUANTIZE(f32, float, float, Y, SY)                 \
    OIC_QUANTIZE(f64, double, double, Y, SY, VY, LOW, HIGH)  \
    OIC_DEQUANTIZE(f64, double, double, Y, SY)               \
    OIC_REQUANTIZE(Y, SY, VY, LOW, HIGH)

OIC_QUANT(i1, uint8_t, int8_t, -1.0, 0.0)
OIC_QUANT(i2, uint8_t, int8_t, -2.0, 1.0)
OIC_QUANT(i4, uint8_t, int8_t, -8.0, 7.0)
OIC_QUANT(i8, int8_t, int8_t, -128.0, 127.0)
OIC_QUANT(i16, int16_t, int16_t, -32768.0, 32767.0)
OIC_QUANT(i32, int32_t, int32_t, -2147483648.0, 2147483647.0)
OIC_QUANT(u1, uint8_t, uint8_t, 0.0, 1.0)
OIC_QUANT(u2, uint8_t, uint8_t, 0.0, 3.0)
OIC_QUANT(u4, uint8_t, uint8_t, 0.0, 15.0)
OIC_QUANT(u8, uint8_t, uint8_t, 0.0, 255.0)
OIC_QUANT(u16, uint16_t, uint16_t, 0.0, 65535.0)
OIC_QUANT(u32, uint32_t, uint32_t, 0.0, 4294967295.0)

#endif
