"""The interpreter on modules written as text: structure, index arithmetic, refusals, stages."""

from __future__ import annotations

import mmap
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import oic.operators  # noqa: F401  (registers the ops)
from oic.diagnostics import StepError
from oic.ir.text_parse import parse_module
from oic.reference.interpret import Machine
from oic.reference.state_storage import LARGE, zeros


def machine(body: str, **weights: Any) -> Machine:
    """A machine of a module without its first line."""
    return Machine(parse_module(f'module "m" {{stage="graph"}}\n{body}', weights))


def refusal(m: Machine, symbol: str = "entry", **inputs: Any) -> StepError:
    """The error a step gives."""
    with pytest.raises(StepError) as refused:
        m.step(symbol, {k: np.asarray(v) for k, v in inputs.items()})
    return refused.value


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


COUNTER = """
%s = state {symbol="s", type=state<u8>, init=250} : state<u8>
%f = state {symbol="f", type=state<f16[1]>, init=2047.0} : state<f16[1]>
func {symbol="entry", inputs=[], outputs=["r"], pinned={}} body() {
  %3 = index.const {value=3} : index
  %1 = index.const {value=1} : index
  cache.step(%s, %3, [])
  cache.step(%f, %1, [])
  %r = cache.read(%s, []) {form="", type=u8} : u8
  return([%r])
}
func {symbol="reset", inputs=[], outputs=[], pinned={}} body() {
  cache.reset(%s, [])
  return([])
}
"""


def test_counters_wrap_and_round_in_their_type() -> None:
    m = machine(COUNTER)
    assert [int(m.step("entry", {})["r"]) for _ in range(3)] == [253, 0, 3]
    assert m.fetch_state("f").tolist() == [2048]  # 2049 is no f16: halves go to even
    m.step("reset", {})
    assert m.fetch_state("s") == 250 and m.fetch_state("f").tolist() == [2048]
    m.reset()
    assert m.fetch_state("f").tolist() == [2047]


def test_save_load_and_fork_carry_all_state() -> None:
    m = machine(COUNTER)
    m.step("entry", {})
    saved, other = m.save(), m.fork()
    m.step("entry", {})
    assert other.fetch_state("s") == 253 and m.fetch_state("s") == 0
    m.load(saved)
    assert m.fetch_state("s") == 253
    for bad in (b"", saved[:-1], saved[:50] + b"?" + saved[51:], b"x" + saved[1:]):
        with pytest.raises(StepError) as refused:
            m.load(bad)
        assert refused.value.status == "OIC_ERR_STATE" and m.fetch_state("s") == 253
    foreign = machine('%q = state {symbol="q", type=state<u8>, init=1} : state<u8>').save()
    with pytest.raises(StepError, match="another graph"):
        m.load(foreign)


LOOP = """
extents { N <= 8, n2 <= 8, n3 <= 8 }
%w = constant {symbol="w", type=f32[2]} : f32[2]
func {symbol="entry", inputs=["x", "lo", "hi"], outputs=["y", "n"], pinned={}}
   body(%x: f32[N, 2], %lo: i64, %hi: i64) {
  %a = index.load(%lo) : index
  %b = index.load(%hi) : index
  %n = index.size {size=N} : index
  %m, %y = for(%a, %b, [%n, %x]) {tag="t"} body(%i: index, %m0: index, %x0: f32[n2, 2]) {
    extent.bind(%m0) {extent=@n2, below="OIC_ERR_SHAPE", above="OIC_ERR_SHAPE", variable="size"}
    %z = concat([%x0, %x0]) {axis=0} : f32[2*n2, 2]
    %s = slice(%z) {axis=0, start=1, end=2*n2} : f32[2*n2 - 1, 2]
    %p = mul(%s, %w) : f32[2*n2 - 1, 2]
    %k = index.size {size=2*n2 - 1} : index
    yield([%k, %p])
  } : index, f32[n3, 2]
  extent.bind(%m) {extent=@n3, below="OIC_ERR_SHAPE", above="OIC_ERR_INDEX", variable="y"}
  %c = index.tensor(%m) {type=i16} : i16
  return([%y, %c])
}
"""


