"""What a model gives a graph: tensors and config values behind constants and volatile variables."""

import difflib
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from oic import dtypes
from oic.check.binding import Binding
from oic.check.symbols import Variable
from oic.diagnostics import MOST_COMPARED, Diagnostic, Span, cut
from oic.dtypes import Array, DType
from oic.ir import dims
from oic.ir.members import Elements, Members
from oic.ir.quantized import Grouped, Groups
from oic.model import Model
from oic.syntax import tree as s

NEAR = 3  # names of a model that are shown for one it lacks
STORAGES = {"Q8_0": "q8", "Q4_0": "q4"}  # of blocks, exactly
MOST_HOLES = 1 << 16  # places in a family without a member


def find_data(binding: Binding, variable: Variable) -> None:
    """Bind a variable to what the model has for it; say what should be there and is not."""
    model = binding.model
    if variable.kind == "persistent" and model is not None and model.has(variable.name):
        what = f"persistent '{variable.name}' is also a tensor of {model.name}"
        hint = "persistent state starts from @init; rename one of them"
        binding.report.error("persistent-in-model", what, variable.declaration.name_span, hint=hint)
    if variable.kind not in ("constant", "volatile"):
        return
    explicit = variable.attribute("ref") or variable.attribute("pattern")
    tried = [(variable.name, variable.declaration.name_span)]
    if explicit is not None:
        tried = [(a.value.value, a.span) for a in explicit.args if isinstance(a.value, s.Str)]
    if model is not None and any(_find(model, variable, name) for name, _ in tried):
        return
    whole = model is not None and not model.partial
    if variable.init is None and (explicit is not None or (variable.absent and whole)):
        _refuse_missing(binding, variable, tried)


def warn_of_zeros(binding: Binding) -> None:
    """Without a model, constants that nothing gives a value are zeros: said once, of all of them."""
    if not (absent := [variable for variable in binding.variables if variable.absent]):
        return
    first, *more = absent
    what, whose = f"constant '{first.name}' has no @init: it is zero", "its value"
    if more:
        others = f"'{more[0].name}'" if len(more) == 1 else f"{len(more)} more"
        what, whose = f"constants '{first.name}' and {others} have no @init: they are zero", "their values"
    what, hint, span = f"there is no model, and {what}", f"give {whose} with --model", first.declaration.name_span
    binding.report.add(Diagnostic("constant-zero", what, span, hint=hint, severity="warning"))


def _find(model: Model, variable: Variable, name: str) -> bool:
    """Bind a variable to a tensor or members, else a config value, or for integers a sizevar; False: there is none."""
    if variable.family and not variable.stacked:
        variable.members = _members(model, name, variable.indices)
        if variable.members:
            variable.counts = tuple(max(along) + 1 for along in zip(*variable.members, strict=True))
        return bool(variable.members)
    if model.has(name):
        variable.data = name
        variable.counts = tuple(model.info(name).shape[: len(variable.indices)])  # its leading axes, of a family
    elif not variable.family and name in model.metadata:
        variable.scalar = model.metadata[name]
    elif not variable.family and variable.dtype.is_int and name in model.sizevars:
        variable.scalar = model.sizevars[name]
    else:
        return False
    return True


def _members(model: Model, pattern: str, indices: Sequence[str]) -> dict[tuple[int, ...], str]:
    """Model tensors that match a pattern, by the values of its indices."""
    seen: set[str] = set()
    regex = ""
    for part in re.split(r"(\{\w+\})", pattern):
        name = part[1:-1]
        if part.startswith("{") and name in indices:
            regex += f"(?P={name})" if name in seen else f"(?P<{name}>0|[1-9][0-9]{{0,18}})"
            seen.add(name)
        else:
            regex += re.escape(part)
    if seen != set(indices):
        return {}
    matches = (re.fullmatch(regex, name) for name in model.names() if model.has(name))
    return {tuple(int(match[i]) for i in indices): match[0] for match in matches if match}


