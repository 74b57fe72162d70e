/* Saved states: what differs from the start, in one form for every executor of a graph.

   head      OIC_SAVED_HEAD bytes: oic_saved_head
   counts    int64_t each: how far every index and every dimension that grows has come
   parts     of every variable its contents, and what else is known of it (`next` of rings, flags of
             entries that were touched): a part without table indices is its elements; one with them is the
             number of runs and the runs, a run being the number of its first entry, how many, and the entries

   Entries are numbered row by row within the counts.  Only those that differ from the initial value are
   stored, and those between two of them if that takes no more than a run's head does.  Of a ring, position n
   is entry n mod W.  An entry is its elements, row by row without gaps, packed types filling up bytes.  All
   numbers are little-endian and unaligned.  Only what saving gives is loaded: a state has one form.  A form, which the generated code holds as data, says where in
   the state all of this is; `oic.memory.saved` makes it, and is the other description of this form. */
#ifndef OIC_SAVED_H
#define OIC_SAVED_H

#include "../version.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../session.h"
#include "crc32c.h"

#define OIC_SAVED_VERSION 2u
#define OIC_SAVED_HEAD 32
#define OIC_SAVED_RUN 16           /* bytes of a run before its entries */
#define OIC_SAVED_NONE ((size_t)-1) /* no such place in the state */

typedef struct {
    char magic[8];        /* "OICSTAT" and a zero */
    uint32_t version;     /* OIC_SAVED_VERSION; other byte orders fail here */
    uint32_t checksum;    /* CRC-32C of everything, this field 0 */
    uint64_t fingerprint; /* of the form */
    uint64_t bytes;       /* of everything */
} oic_saved_head;

/* A count: its place in the state, an int64_t, and the most it can be. */
typedef struct {
    size_t at;
    int64_t most;
} oic_saved_count;

/* A table index, or a dimension of entries that grow. */
typedef struct {
    int64_t size;   /* how long it is, a count being 0 */
    int32_t count;  /* number of the count that makes it longer; -1: none */
    size_t stride;  /* of a table index, bytes between neighbours; of a dimension, elements */
    size_t reached; /* where the state notes how far a fixed index was touched; or OIC_SAVED_NONE */
    size_t filled;  /* where it notes how far storage holds values; or OIC_SAVED_NONE */
} oic_saved_axis;

typedef struct {
    size_t at;                  /* where in the state its first entry is */
    const oic_saved_axis *axes; /* table indices, then the dimensions of entries that grow */
    int32_t table, rank;        /* table indices; all axes */
    int32_t bits;               /* of an element */
    int32_t marked;             /* 1: memory beyond the marks `filled` holds anything */
    size_t entry;               /* bytes of an entry that does not grow */
    size_t again;               /* bytes from an entry of a ring to where it lies a second time; 0: no ring */
    uint64_t start;             /* the initial value of an element, of the bytes of packed ones */
    uint8_t spare;              /* bits that the last byte of an entry of packed ones does not use */
    int32_t guarded;            /* 1: the next part allows its entries; see oic_saved_are_allowed */
    int32_t counted;            /* 1: the last entry within the counts is not at its start */
    int64_t most;               /* the most an integer may be, from 0 on; -1: any value is one */
} oic_saved_part;

typedef struct {
    uint64_t fingerprint;
    const oic_saved_count *counts;
    const oic_saved_part *parts;
    int32_t count_number, part_number;
} oic_saved_form;

/* A state as a form sees it. */
typedef struct {
    const oic_saved_form *form;
    unsigned char *state;
    const unsigned char *counts; /* those of a saved state; NULL: those in the state */
    int whole;                   /* 1: axes without a mark `filled` are as long as they can be */
} oic_saved_view;

/* What is done with elements: compare them with their start; copy them, or their start, to a saved state;
   copy them from one; set them to their start. */
enum { OIC_SAVED_IS_START, OIC_SAVED_TAKE, OIC_SAVED_TAKE_START, OIC_SAVED_PUT, OIC_SAVED_CLEAR };

static inline int64_t oic_saved_i64(const unsigned char *from)
{
    int64_t value;
    memcpy(&value, from, sizeof value);
    return value;
}

