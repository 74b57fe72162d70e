"""Statements that graphs of every kind of transformer have, and the constants that they ask for."""

from __future__ import annotations

from dataclasses import dataclass, field

from oic.dtypes import Array, DType, f32
from oic.importers.checkpoint import STACKED, Checkpoint
from oic.importers.decoder import Matrix, Network, Norm
from oic.importers.family import Request
from oic.importers.text import BlockText, number

ACTIVATIONS = {
    **dict.fromkeys(("gelu", "gelu_python"), 'op gelu({0}, approx="erf") >> {0};'),
    **dict.fromkeys(
        ("gelu_new", "gelu_accurate", "gelu_fast", "gelu_pytorch_tanh"), 'op gelu({0}, approx="tanh") >> {0};'
    ),
    "quick_gelu": "op mul({0}, 1.702) >> {0};\nop silu({0}) >> {0};\nop div({0}, 1.702) >> {0};",
    **dict.fromkeys(("silu", "swish"), "op silu({0}) >> {0};"),
    "relu2": "op relu({0}) >> {0};\nop mul({0}, {0}) >> {0};",
    **{name: f"op {name}({{0}}) >> {{0}};" for name in ("relu", "tanh", "sigmoid", "softplus")},
    "linear": "",
}
"""Activations by the names that configurations use, as statements on a variable."""


@dataclass(kw_only=True)
class Writer:
    """A part of a graph while it is written: parts of one graph share the last three.

    c          the checkpoint whose tensors are asked for
    request    what the user chose
    layers     how many values `{l}` in the name of a tensor takes
    constants  their declarations
    weights    the tensors that were asked for, with their layers
    extra      constants that no checkpoint has
    """

    c: Checkpoint
    request: Request
    layers: int
    constants: list[str] = field(default_factory=list)
    weights: dict[str, int] = field(default_factory=dict)
    extra: dict[str, Array] = field(default_factory=dict)

    def stored(self, tensor: str) -> DType:
        """The element type of a tensor or pattern in the checkpoint."""
        return self.c.dtype(tensor, self.layers)

    def constant(self, name: str, tensor: str, dims: str, narrow: bool = False) -> str:
        """Declare a constant once; how it is used in the layer at hand."""
        family = "{l}" in tensor
        if tensor not in self.weights:
            self.weights[tensor] = self.layers
            dtype = self.stored(tensor) if narrow else f32
            bound = tensor.removesuffix(STACKED)
            where = f'@pattern("{tensor}")' if "{l}" in bound else f'@ref("{bound}")'
            self.constants.append(f"{name}{'(l)' if family else ''}: {dtype}[{dims}] {where};")
        return f"{name}[l]" if family else name

    def lookup(
        self, to: BlockText, table: str, ids: str, x: str, *, name: str = "embed", dims: str = "vocab, D",
        scale: float | None = None,
    ) -> None:  # fmt: skip
        """x = the rows of the embedding at these ids, in f32."""
        rows = self.constant(name, table, dims, narrow=True)
        wide = "" if self.stored(table) is f32 else ", to=f32"
        to.add(f"op gather({rows}, {ids}{wide}) >> {x};")
        if scale is not None:
            to.add(f"op mul({x}, {number(scale)}) >> {x};")

    def norm(self, to: BlockText, norm: Norm, name: str, x: str, y: str, dims: str = "D") -> None:
        """y = the norm of x."""
        gamma = self.constant(name, norm.tensor, dims)
        if norm.plus_one:
            to.define(f"scale_{name}", f"f32[{dims}]", f"op add({gamma}, 1.0)")
            gamma = f"scale_{name}"
        beta = f", beta={self.constant(name + '_bias', norm.bias, dims)}" if norm.bias else ""
        to.add(f"op {norm.kind}_norm({x}, {gamma}{beta}, eps={number(norm.eps)}) >> {y};")

    def product(
        self, to: BlockText, matrix: Matrix, name: str, x: str, y: str, inputs: str, outputs: str, rows: str = ""
    ) -> None:
        """y = x times the matrix, plus its bias; `rows` are the other sizes of a y that is a temporary."""
        dims = f"{inputs}, {outputs}" if matrix.by_columns else f"{outputs}, {inputs}"
        weights = self.constant(name, matrix.tensor, dims, narrow=True)
        bias = self.constant(name + "_bias", matrix.bias, outputs) if matrix.bias else None
        if rows:
            to.add(f"assign {y}: f32[{rows}, {outputs}];")
        self.multiply(to, matrix, x, weights, bias, y)

    def multiply(self, to: BlockText, matrix: Matrix, x: str, weights: str, bias: str | None, y: str) -> None:
        """y = x times weights that lie as a matrix does, plus a bias."""
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
        self.product(to, n.up, f"{prefix}w_up", x, "up", "D", inner, rows)
        if n.gate is not None:
            self.product(to, n.gate, f"{prefix}w_gate", x, "gate", "D", inner, rows)
        to.add(*ACTIVATIONS[n.activation].format("gate" if n.gate else "up").splitlines())
        if n.gate is not None:
            to.add("op mul(gate, up) >> up;")
        self.product(to, n.down, f"{prefix}w_down", "up", y, inner, "D", rows)
