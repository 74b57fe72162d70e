"""Statements: which names they may use and what each may read and write (SPEC sections 6 to 8).

A block is checked once for every set of temporaries and loop indices that its callers show it, as
far as it uses them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from oic import dtypes
from oic.check.cache import check_access
from oic.check.flow import Flow
from oic.check.names import (
    DiagnosticCollector,
    SymbolTable,
    auto_indices,
    copied_out,
    declared,
    names_in,
    table_indices,
)
from oic.check.operator_names import takes_string, unknown_operator
from oic.check.uses import uses
from oic.diagnostics import Note, Span, did_you_mean
from oic.operators import catalog
from oic.syntax import tree as s

MOST_CONTEXTS = 1000  # of what callers show a block, beyond which blocks are not looked at
_PASSED = "a block sees loop indices and temporaries of the braces that branch to it"


@dataclass(frozen=True)
class Scope:
    """What is visible at a statement, beside the variables of the sections.

    lenient   names of temporaries and loop indices that may be missing, where no caller is known
    caller    the branch that the block is checked for; None where it runs by itself
    """

    block: s.Block
    temporaries: Mapping[str, s.Declaration]
    loops: Mapping[str, s.Name]
    lenient: frozenset[str] = frozenset()
    caller: Span | None = None


def check_statements(graph: s.Graph, names: SymbolTable, flow: Flow, report: DiagnosticCollector) -> None:
    """Every block, from each place that runs it."""
    passed = frozenset(_passed(graph))
    checker = _StatementChecker(names, report, passed)
    mentions = _mentions(graph, flow)
    waiting = [Scope(block, {}, {}) for block in flow.starts]
    waiting += [Scope(block, {}, {}, passed) for block in flow.unreached]
    done: set[tuple[object, ...]] = set()
    while waiting and len(done) < MOST_CONTEXTS:
        scope = waiting.pop(0)
        wanted = mentions[scope.block.name]
        shown = {n: d for n, d in scope.temporaries.items() if n in wanted}
        loops = {n: i for n, i in scope.loops.items() if n in wanted}
        key = (id(scope.block), *sorted((n, id(x)) for n, x in [*shown.items(), *loops.items()]))
        if key not in done:
            done.add(key)
            checker.branches.clear()
            checker.body(scope.block.body, replace(scope, temporaries=shown, loops=loops))
            waiting += checker.branches


def _passed(graph: s.Graph) -> Iterator[str]:
    """The names that blocks branched to may see: those of temporaries and loop indices."""
    for block in graph.blocks:
        for statement in s.walk(block.body):
            if isinstance(statement, s.Assign):
                yield statement.declaration.name
            elif isinstance(statement, s.Loop):
                yield statement.index.name


def _mentions(graph: s.Graph, flow: Flow) -> dict[str, set[str]]:
    """The variables that each block and those it branches to mention."""
    own: dict[str, set[str]] = {}
    for block in graph.blocks:
        used = [uses(statement) for statement in s.walk(block.body)]
        own.setdefault(block.name, set()).update(*(u.reads | u.writes for u in used))
    return {name: set().union(*(own[n] for n in flow.reached_from(name))) for name in own}


class _StatementChecker:
    """Checks statement lists; `branches` collects the blocks they run, with what these see."""

    def __init__(self, names: SymbolTable, report: DiagnosticCollector, passed: frozenset[str]) -> None:
        self.names = names
        self.report = report
        self.passed = passed
        self.branches: list[Scope] = []
        self.operators = catalog()

    def body(self, statements: tuple[s.Statement, ...], scope: Scope) -> None:
        """A list of statements in one pair of braces."""
        for statement in statements:
            if isinstance(statement, s.Assign):
                made = statement.declaration
                if (index := scope.loops.get(made.name)) is not None and _is_own(index, scope):
                    self._hides(made.name, index.span, made.name_span, "temporary")
                loops = {n: i for n, i in scope.loops.items() if n != made.name}
                scope = replace(
                    scope, temporaries={**scope.temporaries, made.name: made}, loops=loops
                )
            else:
                self.statement(statement, scope)

    def statement(self, statement: s.Statement, scope: Scope) -> None:
        match statement:
            case s.OpCall():
                self._call(statement, scope)
            case s.Transfer(source, target):
                self._transfer_source(source, scope)
                self._target(target, scope, part=True)
            case s.Loop():
                self._loop(statement, scope)
            case s.Branch():
                self._branch(statement, scope)
            case s.CacheRead(source, target):
                self._cache(source, "read", scope)
                self._target(target, scope)
            case s.CacheWrite(source, target):
                self._operand(source, scope)
                self._cache(target, "write", scope)
            case s.CacheStep(_, amount, target):
                if amount is not None:
                    self._expression(amount, scope)
                self._counter(statement, target, scope)
            case s.CacheReset(target):
                self._cache(target, "reset", scope)
            case _:
                return  # yield, await and dep are checked with the flow

    # ------------------------------------------------------------ control

    def _loop(self, loop: s.Loop, scope: Scope) -> None:
        self._expression(loop.start, scope)
        self._expression(loop.end, scope)
        name, sizes = loop.index.name, self.names
        hidden = scope.temporaries.get(name) or sizes.variables.get(name)
        if hidden is not None:
            self._hides(name, loop.index.span, hidden.head_span, "variable")
        elif name in sizes.sizes:
            self._hides(name, loop.index.span, sizes.sizes[name].name_span, "size")
        elif name in sizes.extents:
            self._hides(name, loop.index.span, sizes.extents[name].span, "extent")
        elif name in sizes.axes:
            self._hides(name, loop.index.span, None, "size")
        self.body(loop.body, replace(scope, loops={**scope.loops, name: loop.index}))

    def _hides(self, name: str, index: Span, other: Span | None, what: str) -> None:
        notes = [] if other is None else [Note(other, f"the {what}")]
        self.report.error(
            "loop-index-hides", f"loop index '{name}' hides a {what}", index, notes=notes
        )

    def _branch(self, branch: s.Branch, scope: Scope) -> None:
        if (condition := branch.condition) is not None:
            self._condition(condition, scope)
        for target in branch.targets:
            if (block := self.names.blocks.get(target.name)) is not None:
                self.branches.append(replace(scope, block=block, caller=target.span))

    def _condition(self, condition: s.Name, scope: Scope) -> None:
        found = self._variable(condition.name, condition.span, scope)
        if found is None or found.dtype not in dtypes.ALL:
            return
        if found.dtype != "bool" or found.indices is not None:
            self.report.error(
                "branch-condition",
                f"'{found.name}' is no bool scalar",
                condition.span,
                notes=[declared(found)],
            )

    # ------------------------------------------------------------ operators

    def _call(self, call: s.OpCall, scope: Scope) -> None:
        if call.name not in self.operators:
            self.report.add(unknown_operator(call.name, call.name_span))
        for operand in call.operands:
            self._call_operand(operand, scope)
        given: dict[str, s.Keyword] = {}
        for keyword in call.keywords:
            if keyword.key in given:
                self.report.error(
                    "duplicate-setting",
                    f"'{keyword.key}' is given twice",
                    keyword.span,
                    notes=[Note(given[keyword.key].span, "first given here")],
                )
            given.setdefault(keyword.key, keyword)
            if not self._unquoted(call.name, keyword, scope):
                self._setting(keyword.value, scope)
        results: dict[str, s.Access] = {}
        for result in call.results:
            self._target(result, scope)
            if result.name in results:
                self.report.error(
                    "duplicate-result",
                    f"'{result.name}' takes two results of one operator",
                    result.span,
                    notes=[Note(results[result.name].span, "the other")],
                )
            results.setdefault(result.name, result)

    def _call_operand(self, operand: s.Operand, scope: Scope) -> None:
        """A literal, a variable that is read, or a persistent scalar: its value at this point."""
        if not isinstance(operand, s.Access):
            self._literal(operand, scope)
            return
        found = self._lookup(operand.name, scope)
        if found is None or operand.indices is not None or not _persistent_scalar(found):
            self._operand(operand, scope)

    def _literal(self, literal: s.Literal, scope: Scope) -> None:
        """`inf`, `nan`, `true` and `false` are literals, whatever variable is so named."""
        word = literal.span.text.lstrip("- ")
        if (found := self._lookup(word, scope)) is not None:
            self.report.error(
                "literal-name",
                f"'{word}' is a literal here, and a variable is so named",
                literal.span,
                notes=[declared(found)],
                hint="give the variable another name",
            )

    def _setting(self, value: s.Setting | s.Access, scope: Scope) -> None:
        """The value of `key=`: literal, list, expression, element type, or optional operand."""
        match value:
            case s.Access():
                self._operand(value, scope)
            case s.ListOf(items):
                for item in items:
                    self._setting(item, scope)
            case s.Name(name):
                self._named_setting(name, value.span, scope)
            case s.Unary() | s.Binary():
                self._expression(value, scope)

    def _unquoted(self, operator: str, keyword: s.Keyword, scope: Scope) -> bool:
        """A string is written without its quotes, `approx=tanh`; reported."""
        value = keyword.value
        if not isinstance(value, s.Name) or value.name in scope.loops:
            return False
        if self._lookup(value.name, scope) is not None or not takes_string(operator, keyword.key):
            return False
        what, hint = f"'{keyword.key}' takes a string", f'strings have quotes: {keyword.key}="{value.name}"'
        self.report.error("op-setting", what, value.span, hint=hint)
        return True

    def _named_setting(self, name: str, span: Span, scope: Scope) -> None:
        if name in scope.loops:
            return
        found = self._lookup(name, scope)
        if found is None:
            if not (self.names.is_size(name) or name in dtypes.ALL or name in scope.lenient):
                self._unknown_name(name, span, scope, also=dtypes.ALL)
            return
        if not _persistent_scalar(found):
            self._operand(s.Access(name, None, span, span), scope)

    def _operand(self, access: s.Access, scope: Scope) -> None:
        """A variable that is read: not persistent, a pattern's member with all its indices."""
        found = self._variable(access.name, access.name_span, scope)
        if found is not None and found.kind == "persistent":
            self.report.error(
                "persistent-operand",
                f"persistent variable '{found.name}' cannot be used here",
                access.span,
                notes=[declared(found)],
                hint=copied_out(access, found, {*self.names.variables, *scope.temporaries}),
            )
        elif found is not None:
            check_access(access, found, "member", self.report)
        self._indices(access, found, scope)

    def _transfer_source(self, access: s.Access, scope: Scope) -> None:
        """As an operand, or a persistent variable that is no table (SPEC 8.1)."""
        found = self._lookup(access.name, scope)
        plain = found is not None and found.indices is None and access.indices is None
        if not (plain and found is not None and found.kind == "persistent"):
            self._operand(access, scope)

    def _target(self, access: s.Access, scope: Scope, *, part: bool = False) -> None:
        """A variable that is written as a whole, or in part: volatile, or a temporary."""
        found = self._variable(access.name, access.name_span, scope)
        self._indices(access, found, scope)
        if found is None:
            return
        if found.kind not in ("volatile", "temporary"):
            hint = None
            if found.kind == "persistent":
                hint = f"compute into a temporary 't', then 'cache.write t >> {access.span.text};'"
            self.report.error(
                "write-kind",
                f"{found.kind} variable '{found.name}' cannot be written here",
                access.span,
                notes=[declared(found)],
                hint=hint,
            )
        elif found.indices is not None or (access.indices is not None and not part):
            hint = f"write a temporary, then 'transfer t >> {access.span.text};'"
            self.report.error(
                "element-write",
                f"only whole variables can be written here, and '{access.span.text}' is none",
                access.span,
                notes=[declared(found)],
                hint=None if found.indices is not None else hint,
            )

    # ------------------------------------------------------------ cache statements

    def _cache(self, access: s.Access, mode: str, scope: Scope) -> None:
        """The persistent side of `cache.read`, `cache.write` and `cache.reset`."""
        found = self._variable(access.name, access.name_span, scope)
        if found is not None and found.kind != "persistent":
            hint = "'transfer a >> b;' copies any other variable" if mode != "reset" else None
            self._not_persistent(access, found, f"cache.{mode}", hint)
            found = None
        if found is not None:
            check_access(access, found, mode, self.report)
        self._indices(access, found, scope)

    def _not_persistent(
        self, access: s.Access, found: s.Declaration, what: str, hint: str | None
    ) -> None:
        kind = "a temporary" if found.kind == "temporary" else found.kind
        self.report.error(
            "cache-kind",
            f"'{what}' needs a persistent variable, but '{found.name}' is {kind}",
            access.span,
            notes=[declared(found)],
            hint=hint,
        )

    def _counter(self, step: s.CacheStep, access: s.Access, scope: Scope) -> None:
        """The target of `cache.increment` and `cache.decrement`: a numeric persistent scalar, or one
        of a table of them."""
        found = self._variable(access.name, access.name_span, scope)
        self._indices(access, found, scope)
        if found is None:
            return
        dtype = dtypes.ALL.get(found.dtype)
        what = "cache.increment" if step.sign > 0 else "cache.decrement"
        if found.kind != "persistent":
            self._not_persistent(access, found, what, None)
        elif _is_part(access, found):
            self.report.error(
                "not-scalar",
                f"'{what}' needs a scalar, and '{access.span.text}' is none",
                access.span,
                notes=[declared(found)],
            )
        elif dtype is not None and (dtype.packed or not (dtype.is_int or dtype.is_float)):
            self.report.error(
                "counter-dtype",
                f"'{what}' needs a number, but '{found.name}' is {found.dtype}",
                access.span,
                notes=[declared(found)],
            )
        else:
            check_access(access, found, "write", self.report)

    # ------------------------------------------------------------ expressions

    def _indices(self, access: s.Access, found: s.Declaration | None, scope: Scope) -> None:
        """The names in brackets; a slice of a matrix may name its counts."""
        positions = access.indices or ()
        counts: frozenset[str] = frozenset()
        first = len(positions)
        if found is not None and found.kind == "persistent":
            first, counts = _counts(found, positions)
        for i, position in enumerate(positions):
            known = counts if i >= first else frozenset()
            parts = (position.start, position.end) if isinstance(position, s.Slice) else (position,)
            for part in parts:
                if part is not None:
                    self._expression(part, scope, known)

    def _expression(self, expr: s.Expr, scope: Scope, counts: Collection[str] = ()) -> None:
        """An integer expression: its names; those in `counts` mean what they say."""
        for name in names_in(expr):
            if name.name not in counts:
                self._integer(name, scope)

    def _integer(self, name: s.Name, scope: Scope) -> None:
        """A name in an expression: loop index, else integer scalar, else size."""
        if name.name in scope.loops:
            return
        found = self._lookup(name.name, scope)
        if found is None:
            if not self.names.is_size(name.name) and name.name not in scope.lenient:
                self._unknown_name(name.name, name.span, scope)
            return
        dtype = dtypes.ALL.get(found.dtype)
        if found.indices is not None:
            self.report.error(
                "not-scalar", f"'{name.name}' is no scalar", name.span, notes=[declared(found)]
            )
        elif dtype is not None and not dtype.is_int:
            self.report.error(
                "index-dtype",
                f"'{name.name}' is {found.dtype}, and only integers may stand here",
                name.span,
                notes=[declared(found)],
            )

    # ------------------------------------------------------------ names

    def _lookup(self, name: str, scope: Scope) -> s.Declaration | None:
        return scope.temporaries.get(name) or self.names.variables.get(name)

    def _variable(self, name: str, span: Span, scope: Scope) -> s.Declaration | None:
        """The variable of this name; an error and None where there is none."""
        found = self._lookup(name, scope)
        if found is not None or (name in scope.lenient and name not in scope.loops):
            return found
        visible = [*scope.temporaries, *self.names.variables]
        notes, hint = [], did_you_mean(name, visible)
        message = f"unknown variable '{name}'"
        if scope.caller is not None and name in self.passed:
            notes, hint = [Note(scope.caller, "not visible at this branch")], _PASSED
        if name in scope.loops:
            message, hint = f"'{name}' is a loop index, not a variable", None
            notes = [Note(scope.loops[name].span, "the loop index")]
        elif (elsewhere := _temporary(scope.block, name)) is not None:
            message = f"temporary '{name}' is not visible here"
            notes, hint = [Note(elsewhere.head_span, "assigned here")], None
        elif self.names.is_size(name):
            message = f"'{name}' is a size, not a variable"
        self.report.error("unknown-variable", message, span, notes=notes, hint=hint)
        return None

    def _unknown_name(
        self, name: str, span: Span, scope: Scope, also: Collection[str] = ()
    ) -> None:
        names = self.names
        visible = [*scope.loops, *scope.temporaries, *names.variables, *names.sizes]
        hint = did_you_mean(name, [*visible, *names.axes, *names.known, *also])
        notes = []
        if scope.caller is not None and name in self.passed:
            notes, hint = [Note(scope.caller, "not visible at this branch")], _PASSED
        self.report.error(
            "unknown-name",
            f"unknown name '{name}'",
            span,
            "no loop index, scalar variable or size",
            notes=notes,
            hint=hint or f"a size is given by a 'sizes' section, the model, or --set {name}=…",
        )


