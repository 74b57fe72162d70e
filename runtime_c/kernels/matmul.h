/* oic_matmul_X_W: y[.., M, N] = a[.., M, K] * b[.., K, N] * scale[.., N], for every index of shape[rank].

   Operands lie at the batch strides as, bs and ss (0 repeats) and the matrix strides am, ak, bk, bn and sn; scale may be
   NULL.  Matrices of packed elements start at whole bytes.  Order and stack: product.inc.h. */
#include "common/products.h"
#include "element.h"

typedef struct {
    const T *a;
    const W_T *b;
    const float *scale;
    T *y;
    ptrdiff_t rank;
    const ptrdiff_t *shape, *as, *bs, *ss;
    ptrdiff_t M, K, N, am, ak, bk, bn, sn;
} ARGS(oic_matmul);

#define B_T T
#define B_LOAD LOAD
#define PANELS 0
#define PRODUCT NAME(oic_matmul_product)
#define PRODUCT_ROW NAME(oic_matmul_product_row)
#include "product.inc.h"

static inline void NAME(oic_matmul)(const ARGS(oic_matmul) *a)
{
    const ptrdiff_t batches = oic_product(a->rank, a->shape);
    for (ptrdiff_t i = 0; i < batches; ++i) {
        const float *const scale = a->scale != NULL ? a->scale + oic_offset(i, a->rank, a->shape, a->ss) : NULL;
        const W_T *const b = a->b + oic_offset(i, a->rank, a->shape, a->bs) * W_BITS / (8 * (ptrdiff_t)sizeof(W_T));
        PRODUCT(a->a + oic_offset(i, a->rank, a->shape, a->as), a->am, a->ak, b, a->bk, OIC_LANES * a->bn, a->bn, scale,
                a->sn, NULL, a->y + i * a->M * a->N, a->M, a->K, a->N);
    }
}

#undef B_T
#undef B_LOAD
#undef PANELS
#undef PRODUCT
#undef PRODUCT_ROW
#include "end.h"
