"""Values that an operator may go wrong on: those of the operators' own test."""

from __future__ import annotations

from tests.fuzz.values import mixed, random, special

__all__ = ["mixed", "random", "special"]