def _persistent_scalar(found: s.Declaration) -> bool:
    """A persistent variable of one element that is no table: it means its value at that point."""
    one = all(isinstance(dim, s.Int) and dim.value == 1 for dim in found.dims)
    return found.kind == "persistent" and one and found.indices is None


def _counts(found: s.Declaration, positions: tuple[s.Index, ...]) -> tuple[int, frozenset[str]]:
    """Where the auto-dim positions of an access start, and the counts that may be named there."""
    first = len(table_indices(found))
    sliced = any(isinstance(position, s.Slice) for position in positions[first:])
    return first, frozenset(auto_indices(found)) if sliced else frozenset()


def _is_part(access: s.Access, found: s.Declaration) -> bool:
    """What is named is a matrix that grows, or several entries of a table."""
    sliced = any(isinstance(i, s.Slice) for i in access.indices or ())
    return bool(auto_indices(found)) or sliced or access.indices == ()


def _is_own(index: s.Name, scope: Scope) -> bool:
    """The loop is in the block that is checked, not in a caller."""
    return any(isinstance(x, s.Loop) and x.index is index for x in s.walk(scope.block.body))


def _temporary(block: s.Block, name: str) -> s.Declaration | None:
    """The temporary of this name that the block assigns somewhere."""
    for statement in s.walk(block.body):
        if isinstance(statement, s.Assign) and statement.declaration.name == name:
            return statement.declaration
    return None
