"""What is said of a step that an op refuses, by the interpreter or by generated code.

Generated code notes a status, a place of the source, a variable and two numbers; `refused_by` finds
the op that this can be from, and `refusal` says it in words.
"""

import math
from collections.abc import Iterable

import numpy as np

from oic.diagnostics import Span, StepError
from oic.ir import index
from oic.ir.core import Op
from oic.ir.ranges import CHECKS
from oic.ir.state import StateGet

OVERFLOW = "OIC_ERR_OVERFLOW"


def variable_of(op: Op) -> str | None:
    """What an op that may refuse the step is about; None for arithmetic."""
    match op:
        case index.CheckRange() | index.CheckIds() | index.ExtentBind():
            return op.variable or None
        case index.AssertShape(x=x) | index.IndexLoad(x=x):
            return x.hint or None
        case StateGet(state=state):
            return state.symbol
    return None


def impossible(variable: str, value: int) -> StepError:
    """The refusal to go on from a value of the state that no step leaves of which more is known."""
    what = f"the state holds {value} for '{variable}': it wrapped, or its memory was changed; reset or load"
    return StepError("OIC_ERR_STATE", what, variable=variable)


def beyond(status: str, variable: str | None, value: int, bound: int, span: Span | None = None) -> StepError:
    """The refusal of a value on the far side of a bound."""
    what = f"'{variable}': {value} is {'below' if value < bound else 'above'} {bound}"
    return StepError(status, what, variable=variable, index=value, bound=bound, span=span)


def refusal(op: Op, value: int, bound: int) -> StepError:
    """The refusal of a value that an op finds beyond a bound."""
    assert not op.attributes().get("checked"), f"{op.name} is marked as checked, and refuses {value}"
    name = variable_of(op)
    match op:
        case index.AssertShape() | index.CheckRange(says=index.UNEQUAL):
            status = "OIC_ERR_SHAPE"
            what = (f"'{name}': " if name else "") + f"size {value} is not {bound}"
        case index.ExtentBind() | index.CheckRange(says=index.SIZE):
            status = op.below if value < bound else op.above
            what = f"a size of '{name}' is {value}, and its {'minimum' if value < bound else 'maximum'} {bound}"
        case index.CheckRange(says=says) if says:
            what = f"'{name}': {value} {says}"
            if op.radix:
                indices = np.unravel_index(value % math.prod(op.radix), op.radix)
                what = f"'{name}' {says} {[int(i) for i in indices]}"
            return StepError(op.below, what, variable=name, index=value, span=op.span)
        case index.CheckRange():
            return beyond(op.below if value < bound else op.above, name, value, bound, op.span)
        case index.CheckIds():
            status, what = "OIC_ERR_INDEX", f"'{name}': id {value} is outside 0 to {bound - 1}"
        case _:
            what = f"'{name}' does not fit an index" if name else "index arithmetic leaves 64 bits"
            return StepError(OVERFLOW, what, variable=name, span=op.span)
    return StepError(status, what, variable=name, index=value, bound=bound, span=op.span)


def refused_by(ops: Iterable[Op], status: str, variable: str | None, value: int, bound: int) -> Op | None:
    """The op, among those of one place in the source, that may have refused this."""
    return next((op for op in ops if _can_be(op, status, variable, value, bound)), None)


def _can_be(op: Op, status: str, variable: str | None, value: int, bound: int) -> bool:
    if op.attributes().get("checked") or variable_of(op) != variable:
        return False
    if isinstance(op, (index.IndexAdd, index.IndexSub, index.IndexMul, index.IndexLoad, StateGet)):
        return status == OVERFLOW
    if not isinstance(op, CHECKS):
        return False
    if isinstance(op, index.CheckRange) and op.says in ("", *index.NUMBERS):
        passed = op.low if value < bound else op.high
        if value == bound or (isinstance(passed, int) and passed != bound):
            return False
    if isinstance(op, index.ExtentBind) and bound != (0 if value < 0 else op.extent.maximum):
        return False
    return refusal(op, value, bound).status == status
