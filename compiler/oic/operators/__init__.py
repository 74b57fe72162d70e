"""The operator catalog: one class an operator, one file a family.

Importing this package, or a module of it, registers every op.
"""

from functools import cache

from oic.ir import control as control
from oic.ir import index as index
from oic.ir import state as state
from oic.ir.core import REGISTRY, Op
from oic.operators import arrange as arrange
from oic.operators import attention as attention
from oic.operators import bitwise as bitwise
from oic.operators import cast as cast
from oic.operators import compare as compare
from oic.operators import conv as conv
from oic.operators import conv_transpose as conv_transpose
from oic.operators import elementwise as elementwise
from oic.operators import fused as fused
from oic.operators import math as math
from oic.operators import matmul as matmul
from oic.operators import norm as norm
from oic.operators import part as part
from oic.operators import pool as pool
from oic.operators import position as position
from oic.operators import quant as quant
from oic.operators import recurrent as recurrent
from oic.operators import reduce as reduce
from oic.operators import sampling as sampling
from oic.operators import shape as shape
from oic.operators.base import Operator


def catalog() -> dict[str, type[Operator]]:
    """The operators of the catalog, which a source may name, by name."""
    return _catalog(tuple(REGISTRY.values()))


@cache
def _catalog(registered: tuple[type[Op], ...]) -> dict[str, type[Operator]]:
    found = {c.name: c for c in registered if c.catalog and issubclass(c, Operator)}
    return dict(sorted(found.items()))
