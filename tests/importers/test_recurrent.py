"""RWKV-5 and sequence to sequence by gated recurrent units: against NumPy, against references, token by token and at once."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oic
from importers.checkpoints import HYBRIDS, checkpoint
from importers.test_sources import refused
from model.samples import write_safetensors
from oic.dtypes import Array
from oic.importers import decoder_graph, import_checkpoint
from paths import ROOT, models_dir, needs_models

D, H, DH, F, LAYERS, VOCAB = 12, 3, 4, 20, 2, 17
Tensors = dict[str, Array]


def rwkv_weights(raw: bool) -> Tensors:
    """A small random RWKV-5; `raw`: in the author's shapes, decays before their double exponential."""
    rng = np.random.default_rng(4)
    found = {"emb.weight": rng.standard_normal((VOCAB, D)), "head.weight": rng.standard_normal((VOCAB, D))}
    norms = ["ln_out", "blocks.0.ln0"] + [f"blocks.{i}.{n}" for i in range(LAYERS) for n in ("ln1", "ln2")]
    for name in norms:
        found |= {f"{name}.weight": 1 + 0.2 * rng.standard_normal(D), f"{name}.bias": 0.2 * rng.standard_normal(D)}
    for i in range(LAYERS):
        att, ffn = f"blocks.{i}.att.", f"blocks.{i}.ffn."
        found |= {f"{att}time_mix_{n}": rng.random((1, 1, D) if raw else D) for n in "rkvg"}
        found |= {f"{ffn}time_mix_{n}": rng.random((1, 1, D) if raw else D) for n in "kr"}
        found |= {f"{att}{n}.weight": rng.standard_normal((D, D)) / 3 for n in ("receptance", "key", "value", "gate", "output")}
        found |= {f"{att}ln_x.weight": rng.standard_normal(D), f"{att}ln_x.bias": rng.standard_normal(D)}
        decay = rng.uniform(-5, 1, (H, DH))
        found[f"{att}time_decay"] = decay if raw else np.exp(-np.exp(decay))[..., None]
        found[f"{att}time_faaaa"] = rng.standard_normal((H, DH) if raw else (H, DH, 1))
        found |= {f"{ffn}key.weight": rng.standard_normal((F, D)) / 3, f"{ffn}value.weight": rng.standard_normal((D, F)) / 3}
        found[f"{ffn}receptance.weight"] = rng.standard_normal((D, D)) / 3
    return {n: a.astype(np.float32) for n, a in found.items()}


def rwkv_logits(w: Tensors, ids: list[int], raw: bool) -> Array:
    """The same in NumPy, one token after another, in f64."""
    wide = {n: a.astype(np.float64) for n, a in w.items()}

    def norm(name: str, x: Array) -> Array:
        found: Array = (x - x.mean()) / np.sqrt(x.var() + 1e-5) * wide[name + ".weight"] + wide[name + ".bias"]
        return found

    def sigmoid(x: Array) -> Array:
        return np.asarray(1 / (1 + np.exp(-x)))

    states = [[np.zeros(D), np.zeros(D), np.zeros((H, DH, DH))] for _ in range(LAYERS)]
    rows = []
    for token in ids:
        x = norm("blocks.0.ln0", wide["emb.weight"][token])
        for i, state in enumerate(states):
            att, ffn = f"blocks.{i}.att.", f"blocks.{i}.ffn."
            h, before = norm(f"blocks.{i}.ln1", x), state[0]
            state[0] = h
            mixed = {n: h * wide[f"{att}time_mix_{n}"].reshape(D) + before * (1 - wide[f"{att}time_mix_{n}"].reshape(D))
                     for n in "rkvg"}  # fmt: skip
            names = {"r": "receptance", "k": "key", "v": "value", "g": "gate"}
            r, k, v, g = (wide[f"{att}{names[n]}.weight"] @ mixed[n] for n in "rkvg")
            decay, bonus = (wide[att + n].reshape(H, DH) for n in ("time_decay", "time_faaaa"))
            factor = np.exp(-np.exp(decay)) if raw else decay
            rh, kh, vh = (a.reshape(H, DH) for a in (r, k, v))
            kv = kh[:, :, None] * vh[:, None, :]
            y = np.einsum("hi,hij->hj", rh, bonus[..., None] * kv + state[2])
            state[2] = state[2] * factor[..., None] + kv
            y = (y - y.mean(-1, keepdims=True)) / np.sqrt(y.var(-1, keepdims=True) + 1e-5)
            y = (y.reshape(D) * wide[att + "ln_x.weight"] + wide[att + "ln_x.bias"]) * (g * sigmoid(g))
            x = x + wide[att + "output.weight"] @ y
            h, before = norm(f"blocks.{i}.ln2", x), state[1]
            state[1] = h
            xk, xr = (h * (m := wide[f"{ffn}time_mix_{n}"].reshape(D)) + before * (1 - m) for n in "kr")
            up = np.maximum(wide[ffn + "key.weight"] @ xk, 0) ** 2
            x = x + sigmoid(wide[ffn + "receptance.weight"] @ xr) * (wide[ffn + "value.weight"] @ up)
        rows.append(wide["head.weight"] @ norm("ln_out", x))
    return np.stack(rows)


