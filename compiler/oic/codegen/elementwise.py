"""Elementwise operators as C expressions, and the loops around them."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from oic import dtypes
from oic.codegen import c_tree as c
from oic.codegen import expressions as expr
from oic.codegen.c_print import text
from oic.codegen.expressions import Index
from oic.codegen.function_context import Frame, Ref
from oic.codegen.loops import Nest, collapse, load, plane, store
from oic.dtypes import DType
from oic.ir import dims
from oic.ir.control import Cond
from oic.ir.core import Op, Value
from oic.ir.state import IndexTensor, Splat
from oic.ir.strides import repeated
from oic.operators.base import Operator
from oic.operators.fused import Copy
from oic.operators.shape import BroadcastTo

_COMPARISONS = {"==", "!=", "<", "<=", ">", ">="}
_LONGEST = 72  # characters of an expression that is still written inside another

ReadElement = Callable[[Value], c.Expression]
OperandSource = Ref | c.Expression
"""An operand in a loop: elements along the dimensions of the results, or an expression that is the same everywhere."""


def immediate(frame: Frame, value: Value) -> c.Expression | None:
    """The number in every element of a value that needs no memory, or None."""
    match value.op:
        case Splat(value=number):
            return expr.literal(number, value.dtype)
        case IndexTensor(value=number):
            return cast(frame.index(number), value.dtype.value)
        case Cond():
            return c.Conversion("uint8_t", test(frame, value.op))
    return None


def test(frame: Frame, op: Cond) -> c.Expression:
    """A comparison of index integers."""
    return c.Infix("<", frame.index(op.left).value, frame.index(op.right).value)


def cast(index: expr.Index, type_: str) -> c.Expression:
    """An index integer as a number of a C type."""
    if type_ == "int64_t" or (index.number is not None and not index.wide):
        return index.value
    return c.Conversion(type_, index.value)


def scalar(frame: Frame, value: Value) -> c.Expression:
    """A value of one element as a number of its computed type, in an expression."""
    if value in frame.indices:
        return frame.index(value).value
    if (found := immediate(frame, value)) is not None:
        return found
    ref = frame.refs[value]
    return load(ref, ref.start.value)


def elementwise(frame: Frame, op: Op) -> None:
    """The loops of one elementwise operator."""
    inputs = {v: _source(frame, v, op.result.shape) for v in op.operands if v not in frame.indices}
    _loops(frame, op, inputs, lambda read: [apply(frame, op, read)])


def outermost(frame: Frame, op: Op) -> c.Expression:
    """Iterations of the outermost of the loops of an op, as the two functions here write them."""
    shape = op.results[0].shape
    operands = (_source(frame, v, shape) for v in op.operands if v not in frame.indices)
    refs = [*(o for o in operands if isinstance(o, Ref)), *(frame.refs[r] for r in op.results)]
    sizes, _ = collapse(shape, [ref.strides for ref in refs])
    return frame.dim(sizes[0]).value if sizes else c.integer(1)


def fused(frame: Frame, op: Op) -> None:
    """The loops of several elementwise operators computed together."""
    block, shape = op.regions[0], op.results[0].shape
    inputs = {arg: _source(frame, v, shape) for arg, v in zip(block.args, op.operands, strict=True)}
    _loops(frame, op, inputs, lambda read: _fused_body(frame, block, read))


def handed_on(frame: Frame, op: Op) -> None:
    """The loops over elements of a fused region whose product is computed by now, and given in parts.

    Rows `first`..`end` of its columns `from`..`to` are in `sum`, rows `ld` apart.
    """
    block, (product, *others) = op.regions[0], op.regions[0].ops
    taken, shape = {v for inner in others for v in inner.operands}, op.results[0].shape
    inputs = {arg: _source(frame, v, shape) for arg, v in zip(block.args, op.operands, strict=True) if arg in taken}
    apart, first, columns = dims.Extent("ld", 1), c.Identifier("first"), c.Identifier("from")
    frame.extents[apart] = c.Identifier("ld")
    before = c.Infix("+", c.Infix("*", first, frame.extents[apart]), columns)
    start = Index(frame.local("at", c.Prefix("-", before), "ptrdiff_t"))
    inputs[product.result] = Ref(c.Identifier("sum"), product.result.tensor, (dims.of(apart), 1), True, start)
    _loops(frame, op, inputs, lambda read: _fused_body(frame, block, read))


def _fused_body(frame: Frame, block: Any, read: ReadElement) -> list[c.Expression]:
    """Write temporaries; give the expression of every result."""
    uses = Counter(v for inner in block.ops for v in inner.operands)
    final = block.terminator.operands
    known: dict[Value, c.Expression] = {}  # not rounded yet where `raw`
    raw: set[Value] = set()

    def look(value: Value) -> c.Expression:
        if value not in known:
            return read(value)
        return c.call(f"oic_round_{value.dtype}", known[value]) if value in raw else known[value]

    for inner in block.ops[0 if block.owner.product is None else 1 : -1]:
        result = inner.result
        known[result] = apply(frame, inner, look)
        if result.dtype.narrow:
            raw.add(result)
        if uses[result] > 1 or (result not in final and len(text(known[result])) > _LONGEST):
            known[result] = frame.local(result.hint or "t", look(result), result.dtype.value)
            raw.discard(result)
    return [known[v] if v in known else read(v) for v in final]


def _source(frame: Frame, value: Value, shape: tuple[Any, ...]) -> OperandSource:
    if (found := immediate(frame, value)) is not None:
        return found
    ref = frame.refs[value]
    one = ref.type.size == 1  # a setting may have a higher rank than the result
    return replace(ref, strides=(0,) * len(shape) if one else repeated(ref.type.shape, ref.strides, shape))


def _loops(
    frame: Frame, op: Op, inputs: dict[Value, OperandSource], body: Callable[[ReadElement], list[c.Expression]]
) -> None:
    """Loop over the elements of an op's results; operands that stay the same are loaded further out."""
    results = [frame.refs[result] for result in op.results]
    refs = {value: source for value, source in inputs.items() if isinstance(source, Ref)}
    known = {value: source for value, source in inputs.items() if not isinstance(source, Ref)}
    arranged = collapse if len(frame.spans) < 2 else plane
    sizes, strides = arranged(results[0].type.shape, [ref.strides for ref in (*refs.values(), *results)])
    nest = Nest(frame, sizes)

    def hoist() -> None:
        for (value, ref), steps in zip(refs.items(), strides):
            rest = steps[nest.opened :]
            if value not in known and rest and all(s == 0 for s in rest):
                found = load(ref, nest.index(steps, ref.start))
                known[value] = frame.local(f"{frame.stem(ref.pointer)}_value", found, ref.type.dtype.value)

    hoist()
    while nest.opened < len(sizes):
        nest.open()
        hoist()
    for (value, ref), steps in zip(refs.items(), strides):
        if value not in known:
            known[value] = load(_same_name(ref, results), nest.index(steps, ref.start))

    def read(value: Value) -> c.Expression:
        return known[value] if value in known else scalar(frame, value)

    values = body(read)
    _store(frame, results, values, [nest.index(s, r.start) for r, s in zip(results, strides[len(refs) :])])
    nest.close()


