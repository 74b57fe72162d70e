"""A decoder-only transformer as data, whatever its family is called."""

from collections.abc import Iterable
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


@dataclass(frozen=True)
class Network:
    """A feed-forward network: down(activation(up(x))), or down(activation(gate(x)) * up(x)).

    Where up is gate, one tensor has both, and gate comes first.
    """

    up: Matrix
    down: Matrix
    activation: str
    gate: Matrix | None = None


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
    """What may differ from layer to layer: how far back attention sees (None: to the start), and rotary positions."""

    window: int | None = None
    rope: RotaryEmbedding | None = None

    @property
    def most(self) -> int | None:
        """Tokens of a text that has these frequencies, at most; None: any number."""
        return self.rope.original if self.rope and not self.rope.long else None

    @property
    def name(self) -> str:
        """What the graph calls a layer of this kind."""
        reach = "full" if self.window is None else "sliding"
        return reach if self.rope is not None else f"{reach}_without_rope"


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
    enter/leave  between the embedding, of `embed_width`, and the layers, and between these and the head
    head         gives the logits; it may be the embedding
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
    o: Matrix
    network: Network
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

    @staticmethod
    def room(said: int, layers: Iterable[Layer]) -> int:
        """The context, where nobody asks for another: what is said, or what frequencies of short texts are for."""
        return min([said, *filter(None, (layer.most for layer in layers))])

    @property
    def activation(self) -> str:
        return self.network.activation

    @property
    def most(self) -> int | None:
        """Tokens that it has positions for, by their table or by frequencies of short texts; None: any number."""
        learned = self.positions.rows - self.positions.offset if self.positions else None
        return min(filter(None, (learned, *(layer.most for layer in self.layers))), default=None)

    def features(self) -> list[str]:
        """What it has, in words, for reports."""
        kinds = list(dict.fromkeys(layer.name for layer in self.layers))
        norms = {
            "before": (self.before_attention, self.before_network),
            "after": (self.after_attention, self.after_network),
        }
        placed = " and ".join(place for place, found in norms.items() if any(found))
        norm = self.final or self.before_network or self.after_network
        found = [
            f"{self.heads} head{'s' * (self.heads > 1)}"
            + (f" over {self.kv_heads}" if self.kv_heads != self.heads else ""),
            f"{norm.kind} norm {placed} sublayers" + (" (1 + weight)" if norm.plus_one else "") if norm else "no norms",
            f"{'gated ' if self.network.gate else ''}{self.activation}",
            next((str(layer.rope) for layer in self.layers if layer.rope), "no rope"),
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
