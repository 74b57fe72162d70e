/* oic_matmul_X_W of integers or bitset of type X, wrapping in type W: y[shape, M, N] = a[.., M, K] * b[.., K, N], where
   a has the strides as of shape[rank], am of M and ak of K, and b the strides bs, bk and bn.  y overlaps no operand. */
#include "element.h"

#include "common/batch.h"

#include "int_matrix.inc.h"

#define OIC_INT_TILE 256 /* neighbouring results that are summed at a time */

typedef struct {
    const T *a, *b;
    W_T *y;
    ptrdiff_t rank;
    const ptrdiff_t *shape, *as, *bs;
    ptrdiff_t M, K, N, am, ak, bk, bn;
} ARGS(oic_matmul);

/* Units first..end-1: tiles of rows, counted through the batches. */
static inline void NAME(oic_matmul_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(oic_matmul) *const m = args;
    const ptrdiff_t tiles = (m->N + OIC_INT_TILE - 1) / OIC_INT_TILE;
    (void)worker;
    for (ptrdiff_t unit = first; unit < end; ++unit) {
        const ptrdiff_t row = unit / tiles, j = unit % tiles * OIC_INT_TILE, i = row / m->M, left = m->N - j;
        const ptrdiff_t a0 = oic_offset(i, m->rank, m->shape, m->as) + row % m->M * m->am;
        const ptrdiff_t b0 = oic_offset(i, m->rank, m->shape, m->bs) + j * m->bn, n = left < OIC_INT_TILE ? left : OIC_INT_TILE;
        W_SUM sum[OIC_INT_TILE];
        NAME(oic_int_sums)(sum, m->a, a0, m->b, b0, m->K, n, m->ak, m->bk, m->bn);
        for (ptrdiff_t l = 0; l < n; ++l) {
            W_STORE(m->y, row * m->N + j + l, (W_C)sum[l]);
        }
    }
}

static inline void NAME(oic_matmul)(const ARGS(oic_matmul) *m)
{
    const ptrdiff_t tiles = (m->N + OIC_INT_TILE - 1) / OIC_INT_TILE;
    NAME(oic_matmul_part)(m, 0, oic_product(m->rank, m->shape) * m->M * tiles, 0);
}

#undef OIC_INT_TILE
#include "end.h"
