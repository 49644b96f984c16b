"""Joins reductions that feed one consumer (`xla/service/gpu/transforms/horizontal_input_fusion.cc`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from hlofuse.analysis.call_order import non_fusion_computations
from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.cost.gpu.merging import kernel_model
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.ir.errors import HlofuseError
from hlofuse.ir.fusing import fuse_in_place_of, merge_fusion_into_multi_output
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.shape import Shape
from hlofuse.passes.base import Pass
from hlofuse.passes.common.std_sort import std_sorted
from hlofuse.releases import Release
from hlofuse.rules.gpu_multi_output_fusion.shapes import hero_input_shape, shapes_differ
from hlofuse.rules.horizontal_fusion import (
    JOINED_REDUCTIONS,
    WRAPPED_REDUCTION,
    feeds_only,
    instruction_count,
)
from hlofuse.rules.priority_fusion.budget import over_budget
from hlofuse.rules.verdict import Verdict
from hlofuse.trace import Recorder


@dataclass(frozen=True, kw_only=True)
class HorizontalInputFusion(Pass):
    """`horizontal_input_fusion`: consumers in post-order, their operands by the shape that is reduced."""

    name: ClassVar[str] = "horizontal_input_fusion"
    device: DeviceDescription | None = field(default=None, compare=False, repr=False)
    release: Release = field(compare=False, repr=False)

    def run(self, module: Module, recorder: Recorder) -> bool:
        if self.device is None:
            raise HlofuseError("horizontal_input_fusion asks for a device")
        changed = False
        for computation in non_fusion_computations(module):
            model = kernel_model(self.device, self.release)
            changed |= _Driver(self, model, recorder).run(computation)
        return changed


class _Driver:
    def __init__(self, options: HorizontalInputFusion, model: KernelModel, recorder: Recorder) -> None:
        self._settings = options.settings
        self._model = model
        self._recorder = recorder

    def run(self, computation: Computation) -> bool:
        changed = False
        for consumer in computation.post_order():
            reductions = self._candidates(consumer) if consumer.computation is not None else []
            if len(reductions) < 2:
                continue
            fusions = [self._as_fusion(r) for r in reductions]
            changed |= fusions != reductions
            anchor = fusions[0]
            for other in fusions[1:]:
                verdict = self._refusal(anchor, other)
                if verdict is None:
                    self._join(anchor, other)
                    changed = True
                else:
                    self._recorder.ineligible(
                        other, anchor, rule=verdict.rule.code, reason=verdict.reason, figures=verdict.figures
                    )
                    anchor = other
        return changed

    def _candidates(self, consumer: Instruction) -> list[Instruction]:
        """`FindAndSortFusionCandidates`."""
        found: dict[Instruction, None] = {}
        for operand in consumer.operands:
            while operand.opcode == "get-tuple-element":
                operand = operand.operands[0]
            if operand.fusion_kind == "kCustom" or not self._model.summary(operand).is_reduction:
                continue
            if feeds_only(operand, consumer):
                found[operand] = None
        return std_sorted(list(found), self._is_before)

    def _is_before(self, a: Instruction, b: Instruction) -> bool:
        x, y = self._input(a), self._input(b)
        if x.key_ignoring_element_type == y.key_ignoring_element_type:
            return instruction_count(a) < instruction_count(b)
        # XLA's comparison says yes where only the layout differs.
        return (x.rank, x.dimensions) <= (y.rank, y.dimensions)

    def _input(self, instruction: Instruction) -> Shape:
        return hero_input_shape(instruction, self._model)

    def _as_fusion(self, reduction: Instruction) -> Instruction:
        if reduction.opcode == "fusion":
            return reduction
        name = reduction.name
        fusion = fuse_in_place_of(reduction, "kInput", has_side_effect)
        computation = fusion.computation
        assert computation is not None
        self._recorder.rewrite(
            computation.name,
            [name],
            [fusion.name],
            rule=WRAPPED_REDUCTION.code,
            reason=WRAPPED_REDUCTION.title,
        )
        return fusion

    def _refusal(self, anchor: Instruction, other: Instruction) -> Verdict | None:
        verdict = shapes_differ(anchor, other, self._model, self._settings)
        if verdict is not None:
            return verdict
        return over_budget(anchor, other, self._model, self._settings, producer_consumer=False)

    def _join(self, anchor: Instruction, other: Instruction) -> None:
        name, into = other.name, anchor.name
        self._model.forget(other)
        merge_fusion_into_multi_output(anchor, other)
        self._model.changed(anchor)
        self._recorder.fuse(name, into, anchor, rule=JOINED_REDUCTIONS.code, kind="horizontal")
