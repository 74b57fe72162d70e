"""The graph of a decoder: one entry for any number of tokens, one that leaves out all logits but the last."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import ClassVar

import numpy as np

from oic.importers.decoder import Decoder, Layer, Matrix, Norm, RotaryEmbedding
from oic.importers.text import BlockText, number, source
from oic.importers.writer import Writer

F32, Q8 = "f32", "q8"
CACHES = {F32: "f32", "f16": "f16", "bf16": "bf16", Q8: "i8"}
"""What keys and values may be stored in, and the type of its elements: of q8 a head at a position has a scale."""

FREQUENCIES = "rope_frequencies"
INVERSE = "inverse_of_layer"


@dataclass(kw_only=True)
class DecoderGraph(Writer):
    """A decoder's graph while it is written; `rows` are the sizes before those of a token."""

    rows: ClassVar[str] = "N"
    model: Decoder

    def text(self, name: str) -> str:
        """The whole source."""
        m = self.model
        kinds = list(dict.fromkeys(m.layers))
        names = _names(kinds) if len(kinds) > 1 else {}
        blocks = [*self._entries(), self._decoder(names)]
        blocks += [self._layer(kind, name) for kind, name in names.items()]
        sections = {
            "sizes": self._sizes(), "dynamic": self._inputs(), "constant": self.constants, "persistent": self._state(),
            "volatile": self._outputs(),
        }  # fmt: skip
        return source(name, f"{m.family}: {'; '.join(m.features())}", sections, blocks)

    # -- declarations

    def _sizes(self) -> list[str]:
        m = self.model
        return [
            f"vocab = {m.vocab};",
            f"D = {m.width}; // width",
            f"H = {m.heads}; // heads of queries",
            f"Hk = {m.kv_heads}; // of keys and values",
            f"Dh = {m.head_size}; // size of a head",
            f"F = {m.inner}; // width inside the feed-forward network",
            f"L = {self.layers}; // layers",
            f"T = {m.context}; // tokens that the cache has room for",
            f"P = {min(self.request.prefill, m.context)}; // tokens of one step",
        ]

    def _inputs(self) -> list[str]:
        return ["tokens: i32[N] @max(N=P);"]

    def _state(self) -> list[str]:
        return ["pos: i32 @init(0); // tokens seen", *self._tables("l, t", "l=L, t=T")]

    def _tables(self, indices: str, sizes: str) -> list[str]:
        """Keys and values, and of q8 the scales of each head at each position."""
        lines = [f"{name}({indices}): {CACHES[self.request.cache]}[Hk, Dh] @table @fixed({sizes});" for name in "KV"]
        if self.request.cache == Q8:
            lines += [f"{name}_scale({indices}): f32[Hk] @table @fixed({sizes});" for name in "KV"]
        return lines

    def _outputs(self) -> list[str]:
        return [
            "logits: f32[N, vocab]; // row i follows tokens[i]",
            "next: i64[N];",
            "last_logits: f32[1, vocab];",
            "last: i64[1];",
        ]

    # -- statements

    def _embedding(self, to: BlockText) -> None:
        """x = what the first layer reads of the tokens."""
        m = self.model
        self.lookup(to, m.embed, "tokens", "x", scale=m.embed_scale)
        if m.positions is not None:
            self._learned_positions(to, self.constant("places", m.positions, f"{m.rows}, D"))

    def _learned_positions(self, to: BlockText, places: str) -> None:
        """x = x + the rows of a table of positions."""
        to.note("Where the cache is full, that is what is refused, before a position that was never learned.")
        to.define("room", f"{CACHES[self.request.cache]}[?, Hk, Dh]", "cache.read K[0, 0..pos + N]")
        to.define("place", "f32[N, D]", f"op slice({places}, axis=0, start=pos, end=pos + N)")
        to.add("op add(x, place) >> x;")

    def _head(self, to: BlockText, x: str, logits: str) -> None:
        """The logits of x."""
        m = self.model
        name, head = ("embed", Matrix(m.embed)) if m.head is None else ("head", m.head)
        self.product(to, head, name, x, logits, "D", "vocab")
        if m.final_softcap is not None:
            cap = number(m.final_softcap)
            for line in (f"div({logits}, {cap})", f"tanh({logits})", f"mul({logits}, {cap})"):
                to.add(f"op {line} >> {logits};")

    def _last(self, to: BlockText) -> None:
        """y = what the head reads of the last token."""
        to.define("y", "f32[1, D]", "op slice(x, axis=0, start=N - 1, end=N)")

    # -- blocks

    def _entries(self) -> list[BlockText]:
        """Both; the block `decoder` makes of the tokens what the head reads, x."""
        whole = BlockText("block entry", "Logits of every token.")
        last = BlockText("block prefill @entry", "The same, with the logits of the last token alone: for prompts.")
        for block in (whole, last):
            block.add(f"assign x: f32[{self.rows}, D];", "branch decoder;")
        self._embedding(BlockText(""))  # declares its constants first
        self._head(whole, "x", "logits")
        self._last(last)
        self._head(last, "y", "last_logits")
        for block, logits, chosen in ((whole, "logits", "next"), (last, "last_logits", "last")):
            block.add(f"op argmax_axis({logits}, axis=-1) >> {chosen};", "return;")
        return [whole, last]

    def _before(self, to: BlockText) -> None:
        """What is refused before anything is computed."""

    def _after_step(self, to: BlockText) -> None:
        """The positions after the step."""
        to.add("cache.increment N pos;")

    def _decoder(self, names: dict[Layer, str]) -> BlockText:
        """All layers: blocks of these names, or where all are alike the body of a loop."""
        m = self.model
        block = BlockText("block decoder", "From tokens to what the head reads, x; keys and values go into the cache.")
        self._before(block)
        self._embedding(block)
        if names:
            for lines in _loops([names[layer] for layer in m.layers]):
                block.lines += lines
        else:
            block.nest("loop layers (l in 0..L)", self._layer(m.layers[0], "").lines)
        self.norm(block, m.final, "norm_final", "x", "x")
        self._after_step(block)
        block.add("return;")
        return block

    def _layer(self, kind: Layer, name: str) -> BlockText:
        block = BlockText(f"block {name}", _described(kind)) if name else BlockText("")
        m = self.model
        block.note("Attention over everything seen so far." if kind.window is None
                   else f"Attention over the last {kind.window} tokens.")  # fmt: skip
        self._attention(block, kind, self._read(block, m.before_attention, "norm_attention", "h"))
        if not m.parallel:
            self._after(block, m.after_attention, "norm_after_attention", "o")
        block.note("The feed-forward network.")
        h = self._read(block, m.before_network, "norm_network", "g" if m.parallel else "h")
        self.network(block, m.network, h, "u", self.rows)
        if m.parallel:
            block.add("op add(x, o) >> x;")
        self._after(block, None if m.parallel else m.after_network, "norm_after_network", "u")
        if name:
            block.add("return;")
        return block

    def _read(self, to: BlockText, norm: Norm | None, name: str, h: str) -> str:
        """What a sublayer reads: x, or its norm."""
        to.add(f"assign {h}: f32[{self.rows}, D];")
        if norm is None:
            return "x"
        self.norm(to, norm, name, "x", h)
        return h

    def _after(self, to: BlockText, norm: Norm | None, name: str, y: str) -> None:
        if norm is not None:
            self.norm(to, norm, name, y, y)
        to.add(f"op add(x, {y}) >> x;")

    def _attention(self, to: BlockText, kind: Layer, h: str) -> None:
        """o = attention of h."""
        m = self.model
        self._projections(to, h)
        for name, norm in (("q", m.q_norm), ("k", m.k_norm)):
            if norm is not None and not m.norm_whole:
                self.norm(to, norm, f"norm_{name}", f"{name}h", f"{name}h", "Dh")
        if m.by_layer:
            if INVERSE not in self.extra:
                self.extra[INVERSE] = 1 / np.arange(1, self.layers + 1, dtype=np.float32)
                self.constants.append(f"{INVERSE}(l): f32; // 1 / (l + 1)")
            to.add(f"op mul(qh, {INVERSE}[l]) >> qh;")
        self._attend(to, kind)
        to.define("m", f"f32[{self.rows}, H * Dh]", f"op reshape(a, shape=[{self.rows}, H * Dh])")
        self.product(to, m.o, "wo", "m", "o", "H * Dh", "D", self.rows)

    def _attend(self, to: BlockText, kind: Layer) -> None:
        """a = attention of qh over what was and what is new, kh and vh, which go into the cache."""
        if kind.rope is not None:
            for name in ("qh", "kh"):
                to.add(f"op rope({name}, pos=pos{self._turned(kind.rope)}) >> {name};")
        self._remember(to, "kh", "vh", "N", "l, pos..pos + N")
        scales = self._recall(to, "", "l, 0..pos + N")
        to.define("a", "f32[N, H, Dh]", f"op attention(qh, keys, values, {scales}{self._settings(kind)})")

    def _remember(self, to: BlockText, k: str, v: str, rows: str, at: str) -> None:
        """New keys k and values v, f32[rows, Hk, Dh], go into the cache, as it stores them."""
        cache = self.request.cache
        for table, x in (("K", k), ("V", v)):
            if cache == Q8:
                for part, dims in (("size", "Hk, Dh"), ("scale", "Hk"), ("step", "Hk, 1")):
                    to.add(f"assign {x}_{part}: f32[{rows}, {dims}];")
                to.add(f"op abs({x}) >> {x}_size;")
                for part, kept in (("scale", ""), ("step", ", keepdims=true")):
                    to.add(f"op max_axis({x}_size, axes=[-1]{kept}) >> {x}_{part};")
                    to.add(f"op div({x}_{part}, 127.0) >> {x}_{part};")
                to.add(f"op div({x}, {x}_step) >> {x}_size;")
            stored = x if cache == F32 else f"{x}_stored"
            if stored != x:
                how = f'{x}_size, to=i8, rounding_mode="nearest"' if cache == Q8 else f"{x}, to={cache}"
                to.define(stored, f"{CACHES[cache]}[{rows}, Hk, Dh]", f"op cast({how})")
            to.add(f"cache.write {stored} >> {table}[{at}];")
            if cache == Q8:
                to.add(f"cache.write {x}_scale >> {table}_scale[{at}];")

    def _recall(self, to: BlockText, lead: str, at: str) -> str:
        """keys and values = what the cache has; the operands of attention that are their scales."""
        for name, table in (("keys", "K"), ("values", "V")):
            to.define(name, f"{CACHES[self.request.cache]}[{lead}?, Hk, Dh]", f"cache.read {table}[{at}]")
        if self.request.cache != Q8:
            return ""
        for name, table in (("key_scales", "K"), ("value_scales", "V")):
            to.define(name, f"f32[{lead}?, Hk]", f"cache.read {table}_scale[{at}]")
        return "k_scale=key_scales, v_scale=value_scales, "

    def _settings(self, kind: Layer) -> str:
        """The settings of attention."""
        m = self.model
        settings = ["causal=true"]
        if kind.window is not None:
            settings.append(f"window={kind.window}")
        usual = m.head_size**-0.5
        scale = (m.scale or usual) * (kind.rope.strength * kind.rope.strength if kind.rope else 1)
        if not math.isclose(scale, usual, rel_tol=1e-12):
            settings.append(f"scale={number(scale)}")
        if m.softcap is not None:
            settings.append(f"softcap={number(m.softcap)}")
        return ", ".join(settings)

    def _turned(self, rope: RotaryEmbedding) -> str:
        settings = "" if rope.style == "half" else f', style="{rope.style}"'
        if rope.dims != self.model.head_size:
            settings += f", dims={rope.dims}"
        if rope.freqs is None:
            return settings + f", base={number(rope.base)}"
        return settings + f", freqs={self._frequencies(rope.freqs)}"

    def _frequencies(self, freqs: tuple[float, ...]) -> str:
        """A constant of the importer's own with these numbers."""
        array = np.asarray(freqs, np.float32)
        for name, known in self.extra.items():
            if np.array_equal(known, array):
                return name
        name = FREQUENCIES + (f"_{len(self.extra)}" if self.extra else "")
        self.extra[name] = array
        self.constants.append(f"{name}: f32[{len(array)}];")
        return name

    def _projections(self, to: BlockText, h: str) -> None:
        """qh, kh and vh: queries, keys and values by head."""
        m, rows = self.model, self.rows
        by_head = {"q": "H", "k": "Hk", "v": "Hk"}
        to.add(*(f"assign {name}h: f32[{rows}, {heads}, Dh];" for name, heads in by_head.items()))
        if m.qkv is not None and m.order == "heads":
            to.add(f"assign qkv: f32[{rows}, H * 3 * Dh];", f"assign by_head: f32[{rows}, H, 3 * Dh];")
            self.product(to, m.qkv, "wqkv", h, "qkv", "D", "H * 3 * Dh")
            to.add(f"op reshape(qkv, shape=[{rows}, H, 3 * Dh]) >> by_head;")
            to.add(f"op split(by_head, axis={rows.count(',') + 2}, sizes=[Dh, Dh, Dh]) >> qh, kh, vh;")
            return
        if m.qkv is not None:
            self._split(to, m.qkv)
        for (name, heads), matrix in zip(by_head.items(), (m.q, m.k, m.v)):
            if matrix is not None:
                self.product(to, matrix, f"w{name}", h, name, "D", f"{heads} * Dh", rows)
            elif m.qkv is not None:  # in the parts that `_split` gave
                to.add(f"assign {name}: f32[{rows}, {heads} * Dh];")
                self.multiply(to, m.qkv, h, f"w{name}", f"b{name}" if m.qkv.bias else None, name)
            norm = {"q": m.q_norm, "k": m.k_norm}.get(name) if m.norm_whole else None
            if norm is not None:
                self.norm(to, norm, f"norm_{name}", name, name, f"{heads} * Dh")
            to.add(f"op reshape({name}, shape=[{rows}, {heads}, Dh]) >> {name}h;")

    def _split(self, to: BlockText, matrix: Matrix) -> None:
        """wq, wk, wv, and their biases: columns or rows of one matrix, as views."""
        dims, axis = ("D, 3 * D", 1) if matrix.by_columns else ("3 * D, D", 0)
        weights = self.constant("wqkv", matrix.tensor, dims, narrow=True)
        to.add(*(f"assign w{name}: {self.stored(matrix.tensor)}[D, D];" for name in "qkv"))
        to.add(f"op split({weights}, axis={axis}, sizes=[D, D, D]) >> wq, wk, wv;")
        if matrix.bias:
            biases = self.constant("wqkv_bias", matrix.bias, "3 * D")
            to.add(*(f"assign b{name}: f32[D];" for name in "qkv"))
            to.add(f"op split({biases}, axis=0, sizes=[D, D, D]) >> bq, bk, bv;")


