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

There is one state, and a node keeps what its choice has changed of it.  So memory grows like the number
of live buffers, summed over the sections.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from oic.memory.placement import BufferGroup, Packing

IntArray = npt.NDArray[np.int64]
GONE = 1 << 40  # units: floor of what is placed, and of a section with nothing left to place
NODE = 50_000  # cost of a node beside that of what it looks at
LOOK = 8  # sections to choose from, at least


@dataclass(frozen=True)
class Choice:
    """A buffer to be placed on its floor, or (buffer -1) a section whose floor rises."""

    buffer: int
    section: int = 0
    floor: int = 0


@dataclass(frozen=True)
class SearchTask:
    """Sections, inclusive, that what is left of them connects, after what the node `parent` chose, -1 at first.

    rest   what is to be searched then
    """

    first: int
    last: int
    parent: int
    rest: "SearchTask | None" = None


@dataclass
class Node:
    """A task begun: what can still be tried, the last choice first, and what was placed.

    changed   values that the choice has changed, as they were: an array, which of it, and these
    """

    task: SearchTask
    key: bytes
    choices: list[Choice]
    placed: tuple[int, int] | None = None
    changed: list[tuple[IntArray, IntArray | slice, IntArray]] = field(default_factory=list)

    def undo(self) -> None:
        """Everything is as it was before the choice."""
        while self.changed:
            array, where, values = self.changed.pop()
            array[where] = values
        self.placed = None


