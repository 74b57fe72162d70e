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
#if BITS >= 8
    if (inner == 1 && a->times == 2) { /* a loop that becomes vector code */
        const T *restrict const x = a->x;
        T *restrict const y = a->y;
        for (ptrdiff_t r = 0; r < a->rows; ++r) {
            y[2 * r] = x[r];
            y[2 * r + 1] = x[r];
        }
        return;
    }
#endif
    for (ptrdiff_t r = 0; r < a->rows; ++r) {
        for (ptrdiff_t t = 0; t < a->times; ++t) {
            oic_move(a->y, (r * a->times + t) * inner, a->x, r * inner, inner, BITS);
        }
    }
}

#include "end.h"
