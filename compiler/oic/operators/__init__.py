"""The operator catalog: one class an operator, one file a family.

Importing this package, or a module of it, registers every op.
"""

from importlib import import_module
from pkgutil import iter_modules

from oic.ir import control as control
from oic.ir import index as index
from oic.ir import state as state
from oic.ir.core import REGISTRY
from oic.operators.base import Operator

for module in iter_modules(__path__, f"{__name__}."):
    import_module(module.name)


def catalog() -> dict[str, type[Operator]]:
    """The operators of the catalog, which a source may name, by name."""
    return {name: c for name, c in sorted(REGISTRY.items()) if c.catalog and issubclass(c, Operator)}
