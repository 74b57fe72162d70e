"""Parts of builds from the cache: the same files, keys of all that counts, and whatever is wrong with the folder."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import oic
from oic.diagnostics import OicError
from oic.library import build as library_build
from oic.library import cache as library_cache
from oic.library.cache import Cache, key_of

GRAPH = "constant { w: f32[33, 8]; b: f32 @init(2.0); } dynamic { x: f32[8]; } volatile { y: f32[33]; }\n"
GRAPH += "block entry { op linear(x, w) >> y; op mul(y, b) >> y; return; }"


def built(folder: Path, value: float = 1.0, threads: int = 1) -> oic.Synthesizer:
    model = oic.Model(tensors={"w": np.full((33, 8), value, np.float32)})
    return oic.Synthesizer(oic.parse(GRAPH, "kept.oi"), model, name="kept", threads=threads).build(folder)


def texts(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted(folder.iterdir()) if p.is_file()}


def test_an_identical_build_is_answered_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OIC_CACHE", str(tmp_path / "cache"))
    calls: list[list[str]] = []
    compiled = library_build.compile_c
    monkeypatch.setattr(library_build, "compile_c", lambda call, *more: (calls.append(call), compiled(call, *more)))
    first = built(tmp_path / "a")
    made = len(calls)
    again = built(tmp_path / "b")
    assert made >= 1 and len(calls) == made
    assert texts(tmp_path / "a") == texts(tmp_path / "b")
    assert first.library.files.figures == again.library.files.figures
    x = np.arange(8, dtype=np.float32)
    with first.make_executor() as one, again.make_executor() as two:
        assert one.step(x=x)["y"].tobytes() == two.step(x=x)["y"].tobytes()

    other = built(tmp_path / "c", 3.0)  # other weights: another fingerprint in the code
    assert len(calls) > made
    with other.make_executor() as executor:
        assert executor.step(x=x)["y"][0] == 6 * x.sum()

    damaged = next((tmp_path / "cache").glob("*/libkept.so"))
    damaged.write_bytes(b"not a library")
    built(tmp_path / "d")
    built(tmp_path / "e", 3.0)
    assert texts(tmp_path / "a") == texts(tmp_path / "d") and texts(tmp_path / "c") == texts(tmp_path / "e")


def test_entries_are_whole_bounded_and_never_in_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, file = Cache(tmp_path / "cache", 1000), tmp_path / "file"
    for number in range(5):
        file.write_bytes(bytes(300))
        cache.put(f"key{number}", file, {"number": number})
        os.utime(cache.folder / f"key{number}" / "entry.json", (number, number))
    assert len(list(cache.folder.iterdir())) <= 3, "what was not used for longest went"
    assert cache.get("key0", tmp_path / "none", dict) is None and not (tmp_path / "none").exists()
    assert cache.get("key4", tmp_path / "to", dict) == {"number": 4} and (tmp_path / "to").read_bytes() == bytes(300)
    file.write_bytes(bytes(600))
    cache.put("large", file, {})
    assert cache.get("large", tmp_path / "large", dict) is None

    (cache.folder / "key4" / "file").write_bytes(b"changed")
    assert cache.get("key4", tmp_path / "changed", dict) is None and not (cache.folder / "key4").exists()
    for text in ("[]", "[" * 100_000):
        (cache.folder / "bad").mkdir()
        (cache.folder / "bad" / "entry.json").write_text(text)
        assert cache.get("bad", tmp_path / "bad", dict) is None and not (cache.folder / "bad").exists()
    shutil.rmtree(cache.folder)
    cache.folder.write_text("a file")
    file.write_bytes(b"1")
    cache.put("key", file, {})
    assert cache.get("key", tmp_path / "gone", dict) is None


@pytest.mark.parametrize("notes", [[], [1], "x", None, float("inf"), {"stack": 3}, {"stack": {"f": 1}}], ids=str)
def test_notes_that_are_forged_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, notes: object) -> None:
    monkeypatch.setenv("OIC_CACHE", str(tmp_path / "cache"))
    built(tmp_path / "a")
    entries = list((tmp_path / "cache").glob("*/entry.json"))
    kept = [json.loads(entry.read_text()) for entry in entries]
    for entry, found in zip(entries, kept, strict=True):
        entry.write_text(json.dumps(found | {"notes": notes}))
    built(tmp_path / "b")
    assert texts(tmp_path / "a") == texts(tmp_path / "b")
    again = (json.loads(entry.read_text())["notes"] for entry in entries)
    assert list(again) == [found["notes"] for found in kept]


def test_what_ended_processes_left_counts_and_goes(tmp_path: Path) -> None:
    """A build that is killed leaves the entry that it was making or removing."""
    cache, file = Cache(tmp_path / "cache", 1000), tmp_path / "file"
    file.write_bytes(bytes(100))
    for name in (".new-a", ".old-b", "of others"):
        (cache.folder / name).mkdir(parents=True)
        (cache.folder / name / "file").write_bytes(bytes(900))
        os.utime(cache.folder / name, (1, 1))
    cache.put("key", file, {})
    assert sorted(p.name for p in cache.folder.iterdir()) == ["key", "of others"]


def test_an_entry_in_the_making_is_no_others_to_remove(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other builds fill the cache, again and again, while one puts its file there."""
    cache, file, others = Cache(tmp_path / "cache", 1000), tmp_path / "file", ["a", "b", "c", "d"]
    file.write_bytes(bytes(400))
    at_once = library_cache._second_name

    def slow(file: Path, to: Path, most: int | None = None) -> None:
        at_once(file, to, most)
        while others:
            cache.put(others.pop(), file, {})

    monkeypatch.setattr(library_cache, "_second_name", slow)
    cache.put("key", file, {})
    assert cache.get("key", tmp_path / "to", dict) == {}


def test_a_large_file_has_a_second_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library_cache, "LARGE", 100)
    cache, file = Cache(tmp_path / "cache"), tmp_path / "file"
    file.write_bytes(bytes(200))
    cache.put("key", file, {})
    assert cache.get("key", tmp_path / "to", dict) == {}
    assert (tmp_path / "to").samefile(cache.folder / "key" / "file") and (tmp_path / "to").samefile(file)
    file.write_bytes(bytes(201))  # one of its names is written to
    assert cache.get("key", tmp_path / "again", dict) is None


def test_the_environment_says_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OIC_CACHE", "off")
    assert Cache.of_user() is None
    monkeypatch.setenv("OIC_CACHE", str(tmp_path))
    monkeypatch.setenv("OIC_CACHE_SIZE", "2m")
    assert Cache.of_user() == Cache(tmp_path, 2 << 20)
    monkeypatch.delenv("OIC_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    for wrong in ("much", "-1", "0x10", "nan"):
        monkeypatch.setenv("OIC_CACHE_SIZE", wrong)
        with pytest.raises(OicError, match=f"OIC_CACHE_SIZE={wrong} is no number of bytes"):
            Cache.of_user()
    monkeypatch.setenv("OIC_CACHE_SIZE", "")
    monkeypatch.setattr("sys.platform", "linux")
    assert Cache.of_user() == Cache(Path("/x/oic"))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert Cache.of_user() is None
    assert key_of("a", "bc") != key_of("ab", "c") != key_of(b"ab", b"c", b"")
