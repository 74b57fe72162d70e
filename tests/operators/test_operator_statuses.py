"""What an operator refuses at run time: the status of the step, the same in every backend."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oic
from oic.dtypes import Array
from tests.fuzz.operator_campaign import compiled_together

BACKENDS = ("graph", "planned", "c")


@dataclass(frozen=True)
class Refusal:
    """An operator, inputs that it refuses, and inputs that it takes.

    dynamic   declarations
    result    type of the result
    op        the call
    status    of the refused step
    """

    dynamic: str
    result: str
    op: str
    status: str
    refused: dict[str, Any]
    taken: dict[str, Any]

    def text(self, name: str) -> str:
        return (
            f"graph {name} {{ dynamic {{ {self.dynamic} }} volatile {{ y: {self.result}; }}"
            f" block entry {{ op {self.op} >> {'y, z' if 'z:' in self.result else 'y'}; return; }} }}"
        )


def zeros(*shape: int) -> Array:
    return np.zeros(shape, np.float32)


def ids(*values: int, dtype: Any = np.int32) -> Array:
    return np.array(values, dtype)


GATHER = "table: f32[5, 2]; ids: i32[3];"
SHIFT = "x: i8[3]; n: i32;"
CUT = "x: f32[6]; a: i32; b: i32;"
TWO = "a: f32[N] @max(N=8); b: f32[M] @max(M=8);"
LINE = "x: f32[2, N] @max(N=8);"
INDEX, SHAPE = "OIC_ERR_INDEX", "OIC_ERR_SHAPE"
BYTES = np.ones(3, np.int8)

REFUSALS = {
    "gather_above": Refusal(
        GATHER, "f32[3, 2]", "gather(table, ids)", INDEX,
        {"table": zeros(5, 2), "ids": ids(0, 5, 1)}, {"table": zeros(5, 2), "ids": ids(0, 4, 1)},
    ),
    "gather_below": Refusal(
        GATHER, "f32[3, 2]", "gather(table, ids)", INDEX,
        {"table": zeros(5, 2), "ids": ids(0, -1, 1)}, {"table": zeros(5, 2), "ids": ids(0, 0, 1)},
    ),
    "gather_wide": Refusal(
        "table: f16[2, 5]; ids: i64[1];", "f32[2, 1]", "gather(table, ids, axis=1, to=f32)", INDEX,
        {"table": np.zeros((2, 5), np.float16), "ids": ids(1 << 40, dtype=np.int64)},
        {"table": np.zeros((2, 5), np.float16), "ids": ids(4, dtype=np.int64)},
    ),
    "shl_negative": Refusal(
        SHIFT, "i8[3]", "shl(x, bits=n)", INDEX, {"x": BYTES, "n": np.int32(-1)}, {"x": BYTES, "n": np.int32(9)}
    ),
    "shr_negative": Refusal(
        SHIFT, "i8[3]", "shr(x, bits=n)", INDEX, {"x": BYTES, "n": np.int32(-9)}, {"x": BYTES, "n": np.int32(0)}
    ),
    "slice_order": Refusal(
        CUT, "f32[?]", "slice(x, axis=0, start=a, end=b)", INDEX,
        {"x": zeros(6), "a": np.int32(3), "b": np.int32(2)}, {"x": zeros(6), "a": np.int32(3), "b": np.int32(3)},
    ),
    "slice_start": Refusal(
        CUT, "f32[?]", "slice(x, axis=0, start=a, end=b)", INDEX,
        {"x": zeros(6), "a": np.int32(-1), "b": np.int32(2)}, {"x": zeros(6), "a": np.int32(0), "b": np.int32(2)},
    ),
    "slice_end": Refusal(
        CUT, "f32[?]", "slice(x, axis=0, start=a, end=b, step=2)", INDEX,
        {"x": zeros(6), "a": np.int32(1), "b": np.int32(7)}, {"x": zeros(6), "a": np.int32(1), "b": np.int32(6)},
    ),
    "broadcast": Refusal(
        TWO, "f32[?]", "add(a, b)", SHAPE,
        {"a": zeros(3), "b": zeros(4)}, {"a": zeros(3), "b": zeros(3)},
    ),
    "no_stretch": Refusal(
        TWO, "f32[?]", "mul(a, b)", SHAPE,
        {"a": zeros(1), "b": zeros(4)}, {"a": zeros(1), "b": zeros(1)},
    ),
    "matmul": Refusal(
        "a: f32[2, N] @max(N=8); b: f32[M, 2] @max(M=8);", "f32[2, 2]", "matmul(a, b)", SHAPE,
        {"a": zeros(2, 3), "b": zeros(4, 2)}, {"a": zeros(2, 0), "b": zeros(0, 2)},
    ),
    "split": Refusal(LINE, "f32[2, 4]", "split(x, axis=1, sizes=[4])", SHAPE, {"x": zeros(2, 3)}, {"x": zeros(2, 4)}),
    "reshape": Refusal(LINE, "f32[8]", "reshape(x, shape=[8])", SHAPE, {"x": zeros(2, 3)}, {"x": zeros(2, 4)}),
    "max_axis": Refusal(LINE, "f32[2]", "max_axis(x, axes=[1])", SHAPE, {"x": zeros(2, 0)}, {"x": zeros(2, 1)}),
    "argmin_axis": Refusal(LINE, "i64[2]", "argmin_axis(x, axis=-1)", SHAPE, {"x": zeros(2, 0)}, {"x": zeros(2, 1)}),
    "conv1d": Refusal(
        "x: f32[2, N] @max(N=8); w: f32[3, 2, 3];", "f32[3, ?]", "conv1d(x, w)", SHAPE,
        {"x": zeros(2, 1), "w": zeros(3, 2, 3)}, {"x": zeros(2, 2), "w": zeros(3, 2, 3)},
    ),
    "conv1d_stride": Refusal(
        "x: f32[2, N] @max(N=8); w: f32[3, 2, 4];", "f32[3, ?]", "conv1d(x, w, stride=2)", SHAPE,
        {"x": zeros(2, 1), "w": zeros(3, 2, 4)}, {"x": zeros(2, 2), "w": zeros(3, 2, 4)},
    ),
    "conv_transpose1d": Refusal(
        "x: f32[2, N] @max(N=8); w: f32[2, 3, 2];", "f32[3, ?]", "conv_transpose1d(x, w, padding=1, stride=2)", SHAPE,
        {"x": zeros(2, 0), "w": zeros(2, 3, 2)}, {"x": zeros(2, 1), "w": zeros(2, 3, 2)},
    ),
    "conv1d_groups": Refusal(
        "x: f32[4, 9]; w: f32[N, 2, 3] @max(N=8);", "f32[?, 7]", "conv1d(x, w, groups=2)", SHAPE,
        {"x": zeros(4, 9), "w": zeros(3, 2, 3)}, {"x": zeros(4, 9), "w": zeros(4, 2, 3)},
    ),
    "rope": Refusal(
        "x: f32[1, 1, N] @max(N=8);", "f32[1, 1, ?]", "rope(x, pos=3, dims=4)", SHAPE,
        {"x": zeros(1, 1, 2)}, {"x": zeros(1, 1, 5)},
    ),
    "max_pool": Refusal(
        LINE, "f32[2, ?]", "max_pool(x, kernel=3, stride=1)", SHAPE, {"x": zeros(2, 1)}, {"x": zeros(2, 2)}
    ),
    "top_k": Refusal(LINE, "f32[2, 3]; z: i32[2, 3]", "top_k(x, k=3)", SHAPE, {"x": zeros(2, 2)}, {"x": zeros(2, 3)}),
    "sample": Refusal(
        "x: f32[N] @max(N=8); u: f32;", "i32", "sample(x, u)", SHAPE,
        {"x": zeros(0), "u": np.float32(0.5)}, {"x": zeros(1), "u": np.float32(0.5)},
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Every program in every backend."""
    graphs = {name: oic.parse(r.text(name), f"{name}.oi") for name, r in REFUSALS.items()}
    together = compiled_together(list(graphs.values()), tmp_path_factory.mktemp("statuses"), ("-O1",))
    return {
        name: {"graph": oic.Simulator(g), "planned": oic.Simulator(g, stage="planned"), "c": c}
        for (name, g), c in zip(graphs.items(), together, strict=True)
    }


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", REFUSALS)
def test_the_step_is_refused_and_the_next_one_is_not(name: str, backend: str, programs: dict[str, Any]) -> None:
    refusal = REFUSALS[name]
    with programs[name][backend].make_executor() as executor:
        with pytest.raises(oic.StepError) as caught:
            executor.step(**refusal.refused)
        assert caught.value.status == refusal.status
        executor.step(**refusal.taken)


