"""The table of passes: what each takes of a compilation's settings, and which of them run."""

from __future__ import annotations

import inspect

from oic.driver import Settings, lowered
from oic.ir.module import Module
from oic.passes.pipeline import PIPELINE


def test_every_option_is_a_setting_and_a_parameter_of_its_pass() -> None:
    settings = Settings()
    for step in PIPELINE:
        parameters = list(inspect.signature(step.run).parameters)
        for name in step.takes:
            assert hasattr(settings, name) and name in parameters[1:], f"{step.name}: {name}"
    assert {step.name: step.takes for step in PIPELINE if step.takes} == {
        "compute-constants": ("target", "computer"), "own-parts": ("target",), "flatten-filters": ("target",), "select-kernels": ("target", "threads"), "join-products": ("target", "threads"),
        "plan-memory": ("target", "reuse"),
    }  # fmt: skip


def test_what_runs_depends_on_the_threads_alone() -> None:
    every = [step.name for step in PIPELINE]
    assert [step.name for step, _ in lowered(Module("empty"), Settings(threads=1))] == every
    every.remove("serialize")
    assert [step.name for step, _ in lowered(Module("empty"), Settings(threads=2))] == every
