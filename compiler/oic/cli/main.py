"""The `oic` command: arguments in, exit status out.

Exit status: 0 ok, 1 the user's graph, model or input is wrong, 2 usage, 3 reference and compiled
code differ, 4 no usable C compiler.  Imports of the compiler are inside the commands, so that
`oic --version` answers at once.
"""

import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

import click

from oic.cli import options as common
from oic.cli.checkpoints import generate, import_, quantize, verify
from oic.cli.text import json_text, progress, report, say, stages
from oic.collector import uncollected
from oic.diagnostics import count_of
from oic.version import __version__

if TYPE_CHECKING:
    from oic.driver import Program

# Commands of other tools, and what is done here instead.
MEANT = {
    **dict.fromkeys(("fmt", "format"), "There is no formatter: the layout of a graph is its author's."),
    **dict.fromkeys(("compile", "codegen", "emit"), "'oic build' generates C and compiles it."),
    **dict.fromkeys(("lint", "validate"), "'oic check' says everything that is wrong with a graph."),
    **dict.fromkeys(("test", "compare"), "'oic diff' compares the compiled C with the reference."),
    **dict.fromkeys(("profile", "benchmark", "perf", "time"), "'oic bench' measures the statements of a graph."),
    **dict.fromkeys(("exec", "simulate", "eval"), "'oic run' runs a graph; --backend reference in NumPy."),
    **dict.fromkeys(("size", "memory"), "'oic fit' counts memory, 'oic explain' says why."),
    **dict.fromkeys(("show", "info", "dump", "print"), "'oic inspect' shows a model, 'oic ir' a graph."),
    **dict.fromkeys(("help", "doc", "docs"), "'oic --help' and 'oic COMMAND --help' show usage."),
}


class Commands(click.Group):
    """The commands; a name that is none of them is answered with what does it here."""

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] in MEANT and args[0] not in self.commands:
            context.fail(f"No such command '{args[0]}'. {MEANT[args[0]]}")
        return super().resolve_command(context, args)

    def main(self, args: Sequence[str] | None = None, *rest: Any, **more: Any) -> Any:
        """The command; told to end, its process ends the compilers it started and removes what it had half made."""
        for name in ("SIGINT", "SIGTERM", "SIGHUP") if args is None else ():
            number = getattr(signal, name, None)
            if number and signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                signal.signal(number, lambda received, _: sys.exit(128 + received))
        try:
            return super().main(args, *rest, **more)
        except OSError as error:  # of `--help` and `--version`, which are no commands, on a full disk
            sys.exit(common.refused(error, as_json=False))


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "--version", message="oic %(version)s")
def main() -> None:
    """Compile stateful inference graphs (.oi) to self-contained C, and prove the C right.

    Exit status: 0 ok, 1 the graph, model or input is wrong, 2 usage, 3 the compiled code and the
    reference differ, 4 no usable C compiler.
    """


@main.command()
@common.graph_command
def check(as_json: bool, **options: Any) -> None:
    """Say everything that is wrong with a graph."""
    program = common.load(**options)
    report(program.warnings, as_json)
    if not as_json:
        warned = f", {count_of(len(program.warnings), 'warning')}" if program.warnings else ""
        say(f"{program.graph.name}: ok{warned}")


