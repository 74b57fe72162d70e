"""`oic import` and `oic generate`: from a checkpoint to a graph, and to text."""

from __future__ import annotations

import sys
import time
from typing import Any

from oic.cli.text import json_text, say
from oic.diagnostics import visible
from oic.generation import Generator, Sampling, Token
from oic.generation.generator import Stop
from oic.importers import Imported


def imported(made: Imported, as_json: bool) -> str:
    """What an import wrote, and what to do next."""
    if as_json:
        return json_text({
            "family": made.family, "features": made.features, "graph": str(made.graph), "model": str(made.model),
            "weights": made.weights, "bytes": made.nbytes, "context": made.context,
        })  # fmt: skip
    return "\n".join([
        f"{made.family}: {'; '.join(made.features)}",
        f"{made.weights} weights, {made.nbytes:,} bytes, referred to where they are; context {made.context}",
        f"wrote {made.graph} and {made.model}",
        f"next: oic generate {made.folder} --ids 1,2,3",
        f"      oic build {made.graph} --model {made.model}",
    ])  # fmt: skip


def generated(
    generator: Generator, ids: list[int], count: int, sampling: Sampling, stops: dict[str, Any], as_json: bool
) -> None:
    """Print tokens as they come: their text, or ids where there is no tokenizer; or all as JSON."""
    readable = generator.reads()
    stop, found = Stop(), list[Token]()
    start = time.perf_counter()
    for token in generator.stream(ids, count, sampling, stop=stop, **stops):
        found.append(token)
        if not as_json:
            sys.stdout.write(visible(token.text) if readable else f"{token.id} ")
            sys.stdout.flush()
    seconds = time.perf_counter() - start
    if as_json:
        say(json_text({
            "prompt": ids, "ids": [t.id for t in found], "text": "".join(t.text for t in found) if readable else None,
            "logprobs": [t.logprob for t in found], "seconds": [t.seconds for t in found], "stop": stop.reason,
        }))  # fmt: skip
        return
    say("")
    first, rest = (found[0].seconds if found else 0.0), sum(t.seconds for t in found[1:])
    speed = f", then {(len(found) - 1) / rest:,.0f} tokens/s" if rest > 0 else ""
    said = {"count": "", "stop": "; it ended", "context": "; the context is full"}[stop.reason]
    tokens = f"{len(ids)} + {len(found)} tokens in {seconds:.2f} s"
    sys.stderr.write(f"{tokens}: the first after {first:.3f} s{speed}{said}\n")
