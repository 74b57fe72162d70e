"""Matrices in groups of 32 along K, as the engines' files have them."""

from __future__ import annotations

import numpy as np

GROUP = 32


def groups(matrix: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Integers [N, G, 32], filled up with zeros, and scales [N, G]; 8 bits: -127 to 127, 4 bits: -8 to 7."""
    rows, columns = matrix.shape
    parts = np.pad(matrix, ((0, 0), (0, -columns % GROUP))).reshape(rows, -1, GROUP)
    if bits == 8:
        scale = np.abs(parts).max(-1) / 127
    else:
        most = np.take_along_axis(parts, np.abs(parts).argmax(-1)[..., None], -1)[..., 0]
        scale = most / -8
    with np.errstate(all="ignore"):
        found = np.nan_to_num(np.rint(parts / scale[..., None]))
    low, high = (-127, 127) if bits == 8 else (-8, 7)
    return np.clip(found, low, high).astype(np.int8), scale.astype(np.float32)
