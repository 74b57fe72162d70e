/* oic_iota_X (i32): y[outer, n, inner] = start + index along the middle axis, wrapped to 32 bits. */
#include "element.h"

typedef struct {
    T *y;
    ptrdiff_t outer, n, inner;
    int64_t start;
} ARGS(oic_iota);

static inline void NAME(oic_iota)(const ARGS(oic_iota) *a)
{
    const ptrdiff_t inner = a->inner;
    for (ptrdiff_t o = 0; o < a->outer; ++o) {
        for (ptrdiff_t i = 0; i < a->n; ++i) {
            const T v = (T)((uint64_t)a->start + (uint64_t)i);
            for (ptrdiff_t e = 0; e < inner; ++e) {
                a->y[(o * a->n + i) * inner + e] = v;
            }
        }
    }
}

#include "end.h"