static inline void oic_saved_set_i64(unsigned char *to, int64_t value)
{
    memcpy(to, &value, sizeof value);
}

static inline int64_t oic_saved_length(const oic_saved_view *v, const oic_saved_axis *axis)
{
    if (axis->count < 0) {
        return axis->size;
    }
    if (v->whole && axis->filled == OIC_SAVED_NONE) {
        return axis->size + v->form->counts[axis->count].most;
    }
    return axis->size + (v->counts != NULL ? oic_saved_i64(v->counts + 8 * (size_t)axis->count)
                                           : oic_saved_i64(v->state + v->form->counts[axis->count].at));
}

/* 1 if storage within the counts holds values: else nothing was reached yet, and all is at its start. */
OIC_SELDOM int oic_saved_is_filled(const oic_saved_view *v, const oic_saved_part *p)
{
    for (int32_t i = 0; p->marked && i < p->rank; ++i) {
        const size_t filled = p->axes[i].filled;
        if (filled != OIC_SAVED_NONE && oic_saved_i64(v->state + filled) < oic_saved_length(v, &p->axes[i])) {
            return 0;
        }
    }
    return 1;
}

/* Entries within the counts. */
OIC_SELDOM int64_t oic_saved_entries(const oic_saved_view *v, const oic_saved_part *p)
{
    int64_t total = 1;
    for (int32_t i = 0; i < p->table; ++i) {
        total *= oic_saved_length(v, &p->axes[i]);
    }
    return total;
}

/* Bits of the elements of an entry that grows. */
OIC_SELDOM size_t oic_saved_grown_bits(const oic_saved_view *v, const oic_saved_part *p)
{
    int64_t elements = 1;
    for (int32_t i = p->table; i < p->rank; ++i) {
        elements *= oic_saved_length(v, &p->axes[i]);
    }
    return (size_t)elements * (size_t)p->bits;
}

static inline size_t oic_saved_entry_bytes(const oic_saved_view *v, const oic_saved_part *p)
{
    return p->rank == p->table ? p->entry : (oic_saved_grown_bits(v, p) + 7) / 8;
}

/* Bits that the last byte of an entry does not use. */
OIC_SELDOM unsigned oic_saved_spare(const oic_saved_view *v, const oic_saved_part *p)
{
    size_t used;
    if (p->rank == p->table) {
        return p->spare;
    }
    used = oic_saved_grown_bits(v, p) % 8;
    return used == 0 ? 0u : 0xffu << used & 0xffu;
}

/* Where entry `number` of a table is, and how many there are from it to the end of its row. */
OIC_SELDOM unsigned char *oic_saved_at(const oic_saved_view *v, const oic_saved_part *p, int64_t number,
                                       int64_t *left)
{
    size_t at = p->at;
    *left = 1;
    for (int32_t i = p->table - 1; i >= 0; --i) {
        const int64_t length = oic_saved_length(v, &p->axes[i]);
        const int64_t index = number % length;
        if (i == p->table - 1) {
            *left = length - index;
        }
        at += (size_t)index * p->axes[i].stride;
        number /= length;
    }
    return v->state + at;
}

/* The bytes of one element, or of a byte of packed ones, at their start. */
static inline size_t oic_saved_unit(const oic_saved_part *p, unsigned char unit[8])
{
    const uint8_t one = (uint8_t)p->start;
    const uint16_t two = (uint16_t)p->start;
    const uint32_t four = (uint32_t)p->start;
    switch (p->bits) {
    case 64: memcpy(unit, &p->start, 8); return 8;
    case 32: memcpy(unit, &four, 4); return 4;
    case 16: memcpy(unit, &two, 2); return 2;
    default: unit[0] = one; return 1;
    }
}

/* 1 if these bytes are one unit again and again. */
static inline int oic_saved_repeats(const unsigned char *at, size_t bytes, const unsigned char *unit, size_t size)
{
    return bytes == 0 || (memcmp(at, unit, size) == 0 && memcmp(at, at + size, bytes - size) == 0);
}

