"""The rules of PLANNED: every tensor has a place, and what it holds survives until its last use.

Liveness is computed anew, without the planner (`memory.verify_liveness`).  Then no op may write over bytes
that are needed after it, and over those it reads itself only in place.  Regions of a `parallel` op
run at once: what they take from outside is needed until all have ended, and no two share bytes or a
state that one writes.

An entry of the state that values are computed in is not seen by others from then on until it is stored,
nor can the step be refused in between.  So it is with a part of a tensor, whose memory nothing else
writes for as long as the values computed there are needed.
"""

from itertools import combinations

from oic.ir import dims
from oic.ir.control import Parallel, merges
from oic.ir.core import Block, Op, Place, Value, seen_through
from oic.ir.liveness import tensors
from oic.ir.module import Module, Plan
from oic.ir.ranges import Ranges
from oic.ir.state import StateEntry, StateLoad, StateStore
from oic.ir.text_print import place_text
from oic.ir.types import TensorType
from oic.ir.verify import verify as verify_stage
from oic.memory.state_regions import Box, apart_in_memory, is_apart, same
from oic.memory.verify_liveness import Lives, fault, last_needed, lives, root, walk
from oic.operators.base import Operator
from oic.operators.fused import Fused
from oic.operators.part import Insert, PartEntry


def verify(module: Module) -> None:
    """Raise AssertionError unless the module obeys every rule of its stage, those of memory included."""
    verify_stage(module)
    if module.plan is not None:
        verify_memory(module)


def verify_memory(module: Module) -> None:
    """Raise AssertionError unless the plan keeps every value for as long as it is needed."""
    plan = module.memory
    _laid_out(module, plan)
    for func in module.functions():
        for value in tensors(func.body):
            _placed(value, plan, func.symbol)
        for op in walk(func.body):
            _kernel_fits(op)
            _coalesced(op)
            if isinstance(op, Parallel):
                _apart(op)
        _unharmed(func.body, lives(func.body), func.symbol)


# ----------------------------------------------------------------- places


def _laid_out(module: Module, plan: Plan) -> None:
    """States and weights lie apart, inside their spaces, and constants where the plan says."""
    for space, nbytes in (("state", plan.state_bytes), ("weights", plan.weights_bytes)):
        end = 0
        for buffer in plan.space(space):
            if buffer.offset < end or buffer.offset + buffer.nbytes > nbytes:
                raise AssertionError(f"'{buffer.name}' lies over another, or outside the {nbytes} bytes of the {space}")
            end = buffer.offset + buffer.nbytes
    weights = {b.name: b.offset for b in plan.space("weights")}
    for op in module.constants():
        if op.result.placed.offset != weights.get(op.symbol):
            raise fault(op, f"its address is not that of the plan, {weights.get(op.symbol)}")


def _placed(value: Value, plan: Plan, symbol: str) -> None:
    op = value.owner.owner if isinstance(value.owner, Block) else value.owner
    assert op is not None
    if value.place is None:
        raise fault(op, f"{value!r} has no place")
    if value.place.offset is None:
        if not op.view and value.place.space != "local":
            raise fault(op, f"{value!r} has no address and is no view")
    elif value.place.space in ("arena", "output"):
        _inside(op, value, value.place, plan, symbol)


def _kernel_fits(op: Op) -> None:
    """The kernel of an operator takes its operands as they are."""
    for part in op.body.ops if isinstance(op, Fused) else [op]:
        if isinstance(part, Operator) and part.kernels and not part.chosen().computes(part):
            raise fault(op, f"its kernel {part.chosen().name} does not take these operands")


def _inside(op: Op, value: Value, place: Place, plan: Plan, symbol: str) -> None:
    """The value is in its buffer, the buffer in the arena."""
    buffer = plan.buffer(*place.memory, symbol)
    if buffer is None:
        raise fault(op, f"there is no buffer for {place_text(place)}")
    first, end = reach(value)
    if first < buffer.offset or end > buffer.offset + buffer.nbytes:
        raise fault(op, f"bytes {first} to {end} are outside buffer '{buffer.name}'")
    if first % value.dtype.align:
        raise fault(op, f"offset {first} is not aligned for {value.dtype}")
    if place.space == "arena" and buffer.offset + buffer.nbytes > plan.arena_bytes[symbol]:
        raise fault(op, f"buffer '{buffer.name}' is not inside the arena")


