"""From generated files to a library in this process: the C compiler, and cffi.

The C is compiled to assembly, from which the stack of every function of the API is known, and that to
the library; then the files that say what was built are written again, with the figures.
"""

import os
import re
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO
from weakref import WeakValueDictionary

from oic.codegen.weights import Told, unheard
from oic.diagnostics import Diagnostic, OicError, fail
from oic.library.cache import Cache, code_of, key_of
from oic.library.emit import Files, LibrarySpec, published, with_figures, write
from oic.library.publish import staged
from oic.toolchain import stack
from oic.toolchain.code_metrics import Figures, code_bytes
from oic.toolchain.compiler import compile_c, described, find_compiler, macros
from oic.toolchain.folders import scratch_folder
from oic.toolchain.target import SHARED, WARNINGS, optimized


@dataclass(frozen=True)
class Library:
    """A loaded library: `lib` has its functions, `ffi` its types.

    path     where it was put; a later build may have put another one there
    weights  the blob it was built with, open: that of a later build is another file
    shared   the weights as they are mapped, while a session uses them
    """

    path: Path
    files: Files
    ffi: Any
    lib: Any
    weights: BinaryIO | None
    shared: WeakValueDictionary[str, Any] = field(default_factory=WeakValueDictionary)

    @property
    def fingerprint(self) -> int:
        """The fingerprint of the files, which the library must have, too."""
        return int(self.files.model.fingerprint.removeprefix("UINT64_C(").removesuffix(")"), 16)

    @property
    def weights_path(self) -> bytes | None:
        """A path by which the blob can be opened again."""
        if self.weights is None:
            return None
        opened = f"/dev/fd/{self.weights.fileno()}"
        return opened.encode() if os.path.exists(opened) else os.fsencode(self.weights.name)


def build(spec: LibrarySpec, out_dir: str | Path, cache: Cache | None = None, told: Told = unheard) -> Library:
    """Write a C library, compile and load it, and put all of it into a folder.

    The folder keeps what it had until all that has succeeded, and is then switched at once.
    Arguments as for `write`.  Raises OicError: as `emit`, `no-compiler`, `compile-failed`,
    `target-not-here` for a target that has no shared libraries, `load-failed`.
    """
    if not spec.target.hosted:
        message = f"code for the target '{spec.target.name}' cannot be loaded into this process"
        raise fail("target-not-here", message, hint="the targets 'host' and 'portable' can")
    with staged(out_dir) as stage:
        files = write(spec, stage.new, cache, told)
        files, path = compile_library(files, stage.shown, cache, told)
        library = load(files, path, stage.shown)  # by a name that no other library has or had
        files = published(files, stage)
    return replace(library, files=files, path=files.folder / path.name)


def emit_measured(spec: LibrarySpec, out_dir: str | Path) -> Files:
    """Emit for a target that has no libraries here, with the figures of the compiler that CC names, if any.

    Raises OicError: as `emit` and `measure`.
    """
    with staged(out_dir) as stage:
        files = write(spec, stage.new)
        if os.environ.get("CC"):
            files = with_figures(files, measure(files, stage.shown))
        return published(files, stage)


class _Compilation:
    """The files of a library, the compiler that there is, and what its calls have in common.

    shown   the folder to name where compilation fails
    flags   those that decide about the code
    Raises OicError: `no-compiler`, `capacity-unknown`.
    """

    def __init__(self, files: Files, shown: Path) -> None:
        self.files, self.shown, self.compiler = files, shown, find_compiler()
        self.main = files.folder / f"{files.name}.c"
        self.renamed = {str(files.folder): str(shown)}
        plain = [*optimized(self.compiler), *files.target.flags]
        self.flags = [*plain, *(f for f in SHARED if files.target.hosted and f != "-shared")]
        self.threaded = [*self.flags, *files.model.thread_flags.split()]
        self.shared = [*self.compiler, *plain, *SHARED]
        self.libraries = [*files.model.thread_flags.split(), "-lm"]
        self.includes = ["-I", str(files.folder)]
        self.for_debuggers = any(f.startswith("-g") for f in [*self.compiler[1:], *plain])
        if self.for_debuggers:  # where all sources will lie when they are complete
            self.includes.append(f"-fdebug-prefix-map={files.folder}={shown.resolve()}")
        _require_room(files, self.compiler, self.flags)


