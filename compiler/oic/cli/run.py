"""What `oic build`, `oic run` and `oic diff` do, and what they print."""

import ast
import io
import json
import math
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from oic import dtypes
from oic.cli.text import json_text
from oic.codegen.weights import Told, unheard
from oic.compare.between import drawn
from oic.compare.bisect import Culprit, bisect
from oic.compare.harness import Run, Verdict, compare
from oic.compare.inputs import own_inputs, random_inputs
from oic.diagnostics import StepError, count_of, fail
from oic.driver import Program, interface_of, lowered
from oic.dtypes import Array
from oic.ir.grouping import by_key
from oic.library.build import build, emit_measured
from oic.library.cache import Cache
from oic.library.emit import LibrarySpec, emit
from oic.library.publish import writing
from oic.model.npy import read_npy
from oic.passes.store_weights import KEPT, laid_out, why_declared
from oic.reference.interpret import Machine
from oic.session.executor import Executor
from oic.session.inputs import checked
from oic.session.interface import Interface
from oic.session.simulator import SimulatorExecutor
from oic.session.synthesizer import CompiledProgram
from oic.session.trace import Record

StepOnce = Callable[[], None]


def build_library(
    program: Program, folder: Path, weights_as: str, name: str | None, *, compiled: bool, profiled: bool = False,
    cached: bool = True, told: Told = unheard,
) -> dict[str, Any]:  # fmt: skip
    """Write, and compile where asked, a library; what was made, for printing.  Raises OicError."""
    target, threads = program.settings.target, program.settings.threads
    spec = LibrarySpec(program.planned, target, weights_as, threads, name, profiled)
    if compiled and target.hosted:
        made = build(spec, folder, Cache.of_user() if cached else None, told)
        files, library = made.files, str(made.path)
    else:
        files, library = emit_measured(spec, folder) if compiled else emit(spec, folder), ""
    return {
        "name": files.name, "folder": str(folder), "files": [str(p) for p in files.paths],
        "state": files.unit.state_bytes, "arena": files.unit.arena_bytes,
        "arena_lower_bound": max(program.planned.memory.lower_bound.values(), default=0),
        "weights": files.unit.weights_bytes,
        "stored": [asdict(choice) for choice in laid_out(program.planned, program.stored)],
        "compiled": files.figures.to_json() if files.figures else None, "library": library,
        "late_checks": [f"{span} ({variable})" for span, variable in files.late_checks],
    }  # fmt: skip


def built(made: dict[str, Any]) -> str:
    """What was built, for people: bytes, and what they should know."""
    bound = f"   (lower bound {made['arena_lower_bound']:,})" if made["arena_lower_bound"] else ""
    late = "leaves state changed: steps are then OIC_ERR_STATE"
    return "\n".join([
        f"{made['name']}: {made['folder']}",
        f"  state    {made['state']:>14,} bytes",
        f"  arena    {made['arena']:>14,} bytes{bound}",
        f"  weights  {made['weights']:>14,} bytes",
        *_stored(made["stored"]),
        *([f"  library  {made['library']}"] if made["library"] else []),
        *(f"  a refusal at {place} {late}" for place in made["late_checks"]),
    ])  # fmt: skip


def _stored(choices: list[dict[str, Any]]) -> list[str]:
    """Bytes of constants by what they are stored as, and why some are not as they were to be."""
    found = by_key((choice["storage"], choice) for choice in choices)
    kept = found.pop(KEPT, [])
    lines = [f"  as {s:<5} {sum(c['nbytes'] for c in cs):>14,} bytes: {_names(cs)}" for s, cs in found.items()]
    size, because = sum(c["nbytes"] for c in kept), why_declared((c["symbol"], c["reason"]) for c in kept)
    return lines + ([f"  declared {size:>14,} bytes{': ' if because else ''}{because}"] if kept else [])


