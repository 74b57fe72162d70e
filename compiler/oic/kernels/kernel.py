"""The C functions that compute operators, as data; each is declared beside its operator.

    class Softmax(Operator, name="softmax"):
        def _members(self): return {"x": self.x, "y": Out(), "rows": self.rows}
        kernels = (Kernel("softmax", types=("x",), args=_members),)

`runtime_c/kernels/softmax.h` is the body of `oic_softmax_T(const oic_softmax_T_args *)`: generated code includes
it once for each element type it is used with, and calls it with a struct whose members are named.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from oic.dtypes import DType
from oic.ir.core import Value
from oic.ir.dims import Dim
from oic.ir.encodings import ALIGN, layout_of, storage_of
from oic.ir.types import TensorType
from oic.kernels.targets import Target


@dataclass(frozen=True)
class Out:
    """A pointer to a result of the op."""

    index: int = 0


@dataclass(frozen=True)
class Stride:
    """Elements between neighbours along one axis of a value, as it lies in memory."""

    value: Value
    axis: int


@dataclass(frozen=True)
class Converted:
    """A number (a plain value, an index integer, or the element of a scalar tensor), as a C type."""

    value: Any
    c: str


def flag(setting: bool) -> Converted | None:
    """A setting that is true or false; false is as if it were left out."""
    return Converted(1, "int") if setting else None


@dataclass(frozen=True)
class Scratch:
    """Working memory of a kernel: bytes at the maximum, planned into the arena.

    each   every thread that runs the kernel has so much, rounded up to a cache line: `oic_own` finds it
    """

    nbytes: int
    each: bool = False

    def total(self, workers: int) -> int:
        """Bytes for so many threads."""
        return -(-self.nbytes // ALIGN) * ALIGN * workers if self.each and workers > 1 else self.nbytes


KernelArgs = Mapping[str, Any]
"""Members of a kernel's argument struct, in order.

Value (pointer to its first element; None: NULL), Out, Stride, Converted, Scratch, a size (int or Expr, passed as
ptrdiff_t), or a tuple of sizes and strides (`const ptrdiff_t *`; empty: NULL).
A member that is left out is zero or NULL.
"""


@dataclass(frozen=True)
class Kernel:
    """One way to compute an operator.

    name    of the body file below runtime_c/kernels, without `.h`
    types   fields whose dtypes the body is included for, in the order of its names: OIC_X, OIC_W; or a function
            of the op that gives the dtypes
    args    the members of the argument struct, from the op
    call    what the function is named after, `oic_CALL_types`, in which `{op}` is the operator; "": as the file
    fits    whether it can compute an op, whatever the encodings of its operands; else all that the type rule takes
    takes   layout that operands must have, by field; the others are dense
    stored  storages of an operand that it reads, by field; "" and the only one of others: as its type
    needs   features that the target must have, or its class of numerics (`targets`)
    layouts operands that need not be without gaps: how many of their innermost dimensions must be, by field
    inplace operands that it may write its result over
    cost    of one call on a target, as `targets.Costs` counts; the cheapest that fits is taken, the first of equals
    units   parts that threads can share, of those kernels whose body has `oic_CALL_part_types`, an `oic_part`
            (`hosted/pool.h`)
    rows    of a product's left operand, of kernels that have no member `M` but products
    work    multiplications and additions of one call, by which it is decided how many threads it is worth; 0: one
    sized   sizes known at build make its loops faster: threads call it in a function of the step, not as it is
    phases  the body has `oic_CALL_divided_types`, which does what comes first, and divides the rest
    then    it can hand its results, f32, to a function instead of storing them (`oic_then`): `passes/fuse_products.py`
    joins   and elementwise operators are better done that way: measured
    chooses it takes what such a kernel hands on, by `oic_CALL_then` between `oic_CALL_begin` and `oic_CALL_end`, not x
    """

    name: str
    types: Sequence[str] | Callable[[Any], Sequence[DType]]
    args: Callable[[Any], KernelArgs]
    call: str = ""
    fits: Callable[[Any], bool] = lambda op: True
    takes: Mapping[str, str] = field(default_factory=dict)
    stored: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    needs: frozenset[str] = frozenset()
    layouts: Mapping[str, int] = field(default_factory=dict)
    inplace: tuple[str, ...] = ()
    cost: Callable[[Any, Target], float] = lambda op, target: 0.0
    units: Callable[[Any], Dim] | None = None
    rows: Callable[[Any], Dim] | None = None
    work: Callable[[Any], Dim] = lambda op: 0
    sized: bool = False
    phases: bool = False
    then: bool = False
    joins: bool = False
    chooses: bool = False

    def reads(self, op: Any, encodings: Mapping[str, str]) -> bool:
        """The kernel takes operands of these encodings, by field; those not named are as their types say."""
        fields = {f: v for f in op.fields if isinstance(v := getattr(op, f), Value) and isinstance(v.type, TensorType)}
        found = {f: encodings.get(f, v.tensor.encoding) for f, v in fields.items()}
        layouts = all(layout_of(e) == self.takes.get(f, "") for f, e in found.items())
        return layouts and all(storage_of(e) in self.stored.get(f, ("",)) for f, e in found.items())

    def computes(self, op: Any) -> bool:
        """The kernel can compute the op as it is."""
        return self.fits(op) and self.reads(op, {})

    def dtypes(self, op: Any) -> tuple[DType, ...]:
        """The element types that the body is included for."""
        if callable(self.types):
            return tuple(self.types(op))
        return tuple(op.result.dtype if t == "result" else getattr(op, t).tensor.stored for t in self.types)

    def instance(self, op: Any) -> "Instance":
        """What generated code includes."""
        return Instance(f"kernels/{self.name}.h", tuple(d.name for d in self.dtypes(op)))

    def function(self, op: Any, of: str = "") -> str:
        """The C function, with its types; `of` it, a part."""
        name = (self.call or self.name).format(op=op.name)
        return "_".join([f"oic_{name}{of}", *(d.name for d in self.dtypes(op))])


MACROS = ("OIC_X", "OIC_W", "OIC_B")  # the element types, as a body reads them


@dataclass(frozen=True, order=True)
class Instance:
    """A body included for some element types; or a header, which has none."""

    file: str
    types: tuple[str, ...]

    def text(self, folder: str = "") -> str:
        """The lines that include it, from `folder` where all bodies lie in one.

        A body is included once in a unit that several libraries are compiled in.
        """
        name = self.file.rpartition("/")[2]
        include = f'#include "{folder}/{name}"\n' if folder else f'#include "{self.file}"\n'
        if not self.types:
            return include
        once = "_".join(["OIC_HAS", name.removesuffix(".h"), *self.types])
        given = "".join(f"#define {macro} {dtype}\n" for macro, dtype in zip(MACROS, self.types))
        return f"#ifndef {once}\n#define {once}\n{given}{include}#endif\n"

    @property
    def generated(self) -> str:
        """The lines in generated code, beside which all bodies lie in one folder."""
        return self.text("oic")