def _near_tensors(tried: Sequence[str], known: Collection[str], compared: Collection[str]) -> str:
    """What a name that a model lacks may mean: the few like it, or the first that there are.

    Checkpoints put prefixes before names (`model.layers.0.`), so the ends of names count as well.
    """
    ends = {name: name.rsplit(".", 2)[-2:] for name in known}
    near: list[str] = []
    for name in tried:
        near += difflib.get_close_matches(name, compared, NEAR)
        near += [n for n, parts in ends.items() if name in (*parts, ".".join(parts))]
    listed = [f"'{n}'" for n in dict.fromkeys(near)][:NEAR]
    if listed:
        return f"did you mean {' or '.join(listed)}? @ref(\"…\") binds another name"
    some = ", ".join(f"'{n}'" for n in list(known)[:NEAR])
    return f"it has {some}{', …' if len(known) > NEAR else ''}" if known else "it is empty"


def _refuse_missing(binding: Binding, variable: Variable, tried: list[tuple[str, Span]]) -> None:
    model = binding.model
    where = f"{model.name} has" if model else "there is no model, and so"
    listed = " or ".join(f"'{n}'" for n, _ in tried)
    known = [*model.names(), *model.metadata] if model else []
    what = "no tensor like" if variable.family else "no tensor or config value"
    few = len(known) * (1 + len(binding.report.found)) <= MOST_COMPARED  # less of each, the more are missing
    near = _near_tensors([name for name, _ in tried], known, known if few else ())
    hint = near if model else "give one with --model"
    binding.report.error("missing-model-tensor", f"{where} {what} {listed}", tried[0][1], hint=hint)
    # Its value is of no importance any more, and uses of it are not refused as well.
    variable.init = 0


def tensors_of(variable: Variable) -> list[str]:
    """The tensors of the model that back a variable."""
    return [variable.data] if variable.data is not None else list(variable.members.values())


def axes(binding: Binding, variable: Variable, tensor: str) -> Iterator[tuple[s.Name, int]]:
    """The axes of a tensor that are declared as just one name, with their sizes."""
    assert binding.model is not None
    shape = _own_shape(variable, binding.model.info(tensor).shape)
    if len(shape) == len(variable.declaration.dims):
        for dim, size in zip(variable.declaration.dims, shape, strict=True):
            if isinstance(dim, s.Name):
                yield dim, size


def check_data(binding: Binding, variable: Variable) -> None:
    """Dtype and shape of the model's data against the declaration; `?` takes the data's size."""
    for tensor in tensors_of(variable):
        assert binding.model is not None
        info = binding.model.info(tensor)
        if not widens(info.dtype, variable.dtype):
            message = f"'{tensor}' is {info.dtype} in {binding.model.name}, not {variable.dtype}"
            _refuse_data(binding, variable, "model-dtype", variable.declaration.dtype_span, message)
            return
        if not _fits(variable, tuple(info.shape)):
            sizes = [*variable.indices] if variable.stacked else []
            shown = ", ".join(sizes + ["?" if d is None else str(d) for d in variable.dims])
            message = f"'{tensor}' is {list(info.shape)} in {binding.model.name}, not [{shown}]"
            _refuse_data(binding, variable, "model-shape", variable.declaration.type_span, message)
            return
    if variable.members and math.prod(variable.counts) - len(variable.members) > MOST_HOLES:
        # A table says where members lie that are there.
        message = f"the members of '{variable.name}' reach {[n - 1 for n in variable.counts]}, with most missing"
        _refuse_data(binding, variable, "missing-member", variable.declaration.head_span, message)
    if variable.scalar is not None:
        _check_scalar(binding, variable)


def _fits(variable: Variable, shape: tuple[int, ...]) -> bool:
    """The declared sizes are those of the tensor, no extent, which may be another; one element fits one element."""
    sizes = variable.dims
    if variable.stacked and len(shape) < len(variable.indices):
        return False
    shape = _own_shape(variable, shape)
    if len(sizes) == len(shape) and all(d in (None, n) for d, n in zip(sizes, shape, strict=True)):
        return not variable.family or None not in sizes
    return math.prod(shape) == 1 and all(d == 1 for d in sizes)


def _own_shape(variable: Variable, shape: Sequence[int]) -> tuple[int, ...]:
    """The axes of a tensor that the declared sizes are about: without those of the indices."""
    return tuple(shape)[len(variable.indices) if variable.stacked else 0 :]


def _refuse_data(binding: Binding, variable: Variable, slug: str, span: Span, message: str) -> None:
    binding.report.error(slug, message, span)
    variable.data, variable.members, variable.scalar, variable.init = None, {}, None, 0


