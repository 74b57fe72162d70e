/* Where the elements of a reduction lie whose reduced dimensions are not adjacent. */
#ifndef OIC_REDUCED_AXES_H
#define OIC_REDUCED_AXES_H

#include "../../version.h"

#include <stddef.h>

#include "columns.h"

#define OIC_COLUMNS 32 /* neighbouring results that are computed at a time */

/* Where element `flat` of the dimensions with reduced[d] == which begins in a dense tensor. */
static inline ptrdiff_t oic_reduced_offset(ptrdiff_t flat, ptrdiff_t rank, const ptrdiff_t *sizes,
                                           const ptrdiff_t *reduced, ptrdiff_t which)
{
    ptrdiff_t offset = 0, stride = 1;
    for (ptrdiff_t d = rank - 1; d >= 0; --d) {
        if (reduced[d] == which) {
            offset += flat % sizes[d] * stride;
            flat /= sizes[d];
        }
        stride *= sizes[d];
    }
    return offset;
}

/* The product of the sizes with reduced[d] == which; *size and *stride are those of the last. */
static inline ptrdiff_t oic_reduced_count(ptrdiff_t rank, const ptrdiff_t *sizes, const ptrdiff_t *reduced,
                                          ptrdiff_t which, ptrdiff_t *size, ptrdiff_t *stride)
{
    ptrdiff_t count = 1, inner = 1;
    *size = 1;
    *stride = 1;
    for (ptrdiff_t d = rank - 1; d >= 0; --d) {
        if (reduced[d] == which) {
            if (count == 1) {
                *size = sizes[d];
                *stride = inner;
            }
            count *= sizes[d];
        }
        inner *= sizes[d];
    }
    return count;
}

/* Units that threads can share: results, where reduced dimensions are not adjacent; else those of columns.h. */
static inline ptrdiff_t oic_reduced_units(ptrdiff_t rank, const ptrdiff_t *sizes, const ptrdiff_t *reduced, ptrdiff_t outer,
                                          ptrdiff_t inner)
{
    ptrdiff_t size, step;
    return rank > 0 ? oic_reduced_count(rank, sizes, reduced, 0, &size, &step) : outer * oic_columns_units(inner);
}

#endif