IDS = [3, 0, 16, 5, 5, 9, 1, 12, 7]


@pytest.mark.parametrize("raw", [True, False])
def test_rwkv_equals_numpy_at_once_and_token_by_token(raw: bool, tmp_path: Path) -> None:
    tensors = rwkv_weights(raw)
    write_safetensors(tmp_path / "w.safetensors", {n: ("F32", a) for n, a in tensors.items()})
    made = import_checkpoint(tmp_path / "w.safetensors", tmp_path / "out")
    assert made.family == "rwkv5" and made.context is None and made.assumed == {"ln_x_eps": 1e-5}
    with oic.Simulator(oic.parse_file(made.graph), oic.Model.open(made.model)).make_executor() as ex:
        whole = ex.step(tokens=IDS)["logits"]
        assert float(np.abs(whole - rwkv_logits(tensors, IDS, raw)).max()) <= 1e-4
        kept = ex.save()
        for at in range(1, len(IDS)):
            ex.reset()
            parts = [ex.step(tokens=part)["logits"] for part in (IDS[:at], IDS[at:])]
            assert np.concatenate(parts).tobytes() == whole.tobytes() and ex.save() == kept
        ex.reset()
        single = np.concatenate([ex.step(tokens=[t])["logits"] for t in IDS])
        assert single.tobytes() == whole.tobytes() and ex.save() == kept
        ex.reset()
        assert ex.step("prefill", tokens=IDS)["last_logits"].tobytes() == whole[-1:].tobytes() and ex.save() == kept


def test_what_is_wrong_with_a_recurrent_model_is_named(tmp_path: Path) -> None:
    tensors = rwkv_weights(False)

    def changed(**more: Array | None) -> Path:
        kept = {n: a for n, a in (tensors | more).items() if a is not None}
        write_safetensors(tmp_path / "w.safetensors", {n: ("F32", a) for n, a in kept.items()})
        return tmp_path / "w.safetensors"

    assert "missing: head.weight" in refused(changed(**{"head.weight": None}), tmp_path)[1]
    assert "a state of fixed size has no context" in refused(changed(), tmp_path, context=5)[1]
    flat = np.zeros((H, 1, 1), np.float32)
    assert "time_decay [heads, size]" in refused(changed(**{"blocks.0.att.time_decay": flat}), tmp_path)[1]
    assert "should be above 0" in refused(changed(), tmp_path, settings={"ln_x_eps": 0})[1]
    more = np.zeros(2, np.float32)
    assert "not asked for: other" in refused(changed(other=more), tmp_path)[1]


