"""GPT-2: gpt2-tiny against its reference in every backend, and the memory of the 124M shape."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oic
from importers.checkpoints import checkpoint
from oic.driver import Program, Settings, compile_graph
from oic.importers import import_checkpoint
from oic.memory.map import memory_map
from oic.operators.fused import Copy
from paths import ROOT, models_dir, needs_models

FOLDER = ROOT / "examples" / "gpt2"
GRAPH = FOLDER / "any_size.oi"
BACKENDS = ("graph", "planned", "c")
LOGITS, CACHE = 1e-4, 5e-5  # absolute, of the reference in f64 and in f32


def tiny() -> Path:
    models = models_dir()
    assert models is not None
    return models / "gpt2-tiny"


@pytest.fixture(scope="module")
def reference() -> dict[str, np.ndarray]:
    return dict(np.load(tiny() / "ref.npz"))


@pytest.fixture(scope="module")
def makers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    graph, model = oic.parse_file(GRAPH), oic.Model.open(tiny())
    return {
        "graph": oic.Simulator(graph, model),
        "planned": oic.Simulator(graph, model, stage="planned"),
        "c": oic.Synthesizer(graph, model).build(tmp_path_factory.mktemp("gpt2")),
    }


@pytest.fixture
def shapes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The example's module of shapes."""
    monkeypatch.syspath_prepend(str(FOLDER))
    yield import_module("shapes")
    del sys.modules["shapes"]


def feed(executor: oic.Executor, ids: np.ndarray, chunks: list[int]) -> np.ndarray:
    """Logits of all ids, fed so many at a time to a fresh state."""
    executor.reset()
    assert sum(chunks) == len(ids)
    parts = np.split(ids.astype(np.int32), np.cumsum(chunks)[:-1])
    return np.concatenate([executor.step(tokens=part)["logits"] for part in parts])


def greedy(executor: oic.Executor, prompt: np.ndarray, count: int) -> list[int]:
    executor.reset()
    found = [int(executor.step(tokens=prompt.astype(np.int32))["next"][-1])]
    while len(found) < count:
        found.append(int(executor.step(tokens=np.array(found[-1:], np.int32))["next"][0]))
    return found


# ---------------------------------------------------------------- the reference


@needs_models
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("prompt", [0, 1])
def test_logits_and_cache_equal_the_reference(
    prompt: int, backend: str, makers: dict[str, Any], reference: dict[str, np.ndarray]
) -> None:
    """All at once, token by token, the prompt and then steps, and in uneven chunks."""
    own = {k[3:]: v for k, v in reference.items() if k.startswith(f"p{prompt}_")}
    ids = np.concatenate([own["prompt"], own["greedy"]])
    asked, count = len(own["prompt"]), len(ids)
    ways = ([count], [1] * count, [asked] + [1] * (count - asked), [3, 0, count - 4, 1])
    with makers[backend].make_executor() as executor:
        for chunks in ways:
            logits = feed(executor, ids, chunks)
            np.testing.assert_allclose(logits, own["logits_f64"], rtol=0, atol=LOGITS)
            for name in "KV":
                table = executor.fetch(name)[:, :count].swapaxes(1, 2)
                expected = own[f"cache_{name.lower()}"]
                np.testing.assert_allclose(table, expected, rtol=0, atol=CACHE)
                assert not executor.fetch(name)[:, count:].any()


@needs_models
@pytest.mark.parametrize("backend", BACKENDS)
def test_greedy_ids_equal_the_reference(
    backend: str, makers: dict[str, Any], reference: dict[str, np.ndarray]
) -> None:
    """The prompts, and every row of the batch by itself."""
    cases = [(reference[f"p{i}_prompt"], reference[f"p{i}_greedy"]) for i in (0, 1)]
    for row, length in enumerate(reference["b_len"]):
        count = reference["b_greedy_len"][row]
        cases.append((reference["b_ids"][row, :length], reference["b_greedy"][row, :count]))
    with makers[backend].make_executor() as executor:
        for prompt, expected in cases:
            assert greedy(executor, prompt, len(expected)) == expected.tolist()


