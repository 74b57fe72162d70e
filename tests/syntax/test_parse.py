"""Parsing: every construct, exact spans, and texts that are easily misread."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import pytest

from oic.check.source import parse
from oic.diagnostics import OicError, Source, Span
from oic.syntax import tables
from oic.syntax import tree as s
from oic.syntax.parse import parse_all
from oic.syntax.unparse import unparse
from paths import conformance_dir, needs_conformance

EVERYTHING = """
graph everything { // a comment
  sizes { H = 8; Dh = D / (H - 2); }
  dynamic { x: f32[B, D]; tokens: i32[N] @max(N=512); flag: bool; }
  constant {
    W(l): f32[D, 2*D] @pattern("W.{l}", "w.{l}.weight");
    V(l): f32[D] pattern("V.{l}");
    alpha: f32 @ref("leak") @init(-1.5);
  }
  volatile { y: f32[]; z: f32[?]; }
  persistent {
    step: i32 @init(-1);
    K(l, t): f16[H, Dh] @table @fixed(t=1024) @ring(t);
    M(r, c): f16[D, H] @auto_dim(r, c);
  }
  block entry {
    assign h: f32[B, D];
    op matmul(h, W[l + 1], 2, -0.5, true, alpha=-0.5, axes=[-1, 0], mode="x", on=true, acc=i32, bias=W[0]) >> h, y;
    transfer x >> h;
    loop layers (l in 0..num_layers * 2) { op relu(h) >> h; return; }
    branch flag yes no;
    branch yes;
    barrier;
    dep after(matmul) before(cache.read);
    yield x, y;
    await x, y;
    cache.read K[0, 1..] >> h;
    cache.write h >> K[l, pos..pos+N];
    cache.increment step;
    cache.increment 2 step;
    cache.decrement N * 2 + pos step;
    cache.reset K[];
    return;
  }
  block yes { }
  block no @entry(N=1) { return; /* nested /* comments */ */ }
}
"""


def nodes(value: Any) -> Iterator[Any]:
    """A node and all below it."""
    if isinstance(value, tuple):
        for item in value:
            yield from nodes(item)
    elif dataclasses.is_dataclass(value) and not isinstance(value, Span | Source):
        yield value
        for field in dataclasses.fields(value):
            yield from nodes(getattr(value, field.name))


def statement(text: str) -> Any:
    """The first statement of a block."""
    return parse("block entry { " + text + " }").blocks[0].body[0]


def declaration(text: str) -> s.Declaration:
    return parse("persistent { " + text + " }").declarations[0]


def access(text: str) -> s.Access:
    read = statement(f"cache.read {text} >> x;")
    assert isinstance(read, s.CacheRead)
    return read.source


def setting(text: str) -> Any:
    return statement(f"op f(key={text}) >> x;").keywords[0].value


def written(expr: Any) -> Any:
    """An expression as nested tuples, a slice as a pair, whatever its spans."""
    match expr:
        case s.Int(value):
            return value
        case s.Name(name):
            return name
        case s.Unary(operand):
            return ("-", written(operand))
        case s.Binary(op, left, right):
            return (written(left), op, written(right))
        case s.Slice(start, end):
            return [written(start), written(end)]
    return expr


def test_every_construct() -> None:
    graph = parse(EVERYTHING)
    assert graph.name == "everything"
    assert [d.name for d in graph.sizes] == ["H", "Dh"]
    assert [d.kind for d in graph.declarations] == (
        ["dynamic"] * 3 + ["constant"] * 3 + ["volatile"] * 2 + ["persistent"] * 3
    )
    assert [type(x).__name__ for x in graph.blocks[0].body] == [
        *("Assign", "OpCall", "Transfer", "Loop", "Branch", "Branch", "Barrier", "Dep", "Yield"),
        *("Await", "CacheRead", "CacheWrite", "CacheStep", "CacheStep", "CacheStep", "CacheReset"),
        "Return",
    ]
    assert next(d for d in graph.declarations if d.name == "V").attributes[0].name == "pattern"
    assert next(b for b in graph.blocks if b.name == "no").attributes[0].args[0].key == "N"


def test_spans_cover_their_nodes() -> None:
    """Every span lies in the text, inside its parent's, and starts and ends on a printed sign."""
    graph = parse(EVERYTHING)
    for node in nodes(graph):
        text = node.span.text
        assert text and text == text.strip(), node
        for field in dataclasses.fields(node):
            for inner in nodes(getattr(node, field.name)):
                assert node.span.start <= inner.span.start <= inner.span.end <= node.span.end


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        (s.Name, {"flag": True, "yes": True, "layers": False}),
        (s.Transfer, {"transfer x >> h;": True}),
        (s.CacheStep, {"cache.decrement N * 2 + pos step;": True}),
        (s.Argument, {"t=1024": True, '"W.{l}"': True}),
        (s.Slice, {"1..": True, "pos..pos+N": True}),
        (s.Keyword, {"alpha=-0.5": True, "axes=[-1, 0]": True}),
        (s.SizeDef, {"H = 8;": True}),
        (s.Unknown, {"?": True}),
    ],
)
def test_spans_are_exact(kind: type[s.SyntaxNode], texts: dict[str, bool]) -> None:
    found = {node.span.text for node in nodes(parse(EVERYTHING)) if isinstance(node, kind)}
    for text, there in texts.items():
        assert (text in found) == there