def _names(choices: list[dict[str, Any]]) -> str:
    return ", ".join(c["symbol"] for c in choices)


def given_inputs(face: Interface, inputs: dict[str, str]) -> dict[str, Array]:
    """Inputs from `NAME=FILE.npy` or `NAME=[…]`.  Raises OicError, StepError."""
    return {name: checked(face, name, _value(face, name, text)) for name, text in inputs.items()}


def by_step(face: Interface, each: dict[str, str], steps: int | None) -> tuple[dict[str, Any], int]:
    """Inputs that differ from step to step, and how many steps are run.

    each    NAME=VALUE likewise: steps along the first axis, or a file of one axis that is cut into steps
    steps   that are asked for; None: as many as there are values for, or one
    What is left at the end of a file, too little for a step, is not given.  Raises OicError.
    """
    rows = {name: _rows(face, name, _value(face, name, text)) for name, text in each.items()}
    counts = {name: len(values) for name, values in rows.items()}
    wanted = max([1, *counts.values()]) if steps is None else steps
    for name, count in counts.items():
        if count < wanted:
            hint = f"--steps {count}" if count else None
            raise fail("input-value", f"'{name}' has values for {count_of(count, 'step')}, not {wanted}", hint=hint)
    return rows, wanted


def _rows(face: Interface, name: str, value: Any) -> Any:
    """What is given, by step."""
    shape = face.variables[name].shape if name in face.variables else ()
    sizes = [size for size in shape if isinstance(size, int) and size > 0]
    if isinstance(value, np.ndarray) and value.ndim == 1 and shape and len(sizes) == len(shape):
        size = math.prod(sizes)
        return value[: len(value) // size * size].reshape(-1, *sizes)
    if not isinstance(value, (list, tuple)) and not np.ndim(value):
        raise fail("input-value", f"'{name}' is one number, and one is given for each step")
    if name in face.variables and isinstance(value, np.ndarray) and value.ndim != 1 + len(shape):
        wanted = ", ".join(["steps", *("?" if size is None else str(size) for size in shape)])
        raise fail("input-value", f"'{name}' has the shape {list(value.shape)}, and for each step has [{wanted}]")
    return value


def _value(face: Interface, name: str, text: str) -> Any:
    """An array from a file, or numbers."""
    variable = face.variables.get(name)
    return _restored(read_npy(text), variable.dtype if variable else None) if text.endswith(".npy") else _numbers(text)


def _restored(array: Array, dtype: dtypes.DType | None) -> Array:
    """Elements of a dtype that .npy files do not have, from one in which nothing of them is lost."""
    if dtype is None or dtype.np.kind in "fiub" or array.dtype.kind not in "fiu":
        return array
    found = array.astype(dtype.np)
    return found if np.array_equal(found.astype(np.float64), array.astype(np.float64), equal_nan=True) else array


def _numbers(text: str) -> Any:
    """Numbers, true and false in nested lists, as Python or JSON writes them."""
    for read in (json.loads, ast.literal_eval):
        try:
            value, tree = read(text), ast.walk(ast.parse(text.strip(), mode="eval"))
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            continue
        if any(isinstance(n, ast.Constant) and n.value == math.inf for n in tree):  # Infinity is a name
            raise fail("input-value", f"'{text}' has a number beyond the range of f64")
        if isinstance(value, (int, float, list, tuple)):
            return value
    raise fail("input-value", f"'{text}' is neither a .npy file nor numbers")


def compiled_program(program: Program, *, profiled: bool = False) -> CompiledProgram:
    """What sessions of the compiled code are made of."""
    settings = program.settings
    spec = LibrarySpec(program.planned, settings.target, threads=settings.threads, profiled=profiled)
    return CompiledProgram(spec, interface_of(program))


@dataclass
class Result:
    """Outputs of the steps that ran, the trace of the last, and the refusal that ended them.

    dtypes   of the outputs, as declared: an array does not tell a bitset from u8
    files    of the outputs that were written while the steps ran, which are not among `outputs`
    """

    dtypes: "dict[str, dtypes.DType]" = field(default_factory=dict)
    files: list[Path] = field(default_factory=list)
    outputs: list[dict[str, Array]] = field(default_factory=list)
    trace: list[Record] = field(default_factory=list)
    refusal: StepError | None = None


def run_steps(
    program: Program, inputs: dict[str, str], rows: dict[str, Any], steps: int, entry: str, backend: str,
    advance: StepOnce, folder: Path | None, *, traced: bool,
) -> Result:  # fmt: skip
    """Run steps until one is refused; compiled code measures itself where it is traced.

    rows     inputs by step, of `by_step`
    folder   that outputs are saved in: of several steps, those whose shape is one are written as they come
    Raises OicError, and StepError for what is given.
    """
    face = interface_of(program)
    outputs, series = face.entry(entry).outputs, dict[str, Series]()
    given = given_inputs(face, inputs)
    session: Executor
    if backend == "c":
        session = compiled_program(program, profiled=traced).make_executor()
    else:
        session = SimulatorExecutor(face, Machine(program.module, program.compiled))
    result = Result({name: face.variables[name].dtype for name in outputs})
    with session as ex, ExitStack() as closed:
        if folder is not None and steps > 1:
            fixed = [n for n in outputs if all(isinstance(size, int) for size in face.variables[n].shape)]
            series = {n: closed.enter_context(Series(folder / f"{n}.npy")) for n in fixed}
            result.files = [s.path for s in series.values()]
        try:
            for number in range(steps):
                made = ex.step(entry, **given, **{name: values[number] for name, values in rows.items()})
                for name, file in series.items():
                    file.add(_portable(made.pop(name)))
                result.outputs.append(made)
                advance()
        except StepError as refusal:
            result.refusal = refusal
        result.trace = list(ex.trace())
    return result


class Series:
    """A .npy file that arrays of one shape are added to, along a first axis; none before the first.

    Whatever ends it, an interrupt or a full disk in the middle of an array, it is a file of the arrays before.
    Raises OicError `output-folder`.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._count = path, 0
        self._file: io.FileIO | None = None

    def __enter__(self) -> Self:
        return self

    def add(self, array: Array) -> None:
        """One step more."""
        with writing(self.path.parent):
            if self._file is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._first, self._file = array, io.FileIO(self.path, "w")  # nothing is kept back
                self._head(self._file)
            left = memoryview(array.tobytes())
            while left:  # as much as the disk takes
                left = left[self._file.write(left) :]
            self._count += 1

    def _head(self, file: io.FileIO) -> None:
        """What is before the elements; NumPy leaves room there for any number of steps."""
        descr = np.lib.format.dtype_to_descr(self._first.dtype)
        said = {"descr": descr, "fortran_order": False, "shape": (self._count, *self._first.shape)}
        file.seek(0)
        np.lib.format.write_array_header_1_0(file, said)

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            with writing(self.path.parent), self._file as file:
                self._head(file)
                file.truncate(file.tell() + self._count * self._first.nbytes)


def outcome(result: Result, files: list[Path] | None, *, traced: bool, as_json: bool) -> str:
    """What `oic run` prints on standard output."""
    if as_json:
        found: dict[str, Any] = {}
        if files is None:
            found["steps"] = [{n: _portable(a).tolist() for n, a in step.items()} for step in result.outputs]
        else:
            found["files"] = [str(path) for path in files]
        if traced:
            found["trace"] = [vars(record) for record in result.trace]
        if result.refusal is not None:
            found["diagnostics"] = [result.refusal.diagnostic().to_json()]
        return json_text(found, indent=None)  # arrays may be long
    lines = _outputs(result) if files is None else [str(path) for path in files]
    if traced:
        lines += [_traced(record) for record in result.trace]
    return "\n".join(lines)


def _outputs(found: Result) -> list[str]:
    """A line for every output of every step, and lines of its elements."""
    lines = []
    with np.printoptions(precision=6, threshold=64, suppress=True):
        for number, step in enumerate(found.outputs):
            for name, array in step.items():
                shape = list(array.shape) if array.shape else ""
                lines += [f"step {number}  {name}: {found.dtypes[name]}{shape}", str(_portable(array))]
    return lines


def _traced(record: Record) -> str:
    place, operands = f"{record.block}:{record.line}", ", ".join(record.operands)
    result = f" >> {record.result}" if record.result else ""
    took = "" if math.isnan(record.microseconds) else f"  {record.microseconds:.1f} us"
    return f"{place:<14} {record.operator:<16} {operands}{result}{took}"


def save_outputs(found: list[dict[str, Array]], folder: Path) -> list[Path]:
    """Write every output as NAME.npy; the steps along a first axis where their shapes agree.

    Where they do not, each step has a file of its own, NAME.0.npy and so on.  bf16, f8 and packed
    elements are saved as f32 or as bytes, which every reader of .npy knows.  Raises OicError.
    """
    arrays: dict[str, Array] = {}
    for name in found[0]:
        steps = [_portable(step[name]) for step in found]
        if len(steps) == 1:
            arrays[name] = steps[0]
        elif all(a.shape == steps[0].shape for a in steps):
            arrays[name] = np.stack(steps)
        else:
            arrays |= {f"{name}.{i}": a for i, a in enumerate(steps)}
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, array in arrays.items():
            np.save(folder / f"{name}.npy", array)
    return [folder / f"{name}.npy" for name in arrays]


def _portable(array: Array) -> Array:
    """The array in a dtype that NumPy has by itself; nothing is lost."""
    dtype = dtypes.from_array(array.dtype)
    if dtype is None or array.dtype.kind in "fiub":
        return array
    return array.astype(np.float32 if dtype.is_float else np.int8 if dtype.low < 0 else np.uint8)


def diff_steps(
    program: Program, inputs: dict[str, str], steps: int, seed: int, entry: str | None,
    bisected: bool, advance: StepOnce,
) -> tuple[Verdict, Culprit | None]:  # fmt: skip
    """Compare both backends over random or given inputs.  Raises OicError, StepError."""
    face = interface_of(program)
    entries = [face.entry(entry)] if entry is not None else list(face.entries.values())
    given = given_inputs(face, inputs)
    rng, actions = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    runs = []
    for number in range(steps):
        chosen = entries[number % len(entries)]
        own, sizes = own_inputs(chosen, given)
        random = random_inputs(program.module, chosen, rng, sizes)
        runs.append(Run(chosen.symbol, random | own, drawn(actions) if number else ""))
    maker = compiled_program(program)
    with maker.make_executor() as executor:
        verdict = compare(program.module, executor, runs, lambda _: advance(), maker.make_executor, program.compiled)
    culprit = None
    if bisected:
        after = ((s.name, m) for s, m in lowered(program.module, program.settings))
        culprit = bisect(program.module, after, runs[: verdict.steps])
    return verdict, culprit


def compared(name: str, verdict: Verdict, culprit: Culprit | None, bisected: bool, as_json: bool) -> str:
    """What `oic diff` prints."""
    if as_json:
        return json_text({
            "equal": verdict.equal and culprit is None, "verdict": str(verdict), "steps": verdict.steps,
            "compared": verdict.compared, "refusals": verdict.refusals, "worst": verdict.worst,
            "doubts": [str(doubt) for doubt in verdict.doubts], "states": dict(sorted(verdict.acts.items())),
            "bisect": None if culprit is None else str(culprit),
        })  # fmt: skip
    lines = [f"{name}: {verdict}"]
    if bisected:
        lines.append(str(culprit) if culprit else "no pass changes the interpreter's answer")
    return "\n".join(lines)
