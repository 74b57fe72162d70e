"""Convolutions of bytes for machines that multiply few of them at once (conv_bytes.h, depthwise_bytes.h), of all sizes: the reference's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oic
from conv_shapes import convolved
from oic import dtypes
from oic.dtypes import Array
from oic.operators.conv import Convolution
from tests.fuzz.sanitized import SanitizedExecutor, build_sanitized

SEVERAL, FEW = "conv_bytes", "depthwise_bytes"  # output channels that see the same planes
RESULTS = ("i32", "i8", "i16")
SCALED = ("i8", "u8", "i16")


def _drawn(rng: np.random.Generator) -> tuple[Any, ...]:
    """x, w, settings of a convolution whose result has elements or none, and as likely as not no axis is long."""
    while True:
        n, groups = int(rng.choice([1, 2, 2])), int(rng.choice([1, 1, 2, 5, 70], p=[0.3, 0.2, 0.2, 0.2, 0.1]))
        inputs, outputs = int(rng.choice([1, 1, 2, 5, 17])), int(rng.choice([0, 1, 1, 2, 3, 4, 5]))
        outputs = 131 if groups == 1 and rng.random() < 0.1 else outputs
        sizes = [int(v) for v in rng.choice([0, 1, 2, 3, 7, 12, 31, 66], n)]
        taps = [int(v) for v in rng.choice([0, 1, 1, 2, 3, 3, 4, 7], n)]
        sizes = taps if rng.random() < 0.1 else sizes
        tops = {"stride": [1, 1, 2, 5], "padding": [0, 0, 1, 6], "dilation": [1, 1, 2, 40]}
        settings = {name: [int(v) for v in rng.choice(top, n)] for name, top in tops.items()}
        lead = [(), (2,), (0,)][int(rng.choice(3, p=[0.6, 0.35, 0.05]))]
        x, w = (*lead, groups * inputs, *sizes), (groups * outputs, inputs, *taps)
        y = (*lead, groups * outputs, *convolved("conv", x, w, settings))
        if min(y) >= 0 and np.prod(y) < 20000 and np.prod(w) < 20000:
            return x, w, y, {**settings, "groups": groups}


class Convolutions:
    """A graph of so many, every other one of sums that are scaled, with their operands."""

    def __init__(self, seed: int, count: int) -> None:
        rng = np.random.default_rng(seed)
        self.inputs: dict[str, Array] = {}
        self.weights: dict[str, Array] = {}
        self.kernels: list[str] = []
        self.volatile, self.body = "", ""
        for i in range(count):
            x, w, y, settings = _drawn(rng)
            scaled = i % 2 == 1
            to = "i32" if scaled else str(rng.choice(RESULTS))
            b = str(rng.choice(["", to] if scaled else ["", to, "i8"]))
            self.inputs[f"x{i}"] = self._bytes(rng, x)
            self.weights[f"w{i}"] = self._bytes(rng, w)
            given = [f"x{i}", f"w{i}"]
            if b:
                self.weights[f"b{i}"] = rng.integers(-128, 128, w[0]).astype(dtypes.ALL[b].np)
                given.append(f"b=b{i}")
            given += [f"{k}={v}" for k, v in settings.items()] + ([] if to == "i8" else [f"acc={to}"])
            sums = f"s{i}" if scaled else f"y{i}"
            call = f"op conv{len(w) - 2}d({', '.join(given)}) >> {sums};"
            result = to
            if scaled:
                result = str(rng.choice(SCALED))
                call = f"assign s{i}: i32{list(y)}; {call} {self._scaled(rng, i, w[0], len(w) - 2, result)}"
            self.volatile += f"y{i}: {result}{list(y)}; "
            self.body += call + "\n"
            few = w[1] == 1 and w[0] // settings["groups"] < 4
            self.kernels.append((FEW if few else SEVERAL) + ("_requantized" if scaled else ""))

    def _bytes(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        found = rng.integers(-128, 128, shape).astype(np.int8)
        return np.where(rng.random(shape) < 0.1, np.int8(-128), found)

    def _scaled(self, rng: np.random.Generator, i: int, outputs: int, axes: int, to: str) -> str:
        """The op that scales sums of number i, each channel's by numbers of its own or all by the same."""
        shape = (outputs, *[1] * axes) if rng.random() < 0.5 else ()
        self.weights[f"m{i}"] = np.asarray(rng.integers(1 << 30, 1 << 31, shape), np.int32)
        self.weights[f"h{i}"] = np.asarray(rng.integers(-12, 2, shape), np.int8)
        zero, rounding = rng.choice([dtypes.ALL[to].low, 0, dtypes.ALL[to].high]), rng.choice(["tflite", "nearest"])
        return f'op requantize(s{i}, m{i}, h{i}, to={to}, zero_point={zero}, rounding="{rounding}") >> y{i};'

    def graph(self, constant: bool) -> tuple[oic.Graph, oic.Model, dict[str, Array]]:
        """With weights that are constant, or inputs too; and what a step is given."""
        inputs = self.inputs if constant else self.inputs | {n: v for n, v in self.weights.items() if n[0] == "w"}
        held = {name: value for name, value in self.weights.items() if name not in inputs}
        dynamic, constants = (" ".join(f"{n}: {self._type(v)};" for n, v in arrays.items()) for arrays in (inputs, held))
        text = (f"graph g {{ dynamic {{ {dynamic} }} constant {{ {constants} }} volatile {{ {self.volatile} }}"
                f" block entry {{ {self.body} return; }} }}")  # fmt: skip
        return oic.parse(text, name="g"), oic.Model(tensors=held), inputs

    def _type(self, array: Array) -> str:
        return f"{array.dtype.kind}{8 * array.itemsize}{list(array.shape) if array.ndim else ''}"