@needs_models
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_hidden_states_equal_the_reference(layers: int, reference: dict[str, np.ndarray]) -> None:
    """A model cut after some layers gives the head of the reference's hidden state there."""
    model = oic.Model.open(tiny())
    simulator = oic.Simulator(oic.parse_file(GRAPH), model, sizes={"n_layer": layers})
    ids = np.concatenate([reference["p0_prompt"], reference["p0_greedy"]])
    prefix = "transformer." if model.has("transformer.wte.weight") else ""
    wte, gamma, beta = (
        model.tensor(prefix + n).astype(np.float64) for n in ("wte.weight", "ln_f.weight", "ln_f.bias")
    )
    hidden = reference["p0_hidden"][layers].astype(np.float64)
    centred = hidden - hidden.mean(-1, keepdims=True)
    normal = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    with simulator.make_executor() as executor:
        logits = feed(executor, ids, [len(ids)])
    np.testing.assert_allclose(logits, (normal * gamma + beta) @ wte.T, rtol=0, atol=LOGITS)


# ---------------------------------------------------------------- folders as they are published


@needs_models
@pytest.mark.parametrize("prefix", ["", "transformer."])
def test_folders_as_published(
    prefix: str, tmp_path: Path, reference: dict[str, np.ndarray], shapes: Any
) -> None:
    """Names with and without the prefix, mask buffers beside the weights, defaults left out."""
    own = oic.Model.open(tiny())
    old = "transformer." if own.has("transformer.wte.weight") else ""
    tensors = {
        prefix + name: own.tensor(old + name) for name, _ in shapes.tensors(shapes.SHAPES["tiny"])
    }
    for layer in range(4):
        tensors[f"{prefix}h.{layer}.attn.bias"] = np.tri(64, dtype=np.float32)[None, None]
        tensors[f"{prefix}h.{layer}.attn.masked_bias"] = np.float32(-1e4)
    write_safetensors(tmp_path / "model.safetensors", tensors)
    config = {"model_type": "gpt2", "n_embd": 64, "n_layer": 4, "n_head": 4, "n_inner": None}
    (tmp_path / "config.json").write_text(json.dumps(config))
    ids = reference["p1_prompt"]
    simulator = oic.Simulator(oic.parse_file(GRAPH), oic.Model.open(tmp_path))
    with simulator.make_executor() as executor:
        logits = feed(executor, ids, [len(ids)])
    np.testing.assert_allclose(logits, reference["p1_logits_f64"][: len(ids)], rtol=0, atol=LOGITS)


def write_safetensors(path: Path, tensors: dict[str, Any]) -> None:
    """Write tensors as f32."""
    header, at = {}, 0
    arrays = {name: np.ascontiguousarray(array, np.float32) for name, array in tensors.items()}
    for name, array in arrays.items():
        end = at + array.nbytes
        header[name] = {"dtype": "F32", "shape": list(np.shape(tensors[name])), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    body = b"".join(array.tobytes() for array in arrays.values())
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)


# ---------------------------------------------------------------- refusals


@needs_models
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_full_cache_is_refused_and_nothing_changes(
    backend: str, reference: dict[str, np.ndarray]
) -> None:
    graph, model, sizes = oic.parse_file(GRAPH), oic.Model.open(tiny()), {"T": 8, "P": 4}
    maker: Any = (
        oic.Synthesizer(graph, model, sizes=sizes)
        if backend == "c"
        else oic.Simulator(graph, model, sizes=sizes, stage=backend)
    )
    ids = np.concatenate([reference["p0_prompt"], reference["p0_greedy"]]).astype(np.int32)
    with maker.make_executor() as executor:
        feed(executor, ids[:7], [4, 3])
        before = executor.save()
        with pytest.raises(oic.StepError) as caught:
            executor.step(tokens=ids[7:9])
        assert caught.value.status == "OIC_ERR_CACHE_FULL"
        assert (caught.value.variable, caught.value.index, caught.value.bound) == ("K.t", 9, 8)
        assert executor.save() == before
        logits = executor.step(tokens=ids[7:8])["logits"]
    np.testing.assert_allclose(logits[0], reference["p0_logits_f64"][7], rtol=0, atol=LOGITS)


# ---------------------------------------------------------------- memory of the 124M shape


