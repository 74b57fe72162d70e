"""A session over the interpreter: what may be inserted and fetched, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import oic.operators
from oic import dtypes
from oic.diagnostics import OicError, Source, Span, StepError
from oic.ir import dims
from oic.ir.dims import Extent
from oic.ir.text_parse import parse_module
from oic.reference import state_storage
from oic.reference.interpret import Machine
from oic.reference.variables import PersistentVariable
from oic.session.interface import Interface, SessionVariable, interface
from oic.session.simulator import SimulatorExecutor

TEXT = """module "g" {stage="graph", source="g.oi"}
extents { N <= 4 }
%K = state {symbol="K", type=state<f32; table(t:4)>, init=0} : state<f32; table(t:4)>
%w = constant {symbol="w", type=f32[2]} : f32[2]
func {symbol="entry", inputs=["x", "flags", "at"], outputs=["y"], pinned={}}
   body(%x: f32[N, 2], %flags: bool[N], %at: i32) {
  %m = mul(%x, %w) : f32[N, 2] loc(3:1+10)
  %y = add(%m, %x) : f32[N, 2] loc(4:1+10)
  %i = index.load(%at) : index loc(5:1+10)
  %v = splat {value=2.5, type=f32} : f32 loc(5:1+10)
  cache.write(%K, %v, [%i]) {form="i"} loc(5:1+10)
  return([%y])
}
func {symbol="one", inputs=["x"], outputs=["y"], pinned={"N": 1}} body(%x: f32[1, 2]) {
  %y = neg(%x) : f32[1, 2]
  return([%y])
}
func {symbol="pack", inputs=["bits"], outputs=["count"], pinned={}} body(%bits: u1[3]) {
  %count = cast(%bits) {to=f32} : f32[3]
  return([%count])
}
"""
SOURCE = Source("g.oi", "\n".join(f"statement {n} ends here;" for n in range(1, 9)))
n = dims.of(Extent("N", 4))
W = np.array([2, 3], np.float32)


def face() -> Interface:
    module = parse_module(TEXT, {"w": W}, SOURCE)
    block = Span(SOURCE, 0, len(SOURCE.text))
    variables = [
        SessionVariable("x", "dynamic", dtypes.f32, (n, 2)),
        SessionVariable("flags", "dynamic", dtypes.bool_, (n,)),
        SessionVariable("at", "dynamic", dtypes.i32),
        SessionVariable("bits", "dynamic", dtypes.u1, (3,)),
        SessionVariable("w", "constant", dtypes.f32, (2,), start=lambda: W),
        SessionVariable("y", "volatile", dtypes.f32, (n, 2), start=lambda: np.zeros((0, 2), np.float32)),
        SessionVariable("count", "volatile", dtypes.f32, (3,), start=lambda: np.full(3, 7, np.float32)),
        SessionVariable("K", "persistent", dtypes.f32, ()),
    ]
    return interface(module, variables, [("entry", block)])


@pytest.fixture
def ex() -> SimulatorExecutor:
    return SimulatorExecutor(face(), Machine(parse_module(TEXT, {"w": W}, SOURCE)))


X = np.array([[1, 2], [3, 4]], np.float32)
GOOD: dict[str, Any] = {"x": X, "flags": [True, False], "at": 1}


def test_insert_step_fetch(ex: SimulatorExecutor) -> None:
    ex.insert(x=X, at=np.int32(1))
    out = ex.step("entry", flags=np.array([True, False]))
    assert np.array_equal(out["y"], X * W + X) and np.array_equal(ex.fetch("y"), out["y"])
    assert ex.fetch("K").tolist() == [0, 2.5] and ex.fetch("w").tolist() == [2, 3]
    assert ex.fetch("count").tolist() == [7, 7, 7]
    ex.fetch("y")[:] = 0
    assert np.array_equal(ex.fetch("y"), out["y"])
    assert ex.step("one", x=X[:1])["y"].tolist() == [[-1, -2]]


def test_state_is_saved_loaded_forked_and_reset(ex: SimulatorExecutor) -> None:
    ex.step(**GOOD)
    saved, other = ex.save(), ex.fork()
    ex.reset()
    assert ex.fetch("K").shape == (0,) and other.fetch("K").shape == (2,)
    assert ex.fetch("y").shape == (0, 2)
    ex.load(saved)
    assert ex.fetch("K").tolist() == [0, 2.5]
    with pytest.raises(StepError, match="saved state"):
        ex.load(b"nothing")
    assert ex.fetch("K").tolist() == [0, 2.5]


WRONG = [
    ({"z": 1}, "OIC_ERR_INPUT", r"no input 'z' \(known: \w+, "),
    ({"flag": [True, True]}, "OIC_ERR_INPUT", "did you mean 'flags'?"),
    ({"w": W}, "OIC_ERR_INPUT", "'w' is constant"),
    ({"x": X.astype(np.float64)}, "OIC_ERR_INPUT", "given float64"),
    ({"at": np.int64(1)}, "OIC_ERR_INPUT", "given int64"),
    ({"at": 1 << 31}, "OIC_ERR_INPUT", "2147483648 is no value of i32"),
    ({"at": 1 << 70}, "OIC_ERR_INPUT", "is no value of i32"),
    ({"at": [1, None]}, "OIC_ERR_INPUT", "given object"),
    ({"at": 1.0}, "OIC_ERR_INPUT", "given float64"),
    ({"at": "1"}, "OIC_ERR_INPUT", r"'at' is i32, and was given text(.|\n)*numbers have no quotes"),
    ({"flags": [1, 0]}, "OIC_ERR_INPUT", "is bool"),
    ({"x": [[1, 2], [3]]}, "OIC_ERR_INPUT", "ragged"),
    ({"x": [[1.0, -1e39]]}, "OIC_ERR_INPUT", r"-1e\+39 is no value of f32"),
    ({"at": [1]}, "OIC_ERR_SHAPE", "has rank 0"),
    ({"x": X[0]}, "OIC_ERR_SHAPE", "has rank 2"),
    ({"x": X[:, :1]}, "OIC_ERR_SHAPE", "axis 1 of input 'x' is 2, and was given 1"),
    ({"bits": [0, 1, 2]}, "OIC_ERR_INPUT", "2 is no value of u1"),
    ({"bits": np.array([0, 1, 2], np.uint8)}, "OIC_ERR_INPUT", "2 is no value of u1"),
]


@pytest.mark.parametrize("stage", ["graph", "planned"])
def test_a_load_that_is_interrupted_leaves_no_half_of_a_state(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where Ctrl-C is pressed: further calls say so, until a reset or a load."""

    def interrupt(*given: object) -> None:
        raise KeyboardInterrupt

    text = "dynamic { x: f32; } persistent { n: i32; s: f32; } block entry { cache.write x >> s; cache.increment n; }"
    with oic.Simulator(oic.parse(text), stage=stage).make_executor() as ex:
        ex.step(x=1.0)
        saved = ex.save()
        for owner in (PersistentVariable, state_storage):
            monkeypatch.setattr(owner, "restore", interrupt)
        with pytest.raises(KeyboardInterrupt):
            ex.load(saved)
        monkeypatch.undo()
        for call in (ex.save, ex.fork, lambda: ex.step(x=2.0)):
            with pytest.raises(StepError, match="OIC_ERR_STATE"):
                call()
        assert ex._spoiled
        ex.load(saved)
        assert ex.save() == saved and not ex._spoiled


