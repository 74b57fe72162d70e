"""What `oic import` reads: folders and files of weights, with and without a configuration."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import oic
from importers import checkpoints, seq2seq
from importers.test_import import CONFIG, checkpoint
from model.samples import write_safetensors
from oic.cli.main import main
from oic.dtypes import Array
from oic.importers import import_checkpoint
from paths import models_dir, needs_models


def refused(source: Path, tmp_path: Path, **given: Any) -> tuple[str, str]:
    """The slug and the whole text of a refusal, after which nothing is written."""
    with pytest.raises(oic.OicError) as caught:
        import_checkpoint(source, tmp_path / "out", **given)
    found = caught.value.diagnostics[0]
    assert not (tmp_path / "out").exists()
    return found.slug, f"{found.message} {found.hint}"


def logits(made: Any, ids: tuple[int, ...] = (1, 2, 0, 2)) -> Array:
    with oic.Simulator(oic.parse_file(made.graph), oic.Model.open(made.model)).make_executor() as ex:
        found: Array = ex.step(tokens=np.array(ids, np.int32))["logits"]
    return found


def test_weights_and_configuration_are_the_same_in_a_folder_and_apart(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "in")
    wanted = import_checkpoint(folder, tmp_path / "whole")
    (tmp_path / "apart").mkdir()
    weights = Path(shutil.copy(folder / "model.safetensors", tmp_path / "apart" / "weights.safetensors"))
    config = Path(shutil.copy(folder / "config.json", tmp_path / "sizes.json"))
    model = oic.Model.open(weights)
    arrays = tmp_path / "weights.npz"
    np.savez(arrays, **{n: model.tensor(n) for n in model.names()})  # type: ignore[arg-type]
    sources: dict[Path, Path | None] = {
        weights: config, arrays: config, weights.parent: config, folder / "model.safetensors": None
    }  # fmt: skip
    for number, (source, said) in enumerate(sources.items()):
        made = import_checkpoint(source, tmp_path / str(number), config=said)
        assert made.graph.read_text() == wanted.graph.read_text() and not made.assumed.keys() & CONFIG.keys()
        assert logits(made).tobytes() == logits(wanted).tobytes()
        metadata = json.loads(made.model.read_text())["metadata"]
        assert metadata["model_type"] == "llama" and metadata["hidden_size"] == 8


def test_shards_without_a_configuration_are_read_with_one(tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "in")
    wanted = import_checkpoint(folder, tmp_path / "whole").graph.read_text()
    model = oic.Model.open(folder)
    homes = {n: f"model-{i % 2}.safetensors" for i, n in enumerate(model.names())}
    for home in set(homes.values()):
        write_safetensors(folder / home, {n: ("F32", model.tensor(n)) for n in homes if homes[n] == home})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": homes}))
    (folder / "model.safetensors").unlink()
    config = (folder / "config.json").rename(tmp_path / "config.json")
    made = import_checkpoint(folder, tmp_path / "out", config=config)
    assert made.graph.read_text() == wanted
    assert json.loads(made.model.read_text())["files"] == ["../in/model-0.safetensors", "../in/model-1.safetensors"]


def test_settings_come_before_everything(tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "in", model_type="mistral", num_key_value_heads=2, eos_token_id=2)
    made = import_checkpoint(source, tmp_path / "out", settings={"rope_theta": 5e5, "sliding_window": None, "eos_token_id": 7})
    text = made.graph.read_text()
    assert "base=500000.0" in text and "window" not in text
    assert oic.Model.open(made.model).metadata["eos_token_id"] == 7


def bare(path: Path, *kept: str) -> Path:
    """The weights of a small Llama without any configuration."""
    folder = checkpoint(path.parent / "configured", without=kept[0] if kept else "")
    path.parent.mkdir(exist_ok=True)
    return Path(shutil.move(folder / "model.safetensors", path))


def test_what_weights_do_not_tell_is_asked_for_by_name(tmp_path: Path) -> None:
    source = bare(tmp_path / "w.safetensors")
    slug, text = refused(source, tmp_path)
    assert slug == "import-family" and "the names of its tensors fit llama, mistral" in text and "--set model_type=…" in text
    slug, text = refused(source, tmp_path, settings={"model_type": "llama"})
    assert slug == "import-config"
    assert "nothing says 'num_attention_heads', 'rms_norm_eps', 'rope_theta'" in text
    assert "--set num_attention_heads=… --set rms_norm_eps=… --set rope_theta=…, or --config FILE" in text
    slug, text = refused(source, tmp_path, settings={"model_type": "granite", "num_attention_heads": 2})
    assert slug == "import-config" and "'residual_multiplier', 'logits_scaling', which weights do not tell" in text
    told = {"model_type": "llama", "num_attention_heads": 2, "rms_norm_eps": 1e-6, "rope_theta": 1e4}
    made = import_checkpoint(source, tmp_path / "out", settings=told)
    assert made.assumed.keys() == {"max_position_embeddings", "hidden_activation", "partial_rotary_factor"}
    wanted = import_checkpoint(checkpoint(tmp_path / "in"), tmp_path / "wanted")
    assert made.graph.read_text() == wanted.graph.read_text().replace("T = 16;", "T = 2048;").replace("P = 16;", "P = 128;")


def test_a_decoder_with_an_encoder_is_no_decoder(tmp_path: Path) -> None:
    source = seq2seq.checkpoint(tmp_path / "in", "bart")
    (source / "config.json").unlink()
    assert "the names of its tensors fit bart, mbart --set" in refused(source, tmp_path)[1]


def test_what_a_family_means_where_nothing_says_it_is_listed(tmp_path: Path) -> None:
    source = checkpoints.checkpoint(tmp_path / "in", "phi")
    (source / "config.json").unlink()
    made = import_checkpoint(source, tmp_path / "out", settings={"model_type": "phi", **dict.fromkeys(
        ("num_attention_heads", "max_position_embeddings"), 4), "rope_theta": 1e4, "layer_norm_eps": 1e-6,
    })  # fmt: skip
    assert made.assumed == {"use_parallel_residual": True, "partial_rotary_factor": 0.5, "hidden_act": "gelu_new"}


def test_names_that_fit_no_family_are_shown(tmp_path: Path) -> None:
    np.savez(tmp_path / "w.npz", a=np.ones(2, np.float32), b=np.ones(2, np.float32))
    slug, text = refused(tmp_path / "w.npz", tmp_path)
    assert slug == "import-family" and "the names of its tensors tell none: a, b" in text and "families:\n    " in text
    assert max(map(len, text.partition("families:")[2].splitlines())) <= 100


def test_folders_that_are_no_source(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    assert "there are no weights that are read" in refused(folder, tmp_path)[1]
    (folder / "pytorch_model.bin").touch()
    assert "pickled weights are not read" in refused(folder, tmp_path)[1]
    for name in ("a.safetensors", "b.safetensors", "c.npz"):
        (folder / name).touch()
    assert "several files of weights: a.safetensors, b.safetensors name one of them" in refused(folder, tmp_path)[1]
    made = import_checkpoint(checkpoint(tmp_path / "llama"), tmp_path / "imported")
    assert "this was imported" in refused(made.folder, tmp_path)[1]
    with pytest.raises(oic.OicError, match="a configuration is for checkpoints"):
        oic.Generator(made.folder, settings={"rope_theta": 1.0})


@pytest.mark.parametrize(
    ("settings", "text"),
    [({"rope_theta": float("nan")}, "rope_theta' is nan"), ({"rope_theta": np.ones(2)}, "not json serializable"),
     ({"partial_rotary_factor": 1e308}, "partial_rotary_factor' is 1e+308"), ({"head_dim": 1 << 31}, "at most 65536"),
     ({"query_pre_attn_scalar": 0}, "should be above 0"), ({"attention_multiplier": 0}, "should be above 0"),
     ({"logits_scaling": 0.0}, "'logits_scaling' is 0.0"), ({"residual_multiplier": -1}, "'residual_multiplier' is -1"),
     ({"embedding_multiplier": 0}, "'embedding_multiplier' is 0"), ({"final_logit_softcapping": 0}, "should be above 0"),
     ({"num_attention_heads": True}, "should be a positive integer"), ({"layer_types": ["x"] * 2}, "'layer_types' is 'x'")],
)  # fmt: skip
def test_settings_that_are_wrong_are_refused(settings: dict[str, Any], text: str, tmp_path: Path) -> None:
    assert text in refused(checkpoint(tmp_path / "in"), tmp_path, settings=settings)[1]


def test_a_configuration_that_is_no_json_is_refused(tmp_path: Path) -> None:
    source = bare(tmp_path / "w.safetensors")
    (tmp_path / "c.json").write_text("{")
    assert refused(source, tmp_path, config=tmp_path / "c.json")[0] == "model-field"
    assert refused(source, tmp_path, config=tmp_path / "none.json")[0] == "model-open"


def gpt2_weights(path: Path, prefix: str, by_columns: bool, bias: bool, tables: str = ".weight") -> Path:
    """A small GPT-2 under the names of transformers or of minGPT and nanoGPT, always with the same numbers."""
    rng = np.random.default_rng(5)
    shapes = {"attn.c_attn": (8, 24), "attn.c_proj": (8, 8), "mlp.c_fc": (8, 12), "mlp.c_proj": (12, 8)}
    tensors = {f"wte{tables}": rng.standard_normal((9, 8)), f"wpe{tables}": rng.standard_normal((6, 8))}
    for layer in range(2):
        for name, shape in shapes.items():
            weights, added = rng.standard_normal(shape), rng.standard_normal(shape[1])
            tensors[f"h.{layer}.{name}.weight"] = weights if by_columns else np.ascontiguousarray(weights.T)
            tensors |= {f"h.{layer}.{name}.bias": added} if bias else {}
    for name in ("h.0.ln_1", "h.0.ln_2", "h.1.ln_1", "h.1.ln_2", "ln_f"):
        tensors[f"{name}.weight"], added = rng.standard_normal(8), rng.standard_normal(8)
        tensors |= {f"{name}.bias": added} if bias else {}
    head = {} if by_columns else {"lm_head.weight": ("F32", tensors[f"wte{tables}"].astype(np.float32))}
    write_safetensors(path, {prefix + n: ("F32", t.astype(np.float32)) for n, t in tensors.items()} | head)
    return path


def test_gpt2_by_columns_and_by_rows_is_one_model(tmp_path: Path) -> None:
    """With and without a prefix; matrices [in, out] as transformers has them, or [out, in] as minGPT has."""
    made = []
    for i, (prefix, by_columns, tables) in enumerate(
        (("transformer.", True, ".weight"), ("", True, ".weight"), ("transformer.", False, ".weight"), ("", False, ""))
    ):
        source = gpt2_weights(tmp_path / f"{i}.safetensors", prefix, by_columns, True, tables)
        assert "nothing says 'n_head'" in refused(source, tmp_path)[1]
        made.append(import_checkpoint(source, tmp_path / f"out{i}", settings={"n_head": 2}))
        assert made[-1].assumed == {"layer_norm_epsilon": 1e-5, "activation_function": "gelu_new"}
    wanted = logits(made[0])
    assert wanted.shape == (4, 9) and logits(made[1]).tobytes() == wanted.tobytes()
    for other in made[2:]:  # another order of additions
        assert float(np.abs(logits(other) - wanted).max()) <= 1e-4


def test_nanogpt_without_biases_has_the_plain_gelu(tmp_path: Path) -> None:
    source = gpt2_weights(tmp_path / "w.safetensors", "transformer.", False, False)
    made = import_checkpoint(source, tmp_path / "out", settings={"n_head": 4})
    text = made.graph.read_text()
    assert 'approx="erf"' in text and "bias" not in text and logits(made).shape == (4, 9)


TOLD: dict[str, dict[str, Any]] = {
    "opt": {"num_attention_heads": 4},
    "gpt_neo": {"num_heads": 4, "window_size": 5},
    "gpt_neox": {"num_attention_heads": 4, "num_hidden_layers": 2, "rotary_pct": 0.5, "use_parallel_residual": True},
    "qwen3": {"model_type": "qwen3", "num_attention_heads": 4, "rms_norm_eps": 1e-6, "rope_theta": 1e4},
}
"""What neither shapes nor names of tensors tell."""


@pytest.mark.parametrize("family", TOLD)
def test_sizes_that_nothing_says_are_those_of_shapes(family: str, tmp_path: Path) -> None:
    folder = checkpoints.checkpoint(tmp_path / "in", family)
    wanted = import_checkpoint(folder, tmp_path / "a", context=12).graph.read_text()
    (folder / "config.json").unlink()
    made = import_checkpoint(folder / "model.safetensors", tmp_path / "b", context=12, settings=TOLD[family])
    assert made.graph.read_text() == wanted


@pytest.mark.parametrize("family", ["lfm2", "lfm2_moe", "granitemoehybrid", "falcon_h1"])
def test_layers_that_nothing_counts_are_those_with_weights_of_any_kind(family: str, tmp_path: Path) -> None:
    """The last layers of these have no attention."""
    folder = checkpoints.checkpoint(tmp_path / "in", family)
    wanted = import_checkpoint(folder, tmp_path / "a").graph.read_text()
    config = json.loads((folder / "config.json").read_text())
    del config["num_hidden_layers"]
    (folder / "config.json").write_text(json.dumps(config))
    assert import_checkpoint(folder, tmp_path / "b").graph.read_text() == wanted


def meta_weights(path: Path, stacked: bool, **metadata: str) -> Path:
    """A small Llama under Meta's names, or with one tensor for a matrix of all layers, as llama2.c has it."""
    rng = np.random.default_rng(6)
    shapes = {"wq": (8, 8), "wk": (4, 8), "wv": (4, 8), "wo": (8, 8), "w1": (12, 8), "w2": (8, 12), "w3": (12, 8)}
    shapes |= {"rms_att": (8,), "rms_ffn": (8,)}
    arrays = {n: rng.standard_normal((2, *s)).astype(np.float32) for n, s in shapes.items()}
    once = {"tok_embeddings": rng.standard_normal((9, 8)), "rms_final": rng.standard_normal(8)}
    if not stacked:
        places = {"rms_att": "attention_norm", "rms_ffn": "ffn_norm"}
        places |= {f"w{n}": f"attention.w{n}" for n in "qkvo"} | {f"w{n}": f"feed_forward.w{n}" for n in "123"}
        arrays = {f"layers.{i}.{places[n]}.weight": a[i] for n, a in arrays.items() for i in range(2)}
        once = {"tok_embeddings.weight": once["tok_embeddings"], "norm.weight": once["rms_final"]}
        once["output.weight"] = once["tok_embeddings.weight"]
    whole = arrays | {n: a.astype(np.float32) for n, a in once.items()}
    write_safetensors(path, {n: ("F32", a) for n, a in whole.items()}, **metadata)
    return path


