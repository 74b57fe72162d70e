"""Every slug has the smallest program that provokes it, and its rendered diagnostics.

`tests/golden/errors/SLUG.oi` is the program, `SLUG.err` what `oic check` says of it, and `SLUG.json`,
where there is one, what is given with it: a model, sizes, capacities, outputs wanted.  Further programs
for a slug are `SLUG.WHAT.oi`.
`pytest --update-golden` rewrites the second; the diff is reviewed like code.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oic
from oic import dtypes
from oic.check.source import parse, parse_file
from oic.diagnostics import Diagnostic, OicError
from oic.driver import Settings, compile_graph
from oic.kernels.targets import TARGETS

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "errors"
SOURCES = Path(oic.__file__).parent

# Slugs are looked for in calls of these functions, and in tables of strings that look like slugs.
REPORTING = {"Diagnostic", "OpError", "refused", "fail", "error", "warn", "_error", "_unclosed"}
TABLES = {"recover.py", "text.py", "attributes.py", "tree.py"}
KEBAB = re.compile(r"[a-z]+(-[a-z]+)+")

# Not of a text that a person reads: broken invariants of the compiler, JSON, megabytes (cli/test_deep.py), weights that a
# build rounds (memory/test_quantized.py).
ELSEWHERE = {"ir", "ir-name", "ir-syntax", "ir-type", "graph-json", "source-size", "weights-range"}


def slugs() -> Iterator[str]:
    """Every slug that parsing, checking, binding and lowering can report."""
    for folder in ("syntax", "check", "lower", "ir", "operators"):
        for file in sorted((SOURCES / folder).glob("*.py")):
            tree = ast.parse(file.read_text(encoding="utf-8"))
            for part in ast.walk(tree):
                if isinstance(part, ast.Call):
                    yield from _reported(part)
                elif file.name in TABLES and isinstance(part, ast.Constant):
                    if isinstance(part.value, str) and KEBAB.fullmatch(part.value):
                        yield part.value


def _reported(call: ast.Call) -> Iterator[str]:
    """The slug among the arguments of a call that reports something."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    plain = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    if name in REPORTING and plain and call.args[0] is not None:
        first = call.args[0]
        if isinstance(first, ast.Constant):
            yield str(first.value)
    elif name.startswith("_refuse"):
        yield from (text for text in plain if KEBAB.fullmatch(text))


SLUGS = sorted(set(slugs()) - ELSEWHERE)
EXPECTED = sorted(GOLDEN.glob("*.err"))


def diagnostics(program: str) -> list[Diagnostic]:
    """What `oic check` says of a program in the current folder."""
    given = Path(program).with_suffix(".json")
    settings = json.loads(given.read_text(encoding="utf-8")) if given.exists() else {}
    if "target" in settings:
        settings["target"] = TARGETS[settings["target"]]
    model = _model(**settings.pop("model")) if "model" in settings else None
    try:
        return compile_graph(parse_file(program), model, Settings(**settings)).warnings
    except OicError as error:
        return error.diagnostics


def _model(tensors: dict[str, str] | None = None, **rest: Any) -> oic.Model:
    """A model whose tensors are given as types, `f32[2, 3]`."""
    made: dict[str, object] = {}
    for name, text in (tensors or {}).items():
        dtype, _, shape = text.rstrip("]").partition("[")
        made[name] = np.zeros(json.loads(f"[{shape}]"), dtypes.ALL[dtype].np)
    return oic.Model(made, **rest)


@pytest.mark.parametrize("slug", SLUGS)
def test_every_slug_has_a_program(slug: str) -> None:
    assert (GOLDEN / f"{slug}.err").exists(), f"write the smallest program that provokes [{slug}]"


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda p: p.stem)
def test_golden_errors(
    expected: Path, update_golden: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The diagnostics are exactly those of the `.err` file, and one has the slug before its first dot."""
    monkeypatch.chdir(GOLDEN)
    found = diagnostics(f"{expected.stem}.oi")
    text = "\n\n".join(d.render() for d in found) + "\n"
    if update_golden:
        expected.write_text(text, encoding="utf-8")
    assert expected.stem.partition(".")[0] in {d.slug for d in found}, text
    assert text == expected.read_text(encoding="utf-8")


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda p: p.stem)
def test_form_of_messages(expected: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages start in lower case, or with a quoted name or a number, and have no full stop."""
    monkeypatch.chdir(GOLDEN)
    for found in diagnostics(f"{expected.stem}.oi"):
        assert KEBAB.fullmatch(found.slug) or found.slug.isalpha()
        assert not found.message[0].isupper()
        assert not found.message.endswith(".")
        assert "\n" not in found.message
        assert not (found.hint or "").endswith(".")


def test_what_copies_state_out_is_right() -> None:
    """The statements of the hints for persistent operands compile."""
    text = (GOLDEN / "persistent-operand.places.oi").read_text(encoding="utf-8")
    head, _, _ = text.partition("block entry")
    with pytest.raises(OicError) as refused:
        compile_graph(parse(text), None, Settings())
    hints = [d.hint or "" for d in refused.value.diagnostics if d.slug == "persistent-operand"]
    assert len(hints) == 7
    for hint in hints:
        statements = re.fullmatch("copy it out first: '(.*)'", hint)
        assert statements is not None
        compile_graph(parse(f"{head} block entry {{ {statements[1]} return; }}"), None, Settings())
