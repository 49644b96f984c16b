"""Products of two element types are of the more precise one
(`xla/backends/gpu/transforms/dot_operand_converter.cc`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.shape import BIT_WIDTH, COMPLEX_TYPES
from hlofuse.passes.base import Pass
from hlofuse.passes.common.make import derived
from hlofuse.passes.common.rewriting import NotRepresentable, rewrite_each
from hlofuse.trace import Recorder

_UNCONVERTED = frozenset({"f8e4m3fn", "f8e5m2", "f8e4m3fnuz", "f8e5m2fnuz"})
_FLOATS = {"f16": (16, 11), "bf16": (128, 8), "f32": (128, 24), "f64": (1024, 53)}
"""Exponent that overflows, and bits of the significand."""


@dataclass(frozen=True)
class DotOperandConverter(Pass):
    """`operand_converter`, of integers and of floats wider than a byte."""

    name: ClassVar[str] = "operand_converter"

    def run(self, module: Module, recorder: Recorder) -> bool:
        return rewrite_each(module, ["dot"], _convert, recorder)


def _convert(dot: Instruction) -> bool:
    types = [o.shape.element_type for o in dot.operands[:2]]
    if types[0] == types[1] or _UNCONVERTED.issuperset(types):
        return False
    wider = max(types, key=_precision)
    narrow = 1 if wider == types[0] else 0
    operand = dot.operands[narrow]
    dot.replace_operand(narrow, derived(dot, "convert", operand.shape.with_element_type(wider), [operand]))
    return True


def _precision(element_type: str) -> tuple[bool, int, int, int, bool]:
    """What `HigherPrecisionType` compares."""
    is_complex = element_type in COMPLEX_TYPES
    component = {"c64": "f32", "c128": "f64"}.get(element_type, element_type)
    if component.startswith("f") and component not in _FLOATS:
        raise NotRepresentable("a product of a narrow float and another type")
    overflow, significand = _FLOATS.get(component, (-1, -1))
    return is_complex, overflow, significand, BIT_WIDTH[component], component.startswith("s")
