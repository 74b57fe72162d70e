"""Trains the draft, a smaller sister of the model of examples/numwords: `python train.py --out draft.safetensors`.

Its tokens, rules, texts and recipe are those of examples/numwords/train.py.  Needs torch and safetensors.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

try:
    import torch
except ModuleNotFoundError as missing:
    raise SystemExit(f"there is no package '{missing.name}': pip install 'oic[train]'") from None

HERE = Path(__file__).parent
SIZES = {"n_layers": 2, "n_heads": 2, "n_kv_heads": 1, "head_dim": 24, "dim": 48, "hidden": 96}


def main() -> None:
    """Trains and saves; then reports on the held-out texts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=HERE / "draft.safetensors")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    sys.path.remove(str(HERE))  # where a module `train` is this one
    sys.path.insert(0, str(HERE.parent / "numwords"))
    numwords = import_module("train")
    torch.manual_seed(arguments.seed)
    model = numwords.Model(numwords.Config(**SIZES))
    numwords.train(model, numwords.Recipe(arguments.steps), arguments.seed, arguments.out)
    print(sum(p.numel() for p in model.parameters()), "parameters")
    print(numwords.report(model, numwords.rules.held_out(1000)))


if __name__ == "__main__":
    main()
