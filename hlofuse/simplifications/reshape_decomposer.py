"""Reshapes become bitcasts (`xla/hlo/transforms/expanders/reshape_decomposer.cc`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.simplifications import make
from hlofuse.simplifications.rewriting import Rewriting, visit
from hlofuse.simplifications.shapes import reshape_is_bitcast


@dataclass(frozen=True)
class ReshapeDecomposer:
    """`reshape-decomposer`, where no element moves; other reshapes stay."""

    name: ClassVar[str] = "reshape-decomposer"

    def run(self, module: Module) -> bool:
        changed = False
        for computation in module.non_fusion_computations():
            rewriting = Rewriting(computation)

            def handle(x: Instruction, rewriting: Rewriting = rewriting) -> None:
                if x.opcode == "reshape" and reshape_is_bitcast(x.operands[0].shape, x.shape):
                    rewriting.replace(x, make.add(x.operands[0], "bitcast", x.shape, x.operands))

            visit(computation, handle)
            changed |= rewriting.changed
        return changed
