"""What `oic ops` prints: the catalog, from the operators' own classes."""

import inspect
import json
from typing import Any

from oic.check.operator_names import unknown_operator
from oic.cli.text import json_text
from oic.diagnostics import OicError
from oic.dtypes import ALL
from oic.ir.core import REQUIRED, Op
from oic.operators import catalog
from oic.operators.base import Operator, by_name, in_source, positional, settings


def signature(cls: type[Operator]) -> str:
    """`rms_norm(x, gamma, eps=…)`, optional operands and settings with their defaults."""
    parts = [f"{n}, …" if cls.fields[n].kind == "rest" else in_source(cls, n) for n in positional(cls)]
    parts += [f"{n}=?" for n in by_name(cls)]
    parts += [f"{n}=…" if f.default is REQUIRED else f"{n}={_shown(f.default)}" for n, f in settings(cls).items()]
    return f"{cls.name}({', '.join(parts)})"


def _shown(default: Any) -> str:
    if default is None:
        return "none"
    return json.dumps(default) if isinstance(default, (str, bool)) else str(default)


def listing(as_json: bool) -> str:
    """Every operator with the first line of its description."""
    found = catalog()
    if as_json:
        return json_text({n: _facts(c) for n, c in found.items()})
    width = max(map(len, found))
    lines = {n: _description(c).split("\n", 1)[0] for n, c in found.items()}
    return "\n".join(f"{n:<{width}}  {line}" for n, line in lines.items())


def describe(name: str, as_json: bool) -> str:
    """One operator: signature, description, examples.  Raises OicError `unknown-op`."""
    found = catalog()
    if name not in found:
        raise OicError(unknown_operator(name))
    cls = found[name]
    if as_json:
        return json_text(_facts(cls))
    examples = [f"  {', '.join(e)}" for e in cls.examples]
    types = "element types  " + " ".join(_types(cls))
    return "\n".join([f"op {signature(cls)}", "", _description(cls), "", types, "", "tested with", *examples])


def _types(cls: type[Operator]) -> list[str]:
    """What the first operand may be (of `where` the second; of `iota` the result)."""
    return [name for name, dtype in ALL.items() if dtype in cls.allowed]


def _description(cls: type[Op]) -> str:
    return inspect.cleandoc(cls.__doc__ or "")


def _facts(cls: type[Operator]) -> dict[str, Any]:
    return {
        "name": cls.name, "signature": signature(cls), "operands": [in_source(cls, n) for n in positional(cls)],
        "optional": by_name(cls), "settings": list(settings(cls)), "dtypes": _types(cls),
        "description": _description(cls), "examples": [list(e) for e in cls.examples],
    }  # fmt: skip
