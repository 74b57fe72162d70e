/* Keeps saved states in flash, in two slots, so that a loss of power never loses both.

   A slot is a header and a payload.  The newer one is found by its sequence number; a store erases
   and writes the other, payload first and header last, so that a write cut short at any byte leaves
   a slot whose checksum is wrong beside one that was not touched.

       oic_flash flash = {&device, SLOT_BYTES, read, erase, write};
       size_t bytes = decode_save(&s, image, sizeof image);
       if (oic_journal_store(&flash, image, bytes) != OIC_JOURNAL_OK) ...
       if (oic_journal_load(&flash, image, sizeof image, &bytes) == OIC_JOURNAL_OK) {
           decode_load(&s, image, bytes);
       }

   Of a slot that cannot be read nothing is known: it may hold the newest payload.  So reads are tried
   again, and where one fails every time nothing is erased; the call says OIC_JOURNAL_UNREADABLE.
   A slot that stays unreadable is given up by erasing it: oic_journal_check tells which it is.

   Memory: about 300 bytes of stack; no allocation. */
#ifndef OIC_JOURNAL_H
#define OIC_JOURNAL_H

#include "../version.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "crc32c.h"

/* The flash, by three functions of the caller's.  Each returns 0 when it has done what was asked.
   Offsets are from the start of a slot.  An erased slot is written to twice: the payload behind the header's
   place, then the header, which has OIC_JOURNAL_HEADER bytes.  A payload may end anywhere: `write` fills up the
   last word of flash that is written in words.  Words of more bytes than the header has, which cannot be written
   a second time, are not for the journal.

   `read` tells two failures apart: OIC_FLASH_DAMAGED, the contents are lost (an uncorrectable error
   of flash whose words carry check bits: a word that was cut while it was written is one), which
   counts as a wrong checksum; anything else, the read did not work and may be tried again. */
typedef struct {
    void *device;
    size_t slot_bytes; /* of each slot: OIC_JOURNAL_HEADER more than the largest saved state */
    int (*read)(void *device, int slot, size_t offset, void *to, size_t bytes);
    int (*erase)(void *device, int slot);
    int (*write)(void *device, int slot, size_t offset, const void *from, size_t bytes);
} oic_flash;

#define OIC_FLASH_DAMAGED 2
#define OIC_JOURNAL_HEADER 32
#ifndef OIC_JOURNAL_TRIES
#define OIC_JOURNAL_TRIES 8 /* of a read that fails */
#endif
#ifndef OIC_JOURNAL_LOOKS
#define OIC_JOURNAL_LOOKS 3 /* at a slot whose checksum is wrong */
#endif

typedef enum {
    OIC_JOURNAL_OK,
    OIC_JOURNAL_EMPTY,      /* there is no whole payload: nothing was stored, or all of it is damaged */
    OIC_JOURNAL_UNREADABLE, /* a slot could not be read */
    OIC_JOURNAL_TOO_LARGE,  /* more bytes than there is room for */
    OIC_JOURNAL_UNWRITTEN   /* erasing or writing failed */
} oic_journal_status;

/* The header of a slot, at its start; numbers are little-endian as the machine's are. */
typedef struct {
    char magic[8];     /* "OICJRNL" and a zero */
    uint32_t sequence; /* one more than that of the slot before; wraps */
    uint32_t checksum; /* CRC-32C of the header with this field 0, then the payload */
    uint64_t bytes;    /* of the payload */
    uint8_t zeros[8];
} oic_journal_head;

/* Read, again where that fails. */
static inline oic_journal_status oic_journal_read(const oic_flash *flash, int slot, size_t offset, void *to,
                                                  size_t bytes)
{
    for (int tries = 0; tries < OIC_JOURNAL_TRIES; ++tries) {
        const int failed = flash->read(flash->device, slot, offset, to, bytes);
        if (failed == 0 || failed == OIC_FLASH_DAMAGED) {
            return failed == 0 ? OIC_JOURNAL_OK : OIC_JOURNAL_EMPTY;
        }
    }
    return OIC_JOURNAL_UNREADABLE;
}

/* The checksum of a header, to go on with the payload. */
static inline uint32_t oic_journal_crc(const oic_journal_head *head)
{
    oic_journal_head plain = *head;
    plain.checksum = 0;
    return oic_crc32c(OIC_CRC32C_START, &plain, sizeof plain);
}

static inline oic_journal_status oic_journal_check_once(const oic_flash *flash, int slot, oic_journal_head *head)
{
    uint8_t part[64];
    uint32_t crc;
    oic_journal_status status = oic_journal_read(flash, slot, 0, head, sizeof *head);
    if (status != OIC_JOURNAL_OK) {
        return status;
    }
    if (memcmp(head->magic, "OICJRNL", sizeof head->magic) != 0 ||
        head->bytes > flash->slot_bytes - OIC_JOURNAL_HEADER) {
        return OIC_JOURNAL_EMPTY;
    }
    crc = oic_journal_crc(head);
    for (uint64_t at = 0; at < head->bytes; at += sizeof part) {
        const uint64_t rest = head->bytes - at;
        const size_t now = rest < sizeof part ? (size_t)rest : sizeof part;
        status = oic_journal_read(flash, slot, OIC_JOURNAL_HEADER + (size_t)at, part, now);
        if (status != OIC_JOURNAL_OK) {
            return status;
        }
        crc = oic_crc32c(crc, part, now);
    }
    return head->checksum == oic_crc32c_end(crc) ? OIC_JOURNAL_OK : OIC_JOURNAL_EMPTY;
}

