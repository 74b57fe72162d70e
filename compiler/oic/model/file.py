"""A model file, memory-mapped, and read only through checks.

Every read names the field it is for; one that would leave the file is an `OicError` that names
the file, the field and the byte.  Nothing is allocated from a size before the size is checked.
"""

import dataclasses
import math
import mmap
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from oic.diagnostics import OicError, cut, fail, shortened
from oic.model.budget import Budget

MAX_RANK = 32
MAX_BYTES = (1 << 63) - 1
MAX_NAME = 4096  # characters in the name of a tensor, a sizevar or a metadata key
MAX_FACT = 400  # characters of a message about a field
_UNUSABLE = re.compile("[\0-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, eq=False)
class ModelFile:
    """The bytes of one file.

    name    the path as the user wrote it
    budget  what decoding may take; the files of a folder share one
    """

    name: str
    content: mmap.mmap | bytes
    budget: Budget = dataclasses.field(default_factory=Budget)

    @staticmethod
    def open(path: str | Path, budget: Budget | None = None) -> "ModelFile":
        """The file mapped read-only; an `OicError` `model-open` if it cannot be read."""
        try:
            mode = os.stat(path).st_mode
            if not stat.S_ISREG(mode):
                raise ValueError("is a directory" if stat.S_ISDIR(mode) else "not a file")
            with open(path, "rb") as stream:
                empty = os.fstat(stream.fileno()).st_size == 0
                content = b"" if empty else mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise cannot_open(path, error) from None
        budget = Budget() if budget is None else budget
        budget.size += len(content)
        return ModelFile(str(path), content, budget)

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return len(self.content)

    def bad(self, slug: str, field: str, offset: int | None, fact: str, hint: str | None = None) -> OicError:
        """The refusal of one field; `offset` in bytes, or None for what has no single place."""
        place = "" if offset is None else f" at byte {offset}"
        return fail(slug, f"{self.name}: {shortened(field, MAX_FACT)}{place}: {shortened(fact, MAX_FACT)}", hint=hint)

    def require(self, holds: bool, field: str, offset: int | None, fact: str) -> None:
        """Refuse a field, for the reason that the fact states, unless the condition holds."""
        if not holds:
            raise self.bad("model-field", field, offset, fact)

    def charge(self, amount: int, field: str, offset: int | None) -> None:
        """Refuse what takes more memory than is left of the budget; `amount` in bytes."""
        if not self.budget.charge(amount):
            fact = f"decoding takes more than the {self.budget.limit} bytes of memory allowed for it"
            raise self.bad("model-budget", field, offset, fact)

    def need(self, offset: int, count: int, field: str) -> None:
        """Refuse if `count` bytes from `offset` are not all in the file."""
        if offset < 0 or count < 0 or offset + count > self.size:
            fact = f"{count} bytes are needed, but the file ends at byte {self.size}"
            raise self.bad("model-truncated", field, offset, fact)

    def read(self, offset: int, count: int, field: str) -> bytes:
        """A copy of `count` bytes."""
        self.need(offset, count, field)
        return bytes(self.content[offset : offset + count])

    def unsigned(self, offset: int, width: int, field: str) -> int:
        """A little-endian unsigned integer of `width` bytes."""
        self.need(offset, width, field)
        return int.from_bytes(self.content[offset : offset + width], "little")

    def view(self, offset: int, count: int, field: str) -> NDArray[np.uint8]:
        """`count` bytes where they lie in the mapping; read-only, keeps the mapping alive."""
        self.need(offset, count, field)
        if count == 0:
            return np.zeros(0, np.uint8)
        if isinstance(self.content, mmap.mmap) and self.content.size() < self.size:
            fact = f"the file had {self.size} bytes when it was opened, and now has fewer"
            raise self.bad("model-truncated", field, offset, fact)
        return np.frombuffer(self.content, np.uint8, count, offset)

    def check_name(self, name: str, field: str, offset: int | None) -> str:
        """The name, if people and programs can use it; else a refusal."""
        shown = repr(cut(name, 60, 60))
        if not name:
            fact = "a name is empty"
        elif len(name) > MAX_NAME:
            fact = f"{shown} has {len(name)} characters, but at most {MAX_NAME} are allowed"
        elif _UNUSABLE.search(name):
            fact = f"{shown} holds a control character or half a surrogate pair"
        else:
            return name
        raise self.bad("model-name", field, offset, fact)

    def text(self, offset: int, count: int, field: str) -> str:
        """`count` bytes as UTF-8."""
        raw = self.read(offset, count, field) if count < 1 << 16 else self.view(offset, count, field).data
        try:
            return str(raw, "utf-8")
        except UnicodeDecodeError as error:
            fact = f"byte 0x{raw[error.start]:02x} is not UTF-8"
            raise self.bad("model-field", field, offset + error.start, fact) from None

    def count(self, shape: tuple[int, ...], bits: int, field: str, offset: int | None) -> int:
        """The elements of a tensor of this shape; refused if the rank or the bytes are absurd."""
        fact = f"{len(shape)} dimensions, but at most {MAX_RANK} are allowed"
        self.require(len(shape) <= MAX_RANK, field, offset, fact)
        nbits = bits
        for size in shape:
            self.require(size >= 0, field, offset, f"dimension {size} is negative")
            nbits *= max(1, size)
            self.require(nbits <= MAX_BYTES * 8, field, offset, "the dimensions multiply to more than 2^63 bytes")
        return math.prod(shape)


@dataclass(frozen=True)
class Section:
    """A part of a file.

    field   what messages call it
    offset  its first byte in the file
    size    bytes
    """

    file: ModelFile
    field: str
    offset: int
    size: int

    def start(self, count: int) -> bytes:
        """The first `count` bytes, or all if there are fewer."""
        return self.file.read(self.offset, min(count, self.size), self.field)

    def charge(self, amount: int) -> None:
        """Refuse what takes more memory than is left."""
        self.file.charge(amount, self.field, self.offset)

    def bad(self, slug: str, fact: str) -> OicError:
        return self.file.bad(slug, self.field, self.offset, fact)

    def require(self, holds: bool, fact: str, at: int = 0) -> None:
        """Refuse what is `at` so many bytes from the start, unless the condition holds."""
        self.file.require(holds, self.field, self.offset + at, fact)


def cannot_open(path: str | Path, error: Exception) -> OicError:
    """The refusal of a file that the system does not let us read."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return fail("model-open", f"cannot read the model {str(path)!r}: {reason.lower()}")


def check_no_overlap(file: ModelFile, ranges: list[tuple[int, int, str]]) -> None:
    """Refuse two ranges (offset, bytes, field) that share a byte; empty ones share none."""
    end, owner = 0, ""
    for offset, count, field in sorted(r for r in ranges if r[1] > 0):
        if offset < end:
            raise file.bad("model-overlap", field, offset, f"overlaps {owner}, which ends at byte {end}")
        end, owner = offset + count, field
