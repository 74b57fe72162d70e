/* oic_attention_pairs_X_W: attention of queries of type X, f32 or bf16, over keys and values of bf16, by the machine's own
   products of pairs (simd/pairs.h); of the class `native`.

   The order is that of attention.inc.h, but: queries, times the scale, are rounded to bf16; a score is the sum of its pairs of
   products, elements 2 i and 2 i + 1 in sum i mod 16; weights are rounded to bf16, and it is these whose sum results are divided
   by, added up by the same instruction, those of keys 2 i and 2 i + 1 of a block in sum i mod 16; and the values of these keys go to
   results in pairs.  Of a pair, what takes no part is zero (simd/pairs_rows.h); a pair of which neither does is left out.
   Keys are pairs where they lie if Dk and their strides are even, else after they are copied. */
#include "../simd/pairs_rows.h"
#define ATTENTION oic_attention_pairs
#define PAIRED 1
#include "attention.h"