@pytest.mark.parametrize(("given", "status", "message"), WRONG)
def test_wrong_values_are_refused_when_inserted(
    ex: SimulatorExecutor, given: dict[str, Any], status: str, message: str
) -> None:
    with pytest.raises(StepError, match=message) as refused:
        ex.insert(given)
    assert refused.value.status == status
    assert refused.value.variable in given


MISMATCHED = [
    ({"x": X}, "OIC_ERR_INPUT", "'flags' was not given"),
    ({**GOOD, "flags": [True]}, "OIC_ERR_SHAPE", "size N of input 'flags' is 1, and 2"),
    ({**GOOD, "x": np.zeros((5, 2), np.float32)}, "OIC_ERR_SHAPE", "maximum 4"),
]


@pytest.mark.parametrize(("given", "status", "message"), MISMATCHED)
def test_inputs_must_be_there_and_agree(
    ex: SimulatorExecutor, given: dict[str, Any], status: str, message: str
) -> None:
    with pytest.raises(StepError, match=message) as refused:
        ex.step("entry", **given)
    assert refused.value.status == status
    with pytest.raises(StepError, match="'x' was not given"):
        ex.step()  # what was inserted is gone, although the step failed


def test_a_pinned_size_is_required(ex: SimulatorExecutor) -> None:
    with pytest.raises(StepError, match="axis 0 of input 'x' is 1 here, and was given 2"):
        ex.step("one", x=X)


