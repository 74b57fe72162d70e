/* oic_matmul_bool: y[shape, M, N], y[.., i, j] = OR over k of a[.., i, k] AND b[.., k, j], where a has the
   strides as of shape[rank], am of M and ak of K, and b the strides bs, bk and bn.  y overlaps no operand. */
#include "element.h"

#include "common/batch.h"

typedef struct {
    const T *a, *b;
    T *y;
    ptrdiff_t rank;
    const ptrdiff_t *shape, *as, *bs;
    ptrdiff_t M, K, N, am, ak, bk, bn;
} ARGS(oic_matmul);

static inline void NAME(oic_matmul)(const ARGS(oic_matmul) *a)
{
    const ptrdiff_t batches = oic_product(a->rank, a->shape);
    for (ptrdiff_t i = 0; i < batches; ++i) {
        const T *const p = a->a + oic_offset(i, a->rank, a->shape, a->as);
        const T *const q = a->b + oic_offset(i, a->rank, a->shape, a->bs);
        for (ptrdiff_t m = 0; m < a->M; ++m) {
            for (ptrdiff_t n = 0; n < a->N; ++n) {
                T any = 0;
                for (ptrdiff_t k = 0; k < a->K; ++k) {
                    any |= (T)(p[m * a->am + k * a->ak] & q[k * a->bk + n * a->bn]);
                }
                a->y[(i * a->M + m) * a->N + n] = any;
            }
        }
    }
}

#include "end.h"
