/* oic_linear_q4_X_W_B: y[.., M, N] = x[.., M, K] * w[N, K]' + b[N], w in groups of 4 bits, b of type B or NULL.
   Members, order and working memory: quantized_product.inc.h. */
#define PRODUCT oic_linear_q4
#define PRODUCT_ROWS NAME(oic_linear_q4_rows)
#define PRODUCT_PREPARE NAME(oic_linear_q4_prepare)
#define PRODUCT_STORE NAME(oic_linear_q4_store)
#define PRODUCT_THEN NAME(oic_linear_q4_then)
#define PRODUCT_STREAMS NAME(oic_linear_q4_streams)
#define PRODUCT_PART NAME(oic_linear_q4_part)
#define PRODUCT_NEAR NAME(oic_linear_q4_near)
#define PRODUCT_DIVIDED NAME(oic_linear_q4_divided)
#define WEIGHT_BITS 4
#include "quantized_product.inc.h"
