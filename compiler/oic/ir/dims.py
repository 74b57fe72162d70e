"""Sizes known at build, or bounded at run time: polynomials over extents.

A dimension is an `int` or an `Expr`: a sum of products of *extents*, run-time integers that lie
between 0 and a known maximum.  Two dimensions are equal exactly when their canonical forms are,
so `(pos + N) - pos` is `N`.  What is not a polynomial (a floor division) is an atom of its own.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import mul

from oic.ir import intervals
from oic.ir.intervals import Range

INDEX_BOUND = 1 << 62  # beyond every size that can be stored


@dataclass(frozen=True, order=True)
class Extent:
    """A run-time size: its unique name and its largest value."""

    name: str
    maximum: int

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Quotient:
    """`numerator // divisor`, rounded toward minus infinity; 0 where the divisor is below 1."""

    numerator: "Dim"
    divisor: "Dim"

    def __str__(self) -> str:
        return f"{_in_parentheses(self.numerator)}/{_in_parentheses(self.divisor)}"


Atom = Extent | Quotient
Term = tuple[tuple[Atom, ...], int]  # a product of atoms, and its coefficient


@dataclass(frozen=True, slots=True, repr=False)
class Expr:
    """A canonical polynomial that is not a constant.  Made by arithmetic on `of(extent)`."""

    terms: tuple[Term, ...]

    def __add__(self, other: "Dim") -> "Dim":
        if other == 0:
            return self
        return _collect([*self.terms, *_terms(other)])

    __radd__ = __add__

    def __neg__(self) -> "Dim":
        return _collect((atoms, -c) for atoms, c in self.terms)

    def __sub__(self, other: "Dim") -> "Dim":
        return self + (-other)

    def __rsub__(self, other: "Dim") -> "Dim":
        return (-self) + other

    def __mul__(self, other: "Dim") -> "Dim":
        if other == 1:
            return self
        return _collect((tuple(sorted(a + b, key=str)), c * d) for a, c in self.terms for b, d in _terms(other))

    __rmul__ = __mul__

    def __floordiv__(self, divisor: "Dim") -> "Dim":
        return floor_div(self, divisor)

    def text(self, of: Callable[[Atom, bool], str]) -> str:
        """A sum of products; `of` gives the text of an atom, which may be the whole term."""
        parts: list[str] = []
        for atoms, c in self.terms:
            factors = [of(a, c == 1 and len(atoms) == 1) for a in atoms]
            text = "*".join([*([str(abs(c))] if abs(c) != 1 or not atoms else []), *factors])
            sign = "-" if c < 0 else "+"
            parts.append(f" {sign} {text}" if parts else (f"-{text}" if c < 0 else text))
        return "".join(parts)

    def __str__(self) -> str:
        return self.text(lambda a, alone: str(a) if alone or isinstance(a, Extent) else f"({a})")

    __repr__ = __str__


Dim = int | Expr


def of(extent: Extent) -> Expr:
    """The size that is just this extent."""
    return Expr((((extent,), 1),))


def atom(dim: Dim) -> Extent | None:
    """The extent a size is exactly, or None for a constant or compound one."""
    if isinstance(dim, Expr) and len(dim.terms) == 1:
        atoms, c = dim.terms[0]
        if c == 1 and len(atoms) == 1 and isinstance(atoms[0], Extent):
            return atoms[0]
    return None


def maximum(dim: Dim) -> int:
    """The largest value of a size, exact for coefficients of one sign."""
    return bounds(dim)[1]


def bounds(dim: Dim, of: Callable[[Extent], Range] | None = None) -> Range:
    """The smallest and the largest value of a size, every term taken by itself.

    of   the values of an extent, where more is known than its maximum
    """
    if isinstance(dim, int):
        return dim, dim
    total = 0, 0
    for atoms, c in dim.terms:
        term = c, c
        for atom in atoms:
            term = intervals.times(term, _atom_bounds(atom, of))
        total = intervals.plus(total, term)
    return total


def _atom_bounds(atom: Atom, of: Callable[[Extent], Range] | None) -> Range:
    if isinstance(atom, Extent):
        return of(atom) if of is not None else (0, atom.maximum)
    return intervals.quotient(bounds(atom.numerator, of), bounds(atom.divisor, of))


def differ(a: Dim, b: Dim) -> bool:
    """Two sizes that no values of their extents make equal."""
    low, high = bounds(a - b)
    return low > 0 or high < 0


def floor_div(a: Dim, b: Dim) -> Dim:
    """a // b; 0 where b is below 1, which is refused elsewhere."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b if b > 0 else 0
    if maximum(b) < 1:
        return 0
    if isinstance(b, int) and all(c % b == 0 for _, c in _terms(a)):
        return _collect((atoms, c // b) for atoms, c in _terms(a))
    return Expr((((Quotient(a, b),), 1),))


def quotients(sizes: Iterable[Dim]) -> list[Quotient]:
    """Every division in these sizes, those inside others first."""
    found: list[Quotient] = []
    for atom in _atoms(sizes):
        if isinstance(atom, Quotient):
            found += [*quotients([atom.numerator, atom.divisor]), atom]
    return list(dict.fromkeys(found))


def evaluate(dim: Dim, value: Mapping[str, int]) -> int:
    """The size, given the value of every extent by name."""
    found = substitute(dim, lambda extent: value[extent.name])
    assert isinstance(found, int)
    return found


def substitute(dim: Dim, to: Callable[[Extent], Dim]) -> Dim:
    """The size with every extent replaced."""
    total: Dim = 0
    for atoms, c in _terms(dim):
        parts = (
            to(a) if isinstance(a, Extent) else floor_div(substitute(a.numerator, to), substitute(a.divisor, to))
            for a in atoms
        )
        total = total + c * product(parts)
    return total


def extents(sizes: Iterable[Dim]) -> frozenset[Extent]:
    """Every extent that occurs in any of the sizes."""
    atoms = _atoms(size for size in sizes if isinstance(size, Expr))
    parts = ([a] if isinstance(a, Extent) else extents([a.numerator, a.divisor]) for a in atoms)
    return frozenset().union(*parts)


def product(sizes: Iterable[Dim]) -> Dim:
    """The number of elements of a shape."""
    return reduce(mul, sizes, 1)


def quotient(total: Dim, part: Dim) -> Dim | None:
    """total / part where that is exact for every value of the extents; else None.

    `part` is positive, or an expression of one term that divides every term of `total`.
    """
    if isinstance(part, int) and part <= 0:
        return None
    if len(_terms(part)) != 1:
        return 1 if total == part else None
    ((divisor, scale),) = _terms(part)
    terms: list[Term] = []
    for atoms, c in _terms(total):
        left = list(atoms)
        for a in divisor:
            if a not in left:
                return None
            left.remove(a)
        if c % scale:
            return None
        terms.append((tuple(left), c // scale))
    return _collect(terms)


def _in_parentheses(dim: Dim) -> str:
    """The size as an operand of `/`."""
    return str(dim) if isinstance(dim, int) or atom(dim) is not None else f"({dim})"


def _atoms(sizes: Iterable[Dim]) -> Iterator[Atom]:
    """What the products of sizes are made of."""
    return (atom for size in sizes for atoms, _ in _terms(size) for atom in atoms)


def _terms(dim: Dim) -> tuple[Term, ...]:
    return (((), int(dim)),) if isinstance(dim, int) else dim.terms


def _collect(terms: Iterable[Term]) -> Dim:
    total: dict[tuple[Atom, ...], int] = {}
    for atoms, c in terms:
        total[atoms] = total.get(atoms, 0) + c
    kept = [(a, c) for a, c in total.items() if c]
    if not kept:
        return 0
    if len(kept) == 1:
        return Expr(tuple(kept)) if kept[0][0] else kept[0][1]
    return Expr(tuple(sorted(kept, key=_order)))


def _order(term: Term) -> tuple[bool, str]:
    return not term[0], "*".join(str(a) for a in term[0])  # the constant comes last
