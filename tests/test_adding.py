"""What it takes to add something: each test adds one, in as many files as docs/inside.md says, and uses it end to end."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oic
from oic import resources
from oic.driver import Settings, compile_graph, lowered
from oic.dtypes import FLT, Array
from oic.ir.core import REGISTRY, Value
from oic.ir.module import Module
from oic.ir.text import parse_module, print_module
from oic.ir.types import Type
from oic.kernels import targets
from oic.kernels.kernel import Kernel, Members, Out
from oic.library import emit
from oic.operators.base import Operator
from oic.operators.matmul import Linear
from oic.passes import pipeline
from oic.passes.pipeline import Step

ROWS = np.random.default_rng(0).standard_normal((3, 20)).astype(np.float32)


def alternating() -> type[Operator]:
    """The class of an operator."""

    class Alternating(Operator, name="alternating_sum"):
        """x[0] - x[1] + x[2] - … along the last axis, in f32 (f64 for f64), added in order."""

        x: Value

        examples = (("f32[3, 7]",), ("f16[4]",))

        def infer(self) -> list[Type]:
            self.require("x", FLT)
            self.require_rank("x", 1)
            return self.tensor(self.x.dtype, self.x.shape[:-1])

        def reference(self, x: Array) -> Array:
            return np.asarray((x * (-1.0) ** np.arange(x.shape[-1])).sum(-1), x.dtype)

        def tolerance(self, y: Array, *inputs: Any) -> Array:
            x = np.abs(inputs[0].astype(np.float64))
            return np.asarray(x.sum(-1) * x.shape[-1] * 2.0**-11)

        def _args(self) -> Members:
            return {"x": self.x, "y": Out(), "rows": self.result.tensor.size, "n": self.x.shape[-1]}

        kernels = (Kernel("alternating_sum", ("x",), _args),)

    return Alternating


ALTERNATING = """/* oic_alternating_sum_X: y[rows] of x[rows, n].  Order: added in order. */
#include "element.h"

typedef struct {
    const T *x;
    T *y;
    ptrdiff_t rows, n;
} ARGS(oic_alternating_sum);

static inline void NAME(oic_alternating_sum)(const ARGS(oic_alternating_sum) *a)
{
    for (ptrdiff_t r = 0; r < a->rows; ++r) {
        C sum = (C)0;
        for (ptrdiff_t k = 0; k < a->n; ++k) {
            const C v = LOAD(a->x, r * a->n + k);
            sum = k % 2 ? sum - v : sum + v;
        }
        STORE(a->y, r, sum);
    }
}

#include "end.h"
"""


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of runtime_c that files may be added to."""
    folder = tmp_path / "runtime_c"
    shutil.copytree(resources.runtime_dir(), folder)
    monkeypatch.setattr(emit, "runtime_dir", lambda: folder)
    return folder


@pytest.fixture
def operator(runtime: Path) -> Iterator[type[Operator]]:
    """An operator is a class, and a C file if it has a kernel of its own."""
    (runtime / "kernels" / "alternating_sum.h").write_text(ALTERNATING)
    cls = alternating()
    yield cls
    del REGISTRY[cls.name]


def test_an_operator_is_a_class_and_a_c_file(operator: type[Operator], tmp_path: Path) -> None:
    text = """
    dynamic {{ x: {0}[N, 20] @max(N=4); }}
    volatile {{ y: {0}[N]; }}
    block entry {{ op alternating_sum(x) >> y; return; }}
    """
    for dtype in ("f32", "f16", "f64"):
        graph = oic.parse(text.format(dtype), f"adding_{dtype}")
        x = ROWS.astype({"f32": np.float32, "f16": np.float16, "f64": np.float64}[dtype])
        made = oic.Synthesizer(graph, target="portable").build(tmp_path / dtype)
        simulators = [oic.Simulator(graph, stage=stage) for stage in ("graph", "planned")]
        found = [backend.make_executor().step(x=x)["y"] for backend in (*simulators, made)]
        assert np.array_equal(found[0], found[1]) and np.allclose(found[2], found[0], rtol=2e-3, atol=1e-3)
    with pytest.raises(oic.OicError, match="alternating_sum does not take i32"):
        oic.Synthesizer(oic.parse(text.format("i32")))


