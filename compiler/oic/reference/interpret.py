"""The meaning of every IR stage: one interpreter of GRAPH, INDEXED and PLANNED.

Values are NumPy arrays and Python integers.  In GRAPH persistent variables are those of SPEC,
section 8 (`variables`); from INDEXED on they are storage at capacity (`state_storage`); in PLANNED every
tensor lies in real bytes at its place (`memory_image`).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from oic.diagnostics import StepError
from oic.dtypes import Array, store
from oic.ir import dims
from oic.ir.core import Block, Op, Value
from oic.ir.dims import Dim
from oic.ir.journal import Journal
from oic.ir.module import Module
from oic.ir.text_print import located
from oic.ir.types import TensorType
from oic.memory.layout import storage_bytes
from oic.memory.saved import Part, saved_form
from oic.operators.evaluate import bind_sizes, compute, shape_of
from oic.operators.late import LatePlace, late_checks
from oic.reference import saved
from oic.reference import state_storage as boxes
from oic.reference.memory_image import Spaces
from oic.reference.state_storage import Memory, StateStorage, storages, zeros
from oic.reference.variables import PersistentVariable

SEMANTICS: "dict[type[Op], Callable[[Machine, Any], None]]" = {}
"""What the ops that are no operators do, by class; `semantics` fills it."""

Observer = Callable[[Op], Any]
Compiled = Callable[[], tuple[Module, Collection[LatePlace]]]


class Machine:
    """A module that can be stepped, with its persistent state.

    observer   called with every op before it runs, if set
    compiled   of a GRAPH module the PLANNED one, and what `operators.late` says is overtaken there: a
               refusal after an effect leaves the state changed here too if it does so there
    """

    def __init__(self, module: Module, compiled: Compiled | None = None) -> None:
        self.module, self.compiled = module, compiled
        self.observer: Observer | None = None
        self.journal = Journal()
        self.places = Spaces(module) if module.stage == "planned" else None
        self.constants = {op.result: np.asarray(module.weights[op.symbol]) for op in module.constants()}
        self.values: dict[Value, Any] = {}
        self.sizes: dict[str, int] = {}
        self.broken = False
        self.effects = False
        self.refused_by: Op | None = None
        self.variables: dict[str, PersistentVariable] = {}  # in GRAPH
        self.storages: dict[str, StateStorage] = {}  # later
        if self.places is not None:
            self.storages = storages(module, self.places.state)
        elif module.stage != "graph":
            self.storages = {op.symbol: StateStorage(op, zeros(storage_bytes(op.type))) for op in module.states()}
        self.form = saved_form(module)
        self.reset()

    # -- what a session does

    def step(self, symbol: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run one function; its outputs by name.

        Raises StepError.  Where a refusal comes after an effect, further steps are OIC_ERR_STATE until
        `reset` or `load`; in GRAPH a refused step has changed nothing, but as `compiled` says.
        """
        self._require_whole()
        function = self.module.function(symbol)
        self.effects, self.refused_by = False, None
        try:
            with np.errstate(all="ignore"):
                return self._call(function, inputs)
        except BaseException as error:
            self.broken = self.effects or self._is_late()
            if not self.broken:
                self.journal.undo()
            if self.refused_by is not None and self.compiled is not None:
                raise self._as_compiled(symbol, inputs, error) from None
            raise
        finally:
            self.journal.done()
            self.values = {}

    def reset(self) -> None:
        """All persistent state as at the start."""
        self.broken = False
        for storage in self.storages.values():
            storage.reset()
        if self.module.stage == "graph":
            self.variables = {op.symbol: PersistentVariable(op, self.journal) for op in self.module.states()}

    def fetch_state(self, name: str, within: tuple[slice, ...] = ()) -> Array:
        """The logical value of a persistent variable (SPEC, 8.2, 8.3 and 8.5); of its first indices, parts."""
        variable = self.variables.get(name)
        if variable is None:
            return boxes.logical(name, self.form, self.storages, within)
        return variable.logical()[within] if within else variable.logical()

    def save(self) -> bytes:
        """The state, to be loaded by any backend of the same graph (`memory.saved`).

        Raises StepError if a refused step left it changed.
        """
        self._require_whole()
        counts = {symbol: self._count(symbol) for symbol in self.form.counts}
        return saved.write(self.form, counts, lambda part: self._saved(part, counts))

    def load(self, data: bytes) -> None:
        """The state that `save` gave.  Raises StepError, with nothing changed, for anything else."""
        found = saved.read(self.form, data)
        self.reset()
        self.broken = True  # until all of it is there: what a signal's handler raises may come in between
        if self.module.stage != "graph":
            boxes.restore(found, self.form, self.storages)
        for name, variable in self.variables.items():
            variable.restore(found, [p for p in self.form.parts if p.owner == name])
        self.broken = False

    def truncate(self, n: int) -> None:
        """As if the last `n` positions had not been fed.  Raises StepError, with nothing changed."""
        self.load(saved.truncated(self.form, self.module.truncation, self.save(), n))

    def fork(self) -> "Machine":
        """Another machine with a copy of the state."""
        copy = Machine(self.module, self.compiled)
        copy.load(self.save())
        return copy

    def _is_late(self) -> bool:
        """The op that refused may come after an effect, also where none has been made yet: C knows no better."""
        return self.module.stage != "graph" and self.refused_by in late_checks(self.module)

    def _as_compiled(self, symbol: str, inputs: Mapping[str, Array], error: BaseException) -> BaseException:
        """A refusal, here undone, as the program compiled makes it in the same step.

        It is made before all effects where it can be; where it cannot, one that comes later in the
        source may be made before it, or else the state is left changed.
        """
        assert self.compiled is not None and isinstance(error, StepError)
        module, overtaken = self.compiled()
        other = Machine(module)
        other.load(self.save())
        try:
            other.step(symbol, inputs)
        except StepError as found:
            if other.broken:
                self._leave_changed(symbol, inputs)
            about = error.variable or (error.span and error.span.text)
            return found if (error.span, about) in overtaken and not other.broken else error
        return error

    def _saved(self, part: Part, counts: dict[str, int]) -> Iterator[saved.Entries]:
        """The entries of a part: in GRAPH its variable has them, later a storage of its own."""
        if part.owner in self.variables:
            return self.variables[part.owner].saved(part, counts)
        return boxes.saved(part, counts, self.storages)

    def _count(self, symbol: str) -> int:
        if symbol in self.storages:
            return self.storages[symbol].number
        owner, _, index = symbol.partition(".")
        variable = self.variables[owner]
        return variable.counts[[i.name for i in (*variable.type.table, *variable.type.auto)].index(index)]

    def _require_whole(self) -> None:
        if self.broken:
            raise StepError("OIC_ERR_STATE", "a refused step left state changed; reset or load")

    # -- functions and blocks

    def _call(self, function: Any, inputs: Mapping[str, Array]) -> dict[str, Array]:
        self.values, self.sizes = {}, {}
        args = dict(zip(function.inputs, function.body.args, strict=True))
        given = {name: store(inputs[name], arg.dtype) for name, arg in args.items()}  # a zero of t1 is -1
        for name, arg in args.items():
            bind_sizes(name, arg.tensor, given[name].shape, self.sizes)
        for name, arg in args.items():
            if given[name].shape != shape_of(arg.tensor, self.sizes):
                what = f"input '{name}' has shape {list(given[name].shape)}, not {arg.type}"
                raise StepError("OIC_ERR_SHAPE", what, variable=name)
        if self.places is not None:
            typed = {name: (given[name], arg.dtype) for name, arg in args.items()}
            self.places.begin(function.symbol, typed, self.sizes)
        else:
            self.values = self.constants | {arg: given[name] for name, arg in args.items()}
        self.run(function.body)
        pairs = zip(function.outputs, function.returned, strict=True)
        return {name: np.array(self.read(value)) for name, value in pairs}

    def _leave_changed(self, symbol: str, inputs: Mapping[str, Array]) -> None:
        """Have again the effects of a refused step, which were undone."""
        self.broken = True
        observer, self.observer = self.observer, None
        with suppress(StepError), np.errstate(all="ignore"):
            self._call(self.module.function(symbol), inputs)
        self.observer = observer

    def run(self, block: Block) -> None:
        """Run every op of a block but its terminator."""
        for op in (op for op in block.ops if not op.terminator):
            if self.observer is not None:
                self.observer(op)
            try:
                if (meaning := SEMANTICS.get(type(op))) is not None:
                    meaning(self, op)
                elif not self.see(op):
                    self.write(op, compute(op, self.read, self.sizes))
            except StepError:
                self.refused_by = self.refused_by or op
                raise

    def see(self, op: Op, within: Memory | None = None) -> bool:
        """See the results of a view where its operand lies, or in other memory; False: they have their own."""
        if self.places is None or not self.places.is_view(op):
            return False
        self.places.view(op, self.read, within)
        return True

    # -- values

    def read(self, value: Value) -> Any:
        """The array of a tensor, the integer of an index value, the object of a state."""
        return self.values[value] if self.places is None or value in self.values else self.places.read(value)

    def write(self, op: Op, arrays: list[Array]) -> None:
        """Give an op's results their values."""
        for value, array in zip(op.results, arrays, strict=True):
            expected = shape_of(value.tensor, self.sizes)
            assert array.shape == expected, f"{array.shape} is not {expected}\n{located(op)}"
            if self.places is not None and value.placed.space != "local":
                self.places.write(value, array)
            else:
                self.values[value] = array

    def flow(self, sources: list[Value], targets: list[Value]) -> None:
        """Hand values to block arguments or results, all at once; in PLANNED tensors are there."""
        moved = {}
        for source, target in zip(sources, targets, strict=True):
            if self.places is None or not isinstance(target.type, TensorType):
                moved[target] = self.values[source]
            else:
                assert _same_place(source, target), f"{source!r} flows to {target!r} elsewhere"
        self.values |= moved

    def integer(self, part: int | Value) -> int:
        """A number known at build or at run time."""
        found = part if isinstance(part, int) else self.values[part]
        assert isinstance(found, int), f"{part!r} is no index integer"
        return found

    def integers(self, parts: Iterable[int | Value]) -> list[int]:
        return [self.integer(part) for part in parts]

    def storage(self, state: Value) -> StateStorage:
        """The storage of what a `state` op defines."""
        return self.storages[state.symbol]

    def variable(self, op: Op) -> PersistentVariable:
        """The variable of a cache operation, told where refusals point."""
        found = self.variables.get(op.operands[0].symbol)
        assert found is not None, f"{op.name} has no meaning in {self.module.stage}"
        found.span = op.span
        return found

    def size(self, dim: Dim) -> int:
        """The present value of a size."""
        return dims.evaluate(dim, self.sizes)


def _same_place(a: Value, b: Value) -> bool:
    """Two values share an address; that of a view is its root's, and only the buffer tells."""
    offsets = {a.placed.offset, b.placed.offset}
    return a.placed.memory == b.placed.memory and (None in offsets or len(offsets) == 1)
