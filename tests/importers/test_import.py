"""`oic import`: what is written, and what is refused with the field or weight that is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import oic
from importers import checkpoints
from model.samples import write_safetensors
from oic.cli.main import main
from oic.importers import import_checkpoint
from oic.importers.decoder import Layer
from oic.importers.decoder_graph import _loops
from paths import models_dir, needs_models

CONFIG = {
    "model_type": "llama",
    "vocab_size": 24,
    "hidden_size": 8,
    "intermediate_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": 16,
}
SHAPES = {
    "input_layernorm": (8,),
    "post_attention_layernorm": (8,),
    **{f"self_attn.{n}_proj": (8, 8) for n in "qkvo"},
    "mlp.gate_proj": (12, 8),
    "mlp.up_proj": (12, 8),
    "mlp.down_proj": (8, 12),
}
EXAMPLES = {"gpt2": "gpt2-tiny", "llama": "llama-tiny"}


def checkpoint(
    folder: Path, without: str = "", more: tuple[str, ...] = (), null: tuple[str, ...] = (), nan: str = "", **config: Any
) -> Path:
    """A small random Llama; `None` takes a field out of its configuration, `null` are there without a value.

    nan   a tensor whose last row is NaN
    """
    rng = np.random.default_rng(3)
    shapes = {f"model.layers.{i}.{n}.weight": s for i in range(2) for n, s in SHAPES.items()}
    shapes |= {"model.embed_tokens.weight": (24, 8), "model.norm.weight": (8,), "lm_head.weight": (24, 8)}
    names = [n for n in (*shapes, *more) if n != without]
    folder.mkdir()
    tensors = {n: ("F32", rng.standard_normal(shapes.get(n, (8,))).astype(np.float32)) for n in names}
    for name in filter(None, [nan]):
        tensors[name][1][-1] = np.nan
    write_safetensors(folder / "model.safetensors", tensors)
    given = {k: v for k, v in (CONFIG | config).items() if v is not None} | dict.fromkeys(null)
    (folder / "config.json").write_text(json.dumps(given))
    return folder


def _longrope(**settings: Any) -> dict[str, Any]:
    """A configuration with factors, of which some are others; None takes one away."""
    table = {"type": "longrope", "short_factor": [1.0, 1.0], "long_factor": [1.0, 2.0]}
    given: dict[str, Any] = {"original_max_position_embeddings": 8} | settings
    table |= {k: given.pop(k) for k in ("short_factor", "long_factor") if k in given}
    return {"rope_scaling": {k: v for k, v in table.items() if v is not None}} | given


def test_a_checkpoint_becomes_a_graph_that_refers_to_it(tmp_path: Path) -> None:
    made = import_checkpoint(checkpoint(tmp_path / "in"), tmp_path / "out")
    assert sorted(p.name for p in made.folder.iterdir()) == ["graph.oi", "model.json"]
    assert json.loads(made.model.read_text())["files"] == ["../in"]
    assert (made.weights, made.context, made.family) == (21, 16, "llama")
    graph, model = oic.parse_file(made.graph), oic.Model.open(made.model)
    with oic.Simulator(graph, model).make_executor() as ex:
        whole = ex.step(tokens=[1, 2, 3, 4])["logits"]
        ex.reset()
        last = ex.step("prefill", tokens=[1, 2, 3])
        assert np.array_equal(last["last_logits"], whole[2:3]) and last["last"][0] == whole[2].argmax()
        assert np.array_equal(ex.step(tokens=[4])["logits"], whole[3:])
        with pytest.raises(oic.StepError, match="slice|start"):
            ex.step("prefill", tokens=np.zeros(0, np.int32))


def test_files_that_are_referred_to_have_names_without_dots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = import_checkpoint(checkpoint(tmp_path / "in"), tmp_path / "deep" / "out")
    (tmp_path / "link").symlink_to(tmp_path / "deep" / "out")
    monkeypatch.chdir(tmp_path)
    whole = str(tmp_path / "in" / "model.safetensors")
    for path, name in ((made.model, whole), ("link/model.json", "in/model.safetensors")):
        model = oic.Model.open(path)
        assert {model.info(n).file for n in model.names()} == {name}
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "r.json").write_text('{"format": "oic.model", "version": 1, "files": ["loop/../loop/x.npz"]}')
    with pytest.raises(oic.OicError, match="there is no 'loop/../loop/x.npz'"):
        oic.Model.open("r.json")


def test_an_import_twice_gives_the_same_files_and_leaves_others(tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "in", rope_scaling={"type": "linear", "factor": 2.0})
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    read = []
    for _ in range(2):
        import_checkpoint(source, tmp_path / "out")
        read.append({p.name: p.read_bytes() for p in (tmp_path / "out").iterdir()})
    assert read[0] == read[1] and set(read[0]) == {"extra.npz", "graph.oi", "mine.txt", "model.json"}


def test_constants_of_an_import_before_go(tmp_path: Path) -> None:
    import_checkpoint(checkpoint(tmp_path / "scaled", rope_scaling={"type": "linear", "factor": 2.0}), tmp_path / "out")
    import_checkpoint(checkpoint(tmp_path / "plain"), tmp_path / "out")
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["graph.oi", "model.json"]


def test_a_folder_behind_a_link_finds_its_weights(tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "in")
    (tmp_path / "far" / "away").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "far" / "away")
    made = import_checkpoint(source, tmp_path / "link")
    assert oic.Model.open(made.model).has("lm_head.weight")


def test_null_switches_off_what_a_family_has_by_default(tmp_path: Path) -> None:
    """A window of 4096 where Mistral's configuration says nothing; none where it says null."""
    for name, null, window in (("absent", (), "window=4096"), ("null", ("sliding_window",), "causal=true)")):
        source = checkpoint(tmp_path / name, model_type="mistral", null=null, num_key_value_heads=2)
        assert window in import_checkpoint(source, tmp_path / f"{name}_out").graph.read_text()


