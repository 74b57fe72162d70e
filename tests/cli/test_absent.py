"""Constants that neither a model nor `@init` gives a value: `oic bench` and `oic fit` take them as with a model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cli.samples import Oic
from oic import dtypes, parse
from oic.check.symbols import symbols_of
from oic.cli.absent import drawn, left_zero, load_whole, made_up, zeros
from oic.cli.bench import shown
from oic.cli.options import load
from oic.ir.text_print import print_module
from oic.profile.limits import Limits
from oic.profile.measure import MeasuredStatement, Profile

GRAPH = """
graph layers {
  sizes { L = 3; D = 32; }
  dynamic { x: f32[2, D]; ids: i32[2]; chosen: i32; }
  constant {
    W(l): f32[D, D]; bias(l): f32[D]; out: f16[D, D]; table: f32[7, D]; scale: f32; places: i32[2]; last: i32;
    own(e): f32[D]; given: f32[D] @init(0.5); unused(l): f32[D];
  }
  volatile { y: f32[2, D]; }
  block entry {
    assign h: f32[2, D]; assign a: f32[2, D]; assign o: f16[2, D]; assign n: f16[2, D];
    op gather(table, ids) >> h;
    op gather(table, places) >> a;
    op add(h, x) >> h;
    op add(h, a) >> h;
    loop layers (l in 0..L) { branch true layer layer; }
    op mul(h, scale) >> h; op add(h, own[chosen]) >> h; op add(h, given) >> h;
    op cast(h, to=f16) >> o; op linear(o, out) >> n; op cast(n, to=f32) >> y;
    return;
  }
  block layer { op linear(h, W[L - 1 - l], b=bias[l]) >> h; }
}
"""
DRAWN = ["W", "bias", "out", "table", "scale", "places", "last"]
OPTIONS = {"sizes": {}, "capacity": {}, "fetch": None, "target": "portable"}


@pytest.fixture
def graph(folder: Path) -> str:
    (folder / "layers.oi").write_text(GRAPH.replace("branch true layer layer", "branch layer"))
    return "layers.oi"


@pytest.mark.parametrize("weights", ["", "W=q8,table=bf16"])
def test_the_program_is_that_of_a_model(graph: str, weights: str) -> None:
    """The same IR: constants lie, are packed, and are stored in fewer bits as those of a model."""
    text = Path(graph).read_text().replace("op add(h, own[chosen]) >> h;", "")
    Path("same.oi").write_text(text.replace("own(e): f32[D];", "").replace("chosen: i32; ", "").replace("unused(l): f32[D];", ""))
    made = load_whole(drawn, graph="same.oi", model=None, weights=weights, **OPTIONS)
    assert made.model is not None
    np.savez("model.npz", **{name: made.model.tensor(name) for name in DRAWN})  # type: ignore[arg-type]
    with_model = load("same.oi", "model.npz", **OPTIONS, weights=weights)
    assert print_module(made.planned) == print_module(with_model.planned)
    assert "panels" in print_module(made.planned)
    assert [(s.symbol, s.storage) for s in made.stored] == [(s.symbol, s.storage) for s in with_model.stored]


def test_what_has_values(graph: str) -> None:
    made = load_whole(drawn, graph=graph, model=None, weights="", **OPTIONS)
    assert made_up(made) == DRAWN and left_zero(made) == ["own"]
    plain = load(graph, None, **OPTIONS)
    assert made_up(plain) == [] and [d.slug for d in plain.warnings].count("constant-zero") == 1
    model = made.model
    assert model is not None and not model.tensor("places").any() and model.tensor("last") == 0
    for name in ("W", "bias", "table"):
        assert 0.5 < np.asarray(model.tensor(name)).std() * 32**0.5 < 2
    assert 0 < model.tensor("scale") < 1 and model.tensor("out").dtype == dtypes.f16.np
    again = load_whole(drawn, graph=graph, model=None, weights="", **OPTIONS).model
    assert again is not None and all(np.array_equal(again.tensor(n), model.tensor(n)) for n in DRAWN)
    assert not np.array_equal(model.tensor("W")[0, 0], model.tensor("table")[0])


@pytest.mark.parametrize("dtype", dtypes.ALL.values(), ids=str)
def test_values_of_every_type(dtype: dtypes.DType) -> None:
    """In their own type, and of a stack no more memory than that of one matrix."""
    text = f"constant {{ w: {dtype}[5, 8, 16]; }} block entry {{ return; }}"
    variable = symbols_of(parse(text, "w.oi")).variables["w"]
    found, none = drawn(variable, (5, 8, 16)), zeros(variable, (5, 8, 16))
    assert found.dtype == none.dtype == dtype.np and found.shape == none.shape == (5, 8, 16)
    assert found.strides[0] == 0 and none.strides == (0, 0, 0)
    if dtype.is_float:
        assert np.isfinite(found.astype(np.float64)).all() and len(np.unique(found.astype(np.float64))) > 8
    else:
        assert np.array_equal(found, none) and set(none.ravel().tolist()) == {-1 if dtype.name == "t1" else 0}


def test_bench_says_what_it_made_up(graph: str, oic: Oic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oic.profile.limits.PROBE", 0.001)
    given = ("--input", "chosen=0", "--target", "portable", "--steps", "1")
    found = oic("bench", graph, *given, "--weights", "W=q8", "--json").json
    assert found["drawn"] == DRAWN and found["zero"] == ["own"]
    products = [s for s in found["statements"] if s["text"].startswith("op linear(h, W")]
    assert sum(s["operations"] for s in products) == 3 * 2 * 32 * (2 * 32 + 1) and products[0]["unit"] == "int8"
    told = oic("bench", "average.oi", "--steps", "1", "--json").json
    assert told["drawn"] == [] == told["zero"]
    row = MeasuredStatement("entry", (1,), "op", 1e-6, 1.0, 1.0, 1.0, 1.0)
    profile = Profile("entry", 1, 1e-6, 0.0, 1e-9, Limits(1, 1e10, 1e11, 2e11, 0.0), (row,))
    lines = shown(load_whole(drawn, graph=graph, model=None, weights="", **OPTIONS), profile, False).splitlines()
    assert lines[-2:] == [f"no --model, so floats are random, all else zero: {', '.join(DRAWN)}",
                          "no --model, so zeros that the build knows: own"]  # fmt: skip
    assert "no --model" not in shown(load("average.oi", None, **OPTIONS), profile, False)


def test_fit_counts_families(graph: str, oic: Oic) -> None:
    """Beside constants that are no families, which it refused; and rules of --weights are about them."""
    found = oic("fit", graph, "--json").json
    assert found["absent"] == DRAWN and found["zero"] == ["own"]
    assert found["now"]["weights"] >= 4 * 3 * 32 * 33 + 2 * 32 * 32 + 4 * 7 * 32
    narrow = oic("fit", graph, "--weights", "W=q8", "--json").json["now"]["weights"]
    assert narrow < found["now"]["weights"] - 2 * 3 * 32 * 32
    assert "a step decides the members of own: not counted" in oic("fit", graph).out
