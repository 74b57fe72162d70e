"""Which refusals come after an effect, and leave the state changed (SPEC, 8.6)."""

from collections.abc import Generator

from oic.diagnostics import Span
from oic.ir.control import CheckIterations, For, If
from oic.ir.core import Block, Op, Value
from oic.ir.facts import Facts
from oic.ir.grouping import by_key
from oic.ir.module import Module
from oic.ir.ranges import NothingKnown, may_refuse
from oic.operators.refusal import variable_of

LatePlace = tuple[Span | None, str]  # the source of a check, and what it is about


def late_checks(module: Module, *, whole: bool = False) -> list[Op]:
    """The ops that may refuse the step after an effect of their function.

    whole   or in what has the first effect
    """
    funcs = (func for func in module.functions() if _may_be_late(func.body))
    return [op for func in funcs for op in _late(func.body, False, Facts(), whole)]


def _may_be_late(body: Block) -> bool:
    """After the start of what has the first effect there is a check, whatever is known of its integers."""
    first = next((i for i, op in enumerate(body.ops) if any(map(is_effect, op.walk()))), len(body.ops))
    return may_refuse(body.ops[first:], NothingKnown())


def late_places(module: Module, *, whole: bool = False) -> list[LatePlace]:
    """Where they are in the source, each place once, and the variable: else the text itself."""
    ops = late_checks(module, whole=whole)
    found = ((op.span, variable_of(op) or (op.span.text if op.span is not None else op.name)) for op in ops)
    return list(dict.fromkeys(found))


def overtaken(module: Module) -> list[LatePlace]:
    """What checks that come later in the source may be made before, as those come before every effect.

    It may refuse the step in what has the first effect of its function, or after that.
    """
    return late_places(module, whole=True)


def _late(block: Block, changed: bool, facts: Facts, whole: bool = False) -> Generator[Op, None, bool]:
    """What may refuse once the state has been changed; at last, whether it has been after the block.

    whole   an op of this block that changes it anywhere counts as one that has, from its start
    """
    for op in block.ops:
        changed = changed or (whole and any(map(is_effect, op.walk())))
        if changed and facts.refuses(op):
            yield op
        # The second iteration of a loop comes after the effects of the first.
        before = changed or (isinstance(op, For) and any(map(is_effect, op.walk())))
        for region in op.regions:
            if isinstance(op, CheckIterations) and region is op.iterations:
                continue  # where one of the ends is late, all are
            with facts.inside(region):
                after = yield from _late(region, before, facts)
            changed = changed or after
            before = before if isinstance(op, If) else changed
        facts.learn(op)
        changed = changed or is_effect(op)
    return changed


def is_effect(op: Op) -> bool:
    """The op itself writes a state."""
    return bool(op.writes) and not op.regions


def state_writers(body: Block) -> dict[Value, list[Op]]:
    """The ops that write each state themselves, in the order of the program."""
    writers = (op for op in body.all_ops() if op.writes and not op.regions)
    return by_key((state, op) for op in writers for state in op.touched("write"))
