"""Joins small loops that feed one consumer (`xla/service/gpu/transforms/horizontal_loop_fusion.cc`)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.cost.gpu.merging import kernel_model
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.ir.fusing import fuse_in_place_of
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.horizontal import join_fusions
from hlofuse.ir.shape import ELEMENT_TYPES
from hlofuse.passes.base import DevicePass
from hlofuse.rules import horizontal_fusion as rules
from hlofuse.rules.catalogue import Knob, Rule
from hlofuse.rules.gpu_fusible import outputs_of
from hlofuse.rules.horizontal_fusion import (
    figures_of,
    instruction_count,
    is_horizontal_candidate,
    unroll_cost,
)
from hlofuse.trace import Recorder


@dataclass(frozen=True, kw_only=True)
class HorizontalLoopFusion(DevicePass):
    """`horizontal_loop_fusion`: the entry computation, consumers last to first."""

    name: ClassVar[str] = "horizontal_loop_fusion"

    def run(self, module: Module, recorder: Recorder) -> bool:
        model = kernel_model(self.required_device(), self.release)
        drivers = [_Driver(self, model, recorder, sliced) for sliced in (False, True)]
        stack = module.entry.post_order()
        changed = False
        while stack:
            consumer = stack.pop()
            if consumer.computation is None or not (consumer.users or consumer.is_root):
                continue
            for driver in drivers:
                for joined in driver.run(consumer):
                    stack.append(joined)
                    changed = True
        return changed


class _Driver:
    """The operands of consumers, joined whole or by concatenating their results."""

    def __init__(
        self, options: HorizontalLoopFusion, model: KernelModel, recorder: Recorder, sliced: bool
    ) -> None:
        self._settings = options.settings
        self._recorder = recorder
        self._sliced = sliced
        self._model = model

    def run(self, consumer: Instruction) -> Iterator[Instruction]:
        """`FuseConsumerOperands`; the joined fusions."""
        kernels = self._candidates(consumer)
        kernels.sort(key=_sorting_key)
        start = 0
        while start < len(kernels):
            end = self._end_of_span(kernels, start)
            if end - start > 1:
                yield self._join(kernels[start:end])
            start = end

    def _candidates(self, consumer: Instruction) -> list[Instruction]:
        """`FusionCandidates::Initialize`."""
        found: dict[Instruction, None] = {}
        for operand in consumer.operands:
            while operand.opcode == "get-tuple-element":
                operand = operand.operands[0]
            if is_horizontal_candidate(operand, self._model):
                found[operand] = None
        fusible = []
        for kernel in found:
            refusal = self._refusal(kernel, consumer, found)
            if refusal is None:
                fusible.append(kernel)
            else:
                message = (
                    f"sliced_input_fusion={int(self._sliced)} {refusal.message.replace('…', kernel.name)}"
                )
                self._recorder.ineligible(kernel, consumer, rule=refusal.code, reason=message)
        return fusible

    def _refusal(
        self, kernel: Instruction, consumer: Instruction, found: dict[Instruction, None]
    ) -> Rule | None:
        off = self._settings.disabled
        elements = self._limit(rules.MAX_ELEMENTS, rules.MAX_ELEMENTS_SLICED)
        instructions = self._limit(rules.MAX_INSTRUCTIONS, rules.MAX_INSTRUCTIONS_SLICED)
        if not rules.feeds_only(kernel, consumer):
            return rules.OTHER_USERS
        if outputs_of(kernel)[0].shape.element_count > elements and rules.LARGE.code not in off:
            return rules.LARGE
        if (
            kernel.opcode == "fusion"
            and instruction_count(kernel) > instructions
            and rules.LONG.code not in off
        ):
            return rules.LONG
        if not rules.is_row_major(kernel):
            return rules.NOT_ROW_MAJOR
        for operand in kernel.operands:
            if operand.opcode == "parameter" and any(u is not kernel and u in found for u in operand.users):
                return rules.SHARED_PARAMETER if rules.SHARED_PARAMETER.code not in off else None
        return None

    def _limit(self, whole: Knob, sliced: Knob) -> float:
        return self._settings.value(sliced if self._sliced else whole)

    def _end_of_span(self, kernels: list[Instruction], start: int) -> int:
        """How far kernels can be joined from `start` on; at least one (`GetNextSpanOfFusions`)."""
        first = kernels[start]
        whole_and_unfused = not self._sliced and first.opcode != "fusion"
        most = self._settings.value(rules.MAX_OUTPUTS_UNFUSED if whole_and_unfused else rules.MAX_OUTPUTS)
        limited = rules.TOO_MANY.code not in self._settings.disabled
        outputs = pointers = cost = 0
        for end in range(start, len(kernels)):
            kernel = kernels[end]
            message, rule = self._unlike(first, kernel), rules.UNLIKE
            if not message and limited:
                rule = rules.TOO_MANY
                results = len(outputs_of(kernel))
                outputs += results
                pointers += len(kernel.operands) + results
                cost += unroll_cost(kernel)
                if outputs >= most:
                    message = f"hit max fusion batch size: {outputs}"
                elif pointers * 8 >= self._settings.value(rules.MAX_PARAMETER_BYTES):
                    message = f"hit max cuda param size: {pointers}"
                elif cost >= self._settings.value(rules.MAX_UNROLL_COST):
                    message = f"hit max instr unroll cost: {cost}"
            if message:
                self._recorder.ineligible(
                    kernel, first if end > start else None, rule=rule.code, reason=message
                )
                return max(end, start + 1)
        return len(kernels)

    def _unlike(self, a: Instruction, b: Instruction) -> str:
        """XLA's words for how the two differ; empty if they do not."""
        message = (
            "different multiple output types",
            "different number of outputs",
            "different instruction count",
        )
        for x, y, word in zip(_sorting_key(a), _sorting_key(b), message, strict=False):
            if x != y:
                return word
        shape, other = outputs_of(a)[0].shape, outputs_of(b)[0].shape
        same = shape.key_ignoring_element_type == other.key_ignoring_element_type
        return "" if self._sliced or same else "different output shape"

    def _join(self, kernels: list[Instruction]) -> Instruction:
        for changing in {u for k in kernels for u in (k, *k.users)}:
            self._model.forget(changing)
        names, figures = [k.name for k in kernels], figures_of(kernels)
        fusions = [
            k if k.opcode == "fusion" else fuse_in_place_of(k, "kLoop", has_side_effect) for k in kernels
        ]
        joined = join_fusions(fusions, has_side_effect, sliced=self._sliced)
        for name in names:
            self._recorder.fuse(
                name,
                names[0],
                joined,
                rule=rules.JOINED_LOOPS.code,
                kind="horizontal",
                created=True,
                figures=figures,
            )
        return joined


def _sorting_key(kernel: Instruction) -> tuple[int, int, int, int]:
    outputs = outputs_of(kernel)
    first = outputs[0].shape
    number = ELEMENT_TYPES.index(first.element_type)
    return number, len(outputs), instruction_count(kernel), first.element_count