/* OIC_JOURNAL_OK and the header if a slot is whole; OIC_JOURNAL_EMPTY if it is known not to be, because it
   was looked at several times: a read may be wrong without saying so; or OIC_JOURNAL_UNREADABLE. */
static inline oic_journal_status oic_journal_check(const oic_flash *flash, int slot, oic_journal_head *head)
{
    oic_journal_status status = OIC_JOURNAL_EMPTY;
    if (flash->slot_bytes < OIC_JOURNAL_HEADER) {
        return OIC_JOURNAL_EMPTY;
    }
    for (int looks = 0; looks < OIC_JOURNAL_LOOKS && status == OIC_JOURNAL_EMPTY; ++looks) {
        status = oic_journal_check_once(flash, slot, head);
    }
    return status;
}

/* The slot that holds the newest whole payload, and its header; -1 unless the status is OIC_JOURNAL_OK or
   the other slot is unreadable, and then it is the newest that can be read. */
static inline oic_journal_status oic_journal_newest(const oic_flash *flash, int *slot, oic_journal_head *head)
{
    oic_journal_head other;
    const oic_journal_status first = oic_journal_check(flash, 0, head);
    const oic_journal_status second = oic_journal_check(flash, 1, &other);
    *slot = first == OIC_JOURNAL_OK ? 0 : -1;
    /* Differences of sequence numbers wrap as the numbers do. */
    if (second == OIC_JOURNAL_OK &&
        (first != OIC_JOURNAL_OK || other.sequence - head->sequence < UINT32_C(0x80000000))) {
        *slot = 1;
        *head = other;
    }
    if (first == OIC_JOURNAL_UNREADABLE || second == OIC_JOURNAL_UNREADABLE) {
        return OIC_JOURNAL_UNREADABLE;
    }
    return *slot >= 0 ? OIC_JOURNAL_OK : OIC_JOURNAL_EMPTY;
}

/* Copy the newest payload to memory, and say how many bytes it has; 0 where there is none or `capacity` is
   less.  OIC_JOURNAL_UNREADABLE with bytes: they are whole, but the other slot could not be read and may
   hold newer ones. */
static inline oic_journal_status oic_journal_load(const oic_flash *flash, void *to, size_t capacity, size_t *bytes)
{
    oic_journal_head head;
    int slot;
    const oic_journal_status found = oic_journal_newest(flash, &slot, &head);
    *bytes = 0;
    if (slot < 0) {
        return found;
    }
    if (head.bytes > capacity) {
        return OIC_JOURNAL_TOO_LARGE;
    }
    for (int looks = 0; looks < OIC_JOURNAL_LOOKS; ++looks) {
        if (oic_journal_read(flash, slot, OIC_JOURNAL_HEADER, to, (size_t)head.bytes) == OIC_JOURNAL_OK &&
            head.checksum == oic_crc32c_end(oic_crc32c(oic_journal_crc(&head), to, (size_t)head.bytes))) {
            *bytes = (size_t)head.bytes;
            return found;
        }
    }
    return OIC_JOURNAL_UNREADABLE;
}

/* Store a payload in the slot that does not hold the newest.  OIC_JOURNAL_OK: it is whole there.
   OIC_JOURNAL_TOO_LARGE, and OIC_JOURNAL_UNREADABLE before anything was erased: nothing has changed.  Otherwise
   the newest is still what it was, or already the new one. */
static inline oic_journal_status oic_journal_store(const oic_flash *flash, const void *from, size_t bytes)
{
    oic_journal_head head, written;
    int newest;
    oic_journal_status status;
    if (flash->slot_bytes < OIC_JOURNAL_HEADER || bytes > flash->slot_bytes - OIC_JOURNAL_HEADER) {
        return OIC_JOURNAL_TOO_LARGE;
    }
    status = oic_journal_newest(flash, &newest, &head);
    if (status == OIC_JOURNAL_UNREADABLE) {
        return status;
    }
    const uint32_t sequence = newest < 0 ? 1u : head.sequence + 1u;
    const int slot = newest == 0 ? 1 : 0;
    memset(&head, 0, sizeof head);
    memcpy(head.magic, "OICJRNL", sizeof head.magic);
    head.sequence = sequence;
    head.bytes = bytes;
    head.checksum = oic_crc32c_end(oic_crc32c(oic_journal_crc(&head), from, bytes));
    if (flash->erase(flash->device, slot) != 0 ||
        flash->write(flash->device, slot, OIC_JOURNAL_HEADER, from, bytes) != 0 ||
        flash->write(flash->device, slot, 0, &head, sizeof head) != 0) {
        return OIC_JOURNAL_UNWRITTEN;
    }
    status = oic_journal_check(flash, slot, &written);
    if (status == OIC_JOURNAL_OK && written.sequence == sequence) {
        return OIC_JOURNAL_OK;
    }
    return status == OIC_JOURNAL_UNREADABLE ? status : OIC_JOURNAL_UNWRITTEN;
}

#endif
