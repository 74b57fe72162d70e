"""The syntax tree of a graph: what was written, with the span of every part.

Frozen dataclasses, one a construct of SPEC sections 1 and 5-8.  Nothing here is checked or
resolved; `parse` makes it, `check` refuses it, `lower` reads it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar, dataclass_transform

from oic.diagnostics import Source, Span, count_of
from oic.notebook import table


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
@dataclass(frozen=True)
class SyntaxNode:
    """What was written, and where; the span comes by name, behind what a class adds.  Classes of it are dataclasses."""

    span: Span = field(kw_only=True)

    def __init_subclass__(cls, **how: bool) -> None:
        dataclass(frozen=True, **how)(cls)


Found = TypeVar("Found", bound=SyntaxNode)

# ---------------------------------------------------------------- expressions


class Int(SyntaxNode):
    """An integer literal; its sign is part of it only inside a literal, not in an expression."""

    value: int


class Float(SyntaxNode):
    """A float literal, `inf` and `nan` included; `text` is how it was written."""

    value: float


class Str(SyntaxNode):
    value: str


class Bool(SyntaxNode):
    value: bool


class Name(SyntaxNode):
    """A name in an expression or attribute; what it means is decided where it is used."""

    name: str


class Unary(SyntaxNode):
    """`-x`."""

    operand: "Expr"


class Binary(SyntaxNode):
    """`a op b` with op one of + - * / %."""

    op: str
    left: "Expr"
    right: "Expr"


class ListOf(SyntaxNode):
    """`[a, b, c]` as a setting's value."""

    items: "tuple[Setting, ...]"


class Slice(SyntaxNode):
    """`a..b` in an access; a missing side is None.  An empty position is Slice(None, None)."""

    start: "Expr | None"
    end: "Expr | None"


Expr = Int | Name | Unary | Binary
Literal = Int | Float | Str | Bool
Setting = Expr | Float | Str | Bool | ListOf
Index = Expr | Slice


class Unknown(SyntaxNode):
    """The dimension `?`."""


Dim = Expr | Unknown

# ---------------------------------------------------------------- declarations


class Argument(SyntaxNode):
    """One argument of an attribute: positional (`key` None) or `key=value`."""

    key: str | None
    value: Setting


class Attribute(SyntaxNode):
    """`@name(args)`; a bare `pattern("…")` is one too.  `parens` tells `@entry` from `@entry()`."""

    name: str
    args: tuple[Argument, ...]
    parens: bool
    name_span: Span


class Declaration(SyntaxNode):
    """A variable of a section, or the temporary of an `assign` (kind 'temporary').

    kind     'dynamic', 'constant', 'volatile', 'persistent' or 'temporary'
    indices  index names of `W(l)`; None where no parentheses were written
    dtype    name as written
    head_span covers the name and its indices
    """

    kind: str
    name: str
    indices: tuple[Name, ...] | None
    dtype: str
    dims: tuple[Dim, ...]
    attributes: tuple[Attribute, ...]
    name_span: Span
    dtype_span: Span
    type_span: Span
    head_span: Span


class SizeDef(SyntaxNode):
    """`H = 8;` of a `sizes` section."""

    name: str
    value: Expr
    name_span: Span


# ---------------------------------------------------------------- statements


class Access(SyntaxNode):
    """A variable as operand, source or destination: `x`, or `x[i, a..b]`.

    indices   None where no brackets were written; () for `x[]`
    """

    name: str
    indices: tuple[Index, ...] | None
    name_span: Span


Operand = Access | Int | Float | Bool


class Keyword(SyntaxNode):
    """`key=value` of an `op`: a setting or an optional operand; the signature says which."""

    key: str
    value: Setting | Access
    key_span: Span


class SourceStatement(SyntaxNode):
    """What ends in `;`, or a loop."""

    @property
    def word(self) -> str:
        """The word that it begins with."""
        return type(self).__name__.lower()

    @property
    def shown(self) -> Span:
        """The part that messages point at."""
        return self.span


class Assign(SourceStatement):
    declaration: Declaration


class OpCall(SourceStatement):
    """`op name(a, b, key=value) >> r, s;`  A literal among the operands carries its sign."""

    name: str
    operands: tuple[Operand, ...]
    keywords: tuple[Keyword, ...]
    results: tuple[Access, ...]
    name_span: Span


