/* An index drawn at random from weights. */
#ifndef OIC_SAMPLING_H
#define OIC_SAMPLING_H

#include "../../version.h"

#include "../../num.h"
#include "../../math/scalar_math.h"

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

/* Take the first of heap[n] off; it is moved to heap[n - 1]. */
static inline int32_t oic_sample_pop(const double *x, int32_t *restrict heap, ptrdiff_t n)
{
    const int32_t first = heap[0];
    heap[0] = heap[n - 1];
    heap[n - 1] = first;
    oic_sample_sift(x, heap, 0, n - 1);
    return first;
}

/* How probable x is, as a part of what `top` is; 1 for an infinite one too. */
static inline double oic_sample_weight(double x, double top)
{
    return x == top ? 1.0 : oic_exp_f64(x - top);
}

/* One index of x[V], logits divided by the temperature: kept are values at least as large as the top_k-th largest (0:
   all), of these the largest whose probabilities reach top_p; the first index whose cumulative probability exceeds u.
   x is overwritten; heap[V] is working memory. */
static inline int32_t oic_sample_weights(double *restrict x, int32_t *restrict heap, ptrdiff_t V, int64_t top_k,
                                         double top_p, double u)
{
    const int sorted = (top_k > 0 && top_k < (int64_t)V) || top_p < 1.0;
    double top = x[0], total = 0.0, low = -(double)INFINITY, sum = 0.0;
    ptrdiff_t count = V;
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
    if (top_p < 1.0) { /* in the order of x: of different ones weights may be equal */
        for (ptrdiff_t i = 0; i < V; ++i) {
            total += oic_sample_weight(x[i], top);
        }
        for (count = 0; count < V && (count == 0 || !(sum >= top_p * total)); ++count) {
            sum += oic_sample_weight(x[oic_sample_pop(x, heap, V - count)], top);
        }
    }
    for (ptrdiff_t i = 0; i < V; ++i) { /* those that were taken off lie behind the others */
        x[heap[i]] = i < V - count ? 0.0 : oic_sample_weight(x[heap[i]], top);
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

#endif
