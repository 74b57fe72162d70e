"""Attributes, sizes, types and places of the text form, read from tokens."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from oic.dtypes import ALL, DType
from oic.ir import dims
from oic.ir.core import Place, Value
from oic.ir.dims import Dim, Expr, Extent
from oic.ir.encodings import LAYOUTS, STORAGES, joined
from oic.ir.text_tokens import Cursor, Lexeme
from oic.ir.types import INDEX, StateIndex, StateType, TensorType, Type

DEPTH = 100  # regions and lists nested deeper than this are refused
SPACES = ("arena", "entry", "state", "weights", "input", "output", "local")
SIMPLE = {"true": True, "false": False, "none": None, "inf": math.inf, "nan": math.nan}


class Values:
    """Reads what an op is made of; `extents` are those the header declares."""

    def __init__(self, cursor: Cursor, value: Callable[[], Value]) -> None:
        self.c = cursor
        self.value = value
        self.extents: dict[str, Extent] = {}
        self.depth = 0

    # -- attributes

    def attribute(self) -> Any:
        """A literal, a type, a size, an extent, a value, or a list, tuple or dictionary of them."""
        self.depth += 1
        if self.depth > DEPTH:
            raise self.c.wrong("lists are nested too deeply")
        try:
            return self._attribute()
        finally:
            self.depth -= 1

    def _attribute(self) -> Any:
        token = self.c.now
        if token.kind == "string":
            return self.c.string()
        if token.kind == "value":
            return self.value()
        if token.kind == "float" or (token.text == "-" and self._float_follows()):
            return self._float()
        if token.kind == "word" and token.text in SIMPLE:
            return SIMPLE[self.c.take().text]
        if token.kind == "word" and (token.text in ALL or token.text in ("index", "state")):
            return self._dtype_or_type()
        if self.c.accept("@"):
            return self.extent()
        if self.c.accept("["):
            return self.c.list_until("]", self.attribute)
        if self.c.accept("{"):
            return dict(self.c.list_until("}", self._pair))
        return self._tuple_or_size() if self.c.sees("(") else self.size()

    def _float_follows(self) -> bool:
        return self.c.next.kind == "float" or self.c.next.text in ("inf", "nan")

    def _float(self) -> float:
        sign = -1.0 if self.c.accept("-") else 1.0
        return sign * float(self.c.take().text)

    def _dtype_or_type(self) -> DType | Type:
        if self.c.now.text in ALL and self.c.next.text != "[":
            return ALL[self.c.take().text]
        return self.type()

    def _pair(self) -> tuple[str, Any]:
        key = self.c.string()
        self.c.expect(":")
        return key, self.attribute()

    def _tuple_or_size(self) -> Any:
        """`()` and `(a,)` and `(a, b)` are tuples; `(a)` starts a size."""
        start = self.c.at
        self.c.take()
        items: list[Any] = []
        comma = False
        while not self.c.accept(")"):
            if items:
                self.c.expect(",")
                comma = True
                if self.c.accept(")"):
                    break
            items.append(self.attribute())
        if len(items) == 1 and not comma:
            self.c.at = start
            return self.size()
        return tuple(items)

    def extent_name(self, token: Lexeme) -> str:
        """The name that a token gives: a word, or any text in back quotes."""
        if token.kind not in ("word", "back"):
            raise self.c.wrong("expected the name of an extent", token)
        return token.text.strip("`")

    def extent(self) -> Extent:
        """An extent of the header."""
        token = self.c.take()
        name = self.extent_name(token)
        if name not in self.extents:
            raise self.c.unknown(f"extent '{name}' is not declared", token, self.extents, name)
        return self.extents[name]

    def size(self) -> Dim:
        """A sum of products."""
        self.depth += 1
        if self.depth > DEPTH:
            raise self.c.wrong("sizes are nested too deeply")
        total: Dim = -self._product() if self.c.accept("-") else self._product()
        while self.c.sees("+") or self.c.sees("-"):
            plus = self.c.take().text == "+"
            part = self._product()
            total = total + part if plus else total - part
        self.depth -= 1
        return total

    def _product(self) -> Dim:
        total = self._factor()
        while self.c.sees("*") or self.c.sees("//"):
            if self.c.take().text == "*":
                total = total * self._factor()
                continue
            token = self.c.now
            divisor = self._factor()
            if dims.maximum(divisor) < 1:
                raise self.c.wrong("a size is divided by what is never positive", token)
            total = dims.floor_div(total, divisor)
        return total

    def _factor(self) -> Dim:
        if self.c.now.kind == "int":
            return self.c.integer()
        if self.c.accept("("):
            inner = self.size()
            self.c.expect(")")
            return inner
        if self.c.now.kind in ("word", "back"):
            return dims.of(self.extent())
        raise self.c.wrong(f"expected a value, found {self.c.now.text!r}")

    # -- types

    def type(self) -> Type:
        """A tensor type, `index`, or a state."""
        token = self.c.kind("word", "a type")
        if token.text == "index":
            return INDEX
        if token.text == "state":
            return self._state()
        if token.text not in ALL:
            raise self.c.wrong(f"'{token.text}' is not a type", token, "ir-name")
        shape = self._shape()
        storage = next((e for e in STORAGES if self.c.accept(e)), "")
        return TensorType(ALL[token.text], shape, joined(storage, next((e for e in LAYOUTS if self.c.accept(e)), "")))

    def _shape(self) -> tuple[Dim, ...]:
        return tuple(self.c.list_until("]", self.size)) if self.c.accept("[") else ()

    def _state(self) -> StateType:
        self.c.expect("<")
        token = self.c.now
        entry = self.type()
        if not isinstance(entry, TensorType) or not entry.static:
            raise self.c.wrong("an entry of a state is a tensor of known shape", token)
        parts: dict[str, tuple[StateIndex, ...]] = {"table": (), "auto": ()}
        ring = False
        while self.c.accept(";"):
            if self.c.accept("ring"):
                ring = True
                continue
            word = self.c.kind("word", "'table', 'auto' or 'ring'")
            if word.text not in parts:
                raise self.c.wrong("expected 'table', 'auto' or 'ring'", word)
            self.c.expect("(")
            parts[word.text] = tuple(self.c.list_until(")", self._state_index))
        self.c.expect(">")
        shape = tuple(d for d in entry.shape if not isinstance(d, Expr))
        return StateType(entry.dtype, shape, parts["table"], parts["auto"], ring)

    def _state_index(self) -> StateIndex:
        name = self.c.kind("word", "the name of an index").text
        self.c.expect(":")
        capacity = self.c.integer()
        fixed = self.c.accept("!")
        return StateIndex(name, capacity, fixed, not fixed and self.c.accept("~"))

    # -- places

    def place(self) -> Place | None:
        """Where a value lies, if that is written."""
        if not self.c.sees("in"):
            return None
        space, offset = self.address()
        place = Place(space, self.c.string(), offset)
        if self.c.accept("strides"):
            self.c.expect("(")
            place.strides = tuple(self.c.list_until(")", self.size))
        if self.c.accept("because"):
            place.reason = self.c.string()
        return place

    def address(self) -> tuple[str, int | None]:
        """`in arena+128`: a space and an offset in bytes, if one is given."""
        self.c.expect("in")
        token = self.c.kind("word", "a space")
        if token.text not in SPACES:
            raise self.c.wrong(f"'{token.text}' is not a space", token, "ir-name")
        return token.text, self.c.integer() if self.c.accept("+") else None
