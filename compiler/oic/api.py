"""The Python interface (DESIGN, section 9): a graph and a model in, sessions out.

Simulator and Synthesizer are interchangeable: both make executors with the same methods.
"""

from collections.abc import Collection, Mapping
from typing import Any, NoReturn

from oic import arguments
from oic.collector import uncollected
from oic.diagnostics import Diagnostic, fail
from oic.driver import Program, Settings, compile_graph, interface_of, late_warnings, work_warnings
from oic.library.emit import LibrarySpec
from oic.model import Model
from oic.precompute import in_c
from oic.reference.interpret import Machine
from oic.session.simulator import SimulatorExecutor
from oic.session.synthesizer import MOST_THREADS, CompiledProgram
from oic.syntax.tree import Graph
from oic.toolchain.target import target as target_named

STAGES = ("graph", "planned")


class Simulator:
    """The NumPy reference.

    sizes      sizevars, before those of the graph and the model
    capacity   the most an index of a table may reach, by `t` or `K.t`
    fetch      outputs wanted; None: all
    weights    what matrices are stored as: 'f32', 'bf16', 'f16', 'q8', 'q4', or by name, 'lm_head=q8,*=q4'; "": as
               declared
    stage      'graph': the meaning itself; 'planned': the same over planned memory
    Raises OicError with everything that is wrong with the graph.
    """

    def __init__(
        self, graph: Graph, model: Model | None = None, *, sizes: Mapping[str, int] | None = None,
        capacity: Mapping[str, int] | None = None, fetch: Collection[str] | None = None, weights: str = "",
        stage: str = "graph",
    ) -> None:  # fmt: skip
        if arguments.text("stage", stage) not in STAGES:
            raise fail("unknown-stage", f"the simulator runs 'graph' or 'planned', not '{stage}'")
        self.program = program = _compiled(graph, model, sizes, capacity, fetch, weights)
        self.interface = interface_of(program)
        self._run = (program.module, program.compiled) if stage == "graph" else (program.planned, None)

    def __reduce__(self) -> NoReturn:
        """What `copy` and `pickle` ask for."""
        raise TypeError("a program cannot be copied or pickled: another process makes it of the graph again")

    def make_executor(self) -> SimulatorExecutor:
        """A session with a state of its own, at its start."""
        return SimulatorExecutor(self.interface, Machine(*self._run))

    @property
    def warnings(self) -> list[Diagnostic]:
        """What the compiler noticed and did not refuse."""
        return self.program.warnings


class Synthesizer(CompiledProgram):
    """Generated C, compiled and loaded.

    target   'host', 'portable' or 'freestanding' (which is written and not loaded)
    numerics  'fused' (a step of a sum of products is one rounding) or 'separate' (two); None: 'fused' where the
             compiler says that the machine has the instruction.  All machines of one class give the same bits.  Or
             'native': products with bf16 weights are the machine's own, whose bits no other machine need have
    dispatch  instruction sets that the library has code for ('sse2,avx2,avx512', or 'all'), of which each session
             takes the best that the machine has, or the one that the environment variable OIC_DISPATCH names
    weights_as  'blob' (a file to map or flash) or 'array' (a C array)
    threads  that a step may run on: large operators are divided among them, consumers of a `yield` run at once
    name     of the C library, which its files and names begin with; None: the graph's
    profile  the code measures itself: `trace` of its executors has microseconds
    The others as for Simulator.
    """

    @uncollected()
    def __init__(
        self, graph: Graph, model: Model | None = None, *, sizes: Mapping[str, int] | None = None,
        capacity: Mapping[str, int] | None = None, fetch: Collection[str] | None = None, target: str = "host",
        numerics: str | None = None, dispatch: str = "", weights: str = "", weights_as: str = "blob",
        reuse: bool = True, threads: int = 1, name: str | None = None, profile: bool = False,
    ) -> None:  # fmt: skip
        for what, chosen in (("target", target), ("dispatch", dispatch), ("weights_as", weights_as)):
            arguments.text(what, chosen)
        for what, named in (("numerics", numerics), ("name", name)):
            arguments.require(what, named, str | None, "a str or None")
        for what, flag in (("reuse", reuse), ("profile", profile)):
            arguments.require(what, flag, bool, "True or False")
        machine = target_named(target, numerics, dispatch)
        threads = arguments.integer("threads", threads)
        if not 1 <= threads <= MOST_THREADS:
            raise fail("thread-count", f"threads are 1 to {MOST_THREADS}, not {threads}")
        self.program = program = _compiled(
            graph, model, sizes, capacity, fetch, weights, target=machine, reuse=reuse, threads=threads, computer=in_c,
        )  # fmt: skip
        spec = LibrarySpec(program.planned, machine, weights_as, threads, name, profile)
        super().__init__(spec, interface_of(program))

    @property
    def warnings(self) -> list[Diagnostic]:
        """What the compiler noticed and did not refuse, and what C does late, or in every step anew."""
        return [*self.program.warnings, *late_warnings(self.program), *work_warnings(self.program)]


def _compiled(
    graph: Graph, model: Model | None, sizes: Mapping[str, int] | None, capacity: Mapping[str, int] | None,
    fetch: Collection[str] | None, weights: str, **more: Any,
) -> Program:  # fmt: skip
    """Compile a graph with what a caller gave, if that has the right types, and `more`, which has.  Raises OicError."""
    arguments.require("graph", graph, Graph, "an oic.Graph", "oic.parse_file(path) or oic.parse(text) gives one")
    arguments.require("model", model, Model | None, "an oic.Model or None", "oic.Model.open(path) opens a file")
    settings = Settings(
        arguments.mapping("sizes", sizes, arguments.integer),
        arguments.mapping("capacity", capacity, arguments.integer),
        arguments.names("fetch", fetch), weights=arguments.text("weights", weights), **more,
    )  # fmt: skip
    return compile_graph(graph, model, settings)