def test_spans_of_a_declaration() -> None:
    d = declaration("K(l, t): f16[H, Dh] @table @fixed(t=8);")
    assert d.span.text == "K(l, t): f16[H, Dh] @table @fixed(t=8)"
    assert d.head_span.text == "K(l, t)"
    assert (d.name_span.text, d.dtype_span.text, d.type_span.text) == ("K", "f16", "f16[H, Dh]")
    assert [a.name_span.text for a in d.attributes] == ["table", "fixed"]


def test_spans_of_a_group() -> None:
    amount = statement("cache.increment (a + b) * c s;").amount
    assert amount.span.text == "(a + b) * c"
    assert amount.left.span.text == "(a + b)"


def test_span_of_a_loop_head() -> None:
    assert statement("loop l (i in 0..3) { return; }").head_span.text == "loop l (i in 0..3)"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("block entry { }", "file"),
        ("graph! { block entry { } }", "file"),
        ("graph other { block entry { } }", "other"),
        ("", "file"),
        ("\ufeff// only a comment", "file"),
    ],
)
def test_wrappings(text: str, name: str) -> None:
    assert parse(text, "some/where/file.oi").name == name


@pytest.mark.parametrize(
    ("text", "indices"),
    [
        ("K", None),
        ("K[]", ()),
        ("K[2]", (2,)),
        ("K[2,]", (2, [None, None])),
        ("K[,]", ([None, None], [None, None])),
        ("K[,2]", ([None, None], 2)),
        ("K[2,,3]", (2, [None, None], 3)),
        ("K[..]", ([None, None],)),
        ("K[-3..]", ([("-", 3), None],)),
        ("K[7..]", ([7, None],)),
        ("K[7..9]", ([7, 9],)),
        ("K[..-1]", ([None, ("-", 1)],)),
        ("K[pos..pos+N]", (["pos", ("pos", "+", "N")],)),
        ("K[op, loop..block]", ("op", ["loop", "block"])),
    ],
)
def test_accesses(text: str, indices: tuple[Any, ...] | None) -> None:
    found = access(text)
    assert found.span.text == text
    given = None if found.indices is None else tuple(written(i) for i in found.indices)
    assert given == indices


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a + b * c", ("a", "+", ("b", "*", "c"))),
        ("a - b - c", (("a", "-", "b"), "-", "c")),
        ("(a + b) / c", (("a", "+", "b"), "/", "c")),
        ("-a * b", (("-", "a"), "*", "b")),
        ("--1", ("-", ("-", 1))),
        ("0x1F", 31),
        ("0b1_01", 5),
        ("0o17", 15),
        ("1_000", 1000),
    ],
)
def test_expressions(text: str, value: Any) -> None:
    assert written(statement(f"cache.increment {text} s;").amount) == value


