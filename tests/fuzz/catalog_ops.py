"""Statements that apply any operator of the catalog to what a random graph holds.

What an operator wants is found, or made of what is there: variables are cast, repeated and reshaped
until they fit, weights are declared, tables are read.  Values stay of moderate size, so that a bound
of an error says something; ids, shares and variances stay in the range in which they mean anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oic.dtypes import ALL
from oic.ir import dims
from oic.ir.types import TensorType
from oic.operators import catalog
from tests.fuzz.pool import Shape, Var, shaped, size_text
from tests.fuzz.variants import Types, Variant, elementwise, of_shape, reshaped, resized, retyped
from tests.fuzz.variants import shaped as as_shape

if TYPE_CHECKING:
    from tests.fuzz.graphs import FullGraph

# Where an operand has a meaning only in part of its type's range: least and largest, in source.
DOMAINS = {
    ("batch_norm", "var"): ("0.25", "4.0"),
    ("sample", "u"): ("0.0", "0.999"),
    ("quantize", "scale"): ("0.25", "2.0"),
    ("dequantize", "scale"): ("0.25", "2.0"),
    ("requantize", "multiplier"): ("1073741824", "2147483647"),
    ("requantize", "shift"): ("-12", "2"),
    ("attention", "kv_len"): ("0", "4"),
    ("pow", "a"): ("0.125", "4.0"),
    ("log", "x"): ("0.125", "8.0"),
}
TAME = 6.0  # floats that are made to fit an operator lie within -TAME..TAME


def any_elementwise(g: FullGraph) -> None:
    """An elementwise operator on a variable as it is, and others that broadcast to it; or any of them."""
    if g.r.random() < 0.4:
        apply(g, g.r.choice(sorted(n for n, c in catalog().items() if c.elementwise)))
        return
    x = g.pick(lambda v: not any(isinstance(d, str) for d in v.shape))
    if x is None:
        return
    choices = elementwise(ALL[x.dtype])
    if not choices:
        return
    name = g.r.choice(sorted({v.cls.name for v in choices}))
    _on(g, g.r.choice([v for v in choices if v.cls.name == name]), x)


def _on(g: FullGraph, made: Variant, x: Var) -> None:
    names: dict[str, list[str]] = {}
    types: Types = {}
    placed = False
    for key, (wanted,) in made.operands.items():
        dtype = wanted.dtype.name
        if dtype == x.dtype and not placed:
            var: Var | None = x
            placed = True
        elif dtype == x.dtype and _takes_literal(made, dtype) and g.r.random() < 0.15:
            names[key], types[key] = [g.scalar(dtype)], [TensorType(ALL[dtype])]
            continue
        else:
            var = g.pick(lambda v, d=dtype: v.dtype == d and g.stretches(v.shape, x.shape))  # type: ignore[misc]
            if var is None and dtype == x.dtype:
                var = x
        if var is None:
            return
        type_ = of_shape(ALL[dtype], var.shape)
        if type_ is None:
            return
        names[key], types[key] = [g.within(var, DOMAINS.get((made.cls.name, key)))], [type_]
    found = reshaped(made, types)
    if found is not None:
        _emit(g, found, names)


def _takes_literal(made: Variant, dtype: str) -> bool:
    """Its operands share one type, of which a number may be written."""
    alike = {t.dtype.name for part in made.operands.values() for t in part} == {dtype}
    return alike and made.cls.name != "filter" and ALL[dtype].kind != "ternary" and not ALL[dtype].packed


def any_operator(g: FullGraph) -> None:
    """Any operator, one that is rarely seen more often: its operands are made to fit."""
    name = g.r.choice(sorted(n for n, c in catalog().items() if not c.elementwise))
    apply(g, name)


def apply(g: FullGraph, name: str) -> None:
    """The operator of this name, in any of its forms and types."""
    forms = retyped(name)
    recent = [ALL[v.dtype] for v in g.visible() if ALL[v.dtype] in forms]
    dtype = g.r.choice(recent) if recent and g.r.random() < 0.5 else g.r.choice(sorted(forms, key=str))
    made = resized(g.r.choice(forms[dtype]), g.r, extents=g.options.extents)
    given: dict[str, list[str]] = {}
    for key, types in made.operands.items():
        first = not given
        domain = _ids(made) if (name, key) == ("gather", "ids") else DOMAINS.get((name, key))
        given[key] = [operand(g, t, domain, weight=not first) for t in types]
    _emit(g, made, given)


def _ids(made: Variant) -> tuple[str, str]:
    (table,) = made.operands["table"]
    size = table.shape[made.settings.get("axis", 0)]
    return "0", str(max(0, size - 1) if isinstance(size, int) else 0)


def _emit(g: FullGraph, made: Variant, names: dict[str, list[str]]) -> None:
    """The statement, into variables of the results' types."""
    results = []
    for type_ in made.results:
        fresh = len(made.results) > 1
        results.append(g.destination(type_.dtype.name, as_shape(type_), fresh=fresh))
    call = made.call(names)
    if g.r.random() < 0.05:
        call = f"{call[:-1]}, )"
    g.emit(f"op {call} >> {', '.join(results)};")


# ---------------------------------------------------------------- operands


