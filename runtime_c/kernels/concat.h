/* oic_concat_X: y[outer, sum of lengths, inner] = parts[count], each [outer, lengths[p], inner], one after another.
   y overlaps no part. */
#include "element.h"

#include "common/move.h"

typedef struct {
    const void *const *parts;
    T *y;
    ptrdiff_t count;
    const ptrdiff_t *lengths;
    ptrdiff_t outer, inner;
} ARGS(oic_concat);

static inline void NAME(oic_concat)(const ARGS(oic_concat) *a)
{
    ptrdiff_t at = 0;
    for (ptrdiff_t o = 0; o < a->outer; ++o) {
        for (ptrdiff_t p = 0; p < a->count; ++p) {
            const ptrdiff_t n = a->lengths[p] * a->inner;
            oic_move(a->y, at, a->parts[p], o * n, n, BITS);
            at += n;
        }
    }
}

#include "end.h"
