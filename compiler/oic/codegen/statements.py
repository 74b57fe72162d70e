"""Statements: the ops of an entry's body, in order, as C."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from oic.codegen import c_tree as c
from oic.codegen import elementwise as elements
from oic.codegen import expressions as expr
from oic.codegen import kernel_calls as kernels
from oic.codegen import loops
from oic.codegen import state_access as persistent
from oic.codegen.c_module import EntryMember, Signature, Unit, where
from oic.codegen.c_print import text
from oic.codegen.expressions import Index
from oic.codegen.function_context import SESSION, STATE, WHY, Frame, Ref, memory, part_at
from oic.codegen.index_arithmetic import Integers
from oic.codegen.outline import Task, continuation, shared_loop, task
from oic.diagnostics import Span
from oic.ir import control, dims, index, state
from oic.ir.core import Block, Op, Value, is_index
from oic.ir.dims import Dim
from oic.ir.strides import dense
from oic.ir.types import TensorType
from oic.memory.layout import constant_strides
from oic.operators.arrange import Concat
from oic.operators.fused import Copy, Fused
from oic.operators.late import is_effect
from oic.operators.part import Insert, PartEntry
from oic.operators.position import RopeAngles
from oic.operators.work import does, elementwise_work, work

# Beside what `does` what a statement says.
MEASURED = (Copy, Fused, Insert, RopeAngles, control.Parallel, control.Return)
IN, OUT, OK = c.Identifier("in"), c.Identifier("out"), c.Identifier("OIC_OK")


def function_body(unit: Unit, func: Any, face: Signature) -> tuple[c.Body, list[Task]]:
    """The statements of an entry's function, and the functions of its consumers."""
    frame = Frame(unit, face, unit.module.memory.liveness(func))
    _preamble(frame, func)
    writer = _Writer(frame)
    writer.block(func.body)
    return frame.body, writer.tasks


def _preamble(frame: Frame, func: Any) -> None:
    """Null checks, extents, and pointers to inputs, outputs and constants."""
    face = frame.face
    frame.names.reserve("s", "in", "out", "state", "why")
    _checks(frame, func)
    for input_ in face.inputs:
        _argument(frame, input_.name, input_.value, c.Member(IN, input_.member), const=True)
    for output in face.outputs:
        if output.value.place and output.value.place.space == "output":
            _argument(frame, output.name, output.value, c.Member(OUT, output.member), const=False)
    for op in frame.unit.constants.get(func, ()):
        offset = frame.unit.weights[op.symbol].offset
        strides = constant_strides(op.type, op.family_rank)
        address = frame.pointer(op.symbol, op.type, memory("weights", offset), True, str(op.type))
        frame.refs[op.result] = Ref(address, op.type, strides, True, key=("weights", "", offset))
    for extent, member in face.extents:
        frame.extents[extent] = frame.local(extent.name, c.Member(IN, member), "ptrdiff_t")


def _checks(frame: Frame, func: Any) -> None:
    """The session can step, counts are in their ranges, every pointer is given, every extent in its range."""
    face, body = frame.face, frame.body
    body.add(c.IfStatement(c.Infix("==", SESSION, c.NULL), [c.ReturnStatement(c.Identifier("OIC_ERR_INPUT"))]))
    body.add(c.Declare(c.Pointer(f"{frame.unit.name}_state"), "state", c.Member(SESSION, "state"), const=True))
    body.add(c.Declare(c.Pointer("oic_refusal"), "why", c.Prefix("&", c.Member(SESSION, "refusal")), const=True))
    frame.attempt(c.call("oic_check_given", WHY, IN, OUT))
    frame.attempt(c.call("oic_check_ready", WHY, STATE))
    for check in persistent.count_checks(frame.unit, func):
        frame.attempt(check)
    for extent, member in face.extents:
        status, name = c.Identifier("OIC_ERR_SHAPE"), c.string(extent.name)
        limits = (c.Member(IN, member), c.integer(0), c.integer(extent.maximum))
        frame.attempt(c.call("oic_check_range", WHY, c.integer(0), name, *limits, status, status))
    _check_spans(frame)


