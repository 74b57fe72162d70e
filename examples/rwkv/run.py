"""Go on with a text by rwkv5-tiny, a recurrent language model over bytes, from its checkpoint to C.

    python examples/rwkv/run.py                       import, build, generate; equal to the reference
    python examples/rwkv/run.py FOLDER --text "The"   go on with a text by any RWKV-5

The default FOLDER is rwkv5-tiny in OIC_MODELS (default ../shared/models).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

import numpy as np

import oic

HERE = Path(__file__).parent
OUT = HERE / "out"


def default() -> Path:
    """Where rwkv5-tiny is, whether or not it exists."""
    return Path(os.environ.get("OIC_MODELS") or HERE.parents[2] / "shared" / "models") / "rwkv5-tiny"


def check(folder: Path) -> bool:
    """Compare every reference generation: ids equal, logits and state within 1e-4."""
    built = oic.Synthesizer(oic.parse_file(OUT / "graph.oi"), oic.Model.open(OUT / "model.json")).build(OUT / "c")
    good = True
    with oic.Generator(OUT) as generator, built.make_executor() as executor:
        for i, case in enumerate(json.loads((folder / "reference" / "generations.json").read_text())):
            prompt, wanted = generator.encode(case["prompt"]), case["output_bytes"]
            found = [token.id for token in generator.stream(prompt, len(wanted))]
            executor.reset()
            rows = [executor.step(tokens=np.array(prompt, np.int32))["logits"]]
            state = [executor.fetch(name) for name in ("time_before", "channel_before", "S")]
            kept = np.concatenate([part.reshape(len(part), -1) for part in state], axis=1)
            rows += [executor.step(tokens=np.array([token], np.int32))["logits"] for token in found]
            logits = np.load(folder / "reference" / f"logits_{i}.npy")
            error = float(np.abs(np.concatenate(rows) - logits).max())
            error_of_state = float(np.abs(kept - np.load(folder / "reference" / f"state_{i}.npy")).max())
            good &= found == wanted and max(error, error_of_state) <= 1e-4
            print(f"{case['prompt'][:24]!r}: {len(found)} bytes {'equal' if found == wanted else 'DIFFER'}, "
                  f"logits within {error:.1e}, state {error_of_state:.1e}")  # fmt: skip
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=default())
    parser.add_argument("--text", help="go on with this text, and compare nothing")
    parser.add_argument("-n", type=int, default=120, help="tokens to write")
    options = parser.parse_args()
    if not options.folder.exists():
        print(f"there is no {options.folder}: name a folder, or set OIC_MODELS to the folder of models")
        return 1
    oic.import_checkpoint(options.folder, OUT)
    if options.text is None:
        return 0 if check(options.folder) else 1
    for token in oic.generate(OUT, options.text, count=options.n):
        print(token.text, end="", flush=True)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