def test_a_pass_is_a_function_and_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """With an option of its own, which the pipeline's table hands over."""

    def twice_negated(module: Module, threads: int) -> None:
        """neg(neg(x)) -> x"""
        for op in module.all_ops():
            inner = op.operands[0].op if op.name == "neg" else None
            if inner is not None and inner.name == "neg" and threads:
                for user in op.result.users:
                    user.replace_operands({op.result: inner.operands[0]})

    at = next(i for i, step in enumerate(pipeline.PIPELINE) if step.name == "dead-code")
    added = Step("twice-negated", twice_negated, "before what it leaves over goes", "graph", takes=("threads",))
    monkeypatch.setattr(pipeline, "PIPELINE", (*pipeline.PIPELINE[:at], added, *pipeline.PIPELINE[at:]))
    graph = oic.parse(
        "dynamic { x: f32[4]; } volatile { y: f32[4]; t: f32[4]; } "
        "block entry { op neg(x) >> t; op neg(t) >> t; op exp(t) >> y; return; }"
    )
    program = compile_graph(graph, None, Settings(verified=True))
    after = {step.name: [op.name for op in module.all_ops()] for step, module in lowered(program.module, program.settings)}
    assert after["cse"].count("neg") == 2 and after["dead-code"].count("neg") == 0 and "twice-negated" in after


def test_a_kernel_is_a_c_file_and_a_row(runtime: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One for targets with a feature: chosen there, and nowhere else."""
    source = (runtime / "kernels" / "linear_panels.h").read_text()
    (runtime / "kernels" / "linear_vector.h").write_text(source.replace("linear_panels", "linear_vector"))
    plain = next(k for k in Linear.kernels if k.name == "linear_panels")
    row = replace(plain, name="linear_vector", needs=frozenset({"sse2"}), cost=lambda op, target: plain.cost(op, target) / 2)
    monkeypatch.setattr(Linear, "kernels", (row, *Linear.kernels))
    graph = oic.parse(
        "dynamic { x: f32[20]; } constant { w: f32[16, 20]; } volatile { y: f32[16]; } "
        "block entry { op linear(x, w) >> y; return; }", "variant",
    )  # fmt: skip
    weights = np.random.default_rng(2).standard_normal((16, 20)).astype(np.float32)
    model = oic.Model(tensors={"w": weights})
    for features, name in ((frozenset[str](), "linear_panels"), (frozenset({"sse2"}), "linear_vector")):
        machine = replace(targets.TARGETS["portable"], features=features)
        program = compile_graph(graph, model, Settings(target=machine))
        text = print_module(program.planned)
        assert f'kernel="{name}"' in text and print_module(parse_module(text)) == text
    made = oic.Synthesizer(graph, model, target="portable").build(tmp_path / "made")
    found = made.make_executor().step(x=ROWS[0])["y"]
    assert np.allclose(found, weights @ ROWS[0], atol=1e-4)
    if "sse2" in made._synthesizer.target.features:
        assert "oic_linear_vector_f32" in (tmp_path / "made" / "variant.c").read_text()


def test_a_target_is_an_entry_of_a_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    small = targets.Target("small", ("-O1", "-DSMALL"), costs=targets.Costs(staged=0.0, strided=1.0))
    monkeypatch.setitem(targets.TARGETS, "small", small)
    graph = oic.parse(
        "dynamic { x: f32[20]; } constant { w: f32[16, 20]; } volatile { y: f32[16]; } "
        "block entry { op linear(x, w) >> y; return; }", "small_one",
    )  # fmt: skip
    model = oic.Model(tensors={"w": np.ones((16, 20), np.float32)})
    made = oic.Synthesizer(graph, model, target="small").build(tmp_path)
    assert np.allclose(made.make_executor().step(x=ROWS[0])["y"], ROWS[0].sum(), atol=1e-4)
    assert "-DSMALL" in (tmp_path / "Makefile").read_text()
    assert "oic_linear_f32" in (tmp_path / "small_one.c").read_text()  # its costs choose rows
