"""Make a failing graph small: drop lines, blocks and loops while it still fails in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator

Fails = Callable[[str], bool]


def reduced(text: str, fails: Fails, attempts: int = 2000) -> str:
    """The smallest text found that still fails; each try takes some lines away.

    fails      whether a text compiles and fails as the first one did
    attempts   the most texts to try
    """
    lines = text.splitlines()
    left = attempts
    size = max(1, len(lines) // 2)
    while size:
        changed = False
        for cut in list(_cuts(lines, size)):
            if left <= 0:
                return _joined(lines)
            shorter = [line for i, line in enumerate(lines) if i not in cut]
            if len(shorter) < len(lines) and _balanced(shorter):
                left -= 1
                if fails(_joined(shorter)):
                    lines, changed = shorter, True
                    break
        if not changed:
            size //= 2
    return _joined(lines)


def _cuts(lines: list[str], size: int) -> Iterator[set[int]]:
    """Sets of lines to drop: runs of statements, and at the end braces around what stays."""
    for start in range(len(lines) - size, 0, -max(1, size // 2)):
        yield set(range(start, start + size))
    if size > 1:
        return
    for start, line in enumerate(lines):
        end = _closing(lines, start) if line.endswith("{") else None
        if end is not None and start > 0:
            yield set(range(start, end + 1))
            if line.lstrip().startswith("loop"):
                yield {start, end}


def _closing(lines: list[str], start: int) -> int | None:
    """The line that closes the brace which a line opens."""
    depth = 0
    for i in range(start, len(lines)):
        depth += lines[i].count("{") - lines[i].count("}")
        if depth == 0:
            return i
    return None


def _balanced(lines: list[str]) -> bool:
    depth = 0
    for line in lines:
        depth += line.count("{") - line.count("}")
        if depth < 0:
            return False
    return depth == 0


def _joined(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"
