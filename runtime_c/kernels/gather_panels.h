/* oic_gather_panels_X_W_B: y[n, inner] of type W = the n rows ids (type B, i32 or i64) of table[size, inner] in panels of sixteen
   rows, TOGETHER neighbours of a row side by side.  The ids have been checked; y overlaps no operand. */
#include "../simd/lanes.h"
#include "element.h"

#if !defined(GATHER)
#define GATHER oic_gather_panels
#define TOGETHER 1
#endif

typedef struct {
    const T *table;
    const B_T *ids;
    W_T *y;
    ptrdiff_t inner, n;
} ARGS(GATHER);

/* Rows begin..end-1 of y. */
static inline void NAME(OIC_PASTE(GATHER, _part))(const void *args, ptrdiff_t begin, ptrdiff_t end, int worker)
{
    const ARGS(GATHER) *const a = args;
    const ptrdiff_t inner = a->inner, filled = (inner + TOGETHER - 1) / TOGETHER * TOGETHER;
    (void)worker;
    for (ptrdiff_t i = begin; i < end; ++i) {
        const ptrdiff_t row = (ptrdiff_t)a->ids[i], first = row / OIC_LANES * OIC_LANES * filled + row % OIC_LANES * TOGETHER;
        for (ptrdiff_t k = 0; k < inner; ++k) {
            W_STORE(a->y, i * inner + k, (W_C)LOAD(a->table, first + k / TOGETHER * TOGETHER * OIC_LANES + k % TOGETHER));
        }
    }
}

static inline void NAME(GATHER)(const ARGS(GATHER) *a)
{
    NAME(OIC_PASTE(GATHER, _part))(a, 0, a->n, 0);
}

#undef GATHER
#undef TOGETHER
#include "end.h"
