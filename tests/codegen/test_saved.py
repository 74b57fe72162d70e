"""Saved states of compiled libraries: only a whole one is loaded, and none is larger than what is live."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import oic
from codegen import kinds
from oic.driver import Settings, compile_graph
from oic.memory.saved import saved_form
from oic.toolchain.compiler import find_compiler
from oic.toolchain.target import WARNINGS
from paths import ROOT
from tests.fuzz.resident import resident_bytes
from tests.fuzz.sanitized import SANITIZED

Executors = Callable[[str], oic.Executor]
BACKENDS = ("graph", "planned", "c")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> oic.Synthesizer:
    """Every kind of state, two of the tables without a bound."""
    made = oic.Synthesizer(kinds.graph(), capacity=kinds.CAPACITY)
    return made.build(tmp_path_factory.mktemp("kinds"))


@pytest.fixture
def new(library: oic.Synthesizer) -> Iterator[Executors]:
    """Sessions of one graph by what executes it."""
    opened: list[oic.Executor] = []

    def make(kind: str) -> oic.Executor:
        made = library if kind == "c" else oic.Simulator(kinds.graph(), capacity=kinds.CAPACITY, stage=kind)
        opened.append(made.make_executor())
        return opened[-1]

    yield make
    for executor in opened:
        executor.close()


# ---------------------------------------------------------------- one form


def test_every_executor_saves_the_same_and_loads_what_others_saved(new: Executors) -> None:
    """Equal states are equal bytes after every step, and every backend goes on alike from them."""
    executors = [new(kind) for kind in BACKENDS]
    drawn = [np.random.default_rng(1) for _ in executors]
    refused = 0
    for number in range(200):
        given = [kinds.step(e, r, number) for e, r in zip(executors, drawn, strict=True)]
        assert given[0] == given[1] == given[2], number
        refused += given[0][:1] == [b"OIC_ERR_INDEX"]
        saved = [e.save() for e in executors]
        assert saved[0] == saved[1] == saved[2], number
        if number % 10 == 9:  # each goes on with what another saved; every other time after a reset
            for i, executor in enumerate(executors):
                if number % 20 == 9:
                    executor.reset()
                executor.load(saved[i - 1])
                assert executor.save() == saved[i]


@pytest.mark.parametrize("kind", BACKENDS)
def test_a_new_session_goes_on_from_a_saved_state(new: Executors, kind: str) -> None:
    """Also one whose own state reached further, of which nothing is left."""
    source, fresh, used = new("c"), new(kind), new(kind)
    rng, other = np.random.default_rng(5), np.random.default_rng(6)
    for number in range(40):
        kinds.step(source, rng, number)
        kinds.step(used, other, 3 * number)
    saved = source.save()
    seed = int(rng.integers(1 << 30))
    expected = [kinds.step(source, np.random.default_rng(seed + n), 40 + n) for n in range(16)]
    for session in (fresh, used):
        session.load(saved)
        assert session.save() == saved
        found = [kinds.step(session, np.random.default_rng(seed + n), 40 + n) for n in range(16)]
        assert found == expected
        assert session.save() == source.save()


def test_a_new_process_goes_on_from_a_saved_state(new: Executors, tmp_path: Path) -> None:
    session = new("c")
    rng = np.random.default_rng(9)
    for number in range(30):
        kinds.step(session, rng, number)
    (tmp_path / "state").write_bytes(session.save())
    program = """
import pathlib, sys, numpy as np, oic
from codegen import kinds
with oic.Simulator(kinds.graph(), capacity=kinds.CAPACITY).make_executor() as ex:
    ex.load(pathlib.Path(sys.argv[1]).read_bytes())
    rng = np.random.default_rng(10)
    found = [kinds.step(ex, rng, 30 + n) for n in range(16)]
    pathlib.Path(sys.argv[1]).write_bytes(repr(found).encode() + ex.save())
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "state")], check=True, env=environment)
    rng = np.random.default_rng(10)
    expected = [kinds.step(session, rng, 30 + n) for n in range(16)]
    assert (tmp_path / "state").read_bytes() == repr(expected).encode() + session.save()


