"""What layouts are asked for: of a buffer, of an operand, of a computation."""

from __future__ import annotations

from dataclasses import dataclass

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.shape import Shape
from hlofuse.simplifications.layouts.choosing import Order, leaf_orders
from hlofuse.simplifications.layouts.points_to import Buffer

DEFAULT_PRIORITY, BEGINNING_PRIORITY, GIVEN_PRIORITY = -2, 0, 3
_MOST_CHANGES = 2


@dataclass(eq=False)
class Constraint:
    """`LayoutConstraint`."""

    mandatory: bool
    dfs: bool
    priority: int


@dataclass(eq=False)
class BufferConstraint(Constraint):
    buffer: Buffer
    order: Order
    changes: int = 0

    def update(self, priority: int, order: Order, mandatory: bool, dfs: bool) -> bool:
        """Take over what is new and weighs enough (`BufferLayoutConstraint::UpdateLayout`)."""
        if order == self.order:
            stronger = (mandatory and not self.mandatory, dfs and not self.dfs, priority > self.priority)
            self.mandatory |= mandatory
            self.dfs |= dfs
            self.priority = max(priority, self.priority)
            return any(stronger)
        if not mandatory:
            if self.changes >= _MOST_CHANGES or not self.buffer.instruction.shape.is_array:
                return False
            if priority <= self.priority:
                return False
        self.mandatory, self.dfs, self.priority, self.order = mandatory, dfs, priority, order
        self.changes += 1
        return True


@dataclass(eq=False)
class OperandConstraint(Constraint):
    instruction: Instruction
    number: int
    shape: Shape

    @property
    def operand(self) -> Instruction:
        return self.instruction.operands[self.number]

    def update(self, priority: int, shape: Shape, mandatory: bool, dfs: bool) -> bool:
        """Take over what is asked, if it is new and has to be; what waits to be spread is then the new layout
        (`OperandLayoutConstraint::UpdateLayout`)."""
        if leaf_orders(shape) == leaf_orders(self.shape) or not mandatory or self.priority > priority:
            return False
        self.mandatory, self.dfs, self.priority, self.shape = mandatory, dfs, priority, shape
        return True


class ComputationConstraint(Constraint):
    """Layouts of parameters and result, None while not set."""

    def __init__(self, computation: Computation, priority: int) -> None:
        super().__init__(mandatory=True, dfs=True, priority=priority)
        self.computation = computation
        self.parameters: list[Shape | None] = [None] * len(computation.parameters)
        self.result: Shape | None = None
        self.operands: dict[tuple[Instruction, int], OperandConstraint] = {}

    def reset(self, parameters: list[Shape | None], result: Shape | None, priority: int) -> None:
        """`ResetComputationLayout`."""
        self.parameters, self.result, self.priority = parameters, result, priority
