"""References are called as the interpreter calls them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def results_of_any_kind() -> Iterator[None]:
    """Infinities and NaN are results like any: none is a warning."""
    with np.errstate(all="ignore"):
        yield
