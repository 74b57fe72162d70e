"""Statements: the ops of an entry's body, in order, as lines of C."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from oic.codegen import elementwise as elements
from oic.codegen import expressions as expr
from oic.codegen import kernel_calls as kernels
from oic.codegen import loops
from oic.codegen import state_access as persistent
from oic.codegen.address import view
from oic.codegen.c_module import Interface, Unit, interface, source_lines
from oic.codegen.expressions import Index
from oic.codegen.function_context import Frame, Ref
from oic.codegen.index_arithmetic import ARITHMETIC, Integers
from oic.codegen.outline import Task, task
from oic.ir import dims
from oic.ir.control import Barrier, CheckTurns, For, If, Parallel, Return, Yield
from oic.ir.core import Block, Op, Value, is_index
from oic.ir.dims import Dim
from oic.ir.index import (
    AssertShape,
    CheckIds,
    CheckRange,
    ExtentBind,
    IndexConst,
    IndexDiv,
    IndexEnd,
    IndexLoad,
    IndexMax,
    IndexMin,
    IndexMod,
    IndexSize,
    IndexWhen,
    IndexWrap,
)
from oic.ir.state import (
    Splat,
    StateAdd,
    StateCopy,
    StateEntry,
    StateFill,
    StateGet,
    StateLoad,
    StateReach,
    StateSet,
    StateStore,
)
from oic.ir.types import TensorType
from oic.memory.liveness import liveness
from oic.memory.views import dense
from oic.operators.arrange import Concat
from oic.operators.fused import Copy, Exchange, Fused
from oic.operators.part import Insert, PartEntry


def function_body(unit: Unit, func: Any) -> tuple[list[str], list[Task]]:
    """The lines between the braces of an entry's function, and the functions of its consumers."""
    face = interface(unit, func)
    frame = Frame(unit, face, liveness(func.body))
    _preamble(frame, func)
    writer = _Writer(frame)
    writer.block(func.body)
    return frame.lines.text(), writer.tasks


def _preamble(frame: Frame, func: Any) -> None:
    """Null checks, extents, and pointers to inputs, outputs and constants."""
    lines, face = frame.lines, frame.face
    for name in ("s", "in", "out", "state", "why"):
        frame.names.reserve(name)
    _checks(frame, func)
    for input_ in face.inputs:
        _argument(frame, input_.name, input_.value, f"in->{input_.member}", const=True)
    for output in face.outputs:
        if output.value.place and output.value.place.space == "output":
            _argument(frame, output.name, output.value, f"out->{output.member}", const=False)
    constants = frame.unit.module.constants()
    used = [op for op in constants if any(user.inside(func.body) for user in op.result.users)]
    for op in used:
        offset, _ = frame.unit.weights[op.symbol]
        strides = _constant_strides(frame.unit, op)
        address = f"oic_at_const(s->weights, {offset})"
        name = frame.pointer(op.symbol, op.type, address, True, str(op.type))
        frame.refs[op.result] = Ref(name, op.type, strides, True, key=("weights", "", offset))
    for extent, member in face.extents:
        name = frame.names.unique(extent.name)
        frame.extents[extent] = name
        lines.declare(name, f"const ptrdiff_t {name} = in->{member};")
    _movable(frame, func)


def _movable(frame: Frame, func: Any) -> None:
    """Variables for the addresses of buffers that exchange them."""
    moving = {name for op in func.body.all_ops() if isinstance(op, Exchange) for name in op.moves()}
    plan = frame.unit.module.plan
    assert plan is not None
    for buffer in plan.space("arena"):
        if buffer.function == func.symbol and buffer.name in moving:
            name = frame.names.unique(f"at_{buffer.name}")
            frame.movable[buffer.name] = name
            frame.lines.add(f"void *{name} = oic_at(s->arena, {buffer.offset}); /* {buffer.nbytes} bytes */")


def _checks(frame: Frame, func: Any) -> None:
    """The session can step, counts are in their ranges, every pointer is given, every extent in its range."""
    face, lines = frame.face, frame.lines
    lines.open("if (s == NULL || in == NULL || out == NULL) {")
    lines.add("return OIC_ERR_INPUT;")
    lines.close()
    lines.add(f"{frame.unit.name}_state *const state = s->state;")
    lines.add("oic_refusal *const why = &s->refusal;")
    lines.add("OIC_TRY(oic_check_ready(why, state));")
    for check in persistent.count_checks(frame.unit, func):
        lines.add(check)
    frame.counts = persistent.sets_counts(func)
    for extent, member in face.extents:
        lines.add(
            f'OIC_TRY(oic_check_range(why, 0, "{extent.name}", in->{member}, 0, {extent.maximum}, '
            "OIC_ERR_SHAPE, OIC_ERR_SHAPE));"
        )
    _check_spans(frame)


