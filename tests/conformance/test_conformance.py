"""OpenInfer's own simulator against ours: every case of the corpus, in every backend.

The folder is OIC_CONFORMANCE, in the format that its index.json describes.  Values are compared by
the case's own tolerance; errors by kind (build or run) and by the table below from the corpus's
categories to our slugs and statuses.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import oic
from batch import build_together
from oic import dtypes
from oic.dtypes import Array
from paths import conformance_dir, needs_conformance

# Slugs and statuses that a category may come as.  A run-time error may be refused at build.
CATEGORIES: dict[str, set[str]] = {
    "acc-dtype": {"op-setting", "op-dtype"},
    "branch-condition": {"branch-condition"},
    "cache-declaration": {
        "unknown-index", "bound-range", "duplicate-index", "no-indices", "unbound-indices",
        "attribute-place",
    },
    "cache-misuse": {"table-rank", "not-scalar"},
    "dtype-mismatch": {"result-dtype", "model-dtype", "op-dtype", "write-dtype"},
    "dtype-unsupported": {"op-dtype"},
    "duplicate-name": {"duplicate-name"},
    "index-negative": {"index-negative", "OIC_ERR_INDEX"},
    "init-literal-type": {"init-kind"},
    "init-range": {"init-range"},
    "loop-bound": {"unknown-name"},
    "memory-kind": {"cache-kind", "persistent-operand", "write-kind", "persistent-in-model"},
    "missing-model-tensor": {"missing-model-tensor", "missing-member"},
    "op-attribute": {"op-setting", "unknown-dtype"},
    # Indices without a pattern are one stacked tensor here, which these models lack.
    "prefix-declaration": {"attribute-place", "unbound-indices", "missing-model-tensor"},
    "shape-mismatch": {"shape-mismatch", "result-shape", "write-shape", "OIC_ERR_SHAPE"},
    "syntax": {
        "syntax", "missing-semicolon", "operand-after-setting", "branch-arity",
        "unknown-statement", "unknown-attribute", "duplicate-attribute",
    },
    "unknown-dtype": {"unknown-dtype"},
    "unknown-op": {"unknown-op"},
    "unknown-variable": {"unknown-variable", "unknown-name"},
    "yield-rule": {"consumer-yield"},
    "fixed-bound": {"index-bound", "OIC_ERR_CACHE_FULL"},
    "index-out-of-range": {"OIC_ERR_INDEX", "index-bound"},
    "index-type": {"index-dtype", "not-scalar"},
    "reset-needs-scalar-indices": {"slice-place"},
    "slice-order": {"slice-order", "OIC_ERR_INDEX"},
}  # fmt: skip

# Cases in which the specification rules otherwise: the variables whose value is not checked.
OVERRULED: dict[str, dict[str, str]] = {
    "lang_minimal": {"x": "SPEC 4: a dynamic variable is not fetched"},
}

FOLDER = conformance_dir()
CASES = sorted(p.parent for p in FOLDER.rglob("case.json")) if FOLDER is not None else []
pytestmark = [needs_conformance, pytest.mark.xdist_group("conformance")]
BACKENDS = ("graph", "planned", "c")


class Case:
    """One folder of the corpus."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.name = folder, folder.name
        self.facts: dict[str, Any] = json.loads((folder / "case.json").read_text(encoding="utf-8"))
        self.text = (folder / "graph.oi").read_text(encoding="utf-8")

    def model(self) -> oic.Model:
        tensors = {
            name: oic.Tensor(None, t["dtype"], tuple(t["shape"]))
            if t["data"] is None
            else oic.Tensor(array(t), t["dtype"])
            for name, t in self.facts.get("model", {}).items()
        }
        return oic.Model(tensors=tensors, sizevars=self.facts.get("sizevars", {}))

    def graph(self) -> Any:
        return oic.parse(f"graph {self.name} {{\n{self.text}\n}}", f"{self.name}.oi")

    @property
    def refused(self) -> str | None:
        """The category of a refusal at build."""
        error = self.facts.get("expect_compile_error")
        return error["category"] if error else None


