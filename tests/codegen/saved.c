/* Saved states of `kinds` (kinds.py, everything bounded), in memory allocated exactly, so that a sanitizer
   sees one byte too far: what is damaged is refused with nothing changed, what is forged is refused or harmless,
   and a journal whose writes are cut gives the old or the new state. */
#include <stdio.h>
#include <stdlib.h>

#include "kinds.h"
#include "oic/crc32c.h"
#include "oic/journal.h"
#include "places.h" /* where the state has integers beside its variables: made by the test */

enum { SLOT = OIC_JOURNAL_HEADER + KINDS_SAVED_BYTES };

static void fail(const char *what, long at)
{
    printf("%s (%ld)\n", what, at);
    exit(1);
}

static void *exactly(const void *from, size_t bytes)
{
    void *found = malloc(bytes > 0 ? bytes : 1);
    if (found == NULL) {
        exit(3);
    }
    if (from != NULL) {
        memcpy(found, from, bytes);
    }
    return found;
}

/* ---------------------------------------------------------------- steps */

typedef struct {
    kinds_session s;
    void *state, *arena;
} session;

static void start(session *k)
{
    k->state = exactly(NULL, KINDS_STATE_BYTES);
    k->arena = exactly(NULL, KINDS_ARENA_BYTES);
    memset(k->state, 0xA5, KINDS_STATE_BYTES);
    const kinds_memory memory = {k->state, KINDS_STATE_BYTES, k->arena, KINDS_ARENA_BYTES, NULL, 0};
    if (kinds_init(&k->s, &memory) != OIC_OK) {
        fail("init", 0);
    }
}

static void end(session *k)
{
    free(k->state);
    free(k->arena);
}

/* Step number n of any session; the checksum of what it gives. */
static uint32_t step(session *k, uint32_t n)
{
    static unsigned char room[4][1 << 16];
    const uint32_t r = n * 2654435761u;
    const float x[2] = {(float)(r % 1000u) * 0.25f, (float)n};
    const uint8_t b = (uint8_t)(r >> 7 & 1u), q[2] = {(uint8_t)(r >> 8), (uint8_t)(r >> 16 & 15u)};
    int32_t i = (int32_t)(r >> 9 & 31u), w = (int32_t)(r >> 17 & 15u);
    uint32_t crc = OIC_CRC32C_START;
    oic_status status;
    memset(room, 0, sizeof room);
    switch (n % 7u) {
    case 0: case 1: {
        const kinds_inputs in = {x, &b, &i, &w, q};
        kinds_outputs out = {(void *)room[0], {0, 0}, (void *)room[1]};
        status = kinds_step(&k->s, &in, &out);
        break;
    }
    case 2: case 3: {
        const kinds_words_inputs in = {&i, &w};
        kinds_words_outputs out = {(void *)room[0], {0}};
        status = kinds_words(&k->s, &in, &out);
        break;
    }
    case 4: {
        kinds_rings_inputs in = {x, &i, &w, q};
        kinds_rings_outputs out = {room[0]};
        i = (int32_t)n;
        w %= 3;
        status = kinds_rings(&k->s, &in, &out);
        break;
    }
    case 5: {
        const kinds_grow_inputs in = {&i, &w};
        kinds_grow_outputs out = {(void *)room[0], {0, 0}, room[1], {0}, (void *)room[2], {0}};
        i %= 5;
        w %= 3;
        status = kinds_grow(&k->s, &in, &out);
        break;
    }
    default: {
        const kinds_forget_inputs in = {&i, &w};
        kinds_forget_outputs out;
        w %= 2;
        status = kinds_forget(&k->s, &in, &out);
        break;
    }
    }
    crc = oic_crc32c(crc, room, sizeof room);
    return oic_crc32c(crc, &status, sizeof status);
}

/* n steps of both from the same number on give the same. */
static void compare(session *one, session *two, uint32_t from, int n, const char *what)
{
    for (int i = 0; i < n; ++i) {
        if (step(one, from + (uint32_t)i) != step(two, from + (uint32_t)i)) {
            fail(what, i);
        }
    }
}

static size_t save(session *k, unsigned char *to)
{
    return kinds_save(&k->s, to, KINDS_SAVED_BYTES);
}

/* ---------------------------------------------------------------- damage */

