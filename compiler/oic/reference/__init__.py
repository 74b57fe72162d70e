"""The meaning of every IR stage, in NumPy."""

from oic.reference import semantics as semantics  # registers what structural ops do