@pytest.mark.parametrize("family", ["mamba", "falcon_mamba", *HYBRIDS])
def test_a_state_space_has_the_same_bits_however_a_prompt_is_split(family: str, tmp_path: Path) -> None:
    """In C too: parts shorter than the convolution, and one token after another."""
    made = import_checkpoint(checkpoint(tmp_path / "in", family), tmp_path / "out")
    assert made.family == family and made.context == (None if "mamba" in family else 16)
    graph, model = oic.parse_file(made.graph), oic.Model.open(made.model)
    with oic.Synthesizer(graph, model).build(tmp_path / "c").make_executor() as ex:
        whole = ex.step(tokens=IDS)["logits"]
        kept = ex.save()
        for cuts in ([], *([at] for at in range(1, len(IDS))), [1, 2], [2, 5], range(1, len(IDS))):
            ex.reset()
            ends = [0, *cuts, len(IDS)]
            parts = [ex.step(tokens=IDS[a:b])["logits"] for a, b in pairwise(ends)]
            assert np.concatenate(parts).tobytes() == whole.tobytes() and ex.save() == kept
        ex.reset()
        assert ex.step("prefill", tokens=IDS)["last_logits"].tobytes() == whole[-1:].tobytes() and ex.save() == kept
        with pytest.raises(oic.OicError, match="cannot be taken back"):
            ex.truncate(1)
        if made.context is not None:
            with pytest.raises(oic.StepError, match="OIC_ERR_CACHE_FULL"):
                ex.step(tokens=IDS)
            assert ex.save() == kept, "a refused step changes nothing"
    with oic.Simulator(graph, model).make_executor() as reference:
        np.testing.assert_allclose(whole, reference.step(tokens=IDS)["logits"], rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("kinds", "periods"),
    [
        ("ccaccaccacacacac", [(0, 2, 1), (2, 3, 2), (8, 2, 4)]),  # LFM2: five blocks of sixteen
        ("mmmmmammmm" * 4, [(0, 10, 4)]),  # Granite 4
        ("mmmm", [(0, 4, 1)]), ("ma", [(0, 1, 1), (1, 1, 1)]), ("amam", [(0, 2, 2)]), ("a", [(0, 1, 1)]),
    ],
)  # fmt: skip
def test_layers_that_repeat_are_loops_of_loops(kinds: str, periods: list[tuple[int, int, int]]) -> None:
    assert decoder_graph._periods(kinds) == periods


def each_run(names: list[str]) -> list[tuple[int, int, int]]:
    return [(first, end - first, 1) for _, first, end in decoder_graph._runs(names, 0)]


