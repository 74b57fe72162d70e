"""What is given to the Python interface, by type: taken, or refused by the call that it is given to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oic
from importers.checkpoints import checkpoint

GRAPH = """
dynamic    { x: f32[4]; }
volatile   { all: f32[T, 4]; }
persistent { n: i32; K(t): f32[4] @table @fixed(t=T); }
block entry { cache.write x >> K[n]; cache.increment n; cache.read K[0..T] >> all; return; }
"""
GROWING = """
dynamic    { x: f32[4]; }
persistent { n: i32; K(t): f32[4] @table; }
block entry { cache.write x >> K[n]; cache.increment n; return; }
"""
BOTH = (oic.Simulator, oic.Synthesizer)
X = np.ones(4, np.float32)


def graph() -> Any:
    return oic.parse(GRAPH)


def session() -> Any:
    return oic.Simulator(graph(), sizes={"T": 3}).make_executor()


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(
    ("given", "message", "hint"),
    [
        ({"sizes": {"T": 2.5}}, "sizes['T'] is an integer, not 2.5 (float)", ""),
        ({"sizes": {"T": True}}, "sizes['T'] is an integer, not True (bool)", ""),
        ({"sizes": {"T": np.float32(2)}}, "sizes['T'] is an integer, not float32", ""),
        ({"sizes": {3: 3}}, "a name in sizes is a str, not 3 (int)", ""),
        ({"sizes": 3}, "sizes is a mapping of names, not 3 (int)", ""),
        ({"capacity": {"t": "9"}}, "capacity['t'] is an integer, not '9' (str)", ""),
        ({"fetch": "all"}, "fetch is a list of names, not 'all' (str)", "fetch=['all']"),
        ({"fetch": [1]}, "a name in fetch is a str, not 1 (int)", ""),
        ({"weights": None}, "weights is a str, not None", ""),
        ({"graph": "decode.oi"}, "graph is an oic.Graph, not 'decode.oi' (str)", "oic.parse_file(path)"),
        ({"model": "decode.npz"}, "model is an oic.Model or None, not 'decode.npz' (str)", "oic.Model.open(path)"),
    ],
)  # fmt: skip
def test_settings_of_another_type(kind: Any, given: dict[str, Any], message: str, hint: str) -> None:
    require_refusal(lambda: kind(**{"graph": graph(), "sizes": {"T": 3}} | given), message, hint)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: synthesizer(threads=2.5), "threads is an integer, not 2.5 (float)"),
        (lambda: synthesizer(threads="2"), "threads is an integer, not '2' (str)"),
        (lambda: synthesizer(threads=True), "threads is an integer, not True (bool)"),
        (lambda: synthesizer().make_executor(threads=1.0), "threads is an integer, not 1.0 (float)"),
        (lambda: synthesizer(reuse=np.zeros(2)), "reuse is True or False, not ndarray"),
        (lambda: synthesizer(profile="no"), "profile is True or False, not 'no' (str)"),
        (lambda: synthesizer(target=3), "target is a str, not 3 (int)"),
        (lambda: synthesizer(dispatch=["avx2"]), "dispatch is a str, not list"),
        (lambda: synthesizer(numerics=3), "numerics is a str or None, not 3 (int)"),
        (lambda: synthesizer(name=3), "name is a str or None, not 3 (int)"),
        (lambda: synthesizer(weights_as=3), "weights_as is a str, not 3 (int)"),
        (lambda: synthesizer().build(3), "out_dir is a str or a pathlib.Path, not 3 (int)"),
        (lambda: synthesizer().emit(3), "out_dir is a str or a pathlib.Path, not 3 (int)"),
        (lambda: oic.Simulator(graph(), sizes={"T": 3}, stage=X), "stage is a str, not ndarray"),
        (lambda: oic.parse(b"graph"), "text is a str, not b'graph' (bytes)"),
        (lambda: oic.parse("", name=3), "name is a str, not 3 (int)"),
        (lambda: oic.parse_file(3), "path is a str or a pathlib.Path, not 3 (int)"),
        (lambda: oic.Model.open(3), "path is a str or a pathlib.Path, not 3 (int)"),
        (lambda: oic.Model("decode.npz"), "tensors is a mapping of names, not 'decode.npz' (str)"),
        (lambda: oic.Model({3: X}), "a name in tensors is a str, not 3 (int)"),
        (lambda: oic.Model(sizevars=3), "sizevars is a mapping of names, not 3 (int)"),
        (lambda: oic.Sampling(temperature="hot"), "temperature is a number, not 'hot' (str)"),
        (lambda: oic.Sampling(top_k=2.0), "top_k is an integer, not 2.0 (float)"),
        (lambda: oic.Sampling(seed=None), "seed is an integer, not None"),
        (lambda: oic.import_checkpoint("nothing", "out", context="8"), "context is an integer, not '8' (str)"),
        (lambda: oic.import_checkpoint("nothing", "out", prefill=None), "prefill is an integer, not None"),
        (lambda: oic.import_checkpoint("nothing", "out", batch=2.0), "batch is an integer, not 2.0 (float)"),
        (lambda: oic.import_checkpoint("nothing", "out", name=3), "name is a str, not 3 (int)"),
        (lambda: oic.import_checkpoint("nothing", "out", cache=None), "cache is a str, not None"),
        (lambda: oic.import_checkpoint("nothing", "out", config=3), "config is a str or a pathlib.Path, not 3 (int)"),
        (lambda: oic.import_checkpoint("nothing", "out", settings=["a"]), "settings is a mapping of names, not list"),
        (lambda: oic.verify("nothing", "ids.json", within="little"), "within is a number, not 'little' (str)"),
        (lambda: oic.verify("nothing", "ids.json", prompts=3), "prompts is a list of texts or lists of token ids, not 3 (int)"),
        (lambda: oic.verify("nothing", "ids.json", count=2.0), "count is an integer, not 2.0 (float)"),
        (lambda: oic.Generator(3), "source is a str or a pathlib.Path, not 3 (int)"),
        (lambda: list(oic.generate(3, "a")), "source is a str or a pathlib.Path, not 3 (int)"),
        (lambda: oic.verify(3, "transformers"), "source is a str or a pathlib.Path, not 3 (int)"),
        (lambda: oic.import_checkpoint("nothing", 3), "out is a str or a pathlib.Path, not 3 (int)"),
        (lambda: oic.KVCache(graph()), "executor is an oic.Executor, not Graph"),
        (lambda: oic.KVCache(session(), keys=3), "keys is a str, not 3 (int)"),
        (lambda: oic.KVCache(session(), "K", "K").keys(1.5), "layer is an integer, not 1.5 (float)"),
        (lambda: session().fetch(3), "name is a str, not 3 (int)"),
        (lambda: session().step(3), "entry is a str, not 3 (int)"),
        (lambda: session().step(["entry"]), "entry is a str, not list"),
        (lambda: synthesizer().make_executor().step({"x": X}), "entry is a str, not dict"),
        (lambda: session().insert(X), "values is a mapping of names, not ndarray"),
        (lambda: session().insert({3: X}), "a name in values is a str, not 3 (int)"),
        (lambda: session().repeat(2, {"x": ["all"]}, x=X), "feed['x'] is a str, not list"),
    ],
)  # fmt: skip
def test_calls_with_another_type(call: Callable[[], object], message: str) -> None:
    require_refusal(call, message)


def test_calls_of_a_generator(tmp_path: Path) -> None:
    """With another type, and with what is as good as it."""
    folder = checkpoint(tmp_path / "llama", "llama")
    for given, message in (
        ({"context": "8"}, "context is an integer, not '8' (str)"), ({"settings": [1]}, "settings is a mapping of names, not list"),
    ):  # fmt: skip
        require_refusal(lambda given=given: oic.Generator(folder, **given), message)
    ids = np.array([1, 2, 3])
    with oic.Generator(folder, context=np.int64(16)) as generator:
        for call, message in (
            (lambda: generator.batch(3), "prompts is a list of prompts, not 3 (int)"),
            (lambda: generator.batch([1, 2]), "ids is a list of token ids, not 1 (int)"),
            (lambda: generator.batch([ids], "2"), "count is an integer, not '2' (str)"),
            (lambda: generator.batch([ids], sampling=0.5), "sampling is an oic.Sampling or None, not 0.5 (float)"),
            (lambda: generator.batch([ids], threads=1.5), "threads is an integer, not 1.5 (float)"),
            (lambda: generator.batch([ids], stops=[3]), "stop is a Stop or None, not 3 (int)"),
            (lambda: generator.batch([ids], stop_ids=3), "stop_ids is a list of token ids, not 3 (int)"),
            (lambda: generator.batch([ids], stop_texts=[3]), "a name in stop_texts is a str, not 3 (int)"),
            (lambda: list(generator.stream("abc")), "ids is a list of token ids, not 'abc' (str)"),
            (lambda: list(generator.stream(ids, session=3)), "session is what session() gives, or None, not 3 (int)"),
        ):
            require_refusal(call, message)
        with pytest.raises(oic.OicError, match="2 stops for 1 prompts"):
            generator.batch([ids], stops=[None, None])
        one = [token.id for token in generator.stream(tuple(ids), np.int64(2))]
        assert one == [token.id for token in generator.batch(ids[None], 2, threads=np.int8(1), stops=[None])[0]]


def synthesizer(**given: Any) -> Any:
    return oic.Synthesizer(graph(), sizes={"T": 3}, **given)


def require_refusal(call: Callable[[], object], message: str, hint: str = "") -> None:
    with pytest.raises(oic.OicError) as refused:
        call()
    (diagnostic,) = refused.value.diagnostics
    assert (diagnostic.slug, diagnostic.message) == ("argument-type", message)
    assert hint in (diagnostic.hint or "")


@pytest.mark.parametrize("kind", BOTH)
def test_integers_of_numpy_are_integers(kind: Any) -> None:
    with kind(graph(), oic.Model(sizevars={"T": np.int32(9)}), sizes={"T": np.int64(5)}).make_executor() as executor:
        assert len(executor.repeat(np.int64(3), {}, x=X)) == 3
        executor.truncate(np.uint8(1))
        assert executor.step(x=X)["all"].shape == (5, 4) and executor.fetch("n") == 3
    with kind(oic.parse(GROWING), capacity={"t": np.uint16(2)}).make_executor() as executor:
        assert executor.fetch("K").shape == (0, 4) and len(executor.repeat(2, {}, x=X)) == 2
        with pytest.raises(oic.StepError, match="CACHE_FULL"):
            executor.step(x=X)


def test_threads_of_numpy() -> None:
    made = oic.Synthesizer(graph(), sizes={"T": 3}, threads=np.int64(2))
    with made.make_executor(threads=np.int8(1)) as executor:
        assert executor.threads == 1 and made.spec.threads == 2


def test_paths(tmp_path: Path) -> None:
    """Texts, bytes and paths, as of Python's own `open`."""
    path = tmp_path / "g.oi"
    path.write_text(GRAPH)
    for given in (path, str(path), bytes(path)):
        assert oic.parse_file(given).name == "g"
    np.savez(tmp_path / "m.npz", w=X)
    for given in (tmp_path / "m.npz", bytes(tmp_path / "m.npz")):
        assert oic.Model.open(given).names() == ["w"]


def test_how_weights_are_written_is_refused_at_once() -> None:
    with pytest.raises(oic.OicError, match="weights-mode"):
        synthesizer(weights_as="z")
