/* Copies of elements to other places.  Elements are known by their width in bits; those of 1, 2 and 4 bits move
   within bytes, least significant bits first. */
#ifndef OIC_MOVE_H
#define OIC_MOVE_H

#include "../../version.h"

#include "../../num.h"

/* Bytes of a move that takes less time than a call of memcpy, where registers are loaded from any address. */
#define OIC_MOVE_FEW 64
#if (defined(__x86_64__) || defined(__aarch64__)) && defined(__OPTIMIZE__) && !defined(__OPTIMIZE_SIZE__)
#define OIC_MOVES_FEW 1
#else
#define OIC_MOVES_FEW 0
#endif

/* n bytes, at most OIC_MOVE_FEW: parts of constant size, for which compilers have registers, some perhaps twice. */
static inline void oic_move_few(uint8_t *restrict y, const uint8_t *restrict x, size_t n)
{
    if (n > 32) {
        memcpy(y, x, 32);
        memcpy(y + n - 32, x + n - 32, 32);
    } else if (n > 16) {
        memcpy(y, x, 16);
        memcpy(y + n - 16, x + n - 16, 16);
    } else if (n >= 8) {
        memcpy(y, x, 8);
        memcpy(y + n - 8, x + n - 8, 8);
    } else if (n >= 4) {
        memcpy(y, x, 4);
        memcpy(y + n - 4, x + n - 4, 4);
    } else if (n >= 2) {
        memcpy(y, x, 2);
        memcpy(y + n - 2, x + n - 2, 2);
    } else if (n > 0) {
        *y = *x;
    }
}

/* n elements from element xi of x to element yi of y, which do not overlap. */
static inline void oic_move(void *restrict y, ptrdiff_t yi, const void *restrict x, ptrdiff_t xi, ptrdiff_t n,
                            ptrdiff_t bits)
{
    if (bits >= 8) {
        const ptrdiff_t bytes = bits / 8;
        ptrdiff_t many = n * bytes;
        uint8_t *const to = (uint8_t *)y + yi * bytes;
        const uint8_t *const from = (const uint8_t *)x + xi * bytes;
        if (OIC_MOVES_FEW && many <= OIC_MOVE_FEW) {
            oic_move_few(to, from, many > 0 ? (size_t)many : 0);
        } else if (many > 0) {
#if OIC_MOVES_FEW
            if (!__builtin_constant_p(many)) {
                OIC_OPAQUE(many); /* gcc warns of what would never be so many */
            }
#endif
            memcpy(to, from, (size_t)many);
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
