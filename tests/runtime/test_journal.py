"""The two-slot journal: a write cut after every byte leaves the old or the new state, never a third."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from oic.resources import runtime_dir
from oic.toolchain.compiler import find_compiler
from oic.toolchain.target import WARNINGS

DRIVER = r"""
#include <stdio.h>
#include <stdlib.h>
#include "state/journal.h"

enum { SLOT = OIC_JOURNAL_HEADER + 200 };
typedef struct { unsigned char bytes[2][SLOT]; long budget; int touched[2]; } device;

/* Every erased or written byte costs one of the budget; at 0 the power is gone. */
static int erase(void *d, int slot)
{
    device *dev = d;
    dev->touched[slot] = 1;
    for (size_t i = 0; i < SLOT; ++i) {
        if (dev->budget-- <= 0) return 1;
        dev->bytes[slot][i] = 0xff;
    }
    return 0;
}
static int write_(void *d, int slot, size_t at, const void *from, size_t n)
{
    device *dev = d;
    dev->touched[slot] = 1;
    for (size_t i = 0; i < n; ++i) {
        if (dev->budget-- <= 0) return 1;
        if (dev->bytes[slot][at + i] != 0xff) abort(); /* only erased bytes are written */
        dev->bytes[slot][at + i] = ((const unsigned char *)from)[i];
    }
    return 0;
}
static int read_(void *d, int slot, size_t at, void *to, size_t n)
{
    device *dev = d;
    if (at + n > SLOT) abort();
    memcpy(to, dev->bytes[slot] + at, n);
    return 0;
}

static int store(const oic_flash *flash, const unsigned char *from)
{
    return oic_journal_store(flash, from, 200) == OIC_JOURNAL_OK;
}
static size_t load(const oic_flash *flash, unsigned char *to)
{
    size_t bytes;
    const oic_journal_status status = oic_journal_load(flash, to, 200, &bytes);
    if ((status == OIC_JOURNAL_OK) != (bytes > 0)) abort();
    return bytes;
}

static void fill(unsigned char *p, int k) { for (int i = 0; i < 200; ++i) p[i] = (unsigned char)(i * 7 + k * 31); }

int main(void)
{
    static device dev, before, scratch;
    const oic_flash flash = {&dev, SLOT, read_, erase, write_};
    unsigned char old[200], new_[200], got[200];
    long cut, flips = 0;
    memset(dev.bytes, 0xff, sizeof dev.bytes);
    dev.budget = 1 << 20;
    if (load(&flash, got) != 0) { puts("empty flash gave a state"); return 1; }
    for (int k = 0; k < 5; ++k) {
        fill(old, k);
        if (!store(&flash, old)) { puts("store failed"); return 1; }
        if (load(&flash, got) != 200 || memcmp(got, old, 200)) { puts("load differs"); return 1; }
        fill(new_, k + 1);
        before = dev;
        for (cut = 0; cut <= 2L * SLOT + 200; ++cut) {
            oic_journal_head head;
            int done, newest;
            dev = before;
            (void)oic_journal_newest(&flash, &newest, &head);
            dev.budget = cut;
            memset(dev.touched, 0, sizeof dev.touched);
            done = store(&flash, new_);
            if (dev.touched[newest]) { puts("the newest slot touched"); return 1; }
            if (load(&flash, got) != 200) { printf("cut %ld lost everything\n", cut); return 1; }
            if (memcmp(got, done ? new_ : old, 200) && memcmp(got, new_, 200)) { printf("cut %ld: a third state\n", cut); return 1; }
            /* After the cut the journal goes on. */
            dev.budget = 1 << 20;
            if (!store(&flash, new_) || load(&flash, got) != 200 ||
                memcmp(got, new_, 200)) { puts("does not go on"); return 1; }
        }
        dev = before;
        dev.budget = 1 << 20;
    }
    /* A flipped bit of the newest slot gives the state before it, not a wrong one. */
    fill(new_, 9);
    store(&flash, new_);
    scratch = dev;
    {
        oic_journal_head head;
        int newest;
        (void)oic_journal_newest(&flash, &newest, &head);
        for (size_t i = 0; i < SLOT; ++i) {
            for (int bit = 0; bit < 8; ++bit, ++flips) {
                dev = scratch;
                dev.bytes[newest][i] ^= (unsigned char)(1 << bit);
                if (load(&flash, got) != 200 || memcmp(got, old, 200)) {
                    printf("bit %d of byte %zu passed\n", bit, i);
                    return 1;
                }
            }
        }
    }
    /* Sequence numbers wrap: 0 is newer than the largest. */
    {
        oic_journal_head head;
        int newest;
        (void)oic_journal_newest(&flash, &newest, &head);
        head.sequence = UINT32_C(0xffffffff);
        head.checksum = 0;
        head.checksum = oic_crc32c_end(oic_crc32c(oic_crc32c(OIC_CRC32C_START, &head, sizeof head), new_, 200));
        memcpy(dev.bytes[newest], &head, sizeof head);
        memcpy(dev.bytes[newest] + OIC_JOURNAL_HEADER, new_, 200);
        dev.budget = 1 << 20;
        memset(dev.bytes[1 - newest], 0xff, SLOT);
        for (int k = 20, k_at; k < 23; ++k) {
            fill(old, k);
            if (!store(&flash, old) || load(&flash, got) != 200 ||
                memcmp(got, old, 200) || oic_journal_newest(&flash, &k_at, &head) != OIC_JOURNAL_OK || head.sequence != (uint32_t)(k - 20)) {
                puts("a wrapped sequence number is not the newest");
                return 1;
            }
        }
    }
    if (oic_journal_store(&flash, new_, 201) != OIC_JOURNAL_TOO_LARGE) { puts("too large a state was stored"); return 1; }
    printf("%ld bit flips refused\n", flips);
    return 0;
}
"""

UNREADABLE = r"""
#include "state/journal.h"
#define REQUIRE(condition) if (!(condition)) return __LINE__
enum { SLOT = OIC_JOURNAL_HEADER + 8 };
typedef struct { unsigned char bytes[2][SLOT]; int unreadable[2], damaged[2], erased, stuck, weak, reads; } device;