/* Elements in a row, whole bytes. */
OIC_SELDOM int oic_saved_row(int what, const oic_saved_part *p, unsigned char *at, size_t bytes,
                             const unsigned char *from, unsigned char *to)
{
    unsigned char unit[8] = {0};
    const size_t size = oic_saved_unit(p, unit);
    switch (what) {
    case OIC_SAVED_IS_START:
        return oic_saved_repeats(at, bytes, unit, size);
    case OIC_SAVED_TAKE:
        memcpy(to, at, bytes);
        return 1;
    case OIC_SAVED_PUT:
        memcpy(at, from, bytes);
        return 1;
    default:
        if (p->start == 0) {
            memset(to, 0, bytes);
        } else {
            for (size_t i = 0; i < bytes; i += size) {
                memcpy(to + i, unit, size);
            }
        }
        return 1;
    }
}

/* One element of a packed type: `k` counts those in the state from `at` on, `n` those of the saved entry. */
OIC_SELDOM int oic_saved_bits(int what, const oic_saved_part *p, unsigned char *at, size_t k,
                              const unsigned char *from, unsigned char *to, size_t n)
{
    const size_t bits = (size_t)p->bits;
    const unsigned mask = (1u << bits) - 1u;
    const unsigned start = (unsigned)p->start & mask;
    unsigned char *const here = at + k * bits / 8;
    const unsigned shift = (unsigned)(k * bits % 8), away = (unsigned)(n * bits % 8);
    const unsigned old = (unsigned)*here >> shift & mask;
    unsigned new_ = start;
    switch (what) {
    case OIC_SAVED_IS_START:
        return old == start;
    case OIC_SAVED_TAKE:
    case OIC_SAVED_TAKE_START:
        new_ = what == OIC_SAVED_TAKE ? old : start;
        to[n * bits / 8] = (unsigned char)((away == 0 ? 0u : to[n * bits / 8]) | new_ << away);
        return 1;
    case OIC_SAVED_PUT:
        new_ = (unsigned)from[n * bits / 8] >> away & mask;
        break;
    default:
        break;
    }
    *here = (unsigned char)(((unsigned)*here & ~(mask << shift)) | new_ << shift);
    return 1;
}

/* An entry that grows, row by row. */
OIC_SELDOM int oic_saved_grown(int what, const oic_saved_view *v, const oic_saved_part *p, unsigned char *at,
                               const unsigned char *from, unsigned char *to)
{
    const size_t length = (size_t)oic_saved_length(v, &p->axes[p->rank - 1]);
    const size_t size = (size_t)p->bits / 8;
    size_t rows = 1, n = 0;
    for (int32_t i = p->table; i < p->rank - 1; ++i) {
        rows *= (size_t)oic_saved_length(v, &p->axes[i]);
    }
    for (size_t row = 0; row < rows; ++row) {
        size_t k = 0, rest = row;
        for (int32_t i = p->rank - 2; i >= p->table; --i) {
            const size_t many = (size_t)oic_saved_length(v, &p->axes[i]);
            k += rest % many * p->axes[i].stride;
            rest /= many;
        }
        if (size > 0) {
            unsigned char *const here = at + k * size;
            unsigned char *const there = what == OIC_SAVED_CLEAR ? here : to + n * size;
            if (!oic_saved_row(what, p, here, length * size, from + n * size, there)) {
                return 0;
            }
            n += length;
            continue;
        }
        for (size_t i = 0; i < length; ++i, ++n) {
            if (!oic_saved_bits(what, p, at, k + i, from, to, n)) {
                return 0;
            }
        }
    }
    return 1;
}

/* The last byte of an entry of packed elements that does not grow, at its start. */
static inline uint8_t oic_saved_last(const oic_saved_part *p)
{
    return (uint8_t)(p->start & ~(unsigned)p->spare);
}

/* One entry: 1 if it is at its start, or when it is done.  `from` is where it is put from and `to` where it
   is taken to; otherwise they are `at`. */
