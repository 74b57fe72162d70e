"""The text form: printed, parsed and printed again it is the same, at every stage."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oic.operators  # noqa: F401  (registers the ops)
from oic import dtypes
from oic.diagnostics import OicError, Source, Span
from oic.ir import dims
from oic.ir.control import Barrier
from oic.ir.dims import Dim, Extent
from oic.ir.module import Module
from oic.ir.state import Splat
from oic.ir.text_mlir import print_mlir
from oic.ir.text_parse import parse_module
from oic.ir.text_print import print_module
from oic.ir.types import INDEX, StateIndex, StateType, TensorType

GRAPH = """module "decode" {stage="graph", source="decode.oi"}
extents { N <= 512, n5 <= 16 }
%K = state {symbol="K", type=state<f16[4]; table(l:2!, t:16)>, init=0.5} : state<f16[4]; table(l:2!, t:16)> loc(3:5+9)
%W = constant {symbol="W", type=f32[4, 4]} : f32[4, 4]

func {symbol="entry", inputs=["x"], outputs=["y", "k"], pinned={"M": 1}} body(%x: f32[N, 4]) {
  %0 = index.const {value=0} : index
  %c = cache.count(%K, []) {axis=1} : index loc(12:5+27)
  extent.bind(%c) {extent=@n5, below="OIC_ERR_INDEX", above="OIC_ERR_CACHE_FULL", variable="K"}
  %k = cache.read(%K, [%0, %0, %c]) {form="is", type=f16[n5, 4]} : f16[n5, 4] loc(13:5+8)
  %n = index.size {size=2*N + N*n5 + 3} : index
  %y = for(%0, %n, [%x]) {tag="layers"} body(%j: index, %a: f32[N, 4]) {
    %m = matmul(%a, %W) : f32[N, 4]
    yield([%m])
  } : f32[N, 4] loc(14:5+40)
  %1 = index.test(%n, %0) : bool
  %y_1 = if(%1) {types=[f32[N, 4]]} then() {
    yield([%y])
  } orelse() {
    %y_2 = copy(%y) {reason="one value in two places"} : f32[N, 4]
    yield([%y_2])
  } : f32[N, 4]
  return([%y_1, %k])
}
"""

INDEXED = """module "count" {stage="indexed"}
extents { N <= 8 }
%K = state {symbol="K", type=state<i4[3]; table(t:8~); ring>, init=-1} : state<i4[3]; table(t:8~); ring>
%K_t = state {symbol="K.t", type=state<i64>, init=0} : state<i64>

func {symbol="entry", inputs=["v"], outputs=["r"], pinned={}} body(%v: i4[N, 3]) {
  %at = state.get(%K_t) : index
  %n = index.size {size=N} : index
  check.range(%at) {low=0, high=%n, below="OIC_ERR_INDEX", above="OIC_ERR_CACHE_FULL", variable="K.t"}
  state.store(%K, [%at], %v) {lengths=[N, 3]}
  state.fill(%K, []) {lengths=[%n, 3], value=0}
  %r = state.load(%K, [%at]) {lengths=[none, 3]} : i4[3]
  return([%r])
}
"""

PLANNED = """module "add" {stage="planned", source="add.oi"}
extents { N <= 4 }
plan {
  state 8
  weights 128
  arena "entry" 64
  lower_bound "entry" 64
  buffer "w" in weights+64 size 16 align 64 live 0 to 0 line 0 function ""
  buffer "h" in arena+0 size 16 align 64 live 1 to 5 line 7 function "entry" because "a value of its own"
  buffer "y" in output+0 size 16 align 64 live 2 to 5 line 8 function "entry"
}
%w = constant {symbol="w", type=f32[4]} : f32[4] in weights+64 "w"

