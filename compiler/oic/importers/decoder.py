"""A decoder-only transformer as data, whatever its family is called."""

from dataclasses import dataclass
from typing import ClassVar

from oic.importers.checkpoint import Checkpoint


@dataclass(frozen=True)
class Matrix:
    """A projection.

    tensor      name of the weights, `{l}` for the layer: [out, in], or [in, out] if `by_columns`
    bias        name of the bias, or None
    """

    tensor: str
    bias: str | None = None
    by_columns: bool = False

    @staticmethod
    def of(c: Checkpoint, name: str) -> "Matrix":
        """That of a module of PyTorch, which may have a bias."""
        return Matrix(f"{name}.weight", c.there(f"{name}.bias"))


def head(c: Checkpoint, name: str, embed: str, *, default: bool) -> Matrix:
    """The matrix that gives the logits; it may be the embedding, whose copy some checkpoints store too.

    name      of its module
    default   the embedding is the head where the configuration says nothing
    A head that is stored and is another matrix is the head, whatever the configuration says, as in transformers 5.
    """
    tied, matrix = c.flag("tie_word_embeddings", default=default), Matrix.of(c, name)
    copied = tied and (not c.model.has(matrix.tensor) or c.equal(matrix.tensor, embed))
    return Matrix(embed, matrix.bias) if copied else matrix


@dataclass(frozen=True)
class Norm:
    """A normalisation over the last axis.

    tensor     the factors; None: all are 1
    kind       'rms' or 'layer'
    plus_one   the factor is 1 + weight
    by_head    factors [heads, size of a head] of a norm over each head
    """

    tensor: str | None
    kind: str
    eps: float
    bias: str | None = None
    plus_one: bool = False
    by_head: bool = False

    @staticmethod
    def layer(name: str, eps: float) -> "Norm":
        """The layer norm of a module, with its bias."""
        return Norm(f"{name}.weight", "layer", eps, f"{name}.bias")


@dataclass(frozen=True)
class Network:
    """A feed-forward network: down(activation(up(x))), or down(activation(gate(x)) * up(x)).

    Where up is gate, one tensor has both, and gate comes first.
    gate_scale   of what the activation takes, and `scale` of all that the network gives
    """

    up: Matrix
    down: Matrix
    activation: str
    gate: Matrix | None = None
    gate_scale: float | None = None
    scale: float | None = None

    @property
    def matrices(self) -> tuple[Matrix | None, ...]:
        return self.up, self.gate, self.down


@dataclass(frozen=True)
class TimeFilter:
    """Of each channel over time: filters [channels, 1, taps], or [channels, taps] if `flat`."""

    filter: Matrix
    channels: int
    taps: int
    flat: bool = False

    @staticmethod
    def of(c: Checkpoint, name: str, key: str) -> "TimeFilter":
        """That of a module; `key` says its taps too."""
        filter = Matrix.of(c, name)
        shape = c.shape(filter.tensor)
        if len(shape) not in (2, 3) or shape[-1] < 2:
            raise c.misshapen("convolution over time", {filter.tensor: shape}, "[channels, 1, taps], of 2 taps or more")
        c.demand(c.value(key) in (None, shape[-1]), key, c.value(key), f"{shape[-1]}, as the weights say")
        return TimeFilter(filter, shape[0], shape[-1], len(shape) == 2)


@dataclass(frozen=True)
class ShortConvolution:
    """A gated convolution, out(c * convolution(b * x)), where `into` gives b, c and x."""

    into: Matrix
    convolution: TimeFilter
    out: Matrix

    def __str__(self) -> str:
        return f"gated convolutions of {self.convolution.taps} taps"


