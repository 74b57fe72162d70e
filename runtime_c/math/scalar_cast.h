/* Conversions between element types.

   oic_cast_<F>_<T>_<mode>   float to integer: rounded by mode, NaN to 0, saturated
   oic_cast_<i64|u64>_<T>_sat, _wrap   integer to integer; every type but u64 widens to i64 first
   oic_cast_<S>_f32, _f64    to the nearest float, ties to even
   oic_cast_<S>_narrow       to a float that a store then rounds to f8, f16 or bf16 as if it were
                             exact: rounded to odd, so that the second rounding sees every tie
   oic_cast_<S>_bool         x is not zero (a NaN is not) */
#ifndef OIC_SCALAR_CAST_H
#define OIC_SCALAR_CAST_H

#include "../version.h"

#include "rounding.h"
#include "scalar_int.h"

/* ------------------------------------------------------------ to floats */

/* The float next to x toward zero, or x itself, made odd if x is not a float. */
static inline float oic_cast_f64_narrow(double x)
{
    const float near = (float)x;
    const double back = (double)near;
    const uint32_t bits = oic_bits_f32(near);
    const uint32_t toward_zero = oic_abs_f64(back) > oic_abs_f64(x) ? bits - 1u : bits + 1u;
    return back != x && x == x && (bits & 1u) == 0u ? oic_from_bits_f32(toward_zero) : near;
}

static inline float oic_cast_u64_narrow(uint64_t x)
{
    const uint64_t sticky = (x & UINT64_C(0x7ff)) != 0; /* the rest is exact in a double */
    return x >> 53 != 0 ? oic_cast_f64_narrow((double)((x >> 11) | sticky)) * 2048.0f
                        : oic_cast_f64_narrow((double)x);
}

static inline float oic_cast_i64_narrow(int64_t x)
{
    const float magnitude = oic_cast_u64_narrow(x < 0 ? 0u - (uint64_t)x : (uint64_t)x);
    return x < 0 ? -magnitude : magnitude;
}

static inline float oic_cast_f32_f32(float x) { return x; }
static inline double oic_cast_f32_f64(float x) { return (double)x; }
static inline float oic_cast_f64_f32(double x) { return (float)x; }
static inline double oic_cast_f64_f64(double x) { return x; }
static inline float oic_cast_f32_narrow(float x) { return x; }
static inline uint8_t oic_cast_f32_bool(float x) { return (uint8_t)(x != 0); }
static inline uint8_t oic_cast_f64_bool(double x) { return (uint8_t)(x != 0); }

/* EXACT(x): through a type that holds every value of T. */
#define OIC_CAST_FROM(T, V, EXACT)                                                            \
    static inline float oic_cast_##T##_f32(V x) { return (float)x; }                          \
    static inline double oic_cast_##T##_f64(V x) { return (double)x; }                        \
    static inline uint8_t oic_cast_##T##_bool(V x) { return (uint8_t)(x != 0); }              \
    EXACT(T, V)

#define OIC_BY_F64(T, V)                                                                      \
    static inline float oic_cast_##T##_narrow(V x) { return oic_cast_f64_narrow((double)x); }
#define OIC_ITSELF(T, V)

OIC_CAST_FROM(i1, int8_t, OIC_BY_F64)
OIC_CAST_FROM(i2, int8_t, OIC_BY_F64)
OIC_CAST_FROM(i4, int8_t, OIC_BY_F64)
OIC_CAST_FROM(i8, int8_t, OIC_BY_F64)
OIC_CAST_FROM(i16, int16_t, OIC_BY_F64)
OIC_CAST_FROM(i32, int32_t, OIC_BY_F64)
OIC_CAST_FROM(i64, int64_t, OIC_ITSELF)
OIC_CAST_FROM(u1, uint8_t, OIC_BY_F64)
OIC_CAST_FROM(u2, uint8_t, OIC_BY_F64)
OIC_CAST_FROM(u4, uint8_t, OIC_BY_F64)
OIC_CAST_FROM(u8, uint8_t, OIC_BY_F64)
OIC_CAST_FROM(u16, uint16_t, OIC_BY_F64)
OIC_CAST_FROM(u32, uint32_t, OIC_BY_F64)
OIC_CAST_FROM(u64, uint64_t, OIC_ITSELF)
OIC_CAST_FROM(bool, uint8_t, OIC_BY_F64)

#undef OIC_CAST_FROM
#undef OIC_BY_F64
#undef OIC_ITSELF

/* ------------------------------------------------------------ to integers */

/* x with its fraction dropped; LOW <= x < UPPER convert as they are.  The value that is converted
   is always in range, so that a loop may convert before it chooses; BELOW is the largest float
   below UPPER. */
