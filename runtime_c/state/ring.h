/* Rings: an entry lies in a slot of the window and again as many slots further on, so that neighbours lie together. */
#ifndef OIC_RING_H
#define OIC_RING_H

#include "../version.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The slot where an entry lies a second time. */
static inline int64_t oic_ring_other(int64_t slot, int64_t window)
{
    return slot < window ? slot + window : slot - window;
}

/* Copy entries to where they lie a second time.
   ring    the first slot; from one to the next there are `stride` bytes
   slot    that of the first entry, below `window`
   count   of entries, at most `window` */
static inline void oic_ring_double(void *ring, int64_t window, size_t stride, int64_t slot, int64_t count)
{
    unsigned char *const lower = ring, *const upper = lower + (size_t)window * stride;
    const int64_t left = window - slot, up = count < left ? count : left;
    memcpy(upper + (size_t)slot * stride, lower + (size_t)slot * stride, (size_t)up * stride);
    memcpy(lower, upper, (size_t)(count - up) * stride);
}

#endif