def compile_library(files: Files, shown: Path, cache: Cache | None = None, told: Told = unheard) -> tuple[Files, Path]:
    """Compile to `lib<name>.so` beside the files; these, now with figures, and the library.

    shown   the folder to name where compilation fails
    cache   of libraries that were compiled before from the same code by the same compiler
    A compiler that knows no `-fstack-usage` makes the library in one call, and the stack is not known.
    Raises OicError: `no-compiler`, `compile-failed`, `load-failed`.
    """
    path = files.folder / f"lib{files.name}.so"
    this = _Compilation(files, shown)
    key = _key(this) if cache else ""
    if cache is not None and (known := cache.get(key, path, Figures.of_json)) is not None:
        return with_figures(replace(files, names=(*files.names, path.name)), known), path
    with scratch_folder() as folder:
        figures = (_compile_sets if files.target.sets else _compile_one)(this, path, folder, told)
    if not path.is_file():
        raise fail("load-failed", f"{this.compiler[0]} made no {shown / path.name}", hint=_hint())
    if cache is not None:
        cache.put(key, path, figures.to_json())
    return with_figures(replace(files, names=(*files.names, path.name)), figures), path


COMPILED = 3  # parts of a compilation, of which the first takes longest: to assembly, to an object, linked


def _compile_one(this: _Compilation, path: Path, folder: Path, told: Told) -> Figures:
    """Compile the code by way of its assembly, and link it; what the compiler made of it."""
    sources, output = [str(p) for p in this.files.sources], ["-o", str(path)]
    whole = [*this.shared, *WARNINGS, *this.includes, *output, *sources, *this.libraries]
    told("compiling", 0, COMPILED)
    figures, made = _measured(this, folder)
    told("compiling", COMPILED - 1, COMPILED)
    call = [*this.shared, *output, str(made), *(p for p in sources if p != str(this.main)), *this.libraries]
    compile_c(call if made else whole, whole, this.renamed)
    told("compiling", COMPILED, COMPILED)
    return figures


def _compile_sets(this: _Compilation, path: Path, folder: Path, told: Told) -> Figures:
    """Compile the code once for each instruction set, and link all into one library."""
    files, call = this.files, [*this.compiler, *this.threaded]
    own = {f"{files.name}.{s.name}.c": s.flags for s in files.target.sets}
    objects = [folder / f"{source.stem}.o" for source in files.sources]
    for at, (source, made) in enumerate(zip(files.sources, objects, strict=True)):
        told("compiling", at, len(objects) + 1)
        flags = [*own.get(source.name, ()), *WARNINGS, *this.includes]
        compile_c([*call, *flags, "-c", "-o", str(made), str(source)], renamed=this.renamed)
    told("compiling", len(objects), len(objects) + 1)
    compile_c([*call, *SHARED, "-o", str(path), *map(str, objects), *this.libraries], renamed=this.renamed)
    told("compiling", len(objects) + 1, len(objects) + 1)
    return Figures(_chosen(this), missing="it depends on the instruction set (--dispatch)")


def _key(this: _Compilation) -> str:
    """A hash of all that a library depends on: texts, flags, the compiler, and the machine that it compiles for."""
    files, compiler = this.files, this.compiler
    flags = [*this.flags, *this.libraries, *(" ".join(s.flags) for s in files.target.sets)]
    program = Path(shutil.which(compiler[0]) or compiler[0]).resolve()
    stat = program.stat() if program.exists() else None
    about = [program, stat and (stat.st_size, stat.st_mtime_ns), described(tuple(compiler)), compiler[1:], flags]
    about += [this.shown.resolve()] if this.for_debuggers else []
    known = sorted(macros((*compiler, *this.flags)).items())
    texts = (p for p in files.paths if p.suffix in (".c", ".h"))
    return key_of(
        "library", files.name, repr(about), repr(known), code_of("oic.library.build", "oic.toolchain.stack"),
        *(part for p in texts for part in (p.name, p.read_bytes())),
    )  # fmt: skip


def measure(files: Files, shown: Path) -> Figures:
    """Stack and code bytes by the compiler that there is; no library is made.

    shown   the folder to name where compilation fails
    Raises OicError: `no-compiler`, `compile-failed`.
    """
    this = _Compilation(files, shown)
    with scratch_folder() as folder:
        figures, made = _measured(this, folder)
        if made is None:  # is it C for this compiler at all?
            call = [*this.compiler, *this.flags, *this.includes, "-c"]
            compile_c([*call, "-o", str(folder / f"{files.name}.o"), str(this.main)], renamed=this.renamed)
    return figures


def _require_room(files: Files, compiler: list[str], flags: list[str]) -> None:
    """Refuse indices without a bound for a machine that has no address space to reserve for them."""
    if macros((*compiler, *flags)).get("__SIZEOF_POINTER__", "8") == "8":
        return
    found = []
    for op in files.unit.module.states():
        for name in (i.name for i in (*op.type.table, *op.type.auto) if i.reserved and op.limit is None):
            message = (f"nothing bounds index '{name}' of '{op.symbol}', and {compiler[0]} compiles for a machine "
                       "without address space to reserve")  # fmt: skip
            hint = f"--max {op.symbol}.{name}=N, or @fixed({name}=N)"
            found.append(Diagnostic("capacity-unknown", message, op.span, hint=hint))
    if found:
        raise OicError(found)


