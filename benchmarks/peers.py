"""Speed beside other engines: the same shapes and weights, the same threads, in one run.

Every engine runs in a process of its own, in which the model stays loaded; they take turns, and the tables give medians
and half the distance of the quartiles.  The machine takes a turn, too: a streaming read on huge pages, multiply-adds
in f32, int8 and bf16; the limit of a row is the median of its turns.  What is not installed is skipped, and said so;
what fails is named, and the exit status is 1 if that is oic.

    python benchmarks/peers.py [--models gpt2-124m,...] [--rows decode,prefill,...] [--precisions f32,q8]
                               [--threads 1,2] [--engines oic,llama_cpp,...] [--cache q8] [--numerics native]
                               [--python PYTHON] [--json FILE]

Rows: decode (tokens one by one at positions 16, 512 and 990), prefill (128 and 512 tokens), stream (a step of Silero
and of two GRU-256 layers), convolve (a layer alone; q8: bytes to bytes), translate (ByT5: 64 bytes in, 128 tokens
out), first (seconds from the start of a C program to its first token, its weights in the page cache), memory (most
that it has resident), build (seconds, of three).  `--python` is the interpreter that has the other engines: `pip
install oic[bench]`.  The limit of prompts is the peak of the units that products with weights of a precision are for:
those of bytes for q8 and q4, with `--numerics native` the machine's own products of bf16, else f32's, which attention
is counted by, but in that class with `--cache bf16`.  Keys and values of oic are in f32 where weights are, else in 16
bits, as those of llama.cpp are; `--cache` says otherwise.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from against import Unsupported  # noqa: E402
from against.convolutions import LAYERS  # noqa: E402
from against.decoders import DECODERS  # noqa: E402

from oic.diagnostics import OicError  # noqa: E402
from oic.kernels.targets import NATIVE, NUMERICS  # noqa: E402
from oic.profile.limits import Limits, Prober, spread  # noqa: E402

ENGINES = ("oic", "llama_cpp", "onnxruntime", "openvino", "ctranslate2", "torch")
PRECISIONS = ("f32", "f16", "bf16", "q8", "q4")
POSITIONS = (16, 512, 990)
PROMPTS = (128, 512)
STREAMS = ("silero", "gru-256")
BUILDS = 3  # of one model, from text to library
REST = 0.3  # seconds before an engine's turn: threads of the one before it spin for so long after their last work
CACHES = {"f32": 4, "f16": 2, "bf16": 2, "q8": 1}  # bytes of a number; q8 has a scale a head
UNITS = {"read": ("GB/s", 1), "f32": ("GFLOP/s", 0), "int8": ("Gop/s", 0), "bf16": ("GFLOP/s", 0)}
"""Of Limits, with their decimals."""


class Worker:
    """The process of an engine.

    missing  why it has no model, where the engine is not there or cannot do it
    failed   the error that it ended with
    """

    def __init__(self, engine: str, python: str, module: str, given: dict[str, Any]) -> None:
        self.engine, self.missing, self.failed, self.version = engine, "", "", ""
        path = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
        more = {name: str(given["threads"]) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
        more |= {"OIC_CACHE": "off"} if given.pop("anew", False) else {}
        self.process = subprocess.Popen(
            [sys.executable if engine == "oic" else python, "-m", "against.worker", module], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**os.environ, **more, "PYTHONPATH": path},
        )  # fmt: skip
        self._send({"load": given})

    def _send(self, command: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = json.loads(line) if line else {"failed": f"ended with status {self.process.wait()}"}
        self.missing = found.get("missing", "")
        self.failed = found.get("failed", "").strip()
        return found.get("ok")

    def loaded(self) -> bool:
        """Wait until the model is there."""
        self.version = self._answer() or ""
        return not self.missing and not self.failed

    def ask(self, command: str, *given: Any) -> Any:
        """What a method of the engine gives; None if it failed."""
        if self.missing or self.failed:
            return None
        self._send({command: given})
        return self._answer()

    def close(self) -> None:
        """End the process."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.wait()