class Search:
    """One search; `find` does the work.

    height     that must not be exceeded, units
    priority   of each buffer of the part: the largest is tried first
    limit      of the cost: a constant for each node and the numbers that it looked at
    cost       spent so far
    complete   all was searched: if there was no packing, there is none
    """

    def __init__(self, part: BufferGroup, height: int, priority: Sequence[int], limit: int) -> None:
        self.height, self.limit = height, limit
        self.cost = 0
        self.complete = False
        self.failed: set[bytes] = set()
        # Buffers are numbered by the first section: those of neighbouring sections are neighbours.
        self.buffers = np.argsort(np.array(part.first, np.int64), kind="stable")
        sizes, first, last = (np.array(v, np.int64)[self.buffers] for v in (part.sizes, part.first, part.last))
        self.sizes, self.first, self.last = sizes, first, last
        self.priority = [priority[i] for i in self.buffers.tolist()]
        self.begun = np.searchsorted(first, np.arange(last.max() + 2))  # buffers that begin before a section
        # The buffers that are live in each section, one section after the other, and where a section starts.
        length = last - first + 1
        section = np.arange(length.sum()) - np.repeat(length.cumsum() - length - first, length)
        self.live = np.repeat(np.arange(len(first)), length)[np.argsort(section, kind="stable")]
        self.start = np.concatenate(([0], np.bincount(section).cumsum()))
        # What is left to do.
        self.floors = np.zeros(len(first), np.int64)
        self.low = np.zeros(len(self.start) - 1, np.int64)  # floors of sections; GONE if nothing is left there
        self.rest = np.add.reduceat(sizes[self.live], self.start[:-1])  # units not placed yet, by section

    def find(self) -> Packing | None:
        """A packing; None if there is none, or (not `complete`) the limit came first."""
        task: SearchTask | None = SearchTask(0, len(self.low) - 1, -1)
        nodes: list[Node] = []
        while task is not None:
            self.cost += NODE
            if self.cost > self.limit:
                return None
            key = self._key(task)
            choices = [] if key in self.failed else self._choices(task)
            nodes.append(Node(task, key, choices))
            # The fault lies with the choice that made this task, not with other tasks done since.
            while not nodes[-1].choices:
                self.failed.add(nodes[-1].key)
                parent = nodes[-1].task.parent
                if parent < 0:
                    self.complete = True
                    return None
                for node in reversed(nodes[parent:]):
                    node.undo()
                del nodes[parent + 1 :]
            task = self._follow(nodes[-1], len(nodes) - 1)
        self.complete = True
        offsets = [0] * len(self.floors)
        for node in nodes:
            if node.placed is not None:
                offsets[self.buffers[node.placed[0]]] = node.placed[1]
        ends = (offsets[i] + size for i, size in zip(self.buffers.tolist(), self.sizes.tolist(), strict=True))
        return Packing(max(ends), offsets)

    def _among(self, task: SearchTask) -> slice:
        """The buffers that begin in the sections of a task: of what is left, all that live there, and no others."""
        return slice(int(self.begun[task.first]), int(self.begun[task.last + 1]))

    def _key(self, task: SearchTask) -> bytes:
        """Tells what is left of a task, and where it can lie, from everything else."""
        digest = hashlib.blake2b(f"{task.first} {task.last}".encode(), digest_size=16)
        digest.update(self.floors[self._among(task)].tobytes())
        return digest.digest()

    def _choices(self, task: SearchTask) -> list[Choice]:
        """At one section of a valley, the best one last; none if the branch is dead."""
        low, rest = (values[task.first : task.last + 1] for values in (self.low, self.rest))
        slack = np.where(rest > 0, self.height - low - rest, GONE)
        if slack.min() < 0:
            return []
        rows = _valleys(low)
        if len(rows) > LOOK:
            rows = rows[slack[rows] <= np.sort(slack[rows])[LOOK]]
        low, slack, rows = low[rows], slack[rows], rows + task.first
        counts = self.start[rows + 1] - self.start[rows]
        ends = counts.cumsum()
        live = self.live[np.arange(ends[-1]) + (self.start[rows] - ends + counts).repeat(counts)]
        standing = self.floors[live]
        on_floor = standing == low.repeat(counts)
        # If none of these lies on the floor: another can be next, or one of these on a new one.
        above = np.minimum.reduceat(np.where(on_floor, GONE, standing), ends - counts)
        among = self._among(task)
        above = np.minimum(above, low + self.sizes[among][self.floors[among] < GONE].min())
        may_rise = slack >= above - low
        choices = np.add.reduceat(on_floor.astype(np.int64), ends - counts) + may_rise
        at = int((choices * GONE + slack).argmin())
        self.cost += len(live) + len(rest) + among.stop - among.start
        found = [Choice(-1, int(rows[at]), int(above[at]))] if may_rise[at] else []
        here = slice(int(ends[at] - counts[at]), int(ends[at]))
        alike: dict[tuple[int, int, int], int] = {}  # of buffers that are the same one is enough
        for i in sorted(live[here][on_floor[here]].tolist(), key=self.buffers.__getitem__):
            alike.setdefault((int(self.first[i]), int(self.last[i]), int(self.sizes[i])), i)
        order = sorted(alike.values(), key=lambda i: (self.priority[i], -self.buffers[i]))
        return [*found, *map(Choice, order)]

    def _follow(self, node: Node, index: int) -> SearchTask | None:
        """Take the node's next choice; what is then to be searched."""
        choice, task = node.choices.pop(), node.task
        i = choice.buffer
        if i < 0:
            live = self.live[self.start[choice.section] : self.start[choice.section + 1]]
            self._raise(node, live[self.floors[live] < choice.floor], choice.floor)
            return SearchTask(task.first, task.last, index, task.rest)
        first, last, floor, size = (int(v[i]) for v in (self.first, self.last, self.floors, self.sizes))
        node.placed = i, floor
        among = slice(self._among(task).start, int(self.begun[last + 1]))
        meets = (self.last[among] >= first) & (self.floors[among] < floor + size)
        self._set(node, self.rest, slice(first, last + 1), self.rest[first : last + 1] - size)
        self._set(node, self.floors, slice(i, i + 1), np.array([GONE]))
        raised = meets.nonzero()[0] + among.start
        self._raise(node, raised[raised != i], floor + size, first, last)
        next_task = task.rest
        for lo, hi in self._apart(task):
            next_task = SearchTask(lo, hi, index, next_task)
        return next_task

    def _raise(self, node: Node, buffers: IntArray, floor: int, first: int = GONE, last: int = -1) -> None:
        """Raise the floors of some buffers, and with them those of sections, first..last in any case."""
        self._set(node, self.floors, buffers, np.full(len(buffers), floor))
        if len(buffers):
            first, last = min(first, int(self.first[buffers].min())), max(last, int(self.last[buffers].max()))
        start = self.start[first : last + 2]
        low = np.minimum.reduceat(self.floors[self.live[start[0] : start[-1]]], start[:-1] - start[0])
        self._set(node, self.low, slice(first, last + 1), low)
        self.cost += int(start[-1] - start[0])

    @staticmethod
    def _set(node: Node, array: IntArray, where: IntArray | slice, values: IntArray) -> None:
        node.changed.append((array, where, array[where].copy()))
        array[where] = values

    def _apart(self, task: SearchTask) -> list[tuple[int, int]]:
        """The sections of what is left, by groups that no section connects, the one with the fewest buffers last."""
        among = self._among(task)
        left = self.floors[among] < GONE
        first, last = self.first[among][left], np.maximum.accumulate(self.last[among][left])
        if not len(first):
            return []
        cuts = ((first[1:] > last[:-1]).nonzero()[0] + 1).tolist()
        groups = sorted(zip([0, *cuts], [*cuts, len(first)], strict=True), key=lambda group: group[0] - group[1])
        return [(int(first[start]), int(last[end - 1])) for start, end in groups]


def cells(part: BufferGroup) -> int:
    """Live buffers, summed over the sections."""
    return sum(part.lengths)


def _valleys(low: IntArray) -> IntArray:
    """Sections in runs of one floor between higher ones; those with nothing left are the highest."""
    starts = np.concatenate(([0], (low[1:] != low[:-1]).nonzero()[0] + 1))
    lengths = np.concatenate((starts[1:], [len(low)])) - starts
    floors = np.concatenate(([GONE], low[starts], [GONE]))
    run = floors[1:-1]
    deep = (run < GONE) & (run <= floors[:-2]) & (run <= floors[2:])
    return deep.repeat(lengths).nonzero()[0]
