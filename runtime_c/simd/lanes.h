/* Sixteen numbers in as many registers as they need: a lane is one element of a result, and never a part of its sum.
   The width of a register decides how many lanes are computed at once, not in which order anything is added. */
#ifndef OIC_SIMD_LANES_H
#define OIC_SIMD_LANES_H

#include "../version.h"

#include <string.h>

#include "../num.h"
#include "registers.h"

#define OIC_LANES 16

/* A loop that several kernels call: one copy of it, which a debugger and a reader find. */
#if defined(__GNUC__)
#define OIC_LOOP static __attribute__((noinline, unused))
#else
#define OIC_LOOP static inline
#endif

#define OIC_S f32
#include "lanes.inc.h"

#if !defined(OIC_NO_F64)
#define OIC_S f64
#include "lanes.inc.h"
#endif

#endif
