/* Which columns of a convolution's result a tap reaches. */
#ifndef OIC_CONV_RANGE_H
#define OIC_CONV_RANGE_H

#include "../../version.h"

#include <stddef.h>

#define OIC_CONV_PART (OIC_SMALL_STACK ? 16 : 64) /* columns that are summed at a time, */
#define OIC_CONV_ROWS 4 /* of as many output channels */

/* The first column e >= low with e * step + left >= 0. */
static inline ptrdiff_t oic_conv_first(ptrdiff_t left, ptrdiff_t step, ptrdiff_t low)
{
    if (low * step + left >= 0) { /* the common case: a division takes as long as twenty products */
        return low;
    }
    return step == 1 ? -left : (-left + step - 1) / step;
}

/* One more than the last column e < high with e * step + left < size; not above high. */
static inline ptrdiff_t oic_conv_last(ptrdiff_t left, ptrdiff_t step, ptrdiff_t size, ptrdiff_t high)
{
    if ((high - 1) * step + left < size) {
        return high;
    }
    return size <= left ? 0 : step == 1 ? size - left : (size - left + step - 1) / step;
}

#endif
