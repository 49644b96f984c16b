"""XLA's graph in XLA's terms: modules, computations, instructions, shapes; reading and printing them. Each
name is imported when it is first used: most of the command line needs `hlofuse.ir.errors` only."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .attributes.attributes import Attributes
    from .attributes.window import SliceRange, SliceRanges, Window, WindowDimension
    from .copy import copy_module
    from .errors import HlofuseError, HloParseError
    from .graph import (
        Computation,
        Computations,
        Instruction,
        InstructionMap,
        Instructions,
        InstructionSequence,
        Module,
        OrderSource,
        Predicate,
        callees,
    )
    from .grouping import grouped, numbered, post_order, reach, unmatched
    from .literal import Literal
    from .opcodes import PrintOptions, values, with_trait
    from .record import AnyPath, Json, Progress, Record, Strings, replace
    from .removing import has_side_effect, remove_with_unused_operands, replace_instruction, set_attribute
    from .shape import COMPLEX_TYPES, FLOATING_TYPES, INTEGER_TYPES, Dims, Ints, Layout, Shape
    from .text.printer import print_module
    from .text.reader import parse_module
    from .texts import packaged

_NAMES = {
    "attributes.attributes": "Attributes",
    "attributes.window": "SliceRange SliceRanges Window WindowDimension",
    "copy": "copy_module",
    "errors": "HloParseError HlofuseError",
    "graph": (
        "Computation Computations Instruction InstructionMap InstructionSequence Instructions Module "
        "OrderSource Predicate callees"
    ),
    "grouping": "grouped numbered post_order reach unmatched",
    "literal": "Literal",
    "opcodes": "PrintOptions values with_trait",
    "record": "AnyPath Json Progress Record Strings replace",
    "removing": "has_side_effect remove_with_unused_operands replace_instruction set_attribute",
    "shape": "COMPLEX_TYPES FLOATING_TYPES INTEGER_TYPES Dims Ints Layout Shape",
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