OIC_SELDOM int oic_saved_entry(int what, const oic_saved_view *v, const oic_saved_part *p, unsigned char *at,
                               const unsigned char *from, unsigned char *to)
{
    const size_t partly = p->bits < 8 && p->entry > 0 ? 1 : 0; /* a last byte that may have unused bits */
    if (p->rank > p->table) {
        return oic_saved_grown(what, v, p, at, from, to);
    }
    if (what == OIC_SAVED_TAKE || what == OIC_SAVED_PUT) {
        return oic_saved_row(what, p, at, p->entry, from, to);
    }
    if (what == OIC_SAVED_IS_START) {
        return oic_saved_row(what, p, at, p->entry - partly, from, to) &&
               (partly == 0 || at[p->entry - 1] == oic_saved_last(p));
    }
    (void)oic_saved_row(what, p, at, p->entry - partly, from, to);
    if (partly != 0) {
        to[p->entry - 1] = oic_saved_last(p);
    }
    return 1;
}

/* Put or clear an entry, where it lies a second time too. */
static inline void oic_saved_change(int what, const oic_saved_view *v, const oic_saved_part *p,
                                    unsigned char *at, const unsigned char *from)
{
    (void)oic_saved_entry(what, v, p, at, from, at);
    if (p->again != 0) {
        (void)oic_saved_entry(what, v, p, at + p->again, from, at + p->again);
    }
}

/* The first entry from `number` to `end` that is not at its start, or `end`. */
OIC_SELDOM int64_t oic_saved_next(const oic_saved_view *v, const oic_saved_part *p, int64_t number,
                                  int64_t end)
{
    while (number < end) {
        int64_t left;
        unsigned char *at = oic_saved_at(v, p, number, &left);
        for (; left > 0 && number < end; --left, ++number, at += p->axes[p->table - 1].stride) {
            if (!oic_saved_entry(OIC_SAVED_IS_START, v, p, at, at, at)) {
                return number;
            }
        }
    }
    return end;
}

/* Take entries `first` up to `end` to a saved state. */
OIC_SELDOM void oic_saved_take_run(const oic_saved_view *v, const oic_saved_part *p, int64_t first,
                                   int64_t end, size_t bytes, unsigned char *to)
{
    while (first < end) {
        int64_t left;
        unsigned char *at = oic_saved_at(v, p, first, &left);
        for (; left > 0 && first < end; --left, ++first, at += p->axes[p->table - 1].stride, to += bytes) {
            (void)oic_saved_entry(OIC_SAVED_TAKE, v, p, at, at, to);
        }
    }
}

/* Put entries `first` up to `end` from a saved state. */
OIC_SELDOM void oic_saved_put_run(const oic_saved_view *v, const oic_saved_part *p, int64_t first,
                                  int64_t end, size_t bytes, const unsigned char *from)
{
    while (first < end) {
        int64_t left;
        unsigned char *at = oic_saved_at(v, p, first, &left);
        for (; left > 0 && first < end; --left, ++first, at += p->axes[p->table - 1].stride, from += bytes) {
            oic_saved_change(OIC_SAVED_PUT, v, p, at, from);
        }
    }
}

/* The runs of a table, at `to` if that is not NULL; gives their bytes. */
OIC_SELDOM size_t oic_saved_write_runs(const oic_saved_view *v, const oic_saved_part *p, unsigned char *to)
{
    const int64_t total = oic_saved_is_filled(v, p) ? oic_saved_entries(v, p) : 0;
    const size_t entry = oic_saved_entry_bytes(v, p);
    const int64_t gap = entry == 0 ? 0 : (int64_t)(OIC_SAVED_RUN / entry);
    size_t bytes = 8;
    int64_t runs = 0;
    int64_t first = oic_saved_next(v, p, 0, total);
    while (first < total) {
        int64_t end = first + 1, far, next;
        for (;;) {
            far = gap < total - end ? end + gap + 1 : total;
            far = far < total ? far : total;
            next = oic_saved_next(v, p, end, far);
            if (next == far) {
                break;
            }
            end = next + 1;
        }
        if (to != NULL) {
            oic_saved_set_i64(to + bytes, first);
            oic_saved_set_i64(to + bytes + 8, end - first);
            oic_saved_take_run(v, p, first, end, entry, to + bytes + OIC_SAVED_RUN);
        }
        bytes += OIC_SAVED_RUN + (size_t)(end - first) * entry;
        ++runs;
        first = oic_saved_next(v, p, far, total);
    }
    if (to != NULL) {
        oic_saved_set_i64(to, runs);
    }
    return bytes;
}