def test_python_numbers_convert_where_nothing_is_lost(ex: SimulatorExecutor) -> None:
    assert ex.step("one", x=[[1, 2]])["y"].tolist() == [[-1, -2]]
    assert ex.step("pack", bits=[0, 1, 1])["count"].tolist() == [0, 1, 1]
    assert ex.step("entry", x=np.zeros((0, 2), np.float32), flags=[], at=0)["y"].shape == (0, 2)


def test_inserted_arrays_are_copied(ex: SimulatorExecutor) -> None:
    x = X.copy()
    ex.insert(x=x, flags=[True, True], at=0)
    x[:] = 0
    assert np.array_equal(ex.step()["y"], X * W + X)


def test_a_refusal_of_the_graph_points_at_its_statement(ex: SimulatorExecutor) -> None:
    with pytest.raises(StepError) as refused:
        ex.step("entry", **{**GOOD, "at": 4})
    error = refused.value
    assert (error.status, error.variable, error.index) == ("OIC_ERR_CACHE_FULL", "K.t", 4)
    assert error.span is not None and error.span.line == 5 and "statement 5" in str(error)


@pytest.mark.parametrize(
    ("name", "slug"),
    [("x", "fetch-dynamic"), ("yy", "unknown-variable"), ("q", "unknown-variable")],
)
def test_what_cannot_be_fetched_is_a_diagnostic(
    ex: SimulatorExecutor, name: str, slug: str
) -> None:
    with pytest.raises(OicError) as refused:
        ex.fetch(name)
    assert refused.value.diagnostics[0].slug == slug


def test_narrowed_outputs_and_entries() -> None:
    text = TEXT.replace('outputs=["y"]', "outputs=[]", 1)
    text = text.replace("return([%y])", "return([])", 1)
    module = parse_module(text, {"w": W}, SOURCE)
    variables = face().variables
    found = interface(module, (variables | {"y": replace(variables["y"], start=None)}).values())
    with SimulatorExecutor(found, Machine(module)) as ex:
        assert ex.step(**GOOD) == {}
        with pytest.raises(OicError, match="not among the outputs"):
            ex.fetch("y")
        with pytest.raises(OicError, match="did you mean 'entry'"):
            ex.step("entri", **GOOD)
    with pytest.raises(OicError, match="closed"):
        ex.fetch("y")


def test_trace_gives_a_record_a_statement(ex: SimulatorExecutor) -> None:
    ex.step(**GOOD)
    records = list(ex.trace())
    assert [(r.line, r.operator, r.block) for r in records] == [
        (3, "mul", "entry"), (4, "add", "entry"), (5, "cache.write", "entry"),
    ]  # fmt: skip
    assert records[1].operands == ("m", "x") and records[1].result == "y"
    assert all(r.microseconds >= 0 for r in records)
