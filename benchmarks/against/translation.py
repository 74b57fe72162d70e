"""ByT5: 64 bytes in, 128 tokens out, the most likely each.  Weights: byt5-tiny-random in OIC_MODELS."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np

from against import Unsupported
from against.streams import DISTRIBUTIONS, models

SOURCE = (np.random.default_rng(5).integers(0, 256, 4096) + 3).tolist()  # ids of bytes begin at 3


class Engine:
    """The model in one engine."""

    def __init__(self, engine: str, precision: str, threads: int) -> None:
        folder = models() / "byt5-tiny-random"
        if not folder.is_dir():
            raise Unsupported(f"{folder} is not there (OIC_MODELS)")
        make = ENGINES.get(engine)
        if make is None:
            raise Unsupported("it is not written for this model")
        self.version = version(DISTRIBUTIONS.get(engine, engine))
        self.run: Callable[[list[int], int], int] = make(folder, precision, threads)

    def translate(self, source: int, count: int) -> float:
        """Seconds of so many tokens after a source of so many bytes."""
        ids = [*SOURCE[: source - 1], 1]
        start = time.perf_counter()
        made = self.run(ids, count)
        seconds = time.perf_counter() - start
        if made != count:
            raise RuntimeError(f"{made} tokens, not {count}")
        return seconds


def _oic(folder: Path, precision: str, threads: int) -> Callable[[list[int], int], int]:
    import oic
    from against.oic_engine import options
    from oic.importers import import_checkpoint

    with tempfile.TemporaryDirectory() as made:
        import_checkpoint(folder, made, prefill=64)
        model = oic.Model.open(Path(made) / "model.json")
        built = oic.Synthesizer(
            oic.parse_file(Path(made) / "graph.oi"), model, fetch=["next"], **options(precision, threads)
        ).build()
    executor = built.make_executor()

    def run(ids: list[int], count: int) -> int:
        executor.step("encode", source=np.array([ids], np.int32), lengths=np.array([len(ids)], np.int32))
        return len(executor.repeat(count, {"tokens": "next"}, tokens=np.zeros((1, 1), np.int32)))

    return run


def _ctranslate2(folder: Path, precision: str, threads: int) -> Callable[[list[int], int], int]:
    import ctranslate2
    from ctranslate2.converters.transformers import T5Loader
    from transformers import T5ForConditionalGeneration

    kinds = {"f32": "float32", "q8": "int8"}
    if precision not in kinds:
        raise Unsupported(f"no {precision} on this machine")
    model = T5ForConditionalGeneration.from_pretrained(folder)
    spec = T5Loader().get_model_spec(model)
    vocabulary = [f"t{i}" for i in range(model.config.vocab_size)]
    spec.register_source_vocabulary(vocabulary)
    spec.register_target_vocabulary(vocabulary)
    spec.config.bos_token = spec.config.decoder_start_token = "t0"
    spec.config.eos_token, spec.config.unk_token = "t1", "t2"
    spec.config.add_source_bos = spec.config.add_source_eos = False
    spec.validate()
    spec.optimize(quantization=kinds[precision])
    with tempfile.TemporaryDirectory() as made:
        spec.save(made)
        translator = ctranslate2.Translator(made, "cpu", compute_type=kinds[precision], inter_threads=1,
                                            intra_threads=threads)  # fmt: skip

    def run(ids: list[int], count: int) -> int:
        found = translator.translate_batch(
            [[f"t{i}" for i in ids]], beam_size=1, max_decoding_length=count, min_decoding_length=count
        )
        return len(found[0].hypotheses[0])

    return run


def _torch(folder: Path, precision: str, threads: int) -> Callable[[list[int], int], int]:
    import torch
    from transformers import T5ForConditionalGeneration

    if precision != "f32":
        raise Unsupported(f"no {precision} here")
    torch.set_num_threads(threads)
    model = T5ForConditionalGeneration.from_pretrained(folder).eval()

    def run(ids: list[int], count: int) -> int:
        with torch.inference_mode():
            found = model.generate(
                torch.tensor([ids]), min_new_tokens=count, max_new_tokens=count, do_sample=False, num_beams=1
            )
        return int(found.shape[1]) - 1

    return run


def _onnxruntime(folder: Path, precision: str, threads: int) -> Callable[[list[int], int], int]:
    import onnxruntime as ort

    from against.onnx_translation import Weights, decoder, encoder

    if precision not in ("f32", "q8"):
        raise Unsupported(f"no {precision} here")
    weights, bits = Weights(folder), 32 if precision == "f32" else 8
    how = ort.SessionOptions()
    how.intra_op_num_threads, how.inter_op_num_threads, how.log_severity_level = threads, 1, 3
    layers, heads, size = (weights.config[n] for n in ("num_decoder_layers", "num_heads", "d_kv"))
    names = [f"{n}{i}" for i in range(layers) for n in "kv"]
    decode = ort.InferenceSession(decoder(weights, bits, 512), how, providers=["CPUExecutionProvider"])
    encoders: dict[int, ort.InferenceSession] = {}
    empty = ort.OrtValue.ortvalue_from_numpy(np.zeros((1, heads, 0, size), np.float32))

    def run(ids: list[int], count: int) -> int:
        if len(ids) not in encoders:
            encoders[len(ids)] = ort.InferenceSession(
                encoder(weights, bits, len(ids)), how, providers=["CPUExecutionProvider"]
            )
        first = encoders[len(ids)].io_binding()
        first.bind_cpu_input("source", np.array([ids], np.int64))
        for name in names:
            first.bind_output(f"cross_{name}", "cpu")
        encoders[len(ids)].run_with_iobinding(first)
        binding, at = decode.io_binding(), np.zeros(1, np.int64)
        for name, value in zip(names, first.get_outputs(), strict=True):
            binding.bind_ortvalue_input(f"cross_{name}", value)
        token, past, made = ort.OrtValue.ortvalue_from_numpy(np.zeros((1, 1), np.int64)), [empty] * len(names), 0
        binding.bind_cpu_input("at", at)
        for _ in range(count):
            at[0] = made
            binding.bind_ortvalue_input("token", token)
            for name, value in zip(names, past, strict=True):
                binding.bind_ortvalue_input(f"past_{name}", value)
            binding.clear_binding_outputs()
            for name in ("next", *(f"all_{name}" for name in names)):
                binding.bind_output(name, "cpu")
            decode.run_with_iobinding(binding)
            token, *past = binding.get_outputs()
            made += 1
        return made

    return run


ENGINES = {"oic": _oic, "ctranslate2": _ctranslate2, "onnxruntime": _onnxruntime, "torch": _torch}
