"""What the rules of shape inference are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hlofuse.ir.shape import Shape

if TYPE_CHECKING:
    from hlofuse.ir.graph import Computation, Instruction
    from hlofuse.ir.text.tree.nodes import InstructionNode


class Unfit(Exception):
    """The operands do not go together."""


class Given:
    """An instruction's operand shapes, attribute values and the results of what it calls."""

    def __init__(
        self, node: InstructionNode, operands: Sequence[Instruction], called: Mapping[str, Computation]
    ) -> None:
        self.opcode = str(node.call.opcode)
        self.shapes = [o.shape for o in operands]
        self._values: dict[str, Any] = {a.name: a.value for a in node.attributes}
        self._called = called

    def __getitem__(self, attribute: str) -> Any:
        return self._values[attribute]

    def get(self, attribute: str, default: Any = ()) -> Any:
        return self._values.get(attribute, default)

    def check_arity(self, attribute: str) -> None:
        """A called computation takes as many parameters as there are operands."""
        wanted = len(self._called[attribute].parameters)
        if wanted != len(self.shapes):
            raise Unfit(f"calls a computation of {wanted} parameters with {len(self.shapes)} operands")

    def result(self, attribute: str) -> Shape:
        """The root's shape of a called computation."""
        return self._called[attribute].root.shape
