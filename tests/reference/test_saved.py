"""Saved states as bytes: the checksum, and random programs with every kind of table."""

from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from oic.check.source import parse
from oic.diagnostics import OicError
from oic.driver import Settings, compile_graph
from oic.reference.interpret import Machine
from passes import test_lower_cache as programs


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
