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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain

from oic import dtypes
from oic.diagnostics import OicError, did_you_mean, fail
from oic.ir.core import OpError, Value
from oic.ir.encodings import (
    ALIGN,
    COLUMNS,
    GROUP_LAYOUTS,
    LAYOUTS,
    PANELS,
    STORAGES,
    joined,
    layout_of,
    nbytes,
    storage_of,
)
from oic.ir.grouping import by_key
from oic.ir.members import Elements, Members, StoredElements
from oic.ir.module import Module
from oic.ir.quantized import GROUP_STORAGES, whole_groups
from oic.ir.state import Constant, ConstantSelect
from oic.ir.types import TensorType
from oic.memory.layout import WEIGHTS_HEADER
from oic.operators.base import Operator
from oic.passes.own_parts import Cut, cut_of, put_together, take_apart
from oic.passes.pack_weights import Reader, encode, fields_of, may_have, members, readers

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
    auto = text.strip().startswith("auto")
    rules = rules_of(text) if text.strip() and not auto else []
    cuts, reasons = _take_apart(module, rules, auto=auto)
    found = list(readers(module))
    if auto:
        rules = _chosen(module, found, text.strip())
    names = [_names(value) for value, _ in found]
    for rule in rules:
        if rule.names != "*" and not any(rule.fits(name) for name in chain(*names, reasons)):
            symbols = list(dict.fromkeys(symbol for symbol, *_ in names))
            known = ", ".join(symbols[:6]) + (", …" if len(symbols) > 6 else "")
            hint = did_you_mean(rule.names, symbols) or (f"there are {known}" if symbols else "there are none")
            raise fail("weights-rule", f"no constant is called '{rule.names}'", hint=hint)
    decisions = [_decision(module, value, uses, rules, reasons) for value, uses in found]
    for cut in cuts:  # which a session fetches whole
        module.weights[cut.constant.symbol] = put_together(module, cut)
    return decisions


def _names(constant: Value) -> list[str]:
    """That of the declaration, and its own where it is a part."""
    assert isinstance(constant.op, Constant)
    return [*constant.op.parts, constant.symbol]


def _take_apart(module: Module, rules: list[Rule], *, auto: bool) -> tuple[list[Cut], dict[str, str]]:
    """Make parts of matrices, of which some can be stored, constants of their own.

    Why others cannot, by symbol, also of parts of what stays whole.
    Elements that several parts have are the same in all: these are stored alike, in the same groups.
    """
    cuts: list[Cut] = []
    reasons: dict[str, str] = {}
    for constant in module.constants():
        cut = cut_of(constant)
        if constant.type.rank < 2 or not cut.views or not constant.type.dtype.is_float:
            continue
        fits = [_part_fit(module, cut, number, rules, auto=auto) for number in range(len(cut.parts))]
        reasons |= {cut.symbol(number): fit.reason for number, fit in enumerate(fits)}
        whole = _why_whole(cut, fits, auto=auto) if any(fit.encoding for fit in fits) else None
        if whole == "":
            cuts.append(cut)
        else:
            reasons[constant.symbol] = next((fit.reason for fit in fits if fit.reason), whole or "")
    take_apart(module, cuts)
    return cuts, reasons


def _part_fit(module: Module, cut: Cut, number: int, rules: list[Rule], *, auto: bool) -> "Fit":
    """The storage of a part."""
    values = cut.parts[number]
    uses = [Reader(op, fields_of(op, v)) for v in values for op in v.users if op not in cut.views]
    names = [cut.constant.symbol, cut.symbol(number)]
    storage, layouts = _asked(module.weights[cut.constant.symbol], names, rules)
    box, exact = cut.box(number)
    if layouts == (PANELS,) and storage and not (exact and whole_groups(box[-1], cut.roots[0].tensor.maximum[-1])):
        return Fit(reason="a part of it is not of whole groups")
    fits = [_fit(values, uses, s, layouts) for s in (STORAGES if auto else (storage,))]
    return next((fit for fit in fits if fit.encoding), fits[0])


def _why_whole(cut: Cut, fits: "Sequence[Fit]", *, auto: bool) -> str:
    """Why a constant is not taken apart: what several parts have is not the same in all.

    "" where it is: all have the same groups of the same elements, and are smaller than the whole as it is declared.
    """
    if not cut.overlaps():
        return ""
    boxes = [cut.box(number) for number in range(len(cut.parts))]
    known = all(exact for _, exact in boxes)
    said = "parts of it overlap" if known else "parts of it may overlap"
    encoding, *others = {fit.encoding for fit in fits}
    if auto or len({storage_of(e) for e in (encoding, *others)}) > 1:
        return said
    if others:
        return f"{said}, and are read in different layouts"
    types, storage = [values[0].tensor for values in cut.parts], storage_of(encoding)
    if storage in GROUP_STORAGES:
        axis, shape = -2 if layout_of(encoding) == COLUMNS else -1, cut.roots[0].tensor.maximum
        if not known or not all(whole_groups(box[axis], shape[axis]) for box, _ in boxes):
            return f"{said}, and are not of whole groups" if known else said
    smaller = sum(nbytes(t.dtype, t.maximum, encoding) for t in types) < cut.nbytes
    return "" if smaller else said


