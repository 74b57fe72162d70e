"""The stack that the header promises: from the compiler's own frames and calls, against a stack that is watched."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import cffi
import numpy as np
import pytest

import oic
from codegen import consumers, programs
from oic.check.source import parse
from oic.compare.inputs import random_inputs
from oic.driver import Settings, compile_graph, interface_of
from oic.library import build as builder
from oic.library.emit import LibrarySpec
from oic.model import Model
from oic.session.synthesizer import CompiledExecutor, CompiledProgram
from oic.toolchain import compiler as toolchain
from oic.toolchain import stack
from oic.toolchain.code_metrics import code_bytes
from oic.toolchain.stack import THREAD, StackUse, UnknownStack
from oic.toolchain.target import STANDARD, target

COMPILERS = [c for c in ("gcc", "clang") if shutil.which(c)]
each_compiler = pytest.mark.parametrize("compiler", COMPILERS)


def compiled(compiler: str, source: str, folder: Path, *flags: str) -> tuple[str, str]:
    """StackUse usage and assembly of a C file."""
    (folder / "a.c").write_text(source)
    call = [compiler, "-std=gnu99", "-O1", "-fno-inline", *flags, "-fstack-usage", "-S", "-o", str(folder / "a.s")]
    subprocess.run([*call, str(folder / "a.c")], check=True)
    return (folder / "a.su").read_text(), (folder / "a.s").read_text()


# ---------------------------------------------------------------- calls

CHAIN = """
void outside(char *);
static __attribute__((noinline)) int deep(int x) { volatile char a[1000]; a[x] = 1; return a[x + 1]; }
static __attribute__((noinline)) int shallow(int x) { volatile char a[100]; a[x] = 1; return a[x + 1]; }
int both(int x) { return deep(x) + shallow(x) + 1; }
int one(int x) { char a[10]; outside(a); return shallow(x) + a[0]; }
"""


@each_compiler
def test_the_deepest_path_counts(compiler: str, tmp_path: Path) -> None:
    graph = stack.read(*compiled(compiler, CHAIN, tmp_path))
    both, one = stack.worst(graph, "both"), stack.worst(graph, "one")
    assert [name.partition(".")[0] for name in both.path] == ["both", "deep"] and both.externals == ()
    assert 1000 < both.nbytes < 1200
    assert one.externals == ("outside",) and 100 < one.nbytes < 300


@each_compiler
def test_recursion_has_no_bound(compiler: str, tmp_path: Path) -> None:
    source = """
    int odd(int n);
    int even(int n) { volatile int a = n; return n == 0 ? 1 : odd(n - 1) + a; }
    int odd(int n) { volatile int a = n; return n == 0 ? 0 : even(n - 1) + a; }
    """
    graph = stack.read(*compiled(compiler, source, tmp_path))
    with pytest.raises(UnknownStack, match="recursion: even calls odd calls even"):
        stack.worst(graph, "even")


@each_compiler
def test_a_frame_that_grows_has_no_bound(compiler: str, tmp_path: Path) -> None:
    source = "void outside(char *); void grows(int n) { char a[n]; outside(a); }"
    with pytest.raises(UnknownStack, match="the frame of grows changes its size"):
        stack.read(*compiled(compiler, source, tmp_path))


POINTERS = """
typedef struct { int (*run)(int); } task;
static int big(int x) { volatile char a[2000]; a[x] = 1; return a[x + 1]; }
static int small(int x) { volatile char a[20]; a[x] = 1; return a[x + 1]; }
static int run(task *tasks, int n) { int s = 0; for (int i = 0; i < n; ++i) s += tasks[i].run(i); return s + 1; }
int step(int x) { task tasks[2] = {{big}, {small}}; return run(tasks, x) + 1; }
int other(int x) { task tasks[2] = {{small}, {small}}; return run(tasks, x) + 1; }
int given(int (*f)(int), int x) { return f(x) + 1; }
"""


@each_compiler
@pytest.mark.parametrize("flags", [(), ("-fPIC",), ("-O3",), ("-O3", "-fPIC")])
def test_tasks_are_called_by_the_function_that_takes_their_address(
    compiler: str, flags: tuple[str, ...], tmp_path: Path
) -> None:
    graph = stack.read(*compiled(compiler, POINTERS, tmp_path, *flags))
    step, other = stack.worst(graph, "step"), stack.worst(graph, "other")
    assert 2000 < step.nbytes < 2400 and step.path[-1].partition(".")[0] == "big"
    assert other.nbytes < 400
    assert stack.worst(graph, "given").path[-1].partition(".")[0] == "big"  # any whose address is taken


HANDED_ON = """
typedef struct { int (*then)(int); } product;
static int last(int x) { volatile char a[3000]; a[x] = 1; return a[x + 1]; }
static int part(const product *p, int x) { volatile char a[100]; a[x] = 1; return p->then ? p->then(x) + a[x] : 0; }
static int __attribute__((noinline)) divide(int (*task)(const product *, int), const product *p, int x) { return task(p, x) + 1; }
static int __attribute__((noinline)) divided(const product *p, int x) { return divide(part, p, x) + 1; }
int step(int x) { product p = {last}; return divided(&p, x) + 1; }
int plain(int x) { product p = {0}; return divided(&p, x) + 1; }
"""


@each_compiler
@pytest.mark.parametrize("flags", [("-O0",), ("-Os",)])
def test_what_results_are_handed_to_is_called_by_tasks(compiler: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    """Its address is not taken by the nearest function that takes one."""
    graph = stack.read(*compiled(compiler, HANDED_ON, tmp_path, *flags))
    assert stack.worst(graph, "step").nbytes > 3000
    assert stack.worst(graph, "plain").nbytes > 0  # the pointer may be NULL, where no address is taken at all
    alone = HANDED_ON.replace("{last}", "{0}").replace("static int last", "int last")
    graph = stack.read(*compiled(compiler, alone, tmp_path, *flags))
    assert 0 < stack.worst(graph, "step").nbytes < 1000


@each_compiler
@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_frames_of_x86_are_what_the_compiler_reports(name: str, compiler: str, tmp_path: Path) -> None:
    """Following the stack pointer gives the reported bytes, wherever the compiler reports all of them."""
    files = programs.files(name, tmp_path)
    if "x86_64" not in toolchain.described((compiler,)):
        pytest.skip("frames are followed on x86 only")
    call = [compiler, *STANDARD, "-fPIC", "-I", str(tmp_path), "-fstack-usage", "-S"]
    subprocess.run([*call, "-o", str(tmp_path / "a.s"), str(files.sources[0])], check=True)
    usage, assembly = (tmp_path / "a.su").read_text(), (tmp_path / "a.s").read_text()
    bodies = stack._bodies(assembly, [line.split("\t")[0].rpartition(":")[2] for line in usage.splitlines()])
    word = 0 if compiler == "gcc" else 8  # clang leaves out the return address
    for line, (label, body) in zip(usage.splitlines(), bodies.items(), strict=True):
        down, align = stack._x86(body, 8)
        if not align:
            # clang does not count what a caller pushes for a call with more arguments than registers.
            pushed = 8 * len(re.findall(r"\.cfi_adjust_cfa_offset 8\b", "\n".join(body))) if word else 0
            reported = int(line.split("\t")[1]) + word
            assert reported <= down <= reported + pushed, label


# ---------------------------------------------------------------- against a stack that is watched

WATCH = """
#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>

