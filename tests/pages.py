"""The pages of the user guide as programs: their files are written and their commands run.

    ```oi title=average.oi      a file (of any language) that later commands find
    ```console                  lines with `$ ` are commands; what follows one is its output

An `…` inside a line of output matches any text, one alone on a line for any number of lines.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w+)(?: title=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block; `start` and `end` are the offsets of its text in the page."""

    language: str
    title: str | None
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Command:
    """One line after `$ `, and the output shown for it."""

    line: str
    output: str


def blocks(page: str) -> Iterator[Block]:
    """The fenced blocks of a page."""
    for found in FENCE.finditer(page):
        yield Block(found[1], found[2], found[3], found.start(3), found.end(3))


def commands(block: Block) -> Iterator[Command]:
    """The commands of a console block."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        line, _, output = part.partition("\n")
        yield Command(line, output.rstrip("\n"))


def run_page(text: str, folder: Path) -> Iterator[tuple[Command, str]]:
    """Write the files of a page and run its commands in order; what each printed."""
    for block in blocks(text):
        if block.title is not None:
            path = folder / block.title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.language == "console":
            for command in commands(block):
                yield command, run(command.line, folder)


def run(line: str, folder: Path) -> str:
    """What a command line prints on both outputs, with `oic` and `python` being those tested."""
    programs = folder / ".programs"
    if not programs.exists():
        programs.mkdir()
        for name, call in (("oic", "-m oic"), ("python", "")):
            program = programs / name
            program.write_text(f'#!/bin/sh\nexec "{sys.executable}" {call} "$@"\n')
            program.chmod(0o755)
    environment = os.environ | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "compiler"),
        "COLUMNS": "80",
    }
    done = subprocess.run(
        ["sh", "-c", line], cwd=folder, env=environment, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=300,
    )  # fmt: skip
    return "\n".join(each.rstrip() for each in done.stdout.rstrip().splitlines())


def with_output(text: str, at: int, command: Command, printed: str) -> tuple[str, int]:
    """The page with what a command printed in place of what is shown, and the place after it.

    at   where the search for the command begins
    """
    start = text.index(f"$ {command.line}\n", at) + len(command.line) + 3
    shown = command.output + "\n" if command.output else ""
    assert text.startswith(shown, start)
    if not agrees(command.output, printed):
        new = printed + "\n" if printed else ""
        return text[:start] + new + text[start + len(shown) :], start + len(new)
    return text, start + len(shown)


def agrees(shown: str, printed: str) -> bool:
    """The output is what the page shows, wildcards taken into account."""
    parts = []
    for each in shown.splitlines():
        if each.strip() == "…":
            parts.append(r"(?:[^\n]*\n)*?")
        else:
            parts.append(re.escape(each.rstrip()).replace("…", r"[^\n]*") + r"\n")
    return re.fullmatch("".join(parts), printed + "\n" if printed else "") is not None
