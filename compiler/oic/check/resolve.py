"""Names are resolved, and what each statement reads and writes is checked (SPEC sections 6 to 8).

The only walk that looks names up.  What it finds for every use of a name, it notes in the `BlockInstance`
of the block; see `check.resolved` for why a block may have several.
"""

import re
from collections import ChainMap, deque
from collections.abc import Callable, Collection, Iterable
from functools import cached_property
from itertools import chain
from typing import Any

from oic import dtypes
from oic.check import kinds, resolved
from oic.check.declarations import check_declaration
from oic.check.flow import Flow, check_branch, check_dead, is_entry
from oic.check.operator_names import unknown_operator
from oic.check.report import DiagnosticCollector
from oic.check.resolved import BlockInstance, Resolved, Uses
from oic.check.symbols import Count, LoopIndex, Size, SymbolTable, Variable, in_order
from oic.diagnostics import MOST_RENDERED, Note, Span, did_you_mean
from oic.operators import catalog
from oic.operators.base import from_source
from oic.syntax import tree as s

_WORDS = (*dtypes.ALL, "true", "false")  # beside names, that a setting may be
_PASSED = "a block sees loop indices and temporaries of the braces that branch to it"
_WORD = re.compile(r"\w+")


Scope = dict[str, Variable | LoopIndex]
"""What is visible at a statement, beside the variables of the sections: temporaries and loop indices."""


