"""Run a GPT-2 from a Hugging Face folder, compiled to C; or the shape of one, with random weights.

    python examples/gpt2/run.py FOLDER --text "Once upon" -n 40   go on with a text
    python examples/gpt2/run.py FOLDER --ids 12 7 305             go on with token ids
    python examples/gpt2/run.py --check                           gpt2-tiny equal to its reference
    python examples/gpt2/run.py --random                          memory and speed of the 124M shape

FOLDER has config.json and model.safetensors; default gpt2-tiny in OIC_MODELS (default
../shared/models).  --text needs the folder's tokenizer.json and the Python package `tokenizers`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import oic
from shapes import SHAPES, Shape, random_model

HERE = Path(__file__).parent
GRAPH = HERE / "any_size.oi"
WITHIN = 1e-4  # of the reference's logits, absolute


def default_folder() -> Path:
    """Where gpt2-tiny is, whether or not it exists."""
    models = os.environ.get("OIC_MODELS") or HERE.parents[1].parent / "shared" / "models"
    return Path(models) / "gpt2-tiny"


# ---------------------------------------------------------------- a model from a folder


def generate(executor: oic.Executor, prompt: list[int], count: int, end: int | None) -> list[int]:
    """Greedy tokens after a prompt, at most `count`; the last one may be the end token."""
    executor.reset()
    result = executor.step(tokens=np.array(prompt, np.int32))
    found = [int(result["next"][-1])]
    while len(found) < count and found[-1] != end:
        result = executor.step(tokens=np.array(found[-1:], np.int32))
        found.append(int(result["next"][0]))
    return found


def check(executor: oic.Executor, folder: Path, end: int | None) -> bool:
    """Compare with every prompt of the folder's ref.npz: ids equal, logits within 1e-4."""
    reference = np.load(folder / "ref.npz")
    good = True
    for i in range(int(reference["n_prompts"])):
        prompt, greedy = (reference[f"p{i}_{name}"].tolist() for name in ("prompt", "greedy"))
        equal = generate(executor, prompt, len(greedy), end) == greedy
        executor.reset()
        steps = [prompt, *([token] for token in greedy)]
        logits = [executor.step(tokens=np.array(step, np.int32))["logits"] for step in steps]
        error = float(np.abs(np.concatenate(logits) - reference[f"p{i}_logits_f64"]).max())
        good &= equal and error <= WITHIN
        print(f"prompt {i}: {len(greedy)} ids {'equal' if equal else 'DIFFER'}, logits within {error:.1e}")
    return good


def tokenizer_of(folder: Path) -> Any:
    """The folder's tokenizer; ends the program where it cannot be had."""
    try:
        tokenizers = import_module("tokenizers")
    except ImportError:
        sys.exit("--text needs the Python package 'tokenizers'; without it, use --ids")
    path = folder / "tokenizer.json"
    if not path.is_file():
        sys.exit(f"--text needs {path}, which is not there; use --ids")
    return tokenizers.Tokenizer.from_file(str(path))


def run_folder(options: argparse.Namespace) -> int:
    """Generate from a prompt, or compare with the reference."""
    folder: Path = options.folder
    tokenizer = tokenizer_of(folder) if options.text is not None else None
    prompt = tokenizer.encode(options.text).ids if tokenizer else options.ids
    if not prompt:
        sys.exit("a prompt of no tokens: there is nothing to go on with")
    model = oic.Model.open(folder)
    end = model.metadata.get("eos_token_id")
    with oic.Synthesizer(oic.parse_file(GRAPH), model).build(HERE / "out").make_executor() as executor:
        if options.check:
            return 0 if check(executor, folder, end) else 1
        start = time.perf_counter()
        found = generate(executor, prompt, options.n, end)
        seconds = time.perf_counter() - start
    print(options.text + tokenizer.decode(found) if tokenizer else " ".join(map(str, found)))
    print(f"{len(found) / seconds:,.0f} tokens per second", file=sys.stderr)
    return 0


# ---------------------------------------------------------------- the memory and speed of a shape