def test_a_loop_carries_values_that_change_size() -> None:
    m = machine(LOOP, w=f32(2, 3))
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    expected = x
    for turns in range(3):
        if len(expected) > 8:
            break
        out = m.step("entry", {"x": x, "lo": np.int64(0), "hi": np.int64(turns)})
        assert np.array_equal(out["y"], expected) and out["n"] == len(expected)
        expected = np.concatenate([expected, expected])[1:] * f32(2, 3)
    empty = m.step("entry", {"x": x, "lo": np.int64(5), "hi": np.int64(-5)})
    assert np.array_equal(empty["y"], x)


def test_extents_too_large_are_refused_with_the_status_asked_for() -> None:
    m = machine(LOOP, w=f32(1, 1))
    x = np.zeros((3, 2), np.float32)
    wrong = refusal(m, x=x, lo=np.int64(0), hi=np.int64(2))  # 3, 5, 9
    assert (wrong.status, wrong.index, wrong.bound) == ("OIC_ERR_INDEX", 9, 8)
    big = refusal(m, x=np.zeros((9, 2), np.float32), lo=np.int64(0), hi=np.int64(0))
    assert (big.status, big.variable, big.index, big.bound) == ("OIC_ERR_SHAPE", "x", 9, 8)
    other = refusal(m, x=np.zeros((3, 1), np.float32), lo=np.int64(0), hi=np.int64(0))
    assert other.status == "OIC_ERR_SHAPE"


BRANCH = """
func {symbol="entry", inputs=["c", "x"], outputs=["y"], pinned={}} body(%c: bool, %x: f32[2]) {
  %y = if(%c) {types=[f32[2]]} then() {
    %n = neg(%x) : f32[2]
    yield([%n])
  } orelse() {
    yield([%x])
  } : f32[2]
  return([%y])
}
"""


def test_a_branch_runs_one_side() -> None:
    m = machine(BRANCH)
    assert m.step("entry", {"c": np.True_, "x": f32(1, 2)})["y"].tolist() == [-1, -2]
    assert m.step("entry", {"c": np.False_, "x": f32(1, 2)})["y"].tolist() == [1, 2]


INDEX = """
func {symbol="entry", inputs=["a", "b"], outputs=["r"], pinned={}} body(%a: i64, %b: i64) {
  %x = index.load(%a) : index
  %y = index.load(%b) : index
  %r = OP(%x, %y) : index
  %t = index.tensor(%r) {type=i64} : i64
  return([%t])
}
"""


@pytest.mark.parametrize(
    ("op", "a", "b", "expected"),
    [
        ("index.add", 3, 4, 7),
        ("index.sub", 3, 4, -1),
        ("index.mul", -3, 4, -12),
        ("index.min", 3, 4, 3),
        ("index.max", 3, 4, 4),
        ("index.mod", -1, 4, 3),
        ("index.end", -1, 4, 3),
        ("index.end", 2, 4, 2),
        ("index.when", 1, 4, 4),
        ("index.when", 0, 4, 0),
        ("index.add", (1 << 63) - 1, 1, None),
        ("index.sub", -(1 << 63), 1, None),
        ("index.mul", 1 << 40, 1 << 40, None),
        ("index.end", -(1 << 63), -1, None),
    ],
)
def test_index_arithmetic_is_exact_or_refused(
    op: str, a: int, b: int, expected: int | None
) -> None:
    m = machine(INDEX.replace("OP", op))
    if expected is None:
        assert refusal(m, a=np.int64(a), b=np.int64(b)).status == "OIC_ERR_OVERFLOW"
    else:
        assert m.step("entry", {"a": np.int64(a), "b": np.int64(b)})["r"] == expected


CHECKS = """
extents { N <= 8, M <= 8 }
func {symbol="entry", inputs=["i", "ids", "x", "z"], outputs=["y"], pinned={}}
   body(%i: u64, %ids: i32[M], %x: f32[N], %z: f32[M]) {
  %v = index.load(%i) : index
  %n = index.size {size=N} : index
  check.range(%v) {low=1, high=%n, below="OIC_ERR_INDEX", above="OIC_ERR_CACHE_FULL", variable="v"}
  check.ids(%ids) {bound=N, variable="x"}
  %s = assert.shape(%z) {shape=[N]} : f32[N]
  %y = add(%s, %x) : f32[N]
  return([%y])
}
"""


