"""Blocks of 32 neighbours with a scale (f16), as GGUF files hold them: Q8_0 and Q4_0.

    Q8_0   f16 scale, i8[32]; real = q * scale
    Q4_0   f16 scale, u8[16]: element i in the lower half of byte i, 16 + i in the upper; real = (n - 8) * scale

Products of an integer and a scale are exact in f32.  Source: ggml, `ggml-quants.c`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oic.model.file import ModelFile

SIZE = 32
BITS = {"Q8_0": 8, "Q4_0": 4}


@dataclass(frozen=True, eq=False)
class Blocks:
    """A tensor in blocks along its last axis, which they fill.

    kind   of BITS
    """

    file: ModelFile
    offset: int
    shape: tuple[int, ...]
    kind: str

    @property
    def _row(self) -> int:
        """Bytes of a row."""
        return self.shape[-1] // SIZE * (2 + SIZE * BITS[self.kind] // 8)

    def groups(self, first: int, end: int) -> tuple[NDArray[np.int8], NDArray[np.float16]]:
        """The integers of some rows, [rows, blocks, 32], and their scales, [rows, blocks]; leading axes are rows."""
        raw = self.file.view(self.offset + first * self._row, (end - first) * self._row, "blocks")
        blocks = raw.reshape(end - first, self.shape[-1] // SIZE, -1)
        scales = np.ascontiguousarray(blocks[..., :2]).view("<f2")[..., 0]
        q = blocks[..., 2:]
        if self.kind == "Q4_0":
            q = np.concatenate([q & np.uint8(15), q >> np.uint8(4)], -1) - np.uint8(8)
        return np.ascontiguousarray(q).view(np.int8), scales

    def values(self) -> NDArray[Any]:
        """All of it, f32."""
        found = np.empty(self.shape, np.float32)
        if found.size == 0:
            return found
        rows = found.reshape(-1, self.shape[-1] // SIZE, SIZE)
        at_once = max(1, (1 << 20) // max(1, self.shape[-1]))
        with np.errstate(all="ignore"):  # a scale may be anything
            for first in range(0, len(rows), at_once):
                end = min(len(rows), first + at_once)
                q, scales = self.groups(first, end)
                np.multiply(q, scales.astype(np.float32)[..., None], out=rows[first:end], dtype=np.float32)
        return found