def test_every_fourth_layer_of_smollm3_has_no_rope_by_default(tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "in", model_type="smollm3", no_rope_layer_interval=2, tie_word_embeddings=False)
    text = import_checkpoint(source, tmp_path / "out").graph.read_text()
    assert text.count("op rope(") == 2 and "block full_without_rope {" in text


def test_a_tied_head_may_be_stored_too(tmp_path: Path) -> None:
    """A copy of the embedding is left where it is; another matrix is the head, whatever the configuration says."""
    source = checkpoint(tmp_path / "in", tie_word_embeddings=True)
    text = import_checkpoint(source, tmp_path / "out").graph.read_text()
    assert "lm_head.weight" in text and "linear(x, head)" in text
    model = oic.Model.open(source)
    tensors = {n: ("F32", model.tensor("model.embed_tokens.weight" if n == "lm_head.weight" else n)) for n in model.names()}
    del model
    write_safetensors(source / "model.safetensors", tensors)
    text = import_checkpoint(source, tmp_path / "out").graph.read_text()
    assert "lm_head.weight" not in text and "linear(x, embed)" in text


def test_what_configurations_of_gemma_mean(tmp_path: Path) -> None:
    """Its first ones say gelu for the form with tanh, with or without a null beside it."""
    for i, (act, null) in enumerate((("gelu", ("hidden_activation",)), ("gelu", ()), (None, ("hidden_activation",)))):
        source = checkpoint(tmp_path / f"in{i}", null=null, model_type="gemma", head_dim=4, hidden_act=act)
        assert 'approx="tanh"' in import_checkpoint(source, tmp_path / "out").graph.read_text()


def test_a_size_that_is_null_is_as_if_nothing_said_it(tmp_path: Path) -> None:
    texts = [
        import_checkpoint(checkpoint(tmp_path / f"in{i}", null=null), tmp_path / "out").graph.read_text()
        for i, null in enumerate(((), ("head_dim",), ("num_key_value_heads", "head_dim")))
    ]
    assert texts[0] == texts[1] == texts[2] and "Dh = 4;" in texts[0]


def test_room_and_tokens_of_a_step_are_chosen(tmp_path: Path) -> None:
    made = import_checkpoint(checkpoint(tmp_path / "in"), tmp_path / "out", context=5, prefill=2, name="small")
    text = made.graph.read_text()
    assert "graph small {" in text and "T = 5;" in text and "P = 2;" in text


def logits(executor: oic.Executor, *steps: int, rows: bool = False) -> Any:
    """Of nine tokens, in steps of so many; of a batch those of the first row, the second has none."""
    ids, found = np.arange(9, dtype=np.int32) * 2, []
    with executor:
        for n in steps:
            row, ids = ids[:n], ids[n:]
            given = {"tokens": np.stack([row] * 2), "lengths": np.array([n, 0], np.int32)} if rows else {"tokens": row}
            found.append(executor.step(**given)["logits"].reshape(-1, n, 24)[0])
    return np.concatenate(found)