def test_checks_refuse_with_index_and_bound() -> None:
    m = machine(CHECKS)
    good: dict[str, Any] = {
        "i": np.uint64(2), "ids": np.array([1, 0], np.int32), "x": f32(1, 2), "z": f32(3, 4)
    }  # fmt: skip
    assert m.step("entry", good)["y"].tolist() == [4, 6]
    low = refusal(m, **good | {"i": np.uint64(0)})
    assert (low.status, low.index, low.bound, low.variable) == ("OIC_ERR_INDEX", 0, 1, "v")
    high = refusal(m, **good | {"i": np.uint64(3)})
    assert (high.status, high.index, high.bound) == ("OIC_ERR_CACHE_FULL", 3, 2)
    assert refusal(m, **good | {"i": np.uint64(1 << 63)}).status == "OIC_ERR_OVERFLOW"
    ids = refusal(m, **good | {"ids": np.array([1, -1], np.int32)})
    assert (ids.status, ids.index, ids.bound) == ("OIC_ERR_INDEX", -1, 2)
    shape = refusal(m, **good | {"x": f32(1, 2, 3)})
    assert (shape.status, shape.index, shape.bound) == ("OIC_ERR_SHAPE", 2, 3)


SETTINGS = """
extents { N <= 8 }
func {symbol="entry", inputs=["x", "alpha", "from"], outputs=["y", "z"], pinned={}}
   body(%x: f32[N], %alpha: f32, %from: i32) {
  %y = relu(%x) {alpha=%alpha} : f32[N]
  %a = index.load(%from) : index
  %n = index.size {size=N} : index
  %z = slice(%x) {axis=0, start=%a, end=%n, size=2} : f32[2]
  return([%y, %z])
}
"""


def test_settings_may_be_values_and_sizes() -> None:
    m = machine(SETTINGS)
    out = m.step("entry", {"x": f32(-2, 4, 6), "alpha": np.float32(0.5), "from": np.int32(1)})
    assert out["y"].tolist() == [-1, 4, 6] and out["z"].tolist() == [4, 6]


FUSED = """
extents { N <= 8 }
func {symbol="entry", inputs=["x", "s"], outputs=["y"], pinned={}} body(%x: f16[N, 2], %s: f16) {
  %y = fused([%x, %s]) {type=[f16[N, 2]]} body(%a: f16, %b: f16) {
    %c = add(%a, %b) : f16
    %d = mul(%c, %c) : f16
    yield([%d])
  } : f16[N, 2]
  return([%y])
}
"""


def test_a_fused_region_rounds_between_its_ops() -> None:
    m = machine(FUSED)
    x = np.array([[0.1, 3.3], [100, 7]], np.float16)
    s = np.float16(0.01)
    expected = (x + s) * (x + s)
    assert np.array_equal(m.step("entry", {"x": x, "s": s})["y"], expected)


FAILS_LATE = """
%K = state {symbol="K", type=state<f32; table(t:4)>, init=0} : state<f32; table(t:4)>
%n = state {symbol="n", type=state<i32>, init=0} : state<i32>
func {symbol="entry", inputs=["x", "i"], outputs=[], pinned={}} body(%x: f32, %i: i32) {
  %1 = index.const {value=1} : index
  %at = cache.read(%n, []) {form="", type=i32} : i32
  %t = index.load(%at) : index
  cache.write(%K, %x, [%t]) {form="i"}
  cache.step(%n, %1, [])
  %j = index.load(%i) : index
  cache.write(%K, %x, [%j]) {form="i"}
  return([])
}
func {symbol="wipe", inputs=["i"], outputs=[], pinned={}} body(%i: i32) {
  cache.reset(%K, [])
  cache.reset(%n, [])
  %j = index.load(%i) : index
  %r = cache.read(%K, [%j]) {form="i", type=f32} : f32
  return([])
}
"""


def test_a_refused_step_changes_nothing() -> None:
    m = machine(FAILS_LATE)
    m.step("entry", {"x": np.float32(5), "i": np.int32(1)})
    before = m.save()
    full = refusal(m, x=np.float32(6), i=np.int32(4))
    assert (full.status, full.variable, full.index, full.bound) == ("OIC_ERR_CACHE_FULL", "K.t", 4, 3)
    assert m.save() == before
    assert refusal(m, "wipe", i=np.int32(-1)).status == "OIC_ERR_INDEX"
    assert m.save() == before and m.fetch_state("K").tolist() == [5, 5]