/* Everything but the head, at `to` if that is not NULL; gives the bytes of all, the head included. */
OIC_SELDOM size_t oic_saved_write(const oic_saved_view *v, unsigned char *to)
{
    size_t bytes = OIC_SAVED_HEAD;
    for (int32_t i = 0; i < v->form->count_number; ++i, bytes += 8) {
        if (to != NULL) {
            memcpy(to + bytes, v->state + v->form->counts[i].at, 8);
        }
    }
    for (int32_t i = 0; i < v->form->part_number; ++i) {
        const oic_saved_part *const p = &v->form->parts[i];
        if (p->table > 0) {
            bytes += oic_saved_write_runs(v, p, to == NULL ? NULL : to + bytes);
            continue;
        }
        if (to != NULL) {
            const int what = oic_saved_is_filled(v, p) ? OIC_SAVED_TAKE : OIC_SAVED_TAKE_START;
            (void)oic_saved_entry(what, v, p, v->state + p->at, v->state + p->at, to + bytes);
        }
        bytes += oic_saved_entry_bytes(v, p);
    }
    return bytes;
}

/* The checksum of a saved state whose head is given with that field 0. */
OIC_SELDOM uint32_t oic_saved_checksum(const oic_saved_head *head, const unsigned char *image, size_t bytes)
{
    const uint32_t crc = oic_crc32c(OIC_CRC32C_START, head, sizeof *head);
    return oic_crc32c_end(oic_crc32c(crc, image + OIC_SAVED_HEAD, bytes - OIC_SAVED_HEAD));
}

/* Save a state of so many bytes to memory.  Gives the bytes that takes; where `to` is NULL or `capacity` is less,
   nothing is written, nor where they would be in the state: that gives 0.  It never takes more than `most`: where there is
   room for those, the state is looked through once. */
OIC_SELDOM size_t oic_saved_save(const oic_saved_form *form, void *state, size_t state_bytes, void *to,
                                 size_t capacity, uint64_t most)
{
    const oic_saved_view view = {form, state, NULL, 0};
    size_t bytes = to != NULL && capacity >= most ? (size_t)most : oic_saved_write(&view, NULL);
    oic_saved_head head;
    if (to == NULL || capacity < bytes) {
        return bytes;
    }
    if (!oic_are_apart(to, bytes, state, state_bytes)) {
        return 0;
    }
    bytes = oic_saved_write(&view, to);
    memset(&head, 0, sizeof head);
    memcpy(head.magic, "OICSTAT", sizeof head.magic);
    head.version = OIC_SAVED_VERSION;
    head.fingerprint = form->fingerprint;
    head.bytes = bytes;
    head.checksum = oic_saved_checksum(&head, to, bytes);
    memcpy(to, &head, sizeof head);
    return bytes;
}

/* ---------------------------------------------------------------- load */

/* 1 if a saved entry is one that can be: its integers are some that the part may hold, and bits that no
   element has are 0. */
OIC_SELDOM int oic_saved_is_possible(const oic_saved_part *p, const unsigned char *from, size_t bytes,
                                     unsigned spare)
{
    for (size_t i = 0; p->most >= 0 && i < bytes; i += (size_t)p->bits / 8) {
        const int64_t value = p->bits == 8 ? (int64_t)from[i] : oic_saved_i64(from + i);
        if (value < 0 || value > p->most) {
            return 0;
        }
    }
    return bytes == 0 || (from[bytes - 1] & spare) == 0;
}

/* 1 if a saved entry is at its start. */
OIC_SELDOM int oic_saved_is_start(const oic_saved_part *p, const unsigned char *from, size_t bytes, unsigned spare)
{
    unsigned char unit[8] = {0};
    const size_t size = oic_saved_unit(p, unit), whole = spare != 0 ? bytes - 1 : bytes;
    return oic_saved_repeats(from, whole, unit, size) &&
           (spare == 0 || from[bytes - 1] == (unsigned char)(unit[0] & ~spare));
}

