"""The tables of `docs/errors.md` are those of the programs and of the C header.

`pytest --update-golden tests/docs` writes them.
"""

from __future__ import annotations

import re

import pytest

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
            continue  # tests/frontend/test_errors.py says so
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
