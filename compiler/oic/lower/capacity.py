"""How far each index of a table can grow (SPEC, 8.4)."""

import math
from collections.abc import Mapping

from oic.check.binding import RESERVE, Binding, check_bytes
from oic.check.model_data import data_of
from oic.check.symbols import LoopIndex, Meanings, Size, Variable
from oic.ir import dims, intervals
from oic.ir.intervals import Range
from oic.ir.types import StateIndex, StateType
from oic.syntax import tree as s


def state_type(binding: Binding, variable: Variable, capacity: Mapping[str, int], *, hosted: bool) -> StateType:
    """The type of a persistent variable, with the capacity of every index.

    capacity   of `--max`, by index name or by `variable.index`
    """
    auto, table = variable.grows, variable.table
    shape = tuple(dims.maximum(d) for d in variable.dims if d is not None)
    known = {i: _bounded(binding, variable, i, capacity) for i in (*table, *auto)}
    free = [i for i, (n, _) in known.items() if n is None]
    if free and not hosted:
        what = f"nothing bounds index '{free[0]}' of '{variable.name}' and the target cannot reserve"
        hint = f"--max {variable.name}.{free[0]}=N, or @fixed({free[0]}=N)"
        binding.report.error("capacity-unknown", what, variable.declaration.head_span, hint=hint)

    def of(reserve: int) -> StateType:
        made = {
            i: StateIndex(i, reserve if n is None else n, fixed, reserved=n is None) for i, (n, fixed) in known.items()
        }
        indices, grows = tuple(made[i] for i in table), tuple(made[i] for i in auto)
        return StateType(variable.dtype, shape, indices, grows, variable.ring is not None)

    reserve = 1 << 30  # then the largest power of two with which all that is unbounded fits
    while reserve > 1 and variable.dtype.nbytes(math.prod(of(reserve).capacity_shape)) > RESERVE:
        reserve //= 2
    type_ = of(reserve)
    counts = ", ".join(f"{i.name}={i.capacity}" for i in (*type_.table, *type_.auto))
    less = f"its capacity is {counts}; --max and @fixed make it less" if counts else None
    with binding.report.refusing():
        check_bytes(variable.name, variable.dtype, type_.capacity_shape, variable.declaration.head_span, less)
    return type_


def _bounded(binding: Binding, variable: Variable, index: str, capacity: Mapping[str, int]) -> tuple[int | None, bool]:
    """The capacity of an index and whether `@fixed` gives it; None where nothing bounds it."""
    if (fixed := variable.fixed(index)) is not None:
        assert isinstance(fixed, s.Expr)
        bound = binding.bound(fixed, f"the bound of index '{index}'")
        variable.refused |= bound is None  # no access is measured by it
        return bound or 1, True
    for key in (f"{variable.name}.{index}", index):
        if key in capacity:
            return max(1, capacity[key]), False
    return _static_reach(binding, variable, index), False


def _static_reach(binding: Binding, variable: Variable, index: str) -> int | None:
    """The most that scalar indices and static slice ends reach, or None if one is not static."""
    position, auto, first = variable.indices.index(index), index in variable.grows, len(variable.table)
    reach = 1
    for access, writes, meanings in variable.accesses:
        given = access.indices or ()
        if position >= len(given) or (auto and any(isinstance(i, s.Slice) for i in given[first:])):
            continue  # a slice reads a part of the matrix as it is
        most = _reach(binding, meanings, given[position], writes)
        if most is None:
            return None
        # A count goes up to its capacity, an index stays below.
        reach = max(reach, most - auto)
    return reach


def _reach(binding: Binding, meanings: Meanings, index: s.Index, writes: bool) -> int | None:
    """The count that one position raises to, or None.  A read's slice raises nothing."""
    if isinstance(index, s.Slice):
        end = _range(binding, meanings, index.end) if index.end is not None else (0, 0)
        return end[1] if end else (None if writes else 0)
    found = _range(binding, meanings, index)
    return found[1] + 1 if found else None


def _range(binding: Binding, meanings: Meanings, expr: s.Expr) -> Range | None:
    """The values that an expression over sizes, constants and loop indices can take, all within 64 bits.

    None where build cannot tell.
    """
    found: Range | None = None
    match expr, meanings.get(id(expr)):
        case s.Int(value), _:
            found = value, value
        case s.Name(), LoopIndex(loop, outer):
            low, high = _range(binding, outer, loop.start), _range(binding, outer, loop.end)
            found = (low[0], max(low[0], high[1] - 1)) if low and high else None
        case s.Name(), Variable() as variable if (known := constant_integer(binding, variable)) is not None:
            found = known, known
        case s.Name(), Size(size) if size in binding.sizes:
            found = binding.sizes[size], binding.sizes[size]
        case s.Unary(operand), _:
            inner = _range(binding, meanings, operand)
            found = intervals.minus((0, 0), inner) if inner else None
        case s.Binary(op, left, right), _:
            a, b = _range(binding, meanings, left), _range(binding, meanings, right)
            if a and b and (op not in "/%" or b[0] > 0):
                found = intervals.ARITHMETIC[op](a, b)  # where a division has to be exact, lowering refuses a remainder
    return found if found and intervals.within(found, intervals.WIDE) else None


def constant_integer(binding: Binding, variable: Variable) -> int | None:
    """The value of an integer constant of one element, or None for any other variable."""
    if variable.refused or variable.kind != "constant" or not variable.dtype.is_int:
        return None
    if variable.family or any(d != 1 for d in variable.dims):
        return None
    return int(data_of(binding, variable).reshape(-1)[0])
