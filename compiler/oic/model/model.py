"""Model: named tensors, sizevars and metadata, from a file, a folder or memory.

Tensors are memory-mapped and read when asked for; a file is checked completely when it is opened.
Source: SPEC, section 9.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from oic import arguments
from oic.diagnostics import OicError, did_you_mean, fail, listed, shortened
from oic.dtypes import Array
from oic.model.blocks import Blocks
from oic.model.file import MAX_FACT, ModelFile
from oic.model.others import WEIGHTS, described
from oic.model.tensors import Contents, Metadata, TensorInfo, TensorSource, from_memory
from oic.notebook import table

REFERENCE = "oic.model"
"""`format` of a JSON file that names other files, whose contents are one model."""

_MAGIC = {b"OINF\0": "oinf", b"GGUF": "gguf", b"PK\x03\x04": "npz", b"PK\x05\x06": "npz"}


class Model:
    """Named tensors with the sizevars and metadata that come with them.

    sizevars  build-time integers by name
    metadata  config values by dotted key: bool, int, float, text, or a list of them
    path      the file or folder, or None in memory
    name      what messages call the model
    partial   constants that it lacks are zero, as without a model, and not refused

    `Model(tensors={"W": array}, sizevars={"D": 64}, metadata={"leak": 0.1})` makes one in memory.
    A tensor is a NumPy array, an `(array, "t1")` pair or a `Tensor`; arrays are not copied.
    """

    def __init__(
        self, tensors: Mapping[str, object] | None = None, sizevars: Mapping[str, int] | None = None,
        metadata: Mapping[str, object] | None = None, *, name: str = "model",
    ) -> None:  # fmt: skip
        self.path: Path | None = None
        self.name = name
        self.partial = False
        given = arguments.mapping("tensors", tensors, hint="oic.Model.open(path) opens a file")
        self._entries = {k: from_memory(k, v) for k, v in given.items()}
        self.sizevars: dict[str, int] = {k: _size(k, v) for k, v in arguments.mapping("sizevars", sizevars).items()}
        self.metadata: dict[str, Metadata] = dict(_plain(arguments.mapping("metadata", metadata), ""))

    def __reduce__(self) -> NoReturn:
        """What `copy` and `pickle` ask for: tensors are read when they are needed, from files that are mapped."""
        raise TypeError("a model cannot be copied or pickled: another process opens it, or makes it of arrays, again")

    @classmethod
    def open(cls, path: str | Path) -> "Model":
        """The model in a .oinf, .safetensors, .gguf or .npz file or a Hugging Face folder.

        Or in several: `{"format": "oic.model", "version": 1, "files": ["../folder", "extra.npz"]}`, a `.json` file,
        names them relative to itself; a tensor may be in one of them only, but for one in blocks, which a
        later file may have in another form.  `metadata` adds to theirs.
        The format is known by its first bytes, else by the file's extension.
        Raises `OicError`: `model-open`, `model-format`, or what is wrong inside the file.
        """
        path = arguments.path("path", path)
        if os.path.isdir(path):
            contents = _reader("hf")(Path(path))
        else:
            file = ModelFile.open(path)
            refers = file.content[:1] == b"{" and Path(file.name).suffix == ".json"
            contents = _referred(file) if refers else _reader(_format(file))(file)
        return cls._of(contents, Path(path))

    @classmethod
    def of_files(cls, paths: Sequence[Path]) -> "Model":
        """The model in several files, of which each tensor is in one; named after the first's folder."""
        home = paths[0].parent
        return cls._of(_together([(path.name, path) for path in paths], str(home)), home)

    @classmethod
    def _of(cls, contents: Contents, path: Path) -> "Model":
        model = cls(name=str(path))
        model.path = path
        model._entries = contents.entries
        model.sizevars, model.metadata = contents.sizevars, contents.metadata
        return model

    def extended(self, tensors: Mapping[str, object], sources: Iterable[TensorSource] = ()) -> "Model":
        """This model with more tensors, given as to `Model`, and others in the place of its own."""
        both = Model(tensors, self.sizevars, self.metadata, name=self.name)
        both.path = self.path
        both._entries |= self._entries | {source.info.name: source for source in sources}
        return both

    def names(self) -> list[str]:
        """All tensors, those without data included, in the file's order."""
        return list(self._entries)

    def has(self, name: str) -> bool:
        """There is a tensor of this name, with data."""
        return name in self._entries and self._entries[name].info.has_data

    __contains__ = has

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def info(self, name: str) -> TensorInfo:
        """Element type, shape and place of a tensor; `OicError` `model-missing-tensor` if none."""
        return self._entry(name).info

    def tensor(self, name: str) -> Array:
        """The elements of a tensor in its shape, in the NumPy form of its dtype; read-only.

        A view of the file where its stored form allows.  Raises `OicError`:
        `model-missing-tensor`, `model-no-data`, `model-dtype` for a type the language lacks,
        `model-field` for stored codes without a value.
        """
        return self._entry(name).array()

    def blocks(self, name: str) -> Blocks | None:
        """The blocks of a tensor that is stored in blocks of Q8_0 or Q4_0."""
        origin = self._entry(name).origin
        return origin if isinstance(origin, Blocks) else None

    def raw(self, name: str) -> NDArray[np.uint8]:
        """The bytes of a tensor in our stored form, u8[nbytes]; raises as `tensor` does.

        Little-endian, row-major, packed types LSB first.  A view of the file where it can be.
        """
        return self._entry(name).bytes()

    def parts(self, name: str) -> Iterator[Array]:
        """The elements of a tensor in order, flat, a part at a time; raises as `tensor` does."""
        return self._entry(name).parts()

    def _entry(self, name: str) -> TensorSource:
        if name not in self._entries:
            fact = f"{self.name}: there is no tensor '{name}'"
            raise fail("model-missing-tensor", fact, hint=did_you_mean(name, self._entries))
        return self._entries[name]

    def __repr__(self) -> str:
        return f"<Model {self.name!r}: {len(self._entries)} tensors>"

    def _repr_html_(self) -> str:
        infos = [entry.info for entry in self._entries.values()]
        rows = [(i.name, f"{i.dtype}{list(i.shape)}", f"{i.nbytes:,}") for i in infos]
        return table(repr(self)[1:-1], ("tensor", "type", "bytes"), rows)


