/* Keeps saved states in flash, in two slots, so that a loss of power never loses both.

   A slot is a header and a payload.  The newer one is found by its sequence number; a store erases
   and writes the other, payload first and header last, so that a write cut short at any byte leaves
   a slot whose checksum is wrong beside one that nobody touched.

       oic_flash flash = {&device, SLOT_BYTES, read, erase, write};
       size_t bytes = decode_save(&s, image, sizeof image);
       if (!oic_journal_store(&flash, image, bytes)) ...
       bytes = oic_journal_load(&flash, image, sizeof image);    0: nothing was ever stored
       if (bytes != 0) decode_load(&s, image, bytes);

   Memory: about 100 bytes of stack; no allocation. */
#ifndef OIC_JOURNAL_H
#define OIC_JOURNAL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "crc32c.h"

/* The flash, by three functions of the caller's.  Each returns 0 when it has done what was asked.
   Offsets are from the start of a slot; writes go upward and only to erased bytes. */
typedef struct {
    void *device;
    size_t slot_bytes; /* of each slot: OIC_JOURNAL_HEADER more than the largest saved state */
    int (*read)(void *device, int slot, size_t offset, void *to, size_t bytes);
    int (*erase)(void *device, int slot);
    int (*write)(void *device, int slot, size_t offset, const void *from, size_t bytes);
} oic_flash;

#define OIC_JOURNAL_HEADER 32

/* The header of a slot, at its start; numbers are little-endian as the machine's are. */
typedef struct {
    char magic[8];     /* "OICJRNL" and a zero */
    uint32_t sequence; /* one more than that of the slot before; wraps */
    uint32_t checksum; /* CRC-32C of the header with this field 0, then the payload */
    uint64_t bytes;    /* of the payload */
    uint8_t zeros[8];
} oic_journal_head;

/* 1 and the header if a slot is whole. */
static inline int oic_journal_valid(const oic_flash *flash, int slot, oic_journal_head *head)
{
    uint8_t part[64];
    oic_journal_head plain;
    uint32_t crc;
    uint64_t at;
    if (flash->slot_bytes < OIC_JOURNAL_HEADER ||
        flash->read(flash->device, slot, 0, head, sizeof *head) != 0) {
        return 0;
    }
    if (memcmp(head->magic, "OICJRNL", sizeof head->magic) != 0 ||
        head->bytes > flash->slot_bytes - OIC_JOURNAL_HEADER) {
        return 0;
    }
    plain = *head;
    plain.checksum = 0;
    crc = oic_crc32c(OIC_CRC32C_START, &plain, sizeof plain);
    for (at = 0; at < head->bytes; at += sizeof part) {
        const uint64_t rest = head->bytes - at;
        const size_t now = rest < sizeof part ? (size_t)rest : sizeof part;
        if (flash->read(flash->device, slot, OIC_JOURNAL_HEADER + (size_t)at, part, now) != 0) {
            return 0;
        }
        crc = oic_crc32c(crc, part, now);
    }
    return head->checksum == oic_crc32c_end(crc);
}

/* The slot that holds the newest whole payload, or -1; its header. */
static inline int oic_journal_newest(const oic_flash *flash, oic_journal_head *head)
{
    oic_journal_head other;
    const int first = oic_journal_valid(flash, 0, head);
    const int second = oic_journal_valid(flash, 1, &other);
    if (!first && !second) {
        return -1;
    }
    /* Differences of sequence numbers wrap as the numbers do. */
    if (!first || (second && other.sequence - head->sequence < UINT32_C(0x80000000))) {
        *head = other;
        return 1;
    }
    return 0;
}

/* Copy the newest payload to memory; its bytes, or 0 where there is none or `capacity` is less. */
static inline size_t oic_journal_load(const oic_flash *flash, void *to, size_t capacity)
{
    oic_journal_head head;
    const int slot = oic_journal_newest(flash, &head);
    if (slot < 0 || head.bytes > capacity ||
        flash->read(flash->device, slot, OIC_JOURNAL_HEADER, to, (size_t)head.bytes) != 0) {
        return 0;
    }
    return (size_t)head.bytes;
}

/* Store a payload in the slot that does not hold the newest.  1 if it is whole there; 0 if not, and
   then the newest is still what it was.  A slot that cannot be read counts as damaged: flash whose
   words carry check bits refuses to read one that was cut while it was written. */
static inline int oic_journal_store(const oic_flash *flash, const void *from, size_t bytes)
{
    oic_journal_head head;
    const int newest = oic_journal_newest(flash, &head);
    const uint32_t sequence = newest < 0 ? 1u : head.sequence + 1u;
    const int slot = newest == 0 ? 1 : 0;
    if (flash->slot_bytes < OIC_JOURNAL_HEADER || bytes > flash->slot_bytes - OIC_JOURNAL_HEADER) {
        return 0;
    }
    memset(&head, 0, sizeof head);
    memcpy(head.magic, "OICJRNL", sizeof head.magic);
    head.sequence = sequence;
    head.bytes = bytes;
    head.checksum = oic_crc32c_end(
        oic_crc32c(oic_crc32c(OIC_CRC32C_START, &head, sizeof head), from, bytes));
    if (flash->erase(flash->device, slot) != 0 ||
        flash->write(flash->device, slot, OIC_JOURNAL_HEADER, from, bytes) != 0 ||
        flash->write(flash->device, slot, 0, &head, sizeof head) != 0) {
        return 0;
    }
    return oic_journal_valid(flash, slot, &head) && head.sequence == sequence;
}

#endif