@pytest.mark.parametrize(
    ("text", "amount", "target"),
    [
        ("s", None, "s"),
        ("2 s", 2, "s"),
        ("N s", "N", "s"),
        ("N*2+pos s", (("N", "*", 2), "+", "pos"), "s"),
        ("(n) s", "n", "s"),
        ("-1 s", ("-", 1), "s"),
        ("s[0]", None, "s[0]"),
        ("n s[0]", "n", "s[0]"),
    ],
)
def test_increment_amounts(text: str, amount: Any, target: str) -> None:
    step = statement(f"cache.increment {text};")
    assert written(step.amount) == amount
    assert step.target.span.text == target


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7.", 7.0),
        ("7.5", 7.5),
        ("1e3", 1000.0),
        ("1.5e-3", 0.0015),
        ("1_000.5", 1000.5),
        ("-0.5", -0.5),
        ("inf", math.inf),
        ("-inf", -math.inf),
        ("-3", -3),
        ("true", True),
        ("false", False),
        ('"a\\n\\"b\\""', 'a\n"b"'),
        ('"// no comment /* here"', "// no comment /* here"),
    ],
)
def test_literals(text: str, value: object) -> None:
    found = setting(text)
    assert not isinstance(found, s.Unary)
    assert found.value == value and type(found.value) is type(value)
    assert found.span.text == text


def test_nan() -> None:
    assert math.isnan(setting("nan").value)


def test_lists() -> None:
    found = setting("[1, -2, [x], 0.5]")
    assert isinstance(found, s.ListOf)
    assert [type(item) for item in found.items] == [s.Int, s.Int, s.ListOf, s.Float]
    assert setting("[]").items == ()


def test_lists_may_end_in_a_comma() -> None:
    """All lists but those of an access, where `[2,]` is a full slice behind the 2."""
    text = """dynamic { x: f32[N%s] @max(N=4%s); } constant { W(l%s): f32 @ref(a, "b"%s); }
    block a @entry(N=1%s) { op f(x, 2%s) >> y, z%s; op g(x, k=[1, [2%s]%s]%s) >> y; yield x%s; await x, y%s; }"""
    holes = text.count("%s")
    plain, ended = text % (("",) * holes), text % ((",",) * holes)
    assert unparse(parse(ended)) == unparse(parse(plain))
    for empty in ("op f(,) >> y;", "op f(x,,) >> y;", "op f(x) >> ,;", "yield ,;"):
        with pytest.raises(OicError):
            parse(f"block a {{ {empty} }}")


def test_literals_are_operands() -> None:
    call = parse("block a { op f(x, 2, -3, 0x10, -0.5, inf, -nan, true, W[1], k=2) >> y; }").blocks[0].body[0]
    assert isinstance(call, s.OpCall)
    assert [type(o).__name__ for o in call.operands] == [
        "Access", "Int", "Int", "Int", "Float", "Float", "Float", "Bool", "Access"
    ]  # fmt: skip
    assert [o.value for o in call.operands[1:5]] == [2, -3, 16, -0.5]  # type: ignore[union-attr]
    assert call.operands[2].span.text == "-3"
    (error,) = parse_all('block entry { op add(x, "a") >> y; }').errors
    assert error.message == """expected an operand or ')', found '"a"'"""


def test_keywords_are_names_elsewhere() -> None:
    """A keyword is reserved only where it starts a statement or a section."""
    words = ["op", "block", "graph", "loop", "in", "return", "volatile", "sizes", "pattern"]
    words += ["inf", "true", "cache", "after"]
    for word in words:
        text = f"volatile {{ {word}: f32[{word}]; }} block {word} {{ op {word}({word}) >> {word}; "
        text += f"transfer {word} >> {word}; loop {word} ({word} in {word}..{word}) {{ }} }}"
        graph = parse(text)
        assert graph.declarations[0].name == word
        call = graph.blocks[0].body[0]
        assert isinstance(call, s.OpCall) and call.name == word
    assert parse("persistent { A(inf): f32 @fixed(inf=3); }").declarations[0].attributes[0].args


def test_attribute_forms() -> None:
    bare, called = parse("block a @entry { } block b @entry() { }").blocks
    assert (bare.attributes[0].parens, called.attributes[0].parens) == (False, True)


@pytest.mark.parametrize(
    ("text", "slugs"),
    [
        ("block entry { op f(a, a + b) >> b; cache.incremnt s; }", ["syntax", "unknown-statement"]),
        ("volatile { a f32; b: f32; c: f32 }", ["syntax", "missing-semicolon"]),
        ("block entry { return }\nblock other { return }", ["missing-semicolon"] * 2),
        ("block entry { branch a\n op f(x) >> y; }", ["missing-semicolon"]),
        ("graph g { block entry { loop l (i in 0..3) { block b { } }", ["unclosed-brace"]),
        ("block entry { return; } }", ["syntax"]),
        ("block entry  return; }", ["syntax"]),
        ("block entry { cache.increment [3] s; }", ["syntax"]),
        ("block entry { branch; yield; }", ["syntax", "syntax"]),
    ],
)
def test_several_errors(text: str, slugs: list[str]) -> None:
    assert [e.slug for e in parse_all(text).errors] == slugs