static void refused(session *k, const void *before, const void *image, size_t bytes, const char *what,
                    long at)
{
    unsigned char *const room = exactly(NULL, bytes + 1);
    memcpy(room + 1, image, bytes); /* not aligned, and nothing behind it */
    if (kinds_load(&k->s, room + 1, bytes) != OIC_ERR_STATE) {
        fail(what, at);
    }
    if (memcmp(k->state, before, KINDS_STATE_BYTES) != 0) {
        fail("a refused load changed the state", at);
    }
    free(room);
}

static void damage(int stride)
{
    session one, twin;
    unsigned char good[KINDS_SAVED_BYTES + 8], present[KINDS_SAVED_BYTES];
    void *before;
    size_t bytes, now;
    long flips = 0, at = 0;
    start(&one);
    start(&twin);
    compare(&one, &twin, 0, 60, "twins differ");
    bytes = save(&one, good);
    compare(&one, &twin, 60, 10, "twins differ");
    before = exactly(one.state, KINDS_STATE_BYTES);
    for (size_t i = 0; i < bytes; ++i) {
        for (int bit = 0; bit < 8; ++bit, ++at) {
            if (at % stride != 0) {
                continue;
            }
            good[i] ^= (unsigned char)(1 << bit);
            refused(&one, before, good, bytes, "a flipped bit passed", at);
            good[i] ^= (unsigned char)(1 << bit);
            if (++flips % 401 == 0) { /* a sample goes on at once, from the state that refused */
                now = save(&one, present);
                compare(&one, &twin, 70, 16, "a step after a flipped bit");
                if (kinds_load(&one.s, present, now) != OIC_OK ||
                    kinds_load(&twin.s, present, now) != OIC_OK) {
                    fail("load", flips);
                }
                memcpy(before, one.state, KINDS_STATE_BYTES);
            }
        }
    }
    for (size_t n = 0; n < bytes; ++n) {
        refused(&one, before, good, n, "a truncation passed", (long)n);
    }
    memset(good + bytes, 0, 8);
    for (size_t n = bytes + 1; n <= bytes + 8; ++n) {
        refused(&one, before, good, n, "an extension passed", (long)n);
    }
    compare(&one, &twin, 70, 16, "a step after all that was refused");
    now = save(&one, present);
    if (now != save(&twin, good) || memcmp(present, good, now) != 0) {
        fail("states differ", 0);
    }
    printf("%ld flips and %lu lengths refused\n", flips, (unsigned long)(bytes + 8));
    free(before);
    end(&one);
    end(&twin);
}

/* Memory of the state itself is none to save to or to load from, and all beside it is. */
static void own(void)
{
    session one;
    unsigned char good[KINDS_SAVED_BYTES], *room;
    void *before;
    size_t bytes;
    start(&one);
    free(one.state);
    room = exactly(NULL, 8 + sizeof good + KINDS_STATE_BYTES + sizeof good);
    one.state = room + (sizeof good + 8) / 8 * 8;
    {
        const kinds_memory memory = {one.state, KINDS_STATE_BYTES, one.arena, KINDS_ARENA_BYTES, NULL, 0};
        if (kinds_init(&one.s, &memory) != OIC_OK) {
            fail("init", 1);
        }
    }
    for (uint32_t n = 0; n < 60; ++n) {
        (void)step(&one, n);
    }
    bytes = save(&one, good);
    before = exactly(one.state, KINDS_STATE_BYTES);
    for (long at = 1 - (long)bytes; at < (long)KINDS_STATE_BYTES; ++at) {
        unsigned char *const there = (unsigned char *)one.state + at;
        if (kinds_save(&one.s, there, bytes) != 0 || kinds_load(&one.s, there, bytes) != OIC_ERR_INPUT) {
            fail("the state's own memory passed", at);
        }
    }
    if (memcmp(before, one.state, KINDS_STATE_BYTES) != 0) {
        fail("the state's own memory was written", 0);
    }
    for (int after = 0; after < 2; ++after) {
        unsigned char *const there = (unsigned char *)one.state + (after ? (long)KINDS_STATE_BYTES : -(long)bytes);
        if (kinds_save(&one.s, there, bytes) != bytes || memcmp(there, good, bytes) != 0 ||
            kinds_load(&one.s, there, bytes) != OIC_OK) {
            fail("memory beside the state was refused", after);
        }
    }
    free(before);
    free(room);
    free(one.arena);
}

/* A state with the checksum made right: refused with nothing changed; or loaded, and then saved as it was, and
   steps after it stay within memory.  1 if it was loaded. */
