"""What decides how a graph is compiled is decided alike by every command that compiles one."""

from __future__ import annotations

import json
from pathlib import Path

import click
import numpy as np
import pytest

from cli.samples import Oic
from oic.cli.main import main

RUN = {"--weights", "--target", "--numerics", "--threads"}
PLAN = RUN | {"--dispatch", "--no-reuse"}
"""All that changes the plan of a build."""

CHECKPOINT = {"--weights", "--target"}
NOTHING: set[str] = set()
"""They compile nothing."""

TAKES: dict[str, set[str]] = {
    **dict.fromkeys(("build", "explain", "fit", "ir"), PLAN),
    **dict.fromkeys(("run", "diff", "bench"), RUN),
    **dict.fromkeys(("generate", "verify", "quantize"), CHECKPOINT),
    **dict.fromkeys(("check", "import", "inspect", "ops"), NOTHING),
}
THREADS_OF_ANOTHER_KIND = {"generate"}  # prompts at once, not parts of a step

GRAPH = """
graph filtered {
  dynamic { x: f32[1, 8, 40]; }
  constant { f: f32[8, 8, 3]; w: f32[64, 320]; }
  volatile { y: f32[1, 64]; }
  block entry {
    assign h: f32[1, 8, 38]; assign r: f32[1, 8, 40]; assign q: f32[1, 8, 40]; assign s: f32[1, 320];
    op conv1d(x, f) >> h;
    op conv1d(h, f, padding=2) >> r;
    op conv1d(r, f, padding=1) >> q;
    op reshape(q, shape=[1, 320]) >> s;
    op linear(s, w) >> y;
    return;
  }
}
"""


@pytest.fixture
def filtered(folder: Path) -> tuple[str, ...]:
    """A graph whose plan depends on each option, with its model."""
    rng = np.random.default_rng(3)
    (folder / "g.oi").write_text(GRAPH)
    np.savez(folder / "g.npz", f=rng.standard_normal((8, 8, 3), np.float32), w=rng.standard_normal((64, 320), np.float32))
    return ("g.oi", "--model", "g.npz")


def test_commands_take_what_decides_how_a_graph_is_compiled() -> None:
    assert set(TAKES) == set(main.commands)
    for name, command in main.commands.items():
        options = {text for p in command.params if isinstance(p, click.Option) for text in p.opts}
        taken = options & PLAN
        assert taken - ({"--threads"} if name in THREADS_OF_ANOTHER_KIND else set()) == TAKES[name], name


@pytest.mark.parametrize(
    "options",
    [
        ("--target", "host"), ("--target", "freestanding"), ("--target", "host", "--weights", "q8", "--threads", "2"),
        ("--target", "portable", "--dispatch", "sse2", "--no-reuse"), ("--target", "portable", "--numerics", "separate"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_what_is_told_is_what_is_built(options: tuple[str, ...], filtered: tuple[str, ...], oic: Oic) -> None:
    """`explain` shows the values and `fit` the bytes of a build with the same options."""
    made = oic("build", *filtered, *options, "--no-compile", "-o", "out", "--json").json
    memory = json.loads(Path("out/filtered.memory.json").read_text())
    told = oic("explain", *filtered, *options, "--json").json
    assert told["values"] and told == {part: memory[part] for part in ("values", "stores")}
    found = oic("fit", *filtered, *options, "--json").json["now"]
    assert {part: found[part] for part in ("state", "arena", "weights")} == {
        part: made[part] for part in ("state", "arena", "weights")
    }


def test_a_plan_is_told_without_options(filtered: tuple[str, ...], oic: Oic) -> None:
    """Of this machine, as it is built: `explain` names no target of its own."""
    assert oic("explain", *filtered, "--json").json == oic("explain", *filtered, "--target", "host", "--json").json


def test_bytes_that_are_told_follow_the_options(filtered: tuple[str, ...], oic: Oic) -> None:
    def told(*options: str) -> dict[str, int]:
        found: dict[str, int] = oic("fit", *filtered, *options, "--json").json["now"]
        return found

    plain = told()
    assert told("--no-reuse")["arena"] > plain["arena"] and told("--weights", "q8")["weights"] < plain["weights"]


def test_stack_and_code_of_several_instruction_sets_are_not_counted(filtered: tuple[str, ...], oic: Oic) -> None:
    done = oic("fit", *filtered, "--target", "portable", "--dispatch", "sse2")
    assert done.status == 0 and "are not counted: they depend on the instruction set (--dispatch)" in done.out
