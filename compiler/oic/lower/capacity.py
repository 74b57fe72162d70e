"""How far each index of a table can grow (SPEC, 8.4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

from oic.check.call_graph import branch_targets
from oic.check.model_data import data_of
from oic.check.names import names_in
from oic.check.statements import MOST_CONTEXTS
from oic.check.variables import HIGH, LOW, RESERVE, Binding, Refused, Variable, evaluate
from oic.diagnostics import Diagnostic
from oic.ir import dims, intervals
from oic.ir.intervals import Range
from oic.ir.types import StateIndex, StateType
from oic.syntax import tree as s


def state_type(
    binding: Binding, variable: Variable, capacity: Mapping[str, int], *, hosted: bool
) -> StateType:
    """The type of a persistent variable, with the capacity of every index.

    capacity   of `--max`, by index name or by `variable.index`
    """
    auto = _arg_names(variable.attribute("auto_dim"))
    table = [i for i in variable.indices if i not in auto]
    shape = tuple(dims.maximum(d) for d in variable.dims if d is not None)
    known = {i: _bounded(binding, variable, i, capacity) for i in (*table, *auto)}
    free = [i for i, (n, _) in known.items() if n is None]
    if free and not hosted:
        _refuse_free(binding, variable, free[0])

    def of(reserve: int) -> StateType:
        made = {
            i: StateIndex(i, reserve if n is None else n, fixed, reserved=n is None)
            for i, (n, fixed) in known.items()
        }
        ring = variable.attribute("ring") is not None
        indices, grows = tuple(made[i] for i in table), tuple(made[i] for i in auto)
        return StateType(variable.dtype, shape, indices, grows, ring)

    type_ = _reserve(of) if free else of(0)
    _check_storage(binding, variable, type_)
    return type_


def _refuse_free(binding: Binding, variable: Variable, index: str) -> None:
    binding.diagnostics.append(
        Diagnostic(
            "capacity-unknown",
            f"nothing bounds index '{index}' of '{variable.name}' and the target cannot reserve",
            variable.declaration.head_span,
            hint=f"--max {variable.name}.{index}=N, or @fixed({index}=N)",
        )
    )


def _check_storage(binding: Binding, variable: Variable, type_: StateType) -> None:
    """A variable with all its entries fits a machine."""
    nbytes = _nbytes(type_)
    if nbytes > RESERVE:
        counts = ", ".join(f"{i.name}={i.capacity}" for i in (*type_.table, *type_.auto))
        binding.diagnostics.append(
            Diagnostic(
                "size-limit",
                f"'{variable.name}' takes {nbytes >> 30} GiB, and at most {RESERVE >> 30} are possible",
                variable.declaration.head_span,
                hint=f"its capacity is {counts}; --max and @fixed make it less" if counts else None,
            )
        )


def _arg_names(attribute: s.Attribute | None) -> list[str]:
    if attribute is None:
        return []
    return [a.value.name for a in attribute.args if isinstance(a.value, s.Name)]


def _bounded(
    binding: Binding, variable: Variable, index: str, capacity: Mapping[str, int]
) -> tuple[int | None, bool]:
    """The capacity of an index and whether `@fixed` gives it; None where nothing bounds it."""
    fixed = variable.attribute("fixed")
    for arg in fixed.args if fixed else ():
        if arg.key == index:
            return _fixed(binding, arg), True
    for key in (f"{variable.name}.{index}", index):
        if key in capacity:
            return max(1, capacity[key]), False
    try:
        return _static_reach(binding, variable, index), False
    except Unbounded:
        return None, False


def _fixed(binding: Binding, arg: s.Argument) -> int:
    """The value of `@fixed(i=value)`; 1 where it is refused."""
    assert isinstance(arg.value, s.Int | s.Name | s.Unary | s.Binary)
    try:
        size = evaluate(arg.value, binding.size)
    except Refused as refused:
        binding.report(refused)
        return 1
    if isinstance(size, int) and size >= 1:
        return size
    what = f"the bound of index '{arg.key}' must be at least 1, but is {size}"
    if not isinstance(size, int):
        what = f"the bound of index '{arg.key}' is not known at build"
    binding.diagnostics.append(Diagnostic("bound-range", what, arg.value.span))
    return 1


def _reserve(of: Callable[[int], StateType]) -> StateType:
    """The type that lets every unbounded index grow to the largest power of two within the reserve.

    of   the type for such a capacity
    """
    size = 1 << 30
    while size > 1 and _nbytes(of(size)) > RESERVE:
        size //= 2
    return of(size)


def _nbytes(type_: StateType) -> int:
    """Bytes of the variable with all its entries."""
    return type_.dtype.nbytes(math.prod(type_.capacity_shape))


def _static_reach(binding: Binding, variable: Variable, index: str) -> int | None:
    """The most that scalar indices and static slice ends reach, or None if one is not static."""
    position = variable.indices.index(index)
    auto = _arg_names(variable.attribute("auto_dim"))
    first = len(variable.indices) - len(auto)
    reach = 1
    for access, writes, loops in _Accesses(binding, variable.name):
        given = access.indices or ()
        if index in auto and any(isinstance(i, s.Slice) for i in given[first:]):
            continue  # reads a part of the matrix as it is
        if position >= len(given):
            continue
        found = _reach(binding, given[position], writes, loops)
        if found is None:
            return None
        # A count goes up to its capacity, an index stays below.
        reach = max(reach, found - (index in auto))
    return reach


def _reach(
    binding: Binding, index: s.Index, writes: bool, loops: Mapping[str, Range | None]
) -> int | None:
    """The count that one position raises to, or None.  A read's slice raises nothing."""
    if isinstance(index, s.Slice):
        end = _range(binding, index.end, loops) if index.end is not None else (0, 0)
        return end[1] if end else (None if writes else 0)
    found = _range(binding, index, loops)
    return found[1] + 1 if found else None