@pytest.mark.parametrize("stage", ["graph", "planned"])
@pytest.mark.parametrize("name", [name for name, r in REFUSALS.items() if "@max" not in r.dynamic])
def test_what_a_model_gives_is_refused_too(name: str, stage: Any) -> None:
    """Of constants alone a result would be computed at build: the compiler refuses them, or the step does."""
    refusal = REFUSALS[name]
    graph = oic.parse(refusal.text(name).replace("dynamic", "constant"))
    with pytest.raises(oic.Refusal) as caught, oic.Simulator(graph, oic.Model(refusal.refused), stage=stage).make_executor() as ex:
        ex.step()
    assert not isinstance(caught.value, oic.StepError) or caught.value.status == refusal.status
    with oic.Simulator(graph, oic.Model(refusal.taken), stage=stage).make_executor() as ex:
        ex.step()


@pytest.mark.parametrize("bad", ["nan", "inf"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_ids_and_masked_entries_decide_alone(bad: str, backend: str, tmp_path: Path) -> None:
    """A NaN that no id selects, and one behind a mask, has no effect."""
    text = (
        "graph unread { dynamic { table: f32[3, 2]; ids: i32[1]; q: f32[1, 1, 2]; k: f32[3, 1, 2]; mask: bool[3]; }"
        " volatile { y: f32[1, 2]; z: f32[1, 1, 2]; } block entry { op gather(table, ids) >> y;"
        " op attention(q, k, k, mask=mask) >> z; return; } }"
    )
    table = np.array([[1, 2], [bad, bad], [3, 4]], np.float32)
    graph = oic.parse(text, "unread.oi")
    made: Any = oic.Synthesizer(graph).build(tmp_path) if backend == "c" else oic.Simulator(graph, stage=backend)
    with made.make_executor() as executor:
        inputs = {"table": table, "ids": ids(2), "q": np.ones((1, 1, 2), np.float32), "k": table[:, None]}
        executor.step(**inputs, mask=np.array([True, False, False]))
        assert executor.fetch("y").tolist() == [[3.0, 4.0]]
        assert executor.fetch("z").tolist() == [[[1.0, 2.0]]]
