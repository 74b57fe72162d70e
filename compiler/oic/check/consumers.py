"""`yield` and `await` (SPEC section 7.1)."""

from __future__ import annotations

from collections.abc import Iterator

from oic.check.flow import Flow, is_entry
from oic.check.names import DiagnosticCollector, SymbolTable, declared
from oic.check.uses import uses
from oic.diagnostics import Note
from oic.syntax import tree as s


def check_consumers(graph: s.Graph, names: SymbolTable, flow: Flow, report: DiagnosticCollector) -> None:
    """What is yielded, awaited and written while it is away."""
    for block in graph.blocks:
        _check_names(block, names, report)
        if block in flow.consumers:
            _check_consumer(block, names, flow, report)
        elif is_entry(block):
            _check_entry(block.body, names, flow, report)
        else:
            _check_neither(block, report)
    _check_matches(names, flow, report)


def _check_names(block: s.Block, names: SymbolTable, report: DiagnosticCollector) -> None:
    """Yielded and awaited names are declared variables that are not persistent, each once."""
    refused: set[str] = set()
    for statement in _handovers(block.body):
        word = _word(statement)
        seen: set[str] = set()
        for name in statement.names:
            found = names.variables.get(name.name)
            if name.name in refused:
                continue
            if found is None or found.kind == "persistent":
                refused.add(name.name)
            if found is None:
                report.error(
                    "yield-kind", f"'{word}' needs a declared variable, and '{name.name}' is none",
                    name.span,
                )  # fmt: skip
            elif found.kind == "persistent":
                report.error(
                    "yield-kind",
                    f"persistent variable '{name.name}' cannot be given away",
                    name.span,
                    notes=[declared(found)],
                )
            elif name.name in seen:
                report.error("yield-twice", f"'{name.name}' is named twice", name.span)
            seen.add(name.name)


def _handovers(statements: tuple[s.Statement, ...]) -> Iterator[s.Yield | s.Await]:
    for statement in s.walk(statements):
        if isinstance(statement, s.Yield | s.Await):
            yield statement


def _word(statement: s.Yield | s.Await) -> str:
    return "yield" if isinstance(statement, s.Yield) else "await"


def _named(statement: s.Yield | s.Await) -> set[str]:
    return {name.name for name in statement.names}


def _check_neither(block: s.Block, report: DiagnosticCollector) -> None:
    """A block that is branched to hands nothing over."""
    for statement in _handovers(block.body):
        report.error(
            "yield-place",
            f"'{_word(statement)}' stands in an entry or a consumer only",
            statement.span,
            notes=[Note(block.name_span, "this block is neither")],
        )


# ---------------------------------------------------------------- entries


def _check_entry(
    statements: tuple[s.Statement, ...], names: SymbolTable, flow: Flow, report: DiagnosticCollector
) -> None:
    """In one pair of braces: every `yield` has its `await`, and between them no use."""
    away: dict[str, s.Name] = {}
    for statement in statements:
        match statement:
            case s.Yield(given):
                for name in given:
                    if name.name in away:
                        note = Note(away[name.name].span, "given away here")
                        message = f"'{name.name}' is yielded again before its 'await'"
                        report.error("yield-twice", message, name.span, notes=[note])
                    away.setdefault(name.name, name)
            case s.Await(taken):
                for name in taken:
                    if away.pop(name.name, None) is None:
                        message = f"no 'yield {name.name};' stands before this in the same braces"
                        report.error("await-without-yield", message, name.span)
            case _:
                _check_away(statement, away, names, flow, report)
                if isinstance(statement, s.Loop):
                    _check_entry(statement.body, names, flow, report)
    for name in away.values():
        message = f"no 'await {name.name};' follows in the same braces"
        report.error("yield-without-await", message, name.span)


def _check_away(
    statement: s.Statement, away: dict[str, s.Name], names: SymbolTable, flow: Flow, report: DiagnosticCollector
) -> None:
    """No statement between `yield` and `await` uses what is away, in loops and blocks neither."""
    if not away:
        return
    inner = s.walk(statement.body) if isinstance(statement, s.Loop) else []
    for part in [statement, *inner]:
        used = uses(part).reads | uses(part).writes
        if isinstance(part, s.Branch):
            for target in part.targets:
                if target.name in names.blocks:
                    reached = flow.reached_from(target.name)
                    used |= set().union(*(_all_uses(names.blocks[n]) for n in reached))
        for name in sorted(used & away.keys()):
            report.error(
                "yielded-use",
                f"'{name}' is used while it is given away",
                part.head_span if isinstance(part, s.Loop) else part.span,
                notes=[Note(away[name].span, "given away here")],
                hint=f"use it after 'await {name};'",
            )


