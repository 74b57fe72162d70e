"""`oic fit`: the answer is true, with stack and code, for every way that a bound is given."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cli.samples import Oic
from oic.cli.fit import LARGEST, largest

GROWING = """
graph growing {
  dynamic { x: f32[4]; }
  volatile { y: f32[?, 4]; total: f32[4]; }
  persistent { K(t): f32[4] @table; at: i32; }
  block entry {
    cache.write x >> K[at]; cache.read K[0..at + 1] >> y; op sum_axis(y, axes=[0]) >> total;
    cache.increment at; return;
  }
}
"""
FIXED = """
graph window {
  sizes { W = 16; D = 4; }
  dynamic { x: f32[D]; }
  volatile { y: f32[W, D]; }
  persistent { K(t): f32[D] @table @fixed(t=W); at: i32; }
  block entry { cache.write x >> K[at]; assign a: f32[W, D]; cache.read K[0..W] >> a; op softmax(a) >> a;
    op add(a, a) >> y; cache.increment at; return; }
}
"""
EXTENT = """
graph prompt {
  sizes { most = 32; }
  dynamic { x: f32[N, 8] @max(N=most); }
  constant { w: f32[8, 8] @init(0.5); }
  volatile { y: f32[N, 8]; }
  block entry { assign a: f32[N, 8]; op matmul(x, w) >> a; op softmax(a) >> a; op matmul(a, w) >> y; return; }
}
"""
FOLDED = """
graph positions {
  sizes { T = 8; }
  dynamic { at: i32[1]; }
  constant { ones: f32[T, 8] @init(1.0); }
  persistent { K(t): f32[16] @table @fixed(t=T); n: i32; }
  volatile { y: f32[1, 16]; }
  block entry {
    assign table: f32[T, 16]; assign row: f32[16];
    op pad(ones, before=[0, 8], after=[0, 0]) >> table; op gather(table, at) >> y; op reshape(y, shape=[16]) >> row;
    cache.write row >> K[n]; cache.increment n; return;
  }
}
"""


@pytest.mark.parametrize(
    ("graph", "room", "option"),
    [
        (GROWING, {"ram": 4096}, "--max t"),
        (FIXED, {"ram": 10000}, "--set W"),
        (EXTENT, {"ram": 20480}, "--set most"),
        (FOLDED, {"flash": 16384}, "--set T"),
        (FOLDED, {"ram": 3000, "flash": 1 << 20}, "--set T"),
    ],
)
def test_the_answer_is_true(graph: str, room: dict[str, int], option: str, oic: Oic, monkeypatch: pytest.MonkeyPatch) -> None:
    """The graph fits with the bound that is the answer, stack and code included, and not with the next."""
    monkeypatch.setenv("OIC_CFLAGS", "-O1")  # else code alone needs more room
    Path("g.oi").write_text(graph)
    found = oic("fit", "g.oi", *(f"--{k}={v}" for k, v in room.items()), "--json").json
    assert found["bound"] == option and found["largest"] > 1 and found["next"].endswith("bytes short")
    assert found["compiler"] and found["not_counted"] is None
    flag, name = option.split()
    last, next_ = (
        oic("fit", "g.oi", flag, f"{name}={found['largest'] + more}", "--json").json["now"] for more in (0, 1)
    )
    assert last == found["then"] and last["stack"] > 0 and last["code"] > 0
    assert last["ram"] == last["state"] + last["arena"] + last["stack"]
    assert last["flash"] == last["weights"] + last["code"]
    assert all(last[k] <= v for k, v in room.items()) and any(next_[k] > v for k, v in room.items())


def test_what_it_prints(oic: Oic) -> None:
    Path("g.oi").write_text(FIXED)
    done = oic("fit", "g.oi", "--ram", "64K", "--flash", "1")
    assert done.status == 1
    assert "of 65,536 bytes: fits (state 264 + arena" in done.out and "DOES NOT FIT" in done.out
    assert "no --set W fits; 1: flash" in done.out and "by " in done.out
    assert "the largest --set W that fits is" in oic("fit", "g.oi", "--ram", "64K").out
    plain = oic("fit", "g.oi")
    assert plain.status == 0 and "largest" not in plain.out and "stack" in plain.out
    fits = oic("fit", "g.oi", "--ram", "64K", "--set", "W=4", "--json")
    assert fits.status == 0 and fits.json["fits"] and fits.json["value"] == 4


def test_without_a_compiler(oic: Oic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stack and code are left out, and it says so."""
    monkeypatch.setenv("CC", "no-such-compiler")
    Path("g.oi").write_text(FIXED)
    found = oic("fit", "g.oi", "--ram", "10000", "--json").json
    assert found["compiler"] is None and "no-such-compiler" in found["not_counted"]
    assert found["now"]["stack"] == found["now"]["code"] == 0 and found["largest"] > 16
    assert "stack and code are not counted: no C compiler was found" in oic("fit", "g.oi", "--ram", "1K").out


