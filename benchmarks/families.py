"""Every importer beside the library that its checkpoints come from: the table of `docs/models.md`.

    python benchmarks/families.py [FAMILY ...] [--models FOLDER]

Makes the tiny random checkpoints of the tests through transformers, each feature alone and in the families'
combinations, and compares what is compiled with what transformers computes in f32 (`oic verify`, four random prompts
each); without FAMILY also the models of --models (default: OIC_MODELS) that have references in the form that
`oic verify` reads.  Needs `pip install 'oic[verify]'` and pytest.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import oic
from oic.verification.outcome import Report

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))


@dataclass
class Row:
    """A line of the table."""

    features: list[str]
    reports: list[Report]

    def text(self, family: str) -> str:
        outcomes = [o for report in self.reports for o in report.outcomes]
        tokens = sum(len(o.errors) for o in outcomes)
        worst = max(report.worst for report in self.reports)
        exact = sum(report.exact for report in self.reports)
        features = ", ".join(self.features)
        return f"| {family} | {features} | {tokens} | {worst:.1e} | {exact} of {len(outcomes)} |"


def cases() -> Iterator[tuple[str, str, Callable[[Path], object]]]:
    """Family, feature, and what writes the checkpoint into a folder: those of the tests."""
    from importers import test_transformers as decoders
    from importers import test_transformers_seq2seq as seq2seq

    for name, (family, settings) in decoders.CASES.items():
        yield *split(name), partial(decoders.made, family, settings)
    for name in seq2seq.CASES:
        yield *split(name), partial(seq2seq.made, name)


def split(name: str) -> tuple[str, str]:
    """`family-the-feature`, where families have no dash."""
    family, _, feature = name.partition("-")
    return family, feature.replace("-", " ") or "plain"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*")
    parser.add_argument("--models", type=Path, default=os.environ.get("OIC_MODELS"))
    arguments = parser.parse_args()
    rows: dict[str, Row] = defaultdict(lambda: Row([], []))
    for family, feature, write in cases():
        if arguments.families and family not in arguments.families:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            write(Path(scratch) / "in")
            report = oic.verify(Path(scratch) / "in", "transformers")
        rows[family].features.append(feature)
        rows[family].reports.append(report)
        print(f"{family} {feature}: {'ok' if report.passed else 'DIFFERS'}", file=sys.stderr, flush=True)
    for file in sorted(Path(arguments.models).glob("*/ref.npz")) if arguments.models and not arguments.families else ():
        rows[file.parent.name] = Row(["a checkpoint with references"], [oic.verify(file.parent, file)])
    print("| family | checkpoints | tokens compared | worst logit error | exact match |\n|---|---|---|---|---|")
    print("\n".join(row.text(family) for family, row in rows.items()))
    return 0 if all(report.passed for row in rows.values() for report in row.reports) else 1


if __name__ == "__main__":
    sys.exit(main())
