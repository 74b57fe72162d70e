"""CTranslate2: a checkpoint converted by its own converter; times between its callbacks."""

from __future__ import annotations

import itertools
import tempfile
import time
from pathlib import Path

import ctranslate2
from ctranslate2.converters.transformers import GPT2Loader, LlamaLoader
from transformers import AutoConfig, GPT2LMHeadModel, LlamaForCausalLM

from against import Unsupported
from against.checkpoint import write
from against.decoders import DECODERS

KINDS = {"f32": "float32", "q8": "int8"}


class Engine:
    """A generator."""

    version = ctranslate2.__version__

    def __init__(self, decoder: str, precision: str, threads: int, prompt: int) -> None:
        if precision not in KINDS:
            raise Unsupported(f"no {precision} on this machine")
        d = self.decoder = DECODERS[decoder]
        with tempfile.TemporaryDirectory() as folder:
            write(d, Path(folder) / "in")
            kind, loader = (GPT2LMHeadModel, GPT2Loader()) if d.kind == "gpt2" else (LlamaForCausalLM, LlamaLoader())
            config = AutoConfig.from_pretrained(Path(folder) / "in")
            model = kind.from_pretrained(Path(folder) / "in", config=config)
            spec = loader.get_model_spec(model)
            spec.register_vocabulary([f"t{i}" for i in range(d.vocab)])
            for key in ("bos_token", "eos_token", "unk_token"):
                setattr(spec.config, key, "t0")
            spec.validate()
            spec.optimize(quantization=KINDS[precision])
            (Path(folder) / "out").mkdir()
            spec.save(str(Path(folder) / "out"))
            del model, spec
            self.generator = ctranslate2.Generator(
                str(Path(folder) / "out"), "cpu", compute_type=KINDS[precision], inter_threads=1, intra_threads=threads
            )

    def _run(self, position: int, count: int) -> list[float]:
        """The times of `count` tokens after a prompt, the first with the prompt."""
        times = [time.perf_counter()]

        def told(step: object) -> bool:
            times.append(time.perf_counter())
            return False

        self.generator.generate_batch(
            [["t7"] * position], max_length=count, min_length=count, sampling_topk=1, beam_size=1, end_token=["t0"],
            include_prompt_in_result=False, callback=told,
        )  # fmt: skip
        return [b - a for a, b in itertools.pairwise(times)]

    def decode(self, position: int, count: int) -> list[float]:
        return self._run(position, count + 1)[1:]

    def prefill(self, count: int) -> float:
        return self._run(count, 1)[0]