static int forged(session *one, unsigned char *bad, size_t bytes, long at)
{
    static unsigned char again[KINDS_SAVED_BYTES];
    uint32_t checksum = 0;
    unsigned char *image;
    int taken;
    memcpy(bad + 12, &checksum, 4);
    checksum = oic_crc32c_end(oic_crc32c(OIC_CRC32C_START, bad, bytes));
    memcpy(bad + 12, &checksum, 4);
    image = exactly(bad, bytes);
    taken = kinds_load(&one->s, image, bytes) == OIC_OK;
    if (taken) {
        if (kinds_save(&one->s, again, sizeof again) != bytes || memcmp(again, bad, bytes) != 0) {
            fail("what was loaded is not what is saved", at);
        }
        for (uint32_t n = 60; n < 67; ++n) {
            (void)step(one, n);
        }
        if (kinds_save(&one->s, again, sizeof again) > sizeof again) {
            fail("more was saved than the header says there can be", at);
        }
    }
    free(image);
    return taken;
}

/* Every byte changed in several ways, and every eight of them. */
static void forge(size_t stride)
{
    static const unsigned char with[] = {0x01, 0x02, 0x10, 0x80, 0xff};
    static const int64_t values[] = {0, 1, 2, 3, 5, 17, -1, INT64_MIN, INT64_MAX, INT64_C(1) << 32};
    session one;
    unsigned char good[KINDS_SAVED_BYTES], bad[KINDS_SAVED_BYTES];
    size_t bytes;
    long taken = 0, tried = 0;
    start(&one);
    for (uint32_t n = 0; n < 60; ++n) {
        (void)step(&one, n);
    }
    bytes = save(&one, good);
    for (size_t i = 32; i < bytes; i += stride) {
        for (size_t k = 0; k < sizeof with; ++k, ++tried) {
            memcpy(bad, good, bytes);
            bad[i] ^= with[k];
            taken += forged(&one, bad, bytes, (long)i);
        }
        for (size_t k = 0; i + 8 <= bytes && k < sizeof values / sizeof values[0]; ++k, ++tried) {
            memcpy(bad, good, bytes);
            memcpy(bad + i, &values[k], 8);
            taken += forged(&one, bad, bytes, (long)i);
        }
    }
    printf("%ld forged states loaded, %ld refused\n", taken, tried - taken);
    end(&one);
}

/* Every bit of every integer that the state keeps beside its variables, flipped: steps and saving stay within
   memory, loading gives a good state again where the count was none. */
static void flip(void)
{
    session one;
    unsigned char good[KINDS_SAVED_BYTES], again[KINDS_SAVED_BYTES];
    unsigned char *before;
    size_t bytes;
    long flips = 0, unsaved = 0, refused_ = 0;
    start(&one);
    for (uint32_t n = 0; n < 60; ++n) {
        (void)step(&one, n);
    }
    bytes = save(&one, good);
    before = exactly(one.state, KINDS_STATE_BYTES);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; ++i) {
        for (size_t bit = 0; bit < places[i].bytes * 8; ++bit, ++flips) {
            size_t now;
            for (uint32_t n = 60; n < 76; ++n) {
                memcpy(one.state, before, KINDS_STATE_BYTES);
                memset(&one.s.refusal, 0, sizeof one.s.refusal);
                ((unsigned char *)one.state)[places[i].at + bit / 8] ^= (unsigned char)(1u << bit % 8);
                (void)step(&one, n);
                refused_ += one.s.refusal.status == OIC_ERR_STATE;
            }
            memcpy(one.state, before, KINDS_STATE_BYTES);
            memset(&one.s.refusal, 0, sizeof one.s.refusal);
            ((unsigned char *)one.state)[places[i].at + bit / 8] ^= (unsigned char)(1u << bit % 8);
            now = kinds_save(&one.s, again, sizeof again);
            if (kinds_load(&one.s, good, bytes) != OIC_OK) {
                fail("a good state is not loaded into one with a flipped bit", (long)i);
            }
            if (places[i].one != (now == 0)) {
                fail("a flipped bit of a count is saved", (long)i);
            }
            if (now == 0) {
                ++unsaved;
                if (kinds_save(&one.s, again, sizeof again) != bytes || memcmp(again, good, bytes) != 0) {
                    fail("something is left of a state with a flipped bit", (long)i);
                }
            }
        }
    }
    printf("%ld bits flipped, %ld steps refused, %ld times not saved\n", flips, refused_, unsaved);
    free(before);
    end(&one);
}

/* ---------------------------------------------------------------- journal */

typedef struct {
    unsigned char bytes[2][SLOT];
    long budget; /* bytes that can be erased or written before the power is gone */
} device;

