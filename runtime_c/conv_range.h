/* Which columns of a convolution's result a tap reaches. */
#ifndef OIC_CONV_RANGE_H
#define OIC_CONV_RANGE_H

#include "version.h"

#include <stddef.h>

#define OIC_CONV_PART 64 /* columns that are summed at a time */

/* The first column e >= low with e * step + left >= 0. */
static inline ptrdiff_t oic_conv_first(ptrdiff_t left, ptrdiff_t step, ptrdiff_t low)
{
    const ptrdiff_t e = left < 0 ? (-left + step - 1) / step : 0;
    return e > low ? e : low;
}

/* One more than the last column e < high with e * step + left < size; not above high. */
static inline ptrdiff_t oic_conv_last(ptrdiff_t left, ptrdiff_t step, ptrdiff_t size, ptrdiff_t high)
{
    const ptrdiff_t e = size > left ? (size - left + step - 1) / step : 0;
    return e < high ? e : high;
}

#endif
