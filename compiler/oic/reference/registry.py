"""What the ops that are no operators do, by class: `semantics` fills the table, `interpret` reads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oic.ir.core import Op

Meaning = Callable[[Any, Any], None]
"""Takes the `interpret.Machine` and the op; changes the machine's values and state."""

SEMANTICS: dict[type[Op], Meaning] = {}
