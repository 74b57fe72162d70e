"""Parts of a constant that are read become constants of their own, in the order that their readers like.

    %a, %b = split(%w) {axis=0, sizes=[64, 32]}          %a = constant {symbol=w.0}
    %y = linear(%x, %a)                           ->     %b = constant {symbol=w.1}
    %z = linear(%h, %b)                                  %y = linear(%x, %a)

A matrix that is read row after row, where it lies in another one, takes ten times as long.  The same for one that is
transposed, and for filters of a convolution in another order; and elements whose neighbours lie apart take a register
each.  Of a family the parts of all members become a family.
Only where nothing reads the whole constant, and its parts have no more bytes.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from oic.dtypes import Array
from oic.ir.core import Op, Value, sizes_used
from oic.ir.likeness import likeness
from oic.ir.members import Members, mapped
from oic.ir.module import Module
from oic.ir.state import Constant, ConstantSelect
from oic.ir.strides import Strides, dense
from oic.ir.types import TensorType
from oic.kernels.targets import TARGETS, Target
from oic.operators.base import Operator
from oic.passes.pack_weights import fields_of, may_have


def own_parts(module: Module, target: Target = TARGETS["portable"]) -> None:
    """Replace every such constant, and the views of it."""
    made: dict[Op, list[Constant]] = {}
    gone: dict[Op, list[Op]] = {}
    for constant in list(module.constants()):
        data = module.weights[constant.symbol]
        if constant.type.rank >= 2 and not constant.type.encoding and isinstance(data, np.ndarray | Members):
            roots = _roots(constant)
            parts, views = _parts(roots)
            if not (isinstance(data, Members) and data.grouped) and _pays(roots, parts, target):
                gone |= {op: [] for op in (*views, *(r.op for r in roots)) if isinstance(op, Operator | ConstantSelect)}
                made[constant] = _replace(module, constant, parts, gone)
    if made:
        module.top.set_ops(new for op in module.top.ops for new in made.get(op, [op]))
        for block in dict.fromkeys(view.home for view in gone):
            block.set_ops(new for op in block.ops for new in gone.get(op, [op]))


Parts = dict[int, list[Value]]
"""What is read of a constant, or of its members, numbered: the values that are the same in all entries."""


def _roots(constant: Constant) -> list[Value]:
    """The constant, or of a family that nothing else reads its members."""
    selects = [op for op in constant.result.users if isinstance(op, ConstantSelect)]
    alike = len({len(op.indices) for op in selects}) == 1 and len(selects) == len(constant.result.users)
    return [op.result for op in selects] if alike else [constant.result]


def _parts(roots: list[Value]) -> tuple[Parts, dict[Op, None]]:
    """What is read by others than views, and the views; of a constant that is read itself, that alone is read."""
    parts: Parts = {}
    views: dict[Op, None] = {}
    known: dict[Any, int] = {}  # equal views of equal values
    waiting = [(root, 0) for root in roots]
    for value, number in waiting:
        for user in value.users:
            is_view = isinstance(user, Operator) and user.view and not sizes_used(user) and user.operands == [value]
            if not is_view or sum(r.tensor.nbytes for r in user.results) > value.tensor.nbytes:
                values = parts.setdefault(number, [])
                values += [value] * (value not in values)
                continue
            views[user] = None
            alike = likeness(user, {value: number})
            for at, result in enumerate(user.results):
                waiting.append((result, known.setdefault((alike, at), len(known) + 1)))
    return parts, views


def _path(value: Value) -> tuple[Value, list[tuple[Any, int]]]:
    """The constant, or the member of a family, that is seen, and through which results of which views, in order."""
    views: list[tuple[Any, int]] = []
    while isinstance(op := value.op, Operator):
        views.append((op, op.results.index(value)))
        value = op.operands[0]
    return value, views[::-1]


def _seen(views: list[tuple[Any, int]], array: Array) -> Array:
    """The elements that views lead to, where they lie."""
    for view, at in views:
        found = view.reference(array)
        array = found[at] if isinstance(found, list) else found
    return array


def _pays(roots: list[Value], parts: Parts, target: Target) -> bool:
    """A part may lie as its reader likes, nothing takes the whole, and no byte is there twice."""
    nbytes = sum(values[0].tensor.nbytes for values in parts.values())
    if 0 in parts or nbytes > roots[0].tensor.nbytes:
        return False
    return any(_apart(values[0]) or any(_liked(v, target) for v in values) for values in parts.values())


def _apart(value: Value) -> bool:
    """Neighbours of a row lie apart, or are copied to be seen."""
    root, views = _path(value)
    strides: Strides | None = dense(root.shape)
    for view, _ in views:
        if (strides := view.seen(strides)) is None:
            return True
    return strides is not None and value.shape[-1:] not in ((), (1,)) and strides[-1] != 1


def _liked(value: Value, target: Target) -> bool:
    """Something reads a value as filters, which become a matrix, or has a kernel that takes it in an encoding."""
    users = [(user, fields_of(user, value)) for user in value.users if isinstance(user, Operator)]
    if any(fields == ("w",) and user.flattens(target) for user, fields in users):
        return True
    kernels = [(user, k, k.takes[f]) for user, fields in users for f in fields for k in user.kernels if f in k.takes]
    return any(may_have(value.tensor, layout) and kernel.fits(user) for user, kernel, layout in kernels)


def _replace(module: Module, constant: Constant, parts: Parts, gone: Mapping[Op, list[Op]]) -> list[Constant]:
    """The constants that parts become, named after the whole; members of them take the places of the views."""
    made: list[Constant] = []
    mapping: dict[Value, Value] = {}
    data = module.weights[constant.symbol]
    assert isinstance(data, np.ndarray | Members)
    for number, values in enumerate(parts.values()):
        symbol, first = f"{constant.symbol}.{number}", values[0]
        root, views = _path(first)
        counts = data.shape[: constant.type.rank - root.tensor.rank]
        type_ = TensorType(first.dtype, (*counts, *first.tensor.maximum))
        parts_of = {constant.symbol: constant.line}
        made.append(Constant(symbol, type_, parts_of, span=constant.span, hint=first.hint))
        module.weights[symbol] = mapped(data, counts, partial(_seen, views), first.tensor.maximum)
        for value in values:
            mapping[value] = made[-1].result
            if isinstance(member := _path(value)[0].op, ConstantSelect) and value.op:
                new = ConstantSelect(made[-1].result, list(member.indices), span=value.op.span, hint=value.hint)
                gone[value.op].append(new)
                mapping[value] = new.result
    module.top.replace(mapping)
    return made
