"""Step two layers of GRU-256, compiled to C, beside the reference, and say how long a step takes.

    python examples/gru_256/run.py            weights as declared, and as 8 bits
    python examples/gru_256/run.py q4 bf16    weights as these
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

import numpy as np

import oic
from weights import UNITS, weights

GRAPH = Path(__file__).parent / "graph.oi"
# Of outputs, over all steps, by what the rules of weights have in them; in 8 and 4 bits frames are rounded, too.
BOUNDS = {"": 1e-6, "q8": 1e-2, "q4": 1e-2, "auto": 1e-2}
COMPARED, TIMED = 50, 5000  # steps


def check(precision: str) -> bool:
    """Print a line about weights of this precision; whether steps are within the bound of the reference."""
    graph, model = oic.parse_file(GRAPH), oic.Model(tensors=weights())
    given = np.random.default_rng(0).standard_normal((COMPARED, UNITS), np.float32)
    built = oic.Synthesizer(graph, model, weights=precision).build()
    reference = oic.Simulator(graph, model, weights=precision)
    with built.make_executor() as executor, reference.make_executor() as wanted:
        error = float(np.max([np.abs(executor.step(x=x)["y"] - wanted.step(x=x)["y"]) for x in given]))  # or NaN
        seconds = []
        for _ in range(TIMED):
            start = time.perf_counter()
            executor.step(x=given[0])
            seconds.append(time.perf_counter() - start)
    print(f"{precision}: {statistics.median(seconds) * 1e6:.1f} us a step, within {error:.1e} of the reference")
    return error <= max(bound for rule, bound in BOUNDS.items() if rule in precision)


def main() -> int:
    try:
        return 0 if all([check(precision) for precision in sys.argv[1:] or ["f32", "q8"]]) else 1
    except oic.OicError as error:  # what is no precision, nor a rule
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
