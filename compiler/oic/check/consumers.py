"""`yield` and `await` (SPEC section 7.1)."""

from oic.check.flow import is_entry
from oic.check.report import DiagnosticCollector
from oic.check.resolved import BlockInstance, Resolved, effects
from oic.diagnostics import Note
from oic.syntax import tree as s


def check_consumers(resolved: Resolved, report: DiagnosticCollector) -> None:
    """What is yielded, awaited and written while it is away."""
    for instances in resolved.instances.values():
        for instance in instances[:1]:  # what is handed over is the same in all of them
            given = [x for x in resolved.symbols.bodies[instance.block.name] if isinstance(x, s.HandOver)]
            _check_names(instance, given, report)
            if instance in resolved.consumers:
                _check_consumer(instance, given, report)
            elif is_entry(instance.block):
                _check_entry(instance, instance.block.body, report)
            else:  # a block that is branched to hands nothing over
                notes = [Note(instance.block.name_span, "this block is neither")]
                for statement in given:
                    what = f"'{statement.word}' is allowed in an entry or a consumer only"
                    report.error("yield-place", what, statement.span, notes=notes)
    _check_matches(resolved, report)


def _check_names(instance: BlockInstance, given: list[s.HandOver], report: DiagnosticCollector) -> None:
    """Yielded and awaited names are declared variables that are not persistent, each once."""
    refused: set[str] = set()
    for statement in given:
        for name in statement.names:
            found = instance.variable(name)
            if name.name not in refused and (found is None or found.kind == "persistent"):
                refused.add(name.name)
                what = f"'{statement.word}' needs a declared variable, and '{name.name}' is none"
                if found is not None:
                    what = f"persistent variable '{name.name}' cannot be given away"
                report.error("yield-kind", what, name.span, about=found)
        named = ((name.name, name.span) for name in statement.names if name.name not in refused)
        report.each_once(named, "yield-twice", "'{}' is named twice", "the first time")


def _check_entry(instance: BlockInstance, body: tuple[s.SourceStatement, ...], report: DiagnosticCollector) -> None:
    """In one pair of braces: every `yield` has its `await`, and between them no use."""
    away: dict[str, s.Name] = {}
    for statement in body:
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
                        message = f"no 'yield {name.name};' comes before this in the same braces"
                        report.error("await-without-yield", message, name.span)
            case _:
                _check_away(instance, statement, away, report)
                if isinstance(statement, s.Loop):
                    _check_entry(instance, statement.body, report)
    for name in away.values():
        report.error("yield-without-await", f"no 'await {name.name};' follows in the same braces", name.span)


def _check_away(
    instance: BlockInstance, statement: s.SourceStatement, away: dict[str, s.Name], report: DiagnosticCollector
) -> None:
    """No statement between `yield` and `await` uses what is away, in loops and blocks neither."""
    for part in s.walk((statement,)) if away else ():
        used = [instance.used(part), *(effects(block) for block in instance.run_by(part))]
        names = {v.name for u in used for v in (*u.reads, *(v for v, _ in u.writes))}
        for name in sorted(names & away.keys()):
            what, hint = f"'{name}' is used while it is given away", f"use it after 'await {name};'"
            notes = [Note(away[name].span, "given away here")]
            report.error("yielded-use", what, part.shown, notes=notes, hint=hint)


def _check_consumer(consumer: BlockInstance, given: list[s.HandOver], report: DiagnosticCollector) -> None:
    """A consumer ends with a `yield` of what it awaits, and hands nothing over elsewhere."""
    block = consumer.block
    first, last = given[0], block.body[-1]
    end = next((x for x in block.body if isinstance(x, s.Yield | s.Return)), last)
    if not isinstance(end, s.Yield) or end.named != first.named:
        wanted = ", ".join(name.name for name in first.names)
        what = f"consumer '{block.name}' does not end with 'yield {wanted};'"
        report.error("consumer-yield", what, end.span, notes=[Note(first.span, "what it awaits")])
    for statement in given:
        if statement is not first and statement is not end:
            place = "end" if isinstance(statement, s.Yield) else "start"
            what = f"a consumer's '{statement.word}' is allowed at its {place} only"
            report.error("yield-place", what, statement.span)
    inner = (x for loop in block.body if isinstance(loop, s.Loop) for x in s.walk(loop.body))
    for early in (x for x in inner if isinstance(x, s.Return)):
        report.error("consumer-yield", f"consumer '{block.name}' returns without its 'yield'", early.span)
    for variable, access in effects(consumer).writes:
        if variable.kind == "volatile" and variable.name not in first.named:
            what = f"what consumer '{block.name}' writes to '{variable.name}' is lost"
            report.warn("lost-write", what, access.span, Note(first.span, "it gives back only what it awaits"))


def _check_matches(resolved: Resolved, report: DiagnosticCollector) -> None:
    """Every consumer has its `yield`; of those that one `yield` runs, one writes a variable."""
    served: set[BlockInstance] = set()
    for entry in resolved.entries:
        for given in resolved.symbols.bodies[entry.block.name]:
            if isinstance(given, s.Yield):
                served |= set(entry.run_by(given))
                _check_writers(entry, given, report)
    for consumer in resolved.consumers:
        if consumer not in served:
            what = f"no entry yields what consumer '{consumer.block.name}' awaits"
            report.error("await-without-yield", what, consumer.block.body[0].span)


def _check_writers(entry: BlockInstance, given: s.Yield, report: DiagnosticCollector) -> None:
    writes = [dict(effects(consumer).writes) for consumer in entry.run_by(given)]
    for name in given.names:
        variable = entry.variable(name)
        writers = [found[variable] for found in writes if variable is not None and variable in found]
        if len(writers) > 1:
            notes = [Note(writers[0].span, "the other"), Note(name.span, "yielded here")]
            report.error("consumer-conflict", f"two consumers write '{name.name}'", writers[1].span, notes=notes)
