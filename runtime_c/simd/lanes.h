/* Sixteen numbers in as many registers as they need: a lane is one element of a result, and never a part of its sum.
   The width of a register decides how many lanes are computed at once, not in which order anything is added. */
#ifndef OIC_SIMD_LANES_H
#define OIC_SIMD_LANES_H

#include "../version.h"

#include <string.h>

#include "../num.h"
#include "registers.h"

#define OIC_LANES 16
#define OIC_EIGHT 8 /* lanes that memory is read for at one place, at least */

/* A loop that several kernels call: one copy of it, which a debugger and a reader find.  Without optimisation there are no more
   copies of what is inline, and what no kernel calls is left out. */
#if defined(__GNUC__) && defined(__OPTIMIZE__)
#define OIC_LOOP static __attribute__((noinline, unused))
#else
#define OIC_LOOP static inline
#endif

#define OIC_S f32
#include "lanes.inc.h"

#define OIC_PARTS_OF_LANES (OIC_LANES / OIC_WIDTH)

/* The largest of sixteen: max(a, b) = a > b ? a : b of lanes l and l + 8, then l and l + 4, ... */
static inline float oic_lanes_largest_f32(const oic_lanes_f32 *v)
{
    oic_lanes_f32 a = *v;
    for (int half = OIC_PARTS_OF_LANES / 2; half > 0; half /= 2) {
        for (int i = 0; i < half; ++i) {
            a.part[i] = oic_register_max_f32(a.part[i], a.part[i + half]);
        }
    }
    return oic_register_largest_f32(a.part[0]);
}

#if !defined(OIC_DOTS)
/* sum[i] += w[4 i] x[0] + ... + w[4 i + 3] x[3] for 16 sums, n times with the next 64 and 4 bytes; no byte of w is -128. */
static inline void oic_dots_i8(int32_t *sum, const int8_t *w, const int8_t *x, ptrdiff_t n)
{
    oic_register_i32 all[OIC_PARTS_OF_LANES];
    for (int i = 0; i < OIC_PARTS_OF_LANES; ++i) {
        all[i] = oic_register_load_i32(sum + i * OIC_WIDTH);
    }
    for (ptrdiff_t k = 0; k < n; ++k) {
        for (int i = 0; i < OIC_PARTS_OF_LANES; ++i) {
            all[i] = oic_register_dot_i8(all[i], w + 64 * k + i * 4 * OIC_WIDTH, x + 4 * k);
        }
    }
    for (int i = 0; i < OIC_PARTS_OF_LANES; ++i) {
        oic_register_store_i32(sum + i * OIC_WIDTH, all[i]);
    }
}
#endif

#if !defined(OIC_NO_F64)
#define OIC_S f64
#include "lanes.inc.h"
#endif

#endif