def test_code_that_does_not_compile(oic: Oic) -> None:
    """What the compiler said is said, not only that it did."""
    Path("g.oi").write_text(
        "graph g { dynamic { x: f32[4, 32]; } constant { w: bf16[32, 32] @init(0.5); } volatile { y: f32[4, 32]; }"
        " block entry { op linear(x, w) >> y; return; } }"
    )
    missing = oic("fit", "g.oi", "--ram", "1M", "--numerics", "native", "--json").json["not_counted"]
    assert "the machine's own products of bf16, and there are none: build with --numerics" in missing
    assert "does not compile" in missing and missing.count("g/oic/registers.h") == 1 and "/tmp" not in missing


def test_a_bound_that_costs_nothing(oic: Oic) -> None:
    Path("g.oi").write_text(FIXED)
    found = oic("fit", "g.oi", "--flash", "1M", "--json").json
    assert found["largest"] == LARGEST and found["next"] is None and found["then"]["flash"] < 1 << 20
    assert f"any --set W up to {LARGEST:,} fits (now 16)" in oic("fit", "g.oi", "--flash", "1M").out


def test_a_size_that_cannot_be(oic: Oic) -> None:
    """Values that the graph refuses are too small or too large, by which side of its own they are on."""
    text = FIXED.replace("op add(a, a) >> y;", "op slice(a, axis=0, start=10, end=14) >> b; op add(b, b) >> y;")
    Path("g.oi").write_text(text.replace("y: f32[W, D]", "y: f32[4, D]").replace(
        "assign a: f32[W, D];", "assign a: f32[W, D]; assign b: f32[4, D];"))  # fmt: skip
    least = oic("fit", "g.oi", "--set", "W=14", "--json").json["now"]["ram"]
    found = oic("fit", "g.oi", "--ram", str(least), "--json").json
    assert found["fits"] is False and found["largest"] == 14
    found = oic("fit", "g.oi", "--ram", str(least - 1), "--json").json
    assert found["largest"] == 0 and found["next"] == "14: RAM 1 bytes short"


def test_other_bounds_are_named(oic: Oic) -> None:
    Path("g.oi").write_text(GROWING.replace("at: i32;", "at: i32; L(u): f32[4] @table;").replace(
        "cache.increment at;", "cache.write x >> L[at]; cache.increment at;"))  # fmt: skip
    done = oic("fit", "g.oi", "--ram", "4K")
    assert done.status == 1 and "no --max t fits" in done.out and "nothing bounds u either: give --max" in done.out
    assert oic("fit", "g.oi", "--ram", "4K", "--max", "u=4", "--json").json["largest"] > 1
    wrong = oic("fit", "g.oi", "--ram", "4K", "--vary", "tt")
    assert wrong.status == 1 and "error[fit-bound]" in wrong.err and "did you mean 't'" in wrong.err


def test_memory_without_end_does_not_fit(oic: Oic) -> None:
    Path("g.oi").write_text(GROWING)
    done = oic("fit", "g.oi", "--flash", "1M", "--ram", "16K")
    assert done.status == 1 and "it needs memory without end: nothing bounds t (--max)" in done.out
    assert "the largest --max t that fits is" in done.out
    found = oic("fit", "g.oi", "--ram", "20G", "--json").json
    assert found["fits"] is False and found["now"] is None and found["endless"] == ["t"]
    assert oic("fit", "g.oi", "--flash", "1M", "--ram", "16K", "--max", "t=4").status == 0


