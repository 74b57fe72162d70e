/* oic_matmul_X_W of integers or bitset of type X, wrapping in type W: y[shape, M, N] = a[.., M, K] * b[.., K, N], where
   a has the strides as of shape[rank], am of M and ak of K, and b the strides bs, bk and bn.  y overlaps no operand. */
#include "element.h"

#include "common/batch.h"

#include "int_matrix.inc.h"

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
        NAME(oic_int_matrix)(m->a, a0, m->b, b0, m->y, i * m->M * m->N, m->M, m->K, m->N, m->am, m->ak, m->bk, m->bn);
    }
}

#include "end.h"
