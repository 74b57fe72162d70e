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
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from oic.dtypes import Array
from oic.ir import quantized
from oic.ir.core import Op, Value, sizes_used
from oic.ir.likeness import likeness
from oic.ir.members import Members, mapped
from oic.ir.module import Module
from oic.ir.state import Constant, ConstantSelect
from oic.ir.strides import Strides, dense
from oic.ir.types import TensorType
from oic.kernels.targets import TARGETS, Target
from oic.operators.base import Operator
from oic.operators.shape import Slice, Split
from oic.passes.pack_weights import fields_of, may_have

Parts = list[list[Value]]
"""What is read of a constant, or of its members: the values that are the same in all entries."""
Path = list[tuple[Any, int]]
"""Views one after the other, each with which of its results."""
Box = list[tuple[int, int]]


@dataclass(frozen=True, eq=False)
class Cut:
    """A constant by what is read of it.

    roots  the constant, or of a family that nothing else reads its members
    parts  what others than views read
    paths  what leads to each, before it is taken apart
    views  all of them
    """

    constant: Constant
    roots: list[Value]
    parts: Parts
    paths: list[Path]
    views: dict[Op, None]

    @property
    def nbytes(self) -> int:
        """Of a root, as it is declared."""
        return self.roots[0].tensor.nbytes

    def symbol(self, number: int) -> str:
        """Of the constant that a part becomes."""
        return f"{self.constant.symbol}.{number}"

    def box(self, number: int) -> tuple[Box, bool]:
        """Between which elements of a root, along each axis, a part lies, and whether it is all that is there."""
        box, exact = [(0, size) for size in self.roots[0].tensor.maximum], True
        for view, at in self.paths[number]:
            exact = exact and isinstance(view, Slice | Split) and getattr(view, "step", 1) == 1
            if exact:
                result, axis = view.results[at].tensor.maximum, view.axis % len(box)
                first = box[axis][0] + sum(start for start, _ in view.begins(at))
                box[axis] = (first, first + result[axis])
        return box, exact

    def overlaps(self) -> bool:
        """Elements may be in several parts."""
        boxes = [self.box(number)[0] for number in range(len(self.parts))]
        return any(all(a < d and c < b for (a, b), (c, d) in zip(*two, strict=True)) for two in combinations(boxes, 2))


def own_parts(module: Module, target: Target = TARGETS["portable"]) -> None:
    """Replace every such constant, and the views of it."""
    cuts = []
    for constant in list(module.constants()):
        if constant.type.rank >= 2 and not constant.type.encoding:
            cut = cut_of(constant)
            if _pays(cut, target):
                cuts.append(cut)
    take_apart(module, cuts)


def take_apart(module: Module, cuts: list[Cut]) -> None:
    """Make parts of constants of their own, whose symbols `Cut.symbol` says."""
    made: dict[Op, list[Constant]] = {}
    gone: dict[Op, list[Op]] = {}
    for cut in cuts:
        ops = (*cut.views, *(root.op for root in cut.roots))
        gone |= {op: [] for op in ops if isinstance(op, Operator | ConstantSelect)}
        made[cut.constant] = _replace(module, cut, gone)
    if made:
        module.top.set_ops(new for op in module.top.ops for new in made.get(op, [op]))
        for block in dict.fromkeys(view.home for view in gone):
            block.set_ops(new for op in block.ops for new in gone.get(op, [op]))


def put_together(module: Module, cut: Cut) -> Members:
    """What a constant was that was taken apart, with what its parts have become."""
    source = module.weights[cut.constant.symbol]
    inner = cut.roots[0].tensor.maximum
    counts = source.shape[: len(source.shape) - len(inner)]

    def read(_: tuple[int, ...]) -> Array:
        whole = np.array(source, np.float32).reshape(*counts, -1)
        places = np.arange(whole.shape[-1]).reshape(inner)
        for number, path in enumerate(cut.paths):
            part = np.asarray(module.weights[cut.symbol(number)])
            whole[..., _seen(path, places).reshape(-1)] = part.reshape(*counts, -1)
        return whole.reshape(source.shape)

    return Members((), source.shape, np.dtype(np.float32), read)


def cut_of(constant: Constant) -> Cut:
    """How a constant is read."""
    selects = [op for op in constant.result.users if isinstance(op, ConstantSelect)]
    alike = len({len(op.indices) for op in selects}) == 1 and len(selects) == len(constant.result.users)
    roots = [op.result for op in selects] if alike else [constant.result]
    parts, views = _parts(roots)
    return Cut(constant, roots, parts, [_path(values[0])[1] for values in parts], views)


def _parts(roots: list[Value]) -> tuple[Parts, dict[Op, None]]:
    """What is read by others than views, and the views."""
    parts: dict[int, list[Value]] = {}
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
    return list(parts.values()), views


def _path(value: Value) -> tuple[Value, Path]:
    """The constant, or the member of a family, that is seen, and through which results of which views, in order."""
    views: Path = []
    while isinstance(op := value.op, Operator):
        views.append((op, op.results.index(value)))
        value = op.operands[0]
    return value, views[::-1]


def _seen(path: Path, array: Array) -> Array:
    """The elements that views lead to, where they lie."""
    for view, at in path:
        found = view.reference(array)
        array = found[at] if isinstance(found, list) else found
    return array


def _pays(cut: Cut, target: Target) -> bool:
    """A part may lie as its reader likes, nothing takes the whole, and no byte is there twice."""
    nbytes = sum(values[0].tensor.nbytes for values in cut.parts)
    if any(values[0] in cut.roots for values in cut.parts) or nbytes > cut.nbytes:
        return False
    return any(_apart(values[0]) or any(_liked(v, target) for v in values) for values in cut.parts)


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


def _replace(module: Module, cut: Cut, gone: Mapping[Op, list[Op]]) -> list[Constant]:
    """The constants that parts become; members of them take the places of the views."""
    made: list[Constant] = []
    mapping: dict[Value, Value] = {}
    constant, data = cut.constant, module.weights[cut.constant.symbol]
    assert isinstance(data, np.ndarray | Members)
    for number, values in enumerate(cut.parts):
        symbol, first = cut.symbol(number), values[0]
        counts = data.shape[: constant.type.rank - cut.roots[0].tensor.rank]
        type_ = TensorType(first.dtype, (*counts, *first.tensor.maximum))
        parts_of = {constant.symbol: constant.line}
        made.append(Constant(symbol, type_, parts_of, span=constant.span, hint=first.hint))
        module.weights[symbol] = _elements(data, counts, cut, number)
        for value in values:
            mapping[value] = made[-1].result
            if isinstance(member := _path(value)[0].op, ConstantSelect) and value.op:
                new = ConstantSelect(made[-1].result, list(member.indices), span=value.op.span, hint=value.hint)
                gone[value.op].append(new)
                mapping[value] = new.result
    module.top.replace(mapping)
    return made


def _elements(data: Array | Members, counts: tuple[int, ...], cut: Cut, number: int) -> Array | Members:
    """Those of a part; of whole groups it has the groups."""
    made = mapped(data, counts, partial(_seen, cut.paths[number]), cut.parts[number][0].tensor.maximum)
    box, exact = cut.box(number)
    if not (isinstance(data, Members) and isinstance(made, Members) and data.counts == counts) or data.grouped is None:
        return made
    if not exact or not quantized.whole_groups(box[-1], data.shape[-1]):
        return made
    read, (rows, columns) = data.grouped, box
    return replace(made, storage=data.storage, grouped=lambda key: quantized.part_of(read(key), rows, columns))
