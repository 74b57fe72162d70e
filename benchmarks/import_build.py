"""Time and peak memory of `oic import` and `oic build`, for random checkpoints of the 124M and 1B shapes.

    python benchmarks/import_build.py [SHAPE ...] [--runs 3] [--folder FOLDER]

Shapes: 124M (GPT-2, f32), 1B (Llama 3.2's shape, bf16), small (for a trial).  Every command runs in a process of its
own; its memory is the most that was resident (VmHWM), pages of mapped files included.  Beside the seconds stands a copy
of the checkpoint's bytes to a file in the same folder, synchronised, in the same run: what the disk alone takes.  The
promise is a peak of at most 1.2 times the larger of the checkpoint and what is written.  It measures, and says whether
that holds.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from oic.profile.limits import spread

MIB = 1 << 20
CHUNK = 16 * MIB  # numbers drawn at once
PROMISE = 1.2

Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Shape:
    """A checkpoint: its configuration, its tensors, and the type that they are stored in."""

    config: dict[str, Any]
    tensors: Shapes
    dtype: str  # as safetensors writes it


def gpt2(width: int, layers: int, heads: int, vocab: int, context: int) -> Shape:
    each: Shapes = {
        "ln_1.weight": (width,), "ln_1.bias": (width,), "ln_2.weight": (width,), "ln_2.bias": (width,),
        "attn.c_attn.weight": (width, 3 * width), "attn.c_attn.bias": (3 * width,),
        "attn.c_proj.weight": (width, width), "attn.c_proj.bias": (width,),
        "mlp.c_fc.weight": (width, 4 * width), "mlp.c_fc.bias": (4 * width,),
        "mlp.c_proj.weight": (4 * width, width), "mlp.c_proj.bias": (width,),
    }  # fmt: skip
    tensors: Shapes = {"wte.weight": (vocab, width), "wpe.weight": (context, width)}
    tensors |= {f"h.{i}.{name}": shape for i in range(layers) for name, shape in each.items()}
    tensors |= {"ln_f.weight": (width,), "ln_f.bias": (width,)}
    config = {"model_type": "gpt2", "n_embd": width, "n_layer": layers, "n_head": heads, "vocab_size": vocab,
              "n_positions": context}  # fmt: skip
    return Shape(config, tensors, "F32")


def llama(width: int, layers: int, heads: int, kv_heads: int, inner: int, vocab: int, context: int) -> Shape:
    size = width // heads
    each: Shapes = {
        "input_layernorm": (width,), "post_attention_layernorm": (width,),
        "self_attn.q_proj": (width, width), "self_attn.o_proj": (width, width),
        "self_attn.k_proj": (kv_heads * size, width), "self_attn.v_proj": (kv_heads * size, width),
        "mlp.gate_proj": (inner, width), "mlp.up_proj": (inner, width), "mlp.down_proj": (width, inner),
    }  # fmt: skip
    tensors: Shapes = {"model.embed_tokens.weight": (vocab, width), "model.norm.weight": (width,)}
    tensors |= {f"model.layers.{i}.{n}.weight": s for i in range(layers) for n, s in each.items()}
    config = {"model_type": "llama", "hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads,
              "num_key_value_heads": kv_heads, "intermediate_size": inner, "vocab_size": vocab,
              "max_position_embeddings": context, "tie_word_embeddings": True, "rope_theta": 500000.0}  # fmt: skip
    return Shape(config, tensors, "BF16")


SHAPES = {
    "small": lambda: llama(256, 4, 4, 2, 704, 4096, 512),
    "124M": lambda: gpt2(768, 12, 12, 50257, 1024),
    "1B": lambda: llama(2048, 16, 32, 8, 8192, 128256, 2048),
}


def write(shape: Shape, folder: Path) -> int:
    """A checkpoint of random numbers; its bytes."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(shape.config))
    dtype = np.dtype(np.float32 if shape.dtype == "F32" else ml_dtypes.bfloat16)
    header: dict[str, Any] = {}
    end = 0
    for name, dims in shape.tensors.items():
        start, end = end, end + int(np.prod(dims)) * dtype.itemsize
        header[name] = {"dtype": shape.dtype, "shape": dims, "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    draw = np.random.default_rng(0)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for dims in shape.tensors.values():
            for first in range(0, (count := int(np.prod(dims))), CHUNK):
                drawn = draw.standard_normal(min(CHUNK, count - first), np.float32) * np.float32(0.02)
                file.write(drawn.astype(dtype).tobytes())
    return (folder / "model.safetensors").stat().st_size


def measured(*arguments: str) -> tuple[float, float]:
    """Seconds and MiB of a command of `oic`; its own process writes the most that was resident."""
    code = (
        "import sys; from pathlib import Path; from oic.cli import main\n"
        "try: main(sys.argv[1:], prog_name='oic')\n"
        "finally: sys.stderr.write(Path('/proc/self/status').read_text())"
    )
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        sys.exit(f"error: oic {' '.join(arguments)}: exit status {done.returncode}\n{done.stderr}")
    return seconds, int(done.stderr.split("VmHWM:")[1].split()[0]) / 1024


def copied(source: Path, to: Path) -> float:
    """Seconds of a synchronised copy."""
    start = time.perf_counter()
    with open(source, "rb") as read, open(to, "wb") as written:
        shutil.copyfileobj(read, written, CHUNK)
        written.flush()
        os.fsync(written.fileno())
    return time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shapes", nargs="*", choices=[*SHAPES, []], default=["124M", "1B"])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", help="where to work (default: the system's for temporary files)")
    arguments = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
          f"medians of {arguments.runs}, ±: half the distance of the quartiles\n")  # fmt: skip
    print(f"{'shape':<8}{'MiB in':>9}{'MiB out':>9}{'copy s':>14}{'import s':>14}{'MiB':>7}{'build s':>14}{'MiB':>7}"
          f"{'peak / larger':>15}")  # fmt: skip
    held = True
    for name in arguments.shapes:
        with tempfile.TemporaryDirectory(dir=arguments.folder) as scratch:
            held &= measure(name, Path(scratch), arguments.runs)
    print(f"\npeak of at most {PROMISE} times the larger model: {'held' if held else 'not held'}")
    return 0