def test_layers_in_loops_of_loops_are_those_in_loops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In all bits, and no index is looked up or checked for it."""
    kinds = ["conv", "conv", "full_attention"] * 2 + ["conv", "full_attention"] * 2
    source = checkpoint(tmp_path / "in", "lfm2", num_hidden_layers=len(kinds), layer_types=kinds)
    found = {}
    for name in ("groups", "runs"):
        made = import_checkpoint(source, tmp_path / name)
        assert ("loop groups_" in made.graph.read_text()) == (name == "groups")
        built = oic.Synthesizer(oic.parse_file(made.graph), oic.Model.open(made.model)).build(tmp_path / f"{name}.c")
        with built.make_executor() as ex:
            found[name] = [ex.step(tokens=IDS[a:b])["logits"].tobytes() for a, b in pairwise((0, 3, 4, len(IDS)))], ex.save()
        kinds_of = [op.name for op in built.program.planned.all_ops() if op.name in ("index.load", "check.range")]
        assert kinds_of == ["check.range"] * 5, "room in the cache, and that there is a last token"
        monkeypatch.setattr(decoder_graph, "_periods", each_run)
    assert found["groups"] == found["runs"]


def test_what_is_wrong_with_a_state_space_is_named(tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "in", "mamba")
    for key, value in {"state_size": 4, "num_hidden_layers": 1, "time_step_rank": "2", "hidden_act": "mish"}.items():
        assert f"'{key}' is {value!r}" in refused(source, tmp_path, settings={key: value})[1]
    for key, value in {"layer_norm_epsilon": 0, "tie_word_embeddings": 1}.items():
        assert f"'{key}' is {value!r}, and should be" in refused(source, tmp_path, settings={key: value})[1]
    assert "a state of fixed size has no context" in refused(source, tmp_path, context=5)[1]
    assert "has no batch" in refused(source, tmp_path, batch=2)[1]
    assert "missing: lm_head.weight" in refused(source, tmp_path, settings={"tie_word_embeddings": False})[1]
    model = oic.Model.open(source)
    tensors = {n: np.array(model.tensor(n)) for n in model.names()}

    def changed(name: str, array: Array | None) -> str:
        kept = {n: a for n, a in (tensors | {name: array}).items() if a is not None}
        write_safetensors(tmp_path / "w.safetensors", {n: ("F32", a) for n, a in kept.items()})
        return refused(tmp_path / "w.safetensors", tmp_path)[1]

    first = "backbone.layers.0.mixer."
    assert "missing: " + first + "A_log" in changed(first + "A_log", None)
    assert "shapes of no convolution" in changed(first + "conv1d.weight", tensors[first + "conv1d.weight"][:, :, :1])
    assert "x_proj.weight' is [4, 20]" in changed(first + "x_proj.weight", tensors[first + "x_proj.weight"][:4])


def test_what_is_wrong_with_layers_of_several_kinds_is_named(tmp_path: Path) -> None:
    wrong: dict[str, dict[str, Any]] = {
        "mamba2": {"num_heads": 4, "head_dim": 8, "state_size": 4, "conv_kernel": 3, "num_hidden_layers": 3, "hidden_size": 8,
                   "use_conv_bias": False, "hidden_act": "mish", "time_step_limit": [0.0, 0.1], "vocab_size": 25},
        "lfm2": {"conv_L_cache": 4, "full_attn_idxs": 3, "layer_types": ["conv", "mamba"] * 2},
        "granitemoehybrid": {"mamba_n_heads": 4, "mamba_d_head": 8, "mamba_d_state": 4, "mamba_d_conv": 3, "num_local_experts": 8,
                             "layer_types": ["conv", "mamba"] * 2, "mamba_conv_bias": False, "time_step_limit": [0.1]},
        "falcon_h1": {"mamba_n_heads": 2, "mamba_d_head": 3, "mamba_d_state": 2, "mamba_conv_bias": False,
                      "mlp_multipliers": [1.0], "ssm_multipliers": "1"},
    }  # fmt: skip
    for family, settings in wrong.items():
        source = checkpoint(tmp_path / family, family)
        for key, value in settings.items():
            given = {key: value} | ({"layer_types": None} if key == "full_attn_idxs" else {})
            assert f"'{key}" in refused(source, tmp_path, settings=given)[1], (family, key)
        assert "has no batch" in refused(source, tmp_path, batch=2)[1]
    assert "a state of fixed size has no context" in refused(tmp_path / "mamba2", tmp_path, context=5)[1]
    assert "has no cache of keys" in refused(tmp_path / "mamba2", tmp_path, cache="f16")[1]
    assert "not asked for: model.layers.0.mamba.norm" in refused(tmp_path / "falcon_h1", tmp_path,
                                                                 settings={"mamba_rms_norm": False})[1]  # fmt: skip
    said = refused(tmp_path / "lfm2", tmp_path, settings={"layer_types": ["full_attention", "conv", "conv", "conv"]})[1]
    assert "missing: model.layers.0.self_attn.q_proj.weight" in said and "not asked for: model.layers.0.conv" in said


@pytest.mark.parametrize("cache", ["f16", "q8"])
@pytest.mark.parametrize("family", ["lfm2", "granitemoehybrid", "falcon_h1"])
def test_layers_with_attention_may_have_a_narrow_cache(family: str, cache: str, tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "in", family)
    found = []
    for name in ("f32", cache):
        made = import_checkpoint(source, tmp_path / name, cache=name)
        with oic.Simulator(oic.parse_file(made.graph), oic.Model.open(made.model)).make_executor() as ex:
            found.append(ex.step(tokens=IDS)["logits"])
    assert 0 < float(np.abs(found[0] - found[1]).max()) < 0.1


E, WIDTH, U = 5, 6, 7


def gru_weights() -> Tensors:
    rng = np.random.default_rng(8)
    shapes = {"enc_emb": (9, E), "enc_w_ih": (3 * U, E), "enc_w_hh": (3 * U, U), "enc_b_ih": (3 * U,), "enc_b_hh": (3 * U,),
              "dec_emb": (11, WIDTH), "dec_w_ih": (3 * U, WIDTH), "dec_w_hh": (3 * U, U), "dec_b_ih": (3 * U,), "dec_b_hh": (3 * U,),
              "fc_w": (11, U), "fc_b": (11,)}  # fmt: skip
    return {n: rng.standard_normal(s).astype(np.float32) for n, s in shapes.items()}


def cell(w: dict[str, Array], part: str, token: int, h: Array) -> Array:
    """PyTorch's GRU cell on an embedded token."""
    x = w[f"{part}_w_ih"] @ w[f"{part}_emb"][token] + w[f"{part}_b_ih"]
    y = w[f"{part}_w_hh"] @ h + w[f"{part}_b_hh"]
    r, z = (1 / (1 + np.exp(-(x[at : at + U] + y[at : at + U]))) for at in (0, U))
    n = np.tanh(x[2 * U :] + r * y[2 * U :])
    found: Array = (1 - z) * n + z * h
    return found


