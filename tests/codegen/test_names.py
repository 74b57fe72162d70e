"""Any legal name gives C that compiles, beside every standard header and from C++."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

import oic
from oic.codegen import names
from oic.codegen import template_data as view
from oic.codegen.c_module import Unit
from oic.diagnostics import OicError
from oic.driver import Program, Settings, compile_graph
from oic.library.emit import render
from oic.resources import runtime_dir, templates_dir
from oic.toolchain.target import STANDARD, WARNINGS, target

_HEADERS = """
    assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdarg stdbool stddef
    stdint stdio stdlib string time wchar wctype
"""
HEADERS = _HEADERS.split()
NOT_IN_CPP = ("complex",)  # C++ has its own, and glibc's needs _Complex

# Macros of old headers (DOS, Windows, Arduino), which a program may have; `interface` and others are words there.
_LEGACY = "near far huge interrupt cdecl pascal small hyper interface IN OUT TRUE FALSE CONST VOID HIGH LOW PI"

# Keywords of C and C++, functions, types and macros of libraries, names of generated code and of the runtime.
_NASTY = """
    auto double register restrict inline typedef volatile switch while int class new delete this template virtual
    namespace operator private public typename using and or not xor compl bitand export import mutable friend
    asm typeof alignas alignof static_assert thread_local nullptr constexpr noexcept concept requires
    exp log sin cos tan pow sqrt fabs floor ceil round gamma lgamma y0 y1 j0 jn index rindex read write open close
    abs labs div time clock signal raise select remove rename printf malloc free exit abort system memcpy memset
    memcmp strlen isnan isinf signbit frexp hypot erf tanh log1pf expf sqrtf fmaf main environ assert
    I near far complex imaginary huge interrupt small hyper interface INT_MAX UINT8_MAX SIZE_MAX TRUE FALSE EOF NULL
    NAN INFINITY HUGE_VAL M_PI M_E M_x E EDOM EINTR SIGINT SIG_DFL LC_ALL FE_INVALID FLT_MAX DBL_DIG BUFSIZ PRId32
    SCNx8 CLOCKS_PER_SEC RAND_MAX MB_CUR_MAX errno stdin stdout stderr linux unix i386 noreturn IN OUT PI CONST VOID
    int8_t uint32_t int64_t size_t ptrdiff_t intptr_t uintmax_t wchar_t time_t va_list FILE
    s in out state why shape arena weights weights_bytes status path bytes capacity at to from m context args
    i j k n session memory refusal pool none padding inputs outputs attach init step reset save load entry
    saved_form saved_parts state_is_as_planned STATE_BYTES ALIGN H step_inputs step_outputs init_inputs
    state_entry t step_entry weights_blob seen_k
    oic oic_x OIC oic_state oic_status oic_pool oic_dtype OIC_OK oic_f16 oic_relu_f32 oic_conv_f32 OIC_TRY
    _ __ _x x_ __LINE__ __FILE__ _Bool _Complex __cplusplus __func__ defined