def _check_spans(frame: Frame) -> None:
    """Inputs and outputs are given, aligned and apart."""
    face, unit = frame.face, frame.unit
    if not face.inputs and not face.outputs:
        return
    rows: list[tuple[c.Expression, ...]] = []
    for struct, parts in ((IN, face.inputs), (OUT, face.outputs)):
        for part in parts:
            type_ = part.value.tensor
            size = _span_bytes(type_, face)
            rows.append((c.string(part.name), c.Member(struct, part.member), c.sizeof(type_.dtype.c), size))
    for name, memory_ in (("state", STATE), ("arena", c.Member(SESSION, "arena"))):
        rows.append((c.string(name), memory_, c.integer(1), c.Identifier(f"{unit.macro}_{name.upper()}_BYTES")))
    value, note = c.Braces(tuple(map(c.Braces, rows)), rows=True), "name, memory, alignment, bytes"
    spans = frame.variable("spans", c.Array("oic_span"), value, const=True, note=note)
    frame.attempt(c.call("oic_check_spans", WHY, spans, len(face.inputs), len(rows)))


def _span_bytes(type_: TensorType, face: Signature) -> c.Expression:
    """The bytes of an input or output in a step; of one element where only the step finds out.

    None, where an extent is below zero: the step refuses it later, with its place.
    """
    dtype, members = type_.dtype, {extent: c.Member(IN, member) for extent, member in face.extents}
    if not dims.extents(type_.shape) <= members.keys():
        return c.integer(dtype.nbytes(1))
    elements = expr.size(type_.size, members.__getitem__)
    if elements.number is not None:
        return c.integer(dtype.nbytes(elements.number))
    count = c.Conversion("uint64_t", elements.value)
    found: c.Expression = c.Infix("*", count, c.sizeof(dtype.c))
    if dtype.packed:
        bits = c.Infix("+", c.Infix("*", count, c.integer(dtype.bits)), c.integer(7))
        found = c.Infix("/", bits, c.integer(8))
    signed = [expr.size(n, members.__getitem__).value for n in type_.shape if dims.bounds(n)[0] < 0]
    if not signed:
        return found
    return c.Conditional(c.joined("&&", (c.Infix(">", n, c.integer(0)) for n in signed)), found, c.integer(0))


def _argument(frame: Frame, name: str, value: Value, address: c.Expression, const: bool) -> None:
    """The pointer to an input or output, known by its place."""
    space, buffer = "input" if const else "output", value.place.buffer if value.place else name
    pointer = frame.pointer(name, value.tensor, address, const, str(value.type))
    frame.scopes[0][(space, buffer)] = pointer
    frame.held[space, buffer] = value.tensor
    frame.scopes[0][(space, buffer, 0, value.dtype.c)] = pointer
    if const:
        frame.refs[value] = Ref(pointer, value.tensor, dense(value.shape), True, key=(space, buffer, 0))