def decoder(shapes: Any, room: int) -> Program:
    """The 124M shape with room for so many tokens, one a step; zeros for weights, which nothing reads."""
    shape = shapes.SHAPES["124M"]
    tensors = {name: np.zeros(size, np.float32) for name, size in shapes.tensors(shape)}
    model = oic.Model(tensors=tensors, sizevars=dict(vars(shape)))
    return compile_graph(oic.parse_file(GRAPH), model, Settings(sizes={"T": room, "P": 1}, verified=True))


def test_the_cache_of_the_124m_shape_is_72_mib(shapes: Any) -> None:
    """State: K, V and one line for the position.  The arena has room for what four spans of keys give, if there are four."""
    plans = {}
    for room in (1, 1024):
        program = decoder(shapes, room)
        plan = program.planned.plan
        assert plan is not None
        cache = 2 * 12 * room * 768 * 4
        assert cache <= plan.state_bytes <= cache + 64
        assert plan.arena_bytes == plan.lower_bound == {"entry": 21504 if room == 1 else 21504 + 36 * (64 + 64) * 4}
        plans[room] = plan
    assert shapes.SHAPES["124M"].cache_bytes == 72 << 20 == 2 * 12 * 1024 * 768 * 4
    assert plans[1].weights_bytes == plans[1024].weights_bytes


def test_the_importers_graph_takes_as_much(tmp_path: Path) -> None:
    """Two layers of the 124M shape: state, arena, and nothing that is copied, as in the graph of any size."""
    sizes = {"n_embd": 768, "n_head": 12, "n_layer": 2, "n_positions": 1024, "vocab_size": 64, "n_inner": 16}
    made = import_checkpoint(checkpoint(tmp_path / "in", "gpt2", **sizes), tmp_path / "out")
    found = []
    for graph, model in ((GRAPH, tmp_path / "in"), (made.graph, made.model)):
        settings = Settings(sizes={"T": 1024, "P": 1}, verified=True)
        module = compile_graph(oic.parse_file(graph), oic.Model.open(model), settings).planned
        assert module.plan is not None and not any(isinstance(op, Copy) for op in module.all_ops())
        assert {(s.state, s.kind) for s in memory_map(module).stores} == {("K", "entry"), ("V", "entry")}
        found.append((module.plan.state_bytes, module.plan.arena_bytes["entry"]))
    assert found[0] == found[1]


def test_nothing_is_copied(shapes: Any) -> None:
    """No tensor is copied to be read, and the new k and v are computed in the cache."""
    module = decoder(shapes, 1024).planned
    assert [op for op in module.all_ops() if isinstance(op, Copy)] == []
    assert [(s.state, s.kind) for s in memory_map(module).stores] == [("K", "entry"), ("V", "entry")]
    spaces = {
        name: {v.place.space for op in module.all_ops() for v in op.results if v.hint == name and v.place}
        for name in ("keys", "values", "logits", "q_k_v", "places")
    }
    assert spaces == {
        "keys": {"state"}, "values": {"state"}, "logits": {"output"},
        "q_k_v": {"arena"}, "places": {"weights"},
    }  # fmt: skip


# ---------------------------------------------------------------- the script


def run(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, str(FOLDER / "run.py"), *arguments],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_models
def test_the_script_generates_and_checks(reference: dict[str, np.ndarray]) -> None:
    printed = run("--check", str(tiny()))
    assert "prompt 0: 24 ids equal" in printed and "prompt 1: 13 ids equal" in printed
    ids = map(str, reference["p1_prompt"])
    assert run(str(tiny()), "-n", "40", "--ids", *ids).split() == list(map(str, reference["p1_greedy"]))


def test_the_script_shows_the_memory_of_a_shape() -> None:
    printed = run("--random", "tiny")
    assert "room for 1 tokens: state 2,112 bytes" in printed
    assert "room for 64 tokens: state 131,136 bytes" in printed
    arenas = [int(n.replace(",", "")) for n in re.findall(r"arena ([\d,]+)", printed)]
    assert len(arenas) == 2 and 0 <= arenas[1] - arenas[0] <= 4 * 64 * 4  # scores of 64 keys, in each head
    assert "one token more is refused: error[OIC_ERR_INDEX]" in printed
