"""What a graph and its steps exercise: so that a population of random graphs can be seen to cover it.

Most is read off GRAPH, where every value is defined once, and off the decisions of memory; what
depends on numbers (a ring gone round, a loop without an iteration) off a run of the reference.  Names are
those of `FEATURES`, which says what each means.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from oic.compare.between import KeptCopy
from oic.compare.harness import Run
from oic.diagnostics import StepError
from oic.driver import Program
from oic.ir import dims
from oic.ir.core import Block, Op, Value
from oic.ir.module import Module
from oic.ir.types import TensorType
from oic.reference.interpret import Machine
from tests.fuzz.memory_plans import LAYOUTS, bufferized, planned_as

FEATURES = {
    "reshape": "a view of all elements in another shape",
    "transpose": "a view with its axes in another order",
    "slice": "a view of part of an axis",
    "slice with steps": "a view of every second element",
    "run-time slice": "a slice whose end a step decides",
    "split": "views of the parts of an axis",
    "broadcast": "a value repeated along an axis",
    "view of a view": "a view of what another view sees",
    "view of state": "memory of a table that is seen where it lies",
    "in place": "a result computed over an operand that dies there",
    "in the caller's memory": "an output computed where it is wanted",
    "bytes shared": "two buffers of the arena have bytes in common",
    "held through a loop": "a loop needs a value of the arena that was made before it",
    "copy": "a value that memory decisions had to copy",
    "output given twice": "one value is two outputs",
    "output of run-time size given twice": "one value is two outputs, and its sizes are decided in the step",
    "part of a part": "a part of a variable is computed of another part of it",
    "output is an input": "an input or a constant is an output",
    "loop": "any loop",
    "nested loops": "a loop in a loop",
    "loop of no iterations": "a loop that a step does not enter",
    "loop of run-time length": "a loop that runs to a number the step gives",
    "several carried": "a loop that hands on two tensors or more",
    "swapped": "an iteration hands a carried value on as another",
    "carried unchanged": "an iteration hands a carried value on as it is",
    "carried to two": "an iteration hands one value on as two",
    "start needed later": "a value that a loop starts from is used after it",
    "branch": "any branch",
    "branch in a loop": "a branch in a loop",
    "loop in a branch": "a loop in a branch",
    "one side unchanged": "a side of a branch gives what came from outside it",
    "carried past a branch": "a side of a branch in a loop gives the loop's carried value",
    "block called twice": "a block branched to from two places",
    "read before write": "an entry is read, and its table then written with a value made of it",
    "read after write": "a table is read after it was written in the same step",
    "read kept over a write": "what was read of a table is used after the table is written",
    "written value used later": "a value is written to a table and used again",
    "fresh value written": "a value is computed for an entry alone",
    "written in a loop": "a table is written in a loop",
    "two writes to one entry": "an entry is written twice in a step",
    "written on one side": "a value made outside a branch is written to a table on one side of it",
    "written by every iteration": "a value made outside a loop is written to a table in it",
    "table read between": "a table is read between a value and the write of it",
    "written in two places": "one value is written twice",
    "needed after another write": "a written value is used after its table was written again",
    "state and output": "a value is written to a table, and an output",
    "slice written": "several entries are written at once",
    "view written": "a view of something is written to a table",
    "write before a check": "a table is written before an access that may be refused",
    "tensor updated": "a persistent tensor is written with a value made of what it was",
    "ring": "a ring is written",
    "ring gone round": "a ring is read after it has overwritten its first entry",
    "ring slice": "several entries of a ring are read at once",
    "growing table": "a table grows in a step",
    "matrix grown": "an auto-dim matrix grows",
    "matrix written": "a grown matrix is replaced",
    "reset in a step": "a step forgets a table or a part of it",
    "packed values": "values of which several share a byte",
    "packed state": "a table of such",
    "extent 0": "a size that a step gives is 0",
    "extent at its maximum": "a size that a step gives is the largest",
    "size 0": "a value that never has elements",
    "two entries": "two functions over one state",
    "pinned entry": "an entry for one size",
    "consumers": "variables are yielded and awaited",
    "consumers in a loop": "in a loop",
    "refused": "a step is refused",
    "refused after others": "a step is refused when earlier ones have changed state",
    "saved and loaded": "the state is brought back between two steps",
    "reset": "the state is reset between two steps",
}


def features(program: Program, runs: list[Run]) -> set[str]:
    """Names of what a program and its steps exercise."""
    found: set[str] = set(_of_text(program))
    for function in program.module.functions():
        found |= set(_of_function(function, program.module))
    found |= set(_of_memory(planned_as(bufferized(program.module), LAYOUTS[0])))
    found |= set(_of_runs(program.module, runs))
    unknown = found - FEATURES.keys()
    assert not unknown, f"features without a meaning: {unknown}"
    return found


def _of_text(program: Program) -> Iterator[str]:
    assert program.module.source is not None
    text = program.module.source.text
    called = re.findall(r"branch (?:\w+ )??(b\d+)(?: (b\d+))?;", text)
    names = [name for two in called for name in two if name]
    if len(names) > len(set(names)):
        yield "block called twice"
    if "yield" in text:
        yield "consumers"
    if "@entry(N=1)" in text:
        yield "pinned entry"
    if len(list(program.module.functions())) > 1:
        yield "two entries"


# ---------------------------------------------------------------- of GRAPH


def _of_function(function: Any, module: Module) -> Iterator[str]:
    order = {op: i for i, op in enumerate(function.body.all_ops())}
    users = {v: [u for u in v.users if u in order] for op in order for v in op.operands}
    constants = {op.result for op in module.constants()}
    for op in order:
        yield from _of_op(op)
        match op.name:
            case "for":
                yield from _of_loop(op, users, order)
            case "if":
                yield from _of_branch(op)
            case "parallel" if _inside(op, "for"):
                yield "consumers in a loop"
    for table in {op.operands[0] for op in order if op.name.startswith("cache.")}:
        yield from _of_table([op for op in order if op.operands[:1] == [table]], users, order)
    given = function.returned
    pinned = dims.extents(d for v in function.body.args for d in v.shape)
    if len(set(given)) < len(given):
        yield "output given twice"
    if any(dims.extents(v.shape) - pinned for v in given if given.count(v) > 1):
        yield "output of run-time size given twice"
    puts = [op for op in order if op.name == "insert"]
    if any(put.x.op in puts and put.x.op.value.op in _sources(put.value) for put in puts):
        yield "part of a part"
    if any(v in constants or v in function.body.args for v in given):
        yield "output is an input"


def _of_op(op: Op) -> Iterator[str]:
    names = {"reshape": "reshape", "transpose": "transpose", "slice": "slice", "split": "split"}
    if op.name in names:
        yield names[op.name]
    if op.name.startswith("broadcast"):
        yield "broadcast"
    if op.name == "slice" and op.attributes().get("step", 1) != 1:
        yield "slice with steps"
    if op.view and op.operands and op.operands[0].op is not None and op.operands[0].op.view:
        yield "view of a view"
    for value in op.results:
        if isinstance(value.type, TensorType):
            if value.dtype.packed:
                yield "packed values"
            if 0 in value.shape:
                yield "size 0"
            if op.name == "slice" and any(dims.atom(d) for d in value.shape):
                yield "run-time slice"


def _of_loop(op: Any, users: dict[Value, list[Op]], order: dict[Op, int]) -> Iterator[str]:
    yield "loop"
    if _inside(op, "for"):
        yield "nested loops"
    if _inside(op, "if"):
        yield "loop in a branch"
    ends = [e.op for e in (op.start, op.end)]
    if any(e is None or e.name != "index.const" for e in ends):
        yield "loop of run-time length"
    carried, handed = op.body.args[1:], op.body.terminator.values
    pairs = [(a, v) for a, v in zip(carried, handed, strict=True) if isinstance(a.type, TensorType)]
    if len(pairs) > 1:
        yield "several carried"
    if any(v is a for a, v in pairs):
        yield "carried unchanged"
    if any(v in carried and v is not a for a, v in pairs):
        yield "swapped"
    if len({v for _, v in pairs}) < len(pairs):
        yield "carried to two"
    after = order[op] + sum(1 for _ in op.body.all_ops())
    if any(order[u] > after for v in op.init for u in users.get(v, ())):
        yield "start needed later"


def _of_branch(op: Any) -> Iterator[str]:
    yield "branch"
    if _inside(op, "for"):
        yield "branch in a loop"
    for region in op.regions:
        for value in region.terminator.values:
            if not isinstance(value.type, TensorType):
                continue
            if _home(value) is not region:
                yield "one side unchanged"
            if isinstance(value.owner, Block) and _is(value.owner.owner, "for"):
                yield "carried past a branch"


def _of_table(ops: list[Op], users: dict[Value, list[Op]], order: dict[Op, int]) -> Iterator[str]:
    """What the operations on one persistent variable do, in order."""
    type_: Any = ops[0].operands[0].type
    reads = [op for op in ops if op.name == "cache.read"]
    writes: list[Any] = [op for op in ops if op.name == "cache.write"]
    if any(op.name == "cache.reset" for op in ops):
        yield "reset in a step"
    if type_.dtype.packed and writes:
        yield "packed state"
    if type_.ring and writes:
        yield "ring"
        if any("s" in op.attributes()["form"] for op in reads):
            yield "ring slice"
    if type_.auto and writes:
        yield "matrix written"
    for write in writes:
        yield from _of_write(write, reads, users, order)
        same = (w for w in writes if w is not write and w.indices == write.indices)
        if any(w.block is write.block and type_.table for w in same):
            yield "two writes to one entry"


def _of_write(write: Any, reads: list[Op], users: dict[Value, list[Op]], order: dict[Op, int]) -> Iterator[str]:
    value: Value = write.value
    made = value.op
    at = order[write]
    earlier = [r for r in reads if order[r] < at]
    sources = _sources(value)
    if any(r in sources for r in earlier):
        yield "read before write" if write.table.type.table else "tensor updated"
    if any(order[r] > at for r in reads):
        yield "read after write"
    if any(order[u] > at for r in earlier for u in users.get(r.results[0], ())):
        yield "read kept over a write"
    others = [u for u in users.get(value, ()) if u is not write]
    if any(order[u] > at for u in others):
        yield "written value used later"
    if made is not None and not made.view and not others and made.block is write.block:
        if not made.regions and made.name not in ("constant", "splat", "cache.read"):
            yield "fresh value written"
    home = _home(value)
    if home is not write.block and write.block is not None:
        owner = write.block.owner
        if _is(owner, "if") and owner.block is home:
            yield "written on one side"
        if _is(owner, "for") and owner.block is home:
            yield "written by every iteration"
    if made in order and any(order[made] < order[r] < at for r in reads):
        yield "table read between"
    if any(u.name == "cache.write" for u in others):
        yield "written in two places"
    again = [order[w] for w in users.get(write.table, ()) if w.name == "cache.write" and order[w] > at]
    if any(order[u] > first for u in others for first in again):
        yield "needed after another write"
    if any(u.name == "return" for u in others):
        yield "state and output"
    if made is not None and made.view:
        yield "view written"
    if _inside(write, "for"):
        yield "written in a loop"
    if "s" in write.form:
        yield "slice written"
    if any(op.name in ("cache.read", "cache.write") and order[op] > at and op.attributes()["form"] for op in order):
        yield "write before a check"


def _sources(value: Value) -> set[Op]:
    """The ops that a value is computed of, as far as regions allow to see."""
    found: set[Op] = set()
    waiting = [value]
    while waiting:
        op = waiting.pop().op
        if op is not None and op not in found:
            found.add(op)
            waiting += op.operands
    return found


def _home(value: Value) -> Block | None:
    owner = value.owner
    return owner if isinstance(owner, Block) else owner.block if owner is not None else None


def _is(op: Op | None, name: str) -> bool:
    return op is not None and op.name == name


def _inside(op: Op, name: str) -> bool:
    """Some region around the op is of an op of this name."""
    while op.block is not None and op.block.owner is not None:
        op = op.block.owner
        if op.name == name:
            return True
    return False


# ---------------------------------------------------------------- of memory and of runs


def _of_memory(module: Module) -> Iterator[str]:
    assert module.plan is not None
    for function in module.functions():
        own = [b for b in module.plan.space("arena") if b.function == function.symbol]
        if any(a.offset + a.nbytes > b.offset for a, b in pairwise(own) if b.nbytes):
            yield "bytes shared"
        if any(_held(v, op) for op in function.body.all_ops() for v in op.operands):
            yield "held through a loop"
    for op in module.all_ops():
        if op.name == "copy":
            yield "copy"
        for value in op.results:
            if value.place is None:
                continue
            if value.place.space == "state" and op.view:
                yield "view of state"
            if value.place.reason.startswith("in place"):
                yield "in place"
            if value.place.space == "output" and not op.view:
                yield "in the caller's memory"


def _held(value: Value, user: Op) -> bool:
    """A value of the arena that is made outside the innermost loop around its user."""
    if value.place is None or value.place.space != "arena" or user.name in ("for", "yield"):
        return False
    block = user.block
    while block is not None and not _is(block.owner, "for"):
        block = block.owner.block if block.owner is not None else None
    loop = block.owner if block is not None else None
    return loop is not None and value not in loop.regions[0].args and not _within(value, loop)


def _within(value: Value, op: Op) -> bool:
    """The value is defined in a region of the op."""
    block = _home(value)
    while block is not None:
        if block.owner is op:
            return True
        block = block.owner.block if block.owner is not None else None
    return False


def _of_runs(module: Module, runs: Iterable[Run]) -> Iterator[str]:
    machine, kept = Machine(module), KeptCopy()
    seen = _Observer(machine)
    done = 0
    for run in runs:
        if run.before == "load" and kept.saved is not None:
            yield "saved and loaded"
        if run.before == "reset":
            yield "reset"
        kept.act(machine, run.before)
        before = _counts(machine)
        try:
            machine.step(run.entry, run.inputs)
            done += 1
        except StepError:
            yield "refused"
            if done:
                yield "refused after others"
            continue
        yield from _of_growth(module, before, _counts(machine))
        function: Any = module.function(run.entry)
        for arg, name in zip(function.body.args, function.inputs, strict=True):
            for dim, size in zip(arg.shape, run.inputs[name].shape):
                extent = dims.atom(dim)
                if extent is not None and size == 0:
                    yield "extent 0"
                if extent is not None and size == extent.maximum:
                    yield "extent at its maximum"
    yield from seen.found


class _Observer:
    """What the ops of a run show before they run."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.found = machine, set[str]()
        machine.observer = self._see

    def _see(self, op: Any) -> None:
        if op.name == "for" and self.machine.integer(op.end) <= self.machine.integer(op.start):
            self.found.add("loop of no iterations")
        if op.name == "cache.read" and op.table.type.ring:
            following = self.machine.variable(op).following
            if any(n > op.table.type.table[-1].capacity for n in following.values()):
                self.found.add("ring gone round")


def _counts(machine: Machine) -> dict[str, dict[int, int]]:
    return {name: dict(v.counts) for name, v in machine.variables.items()}


def _of_growth(
    module: Module, before: dict[str, dict[int, int]], after: dict[str, dict[int, int]]
) -> Iterator[str]:
    for op in module.states():
        for axis, count in after[op.symbol].items():
            if count > before[op.symbol][axis]:
                yield "growing table" if axis < len(op.type.table) else "matrix grown"
