"""Products of bytes whose numbers of rows are known: an optimizer that sees all sizes compiles them without a warning."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import oic
from tests.fuzz.batch_build import build_together

ROWS = (1, 7, 8, 9, 16, 24, 31)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_any_number_of_rows(tmp_path: Path) -> None:
    weights = " ".join(f"w{n}: i8[{n}, 48]; b{n}: i32[{n}];" for n in ROWS)
    results = " ".join(f"y{n}: i32[{n}];" for n in ROWS)
    ops = " ".join(f"op linear(x, w{n}, b=b{n}, acc=i32) >> y{n};" for n in ROWS)
    text = f"dynamic {{ x: i8[48]; {weights} }} volatile {{ {results} }} block entry {{ {ops} return; }}"
    made, rng = oic.Synthesizer(oic.parse(text), target="portable"), np.random.default_rng(0)
    build_together([made], tmp_path, ("-O3",), ["gcc"])
    x = rng.integers(-128, 128, 48).astype(np.int8)
    given = {f"w{n}": rng.integers(-128, 128, (n, 48)).astype(np.int8) for n in ROWS}
    given |= {f"b{n}": rng.integers(-999, 999, n).astype(np.int32) for n in ROWS}
    with made.make_executor() as session:
        found = session.step(x=x, **given)
    for n in ROWS:
        assert np.array_equal(found[f"y{n}"], given[f"w{n}"].astype(np.int32) @ x + given[f"b{n}"])
