"""Programs that are deep or long: each ends in a result or a diagnostic."""

from __future__ import annotations

from collections.abc import Callable

HEAD = "dynamic { x: f32[4]; c: bool; } volatile { y: f32[4]; }\n"
PLAIN = "block entry { op relu(x) >> y; return; }\n"


def _blocks(count: int, branch: str) -> str:
    made = [HEAD, f"block entry {{ transfer x >> y; {branch.format(0)} }}\n"]
    made += [f"block b{i} {{ op add(y, x) >> y; {branch.format(i + 1)} }}\n" for i in range(count)]
    return "".join([*made, f"block b{count} {{ op relu(y) >> y; return; }}\n"])


def _loops(count: int) -> str:
    opened = "".join(f"loop l{i} (i{i} in 0..1) {{" for i in range(count))
    return f"{HEAD}block entry {{ transfer x >> y; {opened} op add(y, x) >> y; {'}' * count} return; }}"


def _loops_in_blocks(blocks: int, each: int) -> str:
    made = [HEAD, "block entry { transfer x >> y; branch b0; }\n"]
    for i in range(blocks):
        opened = "".join(f"loop l{i}_{j} (i{i}_{j} in 0..1) {{" for j in range(each))
        made.append(f"block b{i} {{ {opened} op add(y, x) >> y; branch b{i + 1}; {'}' * each} }}\n")
    return "".join([*made, f"block b{blocks} {{ op relu(y) >> y; }}\n"])


def _returning(count: int) -> str:
    """Each loop may end the block, and what follows it is guarded."""
    loops = "".join(
        f"loop l{i} (i{i} in 0..n) {{ op add(y, x) >> y; branch c r r; }}\n" for i in range(count)
    )
    head = "dynamic { x: f32[4]; n: i32; c: bool; } volatile { y: f32[4]; }\n"
    loops = loops.replace("branch c r r;", "return;")
    return f"{head}block entry {{ transfer x >> y; {loops} return; }}\n"


def _row(count: int) -> str:
    ops = "".join("op relu(t) >> t;\n" for _ in range(count))
    return f"{HEAD}block entry {{ assign t: f32[4]; op add(x, x) >> t;\n{ops}op add(t, x) >> y; }}\n"


def _table(count: int) -> str:
    pairs = "cache.write x >> K[t];\ncache.increment t;\n" * count
    kept = f"persistent {{ K(t): f32[4] @table @fixed(t={count + 1}); t: i32 @init(0); }}\n"
    return f"{kept}{HEAD}block entry {{ {pairs} transfer x >> y; }}\n"


def _increments(count: int) -> str:
    kept = "persistent { K(t): f32[4] @table @fixed(t=9); t: i32 @init(0); }\n"
    steps = "cache.increment t;\n" * count + "cache.decrement t;\n" * count
    return f"{kept}{HEAD}block entry {{ {steps} cache.write x >> K[t]; transfer x >> y; }}\n"


def _sizes(count: int, value: Callable[[int], str]) -> str:
    sizes = "".join(f"S{i} = {value(i)};\n" for i in range(count))
    return f"sizes {{ {sizes} }}\n{HEAD.replace('4', 'S0')}{PLAIN}"


def _dims(expression: str) -> str:
    return f"sizes {{ N = {expression}; }}\n{HEAD}{PLAIN}"


# name: the text, and the slug of its refusal, or None where it compiles
PROGRAMS: dict[str, tuple[Callable[[], str], str | None]] = {
    "300 blocks": (lambda: _blocks(300, "branch b{};"), "nesting-depth"),
    "95 blocks": (lambda: _blocks(95, "branch b{};"), None),
    "300 conditional blocks": (lambda: _blocks(300, "branch c b{0} end;") + "block end { }", "nesting-depth"),
    "45 conditional blocks": (lambda: _blocks(45, "branch c b{0} end;") + "block end { }", None),
    "copies": (lambda: _blocks(40, "branch c b{0} b{0};"), "program-size"),
    "1,000 blocks in a circle": (
        lambda: _blocks(1000, "branch b{};").replace("op relu(y) >> y;", "branch b0;"), "recursive-block",
    ),
    "32 loops": (lambda: _loops(32), None),
    "50,000 loops": (lambda: _loops(50_000), "source-size"),
    "20,000 loops": (lambda: _loops(20_000), "nesting-depth"),
    "loops in blocks": (lambda: _loops_in_blocks(3, 30), None),
    "too many loops in blocks": (lambda: _loops_in_blocks(10, 30), "nesting-depth"),
    "300 loops that return": (lambda: _returning(300), "nesting-depth"),
    "1,000 ops in a row": (lambda: _row(1000), None),
    "1,500 ops, each over the one before": (lambda: _row(1500).replace("op relu(t)", "op softmax(t)"), None),
    "100 writes and increments": (lambda: _table(100), None),
    "600 increments": (lambda: _increments(300), None),
    "40,000 adds": (lambda: _dims("1 + " * 40_000 + "1"), "nesting-depth"),
    "90 adds": (lambda: _dims("1 + " * 90 + "1"), None),
    "20,000 parentheses": (lambda: _dims("(" * 20_000 + "1" + ")" * 20_000), None),
    "20,000 signs": (lambda: _dims("-" * 20_000 + "1"), "nesting-depth"),
    "20,000 lists": (lambda: HEAD + PLAIN.replace("(x)", f"(x, alpha={'[' * 20_000}1{']' * 20_000})"), "nesting-depth"),
    "20,000 braces": (lambda: f"{HEAD}block entry {'{' * 20_000}{'}' * 20_000}", "syntax"),
    "20,000 comments": (lambda: "/*" * 20_000 + "*/" * 20_000 + HEAD + PLAIN, None),
    "20,000 comments in a row": (lambda: "/**/" * 20_000 + HEAD + PLAIN, None),
    "5,000 sizes": (lambda: _sizes(5000, lambda i: f"S{i - 1} + 1" if i else "1"), None),
    "5,000 sizes, backwards": (lambda: _sizes(5000, lambda i: f"S{i + 1} + 1" if i < 4999 else "1"), None),
    "5,000 sizes in a circle": (lambda: _sizes(5000, lambda i: f"S{(i + 1) % 5000} + 1"), "size-cycle"),
    "a long string": (
        lambda: f'constant {{ w: f32[4] @ref("{"a" * 4_000_000}"); }}\n{HEAD}{PLAIN}', "missing-model-tensor",
    ),
    "a longer string": (
        lambda: f'constant {{ w: f32[4] @ref("{"a" * 5_000_000}"); }}\n{HEAD}{PLAIN}', "source-size",
    ),
    "a long line": (lambda: f"{HEAD}block entry {{ {'op relu(x) >> y; ' * 2000} oops; }}", "unknown-statement"),
}  # fmt: skip
