"""The result's shape where the text leaves it out (`xla/service/shape_inference.cc`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hlofuse.ir.parse.errors import Rejected
from hlofuse.ir.shape import Shape

if TYPE_CHECKING:
    from hlofuse.ir.computation import Computation
    from hlofuse.ir.instruction import Instruction
    from hlofuse.ir.parse.tree_structure import InstructionNode


def infer_shape(
    node: InstructionNode, operands: Sequence[Instruction], called: Mapping[str, Computation]
) -> Shape:
    """The shape of the result; raises `Rejected` where the operands do not go together."""
    raise Rejected(node.start, "missing shape")
