/* Which elements of an axis a window of a pool covers. */
#ifndef OIC_POOL_RANGE_H
#define OIC_POOL_RANGE_H

#include "../../version.h"

#include "../../num.h"
#include "../../simd/registers.h"

#include <stddef.h>

/* The first element that a window meets: at most half of it is padding. */
static inline ptrdiff_t oic_pool_first(ptrdiff_t from)
{
    return from > 0 ? from : 0;
}

/* One more than the last element; no less than the first. */
static inline ptrdiff_t oic_pool_last(ptrdiff_t from, ptrdiff_t window, ptrdiff_t size)
{
    return from + window < size ? from + window : size;
}

/* The larger of each two, the first of equal ones; a NaN, the first of two, is the largest. */
static inline oic_register_f32 oic_pool_larger_f32(oic_register_f32 a, oic_register_f32 b)
{
    const oic_mask other = oic_mask_and(oic_mask_not(oic_register_equal_f32(b, b)), oic_register_equal_f32(a, a));
    return oic_register_select_f32(other, b, oic_register_max_f32(b, a));
}

static inline oic_register_f64 oic_pool_larger_f64(oic_register_f64 a, oic_register_f64 b)
{
    double v[sizeof a / sizeof(double)], w[sizeof a / sizeof(double)];
    memcpy(v, &b, sizeof v);
    memcpy(w, &a, sizeof w);
    for (size_t i = 0; i < sizeof a / sizeof(double); ++i) {
        w[i] = oic_select_f64((w[i] != w[i]) | (v[i] <= w[i]), w[i], v[i]);
    }
    memcpy(&a, w, sizeof a);
    return a;
}

#endif
