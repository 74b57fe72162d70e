/* Reflected CRCs of 32 bits, the polynomial given by a table: its remainders of four bits. */
#ifndef OIC_CRC_H
#define OIC_CRC_H

#include "../version.h"

#include <stddef.h>
#include <stdint.h>

#include "../oic.h"

/* Go on with a remainder.  Large data on hosted targets goes eight bytes at a time through tables made on
   the stack (8 KiB); the rest four bits at a time. */
static inline uint32_t oic_crc(const uint32_t nibble[16], uint32_t crc, const void *data, size_t bytes)
{
    const uint8_t *p = data;
#if OIC_HOSTED
    if (bytes >= 16384) {
        uint32_t table[8][256];
        for (uint32_t i = 0; i < 256; ++i) {
            uint32_t c = i;
            c = (c >> 4) ^ nibble[c & 15u];
            c = (c >> 4) ^ nibble[c & 15u];
            table[0][i] = c;
        }
        for (int k = 1; k < 8; ++k) {
            for (int i = 0; i < 256; ++i) {
                const uint32_t c = table[k - 1][i];
                table[k][i] = (c >> 8) ^ table[0][c & 255u];
            }
        }
        for (; bytes >= 8; bytes -= 8, p += 8) {
            const uint32_t low = crc ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
                                        (uint32_t)p[3] << 24);
            crc = table[7][low & 255u] ^ table[6][low >> 8 & 255u] ^ table[5][low >> 16 & 255u] ^
                  table[4][low >> 24] ^ table[3][p[4]] ^ table[2][p[5]] ^ table[1][p[6]] ^ table[0][p[7]];
        }
    }
#endif
    for (; bytes > 0; --bytes, ++p) {
        crc ^= *p;
        crc = (crc >> 4) ^ nibble[crc & 15u];
        crc = (crc >> 4) ^ nibble[crc & 15u];
    }
    return crc;
}

#endif