def test_the_form_is_the_same_at_every_stage() -> None:
    """Also where folding finds that a reset is never reached: what it makes lowering keep is in the form."""
    blocks = "block never { cache.reset S[i]; return; } block ok { return; }\nblock words"
    branch = "assign off: bool; op fill(off, value=false) >> off; branch off never ok; cache.read G[1"
    text = kinds.TEXT.replace("block words", blocks).replace("cache.read G[1", branch)
    for source in (kinds.TEXT, text):
        program = compile_graph(oic.parse(source, name="kinds.oi"), None, Settings(capacity=kinds.CAPACITY))
        assert saved_form(program.module) == saved_form(program.planned)
    planned = program.planned
    assert "S.entry.touched" in {op.symbol for op in planned.states()}
    asked = {op.operands[0].op.symbol for op in planned.all_ops() if op.name == "state.reach"}
    assert "B.entry.touched" in asked and "S.entry.touched" not in asked


def test_save_from_c(library: oic.Synthesizer, new: Executors) -> None:
    """Its size without memory, nothing where there is too little, and any address."""
    session = new("c")
    for number in range(20):
        kinds.step(session, np.random.default_rng(number), number)
    lib, ffi, s = library.library.lib, library.library.ffi, session._session  # type: ignore[attr-defined]
    good = session.save()
    room = bytearray(b"\x5a" * (len(good) + 9))
    at = ffi.from_buffer(room)
    assert lib.kinds_save(s, ffi.NULL, 0) == lib.kinds_save(s, at, len(good) - 1) == len(good)
    assert set(room) == {0x5A}
    assert lib.kinds_save(s, at + 1, len(good)) == len(good)
    assert bytes(room[1:-8]) == good and room[0] == 0x5A and set(room[-8:]) == {0x5A}
    session.reset()
    assert lib.kinds_load(s, at + 1, len(good)) == 0
    assert session.save() == good


# ---------------------------------------------------------------- damage


@pytest.mark.parametrize("kind", BACKENDS)
def test_damage_is_refused_and_changes_nothing(new: Executors, kind: str) -> None:
    """Every bit of the head, a sample of the others, every length; `saved.c` has all bits in C."""
    session, twin = new(kind), new(kind)
    drawn = [np.random.default_rng(2), np.random.default_rng(2)]
    for number in range(30):
        for executor, rng in zip((session, twin), drawn, strict=True):
            kinds.step(executor, rng, number)
    good = session.save()
    for number in range(30, 34):
        for executor, rng in zip((session, twin), drawn, strict=True):
            kinds.step(executor, rng, number)
    present = session.save()
    bits = [*range(32 * 8), *range(32 * 8, len(good) * 8, 37)]
    for bit in bits:
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << bit % 8
        _refused(session, bytes(bad))
    for length in range(0, len(good), 1 if kind == "c" else 7):
        _refused(session, good[:length])
    _refused(session, good + b"\0")
    assert session.save() == present
    for number in range(34, 50):
        given = [kinds.step(e, r, number) for e, r in zip((session, twin), drawn, strict=True)]
        assert given[0] == given[1]
    assert session.save() == twin.save()


def test_forged_states_are_refused_alike(new: Executors) -> None:
    """With a right checksum: counts beyond their limits, runs that overlap or leave the table, flags that are
    none.  Whatever the library takes the simulator takes."""
    executors = [new(kind) for kind in BACKENDS]
    source = new("graph")
    for number in range(30):
        kinds.step(source, np.random.default_rng(number), number)
    good = source.save()
    rng = np.random.default_rng(0)
    taken = refused = 0
    for _ in range(400):
        at = int(rng.integers(32, len(good) - 8))
        if rng.integers(2):
            body = good[32:at] + bytes([good[at] ^ int(rng.integers(1, 256))]) + good[at + 1 :]
        else:
            value = int(rng.choice([-1, 0, 1, 2, 5, 1 << 31, 1 << 62, -(1 << 63)]))
            body = good[32:at] + struct.pack("<q", value) + good[at + 8 :]
        forged = kinds.sealed(good, body)
        answers = {_loads(executor, forged) for executor in executors}
        assert len(answers) == 1, at
        taken += answers == {True}
        refused += answers == {False}
        for executor in executors:
            executor.load(good)
    assert taken > 20 and refused > 20


def _refused(session: oic.Executor, data: bytes) -> None:
    with pytest.raises(oic.StepError, match="OIC_ERR_STATE"):
        session.load(data)


