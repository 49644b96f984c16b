"""Total orders of floats compare integers (`xla/hlo/transforms/expanders/comparison_expander.cc`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.removing import replace_instruction
from hlofuse.passes.base import Pass
from hlofuse.passes.common import make
from hlofuse.passes.common.literals import highest, lowest
from hlofuse.passes.common.rewriting import rewrite_each
from hlofuse.trace import Recorder

_FLOATS = frozenset({"f16", "bf16", "f32", "f64"})


@dataclass(frozen=True)
class ComparisonExpander(Pass):
    """`comparison-expander`."""

    widened: Mapping[str, str] = field(default_factory=dict)
    """Types that are converted first, each to the type whose bits are compared."""
    name: ClassVar[str] = "comparison-expander"

    def run(self, module: Module, recorder: Recorder) -> bool:
        def handle(x: Instruction) -> bool:
            if x.attributes.raw("type") != "TOTALORDER" or x.operands[0].shape.element_type not in _FLOATS:
                return False
            return replace_instruction(x, self._expanded(x), has_side_effect, relay_control_dependencies=True)

        return rewrite_each(module, ["compare"], handle, recorder)

    def _expanded(self, x: Instruction) -> Instruction:
        element_type = x.operands[0].shape.element_type
        wide = self.widened.get(element_type, element_type)
        return _of_integers(x, [make.convert(x, o, wide) for o in x.operands])


def _of_integers(x: Instruction, operands: Sequence[Instruction]) -> Instruction:
    shape = operands[0].shape.with_element_type(f"s{operands[0].shape.bit_width}")
    bounds = []
    for value in (0, lowest(shape.element_type), highest(shape.element_type)):
        assert value is not None
        scalar = make.scalar(x, shape.element_type, value)
        bounds.append(make.broadcast(x, shape, scalar, ()))
    zero, _, most = bounds
    sides = []
    for operand in operands:
        bits = make.add(x, "bitcast-convert", shape, [operand])
        flipped = make.binary(x, "xor", most, bits)
        negative = make.compare(x, "LT", bits, zero)
        sides.append(make.select(x, negative, flipped, bits))
    return make.add(x, "compare", x.shape, sides, direction=x.attributes.raw("direction"))
