"""The text of tokens as they come."""

from __future__ import annotations

from collections.abc import Sequence

from oic.generation.tokenizer import Tokenizer

CONTEXT = 5  # tokens before, whose text tells what a token adds: a space, or the end of a character
UNFINISHED = "\ufffd"


class Detokenizer:
    """What each token adds to the text of those before it.

    before   tokens before the first, whose text is not given: a prompt, which the new text goes on with

    A character that more tokens make up is given with the last of them.  Two windows of tokens are decoded for each
    token, whatever came before, since what a token is as text depends on its neighbours.
    """

    def __init__(self, tokenizer: Tokenizer, before: Sequence[int]) -> None:
        self._tokenizer = tokenizer
        self._ids = list(before[-CONTEXT:])
        self._given = len(self._ids)

    def add(self, token: int) -> str:
        """The text that is complete with this token."""
        self._ids.append(token)
        return "" if self._tokenizer.decode(self._ids).endswith(UNFINISHED) else self.rest()

    def rest(self) -> str:
        """The text that was not given yet, complete or not."""
        before = self._tokenizer.decode(self._ids[: self._given])
        text = self._tokenizer.decode(self._ids)
        self._ids, self._given = self._ids[-CONTEXT:], min(CONTEXT, len(self._ids))
        return text[len(before) :]
