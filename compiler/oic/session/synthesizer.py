"""A graph as a compiled library: the same sessions as those of the interpreter, at the speed of C."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path
from threading import RLock
from typing import Any, NoReturn, Self

import numpy as np
from numpy import empty, ndarray

from oic import arguments, dtypes
from oic.codegen.c_module import EntryMember, Signature
from oic.codegen.names import name_in_private
from oic.diagnostics import StepError, fail
from oic.dtypes import Array
from oic.ir import dims
from oic.ir.core import Op
from oic.ir.module import Module
from oic.library.build import Library, build
from oic.library.cache import Cache
from oic.library.emit import Files, LibrarySpec, emit
from oic.memory.saved import Form, saved_form
from oic.operators.evaluate import bind_sizes
from oic.operators.fused import around
from oic.operators.refusal import impossible, refusal, refused_by
from oic.reference.saved import read
from oic.reference.state_storage import StateStorage, logical, storages, zeros
from oic.resources import runtime_dir
from oic.session.executor import Executor
from oic.session.interface import Interface
from oic.session.trace import Record, records
from oic.toolchain.folders import temporary_folder

SMALL = 4096  # bytes of an output that cost less to copy than its address to find
ROOM = 1 << 30  # bytes of a saved state that are asked for before it is known how many it has
MOST_THREADS = 64  # of one pool: OIC_POOL_MOST
TURN = 1024  # steps whose outputs are in one array
OF_SESSION = {  # what statuses mean that are about no value
    "OIC_ERR_STATE": "a refused step left state changed; reset or load",
    "OIC_ERR_WEIGHTS": "the weights are not those the library was built with",
    "OIC_ERR_BUILD": "the library is of another build than the files it was to be made of",
    "OIC_ERR_MEMORY": "the system does not give the memory that the session needs",
}


class CompiledProgram:
    """A PLANNED module to be compiled; `build` makes the library that sessions run on."""

    def __init__(self, spec: LibrarySpec, interface: Interface) -> None:
        self.spec, self.interface = spec, interface
        self.library: Library | None = None
        self._lock = RLock()

    def __reduce__(self) -> NoReturn:
        """What `copy` and `pickle` ask for."""
        raise TypeError("a program cannot be copied or pickled: another process builds it again, from the cache")

    def emit(self, out_dir: str | Path) -> Files:
        """Write the C files; `.paths` lists them.  Raises OicError."""
        return emit(self.spec, arguments.path("out_dir", out_dir))

    def build(self, out_dir: str | Path | None = None) -> Self:
        """Write the C files, compile and load them; without a folder, in a temporary one.

        Raises OicError: see `library.build.build`.
        """
        with self._lock:
            spec = self.spec
            if out_dir is None:
                out_dir = temporary_folder(self)
                if spec.name is None:
                    spec = replace(spec, name=name_in_private(spec.module.name))
            self.library = build(spec, arguments.path("out_dir", out_dir), Cache.of_user())
        return self

    def make_executor(self, threads: int | None = None) -> "CompiledExecutor":
        """A session with a state of its own, at its start.  Builds the library first, if that is not done.

        threads   that its steps run on, up to those it is built for; None: all.  Results are the same for any number
        """
        built, threads = self.spec.threads, arguments.optional(arguments.integer, "threads", threads)
        if threads is not None and not 1 <= threads <= built:
            hint = f"give the Synthesizer threads={threads}" if built < threads <= MOST_THREADS else None
            raise fail("thread-count", f"the library is built for 1 to {built} threads, not {threads}", hint=hint)
        with self._lock:
            if self.library is None:
                self.build()
        assert self.library is not None
        return CompiledExecutor(self.interface, self.library, self, built if threads is None else threads)


class CompiledExecutor(Executor):
    """A session over a compiled library.

    Memory is the library's own: `<name>_open` maps weights, state and arena.

    threads   that a step runs on, the caller's included
    counted   of a profiling build what the last step counted, a row for each place of `library.files.unit.places`:
              nanoseconds, runs, bytes read, bytes written, operations
    """

    reads_in_place = True

    def __init__(self, interface: Interface, library: Library, owner: object = None, threads: int = 1) -> None:
        super().__init__(interface)
        self.library, self.threads, self._owner = library, threads, owner
        self._ffi, self._lib = library.ffi, library.lib
        self._session = self._ffi.new(f"{library.files.name}_session *")
        weights = library.shared.get("weights")  # a session without a state, which has them mapped
        unit = library.files.unit
        self._module, self._entry = unit.module, ""
        path, beside = library.weights_path or self._ffi.NULL, weights or self._ffi.NULL
        self._require(self._function("open_as")(self._session, path, threads, beside, library.fingerprint))
        if weights is None and library.weights is not None:
            weights = self._ffi.gc(self._ffi.new(f"{library.files.name}_session *"), self._function("close"))
            weights.weights, weights.mapped = self._session.weights, self._session.mapped
            self._session.mapped, library.shared["weights"] = self._ffi.NULL, weights
        self._weights = weights
        self._calls = {e.face.symbol: _Call(self, e.face) for e in library.files.model.entries}
        self._storages: dict[str, StateStorage] = {}  # once the state is looked at
        self.counted: Array | None = None
        if unit.places:
            memory = self._ffi.buffer(self._session.places, len(unit.places) * 40)
            self.counted = np.frombuffer(memory, np.int64).reshape(-1, 5)

    def _function(self, name: str) -> Any:
        """One of the library's functions on a session."""
        return getattr(self._lib, f"{self.library.files.name}_{name}")

    # -- what a session does

    def _run(self, entry: str, inputs: dict[str, Array]) -> dict[str, Array]:
        call = self._calls[entry]
        made = call.prepare(inputs)
        self._entry = entry
        if self.counted is not None:
            self.counted[:] = 0
        status = call.function(*call.given)
        call.kept = []
        self._require(status)
        return {slot.output.name: slot.result(array, call.outputs) for slot, array in made}

    def _step_again(self, entry: str, inputs: dict[str, Any]) -> dict[str, Array] | None:
        call = self._calls.get(entry) if isinstance(entry, str) else None
        if call is None or (same := call.same) is None or len(inputs) != len(same):
            return None
        try:
            for name, member, dtype, shape, room in same:
                value = inputs[name]
                if type(value) is not ndarray or value.dtype != dtype or value.shape != shape:
                    return None
                if room is not None:
                    room[...] = value
                    continue
                if not ((flags := value.flags).c_contiguous and flags.aligned):
                    return None
                setattr(call.inputs, member, call.pointer(value))
        except KeyError:
            return None
        self._outputs = {}  # what a signal's handler raises may come before there are others
        made = call.made.copy()
        for name, member, kind, sizes in call.large:
            made[name] = array = empty(sizes, kind)
            setattr(call.outputs, member, call.pointer(array))
        self._entry = entry
        if self.counted is not None:
            self.counted[:] = 0
        if status := call.function(*call.given):
            raise self._refusal(status)
        for name, room in call.rooms:
            made[name] = room.copy()
        self._outputs = made
        return made.copy()

    def _go_on(self, entry: str, feed: Mapping[str, str], count: int, made: list[dict[str, Array]]) -> bool:
        call = self._calls[entry]
        if call.same is None or self.counted is not None:
            return False
        reads, gives = {name: room for name, *_, room in call.same if room is not None}, dict(call.rooms)
        if len(reads) < len(call.same) or call.large:
            return False
        moves = [(name, reads[name], gives[output]) for name, output in feed.items()]
        if any(to.shape != of.shape for _, to, of in moves):
            return False
        # A single integer, such as a token, goes over as a number, which is refused where it does not fit.
        single = [(name, to.reshape(-1).data, of.reshape(-1).data) for name, to, of in moves
                  if to.size == 1 and to.dtype.kind in "iu" and to.dtype.isnative and of.dtype.isnative]  # fmt: skip
        names = {name for name, _, _ in single}
        whole = [move for move in moves if move[0] not in names]
        for done in range(0, count, TURN):
            self._turn(call, single, whole, min(TURN, count - done), made)
        self._outputs = {name: array.copy() for name, array in call.rooms}
        return True

    def _turn(
        self, call: "_Call", single: list[tuple[str, memoryview, memoryview]], whole: list[tuple[str, Array, Array]],
        count: int, made: list[dict[str, Array]],
    ) -> None:  # fmt: skip
        """Take `count` steps, whose outputs share one array for each name.

        What is done between two steps is kept short: it displaces the model from the processor's caches.
        """
        function, given = call.function, call.given
        kept = [(name, np.empty((count, *room.shape), room.dtype), room) for name, room in call.rooms]
        for n in range(count):
            try:
                for name, one, of_one in single:  # noqa: B007  (said where it does not fit)
                    one[0] = of_one[0]
                for name, to, of in whole:
                    to[...] = of if to.dtype == of.dtype else self._fed(name, of)
            except (ValueError, StepError):
                self._outputs = {name: array.copy() for name, array in call.rooms}
                raise self._too_large(name) from None
            if status := function(*given):
                self._outputs = {}
                raise self._refusal(status)
            for _, all_, room in kept:
                all_[n] = room
        made += [{name: all_[n, ...] for name, all_, _ in kept} for n in range(count)]

    @cached_property
    def _form(self) -> Form:
        return saved_form(self._module)

    def _fetch_state(self, name: str, within: tuple[slice, ...] = ()) -> Array:
        if not self._storages:  # they lie where the library has them
            memory = self._ffi.buffer(self._session.state, self.library.files.unit.state_bytes)
            self._storages = storages(self._module, np.frombuffer(memory, np.uint8))
        return logical(name, self._form, self._storages, within)

    @property
    def _spoiled(self) -> bool:
        return bool(self._session.refusal.spoiled)

    def _reset(self) -> None:
        self._function("reset")(self._session)

    def _save(self) -> bytes:
        return self._image().tobytes()

    def _image(self) -> Array:
        """The bytes of a saved state."""
        save, most = self._function("save"), self._form.largest
        if most > ROOM:
            most = save(self._session, self._ffi.NULL, 0)
        data = np.empty(most, np.uint8)  # takes memory as it is written
        nbytes = save(self._session, self._ffi.from_buffer(data), most)
        if nbytes == 0:
            raise StepError("OIC_ERR_STATE", OF_SESSION["OIC_ERR_STATE"])
        return data[:nbytes]

    def _load(self, saved: bytes | Array) -> None:
        if self._function("load")(self._session, self._ffi.from_buffer(saved), len(saved)):
            read(self._form, bytes(saved))  # says what is wrong with it
            raise StepError("OIC_ERR_STATE", "the saved state cannot be loaded")

    def _truncate(self, n: int) -> None:
        self._require(self._function("truncate")(self._session, n))

    def _fork(self) -> Self:
        other = type(self)(self.interface, self.library, self._owner, self.threads)
        other._load(self._image())
        return other

    def _close(self) -> None:
        self._storages, self.counted = {}, None
        self._function("close")(self._session)
        self._weights = None

    def _forked(self) -> None:
        self._session.pool = self._ffi.NULL  # its threads are not in this process

    def __del__(self) -> None:
        if getattr(self, "is_open", False) and hasattr(self, "_storages"):
            self.close()

    def _trace(self) -> Iterator[Record]:
        """The statements of the entry that ran last, each once, with times where the build is for profiling."""
        if not self._entry:
            return iter(())
        ops = [op for op in self._module.function(self._entry).body.all_ops() if around(op) is op]
        return records(self.interface, ((op, math.nan) for op in ops) if self.counted is None else self._timed(ops))

    def _timed(self, ops: Sequence[Op]) -> Iterator[tuple[Op, float]]:
        """Ops that the last step came to with microseconds; those of a place are those of its first."""
        assert self.counted is not None
        where = {op: n for n, place in enumerate(self.library.files.unit.places) for op in place.ops}
        left = {n: float(ticks) / 1e3 for n, (ticks, runs, *_) in enumerate(self.counted.tolist()) if runs}
        for op in ops:
            place = where.get(op)
            if place is None or self.counted[place][1]:
                yield op, 0.0 if place is None else left.pop(place, 0.0)

    # -- refusals

    def _require(self, status: int) -> None:
        if status:
            raise self._refusal(status)

    def _refusal(self, status: int) -> StepError:
        """What the library notes of the call it refused, as an exception."""
        why = self._session.refusal
        name = status_names()[status]
        variable = None if why.variable == self._ffi.NULL else self._ffi.string(why.variable).decode() or None
        if name == "OIC_ERR_STATE" and variable is not None:
            return impossible(variable, int(why.value))
        if name in OF_SESSION:
            return StepError(name, OF_SESSION[name])
        if variable is None and why.line == 0:
            return StepError(name, name)
        value, bound = int(why.value), int(why.bound)
        op = refused_by(_at(self._module, self._entry, why.line, why.column), name, variable, value, bound)
        if op is not None:
            return refusal(op, value, bound)
        side = "above" if value > bound else "below"
        what = f"'{variable}': {value} is {side} {bound}" if value != bound else f"'{variable}': {value}"
        return StepError(name, what, variable=variable, index=value, bound=bound)