@dataclass(frozen=True)
class Scan:
    """A state space of heads (Mamba-2): `into` gives gates, channels, what is written and read, and steps in time.

    Source: Dao and Gu, Transformers are SSMs, 2024.
    rates         of decay, one a head, or their logarithms with the other sign (`logs`); these and `skip` are
                  [heads, 1] if `columns`
    steps_bias    of steps in time
    skip          of channels past the state
    norm          of gated results, each of `norm_groups` parts by itself; before the gate if `norm_first`
    scales        of what `into` gives, by its five parts; `scale_in` and `scale_out` of what it takes and gives
    """

    into: Matrix
    convolution: TimeFilter
    out: Matrix
    heads: int
    head_size: int
    groups: int
    state: int
    rates: str
    steps_bias: str
    skip: str
    activation: str
    logs: bool = True
    columns: bool = False
    norm: Norm | None = None
    norm_groups: int = 1
    norm_first: bool = False
    scale_in: float | None = None
    scale_out: float | None = None
    scales: tuple[float, ...] | None = None

    @property
    def inner(self) -> int:
        return self.heads * self.head_size

    def scale_vector(self) -> list[float]:
        """What `into` gives times this."""
        sizes = self.inner, self.inner, self.groups * self.state, self.groups * self.state, self.heads
        return [scale for scale, size in zip(self.scales or (), sizes, strict=True) for _ in range(size)]

    def __str__(self) -> str:
        heads = f"{self.heads} head{'s' * (self.heads > 1)} of {self.head_size}"
        return f"{heads} with states of {self.state} for each channel"


@dataclass(frozen=True)
class Experts:
    """A mixture of networks: of `count` alike each token takes those with the largest scores.

    The names of their matrices have `{e}`, or these are stacked, [count, out, in].  Σ share · network(x), in the order
    of the scores.

    network      each of them, `inner` wide
    taken        networks of a token
    router       gives the scores, whose softmax, or sigmoids if `sigmoid`, the shares are
    bias         added to these where the largest are chosen, and not to the shares: [count], or [1, count]
    whole        the shares of a token add up to 1: they are divided by their total, or by `least` if it is less, and
                 `plus` more
    scale        of the shares
    shared       a network that all tokens take besides, `shared_inner` wide
    shared_gate  gives what that is multiplied by, before its sigmoid
    """

    network: Network
    inner: int
    count: int
    taken: int
    router: Matrix
    whole: bool
    sigmoid: bool = False
    bias: str | None = None
    least: float | None = None
    plus: float | None = None
    scale: float | None = None
    shared: Network | None = None
    shared_inner: int = 0
    shared_gate: Matrix | None = None


@dataclass(frozen=True)
class Places:
    """A table of learned positions with so many rows, of which row `offset` is for the first token."""

    tensor: str
    rows: int
    offset: int = 0


@dataclass(frozen=True)
class RotaryEmbedding:
    """Rotary positions; `freqs` [dims / 2] where they are not powers of the base.

    strength   of queries and of keys that were turned
    original   tokens up to which, or above which if `long`, a text has these frequencies; None: whatever its length
    MOST       elements of a head that are turned, at most: far above any model's, and a table of them is small
    """

    MOST: ClassVar[int] = 1 << 16
    base: float
    dims: int
    style: str = "half"
    freqs: tuple[float, ...] | None = None
    strength: float = 1.0
    original: int | None = None
    long: bool = False

    def __str__(self) -> str:
        reach = f" of texts {'beyond' if self.long else 'up to'} {self.original} tokens" if self.original else ""
        return f"rope{reach}"


@dataclass(frozen=True)
class Layer:
    """What may differ from layer to layer: what mixes tokens, side by side if several do; of attention, how far back it
    sees (None: to the start), and rotary positions; of a model with experts, that it has one network (`dense`)."""

    window: int | None = None
    rope: RotaryEmbedding | None = None
    mixers: tuple[str, ...] = ("attention",)
    dense: bool = False

    @property
    def most(self) -> int | None:
        """Tokens of a text that has these frequencies, at most; None: any number."""
        return self.rope.original if self.rope and not self.rope.long else None

    @property
    def name(self) -> str:
        """What the graph calls a layer of this kind."""
        reach = "full" if self.window is None else "sliding"
        named = (reach, *["without_rope"] * (self.rope is None)) if "attention" in self.mixers else self.mixers
        return "_".join((*named, *["dense"] * self.dense))


