"""Declarations given their meaning: sizes, extents, model data.

Sizes come from `--set`, the `sizes` section, the model and, last, from the axes of bound tensors (SPEC, section 3).
"""

from collections.abc import Mapping

from oic.check.binding import Binding, check_bytes
from oic.check.model_data import axes, check_data, find_data, tensors_of, warn_of_zeros
from oic.check.resolved import Resolved
from oic.check.sizes import size_values
from oic.check.symbols import Variable, declared_extents
from oic.diagnostics import Note, Span
from oic.ir.dims import Extent
from oic.ir.grouping import by_key, reach
from oic.model import Model
from oic.syntax import tree as s


def bind(resolved: Resolved, model: Model | None, overrides: Mapping[str, int]) -> Binding:
    """The sizes, extents and model data of a graph; errors are collected.

    overrides  values of `--set`
    Nothing is reported twice that the checks of the graph said.
    """
    errors = [d.span for d in resolved.diagnostics if d.severity == "error"]
    refused = sorted((span for span in errors if span is not None), key=lambda span: span.start)
    binding = Binding(resolved, model, refused=refused)
    for variable in resolved.symbols.variables.values():
        _begin(binding, variable)
    warn_of_zeros(binding)
    _resolve_sizes(binding, overrides)
    _find_extents(binding)
    for variable in binding.variables:
        variable.refused = True
        with binding.report.refusing():
            variable.dims = binding.dims_of(variable.declaration)
            check_bytes(variable.name, variable.dtype, variable.dims, variable.declaration.type_span)
            variable.refused = False
            check_data(binding, variable)
    return binding


def _begin(binding: Binding, variable: Variable) -> None:
    """A variable's first value, from the model or `@init`, if the checks left anything of it."""
    declaration, init = variable.declaration, variable.attribute("init")
    parts = [declaration.name_span, declaration.head_span, declaration.type_span]
    parts += [a.span for a in declaration.attributes if a is not init]
    variable.refused |= any(binding.is_refused(span) for span in parts)
    if variable.refused:
        return
    if init is not None and binding.is_refused(init.span):
        variable.init = 0  # any value: reported already
    elif init is not None:
        given = init.args[0].value
        assert isinstance(given, s.Literal)
        variable.init = given.value
    find_data(binding, variable)


def _resolve_sizes(binding: Binding, overrides: Mapping[str, int]) -> None:
    """The value of every size that has one; two sources that disagree are an error."""
    graph, model = binding.resolved.graph, binding.model
    given = dict(model.sizevars) if model else {}
    binding.sizes, _ = size_values(graph, overrides, given)
    binding.sizes, errors = size_values(graph, overrides, given | _inferred(binding))
    for error in errors:
        binding.report.add(error)
    wrong = {n for n in (*overrides, *given) if n not in binding.sizes}
    binding.broken = wrong | _broken(binding, bool(errors))
    for size in graph.sizes:  # one of the section has the value that the model gives it, if it does
        own, other = binding.sizes.get(size.name), given.get(size.name)
        if size.name in overrides or own is None or other is None or own == other:
            continue
        assert model is not None
        what = f"size '{size.name}' is {own} here and {other} in {model.name}"
        binding.report.error("size-disagrees", what, size.span, hint=f"--set {size.name}=… decides")


def _broken(binding: Binding, wrong: bool) -> set[str]:
    """Sizes of the section without a value for a reason that was reported; all, if `wrong`: some are illegal."""
    left = [size for size in binding.resolved.graph.sizes if size.name not in binding.sizes]
    if wrong:
        return {size.name for size in left}
    extents = binding.resolved.symbols.extents.keys()  # refused in a size
    made_of = by_key((part.name, size.name) for size in left for part in s.names_in(size.value))
    refused = (size.name for size in left if binding.is_refused(size.span))
    return set(reach([*refused, *extents], lambda name: made_of.get(name, ()))) - extents


def _inferred(binding: Binding) -> dict[str, int]:
    """Sizes without a value otherwise: that of a model tensor's axis declared as just them."""
    own = {size.name for size in binding.resolved.graph.sizes}
    found: dict[str, tuple[int, str]] = {}
    for variable, tensor in ((v, tensor) for v in binding.variables for tensor in tensors_of(v)):
        for dim, size in axes(binding, variable, tensor):
            if dim.name in binding.sizes or dim.name in own:
                continue
            known = found.setdefault(dim.name, (size, tensor))
            if known[0] != size:
                what = f"size '{dim.name}' is {known[0]} in '{known[1]}' and {size} in '{tensor}'"
                binding.report.error("size-disagrees", what, dim.span, hint=f"--set {dim.name}=… decides")
    return {name: size for name, (size, _) in found.items() if size > 0}


def _find_extents(binding: Binding) -> None:
    first: dict[str, Span] = {}
    for name, given in declared_extents(binding.resolved.graph):
        maximum = None
        if isinstance(given.value, s.Expr) and not binding.is_refused(given.span):
            maximum = binding.bound(given.value, f"the maximum of '{name}'")
        if maximum is None:
            binding.broken.add(name)
            continue
        known = binding.extents.setdefault(name, Extent(name, maximum))
        before = first.setdefault(name, given.span)
        if known.maximum != maximum:
            what = f"the maximum of '{name}' is {maximum} here and {known.maximum} elsewhere"
            binding.report.error("extent-maximum", what, given.span, notes=(Note(before, "first given here"),))
