/* The header of the weights blob, little-endian, and its checksum. */
#ifndef OIC_IMAGE_H
#define OIC_IMAGE_H

#include "../version.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "crc32c.h"

#define OIC_IMAGE_VERSION 2u

/* The first 64 bytes. */
typedef struct {
    char magic[8];        /* "OICWGHT" and a zero */
    uint32_t version;     /* OIC_IMAGE_VERSION; other byte orders fail here */
    uint32_t checksum;    /* CRC-32C of all that follows the header */
    uint64_t fingerprint; /* of layout and contents, as the code was generated for */
    uint64_t bytes;       /* of the whole image, header included */
    uint8_t reserved[32]; /* zeros */
} oic_image;

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
    for (size_t i = 0; i < sizeof head.reserved; ++i) {
        if (head.reserved[i] != 0) {
            return 0;
        }
    }
    if (head.fingerprint != fingerprint || head.bytes != expected_bytes || head.bytes > bytes) {
        return 0;
    }
    const uint8_t *const rest = (const uint8_t *)image + sizeof head;
    return head.checksum == oic_crc32c_end(oic_crc32c(OIC_CRC32C_START, rest, (size_t)head.bytes - sizeof head));
}

#endif
