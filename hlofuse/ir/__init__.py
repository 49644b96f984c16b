"""XLA's graph in XLA's terms: modules, computations, instructions, shapes; reading and printing them. Each
name is imported when it is first used: most of the command line needs `hlofuse.ir.errors` only."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .attributes.attributes import Attributes as Attributes
    from .attributes.window import SliceRange as SliceRange
    from .attributes.window import SliceRanges as SliceRanges
    from .attributes.window import Window as Window
    from .attributes.window import WindowDimension as WindowDimension
    from .copy import copy_module as copy_module
    from .errors import HlofuseError as HlofuseError
    from .errors import HloParseError as HloParseError
    from .fusing import computation_of as computation_of
    from .fusing import module_of as module_of
    from .graph import Computation as Computation
    from .graph import Instruction as Instruction
    from .graph import Instructions as Instructions
    from .graph import Module as Module
    from .graph import OrderSource as OrderSource
    from .graph import Predicate as Predicate
    from .graph import callees as callees
    from .grouping import grouped as grouped
    from .grouping import numbered as numbered
    from .grouping import post_order as post_order
    from .grouping import reach as reach
    from .grouping import unmatched as unmatched
    from .literal import Literal as Literal
    from .opcodes import PrintOptions as PrintOptions
    from .opcodes import values as values
    from .opcodes import with_trait as with_trait
    from .record import AnyPath as AnyPath
    from .record import Json as Json
    from .record import Progress as Progress
    from .record import Record as Record
    from .record import Strings as Strings
    from .record import replace as replace
    from .removing import has_side_effect as has_side_effect
    from .removing import remove_with_unused_operands as remove_with_unused_operands
    from .removing import replace_instruction as replace_instruction
    from .removing import set_attribute as set_attribute
    from .shape import COMPLEX_TYPES as COMPLEX_TYPES
    from .shape import FLOATING_TYPES as FLOATING_TYPES
    from .shape import INTEGER_TYPES as INTEGER_TYPES
    from .shape import Dims as Dims
    from .shape import Layout as Layout
    from .shape import Shape as Shape
    from .text.printer import print_module as print_module
    from .text.reader import parse_module as parse_module
    from .texts import packaged as packaged

_NAMES = {
    "attributes.attributes": "Attributes",
    "attributes.window": "SliceRange SliceRanges Window WindowDimension",
    "copy": "copy_module",
    "errors": "HloParseError HlofuseError",
    "fusing": "computation_of module_of",
    "graph": "Computation Instruction Instructions Module OrderSource Predicate callees",
    "grouping": "grouped numbered post_order reach unmatched",
    "literal": "Literal",
    "opcodes": "PrintOptions values with_trait",
    "record": "AnyPath Json Progress Record Strings replace",
    "removing": "has_side_effect remove_with_unused_operands replace_instruction set_attribute",
    "shape": "COMPLEX_TYPES FLOATING_TYPES INTEGER_TYPES Dims Layout Shape",
    "text.printer": "print_module",
    "text.reader": "parse_module",
    "texts": "packaged",
}
_FILES = {name: file for file, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_FILES[name]}"), name)
    return value
