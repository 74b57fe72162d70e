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

static inline void NAME(oic_matmul)(const ARGS(oic_matmul) *m)
{
    const ptrdiff_t batches = oic_product(m->rank, m->shape);
    for (ptrdiff_t i = 0; i < batches; ++i) {
        const ptrdiff_t a0 = oic_offset(i, m->rank, m->shape, m->as), b0 = oic_offset(i, m->rank, m->shape, m->bs);
        for (ptrdiff_t row = 0; row < m->M; ++row) {
            for (ptrdiff_t j = 0, n; j < m->N; j += n) {
                W_SUM sum[OIC_INT_TILE];
                n = m->N - j < OIC_INT_TILE ? m->N - j : OIC_INT_TILE;
                NAME(oic_int_sums)(sum, m->a, a0 + row * m->am, m->b, b0 + j * m->bn, m->K, n, m->ak, m->bk, m->bn);
                for (ptrdiff_t l = 0; l < n; ++l) {
                    W_STORE(m->y, (i * m->M + row) * m->N + j + l, (W_C)sum[l]);
                }
            }
        }
    }
}

#undef OIC_INT_TILE
#include "end.h"
