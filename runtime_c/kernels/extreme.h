/* oic_max_axis_X, oic_min_axis_X: y[outer, inner] = the largest, or smallest, element of x[outer, n, inner]
   along n; or, if rank is not 0, of x[sizes[rank]] along the dimensions with reduced[d] == 1.  y must not
   overlap x; n >= 1. NaN where the first element is one; later ones are passed over.
   oic_argmax_axis_X, oic_argmin_axis_X: where along n: of equal ones the first, or the last if `last`; 0 where
   the first element is NaN.

   Of zeros of both signs the first. */
#include "element.h"

#include "common/reduced_axes.h"
#include "../simd/sums.h"

#define OIC_EXTREME_SPANS 64   /* of a row, at most: what is looked through again for the position is one of them */
#define OIC_EXTREME_LEAST 1024 /* elements of a span, at least, but for the last */

typedef struct {
    const T *x;
    T *y;
    ptrdiff_t outer, n, inner, rank;
    const ptrdiff_t *sizes, *reduced;
} ARGS(oic_max_axis);

typedef ARGS(oic_max_axis) ARGS(oic_min_axis);

typedef struct {
    const T *x;
    int64_t *y;
    ptrdiff_t outer, n, inner;
    int last;
} ARGS(oic_argmax_axis);

typedef ARGS(oic_argmax_axis) ARGS(oic_argmin_axis);

/* v, if it is larger than `best`, or smaller if `least`. */
static inline C NAME(oic_better)(C v, C best, int least)
{
    return least ? (v < best ? v : best) : (v > best ? v : best);
}

/* The extreme of `first` and n neighbours from element `at` on; of zeros of both signs any. */
static inline C NAME(oic_extreme_of)(const T *x, ptrdiff_t at, ptrdiff_t n, C first, int least)
{
    const ptrdiff_t whole = n - n % OIC_LANES;
    C best[OIC_LANES];
    for (ptrdiff_t l = 0; l < OIC_LANES; ++l) {
        best[l] = first;
    }
    for (ptrdiff_t i = 0; i < whole; i += OIC_LANES) {
        for (ptrdiff_t l = 0; l < OIC_LANES; ++l) {
            best[l] = NAME(oic_better)(LOAD(x, at + i + l), best[l], least);
        }
    }
    for (ptrdiff_t i = whole; i < n; ++i) {
        best[i - whole] = NAME(oic_better)(LOAD(x, at + i), best[i - whole], least);
    }
    for (ptrdiff_t l = 1; l < OIC_LANES; ++l) {
        best[0] = NAME(oic_better)(best[l], best[0], least);
    }
    return best[0];
}

/* The extreme of n neighbours from element `at` on. */
static inline C NAME(oic_extreme_row)(const T *x, ptrdiff_t at, ptrdiff_t n, int least)
{
    const C best = NAME(oic_extreme_of)(x, at, n, LOAD(x, at), least);
    if (best == (C)0) { /* maybe not the first zero */
        ptrdiff_t first = at;
        while (LOAD(x, first) != (C)0) {
            ++first;
        }
        return LOAD(x, first);
    }
    return best;
}

/* The extreme of result `kept` of dimensions that are not adjacent. */
static inline C NAME(oic_extreme_apart)(const ARGS(oic_max_axis) *a, ptrdiff_t kept, int least)
{
    ptrdiff_t size, step;
    const ptrdiff_t at = oic_reduced_offset(kept, a->rank, a->sizes, a->reduced, 0);
    const ptrdiff_t n = oic_reduced_count(a->rank, a->sizes, a->reduced, 1, &size, &step);
    C best = LOAD(a->x, at);
    for (ptrdiff_t r = 0; r < n; r += size) {
        const ptrdiff_t row = at + oic_reduced_offset(r, a->rank, a->sizes, a->reduced, 1);
        for (ptrdiff_t k = 0; k < size; ++k) {
            best = NAME(oic_better)(LOAD(a->x, row + k * step), best, least);
        }
    }
    return best;
}