def _all_uses(block: s.Block) -> frozenset[str]:
    used = [uses(statement) for statement in s.walk(block.body)]
    return frozenset[str]().union(*(u.reads | u.writes for u in used))


# ---------------------------------------------------------------- consumers


def _check_consumer(block: s.Block, names: SymbolTable, flow: Flow, report: DiagnosticCollector) -> None:
    """It ends with a `yield` of what it awaits, and hands nothing over elsewhere."""
    first, last = block.body[0], block.body[-1]
    assert isinstance(first, s.Await)
    end = next((x for x in block.body if isinstance(x, s.Yield | s.Return)), last)
    if not isinstance(end, s.Yield) or _named(end) != _named(first):
        wanted = ", ".join(name.name for name in first.names)
        report.error(
            "consumer-yield",
            f"consumer '{block.name}' does not end with 'yield {wanted};'",
            end.span,
            notes=[Note(first.span, "what it awaits")],
        )
    for statement in s.walk(block.body):
        if isinstance(statement, s.Yield | s.Await) and statement not in (first, end):
            report.error(
                "yield-place",
                f"a consumer's '{_word(statement)}' stands at its "
                f"{'end' if isinstance(statement, s.Yield) else 'start'} only",
                statement.span,
            )
        elif isinstance(statement, s.Return) and statement not in block.body:
            message = f"consumer '{block.name}' returns without its 'yield'"
            report.error("consumer-yield", message, statement.span)
    for name, access in sorted(_writes(block, names, flow).items()):
        found = names.variables.get(name)
        if found is not None and found.kind == "volatile" and name not in _named(first):
            report.warn(
                "lost-write",
                f"what consumer '{block.name}' writes to '{name}' is lost",
                access.span,
                notes=[Note(first.span, "it gives back only what it awaits")],
            )


def _writes(block: s.Block, names: SymbolTable, flow: Flow) -> dict[str, s.Access]:
    """The variables that a block writes, those it branches to included, and the first place."""
    found: dict[str, s.Access] = {}
    for name in sorted(flow.reached_from(block.name)):
        for statement in s.walk(names.blocks[name].body):
            for access in _targets(statement):
                found.setdefault(access.name, access)
    return found


def _targets(statement: s.Statement) -> tuple[s.Access, ...]:
    match statement:
        case s.OpCall(results=results):
            return results
        case s.Transfer(target=target) | s.CacheRead(target=target):
            return (target,)
    return ()


def _check_matches(names: SymbolTable, flow: Flow, report: DiagnosticCollector) -> None:
    """Every consumer has its `yield`; of those that one `yield` runs, one writes a variable."""
    served: set[str] = set()
    for entry in flow.entries:
        for given in _handovers(entry.body):
            if not isinstance(given, s.Yield):
                continue
            running = [b for b in flow.consumers if _awaited(b) <= _named(given)]
            served |= {block.name for block in running}
            for name in given.names:
                _check_writers(name, running, names, flow, report)
    for block in flow.consumers:
        if block.name not in served:
            report.error(
                "await-without-yield",
                f"no entry yields what consumer '{block.name}' awaits",
                block.body[0].span,
            )


def _check_writers(
    name: s.Name, running: list[s.Block], names: SymbolTable, flow: Flow, report: DiagnosticCollector
) -> None:
    writers = [
        access
        for block in running
        if (access := _writes(block, names, flow).get(name.name)) is not None
    ]
    if len(writers) > 1:
        report.error(
            "consumer-conflict",
            f"two consumers write '{name.name}'",
            writers[1].span,
            notes=[Note(writers[0].span, "the other"), Note(name.span, "yielded here")],
        )


def _awaited(block: s.Block) -> set[str]:
    first = block.body[0]
    return _named(first) if isinstance(first, s.Await) else set()
