/* oic_log_softmax_X: y[outer, n, inner] = x - max - ln of the sum of exp(x - max), along n.  y may be x. */
#include "element.h"

#include "common/columns.h"
#include "../math/scalar_math.h"
#include "../simd/sums.h"
#include "../simd/tiles.h"

typedef struct {
    const T *x;
    T *y;
    ptrdiff_t outer, n, inner;
} ARGS(oic_log_softmax);

#define OIC_EXPONENTIALS NAME(oic_log_softmax_columns)
#include "common/exponentials.inc.h"

#define OIC_LOG_ROWS 4
#define OIC_LOG_PART (OIC_SMALL_STACK ? 16 : 64) /* elements of each at a time */

/* So many rows of n neighbours: the exponentials of each are vector code, and additions of one need not wait for those of others. */
OIC_INLINE void NAME(oic_log_softmax_rows)(const T *x, T *y, ptrdiff_t n, int rows)
{
    C wide[OIC_LOG_PART], part[OIC_LOG_ROWS][OIC_LOG_PART];
    C top[OIC_LOG_ROWS], sum[OIC_LOG_ROWS] = {0}, lost[OIC_LOG_ROWS] = {0};
    for (int r = 0; r < rows; ++r) {
        top[r] = (C)-INFINITY;
        for (ptrdiff_t i = 0; i < n; i += OIC_LOG_PART) {
            const ptrdiff_t m = n - i < OIC_LOG_PART ? n - i : OIC_LOG_PART;
            top[r] = MATH(oic_largest)(WIDEN(x + r * n + i, m, wide), m, top[r]);
        }
    }
    for (ptrdiff_t i = 0; i < n; i += OIC_LOG_PART) {
        const ptrdiff_t m = n - i < OIC_LOG_PART ? n - i : OIC_LOG_PART;
        for (int r = 0; r < rows; ++r) {
            const C *const from = WIDEN(x + r * n + i, m, wide);
            for (ptrdiff_t e = 0; e < m; ++e) {
                part[r][e] = MATH(oic_exp)(from[e] - top[r]);
            }
        }
        for (ptrdiff_t e = 0; e < m; ++e) {
            for (int r = 0; r < rows; ++r) {
                sum[r] = MATH(oic_add_exactly)(sum[r], part[r][e], &lost[r]);
            }
        }
    }
    for (int r = 0; r < rows; ++r) {
        const C ln = MATH(oic_log)(sum[r]);
        for (ptrdiff_t i = 0; i < n; ++i) {
            STORE(y, r * n + i, LOAD(x, r * n + i) - top[r] - ln);
        }
    }
}

/* Units first..end-1: rows, or those of columns.h. */
static inline void NAME(oic_log_softmax_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(oic_log_softmax) *const a = args;
    const ptrdiff_t n = a->n, inner = a->inner;
    (void)worker;
    if (inner == 1) {
        const ptrdiff_t whole = end - (end - first) % OIC_LOG_ROWS;
        for (ptrdiff_t o = first; o < whole; o += OIC_LOG_ROWS) {
            NAME(oic_log_softmax_rows)(a->x + o * n, a->y + o * n, n, OIC_LOG_ROWS);
        }
        for (ptrdiff_t o = whole; o < end; ++o) {
            NAME(oic_log_softmax_rows)(a->x + o * n, a->y + o * n, n, 1);
        }
        return;
    }
    for (ptrdiff_t u = first; u < end;) {
        const oic_columns at = oic_columns_at(u, end, inner, OIC_EXP_COLUMNS);
        const T *const x = a->x + at.outer * n * inner;
        T *const y = a->y + at.outer * n * inner;
        const ptrdiff_t e0 = at.first, m = at.count;
        C top[OIC_EXP_COLUMNS], sum[OIC_EXP_COLUMNS];
        OIC_EXPONENTIALS(x + e0, n, inner, m, top, sum);
        for (ptrdiff_t e = 0; e < m; ++e) {
            sum[e] = MATH(oic_log)(sum[e]);
        }
        for (ptrdiff_t i = 0; i < n; ++i) {
            for (ptrdiff_t e = 0; e < m; ++e) {
                STORE(y, i * inner + e0 + e, LOAD(x, i * inner + e0 + e) - top[e] - sum[e]);
            }
        }
        u += at.units;
    }
}

static inline void NAME(oic_log_softmax)(const ARGS(oic_log_softmax) *a)
{
    NAME(oic_log_softmax_part)(a, 0, a->outer * oic_columns_units(a->inner), 0);
}

#undef OIC_EXPONENTIALS
#undef OIC_EXP_COLUMNS
#undef OIC_EXP_FEW
#undef OIC_LOG_ROWS
#undef OIC_LOG_PART
#include "end.h"
