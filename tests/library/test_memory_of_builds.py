"""Packing and quantising a model takes memory for parts of it, not for the whole."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

LAYERS, WIDTH = 8, 1408
SIZE = LAYERS * WIDTH * WIDTH * 4  # 63 MB
GRAPH = f"""graph g {{ dynamic {{ x: f32[1, {WIDTH}]; }} volatile {{ y: f32[1, {WIDTH}]; }}
constant {{ w(l): f32[{WIDTH}, {WIDTH}] @pattern("layers.{{l}}.w"); }}
block entry {{ assign h: f32[1, {WIDTH}]; op relu(x) >> h; loop layers (l in 0..{LAYERS}) {{ op linear(h, w[l]) >> h; }} op relu(h) >> y; return; }} }}"""
CHILD = """
import sys
from pathlib import Path
import numpy as np
import oic

def peak():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * 1024

def emitted(graph, model, folder, weights):
    oic.Synthesizer(graph, model, target="host", weights=weights).emit(folder)

folder, weights = Path(sys.argv[1]), sys.argv[2]
small = oic.parse("dynamic { x: f32[1, 40]; } constant { w: f32[70, 40]; } volatile { y: f32[1, 70]; }"
                  "block entry { op linear(x, w) >> y; return; }")
emitted(small, oic.Model(tensors={"w": np.ones((70, 40), np.float32)}), folder / "small", weights)
before = peak()
emitted(oic.parse_file(folder / "g.oi"), oic.Model.open(folder / "model.safetensors"), folder / "out", weights)
print(peak() - before, sum(path.stat().st_size for path in (folder / "out").rglob("*") if path.is_file()))
"""


def written(folder: Path) -> None:
    """A model of random layers, and its graph."""
    header = {
        f"layers.{at}.w": {"dtype": "F32", "shape": [WIDTH, WIDTH], "data_offsets": [at * SIZE // LAYERS, (at + 1) * SIZE // LAYERS]}
        for at in range(LAYERS)
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    rng = np.random.default_rng(0)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _ in range(LAYERS):
            file.write(rng.standard_normal((WIDTH, WIDTH), np.float32).tobytes())
    (folder / "g.oi").write_text(GRAPH)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the most that was resident is known of Linux")
@pytest.mark.parametrize("weights", ["f32", "q8"])
def test_a_build_holds_parts_of_a_model(weights: str, tmp_path: Path) -> None:
    """The most that is resident, pages of the model's file included, grows by no more than 1.2 of the larger model."""
    written(tmp_path)
    run = subprocess.run([sys.executable, "-c", CHILD, str(tmp_path), weights], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    grown, made = map(int, run.stdout.split())
    assert made > SIZE * (0.2 if weights == "q8" else 1)
    assert grown <= 1.2 * max(SIZE, made), f"{grown / SIZE:.2f}"