def why_declared(kept: Iterable[tuple[str, str]]) -> str:
    """Matrices that are as declared, whatever a rule says, by why they are: of names and reasons."""
    found = by_key((reason, name) for name, reason in kept if reason not in ("", NO_MATRIX))
    return "; ".join(f"{', '.join(names)} ({reason})" for reason, names in found.items())


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
        more = [c for storage in STORAGES if (c := _candidate(module, constant, uses, storage)) is not None]
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
        part = " (of --flash, what the code leaves)" if text == "auto" else ""
        hint = f"auto:8M for bytes of all constants{part}, auto:0.05 for the error of each"
        raise fail("weights-rule", f"'{text}' states no size and no bound", hint=hint)
    unit = found[2]
    return value if value < 1 and not unit else int(value * (1 << 10 * " KMG".index(unit or " ")))


def _candidate(module: Module, constant: Value, uses: list[Reader], storage: str) -> Candidate | None:
    """A storage that the constant may have."""
    type_, symbol, source = constant.tensor, constant.symbol, module.weights[constant.symbol]
    encoding = _fit([*members(constant)], uses, storage, GROUP_LAYOUTS).encoding
    if not encoding:
        return None
    assert not isinstance(source, StoredElements), f"{symbol} has a storage"
    size = nbytes(dtypes.f32, type_.maximum, encoding) if storage in GROUP_STORAGES else filled(type_, storage)
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


def _asked(source: Elements, names: Sequence[str], rules: list[Rule]) -> tuple[str, Sequence[str]]:
    """The storage of the first rule for a constant, or of the file that it comes from; the layouts of its groups."""
    rule = next((r for r in rules if any(map(r.fits, names))), None)
    if rule is not None:
        return ("" if rule.storage == KEPT else rule.storage), GROUP_LAYOUTS
    return (source.storage if isinstance(source, Members) else ""), (PANELS,)


def _decision(
    module: Module, constant: Value, uses: list[Reader], rules: list[Rule], reasons: Mapping[str, str]
) -> Decision:
    """Give the constant the storage that is asked for.

    reasons  why some parts of constants, or these, have none
    """
    symbol, type_, source = constant.symbol, constant.tensor, module.weights[constant.symbol]
    assert not isinstance(source, StoredElements), f"{symbol} has a storage"
    storage, layouts = _asked(source, _names(constant), rules)
    fit = _fit([*members(constant)], uses, storage, layouts)
    if not fit.encoding:
        return Decision(symbol, KEPT, type_.nbytes, reasons.get(symbol) or fit.reason)
    encode(constant, fit.encoding, dtypes.f32)
    module.weights[symbol] = StoredElements(symbol, source, fit.encoding)
    return Decision(symbol, storage, constant.tensor.nbytes)


@dataclass(frozen=True)
class Fit:
    """The encoding of a storage that a matrix may have, or why there is none."""

    encoding: str = ""
    reason: str = ""


def _fit(values: Sequence[Value], uses: list[Reader], storage: str, layouts: Sequence[str]) -> Fit:
    """Of matrices that are stored in one way, groups in one of the layouts; neither, where none is asked for."""
    type_ = values[0].tensor
    if storage in ("", type_.dtype.name) or not type_.dtype.is_float or not uses:
        return Fit()
    parts = any(isinstance(reader.op, ConstantSelect) for reader in uses)  # that are no matrices
    if type_.rank < 2 or not type_.static or 0 in type_.shape or parts:
        return Fit(reason=NO_MATRIX)
    before = [value.tensor for value in values]
    takers: list[set[Reader]] = []
    try:
        possible = layouts if storage in GROUP_STORAGES else ("", *LAYOUTS)
        for encoding in (joined(storage, layout) for layout in possible):
            for value in values:
                value.type = TensorType(dtypes.f32, value.tensor.shape, encoding)
            takers.append({reader for reader in uses if _takes(reader)})
            if len(takers[-1]) == len(uses) and nbytes(type_.dtype, type_.maximum, encoding) < type_.nbytes:
                return Fit(encoding if storage in GROUP_STORAGES else storage)
    finally:
        for value, was in zip(values, before, strict=True):
            value.type = was
    other = next((r.op.name for r in uses if not any(r in found for found in takers)), "")
    if other:
        return Fit(reason=f"'{other}' reads it")
    alike = any(len(found) == len(uses) for found in takers)
    return Fit(reason=f"{storage} is no smaller" if alike else "what reads it wants different layouts")


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