def reach(value: Value) -> tuple[int, int]:
    """First byte and end of a value with an address, every extent at its maximum."""
    assert value.place is not None and value.place.offset is not None
    first, dtype = value.place.offset, value.dtype
    shape = value.tensor.maximum
    if 0 in shape:
        return first, first
    if value.place.strides is None:
        return first, first + value.tensor.nbytes
    strides = map(dims.maximum, value.place.strides)
    return first, first + dtype.nbytes(1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)))


def _coalesced(op: Op) -> None:
    """Carried values, and what branches give, are all at one place."""
    for values, given in merges(op):
        if isinstance(values[0].type, TensorType):
            where = {_address(v) for v in [*values, *(one.value for one in given)]}
            if len(where) > 1:
                raise fault(op, f"{values[0]!r} is carried in several places: {sorted(where)}")


def _address(value: Value) -> str:
    """The place of a value; that of its root where it sees all of it in order."""
    while value.op is not None and value.op.reshapes:
        if value.place is None or value.place.offset is not None:
            break
        value = value.op.operands[0]
    place = value.placed
    strides = "" if place.strides is None else str(place.strides)
    return f"{place.space}+{place.offset} {place.buffer} {strides}"


# -------------------------------------------------------------- conflicts


def _unharmed(body: Block, found: Lives, symbol: str) -> None:
    """No write reaches bytes that are needed after it, nor state that a view still looks into."""
    ranges = Ranges(body.all_ops())
    held = [v for v in found.first if _own_bytes(v)]
    for at, op, written in found.writes:
        for value in held:
            if value is written or not (found.first[value] <= at <= found.last[value]):
                continue
            if not _overlap(value, written):
                continue
            if value in op.results:
                raise fault(op, f"results {written!r} and {value!r} share bytes")
            last = last_needed(value, op.block, found)
            if last > at:
                raise fault(op, f"{written!r} is written over {value!r}, which is still needed ({symbol})")
            if last == at and not _in_place(op, value, written):
                raise fault(op, f"{written!r} is written over its operand {value!r}, not in place")
    for at, op, state in found.states:
        for value in found.first:
            if isinstance(value.op, StateLoad) and value.op.state is state:
                seen, box = found.first[value] < at <= found.last[value], Box.of(value.op)
                alike = isinstance(op, StateStore) and value in seen_through(op.value) and same(Box.of(op), box)
                if seen and not alike and not is_apart(op, box, ranges):
                    raise fault(op, f"state is written while {value!r} looks into it ({symbol})")
    for op in walk(body):
        if isinstance(op, StateEntry):
            _computed_there(op, held, found, ranges)
        elif isinstance(op, PartEntry):
            _computed_in_part(op, held, found, ranges)


def _computed_there(op: StateEntry, held: list[Value], found: Lives, ranges: Ranges) -> None:
    """From here to the store no other op reads the entry, and none refuses the step."""
    box = Box.of(op)
    inside, store = _completed(op, held, found)
    first, last = found.starts[op], found.starts[store]
    until = max(found.last[v] for v in inside)
    for other, at in found.starts.items():
        if other is op or other is store or other.regions or op.state not in other.touched():
            continue
        if is_apart(other, box, ranges) or any(r in inside for r in other.results):
            continue
        if first <= at < last or (last <= at < until and other.touched("write")):
            raise fault(other, f"'{op.symbol}' is used while it is computed")
    for at, writer, written in found.writes:
        if written not in inside:
            continue
        for value in found.first:
            load = value.op
            if not isinstance(load, StateLoad) or load.state is not op.state:
                continue
            needed = last_needed(value, writer.block, found)
            if not found.first[value] < at <= needed or is_apart(load, box, ranges):
                continue
            over = needed == at and same(box, Box.of(load))
            if not over or not _in_place(writer, value, written):
                raise fault(writer, f"{written!r} is computed over {value!r}, which is still needed")


