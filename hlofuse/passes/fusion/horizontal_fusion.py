"""Joins small loops that feed one consumer, or reductions that do
(`xla/service/gpu/transforms/horizontal_loop_fusion.cc`, `horizontal_input_fusion.cc`)."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from hlofuse.analysis.call_sites import non_fusion_computations
from hlofuse.cost.gpu.model import KernelModel
from hlofuse.ir import Attributes, Computation, Instruction, Module, Strings
from hlofuse.ir.fusing import fuse_in_place_of, get_tuple_element, merge_fusion_into_multi_output, tuple_of
from hlofuse.ir.record import Record, replace
from hlofuse.ir.removing import remove_parameter, replace_instruction
from hlofuse.ir.shape import Layout, Shape, type_number
from hlofuse.passes.base import DevicePass, any_change
from hlofuse.releases import Release
from hlofuse.rules import horizontal_fusion as rules
from hlofuse.rules.catalogue import Knob, Rule
from hlofuse.rules.fusion_heroes import hero_input_shape, shapes_differ
from hlofuse.rules.gpu_fusible import fusible_computations, outputs_of
from hlofuse.rules.priority_fusion.conditions import over_budget
from hlofuse.rules.verdict import Verdict
from hlofuse.trace import Recorder


class HorizontalLoopFusion(DevicePass, kw_only=True):
    """`horizontal_loop_fusion`: the entry computation or all, consumers last to first."""

    name = "horizontal_loop_fusion"
    in_loops: bool = False

    def run(self, module: Module, recorder: Recorder) -> bool:
        computations = fusible_computations(module, self.release) if self.in_loops else [module.entry]
        return any_change(self._join(c, recorder) for c in computations)

    def _join(self, computation: Computation, recorder: Recorder) -> bool:
        model = self.kernels()
        drivers = [_LoopDriver(self, model, recorder, sliced) for sliced in (False, True)]
        stack = computation.post_order()
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


def _views(release: Release) -> Strings:
    """Operations without a kernel that are looked past."""
    return ("get-tuple-element", "bitcast") if release.joins_unlike_loops else ("get-tuple-element",)


# Joining fusions that do not depend on each other into one (`HorizontalLoopFusionImpl::Fuse`).

_PREFIX = "horizontally_fused_computation"


def join_fusions(fusions: Sequence[Instruction], *, sliced: bool) -> Instruction:
    """One fusion that replaces several with equally many results each. With `sliced`, results are flattened
    and concatenated, and users read slices; otherwise they stay separate."""
    computation = fusions[0].parent
    module = computation.parent
    body = _joined_body(fusions, sliced)
    module.add_computation(body)
    raw = {"kind": "kInput" if sliced else "kLoop", "calls": f"%{body.name}"}
    operands = [o for f in fusions for o in f.operands]
    joined = Instruction(
        "fusion", body.root.shape, "fusion", operands, Attributes(raw=raw), called=[("calls", body)]
    )
    computation.add_instruction(joined)
    index = 0
    for fusion in fusions:
        results = []
        for output in fusion.fused_root.outputs:
            element = get_tuple_element(joined, index, joined.shape.tuple_shapes[index])
            index += 1
            if output.rank != 1:
                element = computation.add_instruction(
                    Instruction("bitcast", output.shape, "bitcast", [element])
                )
            results.append(element)
        result = results[0]
        if len(results) > 1:
            result = computation.add_instruction(tuple_of(results))
        old_body = fusion.fused_computation
        replace_instruction(fusion, result)
        module.remove_computation(old_body)
    _share_operands(joined)
    return joined


def _joined_body(fusions: Sequence[Instruction], sliced: bool) -> Computation:
    """`CreateFusedComputation`."""
    body = Computation(_PREFIX)
    clones = {}
    for i, fusion in enumerate(fusions):
        for j, old in enumerate(fusion.fused_computation.parameters):
            clones[old] = body.append_parameter(f"param_{i}_{j}", old.shape)
    for fusion in fusions:
        for old in fusion.fused_computation.post_order():
            if old.is_parameter or (sliced and old.opcode == "tuple" and old is fusion.fused_root):
                continue
            clones[old] = body.append_parsed(old.clone([clones[o] for o in old.operands]))
    outputs = [[clones[o] for o in fusion.fused_root.outputs] for fusion in fusions]
    if sliced:
        columns = [_slices(body, column) for column in zip(*outputs, strict=True)]
        outputs = [list(row) for row in zip(*columns, strict=True)]
    body.root = body.append_parsed(tuple_of([o for row in outputs for o in row]))
    return body


def _slices(body: Computation, results: Sequence[Instruction]) -> list[Instruction]:
    flat = []
    for result in results:
        if result.rank != 1:
            result = Instruction(
                "reshape",
                Shape(result.element_type, (result.element_count,), Layout((0,))),
                "reshape",
                [result],
            )
            body.append_parsed(result)
        flat.append(result)
    total = sum(r.element_count for r in flat)
    whole = replace(flat[0].shape, dimensions=(total,))
    concatenate = Instruction(
        "concatenate", whole, "concatenate", flat, Attributes(raw={"dimensions": "{0}"})
    )
    body.append_parsed(concatenate)
    slices, start = [], 0
    for result in flat:
        limit = start + result.element_count
        slice_ = Instruction(
            "slice",
            replace(whole, dimensions=(limit - start,)),
            "slice",
            [concatenate],
            Attributes(raw={"slice": f"{{[{start}:{limit}]}}"}),
        )
        body.append_parsed(slice_)
        slices.append(slice_)
        start = limit
    return slices


def _share_operands(fusion: Instruction) -> None:
    """Parameters for the same operand become one (`HloFusionInstruction::DeduplicateFusionOperands`)."""
    body = fusion.fused_computation
    first = dict[Instruction, int]()
    repeated = []
    for number, operand in enumerate(fusion.operands):
        if operand in first:
            body.parameters[number].replace_all_uses_with(body.parameters[first[operand]])
            repeated.append(number)
        else:
            first[operand] = number
    for number in reversed(repeated):
        remove_parameter(body, number)
        fusion.remove_operand(number)


class _LoopDriver:
    """The operands of consumers, joined whole or by concatenating their results."""

    def __init__(
        self, options: HorizontalLoopFusion, model: KernelModel, recorder: Recorder, sliced: bool
    ) -> None:
        self._settings = options.settings
        self._recorder = recorder
        self._sliced = sliced
        self._model = model
        self._unlike_ones = options.release.joins_unlike_loops
        self._views = _views(options.release)
        self._shares = options.release.joins_readers_of_one or not sliced

    def run(self, consumer: Instruction) -> Iterator[Instruction]:
        """`FuseConsumerOperands`; the joined fusions."""
        kernels = self._candidates(consumer)
        places = slice(None if self._unlike_ones else -1)  # before 0.4.38 equal ones keep their order
        kernels.sort(key=lambda kernel: _sorting_key(kernel)[places])
        start = 0
        while start < len(kernels):
            end = self._end_of_span(kernels, start)
            if end - start > 1:
                yield self._join(kernels[start:end])
            start = end

    def _candidates(self, consumer: Instruction) -> list[Instruction]:
        """`FusionCandidates::Initialize`."""
        sources = dict.fromkeys(o.through(*self._views) for o in consumer.operands)
        found = {
            x: None
            for x in sources
            if rules.is_horizontal_candidate(x, self._model) or (self._unlike_ones and rules.is_joined(x))
        }
        fusible = []
        for kernel in found:
            refusal = self._refusal(kernel, consumer, found)
            if refusal is None:
                fusible.append(kernel)
            else:
                message = (
                    f"sliced_input_fusion={int(self._sliced)} {refusal.message.replace('…', kernel.name)}"
                )
                self._recorder.ineligible(kernel, consumer, Verdict(refusal, message=message))
        return fusible

    def _refusal(
        self, kernel: Instruction, consumer: Instruction, found: dict[Instruction, None]
    ) -> Rule | None:
        enables = self._settings.enables
        large = rules.MAX_ELEMENTS_SLICED if rules.is_joined(kernel) else rules.MAX_ELEMENTS
        elements = self._limit(large, rules.MAX_ELEMENTS_SLICED)
        instructions = self._limit(rules.MAX_INSTRUCTIONS, rules.MAX_INSTRUCTIONS_SLICED)
        if not rules.feeds_only(kernel, consumer, self._views):
            return rules.OTHER_USERS
        if outputs_of(kernel)[0].element_count > elements and enables(rules.LARGE_KERNEL):
            return rules.LARGE_KERNEL
        if kernel.is_fusion and rules.instruction_count(kernel) > instructions and enables(rules.LONG_KERNEL):
            return rules.LONG_KERNEL
        if not self._unlike_ones and not rules.is_row_major(kernel):
            return rules.NOT_ROW_MAJOR
        if self._unlike_ones and self._shares and not rules.writes_slice(kernel):
            return None
        for operand in kernel.operands:
            shared = self._unlike_ones or operand.is_parameter
            if shared and any(u is not kernel and u in found for u in operand.users):
                return rules.SHARED_PARAMETER if enables(rules.SHARED_PARAMETER) else None
        return None

    def _limit(self, whole: Knob, sliced: Knob) -> float:
        return self._settings.value(sliced if self._sliced else whole)

    def _end_of_span(self, kernels: list[Instruction], start: int) -> int:
        """The end of the span of kernels to join from `start`; at least one (`GetNextSpanOfFusions`)."""
        first = kernels[start]
        whole_and_unfused = not self._sliced and not first.is_fusion
        most = self._settings.value(rules.MAX_OUTPUTS_UNFUSED if whole_and_unfused else rules.MAX_OUTPUTS)
        limited = self._settings.enables(rules.TOO_MANY)
        outputs = pointers = cost = 0
        for end in range(start, len(kernels)):
            kernel = kernels[end]
            message, rule = self._unlike(first, kernel), rules.UNLIKE
            if not message and limited:
                rule = rules.TOO_MANY
                results = len(outputs_of(kernel))
                outputs += results
                pointers += kernel.operand_count + results
                cost += rules.unroll_cost(kernel)
                if outputs >= most:
                    message = f"hit max fusion batch size: {outputs}"
                elif pointers * 8 >= self._settings.value(rules.MAX_PARAMETER_BYTES):
                    message = f"hit max cuda param size: {pointers}"
                elif cost >= self._settings.value(rules.MAX_UNROLL_COST) and not self._unlike_ones:
                    message = f"hit max instr unroll cost: {cost}"
            if message:
                consumer = first if end > start else None
                self._recorder.ineligible(kernel, consumer, Verdict(rule, message=message))
                return max(end, start + 1)
        return len(kernels)

    def _unlike(self, a: Instruction, b: Instruction) -> str:
        """XLA's words for how the two differ; empty if they do not."""
        message = (
            "different multiple output types",
            "different number of outputs",
            "different instruction count",
        )
        compared = message[:2] if self._unlike_ones else message
        for x, y, word in zip(_sorting_key(a), _sorting_key(b), compared, strict=False):
            if x != y:
                return word
        shape, other = outputs_of(a)[0].shape, outputs_of(b)[0].shape
        same = shape.key_ignoring_element_type == other.key_ignoring_element_type
        return "" if self._sliced or same else "different output shape"

    def _join(self, kernels: list[Instruction]) -> Instruction:
        for changing in {u for k in kernels for u in (k, *k.users)}:
            self._model.forget(changing)
        first, figures = kernels[0].name, rules.figures_of(kernels)
        fusions = [k if k.is_fusion else fuse_in_place_of(k, "kLoop") for k in kernels]
        joined = join_fusions(fusions, sliced=self._sliced)
        for kernel in kernels:
            self._recorder.fuse(
                kernel,
                first,
                joined,
                rule=rules.JOINED_LOOPS,
                kind="horizontal",
                created=True,
                figures=figures,
            )
        return joined


