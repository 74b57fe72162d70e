"""What kind of variable may be used where: read, written, stepped, in an expression (SPEC sections 6 to 8)."""

from __future__ import annotations

from collections.abc import Container

from oic.check.cache import check_access, copied_out
from oic.check.report import DiagnosticCollector
from oic.check.symbols import Variable
from oic.syntax import tree as s


def check_condition(condition: s.Name, found: Variable, report: DiagnosticCollector) -> None:
    """A bool scalar."""
    if not found.refused and (found.declaration.dtype != "bool" or found.indexed):
        what = f"'{found.name}' is no bool scalar"
        report.error("branch-condition", what, condition.span, about=found)


def check_operand(access: s.Access, found: Variable, taken: Container[str], report: DiagnosticCollector) -> None:
    """A variable that is read: not persistent, a pattern's member with all its indices.

    taken   names that a temporary could not have
    """
    if found.kind == "persistent":
        what = f"persistent variable '{found.name}' cannot be used here"
        hint = copied_out(access, found, taken)
        report.error("persistent-operand", what, access.span, about=found, hint=hint)
    else:
        check_access(access, found, "member", report)


def check_target(access: s.Access, found: Variable, part: bool, report: DiagnosticCollector) -> None:
    """A variable that is written as a whole, or in part: volatile, or a temporary."""
    hint = None
    if not found.local:
        if found.kind == "persistent":
            hint = f"compute into a temporary 't', then 'cache.write t >> {access.span.text};'"
        what = f"{found.kind} variable '{found.name}' cannot be written here"
        report.error("write-kind", what, access.span, about=found, hint=hint)
    elif found.indexed or (access.indices is not None and not part):
        if not found.indexed:
            hint = f"write a temporary, then 'transfer t >> {access.span.text};'"
        what = f"only whole variables can be written here, and '{access.span.text}' is none"
        report.error("element-write", what, access.span, about=found, hint=hint)


def check_cache(word: str, access: s.Access, found: Variable, report: DiagnosticCollector) -> bool:
    """The persistent side of a `cache.` statement; False if the variable is not persistent."""
    if found.kind != "persistent":
        kind = "a temporary" if found.kind == "temporary" else found.kind
        message = f"'{word}' needs a persistent variable, but '{found.name}' is {kind}"
        copied = "'transfer a >> b;' copies any other variable"
        hint = {"cache.read": copied, "cache.write": f"the state comes last, 'cache.write x >> s;'; {copied}"}.get(word)
        report.error("cache-kind", message, access.span, about=found, hint=hint)
        return False
    if word in ("cache.increment", "cache.decrement"):
        _check_counter(word, access, found, report)
    else:
        check_access(access, found, word.removeprefix("cache."), report)
    return True


def _check_counter(word: str, access: s.Access, found: Variable, report: DiagnosticCollector) -> None:
    """The target of `cache.increment` and `cache.decrement`: a number, or one of a table of them."""
    sliced = any(isinstance(i, s.Slice) for i in access.indices or ())
    if found.grows or sliced or access.indices == ():  # a matrix, or several entries of a table
        message = f"'{word}' needs a scalar, and '{access.span.text}' is none"
        report.error("not-scalar", message, access.span, about=found)
    elif not found.refused and (found.dtype.packed or not (found.dtype.is_int or found.dtype.is_float)):
        message = f"'{word}' needs a number, but '{found.name}' is {found.dtype}"
        report.error("counter-dtype", message, access.span, about=found)
    else:
        check_access(access, found, "write", report)


def check_integer(name: s.Name, found: Variable, report: DiagnosticCollector) -> None:
    """A variable in an integer expression."""
    if found.indexed:
        report.error("not-scalar", f"'{name.name}' is no scalar", name.span, about=found)
    elif not found.refused and not found.dtype.is_int:
        what = f"'{name.name}' is {found.dtype}, and only integers are allowed here"
        report.error("index-dtype", what, name.span, about=found)
