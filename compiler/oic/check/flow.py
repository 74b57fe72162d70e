"""Blocks: entries, branches, what is reached, dead statements, `dep` (SPEC section 7)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from oic.check.names import DiagnosticCollector, SymbolTable, attribute
from oic.diagnostics import MOST_NOTES, Note, Span, did_you_mean, nearest
from oic.syntax import tree as s
from oic.syntax.recover import CACHE_STATEMENTS


@dataclass(frozen=True)
class Flow:
    """Which blocks run which.

    entries    `entry` and the blocks with `@entry`
    consumers  blocks that run at a `yield`
    unreached  blocks that nothing runs
    branches   of every block, the blocks it branches to, entries aside
    """

    entries: tuple[s.Block, ...]
    consumers: tuple[s.Block, ...]
    unreached: tuple[s.Block, ...]
    branches: dict[str, tuple[str, ...]]

    @property
    def starts(self) -> tuple[s.Block, ...]:
        """The blocks that run without being branched to."""
        return self.entries + self.consumers

    def reached_from(self, name: str) -> set[str]:
        """The block itself and all that it branches to, directly or not."""
        reached, waiting = set[str](), [name]
        while waiting:
            block = waiting.pop()
            if block not in reached:
                reached.add(block)
                waiting += self.branches[block]
        return reached


def is_entry(block: s.Block) -> bool:
    """The block is exported: `entry` itself, or one with `@entry`."""
    return block.name == "entry" or attribute(block, "entry") is not None


def flow_of(graph: s.Graph, names: SymbolTable) -> Flow:
    """Which blocks run which; of blocks with one name, the first, and no branch to an entry."""
    blocks = tuple(names.blocks.values())
    branches = {block.name: _targets(block, names) for block in blocks}
    branched_to = {name for targets in branches.values() for name in targets}
    entries = tuple(b for b in blocks if is_entry(b))
    consumers = tuple(
        b
        for b in blocks
        if not is_entry(b)
        and b.name not in branched_to
        and b.body
        and isinstance(b.body[0], s.Await)
    )
    flow = Flow(entries, consumers, (), branches)
    reached = {name for block in flow.starts for name in flow.reached_from(block.name)}
    left = tuple(b for b in blocks if b.name not in reached)
    return Flow(entries, consumers, left, branches)


def _targets(block: s.Block, names: SymbolTable) -> tuple[str, ...]:
    found = dict.fromkeys(
        target.name
        for statement in s.walk(block.body)
        if isinstance(statement, s.Branch)
        for target in statement.targets
        if target.name in names.blocks and not is_entry(names.blocks[target.name])
    )
    return tuple(found)


def check_flow(graph: s.Graph, names: SymbolTable, flow: Flow, report: DiagnosticCollector) -> None:
    """Entries, branch targets, recursion, and what never runs."""
    if "entry" not in names.blocks:
        near = nearest("entry", names.blocks)
        at = graph.blocks[0].name_span if graph.blocks else _head(graph)
        report.error(
            "no-entry", "the graph has no block 'entry'", at, hint=near and f"rename block '{near}'"
        )
    for target in _all_targets(graph):
        _check_target(target, names, report)
    for block in graph.blocks:
        _check_dead(block.body, block in flow.consumers, report)
        _check_dep(block, report)
    _check_recursion(graph, names, flow, report)
    missing = not flow.entries or any(
        target.name not in names.blocks for target in _all_targets(graph)
    )
    for block in () if missing else flow.unreached:
        report.warn("unreachable-block", f"block '{block.name}' never runs", block.name_span)


def _all_targets(graph: s.Graph) -> list[s.Name]:
    """Every name that is the target of a branch."""
    return [
        target
        for block in graph.blocks
        for statement in s.walk(block.body)
        if isinstance(statement, s.Branch)
        for target in statement.targets
    ]


def _head(graph: s.Graph) -> Span:
    """The first word of the graph."""
    start = graph.span.start
    text = graph.source.text[start : graph.span.end].split(None, 1)
    return Span(graph.source, start, start + len(text[0]) if text else start)


def _check_target(target: s.Name, names: SymbolTable, report: DiagnosticCollector) -> None:
    block = names.blocks.get(target.name)
    if block is None:
        report.error(
            "unknown-block",
            f"unknown block '{target.name}'",
            target.span,
            hint=did_you_mean(target.name, names.blocks),
        )
    elif is_entry(block):
        report.error(
            "branch-to-entry",
            f"'{target.name}' is an entry, and no entry can be branched to",
            target.span,
            notes=[Note(block.name_span, "declared here")],
            hint="put what they share into a block of its own",
        )


def _check_dead(statements: tuple[s.Statement, ...], consumer: bool, report: DiagnosticCollector) -> None:
    """A warning at the first statement behind a `return`, or behind a consumer's `yield`."""
    for i, statement in enumerate(statements):
        if isinstance(statement, s.Loop):
            _check_dead(statement.body, False, report)
        ends = isinstance(statement, s.Return) or (consumer and isinstance(statement, s.Yield))
        if ends and i + 1 < len(statements):
            dead = statements[i + 1]
            span = dead.head_span if isinstance(dead, s.Loop) else dead.span
            note = Note(statement.span, "the block ends here")
            report.warn("dead-code", "this statement never runs", span, notes=[note])
            return


