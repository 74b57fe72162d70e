"""What it takes to add something: each test adds one, in as many files as docs/inside.md says, and uses it end to end."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import oic
from importers import checkpoints
from model.samples import write_safetensors
from oic import resources
from oic.cli.main import main
from oic.codegen.expressions import arithmetic, number
from oic.codegen.statements import WRITERS
from oic.driver import Settings, compile_graph, lowered
from oic.dtypes import FLT, Array
from oic.importers import families, import_checkpoint
from oic.importers.checkpoint import Checkpoint
from oic.importers.decoder import Decoder, Layer, Matrix, Network, Norm
from oic.importers.transformer import transformer_program
from oic.ir import index
from oic.ir.core import REGISTRY, Value
from oic.ir.dims import Dim
from oic.ir.module import Module
from oic.ir.ranges import Ranges
from oic.ir.strides import Strides
from oic.ir.text_parse import parse_module
from oic.ir.text_print import print_module
from oic.ir.types import Type
from oic.kernels import targets
from oic.kernels.kernel import Kernel, KernelArgs, Out
from oic.library import emit
from oic.operators.base import Operator, UnaryOperator
from oic.operators.matmul import Linear
from oic.passes import pipeline
from oic.passes.pipeline import Step
from oic.reference.semantics import SEMANTICS
from paths import ROOT
from runtime import test_registers as registers
from tests.fuzz.operator_campaign import faults, sessions
from tests.fuzz.operator_catalog import accepted_by, settings_by
from tests.fuzz.operator_shapes import cases
from tests.fuzz.operators import batches, table

ROWS = np.random.default_rng(0).standard_normal((3, 20)).astype(np.float32)


def alternating() -> type[Operator]:
    """The class of an operator."""

    class Alternating(Operator, name="alternating_sum"):
        """x[0] - x[1] + x[2] - … along the last axis, in f32 (f64 for f64), added in order."""

        x: Value

        allowed = FLT
        examples = (("f32[3, 7]",), ("f16[4]",))

        def infer(self) -> list[Type]:
            self.require_rank("x", 1)
            return self.tensor(self.x.dtype, self.x.shape[:-1])

        def reference(self, x: Array) -> Array:
            return np.asarray((x * (-1.0) ** np.arange(x.shape[-1])).sum(-1), x.dtype)

        def tolerance(self, y: Array, *inputs: Any) -> Array:
            x = np.abs(inputs[0].astype(np.float64))
            return np.asarray(x.sum(-1) * x.shape[-1] * 2.0**-11)

        def _args(self) -> KernelArgs:
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
    """A copy of runtime_c that files may be added to, and changed in."""
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
        simulators: list[Any] = [oic.Simulator(graph, stage=stage) for stage in ("graph", "planned")]
        found = [backend.make_executor().step(x=x)["y"] for backend in (*simulators, made)]
        assert np.array_equal(found[0], found[1]) and np.allclose(found[2], found[0], rtol=2e-3, atol=1e-3)
    with pytest.raises(oic.OicError, match="alternating_sum does not take i32"):
        oic.Synthesizer(oic.parse(text.format("i32")))


def test_an_operator_is_tested_as_its_class_declares_it(operator: type[Operator], tmp_path: Path) -> None:
    """By the tests of all operators, though OPS does not have it: its examples in all its types, in all backends."""
    chosen = cases(operator)
    assert {case.row for case in chosen} == accepted_by(operator) == FLT and not settings_by(operator)
    made = batches(chosen)
    assert not list(faults(made, sessions(made, tmp_path, ("-O0",))))
    assert f"| `{operator.name}` |" in table()


def test_an_elementwise_operator_is_a_class_and_a_line_of_c(runtime: Path, tmp_path: Path) -> None:
    """It joins the loops of those around it."""

    class Halved(UnaryOperator, name="halved"):
        """x / 2."""

        allowed = FLT

        def reference(self, *operands: Array) -> Array:
            return np.asarray(operands[0] / 2, operands[0].dtype)

    line = "static inline V OF(oic_halved)(V x) { return x / 2; }\n"
    inserted(runtime / "math" / "scalar_float.h", "static inline V OF(oic_neg)", line)
    try:
        graph = oic.parse(
            "dynamic { x: f32[3, 20]; } volatile { y: f32[3, 20]; } "
            "block entry { op exp(x) >> y; op halved(y) >> y; op neg(y) >> y; return; }", "halved_one",
        )  # fmt: skip
        made = oic.Synthesizer(graph, target="portable").build(tmp_path / "made")
        found = [backend.make_executor().step(x=ROWS)["y"] for backend in (oic.Simulator(graph, stage="planned"), made)]
        assert np.allclose(found[0], -np.exp(ROWS) / 2) and np.allclose(found[1], found[0])
        assert "oic_neg_f32(oic_halved_f32(oic_exp_f32(" in (tmp_path / "made" / "halved_one.c").read_text()
    finally:
        del REGISTRY[Halved.name]


def test_a_view_is_a_class(tmp_path: Path) -> None:
    """It says what it sees; no memory is moved, and what follows reads it where it lies."""

    class Diagonal(Operator, name="diagonal", view=True):
        """x[i, i + above] of a square x."""

        x: Value
        above: int

        examples = (("f32[3, 3]", "above=1"),)

        def infer(self) -> list[Type]:
            self.require_rank("x", 2)
            return self.tensor(self.x.dtype, [self.x.shape[0] - self.above])

        def reference(self, x: Array) -> Array:
            return np.diagonal(x, self.above)

        def seen(self, base: Strides) -> Strides:
            return (base[0] + base[1],)

        def begins(self, number: int) -> list[tuple[Dim | Value, int]]:
            return [(self.above, 1)]

    try:
        graph = oic.parse(
            "dynamic { x: f32[5, 5]; } constant { c: f32[6, 6]; } volatile { y: f32[3]; z: f32[3]; s: f32; } block entry { "
            "assign d: f32[3]; assign t: f32[5, 5]; op transpose(x, perm=[1, 0]) >> t; op diagonal(t, above=2) >> d; "
            "op exp(d) >> y; transfer d >> z; assign e: f32[5]; op diagonal(c, above=1) >> e; op sum_axis(e, axes=[0]) >> s; "
            "return; }", "diagonal_one",
        )  # fmt: skip
        x, c = ROWS.reshape(-1)[:25].reshape(5, 5), np.arange(36, dtype=np.float32).reshape(6, 6)
        made = oic.Synthesizer(graph, oic.Model({"c": c}), target="portable").build(tmp_path / "made")
        simulators: list[Any] = [oic.Simulator(graph, oic.Model({"c": c}), stage=stage) for stage in ("graph", "planned")]
        for backend in (*simulators, made):
            found = backend.make_executor().step(x=x)
            assert np.array_equal(found["z"], np.diagonal(x.T, 2)) and np.allclose(found["y"], np.exp(found["z"]))
            assert found["s"] == np.diagonal(c, 1).sum()
    finally:
        del REGISTRY[Diagonal.name]


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


def test_a_structural_op_is_a_class_a_meaning_and_a_writer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Made by a pass; printed and parsed, verified, interpreted and written as C like those that were there."""

    class IndexNext(index.IndexOp, name="index.next"):
        """value + 1."""

        value: Value

    def next_ones(module: Module) -> None:
        """index.add(value, 1) -> index.next(value)"""
        for op in list(module.all_ops()):
            if isinstance(op, index.IndexAdd) and Ranges().exact(op.right) == 1:
                made = IndexNext(op.left)
                op.home.insert(op.home.ops.index(op), made)
                op.result.give_way(made.result)

    def written(writer: Any, op: Any) -> None:
        writer.frame.indices[op.result] = arithmetic("+", writer.frame.index(op.value), number(1))

    monkeypatch.setitem(SEMANTICS, IndexNext, lambda m, op: m.values.update({op.result: m.integer(op.value) + 1}))
    monkeypatch.setitem(WRITERS, IndexNext, written)
    at = next(i for i, step in enumerate(pipeline.PIPELINE) if step.name == "materialize")
    added = Step("next-ones", next_ones, "before memory", "indexed")
    monkeypatch.setattr(pipeline, "PIPELINE", (*pipeline.PIPELINE[:at], added, *pipeline.PIPELINE[at:]))
    try:
        graph = oic.parse(
            "dynamic { x: f32[4]; } volatile { y: f32[4]; } "
            "persistent { K(t): f32[4] @table @fixed(t=6); k: i32 @init(0); } block entry { "
            "cache.write x >> K[k + 1]; cache.increment k; cache.read K[k] >> y; return; }", "next_one",
        )  # fmt: skip
        planned = compile_graph(graph, None, Settings(verified=True)).planned
        text = print_module(planned)
        assert "index.next(" in text and print_module(parse_module(text)) == text
        made = oic.Synthesizer(graph, target="portable").build(tmp_path)
        runs = [maker.make_executor() for maker in (oic.Simulator(graph, stage="planned"), made)]
        for x in np.arange(8, dtype=np.float32).reshape(2, 4):
            assert all(np.array_equal(run.step(x=x)["y"], x) for run in runs)
        assert runs[0].save() == runs[1].save()
    finally:
        del REGISTRY["index.next"]


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
    if "sse2" in made.spec.target.features:
        assert "oic_linear_vector_f32" in (tmp_path / "made" / "variant.c").read_text()


