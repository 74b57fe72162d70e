"""Random weights of two layers of GRU-256, the same wherever they are made."""

from __future__ import annotations

import numpy as np

UNITS, LAYERS = 256, 2


def weights() -> dict[str, np.ndarray]:
    """Of both layers, stacked: wi, wh [2, 768, 256] and bi, bh [2, 768], uniform within 1/16."""
    draw = np.random.default_rng(256)
    shapes = {"wi": (LAYERS, 3 * UNITS, UNITS), "wh": (LAYERS, 3 * UNITS, UNITS), "bi": (LAYERS, 3 * UNITS),
              "bh": (LAYERS, 3 * UNITS)}  # fmt: skip
    return {name: (draw.random(shape, np.float32) - np.float32(0.5)) / 8 for name, shape in shapes.items()}
