/* oic_linear_X_W_B of integers of type X, wrapping in type W: y[shape, M, N] = x[.., M, K] times the transpose
   of w[N, K], plus b[N] of type B (NULL: none), where x has the strides xs of shape[rank] and ldx of M, and w
   ldw of N.  y overlaps no operand. */
#include "element.h"

#include "common/batch.h"

#include "int_matrix.inc.h"

#define OIC_LINEAR_RUN 64 /* results of a row */

typedef struct {
    const T *x, *w;
    const B_T *b;
    W_T *y;
    ptrdiff_t rank;
    const ptrdiff_t *shape, *xs;
    ptrdiff_t M, K, N, ldx, ldw;
#if defined(OIC_REQUANTIZES)
    oic_requantized by;
#endif
} ARGS(oic_linear);

/* Units first..end-1 of rows. */
static inline void NAME(oic_linear_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(oic_linear) *const a = args;
    const ptrdiff_t units = (a->N + OIC_LINEAR_RUN - 1) / OIC_LINEAR_RUN;
#if defined(OIC_REQUANTIZES)
    const oic_requantized_range within = oic_requantized_within((int64_t)W_LOW, (int64_t)W_HIGH, a->by.zero_point);
#endif
    (void)worker;
    for (ptrdiff_t unit = first; unit < end; ++unit) {
        const ptrdiff_t row = unit / units, j = unit % units * OIC_LINEAR_RUN, left = a->N - j;
        const ptrdiff_t n = left < OIC_LINEAR_RUN ? left : OIC_LINEAR_RUN;
        const ptrdiff_t x0 = oic_offset(row / a->M, a->rank, a->shape, a->xs) + row % a->M * a->ldx;
        W_SUM sum[OIC_LINEAR_RUN];
        NAME(oic_int_sums)(sum, a->x, x0, a->w, j * a->ldw, a->K, n, 1, 1, a->ldw);
#if defined(OIC_REQUANTIZES)
        if (W_BITS == 8 && oic_requantized_stores(&a->by, within)) {
            const B_T *const b = a->b != NULL ? a->b + j : NULL;
            oic_requantized_store(&a->by, sum, b, n, j, 1, within, (uint8_t *)(void *)(a->y + row * a->N + j), 1);
            continue;
        }
#endif
        for (ptrdiff_t l = 0; a->b != NULL && l < n; ++l) {
            const W_SUM b = (W_SUM)B_LOAD(a->b, j + l);
            sum[l] = sum[l] + b;
        }
#if defined(OIC_REQUANTIZES)
        oic_requantized_each(&a->by, sum, n, j, within);
#endif
        for (ptrdiff_t l = 0; l < n; ++l) {
            W_STORE(a->y, row * a->N + j + l, (W_C)sum[l]);
        }
    }
}

static inline void NAME(oic_linear)(const ARGS(oic_linear) *a)
{
    const ptrdiff_t rows = oic_product(a->rank, a->shape) * a->M;
    NAME(oic_linear_part)(a, 0, rows * ((a->N + OIC_LINEAR_RUN - 1) / OIC_LINEAR_RUN), 0);
}

#undef OIC_LINEAR_RUN
#include "end.h"