def test_an_instruction_set_is_a_c_file_and_a_line(runtime: Path, tmp_path: Path) -> None:
    """Its functions give the bits of plain C, and products written for any registers run on them."""
    (runtime / "simd" / "mine.h").write_text((runtime / "simd" / "sse2.h").read_text())
    inserted(runtime / "simd" / "registers.h", "#elif defined(__AVX512F__)", '#elif defined(MINE)\n#include "mine.h"\n')
    (runtime / "simd" / "sse2.h").write_text('#error "another instruction set"\n')
    path = ("-I", str(runtime))
    plain = registers.results(registers.Machine(1, "gcc", ("-DOIC_PORTABLE", *path)), tmp_path)
    found = registers.results(registers.Machine(4, "gcc", ("-msse2", "-DMINE", *path), needs=("sse2",)), tmp_path)
    assert found.pop("width") == "4" and found == {name: plain[name] for name in found} != {}


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
    (tmp_path / "small_one.oi").write_text(graph.source.text)
    done = CliRunner().invoke(main, ["build", str(tmp_path / "small_one.oi"), "--target", "small", "-o", str(tmp_path / "out")])
    assert done.exit_code == 0 and "-DSMALL" in (tmp_path / "out" / "Makefile").read_text(), done.output


def letters(c: Checkpoint) -> Decoder:
    """A Llama without positions whose tensors have names of one letter."""

    def matrix(name: str) -> Matrix:
        return Matrix(f"{{l}}.{name}")

    heads = c.size("heads")
    return Decoder(
        family="letters", vocab=c.size("vocab"), width=c.size("width"), heads=heads, kv_heads=heads // 2,
        head_size=c.size("width") // heads, inner=c.size("inner"), context=16, layers=(Layer(),) * c.layers("depth"),
        embed="e", q=matrix("q"), k=matrix("k"), v=matrix("v"), o=matrix("o"),
        network=Network(matrix("u"), matrix("d"), "silu", matrix("g")), before_attention=Norm("{l}.a", "rms", 1e-6),
        before_network=Norm("{l}.n", "rms", 1e-6), final=Norm("f", "rms", 1e-6),
        head=Matrix("e"),
    )  # fmt: skip


