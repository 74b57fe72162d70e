"""What is made of constants alone is computed at build, by C: with the bits of inputs, and where it cannot be, it is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oic
from oic import precompute
from oic.ir.state import Constant
from oic.operators.base import Operator
from oic.passes import compute_constants

GRAPH = """
graph g {{
  dynamic  {{ at: i32[1]; x: f32[64]; }}
  constant {{
    w: i8[2048, 64]; s: f32; a: f32[2048]; b: f32[32, 64]; ids: i32[3];
    W(l): f32[2048] @pattern("W.{{l}}"); V(l): f32[64, 32] @pattern("V.{{l}}"); H: f32[8] @init(0.3);
  }}
  volatile {{ y: f32[1, 32]; z: f32[2048]; q: f32[2048]; r: f32[32, 64]; u: f32[32, 32]; e3: f32[3, 64]; m: f32[64, 32]; h: f32[8]; v: f32[64]; }}
  persistent {{ count: i32 @init(0); }}
  block entry {{ {body} return; }}
  block yes {{ op exp(a) >> q; return; }}
  block no {{ op tanh(a) >> q; return; }}
}}
"""
SINES = (
    "assign n: i32[256, 32]; assign f: f32[256, 32]; op iota(shape=[256, 32]) >> n; op cast(n, to=f32) >> f;"
    "op mul(f, 0.01) >> f; op sin(f) >> f; op gather(f, at) >> y;"
)
PARTS = "op matmul(b, V[l]) >> t2; op exp(t2) >> t2; op add(u, t2) >> u;"
COMPUTED = {  # a body, and the shapes of what is computed
    "a table of positions": (SINES, [(256, 32)]),
    "behind a view": ("assign e: f32[2048]; op exp(a) >> e; op tanh(e) >> e; op reshape(e, shape=[32, 64]) >> r;", [(2048,)]),
    "of two, one of which is an output": ("op exp(a) >> q; op tanh(q) >> z;", [(2048,), (2048,)]),
    "gathered": ("assign e: f32[32, 64]; op exp(b) >> e; op gather(e, ids) >> e3;", [(3, 64)]),
    "members": ("loop l (l in 0..2) { op exp(W[l]) >> q; op softplus(q) >> q; }", [(2, 2048)]),
    "members and others": (
        "assign t2: f32[32, 32]; op fill(u, value=0.0) >> u;"
        f"loop l (l in 0..2) {{ {PARTS} }}", [(2, 32, 32)],
    ),
    "one member": ("assign e: f32[64, 32]; op silu(V[1]) >> e; op mul(e, V[0]) >> m;", [(64, 32)]),
    "a splat": ("op exp(H) >> h;", []),
    "one element": ("assign one: f32; op sum_axis(a, axes=[0]) >> one; op mul(x, one) >> v;", [()]),
    "none": ("assign nil: f32[0, 64]; op slice(b, axis=0, start=3, end=3) >> nil; op exp(nil) >> nil; op sum_axis(nil, axes=[0]) >> v;", [(64,)]),
    "in a branch": ("assign c: i32; assign d: bool; cache.read count >> c; op lt(c, 2) >> d; branch d yes no; cache.increment count;", [(2048,), (2048,)]),
}  # fmt: skip
TOO_LARGE = "assign d: f32[2048, 64]; loop l (i in 0..2) { op dequantize(w, s, to=f32) >> d; op linear(x, d) >> z; }"


def _model() -> oic.Model:
    numbers = np.random.default_rng(0)
    data: dict[str, Any] = {"w": numbers.integers(-9, 9, (2048, 64)).astype(np.int8), "s": np.float32(0.1), "ids": np.int32([3, 0, 31])}
    shapes = {"a": (2048,), "b": (32, 64), "W.0": (2048,), "W.1": (2048,), "V.0": (64, 32), "V.1": (64, 32)}
    data |= {name: numbers.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    return oic.Model(tensors=data)


def _made(body: str, **how: Any) -> oic.Synthesizer:
    return oic.Synthesizer(oic.parse(GRAPH.format(body=body), name="g"), _model(), **how)


def _told(made: oic.Synthesizer) -> list[str]:
    found = [d for d in made.warnings if d.slug == "constant-work"]
    assert all(d.span for d in found)
    return [d.message for d in found]


def _steps(made: oic.Synthesizer) -> list[dict[str, bytes]]:
    inputs = {"at": np.int32([7]), "x": np.linspace(-1, 1, 64, dtype=np.float32)}
    with made.make_executor() as executor:
        entry = executor.interface.entry("entry")
        given = {name: inputs[name] for name in entry.inputs}
        return [{k: v.tobytes() for k, v in executor.step(**given).items()} for _ in range(3)]


def _no_compiler(without: pytest.MonkeyPatch) -> None:
    """None for results of constants, and none were computed before; the library itself has one."""
    without.setattr(precompute, "CANDIDATES", ())
    without.setenv("CC", "")
    without.setenv("OIC_CACHE", "off")


@pytest.mark.parametrize("numerics", ["fused", "separate"])
@pytest.mark.parametrize(("body", "shapes"), COMPUTED.values(), ids=COMPUTED)
def test_it_has_the_bits_of_every_step(
    body: str, shapes: list[tuple[int, ...]], numerics: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = _made(body, numerics=numerics)
    constants = [op for op in made.program.planned.constants() if op.symbol.startswith(("made", "folded"))]
    assert [op.type.shape for op in constants] == shapes and _told(made) == []
    left = {op.name for op in made.program.planned.all_ops() if isinstance(op, Operator)}
    assert not left & {"exp", "tanh", "sin", "softplus", "silu", "matmul"}
    with monkeypatch.context() as without:
        _no_compiler(without)
        late = _made(body, numerics=numerics)
        assert not any(op.symbol.startswith("made") for op in late.program.planned.constants())
    assert _steps(made) == _steps(late)


def test_what_is_not_computed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _told(_made(TOO_LARGE)) == ["'dequantize' of constants alone is computed in every step: 131,072 elements"]
    _no_compiler(monkeypatch)
    made = _made(SINES)
    assert _told(made) == ["'sin' of constants alone is computed in every step: 8,192 elements"]
    monkeypatch.undo()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(precompute, "write", full)
    assert _told(_made(SINES)) == _told(made)
    few = _made("op exp(H) >> h;")
    assert _told(few) == []


def test_what_entries_make_alike_is_stored_once() -> None:
    """Members too, in loops of their own; what is made of something else, or in another way, stays apart."""
    shared = "op exp(a) >> q; loop l (l in 0..2) { op neg(W[l]) >> q; op exp(q) >> q; op transpose(b, perm=[1, 0]) >> m; op neg(m) >> m; }"
    other = "op exp(W[0]) >> q; op tanh(a) >> z; op fill(h, value=-0.0) >> h; op add(H, h) >> h;"
    entries = f"block entry {{ branch all; return; }} block two @entry {{ branch all; {other} return; }} block all {{ {shared} return; }}"
    text = GRAPH.replace("block entry {{ {body} return; }}", entries.replace("{", "{{").replace("}", "}}"))
    made = oic.Synthesizer(oic.parse(text.format(), name="g"), _model())
    found = [op.type.shape for op in made.program.planned.constants() if op.symbol.startswith(("made", "folded"))]
    assert sorted(found) == [(2, 2048), (64, 32), (2048,), (2048,), (2048,)]
    with made.make_executor() as executor, oic.Simulator(oic.parse(text.format(), name="g"), _model()).make_executor() as wanted:
        for entry in ("entry", "two"):
            for name, value in wanted.step(entry).items():
                np.testing.assert_allclose(executor.step(entry)[name], value, rtol=1e-6)


@pytest.mark.parametrize(("most", "shapes"), [(3, [(2, 2048), (2048,)]), (2, [(2048,)]), (0, [])])
def test_so_many_results_are_computed(most: int, shapes: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each member of a family has statements of its own: many loops over long families made programs without end."""
    monkeypatch.setattr(compute_constants, "MOST_RESULTS", most)
    made = _made(COMPUTED["members"][0] + "op tanh(a) >> z;")
    assert [op.type.shape for op in made.program.planned.constants() if op.symbol.startswith("made")] == shapes
    assert len(_told(made)) == 2 - len(shapes)


