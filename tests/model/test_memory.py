"""Models given in memory."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from model.samples import values
from oic import dtypes
from oic.diagnostics import OicError
from oic.model import Model, Tensor


def slug(error: pytest.ExceptionInfo[OicError]) -> str:
    return error.value.diagnostics[0].slug


def test_arrays_sizevars_and_metadata() -> None:
    w = np.arange(6, dtype=np.float32).reshape(2, 3)
    model = Model({"W": w}, {"D": np.int64(3)}, {"leak": np.float32(0.5), "rope": {"theta": 1e4}})
    assert model.names() == ["W"] and model.has("W") and "V" not in model
    assert model.info("W").dtype is dtypes.f32 and model.info("W").shape == (2, 3)
    assert np.array_equal(model.tensor("W"), w) and not model.tensor("W").flags.writeable
    assert model.raw("W").tobytes() == w.tobytes()
    assert model.sizevars == {"D": 3}
    assert model.metadata == {"leak": 0.5, "rope.theta": 1e4}
    assert w.flags.writeable


@pytest.mark.parametrize("name", dtypes.ALL)
def test_every_dtype_packs_and_unpacks(name: str) -> None:
    dtype = dtypes.ALL[name]
    array = values(dtype, (3, 5))
    model = Model({"x": (array, name)})
    assert model.tensor("x").dtype == dtype.np
    assert np.array_equal(model.tensor("x"), array)
    assert np.array_equal(dtypes.unpack(model.raw("x"), dtype, 15).reshape(3, 5), array)


def test_conversions() -> None:
    model = Model({"t": ([0, 1, -1], "t1"), "h": ([0.1], "f16"), "b": ([0, 1], "bool")})
    assert model.tensor("t").tolist() == [-1, 1, -1]  # a stored zero is -1
    assert model.tensor("h")[0] == np.float16(0.1)
    assert model.tensor("b").tolist() == [False, True]
    swapped = Model({"x": np.arange(3, dtype=">i4"), "f": np.asfortranarray(np.eye(2))})
    assert swapped.tensor("x").tolist() == [0, 1, 2]
    assert swapped.raw("f").tobytes() == np.eye(2).tobytes()


@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        (([8], "i4"), "model-value"),
        (([-1], "u8"), "model-value"),
        (([2], "bool"), "model-value"),
        (([1.5], "i8"), "model-dtype"),
        (([1], "i5"), "model-dtype"),
        (np.array(["a"]), "model-dtype"),
        (np.array([1j]), "model-dtype"),
        (Tensor(np.zeros(3), "f64", (4,)), "model-value"),
    ],
)
def test_refused_tensors(tensor: object, expected: str) -> None:
    with pytest.raises(OicError) as error:
        Model({"x": tensor})
    assert slug(error) == expected and "'x'" in str(error.value)


def test_refused_sizevars_and_metadata() -> None:
    for bad in (-1, True, 1.5, "3", 1 << 63):
        with pytest.raises(OicError):
            Model(sizevars={"D": bad})  # type: ignore[dict-item]
    with pytest.raises(OicError):
        Model(metadata={"x": object()})


def test_missing_and_empty_tensors() -> None:
    model = Model({"weight": np.zeros(2), "late": Tensor(None, "f32", (2, 3))})
    with pytest.raises(OicError) as error:
        model.tensor("wieght")
    assert slug(error) == "model-missing-tensor" and "did you mean 'weight'?" in str(error.value)
    assert model.names() == ["weight", "late"] and not model.has("late")
    assert model.info("late").shape == (2, 3) and model.info("late").nbytes == 0
    with pytest.raises(OicError) as error:
        model.tensor("late")
    assert slug(error) == "model-no-data"


def test_import_is_light() -> None:
    code = (
        "import sys, oic.model; heavy = {'gguf', 'safetensors', 'zipfile', 'json', 'tempfile'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    path = [p for p in sys.path if p]
    run = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {path!r}; {code}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert run.stdout.strip() == "[]"
