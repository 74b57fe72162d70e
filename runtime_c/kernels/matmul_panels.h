/* oic_matmul_panels_X_W: y[.., M, N] = a[.., M, K] * b[K, N] * scale[N], b, of bytes, in panels of sixteen columns.

   Batches shape[rank] of a lie at the strides as, its rows lda apart, scales sn.  Order and stack: product.inc.h. */
#include "common/products.h"
#include "../simd/tiles_bytes.h"
#include "element.h"

typedef struct {
    const T *a;
    const W_T *b;
    const float *scale;
    T *y;
    ptrdiff_t rank;
    const ptrdiff_t *shape, *as;
    ptrdiff_t M, K, N, lda, sn;
} ARGS(oic_matmul_panels);

#define B_T T
#define B_LOAD LOAD
#define PANELS 1
#define OPERANDS NAME(oic_matmul_panels_operands)
#define PRODUCT NAME(oic_matmul_panels_product)
#define PRODUCT_ROWS NAME(oic_matmul_panels_product_rows)
#define PRODUCT_FEW NAME(oic_matmul_panels_product_few)
#define PRODUCT_ROW NAME(oic_matmul_panels_product_row)
#define PRODUCT_STORE NAME(oic_matmul_panels_product_store)
#define PRODUCT_GATHER NAME(oic_matmul_panels_product_gather)
#define PRODUCT_AHEAD NAME(oic_matmul_panels_product_ahead)
#define PRODUCT_COPY NAME(oic_matmul_panels_product_copy)
#define PRODUCT_GIVE NAME(oic_matmul_panels_product_give)
#include "product.inc.h"

/* Streams first..end-1 of the columns of y, four panels each: any division has the same bits. */
static inline void NAME(oic_matmul_panels_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(oic_matmul_panels) *const a = args;
    const ptrdiff_t batches = oic_product(a->rank, a->shape), panels = oic_product_panels(a->N);
    (void)worker;
    for (ptrdiff_t i = 0; i < batches; ++i) {
        PRODUCT(&(const OPERANDS){
                    .x = a->a + oic_offset(i, a->rank, a->shape, a->as), .w = a->b, .scale = a->scale,
                    .y = a->y + i * a->M * a->N, .M = a->M, .K = a->K, .N = a->N, .xm = a->lda, .xk = 1,
                    .wk = OIC_LANES, .wg = OIC_LANES * a->K, .wn = 1, .ds = a->sn,
                },
                4 * first, 4 * end < panels ? 4 * end : panels);
    }
}

static inline void NAME(oic_matmul_panels)(const ARGS(oic_matmul_panels) *a)
{
    NAME(oic_matmul_panels_part)(a, 0, (oic_product_panels(a->N) + 3) / 4, 0);
}

#include "product.end.h"
#undef B_T
#undef B_LOAD
#include "end.h"
