"""The pass: every computation, again and again until nothing changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.passes.algebraic.context import Context
from hlofuse.passes.algebraic.handlers import HANDLERS
from hlofuse.passes.algebraic.options import Options
from hlofuse.passes.base import Pass
from hlofuse.passes.common.rewriting import attempt, visit
from hlofuse.trace import Recorder

_MOST_RUNS = 50


@dataclass(frozen=True)
class AlgebraicSimplifier(Pass):
    """`algsimp`."""

    name: ClassVar[str] = "algsimp"
    options: Options = field(default_factory=Options)

    def run(self, module: Module, recorder: Recorder) -> bool:
        changed = False
        for computation in module.non_fusion_computations():
            for _ in range(_MOST_RUNS):
                if not self._run_on(computation, recorder):
                    break
                changed = True
                if not self.options.to_fixed_point:
                    break
        return changed

    def _run_on(self, computation: Computation, recorder: Recorder) -> bool:
        context = Context(computation, self.options)

        def handle(x: Instruction) -> None:
            handler = HANDLERS.get(x.opcode)
            if handler is not None and (x.shape.is_array or x.shape.is_tuple):
                handler(context, x)

        visit(computation, attempt(handle, recorder))
        return context.changed
