"""Transposes of the operands of dots and convolutions become their dimension numbers
(`xla/service/transpose_folding.cc`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hlofuse.analysis.custom_calls import has_side_effect
from hlofuse.ir.attributes.window import ConvolutionDimensionNumbers
from hlofuse.ir.graph import Instruction, Module
from hlofuse.ir.removing import replace_instruction, set_attribute
from hlofuse.passes.base import Pass
from hlofuse.passes.common import make
from hlofuse.passes.common.dots import DotDimensions, new_dot
from hlofuse.passes.common.reading import labels_of
from hlofuse.passes.common.rewriting import visit
from hlofuse.passes.common.shapes import is_identity
from hlofuse.trace import Recorder


@dataclass(frozen=True)
class TransposeFolding(Pass):
    """`transpose-folding`, for a target that multiplies rows with columns either way round."""

    name = "transpose-folding"
    can_fold: Callable[[Instruction, int], bool] | None = None
    """What the target's products can read; None for a transpose of the last two dimensions."""
    into_convolutions: bool = False

    def run(self, module: Module, recorder: Recorder) -> bool:
        found: list[tuple[Instruction, list[int]]] = []
        convolutions: list[Instruction] = []

        def look(x: Instruction) -> None:
            if x.opcode == "convolution" and any(o.opcode == "transpose" for o in x.operands):
                convolutions.append(x)
            if x.opcode != "dot" or len(x.operands) != 2 or any(o.shape.rank < 2 for o in x.operands):
                return
            can_fold = self.can_fold or _is_row_column
            sides = [side for side in (0, 1) if _transposes(x.operands[side]) and can_fold(x, side)]
            if sides:
                found.append((x, sides))

        for computation in module.non_fusion_computations():
            visit(computation, look)
        for dot, sides in found:
            _fold(dot, sides)
        if not self.into_convolutions:
            return bool(found)
        for convolution in convolutions:
            _fold_into_convolution(convolution)
        return bool(found or convolutions)


def never(_dot: Instruction, _side: int) -> bool:
    return False


def _transposes(operand: Instruction) -> bool:
    return operand.opcode == "transpose" and not is_identity(operand.dimensions)


def _is_row_column(dot: Instruction, side: int) -> bool:
    """A transpose of the last two dimensions (`IsRowColumnTransposeDotOperand`)."""
    transpose = dot.operands[side]
    batch = DotDimensions.of(dot).batch(side)
    return (
        len(batch) == transpose.shape.rank - 2
        and len(DotDimensions.of(dot).contracting(side)) == 1
        and all(transpose.dimensions[d] == d for d in batch)
    )


def _fold(dot: Instruction, sides: list[int]) -> None:
    operands = list(dot.operands)
    batch = [list(DotDimensions.of(dot).batch(side)) for side in (0, 1)]
    contracting = [list(DotDimensions.of(dot).contracting(side)) for side in (0, 1)]
    for side in sides:
        order = operands[side].dimensions
        batch[side] = [order[d] for d in batch[side]]
        contracting[side] = [order[d] for d in contracting[side]]
        operands[side] = operands[side].operands[0]
    new = new_dot(dot, operands, batch, contracting, dot.shape.element_type, dot)
    new.shape = dot.shape
    replace_instruction(dot, new, has_side_effect)


def _fold_into_convolution(convolution: Instruction) -> None:
    """`FoldTransposeIntoConvolution`."""
    operands, labels = list(convolution.operands), labels_of(convolution)
    sides = [labels.lhs, labels.rhs]
    for side, operand in enumerate(convolution.operands):
        if operand.opcode == "transpose":
            operands[side] = operand.operands[0]
            sides[side] = "".join(
                label for _, label in sorted(zip(operand.dimensions, sides[side], strict=True))
            )
    new = make.copy_of(convolution, operands)
    set_attribute(new, "dim_labels", str(ConvolutionDimensionNumbers(sides[0], sides[1], labels.output)))
    replace_instruction(convolution, new, has_side_effect)
