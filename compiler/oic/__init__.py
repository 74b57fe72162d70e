"""oic: stateful inference graphs compiled to self-contained C, and proved equal to NumPy.

graph = oic.parse_file("decode.oi")
model = oic.Model.open("model.safetensors")
sim = oic.Simulator(graph, model)
syn = oic.Synthesizer(graph, model).build("out/")
"""

from typing import TYPE_CHECKING, Any

from oic.version import __version__ as __version__

if TYPE_CHECKING:
    from oic.api import Simulator as Simulator
    from oic.api import Synthesizer as Synthesizer
    from oic.check.source import parse as parse
    from oic.check.source import parse_file as parse_file
    from oic.diagnostics import Diagnostic as Diagnostic
    from oic.diagnostics import OicError as OicError
    from oic.diagnostics import Refusal as Refusal
    from oic.diagnostics import StepError as StepError
    from oic.generation import Generator as Generator
    from oic.generation import Sampling as Sampling
    from oic.generation import Token as Token
    from oic.generation import generate as generate
    from oic.importers import import_checkpoint as import_checkpoint
    from oic.model import Model as Model
    from oic.model import Tensor as Tensor
    from oic.model.oinf_write import write_oinf as write_oinf
    from oic.session.executor import Executor as Executor
    from oic.session.kv_cache import KVCache as KVCache
    from oic.syntax.tree import Graph as Graph
    from oic.verification import verify as verify

# Public names by where they are: imported when first used, so that `import oic` costs nothing.
_HOMES = {
    "oic.api": ("Simulator", "Synthesizer"),
    "oic.check.source": ("parse", "parse_file"),
    "oic.diagnostics": ("Diagnostic", "OicError", "Refusal", "StepError"),
    "oic.generation": ("Generator", "Sampling", "Token", "generate"),
    "oic.importers": ("import_checkpoint",),
    "oic.model": ("Model", "Tensor"),
    "oic.model.oinf_write": ("write_oinf",),
    "oic.session.executor": ("Executor",),
    "oic.session.kv_cache": ("KVCache",),
    "oic.syntax.tree": ("Graph",),
    "oic.verification": ("verify",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}
__all__ = ["__version__", *_HOME]


def __dir__() -> list[str]:
    """The public names, which completion then shows; submodules are internals."""
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'oic' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)
