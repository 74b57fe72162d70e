"""Generated C as values: types, expressions, statements.  `c_print` gives them their text.

Expressions never change; the statements of a function are added to a `Body`.  Neither are `frozen`: a
program has some hundred thousand of them, and members that are set past a guard take three times as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import cache, lru_cache, reduce
from typing import Any, dataclass_transform

# ---------------------------------------------------------------- types


@dataclass(frozen=True)
class Pointer:
    """`float *`, or `const float *` where what it points to is const; `restrict`: nothing else leads there."""

    to: str
    const: bool = False
    restrict: bool = False


@dataclass(frozen=True)
class Array:
    """Elements of a type; None: as many as its value has."""

    of: Type
    size: int | None = None


Type = str | Pointer | Array

# ---------------------------------------------------------------- expressions


@dataclass_transform(field_specifiers=(field,))
class _Node:
    """Classes made of this one are dataclasses with hashes."""

    def __init_subclass__(cls) -> None:
        dataclass(unsafe_hash=True)(cls)


class Expression(_Node):
    """An expression."""


class Identifier(Expression):
    """A variable, or what is declared outside functions."""

    text: str


class Literal(Expression):
    """A number without a sign, a string, or a macro that is such a constant."""

    text: str


class Conversion(Expression):
    """A value as another type."""

    type: Type
    value: Expression


class Prefix(Expression):
    """`-x`, `!x`, `*p`, `&x`."""

    op: str
    value: Expression


class Infix(Expression):
    """`left op right`."""

    op: str
    left: Expression
    right: Expression


class Conditional(Expression):
    """`test ? then : otherwise`."""

    test: Expression
    then: Expression
    otherwise: Expression


class FunctionCall(Expression):
    """A function or macro with its arguments."""

    function: str
    args: tuple[Expression, ...]


class Member(Expression):
    """`of->name`, or `of.name`."""

    of: Expression
    name: str
    arrow: bool = True


class Element(Expression):
    """`of[index]`."""

    of: Expression
    index: Expression


class Braces(Expression):
    """`{a, b}` or `{.x = a, .y = b}`; with a type, a compound literal `(type){a, b}`.

    rows   the value of a declaration, an item a line
    """

    items: tuple[Expression, ...]
    names: tuple[str, ...] = ()
    type: Type | None = None
    const: bool = False
    rows: bool = False


class BracedRow(Expression):
    """An item of `rows`, with a comment above it or after it."""

    value: Expression
    above: str = ""
    note: str = ""


NULL, ZERO, ONE = Literal("NULL"), Literal("0"), Literal("1")


@lru_cache(1 << 12)
def integer(value: int) -> Expression:
    """A small number."""
    return Literal(str(value)) if value >= 0 else Prefix("-", Literal(str(-value)))


def string(text: str) -> Literal:
    """A name from the source, as a string."""
    return Literal(f'"{text}"')


def call(function: str, *args: Expression | int) -> FunctionCall:
    """A call; numbers among its arguments may be plain."""
    return FunctionCall(function, tuple(integer(a) if isinstance(a, int) else a for a in args))


def joined(op: str, parts: Iterable[Expression]) -> Expression:
    """`a op b op c`."""
    return reduce(lambda left, right: Infix(op, left, right), parts)


def total(*parts: Expression) -> Expression:
    """The sum of integers, or of a pointer and integers, without zeros."""
    found = [p for p in parts if p != ZERO]
    return reduce(_plus, found) if found else ZERO


def _plus(left: Expression, right: Expression) -> Expression:
    if isinstance(right, Infix) and right.op in "+-":
        return Infix(right.op, _plus(left, right.left), right.right)
    return Infix("+", left, right)


def times(left: Expression, right: Expression | int) -> Expression:
    """The product of integers."""
    right = integer(right) if isinstance(right, int) else right
    if right == ONE:
        return left
    if isinstance(right, Infix) and right.op == "*":
        return Infix("*", times(left, right.left), right.right)
    return Infix("*", left, right)


def sizeof(type_: str) -> Expression:
    """The bytes of an element."""
    return FunctionCall("sizeof", (Identifier(type_),))


# ---------------------------------------------------------------- statements


class Statement(_Node):
    """A statement."""


class Declare(Statement):
    """A variable, a member or a parameter.

    const     the variable itself; of a pointer, the address
    optional  without effect: dropped where nothing uses the name
    """

    type: Type
    name: str
    value: Expression | None = None
    const: bool = False
    static: bool = False
    optional: bool = False
    note: str = ""


class AssignStatement(Statement):
    """`target = value;`"""

    target: Expression
    value: Expression
    note: str = ""


class Do(Statement):
    """A call, or another expression for its effect."""

    value: Expression
    note: str = ""


class ReturnStatement(Statement):
    """`return value;`"""

    value: Expression | None = None


class Break(Statement):
    """`break;`"""


class Comment(Statement):
    """Comments before what was made of some source statements; none: an empty line.

    done  they say what was done before: with nothing below them they stay, as others do not
    """

    lines: tuple[str, ...]
    done: bool = False


class IfStatement(Statement):
    """A branch."""

    test: Expression
    body: list[Statement] = field(default_factory=list)
    orelse: list[Statement] = field(default_factory=list)
    note: str = ""


class ForStatement(Statement):
    """`for (type name = start; test; ++name)`."""

    type: str
    name: str
    start: Expression
    test: Expression
    body: list[Statement] = field(default_factory=list)


class Enclosed(Statement):
    """`{ … }`: what is declared in it ends with it, and leaves its memory to what follows."""

    body: list[Statement] = field(default_factory=list)


class Once(Statement):
    """`do { … } while (0);`, which a `break` leaves."""

    body: list[Statement] = field(default_factory=list)


def parts(of: Expression | Statement) -> list[Expression]:
    """The expressions that an expression or a statement is made of; of nested statements none."""
    found: list[Expression] = []
    for name, several in _parts(type(of)):  # type: ignore[arg-type]  # types have hashes
        value = getattr(of, name)
        if several:
            found += value
        elif value is not None:
            found.append(value)
    return found


@cache
def _parts(kind: Any) -> list[tuple[str, bool]]:
    """The members that are expressions, and whether they are tuples of them."""
    types = ((f.name, str(f.type)) for f in fields(kind))
    return [(name, shown.startswith("tuple")) for name, shown in types if "Expr" in shown]


@cache
def block_names(kind: Any) -> list[str]:
    """The members of a statement that are lists of statements."""
    return [f.name for f in fields(kind) if str(f.type).startswith("list")]


def walk(value: Expression) -> list[Expression]:
    """An expression and all that it is made of."""
    found = [value]
    for one in found:
        if not isinstance(one, Identifier | Literal):
            found += parts(one)
    return found


class Body:
    """The statements of a function while they are written."""

    def __init__(self) -> None:
        self.statements: list[Statement] = []
        self.now = self.statements  # the innermost block that is being written

    def add(self, statement: Statement | Expression) -> None:
        """One more statement; an expression is one for its effect."""
        self.now.append(statement if isinstance(statement, Statement) else Do(statement))

    def declare(self, type_: Type, name: str, value: Expression, note: str = "") -> None:
        """A constant, dropped if nothing uses the name."""
        self.add(Declare(type_, name, value, const=True, optional=True, note=note))

    @contextmanager
    def within(self, block: list[Statement]) -> Iterator[None]:
        """What is added inside goes into a block of a statement."""
        around, self.now = self.now, block
        yield
        self.now = around

    @contextmanager
    def inside(self, statement: IfStatement | ForStatement | Enclosed | Once) -> Iterator[None]:
        """Add a statement; what is added inside goes into its block."""
        self.add(statement)
        with self.within(statement.body):
            yield
