"""A model with its weights in fewer bits beside itself as declared: what the bits cost."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from oic.generation import Generator
from oic.generation.generator import Precision
from oic.verification.outcome import token_prompts


@dataclass(frozen=True)
class PromptOutcome:
    """One prompt, and what the exact model writes after it.

    alike    of the new tokens, those that the other model finds the most likely, too, after the same ones
    follows  new tokens that it writes by itself until the first that is another
    largest  difference of logits after the prompt and after each new token (a decoder's); None
    typical  root of the mean square of these differences over that of the logits about their mean
    """

    prompt: tuple[int, ...]
    chosen: tuple[int, ...]
    alike: int
    follows: int
    largest: float | None
    typical: float | None


@dataclass(frozen=True)
class PrecisionReport:
    """What weights in fewer bits make of a model.

    tensors  constants, and the error of each
    """

    tensors: tuple[Precision, ...]
    outcomes: tuple[PromptOutcome, ...]

    @property
    def agreement(self) -> float:
        """The part of all new tokens that both choose after the same ones."""
        return sum(o.alike for o in self.outcomes) / max(1, sum(len(o.chosen) for o in self.outcomes))


def quantized(
    opened: Callable[[str], Generator], weights: str, prompts: Sequence[str | Sequence[int]], count: int,
    random: int = 4, seed: int = 0,
) -> PrecisionReport:  # fmt: skip
    """Compare a model in some precision with itself as declared.

    opened   the model with its weights as rules say
    prompts  texts or token ids; none: so many random ones as `random` says, from `seed`
    count    new tokens of a prompt
    Raises OicError as Generator does.
    """
    with opened("f32") as exact:
        given, count = token_prompts(exact, prompts, count, random, seed)
        written = [tuple(t.id for t in exact.stream(p, count, stop_ids=())) for p in given]
        rows = [_rows(exact, p, new) for p, new in zip(given, written, strict=True)]
    with opened(weights) as other:
        found = zip(given, written, rows, strict=True)
        return PrecisionReport(tuple(other.precisions), tuple(_outcome(other, *entry) for entry in found))


def _rows(generator: Generator, prompt: Sequence[int], new: Sequence[int]) -> np.ndarray | None:
    """Logits by which each new token is chosen; None of an encoder–decoder."""
    if generator.encodes:
        return None
    return generator.logits([*prompt, *new[:-1]], given=len(prompt))[len(prompt) - 1 :]


def _outcome(other: Generator, prompt: Sequence[int], new: tuple[int, ...], rows: np.ndarray | None) -> PromptOutcome:
    own = [t.id for t in other.stream(prompt, len(new), stop_ids=())]
    follows = next((i for i, (a, b) in enumerate(zip(own, new, strict=False)) if a != b), len(new))
    theirs = _rows(other, prompt, new)
    if rows is None or theirs is None:
        return PromptOutcome(tuple(prompt), new, sum(a == b for a, b in zip(own, new)), follows, None, None)
    difference = theirs.astype(np.float64) - rows
    about = rows - rows.mean(-1, keepdims=True, dtype=np.float64)
    typical = float(np.sqrt(np.square(difference).mean() / max(np.square(about).mean(), 1e-300)))
    alike = int((theirs.argmax(-1) == np.asarray(new)).sum())
    return PromptOutcome(tuple(prompt), new, alike, follows, float(np.abs(difference).max()), typical)
