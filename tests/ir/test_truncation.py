"""Random programs around a counter: where positions can be taken back, the state is one that was really there.

What is asked is no more than that: whatever `truncation` offers is exact.  How often it offers anything is
asked too, so that the test is one of something.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

import oic

SEEDS = 60
INDICES = ("@fixed(l=2, t=9)", "@fixed(l=2)", "@fixed(t=9)", "")


class Drawn:
    """A program: tables K and V, a counter p, and perhaps something that goes against the rule."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.tables = {"K": self._table(), "V": self._table()}
        self.rows = self.chance(0.5)  # the entry takes N rows, not one
        declared = [f"{name}(l, t): f32[2] @table {table};" for name, table in self.tables.items()]
        start = " @init(1)" if self.chance(0.2) else ""
        entries = [f"block entry {{ {self._advance()} return; }}"]
        if self.chance(0.4):
            entries.append(f"block more @entry {{ {self._advance()} return; }}")
        if self.chance(0.4):
            entries.append(f"block again @entry {{ {self._restart()} return; }}")
        if self.chance(0.4):
            entries.append(f"block other @entry {{ {self._other()} return; }}")
        x = "x: f32[N, 2] @max(N=3);" if self.rows else "x: f32[1, 2];"
        self.text = (
            f"dynamic {{ {x} at: i32; yes: bool; row: f32[2]; }} volatile {{ y: f32[?, 2]; z: f32[2]; }}"
            f"persistent {{ p: i32{start}; h: f32[2]; {' '.join(declared)} }} {' '.join(entries)}"
            "block nothing { return; }"
            f"block written {{ cache.write x >> K[0, p..p+{self.count}]; return; }}"
        )  # fmt: skip

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    @property
    def count(self) -> str:
        return "N" if self.rows else "1"

    def _table(self) -> str:
        kind = str(self.rng.choice(INDICES))
        if self.chance(0.2):
            kind = "@fixed(l=2, t=9) @ring(t)"
        return kind + (" @init(0.5)" if self.chance(0.3) else "")

    def _write(self, name: str, before: bool) -> str:
        """A write of the rows at hand, mostly where the rule wants it."""
        n = self.count
        at = "p" if before else f"p - {n}"
        at += str(self.rng.choice(["", "", "", "", "", "", "", " + 1", " - 1"]))
        layer = str(self.rng.choice(["l", "l", "l", "0", "1 - l"]))
        write = f"cache.write x >> {name}[{layer}, {at}..{at} + {n}];"
        return f"loop layers (l in 0..{self.rng.choice([2, 2, 2, 1])}) {{ {write} }}"

    def _advance(self) -> str:
        order = list(self.rng.permutation(["K", "V", "p"]))
        parts, before = [], True
        for name in order:
            if name == "p":
                parts.append(f"cache.increment {self.count} p;")
                before = False
            elif not self.chance(0.1):
                parts.append(self._write(str(name), before))
        odd = self.rng.random()
        if odd < 0.05:
            parts.append("cache.write row >> h;")
        elif odd < 0.1:
            parts.append("branch yes written nothing;")
        elif odd < 0.15:
            parts.append("cache.write row >> K[0, at];")
        elif odd < 0.3:
            parts.append("cache.read K[0, 0..p] >> y;")
        elif odd < 0.35:
            parts.append("cache.read K[0, p - 1] >> z;")
        elif odd < 0.4:
            parts = [f"branch yes step nothing; }} block step {{ {' '.join(parts)}"]
        elif odd < 0.45:
            parts.insert(0, f"cache.increment {self.count} p;")
        return " ".join(parts)

    def _restart(self) -> str:
        parts = [f"cache.reset {name};" for name in self.rng.permutation(["p", "K", "V"]) if not self.chance(0.1)]
        if self.chance(0.3):
            parts.append("cache.write row >> h;")
        return " ".join(parts)

    def _other(self) -> str:
        return str(self.rng.choice([
            "cache.read h >> z; cache.write row >> h;", "cache.read K[0, 0..p] >> y;", "cache.read K[at, 0..p] >> y;",
            "cache.read K[0, at] >> z;", "cache.write z >> h;", "cache.reset h;",
        ]))  # fmt: skip


def call(drawn: Drawn, session: oic.Executor, name: str, rng: np.random.Generator, rows: np.ndarray) -> None:
    """One call of an entry with rows of its own; a refusal changes nothing."""
    given = {"x": rows, "at": int(rng.integers(0, 3)), "yes": drawn.chance(0.5), "row": rows[0]}
    wanted = session.interface.entries[name].inputs
    with suppress(oic.StepError):
        session.step(name, **{key: value for key, value in given.items() if key in wanted})


def position(session: oic.Executor) -> int:
    return int(session.fetch("p"))


def test_what_is_offered_is_exact() -> None:
    offered = 0
    for seed in range(SEEDS):
        drawn = Drawn(seed)
        try:
            simulator = oic.Simulator(oic.parse(drawn.text, name=f"seed{seed}.oi"))
        except oic.OicError:
            continue
        if simulator.program.module.truncation.reason:
            continue
        offered += 1
        rng = np.random.default_rng(seed)
        with simulator.make_executor() as session, simulator.make_executor() as other:
            for _ in range(6):
                session.reset()
                history(drawn, session, other, rng)
    assert offered >= SEEDS // 8


def history(drawn: Drawn, session: oic.Executor, other: oic.Executor, rng: np.random.Generator) -> None:
    """Steps of random entries; after every one, positions of the last steps are taken back in a copy."""
    seen = {position(session): session.save()}  # the last state at each position since anything else was done
    for _ in range(int(rng.integers(1, 7))):
        name = str(rng.choice(list(session.interface.entries)))
        before = position(session)
        rows = rng.standard_normal((int(rng.integers(1, 4)) if drawn.rows else 1, 2)).astype(np.float32)
        call(drawn, session, name, rng, rows)
        now = position(session)
        if now <= before:
            seen = {}
        seen[now] = session.save()
        for at, state in seen.items():
            other.load(session.save())
            try:
                other.truncate(now - at)
            except oic.StepError as error:
                assert "@ring" in drawn.text and error.variable != "p", drawn.text
                continue
            assert other.save() == state, (drawn.text, now, at)
