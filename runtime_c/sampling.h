/* Choosing from scores: the k largest, or one drawn at random.  Results overlap no operand. */
#ifndef OIC_SAMPLING_H
#define OIC_SAMPLING_H

#include "version.h"

#include "num.h"
#include "scalar_math.h"

/* Whether x[a] comes before x[b]: larger, or equal with a lower index. */
static inline int oic_sample_before(const double *x, int32_t a, int32_t b)
{
    return x[a] > x[b] || (x[a] == x[b] && a < b);
}

/* heap[n] without its order at `at` made a heap again: the first comes before all. */
static inline void oic_sample_sift(const double *x, int32_t *restrict heap, ptrdiff_t at, ptrdiff_t n)
{
    const int32_t moved = heap[at];
    for (ptrdiff_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && oic_sample_before(x, heap[child + 1], heap[child])) {
            ++child;
        }
        if (!oic_sample_before(x, heap[child], moved)) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
}

/* Take the first of heap[n] off; it stands at heap[n - 1] then. */
static inline int32_t oic_sample_pop(const double *x, int32_t *restrict heap, ptrdiff_t n)
{
    const int32_t first = heap[0];
    heap[0] = heap[n - 1];
    heap[n - 1] = first;
    oic_sample_sift(x, heap, 0, n - 1);
    return first;
}

/* One index of x[V], logits divided by the temperature: kept are values at least as large as the top_k-th largest (0:
   all), of these the largest whose probabilities reach top_p; the first index whose cumulative probability exceeds u.
   x is overwritten; heap[V] is working memory. */
static inline int32_t oic_sample_weights(double *restrict x, int32_t *restrict heap, ptrdiff_t V, int64_t top_k,
                                         double top_p, double u)
{
    const int sorted = (top_k > 0 && top_k < (int64_t)V) || top_p < 1.0;
    double top = x[0], total = 0.0, low = -(double)INFINITY, sum = 0.0;
    int32_t last = 0;
    for (ptrdiff_t i = 0; i < V; ++i) {
        top = x[i] > top ? x[i] : top;
        heap[i] = (int32_t)i;
    }
    for (ptrdiff_t i = V / 2 - 1; sorted && i >= 0; --i) {
        oic_sample_sift(x, heap, i, V);
    }
    if (top_k > 0 && top_k < (int64_t)V) {
        for (ptrdiff_t i = 0; i < (ptrdiff_t)top_k; ++i) {
            low = x[oic_sample_pop(x, heap, V - i)];
        }
        for (ptrdiff_t i = 0; i < V; ++i) {
            x[i] = x[i] >= low ? x[i] : -(double)INFINITY;
            heap[i] = (int32_t)i;
        }
        for (ptrdiff_t i = V / 2 - 1; top_p < 1.0 && i >= 0; --i) {
            oic_sample_sift(x, heap, i, V);
        }
    }
    for (ptrdiff_t i = 0; i < V; ++i) {
        x[i] = x[i] == top ? 1.0 : oic_exp_f64(x[i] - top); /* 1 for an infinite one too */
    }
    if (top_p < 1.0) {
        ptrdiff_t count = 0;
        for (ptrdiff_t i = 0; i < V; ++i) {
            total += x[i];
        }
        while (count < V) {
            sum += x[oic_sample_pop(x, heap, V - count)];
            ++count;
            if (sum >= top_p * total) {
                break;
            }
        }
        for (ptrdiff_t i = 0; i < V - count; ++i) {
            x[heap[i]] = 0.0;
        }
    }
    total = 0.0;
    for (ptrdiff_t i = 0; i < V; ++i) {
        total += x[i];
    }
    sum = 0.0;
    for (ptrdiff_t i = 0; i < V; ++i) {
        sum += x[i];
        if (x[i] > 0.0) {
            last = (int32_t)i;
            if (sum > u * total) {
                break;
            }
        }
    }
    return last;
}

/* top_k: y and where [outer, k, inner], the k largest of x[outer, n, inner] along n, largest first, the lower index
   first of equals, NaN largest.  Copies of elements.
   sample: *y is one index of logits[V] (oic_sample_weights); temperature 0 takes the first of the largest.  p is
   working memory of V doubles and as many int32_t. */
#define OIC_SAMPLING(T, S, C)                                                                               \
    static inline void oic_top_k_##T(const S *restrict x, S *restrict y, int32_t *restrict where, ptrdiff_t outer, \
                                     ptrdiff_t n, ptrdiff_t inner, ptrdiff_t k)                             \
    {                                                                                                       \
        for (ptrdiff_t o = 0; o < outer * inner; ++o) {                                                     \
            const ptrdiff_t from = o / inner * n * inner + o % inner, to = o / inner * k * inner + o % inner; \
            for (ptrdiff_t i = 0; i < n && k > 0; ++i) {                                                    \
                const C v = oic_load_##T(x, from + i * inner);                                              \
                ptrdiff_t at = i < k ? i : k;                                                               \
                while (at > 0) { /* behind all that are as large or NaN */                                  \
                    const C w = oic_load_##T(y, to + (at - 1) * inner);                                     \
                    if (w >= v || w != w) {                                                                 \
                        break;                                                                              \
                    }                                                                                       \
                    if (at < k) {                                                                           \
                        y[to + at * inner] = y[to + (at - 1) * inner];                                      \
                        where[to + at * inner] = where[to + (at - 1) * inner];                              \
                    }                                                                                       \
                    --at;                                                                                   \
                }                                                                                           \
                if (at < k) {                                                                               \
                    y[to + at * inner] = x[from + i * inner];                                               \
                    where[to + at * inner] = (int32_t)i;                                                    \
                }                                                                                           \
            }                                                                                               \
        }                                                                                                   \
    }                                                                                                       \
                                                                                                            \
    static inline void oic_sample_##T(const S *restrict logits, const float *restrict u, int32_t *restrict y, \
                                      double *restrict p, ptrdiff_t V, C temperature, int64_t top_k, float top_p) \
    {                                                                                                       \
        if (!(temperature > (C)0) && !(temperature < (C)0)) {                                               \
            ptrdiff_t best = 0;                                                                             \
            C top = (C)-INFINITY;                                                                           \
            for (ptrdiff_t i = 0; i < V; ++i) {                                                             \
                const C v = oic_load_##T(logits, i);                                                        \
                best = v > top ? i : best;                                                                  \
                top = v > top ? v : top;                                                                    \
            }                                                                                               \
            *y = (int32_t)best;                                                                             \
            return;                                                                                         \
        }                                                                                                   \
        for (ptrdiff_t i = 0; i < V; ++i) {                                                                 \
            const double v = (double)(oic_load_##T(logits, i) / temperature);                               \
            p[i] = v == v ? v : -(double)INFINITY; /* NaN is never drawn */                                 \
        }                                                                                                   \
        *y = oic_sample_weights(p, (int32_t *)(void *)(p + V), V, top_k, (double)top_p, (double)*u);        \
    }

OIC_SAMPLING(f8, oic_f8, float)
OIC_SAMPLING(f16, oic_f16, float)
OIC_SAMPLING(bf16, oic_bf16, float)
OIC_SAMPLING(f32, float, float)
OIC_SAMPLING(f64, double, double)

#endif
