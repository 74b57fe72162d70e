"""Figures whose places and sizes a step decides: boxes of variables, sizes that differ where values meet, early ends.

As in `idioms`, each function writes one figure into a graph in the making; one that finds nothing to work on writes
nothing.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from oic.dtypes import ALL
from tests.fuzz.idioms import NUMBERS, computed, fresh, kernel, read
from tests.fuzz.pool import Shape, Var, shaped, size_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.fuzz.graphs import FullGraph

ROWS = 5  # of what boxes are written to


@contextmanager
def turns(g: FullGraph, low: str, high: str, most: int) -> Iterator[str]:
    """A loop around what is written in the body, and its index."""
    i = g.fresh("i")
    g.emit(f"loop l{i} ({i} in {low}..{high}) {{")
    g.loops.append((i, most))
    g.depth += 1
    with g.scope():
        yield i
    g.depth -= 1
    g.loops.pop()
    g.emit("}")


@contextmanager
def perhaps(g: FullGraph) -> Iterator[None]:
    """A branch whose one side is what is written in the body; it may use temporaries and loops of this place."""
    outer, g.lines = g.lines, []
    depth, g.depth = g.depth, g.options.depth
    with g.scope():
        yield
    lines, g.lines, g.depth = g.lines, outer, depth
    one, none = g.fresh("b"), g.fresh("b")
    body = "".join(f"        {line}\n" for line in lines)
    g.blocks += [f"    block {one} {{\n{body}        return;\n    }}\n", f"    block {none} {{\n        return;\n    }}\n"]
    targets = [one, none]
    g.r.shuffle(targets)
    g.emit(f"branch {g.condition()} {' '.join(targets)};")


# ---------------------------------------------------------------- parts of variables


def boxes(g: FullGraph) -> None:
    """Boxes of one variable, computed of others of it, in turns, on sides of branches, or one after another."""
    r = g.r
    whole = _whole(g)
    if whole is None:
        return
    for _ in range(r.randint(1, 3)):
        kind = r.random() if g.depth < g.options.depth else 1.0
        if kind < 0.35:
            with turns(g, *_few(g)):
                for _ in range(r.randint(1, 2)):
                    put(g, whole)
        elif kind < 0.5:
            with perhaps(g):
                put(g, whole)
        else:
            put(g, whole)
        if r.random() < 0.25:
            g.op(kernel(g, whole.name, *whole.type), *whole.type)
        if r.random() < 0.15:
            g.write_over(whole)
    g.scopes[-1].append(whole)


def _whole(g: FullGraph) -> Var | None:
    """What boxes are written to: a temporary, of one or another, of zeros; an output; one with N rows."""
    r = g.r
    like = g.pick(lambda v: v.dtype in (*NUMBERS, "u8", "bool", "i4") and v.known and 0 < len(v.shape) < 3 and 0 not in v.shape)
    if like is None:
        return None
    known = [v for v in g.visible() if v.writable and v.dtype == like.dtype and v.known and len(v.shape) > 1 and 0 not in v.shape]
    if known and r.random() < 0.3:
        return r.choice(known)
    rows = (1, r.randint(0, 2)) if g.options.extents and r.random() < 0.2 else ROWS
    shape: Shape = (rows, *like.shape)
    kind = r.random()
    if kind < 0.3 and isinstance(rows, int):
        name = g.fresh("o")
        start = g._init(like.dtype) if r.random() < 0.5 else ""
        g.sections["volatile"].append(f"{name}: {shaped(like.dtype, shape)}{start};")
        return Var(name, like.dtype, shape, True)
    if kind < 0.6:
        name = g.fresh("t")
        g.emit(f"assign {name}: {shaped(like.dtype, shape)};")
        return Var(name, like.dtype, shape, True)
    sizes = ", ".join(map(size_text, shape))
    made = fresh(g, f"broadcast_to({like.name}, shape=[{sizes}])", like.dtype, shape)
    if r.random() < 0.7:
        g.emit(f"op {kernel(g, made.name, *made.type)} >> {made.name};")
    return made


def put(g: FullGraph, whole: Var) -> None:
    """One box: of a box of the same size that is cut out of the variable, of any other value, or of state."""
    r = g.r
    given: list[tuple[str, str, int | None]] = []  # the place of an axis: first, end, its length
    axes = r.randint(1, len(whole.shape))
    for size in whole.shape[:axes]:
        given.append(_place(g, size if isinstance(size, int) else 1))
    if ALL[whole.dtype].packed and all(n is None for _, _, n in given) and axes == len(whole.shape):
        return
    lead: Shape = tuple(n for _, _, n in given if n is not None)
    shape = (*lead, *whole.shape[axes:])
    at = ", ".join(a if n is None else f"{a}..{b}" for a, b, n in given)
    kind = r.random()
    if kind < 0.55:
        value = _cut(g, whole, [n for _, _, n in given], shape)
    elif kind < 0.65 and (kept := g.stored(whole.dtype, shape)) is not None:
        value = kept
    else:
        alike = g.pick(lambda v: v.type == (whole.dtype, shape))
        value = alike if alike is not None else _cut(g, whole, [n for _, _, n in given], shape)
    if r.random() < 0.6:
        call = kernel(g, value.name, *value.type) if shape and r.random() < 0.5 else computed(g, value.name, *value.type)
        value = fresh(g, call, *value.type)
    g.emit(f"transfer {value.name} >> {whole.name}[{at}];")
    if r.random() < 0.3:
        g.scopes[-1].append(value)
    if r.random() < 0.2:
        g.write_over(value)


def _place(g: FullGraph, size: int) -> tuple[str, str, int | None]:
    """A position of an axis: a number, or so many from one on."""
    r = g.r
    if r.random() < 0.5:
        return g.index(size), "", None
    length = r.randint(1, size)
    first = r.choice((str(r.randint(0, size - length)), g.index(size - length + 1)))
    return first, f"{first}+{length}", length


def _cut(g: FullGraph, whole: Var, lengths: list[int | None], shape: Shape) -> Var:
    """A box of the variable, of this shape: slices of each axis in turn, then without the axes of one position."""
    var = whole
    for axis, length in enumerate(lengths):
        size = whole.shape[axis]
        n = 1 if length is None else length
        first = g.index((size if isinstance(size, int) else 1) - n + 1)
        sizes = (*var.shape[:axis], n, *var.shape[axis + 1 :])
        call = f"slice({var.name}, axis={axis}, start={first}, end={first}+{n})"
        var = fresh(g, call, whole.dtype, sizes)
    if var.shape != shape:
        sizes_ = ", ".join(map(size_text, shape))
        var = fresh(g, f"reshape({var.name}, shape=[{sizes_}])", whole.dtype, shape)
    return var


def _few(g: FullGraph) -> tuple[str, str, int]:
    """Bounds of a loop over some positions."""
    r = g.r
    if r.random() < 0.6:
        low = r.choice((0, 0, 1))
        return str(low), str(r.randint(2, 3)), 3
    return "0", f"{r.choice(g.indices)}", 3


def some_rows(g: FullGraph) -> None:
    """N rows of a variable at once, from a place on that a step decides."""
    rows = g.pick(lambda v: len(v.shape) > 1 and v.shape[0] == (1, 0) and all(isinstance(d, int) for d in v.shape[1:]))
    if rows is None:
        return
    shape: Shape = (ROWS + 1, *rows.shape[1:])
    whole = Var(g.fresh("t"), rows.dtype, shape, True)
    g.emit(f"assign {whole.name}: {shaped(rows.dtype, shape)};")
    for _ in range(g.r.randint(1, 2)):
        first = g.r.choice(("0", "1", "2", g.index(2), f"{ROWS + 1}-N"))
        g.emit(f"transfer {rows.name} >> {whole.name}[{first}..{first}+N];")
        if g.r.random() < 0.5:
            cut = fresh(g, f"slice({whole.name}, axis=0, start={first}, end={first}+N)", *rows.type)
            if rows.dtype in NUMBERS:
                rows = fresh(g, computed(g, cut.name, *cut.type), *cut.type)
    g.scopes[-1] += [whole, rows]


# ---------------------------------------------------------------- sizes that differ


def meet(g: FullGraph) -> None:
    """A variable whose size is another on each side of a branch, or after each turn of a loop."""
    r = g.r
    tables = [t for t in g.tables if not t.ring and t.entry.shape]
    if not tables:
        return
    table = r.choice(tables)
    lead = "".join(f"{r.randrange(c)}, " for c in table.capacities[:-1])
    dtype, entry = table.entry.type
    var = read(g, f"{table.name}[{lead}{_some(g)}]", dtype, (g.fresh("?"), *entry))
    rows = _rows(g, dtype, entry)

    def change() -> None:
        kind = r.random()
        if kind < 0.35:
            g.emit(f"cache.read {table.name}[{lead}{_some(g)}] >> {var.name};")
        elif kind < 0.5 and rows is not None:
            g.emit(f"op concat({var.name}, {rows.name}, axis=0) >> {var.name};")
        elif kind < 0.65:
            g.emit(f"op concat({var.name}, {var.name}, axis=0) >> {var.name};")
        elif kind < 0.8 and rows is not None:
            g.emit(f"transfer {rows.name} >> {var.name};")
        elif rows is not None and kind < 0.9:
            g.emit(f"op slice({rows.name}, axis=0, start=0, end={r.choice(('0', '1', *g.indices))}) >> {var.name};")
        elif dtype in NUMBERS:
            g.emit(f"op neg({var.name}) >> {var.name};")
        if r.random() < 0.3:
            first = r.choice(("0", g.index(2)))
            one = g.pick(lambda v: v.type == (dtype, entry))
            if dtype in NUMBERS and r.random() < 0.7:
                one = fresh(g, f"sum_axis({var.name}, axes=[0])", dtype, entry)
            if one is not None:
                g.emit(f"cache.write {one.name} >> {table.name}[{lead}{first}];")

    for _ in range(r.randint(1, 2)):
        if g.depth < g.options.depth and r.random() < 0.4:
            with turns(g, *_few(g)):
                if r.random() < 0.5:
                    with perhaps(g):
                        change()
                else:
                    change()
        elif r.random() < 0.8:
            with perhaps(g):
                change()
        else:
            change()
        if r.random() < 0.4 and dtype in NUMBERS:
            g.scopes[-1].append(fresh(g, f"sum_axis({var.name}, axes=[0])", dtype, entry))
    g.scopes[-1].append(var)
    if r.random() < 0.7:
        g._output(var)


def _some(g: FullGraph) -> str:
    """Some entries of a table, from the first on."""
    return g.r.choice((f"0..{g.r.choice(g.counters)}", f"0..{g.r.choice(g.indices)}", "0..2", "..", "0..-1", f"{g.index(2)}..2"))


def _rows(g: FullGraph, dtype: str, entry: Shape) -> Var | None:
    return g.pick(lambda v: v.dtype == dtype and len(v.shape) == len(entry) + 1 and v.shape[1:] == entry and not isinstance(v.shape[0], str))


# ---------------------------------------------------------------- state


def ring_rows(g: FullGraph) -> None:
    """Several entries of a ring at once, or with some left out; what is read may be older than what was written."""
    r = g.r
    if not g.rings:
        return
    table, counter = r.choice(g.rings)
    *outer, window = table.capacities
    dtype, entry = table.entry.type
    lead = "".join(f"{g.index(c)}, " for c in outer)
    rows = g.pick(lambda v: v.dtype == dtype and len(v.shape) == len(entry) + 1 and v.shape[1:] == entry and not isinstance(v.shape[0], str))
    ahead = r.choice(("", "", "+1", f"+{window + 1}"))
    if rows is None:
        count: int | tuple[int, int] = r.randint(1, window)
        rows = read(g, f"{table.name}[{lead}-{count}..]", dtype, (count, *entry))
        if r.random() < 0.6:
            rows = fresh(g, computed(g, rows.name, *rows.type), *rows.type)
    length = size_text(rows.shape[0])
    kept = read(g, f"{table.name}[{lead}-{window}..]", dtype, (window, *entry)) if r.random() < 0.5 else None
    if r.random() < 0.3 and g.depth < g.options.depth:
        with turns(g, *_few(g)) as i:
            g.emit(f"cache.write {rows.name} >> {table.name}[{lead}{counter}+{i}..{counter}+{i}+{length}];")
            g.scopes[-1].append(read(g, f"{table.name}[{lead}-2..]", dtype, (2, *entry)))
        g.emit(f"cache.increment 3 {counter};")
    else:
        g.emit(f"cache.write {rows.name} >> {table.name}[{lead}{counter}{ahead}..{counter}{ahead}+{length}];")
        amount = f"{length}{ahead}"
        g.emit(f"cache.increment {'(' + amount + ')'} {counter};")
    seen = read(g, f"{table.name}[{lead}{r.choice(('', '-2..', f'-{window}..'))}]", dtype, (g.fresh("?"), *entry))
    g.scopes[-1] += [seen, *([kept] if kept else [])]


def grown(g: FullGraph) -> None:
    """Matrices of a table that grow alike: grow, read, compute, write to the same or another, perhaps in turns."""
    r = g.r
    if not g.stacks:
        return
    name, var = r.choice(g.stacks)
    dtype, shape = var.type

    def once(i: str) -> None:
        entry, other = (r.choice((i, "0", "1", g.index(2))) for _ in range(2))
        grow = ", ".join(r.choice((i, str(r.randint(0, 3)), g.index(3))) for _ in shape)
        unknown: Shape = tuple(g.fresh("?") for _ in shape)
        seen = read(g, f"{name}[{entry}{r.choice((f', {grow}', ''))}]", dtype, unknown)
        value = fresh(g, computed(g, seen.name, *seen.type), *seen.type)
        again = f", {grow}" if r.random() < 0.4 else ""
        if r.random() < 0.3:
            g.emit(f"cache.reset {name}{r.choice(('', f'[{other}]'))};")
        g.emit(f"cache.write {value.name} >> {name}[{other}{again}];")
        if r.random() < 0.4:
            g.scopes[-1].append(seen)
        if r.random() < 0.4:
            whole: Shape = (g.fresh("?"), *(g.fresh("?") for _ in shape))
            g.scopes[-1].append(read(g, f"{name}[]", dtype, whole))
        if r.random() < 0.3:
            parts = ", ".join(r.choice(("..", "0..1", f"0..{c}")) for c in ("i", "j")[: len(shape)])
            g.scopes[-1].append(read(g, f"{name}[{other}, {parts}]", dtype, tuple(g.fresh("?") for _ in shape)))

    if g.depth < g.options.depth and r.random() < 0.4:
        with turns(g, "0", str(r.randint(1, 2)), 2) as i:
            once(i)
    else:
        once(r.choice(("0", "1")))


def triangle(g: FullGraph) -> None:
    """A loop whose bounds are those of a loop around it: entries of a table and rows of a variable."""
    r = g.r
    tables = [t for t in g.tables if not t.ring]
    if not tables or g.depth + 1 >= g.options.depth:
        return
    table = r.choice(tables)
    *outer, last = table.capacities
    dtype, entry = table.entry.type
    lead = "".join(f"{r.randrange(c)}, " for c in outer)
    with turns(g, "0", r.choice(("2", "3", *g.indices)), 3) as i:
        low, high = r.choice(((i, "3"), ("0", i), ("0", f"{i}+1"), (f"{i}+1", "4"), (f"2-{i}", f"{i}+1"), (i, f"{i}+2")))
        with turns(g, low, high, 4) as j:
            places = [j, f"{j}-{i}", f"{i}", f"{j}+{i}", f"(3*{i}+{j})%{last}", f"({j}-{i})*({j}-{i})"]
            value = read(g, f"{table.name}[{lead}{r.choice(places)}]", dtype, entry)
            if r.random() < 0.8:
                value = fresh(g, computed(g, value.name, *value.type), *value.type)
            g.emit(f"cache.write {value.name} >> {table.name}[{lead}{r.choice(places)}];")
            g.scopes[-1].append(value)
            if r.random() < 0.3:
                g.statement()


def leave(g: FullGraph) -> None:
    """A loop that ends its block in its first turn, if it has one; in an entry it ends the step."""
    if g.depth >= g.options.depth or not g.keeps:
        return
    low = g.r.choice(("1", "2", "3"))
    high = g.r.choice((*g.indices, *g.counters))
    i = g.fresh("i")
    g.emit(f"loop l{i} ({i} in {low}..{high}) {{")
    g.depth += 1
    with g.scope():
        for _ in range(g.r.randint(1, 2)):
            g.statement()
    g.depth -= 1
    g.lines += ["return;", "}"]


def look(g: FullGraph) -> None:
    """The value of state without a copy by name: a persistent tensor or counter that is transferred, or an operand."""
    r = g.r
    kept = r.choice([*g.plain, *g.numbers])
    to = g.destination(kept.dtype, kept.shape)
    if kept.shape == () and kept.dtype in NUMBERS and r.random() < 0.6:
        other = g.pick(lambda v: v.dtype == kept.dtype)
        if other is not None:
            g.op(f"{r.choice(('add', 'max', 'sub'))}({other.name}, {kept.name})", *other.type)
    else:
        g.emit(f"transfer {kept.name} >> {to};")
    if r.random() < 0.4:
        if kept.name in g.counters:
            g.emit(f"cache.increment {kept.name};")
        else:
            source = g.pick(lambda v: v.type == kept.type)
            if source is not None:
                g.emit(f"cache.write {source.name} >> {kept.name};")
    if r.random() < 0.5:
        g.write_over(Var(to, *kept.type, True))


STEP_IDIOMS = (
    (6, boxes), (2, some_rows), (5, meet), (4, ring_rows), (4, grown), (6, triangle), (2, leave), (3, look),
)  # fmt: skip
