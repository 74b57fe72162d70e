"""Whether the last positions of a state can be taken back, and how: decided once, on GRAPH.

    cache.write(%K, %k, [%l, %p, %p + N]) {form="is"}       pos counts positions; index t of K is one
    cache.step(%pos, N)

A state goes back by n positions where a step of fewer would have left it so: one integer scalar, the
counter, is only ever counted up; entries of tables are written from its value on, up to the value it is
counted up to, and never before; nothing else in the state is written by what counts.  Then entries from
the new position on were never written.  Counts of tables, and where their rings end, are known as well where every
advance writes the same entries of each position.

An entry that starts over resets the counter and all these tables.  What it writes beside them (the keys
and values of an encoder) stays when positions are taken back.  Of a step that is taken back in part, the
entries that stay are those of a shorter step where a position depends on none after it, as in causal attention.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from oic.dtypes import INT, u64
from oic.ir import state
from oic.ir.control import For, If
from oic.ir.core import Block, Op, Value
from oic.ir.index import IndexLoad
from oic.ir.module import Module, Truncation
from oic.ir.ranges import LinearForm, Ranges, added, index_of

TableAccess = state.CacheRead | state.CacheWrite | state.CacheStep
Sides = tuple[LinearForm, LinearForm]  # where a position of an access starts, and where it ends


class _RefusalError(Exception):
    """Why positions cannot be taken back."""


def truncation(module: Module) -> Truncation:
    """How states of a GRAPH module go back, or why they do not."""
    refused: list[Truncation] = []
    for rule in _rules(module):
        axes = {table.symbol: axis for table, axis in rule.tables.items()}
        found = Truncation(rule.counter.symbol, int(rule.counter.init), axes)
        try:
            rule.check()
        except _RefusalError as why:
            refused.append(replace(found, reason=str(why)))
        else:
            return found
    reason = "no integer of the state is counted up and says where tables are written"
    nothing = Truncation(reason=reason if any(module.states()) else "there is no state")
    return max(refused, key=lambda found: len(found.tables), default=nothing)


def _rules(module: Module) -> "Iterator[_Rule]":
    """Integers that are counted up, with the tables whose positions are made of them."""
    touched, ranges = {op.result for op in module.keeps_touched()}, Ranges(module.all_ops())
    tables: dict[Value, dict[Value, int]] = {}  # that are written at each integer, and along which index
    for op in module.all_ops():
        if not isinstance(op, (state.CacheWrite, state.CacheStep)) or not op.indices:
            continue
        axes: dict[Value, int] = {}
        for axis, position in enumerate(_positions(op)):
            for atom in ranges.linear(position[0]):
                if (counter := _counter_of(atom)) is not None:
                    axes.setdefault(counter, axis)
        for counter, axis in axes.items():
            tables.setdefault(counter, {})[op.table] = axis
    for integer in module.states():
        type_, value = integer.type, integer.result
        counts = type_.plain and type_.shape == () and type_.dtype in INT and type_.dtype is not u64
        if counts and value in tables and any(isinstance(user, state.CacheStep) for user in value.users):
            yield _Rule(module, integer, touched, ranges, tables[value])


@dataclass
class _Access:
    """An access of a table of positions, relative to where the counter stood before the advance around it."""

    op: TableAccess
    at: Sides
    sure: bool  # it runs whatever the data are, as often as the loops around it have iterations


@dataclass
class _Advance:
    """Ops of a block that run from one position on, up to where what is nested counts by itself, or it ends."""

    moved: LinearForm = field(default_factory=dict)  # what the counter was stepped by so far
    read: dict[Value, LinearForm] = field(default_factory=dict)  # integers that are the counter: `moved` at that time
    accesses: list[_Access] = field(default_factory=list)


class _Rule:
    """A counter, the tables whose entries are those of positions, and what functions do with both."""

    def __init__(
        self, module: Module, counter: state.State, touched: set[Value], ranges: Ranges, tables: dict[Value, int]
    ) -> None:
        self.module, self.counter = module, counter
        self.touched, self.ranges, self.tables = touched, ranges, tables
        self.group = {counter.result, *self.tables}
        self.written: dict[Value, list[str]] = {}  # of each table, what every advance writes
        self.raises: list[_Access] = []  # reads that may raise a count

    # ------------------------------------------------------------- the rule

    def check(self) -> None:
        """Raise _RefusalError where something of the state cannot be taken back."""
        if self.counter.init < 0:
            raise _RefusalError(f"'{self.counter.symbol}' starts at {self.counter.init}, where no table has an entry")
        for table, axis in self.tables.items():
            self._check_table(table, axis)
        for func in self.module.functions():
            self._check_others(func.symbol, func.body)
            self._block(func.body)
        for read in self.raises:
            self._check_raise(read)

    def _check_table(self, table: Value, axis: int) -> None:
        """A table of which single positions can be forgotten."""
        type_, name = table.state_type, table.symbol
        if axis >= len(type_.table):
            raise _RefusalError(f"'{name}' is one matrix that grows: what it held before it was replaced is not kept")
        if type_.auto:
            raise _RefusalError(f"entries of '{name}' grow: what they were before is not kept")
        if type_.ring and axis != len(type_.table) - 1:
            raise _RefusalError(f"'{name}' is a ring along another index than its positions")
        if table in self.touched:
            raise _RefusalError(f"entries of '{name}' are reset one by one")

    def _check_others(self, symbol: str, body: Block) -> None:
        """What counts, or reads what was counted, writes nothing else."""
        ops = [op for op in body.all_ops() if isinstance(op, (state.CacheOp, state.StateGet))]
        if all(_state(op) not in self.group or isinstance(op, state.CacheReset) for op in ops):
            return
        for op in ops:
            table = _state(op)
            if table not in self.group and self._changes(op):
                where = f"line {op.span.line}" if op.span else f"'{symbol}'"
                what = f"'{table.symbol}' is written in {where}"
                raise _RefusalError(f"{what}, and what it held before is not kept")

    def _changes(self, op: state.CacheOp | state.StateGet) -> bool:
        """An op may change what its variable holds, or what is kept beside it."""
        if isinstance(op, (state.StateGet, state.CacheCount)):
            return False
        if not isinstance(op, state.CacheRead):
            return True
        table = len(op.table.state_type.table)
        return bool(_raised(op)) or "i" in op.form[table:] or ("i" in op.form and op.table in self.touched)

    def _block(self, block: Block) -> None:
        """A block with advances of its own."""
        now, forgotten = _Advance(), set[Value]()
        for op in block.ops:
            if isinstance(op, state.CacheReset) and op.table in self.group:
                if op.indices:
                    raise _RefusalError(f"entries of '{op.table.symbol}' are reset one by one")
                forgotten.add(op.table)
                if forgotten == self.group:
                    self._close(now)
                    now, forgotten = _Advance(), set()
                continue
            touched = {_state(inner) for inner in op.walk() if isinstance(inner, (state.CacheOp, state.StateGet))}
            if forgotten and touched & self.group:
                break
            if self._counts(op):
                self._close(now)
                for region in op.regions:
                    self._block(region)
                now = _Advance()
            else:
                self._note(now, op, sure=True)
        if forgotten:
            kept, gone = (next(iter(s)).symbol for s in (self.group - forgotten, forgotten))
            raise _RefusalError(f"'{gone}' is reset without '{kept}'")
        self._close(now)

    def _counts(self, op: Op) -> bool:
        """Something nested in the op moves the counter, or starts over."""
        return bool(op.regions) and any(
            (isinstance(inner, state.CacheStep) and inner.table is self.counter.result)
            or (isinstance(inner, state.CacheReset) and inner.table in self.group)
            for inner in op.walk()
        )

    def _note(self, now: _Advance, op: Op, *, sure: bool) -> None:
        """An op, and what is nested in it, as a part of an advance."""
        if isinstance(op, state.CacheStep) and op.table is self.counter.result:
            if self.ranges.of(op.amount)[0] < 0:
                raise _RefusalError(f"'{self.counter.symbol}' may be counted down")
            now.moved = added(now.moved, self.ranges.linear(op.amount), 1)
        elif isinstance(op, state.CacheWrite) and op.table is self.counter.result:
            raise _RefusalError(f"'{self.counter.symbol}' is set, not only counted up")
        elif isinstance(op, (state.StateGet, state.CacheRead)) and _state(op) is self.counter.result:
            now.read[op.result] = dict(now.moved)
        elif isinstance(op, IndexLoad) and op.x in now.read:
            now.read[op.result] = now.read[op.x]
        elif isinstance(op, TableAccess) and op.table in self.tables:
            self._access(now, op, sure=sure)
        runs = not isinstance(op, For) or self.ranges.difference(op.end, op.start)[0] > 0
        for region in op.regions:
            for inner in region.ops:
                self._note(now, inner, sure=sure and runs and not isinstance(op, If))

    def _access(self, now: _Advance, op: TableAccess, *, sure: bool) -> None:
        """Where a write begins and ends, and a read that may raise a count of the table's."""
        axis, positions = self.tables[op.table], _positions(op)
        if isinstance(op, state.CacheRead) and axis not in _raised(op):
            if _raised(op):
                now.accesses.append(_Access(op, ({}, {}), sure))
            return
        start = self._relative(now, positions[axis][0])
        end = self._relative(now, positions[axis][-1])
        if start is None or end is None:
            how = "read one by one" if isinstance(op, state.CacheRead) else "written"
            name = self.counter.symbol
            raise _RefusalError(f"entries of '{op.table.symbol}' are {how} where '{name}' does not say")
        if len(positions[axis]) == 1:
            end = added(end, {None: 1}, 1)
        now.accesses.append(_Access(op, (start, end), sure))

    def _relative(self, now: _Advance, value: Value) -> LinearForm | None:
        """A position as a distance from where the advance begins; None where it is no such distance."""
        found: LinearForm = {}
        times = 0
        for atom, c in self.ranges.linear(value).items():
            if isinstance(atom, Value) and atom in now.read:
                times, found = times + c, added(found, now.read[atom], c)
            elif _counter_of(atom) is self.counter.result:
                return None
            else:
                found = added(found, {atom: c}, 1)
        return found if times == 1 else None

    def _close(self, now: _Advance) -> None:
        """The accesses of an advance lie within it; those of counted tables are all of it."""
        name = self.counter.symbol
        for access in now.accesses:
            table = access.op.table.symbol
            start, end = access.at
            if self.ranges.least(start) < 0 or self.ranges.least(added(now.moved, end, -1)) < 0:
                raise _RefusalError(f"'{table}' is written beside what '{name}' is counted up by")
            if isinstance(access.op, state.CacheRead):
                if not now.moved:
                    raise _RefusalError(f"a read that does not count '{name}' up may raise a count of '{table}'")
                self.raises.append(access)
            elif _is_counted(access.op.table) and not (access.sure and not start and end == now.moved):
                raise _RefusalError(_unlike(table))
        for found in self.tables if now.moved else ():
            if _is_counted(found):
                self._check_alike(found, [a for a in now.accesses if a.op.table is found])

    def _check_alike(self, table: Value, accesses: list[_Access]) -> None:
        """Every advance writes the same entries of a counted table for each position."""
        writes = [self._beside(a.op) for a in accesses if not isinstance(a.op, state.CacheRead)]
        boxes = sorted(str([list(map(self.ranges.of, p)) for p in others]) for others in writes)
        static = all(self._is_static(p) for others in writes for p in others)
        if self.written.setdefault(table, boxes) != boxes or not boxes or not static:
            raise _RefusalError(_unlike(table.symbol))

    def _check_raise(self, read: _Access) -> None:
        """A read raises no count beyond what writes do."""
        table = read.op.table
        writes = [self._beside(op) for op in table.users if isinstance(op, (state.CacheWrite, state.CacheStep))]
        for i, position in enumerate(self._beside(read.op)):
            reach = max(self.ranges.of(p[i][-1])[1] + (len(p[i]) == 1) for p in writes)
            if len(position) == 1 and self.ranges.of(position[0])[1] >= reach:
                raise _RefusalError(f"a read may raise a count of '{table.symbol}'")

    def _beside(self, op: TableAccess) -> list[tuple[Value, ...]]:
        """The positions beside the one counted."""
        return [position for axis, position in enumerate(_positions(op)) if axis != self.tables[op.table]]

    def _is_static(self, position: tuple[Value, ...]) -> bool:
        """Integers known at build, or indices of loops between such."""
        loops = (index_of(atom) for value in position for atom in self.ranges.linear(value) if atom is not None)
        return all(loop and None not in map(self.ranges.exact, (loop.start, loop.end)) for loop in loops)


# ---------------------------------------------------------------- what ops do


def _state(op: Op) -> Value:
    """The variable of a cache operation, or of an integer read from it."""
    return op.operands[0]


def _counter_of(atom: object) -> Value | None:
    """The state that an integer is read from."""
    op = atom.op if isinstance(atom, Value) else None
    if isinstance(op, IndexLoad) and isinstance(op.x.op, state.CacheRead):
        return op.x.op.table
    return op.state if isinstance(op, state.StateGet) else None


def _positions(op: TableAccess) -> list[tuple[Value, ...]]:
    form = "i" * len(op.indices) if isinstance(op, state.CacheStep) else op.form
    return state.CacheOp.positions(form, op.indices)


def _raised(op: state.CacheRead) -> list[int]:
    """The table indices whose counts a read may raise."""
    table = op.table.state_type.table
    return [i for i, (index, form) in enumerate(zip(table, op.form)) if not index.fixed and form == "i"]


def _is_counted(table: Value) -> bool:
    """What is kept beside a table goes back as well: counts, or where rings end."""
    type_ = table.state_type
    return type_.ring or any(not index.fixed for index in type_.table)


def _unlike(table: str) -> str:
    return f"'{table}' is not written alike for every position, so that its counts do not say what they were"