class _Writer(Integers):
    """Writes the ops of blocks into a frame."""

    def __init__(self, frame: Frame, tasks: list[Task] | None = None) -> None:
        super().__init__(frame)
        self.current: list[str] = []
        self.span: Span | None = None  # of the op before, where that is what `current` is of
        self.tasks: list[Task] = [] if tasks is None else tasks
        self.measured = frame.unit.profiled and type(frame) is Frame  # consumers run at once, on any thread
        self.lap = -1  # the place where the step is, of a profiling build; -1: it depends

    def block(self, block: Block) -> None:
        """Every op of a block."""
        self.lap = -1
        for op in block.ops:
            self._source(op)
            if self.measured:
                self._measured(op)
            else:
                self._op(op)
            self.frame.facts.learn(op)
        self.lap, self.current, self.span = -1, [], None

    def _source(self, op: Op) -> None:
        """A comment where a new source statement starts."""
        if op.terminator or (op.span is not None and op.span is self.span and not isinstance(op, Fused)):
            return
        self.span = None if isinstance(op, Fused) else op.span
        found = self.frame.unit.source_lines(op)
        if found and found != self.current:
            done = bool(getattr(op, "entry", ""))
            self.body.add(c.Comment(tuple(f"{line} (computed there)" if done else line for line in found), done))
            self.current = found

    def _measured(self, op: Any) -> None:
        """An op with its place before what it does, if it does anything, and its work after it."""
        frame, start = self.frame, len(self.body.now)
        self._op(op)
        made = [s for s in self.body.now[start:] if not isinstance(s, c.Declare) or not s.optional]
        if not made or not (does(op) or isinstance(op, MEASURED)):
            return
        place = frame.unit.place(frame.face.symbol, None if op.terminator else op)
        if place != self.lap:
            lap, places = c.Prefix("&", c.Member(SESSION, "lap")), c.Member(SESSION, "places")
            self.body.now.insert(start, c.Do(c.call("oic_lap_to", lap, places, place)))
            self.lap = place
        done = work(op)
        sizes = [  # what is not known yet counts as nothing
            frame.wide(n) if all(e in frame.extents for e in dims.extents([n])) else c.ZERO
            for n in (done.read, done.written, done.operations)
        ]
        if any(n != c.ZERO for n in sizes):
            at = c.Prefix("&", c.Element(c.Member(SESSION, "places"), c.integer(place)))
            self.body.add(c.call("oic_lap_work", at, *sizes))

    def _op(self, op: Any) -> None:
        if type(op) in WRITERS:
            WRITERS[type(op)](self, op)
            self.frame.late |= is_effect(op)
        elif op.view and op.results[0].place is not None and op.results[0].place.offset is None:
            self._view(op)
        elif op.results and elements.immediate(self.frame, op.results[0]) is not None:
            self._immediate(op)
        else:
            self._compute(op)

    def _in_state(self, op: Any) -> None:
        persistent.WRITERS[type(op)](self.frame, op, self.frame.unit.by_state[op.state])

    def _view(self, op: Any) -> None:
        """The results of an op that moves nothing, where they have no offset known at build."""
        frame, base = self.frame, self.frame.refs[op.operands[0]]
        for number, result in enumerate(op.results):
            begins = [(frame.number(count), frame.dim(base.strides[axis])) for count, axis in op.begins(number)]
            own = base.strides[len(op.indices) :] if isinstance(op, state.ConstantSelect) else dense(result.shape)
            strides = own if result.placed.strides is None else result.placed.strides
            frame.view(result, base, expr.linear(begins), strides)  # checks made before keep it within the operand

    def _compute(self, op: Any) -> None:
        for result in op.results:
            self.frame.place(result)
        if op.view:
            return
        if op.elementwise and getattr(op, "c", None) is not None:
            self._loops(elements.elementwise, op)
        elif op.workers > 1 and op.chosen().sized:
            self._units(op)
        else:
            kernels.call(self.frame, op)

    def _units(self, op: Any) -> None:
        """A kernel whose units threads share, called with all that is known at build of its sizes."""
        kernel, made = op.chosen(), shared_loop(self.frame, lambda frame: kernels.part(frame, op))
        kernels.divide(self.frame, op, self.frame.dim(kernel.units(op)).value, kernel.work(op), made)
        self.tasks.append(made)

    def _loops(self, write: Callable[[Frame, Op], None], op: Op) -> None:
        """The loops of an elementwise op, or of several in one, here or shared by threads."""
        if op.workers == 1:
            write(self.frame, op)
            return
        made = shared_loop(self.frame, lambda frame: write(frame, op))
        kernels.divide(self.frame, op, elements.outermost(self.frame, op), elementwise_work(op), made)
        self.tasks.append(made)

    # -- values ------------------------------------------------------------------

    def _immediate(self, op: Any) -> None:
        """A number that is written where it is used; stored too where memory is wanted."""
        if op.result.place is None or op.result.place.offset is None:
            if isinstance(op, state.Splat) and op.single:
                self.frame.constant(op)
            return
        target = self.frame.place(op.result)
        if not (isinstance(op, state.Splat) and op.unread):
            loops.fill(self.frame, target, elements.scalar(self.frame, op.result))

    def _copy(self, op: Any) -> None:
        target = self.frame.place(op.result)
        if elements.immediate(self.frame, op.x) is not None:
            elements.elementwise(self.frame, op)
        else:
            loops.copy(self.frame, self.frame.refs[op.x], target)

    def _fused(self, op: Any) -> None:
        for result in op.results:
            self.frame.place(result)
        if op.product is None:
            self._loops(elements.fused, op)
            return
        for arg, value in zip(op.body.args, op.operands, strict=True):
            if not op.takes_elements(value):
                self.frame.refs[arg] = self.frame.refs[value]
        if op.choice is not None:
            self.frame.refs[op.choice.result] = self.frame.refs[op.results[0]]
            kernels.joined(self.frame, op.product, op.choice)
            return
        made = continuation(self.frame, where(op.product.span), lambda frame: elements.handed_on(frame, op))
        kernels.call(self.frame, op.product, (made.function, made.context), op.results[0])
        self.tasks.append(made)

    def _concat(self, op: Concat) -> None:
        """One copy a part; strides of any kind are welcome."""
        whole = self.frame.place(op.result)
        stride = self.frame.dim(whole.strides[op.axis])
        start = expr.ZERO
        for part in op.parts:
            source = self.frame.refs[part]
            moved = expr.arithmetic("+", whole.start, start)
            loops.copy(self.frame, source, part_at(whole.pointer, moved, source.type, whole.strides))
            start = expr.arithmetic("+", start, expr.arithmetic("*", self.frame.dim(part.shape[op.axis]), stride))

    def _insert(self, op: Insert) -> None:
        """A part written into a tensor, which is copied first where it lies elsewhere."""
        whole = self.frame.place(op.result)
        loops.copy(self.frame, self.frame.refs[op.x], whole)
        if op.entry:
            return
        start, strides = self._box(op, whole)
        if elements.immediate(self.frame, op.value) is None and any(n != 1 for n in op.value.shape):
            loops.copy(self.frame, self.frame.refs[op.value], part_at(whole.pointer, start, op.value.tensor, strides))
        else:
            part = Ref(whole.pointer, op.value.tensor, tuple(strides), False, start)
            loops.fill(self.frame, part, elements.scalar(self.frame, op.value))

    def _part_entry(self, op: PartEntry) -> None:
        """A pointer to a part of a tensor that values are computed in."""
        whole = self.frame.refs[op.x]
        start, strides = self._box(op, whole)
        self.frame.entry(op.symbol, part_at(whole.pointer, start, op.box, strides), f"in {text(whole.pointer)}")

    def _box(self, op: Insert | PartEntry, whole: Ref) -> tuple[Index, list[Dim]]:
        """Where a box of leading axes starts, in elements, and its strides."""
        start = expr.linear((self.frame.index(o), self.frame.dim(s)) for o, s in zip(op.offsets, whole.strides))
        strides = [s for s, n in zip(whole.strides, op.lengths) if n is not None]
        return start, [*strides, *whole.strides[len(op.lengths) :]]

    # -- structure -----------------------------------------------------------------

    def _for(self, op: Any) -> None:
        low, high = self.frame.index(op.start), self.frame.index(op.end)
        carried = list(zip(op.body.args[1:], op.init, op.results, op.body.terminator.operands, strict=True))
        for arg, first, result, _ in carried:
            self._carry(arg, first, result)
        if any(o.writes for o in op.body.all_ops()):
            self.frame.late = True  # from the second iteration on
        counter = op.body.args[0]
        name = c.Identifier(self.frame.names.unique(counter.hint or "l"))
        self.frame.indices[counter] = Index(name)
        loop = c.ForStatement("int64_t", name.text, low.value, c.Infix("<", name, high.value))
        with self.body.inside(loop), self.frame.inside(op.body):
            self.block(op.body)
            self._assign((arg, y) for arg, _, _, y in carried)
        for _, _, result, _ in carried:
            if not is_index(result):
                self.frame.place(result)

    def _carry(self, arg: Value, first: Value, result: Value) -> None:
        """Give a carried value its variable: a local integer, or the memory that it starts in."""
        if is_index(arg):
            self.frame.indices[arg] = self._variable(arg.hint or result.hint, self.frame.index(first).value)
            self.frame.indices[result] = self.frame.indices[arg]
        else:
            self.frame.place(arg)

    def _variable(self, hint: str, value: c.Expression | None) -> Index:
        """An integer that is set more than once."""
        return Index(self.frame.variable(hint or "n", "int64_t", value, optional=True))

    def _assign(self, pairs: Iterable[tuple[Value, Value]]) -> None:
        """Assign carried integers all at once."""
        found = ((self.frame.index(a).value, self.frame.index(b).value) for a, b in pairs if is_index(a))
        moved = [(to, value) for to, value in found if to != value]
        if len(moved) > 1:
            moved = [(to, self.frame.local(f"next_{text(to)}", value)) for to, value in moved]
        for to, value in moved:
            self.body.add(c.AssignStatement(to, value))

    def _if(self, op: Any) -> None:
        for result in op.results:
            if is_index(result):
                self.frame.indices[result] = self._variable(result.hint, None)
            else:
                self.frame.place(result)
        branch = c.IfStatement(self._condition(op.condition))
        self.body.add(branch)
        before = late = self.frame.late
        self.current, self.span = [], None
        for block, statements in ((op.then, branch.body), (op.orelse, branch.orelse)):
            self.frame.late = before
            with self.body.within(statements), self.frame.inside(block):
                self.block(block)
                self._assign(zip(op.results, block.terminator.operands, strict=True))
            late |= self.frame.late
        self.frame.late = late

    def _check_iterations(self, op: Any) -> None:
        """Checks at the ends of loops; where one refuses, those of all iterations, to refuse for the first of them."""
        frame, around = self.frame, self.frame.tried
        frame.tried = tried = frame.variable("tried", "oic_status", OK)
        with self.body.inside(c.Once()), frame.inside(op.ends):
            self.block(op.ends)
        frame.tried = around
        refused = c.IfStatement(c.Infix("!=", tried, OK), note="which iteration is the first to be refused")
        with self.body.inside(refused), frame.inside(op.iterations):
            self.block(op.iterations)
            frame.attempt(tried)

    def _parallel(self, op: Any) -> None:
        """A function a consumer, and one call that runs them all."""
        self.frame.unit.headers.add("hosted/pool.h")
        made = []
        for name, (region, results) in zip(op.names, op.given, strict=True):
            made.append(task(self.frame, name, region, results, lambda f, r: _Writer(f, self.tasks).block(r)))
        given, runs = [], []
        for name, one in zip(op.names, made, strict=True):
            given.append(self.frame.variable(name, one.struct, c.Braces(tuple(one.takes.values()), tuple(one.takes))))
            runs.append(c.Braces((c.Identifier(one.function), c.Prefix("&", given[-1])), ("run", "context")))
        tasks = self.frame.variable("tasks", c.Array("oic_task", len(made)), c.Braces(tuple(runs), rows=True))
        self.body.add(c.call("OIC_TRY", c.call("oic_run_tasks", c.Member(SESSION, "pool"), WHY, tasks, len(made))))
        for argument, one in zip(given, made, strict=True):
            for extent, member in one.gives.items():
                found = c.Member(argument, member, arrow=False)
                self.frame.extents[extent] = self.frame.local(extent.name, found, "ptrdiff_t")
        for result in op.results:
            self.frame.place(result)
        self.tasks += made
        self.current, self.span = [], None

    def _condition(self, value: Value) -> c.Expression:
        if isinstance(value.op, control.Cond):
            return elements.test(self.frame, value.op)
        return c.Infix("!=", elements.scalar(self.frame, value), c.integer(0))

    def _return(self, op: Any) -> None:
        """Fill the outputs that are not computed in place, and the shapes."""
        frame, uses = self.frame, Counter(o.value for o in self.frame.face.outputs)
        elsewhere = {o.name for o in frame.face.outputs if _is_elsewhere(o, uses[o.value])}
        if (elsewhere or any(o.sizes for o in frame.face.outputs)) and self.body.statements:
            self.body.add(c.Comment(("what the caller gets",)))
        for output, value in zip(frame.face.outputs, op.values, strict=True):
            if output.name in elsewhere:
                target = Ref(c.Member(OUT, output.member), value.tensor, dense(value.shape), False)
                loops.copy(frame, frame.refs[value], target)
            for axis, size in enumerate(value.shape if output.sizes else ()):
                place = c.Element(c.Member(OUT, output.sizes), c.integer(axis))
                self.body.add(c.AssignStatement(place, frame.dim(size).value))
        unit = frame.unit
        if unit.total is not None and persistent.counts(unit, op.home.owner, state.StateSet):
            self.body.add(c.AssignStatement(persistent.member(unit.total), c.call(f"{unit.name}_counts_sum", STATE)))
        self.body.add(c.ReturnStatement(OK))


