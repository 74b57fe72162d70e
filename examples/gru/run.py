"""Say how words sound by g2p-en, an encoder and a decoder of gated recurrent units, from its checkpoint to C.

    python examples/gru/run.py                 import, build, generate; equal to the reference
    python examples/gru/run.py FOLDER WORD …   the phonemes of words

The default FOLDER is g2p-en in OIC_MODELS (default ../shared/models).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

import oic

HERE = Path(__file__).parent
OUT = HERE / "out"
MOST = 20  # phonemes of a word, as upstream's code has it


def default() -> Path:
    """Where g2p-en is, whether or not it exists."""
    return Path(os.environ.get("OIC_MODELS") or HERE.parents[2] / "shared" / "models") / "g2p-en"


def phonemes(generator: oic.Generator, word: str) -> str:
    """The phonemes of a word, with spaces between them."""
    return "".join(token.text for token in generator.stream(generator.encode(word), MOST))


def check(generator: oic.Generator, folder: Path) -> bool:
    """Compare every word of the reference."""
    cases = json.loads((folder / "reference" / "phonemes.json").read_text())
    wrong = [case["word"] for case in cases if phonemes(generator, case["word"]) != case["phonemes"]]
    print(f"{len(cases) - len(wrong)} of {len(cases)} words equal" + "".join(f"; {word} differs" for word in wrong))
    return not wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=default())
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    if not options.folder.exists():
        print(f"there is no {options.folder}: name a folder, or set OIC_MODELS to the folder of models")
        return 1
    oic.import_checkpoint(options.folder, OUT, config=HERE / "config.json")
    with oic.Generator(OUT) as generator:
        for word in options.words:
            print(word, phonemes(generator, word))
        return 0 if options.words or check(generator, options.folder) else 1


if __name__ == "__main__":
    sys.exit(main())
