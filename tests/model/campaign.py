"""Damaged models and arrays by the thousand, each opened and read within limits of memory and time.

    PYTHONPATH=compiler:tests python -m model.campaign --mutants 20000 [--seed 1] [FORMAT …]

Of every format (npy, oinf, safetensors, gguf, npz, hf) so many mutants are made of the samples: bytes
flipped, cut, doubled and spliced; integers replaced by extreme ones; numbers and words of headers
changed; archives and headers packed anew, so that checksums and lengths agree.  Each is opened,
described with statistics and loaded.  What ends in anything but a model or an `OicError`, takes longer
than 10 s or more memory than 3 x the file + 256 MB is a defect; its seed makes it again.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import zipfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from model.samples import read_everything, write_all
from oic.diagnostics import OicError
from oic.model.npy import read_npy

FORMATS = ("npy", "oinf", "safetensors", "gguf", "npz", "hf")
SECONDS = 10
ADDRESS_SPACE = 3 << 30  # bytes of the process that reads
BATCH = 1000  # mutants that one process reads
_EXTREME = (0, 1, 2, 7, 8, 31, 32, 33, 255, 1 << 16, (1 << 24) + 1, (1 << 31) - 1, 1 << 31, (1 << 32) - 1,
            1 << 40, (1 << 62), (1 << 63) - 1, 1 << 63, (1 << 64) - 1)  # fmt: skip
_WORDS = (b"{", b"}", b"[", b"]", b"(", b")", b"'", b'"', b",", b":", b"null", b"1e999", b"-1", b"'O'", b"'<U9'",
          b"'|V2'", b"True", b"nan", b"\\u0000", b"\xff", b"\xe2\x80\xae", b"9" * 30, b"[" * 50, b"0x1f", b"1_0")  # fmt: skip


@dataclass
class Tally:
    """What became of the mutants of a format; memory in bytes above 3 x the file."""

    mutants: int = 0
    opened: int = 0
    refused: int = 0
    slowest: float = 0.0
    most: int = 0
    defects: tuple[str, ...] = ()

    def add(self, other: Tally) -> None:
        self.mutants += other.mutants
        self.opened += other.opened
        self.refused += other.refused
        self.slowest = max(self.slowest, other.slowest)
        self.most = max(self.most, other.most)
        self.defects += tuple(other.defects)


# ---------------------------------------------------------------- mutants


def seeds(folder: Path, form: str) -> list[Path]:
    """The samples of a format."""
    if form == "hf":
        return [folder / "sharded"]
    return sorted(folder.glob(f"*.{form}"))


def write_arrays(folder: Path) -> None:
    """Arrays in .npy files of every version and order."""
    np.save(folder / "plain.npy", np.arange(6, dtype=np.float32).reshape(2, 3))
    np.save(folder / "fortran.npy", np.asfortranarray(np.eye(3)))
    np.save(folder / "swapped.npy", np.arange(5, dtype=">i4"))
    np.save(folder / "flags.npy", np.array([True, False]))
    np.save(folder / "scalar.npy", np.uint8(7))
    np.save(folder / "objects.npy", np.array([{}], object))
    with open(folder / "second.npy", "wb") as file:
        np.lib.format.write_array(file, np.arange(4, dtype=np.int16), version=(2, 0))


def changed(raw: bytes, other: bytes, rng: random.Random) -> bytes:
    """The bytes with one change."""
    at, length = rng.randrange(len(raw) + 1), rng.choice((1, 2, 4, 8, 16, 64))
    match rng.randrange(9):
        case 0:
            return (
                raw[:at]
                + bytes(b ^ (1 << rng.randrange(8)) for b in raw[at : at + 1])
                + raw[at + 1 :]
            )
        case 1:
            return raw[:at] + rng.randbytes(length) + raw[at + length :]
        case 2:
            return raw[:at]
        case 3:
            return raw[:at] + raw[at + length :]
        case 4:
            return raw[: at + length] + raw[at:]
        case 5:
            start = rng.randrange(len(other) + 1)
            return (
                raw[:at] + other[start : start + 4 * length] + raw[at + rng.choice((0, length)) :]
            )
        case 6 | 7:
            width, at = rng.choice((2, 4, 8)), at & ~(rng.choice((0, 1, 3, 7)))
            value = rng.choice(_EXTREME) & ((1 << 8 * width) - 1)
            return raw[:at] + value.to_bytes(width, "little") + raw[at + width :]
        case _:
            words = [
                m.span() for m in re.finditer(rb"[0-9]+|[A-Za-z_<>|]+|[\[\](){}:,]", raw[:4096])
            ]
            start, end = rng.choice(words) if words else (at, at)
            value = str(rng.choice(_EXTREME)).encode() if rng.random() < 0.6 else rng.choice(_WORDS)
            return raw[:start] + value + raw[rng.choice((start, end)) :]


def mutated(raw: bytes, other: bytes, form: str, rng: random.Random) -> bytes:
    """The bytes with one to four changes, in half the cases packed anew around them."""
    inner = {"npz": _inside_zip, "safetensors": _inside_header, "npy": _inside_npy}.get(form)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
        raw = inner(raw, other, rng) if inner and rng.random() < 0.5 else changed(raw, other, rng)
    return raw


def _inside_zip(raw: bytes, other: bytes, rng: random.Random) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            members = {info.filename: archive.read(info) for info in archive.infolist()}
        name = rng.choice(sorted(members))
        members[name] = changed(_inside_npy(members[name], other, rng), other, rng)
        if rng.random() < 0.2:
            members[changed(name.encode(), b"../\\\x1b", rng).decode("latin-1") or "x"] = (
                members.pop(name)
            )
        packed = io.BytesIO()
        kind = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
        with zipfile.ZipFile(packed, "w", kind) as archive:
            for key, content in members.items():
                archive.writestr(key, content)
    except Exception:  # what is damaged already, is changed as bytes
        return changed(raw, other, rng)
    return packed.getvalue()


def _inside_header(raw: bytes, other: bytes, rng: random.Random) -> bytes:
    length = int.from_bytes(raw[:8], "little")
    if length > len(raw):
        return changed(raw, other, rng)
    header = changed(raw[8 : 8 + length], other, rng)
    return struct.pack("<Q", len(header)) + header + raw[8 + length :]


def _inside_npy(raw: bytes, other: bytes, rng: random.Random) -> bytes:
    if raw[:6] != b"\x93NUMPY" or len(raw) < 12:
        return changed(raw, other, rng)
    wide = raw[6] != 1
    start = 12 if wide else 10
    length = int.from_bytes(raw[8:start], "little")
    header = changed(raw[start : start + length], other, rng)[:0xFFFF]
    return raw[:8] + len(header).to_bytes(start - 8, "little") + header + raw[start + length :]


def make(samples: Path, form: str, number: int, seed: int, target: Path) -> Path:
    """Write one mutant; the same for the same numbers."""
    rng = random.Random(f"{form} {seed} {number}")
    path, other = rng.choice(seeds(samples, form)), rng.choice(seeds(samples, form))
    if form != "hf":
        made = target / f"m.{form}"
        made.unlink(missing_ok=True)  # an older one may still be mapped
        made.write_bytes(mutated(path.read_bytes(), other.read_bytes(), form, rng))
        return made
    made = target / "m"
    made.mkdir(exist_ok=True)
    damaged = rng.choice(sorted(p.name for p in path.iterdir()))
    for part in sorted(path.iterdir()):
        copy = made / part.name
        copy.unlink(missing_ok=True)
        inner = "safetensors" if part.suffix == ".safetensors" else "json"
        raw = part.read_bytes()
        copy.write_bytes(mutated(raw, raw, inner, rng) if part.name == damaged else raw)
    return made


# ---------------------------------------------------------------- reading them


def read(path: Path) -> None:
    """Open, describe with statistics and load all of a model, or an array."""
    if path.suffix == ".npy":
        read_npy(path)
    else:
        read_everything(path)


def _late(*_: object) -> None:
    raise TimeoutError(f"longer than {SECONDS} s")


def attempt(path: Path) -> Tally:
    """Read one file; time and memory are measured, where the system tells."""
    size = sum(p.stat().st_size for p in path.iterdir()) if path.is_dir() else path.stat().st_size
    tally, start = Tally(mutants=1), time.perf_counter()
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak from here on
    signal.signal(signal.SIGALRM, _late)
    signal.alarm(SECONDS)
    try:
        read(path)
        tally.opened = 1
    except OicError as error:
        tally.refused = 1
        if str(path) not in str(error):
            tally.defects = (f"the refusal does not name the file: {error}",)
    except BaseException:  # whatever it is, it is what we look for
        tally.defects = (traceback.format_exc(limit=-4),)
    finally:
        signal.alarm(0)
    tally.slowest = time.perf_counter() - start
    tally.most = _peak() - 3 * size
    if tally.most > 256_000_000:
        tally.defects += (f"{tally.most} bytes of memory above 3 x the file",)
    return tally


def _peak() -> int:
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return 0
    return int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) * 1024


def work(samples: Path, form: str, seed: int, first: int, count: int) -> Tally:
    """Read so many mutants in this process."""
    total = Tally()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(first, first + count):
            path = make(samples, form, number, seed, Path(folder))
            one = attempt(path)
            one.defects = tuple(f"{form} {seed} {number}: {text}" for text in one.defects)
            total.add(one)
    return total


def apart(samples: Path, form: str, seed: int, first: int, count: int) -> Tally:
    """Read so many mutants in a process of their own, which may die."""
    command = [sys.executable, "-m", "model.campaign", "--worker", str(samples), str(first)]
    command += ["--mutants", str(count), "--seed", str(seed), form]
    limited: Callable[[], None] = lambda: resource.setrlimit(  # noqa: E731
        resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE)
    )
    modules = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    run = subprocess.run(
        command, capture_output=True, text=True, preexec_fn=limited, env=modules, check=False
    )
    if run.returncode:
        return Tally(defects=(f"{form} {seed} {first}…: the process died: {run.stderr[-400:]}",))
    return Tally(**json.loads(run.stdout))


def main() -> int:
    parser = argparse.ArgumentParser(description="Read damaged models and arrays within limits.")
    parser.add_argument("--mutants", type=int, default=1000, help="of each format")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--worker", nargs=2, metavar=("SAMPLES", "FIRST"), help=argparse.SUPPRESS)
    parser.add_argument("formats", nargs="*", metavar="FORMAT", help=", ".join(FORMATS))
    given = parser.parse_args()
    formats = given.formats or FORMATS
    if given.worker:
        samples, first = given.worker
        found = work(Path(samples), formats[0], given.seed, int(first), given.mutants)
        print(json.dumps(asdict(found)))
        return 0
    failed = False
    print(
        f"{'format':<12} {'mutants':>8} {'opened':>8} {'refused':>8} {'slowest':>9} {'memory':>9} {'defects':>8}"
    )
    with tempfile.TemporaryDirectory() as folder:
        write_all(Path(folder))
        write_arrays(Path(folder))
        for form in formats:
            total = Tally()
            for first in range(0, given.mutants, BATCH):
                count = min(BATCH, given.mutants - first)
                total.add(apart(Path(folder), form, given.seed, first, count))
            row = f"{form:<12} {total.mutants:>8} {total.opened:>8} {total.refused:>8}"
            print(
                f"{row} {total.slowest:>7.2f} s {total.most / 1e6:>6.0f} MB {len(total.defects):>8}",
                flush=True,
            )
            print("".join(f"  {text}\n" for text in total.defects[:20]), end="")
            failed = failed or bool(total.defects)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
