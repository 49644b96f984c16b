"""Dots of batch dimensions first, one contracted and one free dimension
(`xla/hlo/transforms/expanders/dot_decomposer.cc`)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.removing import replace_instruction
from hlofuse.passes.base import Pass
from hlofuse.passes.common import make
from hlofuse.passes.common.dots import DotDimensions, new_dot
from hlofuse.passes.common.rewriting import expand_each
from hlofuse.passes.common.shapes import array
from hlofuse.trace import Recorder


@dataclass(frozen=True)
class DotDecomposer(Pass):
    """`dot_decomposer`."""

    name: ClassVar[str] = "dot_decomposer"

    def run(self, module: Module, recorder: Recorder) -> bool:
        dots = [
            i
            for computation in module.non_fusion_computations()
            for i in computation
            if i.opcode == "dot"
            and len(i.operands) == 2
            and not all(_is_canonical(i, side) for side in (0, 1))
        ]
        return expand_each(dots, _canonicalize, recorder)


def _is_canonical(dot: Instruction, side: int) -> bool:
    batch, contracting = DotDimensions.of(dot).batch(side), DotDimensions.of(dot).contracting(side)
    free_at_most_one = len(batch) + 2 >= dot.operands[side].shape.rank
    return len(contracting) == 1 and free_at_most_one and batch == tuple(range(len(batch)))


def _canonicalize(dot: Instruction) -> None:
    batch = range(len(DotDimensions.of(dot).batch(0)))
    left, left_contracted = _operand(dot, 0)
    right, right_contracted = _operand(dot, 1)
    new = new_dot(
        dot,
        [left, right],
        [batch, batch],
        [[left_contracted], [right_contracted]],
        dot.shape.element_type,
        dot,
    )
    replace_instruction(dot, make.reshape(dot, dot.shape, new), has_side_effect)


def _operand(dot: Instruction, side: int) -> tuple[Instruction, int]:
    """Transposed and reshaped, and which dimension is contracted: the last on the left, on the right the
    first behind the batch."""
    operand = dot.operands[side]
    sizes = operand.shape.dimensions
    batch, contracting = DotDimensions.of(dot).batch(side), DotDimensions.of(dot).contracting(side)
    free = [d for d in range(len(sizes)) if d not in batch and d not in contracting]
    order = [*batch, *free, *contracting] if side == 0 else [*batch, *contracting, *free]
    shuffled = replace(operand.shape, dimensions=tuple(sizes[d] for d in order))
    transposed = make.transpose(operand, operand, order, shuffled)
    contracted = math.prod(sizes[d] for d in contracting)
    rest = math.prod(sizes[d] for d in free)
    kept = [rest] if rest != 1 else []
    new = [contracted]
    # The sizes of the batch are those of the left side, in the order of its own dimensions.
    left = dot.operands[0].shape.dimensions
    first = [n for d, n in enumerate(left) if d in DotDimensions.of(dot).batch(0)]
    shape = [*first, *kept, *new] if side == 0 else [*first, *new, *kept]
    place = len(batch) + (len(kept) if side == 0 else 0)
    return make.reshape(transposed, array(operand.shape.element_type, shape), transposed), place
