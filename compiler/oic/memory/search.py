"""Exact search: a packing of at most a given height, or the knowledge that there is none.

Branch and bound over packings in which every buffer lies on another or at 0, in the line of MiniMalloc
(M. D. Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine
Learning", ASPLOS 2023): floors that only rise, a bound for each section, and what is no longer connected
in time by itself.

The floor of a buffer is the least offset that it can still have; the floor of a section is the least of
those of its buffers.  All that is not placed yet has to fit above it, in every section, or the branch
is dead.  A valley is a run of sections with one floor between higher ones.  In each of its sections
either one of the buffers that can lie on the floor does, or none, and then the floor of the section
rises to what can be next.  Of the sections with little to waste, the one with the fewest of these
choices is branched on.  Floors tell all that matters of the buffers that are placed: where they led
nowhere once they are not tried again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from oic.memory.placement import BufferGroup, Packing, connected

Ints = npt.NDArray[np.int64]
GONE = 1 << 40  # units: floor of what is placed, and of a section with nothing left to place
NODE = 40_000  # cost of a node beside that of the cells it looks at
LOOK = 8  # sections to choose from, at least


@dataclass(frozen=True)
class SearchScope:
    """Buffers that are searched by themselves; of sections only those between their first and last.

    buffers      of the part
    sizes, first, last   of each buffer
    away         [section, buffer] 0 where the buffer is live, else GONE
    meets        [buffer, buffer]
    name         tells it from other scopes
    """

    buffers: Ints
    sizes: Ints
    first: Ints
    last: Ints
    away: Ints
    meets: npt.NDArray[np.bool_]
    name: bytes


@dataclass(frozen=True)
class SearchState:
    """What is left to do in a scope.

    floors   of each buffer, GONE once it is placed
    low      the floor of each section, at least GONE if nothing is left there
    rest     units not placed yet, by section
    """

    floors: Ints
    low: Ints
    rest: Ints


@dataclass(frozen=True)
class Choice:
    """A buffer of the scope to be placed on its floor, or (buffer -1) a section whose floor rises."""

    buffer: int
    section: int = 0
    floor: int = 0


@dataclass(frozen=True)
class SearchTask:
    """A scope to be searched after what the node `parent` chose, -1 at first; then the rest."""

    scope: SearchScope
    state: SearchState
    parent: int
    rest: SearchTask | None = None


@dataclass
class Node:
    """A task begun: what can still be tried, the last choice first, and what was placed."""

    task: SearchTask
    key: bytes
    choices: list[Choice]
    placed: tuple[int, int] | None = None


class Search:
    """One search; `find` does the work.

    height     that must not be exceeded, units
    priority   of each buffer of the part: the largest is tried first
    limit      of the cost: a constant for each node and the cells, sections times buffers, it looked at
    cost       spent so far
    complete   all was searched: if there was no packing, there is none
    """

    def __init__(self, part: BufferGroup, height: int, priority: Sequence[int], limit: int) -> None:
        self.part, self.height, self.limit = part, height, limit
        self.priority = list(priority)
        self.cost = 0
        self.complete = False
        self.failed: set[bytes] = set()

    def find(self) -> Packing | None:
        """A packing; None if there is none, or (not `complete`) the limit came first."""
        scope = _scope(self.part, np.arange(len(self.part.sizes)))
        task: SearchTask | None = SearchTask(scope, _state(scope, np.zeros(len(scope.buffers), np.int64)), -1)
        nodes: list[Node] = []
        while task is not None:
            self.cost += NODE
            if self.cost > self.limit:
                return None
            key = task.scope.name + task.state.floors.tobytes()
            choices = [] if key in self.failed else self._choices(task.scope, task.state)
            nodes.append(Node(task, key, choices))
            # The fault lies with the choice that made this task, not with other tasks done since.
            while not nodes[-1].choices:
                self.failed.add(nodes[-1].key)
                parent = nodes[-1].task.parent
                if parent < 0:
                    self.complete = True
                    return None
                del nodes[parent + 1 :]
            task = self._follow(nodes[-1], len(nodes) - 1)
        self.complete = True
        offsets = [0] * len(self.part.sizes)
        for node in nodes:
            if node.placed is not None:
                offsets[node.placed[0]] = node.placed[1]
        ends = (at + size for at, size in zip(offsets, self.part.sizes, strict=True))
        return Packing(max(ends), offsets)

    def _choices(self, scope: SearchScope, state: SearchState) -> list[Choice]:
        """At one section of a valley, the best one last; none if the branch is dead."""
        floors, low = state.floors, state.low
        slack = np.where(state.rest > 0, self.height - low - state.rest, GONE)
        if slack.min() < 0:
            return []
        rows = _valleys(low)
        if len(rows) > LOOK:
            rows = rows[slack[rows] <= np.sort(slack[rows])[LOOK]]
        low, slack, standing = low[rows], slack[rows], scope.away[rows] + floors
        self.cost += standing.size
        on_floor = standing == low[:, None]
        # If none of these lies on the floor: another can be next, or one of these on a new one.
        above = np.where(on_floor, GONE, standing).min(axis=1)
        above = np.minimum(above, low + scope.sizes[floors < GONE].min())
        may_rise = slack >= above - low
        at = int(((on_floor.sum(axis=1) + may_rise) * GONE + slack).argmin())
        found = [Choice(-1, int(rows[at]), int(above[at]))] if may_rise[at] else []
        alike: dict[tuple[int, int, int], int] = {}  # of buffers that are the same one is enough
        for i in np.flatnonzero(on_floor[at]).tolist():
            alike.setdefault((int(scope.first[i]), int(scope.last[i]), int(scope.sizes[i])), i)
        order = sorted(alike.values(), key=lambda i: (self.priority[scope.buffers[i]], -i))
        return [*found, *map(Choice, order)]

    def _follow(self, node: Node, index: int) -> SearchTask | None:
        """Take the node's next choice; what is then to be searched."""
        choice, task = node.choices.pop(), node.task
        scope, state = task.scope, task.state
        floors = state.floors.copy()
        if choice.buffer < 0:
            node.placed = None
            changed = (scope.away[choice.section] == 0) & (floors < choice.floor)
            floors[changed] = choice.floor
            return SearchTask(scope, self._changed(scope, state, floors, changed), index, task.rest)
        i = choice.buffer
        node.placed = int(scope.buffers[i]), int(floors[i])
        changed = scope.meets[i] & (floors < GONE)
        np.maximum(floors, floors[i] + scope.sizes[i], out=floors, where=changed)
        floors[i] = GONE
        groups = _apart(scope, floors < GONE)
        if groups is None:
            return SearchTask(scope, self._changed(scope, state, floors, changed, placed=i), index, task.rest)
        next_task = task.rest
        for group in groups:
            inner = _scope(self.part, scope.buffers[group])
            self.cost += inner.away.size
            next_task = SearchTask(inner, _state(inner, floors[group]), index, next_task)
        return next_task

    def _changed(
        self, scope: SearchScope, state: SearchState, floors: Ints, changed: npt.NDArray[np.bool_], placed: int = -1
    ) -> SearchState:
        """The state where the floors of some buffers have changed."""
        rest = state.rest
        if placed >= 0:
            rest = rest.copy()
            rest[scope.first[placed] : scope.last[placed] + 1] -= scope.sizes[placed]
        first, end = int(scope.first[changed].min()), int(scope.last[changed].max()) + 1
        low = state.low.copy()
        low[first:end] = (scope.away[first:end] + floors).min(axis=1)
        self.cost += (end - first) * len(floors)
        return SearchState(floors, low, rest)


