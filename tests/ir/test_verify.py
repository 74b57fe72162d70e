"""Every rule that a module must obey: a module that breaks it is refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import oic
import oic.operators
from oic import dtypes
from oic.check.source import parse
from oic.driver import Settings, compile_graph
from oic.ir.core import Block, Op, Place, Value, clone_op
from oic.ir.index import AssertShape
from oic.ir.module import Module
from oic.ir.text_parse import parse_module
from oic.ir.types import INDEX, TensorType, Type
from oic.memory.verify import verify

GRAPH = """module "g" {stage="graph", source="g.oi"}
extents { N <= 8, n2 <= 8, n3 <= 8, n4 <= 4 }
%K = state {symbol="K", type=state<f32[2]; table(t:8)>, init=0} : state<f32[2]; table(t:8)>
%w = constant {symbol="w", type=f32[2]} : f32[2]

func {symbol="entry", inputs=["x"], outputs=["y"], pinned={}} body(%x: f32[N, 2]) {
  %0 = index.const {value=0} : index
  %3 = index.const {value=3} : index
  %n = index.size {size=N} : index
  %k = cache.read(%K, [%0]) {form="i", type=f32[2]} : f32[2] loc(3:1+9)
  %m, %a = for(%0, %3, [%n, %x]) {tag="t"} body(%i: index, %m0: index, %a0: f32[n2, 2]) {
    extent.bind(%m0) {extent=@n2, below="E", above="E", variable="size"}
    %b = mul(%a0, %w) : f32[n2, 2]
    yield([%m0, %b])
  } : index, f32[n3, 2] loc(4:1+5)
  extent.bind(%m) {extent=@n3, below="E", above="E", variable="size"}
  %y = add(%a, %k) : f32[n3, 2]
  return([%y])
}
"""


class Both(Op, name="test.both"):
    """Two results of the operand's type."""

    x: Value

    def infer(self) -> list[Type]:
        return [self.x.type, self.x.type]


DATA = {"w": np.ones(2, np.float32)}

PLANNED = """module "p" {stage="planned"}
extents { N <= 4 }
plan {
  state 64
  weights 0
  arena "entry" 128
  buffer "a" in arena+0 size 32 align 1 live 0 to 9 line 0 function "entry"
  buffer "b" in arena+32 size 32 align 1 live 0 to 9 line 0 function "entry"
  buffer "c" in arena+64 size 32 align 1 live 0 to 9 line 0 function "entry"
  buffer "y" in output+0 size 32 align 1 live 0 to 9 line 0 function "entry"
}
%K = state {symbol="K", type=state<f32[4, 2]>, init=0} : state<f32[4, 2]>

func {symbol="entry", inputs=["x"], outputs=["y"], pinned={}} body(%x: f32[4, 2] in input+0 "x") {
  %0 = index.const {value=0} : index
  %3 = index.const {value=3} : index
  %k = state.load(%K, []) {lengths=[4, 2]} : f32[4, 2] in state "K"
  %a = mul(%x, %k) : f32[4, 2] in arena+0 "a"
  state.store(%K, [], %a) {lengths=[4, 2]}
  %b = add(%a, %x) : f32[4, 2] in arena+32 "b"
  %c = for(%0, %3, [%b]) {tag="t"} body(%i: index, %b0: f32[4, 2] in arena+32 "b") {
    %d = mul(%b0, %a) : f32[4, 2] in arena+64 "c"
    %e = add(%d, %b0) : f32[4, 2] in arena+32 "b"
    yield([%e])
  } : f32[4, 2] in arena+32 "b"
  %t = transpose(%c) {perm=[1, 0]} : f32[2, 4] in arena "b" strides(1, 2)
  %r = reshape(%c) {shape=[2, 4]} : f32[2, 4] in arena "b"
  %u = add(%t, %r) : f32[2, 4] in arena+64 "c"
  %y = copy(%u) : f32[2, 4] in output+0 "y"
  return([%y])
}
"""


def test_right_modules_are_let_through() -> None:
    verify(parse_module(GRAPH, DATA))
    verify(parse_module(PLANNED))
    verify(parse_module(GRAPH, DATA).clone())


def named(module: Module, name: str) -> Value:
    """The value that the text calls by this name."""
    for op in module.all_ops():
        for block in op.regions:
            for arg in block.args:
                if arg.hint == name:
                    return arg
        for value in op.results:
            if value.hint == name:
                return value
    raise KeyError(name)


def _swap_ops(m: Module) -> None:
    ops = m.function("entry").body.ops
    ops[0], ops[4] = ops[4], ops[0]


def _leak(m: Module) -> None:
    op = named(m, "y").op
    assert op is not None
    op.a = named(m, "b")  # type: ignore[attr-defined]


def _owner(m: Module) -> None:
    named(m, "k").owner = named(m, "y").op


def _maker(m: Module) -> None:
    named(m, "k").op = named(m, "y").op


def _block(m: Module) -> None:
    op = named(m, "k").op
    assert op is not None
    op.block = m.top


def _argument_owner(m: Module) -> None:
    named(m, "a0").owner = m.top


