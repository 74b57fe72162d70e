"""Text on its way out of the `oic` command: JSON, diagnostics, a progress bar."""

import itertools
import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from shutil import get_terminal_size
from typing import Any

import click

from oic.diagnostics import Diagnostic, filled, rendered, visible


def json_text(value: Any, indent: int | None = 1) -> str:
    """Strict JSON; numbers that it does not have are the strings "nan", "inf" and "-inf".

    indent   None: on one line
    """
    return json.dumps(_plain(value), indent=indent, ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case float() if not math.isfinite(value):
            return str(value)
        case _:
            return value


def in_color(choice: str, terminal: bool) -> bool:
    """Whether text has color: what `--color` says, else the environment, else on a terminal.

    NO_COLOR (https://no-color.org) comes first, then FORCE_COLOR and CLICOLOR_FORCE; CLICOLOR=0 and
    TERM=dumb turn it off.
    """
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if any(os.environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return terminal and os.environ.get("CLICOLOR") != "0" and os.environ.get("TERM") != "dumb"


def in_columns(lines: Sequence[str]) -> str:
    """Lines of text; on a terminal those too wide for it are broken between words and indented."""
    if not sys.stdout.isatty():
        return "\n".join(lines)
    width = max(40, get_terminal_size().columns)
    return "\n".join(filled(line, width, len(line) - len(line.lstrip()) + 8) for line in lines)


def say(text: str) -> None:
    """Print on standard output, with nothing in it that a terminal would obey (`visible`)."""
    click.echo(visible(text))


def report(diagnostics: Sequence[Diagnostic], as_json: bool) -> None:
    """Print diagnostics: as JSON on standard output, or as text on standard error, in the color of the command."""
    if as_json:
        say(json_text({"diagnostics": [d.to_json() for d in diagnostics]}))
    elif diagnostics:
        width = get_terminal_size().columns if sys.stderr.isatty() else None
        context = click.get_current_context(silent=True)
        color = context is not None and bool(context.color)
        click.echo(rendered(diagnostics, color, width), err=True, color=color)


@contextmanager
def stages(what: str, total: int | None = None) -> Iterator[Callable[[str, int, int | None], None]]:
    """Bars on a terminal for what has parts of known sizes; gives a function that is told how far a part is.

    total   of the whole, which is the part ""
    """
    if not sys.stderr.isatty():
        yield lambda part, done, total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        bars = {"": bar.add_task(what, total=total)}

        def told(part: str, done: int, total: int | None) -> None:
            if part not in bars:
                bars[part] = bar.add_task(part, total=total)
            bar.update(bars[part], completed=done)

        yield told


@contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Callable[[], None]]:
    """A bar on a terminal for what may take more than a second; gives a function to advance it."""
    with stages(what, total) as told:
        done = itertools.count(1)
        yield lambda: told("", next(done), total)
