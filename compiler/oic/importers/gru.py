"""Sequence to sequence by two gated recurrent units, as in g2p_en: the encoder's last state starts the decoder."""

from __future__ import annotations

from dataclasses import dataclass

from oic.diagnostics import fail
from oic.importers.checkpoint import Checkpoint
from oic.importers.decoder import Matrix
from oic.importers.family import FamilyGraph, Request
from oic.importers.text import BlockText, source
from oic.importers.writer import Writer

GRU = "gru_seq2seq"
SIGNS = (("enc_emb", "enc_w_ih", "dec_emb", "dec_w_hh", "fc_w"),)
SOURCE = 128  # tokens of a source at most, unless the importer is told otherwise


@dataclass(frozen=True)
class Gru:
    """All that tells one such model from another.

    inputs  width of the embeddings of source and output
    order   of the gates in weights and biases: r(eset), z (update), n(ew)
    """

    vocabs: tuple[int, int]
    inputs: tuple[int, int]
    units: int
    order: str

    def features(self) -> list[str]:
        """What it has, in words, for reports."""
        return [f"gated recurrent units, {self.units} wide", "a state of fixed size"]


def program(c: Checkpoint, request: Request) -> FamilyGraph:
    """Source: Kyubyong's `g2p_en`, `g2p.py`; the gates are PyTorch's."""
    room = SOURCE if request.context is None else request.context
    if room < 1 or request.prefill < 1:
        raise fail("import-config", f"{c.model.name}: a source of {room} tokens, {request.prefill} a step: 1 or more")
    request.alone(c)
    model = _read(c)
    graph = GruGraph(c=c, request=request, layers=1)
    text = graph.text(model, request.name or GRU, room)
    begin, end = c.size("decoder_start_token_id", default=2), c.size("eos_token_id", default=3)
    metadata = {"model_type": GRU, "decoder_start_token_id": begin, "eos_token_id": end}
    return FamilyGraph(text, model.features(), graph.weights, "^$", context=room, metadata=metadata)


def _read(c: Checkpoint) -> Gru:
    """Sizes from shapes; `OicError` where they are no such model's."""
    order = c.text("gate_order", default="rzn")
    if sorted(order) != sorted("rzn"):
        raise c.unsupported("gate_order", order, "'rzn' and its permutations")
    tables, hidden = (c.shape("enc_emb"), c.shape("dec_emb")), c.shape("enc_w_hh")
    if len(hidden) != 2 or any(len(table) != 2 for table in tables):
        shapes = {"enc_emb": tables[0], "dec_emb": tables[1], "enc_w_hh": hidden}
        message = f"{c.model.name}: shapes of no such model: " + ", ".join(f"{n} {list(s)}" for n, s in shapes.items())
        hint = "supported: embeddings [vocab, width], enc_w_hh [3 units, units]"
        raise fail("import-unsupported", message, hint=hint)
    return Gru((tables[0][0], tables[1][0]), (tables[0][1], tables[1][1]), hidden[1], order)


class GruGraph(Writer):
    """The graph while it is written."""

    def text(self, m: Gru, name: str, room: int) -> str:
        """The whole source; `room` tokens of a source at most."""
        encode = BlockText("block encode @entry", "Reads a source; the output begins anew.")
        encode.assign("x", "f32[M, E]")
        self.lookup(encode, "enc_emb", "source", "x", name="enc_embed", dims="read, E")
        encode.define("s", "f32[U]", "op fill(s, value=0.0)")
        self._steps(encode, m, "enc", "M", "E")
        encode.add("cache.write s >> h[0];")
        encode.add("cache.reset sources;")
        encode.add("cache.increment sources;")
        encode.add("return;")
        entry = BlockText("block entry", "Logits of what follows every token of the output.")
        entry.assign("s", "f32[U]")
        entry.add("cache.read h[sources - 1] >> s; // before encode, a step is refused here")
        entry.assign("y", "f32[N, I]")
        self.lookup(entry, "dec_emb", "tokens", "y", name="dec_embed", dims="vocab, I")
        entry.assign("states", "f32[N, U]")
        self._steps(entry, m, "dec", "N", "I")
        entry.add("cache.write s >> h[0];")
        self.product(entry, Matrix("fc_w", "fc_b"), "head", "states", "logits", "U", "vocab")
        entry.add("op argmax_axis(logits, axis=-1) >> next;")
        entry.add("return;")
        sections = {
            "sizes": [
                f"read = {m.vocabs[0]}; // tokens of a source",
                f"vocab = {m.vocabs[1]}; // tokens of an output",
                f"E = {m.inputs[0]}; // width of the encoder's embedding",
                f"I = {m.inputs[1]}; // of the decoder's",
                f"U = {m.units}; // units",
                f"S = {room}; // tokens of a source at most",
                f"P = {self.request.prefill}; // tokens of one step",
            ],
            "dynamic": ["source: i32[M] @max(M=S);", "tokens: i32[N] @max(N=P);"],
            "constant": self.constants,
            "persistent": [
                "sources: i32 @init(0); // 1 once one is encoded",
                "h(s): f32[U] @table @fixed(s=1); // what the encoder read, then what the decoder wrote",
            ],
            "volatile": ["logits: f32[N, vocab]; // row i follows tokens[i]", "next: i64[N];"],
        }
        return source(name, f"{GRU}: {'; '.join(m.features())}", sections, (encode, entry))

    def _steps(self, to: BlockText, m: Gru, part: str, count: str, width: str) -> None:
        """The state s goes on with every row of the embedded tokens; the decoder keeps all of them."""
        rows = "x" if part == "enc" else "y"
        inputs = self.constant(f"{part}_inputs", f"{part}_w_ih", f"3 * U, {width}")
        states = self.constant(f"{part}_states", f"{part}_w_hh", "3 * U, U")
        biases = [self.constant(f"{part}_bias_{n}", f"{part}_b_{n}", "3 * U") for n in ("ih", "hh")]
        body = BlockText("")
        body.assign("row", f"f32[1, {width}]")
        body.assign("v", f"f32[{width}]")
        body.add(f"op slice({rows}, axis=0, start=t, end=t + 1) >> row;")
        body.add(f"op reshape(row, shape=[{width}]) >> v;")
        order = "" if m.order == "rzn" else f', order="{m.order}"'
        body.add(f"op gru_cell(v, s, {inputs}, {states}, {', '.join(biases)}{order}) >> s;")
        if part == "dec":
            body.add("transfer s >> states[t];")
        to.nest(f"loop tokens_of_{'source' if part == 'enc' else 'output'} (t in 0..{count})", body.lines)
