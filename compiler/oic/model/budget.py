"""What decoding a model may cost: one budget for a file or a folder, and one place that decides.

Decoded things are charged before they are made, with the memory that CPython takes for them at
most; what is charged is never given back, so that it bounds time as well.  Together they may come to

    2 x the bytes of the files + 128 MiB, and to 512 MiB at most.

With the mapped file itself and the interpreter that stays below 3 x the file + 256 MB.  A tokenizer
of 256,000 tokens and 500,000 merges takes 73 MiB of it, an index of 92,000 tensors 52 MiB.  The
elements of tensors are not decoded when a file is opened; one tensor of a compressed .npz may inflate
to 2 x the file + 128 MiB, all of them to 64 x the file + 1 GiB.
"""

import sys
from dataclasses import dataclass

BASE = 128 << 20
PER_BYTE = 2
MOST = 512 << 20
INFLATED_BASE = 1 << 30
INFLATED_PER_BYTE = 64

# Bytes of memory, rounded up (CPython 3.11, 64 bits).
VALUE = 48  # a number in a list
LIST = 104  # a list, its first elements included
TENSOR = 1536  # an entry of a model, with the ranges and messages of its checks
MEMBER = 2048  # a file of a zip archive, with its entry
TEXT = 64  # a text and its place, without its characters
JSON = {b",": 96, b":": 288, b"[": LIST, b"{": 320}  # by the mark before a value


@dataclass(eq=False)
class Budget:
    """Bytes of memory that decoding may still take.

    size   of the files decoded within this budget
    spent  bytes charged so far
    """

    size: int = 0
    spent: int = 0

    @property
    def limit(self) -> int:
        """The most that may be spent, by the size of the files."""
        return min(MOST, BASE + PER_BYTE * self.size)

    def charge(self, amount: int) -> bool:
        """Spend so many bytes; False where they are more than what is left."""
        self.spent += amount
        return self.spent <= self.limit


def text_bytes(text: str) -> int:
    """Bytes of memory that a text takes."""
    return sys.getsizeof(text)


def most_inflated(size: int) -> tuple[int, int]:
    """Bytes to which one tensor of a file of so many bytes may inflate, and all of them together."""
    return BASE + PER_BYTE * size, INFLATED_BASE + INFLATED_PER_BYTE * size