def _loads(session: oic.Executor, data: bytes) -> bool:
    try:
        session.load(data)
    except oic.StepError:
        return False
    return True


@pytest.mark.parametrize("sanitized", [False, True], ids=["plain", "sanitized"])
def test_all_bits_all_lengths_and_all_cuts_in_c(tmp_path: Path, sanitized: bool) -> None:
    """`saved.c`: every bit and length of a state, forged states, a journal of states of many sizes, and flipped
    bits of counts in the state itself."""
    made = oic.Synthesizer(kinds.graph(), capacity=kinds.BOUNDED, target="portable")
    fields = made.emit(tmp_path).unit.fields.values()
    beside = [f"{{{field.offset}, {field.nbytes}, {int(field.type.plain)}}}" for field in fields if "." in field.op.symbol]
    places = f"static const struct {{ size_t at, bytes; int one; }} places[] = {{{', '.join(beside)}}};\n"
    (tmp_path / "places.h").write_text(places)
    flags = SANITIZED if sanitized else ("-O2", *WARNINGS, "-Werror")
    driver, program = Path(__file__).with_name("saved.c"), tmp_path / "driver"
    # With the machine's instruction for checksums, which are most of what is computed.
    call = [*find_compiler(), "-std=c99", "-march=native", *flags, "-I", str(tmp_path)]
    built = subprocess.run(
        [*call, str(driver), str(tmp_path / "kinds.c"), "-o", str(program), "-lm"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    every = 8 if sanitized else 1
    done = subprocess.run([str(program), str(every)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = [int(n) for n in re.findall(r"\d+", done.stdout)]
    flips, lengths, taken, refused, cuts, least, most, bits, refusals, unsaved = found
    assert bits > 1000 and refusals > 1000 and unsaved > 300
    assert flips == -(-8 * (lengths - 8) // every) > 6000 // every and min(taken, refused) > 1000 // every
    assert cuts > 9000 // every and most > least + 50


def test_a_flipped_bit_of_a_count_is_refused(tmp_path: Path) -> None:
    """Every bit of every count, also where the memory of tables is reserved and so large a count could be."""
    path = ROOT / "examples" / "everything" / "graph.oi"
    made = oic.Synthesizer(oic.parse(path.read_text(), name=str(path))).build(tmp_path)
    calls: dict[str, dict[str, object]] = {
        "entry": {"x": np.ones((2, 4), np.float32)},
        "shape": {"grow": True},
        "note": {"grow": True, "who": 1},
    }
    fields = made.library.files.unit.fields.values()
    counts = [field for field in fields if "." in field.op.symbol and field.type.plain]
    assert len(counts) == 8
    with made.make_executor() as session:
        for entry in (*calls, *calls):
            session.step(entry, **calls[entry])
        state = session._ffi.buffer(session._session.state, made.library.files.unit.state_bytes)  # type: ignore[attr-defined]
        memory, refused, good = np.frombuffer(state, np.uint8), 0, session.save()
        for field in counts:
            for bit in range(64):
                memory[field.offset + bit // 8] ^= 1 << bit % 8
                for entry, given in calls.items():
                    with pytest.raises(oic.StepError, match="OIC_ERR_STATE"):
                        session.step(entry, **given)
                    refused += 1
                with pytest.raises(oic.StepError, match="OIC_ERR_STATE"):
                    session.save()
                memory[field.offset + bit // 8] ^= 1 << bit % 8
        assert refused == 8 * 64 * 3 and session.save() == good
        session.step("note", **calls["note"])
        memory[counts[0].offset] ^= 1
        session.reset()  # of reserved memory it is not known how far to clear: for good
        for act in (session.save, lambda: session.load(good), lambda: session.step(**calls["entry"])):
            with pytest.raises(oic.StepError, match="OIC_ERR_STATE"):
                act()


# ---------------------------------------------------------------- size

CACHE = """
dynamic { x: f32[N, 64] @max(N=16); }
persistent { pos: i32; K(l, t): f32[64] @table @fixed(l=2 FIXED); }
block entry {
  loop layers (l in 0..2) { cache.write x >> K[l, pos..pos+N]; }
  cache.increment N pos;
  return;
}
"""
CAPACITY_BYTES = 2 * 1024 * 64 * 4


@pytest.mark.parametrize("bound", ["fixed", "bounded", "reserved"])
@pytest.mark.parametrize("kind", BACKENDS)
def test_a_saved_state_is_as_large_as_what_was_written(bound: str, kind: str) -> None:
    """Ten of 1,024 tokens: ten tokens' worth, and so much more for every other token."""
    graph = oic.parse(CACHE.replace("FIXED", ", t=1024" if bound == "fixed" else ""), name="cache.oi")
    settings = {"capacity": {"t": 1024}} if bound == "bounded" else {}
    if kind == "c":
        made: oic.Simulator | oic.Synthesizer = oic.Synthesizer(graph, **settings)
    else:
        made = oic.Simulator(graph, stage=kind, **settings)
    rng = np.random.default_rng(0)
    sizes = []
    with made.make_executor() as ex:
        sizes.append(len(ex.save()))
        for _ in range(4):
            ex.step(x=rng.standard_normal((10, 64)).astype(np.float32))
            sizes.append(len(ex.save()))
        ex.reset()
        assert len(ex.save()) == sizes[0] < 100
    assert 10 * 512 <= sizes[1] < 0.02 * CAPACITY_BYTES
    assert {b - a for a, b in pairwise(sizes[1:])} == {10 * 512}


def test_lone_entries_of_a_table_are_saved_alone() -> None:
    """Two slots of a thousand; and where every other entry is set, no more than the whole table."""
    text = """dynamic { x: f32[8]; i: i32; }
    persistent { S(id): f32[8] @table @fixed(id=1000); B(i): u8 @table @fixed(i=1000); }
    block entry { cache.write x >> S[i]; return; }
    block flag @entry { assign one: u8; op fill(one, value=1) >> one; cache.write one >> B[i]; return; }"""
    made = oic.Simulator(oic.parse(text, name="s.oi"))
    with made.make_executor() as ex:
        empty = len(ex.save())
        for i in (3, 900):
            ex.step(x=np.ones(8, np.float32), i=i)
        assert len(ex.save()) == empty + 2 * (16 + 32)
        for i in range(0, 1000, 2):
            ex.step("flag", i=i)
        assert len(ex.save()) == empty + 2 * (16 + 32) + 16 + 999


def test_the_most_that_is_saved(library: oic.Synthesizer) -> None:
    """`<NAME>_SAVED_BYTES` is reached by nothing smaller than everything, and never passed."""
    text = """dynamic { b: u8; } persistent { n: i32; B(i): u8 @table @fixed(i=100); }
    block entry { cache.write b >> B[n]; cache.increment n; return; }"""
    program = compile_graph(oic.parse(text, name="b.oi"), None, Settings())
    most = saved_form(program.planned).largest
    with oic.Simulator(oic.parse(text, name="b.oi")).make_executor() as ex:
        for _ in range(100):
            assert len(ex.save()) < most
            ex.step(b=np.uint8(7))
        assert len(ex.save()) == most
    header = (library.library.files.folder / "kinds.h").read_text()
    assert re.search(r"#define KINDS_SAVED_BYTES \S+", header)


# ---------------------------------------------------------------- memory


def test_a_growing_table_is_as_resident_as_it_is_long() -> None:
    """64 GiB may be reserved; a session has the pages of the tokens it saw, also after save and load."""
    text = """dynamic { x: f32[N, 256] @max(N=500); } persistent { pos: i32; K(t): f32[256] @table; }
    block entry { cache.write x >> K[pos..pos+N]; cache.increment N pos; return; }"""
    made = oic.Synthesizer(oic.parse(text, name="resident.oi")).build()
    x, slack = np.ones((500, 256), np.float32), 64 << 10
    with made.make_executor() as ex, made.make_executor() as other:
        for tokens in (0, 1000, 10000):
            while int(ex.fetch("pos")) < tokens:
                ex.step(x=x)
            other.load(ex.save())
            for session in (ex, other):
                found = resident_bytes(session)
                if found is None and sys.platform != "linux":
                    pytest.skip("the system does not say what is resident")
                assert found is not None and 1024 * tokens <= found <= 1024 * tokens + slack
        with ex.fork() as fork:
            found = resident_bytes(fork)
            assert found is not None and found <= 1024 * 10000 + slack