def _type(m: Module) -> None:
    named(m, "b").type = TensorType(dtypes.f64, named(m, "b").shape)


def _no_terminator(m: Module) -> None:
    m.function("entry").body.ops.pop()


def _early_terminator(m: Module) -> None:
    block = m.function("entry").body
    block.set_ops([block.ops[-1], *block.ops])


def _twice(m: Module) -> None:
    block = m.function("entry").body
    block.set_ops([block.ops[0], *block.ops])


def _yield_short(m: Module) -> None:
    loop = named(m, "a").op
    assert loop is not None
    ends = loop.regions[0].terminator
    ends.values = ends.values[:-1]  # type: ignore[attr-defined]


def _yield_other(m: Module) -> None:
    loop = named(m, "a").op
    assert loop is not None
    ends = loop.regions[0].terminator
    ends.values = ends.values[::-1]  # type: ignore[attr-defined]


def _user_lost(m: Module) -> None:
    op = named(m, "y").op
    assert op is not None
    op.operands[0]._users.clear()


def _user_left(m: Module) -> None:
    """A part is changed past `Op.__setattr__`: the value that was there does not learn of it."""
    op = named(m, "y").op
    assert op is not None
    vars(op)["b"] = vars(op)["a"]


def _user_outside(m: Module) -> None:
    """An op of a block that is no part of the module."""
    op = named(m, "y").op
    assert op is not None
    Block(ops=[clone_op(op, {})])


def _state_argument(m: Module) -> None:
    op = named(m, "y").op
    assert op is not None
    op.b = named(m, "K")  # type: ignore[attr-defined]


def _unbound(m: Module) -> None:
    block = m.function("entry").body
    block.set_ops([o for o in block.ops if o.name != "extent.bind"])


def _bound_twice(m: Module) -> None:
    block = m.function("entry").body
    at = next(i for i, o in enumerate(block.ops) if o.name == "extent.bind")
    again = clone_op(block.ops[at], {})
    again.block = block
    block.ops.insert(at, again)


def _output_name(m: Module) -> None:
    m.function("entry").outputs.append("z")


def _size_shrinks(m: Module) -> None:
    """What the loop yields may be larger than the carried extent allows."""
    loop = named(m, "a").op
    assert loop is not None
    start = next(o for o in m.function("entry").body.ops if o.name == "index.size")
    assert start is not None
    bind = loop.regions[0].ops[0]
    old, new = bind.extent, type(bind.extent)("n4", 4)  # type: ignore[attr-defined]
    bind.extent = new  # type: ignore[attr-defined]
    from oic.ir import dims

    for value in (loop.regions[0].args[2], named(m, "b")):
        value.type = value.tensor.with_shape(
            tuple(
                dims.substitute(d, lambda e: dims.of(new if e == old else e)) for d in value.shape
            )
        )


def _data(m: Module) -> None:
    m.weights["w"] = np.ones(3, np.float32)


def _symbol(m: Module) -> None:
    next(iter(m.constants())).symbol = "K"


def _stage(m: Module) -> None:
    m.stage = "indexed"


BROKEN: list[tuple[Callable[[Module], None], str]] = [
    (_swap_ops, "not defined"),
    (_leak, "not defined"),
    (_owner, "owned by another"),
    (_maker, "owned by another"),
    (_block, "another block"),
    (_argument_owner, "owned by another"),
    (_type, "is inferred"),
    (_no_terminator, "one terminator"),
    (_early_terminator, "one terminator"),
    (_twice, "defined twice"),
    (_yield_short, "yields 1 values"),
    (_yield_other, "does not become"),
    (_user_lost, "does not know this user"),
    (_user_left, "a user that does not take it"),
    (_user_outside, "a user that does not take it"),
    (_state_argument, "not declared"),
    (_unbound, "before it is bound"),
    (_bound_twice, "bound twice"),
    (_output_name, "outputs are named"),
    (_size_shrinks, "may be larger"),
    (_data, "data of another shape"),
    (_symbol, "two things are called"),
    (_stage, "cache operation in indexed"),
]


@pytest.mark.parametrize(("break_it", "message"), BROKEN, ids=lambda b: getattr(b, "__name__", ""))
def test_broken_rule_is_found(break_it: Callable[[Module], None], message: str) -> None:
    module = parse_module(GRAPH, DATA)
    break_it(module)
    with pytest.raises(AssertionError, match=message):
        verify(module)


def test_the_op_is_shown_with_its_line() -> None:
    module = parse_module(GRAPH, DATA)
    named(module, "k").type = INDEX
    with pytest.raises(AssertionError) as broken:
        verify(module)
    assert "cache.read(%K, [%0])" in str(broken.value) and "g.oi:3:1" in str(broken.value)


