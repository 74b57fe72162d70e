"""`oic import`, `oic generate` and `oic verify`: from a checkpoint to a graph, to text, and to a proof."""

import sys
import time
from collections.abc import Iterable, Iterator
from shlex import join
from typing import Any, TextIO

from oic.cli.text import json_text, say
from oic.diagnostics import count_of, visible
from oic.generation import Generator, Sampling, Token
from oic.generation.generator import Stop
from oic.generation.text_session import TextSession
from oic.importers import Imported
from oic.importers.folder import WIDENED
from oic.passes.store_weights import why_declared
from oic.verification import Report
from oic.verification.outcome import Outcome
from oic.verification.precision import PrecisionReport


def imported(made: Imported, as_json: bool) -> str:
    """What an import wrote, and what to do next."""
    if as_json:
        return json_text({
            "family": made.family, "features": made.features, "graph": str(made.graph), "model": str(made.model),
            "weights": made.weights, "bytes": made.nbytes, "context": made.context, "assumed": dict(made.assumed),
            "widened": dict(made.widened), "written": made.written, "diagnostics": [d.to_json() for d in made.warnings],
        })  # fmt: skip
    room = "a state of fixed size" if made.context is None else f"context {made.context}"
    assumed = ", ".join(f"{key}={json_text(value, None)}" for key, value in made.assumed.items())
    widened = ", ".join(f"{count} of {name}" for name, count in sorted(made.widened.items()))  # 24 of Q4_K, 3 of Q6_K
    return "\n".join([
        f"{made.family}: {'; '.join(made.features)}",
        *([f"nothing says, so taken as usual (--set changes it): {assumed}"] if assumed else []),
        f"{made.weights} weights, {made.nbytes:,} bytes, referred to where they are; {room}",
        *([f"widened to f32, {made.written:,} bytes in {WIDENED}: {widened}"] if made.widened else []),
        f"wrote {made.graph} and {made.model}",
        f"next: {join(['oic', 'generate', str(made.folder), '--ids', '1,2,3'])}",
        f"      {join(['oic', 'build', str(made.graph), '--model', str(made.model)])}",
    ])  # fmt: skip


def generated(
    generator: Generator, ids: list[int], count: int, sampling: Sampling, stops: dict[str, Any], as_json: bool,
    session: TextSession | None = None,
) -> str:  # fmt: skip
    """Print tokens as they come: their text, or ids where there is no tokenizer; or all as JSON.  Their text.

    session   of a chat, which goes on with what it has read; of JSON it has a line a turn
    """
    readable = generator.reads()
    stop, found = Stop(), list[Token]()
    known = 0 if session is None else session.known(ids)
    start = time.perf_counter()
    for token in generator.stream(ids, count, sampling, stop=stop, session=session, **stops):
        found.append(token)
        if not as_json:
            sys.stdout.write(visible(token.text) if readable else f"{token.id} ")
            sys.stdout.flush()
    seconds = time.perf_counter() - start
    if as_json:
        row = _row_json(ids, found, stop, readable)
        say(json_text(row) if session is None else json_text({**row, "known": known}, None))
        sys.stdout.flush()
    else:
        say("")
        first, rest = (found[0].seconds if found else 0.0), sum(t.seconds for t in found[1:])
        speed = f", then {(len(found) - 1) / rest:,.0f} tokens/s" if rest > 0 else ""
        said = {"count": "", "stop": "; it ended", "context": "; the context is full"}[stop.reason]
        read = f"{len(ids)} tokens, {known} read before," if known else f"{len(ids)}"
        tokens = f"{read} + {len(found)} tokens in {seconds:.2f} s"
        sys.stderr.write(f"{tokens}: the first after {first:.3f} s{speed}{said}\n")
    return "".join(token.text for token in found)


def chatted(
    generator: Generator, turns: Iterable[str], system: str | None, settings: dict[str, Any], count: int,
    sampling: Sampling, stops: dict[str, Any], as_json: bool,
) -> None:  # fmt: skip
    """Print the answer to each turn of one chat, whose session goes on."""
    stops = stops | {"stop_ids": stops["stop_ids"] or generator.ends}
    messages = [] if system is None else [{"role": "system", "content": system}]
    with generator.session() as session:
        for turn in turns:
            messages.append({"role": "user", "content": turn})
            ids = generator.prompt(messages, settings)
            answer = generated(generator, ids, count, sampling, stops, as_json, session)
            messages.append({"role": "assistant", "content": answer})


def typed(stream: TextIO | None) -> Iterator[str]:
    """The lines of a stream that say something; of one that is closed there are none.  A terminal is asked for each."""
    while stream is not None:
        if stream.isatty():
            sys.stderr.write("> ")
            sys.stderr.flush()
        if not (line := stream.readline()):
            return
        if line.strip():
            yield line.rstrip("\r\n")


