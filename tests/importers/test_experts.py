"""Mixtures of experts: what is known of their answers without another implementation."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oic
from importers.checkpoints import checkpoint
from model.samples import write_safetensors
from oic.diagnostics import OicError
from oic.importers import Imported, import_checkpoint

IDS = [1, 5, 9, 2, 20, 7, 7, 3]
FAMILIES = ("mixtral", "qwen2_moe", "qwen3_moe", "olmoe", "granitemoeshared", "lfm2_moe", "dots1")
ROUTERS = ("moe.gate.weight", "mlp.gate.weight", "router.layer.weight", "forward.gate.weight", "expert_bias", "correction_bias")
STACKED = ("input_linear", "output_linear", "router.layer")


def model_of(folder: Path) -> dict[str, np.ndarray]:
    model = oic.Model.open(folder)
    return {name: np.array(model.tensor(name)) for name in model.names()}


def is_router(name: str) -> bool:
    return name.endswith(ROUTERS)


def write(folder: Path, config: dict[str, object], tensors: dict[str, np.ndarray]) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    write_safetensors(folder / "model.safetensors", {n: ("F32", a.astype(np.float32)) for n, a in tensors.items()})
    return folder


def logits(source: Path, out: Path) -> np.ndarray:
    """Of the reference."""
    made = import_checkpoint(source, out)
    with oic.Simulator(oic.parse_file(made.graph), oic.Model.open(made.model)).make_executor() as session:
        return session.step(tokens=np.array(IDS, np.int32))["logits"]


@pytest.mark.parametrize(("family", "weights"), [*((f, "f32") for f in FAMILIES), ("qwen2_moe", "q8"), ("granitemoeshared", "q8"), ("lfm2_moe", "q8")])
def test_every_split_of_a_prompt_has_the_same_bits(family: str, weights: str, tmp_path: Path) -> None:
    made = import_checkpoint(checkpoint(tmp_path / "in", family), tmp_path / "out")
    found = of_splits(made, tmp_path, weights=weights)
    if weights == "f32":
        assert float(np.abs(found - logits(tmp_path / "in", tmp_path / "reference")).max()) <= 1e-5


def of_splits(made: Imported, folder: Path, **settings: Any) -> np.ndarray:
    """The logits, which are the same for every split, number of threads, and number of rows that an expert is given at once."""
    found = []
    for threads, rows in ((1, 16), (2, 3)):
        graph, model = oic.parse_file(made.graph), oic.Model.open(made.model)
        program = oic.Synthesizer(graph, model, threads=threads, sizes={"R": rows}, **settings).build(folder / f"c{rows}")
        assert not [d for d in program.warnings if d.slug == "late-refusal"]
        for parts in (1, 3, 8):
            with program.make_executor() as session:
                steps = np.array_split(np.array(IDS, np.int32), parts)
                found.append(np.concatenate([session.step(tokens=step)["logits"] for step in steps]))
    assert len({one.tobytes() for one in found}) == 1
    return found[0]


@pytest.mark.parametrize("family", ["mixtral", "granitemoeshared"])
def test_all_tokens_may_go_to_the_same_experts(family: str, tmp_path: Path) -> None:
    """The first ones, where all scores are alike; the others have no rows."""
    source = checkpoint(tmp_path / "in", family)
    alike = {n: a * 0 if is_router(n) else a for n, a in model_of(source).items()}
    same = write(tmp_path / "alike", json.loads((source / "config.json").read_text()), alike)
    found = of_splits(import_checkpoint(same, tmp_path / "out"), tmp_path)
    assert float(np.abs(found - logits(same, tmp_path / "reference")).max()) <= 1e-5


@pytest.mark.parametrize("family", ["granitemoeshared", "dots1"])
def test_rows_of_a_batch_have_the_bits_of_runs_of_their_own(family: str, tmp_path: Path) -> None:
    made = import_checkpoint(checkpoint(tmp_path / "in", family), tmp_path / "out", batch=2)
    wanted = logits(tmp_path / "in", tmp_path / "one")
    with oic.Simulator(oic.parse_file(made.graph), oic.Model.open(made.model)).make_executor() as session:
        tokens = np.array([IDS, [7] * len(IDS)], np.int32)
        found = session.step(tokens=tokens, lengths=np.array([len(IDS), 0], np.int32))["logits"]
    assert found[0].tobytes() == wanted.tobytes()


@pytest.mark.parametrize("family", FAMILIES)
def test_the_order_of_experts_does_not_matter(family: str, tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "in", family)
    tensors, config = model_of(source), json.loads((source / "config.json").read_text())
    count = next(len(a) for n, a in tensors.items() if is_router(n))
    order = [*range(1, count), 0]
    other = dict(tensors)
    for name, array in tensors.items():
        if ".experts." in name:
            place, _, rest = name.partition(".experts.")
            number, _, end = rest.partition(".")
            other[name] = tensors[f"{place}.experts.{order[int(number)]}.{end}"]
        elif is_router(name) or (".block_sparse_moe." in name and array.ndim == 3):
            other[name] = array[order]
    found = logits(write(tmp_path / "other", config, other), tmp_path / "b")
    assert any(not np.array_equal(tensors[n], other[n]) for n in tensors)
    assert found.tobytes() == logits(source, tmp_path / "a").tobytes()


def test_experts_that_are_alike_are_one_network(tmp_path: Path) -> None:
    """Where shares add up to 1; a Mixtral of one expert is a Llama."""
    source = checkpoint(tmp_path / "in", "mixtral")
    tensors, config = model_of(source), json.loads((source / "config.json").read_text())
    first = {n: a for n, a in tensors.items() if ".experts.0." in n}
    alike = tensors | {n: first[n[: n.index(".experts.")] + ".experts.0." + n.rpartition("experts.")[2][2:]]
                       for n in tensors if ".experts." in n}  # fmt: skip
    names = {"w1": "gate_proj", "w2": "down_proj", "w3": "up_proj"}
    llama = {n: a for n, a in tensors.items() if ".block_sparse_moe." not in n}
    for name, array in first.items():
        end = name.split(".")[-2]
        llama[name.replace(f"block_sparse_moe.experts.0.{end}", f"mlp.{names[end]}")] = array
    own = {k: v for k, v in config.items() if k != "num_local_experts"}
    own |= {"model_type": "llama", "rms_norm_eps": 1e-5, "rope_theta": 1e6}
    known = logits(write(tmp_path / "llama", own, llama), tmp_path / "a")
    found = logits(write(tmp_path / "alike", config, alike), tmp_path / "b")
    assert float(np.abs(found - known).max()) <= 1e-5


@pytest.mark.parametrize("place", ["model.layers.2.", "model.mtp_block.0."])
def test_layers_that_guess_further_tokens_are_left_out(place: str, tmp_path: Path) -> None:
    source = checkpoint(tmp_path / "in", "dots1")
    config, tensors = json.loads((source / "config.json").read_text()) | {"num_nextn_predict_layers": 1}, model_of(source)
    assert config["num_hidden_layers"] == 2
    more = {n.replace("model.layers.1.", place): a for n, a in tensors.items()} | {f"{place}eh_proj.weight": np.ones((3, 3))}
    found = logits(write(tmp_path / "more", config, tensors | more), tmp_path / "a")
    assert found.tobytes() == logits(source, tmp_path / "b").tobytes()


def test_a_number_of_experts_may_be_said_layer_by_layer(tmp_path: Path) -> None:
    """Of those layers that have experts it is the same."""
    source = checkpoint(tmp_path / "in", "dots1")
    config = json.loads((source / "config.json").read_text())
    dense = config["first_k_dense_replace"]
    listed = {key: [9] * dense + [config[key]] * (config["num_hidden_layers"] - dense) for key in ("n_routed_experts", "num_experts_per_tok")}
    found = logits(write(tmp_path / "listed", config | listed, model_of(source)), tmp_path / "a")
    assert found.tobytes() == logits(source, tmp_path / "b").tobytes()


REFUSED = {
    "more than there are": ({"num_experts_per_tok": 5}, "import-unsupported", "'num_experts_per_tok' is 5 supported: at most the 4"),
    "of no layers": ({"decoder_sparse_step": 0}, "import-unsupported", "'decoder_sparse_step' is 0"),
    "of a part of a layer": ({"decoder_sparse_step": 1.5}, "import-unsupported", "'decoder_sparse_step' is 1.5"),
    "no list of layers": ({"mlp_only_layers": 1}, "import-unsupported", "'mlp_only_layers' is 1"),
    "no numbers of layers": ({"mlp_only_layers": [True]}, "import-unsupported", "'mlp_only_layers' is [True]"),
    "of layers of other kinds": ({"mlp_layer_types": ["dense", "other"]}, "import-unsupported", "'mlp_layer_types' is 'other'"),
    "kinds of fewer layers": ({"mlp_layer_types": ["dense"]}, "import-config", "a list of 2 items"),
    "dense against the weights": ({"mlp_only_layers": [1]}, "import-weights", "missing: model.layers.1.mlp.down_proj.weight"),
    "a number below 0": ({"first_k_dense_replace": -1}, "import-unsupported", "'first_k_dense_replace' is -1"),
    "not the same in all layers": ({"num_experts_per_tok": [1, 2]}, "import-unsupported", "'num_experts_per_tok' is [1, 2] supported: one number"),
    "of too few layers": ({"num_experts": [4]}, "import-config", "a list of 2 items"),
    "more that guess than tensors": ({"num_nextn_predict_layers": 1 << 40}, "import-config", "1099511627776"),
    "in groups": ({"n_group": 2, "topk_group": 1}, "import-unsupported", "'n_group' is 2"),
    "more than have scores": ({"num_experts": 1 << 62}, "import-config", "4611686018427387904, and should be at most 4"),
    "fewer than have weights": ({"num_experts": 3}, "import-weights", "not asked for: model.layers.0.mlp.experts.3."),
    "another width": ({"moe_intermediate_size": 12}, "model-shape", "gate_proj"),
    "no family with experts": ({"model_type": "qwen3"}, "import-unsupported", "'num_experts' is 4 supported: one feed-forward"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_no_graph_is_written_for_is_named(case: str, tmp_path: Path) -> None:
    said, slug, text = REFUSED[case]
    source = checkpoint(tmp_path / "in", "qwen3_moe")
    with pytest.raises(OicError) as caught:
        import_checkpoint(source, tmp_path / "out", settings=said)
    shown = " ".join(f"{d.message} {d.hint or ''}" for d in caught.value.diagnostics)
    assert caught.value.diagnostics[0].slug == slug and text in shown.replace("; ", " ")
    assert not (tmp_path / "out").exists()
