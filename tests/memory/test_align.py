"""Where what memory holds begins is a fact of the target; the form of a saved state is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import oic
from oic.codegen.c_module import Unit
from oic.driver import Settings, compile_graph
from oic.ir.module import Module
from oic.ir.text_parse import parse_module
from oic.ir.text_print import print_module
from oic.kernels.targets import TARGETS, Target
from oic.memory.layout import arena_bytes
from oic.memory.saved import saved_form

BARE = TARGETS["freestanding"]
GRAPH = """graph g {
  dynamic    { x: i32[3]; }
  constant   { w: i8[3, 3]; b: i32[3]; m: i32; s: i8; }
  volatile   { y: i8[3]; }
  persistent { small: i8[3]; K(t): i8[3] @table @fixed(t=500); n: i32; }
  block entry {
    assign kept: i8[3];  assign sums: i32[3];  assign mid: i8[3];
    op requantize(x, m, s, to=i8) >> kept;
    cache.write kept >> K[n];
    op linear(kept, w, b=b, acc=i32) >> sums;
    op requantize(sums, m, s, to=i8) >> mid;
    op linear(mid, w, b=b, acc=i32) >> sums;
    op requantize(sums, m, s, to=i8) >> y;
    cache.increment n;
    return;
  }
}"""
NOTHING = "graph g { persistent { n: i32; } block entry { cache.increment n; return; } }"
VALUES = {"w": np.eye(3, dtype=np.int8), "b": np.arange(3, dtype=np.int32), "m": np.int32(1 << 30), "s": np.int8(1)}


def planned(target: Target, text: str = GRAPH) -> Module:
    model = oic.Model(tensors=VALUES if text is GRAPH else {})
    return compile_graph(oic.parse(text), model, Settings(target=target, verified=True)).planned


@pytest.mark.parametrize(("target", "align"), [
    (TARGETS["host"], 64), (TARGETS["portable"], 64), (BARE, 8),
    (replace(BARE, features=frozenset(("helium", "fma"))), 8),
    (replace(BARE, features=frozenset(("neon",))), 64),
])  # fmt: skip
def test_what_memory_holds_begins_where_the_target_says(target: Target, align: int) -> None:
    module = planned(target)
    found = [b for b in module.memory.buffers if b.space in ("arena", "weights") or b.nbytes >= 1024]
    assert {b.space for b in found} == {"arena", "weights", "state"}
    assert all(b.offset % align == 0 for b in found)
    assert module.memory.weights_bytes == 64 + sum(-(-b.nbytes // align) * align for b in module.memory.space("weights"))
    assert arena_bytes(planned(target, NOTHING)) == align
    text = print_module(module)
    assert print_module(parse_module(text)) == text


def test_saved_states_are_alike_for_all_targets() -> None:
    host, bare = planned(TARGETS["host"]), planned(BARE)
    assert host.memory.state_bytes != bare.memory.state_bytes or host.memory.space("state") != bare.memory.space("state")
    assert saved_form(host).fingerprint == saved_form(bare).fingerprint


@pytest.mark.parametrize("target", [TARGETS["portable"], BARE])
def test_one_number_for_a_kernel_takes_no_memory(target: Target) -> None:
    """It is a constant of the code, and is not copied in a step."""
    module = planned(target)
    assert not {"m", "s"} & {b.name for b in module.memory.buffers}
    assert Unit(module).arena_bytes == arena_bytes(module)
