"""Sorts by CUB, and the memory they need."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.shape import Shape
from hlofuse.passes.base import Pass
from hlofuse.passes.common.make import added, derived
from hlofuse.passes.common.rewriting import expand_each, replaced
from hlofuse.passes.common.shapes import with_layout
from hlofuse.passes.sort.comparators import (
    Comparator,
    comparator_of,
    packed_pairs,
    radix_keys,
    unpacked_pairs,
)
from hlofuse.trace import Recorder

# Where CUB's radix sort is taken to be faster than XLA's own (`ShouldRewriteCompatibleSort` in
# `xla/backends/gpu/transforms/sort_rewriter.cc`).


_MANY = 16384
"""Elements in all, of a device of which nothing is known."""

# Rows and elements of each of which there must be more; one row is another matter.
_Steps = Sequence[tuple[int, int]]
_HOPPER: dict[int, _Steps] = {
    16: ((12, 1 << 16), (14, 1 << 15), (16, 1 << 14), (18, 1 << 13), (33, 1 << 12), (66, 1 << 11)),
    32: ((26, 1 << 17), (31, 1 << 16), (38, 1 << 15), (44, 1 << 14), (52, 1 << 13)),
    64: ((55, 1 << 17), (70, 1 << 16), (92, 1 << 15), (354, 1 << 14)),
}
_HOPPER_ONE_ROW = {16: 1 << 9, 32: 22000, 64: 1 << 17}
_AMPERE: dict[int, _Steps] = {
    16: ((9, 1 << 17), (13, 1 << 13), (27, 1 << 12), (54, 1 << 11)),
    32: ((24, 1 << 17), (30, 1 << 16), (36, 1 << 15), (39, 1 << 14), (52, 1 << 13), (144, 1 << 12)),
    64: ((46, 1 << 17), (55, 1 << 16), (72, 1 << 15), (289, 1 << 14)),
}
_AMPERE_ONE_ROW = {16: 1 << 16, 32: 1 << 15, 64: 1 << 16}
_BLACKWELL_32: _Steps = ((26, 1 << 17), (31, 1 << 16), (38, 1 << 15), (44, 1 << 14), (52, 1 << 13))


def is_faster_by_radix(shape: Shape, pair: bool, device: DeviceDescription) -> bool:
    """Of operands of this shape, the first's, sorted along their last dimension."""
    size = shape.dimensions[-1]
    if size == 0:
        return False
    rows = shape.element_count // size
    if device.is_blackwell:
        return _on_blackwell(shape.bit_width, rows, size, device, pair)
    if device.compute_capability[0] == 9:
        return _on_hopper(shape.bit_width, rows, size, device)
    if device.compute_capability[0] == 8:
        return _on_ampere(shape.bit_width, rows, size, device)
    return shape.element_count > _MANY


def _beyond(steps: _Steps, rows: int, size: int) -> bool:
    return any(rows > least and size > each for least, each in steps)


def _on_hopper(bits: int, rows: int, size: int, device: DeviceDescription) -> bool:
    if bits == 8:
        return rows == 1 or (size > 1300 and (rows > 8 or size < 26000))
    if bits not in _HOPPER:
        return False
    if bits == 32 and 88 < rows <= device.core_count and size > 1 << 12:
        return True
    if bits == 64 and 160 < rows <= 2 * device.core_count and size > 1 << 14:
        return True
    return (rows == 1 and size > _HOPPER_ONE_ROW[bits]) or _beyond(_HOPPER[bits], rows, size)


def _on_ampere(bits: int, rows: int, size: int, device: DeviceDescription) -> bool:
    if bits == 8:
        return rows == 1 or (size > 1000 and (rows > 5 or size < 43000))
    if bits not in _AMPERE:
        return False
    if bits == 64 and 138 < rows <= 2 * device.core_count and size > 1 << 14:
        return True
    return (rows == 1 and size > _AMPERE_ONE_ROW[bits]) or _beyond(_AMPERE[bits], rows, size)


def _on_blackwell(bits: int, rows: int, size: int, device: DeviceDescription, pair: bool) -> bool:
    if size <= 1024:
        return False
    if bits == 16:
        return size >= 4096
    if bits == 32:
        if rows == 1:
            return size >= 4096
        for least, each in _BLACKWELL_32:
            if size >= each:
                return rows > least
        return size >= 4096 and 88 < rows < 128
    if bits == 64:
        return not pair and size >= 16384
    return _on_hopper(bits, rows, size, device)


