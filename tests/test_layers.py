"""Imports of compiler/oic point one way (DESIGN, section 1), and each third-party package has its place.

The rules are the three tables below.  Imports are read from the source, not run, so one inside a
function or under TYPE_CHECKING counts like any other.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "compiler" / "oic"

BASE = {"dtypes", "diagnostics", "notebook", "resources", "version"}
CORE = BASE | {"ir", "ops"}

# A part is a module or a subpackage of `oic`.  Beside itself it may import:
PARTS: dict[str, set[str]] = {
    "diagnostics": set(),
    "dtypes": {"diagnostics"},
    "notebook": set(),
    "resources": set(),
    "version": set(),
    "ir": BASE,
    "ops": BASE | {"ir"},
    "model": BASE,
    "memory": CORE,
    "frontend": CORE | {"model"},
    "passes": CORE | {"memory"},
    "reference": CORE | {"memory"},
    "backend": CORE | {"memory", "model"},
    "session": CORE | {"memory", "model", "reference", "backend"},
    "difftest": CORE | {"memory", "model", "reference", "backend", "session", "frontend", "passes", "driver"},
}
PARTS["driver"] = set(PARTS) - {"difftest"}  # the campaigns compile what they make up
PARTS["api"] = set(PARTS)  # the public classes: a driver with sessions
PARTS["pages"] = BASE  # what is known of each diagnostic
PARTS["cli"] = set(PARTS)
_COMMANDS = {path.stem for path in PACKAGE.glob("cli_*.py")}  # what the commands do, a file a family
for _part in _COMMANDS - {"cli_text"}:
    PARTS[_part] = set(PARTS) - _COMMANDS - {"cli"} | {"cli_text"}
PARTS["cli_text"] = BASE
PARTS["cli"] = PARTS["cli"] | _COMMANDS
PARTS["__init__"] = set(PARTS)  # the public names of `oic`; nothing inside imports it
PARTS["__main__"] = {"cli"}

# A package from outside: the parts or modules that may import it.
THIRD_PARTY: dict[str, set[str]] = {
    "lark": {"frontend"},
    "jinja2": {"backend"},
    "cffi": {"backend"},
    "click": {"cli"} | _COMMANDS,
    "rich": {"cli"} | _COMMANDS,
    "gguf": {"model"},
    "safetensors": {"model"},
    "ml_dtypes": {"dtypes", "model", "ops", "reference"},
    "numpy": set(PARTS) - {"diagnostics", "resources"},
}

# Modules that may not import what their part may.
EXCEPT: dict[str, set[str]] = {
    "frontend.syntax": {"numpy"},
    "frontend.parse": {"numpy"},
}


@dataclass(frozen=True)
class Import:
    """One imported module, by absolute name, and where it is imported."""

    path: Path
    line: int
    module: str  # the one that imports, below oic: 'frontend.parse'
    target: str  # 'oic.ir.core', 'numpy.typing'


def imports(package: Path) -> Iterator[Import]:
    """Every import of every module of the package."""
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).with_suffix("").parts
        inside = ("oic", *parts[:-1])  # the package that a relative import starts from
        module = ".".join(parts[:-1] if parts[-1] == "__init__" and parts[1:] else parts)
        for found in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
            match found:
                case ast.Import(names=names):
                    targets = [name.name for name in names]
                case ast.ImportFrom(module=source, names=names, level=level):
                    above = inside[: len(inside) + 1 - level] if level else ()
                    base = ".".join([*above, *([source] if source else [])])
                    # `from oic import x` takes the part x
                    targets = [f"oic.{name.name}" for name in names] if base == "oic" else [base]
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


def test_every_part_is_in_the_table() -> None:
    parts = {path.stem for path in PACKAGE.glob("*.py")}
    parts |= {path.parent.name for path in PACKAGE.glob("*/*.py")}
    assert parts <= set(PARTS), f"not in PARTS: {sorted(parts - set(PARTS))}"


WRONG = [
    ("ir/core.py", "from oic.ops import relu", "'ir' may not import 'ops'"),
    ("ir/core.py", "from oic import ops", "'ir' may not import 'ops'"),
    ("ir/core.py", "from ..ops import relu", "'ir' may not import 'ops'"),
    ("ir/__init__.py", "from ..ops import relu", "'ir' may not import 'ops'"),
    ("ir/deep/core.py", "from ...ops import relu", "'ir' may not import 'ops'"),
    ("ops/math.py", "def f():\n    import oic.driver", "'ops' may not import 'driver'"),
    ("passes/fold.py", "import oic.reference.interpret as r", "'passes' may not import 'reference'"),
    ("backend/view.py", "import oic", "takes a name from `oic` itself"),
    ("ops/math.py", "from oic import Model", "takes a name from `oic` itself"),
    ("frontend/parse.py", "import numpy as np", "'frontend.parse' may not import 'numpy'"),
    ("session/run.py", "from cffi import FFI", "'session.run' may not import 'cffi'"),
    ("driver.py", "import torch", "'torch' is not in THIRD_PARTY"),
    ("helper.py", "import os", "'helper' is not in PARTS"),
]
RIGHT = [
    ("ir/core.py", "from .types import Type\nfrom ..dtypes import F32"),
    ("frontend/parse.py", "import lark\nfrom oic.frontend import syntax\nfrom oic import ir"),
    ("frontend/check.py", "import numpy as np"),
    ("backend/build.py", "import cffi\nfrom jinja2 import Environment"),
    ("__init__.py", "from oic.driver import parse_file\nfrom .session import Executor"),
    ("cli.py", "import os, click\nfrom oic import driver"),
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