def test_error_is_where_the_mistake_is() -> None:
    with pytest.raises(OicError) as caught:
        parse("volatile { x: f32; }\nblock entry {\n  op relu(x) >> x\n  return;\n}\n", "a.oi")
    (error,) = caught.value.diagnostics
    assert str(error.span) == "a.oi:3:18"


def test_a_repaired_text_still_gives_a_graph() -> None:
    parsed = parse_all("block entry { transfer a >> b return; } volatile { a: f32 b: f32; }")
    assert len(parsed.errors) == 2
    assert parsed.graph is not None and len(parsed.graph.declarations) == 2


def test_deep_expressions_are_refused() -> None:
    for text in ("(" * 5000 + "1" + ")" * 5000, "-" * 5000 + "1", "1" + "+1" * 5000):
        parsed = parse_all("block entry { cache.increment " + text + " s; }")
        assert {e.slug for e in parsed.errors} <= {"nesting-depth"}
    parsed = parse_all("block entry { op f(a=" + "[" * 5000 + "]" * 5000 + ") >> x; }")
    assert {e.slug for e in parsed.errors} == {"nesting-depth"}


@pytest.mark.parametrize("depth", [33, 40, 70, 500])
def test_loops_nested_too_deep_are_named_once_from_the_outside(depth: int) -> None:
    nests = [" ".join(f"loop {tag}{i} (i{i} in 0..1) {{" for i in range(depth)) + "}" * depth for tag in "ab"]
    (error,) = parse_all(f"block entry {{ {nests[0]} {nests[1]} }}").errors
    assert error.span is not None and error.span.text == nests[0]


@pytest.mark.parametrize(
    "text", ["-" * 350 + "1", "(" * 90 + "-" * 250 + "1" + " * 2)" * 90 + " * 2", "1" + "+1" * 350], ids=("signs", "both", "sum")
)
def test_expressions_nested_too_deep_are_named_once_from_the_outside(text: str) -> None:
    for around in ("block entry {{ cache.increment {} s; }}", "block entry {{ op f(a=[2, {}]) >> x; op f(a={}) >> x; }}"):
        (error,) = parse_all(around.format(text, text)).errors
        assert error.span is not None and error.span.text in (text, f"[2, {text}]")


def test_what_is_left_out_as_too_deep_lends_its_depth_to_nothing() -> None:
    text = f"block entry {{ loop l (i in 0..{'-' * 20_000}1) {{ op f(x) >> y; }} }}"
    assert [error.message for error in parse_all(text).errors] == ["expression is nested more than 100 deep"]


def test_every_kind_of_line_end_ends_a_line() -> None:
    text = "// one\nblock entry {\n  op f(x) >> ;\n}\n"
    said = {str(parse_all(text.replace("\n", end)).errors[0].span) for end in ("\n", "\r\n", "\r")}
    assert said == {"graph.oi:3:14"}


def test_tables_survive_a_cache_that_cannot_be_used(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No folder to write to, and a file that is damaged, cost time and nothing else."""
    (tmp_path / "file").write_text("in the way")
    for root in (tmp_path / "file", tmp_path / "fresh"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(root))
        tables.parser.cache_clear()
        assert parse("block entry { }").blocks
    (stored,) = (tmp_path / "fresh" / "oic").iterdir()
    stored.write_bytes(stored.read_bytes()[:1000])
    tables.parser.cache_clear()
    assert parse("block entry { }").blocks
    tables.parser.cache_clear()


@needs_conformance
def test_conformance_graphs_parse() -> None:
    folder = conformance_dir()
    assert folder is not None
    refused = set()
    for path in sorted(folder.glob("openinfer/*/graph.oi")):
        try:
            parse(path.read_text(encoding="utf-8"), path.name)
        except OicError:
            refused.add(path.parent.name)
    assert refused <= {
        "err_branch_one_target",
        "err_missing_semicolon",
        "err_setting_before_input",
        "err_unknown_node",
    }


def test_statements_are_named_together() -> None:
    found = parse_all("graph g { block entry { : return; } }").errors
    assert [error.message for error in found] == ["expected a statement or '}', found ':'"]