func {symbol="entry", inputs=["x"], outputs=["y"], pinned={}} body(%x: f32[N] in input+0 "x") {
  %h = mul(%x, %x) : f32[N] in arena+0 "h" because "a value of its own" loc(7:3+20)
  %v = reshape(%h) {shape=[1, N]} : f32[1, N] in arena "h" strides(0, 1) because "a view of 'h'"
  %y = mul(%v, %v) : f32[1, N] in output+0 "y" loc(8:3+20)
  return([%y])
}
"""


@pytest.mark.parametrize("text", [GRAPH, INDEXED, PLANNED], ids=["graph", "indexed", "planned"])
def test_every_stage_prints_as_it_was_read(text: str) -> None:
    module = parse_module(text)
    assert print_module(module) == text
    assert print_module(module.clone()) == text


def test_locations_point_into_the_source_when_it_is_given() -> None:
    source = Source(
        "add.oi", "\n".join(f"line {n} of the source, long enough" for n in range(1, 20))
    )
    module = parse_module(PLANNED, source=source)
    op = module.function("entry").body.ops[0]
    assert op.span is not None and op.span.text == "ne 7 of the source, "
    assert print_module(module) == PLANNED
    with pytest.raises(OicError, match="no such place"):
        parse_module(PLANNED, source=Source("add.oi", "short"))


def test_locations_without_a_source_keep_line_and_column() -> None:
    op = parse_module(PLANNED).function("entry").body.ops[0]
    assert op.span is not None
    assert str(op.span) == "add.oi:7:3" and op.span.end - op.span.start == 20


def test_equal_hints_are_made_unique_in_each_function() -> None:
    text = GRAPH.replace("%y_1", "%z").replace("%y_2", "%w")
    module = parse_module(text)
    for op in module.all_ops():
        for value in op.results:
            value.hint = "a b"
    printed = print_module(module)
    assert "%a_b = " in printed and "%a_b_1 = " in printed
    assert print_module(parse_module(printed)) == printed


def test_mlir_names_every_op_in_its_generic_form() -> None:
    text = print_mlir(parse_module(GRAPH))
    assert '"oic.matmul"(%a, %W)' in text
    assert 'tensor<?x4xf32, #oic.shape<"N, 4">>' in text
    assert text.count("{") == text.count("}") and text.count("(") == text.count(")")


def test_the_text_shows_attributes_and_ops() -> None:
    before, after = parse_module(GRAPH), parse_module(GRAPH)
    after.function("entry").body.ops[0].value = 1
    assert print_module(before) != print_module(after)


# -------------------------------------------------------------- attributes

names = st.sampled_from(["N", "n5", "pos", "inf", "f32", "none", "K.t", "with space"])
extents = {n: Extent(n, 7 + i) for i, n in enumerate(["N", "n5", "pos", "inf", "f32", "none"])}
extents |= {"K.t": Extent("K.t", 3), "with space": Extent("with space", 5)}


def _sums(inner: st.SearchStrategy[Dim]) -> st.SearchStrategy[Dim]:
    return st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: a - b, inner, inner),
        st.builds(lambda a, b: a * b, inner, inner),
        st.builds(lambda a, b: a // b, inner, st.integers(1, 5)),
    )


atoms = st.one_of(st.integers(-9, 99), names.map(lambda n: dims.of(extents[n])))
sizes = st.recursive(atoms, _sums, max_leaves=6)
tensors = st.builds(
    TensorType, st.sampled_from(list(dtypes.ALL.values())), st.lists(sizes, max_size=3).map(tuple)
)
indices = st.builds(StateIndex, st.sampled_from("ltr"), st.integers(1, 99), st.booleans())
states = st.builds(
    lambda d, table, ring: StateType(d, (2, 3), tuple(table), (), ring),
    st.sampled_from(list(dtypes.ALL.values())),
    st.lists(indices, max_size=2),
    st.booleans(),
)
literals = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 70), 1 << 70),
    st.floats(),
    st.text(),
    st.sampled_from(list(dtypes.ALL.values())),
    names.map(lambda n: extents[n]),
    sizes,
    tensors,
    states,
    st.just(INDEX),
)
attributes = st.recursive(
    literals,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=5), inner, max_size=3),
    ),
    max_leaves=8,
)


def same(a: Any, b: Any) -> bool:
    """Equal in value and kind; nan is nan and -0.0 is not 0.0."""
    if isinstance(a, float) and isinstance(b, float):
        return repr(a) == repr(b)
    if isinstance(a, (list, tuple)) and type(a) is type(b):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    return type(a) is type(b) and a == b


@given(attributes)
@settings(deadline=None)
def test_any_attribute_is_read_back(value: Any) -> None:
    module = Module("m")
    module.top.append(Splat(value, TensorType(dtypes.f32)))
    text = print_module(module)
    back = parse_module(text)
    (splat,) = back.top.ops
    assert isinstance(splat, Splat) and same(splat.value, value)
    assert print_module(back) == text


def test_numpy_numbers_print_as_numbers() -> None:
    module = Module("m")
    module.top.append(Splat([np.float32(0.5), np.int64(3), np.bool_(True)], TensorType(dtypes.f32)))
    assert "value=[0.5, 3, true]" in print_module(module)


def test_values_without_hints_are_numbered() -> None:
    module = Module("m")
    for hint in ("", "7", "h"):
        module.top.append(Splat(math.inf, TensorType(dtypes.f32), hint=hint))
    assert [line.split(" ")[0] for line in print_module(module).splitlines()[1:]] == [
        "%0",
        "%1",
        "%h",
    ]


def test_an_op_without_anything_is_a_name() -> None:
    module = Module("m")
    source = Source("a.oi", "barrier;")
    module.source = source
    module.top.append(Barrier(span=Span(source, 0, 8)))
    assert print_module(module).splitlines()[1] == "barrier loc(1:1+8)"


# ------------------------------------------------------------------ errors

WRONG = [
    ("", "ir-syntax", "expected 'module'"),
    ('module "a" {stage="none"}', "ir-name", "no stage"),
    (GRAPH.replace("cache.count(%K", "cache.count(%KK"), "ir-name", "did you mean '%K'?"),
    (GRAPH.replace("= matmul", "= matmull"), "ir-name", "did you mean 'matmul'?"),
    (GRAPH.replace("axis=1", "axes=1"), "ir-name", "did you mean 'axis'?"),
    (GRAPH.replace("axis=1", "axis=1, axis=1"), "ir-syntax", "given twice"),
    (GRAPH.replace("%m = matmul", "%a = matmul"), "ir-name", "defined twice"),
    (GRAPH.replace("%W) : f32[N, 4]", "%W) : f32[N, 5]"), "ir-type", "is written"),
    (GRAPH.replace("%W) : f32[N, 4]", "%W) : f33[N, 4]"), "ir-name", "not a type"),
    (GRAPH.replace("%0 = index", "%0, %9 = index"), "ir-type", "1 results, not 2"),
    (GRAPH.replace("%x: f32[N, 4]", "%x: f32[M, 4]"), "ir-name", "not declared"),
    (GRAPH.replace("n5 <= 16", "N <= 16"), "ir-name", "declared twice"),
    (GRAPH.replace("[%0, %0, %c]", "[%0, %j, %c]"), "ir-name", "not defined here"),
    (GRAPH.replace('symbol="W"', "symbol='W'"), "ir-syntax", "no meaning"),
    (GRAPH.replace("loc(12:5+27)", "loc(12:5-27)"), "ir-syntax", "expected '+'"),
    (GRAPH.replace("2*N", "N//0", 1), "ir-syntax", "never positive"),
    (GRAPH.replace("value=0", "value=" + "9" * 5000), "ir-syntax", "too long"),
    (GRAPH.replace("value=0", "value=" + "[" * 500), "ir-syntax", "nested"),
    (GRAPH.replace("value=0", "value=" + "(" * 500), "ir-syntax", "nested"),
    (GRAPH.replace("type=f16[n5, 4]", "type=3"), "ir-type", "cache.read"),
    (GRAPH.replace("%W) : f32", "%W) {transpose_b=3} : f32"), "op-setting", "transpose_b of matmul is true or false, not 3"),
    (GRAPH.replace("%W) : f32", "%W) {acc=3} : f32"), "op-setting", "acc of matmul is an element type, not 3"),
    (PLANNED.replace('in arena+0 "h" bec', 'in attic+0 "h" bec'), "ir-name", "not a space"),
    (PLANNED.replace("state 8", "stat 8"), "ir-syntax", "memory map"),
    (PLANNED.replace("state 8", "state 8 state 9"), "ir-syntax", "'state' is given twice"),
    ('module "a" {stage="graph", stage="graph"}', "ir-syntax", "'stage' is given twice"),
    (GRAPH.replace("value=0", 'value={"a": 1, "a": 1}'), "ir-syntax", "'a' is given twice"),
    (GRAPH.replace("value=0", "value=(1,,)"), "ir-syntax", "found ','"),
    (GRAPH.replace("table(l:2!, t:16)", "table(l:2!, t:16); table(t:9)"), "ir-syntax", "found 'table'"),
]


@pytest.mark.parametrize(("text", "slug", "message"), WRONG)
def test_mistakes_are_diagnostics(text: str, slug: str, message: str) -> None:
    with pytest.raises(OicError) as refused:
        parse_module(text)
    (diagnostic,) = refused.value.diagnostics
    assert diagnostic.slug == slug and message in str(refused.value)
    assert diagnostic.span is not None


@given(st.data())
@settings(deadline=None)  # the first one waits for the tables of the grammar
def test_no_text_breaks_the_parser(data: st.DataObject) -> None:
    """Pieces cut out, doubled or exchanged give a module or an OicError, nothing else."""
    text = data.draw(st.sampled_from([GRAPH, INDEXED, PLANNED]))
    for _ in range(data.draw(st.integers(1, 3))):
        a = data.draw(st.integers(0, len(text)))
        b = data.draw(st.integers(a, min(len(text), a + 30)))
        piece = data.draw(
            st.sampled_from(["", "%", "(", "]", "0", "-", "f32", "nan", text[a:b] * 2])
        )
        text = text[:a] + piece + text[b:]
    try:
        module = parse_module(text)
    except OicError:
        return
    assert print_module(parse_module(print_module(module))) == print_module(module)
