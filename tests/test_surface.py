"""What a user of the Python package meets first: completion, one-line reprs, tables, errors, narrow terminals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import oic
from oic.diagnostics import Diagnostic, Source, Span
from oic.notebook import MOST_ROWS, table

TEXT = """graph small {
  dynamic { x: f32[2]; n: i32; }
  constant { w: f32[2] @init(1.0); }
  volatile { y: f32[2]; }
  persistent { K(t): f32[2] @table @fixed(t=4); }
  block entry { op mul(x, w) >> y; cache.write y >> K[n]; return; }
}"""


def test_completion_shows_the_interface() -> None:
    shown = [name for name in dir(oic) if not name.startswith("__")]
    assert shown == sorted(shown) and set(shown) == set(oic.__all__) - {"__version__"}
    assert "syntax.tree" not in shown and oic.Refusal.__name__ == "Refusal"


def test_reprs_are_one_line() -> None:
    graph = oic.parse(TEXT)
    model = oic.Model({"w": np.ones(2, np.float32)})
    with oic.Simulator(graph, model).make_executor() as session:
        for value in (graph, model, session):
            assert "\n" not in repr(value) and len(repr(value)) < 120
        assert repr(graph) == "<Graph 'small': 5 variables, 1 block>"


def test_notebooks_get_tables() -> None:
    graph = oic.parse(TEXT)
    model = oic.Model({f"w{i}": np.ones((2, 3), np.float32) for i in range(MOST_ROWS + 5)})
    with oic.Simulator(graph).make_executor() as session:
        shown = session._repr_html_()
    assert ">K(t)</td>" in graph._repr_html_() and "@table @fixed(t=4)" in graph._repr_html_()
    assert ">f32[2, 3]</td>" in model._repr_html_() and f"… {MOST_ROWS + 5} in all" in model._repr_html_()
    assert ">persistent</td>" in shown and ">f32[2]</td>" in shown
    assert "&lt;b&gt;" in table("<b>", (), ())


def test_refusals_share_a_base() -> None:
    with pytest.raises(oic.Refusal):
        oic.parse("graph {")
    with oic.Simulator(oic.parse(TEXT)).make_executor() as session, pytest.raises(oic.Refusal) as refused:
        session.step()
    assert isinstance(refused.value, oic.StepError) and not isinstance(refused.value, oic.OicError)


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("x", np.ones(2), "convert it: x.astype(np.float32)"),
        ("n", np.int64(1), "convert it: n.astype(np.int32)"),
        ("n", np.float64(1), None),
        ("x", np.ones(2, np.int32), None),
    ],
)
def test_the_wrong_width_is_answered(name: str, value: object, hint: str | None) -> None:
    with oic.Simulator(oic.parse(TEXT)).make_executor() as session, pytest.raises(oic.StepError) as refused:
        session.insert({name: value})
    assert refused.value.hint == refused.value.diagnostic().hint == hint
    assert hint is None or f"= hint: {hint}" in str(refused.value)


@pytest.mark.parametrize("column", [0, 30, 200, 480])
@pytest.mark.parametrize("width", [40, 80])
def test_long_lines_are_clipped_around_the_mark(column: int, width: int) -> None:
    line = "".join(chr(97 + i % 26) for i in range(500))
    found = Diagnostic(
        "table-rank", "a message of several words that is longer than forty columns",
        Span(Source("g.oi", line + "\n"), column, column + 9), "one too many", hint="word " * 30,
    )  # fmt: skip
    shown = found.render(width=width).splitlines()
    assert max(map(len, shown)) <= width
    source, marks = (each.partition("| ")[2] for each in shown if "| " in each)
    assert source[marks.index("^") :][:9] == line[column : column + 9] and "^^^^^^^^^ one too many" in marks
    assert "…" in source and max(map(len, found.render().splitlines())) > width
    assert found.render(color=True, width=width).count("\n") == len(shown) - 1


def test_settings_in_quotes_and_without(tmp_path: Path) -> None:
    text = TEXT.replace("op mul(x, w) >> y;", 'op gelu(x, approx=tanh) >> y; op cast(x, to="f32") >> y;')
    with pytest.raises(oic.OicError) as refused:
        oic.Simulator(oic.parse(text))
    hints = [d.hint for d in refused.value.diagnostics]
    assert hints == ['strings have quotes: approx="tanh"', "element types have no quotes: to=f32"]
