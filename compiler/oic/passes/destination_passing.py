"""Where a value goes decides where it is computed: outputs, loops, branches, entries of the state, parts.

Decided from the end of a function backwards, since destinations come from what uses a value.  What
cannot be computed where it goes is copied there, just before the op that hands it on.  Part of `bufferize`.
"""

from dataclasses import dataclass, field

from oic.diagnostics import Span
from oic.ir import dims
from oic.ir.control import For, Func, Given, If, Parallel, Return, Yield, merges
from oic.ir.core import Block, Op, Value, home_of
from oic.ir.index import ExtentBind
from oic.ir.state import Constant, Splat, StateLoad, StateStore
from oic.ir.types import TensorType
from oic.memory.intervals import Intervals
from oic.memory.sharing import CHANGED, LATE, Sharing, Storage, over, takeable, used
from oic.memory.state_regions import Box, Put, apart_in_memory, same
from oic.memory.views import root, whole_root
from oic.operators.base import Operator
from oic.operators.fused import Copy
from oic.operators.part import Insert

ROUNDS = 200  # a copy in a region may make another necessary outside it


@dataclass
class Assignment:
    """What bufferize decides of one function: the storage of each value that has its own."""

    sharing: Sharing
    storage: dict[Value, Storage] = field(default_factory=dict)
    reasons: dict[Value, str] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    missed: list[tuple[Given, str]] = field(default_factory=list)  # what cannot be computed where it goes, and why
    # Boxes of each state and each storage, by the positions at which a value in them is needed; all in order.
    entries: dict[Value | Storage, Intervals[Storage]] = field(default_factory=dict)
    order: dict[Storage, int] = field(default_factory=dict)

    def new(self, hint: str, space: str) -> Storage:
        """A storage of a name not used before in this function."""
        hint = hint or "t"
        count = self.names[hint] = self.names.get(hint, -1) + 1
        return Storage(f"{hint}.{count}" if count else hint, space)

    def put(self, value: Value, storage: Storage, reason: str) -> None:
        """Decide that a value lies there."""
        self.storage[value] = storage
        storage.put(value, self.sharing.live)
        if storage.store is not None:
            self.order.setdefault(storage, len(self.order))
            entries = self.entries.setdefault(self._memory(storage.store), Intervals())
            entries.add(self.sharing.live.defined(value), self.sharing.live.needed(value), storage)
        self.reasons[value] = reason

    def of(self, value: Value, reason: str) -> Storage:
        """The storage of a value; if it has none, a new one in the arena."""
        if value not in self.storage:
            self.put(value, self.new(value.hint, "arena"), reason)
        return self.storage[value]

    def in_place(self, op: Op, result: Value) -> bool:
        """Put a result where an operand that dies here lies in the arena, if it may take over the memory of one."""
        for value in takeable(op):
            storage = self.storage.get(root(value))
            if storage is None or storage.space != "arena" or not over(op, value, result):
                continue
            if not self.sharing.clash(result, storage):
                self.put(result, storage, f"in place of '{value.hint}', which dies here")
                return True
        return False

    def join(self, given: Given, storage: Storage, reason: str) -> None:
        """Let a value that an op hands on be computed in this storage, or note that it cannot be."""
        why = self.settle(given.value, given.op, storage, reason)
        if why:
            self.missed.append((given, why))

    def settle(self, value: Value, op: Op, storage: Storage, reason: str) -> str:
        """Put what an op hands on into this storage; "" or why that cannot be."""
        base = whole_root(value)
        why = self._why_not(base, op, storage)
        if not why and base not in self.storage:
            self.put(base, storage, reason)
            self.spread_over(base, storage)
        return why

    def spread_over(self, value: Value, storage: Storage) -> None:
        """What a value is computed over lies in its storage too: no memory for that."""
        while (op := value.op) is not None:  # no recursion: a chain may be thousands of ops long
            bases = (root(operand) for operand in takeable(op) if over(op, operand, value))
            base = next((base for base in bases if self._spreads(base, op, storage)), None)
            if base is None:
                return
            self.put(base, storage, f"'{value.hint}' is computed over it")
            value = base

    def _spreads(self, base: Value, op: Op, storage: Storage) -> bool:
        if base in self.storage or base.op is None or base.op.view or base.op.block is not op.block:
            return False
        if isinstance(base.op, (Constant, Parallel)) or not in_memory(base, self.sharing):
            return False
        users = self.sharing.users(base)
        # What is stored has an entry to be computed in, what replaces a part has that part.
        stored = any(isinstance(u, StateStore) for u in users)
        replaces = any(isinstance(u, Insert) and root(u.value) is base for u in users)
        return not stored and not replaces and not self._clashes(base, storage)

    def _why_not(self, base: Value, op: Op, storage: Storage) -> str:
        """Why a value cannot be computed where it goes; "" if it can."""
        held, block = self.storage.get(base), op.block
        if held is storage:
            return LATE if self.sharing.clash(base, storage) else ""
        if base.op is None:
            outer = isinstance(base.owner, Block) and isinstance(base.owner.owner, Func)
            return "an input" if outer else "carried elsewhere"
        if isinstance(base.op, Constant):
            return "a constant"
        if base.op.view and not _is_there(base, storage, self.sharing):
            return f"a part of {'the state' if isinstance(base.op, StateLoad) else 'other memory'}"
        if base.op.block is not block and not _before_branch(op, base.op.block):
            return "from outside the region"
        if held is not None:
            return _also(held)
        return self._clashes(base, storage)

    def _clashes(self, base: Value, storage: Storage) -> str:
        if self.sharing.clash(base, storage):
            return LATE
        if storage.store is None:
            return ""
        why = self._other_entry(base, storage.store)
        return why or self.sharing.why_no_entry(base, storage)

    def _memory(self, store: Put) -> Value | Storage:
        """What a box is in."""
        return store.state if isinstance(store, StateStore) else self.storage[root(store.x)]

    def _other_entry(self, base: Value, store: Put) -> str:
        """Another value is in a box of the same memory, perhaps this one, while this value is.

        What a part is replaced of is another value for each of its parts, in one storage.
        """
        box, entries = Box.of(store), self.entries.get(self._memory(store))
        met = set(entries.meeting(*self.sharing.lives(base))) if entries is not None else set()
        for other in sorted(met, key=self.order.__getitem__):
            there = other.store
            if there is None or there is store:
                continue
            together = self.sharing.clash(base, other, over=False)
            if together and not apart_in_memory(box, Box.of(there), self.sharing.ranges):
                return used(there) if isinstance(there, StateStore) else CHANGED
        return ""


