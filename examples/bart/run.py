"""Say how words sound by BART, from its checkpoint to C.

    python examples/bart/run.py                       import, build, generate; equal to the reference, US and GB
    python examples/bart/run.py FOLDER us WORD …      the phonemes of words; `gb` for the other variant

The default FOLDER is misaki-bart-g2p in OIC_MODELS (default ../shared/models).
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
MOST = 60  # phonemes of a word


def default() -> Path:
    """Where misaki-bart-g2p is, whether or not it exists."""
    return Path(os.environ.get("OIC_MODELS") or HERE.parents[2] / "shared" / "models") / "misaki-bart-g2p"


def imported(folder: Path, variant: str) -> Path:
    """Import one variant; where it is."""
    weights, config = folder / f"{variant}_bart.safetensors", folder / f"{variant}_bart_config.json"
    return oic.import_checkpoint(weights, OUT / variant, config=config).folder


def phonemes(generator: oic.Generator, word: str) -> str:
    """The phonemes of a word."""
    return "".join(token.text for token in generator.stream(generator.encode(word), MOST))


def check(generator: oic.Generator, folder: Path, variant: str) -> bool:
    """Compare every word of the reference."""
    cases = json.loads((folder / "reference" / f"{variant}.words.json").read_text(encoding="utf-8"))
    wrong = [case["word"] for case in cases if phonemes(generator, case["word"]) != case["phonemes"]]
    differ = "".join(f"; {word} differs" for word in wrong)
    print(f"{variant}: {len(cases) - len(wrong)} of {len(cases)} words equal{differ}")
    return not wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=default())
    parser.add_argument("variant", nargs="?", choices=("us", "gb"))
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    if not options.folder.exists():
        print(f"there is no {options.folder}: name a folder, or set OIC_MODELS to the folder of models")
        return 1
    good = True
    try:
        for variant in [options.variant] if options.variant else ["us", "gb"]:
            with oic.Generator(imported(options.folder, variant)) as generator:
                for word in options.words:
                    print(word, phonemes(generator, word))
                good &= bool(options.words) or check(generator, options.folder, variant)
    except oic.OicError as error:  # another folder, a word that is too long
        print(error, file=sys.stderr)
        return 1
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
