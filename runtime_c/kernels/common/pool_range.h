/* Which elements of an axis a window of a pool covers. */
#ifndef OIC_POOL_RANGE_H
#define OIC_POOL_RANGE_H

#include "../../version.h"

#include <stddef.h>

/* The first element, of those that exist. */
static inline ptrdiff_t oic_pool_first(ptrdiff_t from)
{
    return from > 0 ? from : 0;
}

/* One more than the last element. */
static inline ptrdiff_t oic_pool_last(ptrdiff_t from, ptrdiff_t window, ptrdiff_t size)
{
    return from + window < size ? from + window : size;
}

#endif