class _Call:
    """One entry's function with its structures, made once and filled for every step."""

    def __init__(self, executor: CompiledExecutor, face: Signature) -> None:
        library = executor.library
        self.ffi, self.face = library.ffi, face
        self.cast, self.void = self.ffi.cast, self.ffi.typeof("void *")
        entry = next(e for e in library.files.model.entries if e.face is face)
        self.function = getattr(library.lib, face.function)
        self.inputs = self.ffi.new(f"{entry.names.inputs} *")
        self.outputs = self.ffi.new(f"{entry.names.outputs} *")
        self.given = (executor._session, self.inputs, self.outputs)
        known = {extent for extent, _ in face.extents}
        self.slots = [_Slot(o, dims.extents(o.type.shape) <= known) for o in face.outputs]
        self.kept: list[Array] = []
        # What the inputs of the last step were, all of whose checks are of their types: their members, and where it
        # read them, None: where the caller has them.  None where there is more to check, or an output's size is known
        # only after a step.
        self.same: list[tuple[str, str, Any, tuple[int, ...], Array | None]] | None = None
        self.rooms: list[tuple[str, Array]] = []  # where it left small outputs
        self.large: list[tuple[str, str, Any, tuple[int, ...]]] = []  # outputs of which every step makes an array
        self.made: dict[str, Any] = {output.name: None for output in face.outputs}  # all of them, in order
        checked = any(i.value.dtype.packed for i in face.inputs)  # arrays hold numbers beyond their range
        self.repeats = not checked and all(s.whole for s in self.slots)

    def prepare(self, inputs: dict[str, Array]) -> "list[tuple[_Slot, Array]]":
        """Fill the structures; gives the outputs with the arrays that they are computed in."""
        repeats = self.repeats and all(inputs[i.name].size for i in self.face.inputs)
        self.same, self.kept = None, [_stored(inputs[i.name], i) for i in self.face.inputs]
        if repeats:  # small ones are written again: not where the caller's arrays are
            self.kept = [data.copy() if data.nbytes <= SMALL else data for data in self.kept]
        sizes: dict[str, int] = {}
        for input_, data in zip(self.face.inputs, self.kept):
            setattr(self.inputs, input_.member, self.pointer(data))
            bind_sizes(input_.name, input_.type, inputs[input_.name].shape, sizes)
        for extent, member in self.face.extents:
            setattr(self.inputs, member, sizes[extent.name])
        made = [(slot, slot.memory(sizes)) for slot in self.slots]
        for slot, array in made:
            setattr(self.outputs, slot.output.member, self.pointer(array))
        if repeats:
            rooms = [data if data.nbytes <= SMALL else None for data in self.kept]
            self.same = [(i.name, i.member, i.value.dtype.np, inputs[i.name].shape, room)
                         for i, room in zip(self.face.inputs, rooms)]  # fmt: skip
            self.rooms = [(s.output.name, array) for s, array in made if s.small]
            self.large = [(s.output.name, s.output.member, a.dtype, a.shape) for s, a in made if not s.small]
        return made

    def pointer(self, array: Array) -> Any:
        """Its address."""
        return self.cast(self.void, self.ffi.from_buffer(array))


