"""Random programs on persistent variables: GRAPH and the later stages against a plain model.

The model below is SPEC, section 8, once more, as simply as it can be said: a dictionary of every
element and no storage.  Programs are calls of small functions over one variable.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oic.operators  # noqa: F401  (registers the ops)
from oic.diagnostics import StepError
from oic.ir.module import Module
from oic.ir.text_parse import parse_module
from oic.ir.text_print import print_module
from oic.memory.verify import verify
from oic.passes.pipeline import PIPELINE
from oic.reference.interpret import Machine

INDEX, FULL, SHAPE = "OIC_ERR_INDEX", "OIC_ERR_CACHE_FULL", "OIC_ERR_SHAPE"
small = st.integers(-2, 7)


class Refused(Exception):
    """The status the model gives."""


def check(value: int, low: int, high: int, above: str) -> None:
    if value < low:
        raise Refused(INDEX)
    if value > high:
        raise Refused(above)


# ------------------------------------------------------------------ tables

CAPACITY = (3, 5)
TABLE = """module "m" {stage="graph"}
extents { N <= 8, n1 <= 8, n2 <= 5, n3 <= 3, n4 <= 5 }
%K = state {symbol="K", type=state<f32[2]; table(FIRST, t:5)>, init=INIT} : state<f32[2]; table(FIRST, t:5)>
func {symbol="read", inputs=["i", "j"], outputs=["r"], pinned={}} body(%i: i32, %j: i32) {
  %a = index.load(%i) : index
  %b = index.load(%j) : index
  %r = cache.read(%K, [%a, %b]) {form="ii", type=f32[2]} : f32[2]
  return([%r])
}
func {symbol="slice", inputs=["i", "j", "k"], outputs=["r"], pinned={}}
   body(%i: i32, %j: i32, %k: i32) {
  %a = index.load(%i) : index
  %b = index.load(%j) : index
  %c = index.load(%k) : index
  %n = index.sub(%c, %b) : index
  extent.bind(%n) {extent=@n1, below="OIC_ERR_INDEX", above="OIC_ERR_CACHE_FULL", variable="K"}
  %r = cache.read(%K, [%a, %b, %c]) {form="is", type=f32[n1, 2]} : f32[n1, 2]
  return([%r])
}
func {symbol="column", inputs=["j"], outputs=["r"], pinned={}} body(%j: i32) {
  %0 = index.const {value=0} : index
  %b = index.load(%j) : index
  %n = cache.count(%K, []) {axis=0} : index
  extent.bind(%n) {extent=@n3, below="OIC_ERR_INDEX", above="OIC_ERR_CACHE_FULL", variable="K"}
  %r = cache.read(%K, [%0, %n, %b]) {form="si", type=f32[n3, 2]} : f32[n3, 2]
  return([%r])
}
func {symbol="write", inputs=["i", "j", "v"], outputs=[], pinned={}}
   body(%i: i32, %j: i32, %v: f32[2]) {
  %a = index.load(%i) : index
  %b = index.load(%j) : index
  cache.write(%K, %v, [%a, %b]) {form="ii"}
  return([])
}
func {symbol="append", inputs=["i", "j", "v"], outputs=[], pinned={}}
   body(%i: i32, %j: i32, %v: f32[N, 2]) {
  %a = index.load(%i) : index
  %b = index.load(%j) : index
  %n = index.size {size=N} : index
  %c = index.add(%b, %n) : index
  cache.write(%K, %v, [%a, %b, %c]) {form="is"}
  return([])
}
func {symbol="reset", inputs=[], outputs=[], pinned={}} body() {
  cache.reset(%K, [])
  return([])
}
"""
PARTIAL = """func {symbol="row", inputs=["i"], outputs=[], pinned={}} body(%i: i32) {
  %a = index.load(%i) : index
  cache.reset(%K, [%a])
  return([])
}
func {symbol="entry", inputs=["i", "j"], outputs=[], pinned={}} body(%i: i32, %j: i32) {
  %a = index.load(%i) : index
  %b = index.load(%j) : index
  cache.reset(%K, [%a, %b])
  return([])
}
"""


class TableModel:
    """SPEC 8.2, by elements."""

    def __init__(self, fixed: tuple[bool, bool], init: float) -> None:
        self.fixed, self.init = fixed, init
        self.reset()

    def reset(self) -> None:
        self.written: dict[tuple[int, int], Any] = {}
        self.touched: set[tuple[int, int]] = set()
        self.counts = [c if f else 0 for c, f in zip(CAPACITY, self.fixed)]

    def row(self, i: int) -> None:
        self._forget({k for k in self.touched if k[0] == i})

    def entry(self, i: int, j: int) -> None:
        self._forget({(i, j)} & self.touched)

    def _forget(self, keys: set[tuple[int, int]]) -> None:
        if not keys:
            return
        self.touched -= keys
        for key in keys:
            self.written.pop(key, None)
        for axis, fixed in enumerate(self.fixed):
            if not fixed:
                self.counts[axis] = max((k[axis] for k in self.touched), default=-1) + 1

    def _scalar(self, axis: int, i: int) -> None:
        check(i, 0, CAPACITY[axis] - 1, FULL)

    def _raise(self, *at: int) -> None:
        self.counts = [max(c, i + 1) for c, i in zip(self.counts, at)]

    def get(self, i: int, j: int) -> list[float]:
        return list(self.written.get((i, j), [self.init] * 2))

    def read(self, i: int, j: int) -> Any:
        self._scalar(0, i)
        self._scalar(1, j)
        self._raise(i, j)
        self.touched.add((i, j))
        return self.get(i, j)

    def slice(self, i: int, j: int, k: int) -> Any:
        check(k - j, 0, 8, FULL)
        self._scalar(0, i)
        check(j, 0, 1 << 60, INDEX)
        check(k, j, CAPACITY[1], FULL)
        self._raise(i, -1)
        return [self.get(i, t) for t in range(j, k)]

    def column(self, j: int) -> Any:
        self._scalar(1, j)
        found = [self.get(i, j) for i in range(self.counts[0])]
        self._raise(-1, j)
        return found

    def write(self, i: int, j: int, v: Any) -> None:
        self._scalar(0, i)
        self._scalar(1, j)
        self._raise(i, j)
        self.touched.add((i, j))
        self.written[i, j] = list(v)

    def append(self, i: int, j: int, v: Any) -> None:
        self._scalar(0, i)
        check(j, 0, 1 << 60, INDEX)
        check(j + len(v), j, CAPACITY[1], FULL)
        for n, entry in enumerate(v):
            self.write(i, j + n, entry)

    def logical(self) -> Any:
        rows, columns = self.counts
        return [[self.get(i, j) for j in range(columns)] for i in range(rows)]


def values(*shape: int) -> st.SearchStrategy[Any]:
    return st.integers(1, 99).map(
        lambda n: (np.arange(np.prod(shape)) + n).reshape(shape).astype(np.float32)
    )


table_calls = st.lists(
    st.one_of(
        st.tuples(st.just("read"), small, small),
        st.tuples(st.just("slice"), small, small, small),
        st.tuples(st.just("column"), small),
        st.tuples(st.just("write"), small, small, values(2)),
        st.tuples(
            st.just("append"), small, small, st.integers(0, 3).flatmap(lambda n: values(n, 2))
        ),
        st.tuples(st.just("reset")),
        st.tuples(st.just("row"), small),
        st.tuples(st.just("entry"), small, small),
    ),
    max_size=25,
)


def stages(module: Module) -> list[Machine]:
    """A machine at each stage; the later ones read back from their text."""
    found = [Machine(module)]
    for step in PIPELINE:
        module = module.clone()
        step.run(module)
        verify(module)
        if step.name in ("lower-cache", "dead-code-indexed", "plan-memory"):
            text = print_module(module)
            found.append(Machine(parse_module(text, module.weights)))
    return found


def arguments(module: Module, call: tuple[Any, ...]) -> dict[str, Any]:
    names = module.function(call[0]).inputs
    return {
        n: a if isinstance(a, np.ndarray) else np.int32(a)
        for n, a in zip(names, call[1:], strict=True)
    }


def agree(machine: Machine, model: Any, call: tuple[Any, ...]) -> None:
    """One call on both: the same result or the same status, and the same state after it."""
    try:
        expected = getattr(model, call[0])(*call[1:])
    except Refused as refused:
        with pytest.raises(StepError) as mine:
            machine.step(call[0], arguments(machine.module, call))
        assert mine.value.status == str(refused), call
    else:
        out = machine.step(call[0], arguments(machine.module, call))
        if expected is not None:
            assert out["r"].tolist() == expected, call
    assert machine.fetch_state("K").tolist() == model.logical(), call


def table(fixed: tuple[bool, bool], init: float, more: str = "") -> Module:
    text = TABLE.replace("FIRST, t:5", f"l:3{'!' * fixed[0]}, t:5{'!' * fixed[1]}")
    return parse_module(text.replace("INIT", repr(init)) + more)


@given(st.tuples(st.booleans(), st.booleans()), st.sampled_from([0.0, 1.5]), table_calls)
@settings(max_examples=150, deadline=None)
def test_tables(fixed: tuple[bool, bool], init: float, calls: list[Any]) -> None:
    machine, model = Machine(table(fixed, init, PARTIAL)), TableModel(fixed, init)
    for call in calls:
        agree(machine, model, call)
    assert machine.fork().fetch_state("K").tolist() == model.logical()


@pytest.fixture(scope="module")
def lowered_tables() -> dict[tuple[bool, bool], list[Machine]]:
    """Machines of every stage, to be reset before each program."""
    return {f: stages(table(f, 1.5, PARTIAL)) for f in itertools.product((False, True), repeat=2)}


@given(st.tuples(st.booleans(), st.booleans()), table_calls)
@settings(max_examples=100, deadline=None)
def test_tables_at_every_stage(
    lowered_tables: dict[tuple[bool, bool], list[Machine]],
    fixed: tuple[bool, bool],
    calls: list[Any],
) -> None:
    for machine in lowered_tables[fixed]:
        model = TableModel(fixed, 1.5)
        machine.reset()
        for call in calls:
            agree(machine, model, call)


# ------------------------------------------------------------------- rings

WINDOW = 3
RING = """module "m" {stage="graph"}
extents { N <= 8, n1 <= 3, n2 <= 3 }
%K = state {symbol="K", type=state<i16; table(l:2, t:3!); ring>, init=9} : state<i16; table(l:2, t:3!); ring>
func {symbol="read", inputs=["i", "j"], outputs=["r"], pinned={}} body(%i: i32, %j: i32) {
  %a = index.load(%i) : index
  %b = index.load(%j) : index
  %r = cache.read(%K, [%a, %b]) {form="ii", type=i16} : i16
  return([%r])
}
func {symbol="slice", inputs=["i", "j", "k"], outputs=["r"], pinned={}}
   body(%i: i32, %j: i32, %k: i32) {
  %a = index.load(%i) : index
  %b = index.load(%j) : index
  %c = index.load(%k) : index
  %n = index.sub(%c, %b) : index
  extent.bind(%n) {extent=@n1, below="OIC_ERR_INDEX", above="OIC_ERR_INDEX", variable="K"}
  %r = cache.read(%K, [%a, %b, %c]) {form="is", type=i16[n1]} : i16[n1]
  return([%r])
}
func {symbol="newest", inputs=["i"], outputs=["r"], pinned={}} body(%i: i32) {
  %a = index.load(%i) : index
  %w = index.const {value=3} : index
  %c = cache.count(%K, [%a]) {axis=1} : index
  %b = index.sub(%c, %w) : index
  %r = cache.read(%K, [%a, %b, %c]) {form="is", type=i16[3]} : i16[3]
  return([%r])
}
func {symbol="write", inputs=["i", "j", "v"], outputs=[], pinned={}}
   body(%i: i32, %j: i32, %v: i16) {
  %a = index.load(%i) : index
  %b = index.load(%j) : index
  cache.write(%K, %v, [%a, %b]) {form="ii"}
  return([])
}
func {symbol="append", inputs=["i", "v"], outputs=[], pinned={}} body(%i: i32, %v: i16[N]) {
  %a = index.load(%i) : index
  %b = cache.count(%K, [%a]) {axis=1} : index
  %n = index.size {size=N} : index
  %c = index.add(%b, %n) : index
  cache.write(%K, %v, [%a, %b, %c]) {form="is"}
  return([])
}
func {symbol="reset", inputs=[], outputs=[], pinned={}} body() {
  cache.reset(%K, [])
  return([])
}
func {symbol="row", inputs=["i"], outputs=[], pinned={}} body(%i: i32) {
  %a = index.load(%i) : index
  cache.reset(%K, [%a])
  return([])
}
"""


class RingModel:
    """SPEC 8.5: every value ever written, and how far the writing has come."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.rings: dict[int, tuple[int, dict[int, int]]] = {}
        self.seen: set[int] = set()  # rings with anything written or read
        self.count = 0

    def row(self, i: int) -> None:
        if i in self.seen:
            self.rings.pop(i, None)
            self.seen.discard(i)
            self.count = max(self.seen, default=-1) + 1

    def _ring(self, i: int) -> tuple[int, dict[int, int]]:
        check(i, 0, 1, FULL)
        return self.rings.get(i, (0, {}))

    def _inside(self, i: int, low: int, high: int) -> None:
        following, _ = self._ring(i)
        if low < following - WINDOW or high > following or high < low:
            raise Refused(INDEX)

    def _get(self, i: int, j: int) -> int:
        return self._ring(i)[1].get(j, 9)

    def read(self, i: int, j: int) -> Any:
        self._inside(i, j, j + 1)
        self.count = max(self.count, i + 1)
        self.seen.add(i)
        return self._get(i, j)

    def slice(self, i: int, j: int, k: int) -> Any:
        check(k - j, 0, WINDOW, INDEX)
        self._inside(i, j, k)
        self.count = max(self.count, i + 1)
        return [self._get(i, t) for t in range(j, k)]

    def newest(self, i: int) -> Any:
        following, _ = self._ring(i)
        return self.slice(i, following - WINDOW, following)

    def write(self, i: int, j: int, v: Any) -> None:
        following, written = self._ring(i)
        if j < max(0, following - WINDOW):
            raise Refused(INDEX)
        self.rings[i] = (max(following, j + 1), {**written, j: int(v)})
        self.seen.add(i)
        self.count = max(self.count, i + 1)

    def append(self, i: int, v: Any) -> None:
        following, _ = self._ring(i)
        for n, value in enumerate(v):
            self.write(i, following + n, value)

    def logical(self) -> Any:
        return [
            [self._get(i, self._ring(i)[0] - WINDOW + n) for n in range(WINDOW)]
            for i in range(self.count)
        ]