def _is_there(value: Value, storage: Storage, sharing: Sharing) -> bool:
    """What was loaded from the entry that is stored to lies there already."""
    load, store = value.op, storage.store
    if not isinstance(load, StateLoad) or not isinstance(store, StateStore):
        return False
    return same(Box.of(load), Box.of(store), sharing.ranges)


def _also(held: Storage) -> str:
    """What else a value is, that lies there."""
    if held.space == "output":
        return f"it is the output '{held.name}' too"
    stored = isinstance(held.store, StateStore)
    return "it is stored elsewhere too" if stored else "it is handed on elsewhere too"


def _before_branch(op: Op, home: Block | None) -> bool:
    """The op ends a branch of an `if` (perhaps of one inside another) of this block."""
    block = op.block if isinstance(op, Yield) else None
    while block is not None and isinstance(block.owner, If):
        block = block.owner.block
        if block is home:
            return True
    return False


def destinations(func: Func) -> Assignment:
    """Storage of outputs, of carried values, of what branches give and of what is stored to the state.

    Decided from the end backwards.  Where a value cannot be computed in its destination it is copied before the op that
    hands it on, and everything is decided again: copies change how long values are needed.
    """
    sharing = Sharing(func.body)
    for _ in range(ROUNDS):
        decided = Assignment(sharing)
        ends = func.body.terminator
        for i, name in enumerate(func.outputs):
            storage = Storage(name, "output")
            decided.join(Given(ends, "values", i), storage, f"computed in the caller's memory of '{name}'")
        _backward(func.body, decided)
        if not decided.missed:
            return decided
        # Those that nothing else can spare first: a copy may end what another one would wait for.
        _copy([(given, why) for given, why in decided.missed if why != LATE] or decided.missed)
        sharing = sharing.copied(func.body)
    raise AssertionError(f"the destinations of '{func.symbol}' do not settle")


def _copy(missed: list[tuple[Given, str]]) -> None:
    """Copy values for these reasons, each just before the op that hands it on; an output, as soon as there is one."""
    before: dict[Op, list[Op]] = {}
    after: dict[Op, list[Op]] = {}
    for given, why in missed:
        block, value = given.op.home, given.value
        copy = Copy(value, why, span=_span_of(given), hint=value.hint)
        given.op.replace_operand(given.key, given.position, copy.result)
        if isinstance(given.op, Return) and value.op is not None and value.op.block is block:
            # Of what a branch or a loop gives, sizes are bound after it.
            sizes = dims.extents(value.shape) if value.op.regions else ()
            last = value.op
            if sizes:
                last = [op for op in block.ops if op is last or (isinstance(op, ExtentBind) and op.extent in sizes)][-1]
            after.setdefault(last, []).append(copy)
        else:
            before.setdefault(given.op, []).append(copy)
    for block in dict.fromkeys(op.home for op in (*before, *after)):
        block.set_ops(one for op in block.ops for one in (*before.get(op, ()), op, *reversed(after.get(op, ()))))


