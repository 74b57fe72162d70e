"""The process of one engine: JSON a line in, JSON a line out.

    python -m against.worker MODULE        a module here that has an Engine

{"load": {...}} makes an Engine; {"decode": [512, 16]} calls a method of it.  The answer is {"ok": ...},
{"missing": reason} where the engine is not installed or cannot do it, or {"failed": traceback}.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from typing import Any

from against import Unsupported


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")  # what libraries print goes elsewhere
    os.dup2(2, 1)
    engine: Any = None
    for line in sys.stdin:
        (command, given), = json.loads(line).items()
        try:
            if command == "load":
                module = importlib.import_module(f"against.{sys.argv[1]}")
                engine = module.Engine(**given)
                answer: dict[str, Any] = {"ok": engine.version}
            else:
                answer = {"ok": getattr(engine, command)(*given)}
        except ImportError as why:
            answer = {"missing": f"not installed ({why.name})" if isinstance(why, ModuleNotFoundError) else str(why)}
        except Unsupported as why:
            answer = {"missing": str(why)}
        except Exception:
            answer = {"failed": traceback.format_exc(limit=-3)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
