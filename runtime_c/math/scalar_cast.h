/* Conversions between floats, and of bool.  Those from and to integers are in scalar_cast_int.h.

   oic_cast_<S>_f32, _f64    to the nearest float, ties to even
   oic_cast_<S>_narrow       to a float that a store then rounds to f8, f16 or bf16 as if it were
                             exact: rounded to odd, so that the second rounding sees every tie
   oic_cast_<S>_bool         x is not zero (a NaN is not) */
#ifndef OIC_SCALAR_CAST_H
#define OIC_SCALAR_CAST_H

#include "../version.h"

#include "rounding.h"

/* The float next to x toward zero, or x itself, made odd if x is not a float. */
static inline float oic_cast_f64_narrow(double x)
{
    const float near = (float)x;
    const double back = (double)near;
    const uint32_t bits = oic_bits_f32(near);
    const uint32_t toward_zero = oic_abs_f64(back) > oic_abs_f64(x) ? bits - 1u : bits + 1u;
    return back != x && x == x && (bits & 1u) == 0u ? oic_from_bits_f32(toward_zero) : near;
}

/* The same for 64 bits, of which a double would lose some: what lies below its last place is joined to that. */
static inline float oic_cast_whole_narrow(uint64_t x)
{
    const uint64_t sticky = (x & UINT64_C(0x7ff)) != 0; /* the rest is exact in a double */
    return x >> 53 != 0 ? oic_cast_f64_narrow((double)((x >> 11) | sticky)) * 2048.0f
                        : oic_cast_f64_narrow((double)x);
}

static inline float oic_cast_f32_f32(float x) { return x; }
static inline double oic_cast_f32_f64(float x) { return (double)x; }
static inline float oic_cast_f64_f32(double x) { return (float)x; }
static inline double oic_cast_f64_f64(double x) { return x; }
static inline float oic_cast_f32_narrow(float x) { return x; }
static inline uint8_t oic_cast_f32_bool(float x) { return (uint8_t)(x != 0); }
static inline uint8_t oic_cast_f64_bool(double x) { return (uint8_t)(x != 0); }

static inline float oic_cast_bool_f32(uint8_t x) { return (float)x; }
static inline double oic_cast_bool_f64(uint8_t x) { return (double)x; }
static inline float oic_cast_bool_narrow(uint8_t x) { return (float)x; }
static inline uint8_t oic_cast_bool_bool(uint8_t x) { return (uint8_t)(x != 0); }

#endif
