/* oic_linear_X_W_B: y[.., M, N] = x[.., M, K] * w[N, K]' + b[N], w with its rows ldw apart, b of type B or NULL.

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
    ptrdiff_t M, K, N, ldx, ldw;
} ARGS(oic_linear);

#define PANELS 0
#define OPERANDS NAME(oic_linear_operands)
#define PRODUCT NAME(oic_linear_product)
#define PRODUCT_ROWS NAME(oic_linear_product_rows)
#define PRODUCT_ROW NAME(oic_linear_product_row)
#define PRODUCT_STORE NAME(oic_linear_product_store)
#define PRODUCT_GATHER NAME(oic_linear_product_gather)
#define PRODUCT_AHEAD NAME(oic_linear_product_ahead)
#define PRODUCT_COPY NAME(oic_linear_product_copy)
#define PRODUCT_GIVE NAME(oic_linear_product_give)
#include "product.inc.h"

/* Panels first..end-1 of the columns of y: any division has the same bits. */
static inline void NAME(oic_linear_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(oic_linear) *const a = args;
    const ptrdiff_t batches = oic_product(a->rank, a->shape);
    (void)worker;
    for (ptrdiff_t i = 0; i < batches; ++i) {
        PRODUCT(&(const OPERANDS){
                    .x = a->x + oic_offset(i, a->rank, a->shape, a->xs), .w = a->w, .b = a->b, .y = a->y + i * a->M * a->N,
                    .M = a->M, .K = a->K, .N = a->N, .xm = a->ldx, .xk = 1,
                    .wk = 1, .wg = OIC_LANES * a->ldw, .wn = a->ldw,
                },
                first, end);
    }
}

static inline void NAME(oic_linear)(const ARGS(oic_linear) *a)
{
    NAME(oic_linear_part)(a, 0, oic_product_panels(a->N), 0);
}

#include "product.end.h"
#include "end.h"
