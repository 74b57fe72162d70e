/* oic_gather_pairs_X_W_B: gather_panels.h of a table in pairs: two neighbours of a row side by side, the last of an odd number
   beside a zero. */
#define GATHER oic_gather_pairs
#define TOGETHER 2
#include "gather_panels.h"
