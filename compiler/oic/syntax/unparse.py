"""Source text of a syntax tree: parsing it gives the same tree, spans aside."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from oic.syntax import tree as s

KINDS = ("dynamic", "constant", "volatile", "persistent")
PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2}


def unparse(graph: s.Graph) -> str:
    """The text of a whole graph, a declaration or statement a line."""
    lines = [f"graph {graph.name} {{"]
    if graph.sizes:
        lines.append("  sizes {")
        lines += [f"    {d.name} = {expression(d.value)};" for d in graph.sizes]
        lines.append("  }")
    for kind, group in groupby(graph.declarations, lambda d: d.kind):
        lines.append(f"  {kind} {{")
        lines += [f"    {declaration(d)};" for d in group]
        lines.append("  }")
    for block in graph.blocks:
        marks = "".join(f" {attribute(a)}" for a in block.attributes)
        lines.append(f"  block {block.name}{marks} {{")
        lines += _body(block.body, 2)
        lines.append("  }")
    return "\n".join([*lines, "}", ""])


def declaration(d: s.Declaration) -> str:
    """`W(l): f32[D, D] @pattern("W.{l}")`."""
    head = d.name
    if d.indices is not None:
        head += "(" + ", ".join(i.name for i in d.indices) + ")"
    dims = ", ".join("?" if isinstance(x, s.Unknown) else expression(x) for x in d.dims)
    shape = f"[{dims}]" if d.dims else ""
    return f"{head}: {d.dtype}{shape}" + "".join(f" {attribute(a)}" for a in d.attributes)


def attribute(a: s.Attribute) -> str:
    """`@fixed(t=1024)`."""
    args = ", ".join(f"{g.key}={setting(g.value)}" if g.key else setting(g.value) for g in a.args)
    return f"@{a.name}({args})" if a.parens or a.args else f"@{a.name}"


def setting(value: Any) -> str:
    """A literal, a list, an expression or a variable."""
    match value:
        case s.Str(value=text):
            return json.dumps(text, ensure_ascii=False)
        case s.Bool(value=flag):
            return "true" if flag else "false"
        case s.Float(value=number):
            return repr(number)
        case s.ListOf(items=items):
            return "[" + ", ".join(setting(i) for i in items) + "]"
        case s.Access():
            return access(value)
    return expression(value)


def expression(expr: s.Expr, level: int = 0) -> str:
    """An integer expression, with the parentheses it needs."""
    match expr:
        case s.Int(value=number):
            return str(number)
        case s.Name(name=name):
            return name
        case s.Unary(operand=operand):
            return f"-{expression(operand, 3)}"
        case s.Binary(op=op, left=left, right=right):
            mine = PRECEDENCE[op]
            text = f"{expression(left, mine)} {op} {expression(right, mine + 1)}"
            return f"({text})" if mine < level else text
    raise AssertionError(expr)


def access(a: s.Access) -> str:
    """`K[l, 0..t]`."""
    if a.indices is None:
        return a.name
    return f"{a.name}[" + ", ".join(_index(i) for i in a.indices) + "]"


def _index(index: s.Index) -> str:
    if not isinstance(index, s.Slice):
        return expression(index)
    start = expression(index.start) if index.start is not None else ""
    end = expression(index.end) if index.end is not None else ""
    return f"{start}..{end}"


# ---------------------------------------------------------------- statements


def _body(body: Iterable[s.Statement], depth: int) -> list[str]:
    lines: list[str] = []
    indent = "  " * depth
    for statement in body:
        if isinstance(statement, s.Loop):
            bounds = f"{statement.index.name} in {expression(statement.start)}..{expression(statement.end)}"
            lines.append(f"{indent}loop {statement.tag} ({bounds}) {{")
            lines += _body(statement.body, depth + 1)
            lines.append(f"{indent}}}")
        else:
            lines.append(f"{indent}{_statement(statement)};")
    return lines


def _statement(statement: s.Statement) -> str:
    match statement:
        case s.Assign(declaration=d):
            return f"assign {declaration(d)}"
        case s.OpCall(name=name, operands=operands, keywords=keywords, results=results):
            args = [setting(o) for o in operands] + [f"{k.key}={setting(k.value)}" for k in keywords]
            return f"op {name}({', '.join(args)}) >> {', '.join(access(r) for r in results)}"
        case s.Transfer(source, target) | s.CacheRead(source, target) | s.CacheWrite(source, target):
            return f"{statement.word} {access(source)} >> {access(target)}"
        case s.Branch(condition=condition, targets=targets):
            names = " ".join(t.name for t in targets)
            return f"branch {condition.name} {names}" if condition else f"branch {names}"
        case s.Return() | s.Barrier():
            return statement.word
        case s.Dep(after=after, before=before):
            return f"dep after({after.name}) before({before.name})"
        case s.Yield(names) | s.Await(names):
            return f"{statement.word} {', '.join(n.name for n in names)}"
        case s.CacheStep(amount=amount, target=target):
            # In parentheses, so that `-n` or `a - b` cannot run into the target.
            by = f" ({expression(amount)})" if amount is not None else ""
            return f"{statement.word}{by} {access(target)}"
        case s.CacheReset(target):
            return f"{statement.word} {access(target)}"
    raise AssertionError(statement)
