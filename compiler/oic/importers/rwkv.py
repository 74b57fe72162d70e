"""RWKV-5 under the names of its author's code: a state of fixed size, whatever has been read."""

from __future__ import annotations

from dataclasses import dataclass

from oic.diagnostics import fail
from oic.importers.checkpoint import Checkpoint
from oic.importers.decoder import Matrix, Norm
from oic.importers.family import FamilyGraph, Request
from oic.importers.text import BlockText, number, source
from oic.importers.token_graph import TokenGraph

RWKV = "rwkv5"
SIGNS = (("emb.weight", "blocks.0.att.time_faaaa", "blocks.0.att.time_mix_g"),)
LAYER = "blocks.{l}."


@dataclass(frozen=True)
class Rwkv:
    """All that tells one RWKV-5 from another.

    decays   the weights are factors of the state; else their double exponential is, exp(-exp(w))
    ln_eps   of the norm of every head's result
    """

    vocab: int
    width: int
    heads: int
    size: int
    inner: int
    layers: int
    decays: bool
    ln_eps: float

    def features(self) -> list[str]:
        """What it has, in words, for reports."""
        return [f"{self.heads} heads of {self.size}", "a state of fixed size", "layer norm before sublayers"]


def program(c: Checkpoint, request: Request) -> FamilyGraph:
    """Source: BlinkDL's `RWKV-LM`, version 5.2, `rwkv_v5_demo.py`; `rwkv.cpp` for files whose decays are factors."""
    if request.context is not None or request.prefill < 1:
        raise fail("import-config", f"{c.model.name}: a state of fixed size has no context; steps take 1 token or more")
    request.alone(c)
    model = _read(c)
    graph = RwkvGraph(c=c, request=request, layers=model.layers, model=model)
    text = graph.text(request.name or RWKV)
    metadata = {"model_type": RWKV, "vocab_size": model.vocab}
    return FamilyGraph(text, model.features(), graph.weights, "^$", metadata=metadata)


def _read(c: Checkpoint) -> Rwkv:
    embed, key = c.shape("emb.weight"), c.shape(LAYER + "ffn.key.weight")
    decay, bonus = c.shape(LAYER + "att.time_decay"), c.shape(LAYER + "att.time_faaaa")
    if len(embed) != 2 or len(key) != 2 or len(decay) not in (2, 3) or decay[2:] not in ((), (1,)) or decay[1] < 2:
        shapes = {"emb.weight": embed, "ffn.key.weight": key, "att.time_decay": decay}
        message = f"{c.model.name}: shapes of no RWKV-5.2: " + ", ".join(f"{n} {list(s)}" for n, s in shapes.items())
        raise fail("import-unsupported", message, hint="supported: time_decay [heads, size] or [heads, size, 1]")
    if bonus[:2] != decay[:2]:
        raise c.unsupported("att.time_faaaa", f"of shape {list(bonus)}", f"{list(decay)}, as 'att.time_decay'")
    count = c.count(LAYER + "att.time_decay")
    # As the author's code has it for heads of 64, which it divides by 8 before a norm with 1e-5.
    usual = 64e-5 if decay[1] == 64 else 1e-5
    factors = all(_within(c, f"blocks.{i}.att.time_decay") for i in range(count))
    return Rwkv(embed[0], embed[1], decay[0], decay[1], key[0], count, factors, c.positive("ln_x_eps", default=usual))


def _within(c: Checkpoint, name: str) -> bool:
    """All values are factors between 0 and 1; what is exponentiated twice is below 0 somewhere."""
    values = c.model.tensor(name)
    return bool((values > 0).all() and (values < 1).all())


