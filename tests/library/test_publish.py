"""Folders of generated files go from old to new at once, whatever happens in the middle.

A process is ended, or refused something by the system, at each of its calls that changes files in turn:
`sys.addaudithook` sees every one of them before it is done.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from oic.diagnostics import OicError
from oic.library import publish
from oic.library.publish import staged

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not copied here")

OLD = {"g.h": "old header", "g.weights": "old", "oic/pool.h": "old"}
NEW = {"g.h": "new header", "libg.so": "new", "oic/more.h": "new"}
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "exchange"}
ROOM = {"os.mkdir", "os.link"}
Files = dict[str, str]
KINDS = ("with files of others", "with folders of others", "no links", "a disk of its own")


def listed(files: Files, graph: str = "g") -> Files:
    """The files with the map that lists them."""
    name = f"{graph}.memory.json"
    return files | {name: json.dumps({"files": [*files, name]})}


def switch(folder: Path, files: Files, graph: str = "g") -> None:
    """What a build does with its files."""
    with staged(folder) as stage:
        for name, text in listed(files, graph).items():
            (stage.new / name).parent.mkdir(exist_ok=True)
            (stage.new / name).write_text(text)
        stage.publish(graph, list(listed(files, graph)))


def seen(folder: Path) -> Files:
    """Every file below a folder by its path, but for stages."""
    paths = (p for p in folder.rglob("*") if not p.is_dir() and not p.relative_to(folder).parts[0].startswith(".oic-"))
    return {p.relative_to(folder).as_posix(): p.read_text() for p in paths}


def others(kind: str) -> Files:
    """Files of others in the folder."""
    files = {} if kind == "own" else {"main.c": "mine", "oic/mine.h": "mine", "g.o": "made by make"}
    return files | ({"build/CMakeCache.txt": "mine"} if kind == "with folders of others" else {})


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "no links":
        monkeypatch.setattr(publish, "exchange", lambda a, b: False)
        monkeypatch.setattr(os, "link", refused)
    if request.param == "a disk of its own":
        monkeypatch.setattr(publish, "_is_mount", lambda folder: True)
    return str(request.param)


def refused(*_: object, **__: object) -> None:
    raise OSError(errno.EPERM, "no links here")


def prepared(folder: Path, kind: str) -> None:
    """The folder after an old build, with files of others."""
    switch(folder, OLD)
    for name, text in others(kind).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    if kind != "own":
        (folder / "link").symlink_to("main.c")


def expected(files: Files, kind: str) -> Files:
    return listed(files) | others(kind) | ({} if kind == "own" else {"link": "mine"})


def at_every_change(run: Callable[[], None], happens: Callable[[], None], once: bool) -> Iterator[int]:
    """The exit status of copies of this process, in each of which something happens at one change of files.

    The first at the first change, and so on, until the last one has come to its end undisturbed.
    once   at that change only; else of those that need room on the disk, and at all later ones, too
    """
    for number in range(1, 1000):
        pid = os.fork()
        if pid == 0:
            status, left = 3, [number]
            try:
                _hook(left, happens, once)
                run()
                status = 0 if left[0] > 0 else 1
            except OicError as refusal:
                status = 2 if refusal.diagnostics[0].slug == "output-folder" else 3
            finally:
                os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        yield status
        if status == 0:
            return


def _hook(left: list[int], happens: Callable[[], None], once: bool) -> None:
    exchange = publish.exchange

    def audit(event: str, args: tuple[object, ...]) -> None:
        writing = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if not writing and event not in (CHANGES if once else ROOM):
            return
        left[0] -= 1
        if left[0] == 0 or (left[0] < 0 and not once):
            happens()

    def watched(a: Path, b: Path) -> bool:
        audit("exchange", ())
        return exchange(a, b)

    publish.exchange = watched
    sys.addaudithook(audit)


def end() -> None:
    os._exit(9)


def no_room() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_build_that_is_killed_leaves_old_or_new(tmp_path: Path, kind: str) -> None:
    """At once where the folder is switched in one step; else after the next build has begun."""
    folder, outcomes = tmp_path / "out", set()
    in_one_step = kind == "with files of others"
    prepared(folder, kind)
    before = folder.stat().st_ino
    for status in at_every_change(lambda: switch(folder, NEW), end, once=True):
        assert status in (0, 9)
        if not in_one_step:
            with staged(folder):
                pass
        found = seen(folder)
        assert found in (expected(OLD, kind), expected(NEW, kind))
        outcomes.add((found == expected(NEW, kind), status))
        with staged(folder):
            pass
        assert seen(folder) == found, "what is completed later is the same"
        assert os.listdir(tmp_path) == ["out"], "nothing is left over"
        assert not [n for n in os.listdir(folder) if n.startswith(".")]
        assert folder.stat().st_ino == before, "a shell in the folder goes on"
        switch(folder, OLD)
        assert seen(folder) == expected(OLD, kind)
    assert outcomes == {(False, 9), (True, 9), (True, 0)}


@pytest.mark.parametrize("once", [True, False], ids=["one refusal", "a full disk"])
def test_a_build_without_room_leaves_old_or_new(tmp_path: Path, kind: str, once: bool) -> None:
    folder, outcomes = tmp_path / "out", set()
    prepared(folder, kind)
    for status in at_every_change(lambda: switch(folder, NEW), no_room, once):
        found = seen(folder)
        assert status in (0, 1, 2)
        assert found == expected(OLD if status == 2 else NEW, kind)
        assert once or os.listdir(tmp_path) == ["out"]
        outcomes.add(status)
        switch(folder, OLD)
        assert seen(folder) == expected(OLD, kind)
        assert os.listdir(tmp_path) == ["out"]
    assert {0, 2} <= outcomes


def test_a_first_build_that_is_killed_leaves_nothing_or_all(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "out"
    for status in at_every_change(lambda: switch(folder, NEW), end, once=True):
        assert not folder.exists() or seen(folder) == listed(NEW)
        assert status == 9 or seen(folder) == listed(NEW)
        switch(folder, OLD)
        assert seen(folder) == listed(OLD) and os.listdir(tmp_path / "a") == ["out"]
        for path in sorted(folder.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        folder.rmdir()


def test_a_first_build_that_fails_leaves_no_folders(tmp_path: Path) -> None:
    for status in at_every_change(lambda: switch(tmp_path / "a" / "b" / "out", NEW), no_room, once=False):
        assert os.listdir(tmp_path) == ([] if status == 2 else ["a"])


def test_builds_at_once_all_succeed_and_the_last_one_wins_whole(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "out"
    prepared(folder, kind)
    children = []
    for number in range(4):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                for turn in range(10):
                    switch(folder, {name: f"{number}.{turn}" for name in (NEW, OLD)[turn % 2]})
                status = 0
            finally:
                os._exit(status)
        children.append(pid)
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children] == [0] * 4
    found = seen(folder)
    text = found["g.h"]
    assert found == expected({name: text for name in OLD}, kind), "every process ends with these files"
    assert os.listdir(tmp_path) == ["out"]


def test_readers_never_see_a_mixture(tmp_path: Path) -> None:
    """Who opens the folder once and reads from it sees one build; who opens paths sees whole files."""
    folder, stop, mixed = tmp_path / "out", threading.Event(), []
    prepared(folder, "with files of others")

    def read() -> None:
        while not stop.is_set():
            mixed.append((folder / "main.c").read_text() != "mine")
            mixed.append((folder / "g.h").read_text().split()[0] not in ("old", "new"))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for files in (NEW, OLD) * 20:
            switch(folder, files)
    finally:
        stop.set()
        reader.join()
    assert mixed and not any(mixed)


def test_what_others_make_in_the_middle_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the new folder has the name, and while the old one is aside."""
    folder, exchange = tmp_path / "out", publish.exchange
    prepared(folder, "with files of others")
    aside = os.open(folder, os.O_RDONLY)
    turns = iter(("first", "second"))

    def disturbed(a: Path, b: Path) -> bool:
        turn = next(turns)
        (folder / f"{turn}.txt").write_text("before")
        done = exchange(a, b)
        (folder / f"{turn}-after.txt").write_text("after")
        (folder / f"{turn}-folder").mkdir()
        (folder / f"{turn}-folder" / "x").write_text("x")
        os.close(os.open(f"{turn}-aside", os.O_CREAT | os.O_WRONLY, dir_fd=aside))
        (folder / "edited").write_text(turn)
        (folder / "edited").replace(folder / "main.c")
        return done

    monkeypatch.setattr(publish, "exchange", disturbed)
    switch(folder, NEW)
    found = seen(folder)
    assert found.pop("main.c") == "second" and found.pop("link") == "second"
    for turn in ("first", "second"):
        assert found.pop(f"{turn}.txt") == "before" and found.pop(f"{turn}-after.txt") == "after"
        assert found.pop(f"{turn}-folder/x") == "x" and found.pop(f"{turn}-aside") == ""
    assert found == listed(NEW) | {"oic/mine.h": "mine", "g.o": "made by make"}
    assert os.listdir(tmp_path) == ["out"]


