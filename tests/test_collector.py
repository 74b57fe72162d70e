"""The collector of reference cycles is as it was, whatever happens while it is paused."""

from __future__ import annotations

import gc

import pytest

import oic
from oic.collector import uncollected


def test_it_is_paused_inside_and_runs_again_after_an_error() -> None:
    with uncollected(), uncollected():
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(oic.OicError):
        oic.parse("block entry { nothing }")
    assert gc.isenabled()


def test_it_stays_paused_where_it_was() -> None:
    gc.disable()
    try:
        oic.parse("block entry { return; }")
        assert not gc.isenabled()
    finally:
        gc.enable()
