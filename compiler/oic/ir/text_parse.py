"""Read the text form of a module (`text_print`, `text.lark`); every mistake is an OicError that points at it.

The ops must have been registered: import `oic.operators` before.
"""

import json
import operator
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import lark
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, VisitError
from lark.lark import PostLex
from lark.visitors import Transformer_NonRecursive, v_args

from oic.diagnostics import OicError, Source, Span, did_you_mean, fail, listed
from oic.dtypes import ALL, Array, DType
from oic.ir import dims
from oic.ir.core import REGISTRY, Block, Op, OpError, Place, Value
from oic.ir.dims import Dim, Extent
from oic.ir.encodings import LAYOUTS, STORAGES, joined
from oic.ir.module import Buffer, Module, Plan
from oic.ir.text_print import type_text
from oic.ir.types import INDEX, IndexType, StateIndex, StateType, TensorType, Type, same_rank

COLUMNS = 1 << 32
DEPTH = 200  # brackets nested deeper than this are refused
BRACKETS = {"LPAR": 1, "LSQB": 1, "LBRACE": 1, "RPAR": -1, "RSQB": -1, "RBRACE": -1}
DIGITS = 40  # no number of the text form is longer; Python refuses very long ones
SPACES = ("arena", "entry", "state", "weights", "input", "output", "local")
WORD_VALUES = {"true": True, "false": False, "none": None}
OPERANDS = {"operand": Value, "optional": Value | None, "rest": list}  # what a field of a kind holds
ENCODINGS = {joined(storage, layout) for storage in ("", *STORAGES) for layout in ("", *LAYOUTS)}
KINDS = {
    "$END": "the end of the text", "STRING": "a string", "VALUE": "a value", "INT": "a number", "FLOAT": "a number",
    "WORD": "a word", "BACK": "a name in back quotes", "DTYPE": "an element type", "ENCODING": "an encoding",
    "REGION": "a region", "MARK": "'!' or '~'", "WORD_VALUE": "'true', 'false' or 'none'",
}  # fmt: skip

Typed = tuple[Type, Place | None, Any]  # and where it is written


class Unseen(Source):
    """The source of a parsed module whose text is not at hand: only positions are known, in lines of one length."""

    line_starts = range(0, COLUMNS * COLUMNS, COLUMNS)  # type: ignore[assignment]


def parse_module(text: str, weights: Mapping[str, Array] | None = None, source: Source | None = None) -> Module:
    """The program that a text form describes.

    weights  data of the constants, by symbol
    source   the text that locations point into; without it only lines and columns are known
    Errors: OicError with slug ir-syntax, ir-name, ir-type, or that of the op that refuses.
    """
    form = Source("module.ir", text)
    try:
        module = _Builder(form, source).transform(_parser().parse(text))
    except UnexpectedInput as error:
        raise _unexpected(form, error) from None
    except _NestedError as error:
        raise fail("ir-syntax", "brackets are nested too deeply", _span(form, error.args[0])) from None
    except VisitError as error:
        raise error.orig_exc from None
    module.weights = dict(weights or {})
    return module


class _NestedError(Exception):
    """A bracket inside too many others: its argument."""


class _Words(PostLex):
    """Tells the words apart that the grammar cannot know, and counts brackets."""

    always_accept = ("WORD",)

    def process(self, stream: Iterator[lark.Token]) -> Iterator[lark.Token]:
        kinds = {name: "REGION" for cls in REGISTRY.values() for name, spec in cls.fields.items() if spec.nested}
        kinds |= {**dict.fromkeys((*STORAGES, *LAYOUTS), "ENCODING"), **dict.fromkeys(ALL, "DTYPE")}
        depth = 0
        for token in stream:
            depth += BRACKETS.get(token.type, 0)
            if depth > DEPTH:
                raise _NestedError(token)
            if token.type == "WORD":
                token.type = kinds.get(token, "WORD")
            yield token


@cache
def _parser() -> lark.Lark:
    grammar = Path(__file__).with_name("text.lark").read_text(encoding="utf-8")
    return lark.Lark(
        grammar, parser="lalr", start="module", postlex=_Words(), propagate_positions=True, maybe_placeholders=False
    )


def _span(source: Source, at: Any) -> Span:
    """Where a token is, or what a rule was made of."""
    return Span(source, at.start_pos, at.end_pos)