def _span_of(given: Given) -> Span | None:
    """The line that a copy is for: where it is handed on, else made, else carried."""
    makers = [given.op, given.value.op, given.op.home.owner]
    return next((op.span for op in makers if op is not None and op.span is not None), None)


def _backward(block: Block, decided: Assignment) -> None:
    """Decide what the ops of a block hand on and store, the last one first; then what those in their regions do."""
    for op in reversed(block.ops):
        if isinstance(op, StateStore):
            _entry(op, decided)
        elif isinstance(op, Insert):
            _part(op, decided)
        else:
            _merged(op, decided)
        for region in op.regions:
            _backward(region, decided)


def _merged(op: Op, decided: Assignment) -> None:
    """Compute what a loop, branches or consumers hand on where the results lie, and what a loop carries."""
    for (result, *carried), given in merges(op):
        if not isinstance(result.type, TensorType):
            continue
        own, joined = _REASONS[type(op)]
        storage = decided.of(result, own)
        for arg in carried:
            decided.put(arg, storage, "carried in place")
        if isinstance(op, If):
            # What a branch only hands on stays where it is, if it can; what is computed may yet move.
            given.sort(key=lambda one: home_of(whole_root(one.value)) is one.op.block)
        for one in given:
            decided.join(one, storage, joined)


_REASONS: dict[type[Op], tuple[str, str]] = {
    For: ("the last iteration's value", "computed where the loop carries it"),
    If: ("given by either branch", "computed as the branch's result"),
    Parallel: ("given by a consumer", "computed as the consumer's result"),
}
"""Why a result lies where it does, and what is handed on lies there too."""


def _entry(store: StateStore, decided: Assignment) -> None:
    """Compute what is stored in its entry of the state, unless there is a reason not to."""
    store.entry, store.reason = "", ""
    symbol = store.state.symbol
    _put(store, decided, symbol, f"computed in its entry of '{symbol}'")


def _part(insert: Insert, decided: Assignment) -> None:
    """Compute what replaces a part of a value where that part lies, unless there is a reason not to."""
    insert.entry, insert.reason = "", ""
    result, base = insert.result, root(insert.x)
    if result not in decided.storage:
        _over(insert, decided)
    held = decided.storage.get(result)
    if held is None or decided.storage.get(base) is not held or not over(insert, insert.x, result):
        insert.reason = "what it is a part of is copied"
    elif isinstance(base.op, StateLoad):
        insert.reason = "what it is a part of lies in the state"
    else:
        _put(insert, decided, result.hint, f"computed in its part of '{result.hint}'")


def _over(insert: Insert, decided: Assignment) -> None:
    """Give a value with a part replaced the memory of the value before, if that is needed no more."""
    result, base = insert.result, root(insert.x)
    if base in decided.storage:
        decided.in_place(insert, result)
    else:
        storage = Storage("", "arena")
        decided.put(result, storage, "a value of its own")
        decided.spread_over(result, storage)
        if base in decided.storage:
            storage.name = decided.new(result.hint, "arena").name
        else:
            del decided.storage[result]


def _put(store: Put, decided: Assignment, hint: str, reason: str) -> None:
    """Compute a value in the box that it is put into, or say why not."""
    if not in_memory(whole_root(store.value), decided.sharing):
        store.reason = "a number"
        return
    storage = Storage("", "entry", store=store)
    store.reason = decided.settle(store.value, store, storage, reason)
    if not store.reason:
        store.entry = storage.name = decided.new(hint, "entry").name


def in_memory(value: Value, sharing: Sharing) -> bool:
    """Some user wants the address of a value that is otherwise just a number in an expression.

    A kernel may have that of a constant.
    """
    if value.op is None or not value.op.immediate:
        return True
    known = sharing.addressed
    if value not in known:  # a value may be stored in thousands of places, each of which asks
        known[value] = any(_takes_address(user, value) for user in sharing.live.users(value))
    return known[value]


def _takes_address(user: Op, value: Value) -> bool:
    single = isinstance(value.op, Splat) and value.op.single
    if single and isinstance(user, Operator) and not user.view and not isinstance(user, Insert):
        return False
    number = user.takes_elements(value) or isinstance(user, (If, StateStore))
    return not number and not (isinstance(user, Insert) and user.x is not value)
