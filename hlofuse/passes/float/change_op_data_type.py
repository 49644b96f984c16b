"""Products and convolutions of narrow floats on wider ones (`xla/service/change_op_data_type.cc`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.removing import replace_instruction
from hlofuse.passes.base import Pass
from hlofuse.passes.common import make
from hlofuse.passes.common.rewriting import rewrite_each
from hlofuse.trace import Recorder


@dataclass(frozen=True)
class ChangeOpDataType(Pass):
    """`change-op-data-type` of products and convolutions whose operands are all of `low`."""

    name: ClassVar[str] = "change-op-data-type"
    low: str
    high: str
    is_skipped: Callable[[Instruction], bool]
    """Those that a library computes in the narrow type."""

    def run(self, module: Module, recorder: Recorder) -> bool:
        return rewrite_each(module, ["dot", "convolution"], self._widen, recorder)

    def _widen(self, x: Instruction) -> bool:
        if self.is_skipped(x) or any(o.shape.element_type != self.low for o in x.operands):
            return False
        operands = [make.convert(o, o, self.high) for o in x.operands]
        wide = make.copy_of(x, operands, x.shape.with_element_type(self.high))
        new = make.convert(wide, wide, x.shape.element_type)
        return replace_instruction(x, new, has_side_effect, relay_control_dependencies=True)
