"""Every operator × element type × shape class × backend, through the whole compiler.

The cases are `tests.fuzz.operator_shapes`; a fuller campaign and other builds of the C are
`python -m tests.fuzz.operator_campaign --full`.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import instructions
import oic
from compilers import optimizing
from oic import dtypes
from oic.kernels.targets import SEPARATE, TARGETS
from oic.operators.base import by_name, positional, settings
from oic.toolchain.compiler import find_compiler, macros
from paths import ROOT
from processor import AVX2, features
from tests.fuzz import operator_catalog as said
from tests.fuzz.operator_campaign import CATALOG, faults, sanitized, sessions
from tests.fuzz.operator_cases import Case, Variable, literal
from tests.fuzz.operator_shapes import cases, probes
from tests.fuzz.operators import batches, part, suite, table

OPERATORS = sorted(CATALOG)
TABLE = ROOT / "docs" / "operators.md"

# Settings that OPS does not have: where the channels of [.., C, L…] are cannot be told from x.
BEYOND = {"batch_norm": {"channel"}}


@pytest.fixture(scope="module")
def chosen() -> dict[str, list[Case]]:
    """The cases of the suite, by operator."""
    found: dict[str, list[Case]] = {name: [] for name in OPERATORS}
    for case in suite():
        found[case.op].append(case)
    return found


# ---------------------------------------------------------------- against OPS


def test_the_catalog_has_the_operators_of_ops() -> None:
    assert {*said.SETTINGS, *said.BOUNDS} <= set(said.ACCEPTED) <= set(OPERATORS)


@pytest.mark.parametrize("name", OPERATORS)
def test_element_types_are_those_of_ops(name: str) -> None:
    found, stated = CATALOG[name].allowed, said.accepted_by(CATALOG[name])
    more, less = (sorted(d.name for d in s) for s in (found - stated, stated - found))
    assert found == stated, f"takes {more} beside those of OPS, and not {less}"


@pytest.mark.parametrize("name", OPERATORS)
def test_settings_are_those_of_ops(name: str) -> None:
    assert said.declared(CATALOG[name]) - BEYOND.get(name, set()) == said.settings_by(CATALOG[name])


@pytest.mark.parametrize("name", OPERATORS)
def test_every_setting_is_written_in_source(name: str) -> None:
    """Each setting and optional operand is given in some case; what may be a variable is one too."""
    cls = CATALOG[name]
    found = cases(cls)
    given = {k for c in found for k in (*c.settings, *c.given)}
    assert not (missing := said.settings_by(cls) - given), f"no example of {name} gives {missing}"
    may = {k for k, f in settings(cls).items() if "Value" in f.annotation}
    assert may <= {k for c in found for k, v in c.settings.items() if isinstance(v, Variable)}


def test_every_operator_has_cases_for_all_its_types(chosen: dict[str, list[Case]]) -> None:
    for name, cls in CATALOG.items():
        assert {c.row for c in chosen[name]} == said.accepted_by(cls), name


# ---------------------------------------------------------------- against the reference


@pytest.mark.parametrize("name", OPERATORS)
def test_backends_agree(name: str, chosen: dict[str, list[Case]], tmp_path: Path) -> None:
    """GRAPH, PLANNED and C; C within the bound of OPS about the f64 value."""
    check(chosen[name], tmp_path, ("-O0",))


# Other compilers, levels and instruction sets on a case of every operator, chosen anew for each.
BUILDS = {
    "portable": ("gcc", *optimizing("gcc"), "-O3", "-march=x86-64"),
    "avx2": ("gcc", *optimizing("gcc"), "-O3", "-mavx2"),
    "native": ("gcc", *optimizing("gcc"), "-O3", "-march=native"),
    "clang": ("clang", "-O3", "-march=native"),
    "small stack": ("gcc", "-O1", "-DOIC_SMALL_STACK=1"),
}


@pytest.mark.parametrize("build", BUILDS if os.environ.get("OIC_EVERY_CASE") else ("portable", "native", "clang", "small stack"))
def test_other_builds_agree(build: str, chosen: dict[str, list[Case]], tmp_path: Path) -> None:
    compiler, *flags = BUILDS[build]
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    if build == "avx2" and not set(AVX2) <= features():
        pytest.skip("this machine has no AVX2")
    turn = list(BUILDS).index(build)
    members = [cases[(at + 7 * turn) % len(cases)] for at, cases in enumerate(chosen.values())]
    check(members, tmp_path, tuple(flags), (compiler,))
    if TARGETS["portable"].seen(macros(tuple(find_compiler()))).numerics == SEPARATE:
        assert not [found for path in tmp_path.rglob("*.so") for found in instructions.fused(path)]


def test_sanitizers_find_nothing(tmp_path: Path) -> None:
    """No access outside an operand, a result or the arena, and no undefined behaviour."""
    made = batches(part(suite(), 90))
    found = list(faults(made, sanitized(made, tmp_path)))
    assert not found, "\n".join(map(str, found[:20]))


def check(members: list[Case], folder: Path, flags: tuple[str, ...], compiler: tuple[str, ...] | None = None) -> None:
    """Run cases in all backends; every difference in one message."""
    made = batches(members)
    found = list(faults(made, sessions(made, folder, flags, compiler)))
    assert not found, f"{len(found)} differences\n" + "\n".join(map(str, found[:20]))


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize("name", OPERATORS)
def test_other_element_types_are_refused(name: str) -> None:
    """Each on its own line of one graph, all reported in one run as `op-dtype` or the setting's error."""
    cls = CATALOG[name]
    refused = [d for d in dtypes.ALL.values() if d not in said.accepted_by(cls)]
    lines, declarations = [], []
    for at, dtype in enumerate(refused):
        case = next(probes(cls, dtype), None)
        if case is None or not positional(cls):
            continue
        operands = case.operands()
        names = [f"x{at}_{i}" for i in range(len(operands))]
        shapes = [g.shape or (1,) for _, g in operands]
        declarations += [
            f"{n}: {g.dtype}{[int(str(d)) if str(d).isdigit() else 4 for d in s]};"
            for n, (_, g), s in zip(names, operands, shapes, strict=True)
        ]
        fixed = [n for n, (k, _) in zip(names, operands, strict=True) if k not in by_name(cls)]
        more = ", ".join([*fixed, *(f"{k}={literal(v)}" for k, v in case.settings.items())])
        lines.append(f"op {name}({more}) >> y;")
    if not lines:
        return
    text = "\n".join(
        ["graph refused { dynamic {", *declarations, "} volatile { y: f32[?]; } block entry {", *lines, "return; } }"]
    )
    with pytest.raises(oic.OicError) as caught:
        oic.Simulator(oic.parse(text, "refused.oi"))
    slugs = {d.span.line: d.slug for d in caught.value.diagnostics if d.span and d.severity == "error"}
    first = len(declarations) + 3
    assert [slugs.get(first + i) for i in range(len(lines))] == ["op-dtype"] * len(lines), text


# ---------------------------------------------------------------- the table


def test_the_table_in_the_docs_is_up_to_date() -> None:
    command = "python -m tests.fuzz.operator_campaign --table > docs/operators.md"
    assert TABLE.read_text(encoding="utf-8") == table(), f"for an operator, type or case that is new, run: {command}"


def test_special_values_are_compared() -> None:
    """NaN, zeros of both signs and the ends of the range are among the values of the long cases."""
    case = next(c for c in cases(CATALOG["add"]) if c.row is dtypes.f16 and c.label == "long")
    x = case.arrays(0, 0, np.random.default_rng(0))["x0_0"].astype(np.float64)
    assert np.isnan(x).any() and np.isinf(x).any() and (np.signbit(x) & (x == 0)).any() and (x == 65504).any()