#define OIC_CAST_FLOAT(F, FV, T, V, LOW, HIGH, UPPER, ALMOST)                                 \
    static inline V oic_cast_##F##_##T##_trunc(FV x)                                          \
    {                                                                                         \
        const FV number = x == x ? x : 0;                                                     \
        const FV raised = number > (FV)(LOW) ? number : (FV)(LOW);                            \
        const FV inside = raised < (FV)(UPPER) ? raised : (FV)(UPPER) * ALMOST;               \
        const V whole = (V)inside;                                                            \
        return number >= (FV)(UPPER) ? (V)(HIGH) : whole;                                     \
    }                                                                                         \
    static inline V oic_cast_##F##_##T##_floor(FV x)                                          \
    {                                                                                         \
        return oic_cast_##F##_##T##_trunc(oic_floor_##F(x));                                  \
    }                                                                                         \
    static inline V oic_cast_##F##_##T##_ceil(FV x)                                           \
    {                                                                                         \
        return oic_cast_##F##_##T##_trunc(oic_ceil_##F(x));                                   \
    }                                                                                         \
    static inline V oic_cast_##F##_##T##_nearest(FV x)                                        \
    {                                                                                         \
        return oic_cast_##F##_##T##_trunc(oic_round_half_away_##F(x));                        \
    }

#define OIC_CAST_FLOATS(T, V, LOW, HIGH, UPPER)                                               \
    OIC_CAST_FLOAT(f32, float, T, V, LOW, HIGH, UPPER, 0.99999994f)                           \
    OIC_CAST_FLOAT(f64, double, T, V, LOW, HIGH, UPPER, 0.99999999999999989)

/* From the two widest integers. */
#define OIC_CAST_INTS(T, V, W, LOW, HIGH)                                                     \
    static inline V oic_cast_i64_##T##_wrap(int64_t x) { return oic_wrap_##T((W)x); }         \
    static inline V oic_cast_u64_##T##_wrap(uint64_t x) { return oic_wrap_##T((W)x); }        \
    static inline V oic_cast_i64_##T##_sat(int64_t x)                                         \
    {                                                                                         \
        const int64_t raised = x < (int64_t)(LOW) ? (int64_t)(LOW) : x;                       \
        return raised > (int64_t)(HIGH) ? (V)(HIGH) : (V)raised;                              \
    }                                                                                         \
    static inline V oic_cast_u64_##T##_sat(uint64_t x)                                        \
    {                                                                                         \
        return x > (uint64_t)(HIGH) ? (V)(HIGH) : (V)x;                                       \
    }

#define OIC_CAST_TO(T, V, LOW, HIGH, UPPER)                                                   \
    OIC_CAST_FLOATS(T, V, LOW, HIGH, UPPER)                                                   \
    OIC_CAST_INTS(T, V, uint32_t, LOW, HIGH)

OIC_CAST_TO(i1, int8_t, -1, 0, 1)
OIC_CAST_TO(i2, int8_t, -2, 1, 2)
OIC_CAST_TO(i4, int8_t, -8, 7, 8)
OIC_CAST_TO(i8, int8_t, -128, 127, 128)
OIC_CAST_TO(i16, int16_t, INT16_MIN, INT16_MAX, 32768)
OIC_CAST_TO(i32, int32_t, INT32_MIN, INT32_MAX, 2147483648.0)
OIC_CAST_TO(u1, uint8_t, 0, 1, 2)
OIC_CAST_TO(u2, uint8_t, 0, 3, 4)
OIC_CAST_TO(u4, uint8_t, 0, 15, 16)
OIC_CAST_TO(u8, uint8_t, 0, UINT8_MAX, 256)
OIC_CAST_TO(u16, uint16_t, 0, UINT16_MAX, 65536)
OIC_CAST_TO(u32, uint32_t, 0, UINT32_MAX, 4294967296.0)
OIC_CAST_FLOATS(i64, int64_t, INT64_MIN, INT64_MAX, 9223372036854775808.0)
OIC_CAST_FLOATS(u64, uint64_t, 0, UINT64_MAX, 18446744073709551616.0)

static inline int64_t oic_cast_i64_i64_wrap(int64_t x) { return x; }
static inline int64_t oic_cast_i64_i64_sat(int64_t x) { return x; }
static inline int64_t oic_cast_u64_i64_wrap(uint64_t x) { return oic_wrap_i64(x); }
static inline uint64_t oic_cast_i64_u64_wrap(int64_t x) { return (uint64_t)x; }
static inline uint64_t oic_cast_i64_u64_sat(int64_t x) { return x < 0 ? 0 : (uint64_t)x; }
static inline uint64_t oic_cast_u64_u64_wrap(uint64_t x) { return x; }
static inline uint64_t oic_cast_u64_u64_sat(uint64_t x) { return x; }
static inline int64_t oic_cast_u64_i64_sat(uint64_t x)
{
    return x > (uint64_t)INT64_MAX ? INT64_MAX : (int64_t)x;
}

#undef OIC_CAST_FLOAT
#undef OIC_CAST_FLOATS
#undef OIC_CAST_INTS
#undef OIC_CAST_TO

#endif
