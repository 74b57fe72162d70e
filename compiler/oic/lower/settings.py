"""Settings of an operator, `key=value`, in the form that its annotations ask for.

An annotation is a choice: `int`, `float`, `bool`, `str`, `DType`, `Dim` (a size, extents
included), `Value` (read at run time), `None` (the default only), or a list of one of them.
"""

from typing import Any

from oic import dtypes
from oic.check.literals import literal_problem
from oic.check.model_data import data_of
from oic.check.operator_names import setting_hint
from oic.check.report import Refused, refused
from oic.check.symbols import Variable
from oic.diagnostics import Span, did_you_mean
from oic.ir import dims
from oic.ir.core import REQUIRED, Value
from oic.ir.dims import INDEX_BOUND
from oic.lower.builder import Builder
from oic.lower.operands import integer_operand, operand
from oic.operators.base import Operator, by_name, from_source, settings
from oic.syntax import tree as s

WORDS = {
    "int": "an integer", "float": "a float", "bool": "true or false", "str": "a string",
    "DType": "an element type", "Dim": "a size",
}  # fmt: skip
BOUND = "a size has a value at build, and an extent declared with @max a maximum"
# What bounds a size where an operator knows better, by operator and setting.
BOUNDED = {
    ("reshape", "shape"): "let one size be -1: it takes what is left",
    ("relative_position_bias", "t"): "read the entries of a table first, K[pos..pos + N]: pos + N is within it then",
    ("relative_position_bias", "n"): "give the most there can be, n=N, and take the part with 'slice'",
}  # fmt: skip


def lower_keywords(
    f: Builder, call: s.OpCall, cls: type[Operator], where: dict[str, Span], operands: dict[str, Any]
) -> dict[str, Any]:
    """Optional operands and settings by name; `where` learns their spans.  Raises Refused."""
    fields: dict[str, Any] = {}
    first, failed = next(iter(operands.values()), None), False
    dtype = first.dtype if isinstance(first, Value) else None
    for keyword in call.keywords:
        key = from_source(cls, keyword.key)
        where[key] = keyword.span
        try:
            fields[key] = _keyword(f, keyword, cls, dtype)
        except Refused as refusal:
            failed = True
            f.report(refusal)
    known = {keyword.key for keyword in call.keywords}
    for name, field in settings(cls).items():
        if field.default is REQUIRED and name not in known:
            what = f"{cls.name} needs the setting '{name}'"
            hint = f"write {name}=… behind the operands; 'oic ops {cls.name}' says what it may be"
            raise refused("op-setting", what, call.name_span, hint=hint)
    if failed:
        raise Refused(None)
    return fields


def _keyword(f: Builder, keyword: s.Keyword, cls: type[Operator], dtype: dtypes.DType | None) -> Any:
    if keyword.key in by_name(cls):
        return _named_operand(f, keyword, cls)
    known = settings(cls)
    if keyword.key in known:
        if keyword.key in cls.tensors and (rows := _tensor(f, keyword.value)) is not None:
            return rows
        return _Setting(f, cls.name, keyword, dtype).read(keyword.value, known[keyword.key].annotation)
    hint = setting_hint(keyword.key, [*by_name(cls), *known])
    raise refused("op-setting", f"{cls.name} has no setting '{keyword.key}'", keyword.key_span, hint=hint)


def _named_operand(f: Builder, keyword: s.Keyword, cls: type[Operator]) -> Value:
    """An optional operand: a tensor, or an integer expression where the operator takes one."""
    value = keyword.value
    if isinstance(value, s.Access):
        return operand(f, value)
    if isinstance(value, s.Name) and (variable := f.instance.variable(value)) is not None:
        return _whole(f, variable, value)
    if isinstance(value, s.Expr) and keyword.key in cls.scalars:
        return f.value(f.integer(value), value.span)
    if isinstance(value, s.Expr) and keyword.key in cls.own:
        return integer_operand(f, value, keyword.key, cls.own[keyword.key])
    raise refused("op-setting", f"'{keyword.key}' of {cls.name} is a tensor", value.span)


def _tensor(f: Builder, value: s.Setting | s.Access) -> Value | None:
    """An integer variable of several elements; None for all else."""
    variable = f.instance.variable(value) if isinstance(value, s.Name) else None
    if variable is None or variable.refused or variable.kind == "persistent":
        return None
    return None if all(size == 1 for size in f.dims(variable)) else _whole(f, variable, value)


def _whole(f: Builder, variable: Variable, value: s.Setting | s.Access) -> Value:
    """A variable that is named as a tensor.  Raises Refused."""
    if variable.refused or variable.family:
        raise Refused(None)
    return f.read(variable, value.span)


