/* What is done to the results of a product as they are computed, instead of storing them. */
#ifndef OIC_THEN_H
#define OIC_THEN_H

#include "../../version.h"

#include <stddef.h>

/* Takes columns from..to-1 of rows first..end-1 of the results, which lie in `sum`, rows `ld` apart, and nowhere else; rows are
   counted through the leading axes.  It is called by the thread that has computed them, once for every element. */
typedef void oic_then(const void *context, const float *restrict sum, ptrdiff_t ld, ptrdiff_t first, ptrdiff_t end,
                      ptrdiff_t from, ptrdiff_t to);

#endif