def _check_scalar(binding: Binding, variable: Variable) -> None:
    """A config value against the type of its variable."""
    declaration, dtype = variable.declaration, variable.dtype
    shown = f"config value {cut(repr(variable.scalar), 40, 37)}"
    if any(d != 1 for d in variable.dims):
        message = f"{shown} is a scalar, not {declaration.type_span.text}"
        _refuse_data(binding, variable, "model-shape", declaration.type_span, message)
    elif not _converts(variable.scalar, dtype):
        message = f"{shown} is not a value of {dtype}"
        _refuse_data(binding, variable, "model-dtype", declaration.dtype_span, message)


def _converts(value: Any, dtype: DType) -> bool:
    """A number converts exactly, or to floats rounded, but none to infinity; a bool only to bool."""
    if isinstance(value, bool) or dtype.kind == "bool":
        return isinstance(value, bool) and dtype.kind == "bool"
    if not isinstance(value, int | float):
        return False
    if dtype.is_float:
        known = abs(value) < 1 << 1000 if isinstance(value, int) else math.isfinite(value)
        return dtypes.stays_finite(value, dtype) if known else isinstance(value, float)
    whole = isinstance(value, int) or value.is_integer()
    return whole and dtype.low <= value <= dtype.high


def widens(stored: DType, declared: DType) -> bool:
    """A stored dtype may be used as a declared one: equal, or narrower of the same kind."""
    alike = stored.kind == declared.kind and (stored.is_float or stored.is_int)
    return stored is declared or (alike and declared.holds(stored))


def data_of(binding: Binding, variable: Variable) -> Array:
    """The value of a constant, or the starting value of a volatile: `elements_of`, as an array."""
    return np.asarray(elements_of(binding, variable))


def elements_of(binding: Binding, variable: Variable) -> Elements:
    """The value of a constant, or the starting value of a volatile: model, else @init, else zeros.

    Families: members along leading axes, of a pattern with holes along one (`Variable.places`).
    Shape: declared, with extents at their maximum, and `?` as in the model, else 0.
    """
    shape = tuple(dims.maximum(d) if d is not None else 0 for d in variable.dims)
    if not variable.stored:
        return np.broadcast_to(dtypes.store(np.asarray(variable.first), variable.dtype), shape)
    model, dtype, counts = binding.model, variable.dtype.np, variable.counts
    members = {place: variable.members[key] for key, place in variable.places.items()}
    assert model is not None
    if variable.data is not None:
        if variable.family or None in variable.dims or model.blocks(variable.data) is None:
            array = model.tensor(variable.data)
            wanted = array.shape if None in variable.dims else variable.counts + shape
            return array.astype(dtype, copy=False).reshape(wanted)
        # What is stored in blocks is not widened before it is needed: it is the only member of a family.
        members = {(): variable.data}
    elif len(members) != math.prod(counts):
        counts = (len(members),)

    storage, grouped = _grouped(binding, variable, members, shape)
    if grouped is not None:  # matrices of a stack are members, too
        return Members(counts + shape[:-2], shape[-2:], dtype, lambda key: grouped(key).values(), storage, grouped)

    def read(key: tuple[int, ...]) -> Array:
        return model.tensor(members[key]).astype(dtype, copy=False).reshape(shape)

    return Members(counts, shape, dtype, read)


def _grouped(
    binding: Binding, variable: Variable, members: Mapping[tuple[int, ...], str], shape: tuple[int, ...]
) -> tuple[str, Callable[[tuple[int, ...]], Grouped] | None]:
    """The storage that all members have in the model, and how to read the groups of each of their matrices, by its
    member and its place in that, if it is a stack; "" if there is none."""
    model = binding.model
    assert model is not None
    found = {key: model.blocks(name) for key, name in members.items()}
    known = {key: blocks for key, blocks in found.items() if blocks is not None and blocks.shape == shape}
    kinds = {blocks.kind for blocks in known.values()}
    storage = STORAGES.get(kinds.pop(), "") if len(kinds) == 1 else ""
    if not storage or len(known) != len(found) or variable.dtype is not dtypes.f32 or len(shape) < 2:
        return "", None
    *stack, rows, k = shape

    def grouped(key: tuple[int, ...]) -> Grouped:
        member, place = key[: len(key) - len(stack)], key[len(key) - len(stack) :]
        blocks, at = known[member], rows * int(np.ravel_multi_index(place, stack)) if stack else 0
        return Grouped((rows, k), storage, lambda first, end: Groups(*blocks.groups(at + first, at + end)))

    return storage, grouped
