"""One toolchain after another, and the check that the sanitizer found nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from runtime.native import TOOLCHAINS, Toolchain


@pytest.fixture(scope="session", params=TOOLCHAINS, ids=lambda t: t.name)
def toolchain(request: pytest.FixtureRequest) -> Toolchain:
    """Every compiler that this machine has."""
    if request.param.missing:
        pytest.skip(request.param.missing)
    return request.param


@pytest.fixture(autouse=True)
def nothing_undefined(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """No undefined behaviour was reported while the test ran."""
    yield
    assert "runtime error" not in capfd.readouterr().err
