"""Makes reshapes bitcasts and physical transposes (`xla/hlo/transforms/expanders/reshape_decomposer.cc`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlofuse.cost.gpu.shapes import reshape_is_bitcast
from hlofuse.ir.graph import Instruction, Module
from hlofuse.passes.base import Pass
from hlofuse.passes.common.layout_shapes import aligned
from hlofuse.passes.common.make import bitcast, copied
from hlofuse.passes.common.rewriting import replaced, visit_module
from hlofuse.passes.common.shapes import descending
from hlofuse.trace import Recorder


@dataclass(frozen=True)
class ReshapeDecomposer(Pass):
    """`reshape-decomposer`: a bitcast where the layouts allow it, else with a copy ahead, behind, or both."""

    name: ClassVar[str] = "reshape-decomposer"

    def run(self, module: Module, recorder: Recorder) -> bool:
        return visit_module(module, ["reshape"], _decompose, recorder)


def _decompose(reshape: Instruction) -> bool:
    operand = reshape.operands[0]
    source, result = operand.shape, reshape.shape
    if reshape_is_bitcast(source, result):
        return replaced(reshape, bitcast(operand, result))
    before = aligned(result, source)
    if before is not None:
        return replaced(reshape, bitcast(copied(operand, before), result))
    after = aligned(source, result)
    if after is not None:
        return replaced(reshape, copied(bitcast(operand, after), result))
    plain = copied(operand, descending(source))
    return replaced(reshape, copied(bitcast(plain, descending(result)), result))
