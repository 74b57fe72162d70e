"""Decoding is bounded: files that would take gigabytes or minutes are refused, real ones are not."""

from __future__ import annotations

import os
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from model import forged
from oic.diagnostics import OicError
from oic.model import Model, budget
from oic.model.inspect import describe
from oic.model.oinf_write import write_oinf

SMALL = 4 << 20


def peak_of(action: Callable[[], object]) -> tuple[str, int]:
    """The refusal, or '', and the most memory in use meanwhile, in bytes."""
    tracemalloc.start()
    try:
        action()
        refusal = ""
    except OicError as error:
        refusal = str(error)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return refusal, peak


def size_of(path: Path) -> int:
    return sum(p.stat().st_size for p in path.iterdir()) if path.is_dir() else path.stat().st_size


@pytest.fixture
def small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "BASE", SMALL)
    monkeypatch.setattr(budget, "INFLATED_BASE", 8 * SMALL)


@pytest.mark.usefixtures("small_budget")
@pytest.mark.parametrize("name", [*forged.BOMBS, *forged.ARCHIVES, *forged.CONFIGS])
def test_bombs_are_refused_within_memory(tmp_path: Path, name: str) -> None:
    path = forged.make_bomb(name, tmp_path)
    refusal, peak = peak_of(lambda: describe(Model.open(path)))
    assert peak <= 3 * size_of(path) + SMALL
    if name != "deep":
        assert "model-budget" in refusal or "model-overlap" in refusal, refusal
        assert str(path) in refusal


def test_the_header_is_searched_only_for_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search of the header for each of its keys took a minute."""

    def never(*_: object) -> int:
        raise AssertionError("a place is looked for in a file that is right")

    monkeypatch.setattr("oic.model.safetensors._place", never)
    path = tmp_path / "m.safetensors"
    path.write_bytes(forged.safetensors(forged.header_of(2000)))
    assert len(Model.open(path).metadata) == 2000


def test_statistics_of_what_inflates_are_bounded(tmp_path: Path) -> None:
    """A member may inflate; its statistics take a part at a time."""
    path = tmp_path / "m.npz"
    count = 10 << 20
    forged.npz(path, {"a.npy": forged.npy("|u1", f"({count},)", bytes(count))})
    refusal, peak = peak_of(lambda: describe(Model.open(path), stats=True))
    assert refusal == "" and peak < count + (16 << 20)


@pytest.mark.parametrize("dtype", ["bool", "t2", "u1", "bf16"])
def test_statistics_of_what_is_mapped_take_little(tmp_path: Path, dtype: str) -> None:
    path = tmp_path / "m.oinf"
    count = 1 << 22
    write_oinf(
        path,
        Model({"x": (np.zeros(count, np.int8) if dtype != "bf16" else np.zeros(count), dtype)}),
    )
    model = Model.open(path)
    text, peak = "", 0
    tracemalloc.start()
    text = describe(model, stats=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (peak < 64 << 20 and " 0" in text) or "-1" in text


# ---------------------------------------------------------------- the prices


def _oinf_floats(n: int) -> bytes:
    return forged.oinf([("k", 15, 0)], [forged.oinf_array(11, [n], struct.pack("<d", 0.1) * n)])


def _oinf_lists(n: int) -> bytes:
    return forged.oinf([("k", 15, 0)], [forged.oinf_array(5, [n, 1, 1, 1], bytes(n))])


def _json(item: str) -> Callable[[int], bytes]:
    return lambda n: ('{"k": [' + ",".join(item % {"i": i} for i in range(n)) + "]}").encode()


def _json_keys(n: int) -> bytes:
    return forged.safetensors(forged.header_of(n))


def _json_tensors(n: int) -> bytes:
    entry = '"%d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}'
    return forged.safetensors(("{" + ",".join(entry % i for i in range(n)) + "}").encode())


def _gguf_texts(n: int) -> bytes:
    texts = b"".join(struct.pack("<Q", 3) + b"%03d" % (i % 1000) for i in range(n))
    return forged.gguf(struct.pack("<IQ", 8, n) + texts)


def _gguf_floats(n: int) -> bytes:
    return forged.gguf(struct.pack("<IQ", 6, n) + struct.pack("<f", 0.5) * n)


def _gguf_lists(n: int) -> bytes:
    return forged.gguf(struct.pack("<IQ", 9, n) + struct.pack("<IQB", 0, 1, 9) * n)


def _gguf_tensors(n: int) -> bytes:
    tensors = [
        struct.pack("<Q", 6) + b"%06d" % i + struct.pack("<IQIQ", 1, 0, 0, 0) for i in range(n)
    ]
    return forged.gguf(struct.pack("<IQ", 0, 0), tensors=tensors)


CONTENTS: dict[str, Callable[[int], bytes]] = {
    "oinf floats": _oinf_floats,
    "oinf lists": _oinf_lists,
    "oinf tensors": forged.oinf_tensors,
    "config lists": _json("[]"),
    "config maps": _json('{"a":%(i)d}'),
    "config floats": _json("0.%(i)d"),
    "config texts": _json('"%(i)d é"'),
    "json keys": _json_keys,
    "json tensors": _json_tensors,
    "gguf texts": _gguf_texts,
    "gguf floats": _gguf_floats,
    "gguf lists": _gguf_lists,
    "gguf tensors": _gguf_tensors,
}


@pytest.mark.parametrize("kind", CONTENTS)
def test_what_is_accepted_takes_no_more_than_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Of every kind of content as much as is just accepted, with the memory measured."""
    limit = 1 << 19
    monkeypatch.setattr(budget, "BASE", limit)
    monkeypatch.setattr(budget, "PER_BYTE", 0)
    path = tmp_path / "m.bin"
    target = path
    if kind.startswith("config"):
        forged.folder(path, b"")
        target = path / "config.json"
    low, high = 1, 40_000
    while high - low > 1 + low // 20:
        middle = (low + high) // 2
        target.write_bytes(CONTENTS[kind](middle))
        low, high = (middle, high) if _accepted(path) else (low, middle)
    assert low > 1 and high < 40_000
    target.write_bytes(CONTENTS[kind](low))
    assert _accepted(path)
    refusal, peak = peak_of(lambda: Model.open(path))
    assert refusal == "" and peak <= limit + (64 << 10), f"{low} take {peak} bytes"


