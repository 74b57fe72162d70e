"""Convolutions whose filters are constants, which lie in an order of their own, have the bits of those with filters as inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oic

CASES = 40  # of one graph
DTYPES: dict[str, Any] = {"f32": np.float32, "f64": np.float64, "i8": np.int8}


class Convolutions:
    """Random ones, each with the same filters twice; those that do not fit are drawn again."""

    def __init__(self, dtype: str, seed: int) -> None:
        self.rng, self.dtype = np.random.default_rng(seed), dtype
        self.inputs: dict[str, Any] = {}
        self.constants: dict[str, oic.Tensor] = {}
        self.sections: dict[str, list[str]] = {"dynamic": [], "constant": [], "volatile": []}
        self.body: list[str] = []
        self.shown: list[str] = []
        while len(self.shown) < CASES:
            self.add(len(self.shown))

    def several(self, low: int, high: int, count: int) -> list[int]:
        return [int(n) for n in self.rng.integers(low, high + 1, count)]

    def add(self, number: int) -> None:
        """One more, perhaps with an empty result; nothing where its sizes would be negative."""
        axes, transposed = int(self.rng.integers(1, 3)), self.rng.random() < 0.25
        groups = int(self.rng.choice([1, 1, 1, 2, 5]))
        inputs, outputs = (int(self.rng.choice([1, 2, 3, 8, 16, 17, 33])) for _ in range(2))
        depthwise = self.rng.random() < 0.2
        channels, filters = (groups, groups) if depthwise else (groups * inputs, groups * outputs)
        taps, stride, dilation = self.several(1, 5, axes), self.several(1, 3, axes), self.several(1, 2, axes)
        padding = [0] * axes if self.rng.random() < 0.5 else self.several(0, 3, axes)
        size = self.several(1, 40 if axes == 1 else 14, axes)
        result = [
            (n - 1) * s - 2 * p + d * (k - 1) + 1 if transposed else (n + 2 * p - d * (k - 1) - 1) // s + 1
            for n, k, s, p, d in zip(size, taps, stride, padding, dilation)
        ]
        if min(result) < 0:
            return
        x = [*self.several(1, 2, int(self.rng.integers(0, 2))), channels, *size]
        w = [channels, filters // groups, *taps] if transposed else [filters, channels // groups, *taps]
        to = "i32" if self.dtype == "i8" else self.dtype
        filters_of = self.drawn(w)
        self.inputs |= {f"x{number}": self.drawn(x), f"w{number}": filters_of}
        self.constants[f"c{number}"] = oic.Tensor(filters_of, self.dtype)
        self.sections["dynamic"] += [f"x{number}: {self.dtype}{x};", f"w{number}: {self.dtype}{w};"]
        self.sections["constant"].append(f"c{number}: {self.dtype}{w};")
        self.sections["volatile"] += [f"{y}{number}: {to}{[*x[:-axes - 1], filters, *result]};" for y in "yz"]
        settings = f"stride={stride}, padding={padding}, dilation={dilation}, groups={groups}"
        settings += ", acc=i32" if self.dtype == "i8" else ""
        op = f"conv_transpose{axes}d" if transposed else f"conv{axes}d"
        self.body += [f"op {op}(x{number}, {f}{number}, {settings}) >> {y}{number};" for f, y in ("wy", "cz")]
        self.shown.append(f"{op}({x}, {w}, {settings})")

    def drawn(self, shape: list[int]) -> Any:
        if self.dtype == "i8":
            return self.rng.integers(-128, 128, shape).astype(np.int8)
        return self.rng.standard_normal(shape).astype(DTYPES[self.dtype])

    def synthesizer(self, **options: Any) -> oic.Synthesizer:
        sections = " ".join(f"{kind} {{ {' '.join(lines)} }}" for kind, lines in self.sections.items())
        graph = oic.parse(f"graph g {{ {sections} block entry {{ {' '.join(self.body)} return; }} }}", "g.oi")
        return oic.Synthesizer(graph, oic.Model(tensors=self.constants), **options)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("dtype", DTYPES)
def test_constant_filters_have_the_same_bits(dtype: str, seed: int, tmp_path: Path) -> None:
    made = Convolutions(dtype, seed)
    program = made.synthesizer(threads=1 + seed).build(tmp_path)
    kernels = {op.kernel for op in program.spec.module.all_ops() if op.name.startswith("conv")}
    assert len(kernels) > 1, kernels
    with program.make_executor() as executor:
        found = executor.step(**made.inputs)
    wrong = [shown for i, shown in enumerate(made.shown) if found[f"y{i}"].tobytes() != found[f"z{i}"].tobytes()]
    assert not wrong, f"{len(wrong)} of {CASES}\n" + "\n".join(wrong)
