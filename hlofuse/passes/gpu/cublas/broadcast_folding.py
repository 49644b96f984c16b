"""Products of a batch with one and the same matrix
(`xla/backends/gpu/transforms/gemm_broadcast_folding_rewriter.cc`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlofuse.ir.graph import Instruction, Module
from hlofuse.passes.base import Pass
from hlofuse.passes.common.rewriting import visit_module
from hlofuse.passes.gpu.cublas.calls import config_of, configure, is_call
from hlofuse.trace import Recorder


@dataclass(frozen=True)
class GemmBroadcastFoldingRewriter(Pass):
    """`cublas-gemm-broadcast-folding-rewriter`: cuBLAS reads a matrix again for each of a batch."""

    name: ClassVar[str] = "cublas-gemm-broadcast-folding-rewriter"

    def run(self, module: Module, recorder: Recorder) -> bool:
        return visit_module(module, ["custom-call"], lambda x: is_call(x) and _fold(x), recorder)


def _fold(call: Instruction) -> bool:
    for number, side in ((0, "lhs"), (1, "rhs")):
        broadcast = call.operands[number]
        if broadcast.opcode != "broadcast":
            continue
        config = config_of(call)
        said = config["dot_dimension_numbers"]
        new = broadcast.shape.rank - broadcast.operands[0].shape.rank
        batch = {int(d) for d in said[f"{side}_batch_dimensions"]}
        if new != len(said["lhs_batch_dimensions"]) or any(
            d < new or d in batch for d in broadcast.dimensions
        ):
            return False
        contracting = f"{side}_contracting_dimensions"
        said[contracting] = [str(int(said[contracting][0]) - new)]
        said[f"{side}_batch_dimensions"] = []
        call.replace_operand(number, broadcast.operands[0])
        configure(call, config)
        return True
    return False
