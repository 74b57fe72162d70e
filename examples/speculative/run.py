"""A small model drafts, a large one verifies a whole draft in one step, and what it rejects is taken back.

    python examples/speculative/run.py                    held-out numbers of examples/numwords
    python examples/speculative/run.py '$5.20' 'in 1984'  these numbers
    python examples/speculative/run.py --drafted 8        eight tokens a draft
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np

import oic

HERE = Path(__file__).parent
NUMWORDS = HERE.parent / "numwords"


@dataclass
class Counts:
    """What was drafted, what of it was accepted, and steps of the target, without those for prompts."""

    drafted: int = 0
    accepted: int = 0
    steps: int = 0


def fed(executor: oic.Executor, tokens: Sequence[int]) -> list[int]:
    """The likeliest token after each of some."""
    return [int(token) for token in executor.step(tokens=np.array(tokens, np.int32))["next"]]


def greedy(target: oic.Executor, prompt: Sequence[int], count: int, end: int | None = None) -> list[int]:
    """The target alone: at most `count` tokens after a prompt, one a step; the last may be `end`."""
    target.reset()
    found = fed(target, prompt)[-1:]
    while len(found) < count and found[-1] != end:
        found += fed(target, found[-1:])
    return found


def speculative(
    target: oic.Executor, draft: oic.Executor, prompt: Sequence[int], count: int, drafted: int,
    end: int | None = None, counts: Counts | None = None,
) -> list[int]:  # fmt: skip
    """The tokens that `greedy` gives, with fewer steps of the target where the draft foresees them.

    drafted   tokens of a draft; the cache of the target has room for a prompt, `count` and so many
    counts    is added to
    """
    known, told = oic.KVCache(target), oic.KVCache(draft)
    counts = Counts() if counts is None else counts
    known.reset()
    told.reset()
    found = fed(target, prompt)[-1:]
    text = [*prompt, *found]  # of which the target has seen all but the last token
    while len(found) < count and found[-1] != end:
        guessed = fed(draft, text[told.seq_len :])[-1:]
        while len(guessed) < drafted:
            guessed += fed(draft, guessed[-1:])
        right = fed(target, [text[-1], *guessed])
        accepted = next((i for i, token in enumerate(guessed) if token != right[i]), drafted)
        known.truncate(drafted - accepted)
        told.truncate(max(0, drafted - 1 - accepted))
        new = right[: accepted + 1][: count - len(found)]
        new = new[: new.index(end) + 1] if end in new else new
        found, text = found + new, text + new
        counts.drafted += drafted
        counts.accepted += accepted
        counts.steps += 1
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("texts", nargs="*", help="numbers to be read aloud")
    parser.add_argument("--drafted", type=int, default=4, metavar="K", help="tokens of a draft")
    parser.add_argument("--held-out", type=int, default=200, metavar="N", help="so many texts, where none are given")
    options = parser.parse_args()
    if options.drafted < 1:
        parser.error("a draft has at least one token")
    sys.path.insert(0, str(NUMWORDS))
    rules = import_module("rules")
    graph = oic.parse_file(NUMWORDS / "graph.oi")
    # Room for a draft beyond the longest text: positions are rotations, which need not be learned.
    sizes = {"T": 128 + options.drafted}
    large, small = (
        oic.Synthesizer(graph, oic.Model.open(path), sizes=sizes).build(HERE / "out" / path.stem)
        for path in (NUMWORDS / "weights.safetensors", HERE / "draft.safetensors")
    )
    counts, tokens, alone, together = Counts(), 0, 0.0, 0.0
    with large.make_executor() as target, small.make_executor() as draft:
        for text in options.texts or rules.held_out(options.held_out):
            prompt = rules.prompt(text)
            room = 128 - len(prompt)
            start = time.perf_counter()
            wanted = greedy(target, prompt, room, rules.END)
            between = time.perf_counter()
            found = speculative(target, draft, prompt, room, options.drafted, rules.END, counts)
            together += time.perf_counter() - between
            alone += between - start
            tokens += len(found)
            assert found == wanted, f"{text!r}: speculative decoding gives other tokens than the target alone"
            if options.texts:
                print(f"  {text:>10}  {''.join(map(chr, found[:-1]))}")
    print(f"equal to the target alone: {tokens} tokens")
    if counts.steps:
        print(f"accepted {counts.accepted / counts.drafted:.1%} of {counts.drafted} drafted tokens;"
              f" {counts.accepted / counts.steps + 1:.2f} tokens a step of the target")  # fmt: skip
    print(f"{tokens / alone:,.0f} tokens per second alone, {tokens / together:,.0f} with a draft")
    return 0


if __name__ == "__main__":
    sys.exit(main())
