/* Sums and maxima of neighbouring numbers, in one order on every machine: element i belongs to sum i mod 16, and the
   sixteen are added as a tree, 8 + 8, 4 + 4, 2 + 2, 1 + 1.  Vectors of any width up to 16 keep that order. */
#ifndef OIC_SUMS_H
#define OIC_SUMS_H

#include "version.h"

#include "num.h"

#define OIC_LANES 16
#define OIC_PART 256 /* numbers that a kernel holds on its stack at a time: a multiple of OIC_LANES */
#define OIC_PARTS 64 /* sums of parts that are added before their sum is added to the total */
#define OIC_CHUNK 256 /* products that are added one after the other, from zero */

/* sum + a * b: a step of a sum of products. */
static inline float oic_madd_f32(float a, float b, float sum)
{
    return sum + a * b;
}

static inline double oic_madd_f64(double a, double b, double sum)
{
    return sum + a * b;
}

static inline uint32_t oic_madd_u32(uint32_t a, uint32_t b, uint32_t sum)
{
    return sum + a * b;
}

static inline uint64_t oic_madd_u64(uint64_t a, uint64_t b, uint64_t sum)
{
    return sum + a * b;
}

#define OIC_S f32
#include "sums.inc.h"

#define OIC_S f64
#include "sums.inc.h"

#endif
