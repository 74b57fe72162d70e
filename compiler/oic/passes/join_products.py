"""Constants whose products are of the same rows become one, and so do their products.

    %wq = constant {symbol="wq", type=f32[4, 64, 16]}            %wq_wk = constant {symbol="wq_wk", type=f32[4, 96, 16]}
    %wk = constant {symbol="wk", type=f32[4, 32, 16]}
    %a = constant.select(%wq, [%l])                        ->    %c = constant.select(%wq_wk, [%l])
    %b = constant.select(%wk, [%l])
    %q = linear(%x, %a)                                          %q_k = linear(%x, %c)
    %k = linear(%x, %b)                                          %q, %k = split(%q_k) {axis=1, sizes=[64, 32]}

Each element is the same sum.  It pays where threads share the products, or where the rows are brought into another form
first, which is done once then.  Nothing is copied for it: what is stored in the state, goes out or is carried on stays
a product of its own, which is computed where it belongs.  The rows of the parts lie with gaps between them: it does not
pay where what follows wants none, nor on one thread where loops over elements follow, which become loops over rows.

Entries share constants, so these become one only where each product of one is beside a product of each other: of the
same rows, with members of the same indices, in families of as many members.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from itertools import count

from oic.ir import dims
from oic.ir.core import Op, Value
from oic.ir.members import form_of, joined_elements
from oic.ir.module import Module
from oic.ir.state import Constant, ConstantSelect
from oic.ir.types import TensorType
from oic.kernels.targets import TARGETS, Target
from oic.operators.base import Operator, Product
from oic.passes.pack_weights import fields_of
from oic.passes.select_kernels import on_one_thread, workers
from oic.passes.whole_products import name_of, one_product


@dataclass(frozen=True, eq=False)
class _Use:
    """A product with a constant, or with a member of it."""

    op: Operator
    product: Product
    indices: tuple[Value, ...]

    @property
    def place(self) -> Hashable:
        """What it has in common with products that are beside it."""
        product = self.product
        return self.op.block, product.x, product.axis, type(self.op), self.op.kernel, self.indices


@dataclass(frozen=True, eq=False)
class _Matrix:
    """A constant that products alone read, all in the same way."""

    op: Constant
    b: Constant | None  # what is added to their results
    uses: list[_Use]  # in the order of the program


def join_products(module: Module, target: Target = TARGETS["portable"], threads: int = 1) -> None:
    """Join in every function."""
    alone = on_one_thread(module)
    mapping: dict[Value, Value] = {}
    for group in _groups(module, loops=threads > 1):
        sites = {uses: 1 if uses[0].op in alone else threads for uses in zip(*(m.uses for m in group), strict=True)}
        if len(group) > 1 and any(_pays(uses, target, shared) for uses, shared in sites.items()):
            axis = group[0].uses[0].product.axis
            w = _constant(module, [matrix.op for matrix in group], 2, axis)
            biases = [matrix.b for matrix in group if matrix.b is not None]
            b = _constant(module, biases, 1, 0) if biases else None
            for uses, shared in sites.items():
                whole = _join(uses, w, b, mapping)
                whole.workers = workers(whole.chosen(), whole, target, shared)
            _take_out([matrix.op for matrix in group] + biases)
    module.top.replace(mapping)


def _pays(uses: tuple[_Use, ...], target: Target, threads: int) -> bool:
    """One product costs less than these: it has phases, or is divided."""
    kernel = uses[0].op.chosen()
    if kernel.units is None or not target.hosted:
        return False
    work = sum(dims.maximum(kernel.work(use.op)) for use in uses)
    return kernel.phases or (threads > 1 and work >= 2 * target.costs.thread)


def _groups(module: Module, *, loops: bool) -> list[list[_Matrix]]:
    """Matrices read side by side, each group in the order of its products; `loops` over elements may follow."""
    order = {op: i for i, op in enumerate(module.all_ops())}
    found: dict[Hashable, list[_Matrix]] = {}
    for constant in module.constants():
        if (matrix := _matrix(constant, loops=loops)) is not None:
            matrix.uses.sort(key=lambda use: order[use.op])
            places = tuple(use.place for use in matrix.uses)
            if len(set(places)) == len(places):
                key = places, _form(module, matrix.op, 2), _form(module, matrix.b, 1)
                found.setdefault(key, []).append(matrix)
    return [sorted(group, key=lambda matrix: order[matrix.uses[0].op]) for group in found.values()]


def _form(module: Module, constant: Constant | None, rank: int) -> Hashable:
    """What it, with members of this rank, has in common with constants that it may become one with."""
    if constant is None:
        return None
    type_ = constant.type
    return type_.dtype, type_.encoding, type_.shape[:-rank], form_of(module.weights[constant.symbol])


def _matrix(constant: Constant, *, loops: bool) -> _Matrix | None:
    """The constant, if products alone read it, whose results may have gaps between rows."""
    type_ = constant.type
    if not type_.dtype.is_float or not type_.static or type_.rank < 2:
        return None
    uses: list[_Use] = []
    added: set[Constant | None] = set()
    for op, value in _reads(constant):
        if not isinstance(op, Operator) or (product := op.product()) is None:
            return None
        if product.w is not value or not _taken(op.result, 1, loops=loops):
            return None
        _, indices = _source(value)
        uses.append(_Use(op, product, indices))
        b, found = _source(product.b) if product.b is not None else (None, indices)
        if found != indices or (b is None) is not (product.b is None):
            return None
        added.add(b)
    if len(added) != 1:
        return None
    b = added.pop()
    return _Matrix(constant, b, uses) if b is None or len(list(_reads(b))) == len(uses) else None


def _reads(constant: Constant) -> Iterator[tuple[Op, Value]]:
    """What reads it or a member of it, and the value that it reads."""
    for op in constant.result.users:
        if isinstance(op, ConstantSelect):
            yield from ((user, op.result) for user in op.result.users)
        else:
            yield op, constant.result


def _source(value: Value) -> tuple[Constant | None, tuple[Value, ...]]:
    """The constant that a value is, or is a member of, and of which indices."""
    select = value.op
    family, indices = (select.family, select.indices) if isinstance(select, ConstantSelect) else (value, [])
    return family.op if isinstance(family.op, Constant) else None, tuple(indices)


def _taken(value: Value, inner: int, *, loops: bool) -> bool:
    """Operators take it, and as well where only so many of its innermost dimensions lie without gaps.

    What is stored or handed on is computed where it belongs, and would be copied as a part of another value.
    """
    rows = value.shape[: value.tensor.rank - inner]
    gaps = dims.product(rows) != 1
    for op in value.users:
        if not isinstance(op, Operator):
            if not op.elementwise or (gaps and not loops):
                return False
        elif not gaps:
            if op.view and not all(_taken(result, result.tensor.rank, loops=loops) for result in op.results):
                return False
        elif op.reshapes:
            split = op.result.shape[: len(rows)] == rows
            if not split or not _taken(op.result, op.result.tensor.rank - len(rows), loops=loops):
                return False
        elif op.kernels:
            fields, layouts = fields_of(op, value), op.chosen().layouts
            if not fields or any(layouts.get(field, len(value.shape)) > inner for field in fields):
                return False
        elif not (loops and op.elementwise):
            return False
    return True


def _join(uses: tuple[_Use, ...], w: Constant, b: Constant | None, mapping: dict[Value, Value]) -> Operator:
    """Put one product, of which the parts are taken, where the first of these is."""
    ops, indices = [use.op for use in uses], list(uses[0].indices)
    members = [constant.result for constant in (w, b) if constant is not None]
    made = [ConstantSelect(v, indices, span=ops[0].span, hint=v.symbol) for v in members if indices]
    matrix, *bias = [select.result for select in made] or members
    return one_product(ops, uses[0].product, matrix, bias[0] if bias else None, mapping, made)


def _constant(module: Module, parts: list[Constant], rank: int, axis: int) -> Constant:
    """One constant of several, whose members have this rank and lie side by side along this axis."""
    types = [part.type for part in parts]
    shape = list(types[0].maximum)
    shape[axis - rank] = sum(type_.maximum[axis - rank] for type_ in types)
    lines = {part.symbol: part.line for part in parts}
    name, taken = name_of([*lines]), {op.attributes().get("symbol") for op in module.top.ops}
    symbol = next(s for n in count() if (s := f"{name}{n or ''}") not in taken)
    type_ = TensorType(types[0].dtype, tuple(shape), types[0].encoding)
    made = Constant(symbol, type_, lines, span=parts[0].span, hint=symbol)
    module.weights[symbol] = joined_elements([module.weights.pop(part.symbol) for part in parts], rank, axis)
    module.top.insert(min(module.top.ops.index(part) for part in parts), made)
    return made


def _take_out(constants: list[Constant]) -> None:
    """Take out constants that nothing reads any more, and the selections of their members."""
    for constant in constants:
        for op in [*constant.result.users, constant]:
            op.home.set_ops(other for other in op.home.ops if other is not op)