# What writes each structural op; views, numbers and operators are written by their kind.
WRITERS: dict[type[Op], Callable[[_Writer, Any], None]] = {
    index.IndexConst: _Writer._index_const,
    index.IndexSize: _Writer._index_size,
    **dict.fromkeys((index.IndexAdd, index.IndexSub, index.IndexMul), _Writer._arithmetic),
    **dict.fromkeys((index.IndexMin, index.IndexMax), _Writer._least),
    **dict.fromkeys((index.IndexDiv, index.IndexMod), _Writer._division),
    index.IndexLoad: _Writer._index_load,
    index.IndexEnd: _Writer._end,
    index.IndexWhen: _Writer._when,
    index.IndexWrap: _Writer._wrap,
    index.ExtentBind: _Writer._bind,
    index.CheckRange: _Writer._check_range,
    index.CheckIds: _Writer._check_ids,
    index.AssertShape: _Writer._assert_shape,
    **dict.fromkeys(persistent.WRITERS, _Writer._in_state),
    control.For: _Writer._for,
    control.If: _Writer._if,
    control.CheckIterations: _Writer._check_iterations,
    control.Parallel: _Writer._parallel,
    control.Return: _Writer._return,
    **dict.fromkeys((control.Barrier, control.Yield), lambda w, op: None),  # the op around a yield hands its values on
    Copy: _Writer._copy,
    Fused: _Writer._fused,
    Concat: _Writer._concat,
    Insert: _Writer._insert,
    PartEntry: _Writer._part_entry,
}


def _is_elsewhere(output: EntryMember, uses: int) -> bool:
    """An output is to be copied where it goes; `uses`: how many outputs its value is."""
    place = output.value.place
    return place is None or place.space != "output" or (place.buffer != output.name and uses > 1)
