"""Small programs for the tests of generated code, and what to do with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from oic import dtypes
from oic.check.source import parse
from oic.driver import Settings, compile_graph
from oic.dtypes import Array
from oic.ir import dims
from oic.ir.module import Module
from oic.library.emit import Files, LibrarySpec, emit
from oic.model import Model
from oic.session.interface import Interface, SessionVariable, interface
from oic.session.synthesizer import CompiledExecutor, CompiledProgram
from oic.toolchain.target import target

ELEMENTWISE = """
dynamic { x: f32[N, 4] @max(N=6); a: f32; }
constant { w: f32[4]; h16: f16[4]; }
volatile { y: f32[N, 4]; z: f16[N, 4]; m: bool[N, 4]; c: i32[N, 4]; }
block entry {
  assign t: f32[N, 4];
  assign t16: f16[N, 4];
  op mul(x, w) >> t;
  op add(t, a) >> t;
  op relu(t, alpha=0.1, clamp_max=3.5) >> y;
  op cast(y, to=f16) >> t16;
  op mul(t16, h16) >> t16;
  op sub(t16, h16) >> z;
  op lt(x, y) >> m;
  op cast(x, to=i32, rounding_mode="floor") >> c;
  return;
}
"""

COUNTER = """
dynamic { x: f32[3]; n: i32; }
volatile { y: f32[3]; count: i32; }
persistent { step: i32 @init(5); small: u8 @init(250); total: f32[3]; half: f16 @init(0.5); }
block entry {
  assign t: f32[3];
  cache.read total >> t;
  op add(t, x) >> t;
  cache.write t >> total;
  cache.increment step;
  cache.increment n small;
  cache.increment half;
  cache.read total >> y;
  cache.read step >> count;
  return;
}
"""

TABLE = """
dynamic { x: f32[N, 2] @max(N=4); }
volatile { newest: f32[N, 2]; all: f32[?, 2]; }
persistent { pos: i32 @init(0); K(l, t): f32[2] @table @fixed(l=3, t=8); }
block entry {
  assign h: f32[N, 2];
  transfer x >> h;
  loop layers (l in 0..3) {
    cache.write h >> K[l, pos..pos+N];
    op mul(h, h) >> h;
  }
  transfer h >> newest;
  cache.read K[1, 0..pos+N] >> all;
  cache.increment N pos;
  return;
}
block forget @entry { cache.reset K; cache.reset pos; return; }
"""

GROWING = """
dynamic { x: f32[2]; i: i32; }
volatile { all: f32[?, 2]; }
persistent { A(t): f32[2] @table; L(t): i32 @table; }
block entry { cache.write x >> A[i]; cache.write i >> L[i]; cache.read A[] >> all; return; }
"""

PACKED = """
dynamic { x: i4[5]; i: i32; }
volatile { y: i4[5]; all: i4[?, 5]; }
constant { w: i4[5]; }
persistent { A(t): i4[5] @table @fixed(t=7) @init(-3); }
block entry {
  op add(x, w) >> y;
  cache.write y >> A[i];
  cache.read A[0..i] >> all;
  return;
}
"""

BRANCHES = """
dynamic { x: f32[2, 3]; flag: bool; n: i32; }
volatile { y: f32[2, 3]; }
block entry {
  assign t: f32[2, 3];
  transfer x >> t;
  loop outer (i in 0..n) {
    loop inner (j in i..3) { op add(t, x) >> t; }
  }
  branch flag bigger smaller;
  transfer t >> y;
  return;
}
block bigger { op mul(t, t) >> t; return; }
block smaller { op neg(t) >> t; return; }
"""

# Names that mean something in C, or to the generated functions.
NAMES = """
dynamic { register: f32[N] @max(N=3); in: f32[N]; int32_t: f32; }
constant { NAN: f32[1]; memcpy: f32; }
volatile { out: f32[N]; s: f32[N]; double: f32[N]; }
persistent { state: i32; switch(class): f32 @table @fixed(class=4); switch_class: i32 @init(1); }
block entry {
  op add(register, in) >> out;
  op mul(out, int32_t) >> s;
  op add(s, memcpy) >> s;
  op sub(s, NAN) >> double;
  cache.increment state;
  cache.write int32_t >> switch[switch_class];
  return;
}
"""

# The ids are known only after the state was written.
LATE = """
dynamic { ids: i32[N] @max(N=3); }
volatile { y: f32[N]; }
constant { w: f32[4]; }
persistent { calls: i32; K(t): i32 @table @fixed(t=2); }
block entry {
  assign sums: i32[N];
  assign first: i32;
  cache.increment calls;
  cache.read calls >> first;
  cache.write first >> K[0];
  cache.read K[0] >> first;
  op add(ids, first) >> sums;
  op gather(w, sums) >> y;
  return;
}
"""

# Positions skipped, and entries that are whole, packed, and parts of what they may grow to.
RINGS = """
dynamic { x: f32[3]; h: i4[5]; m: f32[3,2]; o: i4[3,2]; u: f32; }
persistent {
  a(l, t): f32[3] @table @fixed(l=2, t=4) @ring(t);
  b(t): i4[5] @table @fixed(t=4) @ring(t);
  c(t, r, q): f32[2,2] @table @auto_dim(r, q) @fixed(t=4,r=6,q=6) @ring(t);
  e(t, r, q): i4[2,2] @table @auto_dim(r, q) @fixed(t=4,r=6,q=6) @ring(t);
  d(t): f32 @table @fixed(t=8) @ring(t) @init(0.5);
  k: i32 @init(0);
}
volatile { y: f32[3]; v: f32[?,?]; s: i4[5]; z: i4[?,?]; all: f32[?]; }
block entry {
  cache.write x >> a[0, k];
  cache.write h >> b[k];
  cache.write m >> c[k, 1, 0];
  cache.write o >> e[k, 1, 0];
  cache.write u >> d[k];
  cache.increment d[k];
  cache.increment 2 k;
  cache.write x >> a[0, k];
  cache.write h >> b[k];
  cache.write m >> c[k, 1, 0];
  cache.write o >> e[k, 1, 0];
  cache.read a[0, -1] >> y;
  cache.read b[-1] >> s;
  cache.read c[-2, 1, 0] >> v;
  cache.read e[-2, 1, 0] >> z;
  cache.read d[] >> all;
  cache.increment k;
  return;
}
"""

# Sizes that a branch gives and no op uses, loops whose values are needed late, entries of the state.
MOVED = """graph moved {
    dynamic { g: bool; x: f32[4, 8]; }
    volatile { y: f32[?]; z: f32[4, 8]; }
    persistent { n: i32; G(r): f32[2] @auto_dim(r) @fixed(r=8); K(t): f32[4, 8] @table @fixed(t=4); }
    block entry {
        branch g big small;
        cache.read G[] >> y;
        assign k: f32[4, 8];
        op relu(x) >> k;
        loop turns (i in 0..3) { op flip(k, axes=[0]) >> k; cache.write x >> K[i]; }
        op neg(k) >> z;
        op abs(x) >> k;
        op add(k, x) >> k;
        cache.write k >> K[3];
        return;
    }
    block big { cache.read G[n] >> y; cache.increment n; return; }
    block small { return; }
}
"""

# Variables without elements, which C has no arrays for.
EMPTY = """
dynamic { x: f32[0]; p: f32[2,0]; u: i4[3,0]; i: i32; }
persistent {
  P: f32[2,0];
  K(t): f32[0] @table @fixed(t=9);
  Q(t): i4[3,0] @table @fixed(t=2);
  R(t): f32[0] @table @fixed(t=4) @ring(t);
  n: i32;
}
volatile { y: f32[0]; q: f32[2,0]; v: i4[3,0]; all: f32[?,0]; }
block entry {
  cache.write p >> P;
  cache.read P >> q;
  cache.write x >> K[i];
  cache.read K[i] >> y;
  cache.write u >> Q[1];
  cache.read Q[0] >> v;
  cache.write x >> R[n];
  cache.increment n;
  cache.read R[-2..] >> all;
  return;
}
"""

# Integers that become floats where they lie: in an output, and in an entry of the state.
RETYPED = """
dynamic { x: i8[3,20]; w: i8[4,3,3]; i: i32; }
persistent { K(t): f32[4,18] @table @fixed(t=9); }
volatile { y: f32[4,18]; z: f32[4,18]; }
block entry {
  assign sum: i32[4,18];
  assign wide: f32[4,18];
  op conv1d(x, w, acc=i32) >> sum;
  op cast(sum, to=f32) >> wide;
  op relu(wide) >> wide;
  transfer wide >> y;
  op conv1d(x, w, acc=i32, padding=1, dilation=2) >> sum;
  op cast(sum, to=f32) >> wide;
  op neg(wide) >> wide;
  cache.write wide >> K[i];
  cache.read K[0] >> z;
  return;
}
"""

PROGRAMS = {
    "elementwise": ELEMENTWISE,
    "counter": COUNTER,
    "table": TABLE,
    "growing": GROWING,
    "packed": PACKED,
    "branches": BRANCHES,
    "names": NAMES,
    "late": LATE,
    "rings": RINGS,
    "moved": MOVED,
    "empty": EMPTY,
    "retyped": RETYPED,
}


def model() -> Model:
    """The constants of all programs."""
    return Model(
        tensors={
            "w": np.array([1.5, -2.0, 0.25, 3.0], np.float32),
            "h16": np.array([0.1, 2.0, -7.5, 1e-5], np.float16),
            "NAN": np.array([4.0], np.float32),
            "memcpy": np.array(0.5, np.float32),
        }
    )


def packed_model() -> Model:
    return Model(tensors={"w": (np.array([1, -2, 3, -8, 7], dtypes.i4.np), "i4")})


def planned(name: str) -> Module:
    """One of the programs, ready for C."""
    given = packed_model() if name == "packed" else model()
    return compile_graph(parse(PROGRAMS[name], f"{name}.oi"), given, Settings(verified=True)).planned


def face(module: Module) -> Interface:
    """What a session has to know: the variables, without their places in the source."""
    variables = {
        name: SessionVariable(name, "dynamic", arg.dtype, arg.shape)
        for f in module.functions()
        for name, arg in zip(f.inputs, f.body.args, strict=True)
    }
    for op in module.states():
        variables[op.symbol] = SessionVariable(op.symbol, "persistent", op.type.dtype, op.type.shape)
    return interface(module, variables.values())


def files(name: str, folder: Path, target_name: str = "portable", weights_as: str = "blob") -> Files:
    return emit(LibrarySpec(planned(name), target(target_name), weights_as), folder)


def executor(name: str, folder: Path, weights_as: str = "blob") -> CompiledExecutor:
    """A session over the compiled program."""
    module = planned(name)
    return CompiledProgram(LibrarySpec(module, target("portable"), weights_as), face(module)).build(folder).make_executor()


def random_inputs(module: Module, symbol: str, rng: np.random.Generator, step: int) -> dict[str, Array]:
    """Inputs of an entry; extents from 0 to their maximum, small integers, `i` the step's number."""
    f = module.function(symbol)
    sizes: dict[str, int] = {}
    found = {}
    for name, arg in zip(f.inputs, f.body.args, strict=True):
        for d in arg.shape:
            for e in dims.extents([d]):
                sizes.setdefault(e.name, int(rng.integers(0, min(e.maximum, 3) + 1)))
        shape = tuple(dims.evaluate(d, sizes) for d in arg.shape)
        if arg.dtype.is_float:
            values = rng.standard_normal(shape)
        elif name == "i":
            values = np.full(shape, step)
        else:
            values = rng.integers(0, 2 if arg.dtype.kind == "bool" else 5, shape)
        found[name] = np.asarray(values).astype(arg.dtype.np)
    return found
