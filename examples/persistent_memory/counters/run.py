"""Counters over a few steps, a reset inside the graph, one from outside, and a saved state.

python examples/persistent_memory/counters/run.py
"""

from __future__ import annotations

from pathlib import Path

import oic

NAMES = ("step", "down", "small", "half")


def counters(ex: oic.Executor) -> str:
    return "  ".join(f"{name} = {ex.fetch(name).item():g}" for name in NAMES)


def story(ex: oic.Executor) -> list[str]:
    """What one backend says."""
    lines = [f"at first        {counters(ex)}"]
    for n in (1, 2, 3):
        seen = ex.step(n=n)["seen"].item()
        lines.append(f"step {seen}, n = {n}   {counters(ex)}")
    saved = ex.save()
    ex.step("restart")
    lines.append(f"block restart   {counters(ex)}")
    ex.reset()
    lines.append(f"ex.reset()      {counters(ex)}")
    ex.load(saved)
    lines.append(f"ex.load(saved)  {counters(ex)}")
    return lines


def main() -> None:
    graph = oic.parse_file(Path(__file__).with_name("graph.oi"))
    compiled = oic.Synthesizer(graph).build()
    with oic.Simulator(graph).make_executor() as sim, compiled.make_executor() as syn:
        expected, found = story(sim), story(syn)
    print("\n".join(found))
    print("the reference says", "the same" if found == expected else "otherwise")


if __name__ == "__main__":
    main()
