"""The commands that begin with a checkpoint: `oic import`, `oic generate` and `oic verify`."""

import json
import sys
from itertools import chain
from typing import TYPE_CHECKING, Any, TextIO

import click

from oic.cli import options as common
from oic.cli.text import report, say

if TYPE_CHECKING:
    from oic.generation import Generator

machine_option = click.option(
    "--target", metavar="[host|portable]", default="host", show_default=True, help="this machine, or any of its kind"
)


def setting(text: str) -> object:
    """A value of an option: JSON, and anything else is a text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def token_ids(text: str) -> list[int]:
    """`5,17,3` of an option."""
    try:
        return [int(part) for part in (text.split(",") if "," in text else text.split())]
    except ValueError:
        raise click.BadParameter(f"'{text}' is not a list of token ids: 5,17,3") from None


def checkpoint_command(command: common.Command) -> common.Command:
    """SOURCE and options of every command that begins with a checkpoint, and the handling of refusals."""
    options = common.together(
        click.argument("source", type=common.PATH),
        click.option("--config", metavar="FILE", help="configuration (default: config.json beside the weights)"),
        common.pairs_option("--set", "settings", setting, "KEY=VALUE", "a key of the configuration; null switches off"),
        click.option("--context", type=click.IntRange(1), metavar="N", help="tokens that the cache has room for"),
    )
    return common.guarded(options(command))


def opened(told: bool = True, **checkpoint: Any) -> "Generator":
    """A compiled checkpoint; its warnings go to standard error, where no results are."""
    from oic.generation import Generator

    generator = Generator(**checkpoint)
    report(generator.warnings if told else (), as_json=False)
    return generator


def ids_option(text: str) -> common.Option:
    """`--ids 5,17,3`, any number of times."""
    return click.option("--ids", type=token_ids, metavar="ID,ID,…", multiple=True, help=text)


def drawn_options(count: int) -> common.Option:
    """`--random`, `--seed` and `-n`: how many prompts are drawn, and how long the answers are."""
    return common.together(
        common.number_option("--random", "random", 1, 4, "prompts, if none is given"),
        common.number_option("--seed", "seed", 0, 0, "of random prompts"),
        common.number_option("-n", "count", 1, count, "new tokens a prompt"),
    )


@click.command("import")
@checkpoint_command
@click.option("-o", "--output", metavar="FOLDER", required=True, help="folder to write to")
@common.number_option("--prefill", "prefill", 1, 128, "tokens that one step takes at most")
@click.option("--batch", type=click.IntRange(1), metavar="N", help="sequences at once, each at a position of its own")
@common.choice_option("--cache", ("f32", "f16", "bf16", "q8"), "f32", "what keys and values of a decoder are stored in")
@click.option("--name", metavar="NAME", help="of the graph (default: the family's)")
def import_(as_json: bool, source: str, output: str, **options: Any) -> None:
    """Turn a checkpoint into a graph.

    SOURCE is a folder in the Hugging Face layout, a file of weights, or a folder with one.  Beside the graph comes a
    model file that refers to the weights.
    """
    from oic.cli.models import imported
    from oic.importers import import_checkpoint

    made = import_checkpoint(source, output, **options)
    if not as_json:
        report(made.warnings, as_json)
    say(imported(made, as_json))


@click.command()
@checkpoint_command
@click.option("--text", "texts", metavar="TEXT", multiple=True, help="go on with this text; several: a batch")
@ids_option("go on with these token ids; likewise")
@click.option("--chat", "turns", metavar="TEXT", multiple=True, help="answer this; several: turns; -: lines of stdin")
@click.option("--system", metavar="TEXT", help="what a chat begins with")
@common.pairs_option("--template", "template", setting, "KEY=VALUE", "what the template of a chat asks for")
@common.number_option("--threads", "threads", 1, 1, "that a batch runs on", most=64)
@click.option("-n", "count", type=click.IntRange(1), metavar="N", help="new tokens (default: 32; 512 of an answer)")
@click.option("--temperature", type=float, default=0.0, show_default=True, help="0: always the most likely token")
@click.option("--top-k", type=int, metavar="K", default=0, help="only the K most likely tokens")
@click.option("--top-p", type=float, metavar="P", default=1.0, help="only the most likely tokens that reach P together")
@click.option("--seed", type=int, default=0, show_default=True, help="of the numbers drawn")
@click.option("--stop", "stop_texts", metavar="TEXT", multiple=True, help="end after this text")
@click.option("--stop-id", "stop_ids", type=int, metavar="ID", multiple=True, help="end after this id")
@common.weights_option
@machine_option
def generate(
    as_json: bool, texts: tuple[str, ...], ids: tuple[list[int], ...], turns: tuple[str, ...], system: str | None,
    template: dict[str, Any], threads: int, count: int | None,
    temperature: float, top_k: int, top_p: float, seed: int, stop_texts: tuple[str, ...], stop_ids: tuple[int, ...],
    **checkpoint: Any,
) -> None:  # fmt: skip
    """Go on with a text or token ids, or answer in a chat.

    SOURCE is a checkpoint, or a folder that 'oic import' wrote.  Each prompt of a batch has a session of its own over
    the same weights; prompt i draws from a seed that is i more.
    """
    from oic.cli.models import chatted, generated, generated_batch, typed
    from oic.generation import Sampling

    if sum(map(bool, (texts, ids, turns))) != 1:
        raise click.UsageError("give either --text, --ids or --chat")
    if (system is not None or template) and not turns:
        raise click.UsageError("--system and --template go with --chat")
    sampling = Sampling(temperature, top_k, top_p, seed)
    stops: Any = {"stop_ids": stop_ids or None, "stop_texts": stop_texts}
    with opened(**checkpoint) as generator:
        if turns:
            said = chain.from_iterable(typed(sys.stdin) if turn == "-" else [turn] for turn in turns)
            chatted(generator, said, system, template, count or 512, sampling, stops, as_json)
            return
        prompts, count = [*map(generator.encode, texts), *ids], count or 32
        if len(prompts) == 1:
            generated(generator, prompts[0], count, sampling, stops, as_json)
        else:
            generated_batch(generator, prompts, count, sampling, stops, threads, as_json)


@click.command()
@checkpoint_command
@click.option("--against", metavar="WHAT", required=True, help="transformers, or a file of references: FILE.npz")
@click.option("--text", "texts", metavar="TEXT", multiple=True, help="a prompt")
@click.option("--texts", "file", type=click.File(encoding="utf-8"), metavar="FILE", help="prompts, one a line")
@ids_option("a prompt as token ids")
@drawn_options(16)
@click.option("--within", type=float, default=1e-4, show_default=True, help="largest difference of logits that passes")
@click.option("--save", metavar="FILE", help="keep what the original says: an .npz for --against")
@common.weights_option
@machine_option
def verify(
    as_json: bool, against: str, texts: tuple[str, ...], file: TextIO | None, ids: tuple[list[int], ...],
    count: int, random: int, seed: int, within: float, save: str | None, **checkpoint: Any,
) -> None:  # fmt: skip
    """Compare a compiled model with the library that it comes from.

    SOURCE is a checkpoint, or a folder that 'oic import' wrote.  Logits are compared token by token, and what the
    compiled model writes by itself with what the original writes.
    """
    from oic.cli.models import verified
    from oic.verification import verify as compare

    lines = [line.rstrip("\n") for line in file or () if line.strip()]
    with opened(**checkpoint) as generator:
        prompts: list[str | list[int]] = [*texts, *lines, *ids]
        report = compare(
            generator, against, prompts=prompts, count=count, random=random, seed=seed, within=within, save=save
        )
    say(verified(report, as_json))
    if not report.passed:
        sys.exit(common.MISMATCH)


@click.command()
@checkpoint_command
@click.option("--weights", metavar="RULES", default="q8", show_default=True, help="as of oic build")
@click.option("--report", "reported", is_flag=True, help="compare what the model writes with f32")
@ids_option("a prompt of the report")
@click.option("--text", "texts", metavar="TEXT", multiple=True, help="likewise")
@drawn_options(32)
@machine_option
def quantize(
    as_json: bool, weights: str, reported: bool, ids: tuple[list[int], ...], texts: tuple[str, ...],
    random: int, seed: int, count: int, **checkpoint: Any,
) -> None:  # fmt: skip
    """Say what weights in fewer bits make of a model.

    SOURCE is a checkpoint, or a folder that 'oic import' wrote.  Prints the error of each matrix and the rules that
    give it its precision; with --report also how far logits and greedy tokens are from those of f32.
    """
    from oic.cli.models import quantized
    from oic.verification.precision import PrecisionReport
    from oic.verification.precision import quantized as compare

    untold = iter([True])  # of two generators of one import the first tells its warnings

    def stored(rules: str) -> "Generator":
        return opened(told=next(untold, False), **checkpoint, weights=rules)

    if reported:
        report = compare(stored, weights, [*ids, *texts], count, random, seed)
    else:
        with stored(weights) as generator:
            report = PrecisionReport(tuple(generator.precisions), ())
    say(quantized(report, as_json))
