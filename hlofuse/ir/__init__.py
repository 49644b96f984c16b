"""XLA's graph in XLA's terms: modules, computations, instructions, shapes; reading and printing them. Each
name is imported when it is first used: most of the command line needs `hlofuse.ir.errors` only."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .attributes.attributes import Attributes as Attributes
    from .copy import copy_module as copy_module
    from .errors import HlofuseError as HlofuseError
    from .errors import HloParseError as HloParseError
    from .fusing import computation_of as computation_of
    from .fusing import module_of as module_of
    from .graph import Computation as Computation
    from .graph import Instruction as Instruction
    from .graph import Module as Module
    from .graph import Predicate as Predicate
    from .graph import callees as callees
    from .grouping import grouped as grouped
    from .grouping import numbered as numbered
    from .grouping import reach as reach
    from .literal import Literal as Literal
    from .opcodes import PrintOptions as PrintOptions
    from .opcodes import with_trait as with_trait
    from .record import Json as Json
    from .record import Record as Record
    from .record import replace as replace
    from .removing import set_attribute as set_attribute
    from .shape import Layout as Layout
    from .shape import Shape as Shape
    from .text.printer import print_module as print_module
    from .text.reader import parse_module as parse_module

_FILES = {
    "Attributes": "attributes.attributes",
    "Computation": "graph",
    "HloParseError": "errors",
    "HlofuseError": "errors",
    "Instruction": "graph",
    "Json": "record",
    "Layout": "shape",
    "Literal": "literal",
    "Module": "graph",
    "Predicate": "graph",
    "PrintOptions": "opcodes",
    "Record": "record",
    "Shape": "shape",
    "callees": "graph",
    "computation_of": "fusing",
    "copy_module": "copy",
    "grouped": "grouping",
    "module_of": "fusing",
    "parse_module": "text.reader",
    "print_module": "text.printer",
    "numbered": "grouping",
    "reach": "grouping",
    "replace": "record",
    "set_attribute": "removing",
    "with_trait": "opcodes",
}


def __getattr__(name: str) -> Any:
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_FILES[name]}"), name)
    return value
