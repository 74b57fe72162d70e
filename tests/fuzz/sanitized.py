"""Generated C under AddressSanitizer and UBSan: a program of its own, driven through a pipe.

A library with sanitizers cannot be loaded into a Python that was started without them.  So the
generated sources are linked to a small C program that reads steps from its standard input and
writes outputs and state to its standard output.  Arena, state, inputs and outputs are allocated
exactly, each on its own, so that one byte too far is found; the arena is other noise before every
step.  What lies between buffers, variables and constants may neither be read nor written by a step,
and an input must be as it was.  Built without sanitizers, for what an optimizer makes of a wrong
promise, the same memory has margins that are looked at after every step.
"""

from __future__ import annotations

import struct
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Self

import numpy as np

from oic import dtypes
from oic.codegen.c_module import EntryMember, Signature
from oic.codegen.template_data import EntryData
from oic.diagnostics import StepError
from oic.driver import Program, interface_of
from oic.dtypes import Array
from oic.ir.module import Buffer, Module
from oic.kernels.targets import SEPARATE
from oic.library.emit import Files, LibrarySpec, emit
from oic.memory.saved import saved_form
from oic.reference.state_storage import logical, storages
from oic.session import inputs as session_inputs
from oic.session.executor import Executor
from oic.session.synthesizer import status_names
from oic.session.trace import Record
from oic.toolchain.compiler import find_compiler
from oic.toolchain.target import LANGUAGE, MEANING, target

