"""A chain of conversions between floats becomes one
(`xla/hlo/transforms/simplifiers/simplify_fp_conversions.cc`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.shape import FLOATING_TYPES
from hlofuse.passes.base import Pass
from hlofuse.passes.common.make import added
from hlofuse.passes.common.rewriting import replaced
from hlofuse.trace import Recorder


@dataclass(frozen=True)
class SimplifyFPConversions(Pass):
    """`simplify-fp-conversions`, in fusions, too; what a narrow step in between rounds off is kept."""

    name: ClassVar[str] = "simplify-fp-conversions"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for computation in module.computation_post_order():
            for i in computation.post_order():
                changed |= i.computation is not None and _shorten(i)
        return changed


def _shorten(convert: Instruction) -> bool:
    source, length = convert, 0
    while source.opcode == "convert" and source.shape.element_type in FLOATING_TYPES:
        source = source.operands[0]
        length += 1
    if length < 2:
        return False
    if source.shape.element_type == convert.shape.element_type:
        return replaced(convert, source)
    return replaced(convert, added(convert, "convert", convert.shape, [source]))
