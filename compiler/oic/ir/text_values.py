"""Attributes, sizes, types and places of the text form, read from tokens."""

from __future__ import annotations

import math
from typing import Any

from oic.diagnostics import Source
from oic.dtypes import ALL
from oic.ir import dims
from oic.ir.core import Place, Value
from oic.ir.dims import Dim, Expr, Extent
from oic.ir.encodings import LAYOUTS, STORAGES, joined
from oic.ir.text_tokens import Cursor, Lexeme
from oic.ir.types import INDEX, StateIndex, StateType, TensorType, Type

DEPTH = 100  # regions and lists nested deeper than this are refused
SPACES = ("arena", "entry", "state", "weights", "input", "output", "local")
SIMPLE = {"true": True, "false": False, "none": None, "inf": math.inf, "nan": math.nan}


class Values(Cursor):
    """Reads what an op is made of.

    extents   those that the header declares
    scope     the values that may be named
    """

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.extents: dict[str, Extent] = {}
        self.scope: dict[str, Value] = {}
        self.depth = 0

    def value(self) -> Value:
        """A value that is defined here."""
        token = self.kind("value", "a value")
        found = self.scope.get(token.text[1:])
        if found is None:
            raise self.unknown(f"'{token.text}' is not defined here", token, ["%" + n for n in self.scope])
        return found

    # -- attributes

    def attribute(self) -> Any:
        """A literal, a type, a size, an extent, a value, or a list, tuple or dictionary of them."""
        self.depth += 1
        if self.depth > DEPTH:
            raise self.wrong("lists are nested too deeply")
        found = self._attribute()
        self.depth -= 1
        return found

    def _attribute(self) -> Any:
        token = self.now
        if token.kind == "string":
            return self.string()
        if token.kind == "value":
            return self.value()
        if token.kind == "float" or (token.text == "-" and self._float_follows()):
            return self._float()
        if token.kind == "word" and token.text in SIMPLE:
            return SIMPLE[self.take().text]
        if token.kind == "word" and token.text in ALL and self.next.text != "[":
            return ALL[self.take().text]
        if token.kind == "word" and (token.text in ALL or token.text in ("index", "state")):
            return self.type()
        if self.accept("@"):
            return self.extent()
        if self.accept("["):
            return self.list_until("]", self.attribute)
        if self.accept("{"):
            return dict(self.list_until("}", self._pair))
        return self._tuple_or_size() if self.sees("(") else self.size()

    def _float_follows(self) -> bool:
        return self.next.kind == "float" or self.next.text in ("inf", "nan")

    def _float(self) -> float:
        sign = -1.0 if self.accept("-") else 1.0
        return sign * float(self.take().text)

    def _pair(self) -> tuple[str, Any]:
        key = self.string()
        self.expect(":")
        return key, self.attribute()

    def _tuple_or_size(self) -> Any:
        """`()` and `(a,)` and `(a, b)` are tuples; `(a)` starts a size."""
        start = self.at
        self.take()
        items: list[Any] = []
        comma = True
        while not self.accept(")"):
            items.append(self.attribute())
            if comma := not self.sees(")"):
                self.expect(",")
        if len(items) == 1 and not comma:
            self.at = start
            return self.size()
        return tuple(items)

    def extent_name(self, token: Lexeme) -> str:
        """The name that a token gives: a word, or any text in back quotes."""
        if token.kind not in ("word", "back"):
            raise self.wrong("expected the name of an extent", token)
        return token.text.strip("`")

    def extent(self) -> Extent:
        """An extent of the header."""
        token = self.take()
        name = self.extent_name(token)
        if name not in self.extents:
            raise self.unknown(f"extent '{name}' is not declared", token, self.extents, name)
        return self.extents[name]

    def size(self) -> Dim:
        """A sum of products."""
        self.depth += 1
        if self.depth > DEPTH:
            raise self.wrong("sizes are nested too deeply")
        total: Dim = -self._product() if self.accept("-") else self._product()
        while self.sees("+") or self.sees("-"):
            plus = self.take().text == "+"
            part = self._product()
            total = total + part if plus else total - part
        self.depth -= 1
        return total

    def _product(self) -> Dim:
        total = self._factor()
        while self.sees("*") or self.sees("//"):
            if self.take().text == "*":
                total = total * self._factor()
                continue
            token = self.now
            divisor = self._factor()
            if dims.maximum(divisor) < 1:
                raise self.wrong("a size is divided by what is never positive", token)
            total = dims.floor_div(total, divisor)
        return total

    def _factor(self) -> Dim:
        if self.now.kind == "int":
            return self.integer()
        if self.accept("("):
            inner = self.size()
            self.expect(")")
            return inner
        if self.now.kind in ("word", "back"):
            return dims.of(self.extent())
        raise self.wrong(f"expected a value, found {self.now.text!r}")

    # -- types

    def type(self) -> Type:
        """A tensor type, `index`, or a state."""
        token = self.kind("word", "a type")
        if token.text == "index":
            return INDEX
        if token.text == "state":
            return self._state()
        if token.text not in ALL:
            raise self.wrong(f"'{token.text}' is not a type", token, "ir-name")
        shape = self._shape()
        storage = next((e for e in STORAGES if self.accept(e)), "")
        return TensorType(ALL[token.text], shape, joined(storage, next((e for e in LAYOUTS if self.accept(e)), "")))

    def _shape(self) -> tuple[Dim, ...]:
        return tuple(self.list_until("]", self.size)) if self.accept("[") else ()

    def _state(self) -> StateType:
        self.expect("<")
        token = self.now
        entry = self.type()
        if not isinstance(entry, TensorType) or not entry.static:
            raise self.wrong("an entry of a state is a tensor of known shape", token)
        parts: dict[str, tuple[StateIndex, ...]] = {"table": (), "auto": ()}
        ring = False
        while self.accept(";"):
            if self.accept("ring"):
                ring = True
                continue
            word = self.kind("word", "'table', 'auto' or 'ring'")
            if word.text not in parts:
                raise self.wrong("expected 'table', 'auto' or 'ring'", word)
            self.expect("(")
            parts[word.text] = tuple(self.list_until(")", self._state_index))
        self.expect(">")
        shape = tuple(d for d in entry.shape if not isinstance(d, Expr))
        return StateType(entry.dtype, shape, parts["table"], parts["auto"], ring)

    def _state_index(self) -> StateIndex:
        name = self.kind("word", "the name of an index").text
        self.expect(":")
        capacity = self.integer()
        fixed = self.accept("!")
        return StateIndex(name, capacity, fixed, not fixed and self.accept("~"))

    # -- places

    def place(self) -> Place | None:
        """Where a value lies, if that is written."""
        if not self.sees("in"):
            return None
        space, offset = self.address()
        place = Place(space, self.string(), offset)
        if self.accept("strides"):
            self.expect("(")
            place.strides = tuple(self.list_until(")", self.size))
        if self.accept("because"):
            place.reason = self.string()
        return place

    def address(self) -> tuple[str, int | None]:
        """`in arena+128`: a space and an offset in bytes, if one is given."""
        self.expect("in")
        token = self.kind("word", "a space")
        if token.text not in SPACES:
            raise self.wrong(f"'{token.text}' is not a space", token, "ir-name")
        return token.text, self.integer() if self.accept("+") else None
