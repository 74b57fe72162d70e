"""Options of C compilers that change floats are refused, or change nothing beyond the bounds; other machines are refused."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import oic
from oic import dtypes
from oic.diagnostics import OicError
from oic.kernels.targets import TARGETS
from oic.resources import runtime_dir
from oic.toolchain.compiler import find_compiler, macros
from oic.toolchain.target import MEANING, ONE_COPY, STANDARD, WARNINGS, optimized
from tests.fuzz.batch_build import build_together
from tests.fuzz.operator_cases import Case
from tests.fuzz.operators import batches, compare, suite

GRAPH = "graph small { dynamic { x: f32[2]; } volatile { y: f32[2]; } block entry { op tanh(x) >> y; return; } }"
LINEAR = """
dynamic { x: f32[8]; }
constant { w: f32[8, 8]; }
volatile { y: f32[8]; }
block entry { op linear(x, w) >> y; return; }
"""
IDENTITY = oic.Model(tensors={"w": np.eye(8, dtype=np.float32)})

# By flag: what the error says of it.
SHOWN = {
    ("gcc", "-ffast-math"): "-ffast-math",
    ("gcc", "-Ofast"): "-Ofast",
    ("gcc", "-funsafe-math-optimizations"): "-funsafe-math-optimizations",
    ("gcc", "-fassociative-math -fno-signed-zeros -fno-trapping-math"): "-fassociative-math",
    ("gcc", "-freciprocal-math"): "-freciprocal-math",
    ("gcc", "-fno-signed-zeros"): "-fno-signed-zeros",
    ("gcc", "-ffinite-math-only"): "-ffinite-math-only",
    ("gcc", "-fsingle-precision-constant"): "oic_constants_are_double",
    ("gcc", "-mfpmath=387"): "excess precision",
    ("clang", "-ffast-math"): "-ffast-math",
    ("clang", "-Ofast"): "-Ofast",
    ("clang", "-ffinite-math-only"): "-ffinite-math-only",
    ("s390x-linux-gnu-gcc", "-O2"): "little-endian",
    ("arm-none-eabi-gcc", "-mcpu=cortex-m4 -mbig-endian"): "little-endian",
    ("arm-none-eabi-gcc", "-mcpu=cortex-m55 -mfloat-abi=hard"): "+nomve.fp",
}
# Of clang, which shows these by no macro; and what every build has, left out.
HARMLESS = {
    "clang": "-O2 -march=native -funsafe-math-optimizations -ffp-contract=fast -fstrict-aliasing",
    "gcc": "-O2 -march=native -ffp-contract=fast -fstrict-aliasing -frounding-math",
}
OPERATORS = "exp sigmoid silu tanh erf gelu softmax softplus sin cos log layer_norm rms_norm matmul attention cast"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    oic.Synthesizer(oic.parse(GRAPH), target="portable").emit(folder)
    return folder


def called(compiler: str, flags: str, *rest: str) -> subprocess.CompletedProcess[str]:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    call = [compiler, "-std=c99", "-DOIC_HOSTED=0", *flags.split(), *rest]
    return subprocess.run(call, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("compiler", "flags"), SHOWN, ids=lambda text: text.replace(" ", ""))
def test_what_a_macro_shows_is_an_error(compiler: str, flags: str, small: Path) -> None:
    done = called(compiler, flags, "-fsyntax-only", str(small / "small.c"))
    if compiler == "gcc" and "387" in flags and "387" in done.stderr.partition("error")[0]:
        pytest.skip("this gcc is for no x86")
    assert done.returncode != 0 and SHOWN[compiler, flags] in done.stderr, done.stderr[:500]


@pytest.mark.parametrize("flags", ["-O2", "-fno-math-errno -fno-trapping-math", "-frounding-math", "-O0", "-Os"])
@pytest.mark.parametrize("compiler", ["gcc", "clang", "aarch64-linux-gnu-gcc"])
def test_other_options_are_not(compiler: str, flags: str, small: Path) -> None:
    done = called(compiler, flags, *WARNINGS, "-Werror", "-fsyntax-only", str(small / "small.c"))
    assert done.returncode == 0, done.stderr[:500]


ATTENTION = """
dynamic { q: f32[N, 2, 8] @max(N=16); k: f32[N, 2, 8]; v: f32[N, 2, 8]; }
volatile { y: f32[N, 2, 8]; }
block entry { op attention(q, k, v, causal=true) >> y; return; }
"""


@pytest.mark.parametrize("compiler", ["gcc", "clang", "arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb", "riscv64-linux-gnu-gcc"])
def test_attention_without_vectors_has_no_warnings(compiler: str, tmp_path: Path) -> None:
    """At the level of the generated Makefile, where compilers take most loops apart, and where they follow least of them."""
    oic.Synthesizer(oic.parse(ATTENTION, "attend"), target="freestanding").emit(tmp_path)
    name, *machine = compiler.split()
    for level in ("-O3", "-O1"):
        plain = ["-DOIC_PORTABLE", level, *MEANING, *WARNINGS, "-Werror", "-c", "-o", str(tmp_path / "attend.o")]
        done = called(name, " ".join(machine), *plain, str(tmp_path / "attend.c"))
        if "No such file" in done.stderr:
            pytest.skip(f"no C library for {name}")
        assert done.returncode == 0, done.stderr[:500]


WINDOW = """
dynamic { x: i8[3, 16]; }
constant { w: i8[24, 80]; b: i32[24]; }
persistent { n: i64; past(t): i8[16] @table @fixed(t=5) @ring(t); }
volatile { y: i32[24]; }
block entry {
  assign rows: i8[5, 16]; assign flat: i8[80];
  cache.write x >> past[3 * n..3 * n + 3];
  cache.increment n;
  cache.read past[-5..] >> rows;
  op reshape(rows, shape=[80]) >> flat;
  op linear(flat, w, b=b, acc=i32) >> y;
  return;
}
"""

RUNS = """
dynamic { a: u1[N, 3]; b: u1[N, 3]; x: bitset[N, 6] @max(N=70); c: f16[N, 3]; }
volatile { y: bool[N, 3]; z: bitset[2*N, 3]; d: f16[N, 3]; }
block entry { op ne(a, b) >> y; op reshape(x, shape=[-1, 3]) >> z; op silu(c) >> d; return; }
"""


def window(folder: Path) -> None:
    model = oic.Model(tensors={"w": np.ones((24, 80), np.int8), "b": np.zeros(24, np.int32)})
    oic.Synthesizer(oic.parse(WINDOW, "window"), model, target="freestanding").emit(folder)
    oic.Synthesizer(oic.parse(RUNS, "runs"), target="freestanding").emit(folder)


@pytest.mark.parametrize("compiler", ["gcc -march=native", "gcc", "clang", "arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb"])
def test_no_level_has_warnings(compiler: str, tmp_path: Path) -> None:
    """Of sizes that are known, whose loops compilers take apart, and of indices that are not: what a refusal left unset.

    Nor of runs of bytes, whose number a compiler could take to be below 0 behind a loop that did not go on.
    """
    window(tmp_path)
    name, *machine = compiler.split()
    for level in ("-O0", "-Og", "-Os", "-O1", "-O2", "-O3"):
        plain = [level, *MEANING, *ONE_COPY, *WARNINGS, "-Werror", "-c", "-o", str(tmp_path / "one.o")]
        plain = [f for f in plain if name != "clang" or f not in ONE_COPY]
        for graph in ("window", "runs"):
            done = called(name, " ".join(machine), *plain, str(tmp_path / f"{graph}.c"))
            assert done.returncode == 0, level + done.stderr[:800]


@pytest.mark.parametrize("machine", ["avr", "msp430"])
def test_an_int_of_16_bits_is_refused(machine: str, small: Path) -> None:
    done = called("clang", f"--target={machine} -ffreestanding", "-fsyntax-only", "-x", "c", str(small / "oic" / "machine.h"))
    if "unknown target" in done.stderr:
        pytest.skip(f"this clang is not for {machine}")
    assert done.returncode != 0 and "int has at least 32 bits" in done.stderr, done.stderr[:500]


def test_headers_for_users_have_none_of_the_warnings_of_firmware(tmp_path: Path) -> None:
    """Those with which projects compile their own sources: what these include is theirs."""
    window(tmp_path)
    statuses = re.findall(r"^    (OIC_\w+)", (runtime_dir() / "status.h").read_text(), re.MULTILINE)
    lines = [f"strcmp(oic_status_name({name}), \"{name}\") == 0 && " for name in statuses]
    main = f"int main(void) {{ return {''.join(lines)}oic_status_name((oic_status)99)[0] == 'n' ? 0 : 1; }}\n"
    (tmp_path / "user.c").write_text('#include <string.h>\n#include "window.h"\n#include "oic/journal.h"\n' + main)
    strict = ["-Wsign-conversion", "-Wcast-qual", "-Wcast-align", "-Wundef", "-Wswitch-default", "-Wswitch-enum", "-Wstrict-prototypes", "-Wvla"]
    for compiler, more in (("gcc", ["-Wcast-align=strict"]), ("clang", ["-Weverything", "-Wno-padded", "-Wno-declaration-after-statement"])):
        if shutil.which(compiler) is None:
            continue
        program = str(tmp_path / compiler)
        done = called(compiler, "", *WARNINGS, *strict, *more, "-Werror", "-o", program, str(tmp_path / "user.c"))
        assert done.returncode == 0, done.stderr[:800]
        assert subprocess.run([program], check=False).returncode == 0


def names_of_the_runtime() -> set[str]:
    """Of capital letters, without its prefix: those of kernels and of their sizes.  Others are macros that it defines itself."""
    texts = [path.read_text(encoding="utf-8") for path in runtime_dir().rglob("*.h")]
    words = {w for text in texts for w in re.findall(r"\b[A-Z][A-Z0-9_]*\b", re.sub(r'/\*.*?\*/|"[^"\n]*"|\'.\'', "", text, flags=re.DOTALL))}
    own = {w for text in texts for w in re.findall(r"#\s*define (\w+)", text)}
    system = r"OIC_|U?INT\d|\w+_MAX$|FLT_|DBL_|AT_HWCAP|CLOCK_|MADV_|MAP_|PROT_|O_RDONLY|(INFINITY|NAN|NULL|STDC|FP_CONTRACT|OFF|GCC)$"
    return {w for w in words if not re.match(system, w) and (w not in own or len(w) == 1)}


def test_a_macro_with_a_name_of_the_runtime_is_told(tmp_path: Path) -> None:
    """In the generated source; a program that includes its header may have such macros."""
    oic.Synthesizer(oic.parse(ATTENTION, "attend"), target="portable", numerics="separate").emit(tmp_path)
    names = names_of_the_runtime()
    assert {"K", "M", "N", "T"} <= names
    for name in sorted(names | {"NAME", "ARGS", "MATH", "LOAD", "STORE", "WIDEN", "BITS", "LOW", "HIGH"}):
        done = called("gcc", "", f"-D{name}=7", "-fsyntax-only", str(tmp_path / "attend.c"))
        assert re.search(rf"^[^\n]*error: #error [^\n]*\b{name}\b[^\n]*none may be a macro", done.stderr, re.MULTILINE), name
    (tmp_path / "user.c").write_text("".join(f"#define {n} 7\n" for n in names - {"N"}) + '#include "attend.h"\n')
    assert called("gcc", "", "-fsyntax-only", str(tmp_path / "user.c")).returncode == 0


@pytest.mark.parametrize("compiler", ["gcc -mfma", "clang -mfma", "arm-none-eabi-gcc -mcpu=cortex-m7 -mfloat-abi=hard"])
@pytest.mark.parametrize("standard", ["gnu17", "gnu99", "c11"])
def test_nothing_is_contracted_without_the_makefile(compiler: str, standard: str, tmp_path: Path) -> None:
    """A project that has the sources among its own gives no more options than these."""
    oic.Synthesizer(oic.parse(ATTENTION, "attend"), target="freestanding", numerics="separate").emit(tmp_path)
    name, *machine = compiler.split()
    done = called(name, " ".join(machine), f"-std={standard}", "-O2", "-S", "-o", "-", str(tmp_path / "attend.c"))
    if "No such file" in done.stderr:
        pytest.skip(f"no C library for {name}")
    assert done.returncode == 0, done.stderr[:500]
    assert re.search(r"mulss|vmul", done.stdout) and not re.search(r"vfn?m(add|sub|a|s)", done.stdout)


@pytest.mark.parametrize("standard", ["c99", "gnu17"])
@pytest.mark.parametrize("compiler", ["gcc -mfma", "aarch64-linux-gnu-gcc", "arm-none-eabi-gcc -mcpu=cortex-m7 -mfloat-abi=hard"])
def test_gcc_is_told_by_the_code_what_code_means(compiler: str, standard: str, tmp_path: Path) -> None:
    """Whatever is said before it: the assembly is that of the Makefile's options."""
    oic.Synthesizer(oic.parse(ATTENTION, "attend"), target="freestanding", numerics="separate").emit(tmp_path)
    name, *machine = compiler.split()
    texts = []
    for said in (MEANING, ("-ffp-contract=fast", "-fstrict-aliasing", "-fno-math-errno")):
        done = called(name, " ".join(machine), f"-std={standard}", "-O2", *said, "-S", "-o", "-", str(tmp_path / "attend.c"))
        if "No such file" in done.stderr:
            pytest.skip(f"no C library for {name}")
        assert done.returncode == 0, done.stderr[:500]
        texts.append(done.stdout)
    assert texts[0] == texts[1]


