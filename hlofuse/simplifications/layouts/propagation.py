"""Constraints and how they spread within a computation (`PropagateConstraints`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.shape import Shape
from hlofuse.ir.values.aliasing import OutputAlias
from hlofuse.simplifications.layouts.choosing import (
    Order,
    at_most_rank_1,
    broadcast_operand_layout,
    can_change_layout,
    depth_first,
    goes_forward,
    goes_to_operands,
    goes_to_siblings,
    laid_out,
    operand_layout,
    output_layout,
)
from hlofuse.simplifications.layouts.constraints import (
    BEGINNING_PRIORITY,
    DEFAULT_PRIORITY,
    BufferConstraint,
    ComputationConstraint,
    Constraint,
    OperandConstraint,
)
from hlofuse.simplifications.layouts.points_to import Buffer, PointsTo


def output_aliases(x: Instruction) -> Sequence[OutputAlias]:
    aliases: Sequence[OutputAlias] = x.attributes.get("output_to_operand_aliasing", ())
    return aliases


class Propagation:
    """The constraints of a module while its layouts are worked out."""

    def __init__(self, points_to: PointsTo) -> None:
        self.points_to = points_to
        self.priority = BEGINNING_PRIORITY
        self.buffers: dict[Buffer, BufferConstraint] = {}
        self.unconstrained: dict[Buffer, None] = {}
        self._computations: dict[Computation, ComputationConstraint] = {}
        self._added: list[Constraint] = []

    def of(self, computation: Computation) -> ComputationConstraint:
        if computation not in self._computations:
            self._computations[computation] = ComputationConstraint(computation, DEFAULT_PRIORITY)
        return self._computations[computation]

    def is_known(self, computation: Computation) -> bool:
        return computation in self._computations

    def forget(self) -> None:
        """What a round found, but for the layouts of computations (`ClearPreviousPassSideEffects`)."""
        for constraint in self._computations.values():
            constraint.operands.clear()
        self.buffers.clear()
        self.unconstrained.clear()

    # ------------------------------------------------------------ setting

    def set_buffer(
        self, order: Order, buffer: Buffer, mandatory: bool, dfs: bool = True, priority: int | None = None
    ) -> None:
        """`SetBufferLayout`."""
        priority = self.priority if priority is None else priority
        self.unconstrained.pop(buffer, None)
        known = self.buffers.get(buffer)
        if known is None:
            known = self.buffers[buffer] = BufferConstraint(mandatory, dfs, priority, buffer, order)
        elif not known.update(priority, order, mandatory, dfs) or at_most_rank_1(buffer.shape):
            return
        self.push(known)
        x = buffer.instruction
        for alias in output_aliases(x):
            if alias.output_index == buffer.index and not alias.operand_index:
                shape = laid_out(x.operands[alias.operand_number].shape, order)
                self.set_operand(shape, x, alias.operand_number, mandatory, dfs, priority)

    def set_operand(
        self,
        shape: Shape,
        x: Instruction,
        number: int,
        mandatory: bool = True,
        dfs: bool = True,
        priority: int | None = None,
    ) -> None:
        """`SetOperandLayout`."""
        if shape.is_array and not shape.dimensions:
            return
        priority = self.priority if priority is None else priority
        assert x.computation is not None
        operands = self.of(x.computation).operands
        if x.opcode == "dynamic-update-slice" and number > 0 and not mandatory:
            if priority > DEFAULT_PRIORITY:
                dfs, priority = False, priority - 1
        elif x.opcode == "reshape" and not mandatory and x.operands[0].opcode == "dynamic-slice":
            dfs, priority = False, priority - 1
        known = operands.get((x, number))
        if known is None:
            known = operands[x, number] = OperandConstraint(mandatory, dfs, priority, x, number, shape)
        elif not known.update(priority, shape, mandatory, dfs):
            return
        self.push(known)

    def set_array_operand(
        self, order: Order, x: Instruction, number: int, mandatory: bool, dfs: bool, priority: int
    ) -> None:
        shape = laid_out(x.operands[number].shape, order)
        self.set_operand(shape, x, number, mandatory, dfs, priority)

    def set_instruction(self, shape: Shape, x: Instruction) -> None:
        """Everything the instruction makes (`SetInstructionLayout`)."""
        for index, leaf in shape.leaves():
            if leaf.is_array:
                self.set_buffer(leaf.minor_to_major, self.points_to.of(x)[index], mandatory=True)
        if shape.is_array and x.opcode not in ("while", "conditional") and not can_change_layout(x):
            for number, operand in enumerate(x.operands):
                if operand.shape.rank == shape.rank and operand.shape.is_array:
                    self.set_array_operand(shape.minor_to_major, x, number, True, True, self.priority)

    def push(self, constraint: Constraint) -> None:
        """`PushAddedConstraints`."""
        if constraint.dfs:
            self._added.append(constraint)
            return
        place = len(self._added)
        while place and constraint.priority > self._added[place - 1].priority:
            place -= 1
        self._added.insert(place, constraint)

    # ------------------------------------------------------------ spreading

    def propagate(self) -> None:
        work: deque[Constraint] = deque()
        self._collect(work)
        while work:
            constraint = work.popleft()
            if isinstance(constraint, BufferConstraint):
                self._to_operands(constraint)
                self._to_uses(constraint)
            elif isinstance(constraint, OperandConstraint):
                self._of_operand(constraint)
            elif isinstance(constraint, ComputationConstraint) and constraint.result is not None:
                self._to_sources(constraint.result, constraint.computation.root, self.priority)
            self._collect(work)

    def _collect(self, work: deque[Constraint]) -> None:
        for constraint in self._added:
            if constraint.dfs:
                work.appendleft(constraint)
            else:
                work.append(constraint)
        self._added = []

    def _to_sources(self, shape: Shape, x: Instruction, priority: int) -> None:
        """`PropagateUseConstraintToDefs`."""
        found = self.points_to.of(x)
        for index, leaf in shape.leaves():
            buffer = found[index]
            variadic = buffer.instruction.opcode == "reduce" and buffer.instruction.shape.is_tuple
            if leaf.is_array and buffer.shape.is_array and not variadic:
                self.set_buffer(leaf.minor_to_major, buffer, mandatory=False, priority=priority)

    def _to_operands(self, constraint: BufferConstraint) -> None:
        """`PropagateBufferConstraintToOperands`."""
        buffer, order = constraint.buffer, constraint.order
        x = buffer.instruction
        if at_most_rank_1(x.shape):
            return
        for number, operand in enumerate(x.operands):
            if at_most_rank_1(operand.shape):
                continue
            if not can_change_layout(x):
                if operand.shape.is_array and operand.shape.rank == len(order):
                    self.set_array_operand(order, x, number, True, True, self.priority)
                continue
            if x.opcode == "broadcast":
                inner: Order | None = broadcast_operand_layout(order, x.dimensions)
                mandatory = True
            else:
                if buffer.index or not operand.shape.is_array:
                    continue
                inner = operand_layout(order, x, number)
                mandatory = goes_to_operands(x)
            if inner is not None:
                self.set_array_operand(inner, x, number, mandatory, depth_first(x), self.priority)

    def _to_uses(self, constraint: BufferConstraint) -> None:
        """`PropagateBufferConstraintToUses`."""
        buffer, order = constraint.buffer, constraint.order
        for alias in buffer.aliases:
            for user in alias.users:
                for number, operand in enumerate(user.operands):
                    if operand is alias and not self.points_to.is_forwarded(user, number):
                        self.set_array_operand(order, user, number, False, True, constraint.priority)
        computation = buffer.instruction.computation
        assert computation is not None
        callers = list(computation.callers)
        if len(callers) != 1 or callers[0].opcode != "while":
            return
        root = computation.root
        if root.opcode != "tuple" or root not in buffer.instruction.users:
            return
        place = (root.operands.index(buffer.instruction), *buffer.index)
        carried = self.points_to.of(computation.parameters[0])[place]
        self.set_buffer(order, carried, mandatory=False)

    def _of_operand(self, constraint: OperandConstraint) -> None:
        """`PropagateOperandConstraint`."""
        operand, user, shape = constraint.operand, constraint.instruction, constraint.shape
        if at_most_rank_1(operand.shape):
            return
        self._to_sources(shape, operand, constraint.priority)
        if user.opcode == "custom-call":
            self._to_aliased_result(constraint)
        if not operand.shape.is_array or user.attributes.raw("constrain_layout") == "true":
            return
        if can_change_layout(user) and not user.shape.is_array and user.opcode != "reduce":
            return
        if self.points_to.is_forwarded(user, constraint.number) or operand.shape.rank <= 1:
            return
        order = shape.minor_to_major
        places = [b for b in self.points_to.defined_by(user) if not b.shape.is_tuple and b.shape.rank > 1]
        if goes_to_siblings(user):
            if user.opcode == "concatenate" and not self._is_largest(constraint):
                return
            for number, sibling in enumerate(user.operands):
                if sibling is operand or not sibling.shape.is_array:
                    continue
                if sibling.shape.rank == operand.shape.rank:
                    self.set_array_operand(order, user, number, True, True, constraint.priority)
            for buffer in places:
                if buffer.shape.rank == operand.shape.rank:
                    self.set_buffer(order, buffer, mandatory=True, priority=constraint.priority)
            return
        for buffer in places:
            result = output_layout(order, user, constraint.number)
            if result is not None:
                self.set_buffer(result, buffer, goes_forward(user), depth_first(user), constraint.priority)

    def _to_aliased_result(self, constraint: OperandConstraint) -> None:
        """`PropagateOperandConstraintToResultForCustomCall`."""
        user = constraint.instruction
        for alias in output_aliases(user):
            if alias.operand_number == constraint.number:
                buffer = self.points_to.of(user)[alias.output_index]
                if buffer.instruction is user:
                    order = constraint.shape.minor_to_major
                    self.set_buffer(order, buffer, goes_forward(user), depth_first(user), constraint.priority)
                return

    def _is_largest(self, constraint: OperandConstraint) -> bool:
        (dimension,) = constraint.instruction.dimensions
        mine = constraint.operand.shape.dimensions[dimension]
        return all(o.shape.dimensions[dimension] <= mine for o in constraint.instruction.operands)
