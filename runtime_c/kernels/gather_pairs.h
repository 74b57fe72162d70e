/* oic_gather_pairs_X_W_B: y[n, inner] of type W = the n rows ids (type B, i32 or i64) of table[size, inner] of bf16 in panels of
   sixteen rows, two neighbours of a row side by side.  The ids have been checked; y overlaps no operand. */
#include "../simd/lanes.h"
#include "element.h"

typedef struct {
    const T *table;
    const B_T *ids;
    W_T *y;
    ptrdiff_t inner, n;
} ARGS(oic_gather_pairs);

static inline void NAME(oic_gather_pairs)(const ARGS(oic_gather_pairs) *a)
{
    const ptrdiff_t inner = a->inner;
    for (ptrdiff_t i = 0; i < a->n; ++i) {
        const ptrdiff_t row = (ptrdiff_t)a->ids[i], panel = row / OIC_LANES * OIC_LANES * (inner + inner % 2);
        for (ptrdiff_t k = 0; k < inner; ++k) {
            const ptrdiff_t at = panel + k / 2 * 2 * OIC_LANES + row % OIC_LANES * 2 + k % 2;
            W_STORE(a->y, i * inner + k, (W_C)LOAD(a->table, at));
        }
    }
}

#include "end.h"
