"""Bytes of code in an object file, as they count in flash."""

from __future__ import annotations

import struct
from pathlib import Path

NOTHING, NO_BITS = 0, 8  # kinds of sections
WRITE, ALLOC, CODE = 1, 2, 4  # flags of sections
UNWIND = (".eh_frame", ".ARM.exidx", ".ARM.extab", ".note")  # for debuggers and C++, not for running C


def code_bytes(path: Path) -> int | None:
    """Instructions and constant tables of an ELF object file; None if it is not one that can be read."""
    data = path.read_bytes()
    if data[:4] != b"\x7fELF" or len(data) < 52:
        return None
    try:
        return _code_bytes(data, wide=data[4] == 2, order="<" if data[5] == 1 else ">")
    except (struct.error, IndexError):
        return None


def _code_bytes(data: bytes, *, wide: bool, order: str) -> int:
    """Sum the sections that are loaded and not written to."""
    (table,) = struct.unpack_from(order + ("Q" if wide else "I"), data, 40 if wide else 32)
    size, count, names_at = struct.unpack_from(order + "HHH", data, 58 if wide else 46)
    form = order + ("IIQQQQ" if wide else "IIIIII")
    sections = [struct.unpack_from(form, data, table + i * size) for i in range(count)]
    names = sections[names_at][4]
    total = 0
    for name, kind, flags, _, _, nbytes in sections:
        text = data[names + name : data.index(b"\0", names + name)].decode(errors="replace")
        if kind not in (NOTHING, NO_BITS) and flags & ALLOC and not text.startswith(UNWIND):
            # Addresses in constants are relocated in hosted code, which puts them where it may write.
            total += nbytes if flags & CODE or not flags & WRITE or ".rel.ro" in text else 0
    return total