LETTERS = {
    "embed_tokens": "e", "norm": "f", "self_attn.q_proj": "q", "self_attn.k_proj": "k", "self_attn.v_proj": "v",
    "self_attn.o_proj": "o", "mlp.gate_proj": "g", "mlp.up_proj": "u", "mlp.down_proj": "d",
    "input_layernorm": "a", "post_attention_layernorm": "n",
}  # fmt: skip


def test_a_model_family_is_a_function_and_a_row(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Told by the names of its tensors; its bits are those of a known family with the same weights."""
    known = checkpoints.checkpoint(tmp_path / "known", "smollm3", no_rope_layers=[0, 0])
    model, tensors = oic.Model.open(known), {}
    for name in model.names():
        layer, _, rest = name.removeprefix("model.layers.").removesuffix(".weight").partition(".")
        short = f"{layer}.{LETTERS[rest]}" if layer.isdigit() else LETTERS[rest]
        tensors[short] = ("F32", model.tensor(name))
    (tmp_path / "letters").mkdir()
    write_safetensors(tmp_path / "letters" / "model.safetensors", tensors)
    sizes = {"vocab": 24, "width": 16, "inner": 20, "heads": 4, "depth": 2}
    (tmp_path / "letters" / "config.json").write_text(json.dumps(sizes))
    row = families.Family(
        lambda c, request: transformer_program(c, letters(c), "^$", request), signs=(("e", "0.q", "f"),)
    )
    monkeypatch.setitem(families.FAMILIES, "letters", row)
    found = {}
    for family in ("letters", "smollm3"):
        made = import_checkpoint(tmp_path / ("letters" if family == "letters" else "known"), tmp_path / f"{family}_in")
        assert made.family == family
        graph, model = oic.parse_file(made.graph), oic.Model.open(made.model)
        run = oic.Synthesizer(graph, model, target="portable", name=family).build(tmp_path / f"{family}_out").make_executor()
        found[family] = run.step(tokens=np.array([3, 17, 5, 0], np.int32))["logits"]
    assert found["letters"].any() and found["letters"].tobytes() == found["smollm3"].tobytes()


# An element type: a row, a name for its bits in C, and a block of C.
ROW = 'f8e4 = _float("f8e4", ml_dtypes.float8_e4m3, "oic_f8e4")\n'
NAME = "typedef uint8_t oic_f8e4;\n"
BLOCK = """/* ------------------------------------------------------------ f8e4: e4m3 */

typedef oic_f8e4 oic_stored_f8e4;
#define OIC_COMPUTED_f8e4 f32
#define OIC_SUMS_f8e4 f32
#define OIC_BITS_f8e4 8

static inline float oic_f8e4_to_f32(oic_f8e4 h)
{
    const uint32_t body = ((uint32_t)h & 0x7fu) << 20;
    return oic_from_bits_f32(oic_widened(body, 7u) | ((uint32_t)h & 0x80u) << 24);
}

static inline oic_f8e4 oic_f32_to_f8e4(float x)
{
    const uint32_t bits = oic_bits_f32(x);
    return (oic_f8e4)(oic_narrowed(bits & 0x7fffffffu, 20u, 7u) | ((bits >> 24) & 0x80u));
}

static inline float oic_load_f8e4(const oic_f8e4 *p, ptrdiff_t i) { return oic_f8e4_to_f32(p[i]); }
static inline void oic_store_f8e4(oic_f8e4 *p, ptrdiff_t i, float v) { p[i] = oic_f32_to_f8e4(v); }
static inline float oic_round_f8e4(float v) { return oic_f8e4_to_f32(oic_f32_to_f8e4(v)); }
static inline int oic_finite_f8e4(oic_f8e4 x) { return (x & 0x78u) != 0x78u; }

static inline const float *oic_widen_f8e4(const oic_f8e4 *restrict p, ptrdiff_t n, float *restrict to)
{
    for (ptrdiff_t i = 0; i < n; ++i) {
        to[i] = oic_f8e4_to_f32(p[i]);
    }
    return to;
}

"""
USED = """
import sys
import ml_dtypes
import numpy as np
import oic
from oic.dtypes import ALL

dtype = ALL["f8e4"]
assert dtype.digits == 4 and dtype.smallest == 2.0**-9 and dtype.largest == 240
assert ALL["f16"].holds(dtype) and not ALL["f8"].holds(dtype) and not dtype.holds(ALL["f8"])
graph = oic.parse('''
dynamic { x: f32[2048]; y: f8e4[256]; rows: f32[3, 40]; }
constant { w: f8e4[24, 40]; }
persistent { past(i): f8e4[256] @table @fixed(i=3); step: i32 @init(0); }
volatile {
    narrow: f8e4[2048]; wide: f32[2048]; half: f16[256]; whole: i8[256]; counted: f8e4[256];
    sum: f8e4[256]; product: f8e4[256]; fused: f8e4[256]; first: f8e4[256]; y2: f32[3, 24]; most: f8e4[]; bad: bool[];
}
block entry {
    op cast(x, to=f8e4) >> narrow;
    op cast(narrow, to=f32) >> wide;
    op cast(y, to=f16) >> half;
    op cast(y, to=i8, rounding_mode="nearest") >> whole;
    op cast(whole, to=f8e4) >> counted;
    op add(y, counted) >> sum;
    op mul(y, y) >> product;
    op relu(product, alpha=0.5) >> fused;
    op sub(fused, sum) >> fused;
    op linear(rows, w) >> y2;
    op max_axis(y, axes=[0]) >> most;
    op is_finite(y) >> bad;
    cache.write sum >> past[step];
    cache.read past[0] >> first;
    cache.increment 1 step;
    return;
}
''', "added")
patterns = np.arange(256, dtype=np.uint8).view(dtype.np)
values = np.sort(patterns[np.isfinite(patterns.astype(np.float32))].astype(np.float32))
middle = (values[1:] + values[:-1]) / 2
points = np.concatenate([values, middle, [248, -248, np.inf, -np.inf, np.nan, 1e-30, 1e30]]).astype(np.float32)
points = np.concatenate([points, np.nextafter(points, np.float32(1e38)), np.nextafter(points, np.float32(-1e38))])
rng = np.random.default_rng(5)
x = np.concatenate([points, rng.standard_normal(2048 - len(points)).astype(np.float32) * 50])
weights = rng.integers(-8, 9, (24, 40)).astype(np.float32).astype(dtype.np)
rows = rng.integers(-99, 100, (3, 40)).astype(np.float32)  # whole numbers: every order of additions is exact
model = oic.Model(tensors={"w": weights})
inputs = {"x": x, "y": patterns, "rows": rows}
makers = [oic.Simulator(graph, model, stage=stage) for stage in ("graph", "planned")]
makers.append(oic.Synthesizer(graph, model).build(sys.argv[1]))
runs = [maker.make_executor() for maker in makers]

def same(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape
    nan = np.isnan(a.astype(np.float64))
    kept = np.where(nan, a.dtype.type(0), a), np.where(nan, b.dtype.type(0), b)
    return np.array_equal(nan, np.isnan(b.astype(np.float64))) and kept[0].tobytes() == kept[1].tobytes()

for step in range(2):
    found = [run.step(**inputs) for run in runs]
    assert [name for other in found for name in other if not same(found[0][name], other[name])] == []
assert same(found[0]["narrow"], x.astype(dtype.np))
saved = [run.save() for run in runs]
assert saved[0] == saved[1] == saved[2]
fresh = [maker.make_executor() for maker in makers]
for run, state in zip(fresh, (saved[2], saved[0], saved[1])):
    run.load(state)
last = [run.step(**inputs) for run in fresh]
assert all(same(last[0][n], other[n]) for other in last for n in last[0]) and same(last[0]["first"], found[0]["sum"])
assert {run.save() for run in fresh} == {fresh[0].save()} != {saved[0]}
"""


def inserted(path: Path, before: str, text: str) -> None:
    """Write `text` before the first line that starts so."""
    whole = path.read_text(encoding="utf-8")
    at = whole.index(f"\n{before}") + 1
    path.write_text(whole[:at] + text + whole[at:], encoding="utf-8")


def copied(folder: Path) -> None:
    """The product, which files may be changed of."""
    without = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "compiler" / "oic", folder / "compiler" / "oic", ignore=without)
    for name in ("runtime_c", "templates"):
        shutil.copytree(ROOT / name, folder / name)


def run_in(folder: Path, script: str, *arguments: str) -> None:
    """A script with the copy in a folder."""
    call = [sys.executable, "-B", "-c", script, str(folder / "made"), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(folder / "compiler")}
    done = subprocess.run(call, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def test_an_element_type_is_a_row_a_name_and_a_block_of_c(tmp_path: Path) -> None:
    """In a copy of the product: cast, computed with, multiplied as weights, kept in a table, saved and loaded."""
    copied(tmp_path)
    inserted(tmp_path / "compiler" / "oic" / "dtypes.py", "f16 = ", ROW)
    inserted(tmp_path / "compiler" / "oic" / "dtypes.py", "    f8, f16, bf16, f32, f64,", "    f8e4,\n")
    inserted(tmp_path / "runtime_c" / "oic.h", "typedef uint16_t oic_f16;", NAME)
    inserted(tmp_path / "runtime_c" / "num.h", "/* ------------------------------------------------------------ f16", BLOCK)
    run_in(tmp_path, USED)


# An encoding in groups of 32 with a scale: how they become integers and bytes, and the kernels that read them.
TWO_BITS = """
def _q2(grouped: Array, amax: Array) -> Groups:
    \"\"\"q in -2..1 in a quarter of a byte, n = q + 2; scale = m / -2, m the element of the largest magnitude.\"\"\"
    low = grouped.min(-1, initial=0)
    scales = (np.where(-low >= amax, low, amax) / np.float32(-2)).astype(np.float16)
    wide = scales.astype(np.float32)[..., None]
    n = np.rint(np.divide(grouped, np.where(wide == 0, 1, wide))).clip(-2, 1)
    return Groups(n.astype(np.int8), scales)


def _quarters(q: NDArray[np.uint8]) -> NDArray[np.uint8]:
    n = (q + np.uint8(2)).reshape(*q.shape[:-1], 4, 8)
    return n[..., 0, :] | n[..., 1, :] << np.uint8(2) | n[..., 2, :] << np.uint8(4) | n[..., 3, :] << np.uint8(6)


def _of_quarters(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.concatenate([data >> np.uint8(s) & np.uint8(3) for s in (0, 2, 4, 6)], -1) - np.uint8(2)


"""
STORED = '    "q2": GroupStorage(8, 2, _q2, _quarters, _of_quarters),\n'
PRODUCT = """/* oic_linear_q2_X_W_B: y[.., M, N] = x[.., M, K] * w[N, K]' + b[N], w in groups of 2 bits, b of type B or NULL.
   Order: quantized_product.inc.h. */
#include "element.h"
#include "common/batch.h"
#include "common/quantized.h"
#include "common/then.h"

typedef struct {
    const T *x;
    const void *w;
    const B_T *b;
    T *y;
    void *work;
    ptrdiff_t rank;
    const ptrdiff_t *shape, *xs;
    ptrdiff_t M, K, N, ldx, room, from;
    oic_then *then;
    const void *context;
} ARGS(oic_linear_q2);

static inline float NAME(oic_linear_q2_sum)(const ARGS(oic_linear_q2) *a, const T *x, ptrdiff_t row)
{
    const ptrdiff_t groups = oic_groups(a->K), panels = oic_panels(a->N);
    const oic_f16 *const scales = (const oic_f16 *)(const void *)((const uint8_t *)a->w + panels * groups * 128);
    const ptrdiff_t panel = row / OIC_PANEL, stream = panel - panel % OIC_STREAM_PANELS;
    const ptrdiff_t width = panels - stream < OIC_STREAM_PANELS ? panels - stream : OIC_STREAM_PANELS;
    float sum = 0.0f;
    for (ptrdiff_t g = 0; g < groups; ++g) {
        const ptrdiff_t at = stream * groups + g * width + panel - stream;
        const uint8_t *const w = (const uint8_t *)a->w + at * 128 + row % OIC_PANEL * 4;
        float all[OIC_GROUP] = {0.0f};
        int8_t q[OIC_GROUP];
        int32_t exact = 0;
        for (ptrdiff_t k = g * OIC_GROUP; k < a->K && k < (g + 1) * OIC_GROUP; ++k) {
            all[k % OIC_GROUP] = (float)LOAD(x, k);
        }
        const float dx = oic_quantized_group(all, q);
        for (int e = 0; e < OIC_GROUP; ++e) {
            exact += q[e] * ((w[e % 8 / 4 * 64 + e % 4] >> e / 8 * 2 & 3) - 2);
        }
        sum += (float)exact * (oic_f16_to_f32(scales[at * OIC_PANEL + row % OIC_PANEL]) * dx);
    }
    return a->b == NULL ? sum : sum + (float)B_LOAD(a->b, row);
}

static inline void NAME(oic_linear_q2)(const ARGS(oic_linear_q2) *a)
{
    for (ptrdiff_t r = 0; r < oic_product(a->rank, a->shape) * a->M; ++r) {
        const T *const x = a->x + oic_offset(r / a->M, a->rank, a->shape, a->xs) + r % a->M * a->ldx;
        for (ptrdiff_t j = 0; j < a->N; ++j) {
            float sum = NAME(oic_linear_q2_sum)(a, x, j);
            if (a->then != NULL) {
                a->then(a->context, &sum, 1, r, r + 1, j, j + 1);
            } else {
                STORE(a->y, r * a->N + j, sum);
            }
        }
    }
}

#include "end.h"
"""
GATHER = """/* oic_gather_q2_X_W_B: y[n, inner] of type W = the n rows ids of table[size, inner] in groups of 2 bits: q * scale. */
#include "element.h"
#include "common/quantized.h"

typedef struct {
    const void *table;
    const B_T *ids;
    W_T *y;
    ptrdiff_t size, inner, n;
} ARGS(oic_gather_q2);

static inline void NAME(oic_gather_q2)(const ARGS(oic_gather_q2) *a)
{
    const ptrdiff_t groups = oic_groups(a->inner), panels = oic_panels(a->size);
    const uint8_t *const table = (const uint8_t *)a->table;
    const oic_f16 *const scales = (const oic_f16 *)(const void *)(table + panels * groups * 128);
    for (ptrdiff_t i = 0; i < a->n * a->inner; ++i) {
        const ptrdiff_t row = (ptrdiff_t)a->ids[i / a->inner], k = i % a->inner, e = k % OIC_GROUP;
        const ptrdiff_t panel = row / OIC_PANEL, stream = panel - panel % OIC_STREAM_PANELS;
        const ptrdiff_t width = panels - stream < OIC_STREAM_PANELS ? panels - stream : OIC_STREAM_PANELS;
        const ptrdiff_t at = stream * groups + k / OIC_GROUP * width + panel - stream;
        const int n = table[at * 128 + row % OIC_PANEL * 4 + e % 8 / 4 * 64 + e % 4] >> e / 8 * 2 & 3;
        W_STORE(a->y, i, (W_C)((float)(n - 2) * oic_f16_to_f32(scales[at * OIC_PANEL + row % OIC_PANEL])));
    }
}

#include "end.h"
"""
ENCODED = """
import sys
import numpy as np
import oic
from oic.driver import Settings, compile_graph
from oic.ir.text_parse import parse_module
from oic.ir.text_print import print_module

graph = oic.parse('''
dynamic { x: f32[3, 70]; ids: i32[4]; }
constant { a: f32[160, 70]; b: f32[70, 40]; bias: f32[160]; table: f32[90, 70]; }
volatile { y: f32[3, 160]; z: f32[3, 40]; rows: f32[4, 70]; }
block entry {
    op linear(x, a, b=bias) >> y;
    op relu(y) >> y;
    op matmul(x, b) >> z;
    op gather(table, ids) >> rows;
    return;
}
''', "encoded")
rng = np.random.default_rng(6)
shapes = {"a": (160, 70), "b": (70, 40), "bias": (160,), "table": (90, 70)}
model = oic.Model(tensors={n: rng.standard_normal(s).astype(np.float32) for n, s in shapes.items()})
x = rng.integers(-127, 128, (3, 70)).astype(np.float32)
x[:, ::32] = 127  # groups are quantised as they are
inputs = {"x": x, "ids": np.array([0, 89, 64, 17], np.int32)}

def narrowed(w):
    '''Every 32 neighbours of [N, K] times two bits.'''
    found = np.empty_like(w)
    for at in np.ndindex(len(w), -(-w.shape[1] // 32)):
        group = w[at[0], at[1] * 32 : at[1] * 32 + 32]
        low = min(group.min(), 0)
        scale = np.float32(np.float16((low if -low >= abs(group).max() else abs(group).max()) / np.float32(-2)))
        found[at[0], at[1] * 32 : at[1] * 32 + 32] = np.rint(group / scale).clip(-2, 1) * scale
    return found

def stored(storage):
    w = {n: model.tensor(n) for n in shapes}
    if storage == "f8":
        import ml_dtypes
        return {n: w[n].astype(ml_dtypes.float8_e5m2).astype(np.float32) if n != "bias" else w[n] for n in w}
    return {"a": narrowed(w["a"]), "b": narrowed(w["b"].T).T, "bias": w["bias"], "table": narrowed(w["table"])}

for storage in sys.argv[2:]:
    program = compile_graph(graph, model, Settings(weights=storage))
    text = print_module(program.planned)
    assert text.count(f"{storage} panels") and f"{storage} columns" in text and print_module(parse_module(text)) == text
    decisions = {d.symbol: d.storage for d in program.stored}
    assert decisions == {"a": storage, "b": storage, "bias": "f32", "table": storage}, decisions
    w = stored(storage)
    exact = x.astype(np.float64) @ w["a"].T.astype(np.float64) + w["bias"]
    wanted = {"y": np.maximum(exact, 0), "z": x.astype(np.float64) @ w["b"].astype(np.float64), "rows": w["table"][inputs["ids"]]}
    makers = [oic.Simulator(graph, model, stage=stage, weights=storage) for stage in ("graph", "planned")]
    makers.append(oic.Synthesizer(graph, model, weights=storage).build(sys.argv[1] + storage))
    for maker in makers:
        found = maker.make_executor().step(**inputs)
        assert all(np.allclose(found[n], wanted[n], rtol=1e-5, atol=1e-2) for n in wanted), (storage, maker)
        assert np.array_equal(found["rows"], wanted["rows"])
"""


def test_an_encoding_in_groups_is_a_row_and_its_kernels(tmp_path: Path) -> None:
    """In a copy of the product: weights of two bits, in products by rows and columns, fused ones too, and in a gather."""
    copied(tmp_path)
    groups = tmp_path / "compiler" / "oic" / "ir" / "quantized.py"
    inserted(groups, "@dataclass(frozen=True)\nclass GroupStorage", TWO_BITS)
    inserted(groups, '    "q8": GroupStorage(', STORED)
    (tmp_path / "runtime_c" / "kernels" / "linear_q2.h").write_text(PRODUCT)
    (tmp_path / "runtime_c" / "kernels" / "gather_q2.h").write_text(GATHER)
    run_in(tmp_path, ENCODED, "q2")


def test_an_encoding_as_another_float_is_a_row(tmp_path: Path) -> None:
    """In a copy of the product: weights in a byte each, of an element type that there is."""
    copied(tmp_path)
    inserted(tmp_path / "compiler" / "oic" / "ir" / "encodings.py", '    "bf16": dtypes.bf16', '    "f8": dtypes.f8,\n')
    run_in(tmp_path, ENCODED, "f8")
