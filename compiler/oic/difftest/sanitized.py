"""Generated C under AddressSanitizer and UBSan: a program of its own, driven through a pipe.

A library with sanitizers cannot be loaded into a Python that was started without them.  So the
generated sources are linked to a small C program that reads steps from its standard input and
writes outputs and state to its standard output.  Arena, state, inputs and outputs are allocated
exactly, each on its own, so that one byte too far is found; the arena is noise before every step.
"""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from oic import dtypes
from oic.backend.build import find_compiler
from oic.backend.emit import Files, emit
from oic.backend.target import target
from oic.backend.unit import Input, Interface
from oic.diagnostics import StepError
from oic.driver import Program, interface_of
from oic.dtypes import Array
from oic.memory.layout import state_layout
from oic.reference.boxes import Storage
from oic.reference.fetch import logical
from oic.session import inputs as session_inputs
from oic.session.executor import Executor, Record
from oic.session.synthesizer import status_names

SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
# Without warnings: what UBSan puts into expressions draws some of its own.
FLAGS = ("-std=c99", "-O1", "-g1", "-ffp-contract=off", "-fno-strict-aliasing")

_COMMON = """\
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void take(void *to, size_t bytes)
{
    if (bytes > 0 && fread(to, 1, bytes, stdin) != bytes) {
        exit(0);
    }
}

static inline void give(const void *from, size_t bytes)
{
    if (bytes > 0 && fwrite(from, 1, bytes, stdout) != bytes) {
        exit(3);
    }
}

static inline void *filled(size_t bytes, int with)
{
    void *const found = malloc(bytes > 0 ? bytes : 1);
    if (found == NULL) {
        exit(3);
    }
    memset(found, with, bytes);
    return found;
}
"""


class Crash(Exception):
    """The program ended by itself; the message is what the sanitizer said."""


def build_sanitized(programs: Sequence[Program], folder: Path) -> Path:
    """One program of all these graphs, with sanitizers; its first argument chooses the graph."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [emit(p.planned, target("portable"), folder / f"p{i}") for i, p in enumerate(programs)]
    (folder / "common.h").write_text(_COMMON, encoding="utf-8")
    sources = [path for f in files for path in f.sources]
    for number, written in enumerate(files):
        sources.append(folder / f"glue{number}.c")
        sources[-1].write_text(_glue(number, written), encoding="utf-8")
    sources.append(folder / "main.c")
    sources[-1].write_text(_main(len(files)), encoding="utf-8")
    path = folder / "sanitized"
    call = [*find_compiler(), *FLAGS, *SANITIZERS, "-I", str(folder), "-o", str(path)]
    done = subprocess.run(
        [*call, *map(str, sources), "-lm"], capture_output=True, text=True, errors="replace", check=False
    )
    assert done.returncode == 0, done.stderr[:6000]
    return path


def _main(count: int) -> str:
    calls = "".join(f"    if (argc > 1 && atoi(argv[1]) == {i}) {{\n        run{i}();\n    }}\n" for i in range(count))
    declared = "".join(f"void run{i}(void);\n" for i in range(count))
    return f"#include <stdlib.h>\n{declared}int main(int argc, char **argv)\n{{\n{calls}    return 0;\n}}\n"


def _glue(number: int, files: Files) -> str:
    """The loop that serves one graph."""
    unit, name = files.unit, files.name
    entries = "".join(
        f"        case {i}: step{i}(&s, arena); break;\n" for i in range(len(files.model.entries))
    )
    steps = "".join(_step(i, files, entry) for i, entry in enumerate(files.model.entries))
    weights = max(1, unit.weights_bytes)
    return f"""\