/* 1 if the entries of a run are as saving leaves them: neither the first nor the last is at its start, and
   what lies between is not so long that it would have been left out. */
OIC_SELDOM int oic_saved_check_run(const oic_saved_part *p, const unsigned char *from, int64_t many, size_t entry,
                                   unsigned spare)
{
    const int64_t gap = (int64_t)(OIC_SAVED_RUN / entry);
    int64_t idle = gap;
    for (int64_t n = 0; n < many; ++n, from += entry) {
        if (!oic_saved_is_possible(p, from, entry, spare)) {
            return 0;
        }
        idle = oic_saved_is_start(p, from, entry, spare) ? idle + 1 : 0;
        if (idle > gap) {
            return 0;
        }
    }
    return idle == 0;
}

/* The bytes of a part's elements or runs, if all of it is as saving leaves it; 0 if not. */
OIC_SELDOM int oic_saved_check_part(const oic_saved_view *v, const oic_saved_part *p,
                                    const unsigned char *from, size_t bytes, size_t *taken)
{
    const size_t entry = oic_saved_entry_bytes(v, p);
    const unsigned spare = oic_saved_spare(v, p);
    const int64_t total = oic_saved_entries(v, p);
    int64_t runs, end = 0;
    size_t at = 8;
    if (p->table == 0) {
        *taken = entry;
        return bytes >= entry && oic_saved_is_possible(p, from, entry, spare);
    }
    if (bytes < at) {
        return 0;
    }
    runs = oic_saved_i64(from);
    if (runs < 0 || (uint64_t)runs > bytes / OIC_SAVED_RUN || (runs > 0 && entry == 0)) {
        return 0;
    }
    for (; runs > 0; --runs) {
        int64_t first, many;
        if (bytes - at < OIC_SAVED_RUN) {
            return 0;
        }
        first = oic_saved_i64(from + at);
        many = oic_saved_i64(from + at + 8);
        at += OIC_SAVED_RUN;
        if (many < 1 || many > total || first < 0 || first > total - many ||
            (end > 0 && (first < end || first - end <= (int64_t)(OIC_SAVED_RUN / entry))) ||
            (uint64_t)many > (bytes - at) / entry ||
            !oic_saved_check_run(p, from + at, many, entry, spare)) {
            return 0;
        }
        end = first + many;
        at += (size_t)many * entry;
    }
    *taken = at;
    return !p->counted || end == total;
}

/* A part of a saved state that was checked, from whose runs entries are taken in order. */
typedef struct {
    const unsigned char *at; /* the entries of a run, */
    int64_t first, end;      /* from this one up to this one */
    int64_t runs;            /* that follow */
    size_t entry;
} oic_saved_reader;

OIC_SELDOM oic_saved_reader oic_saved_read(const oic_saved_view *v, const oic_saved_part *p,
                                           const unsigned char *from)
{
    oic_saved_reader r = {from, 0, 0, 0, 0};
    r.entry = oic_saved_entry_bytes(v, p);
    if (p->table == 0) {
        r.end = 1;
    } else {
        r.at += 8;
        r.runs = oic_saved_i64(from);
    }
    return r;
}

/* Go on to the next run; 0 if there is none. */
OIC_SELDOM int oic_saved_read_run(oic_saved_reader *r)
{
    r->at += (size_t)(r->end - r->first) * r->entry;
    if (r->runs == 0) {
        r->first = r->end;
        return 0;
    }
    --r->runs;
    r->first = oic_saved_i64(r->at);
    r->end = r->first + oic_saved_i64(r->at + 8);
    r->at += OIC_SAVED_RUN;
    return 1;
}

/* Where a checked part ends. */
OIC_SELDOM const unsigned char *oic_saved_after(const oic_saved_view *v, const oic_saved_part *p,
                                                const unsigned char *from)
{
    oic_saved_reader r = oic_saved_read(v, p, from);
    while (oic_saved_read_run(&r)) {
    }
    return r.at;
}

