"""oic: stateful inference graphs compiled to self-contained C, and proved equal to NumPy.

graph = oic.parse_file("decode.oi")
model = oic.Model.open("model.safetensors")
sim = oic.Simulator(graph, model)
syn = oic.Synthesizer(graph, model).build("out/")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oic.version import __version__

if TYPE_CHECKING:
    from oic.api import Simulator, Synthesizer
    from oic.check.source import parse, parse_file
    from oic.diagnostics import Diagnostic, OicError, Refusal, StepError
    from oic.generation import Generator, Sampling, Token, generate
    from oic.importers import import_checkpoint
    from oic.model import Model, Tensor
    from oic.session.executor import Executor
    from oic.session.kv_cache import KVCache
    from oic.syntax.tree import Graph
    from oic.verification import verify

# Public names and where they are: imported when first used, so that `import oic` costs nothing.
_HOME = {
    "parse": "oic.check.source",
    "parse_file": "oic.check.source",
    "Graph": "oic.syntax.tree",
    "Simulator": "oic.api",
    "Synthesizer": "oic.api",
    "Model": "oic.model",
    "Tensor": "oic.model",
    "Executor": "oic.session.executor",
    "KVCache": "oic.session.kv_cache",
    "Generator": "oic.generation",
    "Sampling": "oic.generation",
    "Token": "oic.generation",
    "generate": "oic.generation",
    "import_checkpoint": "oic.importers",
    "verify": "oic.verification",
    "Diagnostic": "oic.diagnostics",
    "OicError": "oic.diagnostics",
    "Refusal": "oic.diagnostics",
    "StepError": "oic.diagnostics",
}

__all__ = [
    "Diagnostic",
    "Executor",
    "Generator",
    "Graph",
    "KVCache",
    "Model",
    "OicError",
    "Refusal",
    "Sampling",
    "Simulator",
    "StepError",
    "Synthesizer",
    "Tensor",
    "Token",
    "__version__",
    "generate",
    "import_checkpoint",
    "parse",
    "parse_file",
    "verify",
]


def __dir__() -> list[str]:
    """The public names, which completion then shows; submodules are internals."""
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'oic' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)
