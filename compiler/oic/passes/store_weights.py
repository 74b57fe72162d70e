"""Constants get the storage that rules say: before anything else, since it changes what the graph computes.

    %w = constant {symbol=w, type=f32[64, 32]}    ->    %w = constant {symbol=w, type=f32[64, 32] q8 panels}

The module's values become what the storage gives back, so that the reference computes with what compiled code unpacks.
A constant keeps its form where not everything that reads it can take the storage, and where the storage is no smaller.

What a model has in blocks of such groups, and no rule names, is stored as it is there.

Rules are `f32`, `bf16`, `f16`, `q8`, `q4`, or several, by name: `lm_head=q8,*=q4`; the first that fits counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from oic import dtypes
from oic.diagnostics import did_you_mean, fail
from oic.ir.core import OpError, Value
from oic.ir.encodings import LAYOUTS, PANELS, STORAGES, joined, nbytes
from oic.ir.members import Members, Stored
from oic.ir.module import Module
from oic.ir.quantized import BITS
from oic.ir.state import ConstantSelect
from oic.operators.base import Operator
from oic.passes.pack_weights import Reader, encode, readers

KEPT = "f32"  # as the graph declares it
NO_MATRIX = "it is no matrix"
PRECISIONS = (KEPT, *STORAGES)


@dataclass(frozen=True)
class Rule:
    """What constants with names of a form are stored as."""

    names: str
    storage: str

    def fits(self, symbol: str) -> bool:
        return fnmatchcase(symbol, self.names)


@dataclass(frozen=True)
class Choice:
    """What was decided for a constant.

    storage  of PRECISIONS; "f32" is as declared
    reason   why it is not what a rule says; ""
    """

    symbol: str
    storage: str
    nbytes: int
    reason: str = ""


def rules_of(text: str) -> list[Rule]:
    """The rules that a text states.  Raises OicError."""
    found: list[Rule] = []
    for part in (p.strip() for p in text.split(",")):
        names, equals, storage = part.rpartition("=")
        names, storage = names.strip() if equals else "*", storage.strip()
        if storage not in PRECISIONS or not names:
            hint = f'{", ".join(PRECISIONS)}; or by name: "lm_head=q8,*=q4"'
            raise fail("weights-rule", f"'{part}' is no precision of weights", hint=hint)
        found.append(Rule(names, storage))
    return found


def store_weights(module: Module, rules: Iterable[Rule]) -> list[Choice]:
    """Give every constant its storage; what became of each matrix.  Raises OicError for names that there are not."""
    rules, found = list(rules), list(readers(module))
    symbols = [value.op.attributes()["symbol"] for value, _ in found if value.op is not None]
    for rule in rules:
        if rule.names != "*" and not any(rule.fits(symbol) for symbol in symbols):
            known = ", ".join(symbols[:6]) + (", …" if len(symbols) > 6 else "")
            hint = did_you_mean(rule.names, symbols) or (f"there are {known}" if symbols else "there are none")
            raise fail("weights-rule", f"no constant is called '{rule.names}'", hint=hint)
    choices = [_choice(module, symbol, value, uses, rules) for symbol, (value, uses) in zip(symbols, found)]
    return [c for c in choices if c is not None]


def _choice(
    module: Module, symbol: str, constant: Value, uses: list[Reader], rules: list[Rule]
) -> Choice | None:
    """What is decided where a rule is for another storage than that of the type; None: no rule is."""
    rule = next((r for r in rules if r.fits(symbol)), None)
    dtype, source = constant.tensor.dtype, module.weights[symbol]
    assert not isinstance(source, Stored), f"{symbol} has a storage"
    own = source.storage if isinstance(source, Members) else ""
    storage = own if rule is None else rule.storage
    if storage in ("", KEPT, dtype.name) or not dtype.is_float or not uses:
        return None
    reason = _stored(constant, uses, storage, (PANELS,) if rule is None else LAYOUTS)
    if not reason:
        module.weights[symbol] = Stored(symbol, source, constant.tensor.encoding)
    return Choice(symbol, KEPT if reason else storage, constant.tensor.nbytes, reason)


def _stored(constant: Value, uses: list[Reader], storage: str, layouts: Sequence[str]) -> str:
    """Give the constant a storage, or say why not.

    layouts  that groups may have
    """
    type_ = constant.tensor
    members = any(isinstance(reader.op, ConstantSelect) for reader in uses)  # that are no matrices
    if type_.rank < 2 or not type_.static or 0 in type_.shape or members:
        return NO_MATRIX
    takers: list[set[Reader]] = []
    for encoding in (joined(storage, layout) for layout in (layouts if storage in BITS else ("", *LAYOUTS))):
        encode(constant, encoding, dtypes.f32)
        takers.append({reader for reader in uses if _takes(reader)})
        if len(takers[-1]) == len(uses) and nbytes(type_.dtype, type_.maximum, encoding) < type_.nbytes:
            encode(constant, encoding if storage in BITS else storage, dtypes.f32)
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
