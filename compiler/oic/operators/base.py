"""What every operator of the catalog (OPS) shares: C form, error bound, common type rules.

An operator is one class:

    class Softmax(Operator, name="softmax"):
        \"\"\"First line for `oic ops`; operands, settings, numerics below.\"\"\"

        x: Value                        operands, in order; `Value | None = None` optional, by name
        axis: int = -1                  settings with defaults; `float | Value` may be a variable

        allowed = FLT                   element types of x, the first operand
        examples = (("f32[2, 3]",), ("f16[5]", "axis=0"))     what the tests try
        def infer(self) -> list[Type]: ...
        def reference(self, x): ...     arrays in the dtype they are computed in (f16 -> f32, i4 -> i8)
        kernels = (Kernel(…),)        or `c = Scalar()`, and `inplace`, for elementwise ones
        def tolerance(self, y, *inputs) -> Array: ...        absolute, per element of the result

`reference` returns one array or a list; the interpreter rounds or wraps it once to the result's
dtype.  Optional operands come as None when absent.  Settings that are run-time values have been
replaced by plain numbers before it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from oic.dtypes import ALL, FLT, NUM, Array, DType, f32, i32
from oic.ir.core import Field, Op, OpError, Value
from oic.ir.dims import Dim
from oic.ir.types import TensorType, Type
from oic.kernels.kernel import Instance, Kernel, KernelArgs, Out, Scratch
from oic.kernels.targets import Target
from oic.operators.settings import accumulated, range_checks, require_kinds, require_number

BROADCAST = (("[2, 3]", "[3]", ""), ("[4, 1, 3]", "[2, 3]", "[3]"), ("", "[5]", ""), ("[0, 3]", "[3]", "[3]"))
NINE = ("[9]",) * 3
"""Shapes of the examples of elementwise operators, of up to three operands."""


@dataclass(frozen=True)
class Product:
    """A product of rows with a matrix.

    x     the rows
    w     the matrix
    axis  of the matrix, 0 or 1, that numbers the results of a row
    b     what is added to each row of results
    of    the same product with another matrix and another b
    """

    x: Value
    w: Value
    axis: int
    b: Value | None
    of: Callable[[Value, Value | None], Operator]


@dataclass(frozen=True)
class Scalar:
    """C form of an elementwise operator: a call `NAME_<dtype>(operands…, settings…)` on one element.

    args    fields of the op, passed in order; default: every operand, then every numeric attribute.  A
            setting has the computed type of the operand `by`: a literal of it, a variable of another type
            cast to it
    name    prefix of the runtime function, default: `oic_` and the operator's; its dtype suffix is that of the
            *computed* type of the operand number `by` (f32 for narrow floats; its own name for every other type)
    infix   C operator that may be written instead where that type is f32 or f64: "+" gives `a + b`
    by      -1: the result decides; None: `name` is complete
    wide    those of `args` that are passed as int64_t, whatever the computed type
    file    below runtime_c, that defines it; "": that of the arithmetic of the type `by`
    bare    the argument is the element: no function is called
    of      element type that the file is included for; None with a file: it is a header
    """

    args: tuple[str, ...] | None = None
    name: str = ""
    infix: str | None = None
    by: int | None = 0
    wide: tuple[str, ...] = ()
    file: str = ""
    of: DType | None = None
    bare: bool = False

    def function(self, op: Operator) -> str:
        """The full name of the C function for the types of this op."""
        name = self.name or f"oic_{op.name}"
        return name if self.by is None else f"{name}_{self.decides(op)}"

    def instance(self, op: Operator) -> Instance:
        """What defines the function."""
        if self.file:
            return Instance(self.file, (self.of.name,) if self.of else ())
        dtype = self.decides(op)
        if not dtype.is_int and not dtype.is_float:
            return Instance("math/scalar_bool.h", ())
        return Instance("math/scalar_int.h" if dtype.is_int else "math/scalar_float.h", (dtype.name,))

    def passed(self, op: Operator) -> Sequence[str]:
        """The fields that become arguments."""
        return self.args or [name for name in op.fields if isinstance(op.number(name), (int, float, Value))]

    def decides(self, op: Op) -> DType:
        """The computed type of the operand `by`, in which settings are passed, too."""
        return (op.result if self.by == -1 else op.operands[self.by or 0]).dtype.computed


@dataclass(frozen=True)
class Call:
    """One call of a kernel.

    function  its C name, with its element types
    instance  the body that defines it, and the element types it is included for
    members   what is given of its argument struct, by name (`kernels.kernel.KernelArgs`)
    """

    function: str
    instance: Instance
    members: KernelArgs

    @property
    def scratch(self) -> list[Scratch]:
        """Its working memory, in the order of the members."""
        return [part for part in self.members.values() if isinstance(part, Scratch)]


class Operator(Op):
    """Base of the operators of OPS.

    allowed  what the first operand may be whose dtype is not its `own`; of an operator without operands, the result
    kernels  the ways to compute it; for operators that are not elementwise
    c        of those that are; may be a property, where the function depends on more than one dtype
    long     an element is a chain of tens of operations, each of which waits for the one before
    derived  settings and optional operands that are the compiler's own: no source may give them
    own      operands whose dtype does not go with that of the others: what a literal there is
    scalars  optional operands that may be an integer expression as well
    gives    the result's dtype, of elementwise operators; None: that of the first operand
    words    what settings that are words may be
    numbers  settings that are numbers of the first operand's kind; of elementwise operators
    usual    what settings are that are not given, by the dtype of the first operand
    tensors  settings that may also be an integer variable of several elements
    unread   operands that give their shape alone: their elements are not read
    selects  operands of which only as many elements are read as the result has
    renamed  fields that have another name in source: field by that name
    of       the function of NumPy that is the meaning, where it takes no more to say it
    """

    catalog = True
    allowed: ClassVar[frozenset[DType]] = frozenset(ALL.values())
    examples: ClassVar[tuple[tuple[str, ...], ...]] = ()
    kernels: ClassVar[tuple[Kernel, ...]] = ()
    c: ClassVar[Scalar | None] = None
    long: ClassVar[bool] = False
    derived: ClassVar[tuple[str, ...]] = ()
    own: ClassVar[dict[str, DType]] = {}
    scalars: ClassVar[tuple[str, ...]] = ()
    gives: ClassVar[DType | None] = None
    words: ClassVar[dict[str, tuple[str, ...]]] = {}
    numbers: ClassVar[tuple[str, ...]] = ()
    usual: ClassVar[dict[str, Callable[[DType], Any]]] = {}
    tensors: ClassVar[tuple[str, ...]] = ()
    unread: ClassVar[tuple[str, ...]] = ()
    selects: ClassVar[tuple[str, ...]] = ()
    renamed: ClassVar[dict[str, str]] = {}
    of: ClassVar[Any] = None

    def result_types(self) -> list[Type]:
        require_kinds(self, self.words)
        first = next((k for k in positional(type(self)) if k not in self.own), None)
        if first is not None:
            self.require(first, self.allowed)
        return self.infer()

    def reference(self, *arrays: Any) -> Any:
        """The meaning, on NumPy arrays.  Called, as `tolerance` is, without NumPy's warnings."""
        assert self.of is not None, f"{self.name} has no reference"
        return self.of(*arrays)

    def expanded(self) -> tuple[list[Op], list[Value]] | None:
        """The ops that lowering puts in its place, and the values that are its results; None: itself."""
        return None

    def product(self) -> Product | None:
        """The product with a matrix that it is, where it is nothing else."""
        return None

    def with_epilogue(self, user: Operator) -> Operator | None:
        """The op of the results of `user`, which takes its result first, if there is (`passes/fuse_epilogues.py`)."""
        return None

    def flattens(self, target: Target) -> bool:
        """The operator can take its weights, w, as a matrix of rows (`passes/flatten_filters.py`), by its `flatten`."""
        return False

    def chosen(self) -> Kernel:
        """The kernel that computes it; as long as none is selected, the first that can."""
        fitting = (k for k in self.kernels if k.name == (self.kernel or k.name) and k.fits(self))
        found = next((k for k in fitting if self.kernel or k.reads(self, {})), None)
        assert found is not None, f"{self.name} has no kernel for these types and encodings"
        return found

    def overwritable(self) -> tuple[str, ...]:
        return self.chosen().inplace if self.kernels else () if self.gives else self.inplace

    def members(self, **more: Any) -> KernelArgs:
        """Members of a kernel's argument struct: the operands by their names, the result, and more."""
        own = ("operand", "optional")
        operands = {k: getattr(self, k) for k, f in self.fields.items() if f.kind in own and k not in self.derived}
        return {**operands, "y": Out(), **more}

    def call(self) -> Call:
        """The call of its kernel; for operators that are not elementwise."""
        kernel = self.chosen()
        members = {k: v for k, v in kernel.args(self).items() if v is not None and v != ()}
        return Call(kernel.function(self), kernel.instance(self), members)

    def number(self, where: str) -> Any:
        """What a field holds, or what is usual there."""
        given = getattr(self, where)
        return self.usual[where](self.operands[0].dtype) if given is None and where in self.usual else given

    def checks(self) -> list[Op]:
        """Ops to be put before this one that refuse data it must not see (ids out of range)."""
        return range_checks(self, self.operands[0].dtype, *self.numbers) if self.numbers else []

    def unsaid(self, given: Collection[str]) -> OpError | None:
        """A warning about a setting that is not among those given, where its default is a guess."""
        return None

    def operations(self) -> Dim:
        """Additions and multiplications of a run; where there are no products, one for each element."""
        first = next((v.tensor for v in self.operands if isinstance(v.type, TensorType)), self.results[0].tensor)
        return (self.results[0].tensor if self.elementwise or self.selects else first).size

    def tolerance(self, y: Array, *inputs: Any) -> Array | float:
        """Largest absolute difference allowed between C and reference, per element; 0: equal.

        Infinite where what is computed on the way may leave the range of its type: there is no bound then.
        """
        return 0.0

    def tensor(self, dtype: DType, shape: Sequence[Dim]) -> list[Type]:
        """The common case of `infer`: one result."""
        return [TensorType(dtype, tuple(shape))]