MEMORY = [
    ("arena+32 \"b\"\n  %c", 'arena+0 "a"\n  %c', "carried in several places"),
    ("%d = mul(%b0, %a) : f32[4, 2] in arena+64 \"c\"", "%d = mul(%b0, %a) : f32[4, 2] in arena+32 \"b\"",
     "still needed"),
    ("in arena+64 \"c\"\n    %e", 'in arena+0 "a"\n    %e', "still needed"),
    ("%u = add(%t, %r) : f32[2, 4] in arena+64 \"c\"", "%u = add(%t, %r) : f32[2, 4] in arena+32 \"b\"",
     "not in place"),
    ("%u = add(%t, %r) : f32[2, 4] in arena+64 \"c\"", "%u = add(%t, %r) : f32[2, 4] in arena+96 \"c\"",
     "outside buffer"),
    ("%u = add(%t, %r) : f32[2, 4] in arena+64 \"c\"", "%u = add(%t, %r) : f32[2, 4] in arena+64 \"q\"",
     "no buffer"),
    ('arena "entry" 128', 'arena "entry" 64', "not inside the arena"),
    ("%u = add(%t, %r) : f32[2, 4] in arena+64 \"c\"", "%u = add(%t, %r) : f32[2, 4]", "no place"),
    ("%u = add(%t, %r) : f32[2, 4] in arena+64 \"c\"", "%u = add(%t, %r) : f32[2, 4] in arena \"c\"",
     "no address"),
    ("%b = add(%a, %x)", "%b = add(%k, %x)", "looks into"),
    ("in arena+64 \"c\"\n  %y", 'in arena+66 "c"\n  %y', "outside|aligned"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "message"), MEMORY)
def test_broken_memory_is_found(old: str, new: str, message: str) -> None:
    assert old in PLANNED
    with pytest.raises(AssertionError, match=message):
        verify(parse_module(PLANNED.replace(old, new, 1)))


def test_results_of_one_op_do_not_overlap() -> None:
    module = parse_module(
        PLANNED.replace(
            '%u = add(%t, %r) : f32[2, 4] in arena+64 "c"',
            '%s, %z = test.both(%c) : f32[4, 2], f32[4, 2] in arena+64 "c"\n'
            '  %u = add(%t, %r) : f32[2, 4] in arena+0 "a"',
        ).replace("f32[4, 2], f32", 'f32[4, 2] in arena+64 "c", f32')
    )
    with pytest.raises(AssertionError, match="share bytes"):
        verify(module)


def test_a_value_needed_after_a_loop_outlives_it() -> None:
    """`a` is used in the loop only, but by every turn."""
    text = PLANNED.replace(
        '%d = mul(%b0, %a) : f32[4, 2] in arena+64 "c"',
        '%d0 = mul(%b0, %a) : f32[4, 2] in arena+64 "c"\n'
        '    %d = mul(%d0, %d0) : f32[4, 2] in arena+0 "a"',
    )
    with pytest.raises(AssertionError, match="still needed"):
        verify(parse_module(text))


def test_place_of_a_constant_is_not_needed_to_be_in_a_buffer() -> None:
    module = parse_module(PLANNED)
    named(module, "x").place = Place("input", "x", 0)
    verify(module)


LAID_OUT = """
dynamic { x: f32[3]; }
constant { u: f32[3]; w: f32[3]; }
persistent { a: f32[3]; b: f32[3]; }
volatile { y: f32[3]; }
block entry { op add(x, u) >> y; op mul(y, w) >> y; cache.write y >> a; cache.write x >> b; return; }
"""


def laid_out() -> Module:
    draw = np.random.default_rng(0)
    model = oic.Model(tensors={name: draw.random(3, np.float32) for name in ("u", "w")})
    return compile_graph(parse(LAID_OUT, "g.oi"), model, Settings()).planned


@pytest.mark.parametrize(
    ("space", "moved", "message"),
    [("state", -8, "lies over"), ("state", 1 << 20, "outside"), ("weights", -64, "lies over"), ("weights", 1 << 20, "outside")],
)
def test_states_and_weights_lie_apart(space: str, moved: int, message: str) -> None:
    module = laid_out()
    verify(module)
    module.memory.space(space)[1].offset += moved
    with pytest.raises(AssertionError, match=message):
        verify(module)


def test_constants_lie_where_the_plan_says() -> None:
    module = laid_out()
    u, w = module.constants()
    u.result.place, w.result.place = w.result.place, u.result.place
    with pytest.raises(AssertionError, match="not that of the plan"):
        verify(module)


SIZE_OF_TWO_NAMES = """
dynamic { x: f32[N, 4] @max(N=4); k: i32; }
volatile { y: f32[N, 4]; }
block entry {
  assign z: f32[?, ?];
  loop turns (i in 0..k) { transfer x >> z; }
  op max(x, z) >> y;
  op neg(y) >> y;
}
"""


def test_a_result_may_lie_over_an_operand_whose_sizes_were_found_equal() -> None:
    """`z` has sizes of its own behind its loop, and those of `x` where the two meet."""
    program = compile_graph(parse(SIZE_OF_TWO_NAMES, "g.oi"), None, Settings(verified=True))
    (fused,) = (op for op in program.planned.all_ops() if op.name == "fused")
    (_, z) = fused.operands
    assert isinstance(z.op, AssertShape) and z.placed.space == fused.results[0].placed.space == "output"