static int read_(void *d, int slot, size_t at, void *to, size_t n)
{
    device *dev = d;
    memcpy(to, dev->bytes[slot] + at, n);
    return dev->unreadable[slot] || --dev->reads < 0 ? 1 : dev->damaged[slot] ? OIC_FLASH_DAMAGED : 0;
}
static int erase(void *d, int slot)
{
    device *dev = d;
    ++dev->erased;
    if (dev->stuck) {
        return 0;
    }
    dev->unreadable[slot] = dev->damaged[slot] = 0;
    memset(dev->bytes[slot], 0xff, SLOT);
    return 0;
}
static int write_(void *d, int slot, size_t at, const void *from, size_t n)
{
    device *dev = d;
    if (!dev->stuck) {
        memcpy(dev->bytes[slot] + at, from, n);
        dev->bytes[slot][at] = (unsigned char)(dev->bytes[slot][at] ^ dev->weak);
    }
    return 0;
}

int main(void)
{
    static device dev;
    const oic_flash flash = {&dev, SLOT, read_, erase, write_}, small = {&dev, OIC_JOURNAL_HEADER - 1, read_, erase, write_};
    oic_journal_head head;
    char got[8];
    size_t bytes;
    int slot;
    memset(dev.bytes, 0xff, sizeof dev.bytes);
    dev.reads = 1 << 20;
    REQUIRE(oic_journal_load(&flash, got, 8, &bytes) == OIC_JOURNAL_EMPTY && bytes == 0);
    REQUIRE(oic_journal_store(&flash, "first", 5) == OIC_JOURNAL_OK);
    REQUIRE(oic_journal_store(&flash, "second", 6) == OIC_JOURNAL_OK);
    REQUIRE(oic_journal_newest(&flash, &slot, &head) == OIC_JOURNAL_OK && head.sequence == 2);
    dev.erased = 0;
    dev.unreadable[0] = dev.unreadable[1] = 1;
    REQUIRE(oic_journal_store(&flash, "third", 5) == OIC_JOURNAL_UNREADABLE && dev.erased == 0);
    REQUIRE(oic_journal_load(&flash, got, 8, &bytes) == OIC_JOURNAL_UNREADABLE && bytes == 0);
    dev.unreadable[1 - slot] = 0; /* the newest alone is not readable: the older is given, and it is said */
    REQUIRE(oic_journal_store(&flash, "third", 5) == OIC_JOURNAL_UNREADABLE && dev.erased == 0);
    REQUIRE(oic_journal_load(&flash, got, 8, &bytes) == OIC_JOURNAL_UNREADABLE && bytes == 5);
    dev.unreadable[slot] = 0;
    REQUIRE(oic_journal_load(&flash, got, 8, &bytes) == OIC_JOURNAL_OK && bytes == 6 && memcmp(got, "second", 6) == 0);
    REQUIRE(oic_journal_load(&flash, got, 5, &bytes) == OIC_JOURNAL_TOO_LARGE && bytes == 0);
    REQUIRE(oic_journal_store(&flash, "third", 5) == OIC_JOURNAL_OK && dev.erased == 1);
    REQUIRE(oic_journal_newest(&flash, &slot, &head) == OIC_JOURNAL_OK && head.sequence == 3);
    dev.damaged[slot] = 1; /* its contents are known to be lost: the other is the newest, and goes on */
    REQUIRE(oic_journal_load(&flash, got, 8, &bytes) == OIC_JOURNAL_OK && bytes == 6);
    REQUIRE(oic_journal_store(&flash, "fourth", 6) == OIC_JOURNAL_OK && dev.erased == 2);
    REQUIRE(oic_journal_newest(&flash, &slot, &head) == OIC_JOURNAL_OK && head.sequence == 3);
    dev.unreadable[1 - slot] = 1; /* a slot that stays unreadable is given up by erasing it */
    REQUIRE(oic_journal_check(&flash, 1 - slot, &head) == OIC_JOURNAL_UNREADABLE && erase(&dev, 1 - slot) == 0);
    REQUIRE(oic_journal_store(&flash, "fifth", 5) == OIC_JOURNAL_OK);
    REQUIRE(oic_journal_load(&flash, got, 8, &bytes) == OIC_JOURNAL_OK && bytes == 5);
    dev.stuck = 1; /* nothing is erased nor written, and it is not said: the slot has what it had */
    REQUIRE(oic_journal_store(&flash, "sixth", 5) == OIC_JOURNAL_UNWRITTEN);
    REQUIRE(oic_journal_load(&flash, got, 8, &bytes) == OIC_JOURNAL_OK && bytes == 5 && memcmp(got, "fifth", 5) == 0);
    dev.stuck = 0;
    dev.weak = 0x40; /* what is written is wrong, and it is not said */
    REQUIRE(oic_journal_store(&flash, "sixth", 5) == OIC_JOURNAL_UNWRITTEN);
    REQUIRE(oic_journal_load(&flash, got, 8, &bytes) == OIC_JOURNAL_OK && bytes == 5 && memcmp(got, "fifth", 5) == 0);
    dev.weak = 0;
    REQUIRE(oic_journal_store(&flash, "sixth", 5) == OIC_JOURNAL_OK);
    for (dev.reads = 4; dev.reads >= 0;) { /* reads cease at any time, also after both slots were found whole */
        const int reads = dev.reads;
        REQUIRE(oic_journal_load(&flash, got, 8, &bytes) == OIC_JOURNAL_UNREADABLE && (bytes == 0 || memcmp(got, "sixth", 5) == 0));
        dev.reads = reads - 1;
    }
    dev.reads = 1 << 20;
    REQUIRE(oic_journal_load(&flash, got, 8, &bytes) == OIC_JOURNAL_OK && bytes == 5 && memcmp(got, "sixth", 5) == 0);
    REQUIRE(oic_journal_store(&small, "", 0) == OIC_JOURNAL_TOO_LARGE); /* no room for a header */
    REQUIRE(oic_journal_load(&small, got, 8, &bytes) == OIC_JOURNAL_EMPTY && bytes == 0);
    return 0;
}
"""


@pytest.mark.parametrize("extra", [(), ("-fsanitize=address,undefined", "-g")], ids=["plain", "sanitized"])
def test_a_cut_write_leaves_the_old_or_the_new_state(tmp_path: Path, extra: tuple[str, ...]) -> None:
    source = tmp_path / "driver.c"
    source.write_text(DRIVER)
    program = tmp_path / "driver"
    call = [*find_compiler(), "-std=c99", "-O1", *extra, "-I", str(runtime_dir()), "-o", str(program)]
    built = subprocess.run([*call, str(source)], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "1856 bit flips refused\n"


@pytest.mark.parametrize("extra", [(), ("-fsanitize=address,undefined", "-g")], ids=["plain", "sanitized"])
def test_flash_that_fails_loses_nothing(tmp_path: Path, extra: tuple[str, ...]) -> None:
    """Reads that do not work or are wrong, and power cuts; 100,000 stores of each kind take a minute."""
    program = tmp_path / "faults"
    source = Path(__file__).with_name("journal_faults.c")
    call = [*find_compiler(), "-std=c99", "-O2", *WARNINGS, *extra, "-I", str(runtime_dir()), "-o", str(program)]
    built = subprocess.run([*call, str(source)], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    done = subprocess.run([str(program), "5000"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 7 and all(line.endswith(" 0 lost, 0 not the newest") for line in lines)
    assert all(", 0 refused, 0 loads unsure, " in line for line in lines[:-1])
    refused = [int(n) for n in re.findall(r"(\d+) (?:refused|loads unsure)", lines[-1])]
    assert min(refused) > 50, "no slot was ever unreadable"


def test_an_unreadable_slot_is_neither_erased_nor_taken_for_an_empty_one(tmp_path: Path) -> None:
    """Both slots unreadable, then one: nothing is stored, and sequence numbers go on; then flash that fails and says nothing."""
    source, program = tmp_path / "unreadable.c", tmp_path / "unreadable"
    source.write_text(UNREADABLE)
    call = [*find_compiler(), "-std=c99", *WARNINGS, "-Werror", "-I", str(runtime_dir()), "-o", str(program)]
    built = subprocess.run([*call, str(source)], capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"line {done.returncode}"


def test_the_header_compiles_without_a_warning(tmp_path: Path) -> None:
    source = tmp_path / "only.c"
    source.write_text('#include "state/journal.h"\nint main(void) { return 0; }\n')
    call = [*find_compiler(), "-std=c99", *WARNINGS, "-Werror", "-I", str(runtime_dir()), "-fsyntax-only"]
    done = subprocess.run([*call, str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
