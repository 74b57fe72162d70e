/* oic_gather_q8_X_W_B: y[n, inner] of type W = the n rows ids (type B, i32 or i64) of table[size, inner] of type X in groups of
   8 bits (quantized_product.inc.h): q * scale.  The ids have been checked; y overlaps no operand. */
#define GATHER oic_gather_q8
#define WEIGHT_BITS 8
#include "quantized_gather.inc.h"