@dataclass(kw_only=True)
class RwkvGraph(TokenGraph):
    """The graph while it is written."""

    model: Rwkv

    def text(self, name: str) -> str:
        """The whole source."""
        m = self.model
        blocks = [*self.entries(), self._decoder()]
        sections = {
            "sizes": [
                f"vocab = {m.vocab};",
                f"D = {m.width}; // width",
                f"H = {m.heads}; // heads",
                f"Dh = {m.size}; // size of a head",
                f"F = {m.inner}; // width inside channel mixing",
                f"L = {m.layers}; // layers",
                f"P = {self.request.prefill}; // tokens of one step",
            ],
            "dynamic": ["tokens: i32[N] @max(N=P);"],
            "constant": [*self.constants, "ones: f32[Dh] @init(1.0);"],
            "persistent": [
                "// What is left of everything read: the last inputs of both halves of a layer, and a matrix a head.",
                "time_before(l): f32[1, D] @table @fixed(l=L);",
                "channel_before(l): f32[1, D] @table @fixed(l=L);",
                "S(l): f32[H, Dh, Dh] @table @fixed(l=L);",
            ],
            "volatile": self.outputs(),
        }
        return source(name, f"{RWKV}: {'; '.join(m.features())}", sections, blocks)

    # -- blocks

    def embedding(self, to: BlockText) -> None:
        self.lookup(to, "emb.weight", "tokens", "x")

    def head(self, to: BlockText, x: str, logits: str) -> None:
        self.product(to, Matrix("head.weight"), "head", x, logits, "D", "vocab")

    def _decoder(self) -> BlockText:
        block = BlockText("block decoder", "From tokens to what the head reads, x; the state goes on.")
        self.embedding(block)
        self._norm(block, "norm_embed", "blocks.0.ln0", "x", "x")
        layer = BlockText("")
        self._time(layer)
        self._channel(layer)
        block.nest("loop layers (l in 0..L)", layer.lines)
        self._norm(block, "norm_final", "ln_out", "x", "x")
        block.add("return;")
        return block

    def _time(self, to: BlockText) -> None:
        """x += time mixing of x."""
        to.note("Time mixing: what is read lies between this token and the one before, a share for each use.")
        to.assign("h", "f32[N, D]")
        self._norm(to, "norm_time", LAYER + "ln1", "x", "h")
        self._shift(to, "time_before")
        for name, weights in (("r", "receptance"), ("k", "key"), ("v", "value"), ("g", "gate")):
            self._mixed(to, "att", name)
            self._product(to, f"att.{weights}", f"w{name}", f"x{name}", name, "D", "H * Dh")
        to.add("op silu(g) >> g;")
        self._recurrence(to)
        to.note("Each head's result has a norm of its own.")
        to.add("op layer_norm(ys, ones, eps=" + number(self.model.ln_eps) + ") >> ys;")
        to.define("y", "f32[N, H * Dh]", "op reshape(ys, shape=[N, H * Dh])")
        gain = self.constant("norm_heads", LAYER + "att.ln_x.weight", "H * Dh")
        bias = self.constant("norm_heads_bias", LAYER + "att.ln_x.bias", "H * Dh")
        to.add(f"op mul(y, {gain}) >> y;")
        to.add(f"op add(y, {bias}) >> y;")
        to.add("op mul(y, g) >> y;")
        self._product(to, "att.output", "wo", "y", "o", "H * Dh", "D")
        to.add("op add(x, o) >> x;")

    def _recurrence(self, to: BlockText) -> None:
        """ys [N, H, 1, Dh] of r, k and v, token by token."""
        to.note("y = r·(S + u·kᵀv), and then S = w·S + kᵀv, for every head.")
        w, u = self._by_key(to, "w", "decay", "att.time_decay"), self._by_key(to, "u", "bonus", "att.time_faaaa")
        if not self.model.decays:
            to.define("w", "f32[H, Dh, 1]", f"op exp({w})")
            to.add("op neg(w) >> w;")
            to.add("op exp(w) >> w;")
            w = "w"
        to.define("s", "f32[H, Dh, Dh]", "cache.read S[l]")
        to.assign("ys", "f32[N, H, 1, Dh]")
        body = BlockText("")
        for name, dims in (("r", "H, 1, Dh"), ("k", "H, Dh, 1"), ("v", "H, 1, Dh")):
            body.assign(f"{name}_row", "f32[1, H * Dh]")
            body.assign(f"{name}h", f"f32[{dims}]")
            body.add(f"op slice({name}, axis=0, start=t, end=t + 1) >> {name}_row;")
            body.add(f"op reshape({name}_row, shape=[{dims}]) >> {name}h;")
        for name, dims in (("kv", "H, Dh, Dh"), ("seen", "H, Dh, Dh"), ("yh", "H, 1, Dh")):
            body.assign(name, f"f32[{dims}]")
        body.add("op mul(kh, vh) >> kv;")
        body.add(f"op fma({u}, kv, s) >> seen;")
        body.add("op matmul(rh, seen) >> yh;")
        body.add("transfer yh >> ys[t];")
        body.add(f"op fma(s, {w}, kv) >> s;")
        to.nest("loop tokens_of_step (t in 0..N)", body.lines)
        to.add("cache.write s >> S[l];")

    def _by_key(self, to: BlockText, short: str, name: str, tensor: str) -> str:
        """A number for every key of every head, [H, Dh, 1]; some files store them as [H, Dh]."""
        if len(self.c.shape(LAYER + tensor)) == 3:
            return self.constant(name, LAYER + tensor, "H, Dh, 1")
        stored = self.constant(name, LAYER + tensor, "H, Dh")
        to.define(short, "f32[H, Dh, 1]", f"op reshape({stored}, shape=[H, Dh, 1])")
        return short

    def _channel(self, to: BlockText) -> None:
        """x += channel mixing of x."""
        to.note("Channel mixing.")
        self._norm(to, "norm_channel", LAYER + "ln2", "x", "h")
        self._shift(to, "channel_before")
        for name in "kr":
            self._mixed(to, "ffn", name)
        self._product(to, "ffn.key", "w_up", "xk", "up", "D", "F")
        to.add("op relu(up) >> up;")
        to.add("op mul(up, up) >> up;")
        self._product(to, "ffn.value", "w_down", "up", "o", "F", "D")
        self._product(to, "ffn.receptance", "w_gate", "xr", "gate", "D", "D")
        to.add("op sigmoid(gate) >> gate;")
        to.add("op mul(o, gate) >> o;")
        to.add("op add(x, o) >> x;")

    def _shift(self, to: BlockText, table: str) -> None:
        """before [N, D]: row i is h of the token before token i; change = h - before."""
        to.define("first", "f32[1, D]", f"cache.read {table}[l]")
        to.define("others", "f32[N - 1, D]", "op slice(h, axis=0, start=0, end=N - 1)")
        to.define("before", "f32[N, D]", "op concat(first, others, axis=0)")
        to.define("newest", "f32[1, D]", "op slice(h, axis=0, start=N - 1, end=N)")
        to.add(f"cache.write newest >> {table}[l];")
        to.define("change", "f32[N, D]", "op sub(h, before)")

    def _mixed(self, to: BlockText, part: str, name: str) -> None:
        """x{name} = before + share · change."""
        tensor = f"{LAYER}{part}.time_mix_{name}"
        shape = self.c.shape(tensor)
        dims = ", ".join(["1"] * (len(shape) - 1) + ["D"])
        share = self.constant(f"{'time' if part == 'att' else 'channel'}_mix_{name}", tensor, dims)
        if len(shape) != 1:
            to.define("share", "f32[D]", f"op reshape({share}, shape=[D])")
            share = "share"
        to.define(f"x{name}", "f32[N, D]", f"op fma(change, {share}, before)")

    def _product(self, to: BlockText, tensor: str, name: str, x: str, y: str, inputs: str, outputs: str) -> None:
        self.product(to, Matrix(f"{LAYER}{tensor}.weight"), name, x, y, inputs, outputs, "N")

    def _norm(self, to: BlockText, name: str, tensor: str, x: str, y: str) -> None:
        self.norm(to, Norm(f"{tensor}.weight", "layer", 1e-5, f"{tensor}.bias"), name, x, y)
