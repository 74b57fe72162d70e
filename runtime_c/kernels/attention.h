/* oic_attention_X_W: attention of queries of type X over keys and values of type W, where they lie, in one pass.

   What it computes, the order and the stack: attention.inc.h. */
#include "common/attending.h"
#include "common/own.h"
#include "../simd/sums.h"
#include "element.h"

#define PART(f) NAME(oic_attention_##f)
#define Q_T T
#define Q_LOAD LOAD
#define Q_STORE STORE
#include "attention.inc.h"

typedef PART(args) ARGS(oic_attention);

/* Key heads, and blocks of the queries of each, in memory of the worker's own: any division has the same bits. */
static inline void NAME(oic_attention_part)(const void *args, ptrdiff_t first, ptrdiff_t end, int worker)
{
    const ARGS(oic_attention) *const a = args;
    PART(some)(a, first, end, oic_own(a->work, worker, (size_t)a->room * sizeof(C)));
}

static inline void NAME(oic_attention)(const ARGS(oic_attention) *a)
{
    PART(heads)(a);
}

#undef PART
#undef Q_T
#undef Q_LOAD
#undef Q_STORE
#include "end.h"
