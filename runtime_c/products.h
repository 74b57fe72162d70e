/* What products of matrices have in common. */
#ifndef OIC_PRODUCTS_H
#define OIC_PRODUCTS_H

#include "version.h"

#include "batch.h"
#include "num.h"
#include "sums.h"

#define OIC_BLOCK 32 /* products of a chunk whose operands are brought into a panel at a time */
#define OIC_ROWS 16  /* rows of x that share it */

#endif