def numbers(*shape: int) -> st.SearchStrategy[Any]:
    return values(*shape).map(lambda v: v.astype(np.int16))


ring_index = st.integers(-1, 2)
ring_calls = st.lists(
    st.one_of(
        st.tuples(st.just("read"), ring_index, small),
        st.tuples(st.just("slice"), ring_index, small, small),
        st.tuples(st.just("newest"), ring_index),
        st.tuples(st.just("write"), ring_index, small, numbers()),
        st.tuples(st.just("append"), ring_index, st.integers(0, 5).flatmap(numbers)),
        st.tuples(st.just("reset")),
        st.tuples(st.just("row"), ring_index),
    ),
    max_size=25,
)


@given(ring_calls)
@settings(max_examples=150, deadline=None)
def test_rings(calls: list[Any]) -> None:
    machine, model = Machine(parse_module(RING)), RingModel()
    for call in calls:
        agree(machine, model, call)


@pytest.fixture(scope="module")
def lowered_rings() -> list[Machine]:
    return stages(parse_module(RING))


@given(ring_calls)
@settings(max_examples=100, deadline=None)
def test_rings_at_every_stage(lowered_rings: list[Machine], calls: list[Any]) -> None:
    for machine in lowered_rings:
        model = RingModel()
        machine.reset()
        for call in calls:
            agree(machine, model, call)


