"""The blob of weights is written in whole blocks, whatever the sizes of the constants."""

from __future__ import annotations

import io
import random

import pytest

from oic.codegen import weights


@pytest.mark.parametrize("sizes", [(), (0,), (63, 1, 64), (64, 64), (200, 0, 7, 1, 500), (1,) * 130])
def test_blocks_are_whole(sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "BLOCK", 64)
    written: list[bytes] = []

    class File(io.BytesIO):
        def write(self, data: object) -> int:
            written.append(bytes(data))  # type: ignore[call-overload]
            return len(written[-1])

    kept, pieces = weights._Blocks(File()), [random.Random(n).randbytes(n) for n in sizes]
    for piece in pieces:
        kept.write(memoryview(piece))
    kept.end()
    assert b"".join(written) == b"".join(pieces)
    assert all(len(block) == 64 for block in written[:-1]) and len(written[-1]) <= 64