Loops = dict[str, Range | None]  # the values of every visible loop index
Found = tuple[s.Access, bool, Loops]  # an access, whether it writes, the loops


class Unbounded(Exception):
    """A variable is accessed from too many places to look at."""


class _Accesses:
    """The accesses of a variable, in every block for all loops from which it is branched to."""

    def __init__(self, binding: Binding, name: str) -> None:
        self.binding, self.name = binding, name
        targets = {t.name for b in binding.graph.blocks for t in branch_targets(b.body)}
        starts = [b for b in binding.graph.blocks if b.name not in targets]
        self.waiting: list[tuple[s.Block, Loops]] = [(block, {}) for block in starts]

    def __iter__(self) -> Iterator[Found]:
        seen: set[tuple[str, frozenset[tuple[str, Range | None]]]] = set()
        while self.waiting:
            block, loops = self.waiting.pop()
            key = (block.name, frozenset(loops.items()))
            if key not in seen:
                seen.add(key)
                if len(seen) > MOST_CONTEXTS:
                    raise Unbounded
                yield from self._of(block.body, loops)

    def _of(self, body: tuple[s.Statement, ...], loops: Loops) -> Iterator[Found]:
        for statement in body:
            match statement:
                case s.Assign(declaration=made):
                    loops = {n: r for n, r in loops.items() if n != made.name}
                case s.Loop(index=index, start=start, end=end, body=inner):
                    low, high = (_range(self.binding, bound, loops) for bound in (start, end))
                    bounds = (low[0], max(low[0], high[1] - 1)) if low and high else None
                    yield from self._of(inner, {**loops, index.name: bounds})
                case s.CacheRead(source=access) if access.name == self.name:
                    yield access, False, loops
                case s.CacheWrite(target=access) if access.name == self.name:
                    yield access, True, loops
                case s.CacheStep(target=access) if access.name == self.name:
                    yield access, True, loops
                case s.Branch(targets=targets):
                    found = (self.binding.graph.block(t.name) for t in targets)
                    self.waiting += [(block, loops) for block in found if block is not None]


def _range(
    binding: Binding, expr: s.Expr, loops: Mapping[str, Range | None]
) -> Range | None:
    """The values a static expression over loop indices can take within 64 bits, or None."""
    found = _values(binding, expr, loops)
    return found if found and found[0] >= LOW and found[1] <= HIGH else None


def _values(
    binding: Binding, expr: s.Expr, loops: Mapping[str, Range | None]
) -> Range | None:
    match expr:
        case s.Int(value):
            return value, value
        case s.Name(name):
            if name in loops:
                return loops[name]
            return _constant(binding, expr)
        case s.Unary(operand):
            inner = _range(binding, operand, loops)
            return (-inner[1], -inner[0]) if inner else None
        case s.Binary(op, left, right):
            a, b = _range(binding, left, loops), _range(binding, right, loops)
            if not a or not b:
                return None
            if op in "/%":
                return _quotients(expr, a, b, loops)
            return intervals.ARITHMETIC[op](a, b)
    return None


def _quotients(expr: s.Binary, a: Range, b: Range, loops: Mapping[str, Range | None]) -> Range | None:
    """Of loop indices `/` floors; of values known at build it is exact."""
    if b[0] < 1:
        return None
    late = expr.op == "%" or any(name.name in loops for name in names_in(expr))
    return intervals.ARITHMETIC[expr.op](a, b) if late or a[0] % b[0] == 0 else None


def _constant(binding: Binding, name: s.Name) -> Range | None:
    value = constant_integer(binding, name.name)
    if value is None and name.name in binding.sizes and name.name not in binding.variables:
        value = binding.sizes[name.name]
    return None if value is None else (value, value)


def constant_integer(binding: Binding, name: str) -> int | None:
    """The value of an integer constant of one element, or None for any other name."""
    variable = binding.variables.get(name)
    if variable is None or variable.kind != "constant" or not variable.dtype.is_int:
        return None
    if variable.family or any(d != 1 for d in variable.dims):
        return None
    return int(data_of(binding, variable).reshape(-1)[0])
