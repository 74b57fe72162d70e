"""Positions that are found as a product computes what they are of are those of a product that stores it."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

import oic
from oic.dtypes import Array
from oic.ir.module import Module
from oic.memory.verify import verify
from oic.operators.fused import Fused
from processor import AVX2, features
from runtime.native import EMULATED
from tests.fuzz.sanitized import SANITIZED, SanitizedExecutor, build_sanitized
from tests.fuzz.watched import WatchedMachine

ROWS = 130  # more than are quantised, or rounded, at a time
# Columns: of one panel, of three that are not full, of a stream, several and some more; where NaN and infinities are in what is added.
CASES = (
    (16, "argmax_axis", "axis=-1", {}),
    (47, "argmin_axis", "axis=1", {0: np.nan}),
    (64, "argmax_axis", "axis=1, select_first=false", {63: np.nan, 7: -np.inf}),
    (1000, "argmin_axis", "axis=-1, keepdims=true, select_first=false", {1: np.nan, 990: -np.inf, 3: -np.inf}),
    (1000, "argmax_axis", "axis=1", {999: np.nan}),
    (2051, "argmax_axis", "axis=1, keepdims=true", {}),
    (2051, "argmax_axis", "axis=1, select_first=false", {c: -np.inf for c in range(2051)}),
)


def given(cases: tuple[tuple[int, str, str, dict[int, float]], ...] = CASES) -> tuple[oic.Graph, oic.Model]:
    """Every case with products that go nowhere else, and of equal rows, p, with such as are outputs too: y and z, of t."""
    rng = np.random.default_rng(5)
    body = outputs = ""
    tensors: dict[str, Array] = {}
    for i, (n, name, settings, odd) in enumerate(cases):
        rows = rng.standard_normal((7, 70))[rng.integers(0, 7, n)]  # equal ones have equal results
        tensors |= {f"w{i}": rows.astype(np.float32), f"b{i}": np.zeros(n, np.float32)}
        for column, value in odd.items():
            tensors[f"b{i}"][column] = value
        to = "i64[N, 1]" if "keepdims" in settings else "i64[N]"
        outputs += f"y{i}: {to}; z{i}: {to}; t{i}: f32[N, {n}]; "
        body += f"assign s{i}: f32[N, {n}]; op linear(x, w{i}, b=b{i}) >> s{i}; op {name}(s{i}, {settings}) >> y{i};\n"
        body += f"op linear(p, w{i}, b=b{i}) >> t{i}; op {name}(t{i}, {settings}) >> z{i};\n"
    declared = "".join(f"{k}: f32[{', '.join(map(str, v.shape))}]; " for k, v in tensors.items())
    text = f"""graph g {{ dynamic {{ x: f32[N, 70] @max(N={ROWS}); p: f32[N, 70]; }} constant {{ {declared} }}
      volatile {{ {outputs} }} block entry {{ {body} return; }} }}"""
    return oic.parse(text, name="g"), oic.Model(tensors=tensors)


def inputs(rows: int) -> Array:
    """Rows of which one is zero, and gives what is added alone; one has a NaN, one an infinity."""
    x = np.random.default_rng(rows).standard_normal((rows, 70)).astype(np.float32)
    x[1:2], x[3:4, 5], x[4:5, 6] = 0, np.nan, np.inf
    return x


def planned(made: oic.Synthesizer) -> Module:
    assert made.program.planned is not None
    return made.program.planned


def choices(module: Module) -> list[Fused]:
    return [op for op in module.all_ops() if isinstance(op, Fused) and op.product is not None and op.choice is not None]


@pytest.mark.parametrize(
    ("storage", "target"),
    [("f32", "host"), ("q8", "host"), ("q4", "host"), ("f32", "portable"), ("q8", "portable"), ("q4", "portable"), ("bf16", "portable")],
)
def test_positions_are_those_of_what_is_stored(storage: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if storage == "bf16":
        if shutil.which("gcc") is None or not set(AVX2) <= features():
            pytest.skip("no gcc, or no AVX2 to emulate upon")
        monkeypatch.setenv("CC", shlex.join(["gcc", *EMULATED]))
    graph, model = given()
    how = {"numerics": "native"} if storage == "bf16" else {}
    made = oic.Synthesizer(graph, model, weights=storage, target=target, threads=7, **how)
    assert len(choices(planned(made))) == len(CASES)
    made.build()
    for threads in (1, 2, 3, 7):
        with made.make_executor(threads) as executor:
            for rows in (0, 1, 2, 5, 33, ROWS):
                x = inputs(rows)
                results = executor.step(x=x, p=x)
                for i in range(len(CASES)):
                    y, z = results[f"y{i}"], results[f"z{i}"]
                    assert y.tobytes() == z.tobytes(), (CASES[i], rows, threads)


def test_every_stage_means_the_same() -> None:
    graph, model = given()
    made = oic.Synthesizer(graph, model, weights="q8", threads=2)
    verify(planned(made))
    watch, x = WatchedMachine(planned(made)), inputs(9)
    with oic.Simulator(graph, model, weights="q8").make_executor() as reference:
        wanted, found = reference.step(x=x, p=x), watch.step("entry", {"x": x, "p": x})
    assert all(found[name].tobytes() == value.tobytes() for name, value in wanted.items())


@pytest.mark.parametrize("storage", ["f32", "q8", "q4"])
def test_nothing_beyond_the_memory_is_touched(storage: str, tmp_path: Path) -> None:
    graph, model = given(CASES[:4])
    made = oic.Synthesizer(graph, model, weights=storage)
    path = build_sanitized([made.program], tmp_path, SANITIZED)
    with SanitizedExecutor(made.program, path, 0) as executor:
        for rows in (0, 1, 5, 33):
            x = inputs(rows)
            results = executor.step(x=x, p=x)
            assert all(results[f"y{i}"].tobytes() == results[f"z{i}"].tobytes() for i in range(4))


def test_logits_have_no_memory(tmp_path: Path) -> None:
    """Those of rows counted through two axes; the position is stored in the state."""
    text = """graph g { dynamic { x: f32[2, 3, 64]; } constant { w: f32[1000, 64]; } persistent { kept: i64[2, 3]; }
      volatile { y: i64[2, 3]; }
      block entry { assign l: f32[2, 3, 1000]; op linear(x, w) >> l; op argmax_axis(l, axis=-1) >> y;
        cache.write y >> kept; return; } }"""
    w = np.random.default_rng(1).standard_normal((1000, 64)).astype(np.float32)
    made = oic.Synthesizer(oic.parse(text, name="g"), oic.Model(tensors={"w": w}), weights="q8")
    source = " ".join(made.emit(tmp_path).sources[0].read_text(encoding="utf-8").split())
    assert "oic_argmax_axis_of_product_begin(&best);" in source and "oic_argmax_axis_of_product_end(&best);" in source
    assert ".then = oic_argmax_axis_of_product_then, .context = &best}" in source
    plan = planned(made).plan
    assert plan is not None
    assert max(b.nbytes for b in plan.space("arena")) < 2 * 3 * 1000
    x = np.random.default_rng(2).standard_normal((2, 3, 64)).astype(np.float32)
    with made.make_executor() as executor:
        y = executor.step(x=x)["y"]
        assert (y == (x @ w.T).argmax(-1)).all() and (executor.fetch("kept") == y).all()
