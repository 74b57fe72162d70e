"""A convolution or a product that requantises its sums as it stores them has the bits of the two operators."""

from __future__ import annotations

import numpy as np
import pytest

import oic
from conv_shapes import Shape, convolved
from oic import dtypes
from oic.dtypes import Array
from oic.kernels import targets
from oic.operators import conv, matmul

WORDS, PLAIN, TILES = "conv_planes_requantized", "conv_requantized", "conv_winograd_requantized"
# operator, x, its dtype, w, settings, kernel where w is constant: words across channels and along rows, rows one by one and
# wider than registers of them, blocks of columns, several output channels, few positions; tiles; classes of transposed ones
CASES: tuple[tuple[str, str, Shape, Shape, dict[str, list[int]], str], ...] = (
    ("conv1d", "i8", (2, 7, 33), (5, 7, 3), {"stride": [2], "padding": [1]}, WORDS),
    ("conv1d", "i8", (6, 1), (50, 3, 1), {"groups": [2]}, WORDS),
    ("conv2d", "i8", (9, 17, 23), (101, 9, 3, 2), {"padding": [1, 2], "dilation": [2, 1]}, WORDS),
    ("conv2d", "i8", (5, 17, 19), (10, 1, 3, 3), {"stride": [2, 3], "padding": [1, 1], "groups": [5]}, WORDS),
    ("conv2d", "i8", (4, 12, 75), (4, 1, 3, 3), {"padding": [1, 1], "groups": [4]}, WORDS),
    ("conv2d", "i8", (3, 22, 40), (9, 3, 7, 7), {"stride": [2, 2], "padding": [3, 3]}, WORDS),
    ("conv1d", "i8", (2, 700), (4, 1, 9), {"padding": [3], "groups": [2]}, WORDS),
    ("conv1d", "i8", (3, 5), (3, 1, 4), {"stride": [3], "padding": [2], "groups": [3]}, WORDS),
    ("conv2d", "i8", (8, 7, 7), (12, 8, 3, 3), {"padding": [1, 1]}, WORDS),
    ("conv2d", "i8", (26, 13, 17), (40, 26, 3, 3), {"padding": [1, 1]}, TILES),
    ("conv1d", "i8", (50, 131), (114, 25, 3), {"padding": [2], "groups": [2]}, TILES),
    ("conv2d", "i32", (3, 9, 70), (6, 3, 3, 3), {"stride": [2, 1], "padding": [1, 1]}, PLAIN),
    ("conv1d", "i16", (4, 33), (3, 4, 5), {"padding": [2]}, PLAIN),
    ("conv_transpose1d", "i8", (2, 6, 13), (6, 7, 3), {"stride": [5], "output_padding": [2]}, WORDS),
    ("conv_transpose2d", "i8", (4, 6, 9), (4, 3, 3, 4), {"stride": [2, 3], "padding": [2, 1]}, WORDS),
    ("conv_transpose2d", "i8", (13, 9, 21), (13, 14, 3, 3), {"stride": [1, 2], "output_padding": [0, 1]}, WORDS),
    ("conv_transpose2d", "i16", (4, 6, 9), (4, 3, 3, 4), {"stride": [2, 3], "padding": [2, 1]}, PLAIN),
)
RESULTS = ("i8", "u8", "i16", "u16")


def _graph() -> tuple[str, dict[str, Array], dict[str, Array]]:
    """Every convolution three times: with constant weights (v), with the same at run time (u), and with those and its sums
    as an output (w)."""
    rng = np.random.default_rng(6)
    inputs, constants = {}, {}
    declared: dict[str, list[str]] = {"dynamic": [], "constant": [], "volatile": []}
    body = []

    def given(into: dict[str, Array], kind: str, name: str, shape: Shape, dtype: str, values: Array) -> None:
        into[name] = np.reshape(values, shape).astype(dtypes.ALL[dtype].np)
        declared[kind].append(f"{name}: {dtype}[{', '.join(map(str, shape))}];")

    for i, (name, dtype, x, w, settings, _) in enumerate(CASES):
        outputs = w[1] * settings.get("groups", [1])[0] if "transpose" in name else w[0]
        to, row, n = RESULTS[i % len(RESULTS)], dtypes.ALL[dtype], len(w) - 2
        each = (outputs, *[1] * n) if i % 3 else ()
        for part, shape in (("x", x), ("u", w), ("w", w)):
            values = rng.integers(max(row.low, -999), min(row.high + 1, 999), shape) if part != "w" else inputs[f"u{i}"]
            given(inputs, "dynamic", f"{part}{i}", shape, dtype, values)
        given(constants, "constant", f"v{i}", w, dtype, inputs[f"u{i}"])
        given(constants, "constant", f"b{i}", (outputs,), "i32", rng.integers(-(1 << 20), 1 << 20, outputs))
        multiplier, shift = rng.integers(1 << 30, 1 << 31, each), rng.integers(-12, -6, each)
        if each:
            multiplier[0], multiplier[-1] = -(1 << 31), 0
            shift.flat[:3] = (0, -31, 3)
        given(constants, "constant", f"m{i}", each, "i32", multiplier)
        given(constants, "constant", f"s{i}", each, "i8", shift)
        out = ", ".join(map(str, (*x[: 1 - len(w)], outputs, *convolved(name, x, w, settings))))
        declared["volatile"] += [f"{part}{i}: {to}[{out}];" for part in "pqr"] + [f"t{i}: i32[{out}];"]
        more = ", ".join(f"{k}={v[0] if k == 'groups' else v}" for k, v in settings.items())
        more = ", ".join(filter(None, (f"b=b{i}" if i % 2 else "", "" if dtype == "i32" else "acc=i32", more)))
        scaled = f"m{i}, s{i}, to={to}, zero_point={7 * i - 40}" + (', rounding="nearest"' if i % 4 == 1 else "")
        for part, weights in (("p", "v"), ("q", "u"), ("r", "w")):
            sums = f"t{i}" if part == "r" else f"{part}s{i}"
            body += [f"assign {sums}: i32[{out}];"] * (part != "r")
            body += [f"op {name}(x{i}, {weights}{i}, {more}) >> {sums};", f"op requantize({sums}, {scaled}) >> {part}{i};"]
    sections = "".join(f"{kind} {{ {' '.join(lines)} }}\n" for kind, lines in declared.items())
    return f"graph g {{ {sections} block entry {{ {' '.join(body)} return; }} }}", inputs, constants


