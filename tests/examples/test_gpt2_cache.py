"""What a cache of keys and values must be, on GPT-2 as it is imported: a small random one, and gpt2-tiny.

Not what a cache that is never read would satisfy: entries that are zeroed change the logits, and the instructions of a
step are counted (callgrind, where it is installed).
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import oic
from importers.checkpoints import checkpoint
from oic.importers import import_checkpoint
from paths import ROOT, models_dir, needs_models

SOURCES = ["random", pytest.param("gpt2-tiny", marks=needs_models)]
PROMPT, OTHER = [3, 17, 5, 0, 8], [11, 2, 19]
COUNTED = 100  # tokens of the comparison of speed
needs_callgrind = pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")


@dataclass(frozen=True)
class Decoder:
    """A session, and the sizes of its model."""

    executor: oic.Executor
    layers: int
    heads: int
    size: int
    room: int


@pytest.fixture(scope="module", params=SOURCES)
def decoder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Decoder]:
    folder = tmp_path_factory.mktemp("gpt2")
    models = models_dir()
    source = checkpoint(folder / "in", "gpt2") if request.param == "random" or models is None else models / request.param
    made = import_checkpoint(source, folder / "out")
    config = oic.Model.open(source).metadata
    graph, model = oic.parse_file(made.graph), oic.Model.open(made.model)
    layers, heads, width, room = (int(config[key]) for key in ("n_layer", "n_head", "n_embd", "n_positions"))  # type: ignore[arg-type]
    with oic.Synthesizer(graph, model).build(folder / "c").make_executor() as executor:
        yield Decoder(executor, layers, heads, width // heads, room)


@pytest.fixture
def cache(decoder: Decoder) -> oic.KVCache:
    decoder.executor.reset()
    return oic.KVCache(decoder.executor)


def logits(executor: oic.Executor, ids: list[int]) -> np.ndarray:
    """Of every token, fed at once."""
    return executor.step(tokens=np.array(ids, np.int32))["logits"]


def generated(executor: oic.Executor, prompt: list[int], count: int) -> list[int]:
    found = [int(logits(executor, prompt)[-1].argmax())]
    while len(found) < count:
        found.append(int(logits(executor, found[-1:])[-1].argmax()))
    return found


def test_it_grows_by_what_is_fed_and_keeps_what_it_has(decoder: Decoder, cache: oic.KVCache) -> None:
    before: list[tuple[np.ndarray, np.ndarray]] = [cache.get(layer) for layer in range(decoder.layers)]
    for n, part in enumerate(([4], [9, 1, 12], [7], [3, 3]), 1):
        length = cache.seq_len
        logits(cache.executor, part)
        assert cache.seq_len == length + len(part) == (1, 4, 5, 7)[n - 1]
        after = [cache.get(layer) for layer in range(decoder.layers)]
        for old, new in zip(before, after, strict=True):
            assert all(np.array_equal(a, b[:length]) and b[length:].any() for a, b in zip(old, new, strict=True))
        before = after


def test_cached_is_recomputed_in_all_bits(decoder: Decoder, cache: oic.KVCache) -> None:
    ids = (PROMPT + OTHER) * 2
    cached = [logits(cache.executor, [token])[-1] for token in ids]
    for n in range(1, len(ids) + 1):
        cache.reset()
        assert logits(cache.executor, ids[:n])[-1].tobytes() == cached[n - 1].tobytes()


def test_shapes_after_five_tokens(decoder: Decoder, cache: oic.KVCache) -> None:
    logits(cache.executor, PROMPT)
    for layer in range(decoder.layers):
        keys, values = cache.get(layer)
        assert keys.shape == values.shape == (5, decoder.heads, decoder.size)
        assert keys.dtype == values.dtype == np.float32
    with pytest.raises(oic.OicError, match=f"layers 0 to {decoder.layers - 1}"):
        cache.get(decoder.layers)


def test_a_second_generation_is_independent_of_the_first(decoder: Decoder, cache: oic.KVCache) -> None:
    alone = generated(cache.executor, OTHER, 6)
    kept = cache.executor.save()
    cache.reset()
    generated(cache.executor, PROMPT, 8)
    cache.reset()
    assert cache.seq_len == 0
    assert generated(cache.executor, OTHER, 6) == alone and cache.executor.save() == kept


def test_its_memory_is_keys_and_values_and_nothing_else(decoder: Decoder, cache: oic.KVCache) -> None:
    entry = 2 * decoder.layers * decoder.heads * decoder.size * 4  # bytes a position
    assert cache.reserved == entry * decoder.room
    for length in (1, 2, 3):
        logits(cache.executor, [5])
        assert cache.nbytes == entry * length


def test_the_cache_of_the_124m_shape_has_75_megabytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of a vocabulary or a feed-forward network is in it: these are narrow here."""
    folder = ROOT / "examples" / "gpt2"
    monkeypatch.syspath_prepend(str(folder))
    shapes = import_module("shapes")
    model = shapes.random_model(replace(shapes.SHAPES["124M"], vocab_size=64, n_inner=16))
    with oic.Simulator(oic.parse_file(folder / "any_size.oi"), model).make_executor() as executor:
        reserved = oic.KVCache(executor).reserved
    assert reserved == 2 * 12 * 12 * 1024 * 64 * 4 == shapes.SHAPES["124M"].cache_bytes
    assert f"{reserved / 1e6:.1f}" == "75.5"


