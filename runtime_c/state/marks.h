/* Marks of the entries that were written, which say how far a table goes. */
#ifndef OIC_MARKS_H
#define OIC_MARKS_H

#include "../version.h"

#include <stddef.h>
#include <stdint.h>

/* One more than the last row in which a mark is set; 0 if none is.
   first   the first mark
   row     from one of `rows` rows to the next
   step    from one of the `marks` of a row to the next */
static inline ptrdiff_t oic_marked_rows(const uint8_t *first, ptrdiff_t rows, ptrdiff_t row, ptrdiff_t marks,
                                        ptrdiff_t step)
{
    for (ptrdiff_t last = rows; last > 0; --last) {
        for (ptrdiff_t i = 0; i < marks; ++i) {
            if (first[(last - 1) * row + i * step] != 0) {
                return last;
            }
        }
    }
    return 0;
}

#endif