def test_metas_names_and_stacked_layers_are_one_model(tmp_path: Path) -> None:
    plain = import_checkpoint(meta_weights(tmp_path / "a.safetensors", False), tmp_path / "a", settings={"n_heads": 2})
    stacked = import_checkpoint(meta_weights(tmp_path / "b.safetensors", True, n_heads="2"), tmp_path / "b")
    config = tmp_path / "llama.json"  # the same sizes under the names of transformers
    config.write_text(json.dumps({"model_type": "llama", "num_attention_heads": 2, "hidden_size": 8}))
    other = import_checkpoint(tmp_path / "b.safetensors", tmp_path / "c", config=config)
    assert logits(plain).tobytes() == logits(stacked).tobytes() == logits(other).tobytes()
    assert plain.assumed == {"norm_eps": 1e-5, "rope_theta": 1e4, "max_seq_len": 2048}
    assert 'wq(l): f32[H * Dh, D] @ref("wq");' in stacked.graph.read_text()


@needs_models
def test_sorting_as_its_references(tmp_path: Path) -> None:
    """All 729 inputs of six tokens are sorted, through import and generation alone."""
    models = models_dir()
    assert models is not None
    source = models / "gpt-nano-sort"
    with oic.Generator(source, settings={"n_head": 3}) as generator:
        for i in range(729):
            ids = [i // 3**k % 3 for k in range(6)]
            assert [t.id for t in generator.stream(ids, 6)] == sorted(ids)
        for known in json.loads((source / "reference" / "sorted.json").read_text()):
            assert [t.id for t in generator.stream(known["input"], 6)] == known["output"]


@needs_models
def test_stories_as_their_references(tmp_path: Path) -> None:
    models = models_dir()
    assert models is not None
    source = models / "stories260k"
    with oic.Generator(source) as generator:
        for known in json.loads((source / "reference" / "generations.json").read_text()):
            ids = generator.encode(known["prompt"])
            assert ids == known["prompt_ids"]
            whole = [ids[0], *known["output_ids"]]  # what follows the first token: the prompt's rest, and what is new
            found = list(generator.stream(ids, len(whole) - len(ids), stop_ids=[]))
            assert [*ids, *(t.id for t in found)] == whole
            assert generator.tokenizer().decode(whole).strip() == known["text"].strip()


def test_on_the_command_line(tmp_path: Path) -> None:
    source = gpt2_weights(tmp_path / "w.safetensors", "", False, True)
    run = CliRunner().invoke(main, ["import", str(source), "-o", str(tmp_path / "out"), "--set", "n_head=2"])
    assert run.exit_code == 0, run.output
    assert 'taken as usual (--set changes it): layer_norm_epsilon=1e-05, activation_function="gelu_new"' in run.output
    folder = str(tmp_path / "out")
    run = CliRunner().invoke(main, ["check", folder])
    assert run.exit_code == 0, run.output
    assert run.output == CliRunner().invoke(main, ["check", f"{folder}/graph.oi", "--model", f"{folder}/model.json"]).output
    run = CliRunner().invoke(main, ["check", str(tmp_path)])
    assert run.exit_code == 1 and f"has no graph.oi\n  = hint: of a checkpoint: oic import {tmp_path}" in run.output
    np.savez(f"{folder}/extra.npz", of_another=np.ones(1, np.float32))
    run = CliRunner().invoke(main, ["inspect", folder])
    assert run.exit_code == 0 and "ln_f.weight" in run.output and "of_another" not in run.output
    run = CliRunner().invoke(main, ["check", f"{folder}/graph.oi", "--model", folder])
    assert run.exit_code == 1 and f"open the file itself: '{folder}/model.json'" in run.output
    run = CliRunner().invoke(main, ["generate", str(source), "--set", "n_head=2", "--ids", "1,2", "-n", "2", "--json"])
    assert run.exit_code == 0 and len(json.loads(run.output)["ids"]) == 2
    run = CliRunner().invoke(main, ["import", str(source), "-o", str(tmp_path / "out"), "--set", "n_head"])
    assert run.exit_code == 2 and "'n_head' is not KEY=VALUE" in run.output
    spaced = str(tmp_path / "an out")
    run = CliRunner().invoke(main, ["import", str(source), "-o", spaced, "--set", "n_head=2"])
    assert f"next: oic generate '{spaced}' --ids 1,2,3" in run.output, "the line is one for a shell"
    source.rename(tmp_path / "moved.safetensors")
    run = CliRunner().invoke(main, ["check", spaced])
    assert run.exit_code == 1 and "there is no '../w.safetensors', whose weights it refers to\n  = hint" in run.output