/* The integer at a number, which is no less than that of the call before; 0 where none is stored. */
OIC_SELDOM int64_t oic_saved_integer(const oic_saved_part *p, oic_saved_reader *r, int64_t number)
{
    const unsigned char *at;
    while (number >= r->end) {
        if (!oic_saved_read_run(r)) {
            return 0;
        }
    }
    if (number < r->first) {
        return 0;
    }
    at = r->at + (size_t)(number - r->first) * r->entry;
    return p->bits == 8 ? (int64_t)at[0] : oic_saved_i64(at);
}

/* 1 if the part after this one allows its entries.  Of a ring that is `next`: a slot from `next` on was never
   written.  Of other entries, and of `next` itself, it is the flags of those that were touched. */
OIC_SELDOM int oic_saved_are_allowed(const oic_saved_view *v, const oic_saved_part *p, const unsigned char *from)
{
    oic_saved_reader r = oic_saved_read(v, p, from);
    oic_saved_reader guard = oic_saved_read(v, p + 1, oic_saved_after(v, p, from));
    const int64_t slots = p->again != 0 ? p->axes[p->table - 1].size : 1;
    const unsigned spare = oic_saved_spare(v, p);
    do {
        for (int64_t n = r.first; n < r.end; ++n) {
            const unsigned char *const entry = r.at + (size_t)(n - r.first) * r.entry;
            if (!oic_saved_is_start(p, entry, r.entry, spare) &&
                n % slots >= oic_saved_integer(p + 1, &guard, n / slots)) {
                return 0;
            }
        }
    } while (oic_saved_read_run(&r));
    return 1;
}

OIC_SELDOM int oic_saved_are_parts_allowed(const oic_saved_view *v, const unsigned char *from)
{
    for (int32_t i = 0; i < v->form->part_number; ++i) {
        const oic_saved_part *const p = &v->form->parts[i];
        if (p->guarded && !oic_saved_are_allowed(v, p, from)) {
            return 0;
        }
        from = oic_saved_after(v, p, from);
    }
    return 1;
}

/* 1 if this is a whole, undamaged saved state of the form.  Nothing of it is believed before. */
OIC_SELDOM int oic_saved_is_valid(const oic_saved_form *form, const void *from, size_t bytes)
{
    const unsigned char *const image = from;
    const oic_saved_view view = {form, NULL, image + OIC_SAVED_HEAD, 0};
    size_t at = OIC_SAVED_HEAD;
    oic_saved_head head;
    uint32_t checksum;
    if (bytes < OIC_SAVED_HEAD) {
        return 0;
    }
    memcpy(&head, image, sizeof head);
    if (memcmp(head.magic, "OICSTAT", sizeof head.magic) != 0 || head.version != OIC_SAVED_VERSION ||
        head.fingerprint != form->fingerprint || head.bytes != bytes) {
        return 0;
    }
    checksum = head.checksum;
    head.checksum = 0;
    if (checksum != oic_saved_checksum(&head, image, bytes) ||
        (bytes - at) / 8 < (size_t)form->count_number) {
        return 0;
    }
    for (int32_t i = 0; i < form->count_number; ++i, at += 8) {
        const int64_t count = oic_saved_i64(image + at);
        if (count < 0 || count > form->counts[i].most) {
            return 0;
        }
    }
    for (int32_t i = 0; i < form->part_number; ++i) {
        size_t taken;
        if (!oic_saved_check_part(&view, &form->parts[i], image + at, bytes - at, &taken)) {
            return 0;
        }
        at += taken;
    }
    return at == bytes && oic_saved_are_parts_allowed(&view, image + OIC_SAVED_HEAD + 8 * form->count_number);
}

/* 1 if the counts in the state are some that there can be: they address it. */
OIC_SELDOM int oic_saved_are_counts(const oic_saved_form *form, const void *state)
{
    for (int32_t i = 0; i < form->count_number; ++i) {
        const int64_t count = oic_saved_i64((const unsigned char *)state + form->counts[i].at);
        if (count < 0 || count > form->counts[i].most) {
            return 0;
        }
    }
    return 1;
}