def test_every_cached_entry_is_read(decoder: Decoder, cache: oic.KVCache) -> None:
    """Zeros in place of the key, or of the value, of any one position in any head of any layer change the logits."""
    logits(cache.executor, PROMPT)
    state = cache.executor.save()
    plain = logits(cache.executor, [7])
    for name in "KV":
        for place in np.ndindex(decoder.layers, len(PROMPT), decoder.heads):
            cache.executor.load(state)
            storage = cache.executor._storages[name]  # type: ignore[attr-defined]
            storage.write(((*place, 0), (1, 1, 1, decoder.size)), np.zeros((1, 1, 1, decoder.size), np.float32))
            assert not np.array_equal(logits(cache.executor, [7]), plain), f"{name}{list(place)}"


# ---------------------------------------------------------------- instructions


class Counted:
    """A small random GPT-2 in a program of its own, whose instructions are counted."""

    def __init__(self, folder: Path, *flags: str) -> None:
        self.folder = folder
        made = import_checkpoint(checkpoint(folder / "in", "gpt2", n_positions=256, n_head=2), folder / "out")
        graph, model = oic.parse_file(made.graph), oic.Model.open(made.model)
        oic.Synthesizer(graph, model, target="portable", weights_as="array").emit(folder / "c")
        sources = [folder / "c" / "gpt2.c", folder / "c" / "gpt2.weights.c", Path(__file__).with_name("callgrind.c")]
        self.program = folder / "program"
        command = ["cc", "-std=c99", "-ffp-contract=off", *flags, f"-I{folder / 'c'}", *map(str, sources), "-lm"]
        subprocess.run([*command, "-o", str(self.program)], check=True, capture_output=True)

    def instructions(self, function: str, mode: str, count: int) -> list[int]:
        """Instructions inside a function in every step, in order."""
        for old in self.folder.glob("count.*"):
            old.unlink()
        options = [f"--toggle-collect={function}", "--dump-after=gpt2_step", f"--callgrind-out-file={self.folder}/count"]
        command = ["valgrind", "--tool=callgrind", *options, str(self.program), mode, str(count)]
        subprocess.run(command, check=True, capture_output=True)
        found = {}
        for path in self.folder.glob("count.*"):
            text = path.read_text()
            total = re.search(r"^(?:summary|totals): (\d+)", text, re.MULTILINE)
            assert total is not None
            found[int(path.suffix[1:])] = int(total[1])
        return [found[n] for n in sorted(found)][:count]


@needs_callgrind
def test_a_hundred_tokens_cost_less_than_half_with_the_cache(tmp_path: Path) -> None:
    """By instructions: no clock is asked.  Twice is what is required; it is far more."""
    program = Counted(tmp_path, "-O2")
    cached = program.instructions("gpt2_step", "cached", COUNTED)
    recomputed = program.instructions("gpt2_step", "recomputed", COUNTED)
    assert len(cached) == len(recomputed) == COUNTED
    assert 20 * sum(cached) <= sum(recomputed)


@needs_callgrind
def test_a_step_grows_by_attention_alone(tmp_path: Path) -> None:
    """Whatever a later step takes more than an earlier one, its attention does, in proportion to the positions.

    Attention goes over keys in blocks of 64, and joins what spans of two give: compared are the second blocks of two spans.
    """
    program = Counted(tmp_path, "-O1", "-fno-inline")
    whole = np.array(program.instructions("gpt2_step", "cached", 256))
    attention = np.array(program.instructions("oic_attention_f32_f32", "cached", 256))
    rest = (whole - attention)[1:]
    assert np.ptp(rest) <= rest.min() / 1000  # whether a logit is the largest so far depends on the data
    early, late = attention[127] - attention[63], attention[255] - attention[191]
    assert early > 0 and abs(late - early) <= early / 50  # a single span is finished where it lies
