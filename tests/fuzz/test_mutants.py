"""Every mutant still applies to the code, and the command tells what dies from what does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz import mutants
from tests.fuzz.mutants import ROOT, MutantError, apply, main, read, tried


def test_every_mutant_applies() -> None:
    assert main(["--list"]) == 0
    assert len(mutants.mutants()) >= 30


def test_every_mutant_names_tests_that_are_there() -> None:
    for mutant in mutants.mutants():
        paths = [t for t in mutant.tests if t.startswith("tests/")]
        assert paths and all((ROOT / path).is_file() for path in paths), mutant.name


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout with one function, one test that sees what it gives, and one that does not."""
    root = tmp_path / "tree"
    (root / "compiler" / "oic").mkdir(parents=True)
    (root / "tests").mkdir()
    (root / "compiler" / "oic" / "__init__.py").write_text("")
    (root / "compiler" / "oic" / "moved.py").write_text("def f(a):\n    if a:\n        return 1\n    return 2\n")
    (root / "tests" / "test_sees.py").write_text("from oic.moved import f\n\ndef test_f():\n    assert f(0) == 2\n")
    (root / "tests" / "test_blind.py").write_text("def test_g():\n    pass\n")
    return root


def mutant(folder: Path, tests: str, more: str = "", line: str = "    return 2") -> mutants.Mutant:
    path = folder / "wrong.txt"
    path.write_text(f"It gives 3.\ntests: {tests}\n{more}--- compiler/oic/was.py\n-{line}\n+    return 3\n")
    return read(path)


def test_a_mutant_dies_by_a_test_or_survives(tree: Path, tmp_path: Path) -> None:
    """The change is found in a file that has another name by now."""
    seen = tried(mutant(tmp_path, "tests/test_sees.py"), False, tree)
    assert seen.right and seen.tests == "tests/test_sees.py::test_f" and " killed " in str(seen)
    missed = tried(mutant(tmp_path, "tests/test_blind.py"), False, tree)
    assert not missed.right and "SURVIVED" in str(missed)
    same = tried(mutant(tmp_path, "tests/test_blind.py", "equivalent: nothing\n  calls it\n"), False, tree)
    assert same.right and same.mutant.equivalent == "nothing calls it"
    wrong = tried(mutant(tmp_path, "tests/test_sees.py", "equivalent: no\n"), False, tree)
    assert not wrong.right and "NOT EQUIVALENT" in str(wrong)
    assert "return 2" in (tree / "compiler" / "oic" / "moved.py").read_text()


def test_a_mutant_that_has_no_place_is_a_fault(tree: Path, tmp_path: Path) -> None:
    gone = tried(mutant(tmp_path, "tests/test_sees.py", line="    return 7"), False, tree)
    assert not gone.right and "0 places" in gone.fault
    with pytest.raises(MutantError, match="no line starts"):
        (tmp_path / "none.txt").write_text("What?\ntests: x\n")
        read(tmp_path / "none.txt")


def test_continued_lines_of_a_macro_stay_continued(tmp_path: Path) -> None:
    (tmp_path / "runtime_c").mkdir()
    header = tmp_path / "runtime_c" / "a.h"
    header.write_text("#define M(x)   \\\n    f(x);      \\\n    g(x)\n")
    path = tmp_path / "macro.txt"
    path.write_text("f.\ntests: x\n--- runtime_c/a.h\n-    f(x);\n+    h(x);\n+    i(x);\n")
    apply(read(path), tmp_path)
    assert header.read_text() == "#define M(x)   \\\n    h(x); \\\n    i(x); \\\n    g(x)\n"


def test_what_a_change_adds_may_be_less_deep(tmp_path: Path) -> None:
    (tmp_path / "compiler").mkdir()
    source = tmp_path / "compiler" / "a.py"
    source.write_text("for i in x:\n    if i:\n        f(i)\n")
    path = tmp_path / "once.txt"
    path.write_text("f always.\ntests: x\n--- compiler/a.py\n-        f(i)\n+        pass\n+    f(i)\n")
    apply(read(path), tmp_path)
    assert source.read_text() == "for i in x:\n    if i:\n        pass\n    f(i)\n"
