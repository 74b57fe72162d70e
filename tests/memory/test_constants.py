"""Constants on their way into the blob: member by member and part by part, with the bytes of the whole array."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from oic import dtypes
from oic.check.source import parse
from oic.driver import Settings, compile_graph
from oic.ir import quantized
from oic.ir.encodings import LAYOUTS, encoded
from oic.ir.members import Members, forget
from oic.ir.types import TensorType
from oic.memory.layout import constant_parts, lay_out, stored
from oic.model import Model
from oic.model.file import ModelFile

RNG = np.random.default_rng(5)


def bytes_of(values: object, type_: TensorType, family: int) -> bytes:
    return b"".join(part.tobytes() for part in constant_parts(values, type_, family))  # type: ignore[arg-type]


def test_constants_lie_in_the_order_of_their_first_use() -> None:
    """Through views too; a family stays together; what no function takes, as it comes."""
    shapes = {"c": (2, 2), "W0": (4,), "W1": (4,), "a": (4,)}
    model = Model(tensors={name: RNG.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()})
    text = """
graph ordered {
  dynamic { x: f32[4]; }
  constant { c: f32[2, 2]; W(l): f32[4] @pattern("W{l}"); a: f32[4]; }
  volatile { y: f32[4]; }
  block entry {
    assign flat: f32[4];
    op reshape(c, shape=[4]) >> flat;
    op add(x, a) >> y;
    loop twice (l in 0..2) { op mul(y, W[l]) >> y; }
    op mul(y, flat) >> y;
    return;
  }
}
"""
    module = compile_graph(parse(text, "ordered.oi"), model, Settings()).planned
    assert [b.name for b in module.memory.space("weights")] == ["a", "W", "c"]
    module.function("entry").body.set_ops([])
    assert [b.name for b in lay_out(module).space("weights")] == ["c", "a", "W"]  # as lowering met them


@pytest.mark.parametrize("encoding", ["", *LAYOUTS])
@pytest.mark.parametrize("shape", [(40, 7), (3, 17, 33), (2, 2, 16, 5), (1, 1)])
def test_parts_are_the_whole(encoding: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    values = RNG.standard_normal(shape).astype(np.float32)
    whole = encoded(values, encoding).tobytes()
    for part in (1, 50, 1 << 20):
        monkeypatch.setattr(quantized, "PART", part)
        assert bytes_of(values, TensorType(dtypes.f32, shape, encoding=encoding), 0) == whole


@pytest.mark.parametrize("dtype", [dtypes.f32, dtypes.bf16, dtypes.i4, dtypes.u1])
def test_members_are_the_array_that_they_make(dtype: dtypes.DType) -> None:
    """Of packed types every member begins at a byte."""
    shape = (2, 3, 5, 3)
    values = RNG.integers(0, 2, shape).astype(dtype.np)
    members = Members(shape[:2], shape[2:], values.dtype, values.__getitem__)
    assert np.array_equal(np.asarray(members), values) and members.shape == shape
    type_ = TensorType(dtype, shape)
    assert bytes_of(members, type_, 2) == bytes_of(values, type_, 2) == stored(values, dtype, 2).tobytes()


def test_what_is_forgotten_is_read_again(tmp_path: Path) -> None:
    data = RNG.integers(0, 256, 3 << 14).astype(np.uint8)
    (tmp_path / "f").write_bytes(data.tobytes())
    view = ModelFile.open(tmp_path / "f").view(5000, 20000, "data")
    forget(view)
    assert np.array_equal(view, data[5000:25000])
    forget(data)  # of no file


def test_a_build_takes_little_more_than_one_tensor(tmp_path: Path) -> None:
    """256 MiB of weights, in 32 members; the file is sparse."""
    (tmp_path / "g.oi").write_text(
        "graph g { sizes { D = 1024; L = 32; } dynamic { x: f32[D]; } volatile { y: f32[D]; }\n"
        '  constant { w(l): f32[2 * D, D] @pattern("w.{l}"); }\n'
        "  block entry { assign u: f32[2 * D]; op mul(x, 1.0) >> y;\n"
        "    loop layers (l in 0..L) { op linear(y, w[l]) >> u; op slice(u, axis=0, start=0, end=D) >> y; } return; } }"
    )
    size, count = 2 * 1024 * 1024 * 4, 32
    tensors = [
        f'"w.{i}": {{"dtype": "F32", "shape": [2048, 1024], "data_offsets": [{i * size}, {(i + 1) * size}]}}'
        for i in range(count)
    ]
    header = ("{" + ", ".join(tensors) + "}").encode()
    header += b" " * (-len(header) % 8)
    with open(tmp_path / "m.safetensors", "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + size * count)
    code = (
        "import sys; from pathlib import Path; from oic.cli import main\n"
        "try: main(sys.argv[1:], prog_name='oic')\n"
        "finally: print(Path('/proc/self/status').read_text())"
    )
    arguments = ["build", tmp_path / "g.oi", "--model", tmp_path / "m.safetensors", "-o", tmp_path / "c", "--no-compile"]
    done = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=True)
    most = int(done.stdout.split("VmHWM:")[1].split()[0]) << 10
    assert (tmp_path / "c" / "g.weights").stat().st_size > 256 << 20 > 2 * most