def list_passes(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    """What `oic ir --list` does; it needs no graph."""
    if wanted:
        from oic.cli.ir import passes

        say(passes())
        context.exit()


@main.command()
@common.graph_command
@common.choice_option("--stage", ("graph", "indexed", "planned"), "planned", "the last stage to reach")
@click.option("--after", metavar="PASS", help="stop after this pass")
@click.option("--changed", is_flag=True, help="print the module after every pass that changed it")
@click.option("--passes", "only", metavar="NAMES", help="run only these passes, separated by commas")
@click.option("--mlir", is_flag=True, help="MLIR's generic form")
@click.option(
    "--list", is_flag=True, is_eager=True, expose_value=False, callback=list_passes,
    help="list the passes and their reasons, and do nothing else",
)  # fmt: skip
@click.option("--verify", "verified", is_flag=True, help="check invariants after every pass")
@common.plan_options()
def ir(
    as_json: bool, stage: str, after: str | None, changed: bool, only: str | None, mlir: bool, verified: bool,
    **options: Any,
) -> None:  # fmt: skip
    """Print a graph's intermediate representation at any stage."""
    from oic.cli.ir import modules, shown

    program = common.load(**options, verified=verified)
    say(shown(modules(program, stage, after, only), changed=changed, mlir=mlir, as_json=as_json))


@main.command()
@common.graph_command
@click.option("-o", "--output", metavar="FOLDER", help="folder to write to (default: build/NAME)")
@click.option("--name", metavar="NAME", help="of the library, its files and names in C (default: the graph's)")
@common.plan_options()
@common.choice_option("--weights-as", ("blob", "array"), "blob", "a file beside the code, or a C array")
@click.option("--flash", metavar="BYTES", help="with --weights auto: for all constants, like 8M")
@click.option("--profile", is_flag=True, help="the code measures itself: time, bytes, operations by statement")
@click.option("--no-cache", is_flag=True, help="pack and compile all anew")
@click.option("--no-compile", is_flag=True, help="write the C and do not compile it")
@uncollected()
def build(
    as_json: bool, output: str | None, name: str | None, weights_as: str, flash: str | None,
    profile: bool, no_cache: bool, no_compile: bool, **options: Any,
) -> None:  # fmt: skip
    """Generate C and compile it into a shared library."""
    from oic.cli.run import build_library, built
    from oic.driver import work_warnings

    if flash is not None:
        if options["weights"] != "auto":
            raise click.UsageError("--flash goes with --weights auto")
        options["weights"] = f"auto:{flash}"
    program = common.load(**options)
    if not as_json:
        report(program.warnings, as_json)
    folder = Path(output) if output else Path("build") / (name or program.graph.name)
    with stages(f"building {program.graph.name}") as told:
        made = build_library(
            program, folder, weights_as, name, compiled=not no_compile, profiled=profile, cached=not no_cache, told=told
        )
    if as_json:
        warned = [*program.warnings, *work_warnings(program)]
        say(json_text(made | {"diagnostics": [d.to_json() for d in warned]}))
    else:
        report(work_warnings(program), as_json)
        say(built(made))


@main.command()
@common.graph_command
@common.inputs_option("a dynamic input of every step: FILE.npy or [numbers]")
@common.inputs_option("one that differs by step, along the first axis", "--each", "each")
@click.option("--steps", type=click.IntRange(1), metavar="N", help="how many (default: as --each has, or 1)")
@common.entry_option
@common.choice_option("--backend", ("c", "reference"), "c", "compiled code, or the NumPy reference")
@click.option("-o", "--output", metavar="FOLDER", help="save the outputs there, as NAME.npy")
@common.code_options
@click.option("--trace", is_flag=True, help="print the statements of the last step")
def run(
    as_json: bool, inputs: Any, each: Any, steps: int | None, entry: str, backend: str, output: str | None,
    trace: bool, **options: Any,
) -> None:  # fmt: skip
    """Run a graph for a number of steps and print or save its outputs."""
    from oic.cli.run import by_step, outcome, run_steps, save_outputs
    from oic.driver import interface_of

    if twice := sorted(set(inputs) & set(each)):
        raise click.UsageError(f"'{twice[0]}' is given by --input, the same for every step, and by --each")
    program = common.load(**options)
    folder = Path(output) if output else None
    rows, count = by_step(interface_of(program), each, steps)
    with progress(f"running {program.graph.name}", count) as advance:
        result = run_steps(program, inputs, rows, count, entry, backend, advance, folder, traced=trace)
    files = [*result.files, *save_outputs(result.outputs, folder)] if folder and result.outputs else None
    text = outcome(result, files, traced=trace, as_json=as_json)
    if text:
        say(text)
    if result.refusal is not None:
        if not as_json:
            raise result.refusal
        sys.exit(common.USER)


@main.command()
@common.graph_command
@common.inputs_option("a dynamic input of every step, given instead of random")
@common.steps_option
@common.number_option("--seed", "seed", 0, 0, "of the random inputs")
@click.option("--entry", metavar="BLOCK", help="block to run (default: every entry in turn)")
@common.code_options
@click.option("--bisect", "bisected", is_flag=True, help="name the pass that changed the answer")
def diff(as_json: bool, inputs: Any, steps: int, seed: int, entry: str | None, bisected: bool, **options: Any) -> None:
    """Compare the reference and the compiled C, step by step."""
    from oic.cli.run import compared, diff_steps

    program = common.load(**options)
    with progress(f"comparing {program.graph.name}", steps) as advance:
        verdict, culprit = diff_steps(program, inputs, steps, seed, entry, bisected, advance)
    say(compared(program.graph.name, verdict, culprit, bisected, as_json))
    if not verdict.equal or culprit:
        sys.exit(common.MISMATCH)


@main.command()
@common.graph_command
@common.inputs_option("a dynamic input of every step, given instead of random")
@common.pairs_option("--extent", "extents", common.INTEGER, "NAME=N", "a size of the inputs (default: 1)")
@common.steps_option
@common.entry_option
@common.number_option("--after", "after", 0, 0, "steps to take before those that are measured")
@click.option("--all", "shortest", is_flag=True, help="show each statement, however little time it takes")
@click.option("-o", "--output", metavar="FOLDER", help="keep the build there; its report has the time of every line")
@common.code_options
def bench(
    as_json: bool, inputs: Any, extents: Any, steps: int, entry: str, after: int, shortest: bool,
    output: str | None, **options: Any,
) -> None:  # fmt: skip
    """Measure statements beside what the machine can do.

    Time, bytes and operations of each, by a build that counts them, and their share of the roofline: the time that
    the bytes or the operations take at least, over the time that they took.
    """
    from oic.cli.absent import drawn, load_whole
    from oic.cli.bench import in_json, measure, shown

    program = load_whole(drawn, **options)
    folder = Path(output) if output else None
    with progress(f"measuring {program.graph.name}", steps) as advance:
        found = measure(program, inputs, extents, steps, entry, folder, advance, after)
    say(json_text(in_json(program, found)) if as_json else shown(program, found, shortest))


@main.command()
@common.graph_command
@common.plan_options()
def explain(as_json: bool, graph: str, **options: Any) -> None:
    """Say why values lie where they lie, or what an error means.

    GRAPH is a file, or the slug of a diagnostic or status: oic explain table-rank
    """
    from oic.cli.memory import print_decisions
    from oic.pages import named, page

    slug = named(graph)
    if slug is not None and not Path(graph).exists():
        found, width = page(slug), min(100, get_terminal_size().columns)
        say(json_text(asdict(found)) if as_json else found.plain(width).rstrip("\n"))
        return
    print_decisions(common.load(graph, **options), as_json)


@main.command()
@common.graph_command
@click.option("--ram", type=common.byte_count, metavar="BYTES", help="for state, arena and stack: 256K, 1M")
@click.option("--flash", type=common.byte_count, metavar="BYTES", help="for weights and code")
@click.option("--vary", metavar="NAME", help="the bound to enlarge (default: the likeliest)")
@common.plan_options("freestanding")
def fit(
    as_json: bool, ram: int | None, flash: int | None, vary: str | None, sizes: Any, capacity: Any,
    **options: Any,
) -> None:  # fmt: skip
    """Say whether a graph fits into memory, and how far it may grow."""
    from oic.cli.absent import load_whole, zeros
    from oic.cli.fit import Room, print_fit

    def compiled(more_sizes: dict[str, int], more_capacity: dict[str, int]) -> "Program":
        wanted = {"sizes": sizes | more_sizes, "capacity": capacity | more_capacity, "unbounded": True}
        return load_whole(zeros, **wanted, **options)

    if not print_fit(compiled, Room(ram, flash), vary, as_json):
        sys.exit(common.USER)


@main.command()
@click.argument("name", required=False)
@common.guarded
def ops(as_json: bool, name: str | None) -> None:
    """List the operators, or describe one."""
    from oic.cli.ops import describe, listing

    say(describe(name, as_json) if name else listing(as_json))


@main.command()
@click.argument("file", type=common.PATH)
@click.option("--stats", is_flag=True, help="smallest, largest and mean value of every tensor")
@common.guarded
def inspect(as_json: bool, file: str, stats: bool) -> None:
    """Print the sizevars, metadata and tensors of a model file.

    Of a folder without config.json, those of its model.json, or else of the
    model files in it.
    """
    from oic.model.inspect import describe, opened, to_json

    width = get_terminal_size().columns if sys.stdout.isatty() else None
    models = opened(file)
    if as_json:
        say(json_text(to_json(models[0], stats) if len(models) == 1 else [to_json(m, stats) for m in models]))
        return
    say("\n\n".join(describe(model, stats, width).rstrip("\n") for model in models))


for command in (import_, generate, verify, quantize):
    main.add_command(command)
