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

#define OIC_S f32
#include "sums.inc.h"

#define OIC_S f64
#include "sums.inc.h"

#endif
