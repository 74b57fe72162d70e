"""Operators that are lowered to others: what these compute is what `expanded` says that the operator means."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import oic
from oic import dtypes
from oic.ir.core import Block, Value
from oic.ir.types import TensorType
from oic.operators.attention import Attn
from oic.operators.base import Operator
from oic.operators.recurrent import GruCell, LstmCell
from tests.fuzz import expanded

SOURCE = """graph cell {{
  dynamic {{ x: {t}[3, 5]; h: {t}[3, 4]; c: {t}[3, 4]; w: {t}[{n}, 5]; u: {t}[{n}, 4]; b: {t}[{n}]; d: {t}[{n}]; }}
  volatile {{ y: {t}[3, 4]; e: {t}[3, 4]; }}
  block entry {{ {body} return; }}
}}"""
CASES = (
    (GruCell, "op gru_cell(x, h, w, u, b, d, {}) >> y; transfer c >> e;", {"order": "rzn"}),
    (GruCell, "op gru_cell(x, h, w, u, b, d, {}) >> y; transfer c >> e;", {"order": "nzr", "reset_after": False}),
    (LstmCell, "op lstm_cell(x, h, c, w, u, b, d, {}) >> y, e;", {"order": "ofig"}),
)


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16"])
@pytest.mark.parametrize(("cls", "body", "settings"), CASES)
def test_cells_are_what_their_reference_says(cls: type[Operator], body: str, settings: dict[str, Any], dtype: str) -> None:
    written = ", ".join(f"{k}={json.dumps(v)}" for k, v in settings.items())
    rng = np.random.default_rng(3)
    count = 4 * len(cls.gates)  # type: ignore[attr-defined]
    kind = {"f32": np.float32, "f64": np.float64, "f16": np.float16}[dtype]
    shapes = {"x": (3, 5), "h": (3, 4), "c": (3, 4), "w": (count, 5), "u": (count, 4), "b": (count,), "d": (count,)}
    given = {name: rng.standard_normal(shape).astype(kind) for name, shape in shapes.items()}
    text = SOURCE.format(t=dtype, n=count, body=body.format(written))
    with oic.Simulator(oic.parse(text, name="cell")).make_executor() as executor:
        found = executor.step(**given)
    names = ["x", "h", *(["c"] if cls is LstmCell else []), "w", "u", "b", "d"]
    types = (TensorType(dtypes.ALL[dtype], shapes[name]) for name in names)
    operands = [name for name, spec in cls.fields.items() if spec.kind == "operand"]
    op = cls(**dict(zip(operands, (Value(type_, Block()) for type_ in types))), **settings)
    wide = [given[name].astype(np.float64) for name in names]
    expected = expanded.reference(op, *wide)
    for name, y in zip("ye", expected if isinstance(expected, list) else [expected]):
        assert (np.abs(found[name] - y) <= expanded.tolerance(op, y, *wide)).all()


FLOATS = ("f8", "f16", "bf16", "f32", "f64")
TAKEN = [  # of h, of keys and values, of w
    (h, k, w) for h in FLOATS for k in FLOATS for w in FLOATS
    if (w == h or dtypes.ALL[w].bits < dtypes.ALL[h].bits) and (k != "f64" or h == "f64")
]  # fmt: skip


@pytest.mark.parametrize(("h", "k", "w"), TAKEN)
def test_attn_is_what_its_reference_says(h: str, k: str, w: str) -> None:
    """Every pair of dtypes in every place, one key and many."""
    rng = np.random.default_rng(5)
    for keys in ("9, 2", "2"):
        text = f"""graph page {{
          dynamic {{ h: {h}[3, 6]; k: {k}[{keys}, 4]; v: {k}[{keys}, 3]; w: {w}[6, 16]; }}
          volatile {{ y: {h}[3, 12]; }}
          block entry {{ op attn(h, k, v, w) >> y; return; }}
        }}"""
        executor = oic.Simulator(oic.parse(text, name="page")).make_executor()
        types = executor.interface.entries["entry"].inputs
        given = {n: rng.standard_normal(t.maximum).astype(t.dtype.np) for n, t in types.items()}
        op = Attn(*(Value(types[name], Block()) for name in "hkvw"))
        wide = [given[name].astype(np.float64) for name in "hkvw"]
        expected = expanded.reference(op, *wide)
        found = executor.step(**given)["y"].astype(np.float64)
        assert (np.abs(found - expected) <= expanded.tolerance(op, expected, *wide)).all()


def test_a_cell_is_one_statement_of_a_trace() -> None:
    """Whatever it was lowered to, fused, and computed in the state."""
    text = """graph cell {
      dynamic { x: f32[5]; w: f32[16, 5]; u: f32[16, 4]; b: f32[16]; }
      persistent { h: f32[4] @init(0.0); c: f32[4] @init(0.0); }
      block entry {
        assign s: f32[4]; assign t: f32[4];
        cache.read h >> s; cache.read c >> t;
        op lstm_cell(x, s, t, w, u, b, b) >> s, t;
        cache.write s >> h; cache.write t >> c;
        return;
      }
    }"""
    given = {"x": np.ones(5, np.float32), "w": np.ones((16, 5), np.float32), "u": np.ones((16, 4), np.float32),
             "b": np.ones(16, np.float32)}  # fmt: skip
    graph = oic.parse(text, name="cell")
    for maker in (oic.Simulator(graph), oic.Synthesizer(graph).build()):
        with maker.make_executor() as executor:
            executor.step(**given)
            found = [r for r in executor.trace() if r.operator == "lstm_cell"]
            written = [r for r in executor.trace() if r.operator == "cache.write"]
        assert [(set(r.operands), set(r.result.split(", "))) for r in found] == [({"x", "s", "t", "w", "u", "b"}, {"s", "t"})]
        assert len(written) == 2
