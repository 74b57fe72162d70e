"""Parts of constants in the storage that rules say: what is stored, that compiled code agrees, what sessions fetch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oic
from batch import build_together
from oic.compare.harness import Run, compare
from oic.driver import Program, Settings, compile_graph
from oic.dtypes import Array
from oic.ir.members import StoredElements

GRAPH = """
dynamic  {{ x: f32[N, 96] @max(N=5); h: f32[N, 96]; c: f32[N, 64]; }}
constant {{ w: f32[80, 96]; v(l): f32[80, 96] @pattern("v.{{l}}"); }}
volatile {{ y: f32[?, ?]; z: f32[?, ?]; }}
block entry {{ {entry} return; }}
"""
ROWS = "assign a: f32[50, 96]; assign b: f32[30, 96]; op split(w, axis=0, sizes=[50, 30]) >> a, b;"
COLUMNS = "assign a: f32[80, 64]; assign b: f32[80, 32]; op split(w, axis=1, sizes=[64, 32]) >> a, b;"
SLICE = "assign a: f32[30, 96]; op slice(w, axis=0, start=7, end=37) >> a;"
EARLY = "assign e: f32[N, 32]; op slice(x, axis=1, start=0, end=32) >> e;"
USED = "op linear(x, a) >> y; op linear(h, b) >> z;"
CASES = {
    "rows": (ROWS + USED, {"w.0": (50, 96), "w.1": (30, 96)}, ""),
    "one": (SLICE + "op linear(x, a) >> y; op linear(h, a) >> z;", {"w.0": (30, 96)}, ""),
    "columns": (COLUMNS + EARLY + "op linear(c, a) >> y; op linear(e, b) >> z;", {"w.0": (80, 64), "w.1": (80, 32)}, ""),
    "turned": (ROWS + "assign t: f32[96, 30]; op transpose(b, perm=[1, 0]) >> t; op linear(x, a) >> y; op matmul(h, t) >> z;",
               {"w.0": (50, 96), "w.1": (96, 30)}, ""),
    "rows of columns": ("assign t: f32[96, 80]; assign a: f32[96, 48]; op transpose(w, perm=[1, 0]) >> t;"
                        "op slice(t, axis=1, start=3, end=51) >> a; op matmul(x, a) >> y; op matmul(h, a) >> z;",
                        {"w.0": (96, 48)}, ""),
    "whole and part": (SLICE + "op linear(x, w) >> y; op linear(h, a) >> z;", {"w.0": (80, 96), "w.1": (30, 96)}, ""),
    "parts overlap": (SLICE + "assign b: f32[20, 96]; op slice(w, axis=0, start=20, end=40) >> b;" + USED,
                      {"w.0": (30, 96), "w.1": (20, 96)}, ""),
    "another reads one": (ROWS + "op linear(x, a) >> y; op relu(b) >> z;", {"w.0": (50, 96)}, ""),
    "another reads rows of all": (SLICE + "op linear(x, w) >> y; op relu(a) >> z;", {}, "'relu' reads it"),
    "groups are cut": ("assign a: f32[80, 64]; op slice(w, axis=1, start=8, end=72) >> a;"
                       "op linear(x, w) >> y; op linear(c, a) >> z;", {},
                       "parts of it overlap, and are not of whole groups"),
    "of other groups": (ROWS + "assign t: f32[96, 50]; op transpose(a, perm=[1, 0]) >> t;"
                        "op linear(x, a) >> y; op matmul(h, t) >> z;", {},
                        "parts of it may overlap, and are read in different layouts"),
    "turned, then cut": ("assign t: f32[96, 80]; assign a: f32[96, 48]; assign b: f32[96, 32]; op transpose(w, perm=[1, 0]) >> t;"
                         "op split(t, axis=1, sizes=[48, 32]) >> a, b; op matmul(x, a) >> y; op matmul(h, b) >> z;", {},
                         "parts of it may overlap"),
    "half of a family": ("loop layers (l in 0..2) { assign a: f32[48, 96];"
                         "op slice(v[l], axis=0, start=32, end=80) >> a; op linear(x, a) >> y; op linear(h, a) >> z; }",
                         {"v.0": (2, 48, 96)}, ""),
}  # fmt: skip
RULES = ("q8", "q4", "bf16")


def elements(seed: int = 5) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal((80, 96), np.float32) for name in ("w", "v.0", "v.1")}


DATA = elements()


def graph(case: str, name: str = "g") -> Any:
    return oic.parse(f"graph {name} {{ {GRAPH.format(entry=CASES[case][0])} }}", f"{name}.oi")


def program(case: str, weights: str) -> Program:
    return compile_graph(graph(case), oic.Model(tensors=DATA), Settings(weights=weights, verified=True))


def stored(found: Program) -> dict[str, tuple[int, ...]]:
    return {s: v.shape for s, v in found.module.weights.items() if isinstance(v, StoredElements)}


@pytest.mark.parametrize("case", CASES)
def test_parts_are_stored(case: str) -> None:
    _, expected, reason = CASES[case]
    found = program(case, "q8")
    assert stored(found) == expected
    assert {c.symbol for c in found.stored if not c.kept} == set(expected)
    assert reason in {c.reason for c in found.stored if c.kept} | {""}
    symbol = next(iter(expected or {"w": 0})).partition(".")[0]
    for rules in (f"{symbol}=q8", f"{symbol[0]}*=q8", ",".join(f"{s}=q8" for s in expected) or f"{symbol}=q8"):
        assert stored(program(case, rules)) == expected
    assert not stored(program(case, f"{symbol}=f32,*=q8"))


def test_parts_may_differ() -> None:
    storages = {c.symbol: c.storage for c in program("rows", "w.1=q4,w=q8").stored}
    assert storages["w.0"] == "q8" and storages["w.1"] == "q4"
    for case, rules, reason in (
        ("whole and part", "w.1=q4,w=q8", "parts of it overlap"),  # an element has one value
        ("whole and part", "w.0=q8", "parts of it overlap"),
        ("another reads one", "w.1=q8", "'relu' reads it"),
        ("another reads one", "w.1=f32", ""),
    ):  # a part has its name whatever becomes of it
        found = program(case, rules)
        assert not stored(found) and {c.symbol: c.reason for c in found.stored}["w"] == reason
    with pytest.raises(oic.OicError, match=r"no constant is called 'w\.2'"):
        program("rows", "w.2=q4")
    assert set(stored(program("rows", "auto:0.2"))) == {"w.0", "w.1"}
    assert not stored(program("whole and part", "auto:0.2"))


@pytest.mark.parametrize("rules", RULES)
def test_compiled_code_agrees_with_the_reference(rules: str, tmp_path: Path) -> None:
    """And a session has the values that are computed with, wherever they lie."""
    model, rng = oic.Model(tensors=DATA), np.random.default_rng(1)
    made = {case: oic.Synthesizer(graph(case, f"g{i}"), model, weights=rules) for i, case in enumerate(CASES)}
    build_together([*made.values()], tmp_path)
    inputs = {n: rng.standard_normal((5, k), np.float32) for n, k in {"x": 96, "h": 96, "c": 64}.items()}
    for case, compiled in made.items():
        with compiled.make_executor() as ex, oic.Simulator(graph(case), model, weights=rules).make_executor() as sim:
            module = compiled.program.module
            verdict = compare(module, ex, [Run("entry", inputs)])
            assert verdict.equal, (case, verdict)
            whole, members = ex.fetch("w"), np.stack([ex.fetch(f"v[{i}]") for i in range(2)])
            assert np.array_equal(whole, sim.fetch("w")) and np.array_equal(members[1], sim.fetch("v[1]"))
            parts = {s: np.asarray(v) for s, v in module.weights.items() if isinstance(v, StoredElements)}
            assert np.array_equal(whole, DATA["w"]) == (not any(s.startswith("w") for s in parts)), case
            if case == "rows":
                assert np.array_equal(whole, np.concatenate([parts["w.0"], parts["w.1"]]))
            if case == "whole and part":
                assert np.array_equal(whole, parts["w.0"]) and np.array_equal(whole[7:37], parts["w.1"])
            if case == "turned":
                assert np.array_equal(whole[50:], parts["w.1"].T)
            if case == "half of a family":
                assert np.array_equal(members[:, 32:], parts["v.0"]) and np.array_equal(members[1, :32], DATA["v.1"][:32])


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_0"])
def test_blocks_of_a_file_stay_as_they_are(kind: str, tmp_path: Path) -> None:
    """Where parts are made of whole ones."""
    gguf = pytest.importorskip("gguf")
    writer, stored_as = gguf.GGUFWriter(tmp_path / "m.gguf", "any"), gguf.GGMLQuantizationType[kind]
    blocks = {name: gguf.quantize(array, stored_as) for name, array in DATA.items()}
    for name, block in blocks.items():
        writer.add_tensor(name, block, raw_dtype=stored_as)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    model, wide = oic.Model.open(tmp_path / "m.gguf"), gguf.dequantize(blocks["w"], stored_as)
    for case, symbols in {
        "rows": {"w.0", "w.1"}, "columns": {"w.0", "w.1"}, "whole and part": {"w.0", "w.1"}, "half of a family": {"v.0"},
        "turned": {"w.0"}, "groups are cut": set(), "of other groups": set(),
    }.items():  # fmt: skip
        found = compile_graph(graph(case), model, Settings(verified=True))
        assert set(stored(found)) == symbols, case
        for symbol in symbols & {"w.0"}:
            part = np.asarray(found.module.weights[symbol])
            assert np.array_equal(part, wide[: part.shape[0], : part.shape[1]]), "they begin there"
        with oic.Simulator(graph(case), model).make_executor() as ex:
            assert np.array_equal(ex.fetch("w"), wide)
    reasons = {c.symbol: c.reason for c in compile_graph(graph("groups are cut"), model, Settings()).stored}
    assert reasons["w"] == "a part of it is not of whole groups"
