/* oic_gather_panels_X_W_B: y[n, inner] of type W = the n rows ids (type B, i32 or i64) of table[size, inner] in panels of sixteen
   rows.  The ids have been checked; y overlaps no operand. */
#include "../simd/lanes.h"
#include "element.h"

typedef struct {
    const T *table;
    const B_T *ids;
    W_T *y;
    ptrdiff_t inner, n;
} ARGS(oic_gather_panels);

static inline void NAME(oic_gather_panels)(const ARGS(oic_gather_panels) *a)
{
    const ptrdiff_t inner = a->inner;
    for (ptrdiff_t i = 0; i < a->n; ++i) {
        const ptrdiff_t row = (ptrdiff_t)a->ids[i], first = row / OIC_LANES * OIC_LANES * inner + row % OIC_LANES;
        for (ptrdiff_t k = 0; k < inner; ++k) {
            W_STORE(a->y, i * inner + k, (W_C)LOAD(a->table, first + k * OIC_LANES));
        }
    }
}

#include "end.h"
