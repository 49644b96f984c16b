"""Total orders of floats compare integers (`xla/hlo/transforms/expanders/comparison_expander.cc`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlofuse.analysis.side_effects import has_side_effect
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.ir.replacing import replace_instruction
from hlofuse.simplifications.common import make
from hlofuse.simplifications.common.literals import highest, lowest

_FLOATS = frozenset({"f16", "bf16", "f32", "f64"})


@dataclass(frozen=True)
class ComparisonExpander:
    """`comparison-expander`."""

    name: ClassVar[str] = "comparison-expander"

    def run(self, module: Module) -> bool:
        changed = False
        for computation in module.non_fusion_computations():
            for x in computation.post_order():
                if x.opcode != "compare" or x.attributes.raw("type") != "TOTALORDER":
                    continue
                if x.operands[0].shape.element_type in _FLOATS:
                    changed |= replace_instruction(
                        x, _expanded(x), has_side_effect, relay_control_dependencies=True
                    )
        return changed


def _expanded(x: Instruction) -> Instruction:
    shape = x.operands[0].shape.with_element_type(f"s{x.operands[0].shape.bit_width}")
    bounds = []
    for value in (0, lowest(shape.element_type), highest(shape.element_type)):
        assert value is not None
        scalar = make.scalar(x, shape.element_type, value)
        bounds.append(make.broadcast(x, shape, scalar, ()))
    zero, _, most = bounds
    sides = []
    for operand in x.operands:
        bits = make.add(x, "bitcast-convert", shape, [operand])
        flipped = make.binary(x, "xor", most, bits)
        negative = make.compare(x, "LT", bits, zero)
        sides.append(make.select(x, negative, flipped, bits))
    return make.add(x, "compare", x.shape, sides, direction=x.attributes.raw("direction"))
