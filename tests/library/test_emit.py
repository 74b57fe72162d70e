"""The files: compiled without a warning, the same from run to run, and nothing in them but C."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import oic
from codegen import programs
from oic.codegen.template_data import TemplateData
from oic.diagnostics import OicError
from oic.kernels.kernel import Instance
from oic.kernels.targets import TARGETS
from oic.library import build as builder
from oic.library.emit import LibrarySpec, emit, render, runtime_headers
from oic.resources import runtime_dir, templates_dir
from oic.session.synthesizer import status_names
from oic.toolchain.target import MEANING, STANDARD, WARNINGS, target

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
COMPILERS = [c for c in ("gcc", "clang") if shutil.which(c)]


@pytest.mark.parametrize("compiler", (*COMPILERS, "x86_64-w64-mingw32-gcc"))
@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_no_warnings(name: str, compiler: str, tmp_path: Path) -> None:
    """Of machines of all kinds of `long`, too: that of Windows has 32 bits."""
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    files = programs.files(name, tmp_path)
    for extra in (("-DOIC_HOSTED=0",), ()):
        call = [compiler, *STANDARD, *WARNINGS, "-Werror", *extra, "-I", str(tmp_path), "-c"]
        done = subprocess.run([*call, "-o", str(tmp_path / "x.o"), *map(str, files.sources)],
                              capture_output=True, text=True, check=False)  # fmt: skip
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("compiler", COMPILERS)
def test_system_headers_may_make_a_macro_of_bool(compiler: str, tmp_path: Path) -> None:
    """arm_mve.h and wasm_simd128.h include <stdbool.h>; a board's may, any of them."""
    text = "dynamic { b: bool[5]; } volatile { c: bool[10]; } block entry { op repeat(b, axis=0, times=2) >> c; return; }"
    files = oic.Synthesizer(oic.parse(f"graph g {{ {text} }}"), target="portable").emit(tmp_path)
    for name in ("string.h", "math.h"):
        (tmp_path / "board").mkdir(exist_ok=True)
        (tmp_path / "board" / name).write_text(f"#include <stdbool.h>\n#include_next <{name}>\n")
    call = [compiler, *STANDARD, "-fsyntax-only", "-isystem", str(tmp_path / "board"), "-I", str(tmp_path)]
    done = subprocess.run([*call, *map(str, files.sources)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]


@pytest.mark.parametrize("name", ["table", "names"])
@pytest.mark.skipif(not shutil.which("g++"), reason="no C++ compiler")
def test_the_header_is_also_cpp(name: str, tmp_path: Path) -> None:
    files = programs.files(name, tmp_path)
    source = tmp_path / "user.cc"
    source.write_text(f'#include "{files.name}.h"\nint main() {{ return sizeof({files.name}_session) == 0; }}\n')
    subprocess.run(["g++", "-std=c++11", "-Wall", "-Werror", "-I", str(tmp_path), "-c", str(source),
                    "-o", str(tmp_path / "x.o")], check=True)  # fmt: skip


@pytest.mark.skipif(not shutil.which("g++"), reason="no C++ compiler")
def test_headers_that_programs_include_beside_it_are_also_cpp(tmp_path: Path) -> None:
    """The journal, and the pool of threads."""
    text = """
    dynamic { x: f32[512]; } constant { w: f32[512, 512]; } volatile { y: f32[512]; } persistent { n: i32; }
    block entry { op linear(x, w) >> y; cache.increment n; return; }
    """
    oic.Synthesizer(oic.parse(text, name="both"), target="portable", threads=2).emit(tmp_path)
    source = tmp_path / "user.cc"
    source.write_text("".join(f'#include "{name}"\n' for name in ("oic/pool.h", "oic/journal.h", "both.h")))
    call = ["g++", "-std=c++11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", str(source)]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("weights", ["blob", "array"])
@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_the_same_bytes_every_time(name: str, weights: str, tmp_path: Path) -> None:
    first = programs.files(name, tmp_path / "a", weights_as=weights)
    second = programs.files(name, tmp_path / "b", weights_as=weights)
    names = [str(p.relative_to(tmp_path / "a")) for p in first.paths]
    assert names == [str(p.relative_to(tmp_path / "b")) for p in second.paths]
    for a, b in zip(first.paths, second.paths, strict=True):
        assert a.read_bytes() == b.read_bytes()
        assert str(tmp_path).encode() not in a.read_bytes()


@pytest.mark.parametrize("name, for_the_program", [("counter", {"journal.h"}), ("elementwise", set())])
def test_only_headers_that_are_used(name: str, for_the_program: set[str], tmp_path: Path) -> None:
    """The journal of saved states is none that the code includes, and of use where there is a state."""
    files = programs.files(name, tmp_path)
    copied = {p.name for p in files.paths if p.parent.name == "oic"}
    included: set[str] = set()
    for path in files.paths:
        if path.suffix in (".c", ".h"):
            included |= {Path(n).name for n in re.findall(r'#include "([^"]+)"', path.read_text())}
    assert copied == included - {f"{name}.h"} | for_the_program


def test_no_globals_no_allocation(tmp_path: Path) -> None:
    """Only the API is visible, and the library asks the C library for nothing but memory copies."""
    session = programs.executor("table", tmp_path)
    shown = subprocess.run(["nm", "-D", "--defined-only", str(session.library.path)],
                           capture_output=True, text=True, check=True).stdout  # fmt: skip
    names = {line.split()[-1] for line in shown.splitlines()}
    wanted = ("step", "forget", "init_as", "reset", "save", "load", "truncate", "open_as", "close")
    assert names == {f"table_{n}" for n in wanted}
    asked = subprocess.run(["nm", "-D", "--undefined-only", str(session.library.path)],
                           capture_output=True, text=True, check=True).stdout  # fmt: skip
    assert not re.search(r"\b(malloc|calloc|realloc|free|printf|exit|abort)\b", asked)
    session.close()


def test_source_lines_are_comments(tmp_path: Path) -> None:
    files = programs.files("table", tmp_path)
    text = files.sources[0].read_text()
    assert "/* table.oi:9  cache.write h >> K[l, pos..pos+N]; */" in text
    assert text.count("/* table.oi:14 ") == 1
    assert "for (int64_t l = 0; l < 3; ++l) {" in text
    assert "memcpy((float *)state->K[l] + pos * 2, h, (size_t)(N * 2) * sizeof(float));" in text


@pytest.mark.skipif(not shutil.which("make"), reason="no make")
def test_makefile(tmp_path: Path) -> None:
    programs.files("table", tmp_path)
    subprocess.run(["make", "-C", str(tmp_path), "all", "stack"], check=True, capture_output=True)
    assert (tmp_path / "libtable.a").exists() and (tmp_path / "libtable.so").exists()


@pytest.mark.skipif(not shutil.which("cmake"), reason="no cmake")
def test_cmake(tmp_path: Path) -> None:
    programs.files("names", tmp_path, weights_as="array")
    subprocess.run(["cmake", "-S", str(tmp_path), "-B", str(tmp_path / "b")], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", str(tmp_path / "b")], check=True, capture_output=True)


@pytest.mark.skipif(not shutil.which("cmake"), reason="no cmake")
@pytest.mark.parametrize(("name", "level"), [("", "-O3"), ("MinSizeRel", "-Os"), ("Debug", "")])
@pytest.mark.parametrize("made_for", ["portable", "freestanding"])
def test_cmake_takes_the_level_of_the_build_type(name: str, level: str, made_for: str, tmp_path: Path) -> None:
    """And neither GNU's C nor, where there are no shared libraries, code that can be moved."""
    emit(LibrarySpec(programs.planned("counter"), target(made_for)), tmp_path)
    call = ["cmake", "-S", str(tmp_path), "-B", str(tmp_path / "b"), "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"]
    subprocess.run([*call, *([f"-DCMAKE_BUILD_TYPE={name}"] if name else [])], check=True, capture_output=True)
    (command,) = json.loads((tmp_path / "b" / "compile_commands.json").read_text(encoding="utf-8"))
    flags = command["command"].split()
    assert [f for f in flags if f.startswith("-O")] == ([level] if level else [])
    assert [f for f in flags if f.startswith("-std")] == ["-std=c99"] and set(MEANING) <= set(flags)
    assert ("-fPIC" in flags) == (made_for == "portable")


def test_make_files_have_the_flags_of_the_build(tmp_path: Path) -> None:
    files = programs.files("counter", tmp_path)
    for name in ("Makefile", "CMakeLists.txt"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert " ".join((*MEANING, *WARNINGS)) in text and files.name in text


def test_weights_as_an_array(tmp_path: Path) -> None:
    import numpy as np

    blob, array = programs.executor("elementwise", tmp_path / "a"), None
    array = programs.executor("elementwise", tmp_path / "b", weights_as="array")
    assert array.library.files.weights is None
    inputs = programs.random_inputs(programs.planned("elementwise"), "entry", np.random.default_rng(0), 0)
    a, b = blob.step(**inputs), array.step(**inputs)
    assert all(np.array_equal(a[k], b[k]) for k in a)
    blob.close()
    array.close()


def test_templates_only_arrange() -> None:
    """`for`, `if` and plain names (STYLE, section 5)."""
    for template in sorted(templates_dir().glob("*.j2")):
        text = re.sub(r"\{#.*?#\}", "", template.read_text(encoding="utf-8"), flags=re.DOTALL)
        for inside in re.findall(r"\{\{(.*?)\}\}", text):
            assert re.fullmatch(r'\s*([a-z_]+(\.[a-z_]+)*|"[{}]+")\s*-?', inside), f"{template.name}: {inside}"
        for inside in re.findall(r"\{%(.*?)%\}", text):
            allowed = r"\s*(for \w+(, \w+)* in [\w.]+|if [\w.]+|elif [\w.]+|else|endif|endfor)\s*"
            assert re.fullmatch(allowed, inside), f"{template.name}: {inside}"


def test_an_undefined_name_is_an_error() -> None:
    from jinja2 import UndefinedError

    from oic.library.emit import _environment

    with pytest.raises(UndefinedError):
        _environment().from_string("{{ nothing }}").render()


def test_no_template_of_code_is_given_a_float() -> None:
    """What writes C has all digits of a constant; lengths of the report have one decimal."""
    from oic.library.emit import _environment

    with pytest.raises(AssertionError, match=r"0\.12345"):
        _environment().from_string("{{ x }}").render(x=0.12345)


def test_freestanding_code_has_no_system(tmp_path: Path) -> None:
    module = programs.planned("table")
    files = emit(LibrarySpec(module, target("freestanding")), tmp_path)
    text = "".join(p.read_text() for p in files.paths if p.suffix in (".c", ".h"))
    assert "table_open" not in text and "mman.h" not in text
    with pytest.raises(OicError, match="target-not-here"):
        builder.build(LibrarySpec(module, target("freestanding")), tmp_path)


def test_unknown_target_names_the_nearest() -> None:
    with pytest.raises(OicError, match="did you mean 'host'") as refused:
        target("hots")
    assert refused.value.diagnostics[0].slug == "unknown-target"
    assert set(TARGETS) == {"host", "portable", "freestanding"}


def test_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, machine = programs.planned("counter"), target("portable")
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(OicError, match="no-such-compiler") as refused:
        builder.build(LibrarySpec(module, machine), tmp_path)
    assert refused.value.diagnostics[0].slug == "no-compiler"
    monkeypatch.setenv("CC", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(OicError, match="cc, gcc, clang"):
        builder.build(LibrarySpec(module, machine), tmp_path)


def test_a_failed_compilation_shows_the_first_error(tmp_path: Path) -> None:
    files = programs.files("counter", tmp_path)
    files.sources[0].write_text("int x = ;\n")
    with pytest.raises(OicError, match=r"elsewhere/counter\.c:1") as refused:
        builder.compile_library(files, Path("elsewhere"))
    assert refused.value.diagnostics[0].slug == "compile-failed"


def test_an_output_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OicError, match="output-folder"):
        programs.files("counter", tmp_path / "file")


def test_view_is_of_finished_strings(tmp_path: Path) -> None:
    files = programs.files("counter", tmp_path)
    assert render(files.model)["counter.c"] == files.sources[0].read_text()
    assert TemplateData(files.unit, files.target, False).entries[0].lines == files.model.entries[0].lines
    assert sys.getsizeof(files.model) > 0


def test_lines_are_short_and_say_what_is_so(tmp_path: Path) -> None:
    """At most 110 columns but for the user's own text, no empty `else`, and marks of states are not called counts."""
    sources = [programs.files(name, tmp_path / name) for name in programs.PROGRAMS]
    graph = oic.parse_file(EXAMPLES / "everything" / "graph.oi")
    sources.append(oic.Synthesizer(graph, target="portable").emit(tmp_path / "everything"))
    for files in sources:
        for ending in (".c", ".h"):
            text = (files.folder / f"{files.name}{ending}").read_text(encoding="utf-8")
            ours = [line for line in text.splitlines() if not re.match(r"\s*/\* \S+\.oi:\d+ ", line)]
            assert {line for line in ours if len(line) > 110} == set(), files.name
            assert not re.search(r"else \{\n\s*\}", text), files.name
    header = (tmp_path / "everything" / "everything.h").read_text(encoding="utf-8")
    assert "/* how far seen is initialised along k */" in header
    assert "/* 1: the entry of seen was written */" in header
    assert "count of index k of seen" in header and "index filled" not in header and "index touched" not in header


# Element types of bodies that do not take floats of one type.
TYPES: dict[str, tuple[tuple[str, ...], ...]] = {
    "attention": (("f32", "f16"), ("f32", "i8"), ("f64", "f64"), ("f32", "f32")),
    "conv_bytes": (("i8", "i32", "i32"), ("i8", "i16", "i8")),
    "conv_bytes_requantized": (("i8", "u8", "i32"),),
    "conv_panels": (("f32",) * 3, ("f64",) * 3),
    "conv_planes": (("f32",) * 3, ("f64",) * 3),
    "conv_planes_int": (("i8", "i32", "i32"), ("i8", "i8", "i8")),
    "conv_planes_requantized": (("i8", "u8", "i32"),),
    "conv_requantized": (("i16", "i8", "i32"),),
    "conv_winograd": (("i8", "i32", "i32"), ("i8", "i16", "i8")),
    "conv_winograd_requantized": (("i8", "u8", "i32"),),
    "conv": (("f16",) * 3, ("f64",) * 3, ("i4", "i32", "i4"), ("u8", "u64", "u64")),
    "depthwise_bytes": (("i8", "i32", "i32"), ("i8", "i16", "i8")),
    "depthwise_bytes_requantized": (("i8", "u8", "i32"),),
    "dequantize": (("u4", "f16", "u4"), ("i32", "f32", "i32")),
    "extreme_of_product": ((),),
    "gather": (("f16", "i64"), ("i4", "i32")),
    "gather_panels": (("f16", "f32", "i64"), ("f64", "f64", "i32")),
    "gather_pairs": (("bf16", "f32", "i64"), ("bf16", "bf16", "i32")),
    "gather_q4": (("f32", "f32", "i32"),),
    "gather_q8": (("f32", "f32", "i64"),),
    "gather_wide": (("i4", "f32", "i64"), ("bf16", "f64", "i32")),
    "iota": (("i32",),),
    "linear_q4": (("f32", "f32", "f32"), ("f16", "f32", "f16")),
    "linear_q8": (("f32", "f32", "f32"), ("bf16", "f32", "bf16")),
    "linear_int": (("i4", "i32", "i4"), ("u8", "u64", "u64")),
    "linear_int_requantized": (("i16", "u8", "i32"), ("u4", "i8", "i32")),
    "linear_words": (("i8", "i32", "i32"), ("i8", "i16", "i8")),
    "linear_words_requantized": (("i8", "u8", "i32"),),
    "matmul": (("f32", "i4"), ("f16", "f16"), ("f64", "f32"), ("f32", "f32")),
    "matmul_bool": (("bool",),),
    "matmul_int": (("i4", "i32"), ("bitset", "bitset")),
    "matmul_words": (("i8", "i32"), ("i8", "i16")),
    "matmul_panels": (("f32", "i8"), ("f16", "u8")),
    "quantize": (("f16", "i4", "i32"), ("f64", "u32", "u32")),
    "requantize": (("u4",), ("i32",)),
    "scalar_cast_int": (("i4",), ("u32",), ("i64",), ("u64",)),
    "scalar_float": (("f32",), ("f64",)),
    "scalar_int": (("i4",), ("u32",), ("i64",), ("u64",)),
    "totals": (("i4", "i32"), ("u8", "u64")),
}


SIMD = ("dots", "lanes", "registers", "rows", "slow_fma", "sums", "tiles", "words")
"""The headers that kernels include; those of instruction sets are included by these, one of them."""


def all_headers(*without: str) -> str:
    """Lines that include the headers of the runtime but some, and the body of every kernel for some element types."""
    paths = [p for p in sorted(runtime_dir().rglob("*.h")) if not p.name.endswith((".inc.h", ".end.h"))]
    paths = [p for p in paths if p.parent.name != "simd" or p.stem in SIMD]
    apart = ("element.h", "end.h", "linear_pairs.h", "attention_pairs.h")  # pairs are of the class `native` alone
    bodies = [p for p in paths if p.parent.name == "kernels" and p.name not in apart]
    bodies += [p for p in paths if p.parent.name == "math" and p.stem in TYPES]
    others = [p for p in paths if p.parent.name != "kernels" and p not in bodies]
    names = [p.relative_to(runtime_dir()).as_posix() for p in others]
    lines = [f'#include "{name}"\n' for name in names if name not in without]
    for path in bodies:
        text = path.read_text(encoding="utf-8")
        count = 1 + ("W_T" in text) + ("B_T" in text)
        default = tuple((dtype,) * count for dtype in ("f16", "f32", "f64"))
        lines += [Instance(f"{path.parent.name}/{path.name}", types).text() for types in TYPES.get(path.stem, default)]
    return "".join(lines)


def test_headers_have_names_of_their_own() -> None:
    """In `runtime_c` they lie in rooms, beside generated code all in one folder."""
    names = [p.name for p in runtime_dir().rglob("*.h")]
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_no_float_becomes_a_double_unseen(compiler: str, tmp_path: Path) -> None:
    """In any header of the runtime; on a machine without doubles it would be a call.  Nor is a name tested that is none."""
    source = tmp_path / "all.c"
    source.write_text('#include "hosted/hosted.h"\n' + all_headers("hosted/hosted.h", "version.h"))
    call = [compiler, *STANDARD, *WARNINGS, "-Wdouble-promotion", "-Wundef", "-Wno-unused-function", "-Werror", "-fsyntax-only"]
    done = subprocess.run([*call, "-I", str(runtime_dir()), str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]


@pytest.mark.skipif(not shutil.which("cppcheck"), reason="no cppcheck")
def test_cppcheck_reads_every_header(tmp_path: Path) -> None:
    source = tmp_path / "all.c"
    source.write_text(all_headers("hosted/hosted.h", "hosted/pool.h"))
    call = ["cppcheck", "--std=c99", "--max-configs=1", "-D__GNUC__", "-DOIC_HOSTED=0", "-DOIC_CLOCK()=0", "-I", str(runtime_dir())]
    done = subprocess.run([*call, "-E", str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "error" not in done.stderr, done.stderr[:3000]
    assert "oic_prod_axis_f32" in done.stdout and "failed to expand" not in done.stdout


def test_the_header_is_small_and_clean_in_cpp(tmp_path: Path) -> None:
    """It includes nothing of the runtime that computes, and draws none of the warnings that C++ programs use."""
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    files = programs.files("elementwise", tmp_path)
    source = tmp_path / "user.cpp"
    source.write_text(f'#include "{files.name}.h"\nint main() {{ return oic_status_name(OIC_OK)[4] != \'O\'; }}\n')
    flags = ["-std=c++17", *WARNINGS, "-Wold-style-cast", "-Wuseless-cast", "-Wzero-as-null-pointer-constant"]
    call = ["g++", *flags, "-Werror", "-fsyntax-only", str(source)]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    listed = subprocess.run(["g++", "-M", str(source)], capture_output=True, text=True, check=True).stdout
    own = {Path(p).name for p in listed.split() if "/oic/" in p}
    assert own == {"oic.h", "status.h", "version.h"} and "math.h" not in listed


def test_every_status_has_its_name() -> None:
    text = (runtime_dir() / "status.h").read_text(encoding="utf-8")
    assert re.findall(r'"(OIC_\w+)"[,}]', text.partition("names[]")[2]) == status_names()


def test_attention_and_products_of_8_bits_are_in_one_library(tmp_path: Path) -> None:
    """Names of functions and types of every kernel are their own."""
    text = """
    dynamic { x: f32[2, 64]; }
    constant { w: f32[64, 64] @init(0.25); c: f32[8, 8, 3] @init(0.5); }
    volatile { y: f32[2, 64]; z: f32[8, 8]; }
    block entry {
      assign q: f32[2, 64]; assign h: f32[2, 2, 32]; assign a: f32[2, 2, 32]; assign m: f32[8, 16];
      op linear(x, w) >> q;
      op reshape(q, shape=[2, 2, 32]) >> h;
      op attention(h, h, h) >> a;
      op reshape(a, shape=[2, 64]) >> y;
      op reshape(x, shape=[8, 16]) >> m;
      op conv1d(m, c, stride=2, padding=1) >> z;
      return;
    }
    """
    built = oic.Synthesizer(oic.parse(text, name="kernels"), weights="*=q8").build(tmp_path / "out")
    with built.make_executor() as executor:
        found = executor.step(x=np.full((2, 64), 0.5, np.float32))
    np.testing.assert_allclose(found["y"], np.full((2, 64), 8.0), rtol=1e-2)


def test_a_runtime_header_that_is_not_there_is_named() -> None:
    """It is a fault of the runtime, not of the folder that a build writes."""
    assert "version.h" in runtime_headers(["oic.h"])
    with pytest.raises(AssertionError, match=r"includes kernels/nowhere\.h"):
        runtime_headers(["kernels/nowhere.h"])


@pytest.mark.parametrize(("rows", "target", "told"), [(200, "host", False), (300, "host", True), (4096, "host", False), (300, "freestanding", False)])
def test_code_says_whether_its_weights_may_stay_in_a_cache(rows: int, target: str, told: bool, tmp_path: Path) -> None:
    """Of 1 to 16 MiB: a core's own cache keeps fewer, none keeps more."""
    text = f"dynamic {{ x: f32[1024]; }} constant {{ w: f32[{rows}, 1024]; }} volatile {{ y: f32[{rows}]; }}"
    graph = oic.parse(text + " block entry { op linear(x, w) >> y; return; }", "cached")
    model = oic.Model(tensors={"w": np.zeros((rows, 1024), np.float32)})
    oic.Synthesizer(graph, model, target=target).emit(tmp_path)
    assert ("#define OIC_WEIGHTS_CACHED 1" in (tmp_path / "cached.c").read_text()) == told


PRODUCT = """
graph rows {
  dynamic { x: f32[%d, 96]; } constant { w: f32[150, 96]; } volatile { y: f32[%d, 150]; }
  block entry { op linear(x, w) >> y; return; }
}
"""


def product(rows: int) -> tuple[oic.Graph, oic.Model]:
    """A product of so many rows, with its weights."""
    weights = np.random.default_rng(rows).standard_normal((150, 96), np.float32)
    return oic.parse(PRODUCT % (rows, rows)), oic.Model(tensors={"w": weights})


@pytest.mark.parametrize(("rows", "told"), [(1, True), (7, True), (8, False)])
def test_code_says_how_few_rows_products_have(rows: int, told: bool, tmp_path: Path) -> None:
    graph, model = product(rows)
    oic.Synthesizer(graph, model).emit(tmp_path)
    assert (f"#define OIC_ROWS_MOST {rows} " in (tmp_path / "rows.c").read_text()) == told


@pytest.mark.parametrize("weights", ["", "bf16", "q8", "q4"])
def test_products_of_more_rows_than_code_was_told_of_have_the_same_bits(
    weights: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two libraries in one translation unit, the first says how many rows there are."""
    for rows in (3, 5, 21):
        graph, model = product(rows)
        x = np.random.default_rng(0).standard_normal((rows, 96), np.float32)
        found = []
        for flags in ("-O1", "-O1 -DOIC_ROWS_MOST=1"):
            monkeypatch.setenv("OIC_CFLAGS", flags)
            built = oic.Synthesizer(graph, model, weights=weights).build(tmp_path / f"{rows}{len(found)}")
            with built.make_executor() as executor:
                found.append(executor.step(x=x)["y"])
        np.testing.assert_array_equal(found[0], found[1])
