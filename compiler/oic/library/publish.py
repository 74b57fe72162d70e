"""Generated files change from old to new at once: they are made aside, and then switched.

    .out.oic-k3v9x1qz/      a stage, private to one build: beside the folder, or in it (`.oic-…`)
        new/                where files are made and compiled
        switch.json         what is being switched, from before its first effect until after its last
        old/                what is replaced, as long as files are switched one by one

A folder that is not there is the stage's `new`, renamed.  One that is there keeps its identity (a
shell in it goes on) and all that is not of a build: `new` takes links to its other files, and the
two folders exchange their names in one step; then the new files are linked into the folder that was
there, and it takes its name back.  At every moment the name leads to old files or new files, whole.

Where that cannot be (folders of others inside, a mount point, a system without the call), files are
renamed one by one.  A process that ends in the middle leaves `switch.json`, by which the next
build into the folder takes the switch back, or where it was one step, completes it; until then,
fingerprints tell old and new apart.

A stage is locked while its process lives, and one that is not locked is left over.  Loss of power
is another matter: nothing is forced to the disk.
"""

import ctypes
import errno
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from oic.diagnostics import fail

try:
    import fcntl
except ImportError:  # Windows: no locks, so what a killed build leaves is not tidied up
    fcntl = None  # type: ignore[assignment]

HEADERS = "oic"  # the one folder among the files of a build
MOST_LINKS = 1000  # files of others that a folder may have to be switched in one step
NOTE = "switch.json"
NAME = re.compile(rf"({HEADERS}/)?[A-Za-z0-9_][A-Za-z0-9_.]*")  # of a file of a build


@dataclass(frozen=True)
class Switch:
    """What `switch.json` says.

    names   the files of the new build, by path in the folder
    stale   files of earlier builds of the graph that the new one does not have
    kept    those of both that were there, where files are switched one by one
    folder  of an exchange, the number (inode) of the folder that was there; else 0
    """

    names: tuple[str, ...]
    stale: tuple[str, ...]
    kept: tuple[str, ...] = ()
    folder: int = 0


@dataclass(frozen=True)
class Stage:
    """A place to make files in that are meant for a folder.

    shown   the folder as the user named it
    target  where that is
    """

    shown: Path
    target: Path
    root: Path

    @property
    def new(self) -> Path:
        """Where the files are made."""
        return self.root / "new"

    def publish(self, graph: str, names: Sequence[str]) -> None:
        """Switch the folder to the files made, all of them, or raise OSError with nothing changed.

        graph   the name under which an earlier build listed its files
        names   of all files, by path in the folder
        """
        assert all(NAME.fullmatch(name) for name in names)
        with _locked(self.target):
            _recover(self.target)
            if not os.path.lexists(self.target):
                self.new.rename(self.target)
                return
            _require_places(self.target, names)
            stale = _stale(self.target, graph, names)
            if self.root.parent != self.target and _link_others(self.target, self.new, {*names, *stale}):
                switch = Switch(tuple(names), tuple(stale), folder=self.target.stat().st_ino)
                _note(self.root, switch)
                if exchange(self.new, self.target):
                    _settle(self.root, self.target, switch)
                    return
                (self.root / NOTE).unlink()
            _switch_files(self.root, self.target, tuple(names), tuple(stale))


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """What the system refuses of files at a place is OicError `output-folder`."""
    try:
        yield
    except OSError as failure:
        raise fail("output-folder", f"{path} cannot be written: {failure.strerror or failure}") from failure


@contextmanager
def staged(out_dir: str | Path) -> Iterator[Stage]:
    """A stage for a folder, which need not exist; removed afterwards.

    Raises OicError `output-folder` for whatever the system refuses, in the `with` block too.
    """
    try:
        target = Path(out_dir).resolve()
    except (OSError, RuntimeError, ValueError) as failure:  # links in a circle, a zero in the name
        raise fail("output-folder", f"{str(out_dir)!r} cannot be written: {failure}") from failure
    made = [p for p in target.parents if not os.path.lexists(p)]
    try:
        with writing(out_dir):
            root, lock = _stage(target)
            try:
                (root / "new").mkdir()
                yield Stage(Path(out_dir), target, root)
            finally:
                _unlock(lock)
                _discard(root)
    finally:
        for parent in made:
            with suppress(OSError):  # there is something in it
                parent.rmdir()


# ---------------------------------------------------------------- stages


def _stage(target: Path) -> tuple[Path, int | None]:
    """A new folder on the disk of the target, and its lock: beside it, or in it where it is a disk of its own."""
    for _ in range(100):  # a build that fails takes the parents away that it made
        target.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError), _locked(target):
            _recover(target)
            root = _new_folder(target)
            return root, _lock(root, wait=False)
    raise FileNotFoundError(errno.ENOENT, "folders vanish", str(target.parent))


