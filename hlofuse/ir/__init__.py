"""XLA's graph in XLA's terms: modules, computations, instructions, shapes; reading and printing them."""

from hlofuse.ir.attributes.attributes import Attributes
from hlofuse.ir.copy import copy_module
from hlofuse.ir.errors import HlofuseError, HloParseError
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.literal import Literal
from hlofuse.ir.print_options import PrintOptions
from hlofuse.ir.shape import Layout, Shape
from hlofuse.ir.text.printer import print_module
from hlofuse.ir.text.reader import parse_module

__all__ = [
    "Attributes",
    "Computation",
    "HloParseError",
    "HlofuseError",
    "Instruction",
    "Layout",
    "Literal",
    "Module",
    "PrintOptions",
    "Shape",
    "copy_module",
    "parse_module",
    "print_module",
]
