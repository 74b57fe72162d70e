"""Find speech in recordings by Silero VAD: the compiled graph beside the reference, and how long a chunk takes.

    python examples/silero/run.py                every reference recording; probabilities and state compared
    python examples/silero/run.py a.wav          the stretches of a recording (16 kHz, mono, 16 bit) that are speech

The weights are silero-vad/weights.safetensors in OIC_MODELS (default ../shared/models).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import wave
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import oic
from oic.session.executor import Executor

HERE = Path(__file__).parent
CHUNK, RATE = 512, 16_000  # samples of a step; a second
BOUND = 1e-4  # of probabilities and state, against the reference
Samples = NDArray[np.float32]


def models() -> Path:
    """The folder of models, whether or not it exists."""
    return Path(os.environ.get("OIC_MODELS") or HERE.parents[2] / "shared" / "models")


def recording(path: Path) -> Samples:
    """Samples from -1 to 1.  Raises ValueError for other forms than 16 kHz, mono, 16 bit."""
    with wave.open(str(path)) as file:
        if (file.getframerate(), file.getnchannels(), file.getsampwidth()) != (RATE, 1, 2):
            raise ValueError(f"{path} is not 16 kHz, mono, 16 bit")
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / np.float32(32768)


def chunks(samples: Samples) -> Iterator[Samples]:
    """Chunks of a step, the last filled up with zeros."""
    for first in range(0, len(samples), CHUNK):
        part = np.zeros(CHUNK, np.float32)
        part[: len(samples) - first] = samples[first : first + CHUNK]
        yield part


def probabilities(executor: Executor, samples: Samples) -> NDArray[np.float32]:
    """Of speech, a chunk each; begins with a fresh state."""
    executor.reset()
    return np.array([executor.step(chunk=part)["probability"] for part in chunks(samples)], np.float32)


def check(executor: Executor, folder: Path) -> bool:
    """Compare every reference recording: probabilities, and the state after the last chunk."""
    reference, good = folder / "silero-vad" / "reference", True
    for file in json.loads((reference / "inputs.json").read_text())["wavs"]:
        name, samples = Path(file).stem, recording(folder / "audio" / file)
        start = time.perf_counter()
        found = probabilities(executor, samples)
        seconds = time.perf_counter() - start
        state = np.stack([executor.fetch("h"), executor.fetch("c")])
        error = float(np.abs(found - np.load(reference / f"{name}.prob.npy").reshape(-1)).max())
        error_of_state = float(np.abs(state - np.load(reference / f"{name}.state_last.npy")).max())
        good &= max(error, error_of_state) <= BOUND
        print(f"{name}: {len(found)} chunks, {seconds / len(found) * 1e6:.0f} us each; "
              f"probabilities within {error:.1e}, state {error_of_state:.1e}")  # fmt: skip
    return good


def stretches(found: NDArray[np.float32]) -> Iterator[tuple[float, float]]:
    """Seconds from and to, where a chunk is speech rather than not."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], found > 0.5, [0]]).astype(int)))
    for first, last in edges.reshape(-1, 2):
        yield first * CHUNK / RATE, last * CHUNK / RATE


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("recording", nargs="?", type=Path)
    options = parser.parse_args()
    weights = models() / "silero-vad" / "weights.safetensors"
    if not weights.exists():
        print(f"there is no {weights}: set OIC_MODELS to the folder of models")
        return 1
    built = oic.Synthesizer(oic.parse_file(HERE / "graph.oi"), oic.Model.open(weights)).build(HERE / "out")
    with built.make_executor() as executor:
        if options.recording is None:
            return 0 if check(executor, models()) else 1
        try:
            samples = recording(options.recording)
        except (OSError, EOFError, ValueError, wave.Error) as error:
            print(f"{options.recording}: {error}")
            return 1
        for start, end in stretches(probabilities(executor, samples)):
            print(f"{start:8.2f} s to {end:8.2f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
