"""Compiled programs behave as the interpreter does, and refuse what it refuses."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codegen import programs
from codegen.kinds import sealed
from oic.check.source import parse
from oic.diagnostics import StepError
from oic.driver import Settings, compile_graph
from oic.ir.state import COUNTS
from oic.ir.types import TensorType
from oic.library.emit import LibrarySpec, emit
from oic.reference.interpret import Machine
from oic.session.synthesizer import CompiledExecutor
from oic.toolchain.target import target

Make = Callable[[str], CompiledExecutor]


@pytest.mark.parametrize("name", programs.PROGRAMS)
@pytest.mark.parametrize("seed", range(3))
def test_c_agrees_with_reference(name: str, seed: int, make: Make) -> None:
    """Eight steps; outputs and every persistent value compared after each, refusals too."""
    compiled = make(name)
    module = programs.planned(name)
    reference = Machine(module)
    rng = np.random.default_rng(seed)
    for step in range(8):
        symbol = "forget" if name == "table" and step == 5 else "entry"
        inputs = programs.random_inputs(module, symbol, rng, step)
        try:
            expected = reference.step(symbol, inputs)
        except StepError as refusal:
            with pytest.raises(StepError) as found:
                compiled.step(symbol, **inputs)
            assert found.value.status == refusal.status
            compiled.reset()
            reference.reset()
            continue
        actual = compiled.step(symbol, **inputs)
        assert actual.keys() == expected.keys()
        for key, value in expected.items():
            np.testing.assert_array_equal(actual[key], value, strict=True, err_msg=f"{key} in step {step}")
        for op in module.states():
            if op.symbol == COUNTS:  # which C alone keeps: memory of the interpreter's is not changed from outside
                continue
            found_state = compiled._fetch_state(op.symbol)
            np.testing.assert_array_equal(found_state, reference.fetch_state(op.symbol), err_msg=op.symbol)


def test_counts_that_grow_again_and_again_have_names(tmp_path: Path) -> None:
    """A count raised by every write is a variable each time, not a call in a call for all that came before."""
    writes = "cache.write x >> R[k]; cache.read R[-1] >> y; cache.increment k;" * 40
    text = f"""dynamic {{ x: f32; }} volatile {{ y: f32; }} persistent {{ R(t): f32 @table @fixed(t=4) @ring(t); k: i32; }}
