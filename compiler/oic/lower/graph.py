"""Syntax tree to GRAPH: one function an entry, every shape and dtype decided.

`lower_graph` needs a graph that `check` has looked at; it reports what only types can tell
(operators, shapes, dtypes, model data) and skips what `check` refused already.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial

from oic.check.binding import Binding
from oic.check.resolved import BlockInstance, effects
from oic.check.symbols import Variable
from oic.diagnostics import Diagnostic
from oic.ir import dims
from oic.ir.control import Func, Return
from oic.ir.core import Value
from oic.ir.dims import Dim
from oic.ir.module import Module
from oic.ir.state import State
from oic.ir.truncation import truncation
from oic.ir.types import TensorType
from oic.lower.builder import Builder
from oic.lower.capacity import state_type
from oic.lower.control import lower_block
from oic.syntax import tree as s


def lower_graph(
    binding: Binding, capacity: Mapping[str, int], fetch: Collection[str] | None = None, *, hosted: bool = True
) -> tuple[Module, list[Diagnostic]]:
    """The GRAPH module of a bound graph, and what was found wrong on the way.

    capacity   the most an index may reach, by index or `variable.index` (`--max`)
    fetch      outputs wanted, by name; None: all
    hosted     the target can reserve address space
    """
    graph = binding.resolved.graph
    module = Module(graph.name, source=graph.source)
    _check_capacity(binding, capacity)
    states = {}
    for variable in binding.variables:
        if variable.kind == "persistent":
            type_ = state_type(binding, variable, capacity, hosted=hosted)
            span = variable.declaration.head_span
            state = State(variable.name, type_, variable.first, hint=variable.name, span=span)
            module.top.append(state)
            states[variable] = state.result
    refusals: dict[object, Diagnostic] = {}
    make = partial(Builder, module=module, states=states, constants={}, diagnostics=refusals, counter={})
    builders = [_lower_entry(binding, fetch, instance, make) for instance in binding.resolved.entries]
    for state in module.keeps_touched():  # passes may find that no step gets there
        state.forgets = True
    found = list(refusals.values())
    wrong = any(d.severity == "error" for d in (*found, *binding.report.found.values()))
    silent = any(f.silent for f in builders)
    assert wrong or binding.refused or not silent, "something was left out, and nothing was said"
    if not wrong:
        module.truncation = truncation(module)
    return module, found


def _pinned(binding: Binding, block: s.Block) -> dict[str, int]:
    """The extents that `@entry(N=value)` pins; none where the value is refused, which is reported."""
    entry, extents = s.attribute(block, "entry"), binding.extents
    pins = entry.args if entry and not binding.is_refused(entry.span) else ()
    known = ((a.key, a.value) for a in pins if a.key in extents and isinstance(a.value, s.Expr))
    found = ((key, binding.bound(value, f"'{key}'", 0, extents[key].maximum)) for key, value in known)
    return {key: value for key, value in found if value is not None}


def _check_capacity(binding: Binding, capacity: Mapping[str, int]) -> None:
    known: dict[str, bool] = {}  # whether any index of the name is not `@fixed`
    for v in binding.variables:
        for i in v.indices if v.kind == "persistent" else ():
            for key in (i, f"{v.name}.{i}"):
                known[key] = known.get(key, False) or v.fixed(i) is None
    for key, size in capacity.items():
        if key not in known:
            listed = ", ".join(sorted(known)) or "none"
            what = f"--max {key}={size} names no index of a table"
            binding.report.add(Diagnostic("capacity-unknown-index", what, hint=f"known: {listed}"))
        elif size < 1:
            binding.report.add(Diagnostic("capacity-value", f"--max {key}={size} is not a positive number"))
        elif not known[key]:
            what = f"--max {key}={size} bounds nothing: every index of that name is @fixed"
            binding.report.add(Diagnostic("capacity-value", what, hint="change @fixed, or the size in it by --set"))


def _lower_entry(
    binding: Binding, fetch: Collection[str] | None, instance: BlockInstance, make: Callable[..., Builder]
) -> Builder:
    """Append the function of one entry to the module; `make` gives the builder what all entries share."""
    block, uses = instance.block, effects(instance)
    pinned = _pinned(binding, block)
    read, written = set(uses.reads), {variable for variable, _ in uses.writes}
    inputs = [v for v in binding.variables if v.kind == "dynamic" and v in read]
    bound = {axis.name for v in inputs for axis in v.axes} | pinned.keys()
    own = replace(binding, pinned=pinned, unbound=frozenset(binding.extents.keys() - bound))
    f = make(binding=own, instance=instance)
    body = f.block
    for variable in inputs:
        shape: tuple[Dim | None, ...] = tuple(dims.maximum(d) for d in variable.dims if d is not None)
        with f.refusing():
            shape = f.dims(variable)
        type_ = TensorType(variable.dtype, tuple(d for d in shape if d is not None))
        f.inputs[variable] = body.argument(type_, variable.name)
    lower_block(f, instance)
    outputs, values = _outputs(f, fetch, written)
    body.append(Return(values))
    body.set_ops([*f.prologue.ops, *body.ops])
    names = [v.name for v in inputs]
    f.module.top.append(Func(block.name, names, outputs, pinned, body, span=block.name_span))
    return f


def _outputs(f: Builder, fetch: Collection[str] | None, written: Collection[Variable]) -> tuple[list[str], list[Value]]:
    """The volatile variables an entry writes, with what they hold at its end."""
    names: list[str] = []
    values: list[Value] = []
    for variable in f.binding.variables:
        if variable.kind != "volatile" or variable not in written or variable.family:
            continue
        if fetch is not None and variable.name not in fetch:
            continue
        with f.refusing():
            if variable not in f.env:
                f.env[variable] = f.start(variable)
            f.zeros.clear()  # an output that nothing was written to is no read
            values.append(f.held(variable, variable.declaration.name_span))
            names.append(variable.name)
    return names, values
