"""On one device nothing is sharded: what says how goes (`xla/service/sharding_remover.cc`)."""

from __future__ import annotations

from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.ir.fusing import computation_of
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.removing import replace_instruction
from hlofuse.passes.base import Pass
from hlofuse.passes.common import make
from hlofuse.trace import Recorder

_GROUP = "xla.sdy.ShardingGroup"
_LEFT = {"SPMDShardToFullShape", "SPMDFullToShardShape"}
_COPIED = {
    "Sharding",
    "ShardBarrierFrom",
    "ShardBarrierTo",
    "xla.sdy.FuncResultSharding",
    "xla.sdy.PropagationBarrier",
}


class ShardingRemover(Pass):
    name = "sharding-remover"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for computation in module.computations:
            for x in reversed(computation.post_order()):
                if x.opcode == "custom-call":
                    if changes_shape(x):
                        recorder.skipped(x, "a program partitioned by hand, before the partitioner ran")
                    else:
                        changed |= _removed(x, str(x.attributes.get("custom_call_target")))
        return changed


def changes_shape(x: Instruction) -> bool:
    """True if `x` goes from an array to one device's part of it or back: only the partitioner can say how."""
    if x.opcode != "custom-call" or x.attributes.get("custom_call_target") not in _LEFT:
        return False
    return x.shape.dimensions != x.operands[0].shape.dimensions


def _removed(call: Instruction, target: str) -> bool:
    if target == _GROUP:
        computation_of(call).remove_instruction(call)
        return False
    if target not in _LEFT and target not in _COPIED:
        return False
    operand = call.operands[0]
    call.replace_all_uses_with(operand)
    if target in _COPIED:  # clean-ups leave such a call and take its copy
        replace_instruction(call, make.unary(call, "copy", operand, call.shape), has_side_effect)
    return True
