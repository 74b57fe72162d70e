"""Read the text form of a module (`text_print`); every mistake is an OicError that points at it.

The ops must have been registered: import `oic.operators` before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oic.diagnostics import OicError, Source, Span, fail
from oic.dtypes import Array, DType
from oic.ir.core import REGISTRY, Block, Op, OpError, Value
from oic.ir.dims import Extent
from oic.ir.module import Buffer, Module, Plan
from oic.ir.text_print import type_text
from oic.ir.text_tokens import Cursor, Lexeme
from oic.ir.text_values import DEPTH, Values
from oic.ir.types import TensorType, same_rank

COLUMNS = 1 << 32


class Unseen(Source):
    """The source of a parsed module whose text is not at hand: only positions are known."""

    def position(self, offset: int) -> tuple[int, int]:
        return divmod(offset, COLUMNS)

    def line(self, number: int) -> str:
        return ""


def parse_module(text: str, weights: Mapping[str, Array] | None = None, source: Source | None = None) -> Module:
    """The program that a text form describes.

    weights  data of the constants, by symbol
    source   the text that locations point into; without it only lines and columns are known
    Errors: OicError with slug ir-syntax, ir-name, ir-type, or that of the op that refuses.
    """
    parser = _Parser(Cursor(Source("module.ir", text)), source)
    module = parser.module()
    module.weights = dict(weights or {})
    return module


class _Parser:
    """Recursive descent over the tokens; `scope` holds the values that may be named."""

    def __init__(self, cursor: Cursor, source: Source | None) -> None:
        self.c = cursor
        self.source = source
        self.scope: dict[str, Value] = {}
        self.values = Values(cursor, self.value)

    # -- header

    def module(self) -> Module:
        self.c.expect("module")
        module = Module(self.c.string())
        self.c.expect("{")
        head = self.c.list_until("}", self.header_part)
        given = dict(head)
        module.stage = given.get("stage", "graph")
        if module.stage not in ("graph", "indexed", "planned"):
            raise self.c.wrong(f"no stage is called '{module.stage}'", slug="ir-name")
        if self.source is None and "source" in given:
            self.source = Unseen(given["source"], "")
        module.source = self.source
        if self.c.accept("extents"):
            self.c.expect("{")
            self.c.list_until("}", self.extent)
        if self.c.accept("plan"):
            module.plan = self.plan()
        while self.c.now.kind != "end":
            module.top.append(self.op(0))
        return module

    def header_part(self) -> tuple[str, str]:
        token = self.c.take()
        if token.text not in ("stage", "source"):
            raise self.c.wrong("a module has a stage and a source", token)
        self.c.expect("=")
        return token.text, self.c.string()

    def extent(self) -> None:
        token = self.c.take()
        name = self.values.extent_name(token)
        if name in self.values.extents:
            raise self.c.wrong(f"extent '{name}' is declared twice", token, "ir-name")
        self.c.expect("<=")
        self.values.extents[name] = Extent(name, self.c.integer())

    def plan(self) -> Plan:
        plan = Plan()
        self.c.expect("{")
        while not self.c.accept("}"):
            token = self.c.take()
            match token.text:
                case "state":
                    plan.state_bytes = self.c.integer()
                case "weights":
                    plan.weights_bytes = self.c.integer()
                case "arena" | "lower_bound":
                    sizes = plan.arena_bytes if token.text == "arena" else plan.lower_bound
                    symbol = self.c.string()
                    sizes[symbol] = self.c.integer()
                case "buffer":
                    plan.buffers.append(self.buffer())
                case _:
                    raise self.c.wrong("expected a line of the memory map", token)
        return plan

    def buffer(self) -> Buffer:
        name = self.c.string()
        space, offset = self.values.address()
        words = {"size": "nbytes", "align": "align", "live": "start", "to": "end", "line": "line"}
        numbers = {field: self.number_after(word) for word, field in words.items()}
        buffer = Buffer(name, space, offset or 0, numbers.pop("nbytes"), **numbers)  # type: ignore[arg-type]
        self.c.expect("function")
        buffer.function = self.c.string()
        buffer.reason = self.c.string() if self.c.accept("because") else ""
        return buffer

    def number_after(self, word: str) -> int:
        self.c.expect(word)
        return self.c.signed()

    # -- ops

    def op(self, depth: int) -> Op:
        if depth > DEPTH:
            raise self.c.wrong("regions are nested too deeply")
        names = self.result_names()
        token = self.c.kind("word", "the name of an op")
        cls = REGISTRY.get(token.text)
        if cls is None:
            raise self.c.unknown(f"no op is called '{token.text}'", token, REGISTRY)
        given = self.operands(cls, token)
        given |= self.attributes(cls) if self.c.accept("{") else {}
        outer = dict(self.scope)
        for key, spec in cls.fields.items():
            if spec.kind == "region":
                self.c.expect(key)
                given[key] = self.region(depth)
                self.scope = dict(outer)
            elif spec.kind == "regions":
                given[key] = []
                while self.c.accept(key):
                    given[key].append(self.region(depth))
                    self.scope = dict(outer)
        kernel, workers = given.pop("kernel", ""), given.pop("workers", 1)
        op = self.build(cls, given, token)
        op.kernel, op.workers = kernel, workers
        self.results(op, names, token)
        op.span = self.location()
        return op

    def result_names(self) -> list[Lexeme]:
        names: list[Lexeme] = []
        if self.c.now.kind == "value":
            names.append(self.c.take())
            while self.c.accept(","):
                names.append(self.c.kind("value", "the name of a result"))
            self.c.expect("=")
        return names

    def operands(self, cls: type[Op], token: Lexeme) -> dict[str, Any]:
        fields = [(k, s) for k, s in cls.fields.items() if s.positional]
        given: dict[str, Any] = {}
        if not fields:
            return given
        self.c.expect("(")
        for i, (key, spec) in enumerate(fields):
            if spec.kind == "optional" and self.c.sees(")"):
                given[key] = None
                continue
            if i:
                self.c.expect(",")
            if spec.kind == "rest":
                self.c.expect("[")
                given[key] = self.c.list_until("]", self.value)
            elif spec.kind == "optional" and self.c.accept("_"):
                given[key] = None
            else:
                given[key] = self.value()
        self.c.expect(")")
        return given

    def attributes(self, cls: type[Op]) -> dict[str, Any]:
        given: dict[str, Any] = {}
        for key, value in self.c.list_until("}", lambda: self.attribute(cls)):
            if key in given:
                raise self.c.wrong(
                    f"attribute '{key}' is given twice", self.c.tokens[self.c.at - 1]
                )
            given[key] = value
        return given

    def attribute(self, cls: type[Op]) -> tuple[str, Any]:
        token = self.c.kind("word", "the name of an attribute")
        known = [k for k, s in cls.fields.items() if s.kind == "attribute"]
        if token.text == "kernel" and cls.catalog:
            return token.text, self.kernel(cls)
        if token.text == "workers" and (cls.catalog or cls.elementwise) and token.text not in known:
            return token.text, self.workers()
        if token.text not in known:
            raise self.c.unknown(f"{cls.name} has no attribute '{token.text}'", token, known)
        self.c.expect("=")
        value = self.values.attribute()
        if isinstance(value, DType) and cls.fields[token.text].annotation in ("TensorType", "Type"):
            value = TensorType(value)  # `f32` for `f32[]`, where no element type is possible
        return token.text, value

    def kernel(self, cls: type[Op]) -> str:
        """The name of a kernel of an operator."""
        self.c.expect("=")
        token, name = self.c.now, self.values.attribute()
        known = [k.name for k in getattr(cls, "kernels", ())]
        if name not in known:
            raise self.c.unknown(f"{cls.name} has no kernel '{name}'", token, known, str(name))
        return str(name)

    def workers(self) -> int:
        """How many threads may share a call."""
        self.c.expect("=")
        token, count = self.c.now, self.values.attribute()
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise fail("ir-name", f"workers are a number of threads, not {count}", self.c.span(token))
        return count

    def build(self, cls: type[Op], given: dict[str, Any], token: Lexeme) -> Op:
        """The op; whatever it refuses becomes a diagnostic at its name."""
        span = self.c.span(token)
        try:
            return cls(**given)
        except OpError as refused:
            raise fail(refused.slug, refused.message, span, hint=refused.hint) from None
        except OicError:
            raise
        except Exception as refused:  # an attribute of the wrong kind breaks `infer` anywhere
            detail = f"{cls.name} cannot be built of this: {refused}"
            raise fail("ir-type", detail, span) from None

    def results(self, op: Op, names: list[Lexeme], token: Lexeme) -> None:
        if len(names) != len(op.results):
            message = f"{op.name} has {len(op.results)} results, not {len(names)}"
            raise self.c.wrong(message, token, "ir-type")
        for i, (name, value) in enumerate(zip(names, op.results)):
            self.c.expect("," if i else ":")
            first = self.c.now
            type_ = self.values.type()
            if op.regions and same_rank(type_, value.type):
                value.type = type_  # sizes of a loop's body have other names after it
            if type_ != value.type:
                message = f"the result of {op.name} is {type_text(value.type)}"
                span = self.c.span(first, self.c.tokens[self.c.at - 1])
                raise fail("ir-type", message, span, f"{type_text(type_)} is written")
            value.place = self.values.place()
            self.define(name, value)

    def region(self, depth: int) -> Block:
        block = Block()
        self.c.expect("(")
        self.c.list_until(")", lambda: self.argument(block))
        self.c.expect("{")
        while not self.c.accept("}"):
            block.append(self.op(depth + 1))
        return block

    def argument(self, block: Block) -> None:
        name = self.c.kind("value", "the name of a block's argument")
        self.c.expect(":")
        value = block.argument(self.values.type())
        value.place = self.values.place()
        self.define(name, value)

    # -- parts

    def define(self, token: Lexeme, value: Value) -> None:
        name = token.text[1:]
        if name in self.scope:
            raise self.c.wrong(f"'{token.text}' is defined twice", token, "ir-name")
        value.hint = "" if name.isdigit() else name
        self.scope[name] = value

    def value(self) -> Value:
        token = self.c.kind("value", "a value")
        found = self.scope.get(token.text[1:])
        if found is None:
            raise self.c.unknown(f"'{token.text}' is not defined here", token, ["%" + n for n in self.scope])
        return found

    def location(self) -> Span | None:
        if not self.c.accept("loc"):
            return None
        self.c.expect("(")
        line_at = self.c.now
        line = self.c.integer()
        self.c.expect(":")
        column = self.c.integer()
        self.c.expect("+")
        length = self.c.integer()
        last = self.c.expect(")")
        source = self.source or Unseen("unknown", "")
        if isinstance(source, Unseen):
            start = line * COLUMNS + column
        else:
            starts = source.line_starts
            start = starts[line - 1] + column - 1 if 0 < line <= len(starts) else -1
            if start < 0 or start + length > len(source.text):
                span = self.c.span(line_at, last)
                raise fail("ir-syntax", f"{source.name} has no such place", span)
        return Span(source, start, start + length)