def _plain(name: str, dtype: str, w: Shape) -> str:
    """The kernel that takes weights as they are declared."""
    if dtype != "i8" or name.startswith("conv_transpose") or set(w[2:]) == {1}:
        return "conv"
    return "depthwise_bytes" if w[1] == 1 else "conv_bytes"  # of few outputs a group, as all are here


def test_sums_have_the_bits_of_requantize(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conv, "PLANES", 4096)
    monkeypatch.setattr(conv, "LEAST", 16)
    monkeypatch.setattr(conv, "POINTS", 1 << 15)
    monkeypatch.setattr(targets, "FOURS", frozenset())
    text, inputs, constants = _graph()
    graph, model = oic.parse(text, name="g"), oic.Model(tensors=constants)
    with oic.Simulator(graph, model).make_executor() as reference:
        wanted = reference.step(**inputs)
    assert [i for i in range(len(CASES)) if len(np.unique(wanted[f"p{i}"])) < 2] == []
    built = oic.Synthesizer(graph, model, threads=7).build()
    assert built.program.planned is not None
    kernels = [op.kernel for op in built.program.planned.all_ops() if op.name.startswith(("conv", "requantize"))]
    plain = [(kernel, _plain(name, dtype, w)) for name, dtype, _, w, _, kernel in CASES]
    assert kernels == [one for kernel, name in plain for one in (kernel, f"{name}_requantized", name, "requantize")]
    for threads in (1, 2, 3, 7):
        with built.make_executor(threads) as executor:
            found = executor.step(**inputs)
        for i, case in enumerate(CASES):
            for part in "pqr":
                assert found[f"{part}{i}"].tobytes() == wanted[f"{part}{i}"].tobytes(), (part, case, threads)


# x, its dtype, outputs, kernel: of few rows and of many, several blocks of them,
# some left that fill no lanes; numbers that fill no words
PRODUCTS: tuple[tuple[Shape, str, int, str], ...] = (
    ((64,), "i8", 130, "linear_int_requantized"),
    ((3, 33), "i8", 7, "linear_int_requantized"),
    ((2, 9, 17), "i16", 49, "linear_int_requantized"),
    ((19, 31), "i8", 50, "linear_words_requantized"),
    ((5, 27, 64), "i8", 97, "linear_words_requantized"),
    ((8, 6), "i8", 11, "linear_words_requantized"),
    ((2, 40), "i8", 67, "linear_int_requantized"),
    ((2, 13), "i8", 66, "linear_int_requantized"),
)


