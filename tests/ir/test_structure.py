"""Every op that is no operator has a meaning in the interpreter and, where it reaches C, a writer."""

from __future__ import annotations

from typing import Any

from oic.codegen.statements import WRITERS
from oic.ir.control import Cond, Func, Return, Yield
from oic.ir.core import REGISTRY
from oic.ir.state import (
    CacheCount,
    CacheRead,
    CacheReset,
    CacheStep,
    CacheWrite,
    Constant,
    ConstantSelect,
    IndexTensor,
    Splat,
    State,
)
from oic.operators.base import Operator
from oic.operators.fused import Copy, Fused
from oic.operators.position import RopeAngles
from oic.reference.interpret import SEMANTICS

STRUCTURAL: set[Any] = {c for c in REGISTRY.values() if not (c.catalog and issubclass(c, Operator))}

# Written by their kind: views and constants as addresses, numbers where they are used.
KINDS: set[Any] = {Func, State, Constant, ConstantSelect, Splat, IndexTensor, Cond}
LOWERED: set[Any] = {CacheRead, CacheWrite, CacheStep, CacheReset, CacheCount}  # none is left in INDEXED
COMPUTED: set[Any] = {Fused, Copy}  # the interpreter asks `evaluate`, as for operators
OWN: set[Any] = {RopeAngles}  # the compiler's own operators: evaluated and called as those of the catalog
FIXED: set[Any] = {Func, Yield, Return, State, Constant, ConstantSelect, IndexTensor}  # values there before


def test_every_structural_op_has_a_meaning() -> None:
    assert set(SEMANTICS) | COMPUTED | FIXED | OWN == STRUCTURAL
    assert not set(SEMANTICS) & (COMPUTED | FIXED)


def test_every_structural_op_of_planned_has_a_writer() -> None:
    assert (set(WRITERS) | KINDS | OWN) & STRUCTURAL == STRUCTURAL - LOWERED
    assert not set(WRITERS) & (KINDS | LOWERED)
