"""Elements of tuples that a text names without an instruction: `name#1#0`."""

from __future__ import annotations

from hlofuse.ir.attributes.attributes import Attributes
from hlofuse.ir.graph import Instruction


def implied_element(operand: Instruction, index: int, path: str) -> Instruction:
    """The get-tuple-element that `path` stands for, to be added to the computation of its `operand`."""
    shape = operand.shape.tuple_shapes[index]
    name, attributes = path.replace("#", "_"), Attributes(f", index={index}")
    return Instruction(name, shape, "get-tuple-element", [operand], attributes)
