"""What is done with the state between steps: kept, loaded here, there or in a new session, forked, reset."""

from collections import Counter
from collections.abc import Callable

import numpy as np

from oic.compare.monte_carlo import PerturbedMachine
from oic.diagnostics import StepError
from oic.ir.module import Module
from oic.reference.interpret import Compiled, Machine
from oic.session.executor import Executor

# By the word that a `Run` has for it, what was done; where no copy was kept, one of the present state is.
ACTIONS = {
    "save": "saved",  # every session keeps a copy of its state
    "load": "loaded",  # every session returns to its copy
    "renew": "loaded into a new session",  # which goes on from the copy
    "give": "loaded from the reference",  # by all sessions: the copy that it kept
    "take": "loaded from the library",  # likewise
    "fork": "forked",  # the fork goes on, and the session that was forked is reset
    "reset": "reset",  # all state is as at the start
}
SHARE = 0.4  # of the steps have an action before them
RESET = 0.1  # of the actions are resets, after which deep states take many steps


def drawn(rng: np.random.Generator) -> str:
    """What to do before a step, mostly nothing."""
    if rng.random() >= SHARE:
        return ""
    if rng.random() < RESET:
        return "reset"
    return str(rng.choice([name for name in ACTIONS if name != "reset"]))


def told(acts: Counter[str]) -> str:
    """How many of each were done, in words."""
    return ", ".join(f"{acts[name]} {word}" for name, word in ACTIONS.items() if acts[name])


class KeptCopy:
    """The copy of its state that a machine keeps, where there is no other session beside it."""

    def __init__(self) -> None:
        self.saved: bytes | None = None

    def act(self, machine: Machine | Executor, what: str) -> None:
        """Do what comes nearest to an action, where `Sessions` would keep a copy with one kept, too."""
        if what == "reset":
            machine.reset()
            return
        if what and what != "fork" and (what == "save" or self.saved is None):
            self.saved = machine.save()
        if what in ("", "save"):
            return
        copy = machine.save() if what == "fork" or self.saved is None else self.saved
        if what in ("renew", "fork"):
            machine.reset()
        machine.load(copy)


class Sessions:
    """The reference, perturbed companions of it, and the library; actions replace some by others.

    another   makes a new session of the library; without it a fork is taken for one
    compiled  what the library is made of: see `Machine`
    """

    def __init__(
        self, module: Module, executor: Executor, runs: int, another: Callable[[], Executor] | None,
        compiled: Compiled | None = None,
    ) -> None:  # fmt: skip
        self.module, self.another, self.compiled = module, another, compiled
        self.reference = Machine(module, compiled)
        self.others = [PerturbedMachine(module, seed) for seed in range(runs)]
        self.executor = executor
        self.states = [op.symbol for op in module.states()]
        self.copies: list[bytes] = []  # of the reference, of the others, of the library
        self.opened: Executor | None = None  # the library's session, if it is not the one given

    def all(self) -> list[Machine | Executor]:
        return [self.reference, *self.others, self.executor]

    def reset(self) -> None:
        """All state as at the start."""
        for session in self.all():
            session.reset()

    def act(self, what: str) -> None:
        """Do one of `ACTIONS` to every session."""
        if what == "reset":
            self.reset()
            return
        if what == "fork":
            self._fork()
            return
        if what == "save" or not self.copies:
            self.copies = [session.save() for session in self.all()]
        if what == "renew":
            self.reference = Machine(self.module, self.compiled)
            self._replace(self.another or self.executor.fork, [])
        one = {"give": self.copies[0], "take": self.copies[-1]}.get(what)
        if what != "save":
            for session, own in zip(self.all(), self.copies, strict=True):
                session.load(own if one is None else one)

    def follow(self) -> bytes | None:
        """The reference and its companions go on from the library's state, which is given; None: all from the start.

        Copies that were kept before are of other states, and forgotten.
        """
        self.copies = []
        for machine in [self.reference, *self.others]:
            machine.reset()
        try:
            state = self.executor.save()
        except StepError:  # its step was refused after an effect
            self.executor.reset()
            return None
        for machine in [self.reference, *self.others]:
            machine.load(state)
        return state

    def alike(self) -> bool:
        """What is saved is the same, unless rounding makes variables differ."""
        values = ((self.reference.fetch_state(name), self.executor.fetch(name)) for name in self.states)
        return any(a.tobytes() != b.tobytes() for a, b in values) or self.reference.save() == self.executor.save()

    def close(self) -> None:
        """End the session of the library that an action opened."""
        if self.opened is not None:
            self.opened.close()
            self.opened = None

    def _fork(self) -> None:
        """Go on with forks; the perturbed, whose errors a fork would not have, load their state again."""
        before: list[Machine | Executor] = [self.reference, self.executor]
        self.reference = self.reference.fork()
        self._replace(self.executor.fork, before)
        for other in self.others:
            copy = other.save()
            other.reset()
            other.load(copy)

    def _replace(self, make: Callable[[], Executor], spoiled: list[Machine | Executor]) -> None:
        """Another session of the library; then those that it must not depend on are reset."""
        made = make()
        for session in spoiled:
            session.reset()
        self.close()
        self.executor = self.opened = made
