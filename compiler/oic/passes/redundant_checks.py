"""Drop checks that never refuse, for all that holds at their places.

    check.range(%e) {low=%p, high=512}         check.range(%e) {low=%p, high=512}
    check.range(%p) {low=0, high=%e}      =>   if (%some) {  ; index.test(0, N)
    if (%some) {  ; index.test(0, N)             ..
      check.range(%n) {low=1, high=8}          }
    }

`redundant_checks` runs while ops still move, so that it only drops what earlier checks and the branches and
loops around imply.  `settle_checks` runs when nothing moves any more: it folds index arithmetic with the same
facts, and marks arithmetic that stays within 64 bits as `checked`.  What may refuse after it, is in C,
and nothing else.
"""

from oic.ir.control import CheckIterations
from oic.ir.core import Op
from oic.ir.facts import FactWalk
from oic.ir.index import AssertShape, CheckRange, ExtentBind, IndexArithmetic, IndexOp
from oic.ir.module import Module
from oic.ir.ranges import Ranges, may_refuse
from oic.passes.dead_code import sweep
from oic.passes.fold_index import folded_index


def redundant_checks(module: Module) -> None:
    """Walk every function in order."""
    for func in module.functions():
        _Walk().block(func.body)


def settle_checks(module: Module) -> None:
    """As `redundant_checks`; from here on ops stay where they are."""
    for func in module.functions():
        _Settle().block(func.body)
        sweep(func.body, Ranges())


class _Walk(FactWalk):
    """Drops checks on the way."""

    def kept(self, op: Op) -> list[Op]:
        if isinstance(op, CheckRange) and self.facts.always(op):
            return []
        if isinstance(op, ExtentBind):
            op.checked = op.checked or self.facts.always(op)
        elif isinstance(op, AssertShape):
            op.checked = op.checked or self.facts.equal_sizes(op)
        left = super().kept(op)
        passes = isinstance(op, CheckIterations) and not may_refuse(op.ends.ops, self.facts)
        return [] if passes else left


class _Settle(_Walk):
    """Folds and marks index arithmetic too."""

    def kept(self, op: Op) -> list[Op]:
        if isinstance(op, IndexOp) and (found := folded_index(op, self.facts)) is not None:
            op.result.give_way(found.result if isinstance(found, Op) else found)
            return self.kept(found) if isinstance(found, Op) else []  # it may be folded again
        if isinstance(op, IndexArithmetic):
            op.checked = op.checked or self.facts.fits(op)
        return super().kept(op)
