"""Source text of a syntax tree: parsing it gives the same tree, spans aside."""

import re
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from oic.syntax import tree as s
from oic.syntax.text import ESCAPES

NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2}
_ESCAPED = str.maketrans({char: f"\\{letter}" for letter, char in ESCAPES.items() if letter != "'"})


def unparse(graph: s.Graph) -> str:
    """The text of a whole graph, a declaration or statement a line; without a name that only its file can give it."""
    lines: list[str] = []
    if graph.sizes:
        lines.append("  sizes {")
        lines += [f"    {d.name} = {written(d.value)};" for d in graph.sizes]
        lines.append("  }")
    for kind, group in groupby(graph.declarations, lambda d: d.kind):
        lines.append(f"  {kind} {{")
        lines += [f"    {written(d)};" for d in group]
        lines.append("  }")
    for block in graph.blocks:
        lines.append(f"  block {block.name}{_attributes(block)} {{")
        lines += _body(block.body, 2)
        lines.append("  }")
    return "\n".join([f"graph {graph.name} {{", *lines, "}", ""] if NAME.fullmatch(graph.name) else [*lines, ""])


def _attributes(of: s.Declaration | s.Block) -> str:
    return "".join(f" {written(a)}" for a in of.attributes)


def _list(parts: Iterable[Any]) -> str:
    return ", ".join(map(written, parts))


def written(part: Any, level: int = 0) -> str:
    """The text of a declaration, of a statement but a loop, or of a part, with the parentheses that it needs."""
    match part:
        case s.Declaration(_, name, indices, dtype, dims):
            table, shape = "" if indices is None else f"({_list(indices)})", f"[{_list(dims)}]" if dims else ""
            return f"{name}{table}: {dtype}{shape}{_attributes(part)}"
        case s.Attribute(name, args, parens):
            return f"@{name}({_list(args)})" if parens or args else f"@{name}"
        case s.Argument(None, value):
            return written(value)
        case s.Argument(key, value) | s.Keyword(key, value):
            return f"{key}={written(value)}"
        case s.Access(name, None) | s.Name(name):
            return name
        case s.Access(name, indices):
            return f"{name}[{_list(indices or ())}]"
        case s.Slice(start, end):
            return "..".join("" if side is None else written(side) for side in (start, end))
        case s.Unknown():
            return "?"
        case s.ListOf(items):
            return f"[{_list(items)}]"
        case s.Str(text):
            return f'"{text.translate(_ESCAPED)}"'
        case s.Bool(flag):
            return "true" if flag else "false"
        case s.Int(number) | s.Float(number):
            return repr(number)
        case s.Unary(operand):
            return f"-{written(operand, 3)}"
        case s.Binary(op, left, right):
            mine = PRECEDENCE.get(op, 0)
            text = f"{written(left, mine)} {op} {written(right, mine + 1)}"
            return f"({text})" if mine < level else text
        case s.Assign(declaration):
            return f"assign {written(declaration)}"
        case s.OpCall(name, operands, keywords, results):
            return f"op {name}({_list([*operands, *keywords])}) >> {_list(results)}"
        case s.Transfer(source, target) | s.CacheRead(source, target) | s.CacheWrite(source, target):
            return f"{part.word} {written(source)} >> {written(target)}"
        case s.Branch(condition, targets):
            return " ".join(["branch", *(n.name for n in (condition, *targets) if n)])
        case s.Return() | s.Barrier():
            return part.word
        case s.Dep(after, before):
            return f"dep after({after.name}) before({before.name})"
        case s.HandOver(names):
            return f"{part.word} {_list(names)}"
        case s.CacheStep(_, amount, target):
            # In parentheses, so that `-n` or `a - b` cannot run into the target.
            by = f" ({written(amount)})" if amount is not None else ""
            return f"{part.word}{by} {written(target)}"
        case s.CacheReset(target):
            return f"{part.word} {written(target)}"
    raise AssertionError(part)


def _body(body: Iterable[s.SourceStatement], depth: int) -> list[str]:
    lines: list[str] = []
    indent = "  " * depth
    for statement in body:
        if isinstance(statement, s.Loop):
            bounds = f"{written(statement.start)}..{written(statement.end)}"
            lines.append(f"{indent}loop {statement.tag} ({statement.index.name} in {bounds}) {{")
            lines += _body(statement.body, depth + 1)
            lines.append(f"{indent}}}")
        else:
            lines.append(f"{indent}{written(statement)};")
    return lines
