"""The weights blob: every constant in the stored form of its type, behind a header.

    bytes   0..7   "OICWGHT\\0"      16..23  fingerprint of layout and contents
            8..11  version, 2       24..31  bytes of the whole blob
           12..15  CRC-32C of all that follows the header
           32..63  zeros

Little-endian; every constant starts at a multiple of the alignment of the plan; the same input gives the same bytes.
"""

import hashlib
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO

import numpy as np

from oic.ir.members import Members, StoredElements, forget
from oic.ir.module import Module
from oic.memory import layout
from oic.memory.crc32c import crc32c

HEAD = struct.Struct("<8sIIQQ32x")
MAGIC = b"OICWGHT\0"
VERSION = 2
assert HEAD.size == layout.WEIGHTS_HEADER

Told = Callable[[str, int, int], None]
"""Called with what is done, how much of it is, and how much there is."""


def unheard(what: str, done: int, total: int) -> None:
    """Progress that is not shown."""


def chunks(module: Module) -> Iterator[memoryview | bytes]:
    """The blob, in order, with zeros for its header and in gaps."""
    constants = {op.symbol: op for op in module.constants()}
    end = 0
    for buffer in module.memory.space("weights"):
        op = constants[buffer.name]
        yield bytes(buffer.offset - end)
        end = buffer.offset
        for part in layout.constant_parts(module.weights[op.symbol], op.type, op.family_rank):
            yield part.data if part.size else b""
            end += part.nbytes
        assert end == buffer.offset + buffer.nbytes, f"{op.symbol}: {end - buffer.offset} bytes of {buffer.nbytes}"
    yield bytes(module.memory.weights_bytes - end)


def contents(module: Module) -> bytes:
    """A digest of what the blob is made of: the values of all constants, as the model has them, and their types."""
    digest = hashlib.sha256(layout.weights_described(module).encode())
    for op in module.constants():
        values = module.weights[op.symbol]
        if isinstance(values, StoredElements):
            digest.update(f"{values.name} {values.encoding}".encode())
            values = values.source
        if isinstance(values, Members) and values.grouped:
            for part in values.groups():
                digest.update(part.data)
            continue
        for member in values if isinstance(values, Members) else (values,):
            digest.update(f"{member.dtype} {member.shape}".encode())
            digest.update(np.ascontiguousarray(member).reshape(-1).view(np.uint8).data)
            forget(member)
    return digest.digest()


BLOCK = 8 << 20  # bytes


def blocks(parts: Iterable[memoryview | bytes]) -> Iterator[bytearray]:
    """The same bytes in whole blocks, the last as long as it is: systems that have large pages keep files like that."""
    block = bytearray()
    for part in parts:
        rest = memoryview(part).cast("B")
        while len(block) + len(rest) >= BLOCK:
            missing = BLOCK - len(block)
            yield block + rest[:missing]
            block, rest = bytearray(), rest[missing:]
        block += rest
    yield block


def write(module: Module, to: BinaryIO, told: Told = unheard) -> int:
    """Write the blob, the header last; gives its fingerprint, which differs when any constant does."""
    checksum, digest = 0, hashlib.sha256(layout.weights_described(module).encode())
    done, total = 0, module.memory.weights_bytes
    for block in blocks(chunks(module)):
        to.write(block)
        contained = memoryview(block)[0 if done else HEAD.size :]
        checksum = crc32c(contained, checksum)
        digest.update(contained)
        done += len(block)
        told("packing weights", done, total)
    fingerprint = int.from_bytes(digest.digest()[:8], "little")
    to.seek(0)
    to.write(HEAD.pack(MAGIC, VERSION, checksum, fingerprint, total))
    return fingerprint
