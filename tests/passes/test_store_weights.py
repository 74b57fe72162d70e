"""Constants in the storage that rules say: values, what is left as it was, and compiled code beside the reference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import oic
from batch import build_together
from oic import dtypes
from oic.compare.harness import Run, compare
from oic.driver import Program, Settings, compile_graph, lowered
from oic.dtypes import Array
from oic.ir.module import Module
from oic.ir.text_parse import parse_module
from oic.ir.text_print import print_module
from oic.memory.verify import verify

GRAPH = """
dynamic  { ids: i32[N] @max(N=9); x: f32[N, 40]; }
constant {
  emb: f32[70, 96]; up(l): f32[200, 96] @pattern("up.{l}"); down(l): f32[200, 96] @pattern("down.{l}"); tall: f32[96, 40];
  bias(l): f32[200] @pattern("bias.{l}"); g: f32[96]; both: f32[96, 96]; summed: f32[96, 96]; small: f32[3, 8];
  half: bf16[96, 40]; shift: bf16[96]; words: bf16[70, 96];
}
volatile { y: f32[N, 96]; logits: f32[N, 70]; z: f32[N, 96]; s: f32[N, 3]; row: bf16[N, 96]; wide: f32[N, 96]; }
block entry {
  assign h: f32[N, 200]; assign s8: f32[N, 8]; assign first: f32[1, 96];
  op linear(x, tall) >> y;
  op linear(x, half, b=shift) >> z;
  op gather(emb, ids) >> wide;
  op add(y, wide) >> y;
  op add(y, z) >> y;
  loop layers (l in 0..2) {
    op linear(y, up[l], b=bias[l]) >> h;
    op relu(h) >> h;
    op matmul(h, down[l]) >> y;
    op mul(y, g) >> y;
  }
  op linear(y, both) >> z;
  op matmul(z, both) >> z;
  op matmul(z, summed) >> z;
  op slice(summed, axis=0, start=0, end=1) >> first;
  op add(z, first) >> z;
  op slice(x, axis=1, start=0, end=8) >> s8;
  op linear(s8, small) >> s;
  op gather(words, ids, to=f32) >> wide;
  op gather(words, ids) >> row;
  op matmul(y, emb, transpose_b=true) >> logits;
  return;
}
"""
RULES = ("q8", "bf16", "emb=q8, half=f32, tall=f16, *=q4")


def tensors() -> dict[str, Array]:
    rng = np.random.default_rng(3)
    found = {"emb": (70, 96), "g": (96,), "both": (96, 96), "summed": (96, 96), "small": (3, 8), "tall": (96, 40),
             **{f"{n}.{i}": (200, 96) for n in ("up", "down") for i in range(2)}, "bias.0": (200,), "bias.1": (200,)}  # fmt: skip
    made = {name: (rng.standard_normal(shape) / shape[-1] ** 0.5).astype(np.float32) for name, shape in found.items()}
    narrow = {"half": (96, 40), "shift": (96,), "words": (70, 96)}
    return made | {name: rng.standard_normal(s).astype(dtypes.bf16.np) for name, s in narrow.items()}


MODEL = oic.Model(tensors=tensors())


def program(rules: str) -> Program:
    return compile_graph(oic.parse(GRAPH, "stored"), MODEL, Settings(weights=rules, verified=True))


def after(found: Program, last: str) -> Module:
    for step, module in lowered(found.module, found.settings):
        if step.name == last:
            return module
    raise AssertionError(last)


def encodings(module: Module) -> dict[str, str]:
    return {op.symbol: f"{op.type.dtype} {op.type.encoding}".strip() for op in module.constants()}


def test_what_can_be_read_so_is_stored_so() -> None:
    found = program("q8")
    early = encodings(found.module)
    assert early == {
        "emb": "f32 q8 panels", "up": "f32 q8 panels", "down": "f32 q8 columns", "tall": "f32 q8 panels", "bias": "f32",
        "g": "f32", "both": "f32", "summed": "f32", "small": "f32", "half": "f32 q8 panels", "shift": "bf16", "words": "bf16",
    }  # fmt: skip
    assert {c.symbol: c.reason for c in found.stored if c.reason} == {
        "both": "what reads it wants different layouts", "summed": "'add' reads it", "small": "q8 is no smaller",
        "words": "'gather' reads it", "bias": "it is no matrix", "g": "it is no matrix", "shift": "it is no matrix",
    }  # fmt: skip
    sizes = {c.symbol: c.nbytes for c in found.stored}
    assert sizes["emb"] == 80 * 96 + 80 * 3 * 2 + 32 and sizes["small"] == 96
    module = after(found, "pack-weights")
    assert {s: e for s, e in encodings(module).items() if "q8" in e} == {s: e for s, e in early.items() if "q8" in e}
    used = {op.results[0].hint: op.kernel for op in module.all_ops() if getattr(op, "kernel", "")}
    assert {used["h"], used["logits"]} == {"linear_q8"}
    assert {op.kernel for op in module.all_ops() if op.name == "gather"} == {"gather_q8", "gather", "gather_wide"}


def test_narrow_floats_take_the_layout_that_costs_the_least() -> None:
    module = after(program("bf16"), "pack-weights")
    found = encodings(module)
    assert (found["up"], found["down"], found["emb"], found["both"]) == (
        "f32 bf16 panels", "f32 bf16 columns", "f32 bf16 panels", "f32 bf16"
    )  # fmt: skip
    assert found["half"] == "bf16 panels", "it was declared so"


def test_the_text_says_it() -> None:
    for stage in (program(RULES[-1]).module, after(program(RULES[-1]), "plan-memory")):
        text = print_module(stage)
        assert "f32[2, 200, 96] q4 panels" in text
        again = parse_module(text, weights=stage.weights)  # type: ignore[arg-type]
        verify(again)
        assert print_module(again) == text


def test_compiled_code_agrees_with_the_reference(tmp_path: Path) -> None:
    """Within the bound that activations in groups have; one row after the other has the bits of all at once."""
    rng = np.random.default_rng(1)
    made = [oic.Synthesizer(oic.parse(GRAPH, f"stored{i}"), MODEL, weights=rules) for i, rules in enumerate(RULES)]
    build_together(made, tmp_path)
    inputs = {"ids": rng.integers(0, 70, 9).astype(np.int32), "x": rng.standard_normal((9, 40)).astype(np.float32)}
    wrong = inputs["x"].copy()
    wrong[1, 3], wrong[4, 39] = np.inf, np.nan  # NaN for all of the row, where there are groups
    for rules, compiled in zip(RULES, made, strict=True):
        with compiled.make_executor() as ex:
            runs = [Run("entry", {n: v[first:end] for n, v in inputs.items()}) for first, end in ((0, 9), (3, 4), (5, 5))]
            runs.append(Run("entry", {**inputs, "x": wrong}))
            verdict = compare(compiled.program.module, ex, runs)
            assert verdict.equal and verdict.worst > 0, f"{rules}: {verdict}"
            together = ex.step(**inputs)
            for row in range(9):
                one = ex.step(**{n: v[row : row + 1] for n, v in inputs.items()})
                for name, values in together.items():
                    assert one[name].tobytes() == values[row : row + 1].tobytes(), (rules, name, row)
            both = [oic.Simulator(oic.parse(GRAPH), MODEL, weights=rules, stage=s) for s in ("graph", "planned")]
            graph, planned = (sim.make_executor() for sim in both)
            assert all(np.array_equal(a, b) for a, b in zip(graph.step(**inputs).values(), planned.step(**inputs).values()))
            assert np.array_equal(ex.fetch("up[1]"), graph.fetch("up[1]"))
            assert not np.array_equal(ex.fetch("up[1]"), MODEL.tensor("up.1"))


@pytest.mark.parametrize(
    ("rules", "message", "hint"),
    [
        ("q9", "'q9' is no precision of weights", "f32, bf16, f16, q8, q4"),
        ("", "", ""),
        ("up=,q8", "'up=' is no precision", "f32, bf16, f16, q8, q4"),
        ("embed=q8,*=q4", "no constant is called 'embed'", "did you mean 'emb'?"),
        ("*.w=q8", "no constant is called '*.w'", "there are tall, half"),
        ("=q8", "'=q8' is no precision", "f32, bf16"),
        ("u?=q8", "no constant is called 'u?'", "there are tall"),
        ("[tu]*=q8", "no constant is called '[tu]*'", "there are tall"),
        ("q8,q4", "'q4' is for no constant: '*' before it fits all names that '*' fits", "for fewer names first"),
        ("up=q8,up=q4", "'up=q4' is for no constant: 'up' before it", "for fewer names first"),
        ("e*=q8,em*=q4", "'em*=q4' is for no constant: 'e*' before it", "for fewer names first"),
        ("up=f32,*=q8,tall=q4", "'tall=q4' is for no constant: '*' before it", "for fewer names first"),
    ],
)
def test_wrong_rules_are_refused(rules: str, message: str, hint: str) -> None:
    if not rules:
        assert not program(rules).stored
        return
    with pytest.raises(oic.OicError) as refused:
        program(rules)
    (diagnostic,) = refused.value.diagnostics
    assert diagnostic.slug == "weights-rule" and message in diagnostic.message and hint in (diagnostic.hint or "")


def test_the_first_rule_that_fits_counts() -> None:
    found = encodings(program("up=f32,em*=q4,e*=q8,*=q8").module)
    assert (found["up"], found["emb"], found["tall"]) == ("f32", "f32 q4 panels", "f32 q8 panels")
    assert encodings(program("f32").module) == encodings(program("").module)
