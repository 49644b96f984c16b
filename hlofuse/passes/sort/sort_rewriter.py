"""Sorts that CUB's radix sort does (`xla/backends/gpu/transforms/sort_rewriter.cc`)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar

from hlofuse.cost.gpu.device import DeviceDescription
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.shape import Shape
from hlofuse.passes.base import Pass
from hlofuse.passes.common.make import added, derived
from hlofuse.passes.common.rewriting import replaced
from hlofuse.passes.common.shapes import with_layout
from hlofuse.passes.sort.comparators import Comparator, comparator_of
from hlofuse.passes.sort.numpy_order import packed_pairs, radix_keys, unpacked_pairs
from hlofuse.passes.sort.radix_sort_speed import is_faster_by_radix
from hlofuse.trace import Recorder

UNASSIGNED = "xla.gpu.ext.cub_sort_unassigned_scratch_size"
_KEYS = frozenset("bf16 f16 f32 f64 s8 s16 s32 s64 u8 u16 u32 u64".split())
_KEYS_OF_PAIRS = frozenset("u8 u16 s32 u32 u64 f32".split())
_VALUE_BITS = (16, 32, 64)


@dataclass(frozen=True)
class SortRewriter(Pass):
    """`sort-rewriter`, compiled where there is a GPU: without one XLA rewrites only what its tables have."""

    device: DeviceDescription
    name: ClassVar[str] = "sort-rewriter"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for computation in module.non_fusion_computations():
            for sort in [x for x in computation if x.opcode == "sort"]:
                found = self._comparator(sort)
                if found is not None:
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
        return found if found is not None and _is_known_to_cub(found) else None


def _is_known_to_cub(by: Comparator) -> bool:
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
