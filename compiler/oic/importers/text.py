"""Pieces of source text: numbers, graphs, and blocks whose temporaries are declared where they are first used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

INDENT = "  "


def number(value: float) -> str:
    """A float as a literal of the language, which gives it back exactly."""
    return repr(float(value))


@dataclass
class BlockText:
    """A block, or the body of a loop: statements in order; a temporary is declared once.

    head     `block NAME …`, or the name of a section; empty for a body
    comment  what it does, one line above it
    """

    head: str
    comment: str = ""
    lines: list[str] = field(default_factory=list)
    declared: set[str] = field(default_factory=set)

    def add(self, *statements: str) -> None:
        """Statements in order; one that declares a temporary again is left out."""
        for statement in statements:
            name = statement.removeprefix("assign ").partition(":")[0] if statement.startswith("assign ") else ""
            if name not in self.declared:
                self.declared |= {name} - {""}
                self.lines.append(statement)

    def define(self, name: str, type_: str, statement: str) -> None:
        """Declare a temporary, unless that is done, and give it what a statement makes."""
        self.add(f"assign {name}: {type_};", f"{statement} >> {name};")

    def note(self, text: str) -> None:
        """A comment between statements, after an empty line."""
        self.lines += [""] * bool(self.lines) + [f"// {text}"]

    def nest(self, head: str, lines: list[str]) -> None:
        """A loop with its body."""
        self.lines += [f"{head} {{", *(INDENT + line if line else "" for line in lines), "}"]

    def render(self, depth: int) -> list[str]:
        """The lines of the whole block, indented."""
        indent = INDENT * depth
        body = [indent + INDENT + line if line else "" for line in self.lines]
        comment = [f"{indent}// {self.comment}"] if self.comment else []
        return [*comment, f"{indent}{self.head} {{", *body, f"{indent}}}"]


def source(name: str, summary: str, sections: Mapping[str, list[str]], blocks: Iterable[BlockText]) -> str:
    """A graph: sections of declarations, one a line, then blocks; a comment above says what it is."""
    declared = [BlockText(title, lines=lines) for title, lines in sections.items()]
    parts = ["\n".join(part.render(1)) for part in (*declared, *blocks)]
    return "\n".join([f"// {summary}.", f"graph {name} {{", "\n\n".join(parts), "}", ""])