class Transfer(SourceStatement):
    source: Access
    target: Access


class Loop(SourceStatement):
    tag: str
    index: Name
    start: Expr
    end: Expr
    body: tuple[SourceStatement, ...]
    head_span: Span

    @property
    def shown(self) -> Span:
        return self.head_span


class Branch(SourceStatement):
    """`branch c yes no;` or `branch blk;` (condition None, targets of one name)."""

    condition: Name | None
    targets: tuple[Name, ...]


class Return(SourceStatement):
    """`return;`"""


class Barrier(SourceStatement):
    """`barrier;`"""


class Dep(SourceStatement):
    """`dep after(x) before(y);` with operator names or `cache.read` and the like."""

    after: Name
    before: Name


class HandOver(SourceStatement):
    """Variables that pass from an entry to its consumers: a `yield`, or the `await` of one that takes them."""

    names: tuple[Name, ...]

    @property
    def named(self) -> set[str]:
        return {name.name for name in self.names}


class Yield(HandOver):
    """`yield a, b;`"""


class Await(HandOver):
    """`await a, b;`"""


class CacheRead(SourceStatement):
    """`cache.read K[i] >> x;`"""

    source: Access
    target: Access
    word = "cache.read"


class CacheWrite(SourceStatement):
    """`cache.write x >> K[i];`"""

    source: Access
    target: Access
    word = "cache.write"


class CacheStep(SourceStatement):
    """`cache.increment [n] s;` (sign 1) or `cache.decrement [n] s;` (sign -1)."""

    sign: int
    amount: Expr | None
    target: Access

    @property
    def word(self) -> str:
        return "cache.increment" if self.sign > 0 else "cache.decrement"


class CacheReset(SourceStatement):
    """`cache.reset K[i];`"""

    target: Access
    word = "cache.reset"


class Block(SyntaxNode):
    """`block name @entry(N=1) { … }`."""

    name: str
    attributes: tuple[Attribute, ...]
    body: tuple[SourceStatement, ...]
    name_span: Span


class Graph(SyntaxNode, repr=False):
    """A whole file.  `name` is the one written, else the stem of the file's name."""

    name: str
    sizes: tuple[SizeDef, ...]
    declarations: tuple[Declaration, ...]
    blocks: tuple[Block, ...]
    source: Source

    encoder: "ClassVar[Callable[[Graph], dict[str, Any]]]"
    decoder: "ClassVar[Callable[[dict[str, Any] | str], Graph]]"
    """Set by `syntax.graph_json`, which needs the parser, and the parser these classes."""

    def __repr__(self) -> str:
        variables, blocks = count_of(len(self.declarations), "variable"), count_of(len(self.blocks), "block")
        return f"<Graph {self.name!r}: {variables}, {blocks}>"

    def _repr_html_(self) -> str:
        rows = [
            (d.kind, d.head_span.text, d.type_span.text, " ".join(a.span.text for a in d.attributes))
            for d in self.declarations
        ]
        return table(repr(self)[1:-1], ("kind", "name", "type", "attributes"), rows)

    def to_json(self) -> dict[str, Any]:
        """The graph as plain data for `json` (see `syntax.graph_json`)."""
        return type(self).encoder(self)

    @classmethod
    def from_json(cls, data: dict[str, Any] | str) -> "Graph":
        """The graph that `to_json` gave.  Raises OicError `graph-json` for anything else."""
        return cls.decoder(data)


def walk(statements: tuple[SourceStatement, ...]) -> Iterator[SourceStatement]:
    """Every statement in source order, those inside loops included."""
    for statement in statements:
        yield statement
        if isinstance(statement, Loop):
            yield from walk(statement.body)


def nodes_in(value: object, kind: type[Found]) -> Iterator[Found]:
    """Every node of a kind in an expression, index or list, the outer ones first."""
    if isinstance(value, kind):
        yield value
    if isinstance(value, (SyntaxNode, tuple)):
        for part in value if isinstance(value, tuple) else vars(value).values():
            yield from nodes_in(part, kind)


def names_in(value: object) -> Iterator[Name]:
    """Every name in an expression, index or list; not the variable of an access."""
    return nodes_in(value, Name)


def attribute(of: Declaration | Block, name: str) -> Attribute | None:
    """The attribute of this name (the first), or None."""
    return next((a for a in of.attributes if a.name == name), None)