UNASSIGNED = "xla.gpu.ext.cub_sort_unassigned_scratch_size"
_KEYS = frozenset("bf16 f16 f32 f64 s8 s16 s32 s64 u8 u16 u32 u64".split())
_KEYS_OF_PAIRS = frozenset("u8 u16 s32 u32 u64 f32".split())
_VALUE_BITS = (16, 32, 64)


@dataclass(frozen=True)
class SortRewriter(Pass):
    """`sort-rewriter`, compiled where there is a GPU: without one XLA rewrites only what its tables have
    (`xla/backends/gpu/transforms/sort_rewriter.cc`)."""

    device: DeviceDescription
    name = "sort-rewriter"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for computation in module.non_fusion_computations():
            for sort in [x for x in computation if x.opcode == "sort"]:
                if (found := self._comparator(sort)) is not None:
                    _rewrite(sort, found)
                    changed = True
        return changed

    def _comparator(self, sort: Instruction) -> Comparator | None:
        shape = sort.operands[0].shape
        if len(sort.operands) > 2 or any(o.shape.dynamic_dimensions for o in sort.operands):
            return None
        if sort.dimensions[0] != shape.rank - 1:
            return None
        if not is_faster_by_radix(shape, len(sort.operands) == 2, self.device):
            return None
        found = comparator_of(sort)
        return found if found is not None and _is_supported_by_cub(found) else None


def _is_supported_by_cub(by: Comparator) -> bool:
    if by.value_type is None:
        return by.key_type in _KEYS
    return by.key_type in _KEYS_OF_PAIRS and Shape(by.value_type).bit_width in _VALUE_BITS


def _rewrite(sort: Instruction, by: Comparator) -> None:
    key = sort.operands[by.key]
    if len(sort.operands) == 1:
        operands = [radix_keys(key, by.key_type), key] if by.numpy_order else [key]
    elif by.numpy_order:
        operands = list(packed_pairs(sort, key, sort.operands[1 - by.key], by))
    else:
        operands = [key, sort.operands[1 - by.key]]
    scratch = with_layout("u8", [1], [0])
    call = derived(
        sort,
        "custom-call",
        Shape.tuple_of([*(o.shape for o in operands), scratch]),
        operands,
        custom_call_target=f'"{UNASSIGNED}"',
        backend_config=json.dumps({"descending": True} if by.descending else {}, separators=(",", ":")),
    )
    replaced(sort, _result(sort, call, by))


def _result(sort: Instruction, call: Instruction, by: Comparator) -> Instruction:
    """What has the shape of the sort."""
    if len(sort.operands) == 1:
        if by.numpy_order:
            return derived(sort, "get-tuple-element", sort.shape, [call], index="1")
        return added(sort, "get-tuple-element", sort.shape, [call], index="0")
    if by.numpy_order:
        return unpacked_pairs(sort, call, by)
    elements = [
        derived(sort, "get-tuple-element", o.shape, [call], index=str(k if by.key == 0 else 1 - k))
        for k, o in enumerate(sort.operands)
    ]
    return derived(sort, "tuple", Shape.tuple_of([e.shape for e in elements]), elements)


class EstimateCubSortScratchSize(Pass):
    """`deviceless-estimate-cub-sort-scratch-size`: calls of CUB's radix sort as XLA:GPU emits them
    (`xla/backends/gpu/transforms/estimate_cub_sort_scratch_size.cc`).

    How much memory CUB asks for depends on its version: the call keeps the one byte that stands for it.
    """

    name = "deviceless-estimate-cub-sort-scratch-size"

    def run(self, module: Module, recorder: Recorder) -> bool:
        found = [
            x for c in module.non_fusion_computations() for x in c if custom_call_target(x) == UNASSIGNED
        ]
        return expand_each(found, _assign, recorder)


def _assign(call: Instruction) -> None:
    keys = call.operands[0].shape
    rows = keys.element_count // keys.dimensions[-1]
    descending = "true" if "true" in (call.attributes.raw("backend_config") or "") else "false"
    kind = "pairs" if len(call.operands) == 2 else "keys"
    new = derived(
        call,
        "custom-call",
        call.shape,
        call.operands,
        custom_call_target=f'"xla.gpu.ext.cub_sort_{kind}"',
        api_version="API_VERSION_TYPED_FFI",
        backend_config=f"{{descending = {descending}, batch_size = {rows} : i64}}",
    )
    replaced(call, new)
