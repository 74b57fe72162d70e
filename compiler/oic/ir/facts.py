"""What holds at a place of a function: passed checks, the branches and the loops around it.

    check.range(%e) {low=%p, high=512}       %e - %p >= 0, 512 - %e >= 0
    %i = index.load(%position)               N - 1 - %i >= 0, where it is one of an axis of N
    %r = index.mod(%i, %m)                   %i - %r >= 0, and N - 1 - %r >= 0
    if (index.test(%zero, %n)) { .. }        N - 1 >= 0 inside
    for (%i = %a .. %b) { .. }               %i - %a >= 0, %b - 1 - %i >= 0 and %b - 1 - %a >= 0 inside

Every fact is a sum that is not negative.  A check always holds if each of its sides is one by the
ranges of its atoms, or a known fact plus something that is.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from oic.ir.control import CheckIterations, Cond, For, If
from oic.ir.core import Block, Op, Value
from oic.ir.dims import Extent
from oic.ir.index import AssertShape, CheckRange, ExtentBind, IndexLoad, IndexMod
from oic.ir.intervals import Range, meet
from oic.ir.journal import Journal
from oic.ir.ranges import FormAtom, LinearForm, Ranges, added, known_below

MOST_FACTS = 64  # about an atom that are tried
_Form = frozenset[tuple[FormAtom, int]]


class Facts(Ranges):
    """As `Ranges`, at the place that a walk over a function has come to.

    The walk says what it passes: `learn` after an op, `inside` around the ops of a region.  What an op
    refuses is asked before what comes after it is learnt.
    """

    def __init__(self) -> None:
        super().__init__()
        self._extents: dict[Extent, Range] = {}
        self._facts: dict[tuple[FormAtom, bool], dict[_Form, LinearForm]] = {}  # sums, by a signed atom and all atoms
        self._journal = Journal()

    def learn(self, op: Op) -> None:
        """Note what holds once an op has been run."""
        match op:
            case CheckRange(value=value, low=low, high=high):
                least = self.of(low)[0] if isinstance(low, Value) else low
                most = self.of(high)[1] if isinstance(high, Value) else high
                self._narrow(self._ranges, value, self._range(value), (least, most))
            case ExtentBind(value=value, extent=extent):
                self._narrow(self._ranges, value, self._range(value), (0, extent.maximum))
                self.bound[extent] = value  # bound once, and used where that holds
            case IndexLoad(x=x, result=result) if (end := known_below(x)) is not None:
                self._add(added(added(self.linear(end), self.linear(result), -1), {None: 1}, -1))
                return
            case IndexMod(left=left, result=result) if self.of(left)[0] >= 0:
                whole = self.linear(left)
                for fact in [{}, *self._about(added({}, whole, -1))]:
                    self._add(added(added(fact, whole, 1), self.linear(result), -1))
                return
            case CheckIterations(ends=ends):
                for inner in ends.ops:
                    self._run(inner)
                return
            case _:
                return
        for side in self._sides(op):
            self._add(side)

    def _run(self, op: Op) -> None:
        """Learn what an op shows, and what is nested in it."""
        for region in op.regions:
            with self.inside(region):
                for inner in region.ops:
                    self._run(inner)
        self.learn(op)

    @contextmanager
    def inside(self, region: Block) -> Iterator[None]:
        """Around the ops of a region: what they show holds afterwards where that surely runs.

        So does the body of a loop that has an iteration; consumers run at once, and none relies on another's checks.
        """
        owner, mark = region.owner, len(self._journal.log)
        lasting = isinstance(owner, For) and self.difference(owner.end, owner.start)[0] > 0
        for fact in self._of_region(region):
            self._add(fact)
        yield
        if not lasting:
            self._journal.undo(mark)

    def _of_region(self, region: Block) -> list[LinearForm]:
        """What holds in a region as it is run."""
        owner = region.owner
        if isinstance(owner, If) and isinstance(test := owner.condition.op, Cond):
            apart = added(self.linear(test.right), self.linear(test.left), -1)
            one: LinearForm = {None: 1}
            return [added(apart, one, -1) if region is owner.then else added({}, apart, -1)]
        if isinstance(owner, For):
            start = self.linear(owner.start)
            last = added(self.linear(owner.end), {None: 1}, -1)
            index: LinearForm = {region.args[0]: 1}
            return [added(last, start, -1), added(index, start, -1), added(last, index, -1)]
        return []

    def always(self, op: CheckRange | ExtentBind) -> bool:
        """A check that never refuses here."""
        return all(self._holds(side) for side in self._sides(op))

    def equal_sizes(self, op: AssertShape) -> bool:
        """The sizes that are compared are the same sums."""
        pairs = zip(op.x.shape, op.shape, strict=True)
        return all(a == b or self.linear(a) == self.linear(b) for a, b in pairs)

    def _sides(self, op: CheckRange | ExtentBind) -> list[LinearForm]:
        """What a check that passes shows not to be negative."""
        low, high = (op.low, op.high) if isinstance(op, CheckRange) else (0, op.extent.maximum)
        middle = self.linear(op.value)
        return [added(middle, self.linear(low), -1), added(self.linear(high), middle, -1)]

    def _holds(self, side: LinearForm) -> bool:
        """A sum is not negative: by its range, or as it is a fact and something that is not."""
        return self.least(side) >= 0 or any(self.least(added(side, fact, -1)) >= 0 for fact in self._about(side))

    def _about(self, side: LinearForm) -> Iterator[LinearForm]:
        """The facts that can bound a sum: they share atoms with it, of one sign, so that these cancel.

        Of an atom in very many facts the newest are tried.
        """
        for atom, c in side.items():
            forms = self._facts.get((atom, c > 0), {})
            yield from islice(reversed(forms.values()), MOST_FACTS)

    def _add(self, fact: LinearForm) -> None:
        """Note a sum that is not negative: of two that differ by an integer the smaller says more."""
        form = frozenset([(atom, c) for atom, c in fact.items() if atom is not None])
        constant = fact.get(None, 0)
        for atom, c in form:
            forms = self._facts.setdefault((atom, c > 0), {})
            if form not in forms or constant < forms[form].get(None, 0):
                self._note(forms, form, fact)
        most = self.of_sum(fact)[1]
        for atom, c in form:
            self._bound_atom(atom, c, most)

    def _bound_atom(self, atom: FormAtom, c: int, most: int) -> None:
        """An atom of a sum that is not negative, whose others take it to `most` at the most."""
        least, largest = low, high = self._atom_range(atom)
        if c > 0:
            least = max(low, -((most - c * high) // c))
        else:
            largest = min(high, (most - c * low) // -c)
        if isinstance(atom, Value):
            self._narrow(self._ranges, atom, (low, high), (least, largest))
        elif isinstance(atom, Extent):
            self._narrow(self._extents, atom, (low, high), (least, largest))

    def _narrow(self, found: dict[Any, Range], key: object, known: Range, shown: Range) -> None:
        if (both := meet(known, shown)) != known:
            self._note(found, key, both)

    def _extent_range(self, extent: Extent) -> Range:
        return self._extents.get(extent) or super()._extent_range(extent)

    def _note(self, found: dict[Any, Any], key: object, what: object) -> None:
        self._journal.put(found, key, what)


class FactWalk:
    """A walk through the ops of a function in order, with what holds at the place of each."""

    def __init__(self) -> None:
        self.facts = Facts()

    def block(self, block: Block) -> None:
        """Every op of a block."""
        ops: list[Op] = []
        for op in block.ops:
            ops += self.kept(op)
            self.facts.learn(op)
        block.set_ops(ops)

    def kept(self, op: Op) -> list[Op]:
        """What is left of an op, and of those in its regions."""
        for region in op.regions:
            with self.facts.inside(region):
                self.block(region)
        return [op]
