"""The text of tokens as they come."""

from collections.abc import Sequence
from itertools import chain

from oic.generation.tokenizer import Tokenizer

CONTEXT = 5  # texts before, which tell what a token adds: a space, or the end of a character
UNFINISHED = "\ufffd"


class Detokenizer:
    """What each token adds to the text of those before it.

    before   tokens before the first, whose text is not given: a prompt, which the new text goes on with

    A character that more tokens make up is given with the last of them.  Two windows of tokens are decoded for each
    token, whatever came before, since what a token is as text depends on its neighbours.  A window begins where a text
    was given, at a character: some tokenizers make nothing of a run of bytes that begins within one.
    """

    def __init__(self, tokenizer: Tokenizer, before: Sequence[int]) -> None:
        self._tokenizer = tokenizer
        self._given = [list(before)]  # the tokens of each of the last texts
        self._new: list[int] = []

    def add(self, token: int) -> str:
        """The text that is complete with this token."""
        self._new.append(token)
        return "" if self._text().endswith(UNFINISHED) else self.rest()

    def rest(self) -> str:
        """The text that was not given yet, complete or not."""
        text, new, self._new = self._text(), self._new, []
        before = self._text()
        self._given = [*self._given, new][-CONTEXT:]
        return text[len(before) :]

    def _text(self) -> str:
        """That of the window, from the last texts to the newest token."""
        return self._tokenizer.decode([*chain.from_iterable(self._given), *self._new])