/* Units first..end-1 of reduced_axes.h. */
static inline void NAME(oic_extremes)(const ARGS(oic_max_axis) *a, ptrdiff_t first, ptrdiff_t end, int least)
{
    const T *const x = a->x;
    const ptrdiff_t n = a->n, inner = a->inner;
    if (a->rank > 0) {
        for (ptrdiff_t o = first; o < end; ++o) {
            STORE(a->y, o, NAME(oic_extreme_apart)(a, o, least));
        }
        return;
    }
    if (inner == 1) {
        for (ptrdiff_t o = first; o < end; ++o) {
            STORE(a->y, o, NAME(oic_extreme_row)(x, o * n, n, least));
        }
        return;
    }
    for (ptrdiff_t u = first; u < end;) {
        const oic_columns at = oic_columns_at(u, end, inner, OIC_COLUMNS);
        const ptrdiff_t from = at.outer * n * inner + at.first;
        C best[OIC_COLUMNS];
        for (ptrdiff_t e = 0; e < at.count; ++e) {
            best[e] = LOAD(x, from + e);
        }
        for (ptrdiff_t r = 1; r < n; ++r) {
            for (ptrdiff_t e = 0; e < at.count; ++e) {
                best[e] = NAME(oic_better)(LOAD(x, from + r * inner + e), best[e], least);
            }
        }
        for (ptrdiff_t e = 0; e < at.count; ++e) {
            STORE(a->y, at.outer * inner + at.first + e, best[e]);
        }
        u += at.units;
    }
}

static inline void NAME(oic_max_axis_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    (void)worker;
    NAME(oic_extremes)(args, first, end, 0);
}

static inline void NAME(oic_min_axis_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    (void)worker;
    NAME(oic_extremes)(args, first, end, 1);
}

static inline void NAME(oic_max_axis)(const ARGS(oic_max_axis) *a)
{
    NAME(oic_extremes)(a, 0, oic_reduced_units(a->rank, a->sizes, a->reduced, a->outer, a->inner), 0);
}

static inline void NAME(oic_min_axis)(const ARGS(oic_min_axis) *a)
{
    NAME(oic_extremes)(a, 0, oic_reduced_units(a->rank, a->sizes, a->reduced, a->outer, a->inner), 1);
}

/* Which of n neighbours from element `at` on is equal to `best`, the first or the last; 0 if none is. */
static inline int64_t NAME(oic_position)(const T *x, ptrdiff_t at, ptrdiff_t n, C best, int last)
{
    ptrdiff_t k = 0;
    for (int found = 0; !last && k + 4 * OIC_LANES <= n; k += 4 * OIC_LANES) { /* those that have none of it, all at once */
        for (ptrdiff_t l = 0; l < 4 * OIC_LANES; ++l) {
            found |= LOAD(x, at + k + l) == best;
        }
        if (found) {
            break;
        }
    }
    for (; k < n; ++k) {
        const ptrdiff_t position = last ? n - 1 - k : k;
        if (LOAD(x, at + position) == best) {
            return (int64_t)position;
        }
    }
    return 0;
}

/* A row of n elements from element `at` on, in spans, and the extreme of each and the row's first element: so a row
   that begins with a NaN has no other, and the first span whose extreme is the row's has the first one. */
typedef struct {
    const T *x;
    ptrdiff_t at, n, span;
    int least;
    C *best;
} ARGS(oic_spans);

static inline void NAME(oic_spans_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(oic_spans) *const s = args;
    (void)worker;
    for (ptrdiff_t i = first; i < end; ++i) {
        const ptrdiff_t from = i * s->span, n = s->n - from < s->span ? s->n - from : s->span;
        const C seed = LOAD(s->x, s->at);
        s->best[i] = s->least ? NAME(oic_extreme_of)(s->x, s->at + from, n, seed, 1)
                              : NAME(oic_extreme_of)(s->x, s->at + from, n, seed, 0);
    }
}

static inline ptrdiff_t NAME(oic_spans_count)(const ARGS(oic_spans) *s)
{
    return (s->n + s->span - 1) / s->span;
}

/* A row in at most OIC_EXTREME_SPANS spans. */
static inline ARGS(oic_spans) NAME(oic_spans_of)(const ARGS(oic_argmax_axis) *a, ptrdiff_t row, C *best, int least)
{
    const ptrdiff_t share = (a->n + OIC_EXTREME_SPANS - 1) / OIC_EXTREME_SPANS;
    const ptrdiff_t span = share < OIC_EXTREME_LEAST ? OIC_EXTREME_LEAST : share;
    return (ARGS(oic_spans)){.x = a->x, .at = row * a->n, .n = a->n, .span = span, .least = least, .best = best};
}

/* Where a row has its extreme, from those of its spans. */
static inline int64_t NAME(oic_arg_extreme_spans)(const ARGS(oic_spans) *s, int last)
{
    ptrdiff_t which = 0;
    for (ptrdiff_t i = 1; i < NAME(oic_spans_count)(s); ++i) {
        const C v = s->best[i], best = s->best[which];
        which = (s->least ? v < best : v > best) ? i : which;
    }
    if (last) {
        return NAME(oic_position)(s->x, s->at, s->n, s->best[which], 1);
    }
    const ptrdiff_t from = which * s->span, n = s->n - from < s->span ? s->n - from : s->span;
    return (int64_t)from + NAME(oic_position)(s->x, s->at + from, n, s->best[which], 0);
}

