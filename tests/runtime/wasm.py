"""WebAssembly: how a program for it is compiled, and run by node.  What it needs of a C library is in `wasm.h`."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from oic.toolchain.target import LANGUAGE, MEANING
from paths import ROOT

HEADERS = {
    "string.h": "#include <stddef.h>\nvoid *memcpy(void *, const void *, size_t);\nvoid *memmove(void *, const void *, size_t);\n"
    "void *memset(void *, int, size_t);\nint memcmp(const void *, const void *, size_t);\n",
    "math.h": "#define INFINITY __builtin_inff()\n#define NAN __builtin_nanf(\"\")\n"
    "#define sqrtf __builtin_sqrtf\n#define sqrt __builtin_sqrt\n",
}
RUN = """
const { readFileSync } = require("node:fs");
const hex = n => (n >>> 0).toString(16).padStart(8, "0");
const say = (at, high, low) => {
  const bytes = new Uint8Array(made.exports.memory.buffer);
  console.log(Buffer.from(bytes.subarray(at, bytes.indexOf(0, at))).toString() + ": " + hex(high) + hex(low));
};
const made = new WebAssembly.Instance(new WebAssembly.Module(readFileSync(process.argv[2])), { env: { say } });
const width = made.exports.run();
if (width) console.log("width: " + width);
"""


@cache
def linker() -> str | None:
    """LLVM's linker for WebAssembly: a package of its own for clang, and a part of Rust."""
    if found := shutil.which("wasm-ld"):
        return found
    asked = subprocess.run(["clang", "-print-prog-name=wasm-ld"], capture_output=True, text=True).stdout.strip()
    if Path(asked).is_absolute():
        return asked
    if shutil.which("rustc") is None:
        return None
    root = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True).stdout.strip()
    return next(map(str, Path(root).glob("lib/rustlib/*/bin/gcc-ld/wasm-ld")), None) if root else None


def said(sources: list[Path], folder: Path, *options: str) -> str:
    """What a program says, whose main function is `run`.  Skips where it cannot be made or run."""
    missing = [name for name in ("clang", "node") if shutil.which(name) is None]
    if missing or linker() is None:
        pytest.skip(f"no {' and '.join(missing) or 'wasm-ld'}")
    for name, text in (HEADERS | {"run.js": RUN}).items():
        (folder / name).write_text(text)
    call = ["clang", "--target=wasm32", "-msimd128", "-nostdlib", f"-fuse-ld={linker()}", LANGUAGE, *MEANING, *options]
    call += ["-fno-math-errno", "-Wl,--no-entry", "-Wl,--stack-first", "-Wl,-z,stack-size=1048576", "-I", "."]
    call += ["-I", str(ROOT / "tests" / "runtime"), *map(str, sources), "-o", "program"]
    made = subprocess.run(call, cwd=folder, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[:4000]
    run = subprocess.run(["node", "run.js", "program"], cwd=folder, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[:4000]
    return run.stdout