def _same_name(ref: Ref, results: list[Ref]) -> Ref:
    """The operand under the result's name where it is computed in place.

    One pointer read and written at one index is what C compilers vectorise without a check.
    """
    alike = (r for r in results if r.key is not None and r.key == ref.key and r.type.dtype is ref.type.dtype)
    return replace(ref, pointer=next(alike, ref).pointer)


def _store(frame: Frame, results: list[Ref], values: list[c.Expression], at: list[c.Expression]) -> None:
    """Store the results of one element, all computed before the first is stored."""
    if len(results) > 1:
        values = [
            v if isinstance(v, (c.Identifier, c.Literal)) else frame.local("t", v, ref.type.dtype.value)
            for v, ref in zip(values, results)
        ]
    for ref, index, value in zip(results, at, values):
        frame.body.add(store(ref, index, value))


def apply(frame: Frame, op: Op, read: ReadElement) -> c.Expression:
    """The expression of an operator on one element; not rounded."""
    if op.reshapes or isinstance(op, (BroadcastTo, Copy)):
        return read(op.operands[0])
    if isinstance(op, Splat):
        return expr.literal(op.value, op.result.dtype)
    assert isinstance(op, Operator) and op.c is not None, f"{op.name} has no elementwise form"
    spec, by = op.c, op.c.decides(op)
    types = {name: dtypes.i64 if name in spec.wide else by for name in spec.passed(op)}
    arguments = [_argument(frame, op, name, wanted, read) for name, wanted in types.items()]
    if spec.bare:
        return arguments[0]
    if spec.infix and by.is_float:
        found = c.Infix(spec.infix, *arguments)
        return c.Conversion("uint8_t", found) if spec.infix in _COMPARISONS else found
    frame.unit.instances.add(spec.instance(op))
    return c.call(spec.function(op), *arguments)


def _argument(frame: Frame, op: Operator, name: str, wanted: DType, read: ReadElement) -> c.Expression:
    """What one field gives; a setting becomes a number of the wanted type."""
    part = op.number(name)
    if not isinstance(part, Value):
        return expr.literal(part, wanted)
    if part in frame.indices:
        return cast(frame.index(part), wanted.value)
    converted = op.fields[name].kind == "attribute" and part.dtype.computed is not wanted
    return c.Conversion(wanted.value, read(part)) if converted else read(part)
