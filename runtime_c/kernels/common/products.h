/* What products of matrices have in common. */
#ifndef OIC_PRODUCTS_H
#define OIC_PRODUCTS_H

#include "../../version.h"

#include "batch.h"
#include "../../num.h"
#include "../../simd/sums.h"

#define OIC_BLOCK 32    /* products of a chunk whose operands are brought into a panel at a time */
#define OIC_ROWS 16     /* rows of x that share it */

/* Neighbouring columns of a row-major w that one row of x goes along: enough for memory to be read in order, or, where
   stacks are small, few.  They are sums of their own, so that their number has no part in any. */
#if OIC_HOSTED
#define OIC_STRETCH 1024
#else
#define OIC_STRETCH 128
#endif

#endif
