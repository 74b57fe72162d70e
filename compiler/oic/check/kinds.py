"""What may be used where (SPEC sections 6 to 8): kinds of variables, and brackets.

A variable is read, written, stepped, or is in an expression; an access gives so many indices, some of them slices.
"""

from collections.abc import Container

from oic.check.report import DiagnosticCollector
from oic.check.symbols import Variable
from oic.diagnostics import count_of
from oic.syntax import tree as s

_MANY = {1: "one", 2: "two", 3: "three"}


def check_condition(condition: s.Name, found: Variable, report: DiagnosticCollector) -> None:
    """A bool scalar."""
    if not found.refused and (found.declaration.dtype != "bool" or found.indexed):
        report.error("branch-condition", f"'{found.name}' is no bool scalar", condition.span, about=found)


def check_operand(access: s.Access, found: Variable, taken: Container[str], report: DiagnosticCollector) -> None:
    """A variable that is read: not persistent, a pattern's member with all its indices.

    taken   names that a temporary could not have
    """
    if found.kind == "persistent":
        what = f"persistent variable '{found.name}' cannot be used here"
        report.error("persistent-operand", what, access.span, about=found, hint=copied_out(access, found, taken))
    else:
        check_access(access, found, "member", report)


def check_target(access: s.Access, found: Variable, part: bool, report: DiagnosticCollector) -> None:
    """A variable that is written as a whole, or in part: volatile, or a temporary."""
    if not found.local:
        cure = f"compute into a temporary 't', then 'cache.write t >> {access.span.text};'"
        hint = cure if found.kind == "persistent" else None
        what = f"{found.kind} variable '{found.name}' cannot be written here"
        report.error("write-kind", what, access.span, about=found, hint=hint)
    elif found.indexed or (access.indices is not None and not part):
        hint = None if found.indexed else f"write a temporary, then 'transfer t >> {access.span.text};'"
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


def check_access(access: s.Access, found: Variable, mode: str, report: DiagnosticCollector) -> None:
    """The brackets of an access: 'read', 'write' or 'reset' of persistent state, or 'member'.

    A member is one of a pattern: all indices, scalars only.
    """
    if not found.indexed:
        missing = any(found.attribute(name) for name in ("table", "auto_dim"))  # refused at the declaration
        if access.indices is not None and not missing:
            slicing = f"op slice({found.name}, axis=…, start=…, end=…) gives a part of a tensor"
            hint = slicing if mode == "member" else None
            report.error("not-indexed", f"'{found.name}' has no indices", access.span, about=found, hint=hint)
        return
    if not found.indices:
        return  # empty parentheses are refused at the declaration
    if access.indices is None:
        if mode != "reset":
            _missing(access, found, 0, mode, report)
        return
    tables, given = len(found.table), len(access.indices)
    allowed = tables if mode == "reset" else len(found.indices)
    if given > allowed:
        _too_many(access, found, given, allowed, mode, report)
        return
    if given < tables and mode in ("write", "member"):
        _missing(access, found, given, mode, report)
        return
    ring = found.ring
    for name, position in zip(found.indices, access.indices, strict=False):
        if isinstance(position, s.Slice):
            _check_slice(access, position, found, mode, name, report)
        elif not (ring == name and mode == "read"):
            _check_number(position, found, report)
    left = [name for name in found.indices[given:] if name != ring]  # those beside a ring's own must be given
    if ring is not None and mode == "read" and left:
        report.error("ring-index", f"index '{left[0]}' beside a ring must be given", access.span, about=found)


def _check_slice(
    access: s.Access, position: s.Slice, found: Variable, mode: str, name: str, report: DiagnosticCollector
) -> None:
    slug, what, hint = "slice-place", "", None
    if mode == "member":
        what = "a pattern's index cannot be a slice"
    elif mode == "reset":
        what = "'cache.reset' takes no slices"
    elif mode == "write" and name in found.grows:
        what = f"a write replaces the whole of '{found.name}', not a slice"
    elif mode == "write" and (position.start is None or position.end is None):
        slug, what = "slice-ends", "a write gives both ends of a slice"
        hint = f"write {access.name}[pos..pos+n], with n the number of entries"
    elif found.ring is not None and name != found.ring:
        slug, what = "ring-index", f"index '{name}' beside a ring must be a scalar"
    elif position.start is not None and found.ring is None:
        _check_number(position.start, found, report)
    if what:
        report.error(slug, what, position.span, about=found, hint=hint)


def _check_number(index: s.Expr, found: Variable, report: DiagnosticCollector) -> None:
    """A number with a minus is no index, whatever sizes and model there are; lowering knows the values of others."""
    if isinstance(index, s.Unary) and isinstance(index.operand, s.Int) and index.operand.value:
        what = f"this index is -{index.operand.value}"
        report.error("index-negative", what, index.span, about=found)


def _too_many(
    access: s.Access, found: Variable, given: int, allowed: int, mode: str, report: DiagnosticCollector
) -> None:
    extra, table = given - allowed, mode == "reset" or (mode != "member" and found.table)
    last = {1: "the second", 2: "the third"}.get(allowed, "the last") if extra == 1 else "the extra"
    indices = "index" if extra == 1 else "indices"
    hint = f"drop {last} {indices}"
    if mode != "reset" and extra == 1:
        free = next(n for n in ("j", "k", "m", "n", "p", "q", "r") if n not in found.indices)
        hint += f", or declare {found.name}({', '.join([*found.indices, free])})"
    what = f"{'table ' if table else ''}'{found.name}' has {count_of(allowed, 'index')}, but {given} are given"
    label = f"{_MANY.get(extra, extra)} {indices} too many"
    report.error("table-rank", what, access.span, label, about=found, hint=hint)


def _missing(access: s.Access, found: Variable, given: int, mode: str, report: DiagnosticCollector) -> None:
    """Too few indices, or no brackets where they are needed."""
    tables = len(found.table)
    if access.indices is None and (mode == "read" or tables == 0):
        what = f"'{found.name}' is accessed without brackets"
        hint = f"write {found.name}[] for all of it, or {found.name}[{', '.join(found.indices)}]"
        report.error("brackets", what, access.span, about=found, hint=hint)
        return
    are = "is" if given < 2 else "are"
    what = f"'{found.name}' has {count_of(tables, 'index')}, but {given or 'none'} {are} given"
    label = "a write gives every index" if mode == "write" else "a member is named by every index"
    report.error("table-rank", what, access.span, label, about=found)


def copied_out(access: s.Access, found: Variable, taken: Container[str]) -> str:
    """The hint that copies what an access of persistent memory selects into a new temporary."""
    given, declaration = access.indices or (), found.declaration
    slices = sum(i >= len(given) or isinstance(given[i], s.Slice) for i in range(len(found.table)))
    dims = ["?"] * slices + ["?" if found.grows else dim.span.text for dim in declaration.dims]
    made = f"{declaration.dtype}[{', '.join(dims)}]" if dims else declaration.dtype
    place = access.span.text + ("[]" if found.indices and access.indices is None else "")
    names = (f"{found.name.lower()}{end}" for end in ("", "_now", *range(2, 1 << 20)))
    name = next(n for n in names if n not in taken)
    return f"copy it out first: 'assign {name}: {made}; cache.read {place} >> {name};'"
