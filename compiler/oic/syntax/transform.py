"""From Lark's tree to the syntax tree: one method a grammar rule.

Every rule's children are all its tokens and parts, so a node's span runs from the first to the
last.  What the grammar lets through and the language does not is collected in `errors`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import dropwhile
from pathlib import PurePath
from typing import Any, TypeVar

from lark import Token
from lark.visitors import Transformer_NonRecursive

from oic.diagnostics import Diagnostic, Note, Source, Span, cut
from oic.syntax import tree as s

DEEPEST_EXPRESSION = 100
DEEPEST_LOOP = 32
LARGEST_INTEGER = (1 << 64) - 1

Made = TypeVar("Made", bound=s.SyntaxNode)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\", '"': '"', "'": "'"}


class _Type(s.SyntaxNode):
    dtype: str
    dims: tuple[s.Dim, ...]
    dtype_span: Span


class _Several(s.SyntaxNode):
    """Parts in brackets: indices, dimensions, arguments, positions."""

    items: tuple[Any, ...]


def _of_parts(kind: Callable[..., Made]) -> Callable[[TreeBuilder, list[Any]], Made]:
    """The method of a rule whose node is made of the parts that are no tokens."""

    def made(self: TreeBuilder, parts: list[Any]) -> Made:
        return kind(*_nodes(parts), span=self._whole(parts))

    return made


def _of_names(kind: Callable[..., Made]) -> Callable[[TreeBuilder, list[Any]], Made]:
    """The method of a rule whose node is made of names."""

    def made(self: TreeBuilder, parts: list[Any]) -> Made:
        names = tuple(self._name(p) for p in parts if p.type == "NAME")
        return kind(names, span=self._whole(parts))

    return made


class TreeBuilder(Transformer_NonRecursive[Token, s.Graph]):
    """Makes the syntax tree of one source; use it once."""

    def __init__(self, source: Source) -> None:
        super().__init__(visit_tokens=False)
        self.source = source
        self.errors: list[Diagnostic] = []
        self._depths: dict[int, int] = {}
        self._too_deep: set[str] = set()

    # ------------------------------------------------------------ spans and lists

    def _span(self, part: Any) -> Span:
        if isinstance(part, Token):
            assert part.start_pos is not None and part.end_pos is not None
            return Span(self.source, part.start_pos, part.end_pos)
        span: Span = part.span
        return span

    def _whole(self, parts: list[Any]) -> Span:
        return self._span(parts[0]).to(self._span(parts[-1]))

    def _name(self, token: Token) -> s.Name:
        return s.Name(str(token), span=self._span(token))

    def _several(self, parts: list[Any]) -> _Several:
        return _Several(_nodes(parts), span=self._whole(parts))

    sizes = dims = arguments = operands = results = _several

    def _error(self, slug: str, message: str, span: Span, *notes: Note, hint: str | None = None) -> None:
        self.errors.append(Diagnostic(slug, message, span, "", notes, hint))

    def _limited(self, node: Any, inner: Iterable[Any], limit: int, what: str, otherwise: Any) -> Any:
        """The node, noting how deep it nests; beyond the limit another, with one error of each kind."""
        depth = 1 + max((self._depths.get(id(part), 0) for part in inner), default=0)
        if depth > limit:
            if what not in self._too_deep:
                self._error("nesting-depth", f"{what} nested more than {limit} deep", node.span)
            self._too_deep.add(what)
            return otherwise
        self._depths[id(node)] = depth
        return node

    # ------------------------------------------------------------ graph and sections

    def graph(self, parts: list[Any]) -> s.Graph:
        name = PurePath(self.source.name).stem
        if len(parts) > 1 and isinstance(parts[1], Token) and parts[1].type == "NAME":
            name = str(parts[1])
        sections = [p for p in parts if isinstance(p, _Several)]
        inner = [item for section in sections for item in section.items]
        return s.Graph(
            name,
            tuple(i for i in inner if isinstance(i, s.SizeDef)),
            tuple(i for i in inner if isinstance(i, s.Declaration)),
            tuple(p for p in parts if isinstance(p, s.Block)),
            self.source,
            span=self._whole(parts) if parts else Span(self.source, 0, 0),
        )

    def size(self, parts: list[Any]) -> s.SizeDef:
        return s.SizeDef(str(parts[0]), parts[2], self._span(parts[0]), span=self._whole(parts))

    def section(self, parts: list[Any]) -> _Several:
        kind = str(parts[0])
        made = tuple(self._declaration(kind, p.items) for p in parts[2:-1])
        return _Several(made, span=self._whole(parts))

    def declaration(self, parts: list[Any]) -> _Several:
        return _Several(tuple(parts[:-1]), span=self._whole(parts))

    def _declaration(self, kind: str, parts: tuple[Any, ...]) -> s.Declaration:
        """A variable from `NAME [indices] ":" type attribute*`."""
        name = self._span(parts[0])
        indices = parts[1] if isinstance(parts[1], _Several) else None
        type_ = next(p for p in parts if isinstance(p, _Type))
        return s.Declaration(
            kind=kind,
            name=str(parts[0]),
            indices=None if indices is None else tuple(self._name(i) for i in indices.items),
            dtype=type_.dtype,
            dims=type_.dims,
            attributes=tuple(p for p in parts if isinstance(p, s.Attribute)),
            span=name.to(self._span(parts[-1])),
            name_span=name,
            dtype_span=type_.dtype_span,
            type_span=type_.span,
            head_span=name if indices is None else name.to(indices.span),
        )

    def indices(self, parts: list[Any]) -> _Several:
        names = tuple(p for p in parts if isinstance(p, Token) and p.type == "NAME")
        return _Several(names, span=self._whole(parts))

    def element_type(self, parts: list[Any]) -> _Type:
        dims = parts[1].items if len(parts) > 1 else ()
        return _Type(str(parts[0]), dims, self._span(parts[0]), span=self._whole(parts))

    unknown = _of_parts(s.Unknown)

    def attribute(self, parts: list[Any]) -> s.Attribute:
        name = parts[0] if parts[0].type == "PATTERN" else parts[1]
        given = next((p for p in parts if isinstance(p, _Several)), None)
        args = given.items if given else ()
        if name == "ref":
            args = tuple(_quoted(arg) for arg in args)
        return s.Attribute(str(name), args, given is not None, self._span(name), span=self._whole(parts))

    def argument(self, parts: list[Any]) -> s.Argument:
        key = str(parts[0]) if len(parts) == 3 else None
        return s.Argument(key, _literal(parts[-1]), span=self._whole(parts))

    def block(self, parts: list[Any]) -> s.Block:
        attributes = tuple(p for p in parts if isinstance(p, s.Attribute))
        body = tuple(parts[3 + len(attributes) : -1])
        return s.Block(str(parts[1]), attributes, body, self._span(parts[1]), span=self._whole(parts))

    # ------------------------------------------------------------ statements

    def assign(self, parts: list[Any]) -> s.Assign:
        made = self._declaration("temporary", tuple(parts[1:-1]))
        return s.Assign(made, span=self._whole(parts))

    def call(self, parts: list[Any]) -> s.OpCall:
        operands, results = parts[2].items, parts[4].items
        keywords = tuple(p for p in operands if isinstance(p, s.Keyword))
        for operand in dropwhile(lambda operand: not isinstance(operand, s.Keyword), operands):
            if not isinstance(operand, s.Keyword):
                self._error(
                    "operand-after-setting",
                    f"operand '{operand.span.text}' comes after a setting",
                    operand.span,
                    Note(keywords[0].span, "the first setting"),
                    hint="operands come first, then settings",
                )
        plain = tuple(p for p in operands if not isinstance(p, s.Keyword))
        return s.OpCall(
            str(parts[1]), plain, keywords, results, self._span(parts[1]), span=self._whole(parts)
        )

    def literal(self, parts: list[Any]) -> s.Literal:
        """`2`, `-0.5`, `inf` or `true` as an operand."""
        *minus, token = parts
        if token.type == "BOOL":
            return self.truth(parts)
        if token.type != "INT":
            return self.real(parts)
        whole = self.integer([token])
        return s.Int(-whole.value, span=self._whole(parts)) if minus else whole

    def keyword(self, parts: list[Any]) -> s.Keyword:
        value = _literal(parts[2])
        return s.Keyword(str(parts[0]), value, self._span(parts[0]), span=self._whole(parts))

    def loop(self, parts: list[Any]) -> s.Statement:
        _, tag, _, index, _, start, _, end, close, _, *body, _ = parts
        made = s.Loop(
            tag=str(tag),
            index=self._name(index),
            start=start,
            end=end,
            body=tuple(body),
            span=self._whole(parts),
            head_span=self._span(parts[0]).to(self._span(close)),
        )
        return self._limited(made, body, DEEPEST_LOOP, "loops are", s.Barrier(span=made.span))

    def branch(self, parts: list[Any]) -> s.Branch:
        names = [self._name(p) for p in parts[1:-1]]
        span = self._whole(parts)
        if len(names) not in (1, 3):
            self._error(
                "branch-arity",
                f"'branch' takes one block, or a condition and two blocks, but {len(names)} names "
                "are given",
                span,
                hint="write 'branch block;' or 'branch condition yes no;'",
            )
        if len(names) == 1:
            return s.Branch(None, tuple(names), span=span)
        return s.Branch(names[0], tuple(names[1:]), span=span)

    def dep(self, parts: list[Any]) -> s.Dep:
        return s.Dep(self._name(parts[3]), self._name(parts[7]), span=self._whole(parts))

    def cache_step(self, parts: list[Any]) -> s.CacheStep:
        sign = 1 if parts[0].type == "CACHE_INCREMENT" else -1
        amount = parts[1] if len(parts) == 4 else None
        return s.CacheStep(sign, amount, parts[-2], span=self._whole(parts))

    transfer, returns, barrier = map(_of_parts, (s.Transfer, s.Return, s.Barrier))
    cache_read, cache_write, cache_reset = map(_of_parts, (s.CacheRead, s.CacheWrite, s.CacheReset))
    yields, awaits = map(_of_names, (s.Yield, s.Await))

    # ------------------------------------------------------------ accesses

    def variable(self, parts: list[Any]) -> s.Access:
        span = self._span(parts[0])
        return s.Access(str(parts[0]), None, span, span=span)

    def element(self, parts: list[Any]) -> s.Access:
        indices = parts[2].items if len(parts) == 4 else ()
        return s.Access(str(parts[0]), indices, self._span(parts[0]), span=self._whole(parts))

    def positions(self, parts: list[Any]) -> _Several:
        """The indices of an access; one left empty beside a comma is a full slice."""
        if not parts:
            return _Several((), span=Span(self.source, 0, 0))
        found: list[s.Index] = []
        last: Any = None
        for part in parts:
            if not isinstance(part, Token):
                found.append(part)
            elif last is None or isinstance(last, Token):
                found.append(s.Slice(None, None, span=self._span(part)))
            last = part
        if isinstance(last, Token):
            found.append(s.Slice(None, None, span=self._span(last)))
        return _Several(tuple(found), span=self._whole(parts))

    def range(self, parts: list[Any]) -> s.Slice:
        start = None if isinstance(parts[0], Token) else parts[0]
        end = None if isinstance(parts[-1], Token) else parts[-1]
        return s.Slice(start, end, span=self._whole(parts))

    # ------------------------------------------------------------ expressions and literals

    def binary(self, parts: list[Any]) -> s.Expr:
        made = s.Binary(str(parts[1]), parts[0], parts[2], span=self._whole(parts))
        return self._expression(made, parts)

    def negative(self, parts: list[Any]) -> s.Expr:
        made = s.Unary(parts[1], span=self._whole(parts))
        return self._expression(made, parts)

    def _expression(self, made: s.Expr, parts: list[Any]) -> s.Expr:
        return self._limited(made, parts, DEEPEST_EXPRESSION, "expression is", s.Int(1, span=made.span))

    def group(self, parts: list[Any]) -> s.Expr:
        inner: s.Expr = replace(parts[1], span=self._whole(parts))
        self._depths[id(inner)] = self._depths.get(id(parts[1]), 0)
        return inner

    def integer(self, parts: list[Any]) -> s.Int:
        text = str(parts[0])
        value = _integer(text)
        if value is None or value > LARGEST_INTEGER:
            span = self._span(parts[0])
            problem = "has no digits" if value is None else "does not fit 64 bits"
            self._error("integer-range", f"integer literal '{cut(text, 24, 20)}' {problem}", span)
            value = 1
        return s.Int(value, span=self._span(parts[0]))

    def name(self, parts: list[Any]) -> s.Name:
        return self._name(parts[0])

    def real(self, parts: list[Any]) -> s.Float:
        value = float(str(parts[-1]).replace("_", ""))
        return s.Float(-value if len(parts) == 2 else value, span=self._whole(parts))

    def text(self, parts: list[Any]) -> s.Str:
        span = self._span(parts[0])
        text = str(parts[0])[1:-1]
        for escape in _ESCAPE.finditer(text):
            if escape[1] not in _ESCAPES:
                at = span.start + 1 + escape.start()
                self._error(
                    "string-escape",
                    f"unknown escape '{escape[0]}' in a string",
                    Span(self.source, at, at + 2),
                    hint=r"write '\\' for a backslash",
                )
        return s.Str(_ESCAPE.sub(lambda m: _ESCAPES.get(m[1], m[0]), text), span=span)

    def truth(self, parts: list[Any]) -> s.Bool:
        return s.Bool(str(parts[0]) == "true", span=self._span(parts[0]))

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
