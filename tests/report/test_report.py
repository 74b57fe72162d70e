"""The memory map as JSON and as a picture."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from codegen import programs
from oic.check.source import parse
from oic.diagnostics import OicError
from oic.driver import Settings, compile_graph
from oic.dtypes import f32
from oic.ir.types import StateIndex, StateType
from oic.library.emit import LibrarySpec, emit
from oic.memory.map import KINDS
from oic.report.html import _used
from oic.toolchain.target import target
from tests.fuzz.generate import Options, generate


def written(name: str, folder: Path) -> tuple[dict[str, Any], str]:
    """The JSON and the page of a program."""
    files = programs.files(name, folder)
    content = json.loads((folder / f"{files.name}.memory.json").read_text(encoding="utf-8"))
    return content, (folder / f"{files.name}.report.html").read_text(encoding="utf-8")


class Page(HTMLParser):
    """Checks that elements nest, and collects them."""

    EMPTY = {"meta", "rect", "line", "path", "polyline"}

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.titles: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in self.EMPTY or (tag == "rect" and not self.get_starttag_text().endswith("/>")):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "title":
            self.titles.append(data)


@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_the_map_has_every_buffer_and_value(name: str, tmp_path: Path) -> None:
    content, _ = written(name, tmp_path)
    plan = programs.planned(name).plan
    assert plan is not None and content["version"] == 2 and content["compiled"] is None
    assert sum(len(b) for b in content["spaces"].values()) == len(plan.buffers)
    names = {(v["function"], v["name"]) for v in content["values"]}
    for buffers in content["spaces"].values():
        for b in buffers:
            assert all((b["function"], v) in names for v in b["values"])
            assert b["kind"] in KINDS or b["kind"] in ("state", "weights")
    for v in content["state"]:
        assert v["offset"] + v["bytes"] <= content["state_bytes"] and len(v["strides"]) == len(v["shape"])
        assert all(i["count"] is None or any(s["name"] == i["count"] for s in content["state"]) for i in v["indices"])
    assert content["functions"].keys() == content["arena_bytes"].keys()


def test_the_map_has_a_line_for_each_entry(tmp_path: Path) -> None:
    content, _ = written("table", tmp_path)
    lines = [line.strip().rstrip(",") for line in (tmp_path / "table.memory.json").read_text(encoding="utf-8").splitlines()]
    entries = [e for key in ("values", "stores", "state", "weights") for e in content[key]]
    entries += [buffer for buffers in content["spaces"].values() for buffer in buffers]
    entries += [span for function in content["functions"].values() for span in function["spans"]]
    assert {json.dumps(entry, ensure_ascii=False) for entry in entries} <= set(lines)
    assert {json.dumps(name) for name in content["files"]} | {f'"state_bytes": {content["state_bytes"]}'} <= set(lines)


def test_the_map_of_a_compiled_library(tmp_path: Path) -> None:
    programs.executor("table", tmp_path).close()
    content = json.loads((tmp_path / "table.memory.json").read_text(encoding="utf-8"))
    step = content["compiled"]["stack"]["table_step"]
    assert step["bytes"] > 0 and step["path"][0] == "table_step" and content["compiled"]["compiler"]
    (table,) = (v for v in content["state"] if v["name"] == "K")
    assert table["shape"] == [3, 8, 2] and table["strides"] == [16, 2, 1] and table["line"] == 4
    assert [(i["name"], i["capacity"], i["bound"], i["grows"]) for i in table["indices"]] == [
        ("l", 3, "fixed", False), ("t", 8, "fixed", True),
    ]  # fmt: skip


@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_the_page_stands_alone(name: str, tmp_path: Path) -> None:
    """Valid, without a network, every class of the picture has a colour, every box a text."""
    _, text = written(name, tmp_path)
    page = Page(text)
    assert not [a for _, attributes in page.found for a in attributes if a in ("src", "href", "onload")]
    assert "url(" not in text and "http" not in text and "@import" not in text
    style = text.partition("<style>")[2].partition("</style>")[0]
    for tag, attributes in page.found:
        for one in (attributes.get("class") or "").split() if tag == "rect" else ():
            assert f".{one} " in style, one
        if tag == "rect":
            assert float(attributes["width"] or 0) > 0 and float(attributes["height"] or 0) > 0


def test_the_page_shows_what_is_asked(tmp_path: Path) -> None:
    _, text = written("table", tmp_path)
    titles = "\n".join(Page(text).titles)
    assert "line 9: cache.write h >> K[l, pos..pos+N];" not in titles  # it makes no value
    assert ("line 7: transfer x >> h;" in titles and "(carried)" in titles) or "(value)" in titles
    for word in ("state, empty", "state, half full", "state, full", "lower bound", "loop layers (line 8)"):
        assert word in text, word
    assert re.search(r"K: state<.*>\n96 of 192 bytes in use\nline 4: persistent", titles.replace("&gt;", ">"))


@pytest.mark.parametrize("seed", range(6))
def test_pictures_of_random_graphs(seed: int, tmp_path: Path) -> None:
    """Every value in the arena has its box, inside the picture."""
    try:
        program = compile_graph(parse(generate(seed, Options(statements=60)), "random.oi"), None, Settings())
    except OicError:
        pytest.skip("the language refuses it")
    files = emit(LibrarySpec(program.planned, target("portable")), tmp_path)
    page = Page((tmp_path / f"{files.name}.report.html").read_text(encoding="utf-8"))
    content = json.loads((tmp_path / f"{files.name}.memory.json").read_text(encoding="utf-8"))
    drawn = {title.partition(":")[0] for title in page.titles}
    missing = [v["name"] for v in content["values"] if v["space"] == "arena" and v["kind"] != "view"
               and v["name"] not in drawn]  # fmt: skip
    assert missing == []
    width = 0.0
    for tag, attributes in page.found:
        if tag == "svg":
            width = float(attributes["width"] or 0)
        if tag == "rect":
            assert 0 <= float(attributes["x"] or 0) <= float(attributes["x"] or 0) + float(attributes["width"] or 0) <= width


def test_entries_in_use() -> None:
    """Bytes of K(l, t): f32[4] for 3 layers and 8 rows, as stripes of each layer."""
    indices = (StateIndex("l", 3, True), StateIndex("t", 8, True))
    table = StateType(f32, (4,), indices)
    assert _used(table, 384, 0.0) == []
    assert _used(table, 384, 0.5) == [(0, 64), (128, 64), (256, 64)]
    assert _used(table, 384, 1.0) == [(0, 384)]
    grown = StateType(f32, (4,), (StateIndex("u", 3, True), StateIndex("k", 8, False)))
    assert _used(grown, 384, 0.5) == [(0, 64), (128, 64), (256, 64)]
    assert _used(StateType(f32, (4,)), 16, 0.0) == [(0, 16)]
    ring = StateType(f32, (4,), (StateIndex("t", 8, True),), ring=True)
    assert _used(ring, 256, 0.5) == [(0, 64), (128, 64)]
    matrix = StateType(f32, (1, 2), auto=(StateIndex("r", 3, False), StateIndex("c", 6, False)))
    assert _used(matrix, 128, 0.0) == [(0, 8)]  # rows of 8 elements
    assert _used(matrix, 128, 0.5) == [(0, 20), (32, 20), (64, 20)]
    assert _used(matrix, 128, 1.0) == [(0, 128)]
    endless = StateType(f32, (), (StateIndex("t", 1 << 30, False, True),))
    assert _used(endless, 4 << 30, 0.5) == [(0, 2 << 30)]


def test_the_arena_has_one_size(tmp_path: Path) -> None:
    """In header, map and report, also where no entry needs any."""
    for name in ("counter", "growing"):
        files = programs.files(name, tmp_path / name)
        content = json.loads((files.folder / f"{name}.memory.json").read_text(encoding="utf-8"))
        assert content["arena"] == files.unit.arena_bytes == max(64, *content["arena_bytes"].values())
        header = (files.folder / f"{name}.h").read_text(encoding="utf-8")
        assert re.search(rf"_ARENA_BYTES {content['arena']}\b", header)
        page = (files.folder / f"{name}.report.html").read_text(encoding="utf-8")
        assert f"{content['arena']:,}" in page
