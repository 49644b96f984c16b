"""What a call says of its origin, handed on to what it calls
(`xla/hlo/transforms/propagate_call_metadata.cc`)."""

from __future__ import annotations

from hlofuse.ir.graph import Module
from hlofuse.passes.base import Pass
from hlofuse.passes.common.calls import hand_on_metadata
from hlofuse.trace import Recorder


class PropagateCallMetadata(Pass):
    """`propagate-call-metadata`, callers first."""

    name = "propagate-call-metadata"

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for computation in reversed(module.non_fusion_computations()):
            if all(x.opcode != "call" for x in computation):
                continue
            for call in computation.post_order():
                if call.opcode != "call":
                    continue
                for callee in call.called_computations:
                    for x in callee.post_order():
                        changed |= hand_on_metadata(call, x, module)
        return changed
