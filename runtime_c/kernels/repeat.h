/* oic_repeat_X: y[rows, times, inner] = x[rows, inner], each row `times` times.  y does not overlap x. */
#include "element.h"

#include "common/move.h"

typedef struct {
    const T *x;
    T *y;
    ptrdiff_t rows, inner, times;
} ARGS(oic_repeat);

static inline void NAME(oic_repeat)(const ARGS(oic_repeat) *a)
{
    const ptrdiff_t inner = a->inner;
    for (ptrdiff_t r = 0; r < a->rows; ++r) {
        for (ptrdiff_t t = 0; t < a->times; ++t) {
            oic_move(a->y, (r * a->times + t) * inner, a->x, r * inner, inner, BITS);
        }
    }
}

#include "end.h"
