"""The graph of an encoder–decoder: `encode` reads sources, `entry` goes on with their outputs.

    encode   source i32[B, M], lengths i32[B]    →  encoded; the decoder is at its start
    entry    tokens i32[B, N]                    →  logits f32[B, N, vocab], next i64[B, N]

Keys and values of the attention to the encoder are computed by `encode`, once a source.  Sources of different lengths
are padded behind; what is behind a length has no effect, so each row has the bits of a run of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from oic.importers.decoder import Matrix, Norm
from oic.importers.encoder_decoder import AttentionWeights, EncoderDecoder, Stack
from oic.importers.text import BlockText, number, source
from oic.importers.writer import Writer


@dataclass(kw_only=True)
class EncoderDecoderGraph(Writer):
    """An encoder–decoder's graph while it is written: statements of one side, that of the encoder unless said.

    stack        that side; the other side is written by a graph with all else in common
    prefix       of the side's constants
    rows         the sizes before those of a token
    heads, size  names of the number of heads, and of the size of one
    inner        of the width inside the feed-forward network
    """

    model: EncoderDecoder
    stack: Stack
    prefix: str = "encoder_"
    rows: str = "B, M"
    heads: str = "He"
    size: str = "Dhe"
    inner: str = "Fe"

    def text(self, name: str) -> str:
        """The whole source, by the graph of the encoder."""
        m = self.model
        decoder = replace(self, stack=m.decoder, layers=m.decoder.layers, prefix="", rows="B, N", heads="H", size="Dh",
                          inner="F")  # fmt: skip
        blocks = self._encode(decoder), decoder._step()
        caches = [("K", "t", "T"), ("V", "t", "T"), ("cross_K", "s", "S"), ("cross_V", "s", "S")]
        sections = {
            "sizes": self._sizes(),
            "dynamic": [
                "source: i32[B, M] @max(M=S); // padded behind with any token",
                "lengths: i32[B];             // of the sources",
                "tokens: i32[B, N] @max(N=P); // of the outputs",
            ],
            "constant": self.constants,
            "persistent": [
                "pos: i32 @init(0); // tokens of the outputs seen",
                "source_lengths(b): i32 @table @fixed(b=B);",
                *(f"{c}(l, b, h, {i}): f32[Dh] @table @fixed(l=L, b=B, h=H, {i}={n});" for c, i, n in caches),
            ],
            "volatile": [
                "encoded: f32[B, M, D];      // what the encoder gives",
                "logits: f32[B, N, vocab];   // row i follows tokens[.., i]",
                "next: i64[B, N];",
            ],
        }
        return source(name, f"{m.family}: {'; '.join(m.features())}", sections, blocks)

    def _sizes(self) -> list[str]:
        m, e, d = self.model, self.model.encoder, self.model.decoder
        return [
            f"B = {self.request.batch or 1}; // sources at once",
            f"S = {m.context}; // tokens of a source at most",
            f"T = {m.context}; // tokens of an output at most: the cache has room for so many",
            f"P = {min(self.request.prefill, m.context)}; // tokens of one step",
            f"vocab = {m.vocab};",
            f"D = {m.width}; // width",
            f"Le = {e.layers}; // layers of the encoder",
            f"He = {e.heads}; // its heads",
            f"Dhe = {e.head_size}; // size of one",
            f"Fe = {e.inner}; // width inside its feed-forward network",
            f"L = {d.layers}; // likewise of the decoder",
            f"H = {d.heads};",
            f"Dh = {d.head_size};",
            f"F = {d.inner};",
        ]

    # -- blocks

    def _encode(self, decoder: EncoderDecoderGraph) -> BlockText:
        """The encoder, and keys and values of every layer of the decoder."""
        block = BlockText("block encode @entry", "Reads sources; the outputs begin anew.")
        block.note("A length that its source does not have is refused, and that of an empty one.")
        block.add("assign length: i32[1];", "assign last: i32[B, 1];")
        block.nest("loop rows (b in 0..B)", [
            "op slice(lengths, axis=0, start=b, end=b + 1) >> length;",
            "op slice(source, axis=1, start=length - 1, end=length) >> last;",
        ])  # fmt: skip
        block.note("The encoder.")
        self._embedding(block, "source", "0", "M")
        self._bias(block, "0", "M")
        block.nest("loop encoder_layers (l in 0..Le)", self._encoder_layer().lines)
        if self.stack.final is not None:
            self.norm(block, self.stack.final, "encoder_norm_final", "x", "encoded")
        else:
            block.add("transfer x >> encoded;")
        block.note("What every layer of the decoder attends to.")
        block.nest("loop cross_layers (l in 0..L)", decoder._cross_tables().lines)
        block.add("cache.write lengths >> source_lengths[0..B];")
        block.add(*(f"cache.reset {name};" for name in ("pos", "K", "V")), "return;")
        return block

    def _step(self) -> BlockText:
        """The decoder."""
        m = self.model
        block = BlockText("block entry", "Logits of the next tokens of the outputs; keys and values go into the cache.")
        block.define("length", "i32", "cache.read source_lengths[0]")
        block.add("assign last: f32[Dh];")
        block.add("cache.read cross_K[0, 0, 0, length - 1] >> last; // before encode, a step is refused here")
        block.add("assign room: f32[?, Dh];")
        block.add("cache.read K[0, 0, 0, pos..pos + N] >> room; // a full cache is refused here")
        block.define("used", "i32[B]", "cache.read source_lengths[0..B]")
        self._embedding(block, "tokens", "pos", "N")
        self._bias(block, "pos", "N")
        block.nest("loop layers (l in 0..L)", self._decoder_layer().lines)
        if self.stack.final is not None:
            self.norm(block, self.stack.final, "norm_final", "x", "x")
        if m.head_scale is not None:
            block.add(f"op mul(x, {number(m.head_scale)}) >> x;")
        name, head = ("embed", Matrix(m.embed)) if m.head is None else ("head", m.head)
        self.product(block, head, name, "x", "logits", "D", "vocab")
        if m.logits_bias is not None:
            block.add(f"op add(logits, {self.constant('logits_bias', m.logits_bias, '1, vocab')}) >> logits;")
        block.add("op argmax_axis(logits, axis=-1) >> next;", "cache.increment N pos;", "return;")
        return block

    # -- what precedes the layers, and their bodies

    def _embedding(self, to: BlockText, ids: str, start: str, count: str) -> None:
        """x = the embedding of tokens, with their positions where these are learned."""
        m, s = self.model, self.stack
        to.add(f"assign x: f32[{self.rows}, D];")
        name = "embed" if s.embed == m.embed else f"{self.prefix or 'decoder_'}embed"
        self.lookup(to, s.embed, ids, "x", name=name, scale=m.embed_scale)
        if s.places is not None:
            table = self.constant(f"{self.prefix}places", s.places.tensor, f"{s.places.rows}, D")
            first, end = _sum(start, s.places.offset), _sum(start, count, s.places.offset)
            to.define("place", f"f32[{count}, D]", f"op slice({table}, axis=0, start={first}, end={end})")
            to.add("op add(x, place) >> x;")
        if s.norm_embedding is not None:
            self.norm(to, s.norm_embedding, f"{self.prefix}norm_embedding", "x", "x")

    def _bias(self, to: BlockText, start: str, count: str) -> None:
        """bias = what is added to scores by distance, the same in every layer."""
        b = self.stack.bias
        if b is None:
            return
        keys = _sum(start, count)
        table = self.constant(f"{self.prefix}distances", b.tensor, f"{b.buckets}, {self.heads}")
        both = "true" if self.stack.cross is None else "false"
        settings = f"q_start={start}, n={count}, t={keys}, bidirectional={both}, max_distance={b.max_distance}"
        type_ = f"f32[{self.heads}, {count}, {'?' if keys != count else keys}]"
        to.define("bias", type_, f"op relative_position_bias({table}, {settings})")

    def _encoder_layer(self) -> BlockText:
        """The body of the loop over the encoder's layers."""
        block, s = BlockText(""), self.stack
        block.note("Attention over the tokens of each source.")
        with_bias = "" if s.bias is None else ", bias=bias"

        self._projections(block)
        self._attention(block, s.attention, "", f"qh, kh, vh{with_bias}, kv_len=lengths")
        self._network(block)
        return block

    def _decoder_layer(self) -> BlockText:
        """The body of the loop over the decoder's layers."""
        block, s = BlockText(""), self.stack
        assert s.cross is not None
        with_bias = "" if s.bias is None else ", bias=bias"
        block.note("Attention over everything of the output so far.")
        self._projections(block)
        for name in "kv":
            self._write(block, name, name.upper(), "N", "pos..pos + N")
        for name, table in (("keys", "K"), ("values", "V")):
            self._read(block, name, f"{table}[l, 0..B, 0..H, 0..pos + N]", "?")
        self._attention(block, s.attention, "", f"qh, keys, values{with_bias}, causal=true")
        block.note("Attention over the source.")
        h = self._input(block, s.cross.norm, "cross_norm_attention")
        self._projected(block, s.cross.q, "cross_wq", h, "q", self.rows)
        for name, table in (("cross_keys", "cross_K"), ("cross_values", "cross_V")):
            self._read(block, name, f"{table}[l]", "S")
        self._attention(block, s.cross, "cross_", "qh, cross_keys, cross_values, kv_len=used")
        self._network(block)
        return block

    def _cross_tables(self) -> BlockText:
        """The body of the loop that fills the tables of the attention to the encoder."""
        block, cross = BlockText(""), self.stack.cross
        assert cross is not None
        for name, matrix in (("k", cross.k), ("v", cross.v)):
            self._projected(block, matrix, f"cross_w{name}", "encoded", f"cross_{name}", "B, M")
            self._write(block, f"cross_{name}", f"cross_{name.upper()}", "M", "0..M")
        return block

    # -- parts of a layer

    def _attention(self, to: BlockText, part: AttentionWeights, prefix: str, arguments: str) -> None:
        """x = x + attention, with its norm where that comes after."""
        heads, size = self.heads, self.size
        scale, usual = self.model.scale, self.stack.head_size**-0.5
        if scale is not None and not math.isclose(scale, usual, rel_tol=1e-12):
            arguments += f", scale={number(scale)}"
        to.define("a", f"f32[{self.rows}, {heads}, {size}]", f"op attention({arguments})")
        whole = f"{self.rows}, {heads} * {size}"
        to.define("m", f"f32[{whole}]", f"op reshape(a, shape=[{whole}])")
        self.product(to, part.o, f"{self.prefix}{prefix}wo", "m", "o", f"{heads} * {size}", "D", self.rows)
        self._added(to, part.norm, f"{prefix}norm_attention", "o")

    def _network(self, to: BlockText) -> None:
        """x = x + the feed-forward network, with its norm."""
        s = self.stack
        to.note("The feed-forward network.")
        h = self._input(to, s.network_norm, "norm_network")
        self.network(to, s.network, h, "u", self.rows, self.inner, self.prefix)
        self._added(to, s.network_norm, "norm_network", "u")

    def _input(self, to: BlockText, norm: Norm, name: str) -> str:
        """What a sublayer reads."""
        if not self.model.before:
            return "x"
        to.add(f"assign h: f32[{self.rows}, D];")
        self.norm(to, norm, self.prefix + name, "x", "h")
        return "h"

    def _added(self, to: BlockText, norm: Norm, name: str, y: str) -> None:
        """x = x + y, and its norm where that comes after."""
        to.add(f"op add(x, {y}) >> x;")
        if not self.model.before:
            self.norm(to, norm, self.prefix + name, "x", "x")

    def _projections(self, to: BlockText) -> None:
        """qh, kh and vh = queries, keys and values by head."""
        part = self.stack.attention
        h = self._input(to, part.norm, "norm_attention")
        for name, matrix in (("q", part.q), ("k", part.k), ("v", part.v)):
            self._projected(to, matrix, f"{self.prefix}w{name}", h, name, self.rows)

    def _projected(self, to: BlockText, matrix: Matrix, name: str, h: str, y: str, rows: str) -> None:
        """y = the product of h, and by head."""
        heads, size = self.heads, self.size
        self.product(to, matrix, name, h, y, "D", f"{heads} * {size}", rows)
        to.define(f"{y}h", f"f32[{rows}, {heads}, {size}]", f"op reshape({y}, shape=[{rows}, {heads}, {size}])")

    def _write(self, to: BlockText, name: str, table: str, count: str, where: str) -> None:
        """Keys or values into a table, whose positions come after the heads."""
        to.define(f"{name}t", f"f32[B, H, {count}, Dh]", f"op transpose({name}h, perm=[0, 2, 1, 3])")
        to.add(f"cache.write {name}t >> {table}[l, 0..B, 0..H, {where}];")

    def _read(self, to: BlockText, name: str, access: str, count: str) -> None:
        """Keys or values out of a table, as attention takes them."""
        to.define(f"{name}_t", f"f32[B, H, {count}, Dh]", f"cache.read {access}")
        to.define(name, f"f32[B, {count}, H, Dh]", f"op transpose({name}_t, perm=[0, 2, 1, 3])")


def _sum(*terms: str | int) -> str:
    """An index expression without its zeros."""
    return " + ".join(str(t) for t in terms if str(t) != "0") or "0"
