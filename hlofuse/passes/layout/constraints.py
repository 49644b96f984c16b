"""What is asked of layouts: of a buffer, of an operand, of a computation's interface."""

from __future__ import annotations

from dataclasses import dataclass, field

from hlofuse.ir.graph import Computation, Instruction
from hlofuse.ir.shape import Shape
from hlofuse.passes.common.shapes import descending
from hlofuse.passes.layout.buffers import Buffer

Order = tuple[int, ...]
"""Dimensions from minor to major."""

DEFAULT_PRIORITY, GIVEN_PRIORITY = -2, 3
ROUNDS = 2
"""`kNumberOfPropagationRounds`."""
_MOST_UPDATES = 2


@dataclass(eq=False)
class BufferConstraint:
    """The layout of what an instruction makes (`BufferLayoutConstraint`)."""

    buffer: Buffer
    order: Order
    mandatory: bool
    dfs: bool
    priority: int
    updates: int = 0

    def update(self, order: Order, mandatory: bool, dfs: bool, priority: int) -> bool:
        """Take in another request; True if it changes anything."""
        if order == self.order:
            change = False
            if mandatory and not self.mandatory:
                self.mandatory = change = True
            if dfs and not self.dfs:
                self.dfs = change = True
            if priority > self.priority:
                self.priority, change = priority, True
            return change
        if not mandatory:
            made_by_array = self.buffer.instruction.shape.is_array
            if self.updates >= _MOST_UPDATES or not made_by_array or priority <= self.priority:
                return False
        self.order, self.mandatory, self.dfs, self.priority = order, mandatory, dfs, priority
        self.updates += 1
        return True


@dataclass(eq=False)
class OperandConstraint:
    """The layout an instruction wants an operand in (`OperandLayoutConstraint`)."""

    instruction: Instruction
    number: int
    shape: Shape
    mandatory: bool
    dfs: bool
    priority: int

    @property
    def operand(self) -> Instruction:
        return self.instruction.operands[self.number]

    def update(self, shape: Shape, mandatory: bool, dfs: bool, priority: int) -> bool:
        """Another layout is taken in only if it has to be, and not from a lower priority."""
        if same_layouts(self.shape, shape) or not mandatory or self.priority > priority:
            return False
        self.shape, self.mandatory, self.dfs, self.priority = shape, mandatory, dfs, priority
        return True


@dataclass(eq=False)
class ComputationConstraint:
    """Layouts of parameters and result (`LayoutConstraints`, `ComputationLayoutConstraint`)."""

    computation: Computation
    parameters: list[Shape]
    result: Shape
    priority: int = DEFAULT_PRIORITY
    parameters_set: bool = False
    result_set: bool = False
    operands: dict[tuple[Instruction, int], OperandConstraint] = field(default_factory=dict)
    mandatory: bool = True
    dfs: bool = True

    @classmethod
    def unset(cls, computation: Computation) -> ComputationConstraint:
        """Row-major everywhere, nothing asked yet."""
        parameters = [row_major_everywhere(p.shape) for p in computation.parameters]
        return cls(computation, parameters, row_major_everywhere(computation.root.shape))

    def operand_shape(self, instruction: Instruction, number: int) -> Shape | None:
        found = self.operands.get((instruction, number))
        return found.shape if found is not None else None


Constraint = BufferConstraint | OperandConstraint | ComputationConstraint


def row_major_everywhere(shape: Shape) -> Shape:
    if shape.is_tuple:
        return Shape.tuple_of([row_major_everywhere(s) for s in shape.tuple_shapes])
    return descending(shape) if shape.is_array else shape


def same_layouts(a: Shape, b: Shape) -> bool:
    """Do all arrays in both lie alike?"""
    if a.is_tuple:
        return all(same_layouts(x, y) for x, y in zip(a.tuple_shapes, b.tuple_shapes, strict=True))
    return not a.is_array or a.minor_to_major == b.minor_to_major