def _accepted(path: Path) -> bool:
    try:
        Model.open(path)
    except OicError as error:
        assert "model-budget" in str(error)
        return False
    return True


# ---------------------------------------------------------------- what real models need


def test_a_large_tokenizer_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """256,000 tokens with scores and types, and 500,000 merges, in a file of nothing else.

    Here an eighth of them, within an eighth of the budget.
    """
    monkeypatch.setattr(budget, "BASE", budget.BASE // 8)
    count, pairs = 32_000, 62_500
    tokens = b"".join(struct.pack("<Q", 7) + b"%07d" % i for i in range(count))
    merges = b"".join(struct.pack("<Q", 12) + b"%05d %06d" % (i, i) for i in range(pairs))
    numbers = np.arange(count)

    def key(name: bytes, tag: int, count: int, raw: bytes) -> bytes:
        return struct.pack("<Q", len(name)) + name + struct.pack("<IIQ", 9, tag, count) + raw

    keys = [
        key(b"tokens", 8, count, tokens),
        key(b"merges", 8, pairs, merges),
        key(b"scores", 6, count, (-numbers).astype("<f4").tobytes()),
        key(b"types", 5, count, numbers.astype("<i4").tobytes()),
    ]
    path = tmp_path / "vocabulary.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, len(keys)) + b"".join(keys) + bytes(32))
    model = Model.open(path)
    assert len(model.metadata["merges"]) == pairs  # type: ignore[arg-type]


def test_a_header_of_many_tensors_fits(tmp_path: Path) -> None:
    """20,000 tensors in one file that has hardly any data."""
    path = tmp_path / "m.safetensors"
    path.write_bytes(_json_tensors(20_000))
    assert len(Model.open(path).names()) == 20_000


def test_a_large_file_is_opened_without_reading_it(tmp_path: Path) -> None:
    """A tensor of 64 GiB, in a sparse file."""
    elements = 1 << 34
    header = b'{"w":{"dtype":"F32","shape":[%d],"data_offsets":[0,%d]}}' % (elements, 4 * elements)
    path = tmp_path / "m.safetensors"
    path.write_bytes(forged.safetensors(header))
    os.truncate(path, 8 + len(header) + 4 * elements)
    refusal, peak = peak_of(lambda: Model.open(path))
    assert refusal == "" and peak < 1 << 20


def test_a_file_that_shrinks_is_refused_when_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "m.oinf"
    write_oinf(path, Model({"x": np.zeros(100_000, np.float32)}))
    model = Model.open(path)
    os.truncate(path, 4096)
    with pytest.raises(OicError, match="now has fewer"):
        model.tensor("x")
