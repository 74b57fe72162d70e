"""Python's collector of reference cycles, paused while a compilation makes many objects that all stay."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Around what makes a tree or a module, or as its decorator; afterwards the collector is as it was."""
    runs = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if runs:
            gc.enable()
