"""The printer of generated C: parentheses, types, line breaks, declarations that nothing uses."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable

import pytest

from oic.codegen import c_tree as c
from oic.codegen.c_print import WIDTH, declared, function, kept, lines, members, names, text

A, B, D = c.Identifier("a"), c.Identifier("b"), c.Identifier("d")


def binary(op: str, left: c.Expression, right: c.Expression) -> c.Expression:
    return c.Infix(op, left, right)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (binary("-", binary("-", A, B), D), "a - b - d"),
        (binary("-", A, binary("-", B, D)), "a - (b - d)"),
        (binary("*", binary("+", A, B), D), "(a + b) * d"),
        (binary("+", A, binary("*", B, D)), "a + b * d"),
        (binary("%", binary("*", A, B), D), "a * b % d"),
        (binary("*", A, binary("%", B, D)), "a * (b % d)"),
        (binary("<", binary("+", A, B), D), "a + b < d"),
        (binary("==", binary("<", A, B), D), "(a < b) == d"),
        (binary("&&", binary("<", A, B), binary("==", B, D)), "a < b && b == d"),
        (binary("||", binary("||", A, B), D), "a || b || d"),
        (binary("||", A, binary("&&", B, D)), "a || (b && d)"),
        (c.Conditional(binary("<", A, B), c.Conditional(A, B, D), D), "a < b ? a ? b : d : d"),
        (binary("+", c.Conditional(A, B, D), A), "(a ? b : d) + a"),
        (c.Conversion("float", binary("+", A, B)), "(float)(a + b)"),
        (binary("+", c.Conversion("float", A), B), "(float)a + b"),
        (c.Conversion("int8_t", c.Conversion("uint8_t", A)), "(int8_t)(uint8_t)a"),
        (c.Conversion(c.Pointer("float", const=True), c.Prefix("&", A)), "(const float *)&a"),
        (c.Element(c.Conversion(c.Pointer("float"), A), B), "((float *)a)[b]"),
        (c.Member(c.Prefix("*", A), "x", arrow=False), "(*a).x"),
        (c.Prefix("*", c.Conversion(c.Pointer("float"), A)), "*(float *)a"),
        (c.Prefix("-", c.Prefix("-", A)), "-(-a)"),
        (binary("-", A, c.Prefix("-", B)), "a - -b"),
        (c.Prefix("!", binary("&&", A, B)), "!(a && b)"),
        (c.Prefix("sizeof ", c.Prefix("*", A)), "sizeof *a"),
        (c.sizeof("float"), "sizeof(float)"),
        (c.call("f", 0, -1, binary("+", A, B)), "f(0, -1, a + b)"),
        (c.Prefix("&", c.Braces((A, c.NULL), ("x", "y"), "f_args")), "&(f_args){.x = a, .y = NULL}"),
        (c.Braces((A, B), type=c.Array(c.Pointer("void", const=True)), const=True), "(const void *const[]){a, b}"),
        (c.total(A, c.integer(0), binary("-", B, D)), "a + b - d"),
        (c.times(A, binary("*", B, c.integer(2))), "a * b * 2"),
        (c.joined("&&", (A, B, D)), "a && b && d"),
    ],
)
def test_parentheses(value: c.Expression, shown: str) -> None:
    assert text(value) == shown


def test_printed_arithmetic_means_what_the_tree_does() -> None:
    """Every tree of three operators, read back by a parser of the same precedence."""
    functions: dict[str, Callable[[int, int], int]] = {
        "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.floordiv, "%": operator.mod,
        "<": operator.lt, "==": operator.eq,
    }  # fmt: skip
    leaves = [c.Literal(str(n)) for n in (7, 5, 3, 2)]

    def value(e: c.Expression) -> int:
        if isinstance(e, c.Infix):
            return int(functions[e.op](value(e.left), value(e.right)))
        assert isinstance(e, c.Literal)
        return int(e.text)

    w, x, y, z = leaves
    for p, q, r in itertools.product(functions, repeat=3):
        for tree in (
            binary(r, binary(q, binary(p, w, x), y), z),
            binary(p, w, binary(q, x, binary(r, y, z))),
            binary(q, binary(p, w, x), binary(r, y, z)),
            binary(r, binary(p, w, binary(q, x, y)), z),
        ):
            try:
                wanted = value(tree)
            except ZeroDivisionError:
                continue
            assert int(eval(text(tree).replace("/", "//"))) == wanted, text(tree)


def test_types() -> None:
    assert declared("int64_t", "n", const=True) == "const int64_t n"
    assert declared(c.Pointer("float", const=True), "x", const=True) == "const float *const x"
    assert declared(c.Array(c.Array("float", 4), 3), "K") == "float K[3][4]"
    assert declared(c.Array(c.Pointer("void", const=True)), const=True) == "const void *const[]"
    shown = members([c.Declare("float", "x", note="f32"), c.Declare(c.Pointer("void"), "arena")])
    assert shown == ["float x; /* f32 */", "void *arena;"]


def test_statements() -> None:
    body = c.Body()
    body.add(c.Declare("int64_t", "n", c.integer(0), note="turns"))
    branch = c.IfStatement(binary("<", A, B))
    body.add(branch)
    with body.within(branch.body):
        body.add(c.Comment(("g.oi:1  first",), done=True))
        body.add(c.Comment(("g.oi:2  second",)))
        body.add(c.AssignStatement(c.Identifier("n"), A))
        body.add(c.Comment(("g.oi:3  third",)))
        with body.inside(c.ForStatement("ptrdiff_t", "i", A, binary("<", c.Identifier("i"), B))):
            body.add(c.call("f", c.Identifier("i")))
    with body.within(branch.orelse), body.inside(c.Once()):
        body.add(c.Break())
    rows = (c.BracedRow(c.Braces((A,)), above="first"), c.BracedRow(c.Braces((B,)), note="second"), c.Braces((D,)))
    table = c.Braces(rows, rows=True)
    body.add(c.Declare(c.Array("pair"), "pairs", table, const=True, static=True, note="what"))
    body.add(c.ReturnStatement())
    assert lines(body.statements, 0) == [
        "int64_t n = 0; /* turns */",
        "if (a < b) {",
        "    /* g.oi:1  first */",
        "    /* g.oi:2  second */",
        "    n = a;",
        "",
        "    /* g.oi:3  third */",
        "    for (ptrdiff_t i = a; i < b; ++i) {",
        "        f(i);",
        "    }",
        "} else {",
        "    do {",
        "        break;",
        "    } while (0);",
        "}",
        "static const pair pairs[] = { /* what */",
        "    /* first */",
        "    {a},",
        "    {b}, /* second */",
        "    {d},",
        "};",
        "return;",
    ]


# ---------------------------------------------------------------- lines


def broken(value: c.Expression) -> list[str]:
    found = lines([c.Do(value)])
    assert all(len(line) <= WIDTH for line in found)
    assert " ".join(line.strip() for line in found).replace("){ .", "){.") == f"{text(value)};"
    return found


def test_arguments_go_on_below_the_first() -> None:
    long = [c.Identifier(f"a_rather_long_argument_{i}") for i in range(6)]
    found = broken(c.call("OIC_TRY", c.call("check", *long)))
    assert found[0].startswith("    OIC_TRY(check(a_rather") and found[1].startswith(" " * 18 + "a_rather")


def test_a_struct_goes_on_in_lines_of_its_own() -> None:
    names = tuple(f"a_rather_long_member_{i}" for i in range(6))
    args = c.Prefix("&", c.Braces((A,) * 6, names, "oic_f_args"))
    found = broken(c.call("oic_f", args))
    assert found[0] == "    oic_f(&(oic_f_args){" and found[1].startswith(" " * 8 + ".a_rather")


def test_operands_go_on_below_the_first() -> None:
    value = c.joined("+", (binary("*", c.Identifier(f"a_rather_long_name_{i}"), B) for i in range(6)))
    found = lines([c.AssignStatement(A, value)])
    assert found[0].endswith(" +") and found[1].startswith(" " * 8 + "a_rather") and len(found) == 2


def test_what_fits_nowhere_is_broken_inside() -> None:
    """An argument too long for any line begins where it would, and is broken itself."""
    inner = c.call("inner", *(c.Identifier(f"a_rather_long_argument_{i}") for i in range(6)))
    found = broken(c.call("outer", A, inner))
    assert found[0].startswith("    outer(a, inner(a_rather") and found[1].startswith(" " * 19 + "a_rather")


def test_parameters() -> None:
    assert function("static", "void", "f", (c.Declare(c.Pointer("g", const=True), "x"),)) == "static void f(const g *x)"
    long = function("", "void", "f", [c.Declare("a_rather_long_type", f"x{i}") for i in range(6)])
    assert long.splitlines()[1].startswith(" " * 7 + "a_rather")


# ---------------------------------------------------------------- names


def test_unused_declarations_vanish() -> None:
    body = c.Body()
    body.add(c.Comment(("g.oi:1  op f(a) >> b;",)))
    body.declare("int64_t", "a", c.integer(1))
    body.declare("int64_t", "b", A, note="from a")
    body.declare("int64_t", "d", c.integer(2))
    body.add(c.call("f", c.Member(c.Identifier("s"), "a"), D))  # a member is no variable
    assert lines(body.statements, 0) == ["/* g.oi:1  op f(a) >> b; */", "const int64_t d = 2;", "f(s->a, d);"]
    assert names(body.statements) == {"a", "s", "d"}


def test_comments_above_nothing_vanish() -> None:
    """Unless they say what was done before; one stays above what is below it, another declaration's or a block's."""
    body = c.Body()
    comments = [c.Comment((f"g.oi:{i}",), done=i in (2, 6)) for i in range(8)]
    branch = c.IfStatement(A, [comments[4]], [comments[5], c.Do(c.call("f"))])
    body.statements += [comments[0], c.Declare("int64_t", "n", optional=True), *comments[1:4], branch, *comments[6:]]
    body.add(c.ReturnStatement())
    assert lines(body.statements, 0) == [
        "/* g.oi:2 */", "/* g.oi:3 */", "if (a) {", "} else {", "    /* g.oi:5 */", "    f();", "}", "",
        "/* g.oi:6 */", "return;",
    ]  # fmt: skip


def test_what_sets_an_unused_variable_vanishes_with_it() -> None:
    body = c.Body()
    body.add(c.Declare("int64_t", "n", optional=True))
    body.declare("int64_t", "next", A)
    branch = c.IfStatement(B, [c.Do(c.call("f"))], [c.AssignStatement(c.Identifier("n"), binary("+", c.Identifier("n"), c.Identifier("next")))])
    body.add(branch)
    assert lines(body.statements, 0) == ["if (b) {", "    f();", "}"]
    body.add(c.Declare("int64_t", "kept"))  # one that is not optional
    body.add(c.Do(c.call("g", c.Identifier("n"))))
    assert len(kept(body.statements)) == len(body.statements)
