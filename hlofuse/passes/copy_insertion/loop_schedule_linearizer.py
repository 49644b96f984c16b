"""Lets a loop's body read a carried value before it writes the next one, so that it needs no copy.

Mirrors `LoopScheduleLinearizer` (`xla/service/loop_schedule_linearizer.cc`).
"""

from __future__ import annotations

from hlofuse.analysis.async_ops import is_async_end, wrapped_opcode
from hlofuse.analysis.call_order import non_fusion_computations
from hlofuse.analysis.call_sites import CallSites
from hlofuse.analysis.hlo_dataflow import HloDataflow
from hlofuse.analysis.merged_order import MergedOrder
from hlofuse.analysis.shape_tree import subshape_at
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.passes.base import Pass
from hlofuse.trace import Recorder

_STARTS = frozenset({"all-gather-start", "all-reduce-start", "collective-permute-start", "recv", "send"})
_COLLECTIVES = frozenset(
    """
    all-gather all-reduce all-to-all collective-broadcast collective-permute ragged-all-to-all reduce-scatter
    """.split()
)
_NO_COLLECTIVES = frozenset({"copy-done"})


class LoopScheduleLinearizer(Pass):
    """`loop-schedule-linearizer`: control dependencies from reads of a carried element to its next write."""

    name = "loop-schedule-linearizer"

    def run(self, module: Module, recorder: Recorder) -> bool:
        calls = CallSites(module)
        if not calls.is_flattened:
            return False
        dataflow: HloDataflow | None = None
        changed = False
        for computation in non_fusion_computations(module):
            for loop in computation:
                if loop.opcode != "while":
                    continue
                body = dict(loop.called)["body"]
                if any(map(_is_asynchronous_collective, body)):
                    continue  # more dependencies would keep it from overlapping with other work
                dataflow = dataflow or HloDataflow(module, calls)
                changed |= _linearize(body, dataflow)
        return changed


def _linearize(body: Computation, dataflow: HloDataflow) -> bool:
    """`AddControlEdgesForLoopWrites`."""
    order = MergedOrder(body)
    changed = False
    for before, after in zip(
        dataflow.values_of(body.parameters[0]), dataflow.values_of(body.root), strict=False
    ):
        if before is None or after is None or after is before:
            continue
        write = after.instruction
        if write.computation is not body or subshape_at(write.shape, after.index).is_tuple:
            continue
        for use in before.uses:
            read = use.instruction
            if read is write or read.computation is not body or not order.precede(read, write):
                continue
            if write not in read.control_successors:
                read.add_control_dependency_to(write)
                changed = True
    return changed


def _is_asynchronous_collective(x: Instruction) -> bool:
    """`IsAsyncCollectiveStartOp` or `IsAsyncCollectiveDoneOp`."""
    if x.opcode in _STARTS or wrapped_opcode(x.opcode) in _COLLECTIVES:
        return True
    if x.opcode in ("async-start", "async-done"):
        return any(root.opcode in _COLLECTIVES for _, c in x.called for root in [c.root])
    return is_async_end(x.opcode) and x.opcode not in _NO_COLLECTIVES and x.opcode != "async-update"
