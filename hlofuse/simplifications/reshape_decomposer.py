"""Reshapes become bitcasts (`xla/hlo/transforms/expanders/reshape_decomposer.cc`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlofuse.analysis.bitcasts import moves_no_data
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.simplifications import make
from hlofuse.simplifications.rewriting import Rewriting, visit


@dataclass(frozen=True)
class ReshapeDecomposer:
    """`reshape-decomposer`, where both arrays are row-major; others stay reshapes."""

    name: ClassVar[str] = "reshape-decomposer"

    def run(self, module: Module) -> bool:
        changed = False
        for computation in module.non_fusion_computations():
            rewriting = Rewriting(computation)

            def handle(x: Instruction, rewriting: Rewriting = rewriting) -> None:
                if x.opcode == "reshape" and moves_no_data(x):
                    rewriting.replace(x, make.add(x.operands[0], "bitcast", x.shape, x.operands))

            visit(computation, handle)
            changed |= rewriting.changed
        return changed
