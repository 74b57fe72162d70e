/* Four numbers a register: WebAssembly with its vectors (-msimd128). */
#ifndef OIC_SIMD_WASM_H
#define OIC_SIMD_WASM_H

#include "../version.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <wasm_simd128.h>

#define OIC_WIDTH 4
#define OIC_WIDTH_F64 2

typedef float oic_register_f32 __attribute__((vector_size(16)));
typedef double oic_register_f64 __attribute__((vector_size(16)));
typedef int32_t oic_register_i32 __attribute__((vector_size(16)));
typedef uint32_t oic_register_u32 __attribute__((vector_size(16)));
typedef oic_register_u32 oic_mask; /* 0 or all ones */

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
    return (oic_register_i32)wasm_i32x4_extend_low_i16x8(wasm_i16x8_extend_low_i8x16(wasm_v128_load32_zero(from)));
}

static inline oic_register_u32 oic_register_load_u8(const uint8_t *from)
{
    return (oic_register_u32)wasm_u32x4_extend_low_u16x8(wasm_u16x8_extend_low_u8x16(wasm_v128_load32_zero(from)));
}

static inline oic_register_u32 oic_register_load_u16(const uint16_t *from)
{
    return (oic_register_u32)wasm_u32x4_load16x4(from);
}

static inline void oic_register_store_i8(int8_t *to, oic_register_i32 v)
{
    const v128_t words = wasm_i16x8_narrow_i32x4((v128_t)v, (v128_t)v);
    wasm_v128_store32_lane(to, wasm_i8x16_narrow_i16x8(words, words), 0);
}

static inline void oic_register_store_limited(uint8_t *to, const oic_register_i32 *v, int16_t more, int sign)
{
    const v128_t all = wasm_i16x8_splat(more);
    const v128_t low = wasm_i16x8_add_sat(wasm_i16x8_narrow_i32x4((v128_t)v[0], (v128_t)v[1]), all);
    const v128_t high = wasm_i16x8_add_sat(wasm_i16x8_narrow_i32x4((v128_t)v[2], (v128_t)v[3]), all);
    wasm_v128_store(to, sign ? wasm_i8x16_narrow_i16x8(low, high) : wasm_u8x16_narrow_i16x8(low, high));
}

static inline void oic_register_store_u16(uint16_t *to, oic_register_u32 v)
{
    const v128_t words = (v128_t)(v & 0xffffu);
    wasm_v128_store64_lane(to, wasm_u16x8_narrow_i32x4(words, words), 0);
}

static inline oic_mask oic_register_less_f32(oic_register_f32 a, oic_register_f32 b)
{
    return (oic_mask)wasm_f32x4_lt((v128_t)a, (v128_t)b);
}

static inline oic_mask oic_register_equal_f32(oic_register_f32 a, oic_register_f32 b)
{
    return (oic_mask)wasm_f32x4_eq((v128_t)a, (v128_t)b);
}

static inline oic_mask oic_register_less_i32(oic_register_i32 a, oic_register_i32 b)
{
    return (oic_mask)wasm_i32x4_lt((v128_t)a, (v128_t)b);
}

static inline oic_mask oic_register_equal_i32(oic_register_i32 a, oic_register_i32 b)
{
    return (oic_mask)wasm_i32x4_eq((v128_t)a, (v128_t)b);
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
    return wasm_v128_any_true((v128_t)a);
}

static inline oic_register_u32 oic_register_select_u32(oic_mask m, oic_register_u32 yes, oic_register_u32 no)
{
    return (oic_register_u32)wasm_v128_bitselect((v128_t)yes, (v128_t)no, (v128_t)m);
}

static inline oic_register_f32 oic_register_select_f32(oic_mask m, oic_register_f32 yes, oic_register_f32 no)
{
    return (oic_register_f32)wasm_v128_bitselect((v128_t)yes, (v128_t)no, (v128_t)m);
}

