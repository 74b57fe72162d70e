/* oic_conv_bytes_X_W_B, whose sums of 32 bits are scaled to type W as they are stored (common/requantized.h).
   B is i32, which those that are not scaled have with W of i32 alone: no two have one name. */
#define OIC_REQUANTIZES
#include "common/requantized_bytes.h"
#include "conv_bytes.h"
#undef OIC_REQUANTIZES