def _new_folder(target: Path) -> Path:
    if not target.is_dir() or not _is_mount(target):
        with suppress(*([PermissionError] if target.is_dir() else [])):
            return Path(tempfile.mkdtemp(prefix=_prefix(target), dir=target.parent))
    return Path(tempfile.mkdtemp(prefix=_prefix(None), dir=target))


def _is_mount(folder: Path) -> bool:
    """The folder is a file system of its own, or mounted elsewhere too: nothing can be renamed into it."""
    try:
        known = Path("/proc/self/mountinfo").read_bytes().split(b"\n")
    except OSError:
        known = []
    name = re.sub(rb"[ \t\n\\]", lambda m: b"\\%03o" % m[0][0], os.fsencode(folder))
    return folder.is_mount() or any(line.split()[4:5] == [name] for line in known)


def _prefix(target: Path | None) -> str:
    """What names of stages beside a folder begin with; for None, those in it."""
    if target is None:
        return ".oic-"
    name = target.name
    if len(os.fsencode(name)) > 200:  # a name may have 255 bytes
        name = hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
    return f".{name}.oic-"


def _stages(target: Path) -> Iterator[Path]:
    """The stages of a folder that there are, beside it and in it."""
    for folder, prefix in ((target.parent, _prefix(target)), (target, _prefix(None))):
        with suppress(OSError):
            for name in os.listdir(folder):
                if re.fullmatch(re.escape(prefix) + "[a-z0-9_]{8}", name):
                    yield folder / name


def _recover(target: Path) -> None:
    """Complete and remove what processes left that ended in the middle; the folder is locked."""
    for root in list(_stages(target)):
        lock = _lock(root, wait=False)
        if lock is None:  # its process lives
            continue
        try:
            switch = _noted(root)
            if switch is not None:
                _complete(root, target, switch)
        finally:
            _unlock(lock)
        _discard(root)


def _complete(root: Path, target: Path, switch: Switch) -> None:
    """Go on with a switch where its process ended, or take it back."""
    new, first = root / "new", switch.names[0]
    if not switch.folder:
        _put_back(root, target, switch)
    elif new.stat().st_ino == switch.folder:
        _settle(root, target, switch)
    elif (target / first).exists() and (target / first).samefile(new / first):
        _hand_over(root, target, switch)
    else:  # nothing was done yet
        (root / NOTE).unlink()


def _discard(root: Path) -> None:
    """Remove a stage, but not one in the middle of a switch: the next build ends that."""
    if not (root / NOTE).exists():
        shutil.rmtree(root, ignore_errors=True)


def _note(root: Path, switch: Switch) -> None:
    (root / "switch.tmp").write_text(json.dumps(asdict(switch)), encoding="utf-8")
    (root / "switch.tmp").replace(root / NOTE)


