"""What lowering a function keeps: what each variable holds, and what names mean as integers.

A volatile variable or a temporary is no memory: `env` maps it to the SSA value it holds now.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from oic.check.binding import check_bytes
from oic.check.literals import number
from oic.check.model_data import data_of, elements_of
from oic.check.report import Refused, refused
from oic.check.resolved import BlockInstance
from oic.check.sizes import evaluate, exactly
from oic.check.symbols import Count, LoopIndex, Size, Variable
from oic.diagnostics import Diagnostic, Span
from oic.dtypes import INT
from oic.ir import dims
from oic.ir.core import Block, Value
from oic.ir.dims import Dim
from oic.ir.index import IndexLoad, IndexSize, divides
from oic.ir.module import Module
from oic.ir.state import CacheRead, Constant, Splat, StateGet
from oic.ir.types import TensorType
from oic.lower.capacity import constant_integer
from oic.lower.integers import IndexBuilder, not_negative
from oic.syntax import tree as s


class Poison:
    """What a variable holds after a refused statement: uses of it are refused in silence."""


class Mixed:
    """What a variable holds where values of different ranks meet: a refusal only if it is used."""

    def __init__(self, types: str) -> None:
        self.types = types


class Returned:
    """The flag that a `return` inside a loop sets: carried and joined as variables are."""

    name = "$returned"


POISON = Poison()
RETURNED = Returned()
Held = Value | Poison | Mixed
EnvKey = Variable | Returned
Env = dict[EnvKey, Held]
Shapes = dict[Variable, tuple[Dim | None, ...]]


@dataclass(kw_only=True)
class Builder(IndexBuilder):
    """Lowers one function; see the module's docstring.

    instance  the block being lowered: what its names mean
    env      what volatile variables and temporaries hold
    shapes   their declared sizes in this function, and those of its inputs; of temporaries, while visible

    loops    present value of every loop index
    known    value of a persistent integer scalar since its last write
    calls    blocks being lowered, outermost first
    depth    how many loops and branches the present place is in

    given    what consumers wrote to yielded variables, until the `await`
    returns  the block being lowered may return from inside a loop
    zeros    variables that start with nothing, and what they hold then: reading it is a warning
    silent   something was left out because of what was refused before
    """

    module: Module
    instance: BlockInstance
    states: dict[Variable, Value]
    constants: dict[str, Value]
    diagnostics: dict[object, Diagnostic]
    inputs: dict[Variable, Value] = field(default_factory=dict)
    env: Env = field(default_factory=dict)
    shapes: Shapes = field(default_factory=dict)

    loops: dict[LoopIndex, Dim] = field(default_factory=dict)
    known: dict[Variable, Dim] = field(default_factory=dict)
    calls: list[BlockInstance] = field(default_factory=list)
    depth: int = 0

    given: Env = field(default_factory=dict)
    returns: bool = False
    zeros: set[tuple[EnvKey, Value]] = field(default_factory=set)
    silent: bool = False

    # -- ops and diagnostics ---------------------------------------------------

    def refuse(self, diagnostic: Diagnostic, key: object = None) -> None:
        """Record a diagnostic once, however often its statement is lowered.

        key   what it is about, beside its slug; default: its place
        """
        span = diagnostic.span
        place = (span.start, span.end) if span is not None else None
        self.diagnostics.setdefault((diagnostic.slug, key or place), diagnostic)

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """End what is refused in here, and record its diagnostic, unless it was reported."""
        try:
            yield
        except Refused as refusal:
            self.silent = True
            if refusal.diagnostic is not None:
                self.refuse(refusal.diagnostic)

    def mark(self) -> Callable[[], None]:
        """What goes back to where lowering is: it forgets, once, what was lowered into this block since."""
        kept, diagnostics = (dict(self.env), dict(self.shapes)), dict(self.diagnostics)
        lengths = [(block, len(block.ops)) for block in (self.block, self.prologue)]

        def restore() -> None:
            self.env, self.shapes = kept
            for block, length in lengths:
                block.set_ops(block.ops[:length])
            self.diagnostics.clear()
            self.diagnostics.update(diagnostics)

        return restore

    @contextmanager
    def nested(self, block: Block) -> Iterator[Block]:
        """Lower into another block; what is learnt inside is forgotten after it."""
        saved = self.block, self.known, self.nonneg, self.memo
        self.block, self.memo, self.depth = block, self.memo.new_child(), self.depth + 1
        self.known, self.nonneg = dict(self.known), set(self.nonneg)
        try:
            yield block
        finally:
            self.block, self.known, self.nonneg, self.memo = saved
            self.depth -= 1

    @contextmanager
    def braces(self) -> Iterator[None]:
        """Lower statements in braces: temporaries declared there are gone after them."""
        before = set(self.shapes)
        try:
            yield
        finally:
            for variable in [v for v in self.shapes if v.kind == "temporary" and v not in before]:
                del self.shapes[variable]
                self.env.pop(variable, None)

    @contextmanager
    def inside(self, instance: BlockInstance, returns: bool) -> Iterator[None]:
        """Lower a block that is branched to, or a consumer."""
        saved = self.instance, self.returns, self.iterations
        self.instance, self.returns, self.iterations = instance, returns, {}  # a branch may choose iterations
        try:
            with self.braces():
                yield
        finally:
            self.instance, self.returns, self.iterations = saved

    # -- variables -------------------------------------------------------------

    def variable(self, node: s.Name | s.Access | s.Declaration) -> Variable:
        """The variable that a name means.  Raises Refused, in silence: the checks said why there is none."""
        found = self.instance.variable(node)
        if found is None or found.refused:
            raise Refused(None)
        return found

    def dims(self, variable: Variable) -> tuple[Dim | None, ...]:
        """Declared sizes, with pinned extents at their value.  Raises Refused."""
        if variable not in self.shapes:
            if variable.kind == "temporary":
                raise Refused(None)  # its declaration was refused
            self.declare(variable, self.prologue)
        return self.shapes[variable]

    def declare(self, variable: Variable, block: Block) -> None:
        """Note the sizes of a variable; divisions in them are checked in a block.  Raises Refused."""
        sizes, span = self.binding.dims_of(variable.declaration), variable.declaration.type_span
        check_bytes(variable.name, variable.dtype, sizes, span)
        for quotient in dims.quotients(d for d in sizes if d is not None):
            for op in divides(quotient):
                op.span = span
                block.append(op)
        self.shapes[variable] = sizes

    def held(self, variable: Variable, span: Span | None) -> Value:
        """The value a local holds; its starting value if nothing was written.  Raises Refused."""
        value = self.env.get(variable)
        if isinstance(value, Poison):
            raise Refused(None)
        if isinstance(value, Mixed):
            raise refused("shape-varies", f"'{variable.name}' may be {value.types} here", span, variable)
        if value is None:
            value = self.env[variable] = self.start(variable)
        if (variable, value) in self.zeros and span is not None:
            self._warn_of_zeros(variable, span)
        return value

    def read(self, variable: Variable, span: Span, *, elements: bool = True) -> Value:
        """What a variable that is no family holds now.  Raises Refused.

        elements   they are read; else it gives its shape alone
        """
        match variable.kind:
            case "dynamic":
                return self.inputs[variable]
            case "constant":
                return self.constant(variable)
            case "persistent":
                state = self.states[variable]
                op = CacheRead(state, [], "", state.state_type.entry, span=span, hint=variable.name)
                return self.emit(op).result
        return self.held(variable, span if elements else None)

    def _warn_of_zeros(self, variable: Variable, span: Span) -> None:
        what = f"'{variable.name}' is read before it is written: it is zero"
        zero = {"float": "0.0", "bool": "false"}.get(variable.dtype.kind, "0")
        notes, hint = (variable.note(),), f"if that is meant, declare it with @init({zero})"
        self.refuse(Diagnostic("reads-zeros", what, span, "", notes, hint, "warning"), variable)  # at the first place

    def is_visible(self, variable: Variable) -> bool:
        """The variable is no temporary of inner braces, and its declaration was not refused."""
        return variable in self.shapes if variable.kind == "temporary" else not variable.refused

    def begun(self, key: EnvKey) -> Held | None:
        """What a variable holds that nothing was written to; None for what is not visible."""
        return self.start(key) if isinstance(key, Variable) and self.is_visible(key) else None

    def start(self, variable: Variable) -> Value:
        """The starting value of a local, made at the start of the function.  Raises Refused."""
        if variable.data is not None or variable.scalar is not None:
            return self.constant(variable)
        dtype, init, temporary = variable.dtype, variable.init, variable.kind == "temporary"
        shape = tuple(0 if d is None else d for d in self.dims(variable))
        op = Splat(variable.first, TensorType(dtype, shape), hint=variable.name)
        block = self.block if temporary else self.prologue
        for size in shape:
            if dims.bounds(size)[0] < 0:
                value = block.append(IndexSize(size)).result
                block.append(not_negative(value, size, variable.name, variable.declaration.type_span))
        made = block.append(op).result
        if init is None and not temporary:
            self.zeros.add((variable, made))
        return made

    def constant(self, variable: Variable) -> Value:
        """The value of a constant (or of model data behind a volatile), made once a module."""
        if variable.name in self.constants:
            return self.constants[variable.name]
        elements = elements_of(self.binding, variable)
        if not variable.stored or (not variable.family and math.prod(elements.shape) == 1):
            array = data_of(self.binding, variable)
            value = array.reshape(-1)[0].item() if array.size else 0
            shape = elements.shape if variable.stored else tuple(d for d in self.dims(variable) if d is not None)
            type_ = TensorType(variable.dtype, shape)
            return self.prologue.append(Splat(number(value, variable.dtype), type_, hint=variable.name)).result
        type_ = TensorType(variable.dtype, tuple(elements.shape))
        op = Constant(variable.name, type_, hint=variable.name, span=variable.declaration.name_span)
        self.module.weights[variable.name] = elements
        self.module.top.append(op)
        self.constants[variable.name] = op.result
        return op.result

    # -- integers --------------------------------------------------------------

    def integer(self, expr: s.Expr, counts: Callable[[int], Dim] | None = None) -> Dim:
        """An integer expression, now.  Raises Refused.

        counts   the counts of a matrix, by axis, where they may be named
        """

        def lookup(name: s.Name) -> Dim:
            found = self.instance.meanings.get(id(name))
            if isinstance(found, Count) and counts is not None:
                return counts(found.axis)
            return self.integer_name(name)

        def divide(node: s.Binary, a: Dim, b: Dim) -> Dim:
            if any(map(self._is_late, s.names_in(node))):
                return self.floored(node, a, b)
            return exactly(node, a, b)

        return evaluate(expr, lookup, divide)

    def _is_late(self, name: s.Name) -> bool:
        """The name has a value at run time only, even where lowering knows it."""
        match self.instance.meanings.get(id(name)):
            case Variable(kind=kind):
                return kind != "constant"
            case Size(size):
                return size in self.binding.extents
        return True

    def integer_name(self, name: s.Name) -> Dim:
        """What a name means in an integer expression: loop index, scalar variable, size."""
        found = self.instance.meanings.get(id(name))
        if isinstance(found, LoopIndex):
            return self.loops[found]
        if isinstance(found, Size):
            return self.binding.size(s.Name(found.name, span=name.span))
        variable = self.variable(name)
        value = constant_integer(self.binding, variable)
        if value is not None:
            return value
        if variable.kind != "persistent":
            return self.loaded(self.read(variable, name.span), name)
        state = self.states[variable]
        if any(d != 1 for d in state.state_type.shape):
            raise Refused(self._not_integer(name, str(state.state_type.entry)))
        if variable not in self.known:  # it is read once between writes
            self.known[variable] = self.atom(self.emit(StateGet(state, span=name.span, hint=variable.name)).result)
        return self.known[variable]

    def loaded(self, value: Value, name: s.Name) -> Dim:
        """The integer in a tensor of one element."""
        if value.dtype not in INT or value.tensor.size != 1:
            raise Refused(self._not_integer(name, self.shown(value.type)))
        if isinstance(value.op, Splat):
            return int(value.op.value)
        make = partial(IndexLoad, value, span=name.span, hint=self.variable(name).name)
        return self.once(("load", value), lambda: self.atom(self.emit(make()).result))

    def _not_integer(self, name: s.Name, what: str) -> Diagnostic:
        variable = self.variable(name)
        message = f"'{variable.name}' is {what}, not an integer of one element"
        return Diagnostic("not-scalar", message, name.span, notes=(variable.note(),))

    def forget_written(self, *blocks: Block) -> None:
        """Nothing is known any more of persistent variables that are written in these blocks."""
        written = {state for block in blocks for op in block.ops for state in op.touched("write")}
        self.known = {v: d for v, d in self.known.items() if self.states[v] not in written}
