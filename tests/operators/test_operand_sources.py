"""Operators on the same numbers from everywhere, in several builds: a small part of `tests.fuzz.operand_builds`."""

from __future__ import annotations

from pathlib import Path

import pytest

from processor import AVX2, features
from tests.fuzz.operand_builds import BUILDS, faults, graph

CHOSEN = {  # seeds; that of convolutions has panels, planes, words, tiles, and loops of neither
    0: ("linear", "matmul"),
    1: ("attention",),
    2: ("quantize", "softmax", "layer_norm", "gather"),
    3: ("conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d"),
}
ON_ARM = {3}  # seeds that are emulated, too: tests/runtime has products and attention on other machines


@pytest.mark.parametrize("seed", CHOSEN)
def test_operands_from_everywhere_have_the_same_bits(seed: int, tmp_path: Path) -> None:
    count = 16 if seed in ON_ARM else 12
    made, _ = graph(seed, CHOSEN[seed], count, storages=(None,))
    assert len(made.outputs) == count and sum(len(outputs) for _, outputs, _ in made.outputs) > 30
    builds = ["threads separate", "small stack separate", *(["avx2"] if set(AVX2) <= features() else [])]
    builds += ["neon separate"] if seed in ON_ARM and not BUILDS["neon separate"].missing else []
    found = list(faults([made], builds, tmp_path))
    assert not found, "\n".join(found[:10])
