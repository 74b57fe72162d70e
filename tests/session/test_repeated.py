"""Steps on inputs like those of the step before go a shorter way, and answer alike."""

from __future__ import annotations

import numpy as np
import pytest

import oic
from oic.session.synthesizer import CompiledExecutor

TEXT = """graph repeated {
dynamic { x: f32[N] @max(N=8); ids: i32[2]; }
constant { w: f32[4] @init(2.0); }
persistent { steps: i32; }
volatile { y: f32[N]; z: f32[2]; last: f32; }
block entry {
op add(x, x) >> y; op gather(w, ids, axis=0) >> z; cache.increment steps;
assign one: f32[1]; op sum_axis(z, axes=[0], keepdims=true) >> one; op reshape(one, shape=[]) >> last;
return;
}
}"""


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_every_step_answers_for_its_own_inputs() -> None:
    maker, ids = oic.Synthesizer(oic.parse(TEXT)).build(), np.array([0, 1], np.int32)
    with maker.make_executor() as ex:
        assert ex._calls["entry"].repeats  # also where an output is computed as a value of another shape
        kept = [ex.step(x=f32(i, 1), ids=ids) for i in range(3)]
        kept[2]["y"][:] = 9  # the caller's own
        assert [list(out["y"]) for out in kept] == [[0, 2], [2, 2], [9, 9]]
        assert [out["last"].shape for out in kept] == [()] * 3 and kept[1]["last"] == 4
        assert list(ex.step(x=f32(5, 6)[::-1], ids=ids)["y"]) == [12, 10]
        assert list(ex.fetch("y")) == [12, 10] and ex.fetch("steps") == 4
        assert list(ex.step(x=f32(1, 2, 3), ids=ids)["y"]) == [2, 4, 6]  # of another size
        ex.insert(x=f32(7, 8, 9))
        assert list(ex.step(ids=ids)["y"]) == [14, 16, 18]
        assert list(ex.step(ids=ids, x=[1, 2, 3])["y"]) == [2, 4, 6]
        for wrong in ({"x": f32(1, 2, 3)}, {"x": np.ones(3), "ids": ids}, {"x": f32(1), "ids": ids, "q": ids}):
            with pytest.raises(oic.StepError, match="OIC_ERR_INPUT"):
                ex.step(**wrong)
        with pytest.raises(oic.StepError) as refused:
            ex.step(x=f32(1, 2, 3), ids=ids + 3)
        assert refused.value.status == "OIC_ERR_INDEX" and ex.fetch("steps") == 7
        with pytest.raises(oic.StepError, match="OIC_ERR_INPUT"):
            ex.step(ids=ids)  # nothing is left of the refused step's inputs
        assert list(ex.step(x=f32(1, 2, 3), ids=ids)["z"]) == [2, 2]
    with pytest.raises(oic.OicError, match="closed"):
        ex.step(x=f32(1, 2, 3), ids=ids)


LARGE = """graph large {
dynamic { x: f32[N, 64] @max(N=64); by: f32; } volatile { z: f32[64]; y: f32[N, 64]; }
block entry { op mul(x, by) >> y; op sum_axis(y, axes=[0]) >> z; return; }
}"""


def test_large_arrays_are_read_where_they_are_and_made_anew() -> None:
    """Those that are no array in the order and at addresses of C are copied, as at the first step."""
    draw = np.random.default_rng(1)
    with oic.Synthesizer(oic.parse(LARGE)).build().make_executor() as ex:
        call, kept = ex._calls["entry"], []
        for step in range(6):
            x, by = draw.integers(-9, 9, (64, 64)).astype(np.float32), np.float32(step + 1)
            if step == 3:
                x = x.T
            elif step == 4:
                x = np.frombuffer(b"." + x.tobytes(), np.float32, 64 * 64, 1).reshape(64, 64)
            else:
                x.setflags(write=False)
            before = x.copy()
            kept.append((before * by, ex.step(x=x, by=np.asarray(by))))
            assert list(kept[-1][1]) == ["z", "y"]
            if step == 5:  # the shorter way is no wider one
                for wrong in ({"x": x, "by": np.ones(1, np.float32)}, {"x": x[:, :32], "by": np.asarray(by)}):
                    with pytest.raises(oic.StepError):
                        ex.step(**wrong)
            assert np.array_equal(x, before) and len(call.large) == len(call.rooms) == 1
            assert step == 5 or (call.same is not None and [room is None for *_, room in call.same] == [True, False])
        for expected, out in kept:
            assert np.array_equal(out["y"], expected) and np.array_equal(out["z"], expected.sum(0))
        few = ex.step(x=np.ones((2, 64), np.float32), by=by)["y"]  # fewer bytes, of an output that may be large
        assert np.array_equal(ex.step(x=np.zeros((2, 64), np.float32), by=by)["y"], few * 0) and few[0, 0] == by
        made = ex.repeat(3, {"x": "y"}, x=np.ones((64, 64), np.float32), by=np.float32(2))
        assert [float(out["y"][63, 63]) for out in made] == [2, 4, 8]
        made = ex.repeat(3, {"x": "y"}, x=np.ones((2, 64), np.float32), by=np.float32(2))
        assert [float(out["y"][1, 63]) for out in made] == [2, 4, 8]