def _sorting_key(kernel: Instruction) -> tuple[int, int, int, int, int]:
    outputs = outputs_of(kernel)
    first = outputs[0].shape
    number = type_number(first.element_type)
    return number, len(outputs), rules.instruction_count(kernel), first.element_count, kernel.id


# The order in which `std::sort` leaves elements that compare equal; XLA's passes show it in what they make.
#
# XLA's plugins use libstdc++: quicksort around the median of three down to pieces of 16, then one insertion
# sort (`std::__introsort_loop`, `std::__final_insertion_sort`). The standard promises no order among equals;
# this is the one that comes out. Left out is the heap sort of inputs made to defeat the choice of the pivot.


T = TypeVar("T")
_UNPARTITIONED_ELEMENTS = 16


def std_sorted(values: Sequence[T], is_before: Callable[[T, T], bool]) -> list[T]:
    """`values` in the order of `std::sort` with a comparison that need not be strict, as XLA's."""
    result = list(values)
    _partition(result, 0, len(result), is_before)
    for place in range(1, len(result)):
        value = result.pop(place)
        if place < _UNPARTITIONED_ELEMENTS and is_before(value, result[0]):
            place = 0
        while place and is_before(value, result[place - 1]):
            place -= 1
        result.insert(place, value)
    return result


