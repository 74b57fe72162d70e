"""The text of generated C: parentheses, line breaks, and which declarations are needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from oic.codegen import c_tree as c

WIDTH = 110  # columns before a line is broken
INDENT = 4

# How loosely operators bind.
POSTFIX, PREFIX, COMPARISON, AND, OR, CHOICE = 0, 1, 4, 5, 6, 7
LEVELS = {"*": 2, "/": 2, "%": 2, "+": 3, "-": 3, "&&": AND, "||": OR} | dict.fromkeys(
    ("<", "<=", ">", ">=", "==", "!="), COMPARISON
)

_LEVELS: dict[type[c.Expression], int] = {c.Conditional: CHOICE, c.Conversion: PREFIX, c.Prefix: PREFIX}

# ---------------------------------------------------------------- expressions


class Open(str):
    """A piece that begins what may be broken after every `SoftBreak` in it."""


class Hanging(Open):
    """Broken, it goes on in lines of their own, indented as a block is."""


class SoftBreak(str):
    """A piece that a line may be broken after."""


class Close(str):
    """A piece that ends what the last `Open` began."""


OPEN, CLOSE, SPACE, COMMA = Open(), Close(), SoftBreak(" "), SoftBreak(", ")


def text(value: c.Expression) -> str:
    """An expression on one line."""
    return "".join(_pieces(value))


def _pieces(value: c.Expression) -> list[str]:
    found: list[str] = []
    _write(found, value)
    return found


def _write(to: list[str], value: c.Expression, level: int = CHOICE) -> None:
    """Add the pieces of an expression, in parentheses where it binds more loosely than the level allows."""
    if isinstance(value, (c.Identifier, c.Literal)):
        to.append(value.text)
        return
    own = LEVELS[value.op] if isinstance(value, c.Infix) else _LEVELS.get(type(value), POSTFIX)
    if own > level:
        to.append("(")
    match value:
        case c.Member(of, name, arrow):
            _write(to, of, POSTFIX)
            to.append(f"->{name}" if arrow else f".{name}")
        case c.Element(of, index):
            _write(to, of, POSTFIX)
            to.append("[")
            _write(to, index)
            to.append("]")
        case c.FunctionCall(function, args):
            _items(to, Open(f"{function}("), args, Close(")"))
        case c.Braces(items, names, type_, const):
            head = Open("{") if type_ is None else Hanging(f"({declared(type_, const=const)}){{")
            _items(to, head, items, Close("}"), names)
        case c.Conversion(type_, inner):
            to.append(f"({declared(type_)})")
            _write(to, inner, PREFIX)
        case c.Prefix(op, inner):
            to.append(op)
            twice = isinstance(inner, c.Prefix) and inner.op == op  # `--` is another operator
            _write(to, inner, POSTFIX if twice else PREFIX)
        case c.Infix():
            to.append(OPEN)
            _chain(to, value, own)
            to.append(CLOSE)
        case c.Conditional(test, then, otherwise):
            to.append(OPEN)
            for part, limit, after in ((test, OR, " ?"), (then, CHOICE, " :")):
                _write(to, part, limit)
                to += (after, SPACE)
            _write(to, otherwise)
            to.append(CLOSE)
        case _:
            raise AssertionError(f"{value!r} is no expression")
    if own > level:
        to.append(")")


def _chain(to: list[str], value: c.Infix, level: int) -> None:
    """Operators of one level in a row, broken after them: `a + b - c`.

    A comparison in a comparison and `&&` in `||` are in parentheses, which compilers ask for.
    """
    operand = COMPARISON if level == OR else level - 1
    row = [value]
    while isinstance(left := row[-1].left, c.Infix) and LEVELS[left.op] == level != COMPARISON:
        row.append(left)  # no recursion: a row may be thousands long
    _write(to, left, operand)
    for one in reversed(row):
        to += (f" {one.op}", SPACE)
        _write(to, one.right, operand)


def _items(to: list[str], head: Open, items: Sequence[c.Expression], end: Close, names: Sequence[str] = ()) -> None:
    to.append(head)
    for at, item in enumerate(items):
        if at:
            to.append(COMMA)
        if names:
            to.append(f".{names[at]} = ")
        _write(to, item)
    to.append(end)


def declared(type_: c.Type, name: str = "", *, const: bool = False) -> str:
    """A type, or the declaration of a name that has it."""
    match type_:
        case c.Array(of, size):
            return declared(of, f"{name}[{'' if size is None else size}]", const=const)
        case c.Pointer(to, fixed, restrict):
            found = f"{'const ' if fixed else ''}{to} *{'restrict ' if restrict else ''}{'const' if const else ''}"
            return f"{found} {name}" if const and name[:1] not in ("", "[") else found + name
        case str():
            return f"{'const ' if const else ''}{type_}{' ' if name[:1] not in ('', '[') else ''}{name}"


# ---------------------------------------------------------------- lines


@dataclass
class Group:
    """Pieces from an `Open` to its `Close`, by the marks between them; its width on one line."""

    opening: str
    items: list[list[str | Group]]
    mark: str = ""
    closing: str = ""
    width: int = 0


def _grouped(pieces: Iterator[str], opening: str = "") -> Group:
    """Pieces up to the end of a group."""
    found = Group(opening, [[]])
    for piece in pieces:
        match piece:
            case Open():
                found.items[-1].append(_grouped(pieces, piece))
            case SoftBreak():
                found.mark = piece
                found.items.append([])
            case Close():
                found.closing = piece
                break
            case _:
                found.items[-1].append(piece)
    marks = len(found.mark) * (len(found.items) - 1)
    found.width = len(opening) + sum(map(_width, found.items)) + marks + len(found.closing)
    return found


def _width(item: Iterable[str | Group]) -> int:
    return sum(len(piece) if isinstance(piece, str) else piece.width for piece in item)


class _Line:
    """Pieces on their way to lines that are no longer than they must be."""

    def __init__(self, depth: int) -> None:
        self.indent = INDENT * depth
        self.done: list[str] = []
        self.now = " " * self.indent

    def put(self, item: Sequence[str | Group], after: int) -> None:
        """Write pieces; `after` characters follow them on their last line."""
        after += _width(item)
        for piece in item:
            if isinstance(piece, str):
                after -= len(piece)
                self.now += piece
            else:
                after -= piece.width
                self._fill(piece, after)

    def _fill(self, group: Group, after: int) -> None:
        """Items, as many a line as fit, below the first of them or where that is too far right, below the statement."""
        whole = len(self.now) + group.width + after <= WIDTH
        self.now += group.opening
        column, last = len(self.now), len(group.items) - 1
        far = bool(group.opening) and any(column + _width(item) >= WIDTH for item in group.items[:last])
        hangs = not whole and (far or isinstance(group.opening, Hanging))
        if hangs:
            column = self.indent + INDENT
        for at, item in enumerate(group.items):
            tail = len(group.closing) + after if at == last else len(group.mark.rstrip())
            if not whole and (self._begins(item, column, tail, at == last) if at else hangs):
                self.done.append(self.now.rstrip())
                self.now = " " * column
            self.put(item, tail)
            self.now += group.closing if at == last else group.mark

    def _begins(self, item: Sequence[str | Group], column: int, tail: int, last: bool) -> bool:
        """An item goes to a line of its own; but not a last one that must be broken anyway, where there is room."""
        width = _width(item) + tail
        if len(self.now) + width <= WIDTH:
            return False
        return column + width <= WIDTH or not last or len(self.now) > WIDTH // 2 or not isinstance(item[-1], Group)


def _set(depth: int, pieces: Sequence[str], end: str, note: str = "") -> list[str]:
    """The lines of a statement, with its end and a comment."""
    end += f" /* {note} */" if note else ""
    whole = f"{' ' * INDENT * depth}{''.join(pieces)}{end}"
    if len(whole) <= WIDTH:
        return [whole]
    line = _Line(depth)
    line.put(_grouped(iter(pieces)).items[0], len(end))
    return [*line.done, line.now + end]


def lines(statements: Sequence[c.Statement], depth: int = 1) -> list[str]:
    """The lines of statements, without what nothing uses."""
    found: list[str] = []
    _block(found, kept(statements), depth)
    return found


def function(before: str, type_: c.Type, name: str, parameters: Sequence[c.Declare]) -> str:
    """The declaration of a function, without its end; `before` is `static`, or the macro of what is exported."""
    pieces: list[str] = []
    head = Open(f"{before} {declared(type_, name)}(".lstrip())
    _items(pieces, head, [c.Identifier(declared(p.type, p.name)) for p in parameters], Close(")"))
    return "\n".join(_set(0, pieces, ""))


def member(declaration: c.Declare) -> str:
    """A declaration without a value: the member of a structure."""
    return declared(declaration.type, declaration.name, const=declaration.const) + ";"


def members(declarations: Sequence[c.Declare]) -> list[str]:
    """The members of a structure, their comments in one column as far as that is not far away."""
    texts = [member(d) for d in declarations]
    width = max((len(text) for text, d in zip(texts, declarations) if d.note and len(text) <= 48), default=0)
    return [f"{text:<{width}} /* {d.note} */" if d.note else text for text, d in zip(texts, declarations)]


def _block(to: list[str], statements: Sequence[c.Statement], depth: int) -> None:
    for at, statement in enumerate(statements):
        if isinstance(statement, c.Comment) and at and not isinstance(statements[at - 1], c.Comment):
            to.append("")
        _statement(to, statement, depth)


def _statement(to: list[str], statement: c.Statement, depth: int) -> None:
    """Add the lines of a statement."""
    match statement:
        case c.Comment(found):
            _comments(to, depth, found)
        case c.Declare(value=c.Braces(rows, rows=True), note=note):
            to += _set(depth, (*_head(statement), " = "), "{", note)
            for row in rows:
                plain = row if isinstance(row, c.BracedRow) else c.BracedRow(row)
                _comments(to, depth + 1, (plain.above,) if plain.above else ())
                to += _set(depth + 1, _pieces(plain.value), ",", plain.note)
            _end(to, depth, "};")
        case c.Declare(value=c.Braces(items, names, None), note=note) if names:
            pieces = [*_head(statement), " = "]
            _items(pieces, Hanging("{"), items, Close("}"), names)
            to += _set(depth, pieces, ";", note)
        case c.Declare(value=value, note=note):
            given = () if value is None else (" = ", *_pieces(value))
            to += _set(depth, (*_head(statement), *given), ";", note)
        case c.AssignStatement(target, value, note):
            to += _set(depth, (*_pieces(target), " = ", *_pieces(value)), ";", note)
        case c.Do(value, note):
            to += _set(depth, _pieces(value), ";", note)
        case c.ReturnStatement(value):
            to += _set(depth, ("return",) if value is None else ("return ", *_pieces(value)), ";")
        case c.Break():
            to += _set(depth, ("break",), ";")
        case c.IfStatement(test, body, orelse, note):
            to += _set(depth, ("if (", *_pieces(test)), ") {", note)
            _block(to, body, depth + 1)
            if orelse:
                _end(to, depth, "} else {")
                _block(to, orelse, depth + 1)
            _end(to, depth)
        case c.ForStatement(type_, name, start, test, down, body):
            step = f"{'--' if down else '++'}{name}"
            head = [Open("for ("), f"{type_} {name} = ", *_pieces(start), SoftBreak("; ")]
            to += _set(depth, [*head, *_pieces(test), SoftBreak("; "), step, Close(")")], " {")
            _block(to, body, depth + 1)
            _end(to, depth)
        case c.Enclosed(body):
            _end(to, depth, "{")
            _block(to, body, depth + 1)
            _end(to, depth)
        case c.Once(body):
            _end(to, depth, "do {")
            _block(to, body, depth + 1)
            _end(to, depth, "} while (0);")


def _end(to: list[str], depth: int, brace: str = "}") -> None:
    to.append(f"{' ' * INDENT * depth}{brace}")


def _head(statement: c.Declare) -> tuple[str]:
    head = declared(statement.type, statement.name, const=statement.const)
    return (f"static {head}" if statement.static else head,)


def _comments(to: list[str], depth: int, found: Sequence[str]) -> None:
    to += (f"{' ' * INDENT * depth}/* {line} */" for line in found)


# ---------------------------------------------------------------- names that are used


def names(statements: Iterable[c.Statement]) -> set[str]:
    """The names that are used, also to set them."""
    return {name for s in _all(statements) for name in _names(c.parts(s))}


def _names(values: Iterable[c.Expression]) -> list[str]:
    waiting, found = list(values), []
    for value in waiting:
        if type(value) is c.Identifier:
            found.append(value.text)
        elif type(value) is not c.Literal:
            waiting += c.parts(value)
    return found


def _all(statements: Iterable[c.Statement]) -> Iterator[c.Statement]:
    for statement in statements:
        yield statement
        for block in c.blocks(statement):
            yield from _all(block)


def kept(statements: Sequence[c.Statement]) -> list[c.Statement]:
    """The statements without optional declarations of unused names, what sets those, and comments above nothing."""
    uses: Counter[str] = Counter()
    mentions: dict[str, list[str]] = {}  # in what declares a name or sets it, beside the name
    optional: set[str] = set()
    for statement in _all(statements):
        found = _names(c.parts(statement))
        if own := _sets(statement):
            found = [name for name in found if name != own]
            mentions.setdefault(own, []).extend(found)
        if isinstance(statement, c.Declare) and statement.optional:
            optional.add(statement.name)
        uses.update(found)
    gone: set[str] = set()
    waiting = [name for name in optional if name not in uses]
    while waiting:
        gone.add(name := waiting.pop())
        for used in mentions[name]:
            uses[used] -= 1
            if not uses[used] and used in optional:
                waiting.append(used)
    return _without(statements, gone)


def _sets(statement: c.Statement) -> str:
    """The variable that a statement declares or assigns."""
    match statement:
        case c.Declare(name=name) | c.AssignStatement(c.Identifier(name)):
            return name
    return ""


def _without(statements: Sequence[c.Statement], gone: set[str]) -> list[c.Statement]:
    found: list[c.Statement] = []
    for s in (*statements, None):
        if s is None or isinstance(s, c.Comment | c.ReturnStatement):
            while found and isinstance(over := found[-1], c.Comment) and not over.done:
                found.pop()
        if s is not None and _sets(s) not in gone:
            inner = {k: _without(getattr(s, k), gone) for k in c.block_names(type(s))}  # type: ignore[arg-type]
            found.append(replace(s, **inner) if inner else s)
    return found
