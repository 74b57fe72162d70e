"""oic: a checkpoint imported, built, and run through the Python interface."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

import oic
from against.checkpoint import write
from against.decoders import DECODERS
from oic.importers import import_checkpoint

LARGE = 1 << 30  # weights: from here on the checkpoint is in bf16


def options(precision: str, threads: int, numerics: str | None = None) -> dict[str, object]:
    """Of a Synthesizer."""
    return {"threads": threads, "numerics": numerics, **({} if precision == "f32" else {"weights": precision})}


class Engine:
    """A decoder with its state."""

    version = oic.__version__

    def __init__(
        self, decoder: str, precision: str, threads: int, prompt: int, cache: str = "f32", numerics: str | None = None
    ) -> None:
        self.decoder = DECODERS[decoder]
        large = self.decoder.weight_bytes("f32") / 4 > LARGE
        self.folder = tempfile.TemporaryDirectory()  # for as long as the process lasts
        source, self.graph = Path(self.folder.name) / "in", Path(self.folder.name) / "graph"
        write(self.decoder, source, "BF16" if large else "F32")
        import_checkpoint(source, self.graph, context=self.decoder.context, prefill=prompt, cache=cache)
        self.options = options("f32" if large and precision == "bf16" else precision, threads, numerics)
        self.built, self.seconds = self._built()
        self.prompt, self.executor, self.position = prompt, self.built.make_executor(), 0

    def _built(self) -> tuple[oic.Synthesizer, float]:
        """A library, and the seconds that it took from text and checkpoint, C compiler and packing included."""
        start = time.perf_counter()
        graph, model = oic.parse_file(self.graph / "graph.oi"), oic.Model.open(self.graph / "model.json")
        built = oic.Synthesizer(graph, model, fetch=["next", "last"], **self.options).build()
        return built, time.perf_counter() - start

    def _feed(self, entry: str, tokens: np.ndarray) -> None:
        self.executor.step(entry, tokens=tokens)
        self.position += len(tokens)

    def _reset(self) -> None:
        self.executor.reset()
        self.position = 0

    def decode(self, position: int, count: int) -> list[float]:
        """Seconds of tokens one by one, from a position on."""
        if self.position > position:
            self.executor.truncate(self.position - position)
            self.position = position
        while self.position < position:
            self._feed("prefill", np.full(min(self.prompt, position - self.position), 7, np.int32))
        token, seconds = np.array([5], np.int32), []
        for _ in range(count):
            start = time.perf_counter()
            self._feed("entry", token)
            seconds.append(time.perf_counter() - start)
        return seconds

    def prefill(self, count: int) -> float:
        """Seconds of a prompt in one step."""
        self._reset()
        tokens = np.full(count, 7, np.int32)
        start = time.perf_counter()
        self._feed("prefill", tokens)
        return time.perf_counter() - start

    def build(self, times: int) -> list[float]:
        """Seconds of so many builds, of which the first was for all else."""
        return [self.seconds, *(self._built()[1] for _ in range(times - 1))]
