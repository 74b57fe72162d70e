"""A library with code for several instruction sets: each gives the same bits, and states go from one to another."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import oic
from oic.kernels.targets import INSTRUCTION_SETS
from oic.toolchain.compiler import find_compiler, macros

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
