"""Which tensors need not be filled: those that loops write in whole before anything reads them.

    %y = splat {value=0.0} : f32[N, 8]        nothing is written for %y: the loop runs N times, and
    %z = for(0, N, [%y]) {                    iteration i replaces row i
      ^(%i, %y0):
        ...
        %y1 = insert(%y0, [%i], %t)
        yield([%y1])
    }

Sure only of loops from 0 of which each counts along one axis, in steps as long as the part, up to the
end of that axis, around a part that has all of every other axis.  Part of `bufferize`.
"""

from oic.ir.control import For
from oic.ir.core import Block, Value
from oic.ir.dims import Dim
from oic.ir.ranges import linear
from oic.ir.state import Splat
from oic.operators.part import Insert


def mark_unread(body: Block) -> None:
    """Note at every splat whether all its elements are replaced before one is read."""
    for op in body.all_ops():
        if isinstance(op, Splat):
            place = op.result.place
            filled = place is None or place.offset is None or op.type.dtype.packed
            op.unread = not filled and _replaced(op.result, []) is not None


def _replaced(value: Value, loops: list[For]) -> Value | None:
    """What becomes of a value, if the one thing that happens to it in these loops and deeper is that all is replaced.

    Every iteration hands on what the one before has left, and nothing else sees it.
    """
    found = value.users
    if len(found) != 1 or found[0].operands.count(value) != 1:
        return None
    user = found[0]
    if isinstance(user, Insert):
        return user.result if user.x is value and _covers(user, loops) else None
    if not isinstance(user, For) or value not in user.init:
        return None
    position = user.init.index(value)
    result, end = user.results[position], user.body.terminator
    left = _replaced(user.body.args[1 + position], [*loops, user])
    handed_on = left is not None and left.users == [end] and end.operands[position] is left
    return result if handed_on and result.type == value.type else None


def _covers(insert: Insert, loops: list[For]) -> bool:
    """The iterations of the loops, each along an axis of its own, leave nothing of the tensor out."""
    free = {loop.body.args[0]: loop for loop in loops}
    for offset, length, size in zip(insert.offsets, insert.lengths, insert.x.shape):
        at = linear(offset)
        length = 1 if length is None else length
        if not at and length == size:
            continue
        index = next(iter(at), None)
        loop = free.pop(index, None) if isinstance(index, Value) else None
        if loop is None or at != {index: length} or not _counts(loop, length, size):
            return False
    return not free  # a loop along no axis may have no iteration


def _counts(loop: For, step: int, size: Dim) -> bool:
    """From 0 to the size, in such steps."""
    end = {atom: n * step for atom, n in linear(loop.end).items()}
    return not linear(loop.start) and end == linear(size)
