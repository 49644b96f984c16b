"""Writes into slices of one stretch of memory where they are at each turn of a loop
(`xla/backends/gpu/transforms/dynamic_slice_annotator.cc`, `dynamic_slice_analysis.cc`)."""

import json
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hlofuse.analysis.slice_copies import copied_dynamic_slice, has_byte_strides, is_contiguous_slice
from hlofuse.cost.gpu.backend_config import gpu_config_text
from hlofuse.cost.gpu.shapes import strides_of
from hlofuse.ir import Computation, Instruction, Module, Shape, reach, set_attribute
from hlofuse.passes.base import Pass, find_each
from hlofuse.passes.common.calls import make_asynchronous
from hlofuse.passes.common.evaluation import CannotEvaluate, elements
from hlofuse.passes.common.literals import integer_of
from hlofuse.trace import Recorder

_MAX_ITERATIONS = 10_000  # a loop with more iterations is left alone: every iteration is worked out
_Series = dict[Instruction, list[int]]  # an offset in each iteration of its loop


class _Place(NamedTuple):
    offset: int  # Bytes, at the first turn
    stride: int
    in_loop: bool


class DynamicSliceAnnotator(Pass):
    """`dynamic-slice-annotator`: constant offsets, and those that grow evenly with the loop's counter.
    Offsets worked out in another computation than the loop's body are not followed."""

    name = "dynamic-slice-annotator"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed, series = False, _Series()
        for computation in module.computation_post_order():
            for i in computation:
                place = _place(i, series) if i.opcode in ("dynamic-slice", "dynamic-update-slice") else None
                if place is not None:
                    found = {"loop_index": "0"} if place.in_loop else {}
                    found |= {"byte_offset": str(place.offset), "byte_stride": str(place.stride)}
                    set_attribute(i, "backend_config", gpu_config_text("dynamic_slice_config", found))
                    changed = True
        return changed


def _place(i: Instruction, series: _Series) -> _Place | None:
    """`AnalyzeDynamicSlice`; adds to `series`."""
    whole = i.operand.shape
    is_slice = i.opcode == "dynamic-slice"
    sizes = i.sizes if is_slice else i.second.sizes
    if not is_contiguous_slice(i) or not has_byte_strides(whole):
        return None
    offsets = i.operands[1:] if is_slice else i.operands[2:]
    strides = strides_of(whole, (whole.bit_width + 7) // 8)
    parts = zip(offsets, strides, sizes, whole.dimensions, strict=True)
    found = [(o, s, integer_of(o)) for o, s, size, dimension in parts if size != dimension]
    fixed = sum((number or 0) * s for _, s, number in found)
    moving = [(o, s) for o, s, number in found if number is None]
    if not moving:
        return _Place(fixed, 0, in_loop=False)
    return _in_loop(moving, fixed, series)


def _in_loop(moving: Sequence[tuple[Instruction, int]], fixed: int, series: _Series) -> _Place | None:
    body = moving[0][0].computation
    assert body is not None
    callers = list(body.callers)
    if len(callers) != 1 or not callers[0].is_while:
        return None
    if dict(callers[0].called)["body"] is not body:
        return None
    config = json.loads(callers[0].raw("backend_config") or "{}")
    if "known_init_step" not in config or "known_trip_count" not in config:
        return None
    start, step = (int(config["known_init_step"].get(k, 0)) for k in ("init", "step"))
    count = int(config["known_trip_count"].get("n", 0))
    index = int(config.get("known_induction_variable", {}).get("tuple_index", 0))
    counters = {x for x in body.parameter.users if x.is_get_tuple_element and x.tuple_index == index}
    if not 1 <= count <= _MAX_ITERATIONS or not all(_counts_only(o, counters) for o, _ in moving):
        return None
    numbers = [start + k * step for k in range(count)]
    try:
        for o, _ in moving:
            if o not in series:
                given = (dict.fromkeys(counters, np.asarray(n)) for n in numbers)
                series[o] = [int(elements(o, counted).item()) for counted in given]
    except CannotEvaluate:
        return None
    places = [fixed + sum(series[o][k] * s for o, s in moving) for k in range(count)]
    stride = places[1] - places[0] if count > 1 else 0
    if places != [places[0] + k * stride for k in range(count)]:
        return None
    return _Place(places[0], stride, in_loop=True)


def _counts_only(x: Instruction, counters: set[Instruction]) -> bool:
    """True if it is computed from the counter and constants alone, and reads the counter."""
    reads = False
    for current in reach([x], lambda i: () if i in counters else i.operands):
        if current in counters:
            reads = True
        elif current.opcode in ("parameter", "get-tuple-element") or current.called:
            return False
    return reads


_CONTEXT = Shape("u32")
_REASON = "A fusion that only copies a slice is started, and waited for where its result is read"


class DynamicSliceCopyFusionAsyncWrapper(Pass):
    """`dynamic-slice-copy-fusion-async-wrapper`: such a fusion goes into an `async-start`
    (`xla/backends/gpu/transforms/dynamic_slice_copy_fusion_async_wrapper.cc`)."""

    name = "dynamic-slice-copy-fusion-async-wrapper"

    def run(self, module: Module, recorder: Recorder) -> bool:
        found = find_each(
            module,
            lambda x: x.is_fusion and copied_dynamic_slice(x) and not x.called_by("async-start"),
            Computation.post_order,
        )
        for fusion in found:
            name = fusion.name
            start, done = make_asynchronous(fusion, "fusion", [_CONTEXT])
            recorder.rewrite(start.computation_name, [name], [start, done], _REASON)
        return bool(found)
