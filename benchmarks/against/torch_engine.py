"""PyTorch: products, norms and attention of torch.nn.functional over caches that are allocated once."""

from __future__ import annotations

import time

import torch
import torch.nn.functional as fun

from against import Unsupported
from against.decoders import DECODERS

TYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


class Engine:
    """A decoder with its caches."""

    version = torch.__version__

    def __init__(self, decoder: str, precision: str, threads: int, prompt: int) -> None:
        if precision not in TYPES:
            raise Unsupported(f"no {precision} here")
        torch.set_num_threads(threads)
        d = self.decoder = DECODERS[decoder]
        self.type = TYPES[precision]
        self.t = {name: torch.from_numpy(d.array(name)).to(self.type) for name in d.tensors()}
        shape = (d.layers, 1, d.kv_heads, d.context, d.head)
        self.keys, self.values = torch.zeros(shape, dtype=self.type), torch.zeros(shape, dtype=self.type)
        half = torch.arange(0, d.head, 2) / d.head
        angles = torch.outer(torch.arange(d.context), 10000.0**-half)
        self.cos, self.sin = angles.cos().to(self.type), angles.sin().to(self.type)
        self.position = 0

    def _turned(self, x: torch.Tensor, n: int) -> torch.Tensor:
        cos, sin = (t[self.position : self.position + n] for t in (self.cos, self.sin))
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, a * sin + b * cos), -1)

    @torch.inference_mode()
    def _feed(self, ids: torch.Tensor) -> None:
        d, t, n = self.decoder, self.t, len(ids)
        gpt2, end = d.kind == "gpt2", self.position + n
        x = t["embed"][ids][None]
        if gpt2:
            x = x + t["places"][self.position : end]
        for i in range(d.layers):
            if gpt2:
                h = fun.layer_norm(x, (d.width,), t[f"{i}.norm1"], t[f"{i}.norm1_b"])
                q, k, v = fun.linear(h, t[f"{i}.qkv"], t[f"{i}.qkv_b"]).split(d.width, -1)
            else:
                h = fun.rms_norm(x, (d.width,), t[f"{i}.norm1"], 1e-5)
                q, k, v = (fun.linear(h, t[f"{i}.{name}"]) for name in "qkv")
            q = q.view(1, n, d.heads, d.head).transpose(1, 2)
            k = k.view(1, n, d.kv_heads, d.head).transpose(1, 2)
            v = v.view(1, n, d.kv_heads, d.head).transpose(1, 2)
            if not gpt2:
                q, k = self._turned(q, n), self._turned(k, n)
            self.keys[i, :, :, self.position : end] = k
            self.values[i, :, :, self.position : end] = v
            mask = None
            if n > 1 and self.position:
                mask = torch.ones(n, end, dtype=torch.bool).tril(self.position)
            a = fun.scaled_dot_product_attention(
                q, self.keys[i, :, :, :end], self.values[i, :, :, :end], mask,
                is_causal=n > 1 and not self.position, enable_gqa=d.heads != d.kv_heads,
            )  # fmt: skip
            y = a.transpose(1, 2).reshape(1, n, d.width)
            if gpt2:
                x = x + fun.linear(y, t[f"{i}.out"], t[f"{i}.out_b"])
                h = fun.layer_norm(x, (d.width,), t[f"{i}.norm2"], t[f"{i}.norm2_b"])
                up = fun.gelu(fun.linear(h, t[f"{i}.up"], t[f"{i}.up_b"]), approximate="tanh")
                x = x + fun.linear(up, t[f"{i}.down"], t[f"{i}.down_b"])
            else:
                x = x + fun.linear(y, t[f"{i}.out"])
                h = fun.rms_norm(x, (d.width,), t[f"{i}.norm2"], 1e-5)
                gate = fun.silu(fun.linear(h, t[f"{i}.gate"])) * fun.linear(h, t[f"{i}.up"])
                x = x + fun.linear(gate, t[f"{i}.down"])
        last = x[:, -1:]
        if gpt2:
            last = fun.layer_norm(last, (d.width,), t["norm"], t["norm_b"])
        else:
            last = fun.rms_norm(last, (d.width,), t["norm"], 1e-5)
        int(fun.linear(last, t["embed"]).argmax())
        self.position = end

    def decode(self, position: int, count: int) -> list[float]:
        self.position = min(self.position, position)  # what lies behind is written again
        if self.position < position:
            self._feed(torch.full((position - self.position,), 7))
        seconds, token = [], torch.tensor([5])
        for _ in range(count):
            start = time.perf_counter()
            self._feed(token)
            seconds.append(time.perf_counter() - start)
        return seconds

    def prefill(self, count: int) -> float:
        self.position = 0
        start = time.perf_counter()
        self._feed(torch.full((count,), 7))
        return time.perf_counter() - start
