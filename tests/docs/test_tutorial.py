"""Every command in the user guide is run, and prints what the guide shows (see `pages`).

`pytest --update-golden` rewrites outputs that have changed; the diff is reviewed like text.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from oic.cli.main import main
from pages import PAGES, ROOT, agrees, blocks, run, run_page, with_output

RUNNABLE = [
    p for p in PAGES if any(b.language == "console" for b in blocks(p.read_text(encoding="utf-8")))
]


@pytest.mark.parametrize("page", RUNNABLE, ids=lambda p: p.name)
def test_commands_print_what_is_shown(page: Path, tmp_path: Path, update_golden: bool) -> None:
    text = page.read_text(encoding="utf-8")
    wrong, at = [], 0
    for command, printed in run_page(text, tmp_path):
        assert "Traceback" not in printed, f"$ {command.line}\n{printed}"
        if not agrees(command.output, printed):
            wrong.append(f"$ {command.line}\n{printed}\n--- the page shows\n{command.output}")
        text, at = with_output(text, at, command, printed)
    if wrong and update_golden:
        page.write_text(text, encoding="utf-8")
    assert update_golden or not wrong, "\n\n".join(wrong)


def test_the_tutorial_covers_the_commands() -> None:
    """It writes, checks, runs, looks at, builds and diffs a graph, from both sides of the API."""
    text = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    for command in ("check", "run", "ir", "build", "diff", "ops"):
        assert re.search(rf"^\$ oic {command} ", text, re.MULTILINE), command
    assert "error[" in text and "ex.save()" in text and "ex.load(" in text


def test_every_command_has_a_section() -> None:
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert re.findall(r"^## oic (\w+)$", text, re.MULTILINE) == list(dict.fromkeys(
        re.findall(r"^\$ oic (\w+) --help$", text, re.MULTILINE)
    ))  # fmt: skip
    for name in main.commands:
        assert f"\n## oic {name}\n" in text, f"docs/cli.md has nothing about 'oic {name}'"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
        if not re.match(r"\w+:", target):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a", "a", True), ("a", "b", False), ("", "", True), ("", "a", False), ("a…c", "abbbc", True),
        ("a…c", "ab\nc", False), ("a\n…\nz", "a\nb\nc\nz", True), ("a\n…\nz", "a\nz", True),
        ("…", "", True), ("…", "a\nb", True), ("a.c", "abc", False), ("a\n…", "b\na", False),
    ],
)  # fmt: skip
def test_wildcards(shown: str, printed: str, same: bool) -> None:
    assert agrees(shown, printed) == same


@pytest.mark.parametrize("page", [*PAGES, *sorted((ROOT / "examples").rglob("README.md"))], ids=lambda p: str(p.relative_to(ROOT)))
def test_named_files_exist(page: Path) -> None:
    """Paths in the text are those of the repository, of the page's own folder, or of the package and the runtime (`inside.md` alone)."""
    places = [ROOT, page.parent, *([ROOT / "compiler" / "oic", ROOT / "runtime_c"] if page.name == "inside.md" else [])]
    text = re.sub(r"(?ms)^```.*?^```$", "", page.read_text(encoding="utf-8"))
    for name in re.findall(r"`((?:\w+/)+[\w.-]*)`", text):
        outside = ("oic/", "reference/", "stories260k/")  # in generated code; a model of its own
        if name != "oic/" and (page.name == "inside.md" or not name.startswith(outside)):
            assert any((place / name).exists() for place in places), f"{page.name} names {name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_named_commands_exist(page: Path) -> None:
    """Every `oic COMMAND` in the text is one, with options that it has."""
    for line in re.findall(r"(?:^|`|\$ )(oic [a-z]+\b[^`\n#|]*)", page.read_text(encoding="utf-8"), re.MULTILINE):
        _, name, *words = line.split()
        assert name in main.commands, line
        known = {option for parameter in main.commands[name].params for option in parameter.opts}
        for word in words:
            if re.fullmatch(r"--[a-z][a-z-]*", word):
                assert word in known | {"--help"}, line


def test_the_readme_is_a_session(tmp_path: Path) -> None:
    """Its files and commands, in order, do what they say."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for block in blocks(text):
        if block.title is not None:
            (tmp_path / block.title).write_text(block.text, encoding="utf-8")
    lines = re.findall(r"^((?:oic|python) .*?)(?: +#.*)?$", text, re.MULTILINE)
    assert len(lines) == 8, lines
    done = run("set -e; " + "; ".join([*lines, "python steps.py", "echo all ran"]), tmp_path)
    assert done.endswith("all ran"), done
    assert "decode: ok\n" in done and "fits" in done and "equal" in done
    assert "the largest --set T that fits" in done and "warning" not in done
