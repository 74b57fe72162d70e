/* Working memory of a kernel that threads share: each has as much of its own. */
#ifndef OIC_OWN_H
#define OIC_OWN_H

#include "../../version.h"

#include <stddef.h>

/* The share of one worker in memory of the arena; no two have a cache line in common. */
static inline void *oic_own(void *work, int worker, size_t bytes)
{
    return (unsigned char *)work + (size_t)worker * ((bytes + 63) / 64 * 64);
}

#endif