def _noted(root: Path) -> Switch | None:
    """The switch that a stage is in the middle of."""
    try:
        found = json.loads((root / NOTE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    lists = {k: tuple(n for n in found[k] if NAME.fullmatch(n)) for k in ("names", "stale", "kept")}
    return Switch(**lists, folder=found["folder"])


# ---------------------------------------------------------------- all files in one step


def exchange(a: Path, b: Path) -> bool:
    """Two folders exchange their names in one step; False, with nothing done, where that cannot be."""
    libc = ctypes.CDLL(None) if os.name == "posix" else None
    if sys.platform == "darwin" and hasattr(libc, "renamex_np"):
        return bool(libc.renamex_np(os.fsencode(a), os.fsencode(b), 2) == 0)  # type: ignore[union-attr]  # RENAME_SWAP
    if sys.platform == "linux" and hasattr(libc, "renameat2"):
        here = -100  # AT_FDCWD
        return bool(libc.renameat2(here, os.fsencode(a), here, os.fsencode(b), 2) == 0)  # type: ignore[union-attr]  # RENAME_EXCHANGE
    return False


def _link_others(target: Path, new: Path, own: set[str]) -> bool:
    """Link a folder's other files into the new one; False where folders are among them, or one cannot be linked."""
    others = {name: entry for name, entry in _entries(target) if name not in {*own, HEADERS}}
    if len(others) > MOST_LINKS or any(entry.is_dir(follow_symlinks=False) for entry in others.values()):
        return False
    try:
        for name in others:
            (new / name).parent.mkdir(exist_ok=True)
            os.link(target / name, new / name, follow_symlinks=False)
    except (OSError, NotImplementedError):
        return False
    return True


def _entries(folder: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """What lies in a folder, and in that of the headers in it, by path in the folder."""
    for inside in ("", f"{HEADERS}/"):
        for entry in list(os.scandir(folder / inside)) if (folder / inside).is_dir() else ():
            yield inside + entry.name, entry


def _settle(root: Path, target: Path, switch: Switch) -> None:
    """After an exchange: the folder that was there takes the new files, and then its name back."""
    old = root / "new"
    with suppress(OSError):  # else the folder of the new files keeps the name; they are whole in it
        for name in switch.stale:
            (old / name).unlink(missing_ok=True)
        for name in switch.names:
            (old / name).parent.mkdir(exist_ok=True)
            (root / "link").unlink(missing_ok=True)
            (root / "link").hardlink_to(target / name)
            (root / "link").replace(old / name)
        exchange(old, target)
    _hand_over(root, target, switch)


def _hand_over(root: Path, target: Path, switch: Switch) -> None:
    """What others made in the folder without the name, while it had the name, goes to the one that has it."""
    own = {*switch.names, *switch.stale, HEADERS}
    with suppress(OSError):  # else the stage is left, and the next build tries again
        for name, entry in _entries(root / "new"):
            if name not in own:
                _move(Path(entry.path), target / name)
        (root / NOTE).unlink()


def _move(there: Path, here: Path) -> None:
    """Move what is not yet there; of two files of one name, the one that got it last stays."""
    if os.path.lexists(here):
        a, b = there.lstat(), here.lstat()
        if os.path.samestat(a, b) or a.st_ctime_ns <= b.st_ctime_ns:
            return
    here.parent.mkdir(exist_ok=True)
    there.replace(here)


# ---------------------------------------------------------------- one file after the other


def _switch_files(root: Path, target: Path, names: tuple[str, ...], stale: tuple[str, ...]) -> None:
    """Rename file after file; raises OSError with all as it was."""
    kept = tuple(name for name in (*names, *stale) if os.path.lexists(target / name))
    for name in kept:
        _keep(target / name, root / "old" / name)
    switch = Switch(names, stale, kept)
    _note(root, switch)
    try:
        for name in names:
            (target / name).parent.mkdir(exist_ok=True)
            (root / "new" / name).replace(target / name)
        for name in stale:
            (target / name).unlink(missing_ok=True)
        (root / NOTE).unlink()
    except OSError:
        _put_back(root, target, switch)
        raise


def _keep(file: Path, at: Path) -> None:
    """The file under a second name, or where there are none, a copy."""
    at.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(file, at, follow_symlinks=False)
    except (OSError, NotImplementedError):
        shutil.copy2(file, at, follow_symlinks=False)


def _put_back(root: Path, target: Path, switch: Switch) -> None:
    """Bring the old files back that are not yet there, remove those that are new."""
    for name in switch.kept:
        if os.path.lexists(root / "old" / name):
            (root / "old" / name).replace(target / name)
    for name in switch.names:
        if name not in switch.kept and not (root / "new" / name).exists():
            (target / name).unlink(missing_ok=True)
    (root / NOTE).unlink()


def _require_places(target: Path, names: Sequence[str]) -> None:
    """Files can be where these are to be.  Raises OicError."""
    if not target.is_dir():
        raise fail("output-folder", f"{target} cannot be written: it is not a folder")
    for name in (HEADERS, *names):
        place = target / name
        is_folder = place.is_dir() and not place.is_symlink()
        if os.path.lexists(place) and is_folder != (name == HEADERS):
            what = "a folder" if is_folder else "not a folder"
            raise fail("output-folder", f"{place} is {what}, and a build writes there")


def _stale(target: Path, graph: str, names: Sequence[str]) -> list[str]:
    """Files that an earlier build of the graph made there and this one does not."""
    others = [_listed(path) for path in target.glob("*.memory.json") if path.name != f"{graph}.memory.json"]
    mine = _listed(target / f"{graph}.memory.json").difference(names, *others)
    return sorted(n for n in mine if (target / n).is_file() or (target / n).is_symlink())


def _listed(path: Path) -> set[str]:
    """The files that a memory map lists."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))["files"]
        return {name for name in found if isinstance(name, str) and NAME.fullmatch(name)}
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return set()


# ---------------------------------------------------------------- locks


@contextmanager
def _locked(target: Path) -> Iterator[None]:
    """One process at a time, where the system has locks of folders."""
    lock = _lock(target.parent, wait=True)
    if lock is None:
        lock = _lock(target, wait=True)
    try:
        yield
    finally:
        _unlock(lock)


def _lock(folder: Path, *, wait: bool) -> int | None:
    """A lock of a folder, which ends with the process; None if another has it, or there are none."""
    if fcntl is None:
        return None
    with suppress(OSError):
        file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            return file
        except OSError:
            os.close(file)
    return None


def _unlock(lock: int | None) -> None:
    """Give a lock back, also for copies of the process, which have the same one."""
    if lock is not None and fcntl is not None:
        fcntl.flock(lock, fcntl.LOCK_UN)
        os.close(lock)
