"""A session that goes on with a text: what it has read is not computed again.

with generator.session() as session:
    for prompt in prompts:                                    # of the same beginning
        for token in generator.stream(prompt, session=session): ...
"""

import struct
from collections.abc import Sequence
from itertools import takewhile
from typing import NoReturn, Self

import numpy as np

from oic.diagnostics import Refusal, StepError
from oic.dtypes import Array
from oic.memory.crc32c import crc32c
from oic.session.executor import Executor

HEAD = struct.Struct("<4sII")
"""Of a saved session: a mark, how many tokens it has read, a CRC-32C over their ids, which follow, i32 each."""
MARK = b"OICS"


class TextSession:
    """An executor, and the tokens that its state has read.

    ids   of these tokens, since the state was as at the start
    """

    def __init__(self, executor: Executor, ids: Sequence[int] = ()) -> None:
        self.executor = executor
        self.ids = list(ids)

    def reset(self) -> None:
        """Nothing is read."""
        self.ids = []
        self.executor.reset()

    def known(self, prompt: Sequence[int]) -> int:
        """How many tokens of a prompt are those that it has read."""
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(self.ids, prompt)))

    def share(self, prompt: list[int]) -> list[int]:
        """Take the state back to what it shares with a prompt; the tokens left to read, one at least.

        Where positions cannot be taken back, the state begins anew unless it is all shared.
        """
        known = self.known(prompt)
        ids, self.ids = self.ids, []  # what an interrupted call did is not known
        shared = min(known, len(prompt) - 1)
        try:
            if shared < len(ids):
                self.executor.truncate(len(ids) - shared)
        except Refusal:
            shared = 0
        if not shared:
            self.executor.reset()
        self.ids = ids[:shared]
        return prompt[shared:]

    def step(self, entry: str, ids: list[int], **inputs: Array) -> dict[str, Array]:
        """Run an entry that reads these tokens; its outputs.  Raises OicError, StepError."""
        before, self.ids = self.ids, []
        try:
            made = self.executor.step(entry, **inputs)
        except StepError:
            self.ids = [] if self.executor._spoiled else before
            raise
        self.ids = [*before, *ids]
        return made

    def save(self) -> bytes:
        """The tokens and the state as bytes."""
        ids = np.array(self.ids, "<i4").tobytes()
        return HEAD.pack(MARK, len(self.ids), crc32c(ids)) + ids + self.executor.save()

    def load(self, saved: bytes) -> None:
        """What `save` gave, of any session of this graph; `StepError`, with nothing changed, for anything else."""
        if not isinstance(saved, bytes) or len(saved) < HEAD.size or not saved.startswith(MARK):
            raise StepError("OIC_ERR_STATE", "this is no saved session", hint="give what save() of a session gave")
        _, count, crc = HEAD.unpack_from(saved)
        ids = saved[HEAD.size : HEAD.size + 4 * count]
        if crc32c(ids) != crc or len(ids) != 4 * count:
            raise StepError("OIC_ERR_STATE", "the saved session is damaged: its tokens are not those that were saved")
        before, self.ids = self.ids, []
        try:
            self.executor.load(saved[HEAD.size + len(ids) :])
        except StepError:
            self.ids = before
            raise
        self.ids = np.frombuffer(ids, "<i4").tolist()

    def fork(self) -> Self:
        """Another session that has read the same, over the same weights."""
        return type(self)(self.executor.fork(), self.ids)

    def __reduce__(self) -> NoReturn:
        """What `copy` and `pickle` ask for: of two objects of one state each would miss what the other reads."""
        raise TypeError("a session cannot be copied or pickled: fork() gives another, and save() its state as bytes")

    def close(self) -> None:
        """Give memory back."""
        self.executor.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