def code_bytes(folder: Path) -> str:
    """Code and read-only data of the library, as `size` (binutils) has it."""
    if shutil.which("size") is None:
        return "not measured: there is no `size`"
    command = ["size", "-B", str(folder / "libgpt2.so")]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return f"{int(text.splitlines()[1].split()[0]):,} bytes"


def process_bytes() -> tuple[int, int] | None:
    """Address space and resident memory of this process, where /proc tells."""
    try:
        size, resident = Path("/proc/self/statm").read_text().split()[:2]
    except OSError:
        return None
    return int(size) * os.sysconf("SC_PAGESIZE"), int(resident) * os.sysconf("SC_PAGESIZE")


def decode(executor: oic.Executor, count: int) -> list[float]:
    """Feed each token that the step before gave; the seconds of each step."""
    token, seconds = np.zeros(1, np.int32), []
    for _ in range(count):
        start = time.perf_counter()
        result = executor.step(tokens=token)
        seconds.append(time.perf_counter() - start)
        token = result["next"].astype(np.int32)
    return seconds


def report_speed(executor: oic.Executor, shape: Shape, weights: int) -> None:
    """Fill the cache one token a step: early and late speed, and what the process takes meanwhile.

    weights   bytes of them, read once a step; so are the keys and values written before
    """
    room, part = shape.n_positions, max(1, shape.n_positions // 10)
    decode(executor, part)  # warms up; the allocators of Python and NumPy settle
    executor.reset()
    seconds = decode(executor, 1)
    before = process_bytes()
    seconds += decode(executor, room - 1)
    after = process_bytes()
    for name, first in (("first", 0), ("last", room - part)):
        step = float(np.median(seconds[first : first + part]))
        read = weights + shape.cache_bytes * (first + part // 2) // room
        print(f"{name} {part} tokens: {1 / step:,.1f} tokens/s, {read / step / 1e9:.1f} GB/s")
    if before and after:
        mapped, resident = (a - b for a, b in zip(after, before))
        print(f"process from token 1 to {room:,}: {mapped:+,} bytes mapped, {resident:+,} resident")
    try:
        decode(executor, 1)
    except oic.StepError as error:
        print(f"one token more is refused: {error}")


def run_random(name: str) -> int:
    """The bytes of a shape with room for one token and for all, and its speed.

    Decoders of one token a step: the arena is that of N = 1 (P=1).
    """
    shape, graph = SHAPES[name], oic.parse_file(GRAPH)
    model = random_model(shape)
    print(f"GPT-2 {name}, random weights in f32: {shape}")
    for room in (1, shape.n_positions):
        with tempfile.TemporaryDirectory(prefix="gpt2-") as folder:
            start = time.perf_counter()
            built = oic.Synthesizer(graph, model, sizes={"P": 1, "T": room}).build(folder)
            seconds = time.perf_counter() - start
            plan = built.program.planned.plan
            assert plan is not None
            arena, bound = plan.arena_bytes["entry"], plan.lower_bound["entry"]
            print(f"room for {room:,} tokens: state {plan.state_bytes:,} bytes, arena {arena:,}"
                  f" (at least {bound:,}), code {code_bytes(Path(folder))}")  # fmt: skip
            if room == shape.n_positions:
                print(f"    of the state, K and V are {shape.cache_bytes:,} bytes")
                print(f"    weights {plan.weights_bytes:,} bytes, built in {seconds:.1f} s")
                with built.make_executor() as executor:
                    report_speed(executor, shape, plan.weights_bytes)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=default_folder())
    prompt = parser.add_mutually_exclusive_group()
    prompt.add_argument("--text", help="go on with this text")
    prompt.add_argument("--ids", type=int, nargs="+", default=[0], help="go on with these token ids")
    parser.add_argument("-n", type=int, default=32, help="tokens to generate")
    parser.add_argument("--check", action="store_true", help="compare with the folder's ref.npz")
    parser.add_argument("--random", nargs="?", const="124M", choices=SHAPES, help="a shape instead of a folder")
    options = parser.parse_args()
    if options.random:
        return run_random(options.random)
    if not (options.folder / "config.json").is_file():
        print(f"no model at {options.folder}: name a folder, or set OIC_MODELS")
        return 1
    try:
        return run_folder(options)
    except (oic.OicError, oic.StepError) as error:  # a broken folder, an id that is no token
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
