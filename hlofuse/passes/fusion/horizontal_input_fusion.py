"""Joins reductions that feed one consumer (`xla/service/gpu/transforms/horizontal_input_fusion.cc`)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from hlofuse.analysis.call_sites import non_fusion_computations
from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.cost.gpu.merging import kernel_model
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.ir.fusing import fuse_in_place_of, merge_fusion_into_multi_output
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.shape import Shape
from hlofuse.passes.base import DevicePass
from hlofuse.rules.fusion_heroes import hero_input_shape, shapes_differ
from hlofuse.rules.horizontal_fusion import (
    JOINED_REDUCTIONS,
    WRAPPED_REDUCTION,
    feeds_only,
    instruction_count,
)
from hlofuse.rules.priority_fusion.budget import over_budget
from hlofuse.rules.verdict import Verdict
from hlofuse.trace import Recorder

# The order in which `std::sort` leaves elements that compare equal; XLA's passes show it in what they make.
#
# XLA's plugins use libstdc++: quicksort around the median of three down to pieces of 16, then one
# insertion sort (`std::__introsort_loop`, `std::__final_insertion_sort`). The standard promises no order
# among equals; this is the one that comes out. Left out is the heap sort of inputs made to defeat the
# choice of the pivot.


T = TypeVar("T")
_SMALL = 16


def std_sorted(values: Sequence[T], is_before: Callable[[T, T], bool]) -> list[T]:
    """`values` in the order of `std::sort` with the comparison `is_before`.

    The comparison need not be a strict one, as XLA's are not always.
    """
    result = list(values)
    _partition(result, 0, len(result), is_before)
    for k in range(1, len(result)):
        _insert(result, k, is_before, guarded=k < _SMALL)
    return result


def _partition(v: list[T], first: int, last: int, is_before: Callable[[T, T], bool]) -> None:
    """Cut `v[first:last]` into pieces of up to 16, all of one piece before all of the next."""
    while last - first > _SMALL:
        _median_to_first(v, first, first + 1, (first + last) // 2, last - 1, is_before)
        pivot, low, high = v[first], first + 1, last
        while True:
            while low < last and is_before(v[low], pivot):
                low += 1
            high -= 1
            while high > first and is_before(pivot, v[high]):
                high -= 1
            if low >= high:
                break
            v[low], v[high] = v[high], v[low]
            low += 1
        _partition(v, low, last, is_before)
        last = low


def _median_to_first(
    v: list[T], first: int, a: int, b: int, c: int, is_before: Callable[[T, T], bool]
) -> None:
    """Swap the median of three elements with the one at `first`."""
    if not is_before(v[a], v[b]):
        a, b = b, a
    median = b if is_before(v[b], v[c]) else c if is_before(v[a], v[c]) else a
    v[first], v[median] = v[median], v[first]


def _insert(v: list[T], place: int, is_before: Callable[[T, T], bool], *, guarded: bool) -> None:
    """Bring `v[place]` to where it belongs in what is in front of it."""
    value = v.pop(place)
    if guarded and is_before(value, v[0]):
        place = 0
    while place and is_before(value, v[place - 1]):
        place -= 1
    v.insert(place, value)


@dataclass(frozen=True, kw_only=True)
class HorizontalInputFusion(DevicePass):
    """`horizontal_input_fusion`: consumers in post-order, their operands by the shape that is reduced."""

    name: ClassVar[str] = "horizontal_input_fusion"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for computation in non_fusion_computations(module):
            model = kernel_model(self.required_device(), self.release)
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
        if (verdict := shapes_differ(anchor, other, self._model, self._settings)) is not None:
            return verdict
        return over_budget(anchor, other, self._model, self._settings, producer_consumer=False)

    def _join(self, anchor: Instruction, other: Instruction) -> None:
        name, into = other.name, anchor.name
        self._model.forget(other)
        merge_fusion_into_multi_output(anchor, other)
        self._model.changed(anchor)
        self._recorder.fuse(name, into, anchor, rule=JOINED_REDUCTIONS.code, kind="horizontal")