def _check_spans(frame: Frame) -> None:
    """Inputs and outputs are given, aligned and apart."""
    face, lines, unit = frame.face, frame.lines, frame.unit
    if not face.inputs and not face.outputs:
        return
    spans = frame.names.unique("spans")
    lines.open(f"const oic_span {spans}[] = {{ /* name, memory, alignment, bytes */")
    for struct, parts in (("in", face.inputs), ("out", face.outputs)):
        for part in parts:
            type_ = part.value.tensor
            align = f"sizeof({type_.dtype.c})"
            lines.add(f'{{"{part.name}", {struct}->{part.member}, {align}, {_span_bytes(type_, face)}}},')
    lines.add(f'{{"state", state, 1, {unit.macro}_STATE_BYTES}},')
    lines.add(f'{{"arena", s->arena, 1, {unit.macro}_ARENA_BYTES}},')
    lines.close(";")
    count = len(face.inputs) + len(face.outputs) + 2
    lines.add(f"OIC_TRY(oic_check_spans(why, {spans}, {len(face.inputs)}, {count}));")


def _span_bytes(type_: TensorType, face: Interface) -> str:
    """The bytes of an input or output in a step; of one element where only the step finds out.

    None, where an extent is below zero: the step refuses it later, with its place.
    """
    dtype, members = type_.dtype, {extent: f"in->{member}" for extent, member in face.extents}
    if not dims.extents(type_.shape) <= members.keys():
        return str(dtype.nbytes(1))
    elements = expr.size(type_.size, members.__getitem__)
    if elements.number is not None:
        return str(dtype.nbytes(elements.number))
    count = f"(uint64_t){elements.at(expr.ATOM)}"
    text = f"({count} * {dtype.bits} + 7) / 8" if dtype.packed else f"{count} * sizeof({dtype.c})"
    signed = [expr.size(n, members.__getitem__) for n in type_.shape if dims.bounds(n)[0] < 0]
    known = " && ".join(f"{n.at(expr.SUM)} > 0" for n in signed)
    return f"{known} ? {text} : 0" if known else text


def _argument(frame: Frame, name: str, value: Value, address: str, const: bool) -> None:
    """The pointer to an input or output, known by its place."""
    space = "input" if const else "output"
    place = value.place
    buffer = place.buffer if place else name
    pointer = frame.pointer(name, value.tensor, address, const, str(value.type))
    frame.scopes[0][(space, buffer)] = pointer
    frame.scopes[0][(space, buffer, 0, value.dtype.c)] = pointer
    if const:
        strides = dense(value.shape)
        frame.refs[value] = Ref(pointer, value.tensor, strides, True, key=(space, buffer, 0))


def _constant_strides(unit: Unit, op: Any) -> tuple[int, ...]:
    from oic.memory.layout import constant_strides

    return constant_strides(op.type, unit.families[op.symbol])


