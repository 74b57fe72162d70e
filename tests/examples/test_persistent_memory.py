"""The examples of persistent memory print what their README shows."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from pages import ROOT, agrees, run_page, with_output

FOLDER = ROOT / "examples" / "persistent_memory"
GRAPHS = sorted(FOLDER.glob("*/graph.oi"))


def test_scripts_print_what_the_readme_shows(tmp_path: Path, update_golden: bool) -> None:
    copy = tmp_path / "persistent_memory"
    shutil.copytree(FOLDER, copy, ignore=shutil.ignore_patterns("__pycache__"))
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    ran, at = 0, 0
    for command, printed in run_page(text, copy):
        ran += 1
        assert "Traceback" not in printed, printed
        assert update_golden or agrees(command.output, printed), printed
        text, at = with_output(text, at, command, printed)
    assert ran == len(GRAPHS)
    if update_golden:
        (FOLDER / "README.md").write_text(text, encoding="utf-8")


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda g: g.parent.name)
def test_every_graph_has_its_script(graph: Path) -> None:
    assert graph.with_name("run.py").is_file()
    assert re.search(
        rf"^## {graph.parent.name}\b", (FOLDER / "README.md").read_text(), re.MULTILINE
    )
