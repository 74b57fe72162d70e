/* Copies of elements to other places.  Elements are known by their width in bits; those of 1, 2 and 4 bits move
   within bytes, least significant bits first.  Results are dense and overlap no operand. */
#ifndef OIC_MOVE_H
#define OIC_MOVE_H

#include "version.h"

#include "batch.h"
#include "num.h"

/* n elements from element xi of x to element yi of y. */
static inline void oic_move(void *restrict y, ptrdiff_t yi, const void *restrict x, ptrdiff_t xi, ptrdiff_t n,
                            ptrdiff_t bits)
{
    if (bits >= 8) {
        const ptrdiff_t bytes = bits / 8;
        if (n > 0) {
            memcpy((uint8_t *)y + yi * bytes, (const uint8_t *)x + xi * bytes, (size_t)(n * bytes));
        }
        return;
    }
    for (ptrdiff_t i = 0; i < n; ++i) {
        oic_store_code((uint8_t *)y, yi + i, (uint32_t)bits, oic_load_code((const uint8_t *)x, xi + i, (uint32_t)bits));
    }
}

/* y[outer, sum of lengths, inner] = parts[count], each [outer, lengths[p], inner], one after another. */
static inline void oic_concat(const void *const parts[], void *restrict y, ptrdiff_t count, const ptrdiff_t *lengths,
                              ptrdiff_t outer, ptrdiff_t inner, ptrdiff_t bits)
{
    ptrdiff_t at = 0;
    for (ptrdiff_t o = 0; o < outer; ++o) {
        for (ptrdiff_t p = 0; p < count; ++p) {
            const ptrdiff_t n = lengths[p] * inner;
            oic_move(y, at, parts[p], o * n, n, bits);
            at += n;
        }
    }
}

/* y[rows, times, inner] = x[rows, inner], each row `times` times. */
static inline void oic_repeat(const void *restrict x, void *restrict y, ptrdiff_t rows, ptrdiff_t inner,
                              ptrdiff_t times, ptrdiff_t bits)
{
    for (ptrdiff_t r = 0; r < rows; ++r) {
        for (ptrdiff_t t = 0; t < times; ++t) {
            oic_move(y, (r * times + t) * inner, x, r * inner, inner, bits);
        }
    }
}

/* y[shape] = x[shape], reversed along the axes marked 1. */
static inline void oic_flip(const void *restrict x, void *restrict y, ptrdiff_t rank, const ptrdiff_t *shape,
                            const ptrdiff_t *marks, ptrdiff_t bits)
{
    const ptrdiff_t count = oic_product(rank, shape);
    for (ptrdiff_t i = 0; i < count; ++i) {
        ptrdiff_t from = 0, rest = i, step = 1;
        for (ptrdiff_t a = rank - 1; a >= 0; --a) {
            const ptrdiff_t at = rest % shape[a];
            from += (marks[a] ? shape[a] - 1 - at : at) * step;
            step *= shape[a];
            rest /= shape[a];
        }
        oic_move(y, i, x, from, 1, bits);
    }
}

/* Position 0..size-1 that position `at` of a padded axis repeats: mode 1 the border, 2 the mirror image; -1 where
   there is none (mode 0, or an empty axis). */
static inline ptrdiff_t oic_pad_source(ptrdiff_t at, ptrdiff_t size, int mode)
{
    const ptrdiff_t period = 2 * (size - 1);
    if (at >= 0 && at < size) {
        return at;
    }
    if (mode == 0 || size == 0) {
        return -1;
    }
    if (mode == 1 || size == 1) {
        return at < 0 ? 0 : size - 1;
    }
    at %= period;
    at = at < 0 ? at + period : at;
    return at < size ? at : period - at;
}

/* y = x[shape] with before[a] and after[a] elements more along axis a; `value` is one element. */
static inline void oic_pad(const void *restrict x, void *restrict y, ptrdiff_t rank, const ptrdiff_t *shape,
                           const ptrdiff_t *before, const ptrdiff_t *after, int mode, const void *restrict value,
                           ptrdiff_t bits)
{
    ptrdiff_t count = 1;
    for (ptrdiff_t a = 0; a < rank; ++a) {
        count *= before[a] + shape[a] + after[a];
    }
    for (ptrdiff_t i = 0; i < count; ++i) {
        ptrdiff_t from = 0, rest = i, step = 1;
        for (ptrdiff_t a = rank - 1; a >= 0; --a) {
            const ptrdiff_t size = before[a] + shape[a] + after[a];
            const ptrdiff_t at = oic_pad_source(rest % size - before[a], shape[a], mode);
            from = at < 0 || from < 0 ? -1 : from + at * step;
            step *= shape[a];
            rest /= size;
        }
        if (from < 0) {
            oic_move(y, i, value, 0, 1, bits);
        } else {
            oic_move(y, i, x, from, 1, bits);
        }
    }
}

/* oic_pad_T: oic_pad with the value as a number of the type T is computed in. */
#define OIC_PAD(T, S, V, BITS)                                                                                \
    static inline void oic_pad_##T(const S *restrict x, S *restrict y, ptrdiff_t rank, const ptrdiff_t *shape, \
                                   const ptrdiff_t *before, const ptrdiff_t *after, ptrdiff_t mode, V value)  \
    {                                                                                                         \
        S element[1] = {0};                                                                                   \
        oic_store_##T(element, 0, value);                                                                     \
        oic_pad(x, y, rank, shape, before, after, (int)mode, element, BITS);                                  \
    }

