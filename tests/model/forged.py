"""Small files whose decoding would take much: what a model reader has to refuse, or survive."""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

Payloads = Sequence[bytes]


def padded(raw: bytes) -> bytes:
    return raw + bytes(-len(raw) % 8)


def oinf_name(name: str) -> bytes:
    raw = name.encode()
    return padded(struct.pack("<I", len(raw)) + raw)


def oinf(
    metadata: Sequence[tuple[str, int, int]],
    payloads: Payloads,
    tensors: bytes = b"",
    count: int = 0,
) -> bytes:
    """An .oinf file; metadata is (key, type, number of its payload)."""
    start = 72 + sum(len(oinf_name(key)) + 24 for key, _, _ in metadata)
    data = end = start + len(tensors)
    places = []
    for payload in payloads:
        places.append(end)
        end += len(payload)
    keys = b"".join(
        oinf_name(key) + struct.pack("<IIQQ", tag, 0, len(payloads[i]), places[i])
        for key, tag, i in metadata
    )
    head = b"OINF\0" + struct.pack("<IIIIII", 1, 0, 0, len(metadata), count, 0)
    head += struct.pack("<QQQQQ", 72, 72, start, data, end)
    return head.ljust(72, b"\0") + keys + tensors + b"".join(payloads)


def oinf_bits(bits: int) -> bytes:
    return padded(struct.pack("<II", bits, (bits + 7) // 8) + b"\xff" * ((bits + 7) // 8))


def oinf_array(tag: int, shape: Sequence[int], raw: bytes) -> bytes:
    return padded(struct.pack(f"<II{len(shape)}Q", tag, len(shape), *shape) + raw)


def oinf_tensors(count: int) -> bytes:
    """Tensors without data, as small as they can be."""
    entries = b"".join(
        oinf_name(f"{i:x}") + struct.pack("<IIIQQ", 1, 0, 0, 0, 0) for i in range(count)
    )
    return oinf([], [], padded(entries), count)


def safetensors(header: bytes, data: bytes = b"") -> bytes:
    return struct.pack("<Q", len(header)) + header + data


def gguf(value: bytes, tag: int = 9, tensors: Sequence[bytes] = ()) -> bytes:
    """A GGUF file of one key, an array where nothing else is said."""
    head = b"GGUF" + struct.pack("<IQQQ", 3, len(tensors), 1, 1) + b"k" + struct.pack("<I", tag)
    return head + value + b"".join(tensors) + bytes(64)


def npy(descr: str, shape: str, data: bytes) -> bytes:
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + data


def npz(path: Path, members: dict[str, bytes], *, deflated: bool = True) -> None:
    kind = zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name, raw in members.items():
            archive.writestr(name, raw)


def folder(path: Path, config: bytes) -> None:
    """A Hugging Face folder."""
    path.mkdir()
    (path / "config.json").write_bytes(config)
    (path / "model.safetensors").write_bytes(safetensors(b"{}"))


def _nested(depth: int, inner: bytes = b"1") -> bytes:
    """Maps in maps, their keys 10 characters long."""
    return b'{"nnnnnnnnnn":' * depth + inner + b"}" * depth


def _keys(count: int) -> bytes:
    return b"{" + b",".join(b'"%d":1' % i for i in range(count)) + b"}"


EMPTY = b"{'descr': '|u1', 'fortran_order': False, 'shape': (0,), }"

# What is written into a file of this name.  They suit a budget of 4 MiB; forms of them, 32 times as
# large, took up to 5.8 GiB or minutes.
BOMBS: dict[str, Callable[[], bytes]] = {
    "overlap.oinf": lambda: oinf([(f"k{i}", 13, 0) for i in range(60)], [oinf_bits(1 << 18)]),
    "deep.oinf": lambda: oinf(
        [("k", 15, 0)], [oinf_array(24, [1 << 17] + [1] * 31, bytes(1 << 14))]
    ),
    "bits.oinf": lambda: oinf([("k", 13, 0)], [oinf_bits(1 << 20)]),
    "tensors.oinf": lambda: oinf_tensors(3000),
    "lists.safetensors": lambda: safetensors(b'{"a":[' + b"[]," * 100_000 + b"[]]}"),
    "maps.safetensors": lambda: safetensors(b'{"a":[' + b'{"":1},' * 25_000 + b"1]}"),
    "strings.gguf": lambda: gguf(struct.pack("<IQ", 8, 60_000) + bytes(480_000)),
    "numbers.gguf": lambda: gguf(struct.pack("<IQ", 6, 1 << 18) + bytes(1 << 20)),
    "nested.gguf": lambda: gguf(
        struct.pack("<IQ", 9, 100_000) + struct.pack("<IQ", 4, 0) * 100_000
    ),
}
ARCHIVES: dict[str, Callable[[], dict[str, bytes]]] = {
    "text.npz": lambda: {"m.npy": npy(f"<U{1 << 22}", "()", bytes(1 << 24))},
    "several.npz": lambda: {
        f"{i}.npy": npy("|u1", f"({1 << 22},)", bytes(1 << 22)) for i in range(20)
    },
    "headers.npz": lambda: {
        f"{i}.npy": b"\x93NUMPY\1\0\xff\xff" + EMPTY.ljust(65535) for i in range(100)
    },
}
CONFIGS: dict[str, Callable[[], bytes]] = {
    "lists": lambda: b'{"a":[' + b"[]," * 100_000 + b"[]]}",
    "names": lambda: _nested(300, _keys(5_000)),  # 3,300 characters for each of the values
    "deep": lambda: _nested(900),
}


def make_bomb(name: str, folder_: Path) -> Path:
    """Write the file or folder of this name; its path."""
    path = folder_ / name
    if name in BOMBS:
        path.write_bytes(BOMBS[name]())
    elif name in ARCHIVES:
        npz(path, ARCHIVES[name]())
    else:
        folder(path, CONFIGS[name]())
    return path


def header_of(count: int) -> bytes:
    """A safetensors header of so many keys of metadata."""
    return json.dumps({"__metadata__": {f"k{i:08}": "v" for i in range(count)}}).encode()
