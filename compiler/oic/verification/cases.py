"""What the original does with a prompt, and the file that keeps it (`.npz`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from oic.diagnostics import OicError, fail
from oic.dtypes import Array
from oic.model import Model

LOGITS = ("logits", "logits_f64", "logits_uncached")
"""Names of a case's logits, the first that is there."""


@dataclass(frozen=True)
class Case:
    """A prompt, and what the original makes of it.

    source   ids that the encoder reads; None for a decoder
    fed      ids that the decoder reads: its prompt, then the new ids but for the last
    chosen   the new ids, each the likeliest; chosen[i] follows fed[len(fed) - len(chosen) + i]
    logits   [len(fed), vocab]: row t follows fed[t]
    """

    source: tuple[int, ...] | None
    fed: tuple[int, ...]
    chosen: tuple[int, ...]
    logits: Array

    @property
    def given(self) -> int:
        """How many of `fed` are given, not chosen: at least one."""
        return len(self.fed) - len(self.chosen) + 1

    @property
    def prompt(self) -> tuple[int, ...]:
        """What a user gives."""
        return self.fed[: self.given] if self.source is None else self.source


def read_cases(path: str | Path) -> list[Case]:
    """The cases of a file.

    Of case i a decoder has `p{i}_prompt` [P] and `p{i}_greedy` [N], an encoder–decoder `p{i}_input_ids` [S] and
    `p{i}_output_ids` [N + 1], which begins with the start token; both have `p{i}_logits` (or `_logits_f64`,
    `_logits_uncached`), whose row t follows token t of the decoder.
    Raises OicError: `verify-reference` for a file that is none, or what is wrong inside it.
    """
    model = Model.open(path)
    cases: list[Case] = []
    while model.has(f"p{len(cases)}_prompt") or model.has(f"p{len(cases)}_input_ids"):
        cases.append(_case(model, f"p{len(cases)}_"))
    if not cases:
        raise fail("verify-reference", f"{model.name}: there is no 'p0_prompt' and no 'p0_input_ids' in it",
                   hint="'oic verify SOURCE --against transformers --save FILE.npz' writes such a file")  # fmt: skip
    return cases


def _case(model: Model, prefix: str) -> Case:
    logits_name = next((prefix + name for name in LOGITS if model.has(prefix + name)), None)
    if logits_name is None:
        raise _wrong(model, f"has no '{prefix}{LOGITS[0]}'")
    source: tuple[int, ...] | None
    if model.has(prefix + "prompt"):
        source, prompt, chosen = None, _ids(model, prefix + "prompt"), _ids(model, prefix + "greedy")
    else:
        source, output = _ids(model, prefix + "input_ids"), _ids(model, prefix + "output_ids")
        prompt, chosen = output[:1], output[1:]
    fed = prompt + chosen[:-1]
    logits = np.asarray(model.tensor(logits_name))
    if logits.ndim != 2 or logits.dtype.kind != "f" or len(logits) < len(fed):
        wanted = f"floats [{len(fed)} or more, vocab]: a row for every token that is fed"
        raise _wrong(model, f"'{logits_name}' is {logits.dtype}{list(logits.shape)}, and should be {wanted}")
    return Case(source, fed, chosen, logits[: len(fed)])


def _ids(model: Model, name: str) -> tuple[int, ...]:
    if not model.has(name):
        raise _wrong(model, f"has no '{name}'")
    found = np.asarray(model.tensor(name))
    if found.ndim != 1 or found.dtype.kind not in "iu" or not len(found) or int(found.min()) < 0:
        raise _wrong(model, f"'{name}' should be a list of token ids, at least one")
    return tuple(int(i) for i in found)


def _wrong(model: Model, what: str) -> OicError:
    return fail("verify-reference", f"{model.name}: {what}")


def write_cases(path: str | Path, cases: Sequence[Case]) -> None:
    """Write cases into a file that `read_cases` reads; `OicError` `model-write` where that fails."""
    arrays: dict[str, Array] = {}
    for i, case in enumerate(cases):
        if case.source is None:
            named = {"prompt": case.prompt, "greedy": case.chosen}
        else:
            named = {"input_ids": case.source, "output_ids": case.fed[:1] + case.chosen}
        arrays |= {f"p{i}_{name}": np.array(ids, np.int32) for name, ids in named.items()}
        arrays[f"p{i}_logits"] = case.logits
    try:
        with open(path, "wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]  # its one other parameter is a bool
    except OSError as error:
        raise fail("model-write", f"cannot write '{path}': {str(error.strerror).lower()}") from None
