/* oic_linear_X_W_B of integers of type X, wrapping in type W: y[shape, M, N] = x[.., M, K] times the transpose
   of w[N, K], plus b[N] of type B (NULL: none), where x has the strides xs of shape[rank] and ldx of M, and w
   ldw of N.  y overlaps no operand. */
#include "element.h"

#include "common/batch.h"

#include "int_matrix.inc.h"

typedef struct {
    const T *x, *w;
    const B_T *b;
    W_T *y;
    ptrdiff_t rank;
    const ptrdiff_t *shape, *xs;
    ptrdiff_t M, K, N, ldx, ldw;
} ARGS(oic_linear);

static inline void NAME(oic_linear)(const ARGS(oic_linear) *a)
{
    const ptrdiff_t batches = oic_product(a->rank, a->shape), M = a->M, N = a->N;
    for (ptrdiff_t i = 0; i < batches; ++i) {
        const ptrdiff_t x0 = oic_offset(i, a->rank, a->shape, a->xs);
        NAME(oic_int_matrix)(a->x, x0, a->w, 0, a->y, i * M * N, M, a->K, N, a->ldx, 1, 1, a->ldw);
    }
    for (ptrdiff_t i = 0; a->b != NULL && i < batches * M; ++i) {
        for (ptrdiff_t j = 0; j < N; ++j) { /* what has been wrapped may be added to: modulo the width of W */
            const W_SUM v = (W_SUM)W_LOAD(a->y, i * N + j), b = (W_SUM)B_LOAD(a->b, j);
            W_STORE(a->y, i * N + j, (W_C)(v + b));
        }
    }
}

#include "end.h"
