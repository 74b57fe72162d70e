"""How a graph is fed that generates: what its entries and inputs are called, and what follows on what.

A decoder has
    entry     reads `tokens`, i32 [N] or [1, N]; gives `logits` [.., N, vocab], whose row i follows tokens[i]
    prefill   optional, reads the same; gives `last_logits`, the last of these rows
and goes on with what it was fed since its state was reset.  With a batch, tokens are [B, N], and `lengths`, i32 [B],
says how many of each row count: a prompt is the first row, and the others are fed none.

An encoder–decoder has
    encode    reads the source, the only input whatever its name, i32 [M] or [1, M]; optionally `lengths`, i32 [1]: M.
              Outputs begin anew.
    entry     as that of a decoder, for the output: it is fed the start token first

A token more than there is room for is OIC_ERR_CACHE_FULL, with the state as it was.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oic.diagnostics import OicError, StepError, fail, shortened
from oic.generation.text_session import TextSession
from oic.session.interface import Entry, Interface

FULL, INDEX = "OIC_ERR_CACHE_FULL", "OIC_ERR_INDEX"
ENCODE, LENGTHS = "encode", "lengths"
STARTS = ("decoder_start_token_id", "bos_token_id", "pad_token_id")
"""Keys of the configuration that say what an output starts with, the first that is there."""
FORCED = "forced_bos_token_id"
FEWER = "a larger context, or a shorter prompt"


class DecoderFeed:
    """A graph that goes on with a prompt.

    forced   ids that the output begins with, whatever the logits
    prefill  tokens of one step at most
    """

    encodes = False
    sizes: tuple[str, ...] = ("T",)
    """What a graph calls the numbers of tokens that it has room for."""

    def __init__(self, face: Interface, settings: Mapping[str, Any], source: object) -> None:
        self.forced: list[int] = []
        entry = face.entries["entry"]
        if set(entry.inputs) - {LENGTHS} != {"tokens"} or "logits" not in entry.outputs:
            raise _wrong(source, "does not turn tokens into logits", "its entry reads 'tokens' and writes 'logits'")
        self._batch = _batch(entry, source) if LENGTHS in entry.inputs else 0
        self._shape = (1, -1) if self._batch else _row(entry, "tokens", source)
        self._fast = "prefill" in face.entries
        self.prefill = min(entry.maxima.values(), default=1)

    def start(self, session: TextSession, ids: Sequence[int]) -> list[int]:
        """Make the session ready for a prompt; what is fed to it first.  Raises OicError."""
        return session.share(checked(ids))

    def rows(self, session: TextSession, fed: Sequence[int], given: int) -> Iterator[NDArray[np.float32]]:
        """Logits [n, vocab] of the next tokens: the first `given` are fed at once, the others one by one.

        Raises OicError for more than there is room for.
        """
        starts = [*range(0, given, self.prefill), *range(given, len(fed))]
        for part in np.split(np.asarray(fed, np.int32), starts[1:]):
            yield self._step(session, "entry", "logits", part, len(fed))

    def last(self, session: TextSession, fed: Sequence[int]) -> NDArray[np.float32]:
        """Logits [vocab] after tokens, fed in parts of at most `prefill`.  Raises OicError likewise."""
        entry, output = ("prefill", "last_logits") if self._fast else ("entry", "logits")
        whole = np.asarray(fed, np.int32)
        parts = np.split(whole, range(self.prefill, len(whole), self.prefill))
        return [self._step(session, entry, output, part, len(whole)) for part in parts][-1][-1]

    def next(self, session: TextSession, token: int) -> NDArray[np.float32] | None:
        """Logits [vocab] after one more token; None where there is no room for it."""
        try:
            return self._logits(session, "entry", "logits", [token])[-1]
        except StepError as error:
            if error.status != FULL:
                raise
            return None

    def _step(
        self, session: TextSession, entry: str, output: str, part: Sequence[int] | NDArray[np.int32], whole: int
    ) -> NDArray[np.float32]:
        try:
            return self._logits(session, entry, output, part)
        except StepError as error:
            if error.status == FULL:
                raise too_long(whole) from None
            raise _unknown(error) if error.status == INDEX else error from None

    def _logits(
        self, session: TextSession, entry: str, output: str, ids: Sequence[int] | NDArray[np.int32]
    ) -> NDArray[np.float32]:
        """The logits [n, vocab] of a step."""
        row = np.asarray(ids, np.int32).reshape(self._shape)
        if not self._batch:
            return _rows(session.step(entry, row.ravel().tolist(), tokens=row)[output])
        tokens, lengths = np.zeros((self._batch, row.size), np.int32), np.zeros(self._batch, np.int32)
        tokens[0], lengths[0] = row, row.size
        return _rows(session.step(entry, row.ravel().tolist(), tokens=tokens, lengths=lengths)[output][0])


class EncoderDecoderFeed(DecoderFeed):
    """A graph that reads a source and writes an output."""

    encodes = True
    sizes = ("S", "T")

    def __init__(self, face: Interface, settings: Mapping[str, Any], source: object) -> None:
        super().__init__(face, settings, source)
        entry = face.entries[ENCODE]
        names = [name for name in entry.inputs if name != LENGTHS]
        if len(names) != 1:
            raise _wrong(source, "does not read a source", f"'{ENCODE}' reads the source, and {LENGTHS} if it wishes")
        self._name, self._measured = names[0], LENGTHS in entry.inputs
        self._source = _row(entry, self._name, source)
        size = entry.inputs[self._name].shape[-1]
        self._most = size if isinstance(size, int) else min(entry.maxima.values())
        vocab = face.variables["logits"].shape[-1]
        starts = [key for key in STARTS if token_ids(settings, key)][:1]
        self._begin = next((_token(settings, key, vocab) for key in starts), None)
        self.forced = [_token(settings, key, vocab) for key in [FORCED] if token_ids(settings, key)]

    def start(self, session: TextSession, ids: Sequence[int]) -> list[int]:
        if self._begin is None:
            message = "the configuration does not say which token an output starts with"
            raise fail("import-config", message, hint=f"--set {STARTS[0]}=…")
        given = checked(ids)
        if len(given) > self._most:
            message = f"the source has {len(given)} tokens, and the encoder reads {self._most} at most"
            raise fail("generate-prompt", message, hint=FEWER)
        session.reset()
        more = {LENGTHS: np.array([len(given)], np.int32)} if self._measured else {}
        try:
            session.step(ENCODE, [], **{self._name: np.array(given, np.int32).reshape(self._source)}, **more)
        except StepError as error:
            raise _unknown(error) if error.status == INDEX else error from None
        return [self._begin]


def kind_of(blocks: Iterable[str]) -> type[DecoderFeed]:
    """What a graph is, by the names of its blocks."""
    return EncoderDecoderFeed if ENCODE in blocks else DecoderFeed


def token_ids(settings: Mapping[str, Any], key: str) -> list[int]:
    """Token ids of a configuration: one, several or none; `OicError` `import-config` for what is no id."""
    value = settings.get(key)
    found = value if isinstance(value, list) else [] if value is None else [value]
    if not all(isinstance(v, int) and not isinstance(v, bool) for v in found):
        raise fail("import-config", f"'{key}' is {value!r}, and should be a token id, or a list of them")
    return found


def _token(settings: Mapping[str, Any], key: str, vocab: Any) -> int:
    """The token that a key names; `OicError` `import-config` where the model has none of that id."""
    token = token_ids(settings, key)[0]
    if not 0 <= token < vocab:
        raise fail("import-config", f"'{key}' is {token}, and ids are 0 to {vocab - 1}")
    return token


def checked(ids: Sequence[int]) -> list[int]:
    """A prompt's ids; `OicError` `generate-prompt` for none, and for what is no id."""
    if not len(ids):
        raise fail("generate-prompt", "a prompt of no tokens: there is nothing to go on with")
    whole = np.asarray(ids)
    if whole.ndim != 1 or whole.dtype.kind not in "iu" or int(whole.min()) < 0 or int(whole.max()) >= 1 << 31:
        raise fail("generate-prompt", f"a prompt is a list of token ids, integers from 0 on, not {shortened(str(ids))}")
    return [int(i) for i in whole]