def test_two_graphs_share_a_folder(tmp_path: Path) -> None:
    """Headers that one of them no longer uses stay as long as the other one does."""
    folder = tmp_path / "out"
    switch(folder, OLD)
    other = {"h.h": "other", "oic/pool.h": "old", "oic/conv.h": "old", "Makefile": "m"}
    switch(folder, other, "h")
    switch(folder, NEW)
    assert "oic/pool.h" in seen(folder) and "g.weights" not in seen(folder) and seen(folder)["h.h"] == "other"
    switch(folder, {"h.h": "newer"}, "h")
    assert {"oic/pool.h", "oic/conv.h"}.isdisjoint(seen(folder)) and "oic/more.h" in seen(folder)


@pytest.mark.parametrize(
    "names", [["../precious"], ["/etc/precious"], ["oic/../precious"], [7], "x", {"a": 1}, ["main.c/x"], ["."]], ids=str
)
def test_a_forged_list_removes_nothing_elsewhere(tmp_path: Path, names: object) -> None:
    folder = tmp_path / "out"
    prepared(folder, "with files of others")
    (tmp_path / "precious").write_text("precious")
    (folder / "precious").write_text("precious")
    (folder / "g.memory.json").write_text(json.dumps({"files": names}))
    switch(folder, NEW)
    assert (tmp_path / "precious").read_text() == (folder / "precious").read_text() == "precious"
    assert (folder / "main.c").read_text() == "mine"


