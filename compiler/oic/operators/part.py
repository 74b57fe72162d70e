"""Part of a tensor replaced: what `transfer a >> y[i, lo..hi];` becomes (SPEC, section 7)."""

from __future__ import annotations

from typing import Any, ClassVar

from oic.ir.core import Op, OpError, Value, is_index
from oic.ir.types import TensorType, Type


class TensorBox(Op):
    """Base of what is done with a box of a tensor's leading axes.

    offsets  where it starts along each of them
    lengths  how long it is there; None: 1, and no axis of a value that it holds
    """

    x: Value
    offsets: list[Value]
    lengths: list[Any]

    def infer(self) -> list[Type]:
        if len(self.offsets) != len(self.lengths) or len(self.lengths) > self.x.tensor.rank:
            raise OpError("ir", f"a box of {self.x.type} has {len(self.offsets)} offsets", "offsets")
        if not all(map(is_index, self.offsets)):
            raise OpError("ir", "offsets are index integers", "offsets")
        return []

    @property
    def box(self) -> TensorType:
        """The type of a value that the box holds."""
        sizes = (n for n in self.lengths if n is not None)
        return TensorType(self.x.dtype, (*sizes, *self.x.shape[len(self.lengths) :]))


class Insert(TensorBox, name="insert"):
    """The operand with a box of its leading axes replaced; checks before it keep the box inside.

    x        any tensor
    value    its dtype; the sizes in `lengths` that are not None, then the axes of x that follow
    entry    symbol of the `part.entry` that the value was computed in: nothing is left to copy
    reason   why that is not so; printed by `oic explain`
    result   the type of x

    Written over x where that is needed no more; else x is copied.
    """

    value: Value
    entry: str = ""
    reason: str = ""

    inplace: ClassVar[tuple[str, ...]] = ("x",)

    def infer(self) -> list[Type]:
        super().infer()
        if self.value.type != self.box:
            raise OpError("shape-mismatch", f"{self.value.type} replaces {self.box}", "value")
        return [self.x.type]


class PartEntry(TensorBox, name="part.entry", pure=False):
    """A box of a tensor's memory in which values are computed, before an `insert` puts them there.

    What was there is gone, and x is read no more before that `insert`, which is computed over it.
    `symbol` is the buffer that the values name as their place.
    """

    symbol: str