def cells(part: BufferGroup) -> int:
    """Sections times buffers."""
    return (max(part.last) + 1) * len(part.sizes)


def _apart(scope: SearchScope, left: npt.NDArray[np.bool_]) -> list[Ints] | None:
    """Groups of what is left that no section connects, the smallest last; None: go on with all of it."""
    some = np.flatnonzero(left)
    if not len(some):
        return []
    first, last = scope.first[some], scope.last[some]
    crossing = np.zeros(len(scope.away), np.int64)
    np.add.at(crossing, first, 1)
    np.add.at(crossing, last, -1)
    if crossing.cumsum()[first.min() : last.max()].all() and 2 * len(some) > len(left):
        return None
    spans = list(zip(first.tolist(), last.tolist(), strict=True))
    return [some[group] for group in sorted(connected(spans), key=len, reverse=True)]


def _scope(part: BufferGroup, buffers: Ints) -> SearchScope:
    sizes, first, last = (
        np.array([values[i] for i in buffers.tolist()], np.int64)
        for values in (part.sizes, part.first, part.last)
    )
    first, last = first - first.min(), last - first.min()
    rows = np.arange(last.max() + 1)[:, None]
    away = np.where((first <= rows) & (rows <= last), 0, GONE)
    meets = (first[:, None] <= last) & (first <= last[:, None])
    return SearchScope(buffers, sizes, first, last, away, meets, buffers.tobytes())


def _state(scope: SearchScope, floors: Ints) -> SearchState:
    """Nothing placed yet."""
    change = np.zeros(len(scope.away) + 1, np.int64)
    np.add.at(change, scope.first, scope.sizes)
    np.add.at(change, scope.last + 1, -scope.sizes)
    return SearchState(floors, (scope.away + floors).min(axis=1), change.cumsum()[:-1])


def _valleys(low: Ints) -> Ints:
    """Sections in runs of one floor between higher ones; those with nothing left are the highest."""
    low = np.minimum(low, GONE)
    starts = np.concatenate(([0], np.flatnonzero(np.diff(low)) + 1))
    floors = np.concatenate(([GONE], low[starts], [GONE]))
    run = floors[1:-1]
    deep = (run < GONE) & (run <= floors[:-2]) & (run <= floors[2:])
    return np.flatnonzero(np.repeat(deep, np.diff(np.append(starts, len(low)))))
