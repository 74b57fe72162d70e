"""Tiny random encoder–decoders made by transformers: each feature alone and as the families combine them.

Imported without a hand edit; greedy ids equal, logits within 1e-4 of the library's; an output fed at once and one by one,
and a row of a ragged batch and its own run, are equal in all bits.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oic
from oic.importers import import_checkpoint

transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")

WITHIN = 1e-4
SOURCES = ([3, 17, 5, 40, 8, 21, 60, 1], [9, 9, 30])
NEW = 16

T5: dict[str, Any] = {
    "vocab_size": 70, "d_model": 24, "d_kv": 10, "d_ff": 40, "num_layers": 2, "num_heads": 3, "initializer_factor": 1.0,
    "decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0,
}  # fmt: skip
BART: dict[str, Any] = {
    "vocab_size": 70, "d_model": 24, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 3,
    "decoder_attention_heads": 3, "encoder_ffn_dim": 40, "decoder_ffn_dim": 40, "max_position_embeddings": 32,
    "init_std": 0.3, "decoder_start_token_id": 2, "forced_eos_token_id": None,
}  # fmt: skip
OTHER = {"encoder_layers": 3, "decoder_layers": 1, "encoder_attention_heads": 2, "encoder_ffn_dim": 30}

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "t5": ("T5", {}),
    "t5-unscaled": ("T5", {"tie_word_embeddings": False}),
    "t5-v1.1": ("T5", {"tie_word_embeddings": False, "feed_forward_proj": "gated-gelu"}),
    "t5-gated-silu": ("T5", {"feed_forward_proj": "gated-silu"}),
    "t5-gelu": ("T5", {"feed_forward_proj": "gelu"}),
    "t5-activation-said-again": ("T5", {"dense_act_fn": "gelu"}),
    "t5-few-buckets": ("T5", {"relative_attention_num_buckets": 8, "relative_attention_max_distance": 9}),
    "t5-more-decoder": ("T5", {"num_decoder_layers": 3}),
    "byt5": ("T5", {"num_layers": 4, "num_decoder_layers": 1, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
    "mt5": ("MT5", {}),
    "mt5-relu": ("MT5", {"feed_forward_proj": "relu"}),
    "bart": ("Bart", {}),
    "bart-scaled": ("Bart", {"scale_embedding": True}),
    "bart-sides-differ": ("Bart", OTHER),
    "bart-nothing-tied": ("Bart", {"tie_word_embeddings": False}),
    "bart-relu": ("Bart", {"activation_function": "relu"}),
    "mbart": ("MBart", {"scale_embedding": True}),
    "mbart-sides-differ": ("MBart", OTHER),
}  # fmt: skip
HEADS = {"t5-v1.1", "byt5", "mt5"}
"""Those whose head is a matrix of its own."""


def made(case: str, folder: Path, dtype: str = "float32") -> Any:
    """A random model, saved in `dtype`; its weights are what is stored."""
    family, settings = CASES[case]
    config = getattr(transformers, f"{family}Config")(**{**(T5 if "T5" in family else BART), **settings})
    torch.manual_seed(5)
    model = getattr(transformers, f"{family}ForConditionalGeneration")(config).eval()
    if case in HEADS:
        model.lm_head.weight = torch.nn.Parameter(torch.randn_like(model.shared.weight))
    with torch.no_grad():
        for name, weights in [*model.named_parameters(), *model.named_buffers()]:
            if weights.ndim == 1 or name == "final_logits_bias" or "relative_attention_bias" in name:
                weights.add_(0.3 * torch.randn_like(weights))  # what a mistake would show in
            weights.copy_(weights.to(getattr(torch, dtype)))
    model.to(getattr(torch, dtype)).save_pretrained(folder)
    return model.double()


def logits_of(model: Any, source: list[int], fed: list[int]) -> np.ndarray:
    with torch.no_grad():
        return model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([fed])).logits[0].numpy()


def encode(ex: oic.Executor, *sources: list[int]) -> None:
    width = max(map(len, sources))
    rows = [[*s, *[4] * (width - len(s))] for s in sources]
    ex.step("encode", source=np.array(rows, np.int32), lengths=np.array([len(s) for s in sources], np.int32))


def fed(ex: oic.Executor, rows: list[list[int]]) -> np.ndarray:
    return ex.step(tokens=np.array(rows, np.int32))["logits"]


@pytest.mark.parametrize("case", CASES)
def test_a_family_equals_transformers(case: str, tmp_path: Path) -> None:
    model = made(case, tmp_path / "checkpoint")
    imported = import_checkpoint(tmp_path / "checkpoint", tmp_path / "out", context=32)
    graph, weights = oic.parse_file(imported.graph), oic.Model.open(imported.model)
    start = T5["decoder_start_token_id"] if "T5" in CASES[case][0] else BART["decoder_start_token_id"]
    own = []
    with oic.Synthesizer(graph, weights, sizes={"B": 2}).build().make_executor() as ex:
        for source in SOURCES:
            encode(ex, source, source)
            ids, single = [start], []
            for _ in range(NEW):
                single.append(fed(ex, [ids[-1:]] * 2)[0, 0])
                ids.append(int(single[-1].argmax()))
            wanted = logits_of(model, source, ids[:-1])
            assert ids[1:] == wanted.argmax(-1).tolist()
            assert float(np.abs(np.stack(single) - wanted).max()) <= WITHIN
            own.append((ids, np.stack(single)))
        encode(ex, *SOURCES)
        both = fed(ex, [ids[:-1] for ids, _ in own])
        for row, (_, alone) in zip(both, own, strict=True):
            assert row.tobytes() == alone.tobytes()


@pytest.mark.parametrize("case", ["t5-v1.1", "mbart"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_weights_are_read_as_they_are_stored(case: str, dtype: str, tmp_path: Path) -> None:
    model = made(case, tmp_path / "checkpoint", dtype)
    imported = import_checkpoint(tmp_path / "checkpoint", tmp_path / "out", context=32)
    assert {"float16": "f16[", "bfloat16": "bf16["}[dtype] in imported.graph.read_text()
    with oic.Simulator(oic.parse_file(imported.graph), oic.Model.open(imported.model)).make_executor() as ex:
        encode(ex, SOURCES[0])
        assert float(np.abs(fed(ex, [[2, 5, 9]])[0] - logits_of(model, SOURCES[0], [2, 5, 9])).max()) <= WITHIN


def test_generation_equals_the_librarys(tmp_path: Path) -> None:
    """From the start token, the forced one first, to the end token: ids of `generate`."""
    model = made("bart", tmp_path / "checkpoint")
    settings = {"forced_bos_token_id": 11, "eos_token_id": None, "forced_eos_token_id": None}
    model.generation_config.update(**settings)
    model.generation_config.save_pretrained(tmp_path / "checkpoint")
    with oic.Generator(tmp_path / "checkpoint") as generator:
        for source in SOURCES:
            wanted = model.generate(torch.tensor([source]), max_new_tokens=12, do_sample=False, num_beams=1)[0].tolist()
            found = [t.id for t in generator.stream(source, 12)]
            assert [2, *found] == wanted and found[0] == 11