@pytest.mark.parametrize(("family", "kind"), [("lfm2", "conv"), ("granitemoehybrid", "mamba")])
def test_a_hybrid_without_attention_has_a_state_of_fixed_size(family: str, kind: str, tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "in", family, layer_types=[kind] * 4)
    found = import_checkpoint(source, tmp_path / "out")
    text = found.graph.read_text()
    assert found.context is None and not any(("head" in f and "over" in f) or "rope" in f for f in found.features)
    assert "P = 128;" in text and "K(" not in text
    for given in ({"context": 5}, {"cache": "q8"}, {"batch": 2}):
        assert refused(source, tmp_path / "none", **given)[0] == "import-config"


def test_gated_recurrent_units_equal_numpy(tmp_path: Path) -> None:
    tensors = gru_weights()
    np.savez(tmp_path / "w.npz", **tensors)  # type: ignore[arg-type]
    made = import_checkpoint(tmp_path / "w.npz", tmp_path / "out", settings={"eos_token_id": 4})
    assert made.family == "gru_seq2seq"
    wide = {n: a.astype(np.float64) for n, a in tensors.items()}
    with oic.Simulator(oic.parse_file(made.graph), oic.Model.open(made.model)).make_executor() as ex:
        with pytest.raises(oic.StepError, match="'h.s': -1 is below 0"):
            ex.step(tokens=[2])
        for source in ([1, 2, 3, 8], [5]):  # the second reads anew
            ex.step("encode", source=source)
            whole = ex.step(tokens=[2, 10, 7])["logits"]
            h, rows = np.zeros(U), []
            for token in source:
                h = cell(wide, "enc", token, h)
            for token in (2, 10, 7):
                h = cell(wide, "dec", token, h)
                rows.append(wide["fc_w"] @ h + wide["fc_b"])
            assert float(np.abs(whole - np.stack(rows)).max()) <= 1e-5
            ex.step("encode", source=source)
            single = np.concatenate([ex.step(tokens=[t])["logits"] for t in (2, 10, 7)])
            assert single.tobytes() == whole.tobytes()
    turned = dict(tensors)
    for part in ("enc", "dec"):  # gates z, r, n
        for name in ("w_ih", "w_hh", "b_ih", "b_hh"):
            r, z, n = np.split(tensors[f"{part}_{name}"], 3)
            turned[f"{part}_{name}"] = np.concatenate([z, r, n])
    np.savez(tmp_path / "t.npz", **turned)  # type: ignore[arg-type]
    other = import_checkpoint(tmp_path / "t.npz", tmp_path / "other", settings={"gate_order": "zrn"})
    with oic.Simulator(oic.parse_file(other.graph), oic.Model.open(other.model)).make_executor() as ex:
        ex.step("encode", source=[5])
        assert ex.step(tokens=[2, 10, 7])["logits"].tobytes() == whole.tobytes()
    assert "'gate_order' is 'rz'" in refused_at(tmp_path, gate_order="rz")


