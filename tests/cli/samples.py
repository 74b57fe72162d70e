"""The graph that the tests of the command work on, and what a command gave."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

AVERAGE = """\
graph average {
  sizes      { D = 2; }
  dynamic    { x: f32[D]; }
  constant   { rate: f32 @init(0.25); }
  volatile   { smooth: f32[D]; past: f32[?, D]; }
  persistent {
    step: i32 @init(0);
    mean: f32[D];
    kept(t): f32[D] @table @fixed(t=4);
  }
  block entry {
    assign d: f32[D];
    cache.read mean >> smooth;
    op sub(x, smooth) >> d;
    op mul(d, rate) >> d;
    op add(smooth, d) >> smooth;
    cache.write smooth >> mean;
    cache.write smooth >> kept[step];
    cache.read kept[0..step + 1] >> past;
    cache.increment step;
    return;
  }
}
"""


@dataclass(frozen=True)
class Outcome:
    """What a command printed, and its exit status."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as strict JSON."""

        def refuse(constant: str) -> None:
            raise AssertionError(f"{constant} is no JSON")

        return json.loads(self.out, parse_constant=refuse)


Oic = Callable[..., Outcome]
