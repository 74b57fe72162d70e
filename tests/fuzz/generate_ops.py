"""Random applications of operators to the variables at hand."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.fuzz.pool import Dim, Pool, Shape, Var, added, size_text

FLOATS = ("f32", "f16", "f64", "bf16")
INTEGERS = ("i32", "i8", "u8", "i64")
SAFE = ("tanh", "sigmoid", "relu", "neg", "abs", "silu", "round", "floor")


class Operators(Pool):
    """Statements of one operator each; every method gives up quietly where nothing fits."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.kinds: list[tuple[int, Callable[[], None]]] = [
            (6, self.unary), (9, self.binary), (3, self.setting), (3, self.choose), (3, self.compare),
            (3, self.cast), (4, self.reduce), (3, self.matmul), (2, self.linear), (2, self.rows),
            (4, self.concat), (2, self.gather), (4, self.reshape), (4, self.transpose),
            (5, self.slice), (2, self.run_time_slice), (4, self.split), (3, self.broadcast),
            (2, self.move),
        ]  # fmt: skip

    def operator(self) -> None:
        """One operator on the variables in scope."""
        self.r.choices([k for _, k in self.kinds], [w for w, _ in self.kinds])[0]()

    def op(self, call: str, dtype: str, shape: Shape, *, fresh: bool = False) -> None:
        """`op call >> result;` into a variable of this type."""
        result = self.destination(dtype, shape, fresh=fresh)
        self.emit(f"op {call} >> {result};")

    def any(self, *dtypes: str, rank: int = 0) -> Var | None:
        """A variable of one of these types (any, if none is given) and at least this rank."""
        return self.pick(lambda v: (not dtypes or v.dtype in dtypes) and len(v.shape) >= rank)

    # -- elementwise -----------------------------------------------------------

    def unary(self) -> None:
        x = self.any(*FLOATS, "i32", "i8", "bool")
        if x is None:
            return
        if x.dtype == "bool":
            name = "not"
        elif x.dtype in FLOATS:
            name = self.r.choice(SAFE)
        else:
            name = self.r.choice(("neg", "abs", "not", "relu"))
        self.op(f"{name}({x.name})", x.dtype, x.shape)

    def binary(self) -> None:
        a = self.any()
        if a is None:
            return
        b = self.pick(lambda v: v.dtype == a.dtype and self.stretches(v.shape, a.shape)) or a
        first, second = (a, b) if self.r.random() < 0.5 else (b, a)
        names = ["add", "mul"] if a.dtype == "bool" else ["add", "sub", "mul", "min", "max"]
        if a.dtype in INTEGERS:
            names += ["and", "xor", "div", "rem"]
        if a.dtype == "bool":
            names += ["and", "or", "xor"]
        self.op(f"{self.r.choice(names)}({first.name}, {second.name})", a.dtype, a.shape)

    def stretches(self, small: Shape, large: Shape) -> bool:
        """`small` broadcasts to `large`."""
        if len(small) > len(large):
            return False
        tail = large[len(large) - len(small) :]
        return all(a == b or a == 1 for a, b in zip(small, tail))

    def chain(self) -> None:
        """Several elementwise operators in a row, in place or through temporaries."""
        x = self.any("f32", "i32")
        if x is None:
            return
        name = x.name
        for _ in range(self.r.randint(2, 4)):
            b = self.pick(lambda v: v.dtype == x.dtype and self.stretches(v.shape, x.shape)) or x
            call = self.r.choice((f"add({name}, {b.name})", f"max({b.name}, {name})", f"neg({name})"))
            result = self.destination(x.dtype, x.shape, fresh=self.r.random() < 0.6)
            self.emit(f"op {call} >> {result};")
            name = result

    def setting(self) -> None:
        """An operator whose setting is a variable."""
        x = self.any("f32", "f64")
        if x is None:
            return
        scalars = [v.name for v in self.visible() if v.dtype == x.dtype and v.shape == ()]
        scalars += self.floats if x.dtype == "f32" else []
        value = self.r.choice([*scalars, "0.25"])
        other = self.r.choice([*scalars, "-0.5"])
        call = self.r.choice((f"relu({x.name}, alpha={value})", f"clamp({x.name}, min={other}, max={value})",
                              f"fill({x.name}, value={value})"))  # fmt: skip
        self.op(call, x.dtype, x.shape)

    def choose(self) -> None:
        a = self.any(*FLOATS, *INTEGERS)
        if a is None:
            return
        b = self.pick(lambda v: v.dtype == a.dtype and self.stretches(v.shape, a.shape)) or a
        c = self.pick(lambda v: v.dtype == "bool" and self.stretches(v.shape, a.shape))
        if c is not None and self.r.random() < 0.7:
            self.op(f"where({c.name}, {a.name}, {b.name})", a.dtype, a.shape)
        else:
            self.op(f"filter({a.name}, {b.name}, {a.name})", a.dtype, a.shape)

    def compare(self) -> None:
        a = self.any(*FLOATS, *INTEGERS)
        if a is None:
            return
        b = self.pick(lambda v: v.dtype == a.dtype and self.stretches(v.shape, a.shape)) or a
        name = self.r.choice(("lt", "ge", "eq", "ne"))
        self.op(f"{name}({a.name}, {b.name})", "bool", a.shape)

    def cast(self) -> None:
        x = self.any()
        if x is None:
            return
        to = self.r.choice(("f32", "i32", "f16", "i8", "bool"))
        narrow = x.dtype in (*INTEGERS, "i4") and to in INTEGERS
        saturate = ", saturate=false" if narrow else ""
        self.op(f"cast({x.name}, to={to}{saturate})", to, x.shape)

    # -- with axes -------------------------------------------------------------

    def axis(self, x: Var) -> int:
        return self.r.randrange(len(x.shape))

    def reduce(self) -> None:
        x = self.any(*FLOATS, *INTEGERS, rank=1)
        if x is None:
            return
        axis = self.axis(x)
        left = (*x.shape[:axis], *x.shape[axis + 1 :])
        kept = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
        name = self.r.choice(("sum", "mean", "max"))
        some = isinstance(x.shape[axis], int) and x.shape[axis] != 0
        if name == "max" and not some:
            name = "sum"
        if self.r.random() < 0.2 and some:
            self.op(f"argmax_axis({x.name}, axis={axis})", "i64", left)
        elif self.r.random() < 0.5:
            self.op(f"{name}_axis({x.name}, axes=[{axis}], keepdims=true)", x.dtype, kept)
        else:
            self.op(f"{name}_axis({x.name}, axes=[{axis}])", x.dtype, left)

    def matmul(self) -> None:
        a = self.any("f32", "i32", "f16", rank=2)
        if a is None:
            return
        b = self.pick(lambda v: v.dtype == a.dtype and len(v.shape) == 2 and v.shape[0] == a.shape[-1])
        if b is not None:
            self.op(f"matmul({a.name}, {b.name})", a.dtype, (*a.shape[:-1], b.shape[1]))

    def linear(self) -> None:
        x = self.any("f32", "f16", rank=1)
        if x is None:
            return
        w = self.pick(
            lambda v: v.dtype == x.dtype and len(v.shape) == 2 and v.shape[1] == x.shape[-1] and v.known
        )
        if w is None:
            return
        b = self.pick(lambda v: v.dtype == x.dtype and v.shape == (w.shape[0],))
        bias = f", b={b.name}" if b is not None and self.r.random() < 0.5 else ""
        self.op(f"linear({x.name}, {w.name}{bias})", x.dtype, (*x.shape[:-1], w.shape[0]))

    def rows(self) -> None:
        """Softmax, norms and scans."""
        x = self.any("f32", "f16", rank=1)
        if x is None:
            return
        g = self.pick(lambda v: v.dtype == x.dtype and v.shape == (x.shape[-1],) and v.known)
        calls = [f"softmax({x.name})", f"softmax({x.name}, axis=0)", f"cumsum({x.name}, axis={self.axis(x)})"]
        if g is not None:
            calls.append(f"rms_norm({x.name}, {g.name}, eps=1e-5)")
        self.op(self.r.choice(calls), x.dtype, x.shape)

    def concat(self) -> None:
        a = self.any(rank=1)
        if a is None:
            return
        axis = self.axis(a)

        def fits(v: Var) -> bool:
            alike = v.dtype == a.dtype and len(v.shape) == len(a.shape)
            return alike and all(i == axis or p == q for i, (p, q) in enumerate(zip(v.shape, a.shape)))

        b = self.pick(fits) or a
        total = added(a.shape[axis], b.shape[axis])
        if total is not None:
            shape: Shape = (*a.shape[:axis], total, *a.shape[axis + 1 :])
            self.op(f"concat({a.name}, {b.name}, axis={axis})", a.dtype, shape, fresh=not a.known)

    def gather(self) -> None:
        table = self.pick(lambda v: len(v.shape) >= 1 and isinstance(v.shape[0], int) and v.shape[0] > 2)
        ids = self.r.choice(self.ids)
        if table is not None:
            if self.r.random() < 0.3 and len(ids.shape) == 2:
                result = self.destination("i32", (ids.shape[1], ids.shape[0]))
                self.emit(f"op transpose({ids.name}, perm=[1, 0]) >> {result};")
                shape: Shape = (ids.shape[1], ids.shape[0], *table.shape[1:])
                self.op(f"gather({table.name}, {result})", table.dtype, shape)
                return
            self.op(f"gather({table.name}, {ids.name})", table.dtype, (*ids.shape, *table.shape[1:]))

    # -- views -----------------------------------------------------------------

    def reshape(self) -> None:
        x = self.any()
        if x is None or any(isinstance(d, str) for d in x.shape):
            return
        shape = self.reshaped(x.shape)
        sizes = ", ".join(map(size_text, shape))
        self.op(f"reshape({x.name}, shape=[{sizes}])", x.dtype, shape)

    def reshaped(self, shape: Shape) -> Shape:
        """Another shape of as many elements."""
        moving = [d for d in shape if not isinstance(d, int)]
        count = 1
        for d in shape:
            count *= d if isinstance(d, int) else 1
        fixed: list[Dim] = [count]
        for factor in (2, 3, 4):
            if count % factor == 0 and self.r.random() < 0.4:
                fixed = [factor, count // factor]
        if self.r.random() < 0.3:
            fixed.append(1)
        at = self.r.randint(0, len(fixed))
        return (*fixed[:at], *moving, *fixed[at:])

    def transpose(self) -> None:
        x = self.any(rank=2)
        if x is None:
            return
        perm = list(range(len(x.shape)))
        self.r.shuffle(perm)
        self.op(f"transpose({x.name}, perm={perm})", x.dtype, tuple(x.shape[p] for p in perm))

    def slice(self) -> None:
        x = self.any(rank=1)
        if x is None:
            return
        axis = self.axis(x)
        size = x.shape[axis]
        if not isinstance(size, int):
            return
        start = self.r.randint(0, size)
        end = self.r.randint(start, size)
        step = self.r.choice((1, 1, 2))
        length = (end - start + step - 1) // step
        shape: Shape = (*x.shape[:axis], length, *x.shape[axis + 1 :])
        more = f", step={step}" if step > 1 else ""
        self.op(f"slice({x.name}, axis={axis}, start={start}, end={end}{more})", x.dtype, shape)

    def run_time_slice(self) -> None:
        x = self.any(rank=1)
        if x is None:
            return
        axis = self.axis(x)
        if not isinstance(x.shape[axis], int):
            return
        end = self.r.choice((*self.indices, "N"))
        length: Dim = (1, 0) if end == "N" else self.fresh("?")
        shape: Shape = (*x.shape[:axis], length, *x.shape[axis + 1 :])
        self.op(f"slice({x.name}, axis={axis}, start=0, end={end})", x.dtype, shape)

    def split(self) -> None:
        x = self.any(rank=1)
        if x is None:
            return
        axis = self.axis(x)
        size = x.shape[axis]
        if not isinstance(size, int) or size < 2:
            return
        first = self.r.randint(0, size)
        parts = [first, size - first]
        results = [
            self.destination(x.dtype, (*x.shape[:axis], n, *x.shape[axis + 1 :]), fresh=True) for n in parts
        ]
        self.emit(f"op split({x.name}, axis={axis}, sizes={parts}) >> {', '.join(results)};")

    def broadcast(self) -> None:
        x = self.any()
        if x is None or len(x.shape) > 2:
            return
        shape: Shape = tuple(self.r.choice((2, 3)) if d == 1 else d for d in x.shape)
        if self.r.random() < 0.6:
            shape = (self.r.choice((1, 2, 3)), *shape)
        if any(isinstance(d, str) for d in shape):
            return
        sizes = ", ".join(map(size_text, shape))
        self.op(f"broadcast_to({x.name}, shape=[{sizes}])", x.dtype, shape)

    def move(self) -> None:
        """Copies in another order."""
        x = self.any(rank=1)
        if x is None:
            return
        axis = self.axis(x)
        size = x.shape[axis]
        kind = self.r.random()
        if kind < 0.4:
            self.op(f"flip({x.name}, axes=[{axis}])", x.dtype, x.shape)
        elif kind < 0.7 and isinstance(size, int):
            shape: Shape = (*x.shape[:axis], 2 * size, *x.shape[axis + 1 :])
            self.op(f"repeat({x.name}, times=2, axis={axis})", x.dtype, shape)
        elif isinstance(size, int) and x.dtype in ("f32", "i32"):
            before = [int(i == axis) for i in range(len(x.shape))]
            shape = (*x.shape[:axis], size + 2, *x.shape[axis + 1 :])
            self.op(f"pad({x.name}, before={before}, after={before})", x.dtype, shape)