enum { BYTES = 1 << 20, PAINT = 0xA5 };
typedef int (*function)(void *, void *, void *);
typedef struct { function call; void *a, *b, *c; unsigned char *low; int shift; long used; } job;

/* The bytes that the call changed below the stack pointer of its caller. */
static __attribute__((noinline)) long called(job *j)
{
    unsigned char *const top = alloca((size_t)(16 + 16 * j->shift));
    for (volatile unsigned char *p = j->low; p < top; ++p) {
        *p = PAINT;
    }
    (void)j->call(j->a, j->b, j->c);
    unsigned char *at = j->low;
    while (at < top && *at == PAINT) {
        ++at;
    }
    return top - at;
}

static void *run(void *context)
{
    job *const j = context;
    (void)j->call(j->a, j->b, j->c); /* what the dynamic linker does once is not counted */
    j->used = called(j);
    return NULL;
}

long watch(function call, void *a, void *b, void *c, int shift)
{
    unsigned char *const memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    job j = {call, a, b, c, memory, shift, -1};
    pthread_attr_t attributes;
    pthread_t thread;
    if (memory == MAP_FAILED || pthread_attr_init(&attributes) != 0
        || pthread_attr_setstack(&attributes, memory, BYTES) != 0
        || pthread_create(&thread, &attributes, run, &j) != 0) {
        return -1;
    }
    pthread_join(thread, NULL);
    munmap(memory, BYTES);
    return j.used;
}
"""
OUTSIDE = 512  # bytes of stack; functions of libc and libm took up to 56 where this was written
NUMWORDS = Path(__file__).parents[2] / "examples" / "numwords" / "graph.oi"
WEIGHTS = NUMWORDS.with_name("weights.safetensors")
painted = pytest.mark.skipif(not Path("/proc").exists(), reason="threads with a stack of their own are made for Linux")


@pytest.fixture(scope="module")
def watch(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The function above."""
    folder = tmp_path_factory.mktemp("watch")
    (folder / "watch.c").write_text(WATCH)
    call = [*toolchain.find_compiler(), "-O1", "-fPIC", "-shared", "-pthread", "-fno-stack-protector"]
    subprocess.run([*call, "-o", str(folder / "watch.so"), str(folder / "watch.c")], check=True)
    library = ctypes.CDLL(str(folder / "watch.so"))
    library.watch.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_int]
    library.watch.restype = ctypes.c_long
    return library


