/* Headers of the weights blob and of a saved state, and their checksum.  Both are little-endian. */
#ifndef OIC_IMAGE_H
#define OIC_IMAGE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "oic.h"

#define OIC_IMAGE_VERSION 1u

/* The first 64 bytes. */
typedef struct {
    char magic[8];        /* "OICWGHT" or "OICSTAT", and a zero */
    uint32_t version;     /* OIC_IMAGE_VERSION; other byte orders fail here */
    uint32_t checksum;    /* CRC-32 of all that follows the header */
    uint64_t fingerprint; /* of the layout that the code was generated for */
    uint64_t bytes;       /* of the whole image, header included */
    uint8_t reserved[32]; /* zeros */
} oic_image;

/* CRC-32 (IEEE 802.3, reflected, as in zlib and PNG).  Large data on hosted targets goes eight
   bytes at a time through tables made on the stack (8 KiB); the rest four bits at a time. */
static inline uint32_t oic_crc32(const void *data, size_t bytes)
{
    static const uint32_t nibble[16] = {
        0x00000000u, 0x1db71064u, 0x3b6e20c8u, 0x26d930acu, 0x76dc4190u, 0x6b6b51f4u, 0x4db26158u, 0x5005713cu,
        0xedb88320u, 0xf00f9344u, 0xd6d6a3e8u, 0xcb61b38cu, 0x9b64c2b0u, 0x86d3d2d4u, 0xa00ae278u, 0xbdbdf21cu,
    };
    const uint8_t *p = data;
    uint32_t crc = 0xffffffffu;
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
    return crc ^ 0xffffffffu;
}

/* 1 if an image of this kind and layout is whole and undamaged.  `bytes` are those at `image`. */
static inline int oic_image_is_valid(const void *image, size_t bytes, const char *magic, uint64_t fingerprint,
                                     uint64_t expected_bytes)
{
    oic_image head;
    if (image == NULL || bytes < sizeof head) {
        return 0;
    }
    memcpy(&head, image, sizeof head);
    if (memcmp(head.magic, magic, sizeof head.magic) != 0 || head.version != OIC_IMAGE_VERSION) {
        return 0;
    }
    if (head.fingerprint != fingerprint || head.bytes != expected_bytes || head.bytes > bytes) {
        return 0;
    }
    return head.checksum == oic_crc32((const uint8_t *)image + sizeof head, (size_t)head.bytes - sizeof head);
}

/* Write the header of an image whose other bytes are in place. */
static inline void oic_image_seal(void *image, size_t bytes, const char *magic, uint64_t fingerprint)
{
    oic_image head;
    memset(&head, 0, sizeof head);
    memcpy(head.magic, magic, sizeof head.magic);
    head.version = OIC_IMAGE_VERSION;
    head.fingerprint = fingerprint;
    head.bytes = bytes;
    head.checksum = oic_crc32((const uint8_t *)image + sizeof head, bytes - sizeof head);
    memcpy(image, &head, sizeof head);
}

#endif
