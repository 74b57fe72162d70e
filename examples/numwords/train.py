"""Trains the number-reading model and measures it: `python train.py --out weights.safetensors`.

A byte-level decoder of the Llama family, made of plain parameters, so that the names and shapes in
the file are the ones in `Layer` and `Model`.  Data come from `rules`.  Needs torch and safetensors.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from random import Random

try:
    import torch
    import torch.nn.functional as F
    from safetensors import safe_open
    from safetensors.torch import load_file, save_file
    from torch import Tensor, nn
except ModuleNotFoundError as missing:
    raise SystemExit(f"there is no package '{missing.name}': pip install 'oic[train]'") from None

import rules

IGNORED = -100  # the target where there is no loss


@dataclass(frozen=True)
class Config:
    """Sizes of the model; stored as strings in the file's metadata."""

    n_layers: int = 3
    n_heads: int = 4
    n_kv_heads: int = 2
    head_dim: int = 24
    dim: int = 96
    hidden: int = 256
    vocab: int = rules.VOCAB
    context: int = 128
    eps: float = 1e-5


@dataclass(frozen=True)
class Recipe:
    """How the model is trained; one step sees `batch` texts."""

    steps: int
    batch: int = 128
    rate: float = 4e-3
    warm_up: int = 200
    decay: float = 0.05
    clip: float = 1.0


# Model


class Layer(nn.Module):
    """Attention and a SwiGLU feed-forward, each behind an RMSNorm and beside a residual."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        dim, hidden = config.dim, config.hidden
        queries, keys = config.n_heads * config.head_dim, config.n_kv_heads * config.head_dim
        self.attn_norm = nn.Parameter(torch.ones(dim))
        self.wq = matrix(queries, dim)
        self.wk = matrix(keys, dim)
        self.wv = matrix(keys, dim)
        self.wo = matrix(dim, queries, 2 * config.n_layers)
        self.ffn_norm = nn.Parameter(torch.ones(dim))
        self.w_gate = matrix(hidden, dim)
        self.w_up = matrix(hidden, dim)
        self.w_down = matrix(dim, hidden, 2 * config.n_layers)

    def forward(self, x: Tensor, rotary: tuple[Tensor, Tensor]) -> Tensor:
        """x [B, T, dim] to the same shape."""
        x = x + self.attend(rms_norm(x, self.attn_norm, self.config.eps), rotary)
        h = rms_norm(x, self.ffn_norm, self.config.eps)
        return x + F.linear(F.silu(F.linear(h, self.w_gate)) * F.linear(h, self.w_up), self.w_down)

    def attend(self, h: Tensor, rotary: tuple[Tensor, Tensor]) -> Tensor:
        """h [B, T, dim] to the same shape; a KV head serves adjacent query heads."""
        config = self.config
        batch, length, _ = h.shape

        def heads(w: Tensor, count: int) -> Tensor:
            return F.linear(h, w).view(batch, length, count, config.head_dim).transpose(1, 2)

        group = config.n_heads // config.n_kv_heads
        q = rotate(heads(self.wq, config.n_heads), rotary)
        k = rotate(heads(self.wk, config.n_kv_heads), rotary).repeat_interleave(group, 1)
        v = heads(self.wv, config.n_kv_heads).repeat_interleave(group, 1)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return F.linear(mixed.transpose(1, 2).reshape(batch, length, -1), self.wo)


class Model(nn.Module):
    """Token embedding, layers, RMSNorm, and the embedding again as the output head."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Parameter(0.02 * torch.randn(config.vocab, config.dim))
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.n_layers))
        self.norm = nn.Parameter(torch.ones(config.dim))

    def forward(self, tokens: Tensor) -> Tensor:
        """tokens i64[B, T] to logits f32[B, T, vocab]."""
        rotary = rotary_tables(tokens.shape[1], self.config.head_dim)
        x = F.embedding(tokens, self.embed)
        for layer in self.layers:
            x = layer(x, rotary)
        return F.linear(rms_norm(x, self.norm, self.config.eps), self.embed)


def matrix(rows: int, columns: int, shrink: int = 1) -> nn.Parameter:
    """A weight [rows, columns] whose product keeps the variance of its input over `shrink`."""
    return nn.Parameter(torch.randn(rows, columns) / math.sqrt(columns * shrink))


def rms_norm(x: Tensor, gamma: Tensor, eps: float) -> Tensor:
    """x over its root mean square along the last axis, times gamma (Zhang and Sennrich, 2019)."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * gamma


def rotary_tables(length: int, head_dim: int) -> tuple[Tensor, Tensor]:
    """Cosines and sines [length, head_dim / 2] of position * 10000^(-2d / head_dim)."""
    frequencies = 10000.0 ** (-torch.arange(0, head_dim, 2) / head_dim)
    angles = torch.outer(torch.arange(length).float(), frequencies)
    return angles.cos(), angles.sin()


def rotate(x: Tensor, rotary: tuple[Tensor, Tensor]) -> Tensor:
    """Rotary embedding of x [..., T, head_dim]; d is paired with d + head_dim / 2 (Llama)."""
    cos, sin = rotary
    first, second = x.chunk(2, -1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


# Data


def batches(rng: Random, size: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches of training texts without end; those of a batch have nearly the same length."""
    source = rules.training_texts(rng)
    while True:
        pool = sorted(islice(source, 16 * size), key=lambda t: (len(sequence(t)), t))
        starts = list(range(0, len(pool), size))
        rng.shuffle(starts)
        for start in starts:
            yield collate(pool[start : start + size])


