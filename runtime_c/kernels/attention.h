/* oic_attention_X_W: attention of queries of type X over keys and values of type W, where they lie, in one pass.

   What it computes, the order and the stack: attention.inc.h. */
#include "common/attending.h"
#include "common/own.h"
#include "../simd/sums.h"
#include "element.h"

#if !defined(ATTENTION) /* by attention_pairs.h */
#define ATTENTION oic_attention
#define PAIRED 0
#endif
#define PART(f) NAME(OIC_JOIN_2(ATTENTION, f))
#include "attention.inc.h"

typedef PART(args) ARGS(ATTENTION);

/* Key heads, and blocks of the queries of each, in memory of the worker's own: any division has the same bits. */
static inline void PART(part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(ATTENTION) *const a = args;
    PART(some)(a, first, end, oic_own(a->work, worker, (size_t)a->room * sizeof(C)));
}

static inline void NAME(ATTENTION)(const ARGS(ATTENTION) *a)
{
    PART(heads)(a);
}

#if defined(OIC_POOL_H)
/* The numbers of all rows in `parts`, which are followed by those of spans, and their marks. */
static inline ptrdiff_t PART(whole)(const PART(args) *a)
{
    return a->Hk * PART(rows)(a) * oic_padded(a->Dv);
}

static inline PART(marks) *PART(marked)(const PART(args) *a)
{
    return (PART(marks) *)(void *)(a->parts + (1 + a->spans) * PART(whole)(a));
}

/* Spans of a->from on, and key heads of each: what they give is kept. */
static inline void PART(spans_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const PART(args) *const a = args;
    const ptrdiff_t rows = PART(rows)(a);
    C *const work = oic_own(a->work, worker, (size_t)a->room * sizeof(C));
    for (ptrdiff_t unit = first, done; unit < end; unit += done) {
        const ptrdiff_t hk = unit % a->Hk, left = a->Hk - hk < end - unit ? a->Hk - hk : end - unit, at = (a->Hk + unit) * rows;
        PART(group) g = PART(grouped)(a, 0, hk, left, 0, left == a->Hk ? (end - unit) / a->Hk : 1, work);
        ptrdiff_t lo, hi;
        g.spans = g.heads == a->Hk ? g.spans : 1; /* spans of all heads: what they give lies side by side */
        const ptrdiff_t j0 = (a->from + unit / a->Hk) * OIC_ATTENTION_SPAN, j1 = j0 + g.spans * OIC_ATTENTION_SPAN;
        g.acc = a->parts + at * oic_padded(a->Dv);
        PART(ranges)(a, &g, &lo, &hi);
        PART(queries)(a, &g);
        PART(span)(a, &g, lo > j0 ? lo - lo % OIC_ATTENTION_KEYS : j0, hi < j1 ? hi : j1);
        done = g.spans * g.heads;
        for (ptrdiff_t row = 0; row < done * rows; ++row) {
            PART(marked)(a)[at + row] = (PART(marks)){g.top[row], g.sum[row], (C)g.any[row]};
        }
    }
}

/* Units divided among threads, or spans of the keys where a head has few queries. */
static inline void PART(divided)(oic_pool *pool, int most, ptrdiff_t units, int64_t work, const ARGS(ATTENTION) *a)
{
    const ptrdiff_t rows = PART(rows)(a), D = oic_padded(a->Dv), all = PART(whole)(a);
    PART(args) turn = *a;
    PART(group) g = PART(grouped)(a, 0, 0, 1, 0, 1, a->work);
    ptrdiff_t lo = 0, hi = 0;
    (void)units;
    if (a->parts != NULL && rows <= OIC_ATTENTION_SHARED && oic_product(a->rank, a->shape) == 1) {
        PART(ranges)(a, &g, &lo, &hi);
    }
    if (hi - lo <= OIC_ATTENTION_SPAN) {
        turn.together = OIC_ATTENTION_ROWS;
        while (PART(units)(&turn) < OIC_ATTENTION_UNITS * most && turn.together > OIC_ATTENTION_STRIPS) { /* threads end together */
            turn.together /= 2;
        }
        const ptrdiff_t some = PART(units)(&turn), chunks = rows <= OIC_ATTENTION_SHARED ? most : some; /* few: heads side by side */
        oic_divide_in(pool, most, chunks, some, work, PART(part), &turn);
        return;
    }
    PART(marks) *const marks = PART(marked)(a);
    for (turn.from = lo / OIC_ATTENTION_SPAN; turn.from * OIC_ATTENTION_SPAN < hi; turn.from += a->spans) {
        const ptrdiff_t left = (hi + OIC_ATTENTION_SPAN - 1) / OIC_ATTENTION_SPAN - turn.from;
        const ptrdiff_t n = left < a->spans ? left : a->spans;
        oic_divide_in(pool, most, n, n * a->Hk, work, PART(spans_part), &turn);
        for (ptrdiff_t row = 0; row < a->Hk * rows; ++row) {
            const ptrdiff_t r = row % rows;
            C *const total = a->parts + row * D;
            if (turn.from == lo / OIC_ATTENTION_SPAN) {
                marks[row] = (PART(marks)){(C)-INFINITY, (C)0, (C)0};
                memset(total, 0, (size_t)D * sizeof(C));
            }
            for (ptrdiff_t i = 1; i <= n; ++i) {
                const ptrdiff_t j0 = (turn.from + i - 1) * OIC_ATTENTION_SPAN;
                if (g.lo[r] < j0 + OIC_ATTENTION_SPAN && g.hi[r] > j0) {
                    const PART(marks) *const more = &marks[i * a->Hk * rows + row];
                    PART(join)(&marks[row], total, more, total + i * all, MATH(oic_exp)(PART(nearer)(marks[row].top, more->top)), D);
                }
            }
            if (left == n) {
                PART(finish)(a, &g, r, row / rows, &marks[row], (C)-0.0, total);
            }
        }
    }
}
#endif

#undef ATTENTION
#undef PAIRED
#undef PART
#include "end.h"
