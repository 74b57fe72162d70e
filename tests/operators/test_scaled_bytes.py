"""Products with matrices of bytes and scales: constants in panels have the bits of operands that lie as they come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import oic

SIZES = [(1, 17, 13), (2, 33, 16), (3, 300, 70), (9, 64, 33), (40, 257, 96)]
DTYPES: dict[str, Any] = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f64": np.float64, "i8": np.int8, "u8": np.uint8}


class Products:
    """The same product three times for every size: with a constant as it is and transposed, and with an input."""

    def __init__(self, wide: str, narrow: str, each: bool) -> None:
        rng = np.random.default_rng(7)
        limits = np.iinfo(DTYPES[narrow])
        self.given: dict[str, Any] = {}
        self.constants: dict[str, oic.Tensor] = {}
        declared: dict[str, list[str]] = {"dynamic": [], "constant": [], "volatile": []}
        self.body: list[str] = []
        for i, (m, k, n) in enumerate(SIZES):
            w = rng.integers(limits.min, limits.max + 1, (k, n)).astype(DTYPES[narrow])
            s = np.asarray(rng.uniform(0.001, 0.1, n if each else ()), np.float32)
            t = s[:, None] if each else s
            given = {f"x{i}": rng.standard_normal((m, k)).astype(DTYPES[wide]), f"b{i}": w, f"r{i}": s}
            held = {f"w{i}": w, f"s{i}": s, f"v{i}": np.ascontiguousarray(w.T), f"t{i}": t}
            self.given |= given
            for kind, arrays in (("dynamic", given), ("constant", held)):
                for name, array in arrays.items():
                    type_ = next(d for d, np_type in DTYPES.items() if array.dtype == np_type)
                    declared[kind].append(f"{name}: {type_}{list(array.shape) if array.ndim else ''};")
                    if kind == "constant":
                        self.constants[name] = oic.Tensor(array, type_)
            declared["volatile"] += [f"{y}{i}: {wide}[{m}, {n}];" for y in "ypz"]
            self.body.append(f"op matmul(x{i}, w{i}, b_scale=s{i}) >> y{i};")
            self.body.append(f"op matmul(x{i}, v{i}, b_scale=t{i}, transpose_b=true) >> p{i};")
            self.body.append(f"op matmul(x{i}, b{i}, b_scale=r{i}) >> z{i};")
        self.sections = " ".join(f"{kind} {{ {' '.join(lines)} }}" for kind, lines in declared.items())

    def synthesizer(self, **options: Any) -> oic.Synthesizer:
        graph = oic.parse(f"graph g {{ {self.sections} block entry {{ {' '.join(self.body)} return; }} }}", "g.oi")
        return oic.Synthesizer(graph, oic.Model(tensors=self.constants), **options)


@pytest.mark.parametrize(
    "wide, narrow, each, threads",
    [("f32", "i8", True, 1), ("f32", "i8", False, 2), ("f32", "u8", True, 1), ("bf16", "i8", True, 1), ("f64", "i8", True, 1)],
)
def test_panels_have_the_same_bits(wide: str, narrow: str, each: bool, threads: int, tmp_path: Path) -> None:
    products = Products(wide, narrow, each)
    made = products.synthesizer(threads=threads).build(tmp_path)
    kernels = [op.kernel for op in made.spec.module.all_ops() if op.name == "matmul"]
    assert kernels == ["matmul_panels", "matmul_panels", "matmul"] * len(SIZES)
    with made.make_executor() as executor:
        found = executor.step(**products.given)
    for i, (_, k, _) in enumerate(SIZES):
        assert found[f"y{i}"].tobytes() == found[f"p{i}"].tobytes() == found[f"z{i}"].tobytes(), SIZES[i]
        x, w, s = (products.given[f"{name}{i}"].astype(np.float64) for name in "xbr")
        bound = 2 * k * 2.0**-23 * (abs(x) @ abs(w * s)) + abs(x @ (w * s)) * 2.0**-8 * (wide == "bf16")
        assert (abs(found[f"y{i}"].astype(np.float64) - x @ (w * s)) <= bound).all()
