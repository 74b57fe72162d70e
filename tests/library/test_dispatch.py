"""A library with code for several instruction sets: each gives the same bits, and states go from one to another."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import oic
from batch import build_together
from oic import dtypes
from oic.dtypes import Array
from oic.kernels.targets import FUSED, INSTRUCTION_SETS, SEPARATE
from oic.toolchain.compiler import find_compiler, macros
from processor import AVX2, features

GRAPH = """
dynamic { x: f32[2, 37]; }
constant { w: f32[37, 37]; }
persistent { sum: f32[2, 37]; }
volatile { h: f32[2, 37]; s: f32[2, 37]; }
block entry {
    op linear(x, w) >> h;
    cache.read sum >> s;
    op add(s, h) >> s;
    cache.write s >> sum;
    return;
}
"""
QUANTIZED = """
dynamic { x: f32[N, 100] @max(N=70); }
constant { w: f32[333, 100]; v: f32[100, 333]; }
volatile { h: f32[N, 333]; y: f32[N, 100]; }
block entry {
    op linear(x, w) >> h;
    op linear(h, v) >> y;
    return;
}
"""
MACHINE = [s for s in INSTRUCTION_SETS.values() if s.machine in macros(tuple(find_compiler()))]
pytestmark = pytest.mark.skipif(len(MACHINE) < 2, reason="no instruction sets are known of the compiler's machine")


def synthesizer(dispatch: str, numerics: str | None = None, target: str = "host") -> oic.Synthesizer:
    w = np.random.default_rng(1).standard_normal((37, 37)).astype(np.float32)
    return oic.Synthesizer(
        oic.parse(GRAPH, "turn"), oic.Model(tensors={"w": w}), dispatch=dispatch, numerics=numerics, target=target
    )


def run(made: oic.Synthesizer, steps: int, saved: bytes | None = None) -> tuple[list[bytes], bytes]:
    """Outputs of some steps, and the state after them."""
    rng = np.random.default_rng(2)
    with made.make_executor() as executor:
        if saved is not None:
            executor.load(saved)
        xs = [rng.standard_normal((2, 37)).astype(np.float32) for _ in range(steps)]
        return [executor.step(x=x)["s"].tobytes() for x in xs], executor.save()


def test_every_set_gives_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last one that the machine has computes, or the one asked for; one that it has not is refused."""
    made = synthesizer(",".join(s.name for s in MACHINE[:2])).build(tmp_path)

    def number() -> int:
        with made.make_executor() as executor:
            return int(executor._session.set)  # type: ignore[attr-defined]

    best, expected = number(), run(made, 3)
    halfway = run(made, 1)[1]
    for at in range(best + 1):
        monkeypatch.setenv("OIC_DISPATCH", MACHINE[at].name)
        assert number() == at
        assert run(made, 3) == expected
        monkeypatch.delenv("OIC_DISPATCH")
        further = run(made, 1, halfway)
        monkeypatch.setenv("OIC_DISPATCH", MACHINE[at].name)
        assert run(made, 1, halfway) == further
    for name in ("none", *(s.name for s in MACHINE[best + 1 :])):
        monkeypatch.setenv("OIC_DISPATCH", name)
        with pytest.raises(oic.StepError, match="OIC_DISPATCH") as refused:
            made.make_executor()
        assert refused.value.status == "OIC_ERR_INPUT"


