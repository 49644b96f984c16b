"""Collectives of one participant (`xla/hlo/transforms/collectives/all_reduce_simplifier.cc`)."""

from __future__ import annotations

from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.removing import replace_instruction
from hlofuse.passes.base import Pass
from hlofuse.trace import Recorder


class AllReduceSimplifier(Pass):
    """`all-reduce-simplifier` in a module compiled for one device; what all replicas share is not traced."""

    name = "all-reduce-simplifier"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for computation in module.computations:
            for x in computation.post_order():
                if _is_of_one(x):
                    changed |= replace_instruction(x, x.operands[0], has_side_effect)
        return changed


def _is_of_one(x: Instruction) -> bool:
    if x.opcode in ("all-gather", "reduce-scatter"):
        return x.shape.key == x.operands[0].shape.key
    if x.opcode != "all-reduce" or not x.shape.is_array or x.attributes.raw("channel_id") is not None:
        return False
    groups = x.attributes.raw("replica_groups") or "{}"
    return "," not in groups and "=" not in groups and "[" not in groups
