"""Write outputs for sources with a T5, mT5 or ByT5, from its checkpoint to C.

    python examples/t5/run.py                   import, build, generate; equal to the reference
    python examples/t5/run.py FOLDER TEXT …     what the model writes for texts

The default FOLDER is byt5-tiny-random in OIC_MODELS (default ../shared/models), whose weights are random.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import numpy as np

import oic

HERE = Path(__file__).parent
OUT = HERE / "out"
WITHIN = 1e-4  # of the reference's logits, absolute
MOST = 64  # tokens of an output


def default() -> Path:
    """Where byt5-tiny-random is, whether or not it exists."""
    return Path(os.environ.get("OIC_MODELS") or HERE.parents[2] / "shared" / "models") / "byt5-tiny-random"


def check(generator: oic.Generator, folder: Path) -> bool:
    """Compare every source of the folder's ref.npz: ids equal, logits within 1e-4."""
    reference, good = np.load(folder / "ref.npz"), True
    for i in range(int(reference["n_prompts"])):
        source, output = reference[f"p{i}_input_ids"].tolist(), reference[f"p{i}_output_ids"].tolist()
        found = [token.id for token in generator.stream(source, len(output) - 1)]
        logits = generator.logits(output[:-1], source=source)
        error = float(np.abs(logits - reference[f"p{i}_logits_f64"]).max())
        good &= found == output[1:] and error <= WITHIN
        print(f"source {i}: {len(found)} ids {'equal' if found == output[1:] else 'DIFFER'}, logits within {error:.1e}")
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=default())
    parser.add_argument("texts", nargs="*")
    options = parser.parse_args()
    if not options.folder.exists():
        print(f"there is no {options.folder}: name a folder, or set OIC_MODELS to the folder of models")
        return 1
    try:
        oic.import_checkpoint(options.folder, OUT)
        with oic.Generator(OUT) as generator:
            for text in options.texts:
                print("".join(token.text for token in generator.stream(generator.encode(text), MOST)))
            return 0 if options.texts or check(generator, options.folder) else 1
    except (oic.OicError, oic.StepError) as error:  # another folder, a text that it has no tokens for
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
