"""How much of a session's state is in memory."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np

from oic.session.synthesizer import CompiledExecutor


def resident_bytes(executor: CompiledExecutor) -> int | None:
    """Bytes of the pages of a compiled session's state that are in memory (`mincore`); None on a system that
    does not say."""
    mincore = getattr(ctypes.CDLL(None), "mincore", None)
    if mincore is None:
        return None
    nbytes = executor.library.files.unit.state_bytes
    address = int(executor._ffi.cast("uintptr_t", executor._session.state))
    pages = np.zeros(-(-nbytes // mmap.PAGESIZE), np.uint8)
    where = pages.ctypes.data_as(ctypes.c_void_p)
    if mincore(ctypes.c_void_p(address), ctypes.c_size_t(nbytes), where):
        return None
    return int((pages & 1).sum()) * mmap.PAGESIZE