block entry {{ {writes} return; }}"""
    module = compile_graph(parse(text, "ring.oi"), None, Settings()).planned
    emit(LibrarySpec(module, target("portable")), tmp_path)
    made = "".join(path.read_text(encoding="utf-8") for path in tmp_path.glob("*.c"))
    assert "oic_index_max(R_t" in made
    assert "oic_index_max(oic_index_max(" not in made


def test_outputs_belong_to_the_caller(make: Make) -> None:
    session = make("counter")
    first = session.step(x=np.ones(3, np.float32), n=0)["y"]
    session.step(x=np.ones(3, np.float32), n=0)
    np.testing.assert_array_equal(first, [1, 1, 1])


def test_save_load_fork_and_reset(make: Make) -> None:
    session = make("table")
    x = np.arange(4, dtype=np.float32).reshape(2, 2)
    session.step(x=x)
    saved = session.save()
    session.step(x=x)
    fork = session.fork()
    later = session.step(x=x)["all"]
    session.load(saved)
    assert session.save() == saved
    assert int(session.fetch("pos")) == 2
    np.testing.assert_array_equal(fork.step(x=x)["all"], later)
    fork.close()
    session.reset()
    assert int(session.fetch("pos")) == 0
    assert not session.fetch("K").any()


def test_a_growing_table_saves_what_it_holds(make: Make) -> None:
    """Gigabytes are reserved; a saved state has the entries up to the count."""
    session = make("growing")
    for i in (0, 3, 1000):
        session.step(x=np.array([i, -i], np.float32), i=i)
    saved = session.save()
    assert len(saved) < 1001 * 16 + 200
    before = session.fetch("A")
    session.step(x=np.zeros(2, np.float32), i=5000)
    session.load(saved)
    assert session.save() == saved
    np.testing.assert_array_equal(session.fetch("A"), before)
    session.step(x=np.ones(2, np.float32), i=1001)
    assert not session.fetch("A")[4:1000].any()
    session.reset()
    assert session.fetch("A").shape == (0, 2)


@pytest.mark.parametrize("name", ["table", "growing", "counter"])
def test_a_damaged_state_is_refused(name: str, make: Make) -> None:
    session = make(name)
    module = programs.planned(name)
    rng = np.random.default_rng(1)
    session.step(**programs.random_inputs(module, "entry", rng, 3))
    good = session.save()
    other = make("elementwise").save()
    forged = [b"", good[:-1], good + b"\0", good[:40], other, b"X" + good[1:]]
    for at in (8, 12, 16, 24, 32, len(good) - 1):
        forged.append(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
    session.step(**programs.random_inputs(module, "entry", rng, 4))
    present = session.save()
    for bad in forged:
        with pytest.raises(StepError, match="OIC_ERR_STATE"):
            session.load(bad)
        assert session.save() == present
    session.load(good)
    assert session.save() == good


def test_counts_beyond_the_capacity_are_refused(make: Make) -> None:
    """A forged state with a right checksum must not make the library read beyond its memory."""
    session = make("growing")
    session.step(x=np.ones(2, np.float32), i=2)
    good = session.save()
    assert sealed(good, good[32:]) == good
    for count in (-1, 1 << 62, 1 << 33, None):
        body = b"\0" * 8 if count is None else count.to_bytes(8, "little", signed=True) + good[40:]
        with pytest.raises(StepError, match="OIC_ERR_STATE"):
            session.load(sealed(good, body))
    assert session.save() == good


def test_a_refusal_says_what_was_refused(make: Make) -> None:
    session = make("table")
    x = np.zeros((3, 2), np.float32)
    for _ in range(2):
        session.step(x=x)
    before = session.save()
    with pytest.raises(StepError) as refused:
        session.step(x=x)
    error = refused.value
    assert error.status == "OIC_ERR_CACHE_FULL"
    assert (error.index, error.bound) == (9, 8)
    assert error.variable is not None and error.variable.startswith("K")
    assert error.span is not None and "K" in error.span.text
    late = bool(session.library.files.late_checks)
    if not late:
        assert session.save() == before


def test_after_a_late_refusal_steps_are_refused_until_reset_or_load(make: Make) -> None:
    session = make("late")
    session.step(ids=np.array([0], np.int32))
    saved = session.save()
    assert [v for _, v in session.library.files.late_checks]
    inputs = {"ids": np.array([3], np.int32)}  # 3 + 1 is outside w
    with pytest.raises(StepError, match="OIC_ERR_INDEX"):
        session.step(**inputs)
    with pytest.raises(StepError, match="OIC_ERR_STATE"):
        session.load(saved[:-1])
    for attempt in (lambda: session.step(ids=np.array([0], np.int32)), session.save):
        with pytest.raises(StepError, match="OIC_ERR_STATE"):
            attempt()
    session.load(saved)
    assert session.save() == saved
    np.testing.assert_array_equal(session.fetch("K"), [1, 0])
    inputs["ids"] -= 1  # 2 + 2 is
    with pytest.raises(StepError, match="OIC_ERR_INDEX"):
        session.step(**inputs)
    session.reset()
    np.testing.assert_array_equal(session.step(ids=np.array([0], np.int32))["y"], [-2.0])


MEMBERS = {"in": ("x", "a"), "out": ("y", "z", "m", "c")}


def caller(session: CompiledExecutor) -> tuple[Any, dict[str, Any], Any]:
    """The structures of a step of `elementwise`, by name, and a buffer that all their pointers go to, 256 bytes apart."""
    ffi = session.library.ffi
    buffer = ffi.new("uint64_t[]", 256)
    structs = {"in": ffi.new("elementwise_inputs *"), "out": ffi.new("elementwise_outputs *")}
    places = iter(range(0, 2048, 256))
    for name, members in MEMBERS.items():
        for member in members:
            setattr(structs[name], member, ffi.cast("void *", ffi.cast("char *", buffer) + next(places)))
    return buffer, structs, ffi


def test_pointers_that_are_misaligned_or_overlap_are_refused(make: Make) -> None:
    """Inputs may share memory; outputs share none, neither with state nor arena."""
    session = make("elementwise")
    lib, s = session.library.lib, session._session
    _buffer, structs, ffi = caller(session)
    structs["in"].N = 3
    places = {m: ffi.cast("void *", getattr(structs[n], m)) for n, members in MEMBERS.items() for m in members}

    def step(**changed: Any) -> tuple[int, str | None]:
        for name, members in MEMBERS.items():
            for member in members:
                setattr(structs[name], member, changed.get(member, places[member]))
        status = int(lib.elementwise_step(s, structs["in"], structs["out"]))
        return status, ffi.string(s.refusal.variable).decode() if status else None

    def beyond(pointer: Any, nbytes: int) -> Any:
        return ffi.cast("void *", ffi.cast("char *", pointer) + nbytes)

    assert step() == (0, None) == step(a=places["x"])
    for member in ("x", "a", "y", "z"):
        assert step(**{member: beyond(places[member], 1)}) == (4, member)
    face = next(e.face for e in session.library.files.model.entries if e.face.symbol == "entry")
    nbytes = {o.name: o.type.dtype.nbytes(math.prod(dims_of(o.type, 3))) for o in face.outputs}
    nbytes |= {i.name: i.value.dtype.nbytes(math.prod(dims_of(i.value.tensor, 3))) for i in face.inputs}
    assert step(y=beyond(places["z"], nbytes["z"])) == (0, None)
    for one, other in (("y", "x"), ("z", "a"), ("z", "y"), ("c", "m")):
        assert step(**{one: places[other]}) == (4, one)
        align = 2 if one == "z" else 4
        assert step(**{one: beyond(places[other], nbytes[other] - align)}) == (4, one)
        assert step(**{one: beyond(places[other], -nbytes[one] + align)}) == (4, one)
    for member in ("x", "y"):
        assert step(**{member: ffi.cast("void *", s.state)}) == (4, member)
        assert step(**{member: s.arena}) == (4, member)
    structs["in"].N = 0  # nothing is read, and outputs of N rows have no bytes
    assert step(y=places["x"]) == (0, None)


def dims_of(type_: TensorType, n: int) -> list[int]:
    """A shape where every extent is n."""
    return [d if isinstance(d, int) else n for d in type_.shape]


def test_null_pointers_are_refused(make: Make) -> None:
    session = make("elementwise")
    lib = session.library.lib
    _buffer, structs, ffi = caller(session)
    inputs, outputs = structs["in"], structs["out"]
    s, null = session._session, ffi.NULL
    assert lib.elementwise_step(s, inputs, outputs) == 0
    assert lib.elementwise_step(null, inputs, outputs) == 4
    assert lib.elementwise_step(s, null, outputs) == 4
    assert lib.elementwise_step(s, inputs, null) == 4
    for struct, members in ((inputs, ("x", "a")), (outputs, ("y", "z", "m", "c"))):
        for member in members:
            kept = getattr(struct, member)
            setattr(struct, member, null)
            assert lib.elementwise_step(s, inputs, outputs) == 4
            assert ffi.string(s.refusal.variable).decode() == member
            setattr(struct, member, kept)
    for size in (-1, 7):
        inputs.N = size
        assert lib.elementwise_step(s, inputs, outputs) == 1
        assert (s.refusal.value, s.refusal.bound) == (size, 0 if size < 0 else 6)
    lib.elementwise_reset(null)
    assert lib.elementwise_save(null, null, 0) == 0
    assert lib.elementwise_load(null, null, 0) != 0
    assert lib.elementwise_open_as(null, null, 1, null, 0) == 4
    lib.elementwise_close(null)


def test_a_session_beside_another_has_its_weights(tmp_path: Path) -> None:
    """They are mapped once, checked once, and given back by the session that mapped them."""
    session = programs.executor("elementwise", tmp_path)
    lib, ffi, build = session.library.lib, session.library.ffi, session.library.fingerprint
    path = session.library.weights_path
    first, second, third = (ffi.new("elementwise_session *") for _ in range(3))
    assert lib.elementwise_open_as(second, ffi.NULL, 1, third, build) == 4  # it is not started
    assert ffi.string(second.refusal.variable) == b"weights" and second.state == second.mapped == ffi.NULL
    assert lib.elementwise_open_as(first, path, 1, ffi.NULL, build) == 0
    assert lib.elementwise_open_as(second, ffi.NULL, 1, first, build) == 0
    assert first.mapped == first.weights == second.weights != ffi.NULL and second.mapped == ffi.NULL
    assert len({first.state, second.state}) == len({first.arena, second.arena}) == 2
    lib.elementwise_close(second)
    assert lib.elementwise_open_as(third, ffi.NULL, 1, first, build ^ 1) != 0 and third.mapped == ffi.NULL
    assert lib.elementwise_open_as(third, ffi.NULL, 1, first, build) == 0
    size = session.library.files.unit.weights_bytes
    assert bytes(ffi.buffer(third.weights, size)) == session.library.files.weights.read_bytes()
    for each in (third, first):
        lib.elementwise_close(each)
        assert each.weights == each.mapped == ffi.NULL
    session.close()


class Memory:
    """A session of `elementwise` that is not started, and memory for it."""

    def __init__(self, session: CompiledExecutor) -> None:
        self.files, self.lib, self.ffi = session.library.files, session.library.lib, session.library.ffi
        assert self.files.weights is not None
        unit, blob = self.files.unit, self.files.weights.read_bytes()
        self.session, self.build = self.ffi.new("elementwise_session *"), session.library.fingerprint
        self.kept = {"state": self.room(unit.state_bytes), "arena": self.room(unit.arena_bytes),
                     "weights": self.room(len(blob))}  # fmt: skip
        self.ffi.memmove(self.kept["weights"], blob, len(blob))
        self.sizes = {"state_bytes": unit.state_bytes, "arena_bytes": unit.arena_bytes, "weights_bytes": len(blob)}

    def room(self, nbytes: int) -> Any:
        return self.ffi.new("uint64_t[]", nbytes // 8 + 1)

    def init(self, **changed: Any) -> int:
        """The status of init with this instead of what is right."""
        memory = self.ffi.new("elementwise_memory *", {**self.kept, **self.sizes, **changed})
        return int(self.lib.elementwise_init_as(self.session, memory, self.build))

    def refused(self, status: int, variable: str, value: int = 0, bound: int = 0, **changed: Any) -> None:
        """Init refuses this and says why; the session has no state."""
        assert self.init(**changed) == status
        why = self.session.refusal
        named = self.ffi.string(why.variable).decode()
        assert (why.status, named, why.value, why.bound) == (status, variable, value, bound)
        assert self.session.state == self.ffi.NULL


def test_init_refuses_memory_that_is_missing_short_misaligned_or_shared(make: Make) -> None:
    memory = Memory(make("elementwise"))
    ffi, kept, sizes = memory.ffi, memory.kept, memory.sizes
    assert memory.init() == 0
    assert memory.lib.elementwise_init_as(ffi.NULL, ffi.NULL, 0) == 4
    assert memory.lib.elementwise_init_as(memory.session, ffi.NULL, memory.build) == 4
    assert ffi.string(memory.session.refusal.variable) == b"memory"
    for name in ("state", "arena", "weights"):
        memory.refused(4, name, **{name: ffi.NULL})
        memory.refused(4, name, **{name: ffi.cast("char *", kept[name]) + 4})
    for name in ("state", "arena"):
        needed = sizes[f"{name}_bytes"]
        for short in (0, needed - 1):
            memory.refused(8, name, short, needed, **{f"{name}_bytes": short})
        assert memory.init(**{f"{name}_bytes": needed + 1}) == 0
    memory.refused(6, "weights", weights_bytes=sizes["weights_bytes"] - 1)
    both = memory.room(sizes["state_bytes"] + sizes["arena_bytes"])
    end = ffi.cast("char *", both) + sizes["state_bytes"]
    assert memory.init(state=both, arena=end) == 0
    memory.refused(4, "arena", state=both, arena=end - 8)
    memory.refused(4, "arena", arena=both, state=ffi.cast("char *", both) + sizes["arena_bytes"] - 8)
    blob = ffi.cast("char *", kept["weights"])
    memory.refused(4, "state", state=blob + sizes["weights_bytes"] - 8)
    memory.refused(4, "arena", arena=blob + sizes["weights_bytes"] - 8)
    assert memory.init() == 0


def test_what_is_not_given_to_a_call_is_named(make: Make) -> None:
    """By s->refusal, too, which else would tell of an earlier call."""
    memory = Memory(make("elementwise"))
    lib, ffi, session = memory.lib, memory.ffi, memory.session
    given = (ffi.new("elementwise_inputs *"), ffi.new("elementwise_outputs *"))
    for s, name in ((ffi.NULL, ""), (session, "state")):  # it has none yet
        assert lib.elementwise_load(s, b"", 0) == lib.elementwise_step(ffi.NULL, *given) == 4
        assert not name or ffi.string(session.refusal.variable).decode() == name
    for arguments, name in (((ffi.NULL, given[1]), "in"), ((given[0], ffi.NULL), "out"), ((ffi.NULL, ffi.NULL), "in")):
        assert memory.init() == 0
        assert lib.elementwise_step(session, *arguments) == 4
        assert (session.refusal.status, ffi.string(session.refusal.variable).decode()) == (4, name)
    assert memory.init() == 0 and lib.elementwise_load(session, ffi.NULL, 0) == 4
    assert (session.refusal.status, ffi.string(session.refusal.variable)) == (4, b"from")
    assert lib.elementwise_load(session, session.state, 1) == 4  # which the state would be put over
    assert ffi.string(session.refusal.variable) == b"from"


def test_a_forged_blob_is_refused(make: Make) -> None:
    """By init, which is given memory, and by open, which is given a path."""
    memory = Memory(make("elementwise"))
    files, lib, ffi, fresh = memory.files, memory.lib, memory.ffi, memory.session
    assert files.weights is not None
    good = files.weights.read_bytes()
    assert len(good) % 64 == 0 and good[:8] == b"OICWGHT\0"
    forged = [b"", good[:64], good[:-1], b"X" + good[1:]]
    for at in (8, 12, 16, 24, 64, len(good) - 1):
        forged.append(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
    path = files.folder / "forged.weights"

    def init(blob: bytes) -> int:
        room = memory.room(len(blob))
        ffi.memmove(room, blob, len(blob))
        return memory.init(weights=room, weights_bytes=len(blob))

    assert init(good) == 0
    for blob in forged:
        assert init(blob) == 6
        assert fresh.state == ffi.NULL
        path.write_bytes(blob)
        assert lib.elementwise_open_as(fresh, str(path).encode(), 1, ffi.NULL, memory.build) == 6
        assert fresh.state == ffi.NULL
    assert lib.elementwise_open_as(fresh, b"/does/not/exist", 1, ffi.NULL, memory.build) == 6
