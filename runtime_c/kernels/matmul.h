/* oic_matmul_X_W: y[.., M, N] = a[.., M, K] * b[.., K, N] * scale[.., N], for every index of shape[rank].

   Operands lie at the batch strides as, bs and ss (0 repeats) and the matrix strides am, ak, bk, bn and sn; scale may be
   NULL.  Matrices of packed elements need no whole bytes.  Order and stack: product.inc.h. */
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
#define OPERANDS NAME(oic_matmul_operands)
#define PRODUCT NAME(oic_matmul_product)
#define PRODUCT_ROWS NAME(oic_matmul_product_rows)
#define PRODUCT_ROW NAME(oic_matmul_product_row)
#define PRODUCT_STORE NAME(oic_matmul_product_store)
#define PRODUCT_GATHER NAME(oic_matmul_product_gather)
#define PRODUCT_AHEAD NAME(oic_matmul_product_ahead)
#define PRODUCT_COPY NAME(oic_matmul_product_copy)
#define PRODUCT_GIVE NAME(oic_matmul_product_give)
#include "product.inc.h"

/* Panels first..end-1, counted through the batches: any division has the same bits. */
static inline void NAME(oic_matmul_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(oic_matmul) *const a = args;
    const ptrdiff_t panels = oic_product_panels(a->N);
    (void)worker;
    while (first < end) {
        const ptrdiff_t i = first / panels, from = first % panels, to = end - first < panels - from ? from + (end - first) : panels;
        const float *const scale = a->scale != NULL ? a->scale + oic_offset(i, a->rank, a->shape, a->ss) : NULL;
        const ptrdiff_t at = oic_offset(i, a->rank, a->shape, a->bs), whole = at * W_BITS / (8 * (ptrdiff_t)sizeof(W_T));
        PRODUCT(&(const OPERANDS){
                    .x = a->a + oic_offset(i, a->rank, a->shape, a->as), .w = a->b + whole, .scale = scale, .y = a->y + i * a->M * a->N,
                    .M = a->M, .K = a->K, .N = a->N, .xm = a->am, .xk = a->ak, .wk = a->bk, .wg = OIC_LANES * a->bn,
                    .wn = a->bn, .ds = a->sn, .before_w = at - whole * 8 * (ptrdiff_t)sizeof(W_T) / W_BITS,
                },
                from, to);
        first += to - from;
    }
}

static inline void NAME(oic_matmul)(const ARGS(oic_matmul) *a)
{
    NAME(oic_matmul_part)(a, 0, oic_product(a->rank, a->shape) * oic_product_panels(a->N), 0);
}

#include "product.end.h"
#undef B_T
#undef B_LOAD
#include "end.h"