def sets_that_run(made: oic.Synthesizer, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The instruction sets of a library, one after the other that the processor has: sessions made meanwhile compute with it."""
    monkeypatch.delenv("OIC_DISPATCH", raising=False)
    with made.make_executor() as executor:
        best = int(executor._session.set)  # type: ignore[attr-defined]
    for s in made.spec.target.sets[: best + 1]:
        if s.name != "intel" or made.spec.target.sets[best].name != "zen5":  # no processor has both
            monkeypatch.setenv("OIC_DISPATCH", s.name)
            yield s.name


def test_every_set_gives_the_same_bits_of_quantized_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All sets that have the class `fused`; one row, some, and as many as make tables."""
    if MACHINE[0].name == "sse2" and not set(AVX2) <= features():
        pytest.skip("this processor has no set of the class `fused`")
    rng = np.random.default_rng(3)
    tensors = {n: rng.standard_normal(shape).astype(np.float32) for n, shape in (("w", (333, 100)), ("v", (100, 333)))}
    made = oic.Synthesizer(
        oic.parse(QUANTIZED, "quantized"), oic.Model(tensors=tensors), dispatch="all", numerics=FUSED, weights="w=q8,v=q4"
    ).build(tmp_path)
    xs = [rng.standard_normal((n, 100)).astype(np.float32) for n in (1, 5, 70)]
    found = {}
    for name in sets_that_run(made, monkeypatch):
        with made.make_executor() as executor:
            found[name] = [value.tobytes() for x in xs for value in executor.step(x=x).values()]
    first = next(iter(found))
    assert [name for name in found if found[name] != found[first]] == []


FLOATS = [s for s in MACHINE if not s.fours or s.name == "intel"]  # the others compute floats as one of these
HEADS = ((8, 4, 2), (24, 4, 2), (64, 4, 2), (64, 3, 3))  # width, of queries, of keys; the last go by in turn on some machines
MASKS = {"plain": "", "causal": ", causal=true", "window": ", causal=true, window=37"}
NORMS = {
    "rms": "rms_norm({x}, g, eps=1e-5)", "layer": "layer_norm({x}, g, beta=b, eps=1e-5)", "softmax": "softmax({x})",
    "log_softmax": "log_softmax({x})",
}  # fmt: skip
SIZES = ((0, 0), (0, 65), (3, 0), (1, 1), (1, 399), (3, 130), (13, 77), (67, 129))  # queries, keys


def attending() -> tuple[str, dict[str, tuple[str, tuple[int | str, ...]]]]:
    """A graph of attention over tables of every type, and of norms; type and shape of its inputs."""
    inputs: dict[str, tuple[str, tuple[int | str, ...]]] = {f"z_{kind}": (kind, ("N", 75)) for kind in ("f32", "bf16")}
    inputs["scale2"], inputs["scale3"] = ("f32", ("T", 2)), ("f32", ("T", 3))
    outputs, body = [], []
    for width, queries, keys in HEADS:
        inputs[f"q_{width}_{keys}"] = ("f32", ("N", queries, width))
        for kind in ("f32", "f16", "bf16", "i8"):
            for name in "kv":
                inputs[f"{name}_{kind}_{width}_{keys}"] = (kind, ("T", keys, width))
            scales = f", k_scale=scale{keys}, v_scale=scale{keys}" if kind == "i8" else ""
            for mask, setting in MASKS.items():
                form = f"{kind}_{width}_{keys}"
                outputs.append(f"{mask}_{form}: f32[N, {queries}, {width}];")
                body.append(f"op attention(q_{width}_{keys}, k_{form}, v_{form}{scales}{setting}) >> {mask}_{form};")
    for kind in ("f32", "bf16"):
        for name, call in NORMS.items():
            outputs.append(f"{name}_{kind}: {kind}[N, 75];")
            body.append(f"op {call.format(x=f'z_{kind}')} >> {name}_{kind};")
    declared = [f"{name}: {kind}[{', '.join(map(str, shape))}];" for name, (kind, shape) in inputs.items()]
    declared[0] = declared[0].replace(";", " @max(N=67);")
    declared[2] = declared[2].replace(";", " @max(T=400);")
    parts = {"dynamic": declared, "constant": ["g: f32[75];", "b: f32[75];"], "volatile": outputs}
    lines = [f"{section} {{ {' '.join(found)} }}" for section, found in parts.items()]
    return "\n".join([*lines, f"block entry {{ {' '.join(body)} return; }}"]), inputs


@pytest.mark.parametrize("numerics", (FUSED, SEPARATE))
def test_attention_and_norms_have_the_bits_of_plain_c(
    numerics: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With each instruction set, on one thread and on two."""
    x86 = MACHINE[0].name == "sse2"
    sets = [s.name for s in FLOATS if numerics != FUSED or s.name != "sse2"]
    if x86 and numerics == FUSED and not set(AVX2) <= features():
        pytest.skip("this processor does not multiply and add in one rounding")
    text, inputs = attending()
    rng = np.random.default_rng(4)
    model = oic.Model(tensors={n: rng.standard_normal(75).astype(np.float32) for n in "gb"})
    graph = oic.parse(text, "attending")
    steps = [{name: drawn(rng, kind, shape, n, t) for name, (kind, shape) in inputs.items()} for n, t in SIZES]

    def outputs(made: oic.Synthesizer, threads: int) -> list[dict[str, bytes]]:
        with made.make_executor(threads) as executor:
            return [{name: value.tobytes() for name, value in executor.step(**given).items()} for given in steps]

    plain = oic.Synthesizer(graph, model, target="portable", numerics=numerics)
    build_together([plain], tmp_path / "plain", "-O0", "-DOIC_PORTABLE", *(["-mfma"] if x86 and numerics == FUSED else []))
    made = oic.Synthesizer(graph, model, dispatch=",".join(sets), numerics=numerics, threads=2).build(tmp_path / "sets")
    expected = outputs(plain, 1)
    for name in sets_that_run(made, monkeypatch):
        for threads in (1, 2):
            for size, found, wanted in zip(SIZES, outputs(made, threads), expected, strict=True):
                differing = [output for output in wanted if found[output] != wanted[output]]
                assert not differing, (name, threads, size)


def drawn(rng: np.random.Generator, kind: str, shape: tuple[int | str, ...], queries: int, keys: int) -> Array:
    """Random numbers of a type, of a shape whose names are sizes."""
    sizes = {"N": queries, "T": keys}
    x = rng.standard_normal([sizes[n] if isinstance(n, str) else n for n in shape])
    return (x * 40).clip(-127, 127).astype(np.int8) if kind == "i8" else x.astype(dtypes.ALL[kind].np)


def test_make_compiles_each_file_for_its_set(tmp_path: Path) -> None:
    synthesizer(MACHINE[0].name + "," + MACHINE[1].name).emit(tmp_path)
    call = ["make", "-s", "-C", str(tmp_path), f"CC={find_compiler()[0]}", "CFLAGS=-O0", "libturn.so"]
    done = subprocess.run(call, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]
    listed = subprocess.run(["nm", "-D", "--defined-only", str(tmp_path / "libturn.so")], capture_output=True, text=True)
    assert {line.split()[-1] for line in listed.stdout.splitlines()} == {
        f"turn_{name}" for name in ("init_as", "open_as", "close", "step", "reset", "save", "load")
    }


def test_what_cannot_be_dispatched_is_refused() -> None:
    first = MACHINE[0].name
    with pytest.raises(oic.OicError) as refused:
        synthesizer(f"{first},quantum")
    assert refused.value.diagnostics[0].slug == "unknown-instruction-set"
    with pytest.raises(oic.OicError) as refused:
        synthesizer(first, target="freestanding")
    assert refused.value.diagnostics[0].slug == "dispatch-target"
    if first == "sse2":
        with pytest.raises(oic.OicError, match="sse2") as refused:
            synthesizer("avx2,sse2", numerics="fused")
        assert refused.value.diagnostics[0].slug == "dispatch-numerics"
        assert synthesizer("all", numerics="fused").spec.target.numerics == "fused"
        assert synthesizer("avx2,sse2").spec.target.numerics == "separate"
