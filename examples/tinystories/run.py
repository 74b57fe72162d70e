"""Write a story with stories260k, a Llama of 260 thousand parameters, compiled to C.

    python examples/tinystories/run.py                        from the beginning
    python examples/tinystories/run.py "Once upon a time"     go on from a prompt
    python examples/tinystories/run.py --check                equal to the reference generations

The model comes from OIC_MODELS (default ../shared/models): stories260k/weights.safetensors and
stories260k/tok512.bin.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

import oic
from oic.generation.tokenizer import pieces

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BEGIN = 1  # the id that every text begins with


def model_folder() -> Path:
    """Where stories260k is, whether or not it exists."""
    return Path(os.environ.get("OIC_MODELS") or ROOT.parent / "shared" / "models") / "stories260k"


def generate(executor: oic.Executor, prompt: list[int], count: int) -> tuple[list[int], np.ndarray]:
    """Greedy tokens after a prompt, and the logits of every position that was fed.

    Row p of the logits ([positions, vocab], f32) follows the token at position p.
    """
    executor.reset()
    result = executor.step(tokens=np.array(prompt, np.int32))
    rows, found = [result["logits"]], [int(result["next"][-1])]
    while len(found) < count:
        result = executor.step(tokens=np.array(found[-1:], np.int32))
        rows.append(result["logits"])
        found.append(int(result["next"][0]))
    return found, np.concatenate(rows)


def check(executor: oic.Executor, folder: Path) -> bool:
    """Compare every reference generation: ids equal, logits within 1e-4."""
    good = True
    for case in json.loads((folder / "reference" / "generations.json").read_text()):
        expected = np.load(folder / "reference" / case["logits"])
        prompt, ids = case["prompt_ids"], case["output_ids"][len(case["prompt_ids"]) - 1 :]
        found, logits = generate(executor, prompt, len(ids))
        error = float(np.abs(logits - expected[: len(logits)]).max())
        good &= found == ids and error <= 1e-4
        print(f"{case['prompt']!r}: ids {'equal' if found == ids else 'DIFFER'}, "
              f"{len(ids)} tokens, logits within {error:.1e}")  # fmt: skip
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("prompt", nargs="?", default="")
    parser.add_argument("-n", type=int, default=200, help="tokens to write")
    parser.add_argument("--check", action="store_true", help="compare with the reference")
    options = parser.parse_args()
    folder = model_folder()
    if not (folder / "weights.safetensors").is_file():
        print(f"stories260k is not at {folder}: set OIC_MODELS to the folder of models")
        return 1
    graph = oic.parse_file(HERE / "graph.oi")
    model = oic.Model.open(folder / "weights.safetensors")
    with oic.Synthesizer(graph, model).build(HERE / "out").make_executor() as executor:
        if options.check:
            return 0 if check(executor, folder) else 1
        tokenizer = pieces(folder / "tok512.bin", BEGIN)
        prompt = tokenizer.encode(options.prompt)
        start = time.perf_counter()
        found, _ = generate(executor, prompt, options.n)
        seconds = time.perf_counter() - start
        print((options.prompt + tokenizer.decode(found)).lstrip())
        print(f"{len(found) / seconds:,.0f} tokens per second", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
