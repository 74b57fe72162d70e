"""Blocks: entries, branches, what is reached, dead statements, `dep` (SPEC section 7)."""

from dataclasses import dataclass
from itertools import islice, pairwise

from oic.check.report import DiagnosticCollector
from oic.check.symbols import SymbolTable, circles
from oic.diagnostics import MOST_NOTES, Note, Span, did_you_mean, nearest
from oic.ir.grouping import reach
from oic.syntax import tree as s
from oic.syntax.recover import CACHE_STATEMENTS


@dataclass(frozen=True)
class Flow:
    """Which blocks run which.

    entries    `entry` and the blocks with `@entry`
    consumers  blocks that run at a `yield`, with the names of the variables that they take
    unreached  blocks that nothing runs
    branches   of every block, the names of the blocks it branches to, entries aside: where first
    """

    entries: tuple[s.Block, ...]
    consumers: dict[str, set[str]]
    unreached: tuple[s.Block, ...]
    branches: dict[str, dict[str, Span]]


def is_entry(block: s.Block) -> bool:
    """The block is exported: `entry` itself, or one with `@entry`."""
    return block.name == "entry" or s.attribute(block, "entry") is not None


def flow_of(symbols: SymbolTable) -> Flow:
    """Which blocks run which; of blocks with one name, the first, and no branch to an entry."""
    blocks = symbols.blocks.values()
    branches: dict[str, dict[str, Span]] = {name: {} for name in symbols.blocks}
    for name, body in symbols.bodies.items():
        for target in (t for x in body if isinstance(x, s.Branch) for t in x.targets):
            block = symbols.blocks.get(target.name)
            if block is not None and not is_entry(block):
                branches[name].setdefault(target.name, target.span)
    branched_to = {name for targets in branches.values() for name in targets}
    entries = tuple(b for b in blocks if is_entry(b))
    inner = [b for b in blocks if not is_entry(b) and b.name not in branched_to]
    consumers = {b.name: b.body[0].named for b in inner if b.body and isinstance(b.body[0], s.Await)}
    reached = set(reach([*(b.name for b in entries), *consumers], branches.__getitem__))
    return Flow(entries, consumers, tuple(b for b in blocks if b.name not in reached), branches)


def check_flow(graph: s.Graph, symbols: SymbolTable, flow: Flow, report: DiagnosticCollector) -> None:
    """Entries, recursion, what never runs, and `dep`."""
    if "entry" not in symbols.blocks:
        near = nearest("entry", symbols.blocks)
        at = graph.blocks[0].name_span if graph.blocks else _head(graph)
        report.error("no-entry", "the graph has no block 'entry'", at, hint=near and f"rename block '{near}'")
    bodies = symbols.bodies.values()
    for body in bodies:
        _check_dep(body, report)
    _check_recursion(flow, report)
    branches = (x for body in bodies for x in body if isinstance(x, s.Branch))
    whole = all(target.name in symbols.blocks for x in branches for target in x.targets)
    for block in flow.unreached if flow.entries and whole else ():
        report.warn("unreachable-block", f"block '{block.name}' never runs", block.name_span)


def _head(graph: s.Graph) -> Span:
    """The first word of the graph."""
    start = graph.span.start
    text = graph.source.text[start : graph.span.end].split(None, 1)
    return Span(graph.source, start, start + len(text[0]) if text else start)


def check_branch(target: s.Name, symbols: SymbolTable, report: DiagnosticCollector) -> None:
    """What a branch names is a block, and no entry."""
    block = symbols.blocks.get(target.name)
    if block is None:
        hint = did_you_mean(target.name, symbols.blocks)
        report.error("unknown-block", f"unknown block '{target.name}'", target.span, hint=hint)
    elif is_entry(block):
        what = f"'{target.name}' is an entry, and no entry can be branched to"
        notes, hint = [Note(block.name_span, "declared here")], "put what they share into a block of its own"
        report.error("branch-to-entry", what, target.span, notes=notes, hint=hint)


def check_dead(statements: tuple[s.SourceStatement, ...], ends: tuple[type, ...], report: DiagnosticCollector) -> None:
    """A warning at the first statement behind one of the kinds in `ends`."""
    for statement, dead in pairwise(statements):
        if isinstance(statement, ends):
            note = Note(statement.span, "the block ends here")
            report.warn("dead-code", "this statement never runs", dead.shown, note)
            return


def _check_recursion(flow: Flow, report: DiagnosticCollector) -> None:
    """One error for every circle of branches."""
    for circle in circles(flow.branches):
        ways = zip(circle, [*circle[1:], circle[0]], strict=True)
        calls = [flow.branches[a][b] for a, b in islice(ways, 1 + MOST_NOTES)]
        notes = [Note(span, "then here") for span in calls[1:]]
        report.error("recursive-block", f"block '{circle[0]}' reaches itself through branches", calls[0], notes=notes)


def _check_dep(body: list[s.SourceStatement], report: DiagnosticCollector) -> None:
    """Both sides of a `dep` match a statement of its block, by its operator's name or the word it starts with."""
    places = [(x.name if isinstance(x, s.OpCall) else x.word, at) for at, x in enumerate(body)]
    last, first = dict(places), dict(reversed(places))
    for at, statement in enumerate(body):
        if not isinstance(statement, s.Dep):
            continue
        for side, name, found in (
            ("before", statement.after, first.get(statement.after.name, at) < at),
            ("after", statement.before, last.get(statement.before.name, at) > at),
        ):
            if "." in name.name and name.name not in CACHE_STATEMENTS:
                hint = did_you_mean(name.name, CACHE_STATEMENTS)
                report.error("unknown-statement", f"unknown statement '{name.name}'", name.span, hint=hint)
            elif not found:
                report.error("dep-no-match", f"no '{name.name}' comes {side} this 'dep' in its block", name.span)
