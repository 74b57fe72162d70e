"""Imports of compiler/oic point one way (DESIGN, section 1), and each third-party package has its place.

The rules are the three tables below.  Imports are read from the source, not run, so one inside a
function or under TYPE_CHECKING counts like any other.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from paths import ROOT

PACKAGE = Path(__file__).parent.parent / "compiler" / "oic"

BASE = {"arguments", "collector", "dtypes", "diagnostics", "notebook", "resources", "version"}
CORE = BASE | {"ir", "kernels", "operators"}

# A part is a module or a subpackage of `oic`.  Beside itself it may import:
PARTS: dict[str, set[str]] = {
    "arguments": {"diagnostics"},
    "collector": set(),
    "diagnostics": set(),
    "dtypes": {"diagnostics"},
    "notebook": set(),
    "resources": set(),
    "version": set(),
    "pages": BASE,  # what is known of each diagnostic
    "ir": BASE,
    "kernels": BASE | {"ir"},
    "operators": BASE | {"ir", "kernels"},
    "model": BASE,
    "importers": CORE | {"model", "syntax", "check"},  # what an importer writes is checked as a user's graph is
    "memory": CORE,
    "syntax": BASE,
    "check": CORE | {"syntax", "model"},
    "lower": CORE | {"syntax", "check"},
    "passes": CORE | {"memory"},
    "reference": CORE | {"memory"},
    "toolchain": BASE | {"ir", "kernels"},
    "codegen": CORE | {"memory", "toolchain"},
    "report": CORE | {"memory", "toolchain", "codegen"},
    "library": CORE | {"memory", "toolchain", "codegen", "report"},
    "session": CORE | {"memory", "model", "reference", "codegen", "library", "toolchain"},
    "compare": CORE | {"memory", "reference", "session"},
}
PARTS["driver"] = set(PARTS) - {"compare", "importers"}
PARTS["precompute"] = CORE | {"codegen", "driver", "library", "memory", "session", "toolchain"}  # runs what a pass asks for
PARTS["profile"] = CORE | {"codegen", "compare", "session", "toolchain"}  # measures what sessions run
PARTS["api"] = set(PARTS) - {"compare", "importers", "profile"}  # the public classes: a driver with sessions
PARTS["generation"] = BASE | {"api", "check", "importers", "memory", "model", "operators", "session"}  # a user of the public classes
PARTS["verification"] = BASE | {"generation", "model"}
PARTS["cli"] = set(PARTS)
PARTS["__init__"] = set(PARTS)  # the public names of `oic`; nothing inside imports it
PARTS["__main__"] = {"cli"}

# A package from outside: the parts or modules that may import it.
THIRD_PARTY: dict[str, set[str]] = {
    "lark": {"syntax", "ir"},
    "jinja2": {"generation", "importers", "library", "report"},
    "cffi": {"library"},
    "click": {"cli"},
    "rich": {"cli"},
    "gguf": {"model"},
    "safetensors": {"model"},
    "ml_dtypes": {"dtypes", "model", "operators", "reference"},
    "numpy": set(PARTS) - {"arguments", "collector", "diagnostics", "resources", "syntax"},
}

# Modules that may not import what their part may.
EXCEPT: dict[str, set[str]] = {"check.source": {"numpy"}}


@dataclass(frozen=True)
class Import:
    """One imported module, by absolute name, and where it is imported."""

    path: Path
    line: int
    module: str  # the one that imports, below oic: 'syntax.parse'
    target: str  # 'oic.ir.core', 'numpy.typing'


def imports(package: Path, names: bool = False) -> Iterator[Import]:
    """Every import of every module of the package; `names`: down to what is taken from a module."""
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        inside = ("oic", *parts[:-1])  # the package that a relative import starts from
        module = ".".join(parts[:-1] if parts[-1] == "__init__" and parts[1:] else parts)
        for found in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
            match found:
                case ast.Import(names=taken):
                    targets = [name.name for name in taken]
                case ast.ImportFrom(module=source, names=taken, level=level):
                    above = inside[: len(inside) + 1 - level] if level else ()
                    base = ".".join([*above, *([source] if source else [])])
                    # `from oic import x` takes the part x
                    every = names or base == "oic"
                    targets = [f"{base}.{name.name}" for name in taken] if every else [base]
                case _:
                    continue
            yield from (Import(path, found.lineno, module, target) for target in targets)


def fault(found: Import) -> str | None:
    """What the rules say against an import."""
    part = found.module.split(".")[0]
    root, _, below = found.target.partition(".")
    if part not in PARTS:
        return f"'{part}' is not in PARTS; add it, with what it may import"
    if root == "oic":
        wanted = below.split(".")[0]
        if wanted not in PARTS:
            return "takes a name from `oic` itself; import it from the module that defines it"
        allowed = wanted == part or wanted in PARTS[part]
        return None if allowed else f"'{part}' may not import '{wanted}'"
    if root in sys.stdlib_module_names:
        return None
    if root not in THIRD_PARTY:
        return f"'{root}' is not in THIRD_PARTY: is it a dependency?"
    if root in EXCEPT.get(found.module, ()) or not {part, found.module} & THIRD_PARTY[root]:
        return f"'{found.module}' may not import '{root}'"
    return None


def faults(package: Path) -> list[str]:
    """All violations, as lines an editor can jump to."""
    return [
        f"{found.path}:{found.line}: imports {found.target}: {what}"
        for found in imports(package)
        if (what := fault(found))
    ]


def test_imports_point_one_way() -> None:
    found = faults(PACKAGE)
    assert not found, "\n" + "\n".join(found)


def test_rules_have_no_cycle() -> None:
    """Every part can be put after all that it may import."""
    placed: set[str] = set()
    while rest := set(PARTS) - placed:
        ready = {part for part in rest if PARTS[part] - {part} <= placed}
        assert ready, f"these parts may import one another: {sorted(rest)}"
        placed |= ready


def test_modules_have_no_circle() -> None:
    """Every module can be imported after all that it imports, wherever it does so."""
    modules = {
        ".".join(part for part in path.relative_to(PACKAGE).with_suffix("").parts if part != "__init__")
        for path in PACKAGE.rglob("*.py")
    }
    needs: dict[str, set[str]] = {module: set() for module in modules}
    for found in imports(PACKAGE, names=True):
        target = found.target.removeprefix("oic.").removeprefix("oic")
        while target and target not in modules:
            target = target.rpartition(".")[0]
        needs[found.module if found.module in modules else ""].add(target)
    rooms = {module for module in modules if (PACKAGE / Path(*module.split(".")) / "__init__.py").exists()}
    placed = rooms | {""}  # a room's own module only names what lies in it
    while rest := modules - placed:
        ready = {module for module in rest if needs[module] - {module} <= placed}
        assert ready, f"these modules import one another: {sorted(rest)}"
        placed |= ready


def test_every_part_is_in_the_table() -> None:
    parts = {path.stem for path in PACKAGE.glob("*.py")}
    parts |= {path.parent.name for path in PACKAGE.glob("*/*.py")}
    assert parts <= set(PARTS), f"not in PARTS: {sorted(parts - set(PARTS))}"


def test_every_room_is_told_of_and_imports_what_is_said() -> None:
    """The table of docs/inside.md: rooms, what they do, what they may import."""
    rows = re.findall(r"^\| (`.*) \| .* \| (.*) \|$", (ROOT / "docs" / "inside.md").read_text(), re.M)
    table = [(re.findall(r"`(\w+)(?:/|\.py)`", rooms), re.findall(r"`(\w+)`", imports)) for rooms, imports in rows]
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders <= {room for rooms, _ in table for room in rooms}
    for rooms, imports in table:
        assert set(imports) <= set().union(*(PARTS[room] for room in rooms)), rooms


WRONG = [
    ("ir/core.py", "from oic.operators import relu", "'ir' may not import 'operators'"),
    ("ir/core.py", "from oic import operators", "'ir' may not import 'operators'"),
    ("ir/core.py", "from ..operators import relu", "'ir' may not import 'operators'"),
    ("ir/__init__.py", "from ..operators import relu", "'ir' may not import 'operators'"),
    ("ir/deep/core.py", "from ...operators import relu", "'ir' may not import 'operators'"),
    ("operators/math.py", "def f():\n    import oic.driver", "'operators' may not import 'driver'"),
    ("passes/fold.py", "import oic.reference.interpret as r", "'passes' may not import 'reference'"),
    ("syntax/parse.py", "from oic.check import names", "'syntax' may not import 'check'"),
    ("toolchain/stack.py", "from oic.codegen import names", "'toolchain' may not import 'codegen'"),
    ("codegen/view.py", "import oic", "takes a name from `oic` itself"),
    ("operators/math.py", "from oic import Model", "takes a name from `oic` itself"),
    ("syntax/parse.py", "import numpy as np", "'syntax.parse' may not import 'numpy'"),
    ("session/run.py", "from cffi import FFI", "'session.run' may not import 'cffi'"),
    ("driver.py", "import torch", "'torch' is not in THIRD_PARTY"),
    ("helper.py", "import os", "'helper' is not in PARTS"),
]
RIGHT = [
    ("ir/core.py", "from .types import Type\nfrom ..dtypes import F32"),
    ("syntax/parse.py", "import lark\nfrom oic.syntax import tree"),
    ("check/check.py", "import numpy as np\nfrom oic import ir"),
    ("library/build.py", "import cffi\nfrom jinja2 import Environment"),
    ("__init__.py", "from oic.driver import parse_file\nfrom .session import Executor"),
    ("cli/main.py", "import os, click\nfrom oic import driver"),
]


@pytest.mark.parametrize(("path", "source", "message"), WRONG)
def test_wrong_import_is_found(path: str, source: str, message: str, tmp_path: Path) -> None:
    assert any(message in line for line in faults(write(tmp_path, path, source)))


@pytest.mark.parametrize(("path", "source"), RIGHT)
def test_right_import_is_let_through(path: str, source: str, tmp_path: Path) -> None:
    assert faults(write(tmp_path, path, source)) == []


def write(package: Path, path: str, source: str) -> Path:
    """A package with this one module."""
    (package / path).parent.mkdir(parents=True, exist_ok=True)
    (package / path).write_text(source, encoding="utf-8")
    return package
