"""llama.cpp, through the C interface of llama-cpp-python; the file is written with the package `gguf`."""

from __future__ import annotations

import ctypes
import tempfile
import time
from pathlib import Path

import gguf
import llama_cpp
import numpy as np
from gguf import GGMLQuantizationType as Kind
from gguf.quants import quantize

from against import Unsupported
from against.decoders import DECODERS, Decoder

KINDS = {"f32": Kind.F32, "f16": Kind.F16, "bf16": Kind.BF16, "q8": Kind.Q8_0, "q4": Kind.Q4_0}
NAMES = {
    "embed": "token_embd.weight", "places": "position_embd.weight", "norm": "output_norm.weight",
    "norm_b": "output_norm.bias", "norm1": "attn_norm.weight", "norm1_b": "attn_norm.bias", "qkv": "attn_qkv.weight",
    "qkv_b": "attn_qkv.bias", "q": "attn_q.weight", "k": "attn_k.weight", "v": "attn_v.weight",
    "out": "attn_output.weight", "out_b": "attn_output.bias", "norm2": "ffn_norm.weight", "norm2_b": "ffn_norm.bias",
    "gate": "ffn_gate.weight", "up": "ffn_up.weight", "up_b": "ffn_up.bias", "down": "ffn_down.weight",
    "down_b": "ffn_down.bias",
}  # fmt: skip


def write(decoder: Decoder, precision: str, path: Path) -> None:
    """A GGUF file; matrices in the precision, all else in f32."""
    writer = gguf.GGUFWriter(path, decoder.kind)
    writer.add_context_length(decoder.context)
    writer.add_embedding_length(decoder.width)
    writer.add_block_count(decoder.layers)
    writer.add_feed_forward_length(decoder.inner)
    writer.add_head_count(decoder.heads)
    writer.add_head_count_kv(decoder.kv_heads)
    writer.add_vocab_size(decoder.vocab)
    writer.add_tokenizer_model("no_vocab")
    if decoder.kind == "gpt2":
        writer.add_layer_norm_eps(1e-5)
    else:
        writer.add_layer_norm_rms_eps(1e-5)
        writer.add_rope_dimension_count(decoder.head)
    kind = KINDS[precision]
    for name in decoder.tensors():
        layer, _, last = name.rpartition(".")
        theirs = f"blk.{layer}.{NAMES[last]}" if layer else NAMES[last]
        array = decoder.array(name)
        if decoder.matrix(name) and kind != Kind.F32:
            writer.add_tensor(theirs, quantize(array, kind), raw_dtype=kind)
        else:
            writer.add_tensor(theirs, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Engine:
    """A model with one sequence."""

    version = llama_cpp.__version__

    def __init__(self, decoder: str, precision: str, threads: int, prompt: int) -> None:
        self.decoder = DECODERS[decoder]
        self.quiet = llama_cpp.llama_log_callback(lambda level, text, data: None)
        llama_cpp.llama_log_set(self.quiet, ctypes.c_void_p(0))
        llama_cpp.llama_backend_init()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.gguf"
            write(self.decoder, precision, path)
            how = llama_cpp.llama_model_default_params()
            how.use_mmap = False
            self.model = llama_cpp.llama_model_load_from_file(str(path).encode(), how)
        if not self.model:
            raise Unsupported("the model is not loaded")
        how = llama_cpp.llama_context_default_params()
        how.n_ctx, how.n_batch, how.n_ubatch = self.decoder.context, self.decoder.context, self.decoder.context
        how.n_threads = how.n_threads_batch = threads
        how.no_perf = True
        self.context = llama_cpp.llama_init_from_model(self.model, how)
        self.memory = llama_cpp.llama_get_memory(self.context)
        self.position = 0

    def _feed(self, tokens: list[int]) -> None:
        array = (llama_cpp.llama_token * len(tokens))(*tokens)
        if llama_cpp.llama_decode(self.context, llama_cpp.llama_batch_get_one(array, len(tokens))):
            raise RuntimeError("llama_decode refused")
        logits = llama_cpp.llama_get_logits_ith(self.context, -1)
        int(np.ctypeslib.as_array(logits, (self.decoder.vocab,)).argmax())
        self.position += len(tokens)

    def _reset(self) -> None:
        llama_cpp.llama_memory_clear(self.memory, False)
        self.position = 0

    def decode(self, position: int, count: int) -> list[float]:
        if self.position > position:
            llama_cpp.llama_memory_seq_rm(self.memory, 0, position, -1)
            self.position = position
        if self.position < position:
            self._feed([7] * (position - self.position))
        seconds = []
        for _ in range(count):
            start = time.perf_counter()
            self._feed([5])
            seconds.append(time.perf_counter() - start)
        return seconds

    def prefill(self, count: int) -> float:
        self._reset()
        start = time.perf_counter()
        self._feed([7] * count)
        return time.perf_counter() - start
