"""Graphs that go on with tokens: one entry for any number of them, one that leaves out all logits but the last."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from oic.importers.text import BlockText
from oic.importers.writer import Writer


@dataclass(kw_only=True)
class TokenGraph(Writer, ABC):
    """Such a graph while it is written; `rows` are the sizes before those of a token."""

    rows: ClassVar[str] = "N"

    def outputs(self) -> list[str]:
        return [
            "logits: f32[N, vocab]; // row i follows tokens[i]",
            "next: i64[N];",
            "last_logits: f32[1, vocab];",
            "last: i64[1];",
        ]

    def entries(self) -> list[BlockText]:
        """Both; the block `decoder` makes of the tokens what the head reads, x."""
        whole = BlockText("block entry", "Logits of every token.")
        last = BlockText("block prefill @entry", "The same, with the logits of the last token alone: for prompts.")
        for block in (whole, last):
            block.assign("x", f"f32[{self.rows}, D]")
            block.add("branch decoder;")
        self.embedding(BlockText(""))  # declares its constants first
        self.head(whole, "x", "logits")
        self.last(last)
        self.head(last, "y", "last_logits")
        for block, logits, chosen in ((whole, "logits", "next"), (last, "last_logits", "last")):
            block.add(f"op argmax_axis({logits}, axis=-1) >> {chosen};")
            block.add("return;")
        return [whole, last]

    @abstractmethod
    def embedding(self, to: BlockText) -> None:
        """x = what the first layer reads of the tokens."""

    @abstractmethod
    def head(self, to: BlockText, x: str, logits: str) -> None:
        """The logits of x."""

    def last(self, to: BlockText) -> None:
        """y = what the head reads of the last token."""
        to.define("y", "f32[1, D]", "op slice(x, axis=0, start=N - 1, end=N)")
