/* oic_argmax_axis_of_product, oic_argmin_axis_of_product: y[rows] = where each row of a product's results has its largest, or smallest,
   element.  The product hands on parts of rows (common/then.h), in any order and from any thread, between ..._begin and
   ..._end.  Of equal ones the first, or the last if `last`; 0 where the first element is NaN; later ones are passed over.

   Until ..._end, y[row] is the key of the best element so far: 32 bits in the order of elements, those of zeros of both
   signs equal and those of a first NaN above all others, and then 32 in the order of positions, of which there are no more
   than 2^32; 0 before there is one.  The largest key is the same in whatever order they come. */
#ifndef OIC_EXTREME_OF_PRODUCT_H
#define OIC_EXTREME_OF_PRODUCT_H

#include "../version.h"

#include "common/then.h"
#include "../simd/lanes.h"

typedef struct {
    int64_t *y;
    ptrdiff_t rows;
    int last;
} oic_argmax_axis_of_product_args;

typedef oic_argmax_axis_of_product_args oic_argmin_axis_of_product_args;

/* The largest of v[n], or of -v if `least`; of zeros of both signs any, and -INFINITY where all are NaN. */
static inline float oic_largest_of_part(const float *v, ptrdiff_t n, int least)
{
    oic_lanes_f32 best;
    ptrdiff_t i = 0;
    for (int p = 0; p < OIC_PARTS_OF_LANES; ++p) {
        best.part[p] = oic_register_of_f32(-INFINITY);
    }
    for (; i + OIC_LANES <= n; i += OIC_LANES) {
        for (int p = 0; p < OIC_PARTS_OF_LANES; ++p) {
            const oic_register_f32 x = oic_register_load_f32(v + i + p * OIC_WIDTH);
            best.part[p] = oic_register_max_f32(least ? -x : x, best.part[p]);
        }
    }
    float top = oic_lanes_largest_f32(&best);
    for (; i < n; ++i) {
        const float x = least ? -v[i] : v[i];
        top = x > top ? x : top;
    }
    return top;
}

/* The upper half of the key of a number: larger for larger ones, and at its most for a NaN. */
static inline uint32_t oic_extreme_order(float v)
{
    const uint32_t bits = v == 0.0f ? 0u : oic_bits_f32(v);
    return v != v ? UINT32_MAX : bits >> 31 ? ~bits : bits | 0x80000000u;
}

/* The lower half of the key of a position, and the position of such a half. */
static inline uint32_t oic_extreme_place(uint32_t position, int last)
{
    return last ? position : ~position;
}

/* The key of the best element so far. */
static inline uint64_t oic_extreme_key(const uint64_t *key)
{
#if defined(OIC_ATOMIC_H)
    return oic_atomic_load_64(key);
#else
    return *key;
#endif
}

static inline void oic_extreme_raise(uint64_t *key, uint64_t to)
{
#if defined(OIC_ATOMIC_H)
    oic_atomic_raise_64(key, to);
#else
    *key = to > *key ? to : *key;
#endif
}

/* Columns from..to-1 of a row, v, are seen. */
static inline void oic_extreme_see(uint64_t *key, const float *v, ptrdiff_t from, ptrdiff_t to, int least, int last)
{
    const ptrdiff_t n = to - from, step = last ? -1 : 1;
    const int none = from == 0 && v[0] != v[0];
    const float best = none ? v[0] : oic_largest_of_part(v, n, least);
    const uint64_t order = (uint64_t)oic_extreme_order(best) << 32;
    ptrdiff_t at = last && !none ? n - 1 : 0;
    if ((order | UINT32_MAX) <= oic_extreme_key(key)) {
        return; /* wherever it is */
    }
    while (!none && (least ? -v[at] : v[at]) != best) {
        at += step;
        if (at < 0 || at == n) {
            return; /* all are NaN */
        }
    }
    oic_extreme_raise(key, order | oic_extreme_place((uint32_t)(from + at), last));
}

/* Nothing is seen yet. */
static inline void oic_argmax_axis_of_product_begin(const oic_argmax_axis_of_product_args *a)
{
    for (ptrdiff_t r = 0; r < a->rows; ++r) {
        a->y[r] = 0;
    }
}

static inline void oic_argmin_axis_of_product_begin(const oic_argmin_axis_of_product_args *a)
{
    oic_argmax_axis_of_product_begin(a);
}

static inline void oic_argmax_axis_of_product_then(const void *context, const float *restrict sum, ptrdiff_t ld, ptrdiff_t first,
                                                   ptrdiff_t end, ptrdiff_t from, ptrdiff_t to)
{
    const oic_argmax_axis_of_product_args *const a = context;
    for (ptrdiff_t r = first; r < end; ++r) {
        oic_extreme_see((uint64_t *)a->y + r, sum + (r - first) * ld, from, to, 0, a->last);
    }
}

static inline void oic_argmin_axis_of_product_then(const void *context, const float *restrict sum, ptrdiff_t ld, ptrdiff_t first,
                                                   ptrdiff_t end, ptrdiff_t from, ptrdiff_t to)
{
    const oic_argmin_axis_of_product_args *const a = context;
    for (ptrdiff_t r = first; r < end; ++r) {
        oic_extreme_see((uint64_t *)a->y + r, sum + (r - first) * ld, from, to, 1, a->last);
    }
}

/* All is seen: keys become positions. */
static inline void oic_argmax_axis_of_product_end(const oic_argmax_axis_of_product_args *a)
{
    for (ptrdiff_t r = 0; r < a->rows; ++r) {
        a->y[r] = (int64_t)oic_extreme_place((uint32_t)a->y[r], a->last);
    }
}

static inline void oic_argmin_axis_of_product_end(const oic_argmin_axis_of_product_args *a)
{
    oic_argmax_axis_of_product_end(a);
}

#endif
