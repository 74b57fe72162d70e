/* CRC-32C (Castagnoli, reflected: iSCSI, RFC 3720): of saved states and of the journal's slots. */
#ifndef OIC_CRC32C_H
#define OIC_CRC32C_H

#include "../version.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "crc.h"

#define OIC_CRC32C_START UINT32_C(0xffffffff)

/* Go on with a checksum; start with OIC_CRC32C_START, finish with oic_crc32c_end. */
static inline uint32_t oic_crc32c(uint32_t crc, const void *data, size_t bytes)
{
#if defined(__SSE4_2__) && defined(__x86_64__) && defined(__GNUC__)
    const uint8_t *p = data;
    for (; bytes >= 8; bytes -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, sizeof word);
        crc = (uint32_t)__builtin_ia32_crc32di(crc, word);
    }
    for (; bytes > 0; --bytes, ++p) {
        crc = __builtin_ia32_crc32qi(crc, *p);
    }
    return crc;
#else
    static const uint32_t nibble[16] = {
        0x00000000u, 0x105ec76fu, 0x20bd8edeu, 0x30e349b1u, 0x417b1dbcu, 0x5125dad3u, 0x61c69362u, 0x7198540du,
        0x82f63b78u, 0x92a8fc17u, 0xa24bb5a6u, 0xb21572c9u, 0xc38d26c4u, 0xd3d3e1abu, 0xe330a81au, 0xf36e6f75u,
    };
    return oic_crc(nibble, crc, data, bytes);
#endif
}

static inline uint32_t oic_crc32c_end(uint32_t crc)
{
    return crc ^ UINT32_C(0xffffffff);
}

#endif
