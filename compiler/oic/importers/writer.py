"""Statements that graphs of every kind of transformer have, and the constants that they ask for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from oic.dtypes import Array, DType, f32
from oic.importers.checkpoint import STACKED
from oic.importers.decoder import Matrix, Network, Norm
from oic.importers.text import BlockText, number

ACTIVATIONS = {
    "gelu": 'op gelu({0}, approx="erf") >> {0};',
    "gelu_new": 'op gelu({0}, approx="tanh") >> {0};',
    "gelu_python": 'op gelu({0}, approx="erf") >> {0};',
    "gelu_accurate": 'op gelu({0}, approx="tanh") >> {0};',
    "gelu_fast": 'op gelu({0}, approx="tanh") >> {0};',
    "gelu_pytorch_tanh": 'op gelu({0}, approx="tanh") >> {0};',
    "quick_gelu": "op mul({0}, 1.702) >> {0};\nop silu({0}) >> {0};\nop div({0}, 1.702) >> {0};",
    "silu": "op silu({0}) >> {0};",
    "swish": "op silu({0}) >> {0};",
    "relu": "op relu({0}) >> {0};",
    "relu2": "op relu({0}) >> {0};\nop mul({0}, {0}) >> {0};",
    "tanh": "op tanh({0}) >> {0};",
    "sigmoid": "op sigmoid({0}) >> {0};",
    "softplus": "op softplus({0}) >> {0};",
    "linear": "",
}
"""Activations by the names that configurations use, as statements on a variable."""


@dataclass(kw_only=True)
class Writer:
    """A part of a graph while it is written: parts of one graph share the last three.

    dtype      the element type that a tensor or pattern is stored in, by its name and number of layers
    layers     how many values `{l}` in the name of a tensor takes
    constants  their declarations
    weights    the tensors that were asked for, with their layers
    extra      constants that no checkpoint has
    """

    dtype: Callable[[str, int], DType]
    layers: int
    constants: list[str] = field(default_factory=list)
    weights: dict[str, int] = field(default_factory=dict)
    extra: dict[str, Array] = field(default_factory=dict)

    def constant(self, name: str, tensor: str, dims: str, narrow: bool = False) -> str:
        """Declare a constant once; how it is used in the layer at hand."""
        layers = self.layers if "{l}" in tensor else 1
        if tensor not in self.weights:
            self.weights[tensor] = layers
            dtype = self.dtype(tensor, layers) if narrow else f32
            bound = tensor.removesuffix(STACKED)
            where = f'@pattern("{tensor}")' if "{l}" in bound else f'@ref("{bound}")'
            self.constants.append(f"{name}{'(l)' if '{l}' in tensor else ''}: {dtype}[{dims}] {where};")
        return f"{name}[l]" if "{l}" in tensor else name

    def lookup(self, to: BlockText, table: str, ids: str, x: str) -> None:
        """x = the rows of the embedding at these ids, in f32."""
        rows = self.constant("embed", table, "vocab, D", narrow=True)
        wide = "" if self.dtype(table, 1) is f32 else ", to=f32"
        to.add(f"op gather({rows}, {ids}{wide}) >> {x};")

    def norm(self, to: BlockText, norm: Norm, name: str, x: str, y: str, dims: str = "D") -> None:
        """y = the norm of x."""
        gamma = self.constant(name, norm.tensor, dims)
        if norm.plus_one:
            to.assign("scale_" + name, f"f32[{dims}]")
            to.add(f"op add({gamma}, 1.0) >> scale_{name};")
            gamma = "scale_" + name
        beta = f", beta={self.constant(name + '_bias', norm.bias, dims)}" if norm.bias else ""
        op = "rms_norm" if norm.kind == "rms" else "layer_norm"
        to.add(f"op {op}({x}, {gamma}{beta}, eps={number(norm.eps)}) >> {y};")

    def product(self, to: BlockText, matrix: Matrix, name: str, x: str, y: str, inputs: str, outputs: str) -> None:
        """y = x times the matrix, plus its bias."""
        dims = f"{inputs}, {outputs}" if matrix.by_columns else f"{outputs}, {inputs}"
        weights = self.constant(name, matrix.tensor, dims, narrow=True)
        bias = self.constant(name + "_bias", matrix.bias, outputs) if matrix.bias else None
        if not matrix.by_columns:
            to.add(f"op linear({x}, {weights}{f', b={bias}' if bias else ''}) >> {y};")
            return
        to.add(f"op matmul({x}, {weights}) >> {y};")
        if bias:
            to.add(f"op add({y}, {bias}) >> {y};")

    def network(
        self, to: BlockText, n: Network, x: str, y: str, rows: str = "N", inner: str = "F", prefix: str = ""
    ) -> None:
        """y = the feed-forward network of x; `rows` and `inner` are the sizes of what is inside."""
        to.assign("up", f"f32[{rows}, {inner}]")
        self.product(to, n.up, f"{prefix}w_up", x, "up", "D", inner)
        active = "up" if n.gate is None else "gate"
        if n.gate is not None:
            to.assign("gate", f"f32[{rows}, {inner}]")
            self.product(to, n.gate, f"{prefix}w_gate", x, "gate", "D", inner)
        for line in ACTIVATIONS[n.activation].format(active).splitlines():
            to.add(line)
        if n.gate is not None:
            to.add("op mul(gate, up) >> up;")
        to.assign(y, f"f32[{rows}, D]")
        self.product(to, n.down, f"{prefix}w_down", "up", y, inner, "D")
