"""What the C compiler makes of generated code: bytes of stack and of code."""

import struct
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oic.toolchain.stack import THREAD, StackUse


@dataclass(frozen=True)
class Figures:
    """Measured by one compiler, with the flags that decide.

    compiler     kind, version, machine and flags
    stacks       of every function of the API; last that of a thread of the pool, if there is one
    missing      why there are no stacks, "" if there are
    code_bytes   instructions and constant tables; None if its object files cannot be read
    """

    compiler: str
    stacks: tuple[StackUse, ...] = ()
    missing: str = ""
    code_bytes: int | None = None

    @property
    def worst(self) -> StackUse | None:
        """The function of the API that needs the most."""
        return max((s for s in self.stacks if s.function != THREAD), key=lambda s: s.nbytes, default=None)

    @classmethod
    def of_json(cls, found: Mapping[str, Any]) -> "Figures":
        """What `to_json` gave."""
        each = found["stack"].items()
        stacks = tuple(StackUse(name, s["bytes"], tuple(s["externals"]), tuple(s["path"])) for name, s in each)
        return cls(found["compiler"], stacks, found["stack_missing"], found["code_bytes"])

    def to_json(self) -> dict[str, Any]:
        """For the memory map."""
        each = ((s.function, list(s.path), list(s.externals), s.nbytes) for s in self.stacks)
        stack = {name: {"bytes": n, "path": path, "externals": others} for name, path, others, n in each}
        about = {"compiler": self.compiler, "code_bytes": self.code_bytes}
        return about | {"stack": stack, "stack_missing": self.missing}


MemoryRow = tuple[str, int | None, str]
"""A kind of memory, its bytes where they are one number, and what it is."""


def rows(figures: Figures | None) -> list[MemoryRow]:
    """Code and stack."""
    if figures is None:
        return [("stack", None, "depends on the compiler: build with one, which CC names, to have the most of "
                                "every call here; `make stack` prints the frame of every function")]  # fmt: skip
    found: list[MemoryRow] = []
    if figures.code_bytes is not None:
        found.append(("code", figures.code_bytes, "instructions and constant tables, by the compiler named below"))
    if figures.missing:
        return [*found, ("stack", None, f"not known: {figures.missing}")]
    found.append(("stack", None, "the most a call needs in the library; a function outside it comes on top:"))
    names = {THREAD: "a thread of the pool"}
    return found + [(f"  {names.get(s.function, s.function)}", s.nbytes, _beside(s)) for s in figures.stacks]


def table(rows: Sequence[MemoryRow], figures: Figures | None) -> tuple[str, ...]:
    """Lines of the header's table of bytes."""
    by = f"Code and stack by {figures.compiler}." if figures is not None else ""
    first = max(len("memory"), *(len(what) for what, _, _ in rows))
    width = max(len("bytes"), *(len(f"{n:,}") for _, n, _ in rows if n is not None))
    lines = [f"{'memory':<{first}}  {'bytes':>{width}}  what"]
    room = max(40, 100 - first - width)
    for what, nbytes, text in rows:
        wrapped = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
        shown = "" if nbytes is None else f"{nbytes:,}"
        lines.append(f"{what:<{first}}  {shown:>{width}}  {wrapped[0]}".rstrip())
        lines += [" " * (first + width + 4) + more for more in wrapped[1:]]
    return (*lines, *textwrap.wrap(by, 100, break_on_hyphens=False))


def _beside(stack: StackUse) -> str:
    """What the number leaves out."""
    *most, last = stack.externals or ("",)
    return f"+ {', '.join(most)} or {last}" if most else f"+ {last}" if last else "calls nothing outside"


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
