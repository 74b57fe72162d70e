/* What kernels of attention have in common. */
#ifndef OIC_ATTENDING_H
#define OIC_ATTENDING_H

#include "../../version.h"

#include "products.h"
#include "../../simd/rows.h"
#include "../../math/scalar_math.h"

#define OIC_ATTENTION_ROWS 128    /* queries of one key head that go through the keys together, */
#define OIC_ATTENTION_TOGETHER 48 /* and of several, and of all spans that go side by side */
#define OIC_ATTENTION_MOST (OIC_SMALL_STACK ? OIC_ATTENTION_TOGETHER : OIC_ATTENTION_ROWS) /* rows that there is stack for */
#define OIC_ATTENTION_PACKED 12   /* as many of a head, and keys and values of a block become panels, */
#define OIC_ATTENTION_STRIP 24    /* which so many rows go through at a time: what is theirs stays in L1; */
#define OIC_ATTENTION_STRIPS 36   /* a strip and PACKED more: fewer rows than these are one */
#define OIC_ATTENTION_FEW (OIC_WIDTH == 16 ? 1 : 3) /* keys that are left of whole panels, or fewer, become none: measured */
#define OIC_ATTENTION_KEYS 64     /* keys of a block; blocks begin at multiples of it, however many take part */
#define OIC_ATTENTION_SPAN 128    /* keys of a span, which are some blocks */
#define OIC_ATTENTION_SPANS 4     /* spans whose values go side by side at most, where few queries see them; */
#define OIC_ATTENTION_BESIDE (OIC_FETCHES ? 2 : OIC_ATTENTION_SPANS) /* and so many do */
#define OIC_ATTENTION_UNITS 4     /* units of a thread, at least, where rows suffice */
#define OIC_ATTENTION_SHARED 16   /* queries of a key head, or fewer, for which threads share spans */

/* Keys lo..hi-1 take part for query i of N, when `length` keys are in use of T; a window of INT64_MAX is none.
   A program may compute length and window: they may be any numbers. */
static inline void oic_attention_range(ptrdiff_t i, ptrdiff_t N, ptrdiff_t T, int64_t length, int causal,
                                       int64_t window, ptrdiff_t *lo, ptrdiff_t *hi)
{
    const int64_t used = length > 0 ? length : 0, at = used + ((int64_t)i - (int64_t)N); /* the key that the query is aligned with */
    int64_t last = used < (int64_t)T ? used : (int64_t)T;
    int64_t first = 0;
    last = causal && at + 1 < last ? at + 1 : last;
    if (window <= at) {
        first = window > at - (int64_t)T ? at - window + 1 : (int64_t)T;
    }
    last = last < 0 ? 0 : last;
    *lo = (ptrdiff_t)(first < last ? first : last);
    *hi = (ptrdiff_t)last;
}

#endif