@dataclass
class Figure:
    """Seconds of one engine in one row."""

    engine: str
    seconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


@dataclass
class Row:
    """A row of the tables.

    work   bytes, or operations, that its seconds are compared with the machine's limit by
    limit  bytes or operations per second of the same run
    per    what a second has many of: tokens, steps
    f32    the fastest other in f32, where none has this precision: what oic is beside then
    """

    model: str
    name: str
    precision: str
    threads: int
    work: float
    limit: float
    per: float
    figures: list[Figure]
    f32: Figure | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "model": self.model, "row": self.name, "precision": self.precision, "threads": self.threads,
            "limit": self.limit, "work": self.work,
            "engines": {f.engine: {"per_second": self.per / f.median, "seconds": f.median,
                                   "spread": spread(f.seconds)[1], "of_limit": self.share(f)} for f in self.figures},
            **({"fastest_f32": {"engine": self.f32.engine, "seconds": self.f32.median}} if self.f32 else {}),
        }  # fmt: skip

    @property
    def fastest(self) -> Figure | None:
        """Of the other engines."""
        return min((f for f in self.figures if f.engine != "oic"), key=lambda f: f.median, default=None)

    def share(self, figure: Figure) -> float | None:
        return self.work / self.limit / figure.median if self.limit else None


class Run:
    """All that is measured; prints a row when it is there."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.prober = Prober()
        self.rows: list[Row] = []
        self.skipped: dict[tuple[str, str], str] = {}
        self.failed: dict[tuple[str, str], str] = {}
        self.versions: dict[str, str] = {}
        self.limits: dict[int, list[Limits]] = {}

    def probe(self, threads: int) -> Limits:
        """The machine's limits now."""
        found = self.prober.limits(threads, rounds=1)
        self.limits.setdefault(threads, []).append(found)
        return found

    def limit(self, threads: int, unit: str) -> tuple[float, float]:
        """The median of all that was probed, and its spread."""
        return spread([getattr(one, unit) for one in self.limits[threads]])

    def workers(self, module: str, **given: Any) -> list[Worker]:
        """A process of every engine that can do it; they load one after the other."""
        found = []
        for engine in self.arguments.engines:
            named = f"{engine}_engine" if module == "decoder" else module
            more = {} if module == "decoder" else {"engine": engine}
            if named == "oic_engine":
                more |= {"cache": self.cache(given["precision"]), "numerics": self.arguments.numerics}
            worker = Worker(engine, self.arguments.python, named, {**given, **more})
            if worker.loaded():
                self.versions[engine] = worker.version
                found.append(worker)
            else:
                what = given.get("decoder") or given.get("model") or module
                self.without(worker, f"{what} {given['precision']}")
                worker.close()
        if self.arguments.wait and found:
            input(f"{', '.join(w.engine for w in found)} loaded; Enter to measure: ")
        return found

    def cache(self, precision: str) -> str:
        """Elements of oic's keys and values."""
        return self.arguments.cache or (precision if precision in ("f32", "bf16") else "f16")

    def without(self, worker: Worker, what: str) -> None:
        """Keep why an engine has no figure."""
        kept, why = (self.failed, worker.failed) if worker.failed else (self.skipped, worker.missing)
        kept[worker.engine, what] = why.strip().splitlines()[-1]

    def alternate(
        self, workers: list[Worker], threads: int, command: str, *given: Any
    ) -> tuple[list[Figure], Limits]:
        """The machine and every engine in turn, after a round that does not count; medians of the machine's limits."""
        figures, limits = {w.engine: Figure(w.engine) for w in workers}, []
        for number in range(self.arguments.rounds + 1):
            time.sleep(REST)
            limits += [self.probe(threads)] if number else []
            for worker in workers:
                time.sleep(REST)
                found = worker.ask(command, *given)
                if found is not None and number:
                    figures[worker.engine].seconds += found if isinstance(found, list) else [found]
        for worker in workers:
            if worker.missing or worker.failed:  # what it measured before is no row
                del figures[worker.engine]
                self.without(worker, f"{command} {' '.join(map(str, given))}".strip())
        return list(figures.values()), middle(limits)

    def show(self, row: Row) -> None:
        self.rows.append(row)
        cells = []
        for f in row.figures:
            share = row.share(f)
            of = f" {share:.2f}" if share is not None else ""
            cells.append(f"{f.engine} {row.per / f.median:,.1f} ±{spread(f.seconds)[1] * 100:.0f}%{of}")
        mine = next((f.median for f in row.figures if f.engine == "oic"), None)
        other = row.fastest or row.f32
        ratio = f"  = {other.median / mine:.2f}x" if other and mine else ""
        ratio += f" {other.engine}'s f32" if ratio and other is row.f32 else ""
        head = f"{row.model:<17}{row.name:<14}{row.precision:<5}{row.threads} thr  "
        print(head + " | ".join(cells) + ratio, flush=True)


