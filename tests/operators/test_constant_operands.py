"""Operands that are constants, which may be laid out, folded or selected at build, give the bits of the same ones as inputs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oic
from batch import build_together
from oic.dtypes import Array
from tests.fuzz.operator_cases import Case
from tests.fuzz.operators import Batch, batches, part, suite


def taken(case: Case, first: int) -> bool:
    """Operands of known sizes, from the first that is held, whose values are drawn each by itself."""
    operands = case.operands()
    return not case.dynamic and len(operands) > first and operands[0][1].data != "mixed" and not case.variables


def held(batch: Batch, first: int) -> dict[str, str]:
    """The element types of the operands of each case from that one on, by the names of their inputs."""
    return {
        f"x{at}_{number}": str(given.dtype)
        for number, case in enumerate(batch.cases)
        for at, (_, given) in enumerate(case.operands())
        if at >= first
    }


def with_constants(text: str, names: dict[str, str]) -> str:
    """The graph with the declarations of these inputs in a section of constants."""
    moved: list[str] = []

    def move(found: re.Match[str]) -> str:
        if found[1] not in names:
            return found[0]
        moved.append(found[0].strip())
        return ""

    text = re.sub(r"^ *(x\d+_\d+): .*;$", move, text, flags=re.MULTILINE)
    return text.replace("  block entry {", f"  constant {{ {' '.join(moved)} }}\n  block entry {{", 1)


def programs(made: list[Batch], first: int) -> Iterator[tuple[Batch, dict[str, Array], oic.Synthesizer, oic.Synthesizer]]:
    for batch in made:
        rng = np.random.default_rng(0)
        given = {k: a for number, case in enumerate(batch.cases) for k, a in case.arrays(number, 0, rng).items()}
        names = held(batch, first)
        model = oic.Model(tensors={name: oic.Tensor(given[name], dtype) for name, dtype in names.items()})
        text = with_constants(batch.text, names).replace(f"graph {batch.name} ", f"graph held_{batch.name} ", 1)
        plain = oic.parse(batch.text, "plain.oi")
        yield batch, given, oic.Synthesizer(plain), oic.Synthesizer(oic.parse(text, "held.oi"), model)


def bits(a: Array) -> tuple[bytes, bytes]:
    """What two results have in common that are the same: of NaN, that they are."""
    return (a == a).tobytes(), np.where(a == a, a, a.dtype.type(0)).tobytes()


@pytest.mark.parametrize("first", [0, 1])
def test_constants_give_the_same_bits(first: int, tmp_path: Path) -> None:
    """All operands, of which a build computes what it can, and all but the first."""
    cases = [case for case in suite() if taken(case, first)]
    made = list(programs(batches(part(cases, 9 if first else 20)), first))
    assert sum(len(batch.cases) for batch, *_ in made) > 250
    build_together([one for _, _, *both in made for one in both], tmp_path)
    wrong: list[str] = []
    for batch, given, plain, constants in made:
        names = held(batch, first)
        with plain.make_executor() as one, constants.make_executor() as other:
            expected: dict[str, Any] = one.step(**given)
            found = other.step(**{k: v for k, v in given.items() if k not in names})
        for name, value in expected.items():
            if bits(value) != bits(found[name]):
                wrong.append(f"{name}: {batch.cases[int(name.rpartition('_')[2])]}")
    assert not wrong, f"{len(wrong)} differ\n" + "\n".join(wrong[:20])
