/* oic_is_finite_X: *y = 1 if all of x[n] are finite, else 0. */
#include "element.h"

typedef struct {
    const T *x;
    uint8_t *y;
    ptrdiff_t n;
} ARGS(oic_is_finite);

static inline void NAME(oic_is_finite)(const ARGS(oic_is_finite) *a)
{
    const T *const x = a->x;
    const ptrdiff_t n = a->n;
    int others = 0;
    for (ptrdiff_t i = 0; i < n; ++i) {
        others |= !OIC_PASTE(oic_finite_, OIC_X)(x[i]);
    }
    *a->y = (uint8_t)(others == 0);
}

#include "end.h"
