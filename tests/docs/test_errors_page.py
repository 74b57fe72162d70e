"""The tables and programs of `docs/errors.md` are those of the golden errors and of the C header.

`pytest --update-golden tests/docs` writes them.  A new slug needs a page there, which `oic explain`
prints: what the mistake is, and how it is cured, with a program.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import oic
from check.test_errors import GOLDEN, diagnostics
from oic.pages import Page, named, page, pages
from pages import ROOT

PAGE = ROOT / "docs" / "errors.md"


def statuses() -> list[str]:
    """Rows of the statuses, from the comments of `runtime_c/status.h`."""
    text = (ROOT / "runtime_c" / "status.h").read_text(encoding="utf-8")
    found = re.findall(r"^ +(OIC_ERR_\w+),? +/\* (.+?) \*/$", text, re.MULTILINE)
    assert len(found) == len(re.findall(r"^ +OIC_ERR_\w+", text, re.MULTILINE))
    return [
        "| status | meaning |",
        "|---|---|",
        *(f"| `{n}` | {meaning} |" for n, meaning in found),
    ]


def slugs() -> list[str]:
    """Rows of the slugs, from the golden diagnostics."""
    rows = ["| slug | message for its example |", "|---|---|"]
    for path in sorted((ROOT / "tests" / "golden" / "errors").glob("*.err")):
        text = path.read_text(encoding="utf-8")
        found = re.search(rf"^(\w+)\[{re.escape(path.stem)}\]: (.+)$", text, re.MULTILINE)
        if found is None:
            continue  # tests/check/test_errors.py says so
        note = " *(a warning)*" if found[1] == "warning" else ""
        message = found[2].replace("|", r"\|").replace("*", r"\*").replace("_", r"\_")
        rows.append(f"| `{path.stem}` | {message}{note} |")
    return rows


@pytest.mark.parametrize("name", ["statuses", "slugs"])
def test_tables(name: str, update_golden: bool) -> None:
    page = PAGE.read_text(encoding="utf-8")
    rows = {"statuses": statuses, "slugs": slugs}[name]()
    before, mark, rest = page.partition(f"<!-- {name} -->\n")
    table, end, after = rest.partition("<!-- end -->")
    assert mark and end
    wanted = "\n".join(rows) + "\n"
    if update_golden:
        PAGE.write_text(before + mark + wanted + end + after, encoding="utf-8")
        return
    assert table == wanted, "pytest --update-golden tests/docs writes the table anew"


# ---------------------------------------------------------------- the pages

# Functions that take a slug, whichever argument it is.
REPORTING = re.compile(r"Diagnostic|OpError|fail|bad|error|warn|wrong|_error|_unclosed|_?refus\w+|_missing|each_once")
KEBAB = re.compile(r"[a-z]+(-[a-z]+)+")
# Slugs that are handed on as a value before they are reported.
HANDED_ON = {
    "init-kind", "init-range", "literal-kind", "literal-range", "unknown-statement", "unknown-section",
    "unclosed-comment", "unclosed-string", "model-truncated", "model-field", "syntax", "duplicate-name", "ring", "brackets", "slice-place", "slice-ends",
}  # fmt: skip
NOT_REPORTED = {"ir"}  # a broken invariant of ours


def reported() -> set[str]:
    """The slugs in the compiler's source."""
    found = set(HANDED_ON)
    for file in (ROOT / "compiler" / "oic").rglob("*.py"):
        for part in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(part, ast.Call):
                name = part.func.attr if isinstance(part.func, ast.Attribute) else getattr(part.func, "id", "")
                if REPORTING.fullmatch(name):
                    found |= set(_slugs(part, name))
    return found - NOT_REPORTED


def _slugs(call: ast.Call, name: str) -> Iterator[str]:
    for at, given in enumerate(call.args):
        if isinstance(given, ast.Constant) and isinstance(given.value, str):
            single = at == 0 and name in ("Diagnostic", "OpError", "fail") and given.value.isalpha()
            if single or KEBAB.fullmatch(given.value):
                yield given.value


PAGES = pages()
PROGRAMS = [found for found in PAGES.values() if "cured" in found.programs]


def test_every_slug_and_status_has_a_page() -> None:
    slugs_in_source = reported()
    assert len(slugs_in_source) > 140
    missing = sorted(slugs_in_source - set(PAGES))
    assert not missing, "write a section of docs/errors.md for each"
    named_statuses = {row.split("`")[1] for row in statuses()[2:]}
    assert named_statuses <= set(PAGES)
    assert sorted(set(PAGES) - slugs_in_source - named_statuses) == [], "pages of no slug"
    golden = {path.stem.partition(".")[0] for path in GOLDEN.glob("*.err")}
    assert golden == {found.slug for found in PROGRAMS}, "a mistake in a graph has a program"


@pytest.mark.parametrize("found", PROGRAMS, ids=lambda found: found.slug)
def test_programs(found: Page, update_golden: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The wrong program is the golden one; the cured one is right, and not even warned of for this."""
    monkeypatch.chdir(GOLDEN)
    try:
        golden = (GOLDEN / f"{found.slug}.oi").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        golden = None  # no program can show it
    if update_golden and golden is not None and found.programs.get("wrong") != golden:
        text = PAGE.read_text(encoding="utf-8")
        before, heading, rest = text.partition(f"### {found.slug}\n")
        rest = re.sub(r"(?ms)^```oi wrong\n.*?^```$", lambda _: f"```oi wrong\n{golden}```", rest, count=1)
        PAGE.write_text(before + heading + rest, encoding="utf-8")
    elif golden is not None:
        assert found.programs.get("wrong") == golden, "pytest --update-golden tests/docs writes it anew"
    (tmp_path / f"{found.slug}.oi").write_text(found.programs["cured"], encoding="utf-8")
    for given in (f"{found.slug}.json", f"{found.slug}.cured.json"):
        if (GOLDEN / given).exists():
            settings = json.loads((GOLDEN / given).read_text(encoding="utf-8"))
            (tmp_path / f"{found.slug}.json").write_text(json.dumps(settings), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    left = [d for d in diagnostics(f"{found.slug}.oi") if d.severity == "error" or d.slug == found.slug]
    assert left == [], "\n\n".join(d.render() for d in left)


def test_what_names_a_page() -> None:
    assert named("table-rank") == named("error[table-rank]") == named("[table-rank]") == "table-rank"
    assert named("OIC_ERR_INDEX") == "OIC_ERR_INDEX" and named("a/graph.oi") is None
    assert page("syntax").plain(60).startswith("syntax\n\nThe text is not")
    assert max(map(len, page("op-setting").plain(60).splitlines()[:4])) <= 60
    with pytest.raises(oic.OicError, match="did you mean 'table-rank'"):
        page("tabel-rank")
