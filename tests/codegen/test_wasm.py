"""A model in WebAssembly, whose vectors are those of `simd/wasm.h`: the bits of this machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import oic
from oic.toolchain.target import WARNINGS
from paths import ROOT
from runtime import wasm

EXAMPLE = ROOT / "examples" / "numwords"
PROGRAM = """
#include "numwords.h"
#include "wasm.h"
static numwords_state state;
static uint64_t arena[(NUMWORDS_ARENA_BYTES + 7) / 8];
static float logits[128 * 128];
static int64_t next[128];
int run(void)
{
    const numwords_memory memory = {&state, sizeof state, arena, sizeof arena, numwords_weights.bytes, NUMWORDS_WEIGHTS_BYTES};
    numwords_session session;
    uint32_t status = numwords_init(&session, &memory);
    int32_t tokens[40];
    for (int i = 0; i < 40; ++i) {
        tokens[i] = (37 * i + 11) % 128;
    }
    for (int at = 0, count = 23; at < 40; at += count, count = 1) {
        numwords_outputs out = {.logits = logits, .next = next};
        status |= numwords_step(&session, &(numwords_inputs){.tokens = tokens + at, .N = count}, &out);
        for (int i = 0; i < 128 * count; ++i) {
            union { float of; uint32_t bits; } logit = {.of = logits[i]};
            wasm_say("logit", status, logit.bits);
        }
    }
    return 0;
}
"""


@pytest.mark.parametrize("weights", ["", "q8", "q4"])
def test_a_language_model(weights: str, tmp_path: Path) -> None:
    graph, model = oic.parse_file(EXAMPLE / "graph.oi"), oic.Model.open(EXAMPLE / "weights.safetensors")
    made = oic.Synthesizer(graph, model, target="freestanding", weights_as="array", weights=weights)
    made.emit(tmp_path / "out")
    (tmp_path / "main.c").write_text(PROGRAM)
    sources = [tmp_path / "main.c", tmp_path / "out" / "numwords.c", tmp_path / "out" / "numwords.weights.c"]
    found = wasm.said(sources, tmp_path, "-O1", *WARNINGS, "-Werror", "-DOIC_HOSTED=0", "-I", str(tmp_path / "out"))
    tokens = (37 * np.arange(40, dtype=np.int32) + 11) % 128
    with oic.Synthesizer(graph, model, target="portable", numerics="separate", weights=weights).build().make_executor() as executor:
        rows = [executor.step(tokens=part)["logits"] for part in (tokens[:23], *np.split(tokens[23:], 17))]
    assert found.splitlines() == [f"logit: {int(bits):016x}" for bits in np.concatenate(rows).ravel().view(np.uint32)]
