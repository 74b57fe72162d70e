"""The text form of a module: print it, parse it back, compare two, and MLIR's generic form."""

from oic.ir.module import Module
from oic.ir.text_mlir import print_mlir
from oic.ir.text_parse import parse_module
from oic.ir.text_print import print_module

__all__ = ["print_module", "parse_module", "print_mlir", "changed"]


def changed(before: Module, after: Module) -> bool:
    """Whether two modules differ in anything their text shows."""
    return print_module(before) != print_module(after)
