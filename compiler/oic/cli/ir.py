"""What `oic ir` prints."""

from collections.abc import Iterator

from oic.cli.text import json_text
from oic.diagnostics import did_you_mean, fail
from oic.driver import Program, lowered
from oic.ir.module import Module
from oic.ir.text_mlir import print_mlir
from oic.ir.text_print import print_module
from oic.passes.pipeline import PIPELINE

Modules = Iterator[tuple[str, Module]]  # the pass that was run last, "" at first, and its result


def passes() -> str:
    """The pipeline: name, stage that follows, reason."""
    return "\n".join(f"{s.name:<18} {s.stage:<8} {s.reason}" for s in PIPELINE)


def modules(program: Program, stage: str, after: str | None, only: str | None) -> Modules:
    """The graph's module, and the module after every pass up to where `oic ir` is to stop.

    stage   the last stage to reach, where neither `after` nor `only` says which passes to run
    Raises OicError `unknown-pass`.
    """
    chosen = [n.strip() for n in only.split(",") if n.strip()] if only is not None else None
    known = [step.name for step in PIPELINE]
    for name in [*(chosen or ()), *([after] if after else ())]:
        if name not in known:
            raise fail("unknown-pass", f"there is no pass '{name}'", hint=did_you_mean(name, known))
    if after is not None and chosen is not None and after not in chosen:
        raise fail("unknown-pass", f"pass '{after}' is not among those to run")
    yield "", program.module
    named = after is not None or chosen is not None
    if stage == "graph" and not named:
        return
    for step, module in lowered(program.module, program.settings, chosen):
        if not named and stage == "indexed" and module.is_placed():
            return
        yield step.name, module.clone()
        if step.name == after:
            return


def shown(found: Modules, *, changed: bool, mlir: bool, as_json: bool) -> str:
    """The last module, or all that differ from the one before."""
    text = print_mlir if mlir else print_module
    kept: list[tuple[str, Module]] = []
    before: Module | None = None
    for name, module in found:
        if not changed:
            kept = [(name, module)]
        elif before is None or print_module(before) != print_module(module):
            kept.append((name, module))
        before = module
    if as_json:
        return json_text([{"after": name or None, "stage": m.stage, "text": text(m)} for name, m in kept])
    parts = [f"# after {name}\n{text(m)}" if changed and name else text(m) for name, m in kept]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts).rstrip("\n")
