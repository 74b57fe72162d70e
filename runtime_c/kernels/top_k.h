/* oic_top_k_X: y and where [outer, k, inner], the k largest of x[outer, n, inner] along n, largest first, the
   lower index first of equals, NaN largest, in time of n log k.  Results overlap no operand. */
#include "element.h"

typedef struct {
    const T *x;
    T *y;
    int32_t *where;
    ptrdiff_t outer, n, inner, k;
} ARGS(oic_top_k);

/* v, element i of those searched, comes before w, element j. */
static inline int NAME(oic_top_k_before)(C v, int32_t i, C w, int32_t j)
{
    const int after = w > v || (w != w && v == v);
    return v > w || (v != v && w == w) || (!after && i < j);
}

/* v, element i, sinks from place `at` of a heap of n, in which each comes after those below it. */
static inline void NAME(oic_top_k_sink)(T *y, int32_t *where, ptrdiff_t inner, ptrdiff_t at, ptrdiff_t n, T value, int32_t i)
{
    const C v = LOAD(&value, 0);
    for (ptrdiff_t below = 2 * at + 1; below < n; below = 2 * at + 1) {
        ptrdiff_t p = below * inner;
        if (below + 1 < n && NAME(oic_top_k_before)(LOAD(y, p), where[p], LOAD(y, p + inner), where[p + inner])) {
            p += inner;
        }
        if (!NAME(oic_top_k_before)(v, i, LOAD(y, p), where[p])) {
            break;
        }
        y[at * inner] = y[p];
        where[at * inner] = where[p];
        at = p / inner;
    }
    y[at * inner] = value;
    where[at * inner] = i;
}

/* Rows and columns first..end-1. */
static inline void NAME(oic_top_k_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(oic_top_k) *const a = args;
    const ptrdiff_t n = a->n, inner = a->inner, k = a->k;
    (void)worker;
    for (ptrdiff_t o = first; k > 0 && o < end; ++o) {
        const T *const x = a->x + o / inner * n * inner + o % inner;
        T *const y = a->y + o / inner * k * inner + o % inner;
        int32_t *const where = a->where + o / inner * k * inner + o % inner;
        for (ptrdiff_t i = k; i-- > 0;) { /* the first k, as a heap */
            NAME(oic_top_k_sink)(y, where, inner, i, k, x[i * inner], (int32_t)i);
        }
        for (ptrdiff_t i = k; i < n; ++i) {
            if (NAME(oic_top_k_before)(LOAD(x, i * inner), (int32_t)i, LOAD(y, 0), where[0])) {
                NAME(oic_top_k_sink)(y, where, inner, 0, k, x[i * inner], (int32_t)i);
            }
        }
        for (ptrdiff_t i = k; --i > 0;) { /* the last of those left goes behind them */
            const T value = y[i * inner];
            const int32_t at = where[i * inner];
            y[i * inner] = y[0];
            where[i * inner] = where[0];
            NAME(oic_top_k_sink)(y, where, inner, 0, i, value, at);
        }
    }
}

static inline void NAME(oic_top_k)(const ARGS(oic_top_k) *a)
{
    NAME(oic_top_k_part)(a, 0, a->outer * a->inner, 0);
}

#include "end.h"