def refused_at(tmp_path: Path, **settings: Any) -> str:
    with pytest.raises(oic.OicError) as caught:
        import_checkpoint(tmp_path / "w.npz", tmp_path / "none", settings=settings)
    return caught.value.diagnostics[0].message


def test_lists_of_symbols_are_a_tokenizer() -> None:
    from oic.generation.tokenizer import described

    both = described({"graphemes": ["<unk>", "</s>", "a", "b"], "phonemes": ["<s>", "AA", "B"]})
    assert both is not None and both.encode("abz") == [2, 3, 0, 1] and both.decode([1, 2, 0, 9]) == "AA B"
    strict = described({"graphemes": ["a"], "phonemes": ["A"]})
    assert strict is not None and strict.encode("aa") == [0, 0]
    with pytest.raises(oic.OicError, match="'z' is none of the characters"):
        strict.encode("az")
    raw = described({"model_type": "rwkv5", "vocab_size": 256})
    assert raw is not None and raw.encode("é") == [195, 169] and raw.decode([195, 169, 195]) == "é\ufffd"


# ---------------------------------------------------------------- real models


def real(name: str) -> Path:
    models = models_dir()
    assert models is not None
    return models / name


@needs_models
@pytest.mark.parametrize(("example", "source"), [("rwkv", "rwkv5-tiny"), ("gru", "g2p-en")])
def test_examples_are_what_an_import_writes(example: str, source: str, tmp_path: Path) -> None:
    made = import_checkpoint(real(source), tmp_path / "out")
    assert made.graph.read_text() == (ROOT / "examples" / example / "graph.oi").read_text()


def test_a_state_of_fixed_size_has_no_context_to_choose(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "w.safetensors", {n: ("F32", a) for n, a in rwkv_weights(True).items()})
    made = import_checkpoint(tmp_path / "w.safetensors", tmp_path / "out")
    with pytest.raises(oic.OicError, match="has a state of fixed size, and no context to choose"):
        oic.Generator(made.folder, context=5)


@needs_models
def test_rwkv_equals_its_reference(tmp_path: Path) -> None:
    source = real("rwkv5-tiny")
    with oic.Generator(source) as generator:
        for case in json.loads((source / "reference" / "generations.json").read_text()):
            ids = generator.encode(case["prompt"])
            found = list(generator.stream(ids, len(case["output_bytes"])))
            assert [t.id for t in found] == case["output_bytes"] and "".join(t.text for t in found) == case["text"]
    made = import_checkpoint(source, tmp_path / "out")
    built = oic.Synthesizer(oic.parse_file(made.graph), oic.Model.open(made.model)).build(tmp_path / "build")
    with built.make_executor() as ex:
        for i, case in enumerate(json.loads((source / "reference" / "generations.json").read_text())):
            prompt = list(case["prompt"].encode())
            ex.reset()
            rows = [ex.step(tokens=prompt)["logits"]]
            state = [ex.fetch(n).reshape(12, -1) for n in ("time_before", "channel_before", "S")]
            assert float(np.abs(np.concatenate(state, 1) - np.load(source / f"reference/state_{i}.npy")).max()) <= 2e-5
            rows.append(ex.step(tokens=case["output_bytes"])["logits"])
            assert float(np.abs(np.concatenate(rows) - np.load(source / f"reference/logits_{i}.npy")).max()) <= 1e-4


@needs_models
@pytest.mark.parametrize("file", ["weights.safetensors", "checkpoint20.npz"])
def test_every_word_has_its_phonemes(file: str) -> None:
    source = real("g2p-en")
    config = ROOT / "examples" / "gru" / "config.json"
    with oic.Generator(source / file, config=config) as generator:
        for case in json.loads((source / "reference" / "phonemes.json").read_text()):
            found = [t for t in generator.stream(generator.encode(case["word"]), 20)]
            assert [t.id for t in found if t.id not in generator.stops] == case["ids"]
            assert "".join(t.text for t in found) == case["phonemes"]
