"""Each format: what is written is what is read, and refusals name file, field and byte."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import gguf
import ml_dtypes
import numpy as np
import pytest

import oic
from model.samples import (
    FILES,
    read_everything,
    small_model,
    values,
    write_safetensors,
)
from oic import dtypes
from oic.diagnostics import OicError
from oic.model import Model
from oic.model.gguf import BLOCKS
from oic.model.inspect import describe, to_json
from oic.model.oinf_write import write_oinf
from paths import models_dir, needs_models


def refusal(path: Path) -> OicError:
    with pytest.raises(OicError) as error:
        read_everything(path)
    return error.value


@pytest.mark.parametrize("name", [*FILES, "sharded"])
def test_samples_are_read(samples: Path, name: str) -> None:
    assert read_everything(samples / name).names()


# .oinf


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("name", dtypes.ALL)
def test_oinf_keeps_every_dtype(tmp_path: Path, name: str, version: int) -> None:
    shapes = [(), (0,), (1,), (3, 5), (2, 3, 4)]
    given = {f"x.{i}": (values(dtypes.ALL[name], s, i), name) for i, s in enumerate(shapes)}
    write_oinf(tmp_path / "m.oinf", Model(given), version)
    model = read_everything(tmp_path / "m.oinf")
    for key, (array, _) in given.items():
        assert model.info(key).dtype.name == name
        assert np.array_equal(model.tensor(key), array)


def test_oinf_keeps_everything(samples: Path, tmp_path: Path) -> None:
    model, given = Model.open(samples / "small.oinf"), small_model()
    assert model.sizevars == given.sizevars
    assert model.metadata == given.metadata
    assert sorted(model.names()) == sorted(given.names())
    assert not model.has("late") and model.info("late").shape == (4,)
    assert model.tensor("t").tolist() == [1, -1, 0, 1, -1]
    write_oinf(tmp_path / "again.oinf", model)
    assert (tmp_path / "again.oinf").read_bytes() == (samples / "small.oinf").read_bytes()


def test_oinf_may_replace_its_own_source(tmp_path: Path) -> None:
    write_oinf(tmp_path / "m.oinf", small_model())
    before = (tmp_path / "m.oinf").read_bytes()
    write_oinf(tmp_path / "m.oinf", Model.open(tmp_path / "m.oinf"))
    assert (tmp_path / "m.oinf").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["m.oinf"]


@pytest.mark.parametrize(
    "value",
    [
        0,
        255,
        256,
        -1,
        -129,
        2**64 - 1,
        -(2**63),
        0.5,
        0.1,
        1e300,
        True,
        "",
        "é ü",
        [],
        [1, 2],
        [[1, 2], [3, 4]],
        [0.1],
        [True, False],
        [-1, 300],
        [1, 2**63],
        [[0, 2**53 + 1], [2**64 - 1, 5]],
        [2**63 - 1, -(2**63)],
    ],
)
def test_oinf_metadata_is_exact(tmp_path: Path, value: object) -> None:
    write_oinf(tmp_path / "m.oinf", Model(metadata={"k": value}))
    found = Model.open(tmp_path / "m.oinf").metadata["k"]
    assert found == value and repr(found) == repr(value)


@pytest.mark.parametrize("value", [["a"], [1, "a"], [[1], [1, 2]], 2**64, [2**70], [2**63 + 1, -1], [2**63, -1]])
def test_oinf_refuses_other_metadata(tmp_path: Path, value: object) -> None:
    with pytest.raises(OicError, match="metadata 'k'"):
        write_oinf(tmp_path / "m.oinf", Model(metadata={"k": value}))
    assert not list(tmp_path.iterdir())


def test_oinf_is_written_in_public(tmp_path: Path) -> None:
    """By the package; what is no model, or no path, is refused."""
    oic.write_oinf(str(tmp_path / "m.oinf"), small_model())
    assert Model.open(tmp_path / "m.oinf").names() == sorted(small_model().names())
    for given in ((tmp_path / "n.oinf", {"w": np.zeros(1)}), (3, small_model())):
        with pytest.raises(OicError, match="argument-type"):
            oic.write_oinf(*given)
    assert [p.name for p in tmp_path.iterdir()] == ["m.oinf"]


def test_oinf_refuses_names_and_folders(tmp_path: Path) -> None:
    with pytest.raises(OicError, match="model-name"):
        write_oinf(tmp_path / "m.oinf", Model({"a b": np.zeros(1)}))
    with pytest.raises(OicError, match="model-write"):
        write_oinf(tmp_path / "none" / "m.oinf", Model())


def test_oinf_layout_of_version_2(tmp_path: Path) -> None:
    """One tensor and one sizevar, every byte: the layout other tools write."""
    write_oinf(tmp_path / "m.oinf", Model({"x": np.float32([1])}, {"D": 7}))
    head = struct.pack("<5s6I5Q3x", b"OINF\0", 2, 0, 1, 0, 1, 0, 72, 88, 88, 152, 160)
    sizevar = struct.pack("<I1s3xQ", 1, b"D", 7)
    tensor = struct.pack("<I1s3x3IQ4Q", 1, b"x", 10, 1, 1, 1, 4, 152, 0, 0) + bytes(4)
    data = struct.pack("<f4x", 1)
    assert (tmp_path / "m.oinf").read_bytes() == head + sizevar + tensor + data


def test_oinf_passes_over_records_of_a_quantisation(tmp_path: Path) -> None:
    """The record of other tools: scheme, modes, axes, one scale and one zero point."""
    record = struct.pack("<4I4Q", 2, 1, 1, 0, 0, 1, 0, 1) + struct.pack("<fi", 0.5, 3)
    head = struct.pack("<5s6I5Q3x", b"OINF\0", 2, 0, 0, 0, 1, 0, 72, 72, 72, 136, 144 + len(record))
    tensor = struct.pack("<I1s3x3IQ4Q", 1, b"q", 1, 1, 3, 4, 4, 136, len(record), 144) + bytes(4)
    (tmp_path / "m.oinf").write_bytes(head + tensor + struct.pack("<4b4x", 1, -2, 3, 4) + record)
    assert read_everything(tmp_path / "m.oinf").tensor("q").tolist() == [1, -2, 3, 4]


# safetensors


def test_safetensors_of_the_library(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    kinds = ("f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool")
    arrays = {k: values(dtypes.ALL[k], (3, 5)) for k in kinds}
    save_file(arrays, tmp_path / "m.safetensors", metadata={"format": "pt", "dim": "64", "hash": "12e45678", "id": "7e999"})
    model = read_everything(tmp_path / "m.safetensors")
    for name, array in arrays.items():
        assert model.info(name).dtype.name == name
        assert np.array_equal(model.tensor(name), array)
    assert model.metadata == {"format": "pt", "dim": 64, "hash": "12e45678", "id": "7e999"}
    assert model.sizevars == {"dim": 64}


def test_safetensors_of_other_types(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    odd = np.array([1, 2, 3], np.uint8)
    write_safetensors(
        path, {"pad": ("U8", odd), "f": ("F8_E4M3", odd), "w": ("F32", np.ones(2, "f4"))}
    )
    model = Model.open(path)
    assert model.tensor("w").flags.aligned and model.tensor("w").tolist() == [1, 1]
    assert model.info("f").dtype.name == "F8_E4M3" and model.info("f").nbytes == 3
    with pytest.raises(OicError, match=r"model-dtype.*'f'.*F8_E4M3"):
        model.tensor("f")


def test_tensors_are_mapped_not_copied(samples: Path) -> None:
    model = Model.open(samples / "small.safetensors")
    first, second = model.raw("a"), model.raw("a")
    assert first.ctypes.data == second.ctypes.data
    assert not first.flags.owndata and not first.flags.writeable


def entry(**changes: object) -> dict[str, object]:
    return {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} | changes


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ({"a": entry(dtype="F31")}, "'dtype'.*'F31'"),
        ({"a": entry(dtype=3)}, "'dtype'"),
        ({"a": entry(shape=[-2])}, "'shape'"),
        ({"a": entry(shape=[True, 2])}, "'shape'"),
        ({"a": entry(shape=[2.0])}, "'shape'"),
        ({"a": entry(shape=[2**40, 2**40])}, "2\\^63"),
        ({"a": entry(shape=[1] * 33 + [2])}, "34 dimensions"),
        ({"a": entry(shape=[3])}, "8 bytes, but F32 of shape"),
        ({"a": entry(data_offsets=[8, 0])}, "'data_offsets'"),
        ({"a": entry(data_offsets=[8, 16])}, "model-truncated"),
        ({"a": entry(data_offsets=[0])}, "'data_offsets'"),
        ({"a": entry(data_offsets=[0, 2**64])}, "'data_offsets'"),
        ({"a": entry(extra=1)}, "exactly"),
        ({"a": 1}, "exactly"),
        ({"": entry()}, "name is empty"),
        ({"a\n": entry()}, "control character"),
        ({"a": entry(), "b": entry()}, "model-overlap"),
        ({"a": entry(shape=[1], data_offsets=[4, 8])}, "belong to no tensor"),
        ({"a": entry(shape=[1], data_offsets=[0, 4])}, "4 bytes after the last"),
        ({"__metadata__": {"a": 1}, "a": entry()}, "__metadata__"),
        ([], "not a JSON object"),
    ],
)
def test_safetensors_fields(tmp_path: Path, header: object, expected: str) -> None:
    text = json.dumps(header).encode()
    path = tmp_path / "m.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(8))
    with pytest.raises(OicError, match=expected):
        Model.open(path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'{"a":' * 100000, "too deeply|not JSON"),
        (b'{"a": 1' + b"0" * 5000 + b"}", "at byte 14: 1000.* is out of the range of f64"),
        (b'{"a": 1, "a": 2}', "given twice"),
        (b'{"\xff": 1}', "at byte 10: byte 0xff is not UTF-8"),
        (b'{"\\ud800": 1}', "surrogate"),
        (b"{,}", "at byte 9: not JSON"),
        (b'{"-1e400": -1e400}', "at byte 19: -1e400 is out of the range of f64"),
        (b'{"a": 1e400x}', "at byte 14: 1e400 is out of the range of f64"),
    ],
)
def test_safetensors_json(tmp_path: Path, text: bytes, expected: str) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text)
    assert str(path) in str(refusal(path))
    with pytest.raises(OicError, match=expected):
        Model.open(path)


# Hugging Face


def test_hugging_face_folder(samples: Path) -> None:
    model = Model.open(samples / "sharded")
    assert sorted(model.names()) == ["a", "b", "c"]
    assert model.metadata == {
        "hidden_size": 64, "rope.theta": 1e4, "layers.0.n": 1, "layers.1.n": 2,
        "shape": [1, 2], "tied": True,
    }  # fmt: skip
    assert model.sizevars == {"hidden_size": 64, "layers.0.n": 1, "layers.1.n": 2}
    assert model.info("a").file.endswith("model-1.safetensors")


@pytest.mark.parametrize(
    ("weight_map", "expected"),
    [
        ({"a": "../a.safetensors"}, "not the name of a file"),
        ({"a": "/etc/passwd"}, "not the name of a file"),
        ({"a": 1}, "not the name of a file"),
        ({"a": "none.safetensors"}, "model-open"),
        ({"a": "x.safetensors", "b": "y.safetensors"}, "model-duplicate"),
        ({"z": "x.safetensors"}, "'z' is not in x.safetensors"),
        ([], "weight_map"),
        ({}, "weight_map"),
    ],
)
def test_shards(tmp_path: Path, weight_map: object, expected: str) -> None:
    for name in ("x", "y"):
        write_safetensors(tmp_path / f"{name}.safetensors", {"a": ("F32", np.zeros(1, "f4"))})
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    with pytest.raises(OicError, match=expected):
        Model.open(tmp_path)


def test_incomplete_folders(tmp_path: Path) -> None:
    with pytest.raises(OicError, match=r"no config\.json"):
        Model.open(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(OicError, match="pickled weights are not read"):
        Model.open(tmp_path)
    write_safetensors(tmp_path / "w.safetensors", {})
    with pytest.raises(OicError, match=r"open the file itself: .*w\.safetensors"):
        Model.open(tmp_path)


@pytest.mark.parametrize(
    "text", ['{"a\\n": 1}', '{"\\ud800": 1}', '{"": 1}', "[]", '{"a": 1', "\xff"]
)
def test_bad_config(samples: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "model.safetensors").write_bytes((samples / "small.safetensors").read_bytes())
    (tmp_path / "config.json").write_bytes(text.encode("latin-1"))
    assert "config.json" in str(refusal(tmp_path))


def test_numbers_of_a_configuration_are_finite(samples: Path, tmp_path: Path) -> None:
    """What is beyond all floats is refused where it is written; infinity has a name."""
    (tmp_path / "model.safetensors").write_bytes((samples / "small.safetensors").read_bytes())
    (tmp_path / "config.json").write_text('{"é": "1e400", "eps": [1e308, Infinity, 1e400]}')
    refused = refusal(tmp_path).diagnostics[0]
    assert refused.slug == "model-field" and refused.hint == "infinity is written Infinity"
    assert refused.message.endswith("config.json at byte 41: 1e400 is out of the range of f64")
    (tmp_path / "config.json").write_text('{"many": %s}' % ("9" * 5000))
    assert refusal(tmp_path).diagnostics[0].message.endswith(f"at byte 9: {'9' * 37}… is out of the range of f64")
    (tmp_path / "config.json").write_text('{"theta": Infinity}')
    assert Model.open(tmp_path).metadata["theta"] == np.inf
    (tmp_path / "model.json").write_text('{"format": "oic-reference", "metadata": {"theta": -2e308}}')
    assert "at byte 50: -2e308 is out of the range of f64" in str(refusal(tmp_path / "model.json"))


# GGUF


def test_gguf_sample(samples: Path) -> None:
    model = Model.open(samples / "small.gguf")
    assert model.tensor("w").tolist() == [[0, 1, 2], [3, 4, 5]]
    assert model.metadata["tokens"] == ["a", "é"] and model.metadata["nested"] == [[True, False]]
    assert model.sizevars == {"block_count": 2}
    assert model.info("blocks").dtype.name == "Q8_0" and model.info("blocks").nbytes == 34
    assert model.tensor("blocks").dtype == np.float32 and model.tensor("blocks").size == 32


def test_gguf_of_the_library(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    kinds = ("f16", "f32", "f64", "i8", "i16", "i32", "i64")
    arrays = {k: values(dtypes.ALL[k], (3, 5)) for k in kinds}
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(3)
    writer.add_array("list", [1, 2, 3])
    for name, array in arrays.items():
        writer.add_tensor(name, array)
    writer.add_tensor("q", np.zeros((2, 34), np.uint8), raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    bf16 = values(dtypes.bf16, (4,)).view(np.uint8)
    writer.add_tensor("bf16", bf16, raw_dtype=gguf.GGMLQuantizationType.BF16)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    model = read_everything(path)
    for name, array in arrays.items():
        assert np.array_equal(model.tensor(name), array)
    assert np.array_equal(model.tensor("bf16").view(np.uint8), bf16)
    assert model.info("q").shape == (2, 32) and model.sizevars["block_count"] == 3
    assert model.metadata["list"] == [1, 2, 3]


def test_gguf_block_sizes_are_those_of_the_library() -> None:
    sizes = gguf.constants.GGML_QUANT_SIZES
    known = {t.value: (t.name, *sizes[t]) for t in sizes if sizes[t][0] > 1}
    assert known.items() <= BLOCKS.items()


# npz


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(tmp_path: Path, save: object) -> None:
    path = tmp_path / "m.npz"
    arrays = {
        "plain": np.arange(6, dtype=np.float32).reshape(2, 3),
        "fortran": np.asfortranarray(np.arange(6).reshape(2, 3)),
        "big": np.arange(6, dtype=">i4"),
        "bf16": values(dtypes.bf16, (3,)),
        "f8": values(dtypes.f8, (3,)),
        "flag": np.array([True, False]),
        "scalar": np.float64(1.5),
        "empty": np.zeros((0, 3), np.int8),
    }
    save(
        path, **arrays, note=np.array("hello"), i4=np.zeros(2, ml_dtypes.int4), z=np.zeros(1, "c8")
    )  # type: ignore[operator]
    model = read_everything(path)
    for name, array in arrays.items():
        assert np.array_equal(model.tensor(name), array), name
    assert model.metadata == {"note": "hello"}
    for name in ("i4", "z"):
        with pytest.raises(OicError, match="model-dtype"):
            model.tensor(name)


def test_npz_without_arrays(tmp_path: Path) -> None:
    """What is written for a graph without constants: a zip archive of its last record alone."""
    np.savez(tmp_path / "m.npz")
    assert not Model.open(tmp_path / "m.npz").names()


def test_npz_without_pickle(tmp_path: Path) -> None:
    np.savez(tmp_path / "m.npz", a=np.array([{}], dtype=object))
    with pytest.raises(OicError, match="pickled Python objects"):
        Model.open(tmp_path / "m.npz").tensor("a")


def test_npz_crc(samples: Path, tmp_path: Path) -> None:
    raw = bytearray((samples / "small.npz").read_bytes())
    raw[raw.index(np.float32([1, 2]).tobytes())] ^= 1
    (tmp_path / "m.npz").write_bytes(raw)
    with pytest.raises(OicError, match="CRC"):
        Model.open(tmp_path / "m.npz").tensor("a")


# all


def test_unknown_files(tmp_path: Path) -> None:
    with pytest.raises(OicError, match=r"model-open.*no such file"):
        Model.open(tmp_path / "none.oinf")
    (tmp_path / "m.onnx").write_bytes(b"whatever this is")
    with pytest.raises(OicError, match=r"(?s)model-format.*\.oinf, \.safetensors"):
        Model.open(tmp_path / "m.onnx")
    for text in ("graph g { … }", "dynamic { x: f32; }"):  # a brace where safetensors has one, too
        (tmp_path / "g.oi").write_text(text, encoding="utf-8")
        with pytest.raises(OicError, match=r"(?s)model-format.*is a graph.*oic build .*--weights"):
            Model.open(tmp_path / "g.oi")
    for path in ("/dev/null", "\0", "x" * 5000):
        with pytest.raises(OicError, match="model-open"):
            Model.open(path)
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(OicError, match="model-format"):
        Model.open(tmp_path / "empty")


@pytest.mark.parametrize("name", ["m.oinf", "m.gguf"])
def test_a_short_text_under_a_name_of_a_model_is_none(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"404: Not Found")
    with pytest.raises(OicError, match=r"model-format.*magic at byte 0: not '(OINF|GGUF)'"):
        Model.open(tmp_path / name)


@pytest.mark.parametrize("name", FILES)
def test_the_extension_is_not_needed(samples: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "model").write_bytes((samples / name).read_bytes())
    assert Model.open(tmp_path / "model").names() == Model.open(samples / name).names()


def test_inspect(samples: Path) -> None:
    model = Model.open(samples / "small.oinf")
    text = describe(model, stats=True)
    assert "sizevars\n  B  1\n  D  3\n" in text
    assert "  leak   0.1\n" in text and "  mode   'clamp up'\n" in text
    lines = {line.split()[0]: line.split() for line in text.splitlines() if line.strip()}
    assert lines["W.0"][1:5] == ["f32", "[2,", "3]", "24"]
    assert lines["W.0"][-3:] == ["0", "5", "2.5"]
    assert "no data" in text and "min" not in describe(model)
    tensors = {t["name"]: t for t in to_json(model)["tensors"]}
    assert tensors["q"]["shape"] == [2, 2] and "min" not in tensors["q"]


@needs_models
def test_real_models() -> None:
    folder = models_dir()
    assert folder is not None
    files = [*folder.rglob("*.safetensors"), *folder.rglob("*.npz")]
    folders = [p.parent for p in folder.rglob("config.json")]
    assert files
    for path in files + folders:
        assert read_everything(path).names(), path


@needs_models
def test_real_safetensors_agree_with_the_library() -> None:
    from safetensors.numpy import load_file

    path = (models_dir() or Path()) / "stories260k" / "weights.safetensors"
    model, expected = Model.open(path), load_file(path)
    assert sorted(model.names()) == sorted(expected)
    assert all(np.array_equal(model.tensor(n), a) for n, a in expected.items())
    assert model.sizevars["n_layers"] == 5
