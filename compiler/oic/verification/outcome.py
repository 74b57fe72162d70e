"""The compiled model on the original's inputs: logits step by step, and what it writes by itself."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from oic import arguments
from oic.diagnostics import fail
from oic.generation import Generator
from oic.verification.cases import Case, read_cases, write_cases
from oic.verification.original import Original

TOLERANCE = 1e-4
LONGEST = 12  # tokens of a random prompt


@dataclass(frozen=True)
class Outcome:
    """One prompt.

    errors    largest absolute difference of the logits after each token that the decoder is fed with
    chosen    ids that the compiled model chooses by itself, as many as the original
    margin    of the original's two largest logits where `chosen` first differs; None: it does not
    text      what `chosen` is, and `original`; None without a tokenizer
    distance  insertions, deletions and replacements that turn one text (without one: the ids) into the other
    length    characters (ids) of the original's
    """

    case: Case
    errors: tuple[float, ...]
    chosen: tuple[int, ...]
    margin: float | None
    text: str | None
    original: str | None
    distance: int
    length: int

    @property
    def divergent(self) -> int | None:
        """The first new token that is another one, from 0; None: all are equal."""
        pairs = zip(self.chosen, self.case.chosen, strict=True)
        return next((i for i, (ours, theirs) in enumerate(pairs) if ours != theirs), None)


@dataclass(frozen=True)
class Report:
    """All prompts; `within` is the largest difference of logits that passes."""

    outcomes: tuple[Outcome, ...]
    within: float

    @property
    def worst(self) -> float:
        """The largest difference; NaN where one is."""
        return float(np.max([np.max(o.errors) for o in self.outcomes]))

    @property
    def exact(self) -> int:
        """Prompts whose new tokens are all equal."""
        return sum(o.divergent is None for o in self.outcomes)

    @property
    def error_rate(self) -> float:
        """Changes that turn the texts (without a tokenizer: the ids) into the original's, per character (id)."""
        return sum(o.distance for o in self.outcomes) / max(1, sum(o.length for o in self.outcomes))

    @property
    def passed(self) -> bool:
        """Every token is equal, and every difference within the tolerance."""
        return self.exact == len(self.outcomes) and self.worst <= self.within


def verify(
    source: str | Path | Generator, against: str | Path, *, prompts: Sequence[str | Sequence[int]] = (),
    count: int = 16, random: int = 4, seed: int = 0, within: float = TOLERANCE, save: str | Path | None = None,
) -> Report:  # fmt: skip
    """Compare a checkpoint or an imported folder, compiled, with the original.

    source    or a Generator, with settings of its own, which stays open
    against   'transformers', or a file that `read_cases` reads, with its own prompts
    prompts   texts or token ids; none: so many random ones as `random` says, from `seed`
    count     new tokens of a prompt, at most
    save      file that keeps what the original said
    Raises OicError: `verify-reference`, `verify-library`, or what Generator raises.
    """
    prompts = arguments.sequence("prompts", prompts, "texts or lists of token ids")
    count, random, seed = (arguments.integer(*each) for each in (("count", count), ("random", random), ("seed", seed)))
    if not arguments.number("within", within) >= 0:
        raise fail("verify-reference", f"a tolerance is 0 or more, not {within}")
    opened = nullcontext(source) if isinstance(source, Generator) else Generator(Path(arguments.path("source", source)))
    with opened as generator:
        if str(against) == "transformers":
            given, count = token_prompts(generator, prompts, count, random, seed)
            for ids in given:
                _check(ids, generator.vocab)
                _fit(generator, ids, count)
            original = Original(generator.checkpoint)
            cases = [original.case(ids, count) for ids in given]
        elif prompts:
            raise fail("verify-reference", f"'{against}' has prompts of its own",
                       hint="leave the prompts out, or compare with transformers")  # fmt: skip
        else:
            cases = read_cases(against)
        if save is not None:
            write_cases(save, cases)
        return Report(tuple(_outcome(generator, case) for case in cases), within)


def token_prompts(
    generator: Generator, prompts: Sequence[str | Sequence[int]], count: int, random: int, seed: int
) -> tuple[list[list[int]], int]:
    """Prompts as token ids, and how many new tokens follow each.

    Where none are given: `random` ones of `seed`, and as many as there is room for beside the longest, `count` at most.
    """
    if prompts:
        ids_of = partial(arguments.sequence, "a prompt", of="token ids")
        return [generator.encode(p) if isinstance(p, str) else ids_of(p) for p in prompts], count
    half = max(1, (generator.room or 2 * max(LONGEST, count)) // 2)
    draw, longest = np.random.default_rng(seed), min(LONGEST, half)
    drawn = [draw.integers(generator.vocab, size=draw.integers(1, longest + 1)).tolist() for _ in range(random)]
    return drawn, min(count, half)


def _fit(generator: Generator, ids: Sequence[int], count: int) -> None:
    """Refuse more tokens than there is room for: the last new one is not fed."""
    fed = count if generator.encodes else len(ids) + count - 1
    if generator.room is not None and max(fed, len(ids)) > generator.room:
        message = f"a prompt of {len(ids)} and {count} new tokens: there is room for {generator.room}"
        raise fail("generate-prompt", message, hint="a larger context, a shorter prompt, or fewer new tokens")


def _check(ids: Sequence[int], vocab: int) -> None:
    """Refuse a prompt that the original cannot read."""
    wrong = next((i for i in ids if not 0 <= i < vocab), None)
    if wrong is not None or not ids:
        what = "has no tokens" if wrong is None else f"has a token {wrong}, outside 0 to {vocab - 1}"
        raise fail("generate-prompt", f"a prompt {what}")


def _outcome(generator: Generator, case: Case) -> Outcome:
    _check(case.fed, generator.vocab)
    if case.logits.shape[1] != generator.vocab:
        message = f"the original's logits are those of {case.logits.shape[1]} tokens, the model's of {generator.vocab}"
        raise fail("verify-reference", message)
    rows = generator.logits(case.fed, given=case.given, source=case.source)
    errors = np.abs(rows.astype(np.float64) - case.logits).max(axis=1)
    chosen = tuple(t.id for t in generator.stream(case.prompt, len(case.chosen), stop_ids=()))
    if len(chosen) < len(case.chosen):
        message = f"the context is full after {len(chosen)} of {len(case.chosen)} new tokens"
        raise fail("generate-prompt", message, hint="a larger context")
    text = original = None
    if generator.reads():
        text, original = (generator.tokenizer().decode(list(ids)) for ids in (chosen, case.chosen))
    ours, theirs = (chosen, case.chosen) if text is None or original is None else (text, original)
    outcome = Outcome(case, tuple(map(float, errors)), chosen, None, text, original, changes(ours, theirs), len(theirs))
    if (at := outcome.divergent) is None:
        return outcome
    top = np.sort(case.logits[case.given - 1 + at])[-2:]
    return replace(outcome, margin=float(top[1] - top[0]))


def changes(a: Sequence[object], b: Sequence[object]) -> int:
    """Insertions, deletions and replacements that turn one sequence into the other (Levenshtein's distance)."""
    row: NDArray[np.int64] = np.arange(len(b) + 1)
    for i, item in enumerate(a, 1):
        replaced = row[:-1] + np.array([item != other for other in b], np.int64)
        best = np.minimum(replaced, row[1:] + 1)
        # what insertions make of the columns to the left: the least of best[j] + (k - j)
        shifted = np.concatenate(([i], best)) - np.arange(len(b) + 1)
        row = np.minimum.accumulate(shifted) + np.arange(len(b) + 1)
    return int(row[-1])
