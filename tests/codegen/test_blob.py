"""The blob of weights is written in whole blocks, whatever the sizes of the constants."""

from __future__ import annotations

import random

import pytest

from oic.codegen import weights


@pytest.mark.parametrize("sizes", [(), (0,), (63, 1, 64), (64, 64), (200, 0, 7, 1, 500), (1,) * 130])
def test_blocks_are_whole(sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "BLOCK", 64)
    pieces = [random.Random(n).randbytes(n) for n in sizes]
    written = [bytes(block) for block in weights.blocks(map(memoryview, pieces))]
    assert b"".join(written) == b"".join(pieces)
    assert all(len(block) == 64 for block in written[:-1]) and len(written[-1]) <= 64