"""

# More that only a graph could be called.
_GRAPHS = "M m c all test stack shm sem mtx atomic pthread aio size int8 quick INT FE SIG num pool status saved"

HERE = "{ dynamic { x: f32[2]; } volatile { y: f32[2]; } block entry { op add(x, x) >> y; return; } }"


def legal(name: str) -> bool:
    """The language takes this as the name of a variable."""
    try:
        oic.parse(f"volatile {{ {name}: f32; }} block entry {{ return; }}")
    except OicError:
        return False
    return True


WORDS = [name for name in dict.fromkeys(_NASTY.split()) if legal(name)]


def role(kind: str) -> str:
    """A graph in which every nasty name has one role."""
    free = [n for n in WORDS if n not in ("x", "y", "entry")]
    declared = {"dynamic": "x: f32[2];", "volatile": "y: f32[2];", "persistent": "", "constant": ""}
    body, blocks = ["op relu(x) >> y;"], ""
    match kind:
        case "inputs":
            declared["dynamic"] += "".join(f"{n}: f32[2];" for n in free)
            body += [f"op add(y, {n}) >> y;" for n in free]
        case "outputs":
            declared["volatile"] += "".join(f"{n}: f32[2];" for n in free)
            body += [f"op mul(x, x) >> {n};" for n in free]
        case "grown":  # outputs with shapes of their own
            declared["dynamic"] += "v: f32[n_] @max(n_=4);"
            declared["volatile"] += "".join(f"{n}: f32[?];" for n in free)
            body += [f"op mul(v, v) >> {n};" for n in free]
        case "temporaries":
            body += [f"assign {n}: f32[2]; op softmax(y, axis=0) >> {n}; op add(y, {n}) >> y;" for n in free]
        case "constants":
            declared["constant"] += "".join(f"{n}: f32[2];" for n in free)
            body += [f"op add(y, {n}) >> y;" for n in free]
        case "states":
            declared["persistent"] += "".join(f"{n}: f32[2]; " for n in free)
            body += [f"cache.write y >> {n};" for n in free]
        case "counters":
            declared["persistent"] += "".join(f"{n}: i32; " for n in free)
            body += [f"cache.increment {n};" for n in free]
        case "tables":  # growing indices: their counts are members too
            declared["persistent"] += "".join(f"K{i}({n}): f32[2] @table; " for i, n in enumerate(free))
            body += [f"cache.write y >> K{i}[0];" for i in range(len(free))]
        case "extents":
            declared["dynamic"] += "".join(f"v{i}: f32[{n}] @max({n}=4);" for i, n in enumerate(free))
            declared["volatile"] += "".join(f"w{i}: f32[?];" for i in range(len(free)))
            body += [f"op add(v{i}, v{i}) >> w{i};" for i in range(len(free))]
        case "loops":
            declared["persistent"] += "T(u): f32[2] @table @fixed(u=3);"
            body += [f"loop l{i} ({n} in 0..2) {{ cache.write y >> T[{n}]; }}" for i, n in enumerate(free)]
        case "blocks":
            blocks = "".join(f"block {n} @entry {{ op add(x, x) >> y; return; }}" for n in free)
        case "consumers":
            declared["volatile"] += "".join(f"z{i}: f32[2];" for i in range(len(free)))
            given = ", ".join(f"z{i}" for i in range(len(free)))
            body += [f"op add(x, x) >> z{i};" for i in range(len(free))] + [f"yield {given};", f"await {given};"]
            blocks = "".join(
                f"block {n} {{ await z{i}; op softmax(z{i}, axis=0) >> z{i}; yield z{i}; }}"
                for i, n in enumerate(free)
            )
    groups = " ".join(f"{group} {{ {text} }}" for group, text in declared.items() if text)
    return f"graph Role_{kind} {{ {groups} block entry {{ {chr(10).join(body)}\nreturn; }}\n{blocks} }}"


_ROLES = "inputs outputs grown temporaries constants states counters tables extents loops blocks consumers"
ROLES = _ROLES.split()


@dataclass(frozen=True)
class Written:
    """Header and source of one library; runtime headers are beside them, shared by all."""

    name: str
    header: Path
    source: Path


def written(program: Program, folder: Path, name: str | None = None) -> Written:
    unit = Unit(program.planned, name=name)
    for file, text in render(view.TemplateData(unit, target("portable"), weights_array=False)).items():
        if file.endswith((".c", ".h")):
            (folder / file).write_text(text, encoding="utf-8")
    return Written(unit.name, folder / f"{unit.name}.h", folder / f"{unit.name}.c")


def apart(made: list[Written]) -> list[list[Written]]:
    """What one translation unit each can include: macros of `net` and `Net` are the same."""
    units: list[list[Written]] = [[], []]
    for one in made:
        units[one.name.lower() in {w.name.lower() for w in units[0]}].append(one)
    return units


def user(made: list[Written], path: Path, *, cpp: bool) -> Path:
    """A program that includes every standard header, has the macros of old ones, and then these headers."""
    headers = [h for h in HEADERS if not (cpp and h in NOT_IN_CPP)]
    lines = [f"#include <{h}.h>" for h in headers]
    lines += [f"#ifndef {n}\n#define {n} 1 +\n#endif" for n in _LEGACY.split()]
    for one in made:
        lines += [f'#include "{one.header.name}"', f"int check_{one.name}(void);"]
        lines += [f"int check_{one.name}(void) {{ return sizeof({one.name}_session) == 0; }}"]
    path.write_text("\n".join(lines) + "\n")
    return path


def compiled(call: list[str], sources: list[Path]) -> None:
    done = subprocess.run(
        [*call, "-fsyntax-only", *map(str, sources)], capture_output=True, text=True, errors="replace", check=False
    )
    assert done.returncode == 0, done.stderr[:5000]


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Written]]:
    """Every name in every role, and as the name of a graph."""
    folder = tmp_path_factory.mktemp("names")
    (folder / "oic").mkdir()
    for path in runtime_dir().rglob("*.h"):  # in one folder, as beside a library
        text = re.sub(r'(#include ")(?:[^"/]+/)+', r"\1", path.read_text(encoding="utf-8"))
        (folder / "oic" / path.name).write_text(text, encoding="utf-8")
    made = [written(compiled_graph(role(kind)), folder) for kind in ROLES]
    small = compiled_graph(f"graph g {HERE}")
    libraries = {names.library_name(names.name_in_private(n)): None for n in [*WORDS, *_GRAPHS.split()]}
    made += [written(small, folder, name) for name in libraries]
    assert [one.name for one in made[len(ROLES) :]] == list(libraries)
    return folder, made


def compiled_graph(text: str) -> Program:
    return compile_graph(oic.parse(text), None, Settings())


def test_there_are_enough_names() -> None:
    assert len(WORDS) > 150 and {"I", "log", "inputs", "complex", "oic", "EOF", "class"} <= set(WORDS)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_generated_c_compiles(compiler: str, everything: tuple[Path, list[Written]]) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    folder, made = everything
    sources = []
    for number, unit in enumerate(apart(made)):
        sources.append(folder / f"all_{compiler}_{number}.c")
        sources[-1].write_text("".join(f'#include "{one.source.name}"\n' for one in unit))
    compiled([compiler, *STANDARD, *WARNINGS, "-Werror"], sources)


@pytest.mark.parametrize("compiler", ["gcc", "clang", "g++", "clang++"])
def test_the_header_compiles_after_every_standard_header(
    compiler: str, everything: tuple[Path, list[Written]]
) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    folder, made = everything
    cpp = compiler.endswith("++")
    sources = [
        user(unit, folder / f"user_{compiler}_{number}.{'cpp' if cpp else 'c'}", cpp=cpp)
        for number, unit in enumerate(apart(made))
    ]
    compiled([compiler, "-std=c++17" if cpp else "-std=c99", *WARNINGS, "-Werror"], sources)


def compilers() -> list[str]:
    known = ("gcc", "clang", "aarch64-linux-gnu-gcc", "s390x-linux-gnu-gcc", "arm-none-eabi-gcc")
    return [c for c in known if shutil.which(c)]


def preprocessed(compiler: str, *flags: str) -> str:
    text = "".join(f"#include <{h}.h>\n" for h in HEADERS)
    done = subprocess.run(
        [compiler, *flags, "-E", "-xc", "-"], input=text, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.parametrize("compiler", compilers())
def test_no_identifier_is_a_macro_of_a_standard_header(compiler: str) -> None:
    for flags in ((), ("-std=c99",), ("-D_GNU_SOURCE",)):
        found = re.findall(r"^#define ([A-Za-z]\w*) ", preprocessed(compiler, *flags, "-dM"), re.MULTILINE)
        assert len(found) > 100
        assert [m for m in found if names.identifier(m) == m] == []


@pytest.mark.parametrize("compiler", compilers())
def test_no_graph_and_block_make_a_name_of_a_library(compiler: str) -> None:
    """`size` and `t`, `INT` and `MAX`, `at` and `quick_exit`."""
    posix = "-D_POSIX_C_SOURCE=200809L"
    text = re.sub(r"__attribute__ *\(\(.*?\)\)", "", preprocessed(compiler, posix))
    word = r"([A-Za-z][A-Za-z0-9]*_\w*[A-Za-z0-9])"
    found = [w for words in re.findall(rf"\b{word} *\(|typedef [^;{{}}]*\b{word};", text) for w in words if w]
    known = {*found, *re.findall(rf"#define {word}", preprocessed(compiler, posix, "-dM"))}
    assert {"INT_MAX", "size_t", "strtok_r"} <= known
    missed = []
    for name in sorted(known):
        for at in (m.start() for m in re.finditer("_", name)):
            if name in names.LibraryNames(name[:at], ["entry", name[at + 1 :]]).scope:
                missed.append(name)
    assert missed == []


@pytest.mark.parametrize("compiler", compilers())
def test_headers_that_libraries_include_are_known(compiler: str) -> None:
    text = "".join(f"#include <{h}.h>\n" for h in HEADERS)
    done = subprocess.run([compiler, "-M", "-xc", "-"], input=text, capture_output=True, text=True, check=True)
    found = {m[1] for m in re.finditer(r"/(?:include|include-fixed|newlib)/([a-z0-9_]+)\.h\b", done.stdout)}
    assert found >= {"math", "stdio"}
    assert [name for name in sorted(found) if name[0] != "_" and not names.is_header(name.replace("-", "_"))] == []


@pytest.mark.parametrize("name", ["string", "math", "stdint", "complex", "signal", "String", "immintrin"])
def test_a_graph_named_like_a_header_is_refused(name: str, tmp_path: Path) -> None:
    graph = oic.parse(f"graph {name} {HERE}")
    with pytest.raises(OicError, match="library-name") as found:
        oic.Synthesizer(graph).emit(tmp_path)
    assert found.value.diagnostics[0].hint == f"give it a name of its own: --name {name}_net"
    assert not list(tmp_path.iterdir())
    assert oic.Synthesizer(graph, name=f"{name}_net").emit(tmp_path).name == f"{name}_net"


def test_a_name_is_an_identifier(tmp_path: Path) -> None:
    graph = oic.parse(f"graph g {HERE}")
    for name, own in {"": "graph", "a b": "a_b", "a-b": "a_b", "../x": "x", "1x": "graph1x", "ä": "graph"}.items():
        with pytest.raises(OicError, match="library-name") as found:
            oic.Synthesizer(graph, name=name).emit(tmp_path / "out")
        assert found.value.diagnostics[0].hint == f"give it a name of its own: --name {own}"
        assert oic.Synthesizer(graph, name=own).emit(tmp_path / own).name == own


@pytest.mark.parametrize("name", ["string", "my-model", "2 ä"])
def test_a_graph_without_a_name_for_c_runs_without_one(name: str, tmp_path: Path) -> None:
    """Its file may be called as it likes; only what is built for others needs a name, whatever ran before."""
    graph = oic.parse(f"{HERE.strip()[1:-1]} persistent {{ n: i32; }}", name=f"{name}.oi")
    compiled = oic.Synthesizer(graph)
    with oic.Simulator(graph).make_executor() as simulated, compiled.make_executor() as executor:
        assert executor.step(x=[1.0, 2.0])["y"].tolist() == [2.0, 4.0]
        executor.load(simulated.save())
    with pytest.raises(OicError, match="library-name"):
        compiled.build(tmp_path)


def test_two_builds_of_one_graph_link_into_one_program(tmp_path: Path) -> None:
    """Each with sizes of its own, and both in one translation unit."""
    text = "graph net { sizes { D = 2; } dynamic { x: f32[D]; } volatile { y: f32[D]; } persistent { n: f32[D]; }"
    graph = oic.parse(text + " block entry { cache.read n >> y; op add(x, y) >> y; cache.write y >> n; return; } }")
    sources = []
    for name, size in (("small", 2), ("large", 5)):
        files = oic.Synthesizer(graph, sizes={"D": size}, name=name, target="portable").emit(tmp_path / name)
        assert files.name == name and (tmp_path / name / f"{name}.h").exists()
        sources += files.sources
    program = tmp_path / "main.c"
    program.write_text(
        """
        #include <stdio.h>
        #include "small/small.h"
        #include "large/large.h"
        int main(void)
        {
            small_session a;
            large_session b;
            float x[5] = {1, 2, 3, 4, 5}, y[5] = {0}, z[5] = {0};
            small_inputs small_in = {x};
            small_outputs small_out = {y};
            large_inputs large_in = {x};
            large_outputs large_out = {z};
            if (small_open(&a, NULL) != OIC_OK || large_open(&b, NULL) != OIC_OK) { return 1; }
            for (int i = 0; i < 2; ++i) {
                if (small_step(&a, &small_in, &small_out) || large_step(&b, &large_in, &large_out)) { return 2; }
            }
            small_close(&a);
            large_close(&b);
            printf("%g %g %g %g", (double)y[1], (double)y[2], (double)z[4], (double)LARGE_STATE_BYTES);
            return 0;
        }
        """
    )
    done = subprocess.run(
        ["cc", *STANDARD, *WARNINGS, "-Werror", "-o", str(tmp_path / "main"), str(program), *map(str, sources), "-lm"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    ran = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True)
    assert ran.stdout == "4 0 10 24"


def test_every_name_that_templates_make_is_reserved() -> None:
    """`{{ m.name }}_x` is an ending that entries cannot have, or a structure's own name."""
    for template in templates_dir().glob("*.j2"):
        text = template.read_text(encoding="utf-8")
        for ending in re.findall(r"\{\{ m\.name \}\}_(\w+)", text):
            assert ending in (*names.API, *names.PRIVATE), template.name
        for ending in re.findall(r"\{\{ m\.macro \}\}_(\w+)", text):
            assert ending in names.MACROS, template.name
