/* CRC-32C (Castagnoli, reflected: iSCSI, RFC 3720): of weights, saved states and the journal's slots. */
#ifndef OIC_CRC32C_H
#define OIC_CRC32C_H

#include "../version.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../oic.h"

#if defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
#endif

#define OIC_CRC32C_START UINT32_C(0xffffffff)

/* Go on with a checksum; start with OIC_CRC32C_START, finish with oic_crc32c_end.  Where the machine has no
   instruction for it, large data on hosted targets goes eight bytes at a time through tables made on the stack
   (8 KiB), all other data four bits at a time. */
static inline uint32_t oic_crc32c(uint32_t crc, const void *data, size_t bytes)
{
    const uint8_t *p = data;
#if defined(__SSE4_2__) && defined(__x86_64__) && defined(__GNUC__)
    for (; bytes >= 8; bytes -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, sizeof word);
        crc = (uint32_t)__builtin_ia32_crc32di(crc, word);
    }
    for (; bytes > 0; --bytes, ++p) {
        crc = __builtin_ia32_crc32qi(crc, *p);
    }
#elif defined(__ARM_FEATURE_CRC32)
    for (; bytes >= 8; bytes -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, sizeof word);
        crc = __crc32cd(crc, word);
    }
    for (; bytes > 0; --bytes, ++p) {
        crc = __crc32cb(crc, *p);
    }
#else
    static const uint32_t nibble[16] = {
        0x00000000u, 0x105ec76fu, 0x20bd8edeu, 0x30e349b1u, 0x417b1dbcu, 0x5125dad3u, 0x61c69362u, 0x7198540du,
        0x82f63b78u, 0x92a8fc17u, 0xa24bb5a6u, 0xb21572c9u, 0xc38d26c4u, 0xd3d3e1abu, 0xe330a81au, 0xf36e6f75u,
    };
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
#endif
    return crc;
}

static inline uint32_t oic_crc32c_end(uint32_t crc)
{
    return crc ^ UINT32_C(0xffffffff);
}

#endif
