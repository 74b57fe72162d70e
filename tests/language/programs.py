"""Programs with what they must give, step by step, in every executor: `test_programs.py` runs them.

A step is the inputs and what is expected: outputs by name, or a refusal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from oic import Model


@dataclass(frozen=True)
class Refused:
    """A refusal: status, variable, index and bound, and the source text it points at."""

    status: str
    variable: str | None = None
    index: int | None = None
    bound: int | None = None
    text: str | None = None


Step = tuple[dict[str, Any], "dict[str, Any] | Refused"]


@dataclass(frozen=True)
class Program:
    """A graph with its steps.

    entry   of every step
    """

    text: str
    steps: tuple[Step, ...]
    model: Model | None = None
    entry: str = "entry"


PROGRAMS: dict[str, Program] = {
    # ---------------------------------------------------------------- loop indices in blocks
    "indices_in_blocks": Program(
        """
        dynamic { c: bool; }
        volatile { s: i32; z: f32[?, ?]; }
        persistent { K(l, t): f32[1] @table; }
        block entry {
            loop a (i in 0..3) { loop b (j in 0..2) { branch c yes no; } }
            cache.read K[2, 0..2] >> z;
            return;
        }
        block yes {
            assign v: f32[1];
            op fill(v, value=7.0) >> v;
            cache.write v >> K[i, j];
            branch deeper;
            return;
        }
        block deeper {
            op fill(s, value=i * 10 + j) >> s;
            loop inner (i in 5..6) { op fill(s, value=s + i) >> s; }
            op fill(s, value=s + i) >> s;
            return;
        }
        block no { assign i: i32; op fill(i, value=3) >> i; op fill(s, value=i + j) >> s; return; }
        """,
        (
            ({"c": False}, {"s": 4, "z": [[0], [0]]}),
            ({"c": True}, {"s": 21 + 5 + 2, "z": [[7], [7]]}),
        ),
    ),
    "an_index_or_a_temporary": Program(
        """
        dynamic { n: i32; }
        volatile { s: i32; r: i32; }
        block entry {
            loop a (k in 0..n) { branch use; transfer s >> r; }
            branch other;
            return;
        }
        block other { assign k: i32; op fill(k, value=n * 2) >> k; branch use; return; }
        block use { op fill(s, value=k + 1) >> s; return; }
        """,
        (({"n": 3}, {"r": 3, "s": 7}), ({"n": 0}, {"r": 0, "s": 1})),
    ),
}
