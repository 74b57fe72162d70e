/* Columns of x[outer, n, inner], of which each is computed on its own: as many as are faster at once, and in units that threads
   can share.  Where inner is 1 a unit is a row. */
#ifndef OIC_COLUMNS_H
#define OIC_COLUMNS_H

#include "../../version.h"

#include <stddef.h>

#define OIC_COLUMNS_UNIT 16 /* neighbours that no threads divide */

/* Columns first..first+count-1 of element `outer`: so many units. */
typedef struct {
    ptrdiff_t outer, first, count, units;
} oic_columns;

/* Units of each element of the outer axes. */
static inline ptrdiff_t oic_columns_units(ptrdiff_t inner)
{
    return (inner + OIC_COLUMNS_UNIT - 1) / OIC_COLUMNS_UNIT;
}

/* The columns from a unit on, of one element, none of unit `end`, and no more than `most`, a multiple of a unit. */
static inline oic_columns oic_columns_at(ptrdiff_t unit, ptrdiff_t end, ptrdiff_t inner, ptrdiff_t most)
{
    const ptrdiff_t each = oic_columns_units(inner), at = unit % each, first = at * OIC_COLUMNS_UNIT;
    const ptrdiff_t left = end - unit < each - at ? end - unit : each - at;
    const ptrdiff_t units = left < most / OIC_COLUMNS_UNIT ? left : most / OIC_COLUMNS_UNIT, room = units * OIC_COLUMNS_UNIT;
    return (oic_columns){unit / each, first, inner - first < room ? inner - first : room, units};
}

#endif
