"""Folders of generated files: temporary ones."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from weakref import finalize


def temporary_folder(owner: object) -> Path:
    """A new folder that is deleted with its owner, or when the program ends.

    A copy of the process made by `os.fork` deletes nothing: it has the owner too, and not the folder.
    """
    folder = Path(tempfile.mkdtemp(prefix="oic-"))
    finalize(owner, _delete, folder, os.getpid())
    return folder


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for the time of a `with` block, in the process that entered it."""
    folder, process = Path(tempfile.mkdtemp(prefix="oic-")), os.getpid()
    try:
        yield folder
    finally:
        _delete(folder, process)


def _delete(folder: Path, process: int) -> None:
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
