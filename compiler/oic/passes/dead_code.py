"""Remove what nothing uses.

    %a = exp(%x)             (no user)           =>
    %r = for(..., [%h, %k])  %r#1 unused and           %r = for(..., [%h])
         carried only for itself

An op goes if its results have no user and it has no effect, unless the source asks for arithmetic
that may leave 64 bits, which refuses the step; a carried value of a loop or a
result of an `if` goes if nothing outside uses it and, inside, only its own next value does; a result
of a consumer goes if nothing uses it, and a consumer that does nothing goes.

    state.set(%K.t, %m)                       =>
    state.set(%K.t, %n)                       state.set(%K.t, %n)

An integer goes that a state is set to, and then to another, if nothing in between reads it or may refuse the step.
"""

from oic.ir.control import Barrier, For, Func, Given, If, Parallel, merges
from oic.ir.core import Block, Op, Value
from oic.ir.grouping import by_key
from oic.ir.module import Module
from oic.ir.ranges import Ranges
from oic.ir.state import StateSet


def dead_code(module: Module) -> None:
    """Repeat until nothing changes."""
    while sweep(module.top, Ranges()) or _unused_carried(module):
        pass
    for symbol in module.weights.keys() - {op.symbol for op in module.constants()}:
        del module.weights[symbol]


def sweep(block: Block, ranges: Ranges) -> bool:
    """Drop what is not used, the last op first, so that what only it used goes as well.

    Whether there may be more: an op with less in its regions may have no effect any more.
    """
    kept: list[Op] = []
    again = False
    later: set[Value] = set()  # states that are set to an integer before anything reads them or may refuse
    for op in reversed(block.ops):
        unused = not any([r.used for r in op.results])
        if unused and op.pure and not op.terminator and not isinstance(op, Func) and op.effect_free:
            if not any(map(ranges.refuses_source, op.walk() if op.regions else (op,))):
                op.block = None
                continue
        elif isinstance(op, StateSet) and not op.indices:
            if op.state in later:
                op.block = None
                continue
            later.add(op.state)
        if later and (op.regions or isinstance(op, Barrier) or ranges.refuses(op)):
            later = set()
        elif op.reads:
            later.difference_update(op.touched("read"))
        for region in op.regions:
            before = len(region.ops)
            again |= sweep(region, ranges) or (len(region.ops) < before and not isinstance(op, Func))
        kept.append(op)
    block.set_ops(reversed(kept))
    return again


def _unused_carried(module: Module) -> bool:
    return any([_shrink(op) for op in list(module.all_ops()) if isinstance(op, (For, If, Parallel))])


def _shrink(op: For | If | Parallel) -> bool:
    """Drop results, and carried values, without a use, and idle consumers; what a loop never changes is its start."""
    unused: set[Value] = set()
    starts: dict[Value, Value] = {}
    dropped: list[Given] = []
    for values, given in merges(op):
        end, start = given[0].value, given[-1].value
        if isinstance(op, For) and end is values[1] and start.type == end.type:
            starts.update(dict.fromkeys(values, start))
        elif any(v.used for v in values):
            continue
        unused.update(values)
        dropped += given
    op.home.replace(starts)
    for (at, key), positions in by_key(((one.op, one.key), one.position) for one in dropped).items():
        gone = set(positions)
        setattr(at, key, [v for i, v in enumerate(getattr(at, key)) if i not in gone])
    if isinstance(op, For):
        op.body.args = [arg for arg in op.body.args if arg not in unused]
    elif isinstance(op, If):
        op.types = [type_ for type_, r in zip(op.types, op.results, strict=True) if r not in unused]
    op.results = [r for r in op.results if r not in unused]
    if not isinstance(op, Parallel):
        return bool(unused)
    busy = [i for i, region in enumerate(op.consumers) if len(region.ops) > 1 or region.terminator.operands]
    idle = len(op.consumers) - len(busy)
    op.names, op.consumers = [op.names[i] for i in busy], [op.consumers[i] for i in busy]
    return bool(unused or idle)
