"""Passing on what is asked of layouts (`PropagateConstraints`)."""

from collections import deque

from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import Shape
from hlofuse.passes.common.shapes import aligned
from hlofuse.passes.layout.constraints import (
    BufferConstraint,
    ComputationConstraint,
    Constraint,
    OperandConstraint,
    Order,
    subshapes,
)
from hlofuse.passes.layout.requests import (
    Requests,
    broadcast_operand_order,
    can_change_layout,
    goes_depth_first,
    operand_order,
    output_aliases,
    result_order,
    row_reduction_order,
)


class LayoutAssignment(Requests):
    """The layouts of one module. A target says in the first three methods what it asks and how it differs."""

    def add_backend_constraints(self, constraint: ComputationConstraint) -> None:
        """What the target's emitters and libraries need."""

    def aligned_order(self, source: Shape, result: Shape) -> Order | None:
        """The layout of `result` that makes a reshape of `source` a bitcast."""
        found = aligned(source, result)
        return found.minor_to_major if found is not None else None

    def makes_rows(self, reduce: Instruction) -> bool:
        """True if a reduction's operand gets a layout with rows reduced
        (`PropagateReductionLayoutToOperand`)."""
        return False

    def propagate(self) -> None:
        """`PropagateConstraints`."""
        work: deque[Constraint] = deque()
        while True:
            for added in self._added:
                if added.dfs:
                    work.appendleft(added)
                else:
                    work.append(added)
            self._added = []
            if not work:
                return
            constraint = work.popleft()
            if isinstance(constraint, BufferConstraint):
                self._to_operands(constraint)
                self._to_uses(constraint)
            elif isinstance(constraint, OperandConstraint):
                self._from_operand(constraint)
            else:
                root = constraint.computation.root
                self._to_definitions(constraint.result, root, self.priority)

    def _to_definitions(self, shape: Shape, instruction: Instruction, priority: int) -> None:
        """`PropagateUseConstraintToDefs`."""
        defined = self.buffers.of(instruction)
        for index, inner in subshapes(shape):
            if not inner.is_array:
                continue
            buffer = defined[index]
            creator = buffer.instruction
            if creator.opcode != "reduce" or not creator.shape.is_tuple:
                self.set_buffer_layout(buffer, inner.minor_to_major, mandatory=False, priority=priority)

    def _to_operands(self, constraint: BufferConstraint) -> None:
        """`PropagateBufferConstraintToOperands`."""
        buffer, order = constraint.buffer, constraint.order
        instruction = buffer.instruction
        if at_most_rank_1(instruction.shape):
            return
        if instruction.opcode == "all-reduce":
            number = buffer.index[0] if len(instruction.operands) > 1 else 0
            self.set_array_operand_layout(instruction, number, order, priority=constraint.priority)
            return
        depth_first = goes_depth_first(instruction)
        for number, operand in enumerate(instruction.operands):
            if at_most_rank_1(operand.shape):
                continue
            if not can_change_layout(instruction):
                if operand.shape.is_array and operand.shape.rank == len(order):
                    self.set_array_operand_layout(instruction, number, order)
            elif instruction.opcode == "broadcast":
                inner = broadcast_operand_order(order, instruction)
                self.set_array_operand_layout(instruction, number, inner, dfs=depth_first)
            elif (
                not buffer.index
                and operand.shape.is_array
                and (found := self._operand_order(order, instruction, number)) is not None
            ):
                self.set_array_operand_layout(instruction, number, found, mandatory=False, dfs=depth_first)

    def _operand_order(self, order: Order, instruction: Instruction, number: int) -> Order | None:
        """`ChooseOperandLayoutFromOutputLayout`."""
        if instruction.opcode == "reduce" and not instruction.shape.is_tuple:
            return row_reduction_order(order, instruction) if self.makes_rows(instruction) else None
        return operand_order(order, instruction, number, self.aligned_order)

    def _to_uses(self, constraint: BufferConstraint) -> None:
        """`PropagateBufferConstraintToUses`, and through the back edge of a loop."""
        buffer, order = constraint.buffer, constraint.order
        for alias, _ in self.buffers.aliases(buffer):
            if not alias.shape.is_array:
                continue
            for user in alias.users:
                for number, operand in enumerate(user.operands):
                    if operand is alias and not self.buffers.forwards(user, number):
                        self.set_array_operand_layout(
                            user, number, order, mandatory=False, priority=constraint.priority
                        )
        computation = buffer.instruction.computation
        assert computation is not None
        callers = list(computation.callers)
        if len(callers) != 1 or callers[0].opcode != "while" or computation.root.opcode != "tuple":
            return
        if computation.root in buffer.instruction.users:
            at = computation.root.operands.index(buffer.instruction)
            carried = self.buffers.defined_by(computation.parameters[0])[at, *buffer.index]
            self.set_buffer_layout(carried, order, mandatory=False)

    def _from_operand(self, constraint: OperandConstraint) -> None:
        """`PropagateOperandConstraint`."""
        operand, user, number = constraint.operand, constraint.instruction, constraint.number
        if at_most_rank_1(operand.shape):
            return
        priority = constraint.priority
        self._to_definitions(constraint.shape, operand, priority)
        if user.opcode == "custom-call":
            self._to_aliased_output(constraint)
        if user.opcode == "all-reduce":
            index = (number,) if len(user.operands) > 1 else ()
            self.set_buffer_layout(self.buffers.defined_by(user)[index], constraint.shape.minor_to_major)
        changes = can_change_layout(user)
        if not operand.shape.is_array or (changes and not user.shape.is_array and user.opcode != "reduce"):
            return
        if self.buffers.forwards(user, number):
            return
        order, rank = constraint.shape.minor_to_major, operand.shape.rank
        defined = [
            (inner, self.buffers.defined_by(user)[index])
            for index, inner in subshapes(user.shape)
            if inner.is_array and inner.rank > 1 and index in self.buffers.defined_by(user)
        ]
        if not changes or user.opcode == "reduce":
            if user.opcode == "concatenate" and _is_smaller_part(user, operand):
                return
            for k, sibling in enumerate(user.operands):
                if sibling is not operand and sibling.shape.is_array and sibling.shape.rank == rank:
                    self.set_array_operand_layout(user, k, order, priority=priority)
            for inner, buffer in defined:
                if inner.rank == rank:
                    self.set_buffer_layout(buffer, order, priority=priority)
            return
        for _, buffer in defined:
            if (found := result_order(order, user, number, self.aligned_order)) is not None:
                must, dfs = user.opcode == "transpose", goes_depth_first(user)
                self.set_buffer_layout(buffer, found, mandatory=must, dfs=dfs, priority=priority)

    def _to_aliased_output(self, constraint: OperandConstraint) -> None:
        """`PropagateOperandConstraintToResultForCustomCall`."""
        user = constraint.instruction
        for output, number, _ in output_aliases(user):
            buffer = self.buffers.defined_by(user).get(output)
            if number == constraint.number and constraint.shape.is_array:
                if buffer is not None:
                    order = constraint.shape.minor_to_major
                    must = not can_change_layout(user)
                    self.set_buffer_layout(
                        buffer, order, mandatory=must, dfs=False, priority=constraint.priority
                    )
                return


def at_most_rank_1(shape: Shape) -> bool:
    """`IsAtMostRank1`."""
    if shape.is_tuple:
        return all(at_most_rank_1(s) for s in shape.tuple_shapes)
    return not shape.is_array or shape.rank <= 1


def _is_smaller_part(concatenate: Instruction, part: Instruction) -> bool:
    """True if another operand of a concatenate is longer."""
    d = concatenate.dimensions[0]
    return any(o.shape.dimensions[d] > part.shape.dimensions[d] for o in concatenate.operands)
