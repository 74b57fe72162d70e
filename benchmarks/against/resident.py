"""What a C program that runs a decoder has in memory at most, beside the bytes that are planned for it."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import oic
from against.checkpoint import write
from against.decoders import DECODERS
from against.oic_engine import LARGE, options
from oic.importers import import_checkpoint
from oic.toolchain.compiler import find_compiler

PROGRAM = """
#include "model.h"
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
    static model_session s;
    static int64_t best;
    static int32_t token = 5;
    model_inputs in = {.tokens = &token, .N = 1};
    model_outputs out = {.next = &best};
    out.next_shape[0] = 0;
    (void)argc;
    if (model_open(&s, argv[1]) != OIC_OK) {
        return 1;
    }
    for (int i = 0; i < COUNT; ++i) {
        if (model_step(&s, &in, &out) != OIC_OK) {
            return 2;
        }
    }
    model_close(&s);
    char line[200];
    FILE *const file = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "VmHWM:", 6) == 0) {
            fputs(line + 6, stdout);
        }
    }
    return 0;
}
"""


def resident(name: str, precision: str) -> tuple[int, float]:
    """Bytes resident at most over a state that is filled, and those of weights, state and arena."""
    decoder = DECODERS[name]
    large = decoder.weight_bytes("f32") / 4 > LARGE
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write(decoder, folder / "in", "BF16" if large else "F32")
        import_checkpoint(folder / "in", folder / "graph", context=decoder.context, prefill=1)
        built = oic.Synthesizer(
            oic.parse_file(folder / "graph" / "graph.oi"), oic.Model.open(folder / "graph" / "model.json"),
            fetch=["next"], name="model", **options("f32" if large and precision == "bf16" else precision, 1),
        ).build(folder / "c")  # fmt: skip
        (folder / "main.c").write_text(PROGRAM.replace("COUNT", str(decoder.context)))
        call = [*find_compiler(), "-std=c99", "-O2", "-I", str(folder / "c"), "-o", str(folder / "run"),
                str(folder / "main.c"), str(folder / "c" / "libmodel.so"), f"-Wl,-rpath,{folder / 'c'}"]  # fmt: skip
        subprocess.run(call, check=True)
        done = subprocess.run([folder / "run", folder / "c" / "model.weights"], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"the program ended with status {done.returncode}")
        unit = built.library.files.unit
        return int(done.stdout.split()[0]) * 1024, unit.weights_bytes + unit.state_bytes + unit.arena_bytes
