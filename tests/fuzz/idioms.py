"""Statements that belong together, as programs with state have them: what memory decisions are about.

Left to chance, random statements seldom read the entry that they are about to write, or hand two
values to each other's next turn.  Each function here writes one such figure into a graph in the
making, with its parts varied; one that finds no variable to work on writes nothing.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from tests.fuzz.pool import Shape, Var, shaped

if TYPE_CHECKING:
    from tests.fuzz.generate import Graph, Table

FLOATS = ("f32", "f16", "f64")
NUMBERS = (*FLOATS, "i32", "i8")


def computed(g: Graph, name: str, dtype: str, shape: Shape) -> str:
    """A call that makes of a variable another value of its type."""
    r = g.r
    other = g.pick(lambda v: v.dtype == dtype and v.shape in (shape, ())) or Var(name, dtype, shape, False)
    if dtype in NUMBERS:
        calls = [f"neg({name})", f"add({name}, {other.name})", f"max({name}, {name})"]
        if other.shape == shape:
            calls.append(f"sub({other.name}, {name})")
    elif dtype == "bool":
        calls = [f"not({name})"]
    else:
        calls = [] if shape else [f"reshape({name}, shape=[])"]
    if shape:
        calls.append(f"flip({name}, axes=[{r.randrange(len(shape))}])")
    if shape and dtype in ("f32", "f16"):
        calls += [f"softmax({name})", f"cumsum({name}, axis={r.randrange(len(shape))})"]
        square = g.pick(lambda v: v.dtype == dtype and v.shape == (4, 4))
        if square is not None and shape[-1] == 4:
            calls += [f"linear({name}, {square.name})"] * 2
    if len(shape) == 2 and shape[0] == shape[1]:
        calls.append(f"transpose({name}, perm=[1, 0])")
    return r.choice(calls)


def kernel(g: Graph, name: str, dtype: str, shape: Shape) -> str:
    """A call of an operator that is not elementwise: its operands and its result lie in memory."""
    r = g.r
    axis = r.randrange(len(shape))
    calls = [f"flip({name}, axes=[{axis}])"]
    if dtype in ("f32", "f16"):
        calls += [f"softmax({name}, axis={axis})", f"cumsum({name}, axis={axis})"]
        square = g.pick(lambda v: v.dtype == dtype and v.shape == (4, 4))
        if square is not None and shape[-1] == 4:
            calls += [f"linear({name}, {square.name})"] * 2
    return r.choice(calls)


def fresh(g: Graph, call: str, dtype: str, shape: Shape) -> Var:
    """A new temporary with the result of a call."""
    name = g.fresh("t")
    g.emit(f"assign {name}: {shaped(dtype, shape)};")
    g.emit(f"op {call} >> {name};")
    return Var(name, dtype, shape, True)


def read(g: Graph, access: str, dtype: str, shape: Shape) -> Var:
    """A new temporary with what an access reads."""
    name = g.fresh("t")
    g.emit(f"assign {name}: {shaped(dtype, shape)};")
    g.emit(f"cache.read {access} >> {name};")
    return Var(name, dtype, shape, True)


# ---------------------------------------------------------------- entries of tables


def update(g: Graph) -> None:
    """Compute an entry of what the table holds, and write it: `K[t] = f(K[t-1], x)`."""
    tables = [t for t in g.tables if not t.ring]
    if not tables:
        return
    table = g.r.choice(tables)
    target, source = _entries(g, table)
    _rewrite(g, table, target, source, ())


def scan(g: Graph) -> None:
    """The same in a loop over entries, each of which may need the one before or after it."""
    tables = [t for t in g.tables if not t.ring]
    if not tables:
        return
    table = g.r.choice(tables)
    *outer, last = table.capacities
    i = g.fresh("i")
    turns = g.r.randint(1, last - 1)
    g.emit(f"loop l{i} ({i} in 0..{turns}) {{")
    g.loops.append((i, turns))
    with g.scope():
        lead = "".join(f"{g.r.randrange(c)}, " for c in outer)
        target, source = g.r.choice(((i, i), (f"{i}+1", i), (i, f"{i}+1"), (f"{turns}-{i}", i)))
        _rewrite(g, table, f"{lead}{target}", f"{lead}{source}", ())
        if g.r.random() < 0.4:
            g.statement()
    g.loops.pop()
    g.emit("}")


def shift(g: Graph) -> None:
    """Write a slice computed of one that overlaps it: `K[1..4] = f(K[0..3])`."""
    tables = [t for t in g.tables if not t.ring]
    if not tables:
        return
    table = g.r.choice(tables)
    *outer, last = table.capacities
    length = g.r.randint(1, last - 1)
    target, source = (g.r.randint(0, last - length) for _ in range(2))
    lead = "".join(f"{g.r.randrange(c)}, " for c in outer)
    _rewrite(
        g, table, f"{lead}{target}..{target + length}", f"{lead}{source}..{source + length}", (length,)
    )


def recur(g: Graph) -> None:
    """A persistent tensor or scalar that is a function of what it was."""
    var = g.r.choice(g.plain)
    seen = read(g, var.name, var.dtype, var.shape)
    value = fresh(g, computed(g, seen.name, var.dtype, var.shape), var.dtype, var.shape)
    g.emit(f"cache.write {value.name} >> {var.name};")
    _afterwards(g, value, var.name)
    g.scopes[-1] += [seen, value]


def wrap(g: Graph) -> None:
    """Append to a ring and read its window, which before long has gone round."""
    if not g.rings:
        return
    table, counter = g.r.choice(g.rings)
    *outer, window = table.capacities
    entry = table.entry
    lead = "".join(f"{g.r.randrange(c)}, " for c in outer)
    value = g.pick(lambda v: v.type == entry.type) or read(g, f"{table.name}[{lead}{counter}-1]", *entry.type)
    if g.r.random() < 0.4:  # the window with the entry that is about to go
        kept = read(g, f"{table.name}[{lead}-{window}..]", entry.dtype, (window, *entry.shape))
        g.scopes[-1].append(kept)
    if g.r.random() < 0.6:
        value = fresh(g, computed(g, value.name, *entry.type), *entry.type)
    g.emit(f"cache.write {value.name} >> {table.name}[{lead}{counter}];")
    if g.r.random() < 0.9:
        g.emit(f"cache.increment {counter};")
    if g.r.random() < 0.4:
        g.write_over(value)
    match g.r.randrange(4):
        case 0:
            seen = read(g, f"{table.name}[{lead}-{window}..]", entry.dtype, (window, *entry.shape))
        case 1:
            seen = read(g, f"{table.name}[{lead}{counter}-2..{counter}]", entry.dtype, (2, *entry.shape))
        case 2:
            seen = read(g, f"{table.name}[{lead}{counter}-{g.r.randint(1, window)}]", *entry.type)
        case _:
            seen = read(g, f"{table.name}[{lead}]", entry.dtype, (g.fresh("?"), *entry.shape))
    g.scopes[-1].append(seen)


def grow(g: Graph) -> None:
    """Grow an auto-dim matrix, and write it as it then is."""
    if not g.matrices:
        return
    name, var = g.r.choice(g.matrices)
    seen = read(g, f"{name}[{g.r.randint(0, 3)}, {g.r.randint(0, 2)}]", var.dtype, (g.fresh("?"), g.fresh("?")))
    value = fresh(g, computed(g, seen.name, *seen.type), *seen.type)
    if g.r.random() < 0.5:
        value = fresh(g, f"max({seen.name}, {value.name})", *seen.type)
    if g.r.random() < 0.7:
        g.emit(f"cache.write {value.name} >> {name}[];")
    g.scopes[-1] += [seen, value]


def _entries(g: Graph, table: Table) -> tuple[str, str]:
    """Indices of an entry to write and of one to read: the same, a neighbour, or any other."""
    *outer, last = table.capacities
    lead = "".join(f"{g.index(c)}, " for c in outer)
    target = g.index(last)
    kind = g.r.random()
    if kind < 0.4:
        return f"{lead}{target}", f"{lead}{target}"
    if kind < 0.6:
        counter = g.r.choice(g.counters)
        return f"{lead}{counter}", f"{lead}{counter}-1" if kind < 0.5 else f"{lead}{counter}+1"
    other = "".join(f"{g.index(c)}, " for c in outer)
    return f"{lead}{target}", f"{other}{g.index(last)}"


def _rewrite(g: Graph, table: Table, target: str, source: str, lead: Shape) -> None:
    """Read one part of a table, compute another of it, write that, and look at it again."""
    r = g.r
    entry = table.entry
    shape = (*lead, *entry.shape)
    at = f"{table.name}[{target}]"
    seen = read(g, f"{table.name}[{source}]", entry.dtype, shape)
    value = fresh(g, computed(g, seen.name, entry.dtype, shape), entry.dtype, shape)
    if r.random() < 0.25:
        value = output(g, value)
    _between(g, table)
    g.emit(f"cache.write {value.name} >> {at};")
    if r.random() < 0.15:
        g.emit(f"cache.write {value.name} >> {_other(g, table, lead)};")
    _afterwards(g, value, at)
    if r.random() < 0.3:  # the value read before is needed after the write
        g.scopes[-1].append(seen)
        g.op(computed(g, seen.name, entry.dtype, shape), entry.dtype, shape)
    if r.random() < 0.3:  # another value goes to the same entry, or to one that may be the same
        again = fresh(g, computed(g, seen.name, entry.dtype, shape), entry.dtype, shape)
        g.emit(f"cache.write {again.name} >> {r.choice((at, _other(g, table, lead)))};")
        if r.random() < 0.5:
            g.op(computed(g, value.name, entry.dtype, shape), entry.dtype, shape)
    g.scopes[-1].append(value)


def _between(g: Graph, table: Table) -> None:
    """What may come between a value and the write of it: it is not in its entry yet."""
    r = g.r
    kind = r.random()
    if kind < 0.2:  # a refusal
        _risk(g)
    elif kind < 0.35:  # who reads the table still sees what was there
        lead = "".join(f"{g.index(c)}, " for c in table.capacities[:-1])
        g.scopes[-1].append(read(g, f"{table.name}[{lead}0..{table.capacities[-1]}]",
                                 table.entry.dtype, (table.capacities[-1], *table.entry.shape)))  # fmt: skip
    elif kind < 0.42:  # an index is not what it was
        g.emit(f"cache.{r.choice(('increment', 'reset'))} {r.choice(g.counters)};")
    elif kind < 0.47:
        g.emit(f"cache.reset {table.name};")
    elif kind < 0.6:
        g.operator()


def _other(g: Graph, table: Table, lead: Shape) -> str:
    """An access to entries of a table in another way: they may be the same."""
    outer = "".join(f"{g.index(c)}, " for c in table.capacities[:-1])
    last = table.capacities[-1]
    if lead:
        length = lead[0]
        assert isinstance(length, int)
        first = g.r.randint(0, last - length)
        return f"{table.name}[{outer}{first}..{first + length}]"
    return f"{table.name}[{outer}{g.index(last)}]"


def output(g: Graph, value: Var) -> Var:
    """A declared variable with the value of a temporary: what it holds is wanted by the caller."""
    name = g.fresh("o")
    g.sections["volatile"].append(f"{name}: {shaped(*value.type)};")
    g.emit(f"transfer {value.name} >> {name};")
    return Var(name, *value.type, True)


def perhaps(g: Graph) -> None:
    """A value that is written only on one side of a branch, or only by the iterations of a loop."""
    tables = [t for t in g.tables if not t.ring]
    if not tables:
        return
    table = g.r.choice(tables)
    entry = table.entry
    source = g.pick(lambda v: v.type == entry.type)
    start = source.name if source is not None else read(g, _other(g, table, ()), *entry.type).name
    value = fresh(g, computed(g, start, *entry.type), *entry.type)
    g.scopes[-1].append(value)
    if g.r.random() < 0.5:
        one, none = g.fresh("b"), g.fresh("b")
        loops, g.loops = g.loops, []  # a block does not see the loops around its branch
        lines = [f"cache.write {value.name} >> {_other(g, table, ())};"]
        g.loops = loops
        if g.r.random() < 0.4:
            lines.insert(0, f"op {computed(g, value.name, *entry.type)} >> {value.name};")
        targets = [one, none]
        g.r.shuffle(targets)
        g.emit(f"branch {g.condition()} {' '.join(targets)};")
        g.blocks += [_text(one, lines), _text(none, [])]
    else:
        i = g.fresh("i")
        *outer, last = table.capacities
        g.emit(f"loop l{i} ({i} in 0..{g.r.choice((g.r.randint(0, last), g.r.choice(g.indices)))}) {{")
        lead = "".join(f"{g.index(c)}, " for c in outer)
        if g.r.random() < 0.5:
            g.emit(f"cache.write {value.name} >> {table.name}[{lead}{i}];")
            g.emit(f"op {computed(g, value.name, *entry.type)} >> {value.name};")
        else:
            g.emit(f"op {computed(g, value.name, *entry.type)} >> {value.name};")
            g.emit(f"cache.write {value.name} >> {table.name}[{lead}{i}];")
        g.emit("}")
    _afterwards(g, value, _other(g, table, ()))


def _risk(g: Graph) -> None:
    """A read that an input may put out of range: the step is refused, and nothing may have changed."""
    tables = [t for t in g.tables if not t.ring]
    if tables:
        table = g.r.choice(tables)
        lead = "".join(f"{g.index(c)}, " for c in table.capacities[:-1])
        read(g, f"{table.name}[{lead}{g.r.choice(g.indices)}+{g.r.randint(0, 2)}]", *table.entry.type)


def _afterwards(g: Graph, value: Var, at: str) -> None:
    """What was written is read again, changed, or needed once more; a later check may refuse."""
    r = g.r
    if r.random() < 0.3:
        g.scopes[-1].append(read(g, at, value.dtype, value.shape))
    if r.random() < 0.3:
        g.write_over(value)
    if r.random() < 0.3:
        g.op(computed(g, value.name, value.dtype, value.shape), value.dtype, value.shape)
    if r.random() < 0.2:
        _risk(g)


# ---------------------------------------------------------------- control flow


def carry(g: Graph) -> None:
    """A loop that hands on several values of one type: swapped, rotated, kept, or new ones."""
    r = g.r
    first = g.pick(lambda v: v.dtype in NUMBERS)
    if first is None or any(isinstance(d, str) for d in first.shape):
        return
    dtype, shape = first.type
    alike = [v.name for v in g.visible() if v.type == first.type]
    values = []
    for _ in range(r.randint(2, 3)):
        name = g.fresh("t")
        g.emit(f"assign {name}: {shaped(dtype, shape)};")
        source = r.choice(alike)
        if r.random() < 0.5:
            g.emit(f"transfer {source} >> {name};")
        else:
            g.emit(f"op {computed(g, source, dtype, shape)} >> {name};")
        values.append(Var(name, dtype, shape, True))
    start = values[0]
    if r.random() < 0.3:  # what the loop started from is needed after it
        start = Var(g.fresh("t"), dtype, shape, True)
        g.emit(f"assign {start.name}: {shaped(dtype, shape)};")
        g.emit(f"transfer {values[0].name} >> {start.name};")
    i = g.fresh("i")
    low, high, turns = g.bounds()
    g.emit(f"loop l{i} ({i} in {low}..{high}) {{")
    g.loops.append((i, turns))
    g.depth += 1
    g.scopes[-1] += values
    with g.scope():
        _hand_on(g, values)
        if r.random() < 0.4:
            g.statement()
        if r.random() < 0.3:
            _hand_on(g, values[::-1])
    g.depth -= 1
    g.loops.pop()
    g.emit("}")
    if start not in values:
        g.scopes[-1].append(start)
    g.op(computed(g, r.choice([start, *values]).name, dtype, shape), dtype, shape)


def _hand_on(g: Graph, values: list[Var]) -> None:
    """New values for the next iteration, in terms of those of this one."""
    r = g.r
    a, b = values[0], values[1]
    dtype, shape = a.type
    kind = r.random()
    if kind < 0.25:  # a swap, and the third stays as it is
        kept = _copy(g, a)
        g.emit(f"transfer {b.name} >> {a.name};")
        g.emit(f"transfer {kept.name} >> {b.name};")
    elif kind < 0.5:  # as Fibonacci's
        new = fresh(g, computed(g, a.name, dtype, shape), dtype, shape)
        g.emit(f"op {r.choice(('add', 'max'))}({new.name}, {b.name}) >> {new.name};")
        g.emit(f"transfer {b.name} >> {a.name};")
        g.emit(f"transfer {new.name} >> {b.name};")
    elif kind < 0.65:  # round and round
        kept = _copy(g, a)
        for to, of in itertools.pairwise(values):
            g.emit(f"transfer {of.name} >> {to.name};")
        g.emit(f"transfer {kept.name} >> {values[-1].name};")
    elif kind < 0.8:  # a branch swaps, or does not
        one, none = g.fresh("b"), g.fresh("b")
        body = [f"transfer {a.name} >> {{k}};", f"transfer {b.name} >> {a.name};", f"transfer {{k}} >> {b.name};"]
        k = g.fresh("t")
        lines = [f"assign {k}: {shaped(dtype, shape)};", *(line.format(k=k) for line in body)]
        g.blocks += [_text(one, lines), _text(none, [])]
        g.emit(f"branch {g.condition()} {one} {none};")
    elif kind < 0.87:  # two go on as one
        g.emit(f"transfer {b.name} >> {a.name};")
    else:  # one is made of the others
        g.emit(f"op {computed(g, b.name, dtype, shape)} >> {a.name};")
        if r.random() < 0.5:
            g.emit(f"op {computed(g, a.name, dtype, shape)} >> {b.name};")


def _copy(g: Graph, var: Var) -> Var:
    """A new temporary with the value of another variable."""
    name = g.fresh("t")
    g.emit(f"assign {name}: {shaped(*var.type)};")
    g.emit(f"transfer {var.name} >> {name};")
    return Var(name, *var.type, True)


def hold(g: Graph) -> None:
    """Values in memory that every iteration of a loop needs, some of them also after it."""
    r = g.r
    first = g.pick(lambda v: v.dtype in NUMBERS and v.known and len(v.shape) > 0 and 0 not in v.shape)
    if first is None:
        return
    held = [first]
    for _ in range(r.randint(2, 4)):
        held.append(fresh(g, kernel(g, r.choice(held).name, *first.type), *first.type))
    total = fresh(g, kernel(g, r.choice(held).name, *first.type), *first.type)
    loops = r.choice((1, 1, 2)) if g.depth + 2 <= g.options.depth else 1
    for _ in range(loops):
        i = g.fresh("i")
        low, high = r.choice((("0", "2"), ("0", "3"), g.bounds()[:2]))
        g.emit(f"loop l{i} ({i} in {low}..{high}) {{")
    with g.scope():
        for one in r.sample(held, r.randint(1, len(held))):
            part = fresh(g, kernel(g, one.name, *first.type), *first.type)
            if r.random() < 0.3:
                g.emit(f"op {kernel(g, part.name, *first.type)} >> {part.name};")
            g.emit(f"op {r.choice(('add', 'max'))}({total.name}, {part.name}) >> {total.name};")
    g.lines += ["}"] * loops
    g.scopes[-1] += [total, *r.sample(held, 1)]


def overwrite(g: Graph) -> None:
    """One temporary after another over the memory of the last, and now and then a look back."""
    r = g.r
    first = g.pick(lambda v: v.dtype in NUMBERS and v.known and len(v.shape) > 0)
    if first is None:
        return
    value = fresh(g, kernel(g, first.name, *first.type), *first.type)
    for _ in range(r.randint(2, 4)):
        call = kernel(g, value.name, *first.type) if r.random() < 0.6 else computed(g, value.name, *first.type)
        if r.random() < 0.4:
            g.emit(f"op {call} >> {value.name};")
            continue
        if r.random() < 0.3:
            g.scopes[-1].append(value)
        value = fresh(g, call, *first.type)
    g.scopes[-1].append(value)


def parts(g: Graph) -> None:
    """Rows of one variable, each computed of the row before, which may be needed again or be the same one."""
    r = g.r
    first = g.pick(lambda v: v.dtype in NUMBERS and v.known and len(v.shape) in (1, 2) and 0 not in v.shape)
    if first is None:
        return
    rows = r.randint(2, 3)
    sizes = ", ".join(map(str, (rows, *first.shape)))
    whole = fresh(g, f"broadcast_to({first.name}, shape=[{sizes}])", first.dtype, (rows, *first.shape))
    g.emit(f"op neg({whole.name}) >> {whole.name};")
    row = fresh(g, kernel(g, first.name, *first.type), *first.type)
    for _ in range(r.randint(1, 2)):
        g.emit(f"transfer {row.name} >> {whole.name}[{g.index(rows)}];")
        before, row = row, fresh(g, kernel(g, row.name, *first.type), *first.type)
        if r.random() < 0.5:
            g.op(kernel(g, before.name, *first.type), *first.type)
    g.emit(f"transfer {row.name} >> {whole.name}[{g.index(rows)}];")
    g.scopes[-1] += [whole, row]


def lopsided(g: Graph) -> None:
    """A branch that changes a variable on one side and leaves it on the other."""
    r = g.r
    var = g.pick(lambda v: v.writable and v.dtype in NUMBERS and v.known)
    if var is None:
        return
    lines = [f"op {computed(g, var.name, *var.type)} >> {var.name};" for _ in range(r.randint(1, 2))]
    one, none = g.fresh("b"), g.fresh("b")
    g.blocks += [_text(one, lines), _text(none, [])]
    targets = [one, none]
    r.shuffle(targets)
    loop = r.random() < 0.5
    if loop:
        i = g.fresh("i")
        low, high, _ = g.bounds()
        g.emit(f"loop l{i} ({i} in {low}..{high}) {{")
        if r.random() < 0.5:
            g.emit(f"op {computed(g, var.name, *var.type)} >> {var.name};")
    with g.scope():
        g.emit(f"branch {g.condition()} {' '.join(targets)};")
        if r.random() < 0.3:
            g.op(computed(g, var.name, *var.type), *var.type)
    if loop:
        g.emit("}")


def twice(g: Graph) -> None:
    """A block branched to from two places."""
    name = g.target()
    g.emit(f"branch {name};")
    if g.r.random() < 0.6:
        g.statement()
    if g.r.random() < 0.5:
        g.emit(f"branch {name};")
    else:
        none = g.fresh("b")
        g.blocks.append(_text(none, []))
        g.emit(f"branch {g.condition()} {name} {none};")


def hand_out(g: Graph) -> None:
    """Give variables to consumers, go on, and take them back; perhaps several times."""
    if not g.yields:
        return
    loop = g.depth < g.options.depth and g.r.random() < 0.3
    if loop:
        i = g.fresh("i")
        g.emit(f"loop l{i} ({i} in 0..{g.r.randint(1, 3)}) {{")
    given = _given(g)
    if loop:
        g.emit("}")
    while given:
        own = [given.pop() for _ in range(min(len(given), g.r.choice((1, 1, 2))))]
        g.blocks.append(g.consumer(own))
        g.scopes[0] += own


def _given(g: Graph) -> list[Var]:
    """Variables made for this, yielded and awaited; none where nothing can be handed out."""
    given: list[Var] = []
    for _ in range(g.r.randint(2, 3)):
        source = g.pick(lambda v: v.dtype in NUMBERS and v.known)
        if source is not None:
            name = g.fresh("y")
            g.sections["volatile"].append(f"{name}: {shaped(*source.type)};")
            g.emit(f"transfer {source.name} >> {name};")
            given.append(Var(name, *source.type, True))
    if not given:
        return []
    names = ", ".join(v.name for v in given)
    g.emit(f"yield {names};")
    with g.scope():
        g.yields, kept = False, g.yields
        if g.r.random() < 0.5:
            g.operator()
        g.yields = kept
    g.emit(f"await {names};")
    return given


def _text(name: str, lines: list[str]) -> str:
    body = "".join(f"        {line}\n" for line in lines)
    return f"    block {name} {{\n{body}        return;\n    }}\n"


IDIOMS = (
    (6, update), (4, scan), (4, perhaps), (3, shift), (3, recur), (6, wrap), (3, grow),
    (5, carry), (6, hold), (4, overwrite), (4, parts), (4, lopsided), (3, twice), (4, hand_out),
)  # fmt: skip
FLAT = (update, shift, recur, wrap, grow, overwrite, parts)  # no braces and no other statements