/* y[width]: the same for neighbouring columns of rows `inner` apart. */
static inline void NAME(oic_arg_extreme_columns)(const T *x, ptrdiff_t at, ptrdiff_t n, ptrdiff_t inner,
                                                 ptrdiff_t width, int64_t *restrict y, int least, int last)
{
    C best[OIC_COLUMNS];
    for (ptrdiff_t c = 0; c < width; ++c) {
        best[c] = LOAD(x, at + c);
        y[c] = 0;
    }
    for (ptrdiff_t k = 1; k < n; ++k) {
        for (ptrdiff_t c = 0; c < width; ++c) {
            const C v = LOAD(x, at + k * inner + c);
            const int better = (least ? v < best[c] : v > best[c]) || (last && v == best[c]);
            best[c] = better ? v : best[c];
            y[c] = better ? (int64_t)k : y[c];
        }
    }
}

/* Rows first..end-1 of the outer axes. */
static inline void NAME(oic_arg_extremes)(const ARGS(oic_argmax_axis) *a, ptrdiff_t first, ptrdiff_t end, int least)
{
    const ptrdiff_t n = a->n, inner = a->inner;
    for (ptrdiff_t o = first; o < end; ++o) {
        const ptrdiff_t at = o * n * inner;
        if (inner == 1) {
            C best[OIC_EXTREME_SPANS];
            const ARGS(oic_spans) s = NAME(oic_spans_of)(a, o, best, least);
            best[0] = LOAD(a->x, at); /* n >= 1: there is a span, which a compiler does not know */
            NAME(oic_spans_part)(&s, 0, NAME(oic_spans_count)(&s), 0);
            a->y[o] = NAME(oic_arg_extreme_spans)(&s, a->last);
            continue;
        }
        for (ptrdiff_t c = 0; c < inner; c += OIC_COLUMNS) {
            const ptrdiff_t width = inner - c < OIC_COLUMNS ? inner - c : OIC_COLUMNS;
            NAME(oic_arg_extreme_columns)(a->x, at + c, n, inner, width, a->y + o * inner + c, least, a->last);
        }
    }
}

static inline void NAME(oic_argmax_axis)(const ARGS(oic_argmax_axis) *a)
{
    NAME(oic_arg_extremes)(a, 0, a->outer, 0);
}

static inline void NAME(oic_argmin_axis)(const ARGS(oic_argmin_axis) *a)
{
    NAME(oic_arg_extremes)(a, 0, a->outer, 1);
}

static inline void NAME(oic_argmax_axis_rows)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    (void)worker;
    NAME(oic_arg_extremes)(args, first, end, 0);
}

static inline void NAME(oic_argmin_axis_rows)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    (void)worker;
    NAME(oic_arg_extremes)(args, first, end, 1);
}

#if defined(OIC_POOL_H)
/* The same, divided among threads: rows, or the spans of the only one. */
static inline void NAME(oic_arg_extremes_divided)(oic_pool *pool, int most, int64_t work, oic_part *rows,
                                                  const ARGS(oic_argmax_axis) *a, int least)
{
    C best[OIC_EXTREME_SPANS];
    if (a->outer != 1 || a->inner != 1) {
        oic_divide(pool, most, a->outer, work, rows, a);
        return;
    }
    const ARGS(oic_spans) s = NAME(oic_spans_of)(a, 0, best, least);
    oic_divide(pool, most, NAME(oic_spans_count)(&s), work, NAME(oic_spans_part), &s);
    a->y[0] = NAME(oic_arg_extreme_spans)(&s, a->last);
}

static inline void NAME(oic_argmax_axis_divided)(oic_pool *pool, int most, ptrdiff_t units, int64_t work,
                                                 const ARGS(oic_argmax_axis) *a)
{
    (void)units;
    NAME(oic_arg_extremes_divided)(pool, most, work, NAME(oic_argmax_axis_rows), a, 0);
}

static inline void NAME(oic_argmin_axis_divided)(oic_pool *pool, int most, ptrdiff_t units, int64_t work,
                                                 const ARGS(oic_argmin_axis) *a)
{
    (void)units;
    NAME(oic_arg_extremes_divided)(pool, most, work, NAME(oic_argmin_axis_rows), a, 1);
}
#endif

#include "end.h"
