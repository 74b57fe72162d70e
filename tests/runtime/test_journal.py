"""The two-slot journal: a write cut after every byte leaves the old or the new state, never a third."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from oic.backend.target import WARNINGS
from oic.backend.toolchain import find_compiler
from oic.resources import runtime_dir

DRIVER = r"""
#include <stdio.h>
#include <stdlib.h>
#include "journal.h"

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

static void fill(unsigned char *p, int k) { for (int i = 0; i < 200; ++i) p[i] = (unsigned char)(i * 7 + k * 31); }

int main(void)
{
    static device dev, before, scratch;
    const oic_flash flash = {&dev, SLOT, read_, erase, write_};
    unsigned char old[200], new_[200], got[200];
    long cut, flips = 0;
    memset(dev.bytes, 0xff, sizeof dev.bytes);
    dev.budget = 1 << 20;
    if (oic_journal_load(&flash, got, sizeof got) != 0) { puts("empty flash gave a state"); return 1; }
    for (int k = 0; k < 5; ++k) {
        fill(old, k);
        if (!oic_journal_store(&flash, old, sizeof old)) { puts("store failed"); return 1; }
        if (oic_journal_load(&flash, got, sizeof got) != 200 || memcmp(got, old, 200)) { puts("load differs"); return 1; }
        fill(new_, k + 1);
        before = dev;
        for (cut = 0; cut <= 2L * SLOT + 200; ++cut) {
            oic_journal_head head;
            int done, newest;
            dev = before;
            newest = oic_journal_newest(&flash, &head);
            dev.budget = cut;
            memset(dev.touched, 0, sizeof dev.touched);
            done = oic_journal_store(&flash, new_, sizeof new_);
            if (dev.touched[newest]) { puts("the newest slot touched"); return 1; }
            if (oic_journal_load(&flash, got, sizeof got) != 200) { printf("cut %ld lost everything\n", cut); return 1; }
            if (memcmp(got, done ? new_ : old, 200) && memcmp(got, new_, 200)) { printf("cut %ld: a third state\n", cut); return 1; }
            /* After the cut the journal goes on. */
            dev.budget = 1 << 20;
            if (!oic_journal_store(&flash, new_, sizeof new_) || oic_journal_load(&flash, got, sizeof got) != 200 ||
                memcmp(got, new_, 200)) { puts("does not go on"); return 1; }
        }
        dev = before;
        dev.budget = 1 << 20;
    }
    /* A flipped bit of the newest slot gives the state before it, not a wrong one. */
    fill(new_, 9);
    oic_journal_store(&flash, new_, sizeof new_);
    scratch = dev;
    {
        oic_journal_head head;
        const int newest = oic_journal_newest(&flash, &head);
        for (size_t i = 0; i < SLOT; ++i) {
            for (int bit = 0; bit < 8; ++bit, ++flips) {
                dev = scratch;
                dev.bytes[newest][i] ^= (unsigned char)(1 << bit);
                if (oic_journal_load(&flash, got, sizeof got) != 200 || memcmp(got, old, 200)) {
                    printf("bit %d of byte %zu passed\n", bit, i);
                    return 1;
                }
            }
        }
    }
    /* Sequence numbers wrap: 0 is newer than the largest. */
    {
        oic_journal_head head;
        const int newest = oic_journal_newest(&flash, &head);
        head.sequence = UINT32_C(0xffffffff);
        head.checksum = 0;
        head.checksum = oic_crc32c_end(oic_crc32c(oic_crc32c(OIC_CRC32C_START, &head, sizeof head), new_, 200));
        memcpy(dev.bytes[newest], &head, sizeof head);
        memcpy(dev.bytes[newest] + OIC_JOURNAL_HEADER, new_, 200);
        dev.budget = 1 << 20;
        memset(dev.bytes[1 - newest], 0xff, SLOT);
        for (int k = 20; k < 23; ++k) {
            fill(old, k);
            if (!oic_journal_store(&flash, old, 200) || oic_journal_load(&flash, got, sizeof got) != 200 ||
                memcmp(got, old, 200) || oic_journal_newest(&flash, &head) < 0 || head.sequence != (uint32_t)(k - 20)) {
                puts("a wrapped sequence number is not the newest");
                return 1;
            }
        }
    }
    if (oic_journal_store(&flash, new_, 201)) { puts("too large a state was stored"); return 1; }
    printf("%ld bit flips refused\n", flips);
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


def test_the_header_compiles_without_a_warning(tmp_path: Path) -> None:
    source = tmp_path / "only.c"
    source.write_text('#include "journal.h"\nint main(void) { return 0; }\n')
    call = [*find_compiler(), "-std=c99", *WARNINGS, "-Werror", "-I", str(runtime_dir()), "-fsyntax-only"]
    done = subprocess.run([*call, str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
