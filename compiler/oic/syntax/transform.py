"""From Lark's tree to the syntax tree: one method a grammar rule, or a terminal that is a name or literal.

Every rule's children are all its tokens and parts, so a node's span runs from the first to the
last.  What the grammar lets through and the language does not is collected in `errors`.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import dropwhile, pairwise
from pathlib import PurePath
from typing import Any, TypeVar

from lark import Token
from lark.visitors import Transformer_NonRecursive

from oic.diagnostics import Diagnostic, Note, Source, Span, cut
from oic.syntax import tree as s
from oic.syntax.text import ESCAPES

DEEPEST_EXPRESSION = 100
DEEPEST_LOOP = 32
LARGEST_INTEGER = (1 << 64) - 1

Made = TypeVar("Made", bound=s.SyntaxNode)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


class _Type(s.SyntaxNode):
    dtype: str
    dims: tuple[s.Dim, ...]
    dtype_span: Span


class _Several(s.SyntaxNode):
    """Parts in brackets: indices, dimensions, arguments, positions."""

    items: tuple[Any, ...]


def _of_parts(kind: Callable[..., Made]) -> "Callable[[TreeBuilder, list[Any]], Made]":
    """The method of a rule whose node is made of the parts that are no tokens."""

    def made(self: "TreeBuilder", parts: list[Any]) -> Made:
        return kind(*_nodes(parts), span=self._whole(parts))

    return made


class TreeBuilder(Transformer_NonRecursive[Token, s.Graph]):
    """Makes the syntax tree of one source; use it once."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.source = source
        self.errors: list[Diagnostic] = []
        self._depths: dict[int, tuple[int, Any]] = {}  # with the node: while it lives, no other has its identity
        self._too_deep: dict[int, Diagnostic] = {}  # by the limit: what is said of the first

    # ------------------------------------------------------------ spans and lists

    def _span(self, part: Any) -> Span:
        if isinstance(part, Token):
            assert part.start_pos is not None and part.end_pos is not None
            return Span(self.source, part.start_pos, part.end_pos)
        span: Span = part.span
        return span

    def _whole(self, parts: list[Any]) -> Span:
        return self._span(parts[0]).to(self._span(parts[-1]))

    def _several(self, parts: list[Any]) -> _Several:
        return _Several(_nodes(parts), span=self._whole(parts))

    sizes = declaration = indices = dims = arguments = operands = results = _several

    def _error(self, slug: str, message: str, span: Span, *notes: Note, hint: str | None = None) -> None:
        self.errors.append(Diagnostic(slug, message, span, "", notes, hint))

    def _limited(self, node: Any, inner: Iterable[Any], limit: int, what: str, otherwise: Any) -> Any:
        """The node, noting how deep it nests; beyond the limit another, and one error for all kinds with this limit."""
        depth = 1 + max((self._depth(part) for part in inner), default=0)
        if depth > limit:
            told = Diagnostic("nesting-depth", f"{what} nested more than {limit} deep", node.span)
            first = self._too_deep.setdefault(limit, told)
            if first is told:
                self.errors.append(told)
            elif first.span and node.span.start <= first.span.start and first.span.end <= node.span.end:
                self.errors[self.errors.index(first)] = self._too_deep[limit] = told
            node = otherwise
        self._depths[id(node)] = depth, node
        return node

    def _depth(self, node: Any) -> int:
        return self._depths.get(id(node), (0,))[0]

    # ------------------------------------------------------------ graph and sections

    def graph(self, parts: list[Any]) -> s.Graph:
        written = (p.name for p in parts if isinstance(p, s.Name))
        inner = [item for section in parts if isinstance(section, _Several) for item in section.items]
        return s.Graph(
            next(written, PurePath(self.source.name).stem),
            tuple(i for i in inner if isinstance(i, s.SizeDef)),
            tuple(i for i in inner if isinstance(i, s.Declaration)),
            tuple(p for p in parts if isinstance(p, s.Block)),
            self.source, span=self._whole(parts) if parts else Span(self.source, 0, 0),
        )  # fmt: skip

    def size(self, parts: list[Any]) -> s.SizeDef:
        name, value = _nodes(parts)
        return s.SizeDef(name.name, value, name.span, span=self._whole(parts))

    def section(self, parts: list[Any]) -> _Several:
        made = tuple(self._declaration(str(parts[0]), p.items) for p in parts[2:-1])
        return _Several(made, span=self._whole(parts))

    def _declaration(self, kind: str, parts: tuple[Any, ...]) -> s.Declaration:
        """A variable from `NAME [indices] type attribute*`."""
        name, *rest = parts
        indices = rest.pop(0) if isinstance(rest[0], _Several) else None
        type_, *attributes = rest
        head, whole = name.span.to((indices or name).span), name.span.to(parts[-1].span)
        return s.Declaration(
            kind, name.name, indices and indices.items, type_.dtype, type_.dims, tuple(attributes),
            name.span, type_.dtype_span, type_.span, head, span=whole,
        )  # fmt: skip

    def element_type(self, parts: list[Any]) -> _Type:
        name, *dims = parts
        return _Type(name.name, dims[0].items if dims else (), name.span, span=self._whole(parts))

    unknown = _of_parts(s.Unknown)

    def attribute(self, parts: list[Any]) -> s.Attribute:
        name, *given = _nodes(parts)
        args = given[0].items if given else ()
        if name.name == "ref":
            args = tuple(_quoted(arg) for arg in args)
        return s.Attribute(name.name, args, bool(given), name.span, span=self._whole(parts))

    def argument(self, parts: list[Any]) -> s.Argument:
        *key, value = _nodes(parts)
        return s.Argument(key[0].name if key else None, _literal(value), span=self._whole(parts))

    def block(self, parts: list[Any]) -> s.Block:
        name, *rest = _nodes(parts)
        attributes = tuple(p for p in rest if isinstance(p, s.Attribute))
        return s.Block(name.name, attributes, tuple(rest[len(attributes) :]), name.span, span=self._whole(parts))

    # ------------------------------------------------------------ statements

    def assign(self, parts: list[Any]) -> s.Assign:
        return s.Assign(self._declaration("temporary", _nodes(parts)), span=self._whole(parts))

    def call(self, parts: list[Any]) -> s.OpCall:
        name, operands, results = _nodes(parts)
        keywords = tuple(p for p in operands.items if isinstance(p, s.Keyword))
        for operand in dropwhile(lambda operand: not isinstance(operand, s.Keyword), operands.items):
            if not isinstance(operand, s.Keyword):
                what, first = f"operand '{operand.span.text}' comes after a setting", keywords[0].span
                hint, note = "operands come first, then settings", Note(first, "the first setting")
                self._error("operand-after-setting", what, operand.span, note, hint=hint)
        plain = tuple(p for p in operands.items if not isinstance(p, s.Keyword))
        return s.OpCall(name.name, plain, keywords, results.items, name.span, span=self._whole(parts))

    def keyword(self, parts: list[Any]) -> s.Keyword:
        key, value = _nodes(parts)
        return s.Keyword(key.name, _literal(value), key.span, span=self._whole(parts))

    def loop(self, parts: list[Any]) -> s.SourceStatement:
        tag, index, start, end, *body = _nodes(parts)
        head = self._whole(parts[: parts.index("{")])
        made = s.Loop(tag.name, index, start, end, tuple(body), head, span=self._whole(parts))
        return self._limited(made, body, DEEPEST_LOOP, "loops are", s.Barrier(span=made.span))

    def branch(self, parts: list[Any]) -> s.Branch:
        names = _nodes(parts)
        span = self._whole(parts)
        if len(names) not in (1, 3):
            what = f"'branch' takes one block, or a condition and two blocks, but {len(names)} names are given"
            self._error("branch-arity", what, span, hint="write 'branch block;' or 'branch condition yes no;'")
        condition, targets = (None, names) if len(names) == 1 else (names[0], names[1:])
        return s.Branch(condition, targets, span=span)

    def yields(self, parts: list[Any]) -> s.Yield:
        return s.Yield(_nodes(parts), span=self._whole(parts))

    def awaits(self, parts: list[Any]) -> s.Await:
        return s.Await(_nodes(parts), span=self._whole(parts))

    def cache_step(self, parts: list[Any]) -> s.CacheStep:
        sign = 1 if parts[0].type == "CACHE_INCREMENT" else -1
        *amount, target = _nodes(parts)
        return s.CacheStep(sign, amount[0] if amount else None, target, span=self._whole(parts))

    transfer, returns, barrier, dep = map(_of_parts, (s.Transfer, s.Return, s.Barrier, s.Dep))
    cache_read, cache_write, cache_reset = map(_of_parts, (s.CacheRead, s.CacheWrite, s.CacheReset))

    # ------------------------------------------------------------ accesses

    def element(self, parts: list[Any]) -> s.Access:
        name, *positions = _nodes(parts)
        return s.Access(name.name, positions[0].items if positions else None, name.span, span=self._whole(parts))

    variable = element

    def positions(self, parts: list[Any]) -> _Several:
        """The indices of an access; one left empty beside a comma is a full slice."""
        if not parts:
            return _Several((), span=Span(self.source, 0, 0))
        found: list[Any] = []
        for before, part in pairwise([None, *parts, None]):
            if isinstance(part, s.SyntaxNode):
                found.append(part)
            elif not isinstance(before, s.SyntaxNode):
                found.append(s.Slice(None, None, span=self._span(part or before)))
        return _Several(tuple(found), span=self._whole(parts))

    def range(self, parts: list[Any]) -> s.Slice:
        start = None if isinstance(parts[0], Token) else parts[0]
        end = None if isinstance(parts[-1], Token) else parts[-1]
        return s.Slice(start, end, span=self._whole(parts))

    # ------------------------------------------------------------ expressions and literals

    def binary(self, parts: list[Any]) -> s.Expr:
        left, op, right = parts
        return self._expression(s.Binary(str(op), left, right, span=self._whole(parts)), parts)

    def negative(self, parts: list[Any]) -> s.Expr:
        return self._expression(s.Unary(parts[1], span=self._whole(parts)), parts)

    def _expression(self, made: s.Expr, parts: list[Any]) -> s.Expr:
        return self._limited(made, parts, DEEPEST_EXPRESSION, "expression is", s.Int(1, span=made.span))

    def group(self, parts: list[Any]) -> s.Expr:
        inner: s.Expr = replace(parts[1], span=self._whole(parts))
        self._depths[id(inner)] = self._depth(parts[1]), inner
        return inner

    def negated(self, parts: list[Any]) -> s.Int | s.Float:
        """`-2` as an operand, `-0.5` and `-inf`."""
        return replace(parts[1], value=-parts[1].value, span=self._whole(parts))

    def NAME(self, token: Token) -> s.Name:
        return s.Name(str(token), span=self._span(token))

    PATTERN = MATCHED = NAME

    def INT(self, token: Token) -> s.Int:
        value, span = _integer(str(token)), self._span(token)
        if value is None or value > LARGEST_INTEGER:
            problem = "has no digits" if value is None else "does not fit 64 bits"
            self._error("integer-range", f"integer literal '{cut(str(token), 24, 20)}' {problem}", span)
            value = 1
        return s.Int(value, span=span)

    def FLOAT(self, token: Token) -> s.Float:
        return s.Float(float(token.replace("_", "")), span=self._span(token))

    FLOAT_WORD = FLOAT

    def STRING(self, token: Token) -> s.Str:
        span, text = self._span(token), str(token)[1:-1]
        for escape in _ESCAPE.finditer(text):
            if escape[1] not in ESCAPES:
                what, at = f"unknown escape '{escape[0]}' in a string", span.start + 1 + escape.start()
                place = Span(self.source, at, at + 2)
                self._error("string-escape", what, place, hint=r"write '\\' for a backslash")
        return s.Str(_ESCAPE.sub(lambda m: ESCAPES.get(m[1], m[0]), text), span=span)

    def BOOL(self, token: Token) -> s.Bool:
        return s.Bool(token == "true", span=self._span(token))

    def list_of(self, parts: list[Any]) -> s.Setting:
        made = s.ListOf(tuple(map(_literal, _nodes(parts))), span=self._whole(parts))
        return self._limited(made, parts, DEEPEST_EXPRESSION, "list is", s.Int(1, span=made.span))


def _nodes(parts: list[Any]) -> tuple[Any, ...]:
    """The parts that are no tokens."""
    return tuple(p for p in parts if not isinstance(p, Token))


def _quoted(arg: s.Argument) -> s.Argument:
    """`@ref(name)` is `@ref("name")`."""
    if arg.key is None and isinstance(arg.value, s.Name):
        return replace(arg, value=s.Str(arg.value.name, span=arg.value.span))
    return arg


def _literal(value: Any) -> Any:
    """A setting's value: `-` before an integer is the literal's own sign."""
    if isinstance(value, s.Unary) and isinstance(value.operand, s.Int):
        return s.Int(-value.operand.value, span=value.span)
    return value


def _integer(text: str) -> int | None:
    """The value of an integer literal, or None for a prefix without digits; huge ones are cut."""
    base = {"0x": 16, "0o": 8, "0b": 2}.get(text[:2].lower(), 10)
    digits = text.replace("_", "")[2 if base != 10 else 0 :]
    if len(digits.lstrip("0")) > 64:
        return LARGEST_INTEGER + 1
    return int(digits, base) if digits else None
