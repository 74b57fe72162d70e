/* What products of matrices have in common. */
#ifndef OIC_PRODUCTS_H
#define OIC_PRODUCTS_H

#include "version.h"

#include "batch.h"
#include "num.h"
#include "simd/lanes.h"

#define OIC_CHUNK 256 /* products that are added from zero: part of the definition of every sum */
#define OIC_BLOCK 32  /* of them, those that are brought into a panel at a time */
#define OIC_ROWS 16   /* rows of x that share it */

#endif