# ---------------------------------------------------------------- decoders


def decoders(run: Run) -> None:
    """Decode and prefill of every model, precision and number of threads."""
    a = run.arguments
    for name, precision, threads in itertools.product(a.models, a.precisions, a.threads):
        decoder = DECODERS[name]
        prompt = min(max(a.prompts), decoder.context)
        anew, cache = "build" in a.rows, run.cache(precision)  # what a cache of builds would answer says nothing
        workers = run.workers(
            "decoder", decoder=name, precision=precision, threads=threads, prompt=prompt, anew=anew
        )
        for position in [p for p in a.positions if p + a.tokens < decoder.context and "decode" in a.rows]:
            figures, limit = run.alternate(workers, threads, "decode", position, a.tokens)
            each = CACHES[cache] + (4 / decoder.head if cache == "q8" else 0)
            work = decoder.weight_bytes(precision) + decoder.kv_bytes(position + a.tokens // 2, each)
            run.show(Row(name, f"at {position}", precision, threads, work, limit.read, 1, figures))
        for count in [n for n in a.prompts if n < decoder.context and "prefill" in a.rows]:
            figures, limit = run.alternate(workers, threads, "prefill", count)
            products, pairs = decoder.operations(count)
            attending = peak_of(limit, "bf16" if cache == "bf16" else "f32", a.numerics)
            least = products / peak_of(limit, precision, a.numerics) + pairs / attending
            work, peak = products + pairs, (products + pairs) / least
            run.show(Row(name, f"prompt {count}", precision, threads, work, peak, count, figures))
        if a.wait:
            print("measured", flush=True)
        if "build" in a.rows:
            for worker in [w for w in workers if w.engine == "oic"]:
                figure = Figure("oic", worker.ask("build", BUILDS) or [])
                if not figure.seconds:
                    run.without(worker, f"{name} {precision} build")
                    continue
                run.rows.append(Row(name, "build", precision, threads, 0, 0, 1, [figure]))
                print(f"{name:<17}{'build':<14}{precision:<5}{threads} thr  {figure.median:.1f} s "
                      f"±{spread(figure.seconds)[1] * 100:.0f}%", flush=True)  # fmt: skip
        for worker in workers:
            worker.close()


def middle(limits: list[Limits]) -> Limits:
    """The medians."""
    return Limits(limits[0].threads, *(statistics.median(getattr(one, unit) for one in limits) for unit in UNITS))


def peak_of(limits: Limits, precision: str, numerics: str | None) -> float:
    """Operations per second of the units that products of many rows are for; f32's where the machine has none."""
    own = {"q8": limits.int8, "q4": limits.int8, "bf16": limits.bf16 if numerics == NATIVE else 0}
    return own.get(precision) or limits.f32


def positions(rows: list[Row]) -> Iterator[str]:
    """What a position costs, from the decode rows: seconds of a token grow with the bytes of keys and values."""
    groups: dict[tuple[str, str, int], list[Row]] = {}
    for row in rows:
        if row.name.startswith("at "):
            groups.setdefault((row.model, row.precision, row.threads), []).append(row)
    for (model, precision, threads), found in groups.items():
        for engine in dict.fromkeys(f.engine for row in found for f in row.figures):
            at = {int(r.name[3:]): f.median for r in found for f in r.figures if f.engine == engine}
            if len(at) < 3:
                continue
            low, middle, high = sorted(at)
            slope = (at[high] - at[low]) / (high - low)
            bend = at[middle] - (at[low] + slope * (middle - low))
            work = {int(row.name[3:]): row.work for row in found}
            least = (work[high] - work[low]) / (high - low) / statistics.median(row.limit for row in found)
            yield (
                f"{model} {precision} {threads} thr, {engine}: a position costs {slope * 1e9:,.1f} ns, "
                f"{slope / least:.2f} of its bytes at the limit, {bend / at[middle] * 100:+.1f} % from a line"
            )


# ---------------------------------------------------------------- streams, translation, memory


def streams(run: Run) -> None:
    """Steps of small recurrent models."""
    a = run.arguments
    plain: dict[tuple[str, int], Figure | None] = {}  # the fastest other in f32
    for name, precision, threads in itertools.product(STREAMS, sorted(a.precisions, key="f32".__ne__), a.threads):
        workers = run.workers("streams", model=name, precision=precision, threads=threads)
        figures, _ = run.alternate(workers, threads, "steps", 200)
        if figures:
            row = Row(name, "step", precision, threads, 0, 0, 1, figures)
            plain |= {(name, threads): row.fastest} if precision == "f32" else {}
            row.f32 = None if row.fastest else plain.get((name, threads))
            run.show(row)
        if a.wait:
            print("measured", flush=True)
        for worker in workers:
            worker.close()


def convolve(run: Run) -> None:
    """Convolutions, a layer alone."""
    a = run.arguments
    for precision, threads in itertools.product([p for p in a.precisions if p != "q4"], a.threads):
        workers = run.workers("convolutions", precision=precision, threads=threads)
        for name, layer in LAYERS.items():
            figures, limits = run.alternate(workers, threads, "seconds", name, 20)
            limit = limits.int8 if precision == "q8" else limits.f32
            run.show(Row(layer.operator, name, precision, threads, layer.operations, limit, 1, figures))
        if a.wait:
            print("measured", flush=True)
        for worker in workers:
            worker.close()


def translate(run: Run) -> None:
    """ByT5: 64 bytes in, 128 tokens out, greedy."""
    a = run.arguments
    for precision, threads in itertools.product(a.precisions, a.threads):
        workers = run.workers("translation", precision=precision, threads=threads)
        figures, _ = run.alternate(workers, threads, "translate", 64, 128)
        if figures:
            run.show(Row("byt5-tiny", "64 to 128", precision, threads, 0, 0, 1, figures))
        if a.wait:
            print("measured", flush=True)
        for worker in workers:
            worker.close()


def programs(run: Run) -> None:
    """C programs: their first token, beside a read of the weights; what is resident, beside what is planned."""
    from against.program import c_program

    a = run.arguments
    for name, precision in itertools.product(a.models, a.precisions):
        head = [f"{name:<17}{row:<14}{precision:<5}1 thr  " for row in ("first token", "memory")]
        try:
            with c_program(name, precision) as program:
                if "first" in a.rows:
                    limit = middle([run.probe(1) for _ in range(a.rounds)]).read
                    figure = Figure("oic", program.first_tokens(4 * a.rounds))
                    row = Row(name, "first token", precision, 1, program.weights, limit, 1, [figure])
                    print(f"{head[0]}{figure.median * 1e3:,.1f} ms ±{spread(figure.seconds)[1] * 100:.0f}%, a read of "
                          f"its {row.work / 1e6:,.0f} MB takes {row.work / limit * 1e3:,.1f}", flush=True)  # fmt: skip
                    run.rows.append(row)
                if "memory" in a.rows:
                    most, planned = program.resident(), program.planned
                    print(f"{head[1]}{most / 1e6:,.1f} MB resident, {most / planned:.3f} of weights, state and arena "
                          "in use", flush=True)  # fmt: skip
                    run.rows.append(Row(name, "memory", precision, 1, most, planned, 1, []))
        except (Unsupported, OicError) as why:
            kept = run.failed if isinstance(why, OicError) else run.skipped
            kept["oic", f"{name} {precision}"] = str(why).splitlines()[0]


def names(known: tuple[str, ...]) -> Any:
    """A list of names of an option."""

    def read(text: str) -> list[str]:
        found = text.split(",")
        for name in found:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name} is none of {', '.join(known)}")
        return found

    return read


