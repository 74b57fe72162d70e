"""Saved states as bytes: the checksum, and random programs with every kind of table."""

from __future__ import annotations

import os
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from oic.check.source import parse
from oic.diagnostics import OicError
from oic.driver import Settings, compile_graph
from oic.reference.crc32c import SHORT, crc32c
from oic.reference.interpret import Machine
from passes import test_lower_cache as programs


def test_the_checksum_is_crc_32c() -> None:
    """Values of RFC 3720, B.4, and the one that catalogues give."""
    assert crc32c(b"") == 0 and crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA and crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E


def test_long_data_has_the_same_checksum() -> None:
    """Bit by bit from the definition."""

    def slow(data: bytes) -> int:
        crc = 0xFFFFFFFF
        for byte in data:
            crc ^= byte
            for _ in range(8):
                crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
        return crc ^ 0xFFFFFFFF

    for length in (1, 7, SHORT, SHORT + 1, SHORT + 5, 4096, 10007, 65536):
        data = os.urandom(length)
        assert crc32c(data) == slow(data), length


@given(st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_a_session_goes_on_where_another_was_saved(r: Random) -> None:
    """Some steps, save, load into a machine of the other stage, sixteen steps: all is the same."""
    case = programs.program(r)
    try:
        program = compile_graph(parse(case.text, "random"), None, Settings(capacity=case.capacity))
    except OicError:
        return
    modules = [program.module, program.planned]
    source, other = Machine(modules[r.randrange(2)]), Machine(modules[r.randrange(2)])
    shapes = Machine(program.module)  # tells what inputs fit
    for machine, steps in ((other, r.randrange(8)), (source, r.randrange(12))):
        shapes.reset()
        for _ in range(steps):
            _step(r, case, program, shapes, [machine])
    saved = source.save()
    other.load(saved)
    assert other.save() == saved
    shapes.load(saved)
    for _ in range(16):
        _step(r, case, program, shapes, [source, other])
        assert source.save() == other.save() == shapes.save(), case.text


def _step(r: Random, case: object, program: object, shapes: Machine, machines: list[Machine]) -> None:
    """One random step of all; a refusal that left state changed is undone."""
    number = r.randrange(len(case.blocks))  # type: ignore[attr-defined]
    symbol = "entry" if number == 0 else f"e{number}"
    given_ = programs.inputs_of(r, case, program, shapes, symbol)  # type: ignore[arg-type]
    before = shapes.save()
    expected = programs.outcome(shapes, symbol, given_)
    for machine in machines:
        found = programs.outcome(machine, symbol, given_)
        if isinstance(expected, str):
            assert isinstance(found, str)
            if machine.broken:
                machine.load(before)
            continue
        assert isinstance(found, dict)
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value, err_msg=name)
