/* oic_linear_panels_X_W_B: y[.., M, N] = x[.., M, K] * w[N, K]' + b[N], w in panels of sixteen rows, b of type B or NULL.

   Batches shape[rank] of x lie at the strides xs, its rows ldx apart.  Order and stack: product.inc.h. */
#include "common/products.h"
#include "element.h"

typedef struct {
    const T *x;
    const W_T *w;
    const B_T *b;
    T *y;
    ptrdiff_t rank;
    const ptrdiff_t *shape, *xs;
    ptrdiff_t M, K, N, ldx;
} ARGS(oic_linear_panels);

#define PANELS 1
#define PRODUCT NAME(oic_linear_panels_product)
#define PRODUCT_ROW NAME(oic_linear_panels_product_row)
#include "product.inc.h"

static inline void NAME(oic_linear_panels)(const ARGS(oic_linear_panels) *a)
{
    const ptrdiff_t batches = oic_product(a->rank, a->shape);
    for (ptrdiff_t i = 0; i < batches; ++i) {
        PRODUCT(a->x + oic_offset(i, a->rank, a->shape, a->xs), a->ldx, 1, a->w, OIC_LANES, OIC_LANES * a->K, 1, NULL, 0,
                a->b, a->y + i * a->M * a->N, a->M, a->K, a->N);
    }
}

#undef PANELS
#undef PRODUCT
#undef PRODUCT_ROW
#include "end.h"