LOOP = """graph fed {
dynamic { x: i32[N] @max(N=8); by: i32; f: f32; }
persistent { steps: i32; }
volatile { y: i64[N]; z: f32; wide: f32[N]; }
block entry {
  assign a: i64[N];
  op cast(x, to=i64) >> a;
  assign b: i64;
  op cast(by, to=i64) >> b;
  op mul(a, b) >> y;
  op add(f, f) >> z;
  op cast(x, to=f32) >> wide;
  cache.increment steps;
  return;
}
}"""


@pytest.mark.parametrize("shape", ["", "[1]", "[1, 1]", "[2, 3]", "[N]"])
def test_inputs_of_any_rank_go_the_shorter_way(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of none, too, which some functions of NumPy give one."""
    most = " @max(N=4)" if "N" in shape else ""
    text = f"dynamic {{ x: i32{shape}{most}; }} volatile {{ y: i32{shape}; }} block entry {{ op add(x, 1) >> y; }}"
    made: list[int] = []
    turn = CompiledExecutor._turn
    monkeypatch.setattr(CompiledExecutor, "_turn", lambda self, *a: made.append(a[3]) or turn(self, *a))
    with oic.Synthesizer(oic.parse(text)).make_executor() as ex:
        x = np.zeros([{"1": 1, "2": 2, "3": 3, "N": 4}[d] for d in shape if d.isalnum()], np.int32)
        out = ex.repeat(9, {"x": "y"}, x=x)
        assert made == [8] and [o["y"].tolist() for o in out] == [(x + n).tolist() for n in range(1, 10)]
        assert ex.step(x=x)["y"].shape == x.shape


def test_outputs_are_fed_to_the_next_step() -> None:
    graph = oic.parse(LOOP)
    with oic.Simulator(graph).make_executor() as there, oic.Synthesizer(graph).build().make_executor() as here:
        for ex in (there, here):
            for size in (1, 3):
                x = np.arange(1, size + 1, dtype=np.int32)
                given = {"x": x, "by": 3, "f": np.float32(1)}
                made = ex.repeat(4, {"x": "y", "f": "z"}, **given)
                assert [list(out["y"]) for out in made] == [list(x * 3**n) for n in range(1, 5)]
                assert [float(out["z"]) for out in made] == [2, 4, 8, 16]
                assert list(ex.fetch("y")) == list(x * 81) and list(x) == list(range(1, size + 1))
                with pytest.raises(oic.StepError, match="does not fit i32") as refused:
                    ex.repeat(100, {"x": "y"}, **{**given, "by": 1 << 20})
                assert list(ex.fetch("y")) == list(x.astype(np.int64) << 40)
                assert refused.value.variable == "x" and ex.fetch("steps") == (6 if size == 1 else 12)
            ex.insert(by=2, f=np.float32(0))
            assert [list(out["y"]) for out in ex.repeat(2, {"x": "y"}, x=[5])] == [[10], [20]]
            before = ex.fetch("steps")
            if ex is here:
                made = ex.repeat(3, {"x": "y"}, **given)
                made[1]["y"][:], made[2]["y"][:] = 5, 0  # the caller's own, each
                assert [out["y"][0] for out in made] == [3, 5, 0] and made[2]["z"].shape == ()
                assert ex.fetch("y")[0] == 27 and ex.fetch("steps") == before + 3
                before += 3
            for count, feed in ((0, {}), (True, {}), (2, {"q": "y"}), (2, {"x": "q"}), (2, {"x": "wide"})):
                with pytest.raises(oic.StepError, match="OIC_ERR_INPUT"):
                    ex.repeat(count, feed, **given)
            with pytest.raises(oic.OicError, match="no entry"):
                ex.repeat(2, {}, "other")
            assert ex.fetch("steps") == before
