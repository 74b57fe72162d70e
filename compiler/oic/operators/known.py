"""What checks that have passed show of index integers, and which ops may refuse for all that."""

from __future__ import annotations

from collections import ChainMap

from oic.ir.core import Op, Value
from oic.ir.index import (
    AssertShape,
    CheckIds,
    CheckRange,
    ExtentBind,
    IndexAdd,
    IndexLoad,
    IndexMax,
    IndexMin,
    IndexMul,
    IndexSub,
)
from oic.ir.ranges import WIDE, Range, Ranges, linear, linear_range
from oic.ir.state import StateGet

DEPTH = 6  # of least, greatest and products of values, of which it is looked at what checks have shown
Shown = ChainMap[object, Range]  # the ranges of what is no sum of other values


class Known:
    """What checks have shown in a block and in the blocks around it.

    shown    of this block, then of those around it
    ranges   what holds without any check; of ops that are not changed meanwhile
    """

    def __init__(self, outer: Known | None = None) -> None:
        self.shown: Shown = outer.shown.new_child() if outer is not None else ChainMap()
        self.ranges: Ranges = outer.ranges if outer is not None else Ranges()

    def refuses(self, op: Op) -> bool:
        """The op itself can end the step, for all that checks before it have shown."""
        match op:
            case ExtentBind(checked=checked) | AssertShape(checked=checked):
                return not checked
            case CheckRange() | CheckIds():
                return True
            case IndexAdd() | IndexSub() | IndexMul():
                low, high = self._range(op.result, besides=op.result)
                return low < WIDE[0] or high > WIDE[1]
            case IndexLoad(x=x):
                return x.dtype.high > WIDE[1]
            case StateGet(state=state):
                return state.type.dtype.high > WIDE[1]  # type: ignore[union-attr]
        return False

    def learn(self, op: Op) -> None:
        """Note the range of a value that a check of this block has let pass."""
        match op:
            case CheckRange(value=value, low=low, high=high):
                least, most = self._bound(low)[0], self._bound(high)[1]
            case ExtentBind(value=value, extent=extent):
                least, most = 0, extent.maximum
            case _:
                return
        form = linear(value, self.ranges)
        atoms = [a for a in form if a is not None]
        if len(atoms) == 1 and form[atoms[0]] == 1:
            moved, (low_now, high_now) = form.get(None, 0), self._atom(atoms[0])
            self.shown[atoms[0]] = max(low_now, least - moved), min(high_now, most - moved)

    def _bound(self, bound: int | Value) -> Range:
        return self._range(bound) if isinstance(bound, Value) else (bound, bound)

    def _range(self, value: Value, besides: Value | None = None, depth: int = DEPTH) -> Range:
        """As `value_range`, with what checks have shown of all values but one."""
        low = high = 0
        for atom, c in linear(value, self.ranges).items():
            least, most = self._atom(atom, besides, depth)
            low, high = low + min(c * least, c * most), high + max(c * least, c * most)
        return low, high

    def _atom(self, atom: object, besides: Value | None = None, depth: int = DEPTH) -> Range:
        """The range of what is no sum of other values; what it is made of is followed to a depth."""
        low, high = linear_range({atom: 1}, self.ranges)
        if depth and isinstance(atom, Value) and isinstance(atom.op, (IndexMin, IndexMax, IndexMul)):
            a, b = (self._range(v, besides, depth - 1) for v in atom.op.operands)
            if isinstance(atom.op, IndexMul):
                corners = [x * y for x in a for y in b]
                low, high = min(corners), max(corners)
            else:
                pick = min if isinstance(atom.op, IndexMin) else max
                low, high = pick(a[0], b[0]), pick(a[1], b[1])
        least, most = self.shown.get(atom, WIDE) if atom is not besides else WIDE
        return max(low, least), min(high, most)