def _computed_in_part(op: PartEntry, held: list[Value], found: Lives, ranges: Ranges) -> None:
    """From here to the `insert` the tensor is not used, and until the part is needed no more not written."""
    inside, insert = _completed(op, held, found)
    assert isinstance(insert, Insert)
    base = root(op.x)
    if _address(op.x) != _address(insert.result) or not _in_order(op.x, base, base):
        raise fault(insert, "what a part was computed in is copied")
    first, last = found.starts[op], found.starts[insert]
    until = max(found.last[v] for v in inside)
    for value in held:
        if value in inside or not _overlap(value, base):
            continue
        for at, _ in found.uses.get(value, ()):
            if first < at < last:
                raise fault(op, f"{value!r} is used while a part of it is computed")
    for at, writer, written in found.writes:
        harmed = first < at <= until and writer is not insert and written not in inside
        if harmed and _overlap(written, base):
            raise fault(writer, f"{written!r} is written over a part that is still needed")
    for other, at in found.starts.items():
        if not isinstance(other, PartEntry) or not first < at <= until or not _overlap(root(other.x), base):
            continue
        if _address(other.x) != _address(op.x) or not apart_in_memory(Box.of(op), Box.of(other), ranges):
            raise fault(other, "a part is computed in while another is still needed")


def _completed(op: StateEntry | PartEntry, held: list[Value], found: Lives) -> tuple[list[Value], StateStore | Insert]:
    """The values computed in a box, and the op that puts there what was computed; no refusal in between."""
    kind = StateStore if isinstance(op, StateEntry) else Insert
    stores = [o for o in op.home.ops if isinstance(o, kind) and o.entry == op.symbol]
    if len(stores) != 1 or found.starts[stores[0]] < found.starts[op]:
        raise fault(op, "an entry is stored once, afterwards")
    store = stores[0]
    first, last = found.starts[op], found.starts[store]
    inside = [v for v in held if v.placed.memory == ("entry", op.symbol)]
    if root(store.value) not in inside or not same(Box.of(op), Box.of(store)):
        raise fault(store, "what is stored was computed elsewhere")
    ranges = Ranges()
    for other, at in found.starts.items():
        if first <= at < last and ranges.refuses(other):
            raise fault(other, "a step may be refused while an entry is computed")
    for at, writer, written in found.writes:
        if written in inside and not first < at < last:
            raise fault(writer, f"{written!r} is computed before its entry is named, or after it was stored")
    return inside, store


def _apart(op: Op) -> None:
    """Regions that run at once compute in bytes of their own, and write states of their own."""
    for one, other in combinations(op.regions, 2):
        for a in _computed(one):
            for b in _computed(other):
                if _overlap(a, b):
                    raise fault(op, f"{a!r} and {b!r} of regions that run at once share bytes")
        for first, second in ((one, other), (other, one)):
            written = {s for o in first.ops for s in o.touched("write")}
            used = {s for o in second.ops for s in o.touched()}
            for state in written & used:
                raise fault(op, f"{state!r} is written by one region and used by another")


def _computed(region: Block) -> list[Value]:
    """The values of a region that have an address."""
    return [v for v in tensors(region) if _own_bytes(v)]


def _own_bytes(value: Value) -> bool:
    place = value.place
    return place is not None and place.offset is not None and place.space in ("arena", "entry", "output")


def _overlap(a: Value, b: Value) -> bool:
    """The bytes of one are bytes of the other."""
    one, other = a.placed, b.placed
    if one.space != other.space or (one.space != "arena" and one.buffer != other.buffer):
        return False
    (first, end), (start, stop) = reach(a), reach(b)
    return first < stop and start < end


def _in_place(op: Op, value: Value, written: Value) -> bool:
    """The op may compute its result over this operand: every element over the same one."""
    if value.placed.offset not in (None, written.placed.offset):
        return False
    uses = [v for v in op.operands if value in seen_through(v)]
    fields = {id(v) for key in op.overwritable() for v in [getattr(op, key)]}
    allowed = all(op.takes_elements(v) or id(v) in fields for v in uses)
    return allowed and all(_in_order(v, value, written) for v in uses)


def _in_order(operand: Value, value: Value, written: Value) -> bool:
    """The operand is all of `value`, element for element where the result is.

    A size that was found equal on the way, and has another name there, is that of the result.
    """
    sizes = {operand.tensor.size}
    while operand is not value:
        assert operand.op is not None
        if not operand.op.reshapes:
            return False
        operand = operand.op.operands[0]
        sizes.add(operand.tensor.size)
    return written.tensor.size in sizes and value.dtype.bits >= written.dtype.bits
