"""What commands share: options, the handling of refusals, and loading a graph."""

import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial, reduce, wraps
from typing import TYPE_CHECKING, Any

import click

from oic.cli.text import in_color, report
from oic.diagnostics import Diagnostic, OicError, StepError, fail

if TYPE_CHECKING:
    from oic.driver import Program

OK, USER, MISMATCH, TOOLCHAIN = 0, 1, 3, 4  # 2, usage, is click's own
TOOLCHAIN_SLUGS = {"no-compiler", "compile-failed", "load-failed"}

PATH = click.Path(readable=False)  # why it cannot be read is said by who reads it
Command = Callable[..., Any]
Option = Callable[[Command], Command]
INTEGER = partial(int, base=0)


def byte_count(text: str) -> int:
    """The bytes that an option says."""
    from oic.library.cache import bytes_of

    found = bytes_of(text)
    if found is None or not 0 < found < 1 << 60:
        raise click.BadParameter(f"'{text}' is not a number of bytes, like 256K or 1M")
    return found


def choice_option(flag: str, values: tuple[str, ...], default: str, text: str) -> Option:
    """An option that is one of several words."""
    return click.option(flag, type=click.Choice(values), default=default, show_default=True, help=text)


def number_option(flag: str, name: str, least: int, default: int, text: str, most: int | None = None) -> Option:
    """An option that is an integer of a range."""
    range_ = click.IntRange(least, most)
    return click.option(flag, name, type=range_, metavar="N", default=default, show_default=True, help=text)


def pairs_option(flag: str, name: str, value: Callable[[str], Any], metavar: str, text: str, form: str = "") -> Option:
    """An option that may be given any number of times, as a dict.

    value  reads what is behind the `=`; ValueError for what it cannot be
    form   of what is given, where `metavar` does not say it
    """

    def read(_: click.Context, __: click.Parameter, found: tuple[str, ...]) -> dict[str, Any]:
        pairs: dict[str, Any] = {}
        for each in found:
            key, equals, given = each.partition("=")
            if (key := key.strip()) in pairs:
                raise click.BadParameter(f"'{key}' is given twice")
            try:
                if not key or not equals:
                    raise ValueError
                pairs[key] = value(given)
            except ValueError:
                raise click.BadParameter(f"'{each}' is not {form or metavar}") from None
        return pairs

    return click.option(flag, name, metavar=metavar, multiple=True, callback=read, help=text)


def together(*options: Option) -> Option:
    """Several options as one, in their order."""
    return lambda command: reduce(lambda made, option: option(made), reversed(options), command)


def graph_command(command: Command) -> Command:
    """Options of every command that takes a graph, and the handling of refusals."""
    options = together(
        click.argument("graph", type=PATH),
        click.option("--model", type=PATH, help="model file or Hugging Face folder"),
        pairs_option("--set", "sizes", INTEGER, "NAME=N", "value of a sizevar"),
        pairs_option("--max", "capacity", INTEGER, "NAME=N", "the most a table's index may reach: t=N or K.t=N"),
        click.option("--fetch", metavar="NAMES", help="outputs wanted, separated by commas"),
    )
    return guarded(options(command))


def inputs_option(text: str, flag: str = "--input", name: str = "inputs") -> Option:
    """`--input NAME=FILE.npy`, any number of times."""
    return pairs_option(flag, name, str.strip, "NAME=VALUE", text, "NAME=FILE.npy or NAME=[numbers]")


steps_option = number_option("--steps", "steps", 1, 20, "how many")
entry_option = click.option("--entry", metavar="BLOCK", default="entry", show_default=True, help="block to run")
no_reuse_option = click.option("--no-reuse", is_flag=True, help="every buffer has bytes of its own")
weights_option = click.option(
    "--weights", metavar="RULES", default="",
    help='what matrices are stored as: f32, bf16, f16, q8, q4, by name: "lm_head=q8,*=q4", auto:8M (as declared)',
)  # fmt: skip
threads_option = number_option(
    "--threads", "threads", 1, 1, "run large operators, and consumers of a yield, on up to so many threads", most=64
)
dispatch_option = click.option(
    "--dispatch", metavar="SETS", default="",
    help="code for several instruction sets, chosen when a session is made: sse2,avx2,avx512, or all",
)  # fmt: skip


