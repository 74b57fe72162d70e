/* oic_rope_turned_X: x turned by turns[.., N, dims], of each row cosines and then sines (rope_angles.h), which lie at the strides ts
   of the leading axes and of N.  Other members, and order: rope.inc.h. */
#define ROPE oic_rope_turned
#define TURNED 1
#include "rope.inc.h"
