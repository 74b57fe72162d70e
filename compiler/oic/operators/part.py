"""Part of a tensor replaced: what `transfer a >> y[i, lo..hi];` becomes (SPEC, section 7)."""

from __future__ import annotations

from typing import Any, ClassVar

from oic.ir.core import Op, OpError, Value, is_index
from oic.ir.types import TensorType, Type


class TensorMemory(Op):
    """Base of what is done with memory of a tensor."""

    x: Value

    @property
    def whole(self) -> Value:
        """What the memory is a part of."""
        return self.x


class Insert(TensorMemory, name="insert"):
    """The operand with a box of its leading axes replaced; checks before it keep the box inside.

    x        any tensor
    value    its dtype; the sizes in `lengths` that are not None, then the axes of x that follow
    offsets  where the box starts along each leading axis
    lengths  how long it is there; None: 1, and no axis of `value`
    entry    symbol of the `part.entry` that the value was computed in: nothing is left to copy
    reason   why that is not so; printed by `oic explain`
    result   the type of x

    Written over x where that is needed no more; else x is copied.
    """

    value: Value
    offsets: list[Value]
    lengths: list[Any]
    entry: str = ""
    reason: str = ""

    inplace: ClassVar[tuple[str, ...]] = ("x",)

    def infer(self) -> list[Type]:
        box = _box(self.x, self.offsets, self.lengths)
        if self.value.type != box:
            raise OpError("shape-mismatch", f"{self.value.type} replaces {box}", "value")
        return [self.x.type]


class PartEntry(TensorMemory, name="part.entry"):
    """A box of a tensor's memory in which values are computed, before an `insert` puts them there.

    What was there is gone, and x is read no more before that `insert`, which is computed over it.
    `symbol` is the buffer that the values name as their place.
    """

    offsets: list[Value]
    lengths: list[Any]
    symbol: str

    pure = False

    def infer(self) -> list[Type]:
        _box(self.x, self.offsets, self.lengths)
        return []


def _box(x: Value, offsets: list[Value], lengths: list[Any]) -> TensorType:
    """The type of a box of a tensor's leading axes."""
    if len(offsets) != len(lengths) or len(lengths) > x.tensor.rank:
        raise OpError("ir", f"a box of {x.type} has {len(offsets)} offsets", "offsets")
    if not all(map(is_index, offsets)):
        raise OpError("ir", "offsets are index integers", "offsets")
    return TensorType(x.dtype, (*(n for n in lengths if n is not None), *x.shape[len(lengths) :]))