def cell(found: tuple[float, float]) -> str:
    """Seconds and their spread, of a table."""
    return f"{found[0]:>9.2f} {f'±{found[1] * 100:.0f}%':<4}"


def measure(name: str, scratch: Path, runs: int) -> bool:
    """A row of the table; whether the promise was kept."""
    nbytes = write(SHAPES[name](), scratch / "in")
    rows = []
    for _ in range(runs):
        copy = copied(scratch / "in" / "model.safetensors", scratch / "copy")
        (scratch / "copy").unlink()
        imported = measured("import", str(scratch / "in"), "-o", str(scratch / "out"))
        built = measured("build", str(scratch / "out" / "graph.oi"), "--model", str(scratch / "out" / "model.json"),
                         "-o", str(scratch / "c"), "--no-cache")  # fmt: skip
        rows.append((copy, *imported, *built))
    copy, import_s, (import_mib, _), build_s, (build_mib, _) = (spread(column) for column in zip(*rows, strict=True))
    written = max(path.stat().st_size for path in (scratch / "c").rglob("*.weights"))
    ratio = max(import_mib, build_mib) * MIB / max(nbytes, written)
    print(f"{name:<8}{nbytes / MIB:>9,.0f}{written / MIB:>9,.0f}{cell(copy)}{cell(import_s)}{import_mib:>7,.0f}"
          f"{cell(build_s)}{build_mib:>7,.0f}{ratio:>15.2f}", flush=True)  # fmt: skip
    return ratio <= PROMISE


if __name__ == "__main__":
    sys.exit(main())
