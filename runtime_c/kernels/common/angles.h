/* Cosines and sines of the angles that a position turns pairs by. */
#ifndef OIC_ANGLES_H
#define OIC_ANGLES_H

#include "../../version.h"

#include "../../math/scalar_math.h"
#include "../../simd/sums.h"

#define OIC_ANGLES (OIC_SMALL_STACK ? 16 : 64) /* that are kept at a time */

/* What one frequency has of the one before it. */
static inline double oic_angle_ratio(double base, ptrdiff_t dims)
{
    return dims > 0 ? oic_pow_f64(base, -2.0 / (double)dims) : 1.0;
}

/* c and s[OIC_ANGLES] = cosines and sines of n angles, (float)at * frequency in float: freqs, or, where that is NULL, power, power *
   ratio, and so on, each rounded from double.  Gives the power after the last. */
static inline double oic_angles(int64_t at, const float *freqs, double power, double ratio, ptrdiff_t n, float *restrict c,
                                float *restrict s)
{
    const ptrdiff_t whole = (n + OIC_WIDTH - 1) / OIC_WIDTH * OIC_WIDTH; /* registers */
    float angle[OIC_ANGLES], r[OIC_ANGLES], rest[OIC_ANGLES];
    uint32_t quarter[OIC_ANGLES];
    for (ptrdiff_t d = 0; d < n; ++d) {
        angle[d] = (float)at * (freqs != NULL ? freqs[d] : (float)power);
        power *= ratio;
    }
    for (ptrdiff_t d = n; d < whole; ++d) {
        angle[d] = 0.0f;
    }
    for (ptrdiff_t d = 0; d < whole; ++d) {
        const oic_angle_f32 reduced = oic_reduce_angle_f32(angle[d]);
        r[d] = reduced.r;
        rest[d] = reduced.rest;
        quarter[d] = reduced.quarter;
    }
    for (ptrdiff_t d = 0; d < whole; ++d) {
        const oic_angle_f32 reduced = {r[d], rest[d], quarter[d]};
        c[d] = oic_cos_of_f32(angle[d], reduced);
        s[d] = oic_sin_of_f32(angle[d], reduced);
    }
    return power;
}

#endif