def _described(kind: Layer) -> str:
    reach = "sees everything" if kind.window is None else f"sees {kind.window} tokens"
    return f"A layer that {reach}" + ("." if kind.rope else ", without rotary positions.")


def _names(kinds: list[Layer]) -> dict[Layer, str]:
    """A name for each kind of layer; those that would have the same are numbered."""
    named = [kind.name for kind in kinds]
    return {kind: f"{kind.name}_{i}" if named.count(kind.name) > 1 else kind.name for i, kind in enumerate(kinds)}


def _loops(names: list[str]) -> list[list[str]]:
    """Loops over layers of different kinds: a period that repeats, then the rest."""
    count = len(names)
    period = next((p for p in range(1, count // 2 + 1) if all(n == names[i % p] for i, n in enumerate(names))), count)
    if period == count:
        return [_loop(name, str(first), str(end)) for name, first, end in _runs(names, 0)]
    groups = count // period
    inner = [
        line
        for name, first, end in _runs(names[:period], 0)
        for line in _loop(name, f"g * {period} + {first}" if first else f"g * {period}", f"g * {period} + {end}")
    ]
    rest = _runs(names[groups * period :], groups * period)
    repeated = [f"loop groups (g in 0..{groups}) {{", *("  " + line for line in inner), "}"]
    return [repeated, *(_loop(name, str(first), str(end), "rest_") for name, first, end in rest)]


def _runs(names: list[str], start: int) -> Iterator[tuple[str, int, int]]:
    """Neighbours of one name, as (name, first, end)."""
    for name, group in groupby(enumerate(names, start), itemgetter(1)):
        places = [i for i, _ in group]
        yield name, places[0], places[-1] + 1


def _loop(name: str, first: str, end: str, prefix: str = "") -> list[str]:
    tag = f"{prefix}{name}_{first}" if first.isdigit() else f"{prefix}{name}_layers"
    return [f"loop {tag} (l in {first}..{end}) {{ branch {name}; }}"]
