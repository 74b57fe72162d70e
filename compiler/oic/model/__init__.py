"""Model files: named tensors, sizevars and metadata; lazy, memory-mapped, checked before use."""

from oic.model.model import Model
from oic.model.tensors import Tensor, TensorInfo

__all__ = ["Model", "Tensor", "TensorInfo"]