def positional(cls: type[Op]) -> list[str]:
    """Names of the operands given by position in source."""
    return [k for k, f in cls.fields.items() if f.kind in ("operand", "rest")]


class Elementwise(Operator):
    """Base of elementwise operators: operands of one dtype, broadcast, but for those that have their `own`.

    Those may be written over.  Its `examples` are shapes that are broadcast, and nine elements of every type that is
    allowed, all with the `setting` that has no default, and `more` of its own.
    """

    elementwise = True
    c = Scalar()
    allowed = NUM
    setting: ClassVar[str] = ""
    more: ClassVar[tuple[tuple[str, ...], ...]] = ()

    def __init_subclass__(cls, **traits: Any) -> None:
        super().__init_subclass__(**traits)
        assert "examples" not in vars(cls), "the examples of an elementwise operator follow; others are `more`"
        if "inplace" not in vars(cls):
            cls.inplace = tuple(name for name in positional(cls) if name not in cls.own)
        usual = f32 if f32 in cls.allowed else i32
        typed = [(usual, shapes) for shapes in BROADCAST] + [(d, NINE) for d in ALL.values() if d in cls.allowed]
        end = (cls.setting,) if cls.setting else ()
        tried = [(*(f"{cls.own.get(k, d)}{s}" for k, s in zip(positional(cls), shapes)), *end) for d, shapes in typed]
        cls.examples = (*tried, *cls.more)

    def infer(self) -> list[Type]:
        names = positional(type(self))
        first, *others = (name for name in names if name not in self.own)
        self.require_same_dtype(first, *others)
        shape, dtype = self.broadcast(*names), getattr(self, first).dtype
        for where in self.numbers:
            require_number(self, where, dtype)
        return self.tensor(self.gives or accumulated(self, dtype), shape)