def test_reserved_tables_cost_what_is_used() -> None:
    m = machine(FAILS_LATE.replace("table(t:4)", "table(t:1073741824~)"))
    m.step("entry", {"x": np.float32(5), "i": np.int32(1 << 20)})
    assert m.fetch_state("K").shape == ((1 << 20) + 1,) and len(m.save()) < 2000


# ------------------------------------------------------------- later stages

INDEXED = """module "m" {stage="indexed"}
extents { N <= 4 }
%K = state {symbol="K", type=state<i4[3]; table(l:2!, t:4)>, init=-1} : state<i4[3]; table(l:2!, t:4)>
%K_t = state {symbol="K.t", type=state<i64>, init=0} : state<i64>
func {symbol="entry", inputs=["v"], outputs=["r"], pinned={}} body(%v: i4[N, 3]) {
  %1 = index.const {value=1} : index
  %at = state.get(%K_t) : index
  %n = index.size {size=N} : index
  %to = index.add(%at, %n) : index
  check.range(%to) {low=0, high=4, below="OIC_ERR_INDEX", above="OIC_ERR_CACHE_FULL", variable="K.t"}
  %r = state.load(%K, [%1, %at]) {lengths=[none, N, 3]} : i4[N, 3]
  state.store(%K, [%1, %at], %v) {lengths=[none, N, 3]}
  state.set(%K_t, %to)
  return([%r])
}
func {symbol="wipe", inputs=[], outputs=[], pinned={}} body() {
  %1 = index.const {value=1} : index
  %0 = index.const {value=0} : index
  %at = state.get(%K_t) : index
  state.fill(%K, [%1]) {lengths=[1, %at, 3], value=-1}
  state.set(%K_t, %0)
  state.add(%K_t, %1, [])
  return([])
}
"""


def test_boxes_of_packed_state_are_copies_in_indexed() -> None:
    m = Machine(parse_module(INDEXED))
    v = np.array([[1, 2, 3], [4, 5, -8]], m.fetch_state("K").dtype)
    out = m.step("entry", {"v": v})
    assert out["r"].astype(int).tolist() == [[-1] * 3] * 2
    assert m.fetch_state("K").astype(int).tolist() == [[[-1] * 3] * 2, [[1, 2, 3], [4, 5, -8]]]
    saved = m.save()
    m.step("entry", {"v": v[::-1]})
    assert m.fetch_state("K").astype(int)[1, 2].tolist() == [4, 5, -8]
    assert refusal(m, v=v).status == "OIC_ERR_CACHE_FULL"
    m.load(saved)
    assert m.fetch_state("K").shape == (2, 2, 3)
    m.step("wipe", {})
    assert m.fetch_state("K").astype(int).tolist() == [[[-1] * 3], [[-1] * 3]]
    m.reset()
    assert m.fetch_state("K").shape == (2, 0, 3)


def test_after_an_effect_a_refusal_ends_the_session() -> None:
    late = INDEXED.replace("  %r = state.load", "  state.set(%K_t, %to)\n  %r = state.load", 1)
    check = next(line for line in late.splitlines() if "check.range" in line)
    late = late.replace(check + "\n", "").replace("  return([%r])", check + "\n  return([%r])", 1)
    m = Machine(parse_module(late))
    v = np.zeros((3, 3), m.fetch_state("K").dtype)
    m.step("entry", {"v": v})
    with pytest.raises((StepError, AssertionError)):
        m.step("entry", {"v": v})
    assert refusal(m, "wipe").status == "OIC_ERR_STATE"
    m.reset()
    m.step("entry", {"v": v})