def _for_microcontrollers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are those of freestanding targets."""
    monkeypatch.setattr(Convolution, "flattens", lambda op, target: False)
    others = tuple(kernel for kernel in Convolution.kernels if not kernel.name.startswith("conv_requ") and kernel.name != "conv")
    monkeypatch.setattr(Convolution, "kernels", others)


@pytest.mark.parametrize("constant, flags", [(True, "-O1"), (False, "-O1"), (True, "-O1 -DOIC_PORTABLE")])
def test_windows_of_bytes_are_those_of_the_reference(constant: bool, flags: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _for_microcontrollers(monkeypatch)
    monkeypatch.setenv("OIC_CFLAGS", flags)  # plain C as microcontrollers have it
    drawn = Convolutions(seed=8, count=80)
    graph, model, given = drawn.graph(constant)
    made = oic.Synthesizer(graph, model, target="portable")
    assert made.program.planned is not None
    kernels = [op.kernel for op in made.program.planned.all_ops() if op.name.startswith("conv")]
    assert kernels == drawn.kernels
    assert set(kernels) == {f"{kernel}{more}" for kernel in (SEVERAL, FEW) for more in ("", "_requantized")}
    with made.make_executor() as executor, oic.Simulator(graph, model).make_executor() as reference:
        found, expected = executor.step(**given), reference.step(**given)
    for i, kernel in enumerate(kernels):
        assert found[f"y{i}"].tobytes() == expected[f"y{i}"].tobytes(), (i, kernel)


def test_windows_of_bytes_touch_no_other_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _for_microcontrollers(monkeypatch)
    graph, model, given = Convolutions(seed=9, count=60).graph(constant=False)
    simulator = oic.Simulator(graph, model)
    assert simulator.program.planned is not None
    kernels = {op.kernel for op in simulator.program.planned.all_ops() if op.name.startswith("conv")}
    assert kernels == {f"{kernel}{more}" for kernel in (SEVERAL, FEW) for more in ("", "_requantized")}
    path = build_sanitized([simulator.program], tmp_path)
    with SanitizedExecutor(simulator.program, path, 0) as executor, simulator.make_executor() as reference:
        found, expected = executor.step(**given), reference.step(**given)
    assert all(found[name].tobytes() == y.tobytes() for name, y in expected.items())


def test_windows_without_taps_write_no_more_sums_than_there_are(tmp_path: Path) -> None:
    """A row of y is longer than one of x then: rows that lie side by side in x do not hold it."""
    text = """graph none { dynamic { x: i8[4, 90, 1]; w: i8[4, 1, 1, 0]; } volatile { y: i32[4, 90, 51]; }
block entry { op conv2d(x, w, acc=i32, dilation=[1, 50], groups=4) >> y; return; } }"""
    program = oic.Simulator(oic.parse(text, name="none")).program
    assert program.planned is not None and [op.kernel for op in program.planned.all_ops() if op.name == "conv2d"] == [FEW]
    path = build_sanitized([program], tmp_path)
    with SanitizedExecutor(program, path, 0) as executor:
        found = executor.step(x=np.ones((4, 90, 1), np.int8), w=np.ones((4, 1, 1, 0), np.int8))
    assert not found["y"].any()
