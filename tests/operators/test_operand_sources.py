"""Operators on the same numbers from everywhere, in several builds: a small part of `tests.fuzz.operand_builds`."""

from __future__ import annotations

from pathlib import Path

import pytest

from processor import AVX2, features
from tests.fuzz.operand_builds import faults, graph

CHOSEN = {  # seeds, of which that of convolutions has kernels of every kind
    0: ("linear", "matmul"),
    1: ("attention",),
    2: ("quantize", "softmax", "layer_norm", "gather"),
    3: ("conv1d", "conv2d"),
}


@pytest.mark.parametrize("seed", CHOSEN)
def test_operands_from_everywhere_have_the_same_bits(seed: int, tmp_path: Path) -> None:
    made, _ = graph(seed, CHOSEN[seed], 12, storages=(None,))
    assert len(made.outputs) == 12 and sum(len(outputs) for _, outputs, _ in made.outputs) > 30
    builds = ["threads separate", "small stack separate", *(["avx2"] if set(AVX2) <= features() else [])]
    found = list(faults([made], builds, tmp_path))
    assert not found, "\n".join(found[:10])
