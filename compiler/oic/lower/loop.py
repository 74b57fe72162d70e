"""Lowering of loops and branches: what variables hold where ways meet, after a branch and from iteration to iteration.

After a branch each variable holds what the side that ran gave it; sizes that differ travel beside the values as
index integers, from which a fresh extent is bound.  Every variable that an iteration may change is carried to the next.
Types settle in a few attempts: where an iteration gives a variable another size than it had, the loop is
lowered again with a carried size on that axis.  A size that grows in every iteration has no maximum,
so a loop of few iterations known at build is unrolled, and any other is refused.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from oic.check.literals import number
from oic.check.report import refused
from oic.check.resolved import assigned, effects, returns
from oic.check.symbols import LoopIndex
from oic.diagnostics import Diagnostic, Span
from oic.ir import dims
from oic.ir.control import For, If, Yield
from oic.ir.core import Block, Value
from oic.ir.dims import Dim, Extent
from oic.ir.index import ExtentBind
from oic.ir.state import Splat
from oic.ir.types import INDEX, TensorType, Type, same_rank
from oic.lower.builder import POISON, RETURNED, Builder, Env, EnvKey, Held, Mixed, Poison
from oic.syntax import tree as s

ATTEMPTS = 3
MOST_UNROLLED = 64

JoinedAxis = tuple[int, int]  # which of the values that meet, which of its axes
JoinedSize = tuple[JoinedAxis, Extent]
Side = tuple[Block, Env]  # the region of one of two ways, and what every variable holds at its end
LowerTurn = Callable[[], object]  # lowers the body's statements
Least = dict[tuple[EnvKey, int], int]  # variable, axis -> what the carried size must allow for


@dataclass
class Carried:
    """A variable that a loop carries.

    init    what it holds before the loop
    arg     what it holds at the start of an iteration
    end     what it holds at its end
    sizes   carried sizes of `arg`: the axis, its extent, the index integer that brings it
    """

    key: EnvKey
    init: Value
    arg: Value
    end: Held = POISON
    sizes: list[tuple[int, Extent, Value]] = field(default_factory=list)


Attempt = tuple[Block, list[Carried], Env]
"""A loop as far as its body: that, what goes around, and what variables hold at the end of an iteration that hold
nothing definite before the loop."""


def lower_loop(f: Builder, loop: s.Loop, iteration: LowerTurn) -> None:
    """Emit a loop.  Raises Refused."""
    start, end = f.integer(loop.start), f.integer(loop.end)
    known = range(start, end) if isinstance(start, int) and isinstance(end, int) else None
    if known is not None and not known:
        lower_dead(f, loop, iteration)
        return
    low, high = f.value(start, loop.start.span), f.value(end, loop.end.span)
    for variable, _ in effects(f.instance, loop.body).writes:
        f.known.pop(variable, None)  # unknown at the start of an iteration
    least: Least = {}
    for _ in range(ATTEMPTS):
        before, restore = dict(f.env), f.mark()
        body, carried, mixed = _lower_body(f, loop, (start, end), least, iteration)
        more = _grown(carried, least)
        if more is None:
            _finish(f, loop, (low, high), (body, carried, mixed), before, runs=known is not None)
            return
        body.set_ops([])  # so that its ops count no more as users
        restore()
        least = more
    if known is not None and known.stop - known.start <= MOST_UNROLLED:
        for position in known:
            lower_iteration(f, loop, position, iteration)
        return
    what = "a size grows from iteration to iteration and nothing bounds it"
    hint = "keep what the iterations make in a table with @fixed: 'cache.write x >> K[i];', then 'cache.read K[0..n]'"
    raise refused("size-unbounded", what, loop.head_span, hint=hint)


def lower_dead(f: Builder, loop: s.Loop, iteration: LowerTurn) -> None:
    """A loop that never runs is still checked; nothing is known of its index."""
    before = dict(f.env)
    with f.nested(Block()) as region:
        lower_iteration(f, loop, f.atom(region.argument(INDEX, loop.index.name)), iteration)
    region.set_ops([])
    f.env = before


def lower_iteration(f: Builder, loop: s.Loop, position: Dim, iteration: LowerTurn) -> None:
    """One iteration, here and now: a scope of its own, and the index at a position."""
    index = f.instance.meanings[id(loop)]
    assert isinstance(index, LoopIndex)
    f.loops[index] = position
    with f.braces():
        iteration()


def _candidates(f: Builder, loop: s.Loop) -> list[EnvKey]:
    """Every variable visible here that an iteration may change."""
    flag: list[EnvKey] = [RETURNED] if RETURNED in f.env and returns(loop.body) else []
    return [*flag, *(v for v in assigned(f.instance, loop.body) if f.is_visible(v))]


def _lower_body(f: Builder, loop: s.Loop, ends: tuple[Dim, Dim], least: Least, iteration: LowerTurn) -> Attempt:
    body = Block()
    index = body.argument(INDEX, loop.index.name)
    carried = _carried(f, loop, body, least)
    mixed = [k for k in _candidates(f, loop) if isinstance(f.env.get(k), Mixed)]
    with f.nested(body):
        for c in carried:
            bind_sizes(f, ((value, extent) for _, extent, value in c.sizes), loop.head_span)
            f.env[c.key] = c.arg
        position, (start, end) = f.atom(index), ends
        if f.nonnegative(start):
            f.nonneg.add(position)
        if isinstance(start, int) and isinstance(end, int):
            found = {extent: (start, end - 1) for extent in dims.extents([position])}
            f.turns |= found
            f.iterations |= {} if returns(loop.body) else found
        elif end - start == 1:
            f.single |= dict.fromkeys(dims.extents([position]), f.settled(start))
        lower_iteration(f, loop, position, iteration)
        for c in carried:
            c.end = f.env.get(c.key, POISON)
        return body, carried, {key: f.env[key] for key in mixed}


def _carried(f: Builder, loop: s.Loop, body: Block, least: Least) -> list[Carried]:
    """The variables to carry, with what they hold before; those that hold nothing good stay."""
    inits: list[tuple[EnvKey, Value]] = []
    for key in _candidates(f, loop):
        held = f.env.get(key)
        if held is None and (held := f.begun(key)) is not None:
            f.env[key] = held
        if isinstance(held, Value):
            inits.append((key, held))
    wide = [(v.type, _widened(v.type, key, least)) for key, v in inits]
    most = {(i, a): m for i, (k, _) in enumerate(inits) for (n, a), m in least.items() if n == k}
    types, sizes = joined_types(f, wide, most)
    made = []
    for i, ((key, init), type_) in enumerate(zip(inits, types, strict=True)):
        own = [(axis, extent, Value(INDEX, body)) for (n, axis), extent in sizes if n == i]
        arg = Value(type_, body, key.name)
        if (key, init) in f.zeros:
            f.zeros.add((key, arg))  # it is zeros in the first iteration
        made.append(Carried(key, init, arg, POISON, own))
    return made


def _widened(type_: Type, key: EnvKey, least: Least) -> Type:
    """The type with a size named `?` on every axis that is known to vary."""
    if not isinstance(type_, TensorType):
        return type_
    shape = tuple(
        dims.of(Extent("?", least[key, axis])) if (key, axis) in least else d for axis, d in enumerate(type_.shape)
    )
    return type_.with_shape(shape)


def _grown(carried: list[Carried], least: Least) -> Least | None:
    """Axes whose size at the end of an iteration is not the carried one, with the maximum they need."""
    more = dict(least)
    for c in carried:
        arg, end = c.arg.type, c.end.type if isinstance(c.end, Value) else None
        if not isinstance(arg, TensorType) or not isinstance(end, TensorType) or not same_rank(arg, end):
            continue
        own = {axis: extent for axis, extent, _ in c.sizes}
        for axis, (m, n) in enumerate(zip(arg.shape, end.shape, strict=True)):
            enough = axis in own and dims.maximum(n) <= own[axis].maximum
            if m != n and not enough:
                more[c.key, axis] = max(dims.maximum(m), dims.maximum(n))
    return more if more != least else None


def _finish(f: Builder, loop: s.Loop, bounds: tuple[Value, Value], made: Attempt, before: Env, *, runs: bool) -> None:
    """Emit the loop, which `runs` an iteration at least, and let the variables hold its results."""
    body, *_ = made
    bad, carried = _settle(f, loop, made, runs=runs)
    own = [(c, size) for c in carried for size in c.sizes]
    with f.nested(body):
        lengths = [f.emit_size(_value(c.end).shape[axis]) for c, (axis, _, _) in own]
    body.append(Yield([*lengths, *(_value(c.end) for c in carried)]))
    body.args = [body.args[0], *(v for _, (_, _, v) in own), *(c.arg for c in carried)]
    firsts = [f.emit_size(c.init.shape[axis]) for c, (axis, _, _) in own]
    op = For(*bounds, [*firsts, *(c.init for c in carried)], loop.tag, body, span=loop.head_span)
    f.emit(op)
    f.env = before
    _rename_sizes(f, op, [extent for _, (_, extent, _) in own])
    for c, value in zip(carried, op.results[len(own) :], strict=True):
        value.hint = c.key.name
        f.env[c.key] = value
    f.env.update(bad)
    f.forget_written(body)


def _settle(f: Builder, loop: s.Loop, made: Attempt, *, runs: bool) -> tuple[Env, list[Carried]]:
    """The variables that cannot be carried, with what they hold after the loop, and those that are."""
    body, carried, mixed = made
    bad, kept = Env(), list[Carried]()
    used = {v for op in body.all_ops() for v in op.operands}
    for c in carried:
        if isinstance(c.end, Value) and same_rank(c.arg.type, c.end.type):
            kept.append(c)
        elif isinstance(c.end, Value) and runs and c.arg not in used:
            kept.append(_restarted(f, body, c.key, c.end))
        else:
            bad[c.key] = met(f, c.init, c.end)
            if c.arg in used and not isinstance(bad[c.key], Poison):
                now, then = shown(f, c.init), shown(f, c.end)
                what = f"'{c.key.name}' is {now} in the first iteration, and may be {then} in the next"
                f.refuse(Diagnostic("shape-varies", what, loop.head_span))
                bad[c.key] = POISON
    kept += [_restarted(f, body, key, end) for key, end in mixed.items() if runs and isinstance(end, Value)]
    return bad, kept


def _restarted(f: Builder, body: Block, key: EnvKey, end: Value) -> Carried:
    """A variable that every iteration gives a rank of its own: it starts as nothing of that type."""
    nothing = end.tensor.with_shape(tuple(size if isinstance(size, int) else 0 for size in end.shape))
    (type_,), joined = joined_types(f, [(nothing, end.type)])
    sizes = [(axis, extent, Value(INDEX, body)) for (_, axis), extent in joined]
    status = "OIC_ERR_SHAPE"
    binds = [ExtentBind(value, e, status, status, "size", checked=True) for _, e, value in reversed(sizes)]
    body.set_ops([*binds, *body.ops])
    init = f.emit(Splat(number(0, end.dtype), nothing)).result
    return Carried(key, init, Value(type_, body, key.name), end, sizes)


def _rename_sizes(f: Builder, op: For, extents: list[Extent]) -> None:
    """Results have extents of their own: those of the body mean nothing after the loop."""
    new = {extent: Extent(f.fresh("n"), extent.maximum) for extent in extents}
    bind_sizes(f, zip(op.results, new.values()), op.span)
    for value in op.results:
        if isinstance(value.type, TensorType):
            shape = (dims.substitute(d, lambda e: dims.of(new.get(e, e))) for d in value.type.shape)
            value.type = value.type.with_shape(tuple(shape))


def _value(held: Held) -> Value:
    assert isinstance(held, Value)
    return held


# ---------------------------------------------------------------- where two ways meet


def join(f: Builder, condition: Value, span: Span | None, before: Env, sides: list[Side]) -> None:
    """Emit the `if` and let every variable hold its result.

    before   what variables hold at the branch
    """
    (then, first), (orelse, second) = sides
    f.env = dict(before)
    joined: list[EnvKey] = []
    pairs: list[tuple[Value, Value]] = []
    for key in dict.fromkeys([*first, *second]):
        if key in first and key in second and first[key] is second[key]:
            f.env[key] = first[key]
            continue
        a, b = (env[key] if key in env else f.begun(key) for env in (first, second))
        if a is None or b is None:
            continue  # a temporary of one side alone
        if isinstance(a, Value) and isinstance(b, Value) and same_rank(a.type, b.type):
            joined.append(key)
            pairs.append((a, b))
        else:
            f.env[key] = met(f, a, b)
    outs, sizes = joined_types(f, [(a.type, b.type) for a, b in pairs])
    for way, (region, _) in enumerate(sides):
        with f.nested(region):
            lengths = [f.emit_size(pairs[i][way].shape[axis]) for (i, axis), _ in sizes]
        region.append(Yield([*lengths, *(pair[way] for pair in pairs)]))
    types: list[Type] = [*([INDEX] * len(sizes)), *outs]
    op = f.emit(If(condition, types, then, orelse, span=span))
    bind_sizes(f, zip(op.results, (extent for _, extent in sizes)), span)
    for key, value in zip(joined, op.results[len(sizes) :], strict=True):
        value.hint = key.name
        f.env[key] = value
    f.forget_written(then, orelse)


def met(f: Builder, a: Held, b: Held) -> Held:
    """What a variable holds where two things that have no common type meet."""
    poison = next((held for held in (a, b) if isinstance(held, Poison)), None)
    return poison or Mixed(f"{shown(f, a)} or {shown(f, b)}")


def shown(f: Builder, held: Held) -> str:
    """A type, or the types that met, in words."""
    if isinstance(held, Mixed):
        return held.types
    return f.shown(held.type) if isinstance(held, Value) else "refused"


def joined_types(
    f: Builder, pairs: Iterable[tuple[Type, Type]], least: Mapping[JoinedAxis, int] | None = None
) -> tuple[list[Type], list[JoinedSize]]:
    """Common types of pairs of one rank; sizes that differ become fresh extents.

    least   what the maximum of an axis must be at least
    """
    outs: list[Type] = []
    sizes: list[JoinedSize] = []
    for i, (a, b) in enumerate(pairs):
        if a == b or not (isinstance(a, TensorType) and isinstance(b, TensorType)):
            outs.append(a)
            continue
        shape: list[Dim] = []
        for axis, (m, n) in enumerate(zip(a.shape, b.shape, strict=True)):
            if m == n:
                shape.append(m)
                continue
            most = max(dims.maximum(m), dims.maximum(n), (least or {}).get((i, axis), 0))
            extent = Extent(f.fresh("n"), most)
            sizes.append(((i, axis), extent))
            shape.append(dims.of(extent))
        outs.append(a.with_shape(tuple(shape)))
    return outs, sizes


def bind_sizes(f: Builder, sizes: Iterable[tuple[Value, Extent]], span: Span | None) -> None:
    """Give extents the values of index integers."""
    status = "OIC_ERR_SHAPE"
    for value, extent in sizes:
        # In range by construction: the maximum is that of everything that can flow here.
        f.emit(ExtentBind(value, extent, status, status, "size", checked=True, span=span))
