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

#if defined(__SSE4_2__) && defined(__x86_64__) && defined(__GNUC__)
#define OIC_CRC32C_WORD(crc, word) ((uint32_t)__builtin_ia32_crc32di(crc, word))
#define OIC_CRC32C_BYTE(crc, byte) __builtin_ia32_crc32qi(crc, byte)
#elif defined(__ARM_FEATURE_CRC32)
#define OIC_CRC32C_WORD(crc, word) __crc32cd(crc, word)
#define OIC_CRC32C_BYTE(crc, byte) __crc32cb(crc, byte)
#endif

#if defined(OIC_CRC32C_WORD)

/* The product of two polynomials modulo that of the checksum; bit 31 is the constant term. */
static inline uint32_t oic_crc32c_times(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (int i = 31; i >= 0; --i) {
        product ^= (a >> i & 1u) != 0 ? b : 0;
        b = (b & 1u) != 0 ? b >> 1 ^ UINT32_C(0x82f63b78) : b >> 1;
    }
    return product;
}

/* What a checksum becomes by so many bytes of zeros: it times x to the power of their bits. */
static inline uint32_t oic_crc32c_shifted(uint32_t crc, size_t bytes)
{
    uint32_t power = UINT32_C(1) << 23; /* x^8 */
    for (; bytes > 0; bytes >>= 1) {
        crc = (bytes & 1u) != 0 ? oic_crc32c_times(power, crc) : crc;
        power = oic_crc32c_times(power, power);
    }
    return crc;
}

static inline uint64_t oic_crc32c_load(const uint8_t *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return word;
}
#endif

/* Go on with a checksum; start with OIC_CRC32C_START, finish with oic_crc32c_end.  The instruction for it waits for the
   one before, so large data are four parts side by side, put together at last.  Where the machine has none, large data on
   hosted targets goes eight bytes at a time through tables made on the stack (8 KiB), all other data four bits at a
   time. */
static inline uint32_t oic_crc32c(uint32_t crc, const void *data, size_t bytes)
{
    const uint8_t *p = (const uint8_t *)data; /* also in C++, for the journal's sake */
#if defined(OIC_CRC32C_WORD)
    if (bytes >= 16384) {
        const size_t part = bytes / 32 * 8;
        uint32_t b = 0, c = 0, d = 0;
        for (const uint8_t *const end = p + part; p < end; p += 8) {
            crc = OIC_CRC32C_WORD(crc, oic_crc32c_load(p));
            b = OIC_CRC32C_WORD(b, oic_crc32c_load(p + part));
            c = OIC_CRC32C_WORD(c, oic_crc32c_load(p + 2 * part));
            d = OIC_CRC32C_WORD(d, oic_crc32c_load(p + 3 * part));
        }
        crc = oic_crc32c_shifted(crc, part) ^ b;
        crc = oic_crc32c_shifted(crc, part) ^ c;
        crc = oic_crc32c_shifted(crc, part) ^ d;
        p += 3 * part;
        bytes -= 4 * part;
    }
    for (; bytes >= 8; bytes -= 8, p += 8) {
        crc = OIC_CRC32C_WORD(crc, oic_crc32c_load(p));
    }
    for (; bytes > 0; --bytes, ++p) {
        crc = OIC_CRC32C_BYTE(crc, *p);
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