/* Bring back to its start what the state holds within its counts. */
OIC_SELDOM void oic_saved_clear(const oic_saved_form *form, void *state)
{
    const oic_saved_view view = {form, state, NULL, 0};
    for (int32_t i = 0; i < form->part_number; ++i) {
        const oic_saved_part *const p = &form->parts[i];
        const int64_t total = p->marked || p->table == 0 ? 0 : oic_saved_entries(&view, p);
        int64_t left, n = oic_saved_next(&view, p, 0, total);
        for (; n < total; n = oic_saved_next(&view, p, n + 1, total)) {
            unsigned char *const at = oic_saved_at(&view, p, n, &left);
            oic_saved_change(OIC_SAVED_CLEAR, &view, p, at, at);
        }
        if (p->table == 0 && !p->marked) {
            oic_saved_change(OIC_SAVED_CLEAR, &view, p, view.state + p->at, view.state + p->at);
        }
    }
}

/* Initial values in all of a part that has marks, as far as these will say. */
OIC_SELDOM void oic_saved_fill(const oic_saved_view *v, const oic_saved_part *p)
{
    oic_saved_view all = *v;
    int64_t total, left;
    all.whole = 1;
    total = oic_saved_entries(&all, p);
    for (int64_t n = 0; n < total; ++n) {
        unsigned char *const at = oic_saved_at(&all, p, n, &left);
        oic_saved_change(OIC_SAVED_CLEAR, &all, p, at, at);
    }
    for (int32_t i = 0; i < p->rank; ++i) {
        if (p->axes[i].filled != OIC_SAVED_NONE) {
            oic_saved_set_i64(v->state + p->axes[i].filled, oic_saved_length(v, &p->axes[i]));
        }
    }
}

/* Note how far entries `first` up to `end` reach along indices of a fixed size. */
OIC_SELDOM void oic_saved_raise(const oic_saved_view *v, const oic_saved_part *p, int64_t first, int64_t end)
{
    int64_t a = first, b = end - 1;
    for (int32_t i = p->table - 1; i >= 0; --i) {
        const int64_t length = oic_saved_length(v, &p->axes[i]);
        const int64_t reach = a / length < b / length ? length : b % length + 1;
        if (p->axes[i].reached != OIC_SAVED_NONE) {
            unsigned char *const mark = v->state + p->axes[i].reached;
            if (oic_saved_i64(mark) < reach) {
                oic_saved_set_i64(mark, reach);
            }
        }
        a /= length;
        b /= length;
    }
}

/* Make a state, cleared or reset, what a saved state that is valid says. */
OIC_SELDOM void oic_saved_restore(const oic_saved_form *form, void *state, const void *from)
{
    const unsigned char *at = (const unsigned char *)from + OIC_SAVED_HEAD;
    const oic_saved_view view = {form, state, at, 0};
    for (int32_t i = 0; i < form->count_number; ++i, at += 8) {
        memcpy(view.state + form->counts[i].at, at, 8);
    }
    for (int32_t i = 0; i < form->part_number; ++i) {
        const oic_saved_part *const p = &form->parts[i];
        for (int32_t k = 0; k < p->table; ++k) {
            if (p->axes[k].reached != OIC_SAVED_NONE) {
                oic_saved_set_i64(view.state + p->axes[k].reached, 0);
            }
        }
    }
    for (int32_t i = 0; i < form->part_number; ++i) {
        const oic_saved_part *const p = &form->parts[i];
        const size_t entry = oic_saved_entry_bytes(&view, p);
        if (p->marked) {
            oic_saved_fill(&view, p);
        }
        if (p->table == 0) {
            oic_saved_change(OIC_SAVED_PUT, &view, p, view.state + p->at, at);
            at += entry;
            continue;
        }
        int64_t runs = oic_saved_i64(at);
        for (at += 8; runs > 0; --runs) {
            const int64_t first = oic_saved_i64(at), many = oic_saved_i64(at + 8);
            at += OIC_SAVED_RUN;
            oic_saved_put_run(&view, p, first, first + many, entry, at);
            oic_saved_raise(&view, p, first, first + many);
            at += (size_t)many * entry;
        }
    }
}

#endif
