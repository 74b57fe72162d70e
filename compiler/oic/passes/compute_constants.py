"""Compute at build, in C, what operators of constants alone may round otherwise in NumPy.

    %a = constant "a"                         %a = constant "a"
    %e = exp(%a)                 =>           %e = constant "made0"
    %y = mul(%x, %e)                          %y = mul(%x, %e)

`fold` leaves such operators to C, which decides the bits of inputs and of other entries.  Here they become a module of
their own, the part; whoever builds runs it (`precompute`), and what else is made of its results has them as constants,
if these are no larger than what they are made of.  What is made of the same member of families becomes a family.  What
several entries make in the same way is computed and stored once.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from oic.dtypes import Array
from oic.ir.control import Func, Return
from oic.ir.core import Block, Op, Value, clone_op, sizes_used
from oic.ir.grouping import by_key, reach
from oic.ir.index import IndexConst
from oic.ir.likeness import likeness
from oic.ir.module import Module
from oic.ir.state import Constant, ConstantSelect, Splat
from oic.ir.types import TensorType
from oic.kernels.targets import TARGETS, Target
from oic.operators.base import Operator
from oic.passes.fold import SMALL, symbols

MOST_RESULTS = 512  # that are computed, of each member of a family: each has statements of its own

Computer = Callable[[Module, Target], Mapping[str, Array] | None]
"""Runs the one function of a GRAPH module, which has no inputs: its outputs by name, or None where it cannot be run."""


@dataclass(frozen=True)
class _Member:
    """Which member of families something is made of; of none, it is the same in every loop."""

    indices: tuple[Value, ...] = ()
    counts: tuple[int, ...] = ()  # of the members along each index


_Made = dict[Op, _Member]


def compute_constants(module: Module, target: Target = TARGETS["portable"], computer: Computer | None = None) -> None:
    """Give results of constants alone as constants, if they can be computed here."""
    made = _made(module) if computer else {}
    numbers = _numbers(made)
    ends = by_key((numbers[op], op) for op in _ends(made, _smallness(made, numbers)))
    named = dict(zip(symbols(module, "made"), ends.values()))
    firsts = {symbol: ops[0] for symbol, ops in named.items()}
    found = computer(_part(module, made, firsts), target) if computer and ends else None
    if found is None:
        return
    first = next(i for i, op in enumerate(module.top.ops) if isinstance(op, Func))
    for symbol, ops in named.items():
        data, op = [found[_output(symbol, key)] for key in _keys(made[ops[0]])], ops[0]
        whole = _uniform(op, made, data[0]) or _constant(module, symbol, op, made[op], np.stack(data))
        module.top.insert(first, whole)
        first += 1
        for op in ops:
            new: Op = whole
            if made[op].indices:
                new = ConstantSelect(whole.result, list(made[op].indices), span=op.span, hint=op.result.hint)
                op.home.insert(op.home.ops.index(op), new)
            op.result.give_way(new.result)


def left_over(module: Module) -> list[tuple[Operator, int]]:
    """What is computed of constants alone in every step: ends of chains, and the elements of their largest tensors."""
    ends = _ends(_made(module), lambda op: True)
    return [(op, max(math.prod(v.tensor.maximum) for v in [*op.operands, *op.results])) for op in ends]


def _made(module: Module) -> _Made:
    """Splats, members, and what is made of these and constants alone, of known sizes, and refuses nothing; in order."""
    known = {op.result: _Member() for op in module.constants()}
    made: dict[Op, _Member] = {}
    for op in module.all_ops():
        match op:
            case Splat() | IndexConst():
                member = _Member()
            case ConstantSelect(indices=indices) if known.keys() >= set(indices):
                member = _Member()
            case ConstantSelect(family=family, indices=indices) if family in known:
                member = _Member(tuple(indices), family.tensor.maximum[: len(indices)])
            case Operator() if known.keys() >= set(op.operands):
                members = {known[v] for v in op.operands} - {_Member()}
                if len(members) > 1 or op.checks() or sizes_used(op):
                    continue
                member = members.pop() if members else _Member()
            case _:
                continue
        made[op] = member
        known.update(dict.fromkeys(op.results, member))
    return made


def _numbers(made: _Made) -> dict[Op, int]:
    """Equal numbers for what makes the same of the same constants, members wherever they are counted."""
    numbers: dict[Hashable, int] = {}
    found: dict[Op, int] = {}
    known: dict[Value, Hashable] = {}
    for op, member in made.items():
        known.update((index, ("index", at)) for at, index in enumerate(member.indices))
        number = numbers.setdefault((likeness(op, known), member.counts), len(numbers))
        found[op] = number
        known.update((result, (number, at)) for at, result in enumerate(op.results))
    return found


def _ends(made: _Made, possible: Callable[[Operator], bool]) -> list[Operator]:
    """Of every chain the last that may be a constant: what takes its result stays an op, as views of constants do."""
    ends: list[Operator] = []
    stay: set[Value] = set()
    for op in reversed(made):
        if not any(r in stay or any(user not in made for user in r.users) for r in op.results):
            continue
        if isinstance(op, Operator) and op.operands and not op.view and len(op.results) == 1 and possible(op):
            ends.append(op)
        else:
            stay.update(op.operands)
    return ends[::-1]


def _smallness(made: _Made, numbers: Mapping[Op, int]) -> Callable[[Operator], bool]:
    """Tells whether a result, of all members, is no larger than what it is made of, or small, and not empty.

    It says so of MOST_RESULTS, and of no more.
    """
    small: dict[int, int] = {}  # the members of each

    def is_small(op: Operator) -> bool:
        if numbers[op] in small:
            return True
        members, type_ = math.prod(made[op].counts), op.result.tensor
        size = members * math.prod(type_.maximum)
        if size == 0 or sum(small.values()) + members > MOST_RESULTS:
            return False
        if size > SMALL:
            behind = (o.result.tensor.nbytes for o in _behind([op], made) if isinstance(o, Constant))
            if members * type_.nbytes > sum(behind):
                return False
        small[numbers[op]] = members
        return True

    return is_small


def _behind(ops: Iterable[Op], made: _Made) -> set[Op]:
    """These, and the constants, splats and operators that they are made of."""

    def before(op: Op) -> Iterator[Op]:
        return (v.op for v in op.operands if v.op and (v.op in made or isinstance(v.op, Constant)))

    return set(reach(ops, before))


def _uniform(op: Operator, made: _Made, data: Array) -> Splat | None:
    """A splat, where all elements are equal, whatever they are."""
    if not all(isinstance(o, Splat) or (isinstance(o, Operator) and o.elementwise) for o in _behind([op], made)):
        return None
    return Splat(data.reshape(-1)[0].item(), op.result.tensor, span=op.span, hint=op.result.hint)


def _constant(module: Module, symbol: str, op: Operator, member: _Member, data: Array) -> Constant:
    """A constant, or a family, of the data of all members."""
    type_ = op.result.tensor
    module.weights[symbol] = data.reshape((*member.counts, *type_.maximum))
    type_ = TensorType(type_.dtype, (*member.counts, *type_.shape))
    return Constant(symbol, type_, span=op.span, hint=op.result.hint)


def _keys(member: _Member) -> Iterable[tuple[int, ...]]:
    return product(*map(range, member.counts))


def _output(symbol: str, key: tuple[int, ...]) -> str:
    return "_".join([symbol, *map(str, key)])


def _part(module: Module, made: _Made, ends: Mapping[str, Operator]) -> Module:
    """A module whose function gives these results, of each member."""
    needed, shared = _behind(ends.values(), made), dict[Value, Value]()
    constants = [op for op in module.constants() if op in needed]
    top: list[Op] = [clone_op(op, shared) for op in constants]
    body, outputs = Block(), dict[str, Value]()
    ended = by_key((made[op], (symbol, op)) for symbol, op in ends.items())
    groups = by_key((member, op) for op, member in made.items() if op in needed)
    alone = _Member()
    for member, ops in ({alone: list[Op]()} | groups).items():  # what all members share comes first
        for key in _keys(member):
            copied = shared if member == alone else dict(shared)
            numbers = [body.append(IndexConst(n)).result for n in key]
            copied.update(zip(member.indices, numbers))
            for op in ops:
                body.append(clone_op(op, copied))
            outputs |= {_output(symbol, key): copied[op.result] for symbol, op in ended.get(member, ())}
    body.append(Return(list(outputs.values())))
    top.append(Func("entry", [], list(outputs), {}, body))
    weights = {op.symbol: module.weights[op.symbol] for op in constants}
    return Module(module.name, top=Block(top), weights=weights, source=module.source)