def sequence(text: str) -> list[int]:
    """The tokens of a text's prompt and answer."""
    return rules.prompt(text) + rules.answer(text)


def collate(texts: list[str]) -> tuple[Tensor, Tensor]:
    """Tokens and targets, both i64[B, T]; a target is the next token, or IGNORED before `=`."""
    longest = max(len(sequence(text)) for text in texts) - 1
    tokens = torch.full((len(texts), longest), rules.END)
    targets = torch.full((len(texts), longest), IGNORED)
    for row, text in enumerate(texts):
        ids, asked = sequence(text), len(rules.prompt(text))
        tokens[row, : len(ids) - 1] = torch.tensor(ids[:-1])
        targets[row, asked - 1 : len(ids) - 1] = torch.tensor(ids[asked:])
    return tokens, targets


# Training


def train(model: Model, recipe: Recipe, seed: int, out: Path) -> None:
    """Trains in place; every 1000 steps measures 500 held-out texts and saves to `out`."""
    optimizer = make_optimizer(model, recipe)
    began, losses = time.monotonic(), 0.0
    for step, (tokens, targets) in enumerate(
        islice(batches(Random(seed), recipe.batch), recipe.steps), 1
    ):
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step, recipe)
        logits = model(tokens)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
        optimizer.step()
        losses += loss.item()
        if step % 100 == 0:
            seconds = time.monotonic() - began
            print(f"step {step}  loss {losses / 100:.5f}  {seconds:.0f} s", flush=True)
            losses = 0.0
        if step % 1000 == 0 or step == recipe.steps:
            right = len(correct(model, rules.held_out(500)))
            print(f"step {step}  held out: {right} of 500", flush=True)
            save(model, out)


def make_optimizer(model: Model, recipe: Recipe) -> torch.optim.AdamW:
    """AdamW, with weight decay on the matrices only."""
    matrices = [p for p in model.parameters() if p.ndim == 2]
    gammas = [p for p in model.parameters() if p.ndim == 1]
    groups = [
        {"params": matrices, "weight_decay": recipe.decay},
        {"params": gammas, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=recipe.rate, betas=(0.9, 0.98))


def rate_at(step: int, recipe: Recipe) -> float:
    """The learning rate: linear warm-up, then a cosine to zero."""
    if step < recipe.warm_up:
        return recipe.rate * step / recipe.warm_up
    done = (step - recipe.warm_up) / max(1, recipe.steps - recipe.warm_up)
    return recipe.rate * (1 + math.cos(math.pi * done)) / 2


# Evaluation


@torch.no_grad()
def correct(model: Model, texts: list[str]) -> list[str]:
    """The texts that greedy decoding reads without a mistake, END included.

    Greedy decoding gives the right answer exactly if, after each prefix of the right answer, the
    largest logit is that of its next token: one pass over prompt and answer tells.
    """
    found = []
    for start in range(0, len(texts), 250):
        part = texts[start : start + 250]
        tokens, targets = collate(part)
        right = (model(tokens).argmax(-1) == targets) | (targets == IGNORED)
        found += [text for text, ok in zip(part, right.all(-1).tolist(), strict=True) if ok]
    return found


def report(model: Model, texts: list[str]) -> str:
    """Exact answers by category, and the first twenty texts read wrongly."""
    right = set(correct(model, texts))
    asked = Counter(rules.category(text) for text in texts)
    scored = Counter(rules.category(text) for text in right)
    rows = [f"{name:10}{scored[name]:6} of {asked[name]:5}" for name in rules.CATEGORIES]
    rows.append(f"{'all':10}{len(right):6} of {len(texts):5}  {len(right) / len(texts):.2%}")
    wrong = [f"wrong: {text}" for text in texts if text not in right]
    return "\n".join(rows + wrong[:20])


# File


def save(model: Model, path: Path) -> None:
    """Writes the parameters as safetensors, f32, with the sizes as metadata; replaces `path`."""
    part = path.with_suffix(".part")
    metadata = {name: str(value) for name, value in asdict(model.config).items()}
    save_file({n: p.detach().contiguous() for n, p in model.named_parameters()}, part, metadata)
    os.replace(part, path)


def load(path: Path) -> Model:
    """The model in a file that `save` wrote."""
    with safe_open(path, framework="pt") as file:
        sizes = dict(file.metadata())
    eps = float(sizes.pop("eps"))
    model = Model(Config(**{name: int(value) for name, value in sizes.items()}, eps=eps))
    model.load_state_dict(load_file(path))
    return model


def main() -> None:
    """Trains and saves, or with --eval-only loads; then reports on the held-out texts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=8000)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("weights.safetensors"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--eval-only", action="store_true", help="measure the model in --out")
    arguments = parser.parse_args()
    torch.set_num_threads(2)
    if arguments.eval_only:
        model = load(arguments.out)
    else:
        torch.manual_seed(arguments.seed)
        model = Model(Config())
        train(model, Recipe(arguments.steps), arguments.seed, arguments.out)
    print(sum(p.numel() for p in model.parameters()), "parameters")
    print(report(model, rules.held_out(4000)))


if __name__ == "__main__":
    main()