def array(tensor: dict[str, Any]) -> Array:
    """A tensor of the corpus as a NumPy array."""
    dtype = dtypes.ALL[tensor["dtype"]]
    data = [float(x) if isinstance(x, str) else x for x in tensor["data"]]
    if dtype.is_float:
        made = np.array(data, np.float64).astype(dtype.np)
    elif dtype.kind == "bool":
        made = np.array(data, np.bool_)
    else:
        wide = np.uint64 if dtype.name == "u64" else np.int64
        made = np.array([int(x) for x in data], wide).astype(dtype.np)
    return made.reshape(tensor["shape"])


def assert_close(actual: Array, tensor: dict[str, Any], tolerance: Any, where: str) -> None:
    expected = array(tensor)
    assert actual.shape == expected.shape, f"{where}: shape {actual.shape}, not {expected.shape}"
    wide = np.float64 if dtypes.ALL[tensor["dtype"]].is_float else object
    a, b = actual.astype(wide), expected.astype(wide)
    if wide is object:
        assert np.array_equal(a, b), f"{where}: {a}, not {b}"
    elif tolerance == "exact":
        np.testing.assert_array_equal(a, b, where)
    else:
        np.testing.assert_allclose(a, b, tolerance["rel"], tolerance["abs"], err_msg=where)


def makers(case: Case, backend: str) -> Any:
    if backend == "c":
        return oic.Synthesizer(case.graph(), case.model(), target="portable")
    return oic.Simulator(case.graph(), case.model(), stage=backend)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Every case that can be compiled, in one library."""
    made: dict[str, Any] = {}
    for folder in CASES:
        case = Case(folder)
        if case.refused:
            continue
        try:
            made[case.name] = makers(case, "c")
        except oic.OicError as error:
            made[case.name] = error
    good = [m for m in made.values() if not isinstance(m, oic.OicError)]
    build_together(good, tmp_path_factory.mktemp("conformance"))
    return made


@pytest.mark.parametrize("folder", [f for f in CASES if Case(f).refused], ids=lambda f: f.name)
def test_refused_at_build(folder: Path) -> None:
    case = Case(folder)
    with pytest.raises(oic.OicError) as caught:
        makers(case, "graph")
    assert case.refused is not None
    check_category(case.refused, slugs(caught.value))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("folder", [f for f in CASES if not Case(f).refused], ids=lambda f: f.name)
def test_steps(folder: Path, backend: str, compiled: dict[str, Any]) -> None:
    case = Case(folder)
    steps = case.facts["steps"]
    try:
        maker = compiled[case.name] if backend == "c" else makers(case, backend)
        if isinstance(maker, oic.OicError):
            raise maker
    except oic.OicError as error:
        late = [s["expect_error"]["category"] for s in steps if "expect_error" in s]
        assert late, f"refused at build: {error}"
        check_category(late[0], slugs(error))
        return
    with maker.make_executor() as executor:
        for number, step in enumerate(steps):
            given = {n: array(t) for n, t in step["inputs"].items()}
            if "expect_error" in step:
                with pytest.raises(oic.StepError) as caught:
                    executor.step(**given)
                check_category(step["expect_error"]["category"], [caught.value.status])
                return
            executor.step(**given)
            for name, tensor in step["expect"].items():
                if name not in OVERRULED.get(case.name, {}):
                    where = f"{case.name}, step {number}, {name}"
                    assert_close(executor.fetch(name), tensor, case.facts["tolerance"], where)


def slugs(error: oic.OicError) -> list[str]:
    return [d.slug for d in error.diagnostics if d.severity == "error"]


def check_category(category: str, found: list[str]) -> None:
    """A category this table does not know may come as any refusal; a known one as listed."""
    if category in CATEGORIES:
        assert set(found) & CATEGORIES[category], f"{category} came as {found}"
    assert found


def test_the_corpus_formats_numbers_as_we_read_them() -> None:
    """A reader that lost nan or inf would pass cases that test for them."""
    made = array({"dtype": "bf16", "shape": [3], "data": ["nan", "-inf", 1.5]})
    assert made.dtype == ml_dtypes.bfloat16 and np.isnan(made[0]) and np.isneginf(made[1])
