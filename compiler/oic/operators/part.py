"""Part of a tensor replaced: what `transfer a >> y[i, lo..hi];` becomes (SPEC, section 7)."""

from __future__ import annotations

from typing import Any, ClassVar

from oic.ir.core import Op, OpError, Value, is_index
from oic.ir.types import TensorType, Type


class Insert(Op, name="insert"):
    """The operand with a box of its leading axes replaced; checks before it keep the box inside.

    x        any tensor
    part     its dtype; the sizes in `lengths` that are not None, then the axes of x that follow
    offsets  where the box starts along each leading axis
    lengths  how long it is there; None: 1, and no axis of `part`
    result   the type of x

    Written over x where that is needed no more; else x is copied.
    """

    x: Value
    part: Value
    offsets: list[Value]
    lengths: list[Any]

    inplace: ClassVar[tuple[str, ...]] = ("x",)

    def infer(self) -> list[Type]:
        if len(self.offsets) != len(self.lengths) or len(self.lengths) > self.x.tensor.rank:
            raise OpError("ir", f"a box of {self.x.type} has {len(self.offsets)} offsets", "offsets")
        if not all(map(is_index, self.offsets)):
            raise OpError("ir", "offsets are index integers", "offsets")
        sizes = tuple(n for n in self.lengths if n is not None)
        box = TensorType(self.x.dtype, (*sizes, *self.x.shape[len(self.lengths) :]))
        if self.part.type != box:
            raise OpError("shape-mismatch", f"{self.part.type} replaces {box}", "part")
        return [self.x.type]