def address(data: cffi.FFI.CData | object, ffi: cffi.FFI) -> int:
    return int(ffi.cast("intptr_t", data))


def watched(executor: CompiledExecutor, library: ctypes.CDLL, seed: int) -> dict[str, int]:
    """Bytes of stack of every entry, the most of four places of the stack pointer, by C function."""
    found = {}
    rng = np.random.default_rng(seed)
    for symbol, call in executor._calls.items():
        face = executor.interface.entries[symbol]
        inputs = random_inputs(executor._module, face, rng, {})
        arrays = call.prepare(inputs)
        pointers = [address(p, executor._ffi) for p in (executor._session, call.inputs, call.outputs)]
        function = address(call.function, executor._ffi)
        used = [library.watch(function, *pointers, shift) for shift in range(4)]
        assert min(used) > 0 and arrays is not None
        found[call.face.function] = max(used)
    return found


def stacks(executor: CompiledExecutor) -> dict[str, StackUse]:
    figures = executor.library.files.figures
    assert figures is not None and not figures.missing, figures
    return {s.function: s for s in figures.stacks}


@painted
@each_compiler
@pytest.mark.parametrize("name", ["elementwise", "table", "packed", "names", "numwords"])
def test_no_step_uses_more(
    name: str, compiler: str, watch: ctypes.CDLL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor much less, where the deepest path is one that every step takes: its frames may be aligned to 64 bytes each."""
    monkeypatch.setenv("CC", compiler)
    monkeypatch.delenv("OIC_CFLAGS")
    if name == "numwords":
        program = compile_graph(parse(NUMWORDS.read_text(), "graph.oi"), Model.open(WEIGHTS), Settings())
        executor = CompiledProgram(LibrarySpec(program.planned, target("host")), interface_of(program)).build(tmp_path).make_executor()
    else:
        executor = programs.executor(name, tmp_path)
    promised = stacks(executor)
    for function, used in watched(executor, watch, seed=0).items():
        top = OUTSIDE if promised[function].externals else 0
        assert promised[function].nbytes - 256 <= used <= promised[function].nbytes + top, promised[function]
    executor.close()


PRODUCTS = """
dynamic { x: f32[3, 96]; }
constant { up: f32[128, 96]; down: f32[96, 128]; }
volatile { y: f32[3, 96]; }
block entry {
    assign h: f32[3, 128];
    op linear(x, up) >> h;
    op %s(h) >> h;
    op linear(h, down) >> y;
    return;
}
"""


@painted
@pytest.mark.parametrize("operator", ["gelu", "softmax"])  # with a product, and by itself
def test_products_of_8_bits_have_a_bound(
    operator: str, watch: ctypes.CDLL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OIC_CFLAGS")
    rng = np.random.default_rng(5)
    tensors = {n: rng.standard_normal(shape).astype(np.float32) for n, shape in (("up", (128, 96)), ("down", (96, 128)))}
    graph = oic.parse(f"graph g {{ {PRODUCTS % operator} }}", name="g")
    made = oic.Synthesizer(graph, oic.Model(tensors=tensors), weights="q8").build(tmp_path)
    with made.make_executor() as executor:
        promised = stacks(executor)
        for function, used in watched(executor, watch, seed=0).items():
            assert used <= promised[function].nbytes + (OUTSIDE if promised[function].externals else 0)


def bytes_of_step(body: str, machine: str, folder: Path) -> int:
    """What a step takes of the stack at most, built by the compiler that CC names; x is f32[16], y i8[16], w f32[16, 16]."""
    declared = "dynamic { x: f32[16]; } constant { w: f32[16, 16]; s: f32; } volatile { y: i8[16]; }"
    source = f"{declared} block entry {{ assign h: f32[16]; {body} op quantize(h, s, to=i8) >> y; return; }}"
    data = {"w": np.ones((16, 16), np.float32), "s": np.array(1, np.float32)}
    model = Model(tensors={name: oic.Tensor(value, "f32") for name, value in data.items()})
    module = compile_graph(parse(f"graph g {{ {source} }}", "g.oi"), model, Settings()).planned
    figures = builder.emit_measured(LibrarySpec(module, target(machine)), folder).figures
    assert figures is not None
    return next(s.nbytes for s in figures.stacks if s.function == "g_step")


@each_compiler
def test_calls_share_the_stack_of_their_arguments(compiler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", compiler)
    monkeypatch.setenv("OIC_CFLAGS", "-O1")  # without, some compilers let nothing share
    first, more = "op linear(x, w) >> h;", "op linear(h, w) >> h; op softmax(h) >> h;"
    few, many = (bytes_of_step(first + more * n, "host", tmp_path / str(n)) for n in (2, 12))
    assert many <= few + 160, "a structure is 64 bytes at least, and twenty more are made"


@each_compiler
def test_bare_metal_holds_less_on_the_stack(compiler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", compiler)
    host, bare = (bytes_of_step("transfer x >> h;", machine, tmp_path / machine) for machine in ("host", "freestanding"))
    assert bare < host / 3, "parts of what is quantised are an eighth as long"


# ---------------------------------------------------------------- what is written down


def test_the_header_promises_it(tmp_path: Path) -> None:
    executor = programs.executor("table", tmp_path)
    header, found = (tmp_path / "table.h").read_text(), stacks(executor)
    wanted = ["step", "forget", "init_as", "reset", "save", "load", "truncate", "open_as", "close"]
    assert list(found) == [f"table_{w}" for w in wanted]
    for w in wanted:
        nbytes = found[f"table_{w}"].nbytes
        assert f"#define TABLE_{w.removesuffix('_as').upper()}_STACK_BYTES {nbytes}\n" in header
        assert re.search(rf"^     table_{w} +{nbytes:,}  (\+ \w|calls nothing outside)", header, re.MULTILINE)
    figures = executor.library.files.figures
    assert figures is not None and figures.worst is not None
    assert figures.worst.nbytes == max(s.nbytes for s in found.values())
    assert re.search(rf"^   code +{figures.code_bytes:,}  ", header, re.MULTILINE)
    assert figures.compiler.split(",")[0] in header
    assert str(tmp_path) not in header
    executor.close()


def test_without_a_compiler_the_header_says_how(tmp_path: Path) -> None:
    programs.files("table", tmp_path)
    header = (tmp_path / "table.h").read_text()
    assert "make stack" in header and "STACK_BYTES" not in header


def test_the_same_compiler_gives_the_same_files(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        programs.executor("names", tmp_path / folder).close()
    for path in sorted((tmp_path / "a").iterdir()):
        if path.suffix in (".h", ".json", ".html"):
            assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path.name


@pytest.mark.parametrize("threads", [1, 3])
def test_consumers_are_counted(threads: int, tmp_path: Path) -> None:
    """On the caller's stack, where they may run with any pool; and on that of a thread."""
    settings = Settings(threads=threads)
    program = compile_graph(parse(consumers.text("plain"), "plain.oi"), None, settings)
    spec = LibrarySpec(program.planned, target("portable"), threads=threads)
    maker = CompiledProgram(spec, interface_of(program)).build(tmp_path)
    assert maker.library is not None
    files = maker.library.files
    assert files.figures is not None and not files.figures.missing
    found = {s.function: s for s in files.figures.stacks}
    (step,) = (s for n, s in found.items() if n.endswith("_step"))
    header = (tmp_path / f"{files.name}.h").read_text()
    assert (THREAD in found) == ("_THREAD_STACK_BYTES" in header) == (threads > 1)
    if threads > 1:
        tasks = [t.function for e in files.model.entries for t in e.tasks]
        assert any(name in tasks for name in found[THREAD].path)
        assert "a thread of the pool" in header and found[THREAD].function not in step.path
        assert any(name in tasks for name in step.path) and "pthread_mutex_lock" in step.externals


def test_a_compiler_that_does_not_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library is made, and the header says why the stack is missing."""
    (real,) = toolchain.find_compiler()
    other = tmp_path / "cc"
    other.write_text(f'#!/bin/sh\ncase " $* " in *" -fstack-usage "*) exit 1;; esac\nexec {real} "$@"\n')
    other.chmod(0o755)
    monkeypatch.setenv("CC", str(other))
    executor = programs.executor("counter", tmp_path / "out")
    figures = executor.library.files.figures
    assert figures is not None and figures.stacks == () and figures.worst is None
    assert "not known: the compiler does not tell it" in (tmp_path / "out" / "counter.h").read_text()
    executor.close()


def test_the_compiler_named_measures_for_a_bare_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, machine = programs.planned("table"), target("freestanding")
    monkeypatch.delenv("CC", raising=False)
    assert builder.emit_measured(LibrarySpec(module, machine), tmp_path).figures is None
    monkeypatch.setenv("CC", toolchain.find_compiler()[0])
    figures = builder.emit_measured(LibrarySpec(module, machine), tmp_path).figures
    assert figures is not None and [s.function for s in figures.stacks][-2:] == ["table_load", "table_truncate"]
    assert "TABLE_STEP_STACK_BYTES" in (tmp_path / "table.h").read_text()


@pytest.mark.skipif("clang" not in COMPILERS, reason="one compiler for many machines is needed")
@pytest.mark.parametrize(
    ("machine", "library"),
    [("thumbv7em-none-eabi -mfloat-abi=soft", "__aeabi_fmul"), ("riscv32-none-elf", "__mulsf3"),
     ("aarch64-none-elf", ""), ("i386-none-elf", ""), ("arm64-apple-macos11", ""), ("x86_64-apple-macos11", "")],
)  # fmt: skip
def test_assembly_of_other_machines(machine: str, library: str, tmp_path: Path) -> None:
    """Calls are found in their assembly too, those of floating point in software included."""
    source = CHAIN + "float product(float a, float b, int n) { return (float)shallow(n) * a * b; }"
    graph = stack.read(*compiled("clang", source, tmp_path, f"--target={machine.split()[0]}", *machine.split()[1:]))
    prefix = "_" if "apple" in machine else ""
    both, one, product = (stack.worst(graph, prefix + n) for n in ("both", "one", "product"))
    assert 1000 < both.nbytes < 1250 and [p.lstrip("_") for p in both.path] == ["both", "deep"]
    assert "outside" in one.externals
    assert library == "" or library in product.externals
    assert (code_bytes(tmp_path / "a.s")) is None


def test_code_bytes_are_those_of_the_sections(tmp_path: Path) -> None:
    files = programs.files("table", tmp_path)
    made = tmp_path / "t.o"
    call = [*toolchain.find_compiler(), *STANDARD, "-I", str(tmp_path), "-c", "-o", str(made), str(files.sources[0])]
    subprocess.run(call, check=True)
    if made.read_bytes()[:4] != b"\x7fELF" or not shutil.which("size"):
        pytest.skip("no ELF, or no program to read it")
    shown = subprocess.run(["size", "-A", str(made)], capture_output=True, text=True, check=True).stdout
    sizes = re.findall(r"^\.(text|rodata|data\.rel\.ro)\S*\s+(\d+)", shown, re.MULTILINE)
    assert code_bytes(made) == sum(int(n) for _, n in sizes) > 0


@pytest.mark.parametrize("compiler", ["gcc", "clang", "aarch64-linux-gnu-gcc", "arm-none-eabi-gcc"])
def test_machines_whose_assembly_is_read(compiler: str) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    stack.check_machine(toolchain.macros((compiler,)))


def test_a_machine_that_is_not_read_has_no_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its calls (`brasl` of s390x, `rcall` of AVR) may not be found: the header says that the stack is not known."""
    for known in ({}, {"__s390x__": "1"}, {"__AVR__": "1"}, {"__wasm__": "1"}):
        with pytest.raises(stack.UnknownStack, match="does not read the assembly"):
            stack.check_machine(known)
    monkeypatch.setattr(builder, "macros", lambda compiler: {"__s390x__": "1"})
    executor = programs.executor("counter", tmp_path)
    figures = executor.library.files.figures
    assert figures is not None and figures.stacks == () and figures.worst is None
    assert "not known: oic does not read the assembly of this machine" in (tmp_path / "counter.h").read_text()
    executor.close()
