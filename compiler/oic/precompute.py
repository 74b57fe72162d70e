"""Results of constants alone, computed at build by the code that would compute them in every step.

They are the outputs of a library of their own, which is compiled for this machine and runs once.  The bits are those of
every machine of the class of numerics.
"""

import math
import shutil
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from oic.codegen.names import name_in_private
from oic.diagnostics import OicError, StepError
from oic.driver import Settings, lowered
from oic.dtypes import Array
from oic.ir.control import Func
from oic.ir.module import Module
from oic.kernels.targets import NATIVE, TARGETS, Target
from oic.library.build import load
from oic.library.cache import Cache, key_of
from oic.library.emit import Files, LibrarySpec, write
from oic.memory.crc32c import crc32c
from oic.session.interface import SessionVariable, interface
from oic.session.synthesizer import CompiledExecutor
from oic.toolchain.compiler import CANDIDATES, compile_c, words_of
from oic.toolchain.folders import scratch_folder
from oic.toolchain.target import LANGUAGE, MEANING, SHARED


def in_c(part: Module, target: Target) -> Mapping[str, Array] | None:
    """Run the function `entry` of a GRAPH module, which has no inputs, with a target's numerics: its outputs by name.

    None where there is no compiler for this machine, or no room for files, or the numerics are those of the target's
    own products.
    """
    if target.numerics == NATIVE:
        return None
    here = replace(TARGETS["host"], numerics=target.numerics)
    *_, (_, planned) = lowered(part, Settings(target=here))
    with suppress(OSError), scratch_folder() as folder:
        spec = LibrarySpec(planned, here, name=name_in_private(part.name))
        files, path, cache = write(spec, folder), folder / "results", Cache.of_user()
        texts = (p.read_bytes() for p in files.paths if p.suffix in (".c", ".h", ".weights"))
        key = key_of("results", *texts) if cache else ""
        if cache is None or not _is_kept(cache, key, path):
            if not _compute(files, target, path):
                return None
            if cache is not None:
                cache.put(key, path, crc32c(path.read_bytes()))
        return _read(planned.function("entry"), path)
    return None


def _is_kept(cache: Cache, key: str, path: Path) -> bool:
    """Put the results there that were computed before, if there are; an entry whose bytes are others now is removed."""
    if (known := cache.get(key, path, int)) is not None and known != crc32c(path.read_bytes()):
        cache.remove(key)
        path.unlink()  # which may be the file of the entry by another name
        return False
    return known is not None


def _compute(files: Files, target: Target, path: Path) -> bool:
    """Write the outputs, by the first of the compilers that makes a library that can be loaded here, if any does."""
    named = words_of("CC") if target.hosted else []
    for compiler in [named, *([name] for name in CANDIDATES)]:
        if compiler and shutil.which(compiler[0]):
            with suppress(OicError, StepError):
                path.write_bytes(b"".join(array.tobytes() for array in _run(files, compiler).values()))
                return True
    return False


def _run(files: Files, compiler: list[str]) -> dict[str, Array]:
    """Compile the library and take its step.  Raises OicError, StepError."""
    path = files.folder / f"lib{files.name}.so"
    flags = [LANGUAGE, "-O2", *MEANING, *files.target.flags, *SHARED, "-I", str(files.folder)]
    compile_c([*compiler, *flags, "-o", str(path), *map(str, files.sources), "-lm"])
    library = load(files, path, files.folder)
    module = files.unit.module
    results = zip(module.function("entry").outputs, module.function("entry").returned)
    variables = [SessionVariable(name, "volatile", value.dtype, value.shape) for name, value in results]
    with closing(CompiledExecutor(interface(module, variables), library)) as executor:
        return executor.step()


def _read(entry: Func, path: Path) -> dict[str, Array]:
    """The outputs of a function, as they lie in a file one after the other."""
    data, found, at = path.read_bytes(), {}, 0
    for name, value in zip(entry.outputs, entry.returned):
        count = math.prod(value.tensor.maximum)
        array = np.frombuffer(data, value.dtype.np, count, at)
        found[name], at = array.reshape(value.tensor.maximum), at + array.nbytes
    return found
