/* Copies of elements to other places.  Elements are known by their width in bits; those of 1, 2 and 4 bits move
   within bytes, least significant bits first. */
#ifndef OIC_MOVE_H
#define OIC_MOVE_H

#include "../../version.h"

#include "../../num.h"

/* n elements from element xi of x to element yi of y, which do not overlap. */
static inline void oic_move(void *restrict y, ptrdiff_t yi, const void *restrict x, ptrdiff_t xi, ptrdiff_t n,
                            ptrdiff_t bits)
{
    if (bits >= 8) {
        const ptrdiff_t bytes = bits / 8;
        if (n > 0) {
            memcpy((uint8_t *)y + yi * bytes, (const uint8_t *)x + xi * bytes, (size_t)(n * bytes));
        }
        return;
    }
    for (ptrdiff_t i = 0; i < n; ++i) {
        oic_store_code((uint8_t *)y, yi + i, (uint32_t)bits, oic_load_code((const uint8_t *)x, xi + i, (uint32_t)bits));
    }
}

/* Position 0..size-1 that position `at` of a padded axis repeats: mode 1 the border, 2 the mirror image; -1 where
   there is none (mode 0, or an empty axis). */
static inline ptrdiff_t oic_pad_source(ptrdiff_t at, ptrdiff_t size, ptrdiff_t mode)
{
    const ptrdiff_t period = 2 * (size - 1);
    if (at >= 0 && at < size) {
        return at;
    }
    if (mode == 0 || size == 0) {
        return -1;
    }
    if (mode == 1 || size == 1) {
        return at < 0 ? 0 : size - 1;
    }
    at %= period;
    at = at < 0 ? at + period : at;
    return at < size ? at : period - at;
}

#endif
