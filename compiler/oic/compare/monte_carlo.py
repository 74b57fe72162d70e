"""How far two right answers may be apart: each operator's result perturbed within its tolerance.

Every operator states how far its result may be from the exact one (`Operator.tolerance`).  The
effect on an output many operators and steps later has no general formula; but the
reference can be run again with a random error of that size added to every result.  What such runs
do not tell apart, a correct compiled program need not tell apart either (Monte Carlo arithmetic:
Parker 1997).  Integers, booleans and moves have no error and are compared exactly.  Every NaN is as
good as every other, so the sign of one that was computed is drawn.
"""

import numpy as np

from oic import dtypes
from oic.dtypes import Array
from oic.ir.core import Op
from oic.ir.module import Module
from oic.operators.base import Operator
from oic.operators.evaluate import bound
from oic.reference.interpret import Compiled, Machine


class PerturbedMachine(Machine):
    """The interpreter of GRAPH with an error within its bound added to every float result.

    times    the errors are so many times as large
    endless  the error where a bound is infinite
    """

    def __init__(
        self, module: Module, seed: int, times: float = 1.0, compiled: Compiled | None = None, endless: float = 0.0
    ) -> None:
        self.random, self.times, self.endless = np.random.default_rng(seed), times, endless
        super().__init__(module, compiled)

    def write(self, op: Op, arrays: list[Array]) -> None:
        if isinstance(op, Operator) and not op.view:
            arrays = [self._perturbed(op, i, a) for i, a in enumerate(arrays)]
        super().write(op, arrays)

    def _perturbed(self, op: Operator, result: int, array: Array) -> Array:
        dtype = op.results[result].dtype
        # A bound is that of the first result, and of others of its type: the cell of an LSTM.
        if not dtype.is_float or op.results[result].type != op.results[0].type or array.size == 0:
            return array
        allowed = bound(op, array, self.read, self.sizes)
        plain = array.astype(np.float64)
        absent = np.isnan(plain)
        if not allowed.any() and not absent.any():
            return array
        allowed = np.where(np.isinf(allowed), self.endless, allowed)
        error = self.times * allowed * self.random.uniform(-1.0, 1.0, array.shape)
        with np.errstate(all="ignore"):
            found = np.where(np.isfinite(plain) | np.isinf(error), plain + error, plain)
            found = np.where(absent, np.copysign(np.nan, self.random.uniform(-1.0, 1.0, array.shape)), found)
            return dtypes.store(found.astype(dtype.wide), dtype)