def test_bounds_of_the_graph_come_before_those_of_the_model(oic: Oic) -> None:
    """`L` is how many tables there are, and known from a constant; `T` is for the graph to choose."""
    Path("g.oi").write_text("""
graph layers {
  sizes { T = 8; }
  dynamic { x: f32[4]; }
  constant { w: f32[L, 4] @init(1.0); }
  persistent { K(l, t): f32[4] @table @fixed(l=L, t=T); V(l, t): f32[4] @table @fixed(l=L, t=T); at: i32; }
  volatile { y: f32[4]; }
  block entry { loop every (l in 0..L) { cache.write x >> K[l, at]; cache.write x >> V[l, at]; }
    op neg(x) >> y; cache.increment at; return; }
}
""")
    assert oic("fit", "g.oi", "--ram", "64K", "--set", "L=2", "--json").json["bound"] == "--set T"


LAYERS = """
graph layers {
  sizes { L = 2; T = 8; }
  dynamic { x: f32[4]; }
  constant { g(i): f32[4] @pattern("g.{i}"); }
  persistent { K(l, t): f32[4] @table @fixed(l=L, t=T); at: i32; }
  volatile { y: f32[4]; }
  block entry { assign h: f32[4]; loop every (l in 0..L) { op mul(x, g[l]) >> h; cache.write h >> K[l, at]; }
    cache.read K[0, 0] >> y; cache.increment at; return; }
}
"""


@pytest.mark.parametrize("text", [
    LAYERS,
    LAYERS.replace("x, g[l]", "x, x"),
    LAYERS.replace("(l, t)", "(t, l)").replace("(l=L, t=T)", "(t=T, l=L)").replace("[l, at]", "[at, l]"),
], ids=["l-t", "no-family", "t-l"])  # fmt: skip
def test_the_longest_context_is_looked_for(text: str, oic: Oic) -> None:
    """Not more layers: they are the first index of a table, or more than the model has."""
    Path("g.oi").write_text(text)
    np.savez("g.npz", **{f"g.{i}": np.ones(4, np.float32) for i in range(2)})
    found = oic("fit", "g.oi", "--ram", "64K", "--model", "g.npz", "--json").json
    assert found["bound"] == "--set T" and found["largest"] > 1000 and found["next"].endswith("bytes short")


def test_nothing_grows(oic: Oic) -> None:
    assert "nothing here grows" in oic("fit", "average.oi", "--ram", "1M").out
    assert oic("fit", "average.oi", "--ram", "1M", "--json").json["largest"] is None
    assert oic("fit", "average.oi", "--ram", "-3").status == 2


@pytest.mark.parametrize("end", [0, 1, 2, 3, 7, 64, 65, 1000, 123456, LARGEST])
@pytest.mark.parametrize("start", [1, 16, 5000])
def test_largest(end: int, start: int) -> None:
    asked: list[int] = []

    def good(n: int) -> bool:
        asked.append(n)
        return n <= end

    assert largest(good, start) == end
    assert len(asked) <= 62 and all(1 <= n <= LARGEST for n in asked)


WEIGHTS = """
graph weights {
  dynamic { x: f32[1, 64]; }
  constant { w: bf16[64, 64]; b: f32[64]; c: f32 @init(1.0); }
  volatile { y: f32[1, 64]; }
  block entry { op linear(x, w) >> y; op mul(y, c) >> y; op rms_norm(y, b, eps=1e-5) >> y; return; }
}
"""


def test_bytes_that_are_none_name_their_option(oic: Oic) -> None:
    for option in ("--ram", "--flash"):
        done = oic("fit", "average.oi", option, "x")
        assert done.status == 2
        assert f"Invalid value for '{option}': 'x' is not a number of bytes" in done.err


def test_weights_that_are_not_there_are_counted(oic: Oic, folder: Path) -> None:
    """Without a model a constant takes the bytes of its declaration, and that is said."""
    Path("w.oi").write_text(WEIGHTS)
    np.savez("w.npz", w=np.ones((64, 64), np.float32), b=np.ones(64, np.float32))
    Path("w32.oi").write_text(WEIGHTS.replace("bf16", "f32"))
    without, given = oic("fit", "w32.oi", "--json").json, oic("fit", "w32.oi", "--model", "w.npz", "--json").json
    assert without["now"] == given["now"]
    assert (without["absent"], given["absent"]) == (["w", "b"], [])
    assert oic("fit", "w.oi", "--json").json["now"]["weights"] >= 64 * 64 * 2 + 64 * 4
    assert "warning: no --model, so w, b count by their declared sizes" in oic("fit", "w.oi").out
    assert "warning" not in oic("fit", "w32.oi", "--model", "w.npz").out
