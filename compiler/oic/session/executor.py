"""A session of a graph, over the interpreter or a compiled library: insert, step, fetch.

with simulator.make_executor() as ex:
    ex.insert(x=first)
    ex.step()                          # block entry
    y = ex.fetch("y")
    saved = ex.save(); ex.reset(); ex.load(saved); other = ex.fork()

An executor may be used from several threads: each method holds its lock, so calls come one after
another, and a step with its inputs and its outputs is one call.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import RLock
from typing import Any, NoReturn, Self
from weakref import WeakValueDictionary

import numpy as np

from oic import arguments
from oic.diagnostics import StepError, did_you_mean, fail
from oic.dtypes import Array
from oic.notebook import table
from oic.session.inputs import INPUT, checked, gathered
from oic.session.interface import Entry, Interface, SessionVariable
from oic.session.trace import Record


class Executor(ABC):
    """One state of a graph, and the steps taken on it.

    What differs between backends are the methods whose names start with an underscore.  They are
    given values that have been checked, row-major arrays of the declared dtypes.

    reads_in_place   a step writes no input, and keeps none: what `step` is given is not copied first
    is_open          until `close`
    """

    reads_in_place = False

    def __init__(self, interface: Interface) -> None:
        self.interface = interface
        self._given: dict[str, Array] = {}
        self._outputs: dict[str, Array] = {}
        self.is_open = True
        self._lock = RLock()  # may be taken again: by a signal's handler, in the middle of a call
        _live[id(self)] = self

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.interface.name!r}" + ("" if self.is_open else ", closed") + ">"

    def _repr_html_(self) -> str:
        rows = [(v.kind, v.name, _typed(v)) for v in self.interface.variables.values()]
        return table(repr(self)[1:-1], ("kind", "name", "type"), rows)

    # -- a step

    def insert(self, values: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        """Give dynamic variables their values for the next step, failed or not.

        NumPy arrays must have the declared dtype; Python numbers and lists convert where nothing
        is lost.  Raises StepError, with nothing inserted.
        """
        with self._use():
            self._insert({**arguments.mapping("values", values), **named})

    def _insert(self, given: Mapping[str, Any], copy: bool = True) -> None:
        self._given |= {name: checked(self.interface, name, v, copy) for name, v in given.items()}

    def step(self, entry: str = "entry", /, **inputs: Any) -> dict[str, Array]:
        """Run one entry on what was inserted; its outputs by name.

        Raises StepError; outputs are undefined then, and what was inserted is gone.
        """
        with self._lock:
            again = self._step_again(entry, inputs) if self.is_open and not self._given else None
            if again is not None:
                return again
            self._require_open()
            found = self.interface.entry(entry)
            try:
                self._insert(inputs, copy=not self.reads_in_place)
                taken = gathered(self.interface, found, self._given)
                self._outputs = {}
                self._outputs = self._run(found.symbol, taken)
            finally:
                self._given = {}
            return dict(self._outputs)

    def repeat(
        self, count: int, feed: Mapping[str, str], entry: str = "entry", /, **inputs: Any
    ) -> list[dict[str, Array]]:
        """Run one entry so many times; the outputs of each step by name, as `step` gives them.

        feed     the inputs that after the first step are outputs of the step before: {"tokens": "next"};
                 integers may have another integer type, whose values they fit; the other inputs stay
        inputs   of the first step
        Raises StepError; what the steps before did stays.
        """
        with self._use():
            feed = arguments.mapping("feed", feed, arguments.text)
            found = self.interface.entry(entry)
            if not arguments.is_integer(count) or count < 1:
                raise StepError(INPUT, f"a number of steps is a positive integer, not {count!r}")
            for name, output in feed.items():
                self._require_fed(found, name, output)
            given = {**self._given, **inputs}
            made = [self.step(entry, **inputs)]
            if count > 1 and not self._go_on(entry, feed, int(count) - 1, made):
                while len(made) < count:
                    fed = {name: self._fed(name, made[-1][output]) for name, output in feed.items()}
                    made.append(self.step(entry, **{**given, **fed}))
            return made

    def _require_fed(self, entry: Entry, name: str, output: str) -> None:
        """An input may be fed with an output."""
        if name not in entry.inputs:
            raise StepError(INPUT, f"'{entry.symbol}' has no input '{name}' to feed", variable=name)
        if output not in entry.outputs:
            what = f"'{entry.symbol}' gives no output '{output}' to feed '{name}' with"
            raise StepError(INPUT, what, variable=output)
        types = [self.interface.variables[n].dtype.np for n in (name, output)]
        if types[0] != types[1] and any(t.kind not in "iu" for t in types):
            what = f"'{output}' is {types[1]}, and '{name}', which it is to feed, {types[0]}"
            raise StepError(INPUT, what, variable=name)

    def _fed(self, name: str, value: Array) -> Array:
        """An output as the input that it feeds."""
        made = value.astype(self.interface.variables[name].dtype.np)
        if made.dtype != value.dtype and not np.array_equal(made, value):
            raise self._too_large(name)
        return made

    def _too_large(self, name: str) -> StepError:
        dtype = self.interface.variables[name].dtype
        return StepError(INPUT, f"what is fed to '{name}' does not fit {dtype}", variable=name)

    def fetch(self, name: str) -> Array:
        """A variable's present value: of the last step, of the state, or its starting value.

        Tables give their table indices first, counts long.  Raises OicError for a name that
        cannot be fetched.
        """
        with self._use():
            arguments.text("name", name)
            variable = self.interface.variables.get(name.replace(" ", ""))  # members are `W[0,2]`
            if variable is None:
                known = [v.name for v in self.interface.variables.values() if v.kind != "dynamic"]
                raise fail("unknown-variable", f"there is no variable '{name}'", hint=did_you_mean(name, known))
            if variable.kind == "dynamic":
                what = f"'{name}' is dynamic: it is given for a step and not kept"
                raise fail("fetch-dynamic", what, variable.span, "declared here")
            if variable.kind == "persistent":
                return self._fetch_state(name)
            if name in self._outputs:
                return self._outputs[name].copy()
            if variable.start is None:
                message = f"'{name}' is not among the outputs asked for"
                raise fail("fetch-narrowed", message, hint="add it to fetch, or leave fetch out")
            return np.array(variable.start())

    def _part(self, table: str, within: tuple[slice, ...]) -> Array:
        """Of a table's present value, these parts of its first indices; of a ring's positions all."""
        with self._use():
            return self._fetch_state(table, within)

    # -- state

    def reset(self) -> None:
        """All persistent state as at the start; outputs are forgotten."""
        with self._use():
            self._forget()
            self._reset()

    def save(self) -> bytes:
        """The whole persistent state (`memory.saved`): equal states are equal bytes in every backend.

        Raises StepError where a refused step left it changed.
        """
        with self._use():
            return self._save()

    def load(self, saved: bytes) -> None:
        """The state that `save` gave, here or in another executor of the graph.

        Raises StepError, with nothing changed, for anything else.
        """
        with self._use():
            if not isinstance(saved, (bytes, bytearray, memoryview)):
                raise StepError("OIC_ERR_STATE", f"a saved state is bytes, not {type(saved).__name__}")
            self._load(bytes(saved))
            self._forget()

    def truncate(self, n: int) -> None:
        """Take the last `n` positions back: the state is as if they had not been fed; outputs are forgotten.

        Raises OicError `truncate` where the graph's state does not say what it was, and StepError, with nothing
        changed, for more positions than there are, or than a ring still has.
        """
        with self._use():
            reason = self.interface.truncation.reason
            if reason:
                raise fail("truncate", f"positions of '{self.interface.name}' cannot be taken back: {reason}")
            if not arguments.is_integer(n) or not -(1 << 63) <= n < 1 << 63:
                raise StepError(INPUT, f"a number of positions is an integer, not {n!r}")
            self._truncate(int(n))
            self._forget()

    def fork(self) -> Self:
        """Another session of the same graph with a copy of the state."""
        with self._use():
            return self._fork()

    def _forget(self) -> None:
        self._given, self._outputs = {}, {}

    # -- life

    def __reduce__(self) -> NoReturn:
        """What `copy` and `pickle` ask for: two objects of one session would close it twice."""
        raise TypeError("an executor cannot be copied or pickled: fork() gives another, and save() its state as bytes")

    def trace(self) -> Iterator[Record]:
        """The statements of the last step, in the order in which they ran."""
        with self._use():
            return iter(list(self._trace()))

    def close(self) -> None:
        """Give memory back, once a running call has ended; the executor is of no use afterwards."""
        with self._lock:
            if self.is_open:
                self.is_open = False
                self._forget()
                self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _use(self) -> Iterator[None]:
        """Around a call: one after another, and only while the session is open."""
        with self._lock:
            self._require_open()
            yield

    def _require_open(self) -> None:
        if not self.is_open:
            raise fail("session-closed", "this executor is closed")

    # -- what a backend does

    @abstractmethod
    def _run(self, entry: str, inputs: dict[str, Array]) -> dict[str, Array]:
        """Run a step; the entry's outputs, in arrays of their own.  Raises StepError."""

    def _step_again(self, entry: str, inputs: dict[str, Any]) -> dict[str, Array] | None:
        """A whole step, if its inputs have the types and shapes of those of the step before, else None."""
        return None

    def _go_on(self, entry: str, feed: Mapping[str, str], count: int, made: list[dict[str, Array]]) -> bool:
        """Take `count` more steps and add their outputs to `made`; False, with none taken, if no way is faster."""
        return False

    @abstractmethod
    def _fetch_state(self, name: str, within: tuple[slice, ...] = ()) -> Array:
        """The logical value of a persistent variable, in an array of its own; of a table, `within` its indices."""

    @property
    @abstractmethod
    def _spoiled(self) -> bool:
        """A refused step left the state changed: `reset` and `load` alone go on."""

    @abstractmethod
    def _reset(self) -> None: ...

    @abstractmethod
    def _save(self) -> bytes: ...

    @abstractmethod
    def _load(self, saved: bytes) -> None: ...

    @abstractmethod
    def _truncate(self, n: int) -> None: ...

    @abstractmethod
    def _fork(self) -> Self: ...

    @abstractmethod
    def _trace(self) -> Iterator[Record]: ...

    def _close(self) -> None:  # noqa: B027  (a backend without resources has nothing to do)
        """Release what the executor holds."""

    def _forked(self) -> None:  # noqa: B027
        """This process is a copy made by `os.fork`: it has the memory, and one thread."""


# A process is copied between the calls of its executors, not in the middle of one: the copy has
# their memory whole and their locks free.
_live: WeakValueDictionary[int, Executor] = WeakValueDictionary()
_forking = RLock()
_held: list[Executor] = []


def _before_fork() -> None:
    _forking.acquire()
    for executor in [found for ref in _live.valuerefs() if (found := ref()) is not None]:
        executor._lock.acquire()
        _held.append(executor)


def _after_fork() -> None:
    for executor in _held:
        executor._lock.release()
    _held.clear()
    _forking.release()


def _after_fork_in_child() -> None:
    for executor in _held:
        executor._forked()
    _after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)


def _typed(variable: SessionVariable) -> str:
    """`f32[2, ?]`, as a variable is declared; of a table, the type of an entry."""
    sizes = ", ".join("?" if d is None else str(d) for d in variable.shape)
    return f"{variable.dtype}[{sizes}]" if sizes else str(variable.dtype)
