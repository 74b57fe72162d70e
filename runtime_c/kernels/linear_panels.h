/* oic_linear_panels_X_W_B: y[.., M, N] = x[.., M, K] * w[N, K]' + b[N], w in panels of sixteen rows, b of type B or NULL.

   Batches shape[rank] of x lie at the strides xs, its rows ldx apart.  Where there is `then`, it is given the results
   (common/then.h), and y is NULL.  Order and stack: product.inc.h. */
#include "common/products.h"
#include "common/then.h"
#include "element.h"

typedef struct {
    const T *x;
    const W_T *w;
    const B_T *b;
    T *y;
    ptrdiff_t rank;
    const ptrdiff_t *shape, *xs;
    ptrdiff_t M, K, N, ldx;
    oic_then *then;
    const void *context;
} ARGS(oic_linear_panels);

#define PANELS 1
#define OPERANDS NAME(oic_linear_panels_operands)
#define PRODUCT NAME(oic_linear_panels_product)
#define PRODUCT_ROWS NAME(oic_linear_panels_product_rows)
#define PRODUCT_FEW NAME(oic_linear_panels_product_few)
#define PRODUCT_ROW NAME(oic_linear_panels_product_row)
#define PRODUCT_STORE NAME(oic_linear_panels_product_store)
#define PRODUCT_GATHER NAME(oic_linear_panels_product_gather)
#define PRODUCT_AHEAD NAME(oic_linear_panels_product_ahead)
#define PRODUCT_COPY NAME(oic_linear_panels_product_copy)
#define PRODUCT_THEN NAME(oic_linear_panels_product_then)
#define PRODUCT_GIVE NAME(oic_linear_panels_product_give)
#include "product.inc.h"

/* Streams first..end-1 of the columns of y, four panels each: any division has the same bits. */
static inline void NAME(oic_linear_panels_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(oic_linear_panels) *const a = args;
    const ptrdiff_t batches = oic_product(a->rank, a->shape), panels = oic_product_panels(a->N);
    (void)worker;
    for (ptrdiff_t i = 0; i < batches; ++i) {
        PRODUCT(&(const OPERANDS){
                    .x = a->x + oic_offset(i, a->rank, a->shape, a->xs), .w = a->w, .b = a->b,
                    .y = a->then != NULL ? NULL : a->y + i * a->M * a->N,
                    .M = a->M, .K = a->K, .N = a->N, .xm = a->ldx, .xk = 1,
                    .wk = OIC_LANES, .wg = OIC_LANES * a->K, .wn = 1,
                    .before = i * a->M, .then = a->then, .context = a->context,
                },
                4 * first, 4 * end < panels ? 4 * end : panels);
    }
}

static inline void NAME(oic_linear_panels)(const ARGS(oic_linear_panels) *a)
{
    NAME(oic_linear_panels_part)(a, 0, (oic_product_panels(a->N) + 3) / 4, 0);
}

#include "product.end.h"
#include "end.h"
