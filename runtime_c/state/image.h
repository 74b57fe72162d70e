/* The header of the weights blob, little-endian, and its checksum. */
#ifndef OIC_IMAGE_H
#define OIC_IMAGE_H

#include "../version.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "crc.h"

#define OIC_IMAGE_VERSION 1u

/* The first 64 bytes. */
typedef struct {
    char magic[8];        /* "OICWGHT" and a zero */
    uint32_t version;     /* OIC_IMAGE_VERSION; other byte orders fail here */
    uint32_t checksum;    /* CRC-32 of all that follows the header */
    uint64_t fingerprint; /* of layout and contents, as the code was generated for */
    uint64_t bytes;       /* of the whole image, header included */
    uint8_t reserved[32]; /* zeros */
} oic_image;

/* CRC-32 (IEEE 802.3, reflected, as in zlib and PNG). */
static inline uint32_t oic_crc32(const void *data, size_t bytes)
{
    static const uint32_t nibble[16] = {
        0x00000000u, 0x1db71064u, 0x3b6e20c8u, 0x26d930acu, 0x76dc4190u, 0x6b6b51f4u, 0x4db26158u, 0x5005713cu,
        0xedb88320u, 0xf00f9344u, 0xd6d6a3e8u, 0xcb61b38cu, 0x9b64c2b0u, 0x86d3d2d4u, 0xa00ae278u, 0xbdbdf21cu,
    };
    return oic_crc(nibble, UINT32_C(0xffffffff), data, bytes) ^ UINT32_C(0xffffffff);
}

/* 1 if the blob at `image`, of so many bytes, is whole, undamaged and of this layout. */
static inline int oic_image_is_valid(const void *image, size_t bytes, uint64_t fingerprint, uint64_t expected_bytes)
{
    oic_image head;
    if (image == NULL || bytes < sizeof head) {
        return 0;
    }
    memcpy(&head, image, sizeof head);
    if (memcmp(head.magic, "OICWGHT", sizeof head.magic) != 0 || head.version != OIC_IMAGE_VERSION) {
        return 0;
    }
    if (head.fingerprint != fingerprint || head.bytes != expected_bytes || head.bytes > bytes) {
        return 0;
    }
    return head.checksum == oic_crc32((const uint8_t *)image + sizeof head, (size_t)head.bytes - sizeof head);
}

#endif
