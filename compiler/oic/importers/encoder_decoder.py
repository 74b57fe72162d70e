"""An encoder and a decoder that attends to what it gives, as data, whatever their family is called."""

from dataclasses import dataclass

from oic.importers.checkpoint import Checkpoint
from oic.importers.decoder import Matrix, Network, Norm, Places


@dataclass(frozen=True)
class AttentionWeights:
    """Projections of an attention, and the norm of its input or of the sum after it."""

    q: Matrix
    k: Matrix
    v: Matrix
    o: Matrix
    norm: Norm


@dataclass(frozen=True)
class RelativeBias:
    """A bias of scores by distance, [buckets, heads]; distances of `max_distance` and more share a bucket."""

    tensor: str
    buckets: int
    max_distance: int


@dataclass(frozen=True)
class Stack:
    """The layers of one side.

    embed           the embedding of its tokens
    cross           attention to what the encoder gives; None: this is the encoder
    network_norm    of the network, as that of an attention
    places, bias    how it knows positions
    norm_embedding  of the sum of embedding and positions
    final           of what the last layer gives
    """

    embed: str
    layers: int
    heads: int
    head_size: int
    inner: int
    attention: AttentionWeights
    network: Network
    network_norm: Norm
    cross: AttentionWeights | None = None
    places: Places | None = None
    bias: RelativeBias | None = None
    norm_embedding: Norm | None = None
    final: Norm | None = None


@dataclass(frozen=True)
class EncoderDecoder:
    """All that tells one encoder–decoder from another.

    context      tokens of a source, and of an output
    before       norms are of the inputs of sublayers; else of the sums after them
    scale        of the scores; None: 1 / √head
    embed        the embedding that the sides share, if they do
    head         gives the logits; it may be the embedding
    head_scale   of what the head reads
    logits_bias  name of what is added to the logits, [1, vocab]
    """

    family: str
    vocab: int
    width: int
    context: int
    embed: str
    encoder: Stack
    decoder: Stack
    before: bool
    head: Matrix
    scale: float | None = None
    embed_scale: float | None = None
    head_scale: float | None = None
    logits_bias: str | None = None

    @staticmethod
    def embedding(c: Checkpoint, prefix: str = "", side: str = "") -> str:
        """The name of the embedding that is shared; of a side, where another matrix is stored for it, of its own."""
        names = [f"{prefix}{part}.weight" for part in ("shared", "decoder.embed_tokens", "encoder.embed_tokens")]
        shared, own = next(filter(c.present, names), names[0]), f"{prefix}{side}.embed_tokens.weight"
        return shared if own == shared or not c.present(own) or c.equal(own, shared) else own

    @property
    def activation(self) -> str:
        return self.decoder.network.activation

    @property
    def most(self) -> int | None:
        """Tokens that it has learned positions for; None: there is no table of them."""
        places = [s.places for s in (self.encoder, self.decoder) if s.places is not None]
        return min((p.rows - p.offset for p in places), default=None)

    def features(self) -> list[str]:
        """What it has, in words, for reports."""
        e, d = self.encoder, self.decoder
        found = [
            f"{e.layers} encoder and {d.layers} decoder layers",
            f"{d.heads} head{'s' * (d.heads > 1)} of {d.head_size}",
            f"{e.attention.norm.kind} norm {'before' if self.before else 'after'} sublayers",
            f"{'gated ' if d.network.gate else ''}{self.activation}",
            "relative positions" if d.bias else "learned positions" if d.places else "",
            "no scaling of scores" if self.scale == 1.0 else "",
            "biases" if d.attention.q.bias else "",
            "embedding scaled" if self.embed_scale else "",
            "tied head" if self.head.tensor == self.embed else "",
        ]
        return [text for text in found if text]
