"""Constants get the storage that rules say: before anything else, since it changes what the graph computes.

    %w = constant {symbol=w, type=f32[64, 32]}    ->    %w = constant {symbol=w, type=f32[64, 32] q8 panels}

The module's values become what the storage gives back, so that the reference computes with what compiled code unpacks.
A constant keeps its form where not everything that reads it can take the storage, and where the storage is no smaller.

What a model has in blocks of such groups, and no rule names, is stored as it is there.

Rules are `f32`, `bf16`, `f16`, `q8`, `q4`, or several, by name: `lm_head=q8,*=q4`; the first that fits counts.
`auto` chooses by ‖ŵ - w‖ / ‖w‖, the error that a storage makes of a matrix:

    auto:0.05  each matrix gets the smallest storage whose error is within this bound
    auto:8M    all constants fit into this size: from the smallest storages on, the matrix whose next one takes away the
               most squared error a byte gets it; a family counts as often as it has members
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from oic import dtypes
from oic.diagnostics import OicError, did_you_mean, fail
from oic.ir.core import OpError, Value
from oic.ir.encodings import ALIGN, GROUP_LAYOUTS, LAYOUTS, PANELS, STORAGES, joined, nbytes
from oic.ir.members import Members, StoredElements
from oic.ir.module import Module
from oic.ir.quantized import GROUP_STORAGES
from oic.ir.state import ConstantSelect
from oic.ir.types import TensorType
from oic.memory.layout import WEIGHTS_HEADER
from oic.operators.base import Operator
from oic.passes.pack_weights import Reader, encode, may_have, readers

KEPT = "f32"  # as the graph declares it
NO_MATRIX = "it is no matrix"
PRECISIONS = (KEPT, *STORAGES)


@dataclass(frozen=True)
class Rule:
    """What constants with names of a form, in which `*` is any text, are stored as."""

    names: str
    storage: str

    def fits(self, symbol: str) -> bool:
        return re.fullmatch(".*".join(map(re.escape, self.names.split("*"))), symbol) is not None


@dataclass(frozen=True)
class Decision:
    """What was decided for a constant.

    storage  of PRECISIONS; "f32" is as declared
    reason   why it is not what a rule says; ""
    """

    symbol: str
    storage: str
    nbytes: int
    reason: str = ""

    @property
    def kept(self) -> bool:
        """The constant is as declared."""
        return self.storage == KEPT


@dataclass(frozen=True)
class Candidate:
    """A storage that a matrix may have: bytes at most, in any layout, and its error."""

    storage: str
    nbytes: int
    error: float


def rules_of(text: str) -> list[Rule]:
    """The rules that a text states, none of which is `auto`.  Raises OicError."""
    found: list[Rule] = []
    for part in (p.strip() for p in text.split(",")):
        names, equals, storage = part.rpartition("=")
        names, storage = names.strip() if equals else "*", storage.strip()
        if storage not in PRECISIONS or not names:
            hint = f'{", ".join(PRECISIONS)}; or by name: "lm_head=q8,*=q4"'
            raise fail("weights-rule", f"'{part}' is no precision of weights", hint=hint)
        before = next((rule.names for rule in found if rule.fits(names)), None)  # only a `*` fits a `*`
        if before is not None:
            what = f"'{part}' is for no constant: '{before}' before it fits all names that '{names}' fits"
            raise fail("weights-rule", what, hint="the first rule that fits counts: put those for fewer names first")
        found.append(Rule(names, storage))
    return found


def store_weights(module: Module, text: str) -> list[Decision]:
    """Give every constant the storage that rules say; what became of each.

    Raises OicError for rules and names that there are not, and for a size that is too small.
    """
    found = list(readers(module))
    if text.strip().startswith("auto"):
        rules = _chosen(module, found, text.strip())
    else:
        rules = rules_of(text) if text.strip() else []
    symbols = [value.symbol for value, _ in found]
    for rule in rules:
        if rule.names != "*" and not any(rule.fits(symbol) for symbol in symbols):
            known = ", ".join(symbols[:6]) + (", …" if len(symbols) > 6 else "")
            hint = did_you_mean(rule.names, symbols) or (f"there are {known}" if symbols else "there are none")
            raise fail("weights-rule", f"no constant is called '{rule.names}'", hint=hint)
    return [_decision(module, symbol, value, uses, rules) for symbol, (value, uses) in zip(symbols, found)]


def laid_out(module: Module, decisions: Sequence[Decision]) -> list[Decision]:
    """Decisions with the bytes that a planned module has of each: of what several became, a share."""
    apart = {decision.symbol: decision.nbytes for decision in decisions}
    found: dict[str, int] = {}
    for constant in module.constants():
        found[constant.symbol] = constant.type.nbytes
        ends = [0, *accumulate(apart.get(part, 0) for part in constant.parts)]
        shares = [constant.type.nbytes * end // max(1, ends[-1]) for end in ends]
        for part, start, end in zip(constant.parts, shares, shares[1:], strict=False):
            found[part] = found.get(part, 0) + end - start
    return [replace(decision, nbytes=found.get(decision.symbol, 0)) for decision in decisions]


def _chosen(module: Module, found: list[tuple[Value, list[Reader]]], text: str) -> list[Rule]:
    """Rules for all constants that `auto:SIZE` or `auto:BOUND` chooses."""
    limit = _limit(text)
    steps: dict[Value, list[Candidate]] = {}
    for constant, uses in found:
        more = [c for storage in STORAGES if uses and (c := _candidate(module, constant, uses, storage)) is not None]
        steps[constant] = ladder([*more, Candidate(KEPT, filled(constant.tensor, ""), 0.0)])
    if isinstance(limit, float):
        chosen = within(limit, steps)
    else:
        least = WEIGHTS_HEADER + sum(candidates[0].nbytes for candidates in steps.values())
        if limit < least:
            raise fail("weights-rule", f"constants take {least:,} bytes at least, and {limit:,} are given")
        chosen = fitting(limit - least, steps)
    return [Rule(value.symbol, storage) for value, storage in chosen.items()]


def _limit(text: str) -> int | float:
    """Bytes, or a bound on errors, which is below 1."""
    found = re.fullmatch(r"auto:([0-9]+\.?[0-9]*|\.[0-9]+)([KMG]?)B?", text)
    value = float(found[1]) if found else 0.0
    if found is None or value <= 0:
        raise fail("weights-rule", f"'{text}' states no size and no bound", hint="auto:8M, or auto:0.05")
    unit = found[2]
    return value if value < 1 and not unit else int(value * (1 << 10 * " KMG".index(unit or " ")))


def _candidate(module: Module, constant: Value, uses: list[Reader], storage: str) -> Candidate | None:
    """A storage that the constant may have; it is as it was."""
    before, dtype, symbol = constant.tensor, constant.tensor.dtype, constant.symbol
    if not dtype.is_float or storage == dtype.name or _stored(constant, uses, storage, GROUP_LAYOUTS):
        return None
    source, encoding = module.weights[symbol], constant.tensor.encoding
    size = constant.tensor.nbytes if storage in GROUP_STORAGES else filled(constant.tensor, storage)
    encode(constant, "", dtype)
    assert constant.tensor == before and not isinstance(source, StoredElements), f"{symbol} has a storage"
    try:
        return Candidate(storage, size, StoredElements(symbol, source, encoding).error())
    except OicError:  # it has a value that this storage does not hold
        return None


def filled(type_: TensorType, storage: str) -> int:
    """The most bytes that a constant of this type takes, on lines of its own."""
    shape = type_.maximum
    layouts = ("", *(layout for layout in LAYOUTS if may_have(type_, joined(storage, layout))))
    return max(-(-nbytes(type_.dtype, shape, joined(storage, layout)) // ALIGN) * ALIGN for layout in layouts)


def ladder(found: list[Candidate]) -> list[Candidate]:
    """From the smallest to the largest, each with less error than those before."""
    steps: list[Candidate] = []
    for candidate in sorted(found, key=lambda c: (c.nbytes, c.error)):
        if not steps or candidate.error < steps[-1].error:
            steps.append(candidate)
    return steps


def within(bound: float, found: Mapping[Value, list[Candidate]]) -> dict[Value, str]:
    """The smallest storage within a bound, for each."""
    return {value: next((c for c in steps if c.error <= bound), steps[-1]).storage for value, steps in found.items()}


def fitting(left: int, found: Mapping[Value, list[Candidate]]) -> dict[Value, str]:
    """Storages that together take so many bytes more than the smallest at most."""
    at = dict.fromkeys(found, 0)
    while True:
        better = [
            (_gain(value, steps[i], steps[j]) / (steps[j].nbytes - steps[i].nbytes), -n, value, j)
            for n, (value, steps) in enumerate(found.items())
            for i in (at[value],)
            for j in range(i + 1, len(steps))
            if steps[j].nbytes - steps[i].nbytes <= left
        ]
        if not better:
            return {value: steps[at[value]].storage for value, steps in found.items()}
        _, _, value, j = max(better, key=lambda entry: entry[:2])
        left -= found[value][j].nbytes - found[value][at[value]].nbytes
        at[value] = j


def _gain(value: Value, now: Candidate, then: Candidate) -> float:
    members = math.prod(value.tensor.maximum[:-2])
    return members * (now.error**2 - then.error**2)


def _decision(module: Module, symbol: str, constant: Value, uses: list[Reader], rules: list[Rule]) -> Decision:
    """Give the constant the storage of the first rule for it, or of the file that it comes from."""
    rule = next((r for r in rules if r.fits(symbol)), None)
    dtype, source = constant.tensor.dtype, module.weights[symbol]
    assert not isinstance(source, StoredElements), f"{symbol} has a storage"
    own = source.storage if isinstance(source, Members) else ""
    storage = own if rule is None else rule.storage
    if storage in ("", KEPT, dtype.name) or not dtype.is_float or not uses:
        return Decision(symbol, KEPT, constant.tensor.nbytes)
    reason = _stored(constant, uses, storage, (PANELS,) if rule is None else GROUP_LAYOUTS)
    if not reason:
        module.weights[symbol] = StoredElements(symbol, source, constant.tensor.encoding)
    return Decision(symbol, KEPT if reason else storage, constant.tensor.nbytes, reason)


def _stored(constant: Value, uses: list[Reader], storage: str, layouts: Sequence[str]) -> str:
    """Give the constant a storage, groups in one of the layouts, or say why not."""
    type_ = constant.tensor
    members = any(isinstance(reader.op, ConstantSelect) for reader in uses)  # that are no matrices
    if type_.rank < 2 or not type_.static or 0 in type_.shape or members:
        return NO_MATRIX
    takers: list[set[Reader]] = []
    for encoding in (joined(storage, layout) for layout in (layouts if storage in GROUP_STORAGES else ("", *LAYOUTS))):
        encode(constant, encoding, dtypes.f32)
        takers.append({reader for reader in uses if _takes(reader)})
        if len(takers[-1]) == len(uses) and nbytes(type_.dtype, type_.maximum, encoding) < type_.nbytes:
            encode(constant, encoding if storage in GROUP_STORAGES else storage, dtypes.f32)
            return ""
    encode(constant, type_.encoding, type_.dtype)
    other = next((r.op.name for r in uses if not any(r in found for found in takers)), "")
    if other:
        return f"'{other}' reads it"
    alike = any(len(found) == len(uses) for found in takers)
    return f"{storage} is no smaller" if alike else "what reads it wants different layouts"


def _takes(reader: Reader) -> bool:
    """Its operator stays what it is with the constant as it is encoded now, and has a kernel for it."""
    op = reader.op
    if not isinstance(op, Operator) or not reader.fields:
        return False
    try:
        same = op.infer() == [r.type for r in op.results]
    except OpError:
        return False
    return same and any(kernel.computes(op) for kernel in op.kernels)
