/* An index drawn at random from weights, of logits that were divided by the temperature: numbers, or infinite. */
#ifndef OIC_SAMPLING_H
#define OIC_SAMPLING_H

#include "../../version.h"

#include "../../num.h"
#include "../../math/scalar_math.h"
#include "../../simd/sums.h"

#define OIC_SAMPLE_PART (OIC_SMALL_STACK ? 8 : 32) /* weights at a time: while they are added, the next are computed */

/* The largest of x[n]; parts whose largest is too small are passed over. */
OIC_LOOP double oic_sample_top(const double *x, ptrdiff_t n)
{
    return oic_largest_f64(x, n, -(double)INFINITY);
}

/* A number as an integer, larger where the number is: integers are compared sooner. */
static inline uint64_t oic_sample_key(double x)
{
    const uint64_t bits = oic_bits_f64(x);
    return bits ^ ((0u - (bits >> 63)) | 0x8000000000000000u);
}

static inline double oic_sample_number(uint64_t key)
{
    return oic_from_bits_f64(key ^ (((key >> 63) - 1u) | 0x8000000000000000u));
}

/* v sinks from place `at` of a heap of n, whose first is the smallest. */
static inline void oic_sample_sink(uint64_t *heap, ptrdiff_t at, ptrdiff_t n, uint64_t v)
{
    for (ptrdiff_t below = 2 * at + 1; below < n; below = 2 * at + 1) {
        below += below + 1 < n ? heap[below + 1] < heap[below] : 0; /* no branch: nothing foretells the smaller one */
        if (heap[below] >= v) {
            break;
        }
        heap[at] = heap[below];
        at = below;
    }
    heap[at] = v;
}

/* x[n] becomes a heap of keys. */
OIC_LOOP uint64_t *oic_sample_heap(double *x, ptrdiff_t n)
{
    uint64_t *const heap = (uint64_t *)(void *)x;
    for (ptrdiff_t i = n; i-- > 0;) {
        oic_sample_sink(heap, i, n, oic_sample_key(x[i]));
    }
    return heap;
}

/* The k-th largest of x[n], 0 < k <= n; the first k elements of x become keys. */
OIC_LOOP double oic_sample_kth(double *x, ptrdiff_t n, ptrdiff_t k)
{
    uint64_t *const heap = oic_sample_heap(x, k);
    double least = oic_sample_number(heap[0]);
    for (ptrdiff_t i = k; i < n; i += OIC_HELD) {
        const ptrdiff_t m = n - i < OIC_HELD ? n - i : OIC_HELD;
        for (ptrdiff_t j = oic_sample_top(x + i, m) > least ? i : i + m; j < i + m; ++j) {
            if (x[j] > least) {
                oic_sample_sink(heap, 0, k, oic_sample_key(x[j]));
                least = oic_sample_number(heap[0]);
            }
        }
    }
    return least;
}

/* How probable x[n] are, as parts of what `top` is; 1 for an infinite one too. */
OIC_LOOP void oic_sample_weights(const double *restrict x, double *restrict weights, ptrdiff_t n, double top)
{
    for (ptrdiff_t i = 0; i < n; ++i) {
        weights[i] = oic_select_f64(x[i] == top, 1.0, oic_exp_f64(x[i] - top));
    }
}

/* The sum of the weights of x[n], in index order; with `stored` they replace x. */
OIC_LOOP double oic_sample_total(double *x, ptrdiff_t n, double top, int stored)
{
    double weights[OIC_SAMPLE_PART], sum = 0.0;
    for (ptrdiff_t i = 0; i < n; i += OIC_SAMPLE_PART) {
        const ptrdiff_t m = n - i < OIC_SAMPLE_PART ? n - i : OIC_SAMPLE_PART;
        oic_sample_weights(x + i, weights, m, top);
        for (ptrdiff_t j = 0; j < m; ++j) {
            sum += weights[j];
        }
        if (stored) {
            memcpy(x + i, weights, (size_t)m * sizeof *x);
        }
    }
    return sum;
}

/* The smallest of those largest of x[n] whose weights, added in order of size, reach `enough`; *equals: how many of these
   are equal to it.  x is overwritten.

   They are sought among those at most 2, 4, 8, ... below the top, so that most others are never sorted.  Elements 1024
   below it have no weight. */
OIC_LOOP double oic_sample_least(double *x, ptrdiff_t n, double top, double enough, ptrdiff_t *equals)
{
    double largest[OIC_SAMPLE_PART], weights[OIC_SAMPLE_PART], low = top, sum = 0.0;
    for (double reach = 2.0; n > 0; reach *= 2.0) {
        const double edge = reach < 1024.0 ? top - reach : -(double)INFINITY;
        ptrdiff_t count = 0;
        for (ptrdiff_t i = 0; i < n; i += OIC_HELD) { /* moves them to the front, negated: a heap gives the smallest */
            const ptrdiff_t m = n - i < OIC_HELD ? n - i : OIC_HELD;
            for (ptrdiff_t j = oic_sample_top(x + i, m) >= edge ? i : i + m; j < i + m; ++j) {
                if (x[j] >= edge) {
                    const double v = x[j];
                    x[j] = x[count];
                    x[count++] = -v;
                }
            }
        }
        uint64_t *const heap = oic_sample_heap(x, count);
        for (ptrdiff_t left = count, m; left > 0;) {
            for (m = 0; m < OIC_SAMPLE_PART && left > 0; ++m) {
                largest[m] = -oic_sample_number(heap[0]);
                --left;
                oic_sample_sink(heap, 0, left, heap[left]);
            }
            oic_sample_weights(largest, weights, m, top);
            for (ptrdiff_t j = 0; j < m; ++j) {
                *equals = largest[j] == low ? *equals + 1 : 1;
                low = largest[j];
                sum += weights[j];
                if (sum >= enough) {
                    return low;
                }
            }
        }
        x += count;
        n -= count;
    }
    return low;
}

/* Moves to the front of x[n], whose indices begin at `first`, the elements above `low` and the first *equals equal to it,
   which are counted down; their indices go into `where`.  Returns their number. */
static inline ptrdiff_t oic_sample_kept(double *x, int32_t *where, ptrdiff_t n, ptrdiff_t first, double low,
                                        ptrdiff_t *equals)
{
    ptrdiff_t kept = 0;
    for (ptrdiff_t i = oic_sample_top(x, n) >= low ? 0 : n; i < n; ++i) {
        if (x[i] > low || (x[i] == low && (*equals)-- > 0)) {
            x[kept] = x[i];
            where[kept++] = (int32_t)(first + i);
        }
    }
    return kept;
}

/* The first of x[n] whose cumulative probability exceeds u, or the last that has any; weights replace x. */
OIC_LOOP ptrdiff_t oic_sample_drawn(double *x, ptrdiff_t n, double top, double u)
{
    const double enough = u * oic_sample_total(x, n, top, 1);
    double sum = 0.0;
    for (ptrdiff_t i = 0; i < n; ++i) {
        sum += x[i];
        if (sum > enough && x[i] > 0.0) {
            return i;
        }
    }
    while (n > 1 && !(x[n - 1] > 0.0)) {
        --n;
    }
    return n - 1;
}

#endif
