"""Every name that is defined is used somewhere: `vulture` reads all of the Python, and names what it sees no use of.

Names that are used from elsewhere are taken from there: rules of the grammar, words of the templates and the
declaration files of the project, operators and their settings from the registry.  What is left is EXCEPT, a reason a line.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from vulture import Vulture

from oic.operators import catalog

ROOT = Path(__file__).parents[1]
PYTHON = ("compiler", "tests", "benchmarks", "examples", "build.py")
EXCEPT = {
    "__dir__": "of a module, for completion",
    "__getattr__": "of a module, which Python calls",
    "always_accept": "of a lark.PostLex, which lark reads",
    "forward": "of a torch.nn.Module, which torch calls",
    "handle_*": "of an HTMLParser, which it calls",
    "intercepted_binops": "of an environment of Jinja, which it reads",
    "tags": "of an extension of Jinja, which it reads",
    "normalizer": "of a tokenizers.Tokenizer, which it reads",
    "pre_tokenizer": "as normalizer",
    "pytest*": "read by pytest",
    "n_head": "of the shape of a model, which its graph says for itself",
    "seq_len": "as n_head",
}


def test_every_name_is_used() -> None:
    found = Vulture(ignore_names=[*EXCEPT], ignore_decorators=["@pytest.fixture", "@main.command"])
    found.scavenge([ROOT / path for path in PYTHON])
    known = words()
    for kind in catalog().values():
        known |= {kind.__name__, *kind.fields}
    unused = [item for item in found.get_unused_code() if item.name not in known and not of_an_engine(item)]
    assert [f"{item.filename}:{item.first_lineno}: {item.name}" for item in unused] == []


def of_an_engine(item: Any) -> bool:
    """A setting of another library, which that library reads."""
    return item.typ == "attribute" and "against" in item.filename.parts


def words() -> set[str]:
    """Those of the files beside the Python that name its definitions."""
    files = [*ROOT.glob("templates/**/*.j2"), *ROOT.glob("compiler/oic/**/*.lark"), ROOT / "pyproject.toml"]
    return {word for file in files for word in re.findall(r"\w+", file.read_text(encoding="utf-8"))}
