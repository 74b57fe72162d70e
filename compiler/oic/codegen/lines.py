"""The lines of one C function while it is written: nesting, source comments, unused names removed."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

WIDTH = 110  # columns before a call or a declaration is broken


@dataclass
class Line:
    """One line; `declares` is the variable that it exists for, `assigns` the one that it sets."""

    depth: int
    text: str
    declares: str | None = None
    comment: bool = False
    assigns: str | None = None


class Lines:
    """Lines in order, indented by four spaces a level."""

    def __init__(self, depth: int = 1) -> None:
        self.items: list[Line] = []
        self.depth = depth

    def add(self, text: str) -> None:
        """One statement."""
        self.items.append(Line(self.depth, text))

    def declare(self, name: str, text: str) -> None:
        """A declaration without effect, dropped if nothing uses the name."""
        self.items.append(Line(self.depth, text, name))

    def assign(self, name: str, text: str) -> None:
        """A new value of a variable, dropped with it if nothing uses the name."""
        self.items.append(Line(self.depth, f"{name} = {text};", assigns=name))

    def open(self, text: str) -> None:
        """The head of a nested block, with its brace."""
        self.add(text)
        self.depth += 1

    def between(self, text: str) -> None:
        """The end of one nested block and the head of the next: `} else {`."""
        self.depth -= 1
        self.add(text)
        self.depth += 1

    def close(self, after: str = "") -> None:
        """The end of a nested block."""
        self.depth -= 1
        self.add("}" + after)

    def source(self, text: str) -> None:
        """The comment that starts a source statement, after a blank line."""
        last = self.items[-1] if self.items else None
        if last and not last.comment and not last.text.endswith("{"):
            self.items.append(Line(0, "", comment=True))
        self.items.append(Line(self.depth, f"/* {text} */", comment=True))

    def text(self) -> list[str]:
        """The finished lines."""
        return [broken for line in self.kept() for broken in _broken(line)]

    def kept(self) -> list[Line]:
        """The lines without declarations that nothing uses, and without an `else` that has no lines."""
        found = _without_unused(self.items)
        following = [*found[1:], None]
        return [a for a, b in zip(found, following) if not (a.text == "} else {" and b is not None and b.text == "}")]


_WORD = re.compile(r"(?<!->)(?<!\.)\b[A-Za-z_]\w*")
_COMMENT = re.compile(r"/\*.*?\*/|\"[^\"]*\"")


def _without_unused(items: list[Line]) -> list[Line]:
    """The lines without declarations of names that no other line mentions, but to set them."""
    words = [[] if i.comment else _WORD.findall(_COMMENT.sub("", i.text)) for i in items]
    used = [set(line) - {item.assigns} for line, item in zip(words, items)]
    uses = Counter(w for line in used for w in line)
    lines: dict[str, list[int]] = {}  # that declare a name or set it
    for at, item in enumerate(items):
        if name := item.declares or item.assigns:
            lines.setdefault(name, []).append(at)
    declared = {item.declares for item in items}
    gone: set[int] = set()
    waiting = [name for name in declared if name and uses[name] == 1]
    while waiting:
        for at in lines.pop(waiting.pop(), ()):
            gone.add(at)
            uses.subtract(used[at])
            waiting += [name for name in used[at] if uses[name] == 1 and name in declared]
    return [item for at, item in enumerate(items) if at not in gone]


def _broken(line: Line) -> list[str]:
    """The line, broken after commas of its first call where it is too long."""
    indent = "    " * line.depth
    whole = (indent + line.text).rstrip()
    if len(whole) <= WIDTH or line.comment or "(" not in line.text or "/*" in line.text:
        return [whole]
    head, _, rest = line.text.partition("(")
    column = len(indent) + len(head) + 1
    if head.startswith("for "):
        return _filled(whole, column, ";")
    return _filled(whole, column + rest.index("(") + 1 if head.startswith("OIC_TRY") else column)


def _filled(whole: str, column: int, mark: str = ",") -> list[str]:
    """The line broken after commas between arguments (or `mark`); what follows is indented to `column`.

    Where none of them is within the width, a comma of an inner call is taken.
    """
    lines, rest = [], whole
    while len(rest) > WIDTH and (at := max(_last(rest, column, mark), 0) or rest.rfind(", ", column, WIDTH)) > 0:
        lines.append(rest[: at + 1])
        rest = " " * column + rest[at + 2 :]
    return [*lines, rest]


def _last(text: str, column: int, mark: str) -> int:
    """The last mark within the width that is not inside a nested bracket; -1 if there is none."""
    depth, found = 0, -1
    for at in range(column, min(len(text), WIDTH)):
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if text[at] == mark and depth == 0:
            found = at
    return found
