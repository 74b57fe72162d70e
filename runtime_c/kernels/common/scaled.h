/* Elements of x[outer, n, inner] in order, of which those of a row share a parameter of n; where inner is 1, each has the next. */
#ifndef OIC_SCALED_H
#define OIC_SCALED_H

#include "../../version.h"

#include <stddef.h>

#define OIC_AFFINE_SMALL (1 << 22) /* zero points, whose sums with integers of 16 bits f32 has exactly */
#define OIC_SCALED_UNIT 1024 /* elements: bits of packed ones that threads write are in bytes of their own */

/* Elements at..at+count-1, from `column` of `row` on. */
typedef struct {
    ptrdiff_t at, count, row, column;
} oic_scaled_run;

/* Before the first run of those that begin at an element. */
static inline oic_scaled_run oic_scaled_before(ptrdiff_t at, ptrdiff_t columns)
{
    return (oic_scaled_run){.at = at, .row = columns > 0 ? at / columns : 0, .column = columns > 0 ? at % columns : 0};
}

/* The next run of at most so many elements before `end`; 0 if there is none. */
static inline int oic_scaled_next(oic_scaled_run *run, ptrdiff_t columns, ptrdiff_t most, ptrdiff_t end)
{
    run->at += run->count;
    run->column += run->count;
    if (run->column == columns) {
        run->column = 0;
        ++run->row;
    }
    run->count = columns - run->column < most ? columns - run->column : most;
    run->count = end - run->at < run->count ? end - run->at : run->count;
    return run->at < end;
}

/* How many units so many elements have. */
static inline ptrdiff_t oic_scaled_units(ptrdiff_t elements)
{
    return (elements + OIC_SCALED_UNIT - 1) / OIC_SCALED_UNIT;
}

/* The end of the elements of units before `unit`. */
static inline ptrdiff_t oic_scaled_end(ptrdiff_t elements, ptrdiff_t unit)
{
    return unit * OIC_SCALED_UNIT < elements ? unit * OIC_SCALED_UNIT : elements;
}

#endif