class _Writer(Integers):
    """Writes the ops of blocks into a frame."""

    def __init__(self, frame: Frame) -> None:
        super().__init__(frame)
        self.current: list[tuple[str, str]] = []
        self.tasks: list[Task] = []

    def block(self, block: Block) -> None:
        """Every op of a block."""
        for op in block.ops:
            self._source(op)
            self._op(op)
            self.frame.facts.learn(op)

    def _source(self, op: Op) -> None:
        """A comment where a new source statement starts."""
        if op.terminator:
            return
        found = source_lines(op)
        if found and found != self.current:
            there = " (computed there)" if getattr(op, "entry", "") else ""
            for place, text in found:
                self.lines.source(f"{place}  {text}{there}")
            self.current = found

    def _op(self, op: Any) -> None:
        if op.name in ARITHMETIC:
            self._arithmetic(op)
        elif type(op) in WRITERS:
            WRITERS[type(op)](self, op)
        elif op.view and op.results[0].place is not None and op.results[0].place.offset is None:
            view(self.frame, op)
        elif op.results and elements.immediate(self.frame, op.results[0]) is not None:
            self._immediate(op)
        else:
            self._compute(op)

    def _compute(self, op: Any) -> None:
        for result in op.results:
            self.frame.place(result)
        if op.view:
            return
        if op.elementwise and getattr(op, "c", None) is not None:
            elements.elementwise(self.frame, op)
        else:
            kernels.call(self.frame, op)

    def _effect(self, write: Callable[[Any, Any], None], op: Any) -> None:
        write(self.frame, op)
        self.frame.late = True

    # -- values ------------------------------------------------------------------

    def _immediate(self, op: Any) -> None:
        """A number that is written where it is used; stored too where memory is wanted."""
        if op.result.place is None or op.result.place.offset is None:
            return
        if isinstance(op, Splat) and op.unread:
            self.frame.place(op.result)
            return
        text = elements.immediate(self.frame, op.result)
        assert text is not None
        ref = self.frame.place(op.result)
        sizes, (strides,) = loops.collapse(ref.type.shape, [ref.strides])
        nest = loops.Nest(self.frame, sizes)
        nest.open_all()
        self.lines.add(loops.store(ref, nest.index(strides, ref.start), text))
        nest.close()

    def _copy(self, op: Any) -> None:
        target = self.frame.place(op.result)
        if elements.immediate(self.frame, op.x) is not None:
            elements.elementwise(self.frame, op)
        else:
            loops.copy(self.frame, self.frame.ref(op.x), target)

    def _fused(self, op: Any) -> None:
        for result in op.results:
            self.frame.place(result)
        elements.fused(self.frame, op)

    def _concat(self, op: Concat) -> None:
        """One copy a part; strides of any kind are welcome."""
        whole = self.frame.place(op.result)
        axis = op.axis % len(whole.strides)
        start = expr.number(0)
        for part in op.parts:
            source = self.frame.ref(part)
            moved = expr.arithmetic("+", whole.start, start)
            loops.copy(self.frame, source, _shifted(whole, source.type, whole.strides, moved))
            step = expr.arithmetic("*", self.frame.dim(part.shape[axis]), self.frame.dim(whole.strides[axis]))
            start = expr.arithmetic("+", start, step)

    def _insert(self, op: Insert) -> None:
        """A part written into a tensor, which is copied first where it lies elsewhere."""
        whole = self.frame.place(op.result)
        loops.copy(self.frame, self.frame.ref(op.x), whole)
        if op.entry:
            return
        start, strides = self._box(op, whole)
        text = elements.immediate(self.frame, op.value)
        if text is None and any(n != 1 for n in op.value.shape):
            loops.copy(self.frame, self.frame.ref(op.value), _shifted(whole, op.value.tensor, strides, start))
            return
        sizes, (steps,) = loops.collapse(op.value.shape, [tuple(strides)])
        nest = loops.Nest(self.frame, sizes)
        nest.open_all()
        value = text if text is not None else elements.scalar(self.frame, op.value)
        self.lines.add(loops.store(whole, nest.index(steps, start), value))
        nest.close()

    def _part_entry(self, op: PartEntry) -> None:
        """A pointer to a part of a tensor that values are computed in."""
        whole = self.frame.ref(op.x)
        start, strides = self._box(op, whole)
        sizes = [n for n in op.lengths if n is not None]
        type_ = TensorType(op.x.dtype, (*sizes, *op.x.shape[len(op.lengths) :]))
        self.frame.entry(op.symbol, _shifted(whole, type_, strides, start), f"in {whole.pointer}")

    def _box(self, op: Insert | PartEntry, whole: Ref) -> tuple[Index, list[Dim]]:
        """Where a box of leading axes starts, in elements, and its strides."""
        start = expr.number(0)
        for offset, stride in zip(op.offsets, whole.strides):
            step = _inside(expr.arithmetic("*", self.frame.index(offset), self.frame.dim(stride)))
            start = expr.arithmetic("+", start, step)
        strides = [s for s, n in zip(whole.strides, op.lengths) if n is not None]
        return start, [*strides, *whole.strides[len(op.lengths) :]]

    # -- structure -----------------------------------------------------------------

    def _for(self, op: Any) -> None:
        low, high = self.frame.index(op.start), self.frame.index(op.end)
        carried = list(zip(op.body.args[1:], op.init, op.results, op.body.terminator.operands, strict=True))
        for arg, first, result, _ in carried:
            self._carry(arg, first, result)
        if any(o.writes for o in op.body.all_ops()):
            self.frame.late = True  # from the second turn on
        counter = op.body.args[0]
        name = self.frame.names.unique(counter.hint or "l")
        self.frame.indices[counter] = Index(name)
        self.lines.open(f"for (int64_t {name} = {low.text}; {name} < {high.text}; ++{name}) {{")
        with self.frame.inside(op.body):
            for arg, *_ in carried:
                if self.frame.moves(arg):
                    self.frame.place(arg)
            self.block(op.body)
            self._assign([(self.frame.index(a).text, self.frame.index(y)) for a, _, _, y in carried if is_index(a)])
        self.lines.close()
        self.current = []
        for _, _, result, _ in carried:
            if not is_index(result):
                self.frame.place(result)

    def _carry(self, arg: Value, first: Value, result: Value) -> None:
        """Give a carried value its variable: a local integer, or the memory that it starts in."""
        if is_index(arg):
            name = self.frame.names.unique(arg.hint or result.hint or "n")
            self.lines.declare(name, f"int64_t {name} = {self.frame.index(first).text};")
            self.frame.indices[arg] = self.frame.indices[result] = Index(name)
        elif not self.frame.moves(arg):
            self.frame.place(arg)

    def _exchange(self, op: Exchange) -> None:
        """Buffers get each other's addresses, all at once."""
        moves = {a: b for a, b in op.moves().items() if a != b}
        movable, lines = self.frame.movable, self.lines
        kept = {a: self.frame.names.unique(f"next_{movable[a]}") for a in moves}
        for a, b in moves.items():
            lines.add(f"void *const {kept[a]} = {movable[b]}; /* buffers exchange addresses */")
        for a in moves:
            lines.add(f"{movable[a]} = {kept[a]};")

    def _assign(self, pairs: list[tuple[str, Index]]) -> None:
        """Assign carried integers all at once."""
        moved = [(name, index.text) for name, index in pairs if name != index.text]
        if len(moved) > 1:
            for i, (name, text) in enumerate(moved):
                following = self.frame.names.unique(f"next_{name}")
                self.lines.declare(following, f"const int64_t {following} = {text};")
                moved[i] = (name, following)
        for name, text in moved:
            self.lines.assign(name, text)

    def _if(self, op: Any) -> None:
        for result in op.results:
            if is_index(result):
                name = self.frame.names.unique(result.hint or "n")
                self.lines.declare(name, f"int64_t {name};")
                self.frame.indices[result] = Index(name)
            elif not self.frame.moves(result):
                self.frame.place(result)
        self.lines.open(f"if ({self._condition(op.condition)}) {{")
        before = late = self.frame.late
        for block in (op.then, op.orelse):
            if block is op.orelse:
                self.lines.between("} else {")
                self.frame.late = before
            self.current = []
            with self.frame.inside(block):
                self.block(block)
                pairs = zip(op.results, block.terminator.operands, strict=True)
                self._assign([(self.frame.index(r).text, self.frame.index(y)) for r, y in pairs if is_index(r)])
            late |= self.frame.late
        self.lines.close()
        for result in op.results:
            if not is_index(result) and self.frame.moves(result):
                self.frame.place(result)
        self.frame.late = late
        self.current = []

    def _check_turns(self, op: Any) -> None:
        """Checks at the ends of loops; where one refuses, those of all turns, to refuse for the first of them."""
        frame, around = self.frame, self.frame.tried
        tried = frame.names.unique("tried")
        self.lines.add(f"oic_status {tried} = OIC_OK;")
        self.lines.open("do {")
        frame.tried = tried
        with frame.inside(op.ends):
            self.block(op.ends)
        frame.tried = around
        self.lines.close(" while (0);")
        self.lines.open(f"if ({tried} != OIC_OK) {{ /* which turn is the first to be refused */")
        with frame.inside(op.turns):
            self.block(op.turns)
            frame.attempt(tried)
        self.lines.close()
        self.current = []

    def _parallel(self, op: Any) -> None:
        """A function a consumer, and one call that runs them all."""
        self.frame.unit.headers.add("hosted/pool.h")
        made = []
        for name, region in zip(op.names, op.consumers, strict=True):
            results = op.results_of(region)
            made.append(task(self.frame, name, region, results, lambda f, r: _Writer(f).block(r)))
        arguments = [self._arguments(name, one) for name, one in zip(op.names, made, strict=True)]
        tasks = self.frame.names.unique("tasks")
        self.lines.open(f"oic_task {tasks}[{len(made)}] = {{")
        for name, one in zip(arguments, made, strict=True):
            self.lines.add(f"{{.run = {one.function}, .context = &{name}}},")
        self.lines.close(";")
        self.lines.add(f"OIC_TRY(oic_run_tasks(s->pool, why, {tasks}, {len(made)}));")
        for argument, one in zip(arguments, made, strict=True):
            for extent, member in one.gives.items():
                name = self.frame.names.unique(extent.name)
                self.lines.declare(name, f"const ptrdiff_t {name} = {argument}.{member};")
                self.frame.extents[extent] = name
        for result in op.results:
            self.frame.place(result)
        self.tasks += made
        self.current = []

    def _arguments(self, hint: str, one: Task) -> str:
        """Fill the structure of a task; gives its name."""
        name = self.frame.names.unique(hint)
        self.lines.open(f"{one.struct} {name} = {{")
        for member, source in one.takes.items():
            self.lines.add(f".{member} = {source},")
        self.lines.close(";")
        return name

    def _condition(self, value: Value) -> str:
        text = elements.scalar(self.frame, value)
        plain = text.removeprefix("(uint8_t)(")
        return plain.removesuffix(")") if plain != text else f"{text} != 0"

    def _return(self, op: Any) -> None:
        """Fill the outputs that are not computed in place, and the shapes."""
        frame = self.frame
        if any(self._is_elsewhere(o) or o.sizes for o in frame.face.outputs) and self.lines.items:
            self.lines.source("what the caller gets")
        for output, value in zip(frame.face.outputs, op.values, strict=True):
            if self._is_elsewhere(output):
                self._deliver(output)
            for axis, size in enumerate(value.shape if output.sizes else ()):
                self.lines.add(f"out->{output.sizes}[{axis}] = {frame.dim(size).text};")
        if frame.counts:
            unit = frame.unit
            assert unit.total is not None
            self.lines.add(f"state->{unit.total.member} = {unit.name}_counts_sum(state);")
        self.lines.add("return OIC_OK;")

    def _is_elsewhere(self, output: Any) -> bool:
        place = output.value.place
        same = [o for o in self.frame.face.outputs if o.value is output.value]
        return place is None or place.space != "output" or (place.buffer != output.name and len(same) > 1)

    def _deliver(self, output: Any) -> None:
        type_ = output.value.tensor
        target = Ref(f"out->{output.member}", type_, dense(type_.shape), False)
        loops.copy(self.frame, self.frame.ref(output.value), target)