def operand(g: FullGraph, type_: TensorType, domain: tuple[str, str] | None, *, weight: bool) -> str:
    """A name for a value of a type: a variable, a weight, or one made of a variable.

    domain   the least and the largest that it may be, in source
    weight   it is often data of the model
    """
    dtype, shape = type_.dtype.name, as_shape(type_)
    static = all(isinstance(d, int) for d in shape)
    if weight and static and domain is None and g.r.random() < 0.45:
        return g.weight(dtype, shape)
    if static and g.r.random() < 0.15:
        kept = g.stored(dtype, shape)
        if kept is not None:
            return g.within(kept, domain)
    known = g.pick(lambda v: v.type == (dtype, shape))
    if known is not None and g.r.random() < 0.8:
        return g.within(known, domain)
    return g.within(fitted(g, type_), domain)


def fitted(g: FullGraph, type_: TensorType) -> Var:
    """A variable of a type, made of any other that can be cast to it; else an input."""
    dtype, shape = type_.dtype, as_shape(type_)
    moving = [d for d in shape if not isinstance(d, int)]
    casts = dtype.kind not in ("bitset", "ternary")

    def usable(v: Var) -> bool:
        if any(isinstance(d, str) for d in v.shape) or v.shape in ((), (0,)) or 0 in v.shape:
            return False
        same = v.dtype == dtype.name
        alike = [d for d in v.shape if not isinstance(d, int)] == moving
        return alike and (same or (casts and ALL[v.dtype].kind not in ("bitset", "ternary")))

    source = g.pick(usable) if len(moving) < 2 and (shape or not dtype.packed) else None
    if source is None:
        return g.input(dtype.name, shape)
    if source.dtype != dtype.name:
        source = _cast(g, source, dtype.name)
    return _in_shape(g, source, shape)


def _cast(g: FullGraph, var: Var, to: str) -> Var:
    old, new = ALL[var.dtype], ALL[to]
    if old.is_float and new.is_float:
        var = tamed(g, var)
    settings = f"to={to}"
    if old.is_int and new.is_int and not (new.low <= old.low and old.high <= new.high):
        settings += f", saturate={g.r.choice(('true', 'false'))}"
    if old.is_float and new.is_int:
        settings += f', rounding_mode="{g.r.choice(("trunc", "floor", "ceil", "nearest"))}"'
    return g.made(f"cast({var.name}, {settings})", to, var.shape)


def tamed(g: FullGraph, var: Var) -> Var:
    """A float variable whose values are of moderate size."""
    if g.r.random() < 0.3:
        return var
    return g.made(f"clamp({var.name}, min=-{TAME}, max={TAME})", var.dtype, var.shape)


def _in_shape(g: FullGraph, var: Var, shape: Shape) -> Var:
    """As many of its elements as a shape has, again and again if there are fewer.

    A size N goes first while the others are one axis, and then to its place.
    """
    moving = [d for d in shape if not isinstance(d, int)]
    have, want = _count(var.shape), _count(shape)
    if var.shape == shape:
        return var
    if moving:
        at = next(i for i, d in enumerate(var.shape) if not isinstance(d, int))
        perm = [at, *(i for i in range(len(var.shape)) if i != at)]
        if perm != sorted(perm):
            turned = tuple(var.shape[p] for p in perm)
            var = g.made(f"transpose({var.name}, perm={perm})", var.dtype, turned)
    lead = tuple(moving)
    flat = _reshape(g, var, (*lead, have))
    axis = len(lead)
    if have < want:
        times = -(-want // have)
        shape_ = (*lead, have * times)
        flat = g.made(f"repeat({flat.name}, times={times}, axis={axis})", var.dtype, shape_)
        have *= times
    if have > want:
        start = g.r.randint(0, have - want)
        shape_ = (*lead, want)
        flat = g.made(f"slice({flat.name}, axis={axis}, start={start}, end={start + want})", var.dtype, shape_)
    if not moving:
        return _reshape(g, flat, shape)
    at = shape.index(moving[0])
    others = (*shape[:at], *shape[at + 1 :])
    flat = _reshape(g, flat, (*lead, *others))
    if at == 0:
        return flat
    perm = [*range(1, at + 1), 0, *range(at + 1, len(shape))]
    return g.made(f"transpose({flat.name}, perm={perm})", var.dtype, shape)


def _reshape(g: FullGraph, var: Var, shape: Shape) -> Var:
    if var.shape == shape:
        return var
    sizes = ", ".join(map(size_text, shape))
    return g.made(f"reshape({var.name}, shape=[{sizes}])", var.dtype, shape)


def _count(shape: Shape) -> int:
    """Elements, every size that is not a number being 1."""
    return dims.maximum(dims.product(d for d in shape if isinstance(d, int)))


# ---------------------------------------------------------------- long sums


def long_product(g: FullGraph) -> None:
    """A product or a reduction over more elements than are summed in one go, with a tail."""
    name = g.r.choice(("linear", "matmul", "linear", "sum_axis", "softmax", "rms_norm", "attention", "conv1d"))
    forms = retyped(name)
    floats = [d for d in forms if d.name in g.options.dtypes or d.name == "f32"]
    made = g.r.choice(forms[g.r.choice(sorted(floats, key=str))])
    for _ in range(8):
        longer = resized(made, g.r, extents=g.options.extents)
        sizes = [d for part in longer.operands.values() for t in part for d in t.shape]
        if any(isinstance(d, int) and d > 256 for d in sizes):
            made = longer
            break
    given: dict[str, list[str]] = {}
    for key, types in made.operands.items():
        given[key] = [operand(g, t, DOMAINS.get((name, key)), weight=bool(given)) for t in types]
    _emit(g, made, given)


__all__ = ["any_elementwise", "any_operator", "apply", "long_product", "shaped"]
