"""Header, code and weights of different builds do not work together, and those of one build do."""

from __future__ import annotations

import re
import subprocess
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import oic
from oic.library.build import load
from oic.toolchain.compiler import find_compiler

TEXT = """
graph one {
  sizes    { N = 2; }
  dynamic  { x: f32[N]; }
  constant { w: f32[N]; }
  volatile { y: f32[N]; }
  block entry { op add(x, w) >> y; return; }
}
"""
DRIVER = """
#include "one.h"
#include <stdio.h>
int main(int argc, char **argv)
{
    one_session s;
    static uint64_t room[1 << 12];
    const one_memory m = {room, 1 << 13, room + (1 << 10), 1 << 13, room + (1 << 11), 1 << 13};
    printf("%d %d\\n", (int)one_open(&s, argc > 1 ? argv[1] : NULL), (int)one_init(&s, &m));
    return 0;
}
"""
BUILD, WEIGHTS = "9", "6"  # OIC_ERR_BUILD, OIC_ERR_WEIGHTS


def made(text: str = TEXT, value: float = 1, size: int = 2, **more: object) -> oic.Synthesizer:
    model = oic.Model(tensors={"w": np.full(size, value, np.float32)})
    return oic.Synthesizer(oic.parse(text), model, sizes={"N": size}, **more)  # type: ignore[arg-type]


def fingerprint(folder: Path) -> str:
    header = (folder / "one.h").read_text()
    (found,) = re.findall(r"#define ONE_BUILD_FINGERPRINT UINT64_C\((0x[0-9a-f]{16})\)", header)
    return str(found)


def test_the_fingerprint_is_of_source_model_and_options(tmp_path: Path) -> None:
    """Compiled or not, the same; it differs when anything does that the code or its answers depend on."""
    variants = {
        "again": made(),
        "operator": made(TEXT.replace("add", "mul")),
        "comment": made(TEXT.replace("op add", "op  add")),
        "value": made(value=2),
        "size": made(size=3),
        "portable": made(target="portable"),
        "freestanding": made(target="freestanding"),
        "array": made(weights_as="array"),
    }
    made().build(tmp_path / "built")
    found = {}
    for name, maker in variants.items():
        maker.emit(tmp_path / name)
        found[name] = fingerprint(tmp_path / name)
    assert found.pop("again") == fingerprint(tmp_path / "built")
    assert found.pop("comment") == fingerprint(tmp_path / "built"), "spaces are not in the C"
    assert len({*found.values(), fingerprint(tmp_path / "built")}) == len(found) + 1


def test_weights_of_the_same_constants_may_stay(tmp_path: Path) -> None:
    """Code may be replaced where they are kept in flash; other constants are other weights."""
    blobs = {}
    for name, maker in {"a": made(), "b": made(TEXT.replace("add", "mul")), "c": made(value=2)}.items():
        maker.emit(tmp_path / name)
        blobs[name] = (tmp_path / name / "one.weights").read_bytes()
    assert blobs["a"] == blobs["b"] and blobs["a"][16:24] != blobs["c"][16:24]


def compiled(header: Path, code: Path, folder: Path, weights: str = "") -> str:
    """What the compiler says of code with a header of another build; empty if nothing."""
    sources = [str(folder / "main.c"), str(code / "one.c"), *([str(code / weights)] if weights else [])]
    (folder / "main.c").write_text(DRIVER)
    call = [*find_compiler(), "-std=c99", "-Wall", "-Wextra", "-Werror", "-I", str(header), *sources, "-lm"]
    done = subprocess.run([*call, "-o", str(folder / "main")], capture_output=True, text=True, check=False)
    return done.stderr


@pytest.mark.parametrize("weights", ["blob", "array"])
def test_header_and_code_of_two_builds_do_not_compile(weights: str, tmp_path: Path) -> None:
    made(weights_as=weights, target="portable").emit(tmp_path / "a")
    made(value=2, weights_as=weights, target="portable").emit(tmp_path / "b")
    source = "one.weights.c" if weights == "array" else ""
    for header, code in product("ab", "ab"):
        (tmp_path / "mixed").mkdir(exist_ok=True)
        for name in ("one.c", "one.weights.c"):  # a quoted header is looked for beside the code first
            if (tmp_path / code / name).exists():
                (tmp_path / "mixed" / name).write_bytes((tmp_path / code / name).read_bytes())
        said = compiled(tmp_path / header, tmp_path / "mixed", tmp_path, source)
        if header == code:
            assert not said
        else:
            assert "one.h is of another build than one.c" in said
            assert weights == "blob" or "one.h is of another build than one.weights.c" in said


def test_a_program_and_a_library_of_two_builds_do_not_open(tmp_path: Path) -> None:
    """Sizes are the same, so that nothing but the fingerprint tells them apart."""
    files = {n: made(t, target="portable").emit(tmp_path / n) for n, t in (("a", TEXT), ("b", TEXT.replace("add", "mul")))}
    assert (tmp_path / "a" / "one.weights").read_bytes() == (tmp_path / "b" / "one.weights").read_bytes()
    (tmp_path / "main.c").write_text(DRIVER)
    flags = ["-std=c99", "-fPIC"]
    for header, code in product("ab", "ab"):
        objects = [str(tmp_path / "main.o"), str(tmp_path / "one.o")]
        for folder, source, to in ((header, tmp_path / "main.c", objects[0]), (code, files[code].sources[0], objects[1])):
            call = [*find_compiler(), *flags, "-I", str(tmp_path / folder), "-c", str(source), "-o", to]
            subprocess.run(call, check=True)
        subprocess.run([*find_compiler(), *objects, "-lm", "-o", str(tmp_path / "main")], check=True)
        done = subprocess.run([tmp_path / "main", files[code].weights], capture_output=True, text=True, check=True)
        assert done.stdout.split() == (["0", WEIGHTS] if header == code else [BUILD, BUILD])


def test_python_loads_no_library_of_another_build(tmp_path: Path) -> None:
    a, b = made().build(tmp_path / "a"), made(TEXT.replace("add", "mul")).build(tmp_path / "b")
    mixed = made()
    mixed.library = load(a.library.files, b.library.path, b.library.files.folder)
    with pytest.raises(oic.StepError, match="of another build") as caught:
        mixed.make_executor()
    assert caught.value.status == "OIC_ERR_BUILD"
    mixed.library = load(a.library.files, a.library.path, a.library.files.folder)
    with mixed.make_executor() as ex:
        assert ex.step(x=[1, 2])["y"].tolist() == [2, 3]
