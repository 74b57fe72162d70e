"""Builds shared by the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from codegen import programs
from oic.session.synthesizer import CompiledExecutor

Make = Callable[[str], CompiledExecutor]


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: tmp_path_factory.mktemp(name) for name in programs.PROGRAMS}


@pytest.fixture(scope="session")
def shared(folders: dict[str, Path]) -> Iterator[dict[str, CompiledExecutor]]:
    """Sessions by program, each built once; tests make their own with `make`."""
    made: dict[str, CompiledExecutor] = {}
    yield made
    for session in made.values():
        session.close()


@pytest.fixture
def make(shared: dict[str, CompiledExecutor], folders: dict[str, Path]) -> Iterator[Make]:
    """A new session of a program that is compiled once."""
    opened: list[CompiledExecutor] = []

    def new(name: str) -> CompiledExecutor:
        if name not in shared:
            shared[name] = programs.executor(name, folders[name])
        first = shared[name]
        opened.append(CompiledExecutor(first.interface, first.library))
        return opened[-1]

    yield new
    for session in opened:
        session.close()
