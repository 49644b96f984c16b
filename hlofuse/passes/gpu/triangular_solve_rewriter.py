"""Triangular systems that cuBLAS solves (`xla/backends/gpu/transforms/triangular_solve_rewriter.cc`)."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import ClassVar

from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.shape import Shape
from hlofuse.passes.base import Pass
from hlofuse.passes.common.make import added
from hlofuse.passes.common.rewriting import expand_each, replaced
from hlofuse.passes.common.shapes import array
from hlofuse.trace import Recorder

_TARGET = "__cublas$triangularSolve"
_POINTERS = 2 * 8
"""Bytes of workspace for each system of a batch."""


@dataclass(frozen=True)
class TriangularSolveRewriter(Pass):
    """`triangular-solve-rewriter`."""

    name: ClassVar[str] = "triangular-solve-rewriter"

    def run(self, module: Module, recorder: Recorder) -> bool:
        found = [x for c in module.non_fusion_computations() for x in c if x.opcode == "triangular-solve"]
        return expand_each(found, _call, recorder)


def _call(solve: Instruction) -> None:
    batch = math.prod(solve.operands[1].shape.dimensions[:-2])
    workspace = array("s8", [0 if batch == 1 else _POINTERS * batch])
    said = solve.attributes
    options = {
        "left_side": said.raw("left_side") == "true",
        "lower": said.raw("lower") == "true",
        "unit_diagonal": said.raw("unit_diagonal") == "true",
        "transpose_a": said.raw("transpose_a") or "NO_TRANSPOSE",
    }
    call = added(
        solve,
        "custom-call",
        Shape.tuple_of([solve.shape, workspace]),
        solve.operands,
        like=solve,
        name="triangular-solve",
        custom_call_target=f'"{_TARGET}"',
        backend_config=json.dumps(options, separators=(",", ":")),
    )
    replaced(solve, added(call, "get-tuple-element", solve.shape, [call], like=call, index="0"))
