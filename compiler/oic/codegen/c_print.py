"""The text of generated C: parentheses, line breaks, and which declarations are needed."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from oic.codegen import c_tree as c
from oic.ir.grouping import by_key, reach

WIDTH = 110  # columns before a line is broken
INDENT = 4

# How loosely operators bind.
POSTFIX, PREFIX, COMPARISON, AND, OR, CHOICE = 0, 1, 4, 5, 6, 7
LEVELS = {"*": 2, "/": 2, "%": 2, "+": 3, "-": 3, "&&": AND, "||": OR} | dict.fromkeys(
    ("<", "<=", ">", ">=", "==", "!="), COMPARISON
)

# ---------------------------------------------------------------- expressions


@dataclass
class Group:
    """Items, of texts and groups, that a line may be broken between.

    mark   between them
    hangs  broken, it goes on in lines of their own, indented as a block is
    text   all of it on one line
    """

    items: "list[Pieces]"
    opening: str = ""
    mark: str = " "
    closing: str = ""
    hangs: bool = False

    def __post_init__(self) -> None:
        self.text = self.opening + self.mark.join(map(_text, self.items)) + self.closing


Pieces = list[str | Group]


def text(value: c.Expression) -> str:
    """An expression on one line."""
    if isinstance(value, c.Infix):  # most are of two names or numbers
        left, right = value.left, value.right
        if isinstance(left, c.Identifier | c.Literal) and isinstance(right, c.Identifier | c.Literal):
            return f"{left.text} {value.op} {right.text}"
    return _text(_pieces(value))


def _text(pieces: Iterable[str | Group]) -> str:
    return "".join([piece if isinstance(piece, str) else piece.text for piece in pieces])


def _pieces(value: c.Expression, level: int = CHOICE) -> Pieces:
    """An expression, in parentheses where it binds more loosely than the level allows."""
    own = POSTFIX
    found: Pieces
    match value:
        case c.Identifier(name) | c.Literal(name):
            return [name]
        case c.Infix(op):
            own, found = LEVELS[op], [_chain(value, LEVELS[op])]
        case c.Member(of, name, arrow):
            found = [*_pieces(of, POSTFIX), f"->{name}" if arrow else f".{name}"]
        case c.Element(of, index):
            found = [*_pieces(of, POSTFIX), "[", *_pieces(index), "]"]
        case c.FunctionCall(function, args):
            found = [_items(f"{function}(", args, ")")]
        case c.Braces(items, names, type_, const):
            opening = "{" if type_ is None else f"({declared(type_, const=const)}){{"
            found = [_items(opening, items, "}", names, hangs=type_ is not None)]
        case c.Conversion(type_, inner):
            own, found = PREFIX, [f"({declared(type_)})", *_pieces(inner, PREFIX)]
        case c.Prefix(op, inner):
            twice = isinstance(inner, c.Prefix) and inner.op == op  # `--` is another operator
            own, found = PREFIX, [op, *_pieces(inner, POSTFIX if twice else PREFIX)]
        case c.Conditional(test, then, otherwise):
            own, found = CHOICE, [Group([[*_pieces(test, OR), " ?"], [*_pieces(then), " :"], _pieces(otherwise)])]
        case _:
            raise AssertionError(f"{value!r} is no expression")
    return found if own <= level else ["(", *found, ")"]


def _chain(value: c.Infix, level: int) -> Group:
    """Operators of one level in a row, broken after them: `a + b - c`.

    A comparison in a comparison and `&&` in `||` are in parentheses, which compilers ask for.
    """
    operand = COMPARISON if level == OR else level - 1
    row = [value]
    while isinstance(left := row[-1].left, c.Infix) and LEVELS[left.op] == level != COMPARISON:
        row.append(left)  # no recursion: a row may be thousands long
    items = [_pieces(left, operand)]
    for one in reversed(row):
        items[-1].append(f" {one.op}")
        items.append(_pieces(one.right, operand))
    return Group(items)


def _items(
    opening: str, values: Sequence[c.Expression], closing: str, names: Sequence[str] = (), *, hangs: bool = False
) -> Group:
    items = [_pieces(value) for value in values]
    for name, item in zip(names, items):
        item.insert(0, f".{name} = ")
    return Group(items or [[]], opening, ", ", closing, hangs)


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


class _Line:
    """Pieces on their way to lines that are no longer than they must be."""

    def __init__(self, depth: int) -> None:
        self.indent = INDENT * depth
        self.done: list[str] = []
        self.now = " " * self.indent

    def put(self, item: Pieces, after: int) -> None:
        """Write pieces; `after` characters follow them on their last line."""
        after += len(_text(item))
        for piece in item:
            after -= len(_text([piece]))
            if isinstance(piece, str):
                self.now += piece
            else:
                self._fill(piece, after)

    def _fill(self, group: Group, after: int) -> None:
        """Items, as many a line as fit, below the first of them or where that is too far right, below the statement."""
        whole = len(self.now) + len(group.text) + after <= WIDTH
        self.now += group.opening
        column, last = len(self.now), len(group.items) - 1
        far = bool(group.opening) and any(column + len(_text(item)) >= WIDTH for item in group.items[:last])
        hangs = not whole and (far or group.hangs)
        if hangs:
            column = self.indent + INDENT
        for at, item in enumerate(group.items):
            tail = len(group.closing) + after if at == last else len(group.mark.rstrip())
            if not whole and (self._begins(item, column, tail, at == last) if at else hangs):
                self.done.append(self.now.rstrip())
                self.now = " " * column
            self.put(item, tail)
            self.now += group.closing if at == last else group.mark

    def _begins(self, item: Pieces, column: int, tail: int, last: bool) -> bool:
        """An item goes to a line of its own; but not a last one that must be broken anyway, where there is room."""
        width = len(_text(item)) + tail
        if len(self.now) + width <= WIDTH:
            return False
        return column + width <= WIDTH or not last or len(self.now) > WIDTH // 2 or not isinstance(item[-1], Group)


def _set(depth: int, pieces: Pieces, end: str, note: str = "") -> list[str]:
    """The lines of a statement, with its end and a comment."""
    end += f" /* {note} */" if note else ""
    whole = f"{' ' * INDENT * depth}{_text(pieces)}{end}"
    if len(whole) <= WIDTH:
        return [whole]
    line = _Line(depth)
    line.put(pieces, len(end))
    return [*line.done, line.now + end]


def lines(statements: Sequence[c.Statement], depth: int = 1) -> list[str]:
    """The lines of statements, without what nothing uses."""
    found: list[str] = []
    _block(found, kept(statements), depth)
    return found


def function(before: str, type_: c.Type, name: str, parameters: Sequence[c.Declare]) -> str:
    """The declaration of a function, without its end; `before` is `static`, or the macro of what is exported."""
    opening = f"{before} {declared(type_, name)}(".lstrip()
    items: list[Pieces] = [[declared(p.type, p.name)] for p in parameters]
    return "\n".join(_set(0, [Group(items, opening, ", ", ")")], ""))


def members(declarations: Sequence[c.Declare]) -> list[str]:
    """The members of a structure, their comments in one column as far as that is not far away."""
    texts = [f"{_head(d)};" for d in declarations]
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
            to += _set(depth, [_head(statement), " = "], "{", note)
            for row in rows:
                plain = row if isinstance(row, c.BracedRow) else c.BracedRow(row)
                _comments(to, depth + 1, (plain.above,) if plain.above else ())
                to += _set(depth + 1, _pieces(plain.value), ",", plain.note)
            _end(to, depth, "};")
        case c.Declare(value=c.Braces(values, members, None), note=note) if members:
            to += _set(depth, [_head(statement), " = ", _items("{", values, "}", members, hangs=True)], ";", note)
        case c.Declare(value=value, note=note):
            given = [] if value is None else [" = ", *_pieces(value)]
            to += _set(depth, [_head(statement), *given], ";", note)
        case c.AssignStatement(target, value, note):
            to += _set(depth, [*_pieces(target), " = ", *_pieces(value)], ";", note)
        case c.Do(value, note):
            to += _set(depth, _pieces(value), ";", note)
        case c.ReturnStatement(value):
            to += _set(depth, ["return"] if value is None else ["return ", *_pieces(value)], ";")
        case c.Break():
            _end(to, depth, "break;")
        case c.IfStatement(test, body, orelse, note):
            to += _set(depth, ["if (", *_pieces(test)], ") {", note)
            _block(to, body, depth + 1)
            if orelse:
                _end(to, depth, "} else {")
                _block(to, orelse, depth + 1)
            _end(to, depth)
        case c.ForStatement(type_, name, start, test, body):
            items: list[Pieces] = [[f"{type_} {name} = ", *_pieces(start)], _pieces(test), [f"++{name}"]]
            to += _set(depth, [Group(items, "for (", "; ", ")")], " {")
            _block(to, body, depth + 1)
            _end(to, depth)
        case c.Enclosed(body) | c.Once(body):
            opening, closing = ("{", "}") if isinstance(statement, c.Enclosed) else ("do {", "} while (0);")
            _end(to, depth, opening)
            _block(to, body, depth + 1)
            _end(to, depth, closing)


def _end(to: list[str], depth: int, brace: str = "}") -> None:
    to.append(f"{' ' * INDENT * depth}{brace}")


def _head(statement: c.Declare) -> str:
    head = declared(statement.type, statement.name, const=statement.const)
    return f"static {head}" if statement.static else head


def _comments(to: list[str], depth: int, found: Sequence[str]) -> None:
    to += (f"{' ' * INDENT * depth}/* {line} */" for line in found)


# ---------------------------------------------------------------- names that are used


def names(statements: Iterable[c.Statement]) -> set[str]:
    """The names that are used, also to set them."""
    return {name for s in _all(statements) for name in _names(s)}


def _names(statement: c.Statement) -> list[str]:
    found: list[str] = []
    for one in (waiting := c.parts(statement)):  # grows
        if type(one) is c.Identifier:
            found.append(one.text)
        elif type(one) is not c.Literal:
            waiting += c.parts(one)
    return found


def _all(statements: Iterable[c.Statement]) -> Iterator[c.Statement]:
    for statement in statements:
        yield statement
        for name in c.block_names(type(statement)):  # type: ignore[arg-type]
            yield from _all(getattr(statement, name))


def kept(statements: Sequence[c.Statement]) -> list[c.Statement]:
    """The statements without optional declarations of unused names, what sets those, and comments above nothing."""
    optional = {s.name for s in _all(statements) if isinstance(s, c.Declare) and s.optional}
    each = [(_sets(s), _names(s)) for s in _all(statements)]  # what a statement sets, and what it mentions
    mentions = by_key((own if own in optional else "", name) for own, found in each for name in found)
    used = reach([""], lambda name: mentions.get(name, ()))  # from what stays in any case
    return _without(statements, optional.difference(used))


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
