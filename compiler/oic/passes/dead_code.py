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

from collections.abc import Callable
from typing import Any

from oic.ir.control import Barrier, For, Func, If, Parallel
from oic.ir.core import Block, Op, Value
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
    shrink: dict[type[Op], Callable[[Any], bool]] = {For: _shrink_loop, If: _shrink_if, Parallel: _shrink_parallel}
    return any([shrink[type(op)](op) for op in list(module.all_ops()) if type(op) in shrink])


def _shrink_loop(loop: For) -> bool:
    """Drop carried values without a use; replace those that never change by their start."""
    ends: Any = loop.body.terminator
    args = loop.body.args[1:]
    kept, unchanged = list[int](), list[int]()
    for i, (arg, end) in enumerate(zip(args, ends.values, strict=True)):
        if end is arg and loop.init[i].type == arg.type:
            unchanged.append(i)
        elif loop.results[i].used or arg.used:
            kept.append(i)
    if len(kept) == len(args):
        return False
    loop.home.replace({value: loop.init[i] for i in unchanged for value in (args[i], loop.results[i])})
    loop.init = [loop.init[i] for i in kept]
    ends.values = [ends.values[i] for i in kept]
    loop.body.args = [loop.body.args[0], *(args[i] for i in kept)]
    loop.results = [loop.results[i] for i in kept]
    return True


def _shrink_if(op: If) -> bool:
    kept = [i for i, r in enumerate(op.results) if r.used]
    if len(kept) == len(op.results):
        return False
    for region in op.regions:
        ends: Any = region.terminator
        ends.values = [ends.values[i] for i in kept]
    op.types = [op.types[i] for i in kept]
    op.results = [op.results[i] for i in kept]
    return True


def _shrink_parallel(op: Parallel) -> bool:
    before = len(op.results), len(op.consumers)
    given = dict(zip(op.results, op.yielded, strict=True))
    kept = [[r for r in results if r.used] for _, results in op.given]
    for region, results in zip(op.consumers, kept, strict=True):
        ends: Any = region.terminator
        ends.values = [given[r] for r in results]
    op.results = [r for results in kept for r in results]
    busy = [i for i, region in enumerate(op.consumers) if len(region.ops) > 1 or kept[i]]
    op.names, op.consumers = [op.names[i] for i in busy], [op.consumers[i] for i in busy]
    return (len(op.results), len(op.consumers)) != before