class _Setting:
    """One setting of an operator being read; `dtype` is that of the operator's first operand."""

    def __init__(self, f: Builder, operator: str, keyword: s.Keyword, dtype: dtypes.DType | None) -> None:
        self.f, self.operator, self.keyword, self.dtype = f, operator, keyword, dtype

    def read(self, value: s.Setting | s.Access, annotation: str) -> Any:
        """The value in the form of an annotation.  Raises Refused."""
        choices = annotation.replace(" ", "").split("|")
        if isinstance(value, s.ListOf):
            inner = next((c[5:-1] for c in choices if c.startswith("list[")), None)
            if inner is None:
                raise self._wrong(value, choices)
            return [self.read(item, inner) for item in value.items]
        if isinstance(value, s.Name) and "DType" in choices:
            return self._dtype(value)
        if isinstance(value, s.Name) and value.name in dtypes.ALL and self.f.instance.variable(value) is None:
            raise self._wrong(value, choices)
        match value:
            case s.Float() if "float" in choices and (problem := literal_problem(value, dtypes.f64)):
                raise refused("op-setting", problem[1], value.span)
            case s.Bool(found) | s.Str(found) | s.Float(found) | s.Int(found) if type(found).__name__ in choices:
                return found  # the operator knows the range of an integer, which may be that of u64
            case s.Name() if (scalar := self._scalar(value, choices)) is not None:
                return scalar
            case s.Int() | s.Name() | s.Unary() | s.Binary() if {"int", "Dim"} & set(choices):
                return self._integer(value, choices)
        raise self._wrong(value, choices)

    def _dtype(self, name: s.Name) -> dtypes.DType:
        if name.name in dtypes.ALL:
            return dtypes.ALL[name.name]
        what, hint = f"unknown element type '{name.name}'", did_you_mean(name.name, dtypes.ALL)
        raise refused("unknown-dtype", what, name.span, hint=hint)

    def _scalar(self, name: s.Name, choices: list[str]) -> Any:
        """The value of a float or bool scalar, or of one of u64, which no index holds; else None."""
        f = self.f
        variable = f.instance.variable(name)
        if variable is None or variable.refused:
            return None
        dtype = variable.dtype
        widest = dtype is dtypes.u64 is self.dtype and "Value" in choices
        if dtype.is_int and not dtype.packed and not widest:
            return None
        if ("bool" if dtype.kind == "bool" else "float") not in choices:
            return None
        if variable.kind == "constant":
            data = data_of(f.binding, variable)
            self._require_one(variable, name, data.size == 1, f"{dtype}{list(data.shape)}")
            value = data.reshape(-1)[0].item()
            return bool(value) if dtype.kind == "bool" else int(value) if widest else float(value)
        if "Value" not in choices:
            raise self._not_known(name)
        value = _whole(f, variable, name)
        self._require_one(variable, name, value.tensor.size == 1, f.shown(value.type))
        return value

    def _require_one(self, variable: Variable, name: s.Name, one: bool, shown: str) -> None:
        if not one:
            raise refused("op-setting", f"'{variable.name}' is {shown}, not a scalar", name.span, variable)

    def _integer(self, value: s.Expr, choices: list[str]) -> Any:
        f = self.f
        found = f.integer(value)
        size = f.size(found)
        if isinstance(found, int):
            return found
        if "Dim" in choices and size is not None:
            return f.checked_size(size, self.keyword.key, value.span)
        if "Value" in choices:
            return f.value(found, value.span)
        within = min(dims.maximum(found), f.memo.get(("most", found), INDEX_BOUND))
        if "Dim" in choices and within < INDEX_BOUND:  # a remainder, made of some, or the end of a slice before
            return f.length(found, max(0, within), self.keyword.key, value.span, above="OIC_ERR_SHAPE")
        if "Dim" not in choices:
            raise self._not_known(value)
        what = f"'{value.span.text}' decides a size, and nothing bounds it"
        hint = BOUNDED.get((self.operator, self.keyword.key), BOUND)
        raise refused("size-unbounded", what, value.span, hint=hint)

    def _not_known(self, value: s.Expr) -> Refused:
        return refused("op-setting", f"'{self.keyword.key}' must be known at build", value.span)

    def _wrong(self, value: s.Setting | s.Access, choices: list[str]) -> Refused:
        lists = [c[5:-1] for c in choices if c.startswith("list[")]
        wanted = [WORDS[c] for c in choices if c in WORDS]
        wanted += [f"a list of {WORDS[c].split(' ', 1)[1]}s" for c in lists if c in WORDS]
        what = f"'{self.keyword.key}' takes {' or '.join(dict.fromkeys(wanted))}"
        hint = None
        if isinstance(value, s.Str) and "DType" in choices and value.value in dtypes.ALL:
            hint = f"element types have no quotes: {self.keyword.key}={value.value}"
        elif isinstance(value, s.Int) and "float" in choices:
            hint = f"write {value.value}.0"
        elif lists and isinstance(value, s.Int):
            hint = f"write [{value.value}]"
        return refused("op-setting", what, value.span, hint=hint)