OIC_PAD(f8, oic_f8, float, 8)
OIC_PAD(f16, oic_f16, float, 16)
OIC_PAD(bf16, oic_bf16, float, 16)
OIC_PAD(f32, float, float, 32)
OIC_PAD(f64, double, double, 64)
OIC_PAD(i1, uint8_t, int8_t, 1)
OIC_PAD(i2, uint8_t, int8_t, 2)
OIC_PAD(i4, uint8_t, int8_t, 4)
OIC_PAD(t1, uint8_t, int8_t, 1)
OIC_PAD(t2, uint8_t, int8_t, 2)
OIC_PAD(i8, int8_t, int8_t, 8)
OIC_PAD(i16, int16_t, int16_t, 16)
OIC_PAD(i32, int32_t, int32_t, 32)
OIC_PAD(i64, int64_t, int64_t, 64)
OIC_PAD(u1, uint8_t, uint8_t, 1)
OIC_PAD(u2, uint8_t, uint8_t, 2)
OIC_PAD(u4, uint8_t, uint8_t, 4)
OIC_PAD(u8, uint8_t, uint8_t, 8)
OIC_PAD(u16, uint16_t, uint16_t, 16)
OIC_PAD(u32, uint32_t, uint32_t, 32)
OIC_PAD(u64, uint64_t, uint64_t, 64)
OIC_PAD(bool, uint8_t, uint8_t, 8)
OIC_PAD(bitset, uint8_t, uint8_t, 8)

/* y[outer, n, inner] = the n entries `ids` of table[outer, size, inner].  The ids have been checked. */
#define OIC_GATHER(I, SI)                                                                                        \
    static inline void oic_gather_##I(const void *restrict table, const SI *restrict ids, void *restrict y,      \
                                      ptrdiff_t outer, ptrdiff_t size, ptrdiff_t inner, ptrdiff_t n, ptrdiff_t bits) \
    {                                                                                                            \
        for (ptrdiff_t o = 0; o < outer; ++o) {                                                                  \
            for (ptrdiff_t i = 0; i < n; ++i) {                                                                  \
                oic_move(y, (o * n + i) * inner, table, (o * size + (ptrdiff_t)ids[i]) * inner, inner, bits);    \
            }                                                                                                    \
        }                                                                                                        \
    }

OIC_GATHER(i32, int32_t)
OIC_GATHER(i64, int64_t)

/* The same, widening every element from T to Y, whose values hold all of T's. */
#define OIC_GATHER_WIDE(T, S, Y, SY, I, SI)                                                                       \
    static inline void oic_gather_##T##_##Y##_##I(const S *restrict table, const SI *restrict ids, SY *restrict y, \
                                                  ptrdiff_t outer, ptrdiff_t size, ptrdiff_t inner, ptrdiff_t n)  \
    {                                                                                                             \
        for (ptrdiff_t o = 0; o < outer; ++o) {                                                                   \
            for (ptrdiff_t i = 0; i < n; ++i) {                                                                   \
                const ptrdiff_t from = (o * size + (ptrdiff_t)ids[i]) * inner;                                    \
                SY *const to = y + (o * n + i) * inner;                                                           \
                for (ptrdiff_t e = 0; e < inner; ++e) {                                                           \
                    to[e] = (SY)oic_load_##T(table, from + e);                                                    \
                }                                                                                                 \
            }                                                                                                     \
        }                                                                                                         \
    }

#define OIC_GATHER_TO(T, S, Y, SY)                \
    OIC_GATHER_WIDE(T, S, Y, SY, i32, int32_t)    \
    OIC_GATHER_WIDE(T, S, Y, SY, i64, int64_t)

#define OIC_GATHER_FROM(Y, SY)              \
    OIC_GATHER_TO(i1, uint8_t, Y, SY)       \
    OIC_GATHER_TO(i2, uint8_t, Y, SY)       \
    OIC_GATHER_TO(i4, uint8_t, Y, SY)       \
    OIC_GATHER_TO(i8, int8_t, Y, SY)        \
    OIC_GATHER_TO(i16, int16_t, Y, SY)      \
    OIC_GATHER_TO(u1, uint8_t, Y, SY)       \
    OIC_GATHER_TO(u2, uint8_t, Y, SY)       \
    OIC_GATHER_TO(u4, uint8_t, Y, SY)       \
    OIC_GATHER_TO(u8, uint8_t, Y, SY)       \
    OIC_GATHER_TO(u16, uint16_t, Y, SY)     \
    OIC_GATHER_TO(t1, uint8_t, Y, SY)       \
    OIC_GATHER_TO(t2, uint8_t, Y, SY)

OIC_GATHER_FROM(i32, int32_t)
OIC_GATHER_FROM(f32, float)
OIC_GATHER_FROM(f64, double)
OIC_GATHER_TO(f8, oic_f8, f32, float)
OIC_GATHER_TO(f16, oic_f16, f32, float)
OIC_GATHER_TO(bf16, oic_bf16, f32, float)
OIC_GATHER_TO(f8, oic_f8, f64, double)
OIC_GATHER_TO(f16, oic_f16, f64, double)
OIC_GATHER_TO(bf16, oic_bf16, f64, double)
OIC_GATHER_TO(f32, float, f64, double)

/* y[outer, n, inner] = start + index along the middle axis, wrapped to 32 bits. */
static inline void oic_iota(int32_t *restrict y, ptrdiff_t outer, ptrdiff_t n, ptrdiff_t inner, int64_t start)
{
    for (ptrdiff_t o = 0; o < outer; ++o) {
        for (ptrdiff_t i = 0; i < n; ++i) {
            const uint32_t v = (uint32_t)((uint64_t)start + (uint64_t)i);
            for (ptrdiff_t e = 0; e < inner; ++e) {
                oic_store_i32(y, (o * n + i) * inner + e, (int32_t)v);
            }
        }
    }
}

#endif