# What writes each structural op; arithmetic, views, numbers and operators are written by their kind.
WRITERS: dict[type[Op], Callable[[_Writer, Any], None]] = {
    IndexConst: _Writer._index_const,
    IndexSize: _Writer._index_size,
    IndexMin: _Writer._least,
    IndexMax: _Writer._least,
    IndexDiv: _Writer._division,
    IndexMod: _Writer._division,
    IndexLoad: _Writer._index_load,
    IndexEnd: _Writer._end,
    IndexWhen: _Writer._when,
    IndexWrap: _Writer._wrap,
    ExtentBind: _Writer._bind,
    CheckRange: _Writer._check_range,
    CheckIds: _Writer._check_ids,
    AssertShape: _Writer._assert_shape,
    StateGet: lambda w, op: persistent.get(w.frame, op),
    StateReach: lambda w, op: persistent.reach(w.frame, op),
    StateCopy: lambda w, op: w._effect(persistent.copy_within, op),
    StateSet: lambda w, op: w._effect(persistent.set_, op),
    StateLoad: lambda w, op: persistent.load(w.frame, op),
    StateAdd: lambda w, op: w._effect(persistent.add, op),
    StateStore: lambda w, op: w._effect(persistent.store, op),
    StateFill: lambda w, op: w._effect(persistent.fill, op),
    StateEntry: lambda w, op: w._effect(persistent.entry, op),
    Exchange: _Writer._exchange,
    For: _Writer._for,
    If: _Writer._if,
    CheckTurns: _Writer._check_turns,
    Parallel: _Writer._parallel,
    Return: _Writer._return,
    Barrier: lambda w, op: None,
    Copy: _Writer._copy,
    Fused: _Writer._fused,
    Concat: _Writer._concat,
    Insert: _Writer._insert,
    PartEntry: _Writer._part_entry,
    Yield: lambda w, op: None,  # the op around it hands its values on
}


def _shifted(whole: Ref, type_: TensorType, strides: Sequence[Dim], start: Index) -> Ref:
    """The region of a tensor that has a part's type and begins `start` elements on."""
    if whole.type.dtype.packed:
        return Ref(whole.pointer, type_, tuple(strides), False, start)
    pointer = whole.pointer if start.number == 0 else f"{whole.pointer} + {start.at(expr.SUM)}"
    return Ref(pointer, type_, tuple(strides), False)


def _inside(start: Index) -> Index:
    """Where a box starts: the checks before it keep it inside its tensor."""
    if start.number is not None:
        return start
    most = 1 << 60
    return replace(start, low=max(0, start.low), high=max(0, min(start.high, most)))


__all__ = ["Interface", "function_body"]