ALONE = {("stream",): streams, ("convolve",): convolve, ("translate",): translate, ("first", "memory"): programs}
ROWS = ("decode", "prefill", "build", *itertools.chain(*ALONE))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--models", type=names(tuple(DECODERS)), default=["gpt2-124m", "llama-15m", "llama-110m"])
    parser.add_argument("--rows", type=names(ROWS), default=list(ROWS))
    parser.add_argument("--engines", type=names(ENGINES), default=list(ENGINES))
    parser.add_argument("--precisions", type=names(PRECISIONS), default=list(PRECISIONS))
    parser.add_argument("--threads", type=lambda text: [int(n) for n in text.split(",")], default=[1, 2])
    parser.add_argument("--positions", type=lambda text: [int(n) for n in text.split(",")], default=POSITIONS)
    parser.add_argument("--prompts", type=lambda text: [int(n) for n in text.split(",")], default=PROMPTS)
    parser.add_argument("--cache", choices=CACHES, help="of oic: as of oic import")
    parser.add_argument("--numerics", choices=NUMERICS, help="of oic's decoders: as of oic build")
    parser.add_argument("--tokens", type=int, default=16, help="of a round of decoding")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--python", default=sys.executable, help="interpreter that has the other engines")
    parser.add_argument("--wait", action="store_true", help="wait for Enter when models are loaded")
    parser.add_argument("--json", metavar="FILE")
    run = Run(parser.parse_args())
    start = time.perf_counter()
    print("per second: median ± spread, share of the machine's limit; the last figure: oic over the fastest other\n")
    if {"decode", "prefill", "build"} & set(run.arguments.rows):
        decoders(run)
    for rows, measure in ALONE.items():
        if {*rows} & {*run.arguments.rows}:
            measure(run)
    print()
    for line in positions(run.rows):
        print(line)
    for threads in sorted(run.limits):
        most = max(one.read for one in run.limits[threads])
        said = []
        for unit, (of, digits) in UNITS.items():
            limit, off = run.limit(threads, unit)
            said.append(f"{limit / 1e9:.{digits}f} {of} {unit} ±{off * 100:.0f}%")
        print(f"the machine, {threads} thr: {', '.join(said)}; {most / 1e9:.1f} GB/s read at most")
    for (engine, precision), why in run.skipped.items():
        print(f"skipped: {engine} {precision}: {why}")
    for (engine, precision), why in run.failed.items():
        print(f"FAILED: {engine} {precision}: {why}")
    print(", ".join(f"{engine} {version}" for engine, version in run.versions.items()),
          f"; {time.perf_counter() - start:.0f} s", sep="")  # fmt: skip
    if run.arguments.json:
        limits = {n: vars(middle(found)) | {"spread": {unit: run.limit(n, unit)[1] for unit in UNITS}}
                  for n, found in run.limits.items()}  # fmt: skip
        found = {"limits": limits, "versions": run.versions, "numerics": run.arguments.numerics,
                 "rows": [row.to_json() for row in run.rows],
                 "skipped": [[*key, why] for key, why in run.skipped.items()],
                 "failed": [[*key, why] for key, why in run.failed.items()]}  # fmt: skip
        Path(run.arguments.json).write_text(json.dumps(found, indent=1))
    return 1 if any(engine == "oic" for engine, _ in run.failed) else 0


if __name__ == "__main__":
    sys.exit(main())