def generated_batch(
    generator: Generator, prompts: list[list[int]], count: int, sampling: Sampling, stops: dict[str, Any],
    threads: int, as_json: bool,
) -> None:  # fmt: skip
    """Print what follows each prompt, a line each once all are done; or all as JSON."""
    readable, ends = generator.reads(), [Stop() for _ in prompts]
    start = time.perf_counter()
    rows = generator.batch(prompts, count, sampling, threads=threads, stops=ends, **stops)
    seconds = time.perf_counter() - start
    if as_json:
        found = zip(prompts, rows, ends, strict=True)
        say(json_text({"prompts": [_row_json(*row, readable) for row in found], "seconds": seconds}))
        return
    for row in rows:
        say("".join(visible(t.text) for t in row) if readable else " ".join(str(t.id) for t in row))
    tokens = sum(map(len, rows))
    sys.stderr.write(f"{len(rows)} prompts, {tokens} tokens in {seconds:.2f} s: {tokens / seconds:,.0f} tokens/s\n")


def _row_json(ids: list[int], found: list[Token], stop: Stop, readable: bool) -> dict[str, Any]:
    return {
        "prompt": ids, "ids": [t.id for t in found], "text": "".join(t.text for t in found) if readable else None,
        "logprobs": [t.logprob for t in found], "seconds": [t.seconds for t in found], "stop": stop.reason,
    }  # fmt: skip


def verified(report: Report, as_json: bool) -> str:
    """How far the compiled model and the original agree."""
    count, tokens = len(report.outcomes), sum(len(o.case.chosen) for o in report.outcomes)
    readable = any(o.text is not None for o in report.outcomes)
    if as_json:
        return json_text({
            "passed": report.passed, "worst_logit_error": report.worst, "within": report.within, "tokens": tokens,
            "exact_match": report.exact / count,
            "character_error_rate" if readable else "token_error_rate": report.error_rate,
            "prompts": [{
                "prompt": o.case.prompt, "ids": o.chosen, "reference_ids": o.case.chosen, "text": o.text,
                "reference_text": o.original, "logit_errors": o.errors, "first_divergent": o.divergent,
                "margin": o.margin,
            } for o in report.outcomes],
        })  # fmt: skip
    lines = [line for i, o in enumerate(report.outcomes) for line in _outcome_lines(i, o, report.within)]
    rate = "character error rate" if readable else "token error rate"
    return "\n".join([
        *lines,
        f"{report.exact} of {count} prompts exact, {tokens} tokens, {rate} {report.error_rate:.4f}",
        f"worst logit error {report.worst:.2g}, {report.within:g} passes: {'ok' if report.passed else 'they differ'}",
    ])  # fmt: skip


def _outcome_lines(number: int, outcome: Outcome, within: float) -> list[str]:
    """A line for a prompt that agrees, more for one that does not."""
    worst = max(range(len(outcome.errors)), key=outcome.errors.__getitem__)
    case = outcome.case
    tokens = f"{len(case.prompt)} + {len(case.chosen)} tokens"
    lines = [f"prompt {number}: {tokens}, logit error {outcome.errors[worst]:.2g}"]
    if not outcome.errors[worst] <= within:
        lines.append(f"    the largest is after token {worst} that the decoder reads, {case.fed[worst]}")
    if (at := outcome.divergent) is not None:
        ours, theirs = outcome.chosen[at], case.chosen[at]
        margin = f"its two largest logits differ by {outcome.margin:.2g}"
        lines.append(f"    new token {at} is {ours}, the original's {theirs}; {margin}")
        if outcome.text is not None:
            lines += [f"    ours:     {visible(outcome.text)}", f"    original: {visible(outcome.original or '')}"]
    return lines


def quantized(report: PrecisionReport, as_json: bool) -> str:
    """The error of each matrix, and of what the model writes."""
    stored = [t for t in report.tensors if not t.kept]
    kept = [t for t in report.tensors if t.kept]
    rules = ",".join(f"{t.name}={t.storage}" for t in stored)
    if as_json:
        found: dict[str, Any] = {"rules": rules, "tensors": [vars(t) for t in report.tensors]}
        if report.outcomes:
            found |= {"agreement": report.agreement, "prompts": [vars(o) for o in report.outcomes]}
        return json_text(found)
    wide = max((len(t.name) for t in stored), default=0)
    lines = [f"{t.name:<{wide}}  {t.storage:<4}  {t.nbytes:>13,} bytes  error {t.error:.2%}" for t in stored]
    nbytes, declared = (sum(t.nbytes for t in found) for found in (report.tensors, kept))
    of_them = f", {declared:,} of them in {count_of(len(kept), 'constant')} as declared" if kept else ""
    because = why_declared((t.name, t.reason) for t in kept)
    lines.append(f"{nbytes:,} bytes{of_them}{': ' if because else ''}{because}")
    lines.append(f'--weights "{rules}"' if stored else "nothing is stored in fewer bits")
    for i, o in enumerate(report.outcomes):
        tokens = f"prompt {i}: {len(o.prompt)} + {len(o.chosen)} tokens, {o.alike} alike, {o.follows} before another"
        lines.append(tokens if o.largest is None else f"{tokens}; logits differ by {o.largest:.2g}, {o.typical:.2%}")
    if report.outcomes:
        lines.append(f"{report.agreement:.1%} of the tokens that f32 chooses are chosen after the same ones")
    return "\n".join(lines)