def _measured(this: _Compilation, folder: Path) -> tuple[Figures, Path | None]:
    """Compile the main source by way of its assembly; the figures, and the object file, if the compiler makes one."""
    source, usage, made = (folder / f"{this.files.name}.{ending}" for ending in ("s", "su", "o"))
    call, choices = [*this.compiler, *this.threaded], _chosen(this)
    try:
        compile_c([*call, *this.includes, "-fstack-usage", "-S", "-o", str(source), str(this.main)])
        texts = [p.read_text(encoding="utf-8", errors="replace") for p in (usage, source)]
        compile_c([*call, "-c", "-o", str(made), str(source)])
        size = code_bytes(made)
    except (OSError, OicError) as failure:
        if isinstance(failure, OicError) and failure.diagnostics[0].slug == "no-compiler":
            raise
        return Figures(choices, missing="the compiler does not tell it (-fstack-usage)"), None
    try:
        stack.check_machine(macros(tuple(call)))
        return Figures(choices, _stacks(this.files, *texts), "", size), made
    except stack.UnknownStack as why:
        return Figures(choices, (), str(why), size), made


def _stacks(files: Files, usage: str, assembly: str) -> tuple[stack.StackUse, ...]:
    """The stack of every function of the API, and of a thread of the library's pool.  Raises UnknownStack."""
    graph = stack.read(usage, assembly)
    functions = (*(e.prototype for e in files.model.entries), *files.model.api)
    names = [*(f.name for f in functions), *([stack.THREAD] if files.model.pooled else [])]
    missing = [n for n in names if n not in graph and f"_{n}" not in graph]
    if missing:
        raise stack.UnknownStack(f"the assembly has no function {missing[0]}")
    found = (stack.worst(graph, n if n in graph else f"_{n}") for n in names)
    return tuple(replace(s, function=n) for n, s in zip(names, found))


def _hint() -> str:
    flags = os.environ.get("OIC_CFLAGS")
    made = f"{described(tuple(find_compiler()))} compiled it{f' with OIC_CFLAGS={flags}' if flags else ''}"
    return f"{made}; `oic build --no-compile` writes the C alone"


def _chosen(this: _Compilation) -> str:
    """The compiler, with the flags that change code, those that CC itself carries first."""
    own = [f for f in this.compiler[1:] if f.startswith(("-m", "-f", "-O", "--target"))]
    return f"{described(tuple(this.compiler))}, {' '.join([*own, *this.threaded])}"


COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
DECLARED = re.compile(r"^(typedef (?!union)[\w ]+(?:\{[^}]*\} \w+)?|OIC_API [^;()]*\([^;]*\));", re.MULTILINE)


def _declarations(files: Files) -> str:
    """Types and functions of the headers, each from the start of a line, as cffi reads them: a status is an int."""
    names = ["oic/oic.h", *(["oic/places.h"] if files.unit.profiled else []), f"{files.name}.h"]
    texts = (COMMENT.sub("", (files.folder / name).read_text(encoding="utf-8")) for name in names)
    found = [one.removeprefix("OIC_API ") for text in texts for one in DECLARED.findall(text)]
    return "".join(f"{one};\n" for one in ["typedef int oic_status", *found])


def load(files: Files, path: Path, shown: Path) -> Library:
    """Load a library by the declarations of its own header; `shown` is the folder to name where that fails.

    Systems know libraries by path, and give an old one where another was loaded from the same; so the
    path is a link, or a copy, that no other library had.
    """
    import cffi

    ffi = cffi.FFI()
    ffi.cdef(_declarations(files))
    with scratch_folder() as folder:
        link = folder / path.name
        try:
            link.symlink_to(path.resolve())
        except (OSError, NotImplementedError):  # the file system, or Windows, has no links
            shutil.copy2(path, link)
        try:
            lib = ffi.dlopen(str(link))
            getattr(lib, f"{files.name}_open_as")  # not there where OIC_CFLAGS say -DOIC_HOSTED=0, or hide it
        except (OSError, AttributeError) as failure:
            why = str(failure).partition("  Additionally, ")[0].rpartition(f"{link}: ")[2]
            raise fail("load-failed", f"{shown / path.name} cannot be loaded: {why}", hint=_hint()) from failure
    return Library(path, files, ffi, lib, files.weights.open("rb") if files.weights else None)