@pytest.mark.parametrize(("cache", "error"), [("f16", 2**-11), ("bf16", 2**-8), ("q8", 1 / 254)])
def test_a_cache_of_fewer_bits(cache: str, error: float, tmp_path: Path) -> None:
    """Every split of a prompt has the same bits; rows of a batch are as alone; the error is that of the type stored."""
    source = checkpoint(tmp_path / "in")
    made = import_checkpoint(source, tmp_path / "out", cache=cache)
    graph, model = oic.parse_file(made.graph), oic.Model.open(made.model)
    built = oic.Synthesizer(graph, model).build()
    whole = logits(built.make_executor(), 9)
    assert whole.tobytes() == logits(built.make_executor(), 4, 1, 4).tobytes()
    simulated = logits(oic.Simulator(graph, model).make_executor(), 9)
    assert np.allclose(whole, simulated, rtol=0, atol=1e-4)
    rows = import_checkpoint(source, tmp_path / "rows", cache=cache, batch=2)
    batch = oic.Simulator(oic.parse_file(rows.graph), oic.Model.open(rows.model)).make_executor()
    assert np.allclose(logits(batch, 9, rows=True), simulated, rtol=0, atol=1e-4)
    wide = import_checkpoint(source, tmp_path / "wide")
    exact = logits(oic.Simulator(oic.parse_file(wide.graph), oic.Model.open(wide.model)).make_executor(), 9)
    assert 0 < np.abs(simulated - exact).max() < 8 * error * np.abs(exact).max()


def test_a_cache_that_a_family_has_not(tmp_path: Path) -> None:
    with pytest.raises(oic.OicError, match="a cache of 'q4': f32, f16, bf16, q8"):
        import_checkpoint(checkpoint(tmp_path / "in"), tmp_path / "out", cache="q4")


