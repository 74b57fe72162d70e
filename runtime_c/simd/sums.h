/* Sums and maxima of neighbouring numbers, in one order on every machine: element i belongs to sum i mod 16, and the
   sixteen are added as a tree, 8 + 8, 4 + 4, 2 + 2, 1 + 1.  Vectors of any width up to 16 keep that order. */
#ifndef OIC_SUMS_H
#define OIC_SUMS_H

#include "../version.h"

#include "../num.h"
#include "lanes.h"

#define OIC_PART 256 /* numbers that a kernel holds on its stack at a time: a multiple of OIC_LANES */
#define OIC_HELD (OIC_SMALL_STACK ? 32 : OIC_PART) /* the same, where no bits show it */
#define OIC_PARTS 64 /* sums of parts that are added before their sum is added to the total */
#define OIC_CHUNK 256 /* products that are added one after the other, from zero */
#define OIC_BLOCK (OIC_SMALL_STACK ? 32 : OIC_CHUNK) /* of them, whose operands are widened or gathered at a time */

/* The sum of sixteen numbers. */
static inline float oic_tree_f32(const float *restrict a)
{
    oic_lanes_f32 all;
    oic_lanes_load_f32(&all, a);
    return oic_lanes_sum_f32(&all);
}

static inline double oic_tree_f64(const double *restrict a)
{
#if defined(OIC_NO_F64)
    double all[OIC_LANES / 2];
    for (ptrdiff_t l = 0; l < OIC_LANES / 2; ++l) {
        all[l] = a[l] + a[l + OIC_LANES / 2];
    }
    for (ptrdiff_t half = OIC_LANES / 4; half > 0; half /= 2) {
        for (ptrdiff_t l = 0; l < half; ++l) {
            all[l] += all[l + half];
        }
    }
    return all[0];
#else
    oic_lanes_f64 all;
    oic_lanes_load_f64(&all, a);
    return oic_lanes_sum_f64(&all);
#endif
}

/* a[16] = the largest of each and of the numbers of its lane, of whole lanes x[n]. */
static inline void oic_larger_f64(double *restrict a, const double *x, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i += OIC_LANES) {
        for (ptrdiff_t l = 0; l < OIC_LANES; ++l) {
            a[l] = x[i + l] > a[l] ? x[i + l] : a[l];
        }
    }
}

static inline void oic_larger_f32(float *restrict a, const float *x, ptrdiff_t n)
{
    if (OIC_WIDTH > 1) { /* gcc makes no vector code of the loop below */
        oic_lanes_f32 all;
        oic_lanes_load_f32(&all, a);
        for (ptrdiff_t i = 0; i < n; i += OIC_LANES) {
            for (int p = 0; p < OIC_PARTS_OF_LANES; ++p) {
                all.part[p] = oic_register_max_f32(oic_register_load_f32(x + i + p * OIC_WIDTH), all.part[p]);
            }
        }
        oic_lanes_store_f32(a, &all);
        return;
    }
    for (ptrdiff_t i = 0; i < n; i += OIC_LANES) {
        for (ptrdiff_t l = 0; l < OIC_LANES; ++l) {
            a[l] = x[i + l] > a[l] ? x[i + l] : a[l];
        }
    }
}

#define OIC_S f32
#include "sums.inc.h"

#define OIC_S f64
#include "sums.inc.h"

#endif
