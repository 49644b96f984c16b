"""Splits concatenates of very many arrays (`xla/backends/gpu/transforms/variadic_op_splitter.cc`)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.removing import replace_instruction
from hlofuse.passes.base import Pass
from hlofuse.rules.clean_up import MANY_OPERANDS, MAX_CONCATENATE_OPERANDS
from hlofuse.trace import Recorder


@dataclass(frozen=True, kw_only=True)
class VariadicOpSplitter(Pass):
    """`variadic-op-splitter`."""

    name: ClassVar[str] = "variadic-op-splitter"

    def run(self, module: Module, recorder: Recorder) -> bool:
        batch = int(self.settings.value(MAX_CONCATENATE_OPERANDS))
        if MANY_OPERANDS.code in self.settings.disabled or batch < 2:
            return False
        changed = False
        for computation in module.non_fusion_computations():
            for concatenate in computation.instructions:
                if concatenate.opcode == "concatenate" and len(concatenate.operands) > batch:
                    _split(computation, concatenate, batch, recorder)
                    changed = True
        return changed


def _split(computation: Computation, concatenate: Instruction, batch: int, recorder: Recorder) -> None:
    parts = list(concatenate.operands)
    name, concatenates = concatenate.name, []
    while len(parts) > 1:
        joined: list[Instruction] = []
        for start in range(0, len(parts), batch):
            if start and start + batch > len(parts):
                joined += parts[start:]
                break
            part = _concatenate(concatenate, parts[start : start + batch])
            joined.append(computation.add_instruction(part))
            concatenates.append(part.name)
        parts = joined
    replace_instruction(concatenate, parts[0], has_side_effect)
    concatenates[-1] = parts[0].name
    recorder.rewrite(
        computation.name, [name], concatenates, rule=MANY_OPERANDS.code, reason=MANY_OPERANDS.title
    )


def _concatenate(whole: Instruction, parts: list[Instruction]) -> Instruction:
    dimension = whole.dimensions[0]
    sizes = list(whole.shape.dimensions)
    sizes[dimension] = sum(p.shape.dimensions[dimension] for p in parts)
    return whole.clone(parts, shape=replace(whole.shape, dimensions=tuple(sizes)))
