"""Products of integers on several threads and instruction sets: exact, wherever their operands lie."""

from __future__ import annotations

import numpy as np
import pytest

import oic
from oic import dtypes
from oic.operators import matmul

Shape = tuple[int, ...]
WORDS, PLAIN = "matmul_words", "matmul_int"
# dtype, a and b as [.., M, K] and [.., K, N], acc, which of them are transposed, which are parts of something wider, b is a constant
CASES: tuple[tuple[str, Shape, Shape, str, str, str, bool, str], ...] = (
    ("i8", (100, 33), (33, 70), "i32", "", "", False, WORDS),
    ("i8", (100, 33), (33, 70), "i32", "b", "", True, WORDS),
    ("i8", (64, 64), (64, 64), "i32", "a", "", False, WORDS),
    ("i8", (49, 50), (50, 131), "i16", "ab", "", False, WORDS),
    ("i8", (130, 37), (37, 65), "", "", "", True, WORDS),
    ("i8", (3, 2, 31, 17), (2, 17, 45), "i32", "b", "", False, WORDS),
    ("i8", (2, 31, 17), (3, 1, 17, 45), "i32", "", "", False, WORDS),
    ("i8", (4, 13, 64), (64, 40), "i32", "", "", False, WORDS),
    ("i8", (4, 13, 64), (1, 64, 40), "i32", "", "a", False, WORDS),
    ("i8", (2, 30, 40), (2, 40, 50), "i32", "ab", "ab", False, WORDS),
    ("i8", (2, 30, 40), (2, 40, 50), "i32", "", "ab", False, WORDS),
    ("i8", (1, 300), (300, 500), "i32", "", "", False, PLAIN),
    ("i8", (4, 300), (300, 500), "i32", "", "", False, WORDS),
    ("i8", (5, 0), (0, 9), "i32", "", "", False, WORDS),
    ("i8", (0, 5), (5, 9), "i32", "", "", False, PLAIN),
    ("i8", (5, 6), (6, 0), "i32", "", "", False, PLAIN),
    ("i8", (3, 300), (300, 200), "i32", "b", "", False, PLAIN),
    ("i8", (300, 200), (200, 1), "i32", "", "", False, PLAIN),
    ("i8", (60, 40), (40, 70), "i64", "", "", False, PLAIN),
    ("u8", (60, 40), (40, 70), "u32", "b", "", False, PLAIN),
    ("i16", (7, 11, 23), (7, 23, 300), "i32", "", "", False, PLAIN),
    ("i32", (60, 40), (40, 70), "", "a", "", False, PLAIN),
    ("u64", (60, 40), (40, 70), "", "", "", False, PLAIN),
    ("i4", (61, 40), (40, 71), "", "", "", False, PLAIN),
    ("u2", (64, 40), (40, 300), "", "b", "", False, PLAIN),
    ("i4", (60, 40), (40, 70), "i32", "", "", False, PLAIN),
)


def _graph() -> tuple[str, dict[str, np.ndarray], dict[str, np.ndarray]]:
    rng = np.random.default_rng(11)
    inputs: dict[str, np.ndarray] = {}
    constants: dict[str, np.ndarray] = {}
    lines: dict[str, list[str]] = {"dynamic": [], "constant": [], "volatile": [], "body": []}
    for i, (dtype, *shapes, acc, turned, parts, constant, _) in enumerate(CASES):
        row, names = dtypes.ALL[dtype], []
        for field, shape in zip("ab", shapes, strict=True):
            given = [*shape[:-2], *(shape[:-3:-1] if field in turned else shape[-2:])]
            if field in parts:
                given[-1] += 3
            values = [-128, 127, 1, -3] if dtype == "i8" else np.arange(max(row.low, -999), min(row.high, 1 << 16) + 1)
            name, where = f"{field}{i}", constants if field == "b" and constant else inputs
            where[name] = rng.choice(values, given).astype(row.np)
            kind = "constant" if where is constants else "dynamic"
            lines[kind].append(f"{name}: {dtype}[{', '.join(map(str, given))}];")
            if field in parts:
                seen = [*given[:-1], given[-1] - 3]
                lines["body"] += [f"assign {name}s: {dtype}[{', '.join(map(str, seen))}];"]
                lines["body"] += [f"op slice({name}, axis=-1, start=2, end={given[-1] - 1}) >> {name}s;"]
                name += "s"
            names.append(name)
        lead = np.broadcast_shapes(shapes[0][:-2], shapes[1][:-2])
        lines["volatile"].append(f"y{i}: {acc or dtype}[{', '.join(map(str, (*lead, shapes[0][-2], shapes[1][-1])))}];")
        more = "".join(f", transpose_{field}=true" for field in turned) + (f", acc={acc}" if acc else "")
        lines["body"].append(f"op matmul({', '.join(names)}{more}) >> y{i};")
    body = lines.pop("body")
    sections = "".join(f"{kind} {{ {' '.join(given)} }}\n" for kind, given in lines.items())
    return f"graph g {{ {sections} block entry {{ {' '.join(body)} return; }} }}", inputs, constants


@pytest.mark.parametrize("target, flags", [("host", "-O1"), ("portable", "-O1"), ("portable", "-O1 -DOIC_PORTABLE")])
def test_products_of_integers_are_those_of_the_reference(target: str, flags: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OIC_CFLAGS", flags)
    monkeypatch.setattr(matmul, "PLANES", 4096)
    monkeypatch.setattr(matmul, "LINE", 16)
    text, inputs, constants = _graph()
    graph, model = oic.parse(text, name="g"), oic.Model(tensors=constants)
    with oic.Simulator(graph, model).make_executor() as reference:
        wanted = reference.step(**inputs)
    built = oic.Synthesizer(graph, model, target=target, threads=7).build()
    assert built.program.planned is not None
    products = [op for op in built.program.planned.all_ops() if isinstance(op, matmul.MatMul)]
    assert [op.kernel for op in products] == [kernel for *_, kernel in CASES]
    large = [i for i, op in enumerate(products) if op.a.tensor.size * op.result.shape[-1] >= 60 * 40 * 70]
    assert [i for i in large if products[i].workers == 1] == [23]
    for threads in (1, 2, 3, 7):
        with built.make_executor(threads) as executor:
            found = executor.step(**inputs)
        for i, case in enumerate(CASES):
            assert found[f"y{i}"].tobytes() == wanted[f"y{i}"].tobytes(), (case, threads)


@pytest.mark.parametrize("n, workers", [(70, 2), (71, 1)])
def test_threads_store_no_byte_in_common(n: int, workers: int) -> None:
    """A row of results of 4 bits may end within a byte, where the next one begins."""
    text = f"""graph g {{ dynamic {{ x: i4[90, 40]; w: i4[{n}, 40]; }} volatile {{ y: i4[90, {n}]; z: i4[90, {n}]; }}
      block entry {{ op linear(x, w) >> y; op matmul(x, w, transpose_b=true) >> z; return; }} }}"""
    planned = oic.Synthesizer(oic.parse(text), threads=2).build().program.planned
    assert planned is not None
    assert [op.workers for op in planned.all_ops() if op.name in ("linear", "matmul")] == [workers] * 2
