"""The graph of a decoder with a batch: rows at positions of their own, of which a step takes any number of tokens each.

    tokens i32[B, N], lengths i32[B]    →  logits f32[B, N, vocab]

Row b goes on with its first `lengths[b]` tokens, none too; what is behind them has no effect.  Products read the
weights once for all rows; attention goes over the keys of each row by itself, as in a run of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from oic.importers.decoder import Layer
from oic.importers.decoder_graph import CACHES, DecoderGraph
from oic.importers.text import BlockText

N_OF_ROW = "op slice(lengths, axis=0, start=b, end=b + 1) >> n;"
P_OF_ROW = "cache.read pos[b] >> p;"


@dataclass(kw_only=True)
class BatchGraph(DecoderGraph):
    """A decoder's graph for several sequences while it is written."""

    rows: ClassVar[str] = "B, N"

    # -- declarations

    def _sizes(self) -> list[str]:
        return [f"B = {self.request.batch}; // sequences at once", *super()._sizes()]

    def _inputs(self) -> list[str]:
        return [
            "tokens: i32[B, N] @max(N=P); // of each row the first lengths[b]; behind them any tokens",
            "lengths: i32[B];",
        ]

    def _state(self) -> list[str]:
        return ["pos(b): i32 @table @fixed(b=B); // tokens of each row seen", *self._tables("l, b, t", "l=L, b=B, t=T")]

    def _outputs(self) -> list[str]:
        return [
            "logits: f32[B, N, vocab]; // row i of each follows tokens[.., i]",
            "next: i64[B, N];",
            "last_logits: f32[B, vocab]; // after the last token of each row",
            "last: i64[B];",
        ]

    # -- statements

    def _before(self, to: BlockText) -> None:
        to.note("Refused here: a length that its row does not have, and more tokens than the cache has room for.")
        stored = CACHES[self.request.cache]
        to.add("assign n: i32[1];", "assign p: i32;", "assign given: i32[B, ?];", f"assign room: {stored}[?, Hk, Dh];")
        to.nest("loop rows (b in 0..B)", [
            N_OF_ROW, "op slice(tokens, axis=1, start=0, end=n) >> given;",
            P_OF_ROW, "cache.read K[0, b, p..p + n] >> room;",
        ])  # fmt: skip
        to.lines.append("")

    def _learned_positions(self, to: BlockText, places: str) -> None:
        body = self._row(to)
        body.define("place", "f32[?, D]", f"op slice({places}, axis=0, start=p, end=p + n)")
        part = self._new(body, "x", "xb", "D")
        body.add(f"op add({part}, place) >> {part};", f"transfer {part} >> x[b..b + 1, 0..n];")
        to.nest("loop placed (b in 0..B)", body.lines)

    def _last(self, to: BlockText) -> None:
        to.add("assign y: f32[B, D];", "assign n: i32[1];")
        body = BlockText("", declared=set(to.declared))
        body.add(N_OF_ROW)
        part = self._new(body, "x", "xb", "D")
        body.add("assign one: f32[1, 1, D];", "assign last_x: f32[1, D];")
        body.nest("loop until_last (i in 0..n)", [
            f"op slice({part}, axis=1, start=i, end=i + 1) >> one;",
            "op reshape(one, shape=[1, D]) >> last_x;",
            "transfer last_x >> y[b..b + 1];",
        ])  # fmt: skip
        to.nest("loop last_of (b in 0..B)", body.lines)

    def _after_step(self, to: BlockText) -> None:
        to.nest("loop moved (b in 0..B)", [N_OF_ROW, "cache.increment n pos[b];"])

    def _attend(self, to: BlockText, kind: Layer) -> None:
        to.add("assign a: f32[B, N, H, Dh];")
        body = self._row(to)
        for name, heads in (("q", "H"), ("k", "Hk"), ("v", "Hk")):
            self._new(body, f"{name}h", f"{name}b", f"{heads}, Dh")
        if kind.rope is not None:
            for name in ("qb", "kb"):
                body.add(f"op rope({name}, pos=p{self._turned(kind.rope)}) >> {name};")
        self._remember(body, "kb", "vb", "1, ?", "l, b..b + 1, p..p + n")
        scales = self._recall(body, "1, ", "l, b..b + 1, 0..p + n")
        body.define("ab", "f32[1, ?, H, Dh]", f"op attention(qb, keys, values, {scales}{self._settings(kind)})")
        body.add("transfer ab >> a[b..b + 1, 0..n];")
        to.nest("loop of_rows (b in 0..B)", body.lines)

    def _row(self, to: BlockText) -> BlockText:
        """The body of a loop over rows: n new tokens of row b, from its position p on."""
        to.note("Each row by itself: n new tokens, from its position p on.")
        body = BlockText("", declared=set(to.declared) | {"n", "p"})
        body.add(N_OF_ROW, P_OF_ROW)
        return body

    def _new(self, to: BlockText, whole: str, name: str, dims: str) -> str:
        """The n new tokens of row b."""
        to.define(f"{name}_padded", f"f32[1, N, {dims}]", f"op slice({whole}, axis=0, start=b, end=b + 1)")
        to.define(name, f"f32[1, ?, {dims}]", f"op slice({name}_padded, axis=1, start=0, end=n)")
        return name
