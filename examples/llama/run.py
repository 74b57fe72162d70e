"""Go on with a text, or with token ids, by a Llama that is imported and compiled to C.

    python examples/llama/run.py --ids 12 7 205                   llama-tiny, in OIC_MODELS
    python examples/llama/run.py --check                          llama-tiny equal to its reference
    python examples/llama/run.py FOLDER --text "Once upon" -n 40  any folder that `oic import` reads

OIC_MODELS is ../shared/models by default.  --text needs the folder's tokenizer.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import numpy as np

import oic

HERE = Path(__file__).parent
WITHIN = 1e-4  # of the reference's logits, absolute


def default_folder() -> Path:
    """Where llama-tiny is, whether or not it exists."""
    models = os.environ.get("OIC_MODELS") or HERE.parents[1].parent / "shared" / "models"
    return Path(models) / "llama-tiny"


def check(imported: Path, reference: Path) -> bool:
    """Every prompt of the reference: ids equal, logits within 1e-4."""
    expected, good = np.load(reference), True
    graph, model = oic.parse_file(imported / "graph.oi"), oic.Model.open(imported / "model.json")
    with oic.Synthesizer(graph, model).build(HERE / "out" / "c").make_executor() as executor:
        for i in range(int(expected["n_prompts"])):
            prompt, greedy = expected[f"p{i}_prompt"], expected[f"p{i}_greedy"]
            executor.reset()
            logits = executor.step(tokens=np.concatenate([prompt, greedy]).astype(np.int32))["logits"]
            equal = bool((logits[len(prompt) - 1 : -1].argmax(-1) == greedy).all())
            error = float(np.abs(logits - expected[f"p{i}_logits_f64"]).max())
            good &= equal and error <= WITHIN
            print(f"prompt {i}: {len(greedy)} ids {'equal' if equal else 'DIFFER'}, logits within {error:.1e}")
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=default_folder())
    prompt = parser.add_mutually_exclusive_group()
    prompt.add_argument("--text", help="go on with this text")
    prompt.add_argument("--ids", type=int, nargs="+", default=[1], help="go on with these token ids")
    parser.add_argument("-n", type=int, default=32, help="tokens to generate")
    parser.add_argument("--check", action="store_true", help="compare with the folder's ref.npz")
    options = parser.parse_args()
    try:
        made = oic.import_checkpoint(options.folder, HERE / "out" / "imported")
        print(f"{made.family}: {'; '.join(made.features)}", file=sys.stderr)
        if options.check:
            return 0 if check(made.folder, options.folder / "ref.npz") else 1
        for token in oic.generate(made.folder, options.text or options.ids, count=options.n):
            print(token.text if options.text else token.id, end="" if options.text else " ", flush=True)
        print()
    except oic.Refusal as error:  # no such folder, a family that is not known, an id that is no token
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
