"""Parts of builds that were made before: packed weights and compiled libraries, by all that they depend on.

    FOLDER/ENTRY/      an entry is made in a folder of its own and renamed at once, so that it is whole or not there;
        entry.json     of its file: name, bytes and time, by which a file that was changed since is known
        FILE           never written again: a build has a copy of it, or of a large one a second name where it can

The folder is that of the user, as OIC_CACHE says: a folder, or `off`.  OIC_CACHE_SIZE bounds it (`4G`); what was not
used for longest goes first.  Whatever is wrong with the folder, a build only takes longer.
"""

import hashlib
import inspect
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from oic.diagnostics import fail
from oic.resources import cache_dir
from oic.version import __version__

T = TypeVar("T")
SIZE = 4 << 30  # bytes of all entries
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
LARGE = 16 << 20  # bytes of a file that has a second name rather than a copy
PARTIAL = (".new-", ".old-")  # what entries are called while they are made, and removed
LEFT = 3600 * 10**9  # nanoseconds after which no process is still at it
COPIED = 64 << 20  # most bytes of a file that is copied into the cache, where it cannot have a second name


@dataclass(frozen=True)
class Cache:
    """Entries in a folder.

    size  the most bytes that they have together
    """

    folder: Path
    size: int = SIZE

    @classmethod
    def of_user(cls) -> "Cache | None":
        """As the environment says; None where it is off, or there is no folder for it.  OicError `cache-size`."""
        named = os.environ.get("OIC_CACHE", "")
        if named.lower() in ("off", "0", "no"):
            return None
        text = os.environ.get("OIC_CACHE_SIZE") or str(SIZE)
        size = bytes_of(text)
        if size is None or size < 0:
            hint = "it bounds the cache of builds, like 500M or 20G"
            raise fail("cache-size", f"OIC_CACHE_SIZE={text} is no number of bytes", hint=hint)
        folder = Path(named) if named else cache_dir()
        return cls(folder, size) if folder else None

    def get(self, key: str, to: Path, read: Callable[[Any], T]) -> T | None:
        """Put the file of an entry there; what `read` makes of its notes, or None if there is no such entry.

        An entry that is wrong, or whose file was changed by its second name, is removed.
        """
        entry = self.folder / key
        try:
            found = json.loads((entry / "entry.json").read_text(encoding="utf-8"))
            file = entry / found["name"]
            stat, notes = file.stat(), read(found["notes"])
            if [stat.st_size, stat.st_mtime_ns] == found["file"]:
                _second_name(file, to)
                os.utime(entry / "entry.json")
                return notes
            shutil.rmtree(entry, ignore_errors=True)
        except OSError:
            with suppress(OSError):
                to.unlink(missing_ok=True)
        except (ValueError, ArithmeticError, LookupError, TypeError, AttributeError, RecursionError):
            shutil.rmtree(entry, ignore_errors=True)
        return None

    def remove(self, key: str) -> None:
        """Forget an entry, whose file is not what it was."""
        shutil.rmtree(self.folder / key, ignore_errors=True)

    def put(self, key: str, file: Path, notes: Any) -> None:
        """Keep a file that is complete and will not be written to."""
        with suppress(OSError):
            if file.stat().st_size > self.size // 2:
                return
            self.folder.mkdir(parents=True, exist_ok=True)
            made = Path(tempfile.mkdtemp(prefix=".new-", dir=self.folder))
            try:
                _second_name(file, made / file.name, COPIED)
                stat = (made / file.name).stat()
                about = {"name": file.name, "file": [stat.st_size, stat.st_mtime_ns], "notes": notes}
                (made / "entry.json").write_text(json.dumps(about), encoding="utf-8")
                made.rename(self.folder / key)  # another build may have been first
            finally:
                shutil.rmtree(made, ignore_errors=True)
            self._shrink()

    def _shrink(self) -> None:
        """Remove what was not used, or left by a process that ended, for longest, until the rest is not too large."""
        found = []
        for entry in self.folder.iterdir():
            partial = entry.name.startswith(PARTIAL)
            with suppress(OSError):  # what is not the cache's has no `entry.json`
                used = (entry if partial else entry / "entry.json").stat().st_mtime_ns
                if not partial or used < time.time_ns() - LEFT:
                    found.append((used, sum(file.stat().st_size for file in entry.iterdir()), entry))
        total = sum(nbytes for _, nbytes, _ in found)
        for _, nbytes, entry in sorted(found):
            if total <= self.size:
                break
            with suppress(OSError):
                gone = self.folder / f".old-{entry.name}"
                entry.rename(gone)  # at once
                shutil.rmtree(gone, ignore_errors=True)
            total -= nbytes


def key_of(*parts: str | bytes) -> str:
    """A name for what depends on these."""
    digest = hashlib.sha256(__version__.encode())
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:40]


@cache
def code_of(*modules: str) -> bytes:
    """The text of modules of the compiler, which decide what an entry has."""
    texts = "".join(inspect.getsource(sys.modules[name]) for name in modules)
    return hashlib.sha256(texts.encode()).digest()


def _second_name(file: Path, to: Path, most: int | None = None) -> None:
    """A copy of a small file, a second name for a large one, or its copy too if it has not too many bytes."""
    nbytes = file.stat().st_size
    if nbytes > LARGE:
        try:
            os.link(file, to, follow_symlinks=False)
            return
        except (OSError, NotImplementedError):
            if most is not None and nbytes > most:
                raise
    shutil.copy2(file, to)


def bytes_of(text: str) -> int | None:
    """`500M`, `64KiB` or a number, in bytes; None for what is none of these."""
    plain = text.strip().upper().removesuffix("B").removesuffix("I")
    unit = plain[-1:] if plain[-1:] in UNITS else ""
    try:
        return int(float(plain.removesuffix(unit)) * UNITS.get(unit, 1))
    except (ValueError, OverflowError):
        return None
