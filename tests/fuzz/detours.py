"""Values of a random graph take detours that end where they began: every answer stays what it was.

    op max(a, b) >> t1;   =>   assign u1: f32[?, ?];  op max(a, b) >> u1;  loop … { transfer u1 >> t1; }

A temporary with `?` has sizes of its own behind a loop whose turns are known when the step runs, and behind a
branch.  Conditions and numbers of turns are inputs, constants or state.
"""

from __future__ import annotations

import random
import re

import numpy as np

from oic.compare.harness import Run

HOW = ("temporary", "loop", "branch", "where", "twice")
TIMES = {"dynamic": "times: i32;", "persistent": "times: i32 @init(1);", "constant": "times: i32 @init(1);"}
SURE = {"dynamic": "sure: bool;", "persistent": "sure: bool @init(true);", "constant": "sure: bool @init(true);"}
_RESULT = re.compile(r"^( +)op (.*) >> (t\d+);$")
_ASSIGN = re.compile(r"\bassign (t\d+): (\w+)(?:\[(.*)\])?;")


def detoured(text: str, rng: random.Random, share: float = 0.4) -> str:
    """The text of `tests.fuzz.graphs` or `generate`, in which so many of its results take a detour."""
    declared: dict[str, str] = {}
    lines: list[str] = []
    blocks: list[str] = []
    for line in text.splitlines():
        for name, dtype, sizes in _ASSIGN.findall(line):
            declared[name] = f"{dtype}[{', '.join('?' for _ in sizes.split(','))}]" if sizes else dtype
        found = _RESULT.match(line)
        if found is None or found[3] not in declared or rng.random() > share:
            lines.append(line)
            continue
        indent, call, name = found.groups()
        number = len(lines)
        lines.append(f"{indent}assign u{number}: {declared[name]};")
        lines.append(f"{indent}op {call} >> u{number};")
        way = rng.choice(HOW)
        lines += [indent + new for new in _back(way, number, name, declared[name])]
        if way == "branch":
            blocks.append(f"    block yes{number} {{ transfer u{number} >> {name}; }}\n    block no{number} {{ }}")
    made = "\n".join(lines).rsplit("}", 1)[0] + "\n".join(blocks)
    for what in (TIMES, SURE):
        section = rng.choice(list(what))
        made += f"\n    {section} {{ {what[section]} }}"
    return made + "\n}\n"


def _back(way: str, number: int, name: str, type_: str) -> list[str]:
    """Statements that give a variable the value of `u<number>`."""
    of, more = f"u{number}", f"w{number}"
    match way:
        case "loop":
            turned = f"loop turns{number} (turn{number} in 0..times) {{ transfer {of} >> {more}; }}"
            return [f"assign {more}: {type_};", turned, f"transfer {more} >> {name};"]
        case "branch":
            return [f"branch sure yes{number} no{number};"]
        case "where":
            return [f"op where(sure, {of}, {of}) >> {name};"]
        case "twice":
            return [f"loop turns{number} (turn{number} in 0..times+1) {{ transfer {of} >> {name}; }}"]
    return [f"transfer {of} >> {name};"]


def given(runs: list[Run]) -> list[Run]:
    """The same steps, with the inputs that detours ask for."""
    more = {"times": np.asarray(1, np.int32), "sure": np.asarray(True)}
    return [Run(run.entry, run.inputs | more, run.before) for run in runs]
