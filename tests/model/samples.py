"""Small models of every format, for the tests to read, cut and forge."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np

from oic import dtypes
from oic.dtypes import Array, DType
from oic.model import Model, Tensor
from oic.model.oinf_write import write_oinf

FILES = ("small.oinf", "old.oinf", "small.safetensors", "small.gguf", "small.npz", "packed.npz")


def values(dtype: DType, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Values all over the range of an element type."""
    rng = np.random.default_rng(seed)
    if dtype.is_float:
        return dtypes.store(rng.standard_normal(shape) * 4, dtype)
    if dtype.name == "t1":
        return rng.choice([-1, 1], shape).astype(dtype.np)
    high = min(dtype.high, (1 << 63) - 1)
    return rng.integers(dtype.low, high, shape, endpoint=True).astype(dtype.np)


def small_model() -> Model:
    """Packed and plain tensors, one without data, metadata of every kind."""
    return Model(
        tensors={
            "W.0": np.arange(6, dtype=np.float32).reshape(2, 3),
            "t": (np.array([1, -1, 0, 1, -1]), "t2"),
            "flag": np.array([True, False]),
            "scalar": np.float16(2.5),
            "late": Tensor(None, "i16", (4,)),
            "q": np.int8([[1, 2], [3, 4]]),
        },
        sizevars={"D": 3, "B": 1},
        metadata={"leak": 0.1, "on": True, "mode": "clamp up", "steps": [1, 2, 300], "n": -5},
    )


def write_safetensors(path: Path, tensors: dict[str, tuple[str, Array]], **metadata: str) -> None:
    """A .safetensors file made by hand, so that it does not depend on the library."""
    header: dict[str, object] = {"__metadata__": metadata} if metadata else {}
    data = b""
    for name, (kind, array) in tensors.items():
        raw = array.tobytes()
        offsets = [len(data), len(data) + len(raw)]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": offsets}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_gguf(path: Path) -> None:
    """A GGUF file with keys of every type, a plain and a block-quantised tensor."""

    def text(value: str) -> bytes:
        raw = value.encode()
        return struct.pack("<Q", len(raw)) + raw

    keys = [
        text("general.architecture") + struct.pack("<I", 8) + text("llama"),
        text("llama.block_count") + struct.pack("<II", 4, 2),
        text("llama.eps") + struct.pack("<If", 6, 0.5),
        text("tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("é"),
        text("scores") + struct.pack("<IIQ2f", 9, 6, 2, 1.0, 2.0),
        text("nested") + struct.pack("<IIQ", 9, 9, 1) + struct.pack("<IQ2b", 7, 2, 1, 0),
    ]
    tensors = [
        text("w") + struct.pack("<IQQIQ", 2, 3, 2, 0, 0),
        text("blocks") + struct.pack("<IQIQ", 1, 32, 8, 32),
    ]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)) + b"".join(keys + tensors)
    head += bytes(-len(head) % 32)
    data = np.arange(6, dtype="<f4").tobytes() + bytes(8)
    path.write_bytes(head + data + bytes(range(34)))


def write_all(folder: Path) -> None:
    """All of FILES, and a sharded Hugging Face folder `sharded/`."""
    model = small_model()
    write_oinf(folder / "small.oinf", model)
    plain = {n: model.tensor(n) for n in ("W.0", "flag", "scalar")}
    write_oinf(folder / "old.oinf", Model(plain, {"D": 3}, {"leak": 0.5}), version=1)
    one = {
        "a": ("F32", np.arange(4, dtype=np.float32)),
        "b": ("BF16", values(dtypes.bf16, (2, 2))),
        "c": ("BOOL", np.array([True])),
    }
    write_safetensors(folder / "small.safetensors", one, leak="0.5", dim="64", note="x y")
    write_gguf(folder / "small.gguf")
    arrays = {"a": np.arange(4, dtype=np.float32), "b": np.asfortranarray(np.eye(2)), "m": "text"}
    np.savez(folder / "small.npz", **arrays)  # type: ignore[arg-type]
    np.savez_compressed(folder / "packed.npz", a=np.arange(40), b=np.array([True, False]))
    sharded = folder / "sharded"
    sharded.mkdir()
    write_safetensors(sharded / "model-1.safetensors", {"a": one["a"]})
    write_safetensors(sharded / "model-2.safetensors", {"b": one["b"], "c": one["c"]})
    homes = {"a": "model-1.safetensors", "b": "model-2.safetensors", "c": "model-2.safetensors"}
    index = {"metadata": {"total_size": 25}, "weight_map": homes}
    (sharded / "model.safetensors.index.json").write_text(json.dumps(index))
    config = {
        "hidden_size": 64,
        "rope": {"theta": 1e4, "kind": None},
        "layers": [{"n": 1}, {"n": 2}],
        "shape": [1, 2],
        "tied": True,
    }
    (sharded / "config.json").write_text(json.dumps(config))


def read_everything(path: Path) -> Model:
    """Open a model and use all of it."""
    from oic.cli.text import json_text
    from oic.model.inspect import describe, to_json

    model = Model.open(path)
    for name in model.names():
        info = model.info(name)
        if info.dtype.kind == "opaque" or not info.has_data:
            continue
        array = model.tensor(name)
        assert array.shape == info.shape
        assert array.dtype == info.dtype.np
        assert len(model.raw(name)) == info.dtype.nbytes(info.count)
    describe(model, stats=True)
    json_text(to_json(model, stats=True))
    return model