@pytest.mark.parametrize("target", ["aarch64-linux-gnu", "x86_64-linux-gnu"])
def test_clang_reorders_nothing(target: str, small: Path) -> None:
    """As many sums and products with these options as without; a difference may be a sum with the negated number."""
    if shutil.which("clang") is None:
        pytest.skip("clang is not installed")
    texts = []
    for flags in ("", "-fassociative-math -fno-signed-zeros -fno-trapping-math"):
        done = called("clang", flags, "-O2", f"--target={target}", "-S", "-o", "-", str(small / "small.c"))
        if "file not found" in done.stderr:
            pytest.skip(f"no C library for {target}")
        assert done.returncode == 0, done.stderr[:500]
        texts.append(re.findall(r"^\tv?f?(add|sub|mul|div)(?:[sp][sd])?\s", done.stdout, re.MULTILINE))
    first, second = ([op.replace("sub", "add") for op in text] for text in texts)
    assert first == second and first.count("mul") > 5


def chosen() -> list[Case]:
    """One case in f32 of every operator above."""
    found: dict[str, Case] = {}
    for case in suite():
        if case.op in OPERATORS.split() and case.row is dtypes.f32:
            found.setdefault(case.op, case)
    return list(found.values())


@pytest.mark.parametrize("compiler", HARMLESS)
def test_what_no_macro_shows_stays_within_the_bounds(compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    made = batches(chosen())
    graphs = [oic.parse(batch.text) for batch in made]
    programs = [oic.Synthesizer(graph, target="portable") for graph in graphs]
    build_together(programs, tmp_path, (), [compiler], HARMLESS[compiler].split())
    for batch, graph, program in zip(made, graphs, programs, strict=True):
        backends = {"graph": oic.Simulator(graph).make_executor(), "c": program.make_executor()}
        assert [str(fault) for fault in compare(batch, backends, 0)] == []
        for executor in backends.values():
            executor.close()


# ---------------------------------------------------------------- versions of the headers


def test_every_header_asks_for_its_version() -> None:
    """But bodies, which are included once for each set of element types, and what only tests include."""
    without = {"version.h", "slow_fma.h"}
    for path in runtime_dir().rglob("*.h"):
        text = path.read_text(encoding="utf-8")
        body = path.name.endswith(".inc.h") or path.parent.name == "kernels" or "\n#undef OIC_X\n" in text
        if path.name not in without and not body:
            assert re.search(r'\n#include "(\.\./)*version\.h"\n', text), path.name


def test_compilers_make_one_copy_if_they_can_be_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """gcc can; clang, an older gcc and a compiler that does not say what it is are asked for nothing."""
    monkeypatch.delenv("OIC_CFLAGS", raising=False)
    built = oic.Synthesizer(oic.parse(GRAPH), name="g", target="portable").emit(tmp_path / "g")
    makes = shutil.which("make") is not None
    for name, expected in (("gcc", (*STANDARD, *ONE_COPY, *MEANING)), ("clang", (*STANDARD, *MEANING))):
        if shutil.which(name) is None:
            continue
        assert optimized([name]) == expected
        if makes:
            call = ["make", "-n", f"CC={name}"]
            said = subprocess.run(call, cwd=built.folder, capture_output=True, text=True, check=True).stdout
            assert all((flag in said) == (flag in expected) for flag in ONE_COPY)
    for number, text in enumerate(("", "echo '#define __GNUC__ 8'")):
        other = tmp_path / f"cc{number}"
        other.write_text(f"#!/bin/sh\n{text}\n")
        other.chmod(0o755)
        assert optimized([str(other)]) == (*STANDARD, *MEANING)


def test_flags_of_the_user_come_before_what_code_means(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They choose a level, make another library, and no other bits."""
    made = oic.Synthesizer(oic.parse(LINEAR), IDENTITY, name="g")
    libraries, outputs = [], []
    x = np.random.default_rng(3).standard_normal(8).astype(np.float32)
    monkeypatch.setenv("OIC_CACHE", str(tmp_path / "cache"))
    for flags in ("-O0 -ffp-contract=fast", "-O1 '-DMODEL=a b'"):
        monkeypatch.setenv("OIC_CFLAGS", flags)
        found = optimized(find_compiler())
        assert found.index("-O3") < found.index(flags[:3]) < found.index("-ffp-contract=off")
        with made.build(tmp_path / flags[:3]).make_executor() as ex:
            outputs.append(ex.step(x=x)["y"].tobytes())
        libraries.append((tmp_path / flags[:3] / "libg.so").read_bytes())
    assert libraries[0] != libraries[1] and outputs[0] == outputs[1]


def test_a_debugger_finds_the_lines_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build for one folder does not come from the cache for another."""
    made = oic.Synthesizer(oic.parse(GRAPH), name="g")
    monkeypatch.setenv("OIC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OIC_CFLAGS", "-O0 -g")
    for folder in (tmp_path / "one", tmp_path / "two"):
        made.build(folder)
        library = (folder / "libg.so").read_bytes()
        assert str(folder).encode() in library and b"/new" not in library


@pytest.mark.parametrize(
    ("flags", "slug", "said"),
    [("-O1 '", "no-compiler", "No closing quotation"), ("-no-such-flag", "compile-failed", "no-such-flag"),
     ("-ffast-math", "compile-failed", "change results"), ("-E", "load-failed", "cannot be loaded"),
     ("-S", "load-failed", "cannot be loaded"), ("-c", "load-failed", "made no"),
     ("-DOIC_HOSTED=0", "load-failed", "undefined symbol: g_open_as"), ("-fwhole-program", "load-failed", "undefined symbol")],
)  # fmt: skip
def test_flags_that_make_no_library(
    flags: str, slug: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = oic.Synthesizer(oic.parse(GRAPH), name="g")
    monkeypatch.setenv("OIC_CFLAGS", flags)
    with pytest.raises(OicError, match=said) as caught:
        made.build(tmp_path / "g")
    found = caught.value.diagnostics[0]
    assert found.slug == slug and flags in f"{found.message}{found.hint}" and ".oic-" not in found.message
    assert list(tmp_path.iterdir()) == []


def test_headers_of_two_versions_do_not_mix(tmp_path: Path) -> None:
    """Generated headers, and headers of the runtime that a program includes itself."""
    for name in ("one", "two", "same"):
        oic.Synthesizer(oic.parse(GRAPH), name=name, target="portable").emit(tmp_path / name)
    version = tmp_path / "two" / "oic" / "version.h"
    text = version.read_text()
    number = text.partition("OIC_RUNTIME_VERSION 0x")[2][:8]
    assert len(number) == 8
    version.write_text(text.replace(number, "12345678"))

    def compiled(*headers: str) -> subprocess.CompletedProcess[str]:
        main = tmp_path / "main.c"
        main.write_text("".join(f'#include "{h}"\n' for h in headers) + "int main(void) { return 0; }\n")
        return subprocess.run(["cc", *STANDARD, "-fsyntax-only", str(main)], capture_output=True, text=True, check=False)

    assert compiled("one/one.h", "same/same.h", "one/oic/saved.h").returncode == 0
    for headers in (("one/one.h", "two/two.h"), ("two/two.h", "one/one.h"), ("one/one.h", "two/oic/crc32c.h")):
        done = compiled(*headers)
        assert done.returncode != 0 and "two versions of oic" in done.stderr, headers


# ---------------------------------------------------------------- classes of numerics

def linear(name: str, numerics: str | None, folder: Path) -> Path:
    """The source of a library with sums of products."""
    oic.Synthesizer(oic.parse(LINEAR, name), IDENTITY, name=name, target="portable", numerics=numerics).emit(folder)
    return folder / f"{name}.c"


def test_fused_code_is_refused_where_the_machine_has_no_such_instruction(tmp_path: Path) -> None:
    if "__x86_64__" not in macros(tuple(find_compiler())) or "__FMA__" in macros(tuple(find_compiler())):
        pytest.skip("the machine of the compiler has it")
    source = linear("one", "fused", tmp_path)
    call = [*find_compiler(), *STANDARD, "-fsyntax-only", str(source)]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "--numerics separate" in done.stderr
    assert subprocess.run([*call, "-mfma"], check=False).returncode == 0
    with pytest.raises(oic.OicError, match="--numerics separate"):
        oic.Synthesizer(oic.parse(LINEAR), IDENTITY, target="portable", numerics="fused").build(tmp_path / "whole")


def test_classes_do_not_mix_in_one_translation_unit(tmp_path: Path) -> None:
    linear("one", "separate", tmp_path)
    linear("two", "fused", tmp_path)
    main = tmp_path / "main.c"
    main.write_text('#include "one.c"\n#include "two.c"\n')
    call = [*find_compiler(), *STANDARD, "-fsyntax-only", str(main)]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "two classes of numerics" in done.stderr


def test_the_class_is_that_of_the_machine_unless_it_is_chosen(tmp_path: Path) -> None:
    wanted = TARGETS["portable"].seen(macros(tuple(find_compiler()))).numerics
    for numerics, expected in ((None, wanted), ("separate", "separate"), ("fused", "fused")):
        source = linear("one", numerics, tmp_path / str(numerics))
        assert f'_NUMERICS "{expected}"' in source.with_suffix(".h").read_text()
        assert f"#define OIC_FUSED {int(expected == 'fused')} " in source.read_text()
    with pytest.raises(oic.OicError) as refused:
        linear("one", "fuse", tmp_path)
    assert [d.slug for d in refused.value.diagnostics] == ["unknown-numerics"]


@pytest.mark.parametrize("knows", ("-march=native", "-mcpu=native", ""))
def test_a_compiler_is_asked_for_this_machine_as_it_knows_it(
    knows: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """clang of Apple before 15 has `-mcpu=native`, gcc of RISC-V before 14 neither."""
    compiler = tmp_path / "cc"
    refused = "|".join({"-march=native", "-mcpu=native"} - {knows})
    compiler.write_text(f"""#!/bin/sh
for word in "$@"; do case "$word" in {refused}) echo "error: no $word" >&2; exit 1;; esac; done
set -- $(echo " $* " | sed 's/ -mcpu=native / /')
exec {" ".join(find_compiler())} "$@"
""")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    made = oic.Synthesizer(oic.parse(GRAPH), name="g")
    assert made.spec.target.flags == ((knows,) if knows else ())
    with made.build(tmp_path / "g").make_executor() as executor:
        assert executor.step(x=np.zeros(2, np.float32))["y"].tolist() == [0, 0]
    assert (" -m" in (tmp_path / "g" / "Makefile").read_text().partition("CFLAGS ?= -O3")[2].partition("\n")[0]) == bool(knows)


def test_code_of_another_machine_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it cannot be loaded: Windows, which has no `mmap` to open a session with, and another processor."""
    for compiler in ("x86_64-w64-mingw32-gcc", "aarch64-linux-gnu-gcc"):
        if shutil.which(compiler) is None:
            pytest.skip(f"{compiler} is not installed")
        monkeypatch.setenv("CC", compiler)
        with pytest.raises(OicError) as caught:
            oic.Synthesizer(oic.parse(GRAPH), name="g", threads=2).build(tmp_path / "g")
        found = caught.value.diagnostics[0]
        machine = compiler.removesuffix("-gcc")
        assert found.slug == "load-failed" and f"for {machine} compiled it" in str(found.hint), found


def test_tables_without_a_bound_are_for_large_address_spaces(tmp_path: Path) -> None:
    """C that was written for any machine says so on one of 32 bits."""
    compiler = "arm-linux-gnueabihf-gcc"
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    graph = oic.parse("""
    dynamic { x: f32[1, 2]; }
    persistent { n: i32; K(t): f32[2] @table; }
    block entry { cache.write x >> K[n..n + 1]; cache.increment n; return; }
    """, "log")  # fmt: skip
    for capacity, said in (({}, "nothing bounds some tables"), ({"K.t": 64}, "")):
        oic.Synthesizer(graph, target="portable", capacity=capacity).emit(tmp_path)
        call = [compiler, *STANDARD, "-fsyntax-only", str(tmp_path / "log.c")]
        done = subprocess.run(call, capture_output=True, text=True, check=False)
        assert (done.returncode == 0, said in done.stderr) == (not said, True), done.stderr


def test_a_multiply_add_of_our_own_is_one_for_both_types(tmp_path: Path) -> None:
    call = [*find_compiler(), *STANDARD, "-fsyntax-only", "-DOIC_FMA_F32=mine", str(linear("one", "fused", tmp_path))]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "both or not at all" in done.stderr


# Machines by the compiler for them: which types of a fused product it refuses.
BARE = {
    "arm-none-eabi-gcc -mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -mfloat-abi=hard": ("f64",),
    "arm-none-eabi-gcc -mcpu=cortex-m7 -mfpu=fpv5-d16 -mfloat-abi=hard": (),
    "arm-none-eabi-gcc -mcpu=cortex-m0": ("f32", "f64"),
    "riscv64-linux-gnu-gcc": (),
}


@pytest.mark.parametrize("command", BARE)
def test_bare_machines_take_what_they_can_compute(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Separate products of both types; fused ones where there is an instruction, also without optimisation."""
    compiler, *flags = command.split()
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    monkeypatch.setenv("CC", command)
    for dtype, number in (("f32", np.float32), ("f64", np.float64)):
        graph = oic.parse(LINEAR.replace("f32", dtype), "bare")
        model = oic.Model(tensors={"w": np.eye(8, dtype=number)})
        chosen = oic.Synthesizer(graph, model, target="freestanding").spec.target.numerics
        assert chosen == ("fused" if BARE[command] == () else "separate")
        for numerics in ("fused", "separate"):
            folder = tmp_path / dtype / numerics
            oic.Synthesizer(graph, model, target="freestanding", numerics=numerics).emit(folder)
            call = [compiler, *flags, *STANDARD, "-O0", *WARNINGS, "-Werror", "-DOIC_HOSTED=0", "-I", str(folder), "-c"]
            made = subprocess.run(
                [*call, "-o", str(tmp_path / "bare.o"), str(folder / "bare.c")], capture_output=True, text=True, check=False
            )
            refused = numerics == "fused" and dtype in BARE[command]
            assert (made.returncode != 0) == refused, made.stderr[:2000]
            assert not refused or "--numerics separate" in made.stderr
