/* oic_rope_X: x turned, row i at position pos[ps of the leading axes and N], or first + i where pos is NULL.
   angle = (float)position * freq in float; freq is freqs[d], or base^(-2d/dims) rounded from double (common/angles.h).
   Other members, and order: rope.inc.h. */
#define ROPE oic_rope
#define TURNED 0
#include "rope.inc.h"