def test_of_what_a_small_result_is_made_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five hundred results of a chain of thousands of ops took seconds."""
    module = _made("op exp(a) >> q; op tanh(q) >> z; op sin(b) >> r;").program.module
    asked: list[list[Any]] = []
    behind = compute_constants._behind
    monkeypatch.setattr(compute_constants, "_behind", lambda ops, made: asked.append(list(ops)) or behind(asked[-1], made))
    compute_constants.compute_constants(module, computer=lambda *_: None)
    assert [[op.name for op in ops] for ops in asked] == [["exp", "tanh", "sin"]], "once, for all that is computed"


def test_it_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "op exp(a) >> q; op sigmoid(q) >> q; op tanh(q) >> q;"
    first = _made(body).program.planned.weights

    def refuse(*_: object) -> None:
        raise AssertionError("it was compiled again")

    monkeypatch.setattr(precompute, "compile_c", refuse)
    again = _made(body).program.planned.weights
    assert np.array_equal(first["made0"], again["made0"])


@pytest.mark.parametrize("left", ["nothing", "a part", "other bytes"])
def test_kept_results_that_are_damaged_are_computed_again(left: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also where size and time are those that the entry has noted; what takes its place is kept."""
    monkeypatch.setenv("OIC_CACHE", str(tmp_path))
    first = _made(SINES).program.planned.weights["made0"]
    (file,) = tmp_path.glob("*/results")
    whole = file.read_bytes()
    assert whole == first.tobytes()
    data = {"nothing": b"", "a part": whole[:1000], "other bytes": bytes([whole[0] ^ 1]) + whole[1:]}[left]
    file.write_bytes(data)
    notes = json.loads((file.parent / "entry.json").read_text())
    stat = file.stat()
    (file.parent / "entry.json").write_text(json.dumps(notes | {"file": [stat.st_size, stat.st_mtime_ns]}))
    assert _made(SINES).program.planned.weights["made0"].tobytes() == whole
    assert file.read_bytes() == whole


def test_another_machines_compiler_leaves_it_to_this_ones(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """CC names one whose libraries cannot be loaded here: the next one is asked."""
    other = tmp_path / "cc-of-another"
    other.write_text("#!/bin/sh\nfor last; do :; done\necho none > /dev/null\nexit 0\n")
    other.chmod(0o755)
    monkeypatch.setenv("OIC_CACHE", "off")
    plain = _made(SINES, target="portable").program.planned.weights["made0"]
    monkeypatch.setenv("CC", str(other))
    crossed = _made(SINES, target="portable").program.planned.weights["made0"]
    assert plain.tobytes() == crossed.tobytes()
    bare = _made(SINES, target="freestanding").program.planned
    assert any(isinstance(op, Constant) and op.symbol == "made0" for op in bare.constants())