# --------------------------------------------------------------- auto-dims

MATRIX = """module "m" {stage="graph"}
extents { A <= 8, B <= 8, n1 <= 5, n2 <= 4, n3 <= 5, n4 <= 4, n5 <= 6, n6 <= 3 }
%K = state {symbol="K", type=state<f16[1, 2]; table(l:2); auto(r:4, c:2!)>, init=0.5}
    : state<f16[1, 2]; table(l:2); auto(r:4, c:2!)>
func {symbol="grow", inputs=["l", "i", "j"], outputs=["r"], pinned={}}
   body(%l: i32, %i: i32, %j: i32) {
  %e = index.load(%l) : index
  %a = index.load(%i) : index
  %b = index.load(%j) : index
  %p = cache.count(%K, []) {axis=1} : index
  %q = cache.count(%K, []) {axis=2} : index
  %s = index.max(%p, %a) : index
  %t = index.max(%q, %b) : index
  extent.bind(%s) {extent=@n1, below="OIC_ERR_INDEX", above="OIC_ERR_CACHE_FULL", variable="K"}
  extent.bind(%t) {extent=@n2, below="OIC_ERR_INDEX", above="OIC_ERR_CACHE_FULL", variable="K"}
  %r = cache.read(%K, [%e, %a, %b]) {form="iii", type=f16[n1 + 1, n2 + 2]} : f16[n1 + 1, n2 + 2]
  return([%r])
}
func {symbol="whole", inputs=["l"], outputs=["r"], pinned={}} body(%l: i32) {
  %e = index.load(%l) : index
  %p = cache.count(%K, []) {axis=1} : index
  %q = cache.count(%K, []) {axis=2} : index
  extent.bind(%p) {extent=@n3, below="OIC_ERR_INDEX", above="OIC_ERR_CACHE_FULL", variable="K"}
  extent.bind(%q) {extent=@n4, below="OIC_ERR_INDEX", above="OIC_ERR_CACHE_FULL", variable="K"}
  %r = cache.read(%K, [%e]) {form="i", type=f16[n3 + 1, n4 + 2]} : f16[n3 + 1, n4 + 2]
  return([%r])
}
func {symbol="part", inputs=["l", "a", "b", "j"], outputs=["r"], pinned={}}
   body(%l: i32, %a: i32, %b: i32, %j: i32) {
  %e = index.load(%l) : index
  %x = index.load(%a) : index
  %y = index.load(%b) : index
  %z = index.load(%j) : index
  %n = index.sub(%y, %x) : index
  extent.bind(%n) {extent=@n5, below="OIC_ERR_INDEX", above="OIC_ERR_INDEX", variable="K"}
  %r = cache.read(%K, [%e, %x, %y, %z]) {form="isi", type=f16[n5]} : f16[n5]
  return([%r])
}
func {symbol="write", inputs=["l", "i", "v"], outputs=[], pinned={}}
   body(%l: i32, %i: i32, %v: f16[A, B]) {
  %e = index.load(%l) : index
  %a = index.load(%i) : index
  cache.write(%K, %v, [%e, %a]) {form="ii"}
  return([])
}
func {symbol="reset", inputs=[], outputs=[], pinned={}} body() {
  cache.reset(%K, [])
  return([])
}
"""