#include "p{number}/{name}.h"
#include "common.h"
void run{number}(void);
{steps}
void run{number}(void)
{{
    {name} s;
    void *const state = filled({unit.state_bytes}, 0xA5);
    void *const arena = filled({unit.arena_bytes}, 0xA5);
    void *const weights = filled({weights}, 0xA5);
    take(weights, {unit.weights_bytes if unit.weights else 0});
    int32_t status = (int32_t){name}_init(&s, state, arena, weights, {unit.weights_bytes});
    give(&status, sizeof status);
    fflush(stdout);
    for (;;) {{
        int32_t what;
        take(&what, sizeof what);
        memset(arena, 0xA5, {unit.arena_bytes});
        switch (what) {{
{entries}        case -1: give(state, {unit.state_bytes}); break;
        case -2: {name}_reset(&s); break;
        default: exit(0);
        }}
        fflush(stdout);
    }}
}}
"""


def _step(number: int, files: Files, entry: Any) -> str:
    """A C function that reads inputs, makes one step and writes status and outputs."""
    face: Interface = entry.face
    name = files.name
    lines = [f"{entry.inputs_type} in = {{0}};", f"{entry.outputs_type} out = {{0}};", "int64_t n;"]
    for _, member in face.extents:
        lines += ["take(&n, sizeof n);", f"in.{member} = (ptrdiff_t)n;"]
    for i, given in enumerate(face.inputs):
        lines += ["take(&n, sizeof n);", f"void *const in{i} = filled((size_t)n, 0);",
                  f"take(in{i}, (size_t)n);", f"in.{given.member} = in{i};"]  # fmt: skip
    for i, o in enumerate(face.outputs):
        lines += [f"void *const out{i} = filled({o.type.nbytes}, 0x5A);", f"out.{o.member} = out{i};"]
    lines += [f"int32_t status = (int32_t){face.function}(s, &in, &out);", "give(&status, sizeof status);",
              "give(&s->refusal.spoiled, sizeof s->refusal.spoiled);"]  # fmt: skip
    for i, o in enumerate(face.outputs):
        for axis in range(o.type.rank if o.sizes else 0):
            lines += [f"n = (int64_t)out.{o.sizes}[{axis}];", "give(&n, sizeof n);"]
        lines.append(f"give(out{i}, {o.type.nbytes});")
    lines += [f"free(in{i});" for i in range(len(face.inputs))]
    lines += [f"free(out{i});" for i in range(len(face.outputs))]
    used = "".join(f"    {line}\n" for line in [*lines, "(void)arena;", "(void)in;", "(void)out;", "(void)n;"])
    return f"static void step{number}({name} *s, const void *arena)\n{{\n{used}}}\n"


class SanitizedExecutor(Executor):
    """A session in the program that `build_sanitized` made."""

    def __init__(self, program: Program, path: Path, number: int) -> None:
        super().__init__(interface_of(program))
        self.program, self.spoiled = program, False
        self.path, self.number = path, number
        self.files = emit(program.planned, target("portable"), path.parent / f"p{number}")
        self.process = subprocess.Popen(
            [str(path), str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        weights = self.files.weights
        if weights is not None:
            self._send(weights.read_bytes()[: self.files.unit.weights_bytes])
        self._flush()
        status = self._int32()
        assert status == 0, f"init answers {status_names()[status]}"

    def _run(self, entry: str, inputs: dict[str, Array]) -> dict[str, Array]:
        number, face = next(
            (i, e.face) for i, e in enumerate(self.files.model.entries) if e.face.symbol == entry
        )
        self._send(struct.pack("<i", number))
        sizes = {e.name: n for e, n in _extents(face, inputs).items()}
        for extent, _ in face.extents:
            self._send(struct.pack("<q", sizes[extent.name]))
        for given in face.inputs:
            sent = _stored(given, inputs[given.name])
            self._send(struct.pack("<q", len(sent)) + sent)
        self._flush()
        status, self.spoiled = self._int32(), self._int32() != 0
        found = {}
        for o in face.outputs:
            shape = o.type.maximum
            if o.sizes:
                shape = tuple(struct.unpack("<q", self._read(8))[0] for _ in range(o.type.rank))
            data = np.frombuffer(self._read(o.type.nbytes), np.uint8)
            if not status:
                found[o.name] = _array(data, o.type.dtype, shape)
        if status:
            raise StepError(status_names()[status], "the step was refused")
        return found

    def _fetch_state(self, name: str) -> Array:
        self._send(struct.pack("<i", -1))
        self._flush()
        memory = np.frombuffer(self._read(self.files.unit.state_bytes), np.uint8)
        storages = {}
        by_symbol = {op.symbol: op for op in self.program.planned.states()}
        for symbol, offset, nbytes in state_layout(self.program.planned):
            op = by_symbol[symbol]
            storage = Storage(symbol, op.type, 0, memory[offset : offset + nbytes])
            storage.start = dtypes.store(np.asarray(0 if op.init is None else op.init), op.type.dtype)
            storages[symbol] = storage
        return logical(name, storages)

    def _reset(self) -> None:
        self.spoiled = False
        self._send(struct.pack("<i", -2))

    def _save(self) -> bytes:
        """Nothing: a session here is not saved; but a spoiled one refuses to be."""
        if self.spoiled:
            raise StepError("OIC_ERR_STATE", "a refused step left state changed; reset or load")
        return b""

    def _load(self, saved: bytes) -> None:
        raise NotImplementedError

    def _fork(self) -> Self:
        raise NotImplementedError

    def _trace(self) -> Iterator[Record]:
        return iter(())

    def _close(self) -> None:
        self.process.kill()
        self.process.communicate()

    # -- the pipe

    def _send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(data)
        except BrokenPipeError:
            self._crashed()

    def _flush(self) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.flush()
        except BrokenPipeError:
            self._crashed()

    def _read(self, nbytes: int) -> bytes:
        assert self.process.stdout is not None
        data = self.process.stdout.read(nbytes)
        if len(data) < nbytes:
            self._crashed()
        return data

    def _int32(self) -> int:
        return int(struct.unpack("<i", self._read(4))[0])

    def _crashed(self) -> None:
        assert self.process.stderr is not None
        said = self.process.stderr.read().decode(errors="replace")
        raise Crash(said[:4000])


def _extents(face: Interface, inputs: dict[str, Array]) -> dict[Any, int]:
    sizes: dict[str, int] = {}
    for given in face.inputs:
        session_inputs.bind_sizes(given.name, given.value.tensor, inputs[given.name].shape, sizes)
    return {extent: sizes[extent.name] for extent, _ in face.extents}


def _stored(given: Input, array: Array) -> bytes:
    return dtypes.pack(array, given.value.dtype).tobytes()


def _array(data: Array, dtype: dtypes.DType, shape: tuple[int, ...]) -> Array:
    count = int(np.prod(shape, dtype=np.int64))
    return dtypes.unpack(data[: dtype.nbytes(count)], dtype, count).reshape(shape).copy()