class UnaryOperator(Elementwise):
    """Base of elementwise operators of one operand: result has its type."""

    x: Value
    allowed = FLT


class BinaryOperator(Elementwise):
    """Base of elementwise operators of two operands."""

    a: Value
    b: Value


def normal_axis(op: Op, axis: int, rank: int, where: str = "axis") -> int:
    """An axis in 0..rank-1; negative ones count from the end.  Refuses others."""
    if not isinstance(axis, int) or isinstance(axis, bool) or not -rank <= axis < rank:
        raise OpError("op-axis", f"axis {axis} does not exist in a tensor of rank {rank}", where)
    return axis % rank


def require_broadcast(op: Op, where: str, shape: Sequence[Dim]) -> None:
    """Refuse an operand of a higher rank, or of a size that is neither a static 1 nor the shape's."""
    value, sizes = getattr(op, where), getattr(op, where).shape
    if len(sizes) > len(shape):
        raise OpError("shape-mismatch", f"{value.type} does not broadcast to rank {len(shape)}", where)
    for axis in range(-1, -len(sizes) - 1, -1):
        if sizes[axis] != 1:
            op.require_dim(where, axis, shape[axis])


def is_float(op: Operator) -> bool:
    """The first operand is of floats."""
    return op.operands[0].dtype.is_float


def by_name(cls: type[Operator]) -> list[str]:
    """Names of the optional operands, given by `key=`."""
    return [k for k, f in cls.fields.items() if f.kind == "optional" and k not in cls.derived]


def settings(cls: type[Operator]) -> dict[str, Field]:
    """The settings that a source may give, by their names there."""
    own = (k for k, f in cls.fields.items() if f.kind == "attribute" and k not in cls.derived)
    return {in_source(cls, k): cls.fields[k] for k in own}


def in_source(cls: type[Operator], field_: str) -> str:
    """The name that a field has in source."""
    return next((source for source, own in cls.renamed.items() if own == field_), field_)


def from_source(cls: type[Operator], name: str) -> str:
    """The field that a name in source means."""
    return cls.renamed.get(name, name)
