"""One name, one meaning: a class of the package has a name of its own."""

from __future__ import annotations

import ast
from collections import defaultdict

from paths import ROOT

PACKAGE = ROOT / "compiler" / "oic"

# What the source has and the op that it becomes have one name: the node of the syntax tree, and the class of the IR.
SOURCE_AND_OP = {
    "Barrier": "ir.control", "Block": "ir.core", "CacheRead": "ir.state", "CacheReset": "ir.state",
    "CacheStep": "ir.state", "CacheWrite": "ir.state", "Return": "ir.control", "Slice": "operators.shape",
    "Yield": "ir.control",
}  # fmt: skip


def defined() -> dict[str, set[str]]:
    """The modules that define a class of each name."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].add(module)
    return found


def test_no_two_classes_have_one_name_but_those_of_source_and_ir() -> None:
    twice = {name: modules for name, modules in defined().items() if len(modules) > 1}
    assert twice == {name: {"syntax.tree", module} for name, module in SOURCE_AND_OP.items()}
