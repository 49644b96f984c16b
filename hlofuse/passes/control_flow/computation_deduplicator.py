"""Calls of equal computations call one (`xla/hlo/transforms/simplifiers/hlo_computation_deduplicator.cc`)."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

from hlofuse.analysis.structural_key import StructuralKeys
from hlofuse.ir.graph import Computation, Module
from hlofuse.passes.base import Pass
from hlofuse.passes.common.cloning import set_called
from hlofuse.trace import Recorder

_MOST_INSTRUCTIONS = 128
_MOST_CONSTANT_BYTES = 1024
_COLLECTIVES = frozenset(
    """
    all-gather all-gather-start all-reduce all-reduce-start all-to-all collective-broadcast
    collective-permute collective-permute-start ragged-all-to-all reduce-scatter
    """.split()
)


@dataclass(frozen=True)
class HloComputationDeduplicator(Pass):
    """`computation-deduplicator`, for computations that are small and none of a collective's."""

    name: ClassVar[str] = "computation-deduplicator"

    def run(self, module: Module, recorder: Recorder) -> bool:
        keys = StructuralKeys()
        first: dict[Hashable, Computation] = {}
        instead: dict[Computation, Computation] = {}
        for computation in module.computation_post_order():
            if computation.is_entry or len(computation) > _MOST_INSTRUCTIONS:
                continue
            if any(caller.opcode in _COLLECTIVES for caller in computation.callers):
                continue
            constants = sum(i.shape.byte_size for i in computation if i.opcode == "constant")
            if constants > _MOST_CONSTANT_BYTES:
                continue
            shapes = tuple(p.shape.key for p in computation.parameters)
            key = (keys.of_computation(computation), shapes, len(computation))
            found = first.setdefault(key, computation)
            if found is not computation:
                instead[computation] = found
        for twin, found in instead.items():
            for caller in list(twin.callers):
                set_called(caller, [(name, found if c is twin else c) for name, c in caller.called])
            if not twin.callers:
                module.remove_computation(twin)
        return bool(instead)