def _partition(v: list[T], first: int, last: int, is_before: Callable[[T, T], bool]) -> None:
    """Cut `v[first:last]` into pieces of up to 16, all of one piece before all of the next."""
    while last - first > _UNPARTITIONED_ELEMENTS:
        a, b, c = first + 1, (first + last) // 2, last - 1
        if not is_before(v[a], v[b]):
            a, b = b, a
        median = b if is_before(v[b], v[c]) else c if is_before(v[a], v[c]) else a
        v[first], v[median] = v[median], v[first]
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


class HorizontalInputFusion(DevicePass):
    """`horizontal_input_fusion`: consumers in post-order, their operands by the shape that is reduced."""

    name = "horizontal_input_fusion"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for computation in non_fusion_computations(module):
            changed |= _InputDriver(self, self.kernels(), recorder).run(computation)
        return changed


class _InputDriver(Record):
    options: HorizontalInputFusion
    model: KernelModel
    recorder: Recorder

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
                    self.recorder.ineligible(other, anchor, verdict)
                    anchor = other
        return changed

    def _candidates(self, consumer: Instruction) -> list[Instruction]:
        """`FindAndSortFusionCandidates`."""
        sources = dict.fromkeys(o.through("get-tuple-element") for o in consumer.operands)
        views = _views(self.options.release)
        found = [x for x in sources if x.fusion_kind != "kCustom" and rules.feeds_only(x, consumer, views)]
        reductions = [x for x in found if self.model.summary(x).is_reduction]
        return std_sorted(reductions, self._is_before)

    def _is_before(self, a: Instruction, b: Instruction) -> bool:
        x, y = hero_input_shape(a, self.model), hero_input_shape(b, self.model)
        if x.key_ignoring_element_type == y.key_ignoring_element_type:
            return rules.instruction_count(a) < rules.instruction_count(b)
        # XLA's comparison says yes where only the layout differs.
        return (x.rank, x.dimensions) <= (y.rank, y.dimensions)

    def _as_fusion(self, reduction: Instruction) -> Instruction:
        if reduction.is_fusion:
            return reduction
        name = reduction.name
        fusion = fuse_in_place_of(reduction, "kInput")
        self.recorder.apply(rules.WRAPPED_REDUCTION, fusion.parent.name, [name], [fusion])
        return fusion

    def _refusal(self, anchor: Instruction, other: Instruction) -> Verdict | None:
        if (verdict := shapes_differ(anchor, other, self.model, self.options.settings)) is not None:
            return verdict
        return over_budget(anchor, other, self.model, self.options.settings, producer_consumer=False)

    def _join(self, anchor: Instruction, other: Instruction) -> None:
        into = anchor.name
        self.model.forget(other)
        merge_fusion_into_multi_output(anchor, other)
        self.model.changed(anchor)
        self.recorder.fuse(other, into, anchor, rule=rules.JOINED_REDUCTIONS, kind="horizontal")