def target_option(default: str) -> Option:
    """`--target` and `--numerics`."""
    steps = "steps of sums of products are one rounding, or two, or for bf16 the machine's own"
    return together(
        click.option(
            "--target", metavar="[host|portable|freestanding]", default=default,
            show_default=True, help="this machine, any of its kind, or bare metal",
        ),
        click.option(
            "--numerics", type=click.Choice(("fused", "separate", "native")),
            help=f"{steps} (default: fused where the target has it)",
        ),
    )  # fmt: skip


def plan_options(target: str = "host") -> Option:
    """All that decides how a graph is compiled, for the commands that build one or tell of its build."""
    return together(target_option(target), dispatch_option, weights_option, no_reuse_option, threads_option)


code_options = together(weights_option, target_option("host"), threads_option)
"""For the commands that run what they compile."""


def guarded(command: Command) -> Command:
    """Refusals become diagnostics and exit statuses, and never a traceback."""

    @click.option("--json", "as_json", is_flag=True, help="print what a program can read")
    @choice_option("--color", ("auto", "always", "never"), "auto", "of diagnostics")
    @wraps(command)
    def run(*args: Any, as_json: bool, color: str, **kw: Any) -> None:
        _prepare_streams()
        click.get_current_context().color = in_color(color, sys.stderr.isatty())
        try:
            command(*args, as_json=as_json, **kw)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader has seen enough, as in `oic ops | head`
            _silence()
        except Exception as error:
            sys.exit(refused(error, as_json))

    return run


def refused(error: Exception, as_json: bool) -> int:
    """Report what a command was refused for; the exit status.  What is our own fault goes on."""
    match error:
        case OicError():
            report(error.diagnostics, as_json)
            slugs = {d.slug for d in error.diagnostics if d.severity == "error"}
            return TOOLCHAIN if slugs & TOOLCHAIN_SLUGS else USER
        case StepError():
            report([error.diagnostic()], as_json)
        case MemoryError():
            report([Diagnostic("out-of-memory", str(error) or "no memory is left")], as_json)
        case OSError():
            if error.filename is None:  # standard output, on a full disk
                _silence()
                as_json = False
            what = f"{error.filename or 'standard output'}: {error.strerror or error}"
            report([Diagnostic("system", what)], as_json)
        case UnicodeDecodeError():  # of standard input, or a file of texts
            what = f"byte {error.start} of a text that was read, {error.object[error.start]:#04x}, is no UTF-8"
            report([Diagnostic("system", what, hint="texts are read as UTF-8")], as_json)
        case _:
            raise error
    return USER


def _prepare_streams() -> None:
    """Open standard streams that are closed, and escape what the encoding of one does not have."""
    if sys.stdout is None or sys.stderr is None:
        while (file := os.open(os.devnull, os.O_RDWR)) <= 2:  # no other file gets their numbers
            pass
        os.close(file)
        sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _silence() -> None:
    """Discard all further standard output, of which Python would complain when it ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def load(
    graph: str, model: str | None, sizes: dict[str, int], capacity: dict[str, int], fetch: str | None,
    target: str | None = None, numerics: str | None = None, dispatch: str = "", no_reuse: bool = False, **more: Any,
) -> "Program":  # fmt: skip
    """Parse, check and lower a graph; for a target, if one is named.  Raises OicError.

    graph   a file, or a folder that `oic import` wrote, whose model it is where no other is given
    """
    from oic.check.source import parse_file
    from oic.driver import Settings, compile_graph
    from oic.model import Model

    if os.path.isdir(graph):
        from oic.importers.folder import GRAPH, MODEL

        folder, graph, model = graph, os.path.join(graph, GRAPH), model or os.path.join(graph, MODEL)
        if not os.path.exists(graph):
            raise fail("source-open", f"{folder} has no {GRAPH}", hint=f"of a checkpoint: oic import {folder} -o out")
    wanted = [n.strip() for n in fetch.split(",") if n.strip()] if fetch is not None else None
    if target is not None:
        from oic.precompute import in_c
        from oic.toolchain.target import target as target_named

        more |= {"target": target_named(target, numerics, dispatch), "computer": in_c}
    settings = Settings(sizes, capacity, wanted, reuse=not no_reuse, **more)
    return compile_graph(parse_file(graph), Model.open(model) if model else None, settings)