@pytest.mark.parametrize("target, flags", [("host", "-O1"), ("portable", "-O1"), ("portable", "-O1 -DOIC_PORTABLE")])
def test_sums_of_products_have_the_bits_of_requantize(target: str, flags: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OIC_CFLAGS", flags)
    monkeypatch.setattr(matmul, "PLANES", 4096)
    rng = np.random.default_rng(9)
    lines: dict[str, list[str]] = {"dynamic": [], "constant": [], "volatile": [], "body": []}
    inputs, constants = {}, {}
    for i, (shape, dtype, n, _) in enumerate(PRODUCTS):
        row, k, each = dtypes.ALL[dtype], shape[-1], [n] if i % 3 else []
        inputs[f"x{i}"] = rng.integers(max(row.low, -999), min(row.high + 1, 999), shape).astype(row.np)
        constants |= {
            f"w{i}": rng.integers(max(row.low, -999), min(row.high + 1, 999), (n, k)).astype(row.np),
            f"b{i}": rng.integers(-(1 << 16), 1 << 16, n).astype(np.int32),
            f"m{i}": np.asarray(rng.integers(1 << 30, 1 << 31, each), np.int32),
            f"s{i}": np.asarray(rng.integers(-12, -6, each), np.int8),
        }
        if each:
            constants[f"m{i}"][:2], constants[f"s{i}"][2:5] = (-(1 << 31), 0), (0, -31, 3)
        to, out = RESULTS[i % len(RESULTS)], ", ".join(map(str, (*shape[:-1], n)))
        lines["dynamic"].append(f"x{i}: {dtype}[{', '.join(map(str, shape))}];")
        lines["constant"] += [f"w{i}: {dtype}[{n}, {k}]; b{i}: i32[{n}]; m{i}: i32{each or ''}; s{i}: i8{each or ''};"]
        lines["volatile"] += [f"y{i}: {to}[{out}];"]
        more = f"zero_point={9 * i - 20}" + (', rounding="nearest"' if i in (1, 4) else "")
        lines["body"] += [f"assign t{i}: i32[{out}];", f"op linear(x{i}, w{i}, {f'b=b{i}, ' * (i % 2)}acc=i32) >> t{i};"]
        lines["body"] += [f"op requantize(t{i}, m{i}, s{i}, to={to}, {more}) >> y{i};"]
    body = lines.pop("body")
    sections = "".join(f"{kind} {{ {' '.join(given)} }}\n" for kind, given in lines.items())
    text = f"graph g {{ {sections} block entry {{ {' '.join(body)} return; }} }}"
    graph, model = oic.parse(text, name="g"), oic.Model(tensors=constants)
    with oic.Simulator(graph, model).make_executor() as reference:
        wanted = reference.step(**inputs)
    assert [i for i in range(len(PRODUCTS)) if len(np.unique(wanted[f"y{i}"])) < 2] == []
    built = oic.Synthesizer(graph, model, target=target, threads=7).build()
    assert built.program.planned is not None
    kernels = [op.kernel for op in built.program.planned.all_ops() if op.name in ("linear", "requantize")]
    assert kernels == [kernel for *_, kernel in PRODUCTS]
    for threads in (1, 2, 3, 7):
        with built.make_executor(threads) as executor:
            found = executor.step(**inputs)
        for name, value in wanted.items():
            assert found[name].tobytes() == value.tobytes(), (name, threads)


def test_a_convolution_of_state_does_not_move_past_what_sets_it() -> None:
    text = """graph g { dynamic { x: i8[3, 9]; } constant { w: i8[4, 3, 2]; m: i32; s: i8; } persistent { p: i8[3, 9]; }
      volatile { y: i8[4, 8]; } block entry { assign t: i32[4, 8]; assign old: i8[3, 9]; cache.read p >> old;
        op conv1d(old, w, acc=i32) >> t; cache.write x >> p; op requantize(t, m, s, to=i8) >> y; return; } }"""
    constants = {"w": np.ones((4, 3, 2), np.int8), "m": np.int32(1 << 30), "s": np.int8(0)}
    graph, model = oic.parse(text, name="g"), oic.Model(tensors=constants)
    x = np.arange(27, dtype=np.int8).reshape(3, 9)
    built = oic.Synthesizer(graph, model).build()
    assert built.program.planned is not None
    assert [op.name for op in built.program.planned.all_ops() if op.name in ("requantize", "copy")] == ["requantize"]
    with oic.Simulator(graph, model).make_executor() as one, built.make_executor() as other:
        for given in (x, -x, x):
            wanted, found = one.step(x=given)["y"], other.step(x=given)["y"]
            assert found.tobytes() == wanted.tobytes()
        assert found.any()


def test_sums_need_no_memory() -> None:
    text = """graph g { dynamic { x: i8[8, 64, 64]; } constant { w: i8[8, 8, 3, 3]; m: i32; s: i8; } volatile { y: i8[8, 64, 64]; }
      block entry { assign t: i32[8, 64, 64]; op conv2d(x, w, padding=1, acc=i32) >> t;
        op requantize(t, m, s, to=i8) >> y; return; } }"""
    constants = {"w": np.ones((8, 8, 3, 3), np.int8), "m": np.int32(1 << 30), "s": np.int8(-3)}
    for target in ("portable", "freestanding"):
        made = oic.Synthesizer(oic.parse(text, name="g"), oic.Model(tensors=constants), target=target)
        assert made.program.planned is not None and made.program.planned.plan is not None
        assert sum(made.program.planned.plan.arena_bytes.values()) < 4 * 8 * 64 * 64, target


def test_no_source_gives_what_the_compiler_adds() -> None:
    text = """graph g { dynamic { x: i8[3, 9]; } constant { w: i8[4, 3, 2]; m: i32; s: i8; } volatile { y: i8[4, 8]; }
      block entry { op conv1d(x, w, acc=i32, multiplier=m, shift=s, to=i8) >> y; return; } }"""
    with pytest.raises(oic.OicError) as caught:
        oic.Simulator(oic.parse(text, name="g"))
    found = [d.message for d in caught.value.diagnostics if d.slug == "op-setting"]
    assert found == [f"conv1d has no setting '{name}'" for name in ("multiplier", "shift", "to")]