class _Slot:
    """The memory of one output.

    If its size is known before the step, each step computes it in a new array, which the caller gets (of a small one
    a copy); otherwise in memory for the maximum, which is kept and copied from.
    """

    def __init__(self, output: EntryMember, known: bool) -> None:
        self.output, self.type = output, output.type
        self.whole = not output.type.dtype.packed and output.fits and known
        self.small = output.type.nbytes <= SMALL
        self.room: Array | None = None

    def memory(self, sizes: dict[str, int]) -> Array:
        """Where the next step computes it; never without an address."""
        if self.whole:
            shape = [max(0, dims.evaluate(d, sizes)) for d in self.type.shape]  # below 0: the step refuses it
            return np.empty(shape, self.type.dtype.np)
        if self.room is None:
            self.room = zeros(max(1, self.type.nbytes))
        return self.room

    def result(self, array: Array, outputs: Any) -> Array:
        """What the step computed, in an array of the caller's own."""
        if self.whole:
            return array.copy() if self.small else array
        dtype = self.type.dtype
        shape = tuple(getattr(outputs, self.output.sizes)) if self.output.sizes else self.type.maximum
        count = math.prod(shape)
        if dtype.packed:
            return dtypes.unpack(array[: dtype.nbytes(count)], dtype, count).reshape(shape)
        return array[: dtype.nbytes(count)].view(dtype.np).reshape(shape).copy()


@cache
def status_names() -> list[str]:
    """The names of `oic_status` by number, from the header that defines them."""
    text = (runtime_dir() / "status.h").read_text(encoding="utf-8")
    inside = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL).partition("{")[2].partition("}")[0]
    return re.findall(r"OIC_\w+", inside)


def _stored(array: Array, input_: EntryMember) -> Array:
    """An input's elements in stored form; at least one byte, so that there is an address."""
    dtype = input_.value.dtype
    data = dtypes.pack(array, dtype) if dtype.packed else np.asarray(array, order="C")
    return data if data.size else np.zeros(8, np.uint8)


def _at(module: Module, entry: str, line: int, column: int) -> list[Op]:
    """The ops of a place of the source; without a column, those of the line."""
    if not entry or not line:
        return []
    ops = (op for op in module.function(entry).body.all_ops() if op.span and op.span.line == line)
    return [op for op in ops if op.span and column in (0, op.span.column)]
