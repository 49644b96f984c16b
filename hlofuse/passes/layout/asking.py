"""Collecting what is asked of layouts (`LayoutAssignment::Set…Layout`)."""

from __future__ import annotations

from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.shape import Shape
from hlofuse.passes.common.layout_shapes import relaid
from hlofuse.passes.layout.buffers import Buffer, Buffers, Index, subshapes
from hlofuse.passes.layout.choosing import can_change_layout
from hlofuse.passes.layout.constraints import (
    BufferConstraint,
    ComputationConstraint,
    Constraint,
    OperandConstraint,
    Order,
)


class Requests:
    """What is asked of the layouts of one module."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.buffers = Buffers(module)
        self.computations: dict[Computation, ComputationConstraint] = {}
        self.priority = 0
        """Grows with each round."""
        self.of_buffer: dict[Buffer, BufferConstraint] = {}
        self.unconstrained: set[Buffer] = set()
        self._added: list[Constraint] = []

    def constraint_of(self, computation: Computation) -> ComputationConstraint:
        """`mutable_computation_constraints`."""
        found = self.computations.get(computation)
        if found is None:
            found = self.computations[computation] = ComputationConstraint.unset(computation)
        return found

    def ask_buffer(
        self,
        buffer: Buffer,
        order: Order,
        *,
        mandatory: bool = True,
        dfs: bool = True,
        priority: int | None = None,
    ) -> None:
        """`SetBufferLayout`."""
        self.unconstrained.discard(buffer)
        priority = self.priority if priority is None else priority
        known = self.of_buffer.get(buffer)
        if known is None:
            known = self.of_buffer[buffer] = BufferConstraint(buffer, order, mandatory, dfs, priority)
        elif not known.update(order, mandatory, dfs, priority) or buffer.shape.rank <= 1:
            return
        self.push(known)
        if buffer.instruction.opcode in ("custom-call", "fusion", "call"):
            for output, number, at in output_aliases(buffer.instruction):
                if output == buffer.index and not at:
                    self.ask_operand_order(
                        buffer.instruction, number, order, mandatory=mandatory, dfs=dfs, priority=priority
                    )

    def ask_operand(
        self,
        instruction: Instruction,
        number: int,
        shape: Shape,
        *,
        mandatory: bool = True,
        dfs: bool = True,
        priority: int | None = None,
    ) -> None:
        """`SetOperandLayout`."""
        if shape.is_array and not shape.rank:
            return
        priority = self.priority if priority is None else priority
        opcode = instruction.opcode
        if (opcode == "dynamic-update-slice" and number > 0 and not mandatory and priority > -2) or (
            opcode == "reshape" and not mandatory and instruction.operands[0].opcode == "dynamic-slice"
        ):
            dfs, priority = False, priority - 1
        assert instruction.computation is not None
        operands = self.computations[instruction.computation].operands
        known = operands.get((instruction, number))
        if known is None:
            known = OperandConstraint(instruction, number, shape, mandatory, dfs, priority)
            operands[instruction, number] = known
        elif not known.update(shape, mandatory, dfs, priority):
            return
        self.push(known)

    def ask_operand_order(
        self,
        instruction: Instruction,
        number: int,
        order: Order,
        *,
        mandatory: bool = True,
        dfs: bool = True,
        priority: int | None = None,
    ) -> None:
        """`SetArrayOperandLayout`."""
        shape = relaid(instruction.operands[number].shape, order)
        self.ask_operand(instruction, number, shape, mandatory=mandatory, dfs=dfs, priority=priority)

    def ask_result(self, instruction: Instruction, shape: Shape) -> None:
        """`SetInstructionLayout`: of everything the instruction makes, and of operands that must agree."""
        found = self.buffers.of(instruction)
        for index, inner in subshapes(shape):
            if inner.is_array:
                self.ask_buffer(found[index], inner.minor_to_major)
        changes = instruction.opcode in ("while", "conditional") or can_change_layout(instruction)
        if shape.is_array and not changes:
            for number, operand in enumerate(instruction.operands):
                if operand.shape.is_array and operand.shape.rank == shape.rank:
                    self.ask_operand_order(instruction, number, shape.minor_to_major)

    def push(self, constraint: Constraint) -> None:
        """`PushAddedConstraints`: depth-first ones last, others behind all that matter more."""
        if constraint.dfs:
            self._added.append(constraint)
            return
        at = len(self._added)
        while at and constraint.priority > self._added[at - 1].priority:
            at -= 1
        self._added.insert(at, constraint)


def output_aliases(instruction: Instruction) -> list[tuple[Index, int, Index]]:
    """Outputs that share memory with operands: output's place, the operand's number, the place in it."""
    aliases = instruction.attributes.get("output_to_operand_aliasing", ())
    return [(tuple(a.output_index), a.operand_number, tuple(a.operand_index)) for a in aliases]
