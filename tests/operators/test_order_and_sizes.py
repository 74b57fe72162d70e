"""The order of a reduction depends on its axes, never on the size of an axis that is kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import oic

REDUCTIONS = {
    "sum_axis": "axes=[{}]",
    "mean_axis": "axes=[{}]",
    "prod_axis": "axes=[{}]",
    "max_axis": "axes=[{}]",
    "min_axis": "axes=[{}]",
    "softmax": "axis={}",
    "log_softmax": "axis={}",
}
SHAPES = {  # declared shape, reduced axes (softmax: the first)
    "before": ("700, N", "0"),
    "between": ("2, 300, N", "1"),
    "around": ("40, N, 30", "0, 2"),
    "apart": ("40, N, 30, 3", "0, 2"),
    "inside": ("N, 600, 1", "1"),
    "after": ("N, 700", "1"),
}

MANY = 75  # N: more than are lanes of one block, and some that are none
SOME = (0, 7, 63, 64, 72, 74)


def _cases() -> list[tuple[str, str, str]]:
    return [
        (f"{op}_{place}", op, place)
        for op in REDUCTIONS
        for place in SHAPES
        if "softmax" not in op or "," not in SHAPES[place][1]
    ]


def _result(op: str, place: str) -> str:
    dims, axes = SHAPES[place]
    if "softmax" in op:
        return dims
    gone = {int(a) for a in axes.split(",")}
    return ", ".join(d for i, d in enumerate(dims.split(", ")) if i not in gone)


def _graph() -> str:
    inputs = [
        f"x_{p}: f32[{dims}]{f' @max(N={MANY})' if p == 'before' else ''};"
        for p, (dims, _) in SHAPES.items()
    ]
    outputs = [f"{name}: f32[{_result(op, place)}];" for name, op, place in _cases()]
    body = [
        f"op {op}(x_{place}, {REDUCTIONS[op].format(SHAPES[place][1])}) >> {name};"
        for name, op, place in _cases()
    ]
    lines = ["graph order {", "dynamic {", *inputs, "}", "volatile {", *outputs, "}"]
    lines += [
        "block entry { branch all; return; }",
        "block one @entry(N=1) { branch all; return; }",
    ]
    lines += ["block all {", *body, "return; }", "}"]
    return "\n".join(lines)


def _axis(op: str, place: str) -> int:
    return [d.strip() for d in _result(op, place).split(",")].index("N")


def test_a_column_has_the_same_bits_alone_and_beside_others(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    whole = {}
    for place, (dims, _) in SHAPES.items():
        shape = [MANY if d.strip() == "N" else int(d) for d in dims.split(",")]
        values = rng.standard_normal(shape).astype(np.float32)
        flat = values.reshape(-1)
        flat[rng.integers(0, flat.size, flat.size // 3)] *= np.float32(-0.0)
        whole[f"x_{place}"] = values
    graph = oic.parse(_graph(), name="order")
    with oic.Synthesizer(graph).build(tmp_path).make_executor() as ex:
        ex.insert(**whole)
        ex.step()
        together = {name: ex.fetch(name) for name, _, _ in _cases()}
        for entry in ("entry", "one"):
            for n in SOME:
                for place, (dims, _) in SHAPES.items():
                    axis = [d.strip() for d in dims.split(",")].index("N")
                    ex.insert(
                        **{
                            f"x_{place}": np.ascontiguousarray(
                                np.take(whole[f"x_{place}"], [n], axis)
                            )
                        }
                    )
                ex.step(entry)
                for name, op, place in _cases():
                    want = np.take(together[name], [n], _axis(op, place))
                    assert ex.fetch(name).tobytes() == want.tobytes(), (entry, name, n)


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((4, 2063), "1"),
        ((2063, 4), "0"),
        ((5, 64, 3), "1"),
        ((40, 3, 30), "0, 2"),
        ((3, 0), "1"),
        ((0, 3), "0"),
    ],
)
def test_a_product_equals_the_reference_in_all_bits(
    shape: tuple[int, ...], axes: str, tmp_path: Path
) -> None:
    """Over- and underflow on the way included: the reference multiplies in the same order."""
    kept = [n for i, n in enumerate(shape) if str(i) not in axes.split(", ")]
    text = f"""graph p {{ dynamic {{ x: f32{list(shape)}; }} volatile {{ y: f32{kept}; }}
      block entry {{ op prod_axis(x, axes=[{axes}]) >> y; return; }} }}"""
    rng = np.random.default_rng(2)
    x = rng.choice(np.float32([1e30, -1e-30, 3, 1, 1e38, 1e-38, 0.5, 0]), shape)
    x[1::2] = rng.uniform(0.9, 1.1, x[1::2].shape)
    graph = oic.parse(text, name="p")
    found = []
    for backend in (oic.Simulator(graph), oic.Synthesizer(graph).build(tmp_path)):
        with backend.make_executor() as ex:
            ex.insert(x=x)
            ex.step()
            found.append(ex.fetch("y"))
    same = (found[0].view(np.uint32) == found[1].view(np.uint32)) | (
        np.isnan(found[0]) & np.isnan(found[1])
    )
    assert same.all(), found
