/* Leading axes of operands that need not be dense there. */
#ifndef OIC_BATCH_H
#define OIC_BATCH_H

#include "../../version.h"

#include <stddef.h>

/* Elements from the start to index `i`, counted in row-major order over shape[rank], in an operand with
   these strides.  A stride of 0 repeats. */
static inline ptrdiff_t oic_offset(ptrdiff_t i, ptrdiff_t rank, const ptrdiff_t *shape, const ptrdiff_t *stride)
{
    ptrdiff_t at = 0;
    for (ptrdiff_t a = rank - 1; a >= 0; --a) {
        at += i % shape[a] * stride[a];
        i /= shape[a];
    }
    return at;
}

/* Elements of a shape. */
static inline ptrdiff_t oic_product(ptrdiff_t rank, const ptrdiff_t *shape)
{
    ptrdiff_t n = 1;
    for (ptrdiff_t a = 0; a < rank; ++a) {
        n *= shape[a];
    }
    return n;
}

#endif