/* pmax(a, b) is a < b ? b : a, and pmin(a, b) is b < a ? b : a. */
static inline oic_register_f32 oic_register_max_f32(oic_register_f32 a, oic_register_f32 b)
{
    return (oic_register_f32)wasm_f32x4_pmax((v128_t)b, (v128_t)a);
}

static inline oic_register_f32 oic_register_min_f32(oic_register_f32 a, oic_register_f32 b)
{
    return (oic_register_f32)wasm_f32x4_pmin((v128_t)b, (v128_t)a);
}

static inline oic_register_f32 oic_register_sqrt_f32(oic_register_f32 a)
{
    return (oic_register_f32)wasm_f32x4_sqrt((v128_t)a);
}

static inline oic_register_f64 oic_register_sqrt_f64(oic_register_f64 a)
{
    return (oic_register_f64)wasm_f64x2_sqrt((v128_t)a);
}

static inline oic_register_f32 oic_register_to_f32(oic_register_i32 a)
{
    return (oic_register_f32)wasm_f32x4_convert_i32x4((v128_t)a);
}

static inline oic_register_i32 oic_register_to_i32(oic_register_f32 a)
{
    return (oic_register_i32)wasm_i32x4_trunc_sat_f32x4((v128_t)a);
}

static inline oic_register_i32 oic_register_nearest_i32(oic_register_f32 a)
{
    return (oic_register_i32)wasm_i32x4_trunc_sat_f32x4(wasm_f32x4_nearest((v128_t)a));
}

static inline oic_register_f32 oic_register_round_f32(oic_register_f32 a)
{
    return (oic_register_f32)wasm_f32x4_nearest((v128_t)a);
}

static inline oic_register_i32 oic_register_max_i32(oic_register_i32 a, oic_register_i32 b)
{
    return (oic_register_i32)wasm_i32x4_max((v128_t)a, (v128_t)b);
}

static inline oic_register_i32 oic_register_min_i32(oic_register_i32 a, oic_register_i32 b)
{
    return (oic_register_i32)wasm_i32x4_min((v128_t)a, (v128_t)b);
}

static inline oic_register_i32 oic_register_high_half_i32(oic_register_i32 a, oic_register_i32 b)
{
    const v128_t half = wasm_i64x2_const_splat(INT64_C(1) << 30);
    const v128_t low = wasm_i64x2_add(wasm_i64x2_extmul_low_i32x4((v128_t)a, (v128_t)b), half);
    const v128_t high = wasm_i64x2_add(wasm_i64x2_extmul_high_i32x4((v128_t)a, (v128_t)b), half);
    return (oic_register_i32)wasm_i32x4_shuffle(wasm_u64x2_shr(low, 31), wasm_u64x2_shr(high, 31), 0, 2, 4, 6);
}

static inline float oic_register_sum_f32(oic_register_f32 a)
{
    return (a[0] + a[2]) + (a[1] + a[3]);
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
    const v128_t bytes = wasm_v128_load(w), xs = wasm_i16x8_extend_low_i8x16(wasm_v128_load32_splat(x));
    const v128_t low = wasm_i32x4_dot_i16x8(wasm_i16x8_extend_low_i8x16(bytes), xs);
    const v128_t high = wasm_i32x4_dot_i16x8(wasm_i16x8_extend_high_i8x16(bytes), xs);
    const v128_t even = wasm_i32x4_shuffle(low, high, 0, 2, 4, 6), odd = wasm_i32x4_shuffle(low, high, 1, 3, 5, 7);
    return sum + (oic_register_i32)even + (oic_register_i32)odd;
}

static inline oic_register_u32 oic_register_dot_i16(oic_register_u32 sum, oic_register_u32 w, oic_register_u32 x)
{
    return sum + (oic_register_u32)wasm_i32x4_dot_i16x8((v128_t)w, (v128_t)x);
}

#endif