def _check_recursion(graph: s.Graph, names: SymbolTable, flow: Flow, report: DiagnosticCollector) -> None:
    """One error for every cycle of branches."""
    known: set[str] = set()
    for block in names.blocks.values():
        path = _cycle(block.name, flow) if block.name not in known else []
        if not path or known & set(path):
            continue
        known |= set(path)
        following = [*path[1:], path[0]]
        calls = [
            _branch_to(names.blocks[a], b)
            for a, b in list(zip(path, following, strict=True))[: 1 + MOST_NOTES]
        ]
        report.error(
            "recursive-block",
            f"block '{block.name}' reaches itself through branches",
            calls[0],
            notes=[Note(span, "then here") for span in calls[1:]],
        )


def _cycle(name: str, flow: Flow) -> list[str]:
    """The shortest way from a block back to itself, or nothing."""
    before: dict[str, str] = {}  # of each block reached, the one it is branched to from
    waiting = deque([name])
    while waiting:
        at = waiting.popleft()
        for target in flow.branches[at]:
            if target == name:
                way = [at]
                while way[-1] != name:
                    way.append(before[way[-1]])
                return way[::-1]
            if target not in before:
                before[target] = at
                waiting.append(target)
    return []


def _branch_to(block: s.Block, name: str) -> Span:
    return next(
        target.span
        for statement in s.walk(block.body)
        if isinstance(statement, s.Branch)
        for target in statement.targets
        if target.name == name
    )


# ---------------------------------------------------------------- dep


def _check_dep(block: s.Block, report: DiagnosticCollector) -> None:
    """Both sides of a `dep` match a statement of its block."""
    statements = list(s.walk(block.body))
    for i, statement in enumerate(statements):
        if not isinstance(statement, s.Dep):
            continue
        for side, name, others in (
            ("before", statement.after, statements[:i]),
            ("after", statement.before, statements[i + 1 :]),
        ):
            if "." in name.name and name.name not in CACHE_STATEMENTS:
                report.error(
                    "unknown-statement",
                    f"unknown statement '{name.name}'",
                    name.span,
                    hint=did_you_mean(name.name, CACHE_STATEMENTS),
                )
            elif not any(_kind(other) == name.name for other in others):
                report.error(
                    "dep-no-match",
                    f"no '{name.name}' stands {side} this 'dep' in its block",
                    name.span,
                )


def _kind(statement: s.Statement) -> str:
    """What `dep` calls a statement: its operator's name, or the words it starts with."""
    match statement:
        case s.OpCall(name):
            return name
        case s.CacheStep(sign):
            return "cache.increment" if sign > 0 else "cache.decrement"
        case s.CacheRead():
            return "cache.read"
        case s.CacheWrite():
            return "cache.write"
        case s.CacheReset():
            return "cache.reset"
    return type(statement).__name__.lower()