@dataclass(frozen=True)
class Decoder:
    """All that tells one decoder from another.

    qkv          one matrix for q, k and v: `order` 'parts' (all of q, then k, v) or 'heads' (q, k, v of each head)
    clip         q, k and v are from -clip to clip
    q_norm       over each head, behind rotary positions if `norm_turned`, or over the whole projection if `norm_whole`
    before/after norms around the sublayers; None: there is none; those after are of the sum if `norm_sums`
    parallel     both sublayers read the same input, and their results are added together; normed alike where nothing is
                 said of the network's
    residual_scale  of what a sublayer adds
    scale        of the scores; None: 1 / √head
    by_layer     the scores of layer l are divided by l + 1 too
    softcap      c·tanh(s / c) of the scores, final_softcap of the logits, which are divided by logits_divisor or times
                 logits_scale before
    positions    that are learned
    scale_in, scale_out   of what attention takes and gives
    convolution, scan     what layers have that mix tokens so
    enter/leave  between the embedding, of `embed_width`, and the layers, and between these and the head
    head         gives the logits; it may be the embedding
    network      of the layers without a mixture of them; `experts`, of the others
    """

    family: str
    vocab: int
    width: int
    heads: int
    kv_heads: int
    head_size: int
    inner: int
    context: int
    layers: tuple[Layer, ...]
    embed: str
    o: Matrix | None
    network: Network | None
    final: Norm | None
    head: Matrix
    q: Matrix | None = None
    k: Matrix | None = None
    v: Matrix | None = None
    qkv: Matrix | None = None
    order: str = "parts"
    q_norm: Norm | None = None
    k_norm: Norm | None = None
    norm_whole: bool = False
    norm_turned: bool = False
    norm_sums: bool = False
    clip: float | None = None
    before_attention: Norm | None = None
    after_attention: Norm | None = None
    before_network: Norm | None = None
    after_network: Norm | None = None
    parallel: bool = False
    residual_scale: float | None = None
    scale: float | None = None
    by_layer: bool = False
    softcap: float | None = None
    final_softcap: float | None = None
    logits_divisor: float | None = None
    logits_scale: float | None = None
    positions: Places | None = None
    embed_scale: float | None = None
    embed_width: int | None = None
    enter: Matrix | None = None
    leave: Matrix | None = None
    scale_in: float | None = None
    scale_out: float | None = None
    convolution: ShortConvolution | None = None
    scan: Scan | None = None
    experts: Experts | None = None

    @property
    def activation(self) -> str:
        return next((part.activation for part in (*self.networks, self.scan) if part), "linear")

    @property
    def networks(self) -> list[Network]:
        """Those of its layers, the shared one of a mixture left out."""
        return [network for network in (self.network, self.experts and self.experts.network) if network]

    def having(self, mixer: str) -> int:
        """How many layers have it."""
        return sum(mixer in layer.mixers for layer in self.layers)

    @property
    def most(self) -> int | None:
        """Tokens that it has positions for, by their table or by frequencies of short texts; None: any number."""
        learned = self.positions.rows - self.positions.offset if self.positions else None
        return min(filter(None, (learned, *(layer.most for layer in self.layers))), default=None)

    def features(self) -> list[str]:
        """What it has, in words, for reports."""
        kinds = list(dict.fromkeys(layer.name for layer in self.layers))
        after = self.after_attention or self.after_network
        places = ("before", self.before_attention or self.before_network), ("after", after)
        placed = " and ".join(place for place, norm in places if norm)
        norm = self.final or self.before_network or self.after_network
        gated, attends = any(network.gate for network in self.networks), self.having("attention")
        found = [
            (f"{self.heads} head{'s' * (self.heads > 1)}"
             + (f" over {self.kv_heads}" if self.kv_heads != self.heads else "")) if attends else "",
            *map(str, filter(None, (self.convolution, self.scan))),
            f"{norm.kind} norm {placed} sublayers" + (" (1 + weight)" if norm.plus_one else "") if norm else "no norms",
            f"{'gated ' if gated else ''}{self.activation}",
            f"{self.experts.taken} of {self.experts.count} experts" if self.experts else "",
            "shared expert" if self.experts and self.experts.shared else "",
            next((str(layer.rope) for layer in self.layers if layer.rope), "no rope" if attends else ""),
            "learned positions" if self.positions else "",
            "layers " + ", ".join(kinds) if len(kinds) > 1 or self.layers[0].window else "",
            "norms on q and k" if self.q_norm else "",
            "q, k, v clipped" if self.clip else "",
            "biases on q, k, v" if any(m and m.bias for m in (self.qkv, self.q)) else "",
            "scores divided by the layer" if self.by_layer else "",
            "parallel residual" if self.parallel else "",
            "sublayers scaled" if self.residual_scale else "",
            "logits scaled" if self.logits_divisor or self.logits_scale else "",
            "soft caps" if self.softcap or self.final_softcap else "",
            "embedding scaled" if self.embed_scale else "",
            "tied head" if self.head.tensor == self.embed else "",
        ]
        return [text for text in found if text]
