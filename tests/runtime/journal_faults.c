/* The journal on flash that fails: reads that do not work, reads that are wrong and do not say so, power cuts.

       cc -O2 -I runtime_c tests/runtime/journal_faults.c -o faults && ./faults 100000

   For every kind of flash it prints how many of so many stores were cut or refused, and what was lost: loads
   after which an acknowledged payload was not there, or which gave an older one than the newest without
   saying so.  Exit status 1 if anything was. */
#include <stdio.h>
#include <stdlib.h>

#include "state/journal.h"

enum { MOST = 300, SLOT = OIC_JOURNAL_HEADER + MOST };

typedef struct {
    const char *name;
    uint32_t fails, wrong; /* one read in so many; 0: none */
    uint32_t cuts;         /* one store in so many */
    int checked;           /* words carry check bits: what was cut is OIC_FLASH_DAMAGED to read */
} kind;

typedef struct {
    const kind *kind;
    unsigned char bytes[2][SLOT];
    int damaged[2];
    long budget; /* bytes that can be erased or written before the power is gone */
    uint32_t random;
} device;

static uint32_t next(device *d)
{
    d->random ^= d->random << 13;
    d->random ^= d->random >> 17;
    d->random ^= d->random << 5;
    return d->random;
}

static int one_in(device *d, uint32_t many)
{
    return many != 0 && next(d) % many == 0;
}

static int fetch(void *context, int slot, size_t at, void *to, size_t bytes)
{
    device *const d = context;
    if (at + bytes > SLOT) {
        abort();
    }
    if (one_in(d, d->kind->fails)) {
        memset(to, 0x5a, bytes); /* what was read so far is nothing */
        return 1;
    }
    if (d->kind->checked && d->damaged[slot]) {
        return OIC_FLASH_DAMAGED;
    }
    memcpy(to, d->bytes[slot] + at, bytes);
    if (bytes > 0 && one_in(d, d->kind->wrong)) {
        ((unsigned char *)to)[next(d) % bytes] ^= 0x10;
    }
    return 0;
}

static int erase(void *context, int slot)
{
    device *const d = context;
    d->damaged[slot] = 1;
    for (size_t i = 0; i < SLOT; ++i) {
        if (d->budget-- <= 0) {
            return 1;
        }
        d->bytes[slot][i] = 0xff;
    }
    d->damaged[slot] = 0;
    return 0;
}

static int program(void *context, int slot, size_t at, const void *from, size_t bytes)
{
    device *const d = context;
    for (size_t i = 0; i < bytes; ++i) {
        if (d->budget-- <= 0) {
            d->damaged[slot] = 1;
            return 1;
        }
        if (at + i >= SLOT || d->bytes[slot][at + i] != 0xff) {
            abort();
        }
        d->bytes[slot][at + i] = ((const unsigned char *)from)[i];
    }
    return 0;
}

/* Payload number k: its number, then what follows from it. */
static size_t payload(uint32_t k, unsigned char *to)
{
    const size_t bytes = 8 + k * 37 % (MOST - 7);
    memcpy(to, &k, 4);
    for (size_t i = 4; i < bytes; ++i) {
        to[i] = (unsigned char)(k * 31 + i * 7);
    }
    return bytes;
}

typedef struct {
    long cut, refused, unsure, lost, older;
} outcome;

/* Load, and say which payload that gave; `sure` is the last that is known to be there, later ones may be. */
static uint32_t load(const oic_flash *flash, uint32_t sure, outcome *found)
{
    unsigned char got[MOST], expected[MOST];
    size_t bytes;
    uint32_t k = 0;
    const oic_journal_status status = oic_journal_load(flash, got, sizeof got, &bytes);
    if (status == OIC_JOURNAL_UNREADABLE) {
        ++found->unsure; /* it says so */
        return sure;
    }
    if (status == OIC_JOURNAL_OK) {
        memcpy(&k, got, 4);
        if (payload(k, expected) != bytes || memcmp(got, expected, bytes) != 0) {
            k = 0;
        }
    }
    found->lost += sure != 0 && k == 0;
    found->older += k != 0 && k < sure;
    return k;
}

static outcome run(const kind *kind_, uint32_t stores)
{
    static device d;
    const oic_flash flash = {&d, SLOT, fetch, erase, program};
    unsigned char new_[MOST];
    outcome found = {0, 0, 0, 0, 0};
    uint32_t sure = 0;
    memset(&d, 0, sizeof d);
    memset(d.bytes, 0xff, sizeof d.bytes);
    d.kind = kind_;
    d.random = 2463534242u;
    for (uint32_t k = 1; k <= stores; ++k) {
        const size_t bytes = payload(k, new_);
        const int cut = one_in(&d, kind_->cuts);
        oic_journal_status status;
        d.budget = cut ? (long)(next(&d) % (SLOT + OIC_JOURNAL_HEADER + bytes)) : 1L << 30;
        status = oic_journal_store(&flash, new_, bytes);
        found.cut += cut;
        found.refused += !cut && status != OIC_JOURNAL_OK;
        if (status == OIC_JOURNAL_OK) {
            sure = k;
        }
        sure = load(&flash, sure, &found);
    }
    return found;
}

int main(int argc, char **argv)
{
    static const kind kinds[] = {
        {"sound", 0, 0, 0, 0},
        {"read errors", 40, 0, 0, 0},
        {"power cuts", 0, 0, 10, 0},
        {"read errors and power cuts", 40, 0, 10, 0},
        {"check bits, read errors and power cuts", 40, 0, 10, 1},
        {"wrong reads and power cuts", 0, 2000, 10, 0},
        {"every other read fails", 2, 0, 10, 0},
    };
    const uint32_t stores = argc > 1 ? (uint32_t)atol(argv[1]) : 100000u;
    long bad = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; ++i) {
        const outcome found = run(&kinds[i], stores);
        printf("%s: %lu stores, %ld cut, %ld refused, %ld loads unsure, %ld lost, %ld not the newest\n", kinds[i].name,
               (unsigned long)stores, found.cut, found.refused, found.unsure, found.lost, found.older);
        bad += found.lost + found.older;
    }
    return bad != 0;
}