class Resolver:
    """Resolves every block, from each place that runs it."""

    def __init__(self, graph: s.Graph, symbols: SymbolTable, flow: Flow, report: DiagnosticCollector) -> None:
        self.graph, self.symbols, self.flow, self.report = graph, symbols, flow, report
        self.operators = catalog()
        self.instances: dict[str, list[BlockInstance]] = {name: [] for name in symbols.blocks}
        self.sizes: set[str] = set()
        self._known: dict[object, BlockInstance] = {}
        self._waiting: deque[tuple[BlockInstance, Scope]] = deque()
        self._temporaries: dict[int, Variable] = {}  # by declaration
        self._indices: dict[object, LoopIndex] = {}
        self._left = resolved.MOST_STATEMENTS

    def run(self) -> Resolved:
        """Resolve the blocks that run by themselves, those that nothing runs, and all that these branch to."""
        entries = tuple(self._begin(block) for block in self.flow.entries)
        self.consumers = {name: self._begin(self.symbols.blocks[name]) for name in self.flow.consumers}
        for block in self.flow.unreached:
            self._begin(block, lenient=True)
        while self._waiting:
            self.instance, scope = self._waiting.popleft()
            self._outer = set(scope.values())
            block = self.instance.block
            ends = (s.Return, s.Yield) if block.name in self.consumers else (s.Return,)
            self._body(block.body, scope, ends)
        consumers = tuple(self.consumers.values())
        return Resolved(self.graph, self.symbols, entries, consumers, self.instances, frozenset(self.sizes))

    # ------------------------------------------------------------ blocks

    def _begin(self, block: s.Block, *, lenient: bool = False) -> BlockInstance:
        """The instance of a block that is shown nothing."""
        return self._made((block.name, lenient), BlockInstance(block, None, 0, lenient), {})

    def _made(self, key: object, instance: BlockInstance, scope: Scope) -> BlockInstance:
        self._known[key] = instance
        self.instances[instance.block.name].append(instance)
        self._waiting.append((instance, scope))
        return instance

    def _branched(self, target: s.Name, scope: Scope) -> BlockInstance | None:
        """The instance of a block that is branched to; None if there is no such block."""
        check_branch(target, self.symbols, self.report)
        block = self.symbols.blocks.get(target.name)
        if block is None or is_entry(block):
            return None
        lenient, mentioned = self.instance.lenient, self._mentioned.get(target.name, self.symbols.passed)
        shown = {name: scope[name] for name in sorted(scope.keys() & mentioned)}
        key = (target.name, lenient, *shown.values())
        if key in self._known:
            return self._known[key]
        if self.instance.depth == resolved.DEEPEST_RUN:  # lowering refuses what runs there
            return None
        self._left -= len(self.symbols.bodies[target.name])
        if self._left >= 0:
            return self._made(key, BlockInstance(block, target.span, self.instance.depth + 1, lenient), shown)
        if not lenient:
            self.report.add(resolved.program_size(self.graph))
        return None

    @cached_property
    def _mentioned(self) -> dict[str, frozenset[str]]:
        """Temporaries and loop indices that a block and those it branches to may mention, by their text.

        Any may be, where blocks run one another without end or too deep.
        """
        found: dict[str, frozenset[str]] = {}
        depths: dict[str, int] = {}
        for name in in_order(self.flow.branches):
            targets, passed = self.flow.branches[name], self.symbols.passed
            depths[name] = 1 + max((depths[target] for target in targets), default=0)
            if depths[name] <= resolved.DEEPEST_RUN:
                words = passed.intersection(_WORD.findall(self.symbols.blocks[name].span.text))
                found[name] = words.union(*(found[target] for target in targets))
        return found

    def _body(
        self, statements: tuple[s.SourceStatement, ...], scope: Scope, ends: tuple[type, ...] = (s.Return,)
    ) -> None:
        """A list of statements in one pair of braces; nothing runs after one of the kinds in `ends`."""
        check_dead(statements, ends, self.report)
        for statement in statements:
            self.uses = self.instance.uses[id(statement)] = Uses()
            self._statement(statement, scope)

    def _statement(self, statement: s.SourceStatement, scope: Scope) -> None:
        """The names in a statement; `return`, `barrier` and `dep` have none that are looked up."""
        match statement:
            case s.Assign(declaration):
                self._assign(declaration, scope)
            case s.OpCall():
                self._call(statement, scope)
            case s.Transfer(source, target):
                self._operand(source, scope, also=lambda found: found.kind == "persistent" and not found.indexed)
                self._target(target, scope, part=True)
            case s.Loop():
                self._loop(statement, scope)
            case s.Branch(condition, targets):
                if condition is not None and (found := self._read(condition, scope)) is not None:
                    kinds.check_condition(condition, found, self.report)
                self.instance.runs[id(statement)] = tuple(self._branched(t, scope) for t in targets)
            case s.HandOver():
                self._hand_over(statement)
            case s.CacheRead(source, target):
                self._cache(statement.word, source, scope)
                self._target(target, scope)
            case s.CacheWrite(source, target):
                self._operand(source, scope)
                self._cache(statement.word, target, scope)
            case s.CacheStep(_, amount, target):
                if amount is not None:
                    self._expression(amount, scope)
                self._cache(statement.word, target, scope)
            case s.CacheReset(target):
                self._cache(statement.word, target, scope)

    # ------------------------------------------------------------ control

    def _assign(self, made: s.Declaration, scope: Scope) -> None:
        index = scope.get(made.name)
        if isinstance(index, LoopIndex) and index not in self._outer:
            self._hides(made.name, index.loop.index.span, made.name_span, "temporary")
        if id(made) not in self._temporaries:
            self._temporaries[id(made)] = self._declare(made)
        scope[made.name] = self.instance.meanings[id(made)] = self._temporaries[id(made)]
        for name in s.names_in(made.dims):
            self._size(name)

    def _declare(self, made: s.Declaration) -> Variable:
        """A temporary: its name is no variable's or block's, and unique in its block."""
        found = Variable.of(made)
        check_declaration(found, self.symbols, self.report)
        variable, block = self.symbols.variables.get(made.name), self.symbols.blocks.get(made.name)
        taken = variable.declaration if variable is not None else block
        first = taken or self.symbols.assigned[self.instance.block.name][made.name]
        self.report.each_once([(made.name, first.name_span), (made.name, made.name_span)])
        return found

    def _loop(self, loop: s.Loop, scope: Scope) -> None:
        for bound in (loop.start, loop.end):
            self._expression(bound, scope)
        name, symbols = loop.index.name, self.symbols
        if (hidden := self._lookup(name, scope)) is not None:
            self._hides(name, loop.index.span, hidden.declaration.head_span, "variable")
        elif name in symbols.sizes:
            self._hides(name, loop.index.span, symbols.sizes[name].name_span, "size")
        elif name in symbols.extents:
            self._hides(name, loop.index.span, symbols.extents[name].span, "extent")
        elif name in symbols.axes:
            self._hides(name, loop.index.span, None, "size")
        index = self.instance.meanings[id(loop)] = self._index(loop)
        self._body(loop.body, scope | {name: index})

    def _index(self, loop: s.Loop) -> LoopIndex:
        """The index of a loop: one for all instances in which the names in its bounds mean the same."""
        meanings = self.instance.meanings
        key = (id(loop), *(meanings.get(id(name)) for name in s.names_in((loop.start, loop.end))))
        return self._indices.setdefault(key, LoopIndex(loop, meanings))

    def _hides(self, name: str, index: Span, other: Span | None, what: str) -> None:
        notes = [] if other is None else [Note(other, f"the {what}")]
        self.report.error("loop-index-hides", f"loop index '{name}' hides a {what}", index, notes=notes)

    def _hand_over(self, statement: s.HandOver) -> None:
        """The variables given away or taken; a `yield` of an entry runs the consumers of just these."""
        for name in statement.names:
            if (found := self.symbols.variables.get(name.name)) is not None:
                self.instance.meanings[id(name)] = found
        if isinstance(statement, s.Yield) and is_entry(self.instance.block):
            running = (self.consumers[name] for name, taken in self.flow.consumers.items() if taken <= statement.named)
            self.instance.runs[id(statement)] = tuple(running)

    # ------------------------------------------------------------ operators

    def _call(self, call: s.OpCall, scope: Scope) -> None:
        operator = self.operators.get(call.name)
        if operator is not None:
            self.instance.meanings[id(call)] = operator
        else:
            self.report.add(unknown_operator(call.name, call.name_span))
        for operand in call.operands:
            if isinstance(operand, s.Access):
                self._operand(operand, scope, also=lambda found: found.scalar_state)
            else:
                self._literal(operand, scope)
        named = [(keyword.key, keyword.span) for keyword in call.keywords]
        self.report.each_once(named, "duplicate-setting", "'{}' is given twice", "first given here")
        for keyword in call.keywords:
            field = operator.fields.get(from_source(operator, keyword.key)) if operator is not None else None
            if field is None or field.annotation != "str":
                self._setting(keyword.value, scope, tensor=field is None or field.kind != "attribute")
        for result in call.results:
            self._target(result, scope)
        named = [(result.name, result.span) for result in call.results]
        self.report.each_once(named, "duplicate-result", "'{}' takes two results of one operator", "the other")

    def _literal(self, literal: s.Literal, scope: Scope) -> None:
        """`inf`, `nan`, `true` and `false` are literals, whatever variable is so named."""
        word = literal.span.text.lstrip("- ")
        if (found := self._lookup(word, scope)) is not None:
            what, hint = f"'{word}' is a literal here, and a variable is so named", "give the variable another name"
            self.report.error("literal-name", what, literal.span, about=found, hint=hint)

    def _setting(self, value: s.Setting | s.Access, scope: Scope, *, tensor: bool = False) -> None:
        """The value of `key=`; where it may be a `tensor`, a name is a variable of any shape before it is a size."""
        match value:
            case s.Access():
                self._operand(value, scope)
            case s.ListOf(items):
                for item in items:
                    self._setting(item, scope)
            case s.Name():
                index = isinstance(scope.get(value.name), LoopIndex)
                found = self._lookup(value.name, scope) if tensor and not index else None
                found = self._integer(value, scope, _WORDS) if found is None else self._noted(value, found)
                if found is not None and not found.scalar_state:
                    self._check_operand(s.Access(value.name, None, value.span, span=value.span), found, scope)
            case s.Unary() | s.Binary():
                self._expression(value, scope)

    def _operand(self, access: s.Access, scope: Scope, *, also: Callable[[Variable], bool] | None = None) -> None:
        """A variable that is read: not persistent, unless `also` lets it be, by its name alone, for its value now."""
        found = self._read(access, scope)
        if found is None or access.indices is not None or also is None or not also(found):
            self._check_operand(access, found, scope)

    def _check_operand(self, access: s.Access, found: Variable | None, scope: Scope) -> None:
        if found is not None:
            kinds.check_operand(access, found, ChainMap[str, Any](scope, self.symbols.variables), self.report)
        self._positions(access, found, scope)

    def _target(self, access: s.Access, scope: Scope, *, part: bool = False) -> None:
        found = self._written(access, scope)
        if found is not None:
            kinds.check_target(access, found, part, self.report)

    # ------------------------------------------------------------ cache statements

    def _cache(self, word: str, access: s.Access, scope: Scope) -> None:
        """The persistent side of a `cache.` statement."""
        if word == "cache.read":
            found = self._read(access, scope)
            self._positions(access, found, scope)
        else:
            found = self._written(access, scope)
        if found is None or not kinds.check_cache(word, access, found, self.report):
            return
        if word != "cache.reset" and not self.instance.lenient:
            found.accesses.append((access, word != "cache.read", self.instance.meanings))

    # ------------------------------------------------------------ expressions

    def _positions(self, access: s.Access, found: Variable | None, scope: Scope) -> None:
        """The names in brackets; a slice of a matrix may name its counts."""
        positions = access.indices or ()
        first, counts = _counts(found, positions) if found is not None else (len(positions), ())
        for i, position in enumerate(positions):
            parts = (position.start, position.end) if isinstance(position, s.Slice) else (position,)
            for part in parts:
                if part is not None:
                    self._expression(part, scope, counts if i >= first else ())

    def _expression(self, expr: s.Expr, scope: Scope, counts: tuple[str, ...] = ()) -> None:
        """An integer expression: its names; those in `counts` mean what they say."""
        for name in s.names_in(expr):
            if name.name in counts:
                self.instance.meanings[id(name)] = Count(counts.index(name.name))
            elif (found := self._integer(name, scope)) is not None:
                kinds.check_integer(name, found, self.report)

    def _integer(self, name: s.Name, scope: Scope, also: Collection[str] = ()) -> Variable | None:
        """A name in an expression: loop index, else scalar variable, which is returned, else size, or one of `also`.

        A variable that is no scalar is returned where no size has its name: what is wrong is said of it.
        """
        found, size = self._lookup(name.name, scope), self.symbols.is_size(name.name)
        if isinstance(index := scope.get(name.name), LoopIndex):
            self.instance.meanings[id(name)] = index
        elif found is not None and (found.single or not size):
            return self._noted(name, found)
        elif size:
            self.instance.meanings[id(name)] = Size(name.name)
            self._size(name)
        elif name.name not in also and not self._may_be_passed(name.name):
            self._unknown_name(name, scope, also)
        return None

    def _size(self, name: s.Name) -> None:
        self.sizes.add(name.name)
        self.uses.reads.append(Size(name.name))

    # ------------------------------------------------------------ names

    def _lookup(self, name: str, scope: Scope) -> Variable | None:
        found = scope.get(name)
        return found if isinstance(found, Variable) else self.symbols.variables.get(name)

    def _noted(self, node: s.Name | s.Access, found: Variable) -> Variable:
        """A use that reads its variable."""
        self.instance.meanings[id(node)] = found
        self.uses.reads.append(found)
        return found

    def _read(self, node: s.Name | s.Access, scope: Scope) -> Variable | None:
        """The variable that is read; an error and None where there is none."""
        found = self._variable(node, scope)
        return self._noted(node, found) if found is not None else None

    def _written(self, access: s.Access, scope: Scope) -> Variable | None:
        """The variable that is written, and the names in its brackets; as `_read`."""
        found = self._variable(access, scope)
        if found is not None:
            self.instance.meanings[id(access)] = found
            self.uses.writes.append((found, access))
        self._positions(access, found, scope)
        return found

    def _may_be_passed(self, name: str) -> bool:
        """Nothing is known of who runs the block, and the name may be one that is visible there."""
        return self.instance.lenient and name in self.symbols.passed

    def _variable(self, node: s.Name | s.Access, scope: Scope) -> Variable | None:
        """The variable of this name; an error and None where there is none."""
        name, index, found = node.name, scope.get(node.name), self._lookup(node.name, scope)
        if found is not None or (self._may_be_passed(name) and index is None):
            return found
        notes, hint = self._not_visible(name)
        temporaries = (n for n, meant in scope.items() if isinstance(meant, Variable))
        hint = hint or self._meant(name, temporaries, self.symbols.variables)
        message = f"unknown variable '{name}'"
        if isinstance(index, LoopIndex):
            message, hint = f"'{name}' is a loop index, not a variable", None
            notes = [Note(index.loop.index.span, "the loop index")]
        elif (elsewhere := self.symbols.assigned[self.instance.block.name].get(name)) is not None:
            message = f"temporary '{name}' is not visible here"
            notes, hint = [Note(elsewhere.head_span, "assigned here")], None
        elif self.symbols.is_size(name):
            message = f"'{name}' is a size, not a variable"
        if index is not None or self.symbols.is_size(name):
            hint = f"its value in a tensor, i32[1]: 'op iota(shape=[1], start={name}) >> v;'"
        span = node.name_span if isinstance(node, s.Access) else node.span
        self.report.error("unknown-variable", message, span, notes=notes, hint=hint)
        return None

    def _meant(self, name: str, *known: Iterable[str]) -> str | None:
        """A near name, as a hint; after so many mistakes none is looked for."""
        return did_you_mean(name, chain(*known)) if len(self.report.found) < MOST_RENDERED else None

    def _not_visible(self, name: str) -> tuple[list[Note], str | None]:
        """Notes and a hint if the block is branched to, and other branches may show it this name."""
        if self.instance.caller is None or name not in self.symbols.passed:
            return [], None
        return [Note(self.instance.caller, "not visible at this branch")], _PASSED

    def _unknown_name(self, name: s.Name, scope: Scope, also: Collection[str]) -> None:
        symbols = self.symbols
        visible = scope, symbols.variables, symbols.sizes
        notes, hint = self._not_visible(name.name)
        hint = hint or self._meant(name.name, *visible, symbols.axes, symbols.known, also)
        hint = hint or f"a size is given by a 'sizes' section, the model, or --set {name.name}=…"
        what, label = f"unknown name '{name.name}'", "no loop index, scalar variable or size"
        self.report.error("unknown-name", what, name.span, label, notes=notes, hint=hint)


def _counts(found: Variable, positions: tuple[s.Index, ...]) -> tuple[int, tuple[str, ...]]:
    """Where the auto-dim positions of an access start, and the counts that may be named there."""
    if found.kind != "persistent":
        return len(positions), ()
    first = len(found.table)
    sliced = any(isinstance(position, s.Slice) for position in positions[first:])
    return first, found.grows if sliced else ()
