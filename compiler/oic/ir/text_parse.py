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
from oic.ir.text_tokens import Lexeme
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
    parser = _Parser(Source("module.ir", text), source)
    module = parser.module()
    module.weights = dict(weights or {})
    return module


class _Parser(Values):
    """Recursive descent over the tokens; `origin` is the text that locations point into."""

    def __init__(self, text: Source, origin: Source | None) -> None:
        super().__init__(text)
        self.origin = origin

    # -- header

    def module(self) -> Module:
        self.expect("module")
        module = Module(self.string())
        self.expect("{")
        given = dict(self.list_until("}", self.header_part))
        module.stage = given.get("stage", "graph")
        if module.stage not in ("graph", "indexed", "planned"):
            raise self.wrong(f"no stage is called '{module.stage}'", slug="ir-name")
        if self.origin is None and "source" in given:
            self.origin = Unseen(given["source"], "")
        module.source = self.origin
        if self.accept("extents"):
            self.expect("{")
            self.list_until("}", self.declaration)
        if self.accept("plan"):
            module.plan = self.plan()
        while self.now.kind != "end":
            module.top.append(self.op(0))
        return module

    def header_part(self) -> tuple[str, str]:
        token = self.take()
        if token.text not in ("stage", "source"):
            raise self.wrong("a module has a stage and a source", token)
        self.expect("=")
        return token.text, self.string()

    def declaration(self) -> None:
        token = self.take()
        name = self.extent_name(token)
        if name in self.extents:
            raise self.wrong(f"extent '{name}' is declared twice", token, "ir-name")
        self.expect("<=")
        self.extents[name] = Extent(name, self.integer())

    def plan(self) -> Plan:
        plan = Plan()
        self.expect("{")
        while not self.accept("}"):
            token = self.take()
            match token.text:
                case "align":
                    plan.align = self.integer()
                case "state":
                    plan.state_bytes = self.integer()
                case "weights":
                    plan.weights_bytes = self.integer()
                case "arena" | "lower_bound":
                    sizes = plan.arena_bytes if token.text == "arena" else plan.lower_bound
                    symbol = self.string()
                    sizes[symbol] = self.integer()
                case "buffer":
                    plan.buffers.append(self.buffer())
                case _:
                    raise self.wrong("expected a line of the memory map", token)
        return plan

    def buffer(self) -> Buffer:
        name = self.string()
        space, offset = self.address()
        words = {"size": "nbytes", "align": "align", "live": "start", "to": "end", "line": "line"}
        numbers = {field: self.number_after(word) for word, field in words.items()}
        buffer = Buffer(name, space, offset or 0, numbers.pop("nbytes"), **numbers)  # type: ignore[arg-type]
        self.expect("function")
        buffer.function = self.string()
        buffer.reason = self.string() if self.accept("because") else ""
        return buffer

    def number_after(self, word: str) -> int:
        self.expect(word)
        return self.integer()

    # -- ops

    def op(self, depth: int) -> Op:
        if depth > DEPTH:
            raise self.wrong("regions are nested too deeply")
        names = self.result_names()
        token = self.kind("word", "the name of an op")
        cls = REGISTRY.get(token.text)
        if cls is None:
            raise self.unknown(f"no op is called '{token.text}'", token, REGISTRY)
        given = self.operands(cls, token)
        given |= self.attributes(cls) if self.accept("{") else {}
        for key, spec in cls.fields.items():
            if spec.kind == "region":
                self.expect(key)
                given[key] = self.region(depth)
            elif spec.kind == "regions":
                given[key] = []
                while self.accept(key):
                    given[key].append(self.region(depth))
        kernel, workers = given.pop("kernel", ""), given.pop("workers", 1)
        op = self.build(cls, given, token)
        op.kernel, op.workers = kernel, workers
        self.results(op, names, token)
        op.span = self.location()
        return op

    def result_names(self) -> list[Lexeme]:
        names: list[Lexeme] = []
        if self.now.kind == "value":
            names.append(self.take())
            while self.accept(","):
                names.append(self.kind("value", "the name of a result"))
            self.expect("=")
        return names

    def operands(self, cls: type[Op], token: Lexeme) -> dict[str, Any]:
        fields = [(k, s) for k, s in cls.fields.items() if s.positional]
        given: dict[str, Any] = {}
        if not fields:
            return given
        self.expect("(")
        for i, (key, spec) in enumerate(fields):
            if spec.kind == "optional" and self.sees(")"):
                given[key] = None
                continue
            if i:
                self.expect(",")
            if spec.kind == "rest":
                self.expect("[")
                given[key] = self.list_until("]", self.value)
            elif spec.kind == "optional" and self.accept("_"):
                given[key] = None
            else:
                given[key] = self.value()
        self.expect(")")
        return given

    def attributes(self, cls: type[Op]) -> dict[str, Any]:
        given: dict[str, Any] = {}
        for key, value in self.list_until("}", lambda: self.setting(cls)):
            if key in given:
                raise self.wrong(f"attribute '{key}' is given twice", self.tokens[self.at - 1])
            given[key] = value
        return given

    def setting(self, cls: type[Op]) -> tuple[str, Any]:
        token = self.kind("word", "the name of an attribute")
        known = [k for k, s in cls.fields.items() if s.kind == "attribute"]
        if token.text == "kernel" and cls.catalog:
            return token.text, self.kernel(cls)
        if token.text == "workers" and (cls.catalog or cls.elementwise) and token.text not in known:
            return token.text, self.workers()
        if token.text not in known:
            raise self.unknown(f"{cls.name} has no attribute '{token.text}'", token, known)
        self.expect("=")
        value = self.attribute()
        if isinstance(value, DType) and cls.fields[token.text].annotation in ("TensorType", "Type"):
            value = TensorType(value)  # `f32` for `f32[]`, where no element type is possible
        return token.text, value

    def kernel(self, cls: type[Op]) -> str:
        """The name of a kernel of an operator."""
        self.expect("=")
        token, name = self.now, self.attribute()
        known = [k.name for k in getattr(cls, "kernels", ())]
        if name not in known:
            raise self.unknown(f"{cls.name} has no kernel '{name}'", token, known, str(name))
        return str(name)

    def workers(self) -> int:
        """How many threads may share a call."""
        self.expect("=")
        token, count = self.now, self.attribute()
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise fail("ir-name", f"workers are a number of threads, not {count}", self.span(token))
        return count

    def build(self, cls: type[Op], given: dict[str, Any], token: Lexeme) -> Op:
        """The op; whatever it refuses becomes a diagnostic at its name."""
        span = self.span(token)
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
            raise self.wrong(message, token, "ir-type")
        for i, (name, value) in enumerate(zip(names, op.results)):
            self.expect("," if i else ":")
            first = self.now
            type_ = self.type()
            if op.regions and same_rank(type_, value.type):
                value.type = type_  # sizes of a loop's body have other names after it
            if type_ != value.type:
                message = f"the result of {op.name} is {type_text(value.type)}"
                span = self.span(first, self.tokens[self.at - 1])
                raise fail("ir-type", message, span, f"{type_text(type_)} is written")
            value.place = self.place()
            self.define(name, value)

    def region(self, depth: int) -> Block:
        block, outer = Block(), self.scope
        self.scope = dict(outer)
        self.expect("(")
        self.list_until(")", lambda: self.argument(block))
        self.expect("{")
        while not self.accept("}"):
            block.append(self.op(depth + 1))
        self.scope = outer
        return block

    def argument(self, block: Block) -> None:
        name = self.kind("value", "the name of a block's argument")
        self.expect(":")
        value = block.argument(self.type())
        value.place = self.place()
        self.define(name, value)

    # -- parts

    def define(self, token: Lexeme, value: Value) -> None:
        name = token.text[1:]
        if name in self.scope:
            raise self.wrong(f"'{token.text}' is defined twice", token, "ir-name")
        value.hint = "" if name.isdigit() else name
        self.scope[name] = value

    def location(self) -> Span | None:
        if not self.accept("loc"):
            return None
        self.expect("(")
        first = self.now
        line, column, length = self.integer(), self.number_after(":"), self.number_after("+")
        last = self.expect(")")
        source = self.origin or Unseen("unknown", "")
        if isinstance(source, Unseen):
            start = line * COLUMNS + column
        else:
            starts = source.line_starts
            start = starts[line - 1] + column - 1 if 0 < line <= len(starts) else -1
            if start < 0 or start + length > len(source.text):
                raise fail("ir-syntax", f"{source.name} has no such place", self.span(first, last))
        return Span(source, start, start + length)