PLANNED = """module "m" {stage="planned"}
extents { N <= 4 }
plan {
  state 64
  weights 128
  arena "entry" 64
  buffer "K" in state+0 size 8 align 1 live 0 to 0 line 0 function ""
  buffer "w" in weights+64 size 24 align 1 live 0 to 0 line 0 function ""
  buffer "h" in arena+0 size 32 align 1 live 0 to 9 line 0 function "entry"
  buffer "p" in arena+32 size 8 align 1 live 0 to 9 line 0 function "entry"
  buffer "y" in output+0 size 32 align 1 live 0 to 9 line 0 function "entry"
  buffer "q" in output+0 size 8 align 1 live 0 to 9 line 0 function "entry"
}
%w = constant {symbol="w", type=f32[3, 2]} : f32[3, 2] in weights+64 "w"
%K = state {symbol="K", type=state<f32[2]>, init=1.0} : state<f32[2]>
func {symbol="entry", inputs=["x", "c"], outputs=["y", "q"], pinned={}}
   body(%x: f32[N, 2] in input+0 "x", %c: i4[N, 2] in input+0 "c") {
  %1 = index.const {value=1} : index
  %k = state.load(%K, []) {lengths=[2]} : f32[2] in state "K"
  %r = constant.select(%w, [%1]) : f32[2] in weights "w"
  %h = mul(%x, %r) : f32[N, 2] in arena+0 "h"
  %t = transpose(%h) {perm=[1, 0]} : f32[2, N] in arena "h" strides(1, 2)
  %b = broadcast_to(%k) {shape=[N, 2]} : f32[N, 2] in state "K" strides(0, 1)
  %two = splat {value=2.0, type=f32} : f32 in local ""
  %u = transpose(%t) {perm=[1, 0]} : f32[N, 2] in arena "h"
  %v = mul(%u, %two) : f32[N, 2] in arena+0 "h"
  %y = add(%v, %b) : f32[N, 2] in output+0 "y"
  %s = transpose(%c) {perm=[1, 0]} : i4[2, N] in input "c" strides(1, 2)
  %p = add(%s, %s) : i4[2, N] in arena+32 "p"
  %q = copy(%p) : i4[2, N] in output+0 "q"
  state.store(%K, [], %r) {lengths=[2]}
  return([%y, %q])
}
"""
W = np.array([[1, 2], [3, 4], [5, 6]], np.float32)


def test_planned_values_lie_in_memory() -> None:
    m = Machine(parse_module(PLANNED, {"w": W}))
    x = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    c = np.arange(-3, 3).reshape(3, 2)
    given = {"x": x, "c": c.astype(ml_dtypes.int4)}
    first = m.step("entry", given)
    assert np.array_equal(first["y"], x * W[1] * 2 + 1)
    assert np.array_equal(first["q"].astype(int), (2 * c).T)
    second = m.step("entry", given)
    assert np.array_equal(second["y"], x * W[1] * 2 + W[1])
    assert np.array_equal(m.fork().fetch_state("K"), W[1])


def test_a_wrong_alias_gives_a_wrong_answer() -> None:
    """Another sum is computed over `h` while it is needed."""
    other = '%g = add(%k, %k) : f32[2] in arena+0 "h"\n  %v = mul(%u, %two)'
    wrong = PLANNED.replace("%v = mul(%u, %two)", other)
    x = np.array([[1, 2], [3, 4]], np.float32)
    given = {"x": x, "c": np.zeros((2, 2), ml_dtypes.int4)}
    out = Machine(parse_module(wrong, {"w": W})).step("entry", given)
    assert not np.array_equal(out["y"], x * W[1] * 2 + 1)


def test_memory_outside_its_space_is_an_error() -> None:
    packed = PLANNED.replace('i4[2, N] in arena+32 "p"', 'i4[2, N] in arena+64 "p"')
    whole = PLANNED.replace("%two) : f32[N, 2] in arena+0", "%two) : f32[N, 2] in arena+48")
    given = {"x": np.ones((4, 2), np.float32), "c": np.zeros((4, 2), ml_dtypes.int4)}
    for text in (packed, whole):
        with pytest.raises((IndexError, TypeError, ValueError)):
            Machine(parse_module(text, {"w": W})).step("entry", given)


def test_large_memory_comes_from_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of Windows, which has one kind and no name for it."""
    for name in ("", "MAP_PRIVATE", "MAP_ANONYMOUS"):
        monkeypatch.delattr(mmap, name, raising=False)
        memory = zeros(LARGE)
        memory[-1] = 1
        assert memory.nbytes == LARGE and not memory[:-1].any()
