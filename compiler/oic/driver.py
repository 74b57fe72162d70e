"""The whole compiler on one page: parse, check, lower, passes, plan, emit, build.

`oic check` needs only `syntax`, `check` and `lower`, so all else is imported when it runs.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from oic import dtypes
from oic.check.bind import bind
from oic.check.binding import Binding
from oic.check.check import check, check_fetch, check_sizes
from oic.check.model_data import data_of
from oic.check.resolved import effects
from oic.check.symbols import Variable
from oic.collector import uncollected
from oic.diagnostics import Diagnostic, OicError, Span
from oic.dtypes import Array
from oic.ir.members import Members
from oic.ir.module import Module
from oic.kernels.targets import NATIVE, TARGETS, Target
from oic.lower.graph import lower_graph
from oic.model import Model
from oic.operators.late import LatePlace, late_places, overtaken
from oic.session.interface import Interface, SessionVariable, interface
from oic.syntax import tree as syntax

if TYPE_CHECKING:
    from oic.passes.compute_constants import Computer
    from oic.passes.pipeline import Step
    from oic.passes.store_weights import Decision

MANY = 1024  # elements that an operator of constants alone takes or makes, from which on a warning says so
Repeated = tuple[Span | None, str, int]
"""An operator: where it is, its name, the elements of its largest tensor."""


@dataclass(frozen=True)
class Settings:
    """What a user decides of a compilation.

    sizes      sizevars (`--set`)
    capacity   the most an index may reach, by index or `variable.index` (`--max`)
    fetch      outputs wanted; None: all
    target     the machine that kernels are chosen for, and whether tables without a bound may reserve address space
    reuse      buffers that are never live together share memory
    threads    consumers of a `yield` run on so many at once; 1: in order (`--threads`)
    weights    what constants are stored as (`passes.store_weights`, `--weights`); "": as declared
    unbounded  tables that nothing bounds are planned whatever the target
    verified   check the invariants of the IR after every pass
    computer   computes at build what only C may (`passes.compute_constants`); None: every step does
    """

    sizes: Mapping[str, int] = field(default_factory=dict)
    capacity: Mapping[str, int] = field(default_factory=dict)
    fetch: Collection[str] | None = None
    target: Target = TARGETS["portable"]
    reuse: bool = True
    threads: int = 1
    weights: str = ""
    unbounded: bool = False
    verified: bool = False
    computer: "Computer | None" = None


@dataclass
class Program:
    """A checked graph and its GRAPH module; `planned` is what code is made of.

    stored    what became of constants that a rule of `--weights` is about
    repeated  what of constants alone is computed in every step of `planned`, once that is made
    """

    graph: syntax.Graph
    model: Model | None
    settings: Settings
    binding: Binding
    module: Module
    warnings: list[Diagnostic]
    stored: "list[Decision]" = field(default_factory=list)
    repeated: list[Repeated] = field(default_factory=list)

    @cached_property
    def planned(self) -> Module:
        """The PLANNED module, made when first asked for."""
        from oic.passes.compute_constants import left_over

        with uncollected():
            for step, module in lowered(self.module, self.settings):
                if step.name == "broadcast":  # before it is fused with what is not of constants
                    self.repeated = [(op.span, op.name, n) for op, n in left_over(module) if n >= MANY]
        return module

    @cached_property
    def overtaken(self) -> list[LatePlace]:
        """What may refuse in C later than in the source."""
        return overtaken(self.planned)

    def compiled(self) -> tuple[Module, list[LatePlace]]:
        """What C is made of, and what may refuse there later than in the source."""
        return self.planned, self.overtaken


@uncollected()
def compile_graph(graph: syntax.Graph, model: Model | None, settings: Settings) -> Program:
    """Check a graph and lower it to GRAPH.  Raises OicError with everything that is wrong."""
    given = dict(model.sizevars) if model else {}
    resolved = check(graph, [*settings.sizes, *given])
    resolved.diagnostics.extend(check_sizes(resolved, settings.sizes, given))
    resolved.diagnostics.extend(check_fetch(resolved, settings.fetch))
    binding = bind(resolved, model, settings.sizes)
    hosted = settings.target.hosted or settings.unbounded
    module, more = lower_graph(binding, settings.capacity, settings.fetch, hosted=hosted)
    found = _once([*resolved.diagnostics, *binding.report.found.values(), *more])
    if any(d.severity == "error" for d in found):
        raise OicError(found)
    stored = _stored(module, settings)
    if settings.verified:
        from oic.memory.verify import verify

        verify(module)
    return Program(graph, model, settings, binding, module, found, stored)


def _stored(module: Module, settings: Settings) -> "list[Decision]":
    """Give constants the storage that the settings say, and products the bounds of the target's numerics.

    This is no pass: passes keep what a graph computes, and the reference computes with what is stored here.
    """
    native = settings.target.numerics == NATIVE
    stored = bool(settings.weights) or any(isinstance(v, Members) and v.storage for v in module.weights.values())
    if not stored and not native:
        return []
    from oic.passes.select_kernels import settle_native
    from oic.passes.select_members import select_members
    from oic.passes.store_weights import store_weights
    from oic.passes.whole_products import whole_products

    select_members(module)  # of which each is a matrix
    whole_products(module)  # matrices that are cut have one storage
    decisions = store_weights(module, settings.weights) if stored else []
    if native:
        settle_native(module)
    return decisions


def late_warnings(program: Program) -> list[Diagnostic]:
    """What is said of refusals after an effect, which leave the state changed (SPEC, 8.6)."""
    hint = "after it steps are OIC_ERR_STATE until 'reset' or 'load'"
    found = ((span, f"a refusal about '{name}' leaves state changed") for span, name in late_places(program.planned))
    return [Diagnostic("late-refusal", what, span, hint=hint, severity="warning") for span, what in found]


def work_warnings(program: Program) -> list[Diagnostic]:
    """What is said of work that is the same in every step of the planned module, which was made before."""
    hint = "give the result as a constant: a build computes what is small, or no larger than what it is made of, in C"
    what = "of constants alone is computed in every step"
    found = ((span, f"'{name}' {what}: {n:,} elements") for span, name, n in program.repeated)
    return [Diagnostic("constant-work", what, span, hint=hint, severity="warning") for span, what in found]


def interface_of(program: Program) -> Interface:
    """What a session of the program may insert and fetch."""
    binding = program.binding
    fetch, entries = program.settings.fetch, binding.resolved.entries
    outputs = {v.name for e in entries for v, _ in effects(e).writes}
    dropped = outputs.difference(outputs if fetch is None else fetch)
    found = [shown for variable in binding.variables for shown in _fetchables(program, variable, dropped)]
    blocks = [(b.name, b.span) for b in program.graph.blocks]
    statements = [s.shown for b in program.graph.blocks for s in syntax.walk(b.body)]
    return interface(program.module, found, blocks, statements)


def _fetchables(program: Program, variable: Variable, dropped: Collection[str]) -> list[SessionVariable]:
    """The variable as sessions see it; a pattern as its members, `W[1]`.

    dropped   outputs that are not asked for
    """
    data = program.module.weights.get(variable.name)
    stored = data is not None and data.dtype == np.float32  # in other bits than it was declared, too

    def values(*member: int) -> Array:
        whole = np.asarray(data) if stored else data_of(program.binding, variable)
        return np.asarray(whole[variable.places.get(member, member)])

    name, kind, span = variable.name, variable.kind, variable.declaration.head_span
    dtype = dtypes.f32 if stored else variable.dtype
    if variable.family and not variable.stacked:
        names = {f"{name}[{','.join(map(str, key))}]": partial(values, *key) for key in sorted(variable.members)}
        return [SessionVariable(shown, kind, dtype, variable.dims, span, start) for shown, start in names.items()]
    starts = kind == "constant" or (kind == "volatile" and name not in dropped)
    return [SessionVariable(name, kind, dtype, variable.counts + variable.dims, span, values if starts else None)]


def lowered(
    module: Module, settings: Settings, only: Collection[str] | None = None
) -> "Iterator[tuple[Step, Module]]":
    """Run the pipeline on a copy of a module: that copy after each pass, which the next one changes.

    only   names of the passes to run; None: all
    """
    from oic.memory.verify import verify
    from oic.passes.pipeline import PIPELINE

    module = module.clone()
    for step in PIPELINE:
        if (only is not None and step.name not in only) or (step.alone and settings.threads > 1):
            continue
        with uncollected():
            step.run(module, **{name: getattr(settings, name) for name in step.takes})
        if settings.verified:
            verify(module)
        yield step, module


def _once(found: list[Diagnostic]) -> list[Diagnostic]:
    """Diagnostics in source order, each once; of a size without value, or a variable that is no integer, the first."""
    kept: dict[tuple[object, ...], Diagnostic] = {}
    for d in sorted(found, key=lambda d: d.span.start if d.span else -1):
        place: object = (d.span.start, d.span.end) if d.span else None
        if d.slug in ("size-missing", "index-dtype"):
            place = d.notes if d.slug == "index-dtype" else None
        kept.setdefault((d.slug, place, d.message), d)
    return list(kept.values())
