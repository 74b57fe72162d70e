"""Sequence to sequence by two gated recurrent units, as in g2p_en: the encoder's last state starts the decoder."""

from oic.diagnostics import fail
from oic.importers.checkpoint import Checkpoint
from oic.importers.decoder import Matrix
from oic.importers.family import FamilyGraph, Request
from oic.importers.graph_template import graph_of

GRU = "gru_seq2seq"
SIGNS = (("enc_emb", "enc_w_ih", "dec_emb", "dec_w_hh", "fc_w"),)
SOURCE = 128  # tokens of a source at most, unless the importer is told otherwise


def program(c: Checkpoint, request: Request) -> FamilyGraph:
    """Source: Kyubyong's `g2p_en`, `g2p.py`; the gates, r(eset), z (update) and n(ew), are PyTorch's."""
    room = SOURCE if request.context is None else request.context
    if room < 1 or request.prefill < 1:
        raise fail("import-config", f"{c.model.name}: a source of {room} tokens, {request.prefill} a step: 1 or more")
    request.refuse(c, cache=True, batch=True)
    order = c.text("gate_order", default="rzn")
    c.demand(sorted(order) == sorted("rzn"), "gate_order", order, "'rzn' and its permutations")
    read, written, hidden = (c.shape(name) for name in ("enc_emb", "dec_emb", "enc_w_hh"))
    if not len(read) == len(written) == len(hidden) == 2:
        raise c.misshapen("such model", {"enc_emb": read, "dec_emb": written, "enc_w_hh": hidden},
                          "embeddings [vocab, width], enc_w_hh [3 units, units]")  # fmt: skip
    begin, end = c.size("decoder_start_token_id", default=2), c.size("eos_token_id", default=3)
    return graph_of(
        GRU, c, request, [f"gated recurrent units, {hidden[1]} wide", "a state of fixed size"],
        {"model_type": GRU, "decoder_start_token_id": begin, "eos_token_id": end}, context=room,
        read=read[0], read_width=read[1], vocab=written[0], width=written[1], units=hidden[1],
        head=Matrix("fc_w", "fc_b"), order="" if order == "rzn" else f', order="{order}"',
    )  # fmt: skip
