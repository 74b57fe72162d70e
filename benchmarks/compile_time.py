"""How long a program takes from text to C, no C compiler: CPU seconds and memory by its size.

    python benchmarks/compile_time.py [--kinds chain,loops,...] [--limit 10] [--profile KIND]

Each kind of program is compiled at three sizes, each in a process of its own.  The table gives the
CPU seconds of every part, the most memory that the process took beyond what it takes for a program
of one statement, and the exponent p by which seconds grow between two sizes (seconds ~ statements^p;
1: like the program).  The exit status is 1 if a kind takes longer than the limit at its largest size.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import math
import pstats
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HEAD = """
dynamic { x: f32[64]; c: bool; n: i32; }
constant { w: f32[64, 64] @init(0.5); }
volatile { y: f32[64]; z: f32[16]; }
persistent {
  K(i): f32[64] @table @fixed(i=65); k: i32 @init(0);
  L(l, i): f32[64] @table @fixed(l=4);
  R(i): f32[64] @table @fixed(i=8) @ring(i);
  M(r, c): f32[4, 4] @auto_dim(r, c) @fixed(r=12, c=12);
}
"""


@dataclass(frozen=True)
class Kind:
    """A program that can be made longer.

    sizes        what `text` is given; the last is the largest
    statements   in a program of such a size, in which each branch has a copy of its block
    """

    sizes: tuple[int, ...]
    statements: Callable[[int], int]
    text: Callable[[int], str]


def entry(body: str, blocks: str = "") -> str:
    """A program around a body that computes `t`."""
    start = "assign t: f32[64]; op add(x, x) >> t;\n"
    return f"{HEAD}{blocks}block entry {{ {start}{body}transfer t >> y; return; }}\n"


def chain(n: int) -> str:
    return entry("op relu(t) >> t;\nop add(t, x) >> t;\n" * (n // 2))


def rows(n: int) -> str:
    return entry("op softmax(t) >> t;\n" * n)


def held(n: int) -> str:
    """Values that are all needed at the end, in other order than they are made."""
    made = "".join(f"assign v{i}: f32[64];\nop softmax({f'v{i - 1}' if i else 't'}) >> v{i};\n" for i in range(n))
    return entry(made + "".join(f"op add(t, v{i}) >> t;\n" for i in range(n)))


def triples(n: int) -> str:
    one = "cache.read K[{0}] >> t;\nop softmax(t) >> t;\ncache.write t >> K[{1}];\n"
    return entry("".join(one.format(i % 64, (i + 1) % 64) for i in range(n)))


def indexed(n: int) -> str:
    """Read–compute–write where build does not know the place."""
    one = "cache.read K[k] >> t;\nop softmax(t) >> t;\ncache.write t >> K[k + 1];\ncache.increment k;\n"
    return entry(one * n)


def gathered(n: int) -> str:
    """Entries of a table that are read, all of them, before any is written; build knows no place."""
    read = "".join(f"assign v{i}: f32[64];\ncache.read K[k + {i}] >> v{i};\n" for i in range(n))
    return entry(read + "".join(f"cache.write v{i} >> K[n + {i}];\n" for i in range(n)))


def shifted(n: int) -> str:
    """As `gathered`, where build knows how far from each other the places are."""
    read = "".join(f"assign v{i}: f32[64];\ncache.read K[k + {i}] >> v{i};\n" for i in range(n))
    moved = "op softmax(v{0}) >> t;\ncache.write t >> K[k + {1}];\n"
    return entry(read + "".join(moved.format(i, i + n) for i in range(n)))


def bases(n: int) -> str:
    """As `shifted`, where places are of several kinds, in turn."""
    read = "".join(f"assign v{i}: f32[64];\ncache.read L[{i % 2}, {'kn'[i % 2]} + {i}] >> v{i};\n" for i in range(n))
    one = "op softmax(v{0}) >> t;\ncache.write t >> L[{1}, {2} + {0}];\n"
    return entry(read + "".join(one.format(i, 2 + i % 2, "kn"[i % 2]) for i in range(n)))


def kept(n: int) -> str:
    """Entries of a table that are read, all of them, and used between writes of the input."""
    read = "".join(f"assign v{i}: f32[64];\ncache.read K[k + {i}] >> v{i};\n" for i in range(n))
    return entry(read + "".join(f"cache.write x >> K[n + {i}];\nop add(t, v{i}) >> t;\n" for i in range(n)))


def branches(n: int) -> str:
    blocks = "block up { op softmax(t) >> t; }\nblock down { op relu(t) >> t; }\n"
    return entry("branch c up down;\n" * n, blocks)


def slices(n: int) -> str:
    one = "op slice(t, axis=0, start={0}, end={1}) >> p;\nop add(q, p) >> q;\n"
    some = "".join(one.format(i % 32, i % 32 + 16) for i in range(n))
    return entry(f"assign p: f32[16]; assign q: f32[16]; op fill(q, value=0.0) >> q;\n{some}transfer q >> z;\n")


def loops(n: int) -> str:
    return entry("".join(f"loop l{i} (i{i} in 0..n) {{ op softmax(t) >> t; }}\n" for i in range(n)))


def rotated(n: int) -> str:
    """A loop that hands on values, each to the next."""
    names = [f"v{i}" for i in range(n)]
    made = "".join(f"assign {v}: f32[64];\nop softmax(x) >> {v};\n" for v in names)
    moved = "".join(f"transfer {b} >> {a};\n" for a, b in zip(names, [*names[1:], "t"], strict=True))
    used = "".join(f"op add(t, {v}) >> t;\n" for v in names)
    return entry(f"{made}loop turns (i in 0..n) {{\ntransfer v0 >> t;\n{moved}}}\n{used}")


def writes(n: int) -> str:
    one = "loop l{0} (i{0} in 0..n) {{ cache.write t >> K[i{0}]; }}\n"
    return entry("".join(one.format(i) for i in range(n)))


def grown(n: int) -> str:
    """Tables with a count, rings and growing matrices, each written and read."""
    one = (
        "cache.write t >> L[{0}, k];\ncache.read L[{0}, 0] >> t;\ncache.write t >> R[k];\ncache.read R[-1] >> t;\n"
        "cache.increment k;\ncache.read M[{0}, {0}] >> m;\nop relu(m) >> m;\ncache.write m >> M[];\n"
    )
    return entry("assign m: f32[?, ?];\n" + "".join(one.format(i % 4) for i in range(n)))


def parts(n: int) -> str:
    """Parts of a tensor, replaced at places known at build and not."""
    one = (
        "op slice(t, axis=0, start={0}, end={1}) >> p;\nop relu(p) >> p;\ntransfer p >> t[{0}..{1}];\n"
        "op exp(p) >> p;\ntransfer p >> t[n..n + 16];\n"
    )
    return entry("assign p: f32[16];\n" + "".join(one.format(i % 48, i % 48 + 16) for i in range(n)))


def products(n: int) -> str:
    """Operators that call kernels, views, casts and joins, each a different one after the other."""
    one = (
        "op linear(t, w) >> t;\nop reshape(t, shape=[4, 16]) >> m;\nop transpose(m, perm=[1, 0]) >> m2;\n"
        "op concat(m, m, axis=0) >> m3;\nop sum_axis(m3, axes=[0]) >> p;\nop cast(p, to=f16) >> h;\n"
        "op cast(h, to=f32) >> p;\nop matmul(m2, m) >> s;\nop add(s, p) >> s;\nop mean_axis(s, axes=[0, 1]) >> one;\n"
        "op mul(t, one) >> t;\n"
    )
    names = "m: f32[4, 16]; m2: f32[16, 4]; m3: f32[8, 16]; h: f16[16]; s: f32[16, 16]; p: f32[16]; one: f32;"
    return entry("".join(f"assign {name.strip()};\n" for name in names.split(";")[:-1]) + one * n)


def attend(n: int) -> str:
    """Kernels that need working memory."""
    declared = "dynamic { x: f32[4, 2, 8]; } volatile { y: f32[4, 2, 8]; }\n"
    body = "assign t: f32[4, 2, 8]; transfer x >> t;\n" + "op attention(t, x, x) >> t;\n" * n
    return f"{declared}block entry {{ {body}transfer t >> y; return; }}\n"


def line(n: int) -> str:
    """All statements on one line."""
    return entry("op softmax(t) >> t; " * n)


def outputs(n: int) -> str:
    """Results that the caller gets, half of them several times."""
    declared = "".join(f"y{i}: f32[64];\n" for i in range(n))
    made = "".join(f"op {'relu' if i % 2 else 'softmax'}({f'y{i - 1}' if i % 2 else 'x'}) >> y{i};\n" for i in range(n))
    return f"dynamic {{ x: f32[64]; }} volatile {{ {declared} }}\nblock entry {{ {made}return; }}\n"


def entries(n: int) -> str:
    """Blocks that a caller may step, with one constant."""
    more = "".join(f"block e{i} @entry {{ op linear(x, w) >> y; return; }}\n" for i in range(n))
    declared = "dynamic { x: f32[8]; } constant { w: f32[8, 8] @init(0.5); } volatile { y: f32[8]; }\n"
    return f"{declared}{more}block entry {{ op relu(x) >> y; return; }}\n"


def joined(n: int) -> str:
    """One operator of many operands, half of which are the same."""
    made = "".join(f"assign p{i}: f32[64];\nop {'softmax' if i % 2 else 'exp'}(t) >> p{i};\n" for i in range(n))
    parts = ", ".join(f"p{i}" for i in range(n))
    return entry(f"assign all: f32[{64 * n}];\n{made}op concat({parts}, axis=0) >> all;\n")


def nested(n: int) -> str:
    """Branches n deep, of which either way goes on."""
    body = "op softmax(t) >> t;\n"
    blocks = [f"block b{i} {{ {body} branch c b{i + 1} b{i + 1}; }}\n" for i in range(1, n)]
    return entry("branch c b1 b1;\n", "".join(blocks) + f"block b{n} {{ {body} }}\n")


def blocks(n: int) -> str:
    """Chains of blocks, each of which branches to the next, as long as a run may be deep."""
    one = "block b{0} {{ assign v{0}: f32[64]; op softmax(t) >> v{0}; op add(t, v{0}) >> t; {1} }}\n"
    ends = [(i + 1) % 90 == 0 or i == n - 1 for i in range(n)]
    made = "".join(one.format(i, "" if end else f"branch b{i + 1};") for i, end in enumerate(ends))
    return entry("".join(f"branch b{i};\n" for i in range(0, n, 90)), made)


def declared(n: int) -> str:
    """Variables of sections, each used once."""
    weights = "".join(f"w{i}: f32[64] @init({i}.5);\n" for i in range(n))
    kept = "".join(f"s{i}: f32[64];\n" for i in range(n))
    used = "".join(f"op add(t, w{i}) >> t;\ncache.write t >> s{i};\n" for i in range(n))
    return entry(used, f"constant {{\n{weights}}}\npersistent {{\n{kept}}}\n")


def repeated(most: int, each: int, text: Callable[[int], str]) -> Kind:
    """A program of up to so many repetitions of so many statements."""
    return Kind(tuple(most // share for share in (4, 2, 1)), lambda n: n * each, text)


KINDS = {
    "chain": repeated(10_000, 1, chain),
    "rows": repeated(10_000, 1, rows),
    "held": repeated(3_333, 3, held),
    "triples": repeated(3_333, 3, triples),
    "indexed": repeated(2_500, 4, indexed),
    "gathered": repeated(3_333, 3, gathered),
    "shifted": repeated(2_500, 4, shifted),
    "bases": repeated(2_500, 4, bases),
    "kept": repeated(2_500, 4, kept),
    "grown": repeated(1_250, 8, grown),
    "parts": repeated(2_000, 5, parts),
    "products": repeated(900, 11, products),
    "branches": repeated(3_333, 3, branches),
    "slices": repeated(5_000, 2, slices),
    "loops": repeated(1_000, 2, loops),
    "rotated": repeated(2_500, 4, rotated),
    "writes": repeated(1_000, 2, writes),
    "attend": repeated(10_000, 1, attend),
    "line": repeated(10_000, 1, line),
    "outputs": repeated(10_000, 1, outputs),
    "entries": repeated(1_000, 1, entries),
    "joined": repeated(5_000, 1, joined),
    "blocks": repeated(2_500, 4, blocks),
    "declared": repeated(5_000, 2, declared),
    "nested": Kind((10, 11, 12), lambda n: 3 * 2**n - 4, nested),
}


def main() -> int:
    arguments = parser().parse_args()
    if arguments.one:
        kind, size = arguments.one
        print(json.dumps(measured(KINDS[kind].text(int(size)))))
        return 0
    if arguments.profile:
        profile(KINDS[arguments.profile], arguments.size)
        return 0
    base = run("chain", 2)["memory"]
    print(f"{'kind':<10}{'size':>8}{'statements':>12}{'seconds':>10}{'power':>7}{'MiB':>7}  longest parts")
    slow = [name for name in arguments.kinds.split(",") if not shown(name, base, arguments.limit)]
    if slow:
        print(f"longer than {arguments.limit:g} s: {', '.join(slow)}")
    return 1 if slow else 0


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    result.add_argument("--kinds", default=",".join(KINDS))
    result.add_argument("--limit", type=float, default=10, help="CPU seconds at the largest size")
    result.add_argument("--profile", choices=KINDS, help="where the time of one kind goes, by function")
    result.add_argument("--size", type=int, choices=(0, 1, 2), default=2, help="which of the three sizes to profile")
    result.add_argument("--one", nargs=2, metavar=("KIND", "SIZE"), help=argparse.SUPPRESS)
    return result


def shown(name: str, base: float, limit: float) -> bool:
    """Measure and print the sizes of a kind; whether the largest keeps the limit."""
    kind, before, seconds = KINDS[name], None, 0.0
    for size in kind.sizes:
        statements = kind.statements(size)
        found = run(name, size)
        memory, parts = found.pop("memory"), found
        seconds = sum(parts.values())
        power = f"{math.log(seconds / before[1]) / math.log(statements / before[0]):.2f}" if before else ""
        longest = sorted(parts.items(), key=lambda part: -part[1])[:6]
        print(
            f"{name:<10}{size:>8}{statements:>12}{seconds:>10.2f}{power:>7}{memory - base:>7.0f}  "
            + ", ".join(f"{part} {value:.2f}" for part, value in longest),
            flush=True,
        )
        before = statements, seconds
    return seconds <= limit


def run(kind: str, size: int) -> dict[str, float]:
    """The measurement of a program in a process of its own; a failing one ends the benchmark."""
    command = [sys.executable, __file__, "--one", kind, str(size)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"error: {kind} of size {size}: exit status {done.returncode}\n{done.stderr}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def measured(text: str) -> dict[str, float]:
    """CPU seconds of every part, and under 'memory' the most MiB that the process took."""
    from oic.collector import uncollected

    parts: dict[str, float] = {}
    with uncollected():  # as in `oic build`
        compiled(text, parts)
    parts["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return parts


def compiled(text: str, parts: dict[str, float]) -> None:
    """Text to C, with the seconds of every part."""
    import oic
    from oic.driver import Settings, compile_graph, lowered
    from oic.library.emit import LibrarySpec, emit
    from oic.toolchain.target import target

    last = time.process_time()

    def took(part: str) -> None:
        nonlocal last
        now = time.process_time()
        parts[part] = parts.get(part, 0.0) + now - last
        last = now

    graph = oic.parse(text, "long.oi")
    took("parse")
    settings = Settings()
    program = compile_graph(graph, None, settings)
    module = program.module
    took("check and lower")
    for step, made in lowered(module, settings):
        took(step.name)
        module = made
    with tempfile.TemporaryDirectory() as folder:
        emit(LibrarySpec(module, target("portable")), Path(folder) / "out")
        took("C")


def profile(kind: Kind, size: int) -> None:
    """The functions that take longest, with what they call and without."""
    profiler = cProfile.Profile(time.process_time)
    profiler.runcall(compiled, kind.text(kind.sizes[size]), {})
    statistics = pstats.Stats(profiler)
    statistics.sort_stats("cumulative").print_stats(45)
    statistics.sort_stats("tottime").print_stats(30)


if __name__ == "__main__":
    sys.exit(main())
