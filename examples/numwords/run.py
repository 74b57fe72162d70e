"""Build the number reader, read a few numbers aloud, and prove the C equal to the reference.

    python examples/numwords/run.py                    a few numbers, speed, memory, verdict
    python examples/numwords/run.py '$5.20' 'in 1984'  these numbers
    python examples/numwords/run.py --evaluate 2000    accuracy on held-out texts
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

import oic
from oic.compare.harness import Run, compare
from rules import BOS, END, EQUALS, held_out, spell

HERE = Path(__file__).parent
TEXTS = ["1,204", "-17", "3.14", "in 1984", "21st", "$5.20", "7:05 pm", "999999"]
CONTEXT = 128  # positions the model was trained for


def read_aloud(executor: oic.Executor, text: str) -> tuple[str, int]:
    """The words for a written number, and how many tokens were decoded one at a time.

    The text is fed at once (prefill); then each step takes the token the last one gave.
    """
    executor.reset()
    tokens = [BOS, *map(ord, text), EQUALS]
    result = executor.step(tokens=np.array(tokens, np.int32))
    words: list[str] = []
    steps = 0
    token = int(result["next"][-1])
    while token != END and len(tokens) + steps < CONTEXT:
        words.append(chr(token))
        token = int(executor.step(tokens=np.array([token], np.int32))["next"][0])
        steps += 1
    return "".join(words), steps


def decode_speed(executor: oic.Executor) -> float:
    """Tokens per second of one-token steps, the median of several runs of 64."""
    rates = []
    for _ in range(7):
        executor.reset()
        token = np.array([BOS], np.int32)
        start = time.perf_counter()
        for _ in range(64):
            executor.step(tokens=token)
        rates.append(64 / (time.perf_counter() - start))
    return float(np.median(rates))


def evaluate(executor: oic.Executor, count: int) -> float:
    """The share of held-out texts that are read exactly right."""
    right = 0
    cases = held_out(count)
    for text in cases:
        right += read_aloud(executor, text)[0] == spell(text)
    return right / len(cases)


def verdict(graph: object, model: oic.Model, executor: oic.Executor) -> str:
    """What `oic diff` finds over a prefill and the decode steps that follow."""
    reference = oic.Simulator(graph, model)
    executor.reset()
    prompt = [BOS, *map(ord, "$1,204.50"), EQUALS]
    runs = [Run("entry", {"tokens": np.array(prompt, np.int32)})]
    runs += [Run("entry", {"tokens": np.array([ord(c)], np.int32)}) for c in "one thousand two"]
    return str(compare(reference.program.module, executor, runs))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("texts", nargs="*", default=TEXTS)
    parser.add_argument("--evaluate", type=int, metavar="N", help="read N held-out texts")
    options = parser.parse_args()
    graph = oic.parse_file(HERE / "graph.oi")
    model = oic.Model.open(HERE / "weights.safetensors")
    start = time.perf_counter()
    built = oic.Synthesizer(graph, model).build(HERE / "out")
    print(f"compiled to {HERE / 'out'} in {time.perf_counter() - start:.1f} s")
    with built.make_executor() as executor:
        if options.evaluate:
            print(f"{evaluate(executor, options.evaluate):.2%} of {options.evaluate} held-out texts")
            return 0
        for text in options.texts:
            print(f"  {text:>10}  {read_aloud(executor, text)[0]}")
        plan = built.program.planned.plan
        assert plan is not None
        print(f"{decode_speed(executor):,.0f} tokens per second, one token a step")
        print(
            f"state {plan.state_bytes:,} bytes, arena {max(plan.arena_bytes.values()):,} bytes,"
            f" weights {plan.weights_bytes:,} bytes"
        )
        found = verdict(graph, model, executor)
        print(f"compiled C and NumPy reference: {found}")
        return 0 if found.startswith("equal") else 1


if __name__ == "__main__":
    sys.exit(main())
