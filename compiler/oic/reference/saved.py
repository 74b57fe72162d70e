"""The form in which the interpreter saves state: versioned, fingerprinted, with a checksum."""

from __future__ import annotations

import hashlib
import json
import struct
from typing import Any

from oic.diagnostics import StepError

MAGIC = b"OICREFST"
VERSION = 1
HEAD = struct.Struct("<8sIQQ")  # magic, version, fingerprint, bytes of the header
DIGEST = 32


def write(fingerprint: int, header: Any, blobs: list[bytes]) -> bytes:
    """One saved state: `header` is anything JSON holds; the blobs' sizes are kept beside it."""
    text = json.dumps({"header": header, "sizes": [len(b) for b in blobs]}).encode()
    body = HEAD.pack(MAGIC, VERSION, fingerprint, len(text)) + text + b"".join(blobs)
    return body + hashlib.sha256(body).digest()


def read(data: bytes, fingerprint: int) -> tuple[Any, list[bytes]]:
    """Header and blobs of `write`.  Raises StepError if anything about it is wrong."""
    if len(data) < HEAD.size + DIGEST or data[:8] != MAGIC:
        raise StepError("OIC_ERR_STATE", "this is not a saved state of the interpreter")
    _, version, found, length = HEAD.unpack_from(data)
    if version != VERSION:
        raise StepError("OIC_ERR_STATE", f"the saved state has version {version}, not {VERSION}")
    if hashlib.sha256(data[:-DIGEST]).digest() != data[-DIGEST:]:
        raise StepError("OIC_ERR_STATE", "the saved state is damaged")
    if found != fingerprint:
        raise StepError("OIC_ERR_STATE", "the saved state is of another graph")
    at = HEAD.size + length
    text = json.loads(data[HEAD.size : at])
    blobs: list[bytes] = []
    for size in text["sizes"]:
        blobs.append(data[at : at + size])
        at += size
    return text["header"], blobs