def _unexpected(source: Source, error: Any) -> OicError:
    """What is said of a text that is not of the grammar."""
    if isinstance(error, UnexpectedCharacters):
        at = error.pos_in_stream or 0
        return fail("ir-syntax", f"{source.text[at]!r} has no meaning here", Span(source, at, at + 1))
    token, end = error.token, len(source.text)
    names = {KINDS.get(name) or f"'{_parser().get_terminal(name).pattern.value}'" for name in error.accepts}
    at_end = token.type == "$END"
    found, span = (KINDS["$END"], Span(source, end, end)) if at_end else (repr(str(token)), _span(source, token))
    return fail("ir-syntax", f"expected {listed(sorted(names), 'or')}, found {found}", span)


@v_args(inline=True)
class _Builder(Transformer_NonRecursive[lark.Token, Module]):
    """One method a rule of the grammar, or a terminal that has a value; from left to right, what is inside first."""

    add, sub, mul, neg = operator.add, operator.sub, operator.mul, operator.neg
    FLOAT, because, scalar = float, str, TensorType
    WORD_VALUE, dtype = WORD_VALUES.__getitem__, ALL.__getitem__

    def __init__(self, text: Source, origin: Source | None) -> None:
        super().__init__()
        self.text, self.origin = text, origin  # what is read; what locations point into
        self.extents: dict[str, Extent] = {}  # of the header
        self.scopes: list[dict[str, Value]] = [{}]  # what may be named, of each region around
        self.blocks: list[Block] = []  # of the regions around

    def _wrong(self, message: str, at: Any, slug: str = "ir-syntax") -> OicError:
        return fail(slug, message, _span(self.text, at))

    def _unknown(self, message: str, token: Any, known: Any, name: str | None = None) -> OicError:
        """The error for a name that is none of those known."""
        return fail("ir-name", message, _span(self.text, token), hint=did_you_mean(name or str(token), known))

    def _once(self, pairs: Iterable[tuple[str, Any]], at: Any = None) -> dict[str, Any]:
        """What is given by name, each once; where, if names do not know it."""
        found: dict[str, Any] = {}
        for name, value in pairs:
            if name in found:
                raise self._wrong(f"'{name}' is given twice", at or name)
            found[str(name)] = value
        return found

    # -- terminals

    def STRING(self, token: lark.Token) -> str:
        try:
            return str(json.loads(token))
        except ValueError:
            raise self._wrong("a string with an unknown escape", token) from None

    def INT(self, token: lark.Token) -> int:
        if len(token) > DIGITS:
            raise self._wrong("a number is too long", token)
        return int(token)

    # -- header

    def module(self, module: Module, *parts: Plan | Op) -> Module:
        for part in parts:
            if isinstance(part, Plan):
                module.plan = part
            elif part is not None:
                module.top.append(part)
        return module

    def header(self, name: str, *parts: tuple[lark.Token, str]) -> Module:
        given = self._once(parts)
        if self.origin is None and "source" in given:
            self.origin = Unseen(given["source"], "")
        return Module(name, given.get("stage", "graph"), source=self.origin)

    def header_part(self, key: lark.Token, text: str) -> tuple[lark.Token, str]:
        if key not in ("stage", "source"):
            raise self._wrong("a module has a stage and a source", key)
        if key == "stage" and text not in ("graph", "indexed", "planned"):
            raise self._wrong(f"no stage is called '{text}'", key, "ir-name")
        return key, text

    def declaration(self, token: lark.Token, most: int) -> None:
        name = token.strip("`")
        if name in self.extents:
            raise self._wrong(f"extent '{name}' is declared twice", token, "ir-name")
        self.extents[name] = Extent(name, most)

    def plan(self, *parts: Any) -> Plan:
        plan = Plan(buffers=[part for part in parts if isinstance(part, Buffer)])
        sizes = {"arena": plan.arena_bytes, "lower_bound": plan.lower_bound}
        names = {"align": "align", "state": "state_bytes", "weights": "weights_bytes"}
        lines = [part for part in parts if not isinstance(part, Buffer)]
        self._once((word.update(value=" ".join((word, *symbol))), size) for word, *symbol, size in lines)
        for word, *symbol, size in lines:
            if word not in (sizes if symbol else names):
                raise self._wrong("expected a line of the memory map", word)
            if symbol:
                sizes[word][symbol[0]] = size
            else:
                setattr(plan, names[word], size)
        return plan

    def buffer(self, name: str, where: tuple[str, int | None], *parts: Any) -> Buffer:
        space, offset = where
        return Buffer(name, space, offset or 0, *parts)

    # -- ops

    def op(
        self, names: list[lark.Token], word: lark.Token, operands: list[Any], parts: list[tuple[lark.Token, Any]],
        types: list[Typed], span: Span | None,
    ) -> Op:  # fmt: skip
        cls = REGISTRY.get(word)
        if cls is None:
            raise self._unknown(f"no op is called '{word}'", word, REGISTRY)
        given = self._operands(cls, word, operands) | self._parts(cls, parts)
        kernel, workers = given.pop("kernel", ""), given.pop("workers", 1)
        op = self._built(cls, word, given)
        op.kernel, op.workers, op.span = kernel, workers, span
        if not len(names) == len(types) == len(op.results):
            wrong = len(types) if len(names) == len(op.results) else len(names)
            raise self._wrong(f"{op.name} has {len(op.results)} results, not {wrong}", word, "ir-type")
        for name, (type_, place, at), value in zip(names, types, op.results):
            if op.regions and same_rank(type_, value.type):
                value.type = type_  # sizes of a loop's body have other names after it
            if type_ != value.type:
                message, written = f"the result of {op.name} is {type_text(value.type)}", type_text(type_)
                raise fail("ir-type", message, _span(self.text, at), f"{written} is written")
            value.place = place
            self._define(name, value)
        return op

    def _operands(self, cls: type[Op], word: lark.Token, parts: list[Any]) -> dict[str, Any]:
        fields = {key: spec.kind for key, spec in cls.fields.items() if spec.positional}
        parts = parts + [None] * (len(fields) - len(parts))
        kinds = [OPERANDS[kind] for kind in fields.values()]
        if len(parts) != len(kinds) or not all(map(isinstance, parts, kinds)):
            raise self._wrong(f"the operands of {cls.name} are ({', '.join(fields)})", word)
        return dict(zip(fields, parts))

    def _parts(self, cls: type[Op], found: list[tuple[lark.Token, Any]]) -> dict[str, Any]:
        """Attributes and regions."""
        kernels = [kernel.name for kernel in getattr(cls, "kernels", ())]
        given: dict[str, Any] = {key: [] for key, spec in cls.fields.items() if spec.kind == "regions"}
        for key, value in found:
            kinds = ("region", "regions") if isinstance(value, Block) else ("attribute",)
            known = [name for name, spec in cls.fields.items() if spec.kind in kinds]
            if key in known and cls.fields[key].kind == "regions":
                given[key].append(value)
                continue
            if key in given:
                raise self._wrong(f"{kinds[0]} '{key}' is given twice", key)
            given[str(key)] = value
            if key == "kernel" and (cls.catalog or kernels):
                if value not in kernels:
                    raise self._unknown(f"{cls.name} has no kernel '{value}'", key, kernels, str(value))
            elif key == "workers" and (cls.catalog or cls.elementwise or kernels) and key not in known:
                if type(value) is not int or value < 1:
                    raise self._wrong(f"workers are a number of threads, not {value}", key, "ir-name")
            elif key not in known:
                raise self._unknown(f"{cls.name} has no {kinds[0]} '{key}'", key, known)
            elif isinstance(value, DType) and cls.fields[key].annotation in ("TensorType", "Type"):
                given[str(key)] = TensorType(value)  # `f32` for `f32[]`, where no element type is possible
        return given

    def _built(self, cls: type[Op], word: lark.Token, given: dict[str, Any]) -> Op:
        """The op; whatever it refuses becomes a diagnostic at its name."""
        try:
            return cls(**given)
        except OpError as refused:
            raise fail(refused.slug, refused.message, _span(self.text, word), hint=refused.hint) from None
        except OicError:
            raise
        except Exception as refused:  # an attribute of the wrong kind breaks `infer` anywhere
            raise self._wrong(f"{cls.name} cannot be built of this: {refused}", word, "ir-type") from None

    def _define(self, token: lark.Token, value: Value) -> None:
        scope, name = self.scopes[-1], token[1:]
        if name in scope:
            raise self._wrong(f"'{token}' is defined twice", token, "ir-name")
        value.hint = "" if name.isdigit() else name
        scope[name] = value

    def field(self, key: lark.Token) -> lark.Token:
        """The name of a region, which begins here."""
        self.scopes.append(dict(self.scopes[-1]))
        self.blocks.append(Block())
        return key

    def argument(self, name: lark.Token, typed: Typed) -> None:
        type_, place, _ = typed
        value = self.blocks[-1].argument(type_)
        value.place = place
        self._define(name, value)

    def region(self, key: lark.Token, *parts: Op | None) -> tuple[lark.Token, Block]:
        self.scopes.pop()
        block = self.blocks.pop()
        block.set_ops(part for part in parts if part is not None)  # arguments give nothing
        return key, block

    @v_args(inline=True, meta=True)
    def typed(self, at: Any, type_: Type, place: Place | None = None) -> Typed:
        return type_, place, at

    @v_args(inline=True, meta=True)
    def location(self, at: Any, *numbers: int) -> Span | None:
        if not numbers:
            return None
        line, column, length = numbers
        source = self.origin or Unseen("unknown", "")
        starts = source.line_starts
        start = starts[line - 1] + column - 1 if 0 < line <= len(starts) else -1
        if start < 0 or (start + length > len(source.text) and not isinstance(source, Unseen)):
            raise self._wrong(f"{source.name} has no such place", at)
        return Span(source, start, start + length)

    # -- attributes and sizes

    def items(self, *parts: Any) -> list[Any]:
        return [*parts]

    results = operands = uses = parts = types = items

    def several(self, *parts: Any) -> tuple[Any, ...]:
        return parts

    sizes = attribute = pair = planned_size = indices = table = auto = several

    @v_args(inline=True, meta=True)
    def pairs(self, at: Any, *found: tuple[str, Any]) -> dict[str, Any]:
        return self._once(found, at)

    def absent(self) -> None:
        return None

    def use(self, token: lark.Token) -> Value:
        """A value that is defined here."""
        scope = self.scopes[-1]
        if token[1:] not in scope:
            raise self._unknown(f"'{token}' is not defined here", token, ["%" + name for name in scope])
        return scope[token[1:]]

    def extent(self, token: lark.Token) -> Extent:
        """An extent of the header."""
        name = token.strip("`")
        if name not in self.extents:
            raise self._unknown(f"extent '{name}' is not declared", token, self.extents, name)
        return self.extents[name]

    def size(self, token: lark.Token) -> Dim:
        return dims.of(self.extent(token))

    @v_args(inline=True, meta=True)
    def divided(self, at: Any, total: Dim, divisor: Dim) -> Dim:
        if dims.maximum(divisor) < 1:
            raise self._wrong("a size is divided by what is never positive", at)
        return dims.floor_div(total, divisor)

    # -- types and places

    def tensor(self, dtype: DType, shape: tuple[Dim, ...], *encoding: lark.Token) -> TensorType:
        text = " ".join(encoding)
        if text not in ENCODINGS:
            raise self._wrong(f"'{text}' is no encoding", encoding[0], "ir-name")
        return TensorType(dtype, shape, text)

    def no_type(self, token: lark.Token, *_: Dim) -> Type:
        raise self._wrong(f"'{token}' is not a type", token, "ir-name")

    def index(self) -> IndexType:
        return INDEX

    @v_args(inline=True, meta=True)
    def state(self, at: Any, entry: Type, *parts: tuple[str, Any]) -> StateType:
        if not isinstance(entry, TensorType) or not entry.static:
            raise self._wrong("an entry of a state is a tensor of known shape", at)
        return StateType(entry.dtype, entry.maximum, **dict(parts))

    def ring(self) -> tuple[str, Any]:
        return "ring", True

    def state_index(self, name: lark.Token, capacity: int, mark: str = "") -> StateIndex:
        return StateIndex(str(name), capacity, mark == "!", mark == "~")

    def place(self, where: tuple[str, int | None], buffer: str, *rest: Any) -> Place:
        """Where a value lies; the rest: strides, if they are written, and a reason."""
        *strides, reason = rest
        return Place(where[0], buffer, where[1], strides[0] if strides else None, reason)

    def address(self, space: lark.Token, offset: int | None = None) -> tuple[str, int | None]:
        """A space and an offset in bytes, if one is given."""
        if space not in SPACES:
            raise self._wrong(f"'{space}' is not a space", space, "ir-name")
        return str(space), offset
