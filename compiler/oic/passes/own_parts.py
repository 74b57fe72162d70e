"""Parts of a matrix that products take become constants of their own, in the order that their kernels like.

    %a, %b = split(%w) {axis=0, sizes=[64, 32]}          %a = constant {symbol=w.0}
    %y = linear(%x, %a)                           ->     %b = constant {symbol=w.1}
    %z = linear(%h, %b)                                  %y = linear(%x, %a)

A matrix that is read row after row, where it lies in another one, takes ten times as long.  The same for one that is
transposed, and for filters of a convolution in another order.
Only where nothing reads the whole constant, and its parts have no more bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oic.dtypes import Array
from oic.ir.core import Op, Value, sizes_used
from oic.ir.module import Module
from oic.ir.state import Constant
from oic.kernels.targets import TARGETS, Target
from oic.operators.base import Operator
from oic.passes.pack_weights import fields_of, may_have


def own_parts(module: Module, target: Target = TARGETS["portable"]) -> None:
    """Replace every such matrix, and the views of it."""
    made: dict[Op, list[Constant]] = {}
    gone: dict[Op, None] = {}
    for constant in list(module.constants()):
        data = module.weights[constant.symbol]
        if constant.type.rank >= 2 and not constant.type.encoding and isinstance(data, np.ndarray):
            parts, views = _parts(constant, data)
            if _pays(constant, parts, target):
                made[constant] = _replace(module, constant, parts)
                gone |= views
    if made:
        module.top.set_ops(new for op in module.top.ops for new in made.get(op, [op]))
        for block in dict.fromkeys(view.home for view in gone):
            block.set_ops(op for op in block.ops if op not in gone)


Parts = dict[int, tuple[list[Value], Array]]
"""What is read of a constant, numbered: the values that are the same in all entries, and their elements."""


def _parts(constant: Constant, data: Array) -> tuple[Parts, dict[Op, None]]:
    """What is read by others than views, and the views; of a constant that is read itself, that alone is read."""
    parts: Parts = {}
    views: dict[Op, None] = {}
    known: dict[Any, int] = {}  # equal views of equal values
    waiting = [(constant.result, 0, data)]
    for value, number, array in waiting:
        for user in value.users:
            is_view = isinstance(user, Operator) and user.view and not sizes_used(user)
            if not is_view or user.operands != [value]:
                values, _ = parts.setdefault(number, ([], array))
                values += [value] * (value not in values)
                continue
            views[user] = None
            for at, (result, part) in enumerate(zip(user.results, _arrays(user, array), strict=True)):
                what = (number, user.name, str(user.attributes()), at)
                waiting.append((result, known.setdefault(what, len(known) + 1), part))
    return parts, views


def _arrays(view: Any, array: Array) -> list[Array]:
    """The elements of its results, where those of its operand lie."""
    found = view.reference(array)
    return found if isinstance(found, list) else [found]


def _pays(constant: Constant, parts: Parts, target: Target) -> bool:
    """A part may lie as its reader likes, nothing takes the whole, and no byte is there twice."""
    found = [values for values, _ in parts.values()]
    nbytes = sum(values[0].tensor.nbytes for values in found)
    if 0 in parts or nbytes > constant.type.nbytes:
        return False
    return any(_packed(v) or _filters(v, target) for values in found for v in values)


def _packed(value: Value) -> bool:
    """Something that reads a value has a kernel that takes it in an encoding."""
    users = [user for user in value.users if isinstance(user, Operator)]
    fields = [(user, field) for user in users for field in fields_of(user, value)]
    kernels = [(user, k, k.takes[field]) for user, field in fields for k in user.kernels if field in k.takes]
    return any(may_have(value.tensor, layout) and kernel.fits(user) for user, kernel, layout in kernels)


def _filters(value: Value, target: Target) -> bool:
    """Something reads a value as filters, which become a matrix where they are a constant."""
    users = [user for user in value.users if isinstance(user, Operator) and fields_of(user, value) == ("w",)]
    return any(user.flattens(target) for user in users)


def _replace(module: Module, constant: Constant, parts: Parts) -> list[Constant]:
    """The constants that parts become, named after the whole, in their places."""
    made: list[Constant] = []
    for number, (values, array) in enumerate(parts.values()):
        symbol, first = f"{constant.symbol}.{number}", values[0]
        parts_of = {constant.symbol: constant.line}
        made.append(Constant(symbol, first.tensor, parts_of, span=constant.span, hint=first.hint))
        module.weights[symbol] = array
        module.top.replace({value: made[-1].result for value in values})
    return made
