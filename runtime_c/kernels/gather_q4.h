/* oic_gather_q4_X_W_B: y[n, inner] of type W = the n rows ids (type B, i32 or i64) of table[size, inner] of type X in groups of
   4 bits (quantized_product.inc.h): q * scale.  The ids have been checked; y overlaps no operand. */
#define GATHER oic_gather_q4
#define WEIGHT_BITS 4
#include "quantized_gather.inc.h"