class MatrixModel:
    """SPEC 8.3: elements by position; whatever is not there is the initial value."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.matrices: dict[int, dict[tuple[int, int], float]] = {}
        self.count, self.r, self.c = 0, 0, 0

    def _all(self, e: int) -> Any:
        found = self.matrices.get(e, {})
        return [[found.get((i, j), 0.5) for j in range(2 + self.c)] for i in range(1 + self.r)]

    def grow(self, e: int, i: int, j: int) -> Any:
        for value, count, most in ((i, self.r, 5), (j, self.c, 4)):
            check(max(value, count), 0, most, FULL)  # the extents of the lengths
        check(e, 0, 1, FULL)
        check(i, 0, 4, FULL)
        check(j, 0, 2, FULL)
        self.r, self.c, self.count = max(self.r, i), max(self.c, j), max(self.count, e + 1)
        return self._all(e)

    def whole(self, e: int) -> Any:
        check(e, 0, 1, FULL)
        self.count = max(self.count, e + 1)
        return self._all(e)

    def part(self, e: int, a: int, b: int, j: int) -> Any:
        check(b - a, 0, 6, INDEX)
        check(e, 0, 1, FULL)
        check(a, 0, 1 + self.r, INDEX)
        check(b, a, 1 + self.r, INDEX)
        check(j, 0, 1 + self.c, INDEX)
        self.count = max(self.count, e + 1)
        return [row[j] for row in self._all(e)[a:b]]

    def write(self, e: int, i: int, v: Any) -> None:
        check(e, 0, 1, FULL)
        check(i, 0, 4, FULL)
        if v.shape != (1 + max(self.r, i), 2 + self.c):
            raise Refused(SHAPE)
        self.r, self.count = max(self.r, i), max(self.count, e + 1)
        self.matrices[e] = {k: float(x) for k, x in np.ndenumerate(v)}

    def logical(self) -> Any:
        return [self._all(e) for e in range(self.count)]


few = st.integers(-1, 5)
sizes = st.tuples(st.integers(1, 5), st.integers(2, 4))
matrix_calls = st.lists(
    st.one_of(
        st.tuples(st.just("grow"), ring_index, few, few),
        st.tuples(st.just("whole"), ring_index),
        st.tuples(st.just("part"), ring_index, few, few, few),
        st.tuples(
            st.just("write"), ring_index, few,
            sizes.flatmap(lambda s: values(*s)).map(lambda v: v.astype(np.float16)),
        ),
        st.tuples(st.just("fit"), ring_index, few),
        st.tuples(st.just("reset")),
    ),
    max_size=25,
)  # fmt: skip


@given(matrix_calls)
@settings(max_examples=150, deadline=None)
def test_matrices_that_grow(calls: list[Any]) -> None:
    machine, model = Machine(parse_module(MATRIX)), MatrixModel()
    for n, call in enumerate(calls):
        agree(machine, model, _fitted(call, model, n))


def _fitted(call: tuple[Any, ...], model: MatrixModel, n: int) -> tuple[Any, ...]:
    """For `fit`: a write of the shape that is wanted."""
    if call[0] != "fit":
        return call
    shape = (1 + max(model.r, call[2]), 2 + model.c)
    value = (np.arange(np.prod(shape)) + n).reshape(shape).astype(np.float16)
    return ("write", call[1], call[2], value)


@pytest.fixture(scope="module")
def lowered_matrices() -> list[Machine]:
    return stages(parse_module(MATRIX))


@given(matrix_calls)
@settings(max_examples=100, deadline=None)
def test_matrices_at_every_stage(lowered_matrices: list[Machine], calls: list[Any]) -> None:
    for machine in lowered_matrices:
        model = MatrixModel()
        machine.reset()
        for n, call in enumerate(calls):
            if call[0] != "write":  # its shape is compared by an op of its own, which is not there
                agree(machine, model, _fitted(call, model, n))