SANITIZED = ("-O0", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
OPTIMIZED = ("-O3",)  # what is promised to the compiler, it takes at its word
# Without warnings: what UBSan puts into expressions draws some of its own.
FLAGS = (LANGUAGE, *MEANING)

_COMMON = """\
#ifndef COMMON_H
#define COMMON_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(_WIN32)
#include <malloc.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
#define ADDRESSES 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ADDRESSES 1
#endif
#endif

/* Bytes of some memory that a step must not touch. */
typedef struct {
    size_t at;
    size_t bytes;
} zone;

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

/* Other bytes every time, of which any may be anything. */
static inline void noise(void *to, size_t bytes)
{
    static uint32_t state = 2463534242u;
    for (size_t i = 0; i < bytes; ++i) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        ((uint8_t *)to)[i] = (uint8_t)(state >> 11);
    }
}

#ifdef ADDRESSES
#include <sanitizer/asan_interface.h>
enum { MARGIN = 0 }; /* the sanitizer has its own, and knows who touches them */
#else
enum { MARGIN = 64 };
#endif

static inline uint8_t mark(size_t i)
{
    return (uint8_t)(0xC3u ^ i * 37u);
}

static inline void harmed(const char *what, size_t at)
{
    fprintf(stderr, "ERROR: red zone of %s was written, byte %lu\\n", what, (unsigned long)at);
    abort();
}

/* Memory of exactly so many bytes, noise, with a margin on both sides. */
static inline void *filled(size_t bytes)
{
    const size_t whole_bytes = bytes + 2 * MARGIN + (bytes == 0);
    void *found = NULL;
#if defined(_WIN32)
    found = _aligned_malloc(whole_bytes, 64);
    if (found == NULL) {
        exit(3);
    }
#else
    if (posix_memalign(&found, 64, whole_bytes) != 0) {
        exit(3);
    }
#endif
    uint8_t *const whole = found;
    for (size_t i = 0; i < MARGIN; ++i) {
        whole[i] = mark(i);
        whole[MARGIN + bytes + i] = mark(i);
    }
    noise(whole + MARGIN, bytes);
    return whole + MARGIN;
}

/* The margins of what `filled` gave are unchanged. */
static inline void intact(const void *memory, size_t bytes, const char *what)
{
    const uint8_t *const whole = (const uint8_t *)memory - MARGIN;
    for (size_t i = 0; i < MARGIN; ++i) {
        if (whole[i] != mark(i)) {
            harmed(what, i);
        }
        if (whole[MARGIN + bytes + i] != mark(i)) {
            harmed(what, bytes + i);
        }
    }
}

static inline void drop(void *memory)
{
#if defined(_WIN32)
    _aligned_free((uint8_t *)memory - MARGIN);
#else
    free((uint8_t *)memory - MARGIN);
#endif
}

/* Zones are marked before a step, and seen to be untouched after it; with the sanitizer reads are, too. */
static inline void forbid(void *memory, const zone *zones)
{
    for (; zones->bytes > 0; ++zones) {
        for (size_t i = 0; i < zones->bytes; ++i) {
            ((uint8_t *)memory)[zones->at + i] = mark(i);
        }
#ifdef ADDRESSES
        __asan_poison_memory_region((uint8_t *)memory + zones->at, zones->bytes);
#endif
    }
}

static inline void allow(void *memory, const zone *zones, const char *what)
{
    for (; zones->bytes > 0; ++zones) {
#ifdef ADDRESSES
        __asan_unpoison_memory_region((uint8_t *)memory + zones->at, zones->bytes);
#endif
        for (size_t i = 0; i < zones->bytes; ++i) {
            if (((uint8_t *)memory)[zones->at + i] != mark(i)) {
                harmed(what, zones->at + i);
            }
        }
    }
}
#endif
"""


class Crash(Exception):
    """The program ended by itself; the message is what the sanitizer said."""


def build_sanitized(
    programs: Sequence[Program], folder: Path, flags: Sequence[str] = SANITIZED, made_for: str = "portable",
    numerics: str = SEPARATE,
) -> Path:  # fmt: skip
    """One program of all these graphs; its first argument chooses the graph.

    flags     for the C compiler beside those every program needs: sanitizers, or else `OPTIMIZED`
    made_for  name of the target
    numerics  class of sums of products
    Raises AssertionError with what the compiler said.
    """
    folder.mkdir(parents=True, exist_ok=True)
    machine = target(made_for, numerics)
    files = [emit(LibrarySpec(p.planned, machine), folder / f"p{i}") for i, p in enumerate(programs)]
    (folder / "common.h").write_text(_COMMON, encoding="utf-8")
    sources = []
    for number, (program, written) in enumerate(zip(programs, files, strict=True)):
        sources.append(folder / f"glue{number}.c")
        included = "".join(f'#include "p{number}/{path.name}"\n' for path in written.sources)  # headers are read once
        sources[-1].write_text(included + _glue(number, program.planned, written), encoding="utf-8")
    sources.append(folder / "main.c")
    sources[-1].write_text(_main(len(files)), encoding="utf-8")
    path = folder / "sanitized"
    call = [*find_compiler(), *FLAGS, *machine.flags, *flags, "-I", str(folder), "-o", str(path)]
    done = subprocess.run(
        [*call, *map(str, sources), "-lm", "-pthread"],
        capture_output=True, text=True, errors="replace", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[:6000]
    return path


def _main(count: int) -> str:
    calls = "".join(f"    if (argc > 1 && atoi(argv[1]) == {i}) {{\n        run{i}();\n    }}\n" for i in range(count))
    declared = "".join(f"void run{i}(void);\n" for i in range(count))
    return f"""\
#include <stdlib.h>
#if defined(_WIN32)
#include <fcntl.h>
#include <io.h>
#endif
{declared}int main(int argc, char **argv)
{{
#if defined(_WIN32) /* else a byte 10 becomes two */
    _setmode(0, _O_BINARY);
    _setmode(1, _O_BINARY);
#endif
{calls}    return 0;
}}
"""


def _glue(number: int, module: Module, files: Files) -> str:
    """The functions that serve one graph."""
    steps = "".join(_step(i, module, files, entry) for i, entry in enumerate(files.model.entries))
    return f"""\
#include "p{number}/{files.name}.h"
#include "common.h"
void run{number}(void);
static void *state, *arena, *weights;
static const zone state_zones[] = {{{_zones(_gaps(module.memory.space("state"), files.unit.state_bytes))}}};
static const zone weights_zones[] = {{{_zones(_gaps(module.memory.space("weights"), files.unit.weights_bytes))}}};
{steps}{_saved_states(files.name)}{_loop(number, files)}"""


def _saved_states(name: str) -> str:
    """Functions that save the state, and load one."""
    return f"""\
static void saved({name}_session *s)
{{
    const uint64_t bytes = {name}_save(s, NULL, 0);
    give(&bytes, sizeof bytes);
    void *const to = filled((size_t)bytes);
    if (bytes > 0 && {name}_save(s, to, (size_t)bytes) != bytes) {{
        harmed("the saved state", 0);
    }}
    intact(to, (size_t)bytes, "the saved state");
    give(to, (size_t)bytes);
    drop(to);
}}
static void loaded({name}_session *s)
{{
    uint64_t bytes;
    take(&bytes, sizeof bytes);
    void *const from = filled((size_t)bytes);
    take(from, (size_t)bytes);
    const int32_t status = (int32_t){name}_load(s, from, (size_t)bytes);
    give(&status, sizeof status);
    drop(from);
}}
"""


def _loop(number: int, files: Files) -> str:
    """The function that makes a session, and does what it is told until it is told no more."""
    unit, name = files.unit, files.name
    entries = "".join(f"        case {i}: step{i}(&s); break;\n" for i in range(len(files.model.entries)))
    return f"""\
void run{number}(void)
{{
    {name}_session s;
    state = filled({unit.state_bytes});
    arena = filled({unit.arena_bytes});
    weights = filled({unit.weights_bytes});
{f"    memset(state, 0, {unit.state_bytes});" if files.model.lines["init"] else ""}
    take(weights, {unit.weights_bytes});
    int32_t status = (int32_t){name}_init(&s, &(const {name}_memory){{
        state, {unit.state_bytes}, arena, {unit.arena_bytes}, weights, {unit.weights_bytes}}});
    give(&status, sizeof status);
    fflush(stdout);
    for (;;) {{
        int32_t what;
        take(&what, sizeof what);
        noise(arena, {unit.arena_bytes});
        switch (what) {{
{entries}        case -1: give(state, {unit.state_bytes}); break;
        case -2: {name}_reset(&s); break;
        case -3: saved(&s); break;
        case -4: loaded(&s); break;
{_truncated(files)}        default: exit(0);
        }}
        intact(state, {unit.state_bytes}, "the state");
        intact(arena, {unit.arena_bytes}, "the arena");
        intact(weights, {unit.weights_bytes}, "the weights");
        fflush(stdout);
    }}
}}
"""


def _truncated(files: Files) -> str:
    """Positions taken back, of a graph that can."""
    if not files.model.truncated:
        return ""
    return f"""\
        case -5: {{
            int64_t n;
            take(&n, sizeof n);
            const int32_t done = (int32_t){files.name}_truncate(&s, n);
            give(&done, sizeof done);
            break;
        }}
"""


def _zones(gaps: Sequence[tuple[int, int]]) -> str:
    """Stretches of bytes as C, with an empty one at the end."""
    return ", ".join(f"{{{at}, {nbytes}}}" for at, nbytes in [*gaps, (0, 0)])


def _gaps(held: Iterable[Buffer], end: int) -> list[tuple[int, int]]:
    """(offset, bytes) of all that lies outside the buffers held."""
    found, reached = [], 0
    for at, nbytes in sorted((b.offset, b.nbytes) for b in held):
        if at > reached:
            found.append((reached, at - reached))
        reached = max(reached, at + nbytes)
    return [*found, (reached, end - reached)] if end > reached else found


def _arena_gaps(module: Module, symbol: str, nbytes: int) -> list[tuple[int, int]]:
    """What no buffer of a function has: padding, red zones, what other functions need more."""
    return _gaps([b for b in module.memory.space("arena") if b.function == symbol], nbytes)


def _step(number: int, module: Module, files: Files, entry: EntryData) -> str:
    """A C function that reads inputs, makes one step and writes status and outputs."""
    face, name, unit = entry.face, files.name, files.unit
    zones = _zones(_arena_gaps(module, face.symbol, unit.arena_bytes))
    lines = [f"static const zone arena_zones[] = {{{zones}}};",
             f"{entry.names.inputs} in = {{0}};", f"{entry.names.outputs} out = {{0}};", "int64_t n;"]  # fmt: skip
    for _, member in face.extents:
        lines += ["take(&n, sizeof n);", f"in.{member} = (ptrdiff_t)n;"]
    for i, given in enumerate(face.inputs):
        lines += ["take(&n, sizeof n);", f"const size_t n{i} = (size_t)n;", f"void *const in{i} = filled(n{i});",
                  f"take(in{i}, n{i});", f"void *const kept{i} = filled(n{i});", f"memcpy(kept{i}, in{i}, n{i});",
                  f"in.{given.member} = in{i};"]  # fmt: skip
    for i, o in enumerate(face.outputs):
        lines += [f"void *const out{i} = filled({o.type.nbytes});", f"out.{o.member} = out{i};"]
    lines += ["forbid(state, state_zones);", "forbid(arena, arena_zones);", "forbid(weights, weights_zones);",
              f"int32_t status = (int32_t){face.function}(s, &in, &out);",
              'allow(state, state_zones, "a variable");', 'allow(arena, arena_zones, "a buffer");',
              'allow(weights, weights_zones, "a constant");', "give(&status, sizeof status);",
              "give(&s->refusal.spoiled, sizeof s->refusal.spoiled);"]  # fmt: skip
    for i, o in enumerate(face.outputs):
        for axis in range(o.type.rank if o.sizes else 0):
            lines += [f"n = (int64_t)out.{o.sizes}[{axis}];", "give(&n, sizeof n);"]
        lines += [f'intact(out{i}, {o.type.nbytes}, "an output");', f"give(out{i}, {o.type.nbytes});", f"drop(out{i});"]
    for i in range(len(face.inputs)):
        lines += [f'intact(in{i}, n{i}, "an input");',
                  f"if (memcmp(in{i}, kept{i}, n{i}) != 0) {{", '    harmed("an input itself", 0);', "}",
                  f"drop(in{i});", f"drop(kept{i});"]  # fmt: skip
    used = "".join(f"    {line}\n" for line in [*lines, "(void)in;", "(void)out;", "(void)n;"])
    return f"static void step{number}({name}_session *s)\n{{\n{used}}}\n"


class SanitizedExecutor(Executor):
    """A session in the program that `build_sanitized` made.

    refused   steps by status, and whether they left the state changed; of all sessions of the graph
    """

    _spoiled = False

    def __init__(self, program: Program, path: Path, number: int, made_for: str = "portable") -> None:
        super().__init__(interface_of(program))
        self.program = program
        self.refused: Counter[tuple[str, bool]] = Counter()
        self.path, self.number, self.made_for = path, number, made_for
        self.files = emit(LibrarySpec(program.planned, target(made_for)), path.parent / f"p{number}")
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
        sizes = _extents(face, inputs)
        for extent, _ in face.extents:
            self._send(struct.pack("<q", sizes[extent.name]))
        for given in face.inputs:
            sent = _stored(given, inputs[given.name])
            self._send(struct.pack("<q", len(sent)) + sent)
        self._flush()
        status, self._spoiled = self._int32(), self._int32() != 0
        found = {}
        for o in face.outputs:
            shape = o.type.maximum
            if o.sizes:
                shape = tuple(struct.unpack("<q", self._read(8))[0] for _ in range(o.type.rank))
            data = np.frombuffer(self._read(o.type.nbytes), np.uint8)
            if not status:
                found[o.name] = _array(data, o.type.dtype, shape)
        if status:
            self.refused[status_names()[status], self._spoiled] += 1
            raise StepError(status_names()[status], "the step was refused")
        return found

    def _fetch_state(self, name: str, within: tuple[slice, ...] = ()) -> Array:
        self._send(struct.pack("<i", -1))
        self._flush()
        memory = np.frombuffer(self._read(self.files.unit.state_bytes), np.uint8)
        return logical(name, saved_form(self.program.planned), storages(self.program.planned, memory))[within]

    def _reset(self) -> None:
        self._spoiled = False
        self._send(struct.pack("<i", -2))

    def _save(self) -> bytes:
        self._send(struct.pack("<i", -3))
        self._flush()
        saved = self._read(int(struct.unpack("<Q", self._read(8))[0]))
        if not saved:
            raise StepError("OIC_ERR_STATE", "a refused step left state changed; reset or load")
        return saved

    def _load(self, saved: bytes) -> None:
        self._send(struct.pack("<iQ", -4, len(saved)) + saved)
        self._flush()
        status = self._int32()
        if status:
            raise StepError(status_names()[status], "the saved state was refused")
        self._spoiled = False

    def _truncate(self, n: int) -> None:
        self._send(struct.pack("<iq", -5, n))
        self._flush()
        status = self._int32()
        if status:
            raise StepError(status_names()[status], "so many positions were not taken back")

    def another(self) -> Self:
        """A new session of the same graph."""
        other = type(self)(self.program, self.path, self.number, self.made_for)
        other.refused = self.refused
        return other

    def _fork(self) -> Self:
        other = self.another()
        other._load(self._save())
        return other

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


def _extents(face: Signature, inputs: dict[str, Array]) -> dict[str, int]:
    """The extents that inputs have, by name."""
    sizes: dict[str, int] = {}
    for given in face.inputs:
        session_inputs.bind_sizes(given.name, given.value.tensor, inputs[given.name].shape, sizes)
    return sizes


def _stored(given: EntryMember, array: Array) -> bytes:
    return dtypes.pack(array, given.value.dtype).tobytes()


def _array(data: Array, dtype: dtypes.DType, shape: tuple[int, ...]) -> Array:
    count = int(np.prod(shape, dtype=np.int64))
    return dtypes.unpack(data[: dtype.nbytes(count)], dtype, count).reshape(shape).copy()