static int erase(void *d, int slot)
{
    device *dev = d;
    for (size_t i = 0; i < SLOT; ++i) {
        if (dev->budget-- <= 0) {
            return 1;
        }
        dev->bytes[slot][i] = 0xff;
    }
    return 0;
}

static int program(void *d, int slot, size_t at, const void *from, size_t n)
{
    device *dev = d;
    for (size_t i = 0; i < n; ++i) {
        if (dev->budget-- <= 0) {
            return 1;
        }
        if (at + i >= SLOT || dev->bytes[slot][at + i] != 0xff) {
            fail("a byte that is not erased is written", (long)i);
        }
        dev->bytes[slot][at + i] = ((const unsigned char *)from)[i];
    }
    return 0;
}

static int fetch(void *d, int slot, size_t at, void *to, size_t n)
{
    device *dev = d;
    if (at + n > SLOT) {
        fail("read beyond the slot", (long)at);
    }
    memcpy(to, dev->bytes[slot] + at, n);
    return 0;
}

/* Stores cut after every byte: what the journal then gives is loaded into a session, and is the old or the
   new state. */
static void journal(int stores, long stride)
{
    static device dev, before;
    const oic_flash flash = {&dev, SLOT, fetch, erase, program};
    session one, other;
    unsigned char old[KINDS_SAVED_BYTES], new_[KINDS_SAVED_BYTES];
    unsigned char got[KINDS_SAVED_BYTES], again[KINDS_SAVED_BYTES];
    size_t old_bytes, new_bytes, least = SLOT, most = 0;
    uint32_t n = 0;
    long cuts = 0;
    start(&one);
    start(&other);
    memset(dev.bytes, 0xff, sizeof dev.bytes);
    dev.budget = 1L << 30;
    old_bytes = save(&one, old);
    if (oic_journal_store(&flash, old, old_bytes) != OIC_JOURNAL_OK) {
        fail("the first store", 0);
    }
    for (int store = 0; store < stores; ++store) {
        oic_journal_head head;
        int newest;
        if (store % 3 == 2) {
            kinds_reset(&one.s); /* and so a much smaller state after a larger one */
        }
        for (int i = 0; i < 9; ++i) {
            (void)step(&one, n++);
        }
        new_bytes = save(&one, new_);
        least = new_bytes < least ? new_bytes : least;
        most = new_bytes > most ? new_bytes : most;
        before = dev;
        (void)oic_journal_newest(&flash, &newest, &head);
        for (long cut = 0; cut <= SLOT + OIC_JOURNAL_HEADER + (long)new_bytes; cut += stride, ++cuts) {
            size_t bytes;
            int done;
            dev = before;
            dev.budget = cut;
            done = oic_journal_store(&flash, new_, new_bytes) == OIC_JOURNAL_OK;
            if (memcmp(dev.bytes[newest], before.bytes[newest], SLOT) != 0) {
                fail("the slot with the newest state was touched", cut);
            }
            if (done != (cut == SLOT + OIC_JOURNAL_HEADER + (long)new_bytes)) {
                fail("a store that was cut says it is done, or the other way round", cut);
            }
            if (oic_journal_load(&flash, got, sizeof got, &bytes) != OIC_JOURNAL_OK ||
                kinds_load(&other.s, got, bytes) != OIC_OK || save(&other, again) != bytes ||
                memcmp(again, got, bytes) != 0) {
                fail("what the journal gives is no state", cut);
            }
            if (!(bytes == old_bytes && memcmp(got, old, bytes) == 0 && !done) &&
                !(bytes == new_bytes && memcmp(got, new_, bytes) == 0)) {
                fail("a third state", cut);
            }
        }
        dev = before;
        dev.budget = 1L << 30;
        if (oic_journal_store(&flash, new_, new_bytes) != OIC_JOURNAL_OK) {
            fail("a store", store);
        }
        memcpy(old, new_, new_bytes);
        old_bytes = new_bytes;
    }
    if (least == most) {
        fail("all states have one size", 0);
    }
    printf("%ld cuts of stores of %lu to %lu bytes\n", cuts, (unsigned long)least, (unsigned long)most);
    end(&one);
    end(&other);
}

int main(int argc, char **argv)
{
    const int stride = argc > 1 ? atoi(argv[1]) : 1; /* every so many of all bits, bytes and cuts */
    damage(stride);
    own();
    forge((size_t)stride);
    journal(3, stride);
    flip();
    return 0;
}