def _referred(file: ModelFile) -> Contents:
    """The contents of all files that a reference names."""
    jsontext = import_module("oic.model.jsontext")
    tree = jsontext.parse(file, 0, file.size, "reference")
    if tree.get("format") != REFERENCE or tree.get("version") != 1:
        raise file.bad("model-format", "'format'", None, f"not {REFERENCE!r} of version 1")
    named, added = tree.get("files"), tree.get("metadata", {})
    paths = isinstance(named, list) and named and all(isinstance(n, str) and "\0" not in n for n in named)
    file.require(bool(paths), "'files'", None, "not a list of paths")
    file.require(not any(name.endswith(".json") for name in named), "'files'", None, "a reference to a reference")
    file.require(isinstance(added, dict), "'metadata'", None, "not a table")
    whole = _together([(name, _without_dots(Path(file.name).parent / name)) for name in named], f"{file.name}: 'files'")
    whole.metadata.update(jsontext.flatten(file, added))
    return whole


def _without_dots(path: Path) -> Path:
    """The same place without `..`: links are followed as the system does; relative where it is below where we are."""
    if ".." not in path.parts:
        return path
    found = Path(os.path.normpath(os.path.join(os.path.realpath(path.parent), path.name)))
    return found.relative_to(Path.cwd()) if not path.is_absolute() and found.is_relative_to(Path.cwd()) else found


def _together(parts: Sequence[tuple[str, Path]], where: str) -> Contents:
    """The contents of several files, each with its name for messages.

    where   names them all, to refuse a tensor that two have, unless it cannot be read from the first
    """
    whole = Contents({}, {}, {})
    for name, path in parts:
        if not os.path.exists(path):
            hint = "the import, or this list, is made anew where they lie now"
            raise fail("model-open", f"{where}: there is no {name!r}, whose weights it refers to", hint=hint)
        part = Model.open(path)
        for tensor in part.names():
            before = whole.entries.get(tensor)
            if before is not None and before.info.dtype.kind != "opaque" and not isinstance(before.origin, Blocks):
                fact = shortened(f"{tensor!r} is in {name!r} and in one before it", MAX_FACT)
                raise fail("model-duplicate", f"{where}: {fact}")
        whole.entries.update(part._entries)
        whole.sizevars.update(part.sizevars)
        whole.metadata.update(part.metadata)
    return whole


def _reader(module: str) -> Any:
    return import_module(f"oic.model.{module}").read


def _format(file: ModelFile) -> str:
    start = bytes(file.content[:9])
    for magic, module in _MAGIC.items():
        if start.startswith(magic):
            return module
    suffix = Path(file.name).suffix.lower()
    if suffix in WEIGHTS:
        return suffix[1:]
    if start[5:9] == b"\0\0\0{":  # behind the header's length, of which there are at most 100 MB
        return "safetensors"
    raise unknown_format(file.name)


def unknown_format(name: str) -> OicError:
    """The refusal of a file that is none of the formats."""
    if name.endswith(".oi"):
        hint = f"weights in fewer bits: oic build {name} --model MODEL --weights q8"
        return fail("model-format", f"{name}: this is a graph, and a model or a checkpoint is wanted", hint=hint)
    known = listed(WEIGHTS, "or")
    other = described(name)
    if other is not None:
        return fail("model-format", f"{name}: this is {other[0]}, which is not read; {known} is", hint=other[1])
    hint = f"a model is a {known} file, or a folder with config.json and model.safetensors"
    return fail("model-format", f"{name}: not a model file of a known format", hint=hint)


def _size(name: str, value: Any) -> int:
    if not arguments.is_integer(value):
        raise fail("model-value", f"sizevar '{name}' is {value!r}, not an integer")
    if not 0 <= int(value) < 1 << 63:
        raise fail("model-value", f"sizevar '{name}' is {value}, out of range")
    return int(value)


def _plain(tree: Mapping[str, object], prefix: str) -> Iterator[tuple[str, Metadata]]:
    """Metadata as plain Python values, nested maps under dotted keys."""
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _plain(value, f"{prefix}{key}.")
            continue
        if isinstance(value, (np.generic, np.ndarray)):
            value = value.tolist()
        if isinstance(value, tuple):
            value = list(value)
        if not isinstance(value, (bool, int, float, str, list)):
            text = f"metadata '{prefix}{key}' is of type {type(value).__name__}"
            raise fail("model-value", text, hint="a number, a bool, text or a list")
        yield f"{prefix}{key}", value
