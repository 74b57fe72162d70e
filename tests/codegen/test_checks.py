"""C makes the checks of PLANNED, each once, and no others: the emitter decides about none."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

import oic
from codegen import programs as small
from language.programs import PROGRAMS
from oic import Model
from oic.codegen.c_module import Unit, signature
from oic.codegen.c_print import lines
from oic.codegen.statements import function_body
from oic.driver import Settings, compile_graph
from oic.ir.core import Op
from oic.ir.index import (
    AssertShape,
    CheckIds,
    CheckRange,
    ExtentBind,
    IndexAdd,
    IndexLoad,
    IndexMul,
    IndexSub,
)
from oic.ir.ranges import Ranges
from oic.ir.state import StateGet
from paths import ROOT
from tests.fuzz.generate import Options, generate

FUNCTIONS = {
    ExtentBind: "check_range", CheckIds: "check_id", AssertShape: "check_size", IndexLoad: "index_of_u64",
    StateGet: "index_of_u64", IndexAdd: "index_add", IndexSub: "index_sub", IndexMul: "index_mul",
}  # fmt: skip
CALL = re.compile(r"oic_(check_range|check_that|check_id|check_size|index_of_u64|index_add|index_sub|index_mul)\(")


def _sources() -> Iterator[tuple[str, Model | None]]:
    for path in sorted((ROOT / "tests" / "golden" / "c").glob("*.oi")):
        text = path.read_text(encoding="utf-8")
        constants = [d.name for d in oic.parse(text).declarations if d.kind == "constant"]
        shape = (16, 32 if path.stem == "residual" else 8)
        yield text, Model(tensors={name: np.zeros(shape, np.float32) for name in constants})
    yield (ROOT / "examples" / "everything" / "graph.oi").read_text(encoding="utf-8"), None
    for program in PROGRAMS.values():
        yield program.text, program.model
    for text in (small.ELEMENTWISE, small.COUNTER):
        yield text, None
    for seed in range(12):
        yield generate(seed, Options(statements=8)), None


CASES = [
    pytest.param(text, model, threads, id=f"{number}-{threads}")
    for number, (text, model) in enumerate(_sources())
    for threads in ((1, 2) if "consumers" in text else (1,))
]


@pytest.mark.parametrize(("text", "model", "threads"), CASES)
def test_checks_of_c_are_those_of_planned(text: str, model: Model | None, threads: int) -> None:
    module = compile_graph(oic.parse(text), model, Settings(threads=threads)).planned
    unit = Unit(module)
    for func in module.functions():
        body, tasks = function_body(unit, func, signature(unit, func))
        made = Counter(CALL.findall("\n".join([*lines(body.statements), *(line for task in tasks for line in task.lines)])))
        made["check_range"] -= len(signature(unit, func).extents)  # of arguments, before anything else
        ranges = Ranges()
        wanted = Counter(call for op in func.body.all_ops() if ranges.refuses(op) for call in _calls(op))
        assert +made == wanted


def _calls(op: Op) -> list[str]:
    """The functions that C calls to refuse what an op refuses."""
    if isinstance(op, CheckRange):
        return ["check_range" if op.says in ("", "unequal", "size") else "check_that"]
    if isinstance(op, AssertShape):
        return [FUNCTIONS[AssertShape] for a, b in zip(op.x.shape, op.shape, strict=True) if a != b]
    return [FUNCTIONS[type(op)]]
