"""What is said of names from other frameworks: every statement shown is compiled."""

from __future__ import annotations

import re

import pytest

from oic.check.operator_names import operator_hint, plain, setting_hint, statements, tables
from oic.check.source import parse
from oic.diagnostics import OicError
from oic.driver import Settings, compile_graph
from oic.operators import catalog
from oic.operators.base import by_name, in_source, positional, settings
from oic.syntax.habits import INFIX, SECTIONS
from oic.syntax.recover import SECTIONS as KNOWN_SECTIONS

TABLE, SETTINGS = tables()

PRELUDE = """
dynamic {
  x: f32[4, 6]; a: f32[4, 6]; b: f32[4, 6]; m: f32[6, 5]; c: bool[4, 6]; i: i32[4, 1]; n: i32; ids: i32[3];
  image: f32[1, 3, 8, 8]; signal: f32[1, 3, 16]; h: f32[4, 8]; c0: f32[4, 8]; logits: f32[10]; u0: f32;
  q: f32[4, 2, 8]; keys: f32[5, 2, 8]; values: f32[5, 2, 8]; codes: i8[4, 6];
}
constant {
  w: f32[8, 6]; bias: f32[8]; u: f32[8, 8]; table: f32[10, 6]; gamma: f32[6]; beta: f32[6]; one: f32; half: f32; sixth: f32;
  filters: f32[5, 3, 3, 3]; depthwise: f32[3, 1, 3, 3]; transposed: f32[3, 5, 2, 2]; kernel: f32[5, 3, 3];
  adjoint: f32[3, 5, 2]; scale: f32[3]; shift: f32[3]; mean: f32[3]; variance: f32[3]; unit: f32;
  w_ih: f32[24, 6]; w_hh: f32[24, 8]; b_ih: f32[24]; b_hh: f32[24];
  v_ih: f32[32, 6]; v_hh: f32[32, 8]; d_ih: f32[32]; d_hh: f32[32];
}
volatile {
  t: f32[4, 6]; t2: f32[4, 6]; p: f32[?, ?]; g: f32[?, ?]; a1: f32[1, 4, 6]; b1: f32[1, 4, 6]; k: i32[10]; i2: i32[4, 1];
  n0: bool[4, 6]; s: f32[4, 1]; r: f32[4]; flags: u8[4, 6]; rows: f32[1, 3, 16, 8]; h1: f32[4, 8]; h2: f32[4, 8];
  c1: f32[4, 8]; k46: i32[4, 6];
}
persistent { K(t): f32[4, 6] @table @fixed(t=8); }
"""
NAMED = ["squeeze", "unsqueeze", "view", "permute", "flatten", "GRU", "LSTM", "Gemm", "Dense", "embedding", "leaky_relu", "BatchNormalization", "MatMul", "Relu6", "hardswish", "elu", "einsum", "stack", "chunk", "expand", "masked_fill", "clip", "ReduceMean", "Conv", "MaxPool", "scaled_dot_product_attention"]


ROUNDS = 3  # of finding out a result's rank and sizes, then its dtype


def test_statements_compile() -> None:
    """Every row in one graph; results have the type that the compiler says they need."""
    types = ["f32"] * len(TABLE)
    for _ in range(ROUNDS):
        results = " ".join(f"y{n}: {type_};" for n, type_ in enumerate(types))
        rows = "\n".join(
            re.sub(r"\by\b", f"y{n}", found) for n, found in enumerate(TABLE.values())
        )
        text = f"{PRELUDE} volatile {{ {results} }} block entry {{ {rows} return; }}"
        try:
            compile_graph(parse(text, "foreign.oi"), None, Settings())
            return
        except OicError as error:
            left = [d for d in error.diagnostics if d.severity == "error"]
        for wrong in left:
            found = re.fullmatch(r"'y(\d+)' is .*, the value is (\w+)(\[.*\])?", wrong.message)
            assert found, wrong.render()
            number, shape = int(found[1]), found[3] or types[int(found[1])].lstrip("abcdefghiu0123456789")
            types[number] = found[2] + shape
    pytest.fail("\n".join(wrong.render() for wrong in left))


def test_table() -> None:
    """No name twice, none an operator's own, and enough of them."""
    names = [name for row in TABLE for name in row]
    assert len(names) == len({plain(name) for name in names}) == len(statements()) > 200
    assert not set(names) & set(catalog())


@pytest.mark.parametrize("name", NAMED)
def test_names_of_frameworks(name: str) -> None:
    hint = operator_hint(name)
    assert hint is not None and (hint.startswith(("here ", "did you mean")))
    for target in re.findall(r"op (\w+)\(", hint):
        assert target in catalog()


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("argmax", "argmax_axis"), ("sum", "sum_axis"), ("rleu", "relu"), ("Conv2D", "conv2d"),
        ("MatMul", "matmul"), ("mean", "mean_axis"), ("LayerNorm", "layer_norm"), ("maxpool", "max_pool"),
    ],
)  # fmt: skip
def test_near_names(name: str, wanted: str) -> None:
    assert wanted in (operator_hint(name) or "")
    assert "argmin" not in (operator_hint(name) or "")


def test_a_slip_in_a_framework_name() -> None:
    assert operator_hint("sqeeze") == "here 'squeeze' is 'op reshape(x, shape=[-1, 6]) >> y;'"
    assert operator_hint("xyzzy") is None


def test_settings() -> None:
    """Every setting that is hinted at exists, and near names win where others' names do not apply."""
    classes = catalog().values()
    every = {n for c in classes for n in settings(c)}
    every |= {in_source(c, n) for c in classes for n in [*by_name(c), *positional(c)]}
    assert {other for others in SETTINGS.values() for other in others} <= every
    assert setting_hint("dim", ["axis"]) == "did you mean 'axis'?"
    assert setting_hint("dim", ["axes", "keepdims"]) == "did you mean 'axes'?"
    assert setting_hint("axsi", ["axis"]) == "did you mean 'axis'?"
    assert setting_hint("zzz", ["axis"]) == "it has axis"
    assert setting_hint("zzz", []) is None


def test_other_tables() -> None:
    assert set(INFIX.values()) <= set(catalog())
    assert set(SECTIONS.values()) <= set(KNOWN_SECTIONS)