def test_links(tmp_path: Path) -> None:
    """A link to the folder is followed; one in the place of a file is replaced, and what it leads to is left."""
    (tmp_path / "precious").write_text("precious")
    prepared(tmp_path / "real", "own")
    (tmp_path / "out").symlink_to("real")
    (tmp_path / "real" / "g.h").unlink()
    (tmp_path / "real" / "g.h").symlink_to("../precious")
    switch(tmp_path / "out", NEW)
    assert (tmp_path / "out").is_symlink() and seen(tmp_path / "real") == listed(NEW)
    assert (tmp_path / "precious").read_text() == "precious"
    assert sorted(os.listdir(tmp_path)) == ["out", "precious", "real"]


@pytest.mark.parametrize("place", ["out", "out/g.h/", "out/oic"])
def test_a_place_that_is_taken(tmp_path: Path, place: str) -> None:
    path = tmp_path / place
    path.parent.mkdir(exist_ok=True)
    if place.endswith("/"):
        path.mkdir()
    elif place == "out/oic":
        (tmp_path / "elsewhere").mkdir()
        path.symlink_to("../elsewhere")
    else:
        path.write_text("")
    before = sorted(str(p) for p in tmp_path.rglob("*"))
    with pytest.raises(OicError, match="output-folder"):
        switch(tmp_path / "out", NEW)
    assert sorted(str(p) for p in tmp_path.rglob("*")) == before


def test_folders_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "circle" / "out", tmp_path / "file" / "out", tmp_path / "a\0b", tmp_path / ("x" * 300)):
        with pytest.raises(OicError, match="output-folder"):
            switch(folder, NEW)
    assert sorted(os.listdir(tmp_path)) == ["circle", "file"]


def test_a_folder_with_a_long_name(tmp_path: Path) -> None:
    for files in (OLD, NEW):
        switch(tmp_path / ("x" * 255), files)
    assert seen(tmp_path / ("x" * 255)) == listed(NEW)
    assert os.listdir(tmp_path) == ["x" * 255]


def test_the_present_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path / "out")
    for files in (OLD, NEW):
        switch(Path(), files)
        assert Path.cwd() == tmp_path / "out" and seen(Path()) == listed(files)