REFUSED = {
    "no family": ({"model_type": None}, "import-family", "no configuration says which family"),
    "near family": ({"model_type": "lama"}, "import-family", "the nearest is 'llama'"),
    "family with pictures": ({"model_type": "gemma3"}, "import-family", "the nearest is 'gemma3_text'"),
    "quantised": (
        {"quantization_config": {"quant_method": "gptq", "bits": 4}}, "import-unsupported",
        "'quantization_config.quant_method' is 'gptq' supported: floats",
    ),
    "factors": ({"mlp_multipliers": [1.0, float("inf")]}, "import-unsupported", "supported: 2 finite factors"),
    "missing field": ({"num_attention_heads": None}, "import-config", "config.json has no 'num_attention_heads'"),
    "wrong kind": ({"num_attention_heads": "two"}, "import-config", "'num_attention_heads' is 'two'"),
    "activation": ({"hidden_act": "swishy"}, "import-unsupported", "'hidden_act' is 'swishy'"),
    "scaling": ({"rope_scaling": {"rope_type": "ntk", "factor": 2}}, "import-unsupported", "'linear', 'llama3', 'yarn'"),
    "scaling by its other name": ({"rope_scaling": {"type": "su"}}, "import-unsupported", "'rope_scaling.type' is 'su'"),
    "scaling of no kind": ({"rope_scaling": {"factor": 2.0}}, "import-unsupported", "'rope_scaling.factor' is 2.0"),
    "scaling of some layers": (
        {"model_type": "gemma3_text", "rope_parameters": {"full_attention": {"rope_type": "ntk", "factor": 2.0}}},
        "import-unsupported", "'rope_parameters.full_attention.rope_type' is 'ntk'",
    ),
    "scaling that is no table": ({"rope_scaling": "linear"}, "import-unsupported", "'rope_scaling' is 'linear' supported: a table"),
    "scaling of some layers by another key": (
        {"rope_scaling": {"full_attention": {"rope_type": "linear", "factor": 2.0}}}, "import-unsupported",
        "'rope_scaling.full_attention.",
    ),
    "scaling of no kind of some layers": (
        {"rope_parameters": {"full_attention": {"factor": 2.0}}}, "import-unsupported",
        "'rope_parameters.full_attention.factor' is 2.0 supported: with a 'rope_type'",
    ),
    "scaling of some layers by its other name": (
        {"rope_parameters": {"full_attention": {"type": "su"}}}, "import-unsupported",
        "'rope_parameters.full_attention.type' is 'su'",
    ),
    "experts": ({"model_type": "jetmoe", "num_local_experts": 8}, "import-unsupported", "'num_local_experts' is 8"),
    "experts in a known family": ({"num_experts": 64}, "import-unsupported", "one feed-forward network a layer"),
    "layers": ({"layer_types": ["full_attention", "chunked"]}, "import-unsupported", "'layer_types' is 'chunked'"),
    "too few": ({"layer_types": ["full_attention"]}, "import-config", "a list of 2 items"),
    "odd head": ({"head_dim": 7}, "import-unsupported", "'head_dim' is 7"),
    "a number": ({"hidden_act": 3}, "import-config", "'hidden_act' is 3"),
    "odd part": ({"partial_rotary_factor": 0.3}, "import-unsupported", "partial_rotary_factor"),
    "odd part by another key": ({"rotary_pct": 0.3}, "import-unsupported", "rotary_pct"),
    "more heads": ({"num_attention_heads": 4, "head_dim": 4}, "model-shape", "q_proj.weight' is [8, 8] in "),
    "another scaling comes first": (
        {"rope_parameters": {"rope_type": "default"}, "rope_scaling": {"rope_type": "ntk"}}, "import-unsupported",
        "'rope_scaling.rope_type' is 'ntk'",
    ),
    "factors of no range": (
        {"rope_scaling": {"rope_type": "llama3", "factor": 2.0, "low_freq_factor": 4.0, "high_freq_factor": 4.0}},
        "import-unsupported", "'rope_scaling.high_freq_factor' is 4.0 supported: above 'low_freq_factor', 4.0",
    ),
    "a table that says more": (
        {"rope_parameters": {"rope_type": "yarn", "factor": 2.0, "llama_4_scaling_beta": 0.1}}, "import-unsupported",
        "'rope_parameters.llama_4_scaling_beta' is 0.1 supported: alpha, attention_factor, ",
    ),
    "a table of other layers": (
        {"rope_parameters": {"local_attention": {"rope_theta": 5.0}}}, "import-unsupported",
        "'rope_parameters.local_attention.rope_theta' is 5.0",
    ),
    "no scaling where it is usual": ({"model_type": "cwm", "head_dim": 4}, "import-unsupported", "'rope_parameters' is None"),
    "too few factors": (_longrope(short_factor=[1.0]), "import-unsupported", "'rope_scaling.short_factor' is 'a list of 1' supported: 2"),
    "too many factors": (_longrope(long_factor=[1.0] * 3), "import-unsupported", "'rope_scaling.long_factor' is 'a list of 3'"),
    "no factors": (_longrope(long_factor=None), "import-unsupported", "'rope_scaling.long_factor' is None"),
    "a factor of 0": (_longrope(long_factor=[1.0, 0]), "import-unsupported", "2 factors above 0, one for each frequency"),
    "factors of no number": (_longrope(short_factor=[True, "1"]), "import-unsupported", "2 factors above 0"),
    "a factor for all": (_longrope(short_factor=2.0), "import-unsupported", "'rope_scaling.short_factor' is 2.0"),
    "no context of short texts": (
        _longrope(model_type="phi3", original_max_position_embeddings=None), "import-config",
        "config.json has no 'original_max_position_embeddings' --set original_max_position_embeddings=…",
    ),
    "a context of one token": (_longrope(original_max_position_embeddings=1), "import-unsupported", "above 1"),
    "a stretched base of two elements": (
        {"head_dim": 2, "rope_scaling": {"type": "dynamic", "alpha": 2.0}}, "import-unsupported", "'rope_scaling.alpha' is 2.0",
    ),
    "a base that is stretched too far": (
        {"rope_scaling": {"type": "dynamic", "alpha": 1e300}}, "import-unsupported", "'rope_scaling.alpha' is 1e+300",
    ),
    "turned more strongly before norms": (
        {"model_type": "hunyuan_v1_dense", "rope_scaling": {"type": "yarn", "factor": 4.0}, "head_dim": 4,
         "more": tuple(f"model.layers.0.self_attn.{n}_layernorm.weight" for n in ("query", "key"))},
        "import-unsupported", "'attention_factor' is 1.138",
    ),
    "norms of q and k that are said alone": ({"use_qk_norm": True}, "import-unsupported", "'use_qk_norm' is True"),
    "norms of q and k against what is said": (
        {"qk_layernorm": False, "more": ("model.layers.0.self_attn.q_norm.weight",)}, "import-unsupported",
        "'qk_layernorm' is False",
    ),
    "norms of results that are said alone": ({"use_post_norm": True}, "import-unsupported", "'use_post_norm' is True"),
    "norms of results against what is said": (
        {"use_post_norm": False, "more": ("model.layers.0.post_norm1.weight",)}, "import-unsupported",
        "'use_post_norm' is False supported: true",
    ),
    "clipping beside norms": (
        {"clip_qkv": 1.0, "more": ("model.layers.0.self_attn.q_norm.weight",)}, "import-unsupported", "'clip_qkv' is 1.0",
    ),
    "clipping to nothing": ({"clip_qkv": 0.0}, "import-config", "'clip_qkv' is 0.0, and should be above 0"),
    "no window": ({"model_type": "cohere2", "null": ("sliding_window",)}, "import-config", "no 'sliding_window'"),
    "a window that is not used": (
        {"model_type": "cohere2", "use_sliding_window": False}, "import-unsupported", "'use_sliding_window' is False",
    ),
    "yarn without waves": ({"rope_scaling": {"rope_type": "yarn", "factor": 2.0, "rope_theta": 1}}, "import-unsupported", "above 1"),
    "a number beyond f64": ({"rope_theta": 10**310}, "import-config", "0, and should be a finite number of 64 bits"),
    "a size beyond 64 bits": ({"head_dim": 10**310}, "import-config", ", and should be an integer of 64 bits"),
    "eps": ({"rms_norm_eps": -1.0}, "import-config", "'rms_norm_eps' is -1.0"),
    "both ways": (
        {"model_type": "gemma3_text", "use_bidirectional_attention": True}, "import-unsupported",
        "'use_bidirectional_attention' is True",
    ),
    "more layers": ({"num_hidden_layers": 3}, "import-weights", "missing: model.layers.2.input_layernorm.weight"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_named_and_nothing_is_written(case: str, tmp_path: Path) -> None:
    config, slug, text = REFUSED[case]
    with pytest.raises(oic.OicError) as caught:
        import_checkpoint(checkpoint(tmp_path / "in", **config), tmp_path / "out")
    found = caught.value.diagnostics[0]
    assert found.slug == slug and text in f"{found.message} {found.hint}"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("family", "key"), [
    ("starcoder2", "use_bias"), ("jais2", "attention_bias"), ("jais2", "mlp_bias"), ("seed_oss", "attention_bias"),
    ("glm4", "attention_bias"), ("qwen2", "use_qkv_bias"), ("gpt_neox", "attention_bias"), ("opt", "enable_bias"),
    ("mamba", "use_conv_bias"), ("falcon_mamba", "use_conv_bias"), ("opt", "layer_norm_elementwise_affine"),
])  # fmt: skip
def test_weights_of_which_the_configuration_says_that_there_are_none(family: str, key: str, tmp_path: Path) -> None:
    source = checkpoints.checkpoint(tmp_path / "in", family, **{key: True})
    import_checkpoint(source, tmp_path / "out")
    with pytest.raises(oic.OicError, match=f"'{key}' is False"):
        import_checkpoint(source, tmp_path / "none", settings={key: False})


def test_biases_of_results_alone(tmp_path: Path) -> None:
    """The key of a part comes before that of the whole."""
    said = {"attention_bias": False, "attention_out_bias": True, "more": tuple(f"model.layers.{i}.self_attn.o_proj.bias" for i in range(2))}
    import_checkpoint(checkpoint(tmp_path / "in", **said), tmp_path / "out")


def test_the_context_trained_on_is_that_of_its_table(tmp_path: Path) -> None:
    """One beside a table of all layers comes first; of tables of kinds of layers each has its own, as in transformers."""

    def frequencies(name: str, by_kind: bool, **config: Any) -> np.ndarray:
        yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
        folder = checkpoint(tmp_path / name, rope_parameters={"full_attention": yarn} if by_kind else yarn, **config)
        return np.load(import_checkpoint(folder, tmp_path / f"{name}-out").folder / "extra.npz")["rope_frequencies"]

    plain = frequencies("plain", False)
    assert (frequencies("kinds", True) == plain).all()
    assert (frequencies("kinds-and-one", True, original_max_position_embeddings=4000) == plain).all()
    assert not (frequencies("one", False, original_max_position_embeddings=4000) == plain).all()


def test_a_context_beyond_the_positions_of_the_configuration_is_told(tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "in")
    assert not import_checkpoint(source, tmp_path / "out", context=16).warnings
    done = CliRunner().invoke(main, ["import", str(source), "-o", str(tmp_path / "out"), "--context", "17"])
    assert done.exit_code == 0
    assert "warning[import-context]: a context of 17 tokens, and the configuration is for 16" in done.stderr
    commands = (["generate", "--ids", "1", "-n", "1"], ["quantize"], ["quantize", "--report", "--ids", "1", "-n", "1"],
                ["verify", "--against", "none.npz"])  # fmt: skip
    for name, *options in commands:
        done = CliRunner().invoke(main, [name, str(source), *options, "--context", "17", "--json"])
        assert done.exit_code == (name == "verify") and done.stderr.count("warning[import-context]") == 1
        assert json.loads(done.stdout)
    with oic.Generator(source, context=17) as generator:
        assert [d.slug for d in generator.warnings] == ["import-context"]
    unsaid = checkpoint(tmp_path / "unsaid", max_position_embeddings=None)
    assert not import_checkpoint(unsaid, tmp_path / "out", context=5000).warnings


def test_settings_that_are_nested_without_end_are_refused(tmp_path: Path) -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(oic.OicError, match="settings: maximum recursion depth"):
        import_checkpoint(checkpoint(tmp_path / "in"), tmp_path / "out", settings={"x": deep})


def test_frequencies_that_depend_on_the_length_of_a_text(tmp_path: Path) -> None:
    """Those of short texts have a context of their own; others have those of long ones, or none."""
    source = checkpoint(tmp_path / "longrope", **_longrope())
    made = [import_checkpoint(source, tmp_path / f"{n}", context=n) for n in (None, 8, 9)]
    assert [m.context for m in made] == [8, 8, 9]
    reach = [next(f for f in m.features if f.startswith("rope")) for m in made]
    assert reach == ["rope of texts up to 8 tokens"] * 2 + ["rope of texts beyond 8 tokens"]
    source = checkpoint(tmp_path / "dynamic", rope_scaling={"type": "dynamic", "factor": 2.0})
    made.append(import_checkpoint(source, tmp_path / "out", context=16))
    assert made[-1].context == 16 and "rope of texts up to 16 tokens" in made[-1].features
    for short, room in ((made[0], 9), (made[1], 9), (made[-1], 17)):  # the graph has other frequencies than such texts
        with pytest.raises(oic.OicError, match=f"a context of {room} tokens, but .* has positions for {room - 1}"):
            oic.Generator(short.folder, room)
    with pytest.raises(oic.OicError, match="'rope_scaling.type' is 'dynamic'"):
        import_checkpoint(source, tmp_path / "more", context=17)


def test_a_name_that_no_graph_can_have(tmp_path: Path) -> None:
    for name in ("a b", "9x", "", "é"):
        with pytest.raises(oic.OicError, match="cannot be the name of a graph"):
            import_checkpoint(checkpoint(tmp_path / f"in{len(name)}{ord(name[:1] or '0')}"), tmp_path / "out", name=name)
    with pytest.raises(oic.OicError, match="a context of 2147483648 tokens"):
        import_checkpoint(checkpoint(tmp_path / "in"), tmp_path / "out", context=1 << 31)


def test_weights_missing_and_left_over_are_both_listed(tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "in", without="model.layers.1.mlp.up_proj.weight", more=("model.layers.1.mlp.up.weight",))
    with pytest.raises(oic.OicError) as caught:
        import_checkpoint(source, tmp_path / "out")
    found = caught.value.diagnostics[0]
    assert found.message.endswith("1 weights are missing, and 1 have no place")
    assert "missing: model.layers.1.mlp.up_proj.weight (did you mean 'model.layers.1.mlp.up.weight'?)" in str(found.hint)
    assert "not asked for: model.layers.1.mlp.up.weight" in str(found.hint)


@pytest.mark.parametrize(("said", "text"), [
    ({"attention_types": types}, "'attention_types' is [] supported: a kind for each of 2 layers")
    for types in ("global", [], [["global", 12]], [[[], 2]], [["global", "local"]])
] + [({"attention_layers": ["global", "near"]}, "'attention_layers' is 'near'")])  # fmt: skip
def test_kinds_of_gpt_neos_layers_that_are_none(said: dict[str, Any], text: str, tmp_path: Path) -> None:
    source = checkpoints.checkpoint(tmp_path / "in", "gpt_neo")
    config = json.loads((source / "config.json").read_text())
    del config["attention_layers"]
    (source / "config.json").write_text(json.dumps(config | said))
    with pytest.raises(oic.OicError) as caught:
        import_checkpoint(source, tmp_path / "out")
    assert text in f"{caught.value.diagnostics[0].message} {caught.value.diagnostics[0].hint}"


@pytest.mark.parametrize("norm", ["input_layernorm", "post_attention_layernorm"])
def test_a_sublayer_without_any_norm_is_refused(norm: str, tmp_path: Path) -> None:
    """Sublayers side by side may share one norm: where nothing says that they are, weights that lack one tell nothing."""
    source = checkpoint(tmp_path / "in")
    model = oic.Model.open(source)
    tensors = {n: ("F32", model.tensor(n)) for n in model.names() if norm not in n}
    del model
    write_safetensors(source / "model.safetensors", tensors)
    with pytest.raises(oic.OicError, match="2 weights are missing, and 0 have no place"):
        import_checkpoint(source, tmp_path / "out")
    if norm == "post_attention_layernorm":
        import_checkpoint(source, tmp_path / "out", settings={"use_parallel_residual": True})


def test_layers_of_several_kinds_are_loops_over_their_period() -> None:
    def loops(*names: str) -> list[str]:
        return list(_loops(names, [Layer()] * len(names), by_row=False))

    assert loops(*["near", "near", "far"] * 2, "near") == [
        "loop groups_0 (g in 0..2) {",
        "loop near_0 (l in g * 3..g * 3 + 2) { branch near; }",
        "loop far_2 (l in g * 3 + 2..g * 3 + 3) { branch far; }",
        "}",
        "loop near_6 (l in 6..7) { branch near; }",
    ]
    assert loops("a", "b", "b") == ["loop a_0 (l in 0..1) { branch a; }", "loop b_1 (l in 1..3) { branch b; }"]


@pytest.mark.parametrize(
    "text", ["{}", '{"format": "oic.model", "version": 2, "files": ["a"]}', '{"format": "oic.model", "version": 1, "files": []}',
             '{"format": "oic.model", "version": 1, "files": ["model.json"]}', "[1"],
)  # fmt: skip
def test_a_reference_that_is_wrong_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text(text)
    with pytest.raises(oic.OicError) as caught:
        oic.Model.open(tmp_path / "model.json")
    assert "model.json" in caught.value.diagnostics[0].message


def test_a_tensor_in_two_files_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", w=np.ones(2, np.float32))
    np.savez(tmp_path / "b.npz", w=np.ones(2, np.float32))
    (tmp_path / "model.json").write_text('{"format": "oic.model", "version": 1, "files": ["a.npz", "b.npz"]}')
    with pytest.raises(oic.OicError, match="'w' is in 'b.npz' and in one before it"):
        oic.Model.open(tmp_path / "model.json")


@needs_models
@pytest.mark.parametrize("family", EXAMPLES)
def test_tiny_models_equal_their_references(family: str, tmp_path: Path) -> None:
    models = models_dir()
    assert models is not None
    source = models / EXAMPLES[family]
    made = import_checkpoint(source, tmp_path / "out")
    reference = np.load(source / "ref.npz")
    built = oic.Synthesizer(oic.parse_file(made.graph), oic.Model.open(made.model)).build(tmp_path / "build")
    with built.make_executor() as ex:
        for i in range(int(reference["n_prompts"])):
            ids = np.concatenate([reference[f"p{i}_prompt"], reference[f"p{i}_greedy"]]).astype(np.int32)
            ex.reset()
            logits = ex.step(tokens=ids)["logits"]
            assert float(np.abs(logits - reference[f"p{i}_logits_f64"]).max()) <= 1e-4
            at = len(reference[f"p{i}_prompt"])
            assert logits[at - 1 : -1].argmax(-1).tolist() == reference[f"p{i}_greedy"].tolist()
            for name, key in (("K", "k"), ("V", "v")):
                cache = np.swapaxes(ex.fetch(name), 1, 2)[:, :, : len(ids)]
                assert float(np.abs(cache - reference[f"p{i}_cache_{key}"]).max()) <= 5e-5
