"""Steps on inputs like those of the step before go a shorter way, and answer alike."""

from __future__ import annotations

import numpy as np
import pytest

import oic

TEXT = """graph repeated {
dynamic { x: f32[N] @max(N=8); ids: i32[2]; }
constant { w: f32[4] @init(2.0); }
persistent { steps: i32; }
volatile { y: f32[N]; z: f32[2]; }
block entry { op add(x, x) >> y; op gather(w, ids, axis=0) >> z; cache.increment steps; return; }
}"""


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_every_step_answers_for_its_own_inputs() -> None:
    maker, ids = oic.Synthesizer(oic.parse(TEXT)).build(), np.array([0, 1], np.int32)
    with maker.make_executor() as ex:
        kept = [ex.step(x=f32(i, 1), ids=ids) for i in range(3)]
        kept[2]["y"][:] = 9  # the caller's own
        assert [list(out["y"]) for out in kept] == [[0, 2], [2, 2], [9, 9]]
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
