"""A decoder as a C program: how soon a new process has its first token, and what one has in memory at most."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import oic
from against.checkpoint import write
from against.decoders import DECODERS
from against.oic_engine import LARGE, options
from oic.importers import import_checkpoint
from oic.toolchain.compiler import find_compiler

SOURCE = """
#include "model.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* program WEIGHTS COUNT: so many tokens one by one; prints the first when it is there, and last what was resident. */
int main(int argc, char **argv)
{
    static model_session s;
    static int64_t best;
    static int32_t token = 5;
    model_inputs in = {.tokens = &token, .N = 1};
    model_outputs out = {.next = &best};
    out.next_shape[0] = 0;
    if (argc != 3 || model_open(&s, argv[1]) != OIC_OK) {
        return 1;
    }
    for (int i = 0; i < atoi(argv[2]); ++i) {
        if (model_step(&s, &in, &out) != OIC_OK) {
            return 2;
        }
        if (i == 0) {
            printf("%lld\\n", (long long)best);
            fflush(stdout);
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


@dataclass(frozen=True)
class CProgram:
    """A decoder, built.

    planned   bytes of weights, state and arena
    weights   bytes of the first
    """

    command: tuple[str, str]
    context: int
    planned: int
    weights: int

    def run(self, count: int) -> tuple[float, int]:
        """Seconds from before the process is made to its first token, and the bytes that were resident at most."""
        start = time.perf_counter()
        with subprocess.Popen([*self.command, str(count)], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            token = process.stdout.readline()
            seconds = time.perf_counter() - start
            rest = process.stdout.read()
        if not token or process.returncode != 0:
            raise RuntimeError(f"the program ended with status {process.returncode}")
        return seconds, int(rest.split()[0]) * 1024

    def resident(self) -> int:
        """Bytes resident at most over a state that is filled."""
        return self.run(self.context)[1]

    def first_tokens(self, runs: int) -> list[float]:
        """Seconds to the first token of new processes, after one that brings the weights into the page cache."""
        return [self.run(1)[0] for _ in range(runs + 1)][1:]


@contextmanager
def c_program(name: str, precision: str) -> Iterator[CProgram]:
    """A decoder of one thread, reading a token a step, in a folder for the time being."""
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
        (folder / "main.c").write_text(SOURCE)
        call = [*find_compiler(), "-std=c99", "-O2", "-I", str(folder / "c"), "-o", str(folder / "run"),
                str(folder / "main.c"), str(folder / "c" / "libmodel.so"), f"-Wl,-rpath,{folder / 'c'}"]  # fmt: skip
        subprocess.run(call, check=True)
        unit = built.library.files.unit
        planned = unit.weights_bytes + unit.state_bytes + unit.arena_bytes
        command = (str(folder / "run"), str(folder / "c" / "model.weights"))
        yield CProgram(command, decoder.context, planned, unit.weights_bytes)