def too_long(count: int) -> OicError:
    """The refusal of a prompt of so many tokens."""
    return fail("generate-prompt", f"the prompt has {count} tokens, more than the cache has room for", hint=FEWER)


def _unknown(error: StepError) -> OicError:
    """The refusal of a token that the model does not have."""
    return fail("generate-prompt", f"a token that the model does not have: {error.message}")


def _rows(logits: Any) -> NDArray[np.float32]:
    """Logits [n, vocab] without the axes before."""
    found: NDArray[np.float32] = np.asarray(logits)
    return found.reshape(-1, found.shape[-1])


def _row(entry: Entry, name: str, source: object) -> tuple[int, ...]:
    """The shape that one row of ids takes."""
    shape = entry.inputs[name].shape
    if not shape or any(size != 1 for size in shape[:-1]):
        raise _wrong(source, f"takes {list(map(str, shape))} as '{name}'", "one row is fed: [N] or [1, N]")
    return (*(1 for _ in shape[:-1]), -1)


def _batch(entry: Entry, source: object) -> int:
    """How many rows a step of a graph with a batch takes."""
    shape = entry.inputs["tokens"].shape
    if len(shape) != 2 or not isinstance(shape[0], int) or entry.inputs[LENGTHS].shape != shape[:1]:
        raise _wrong(source, f"takes {list(map(str, shape))} as 'tokens' beside 'lengths'", "[B, N] and [B] are fed")
    return shape[0]


def _wrong(source: object, what: str, hint: str) -> OicError:
    return fail("generate-interface", f"the graph of '{source}' {what}", hint=hint)
