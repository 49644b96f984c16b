"""From the layout of one side of an operation to a good one of the other side.

Mirrors `ChooseOperandLayoutFromOutputLayout` and `ChooseOutputLayoutFromOperandLayout`.
"""

from collections.abc import Callable

from hlofuse.analysis.custom_calls import custom_call_target
from hlofuse.cost.gpu.shapes import inverse
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.shape import Shape
from hlofuse.passes.common.shapes import ones_moved, permute, relaid, without
from hlofuse.passes.layout.constraints import (
    Buffer,
    BufferConstraint,
    Buffers,
    ComputationConstraint,
    Constraint,
    Index,
    OperandConstraint,
    Order,
    subshapes,
)

Aligned = Callable[[Shape, Shape], Order | None]
"""The layout of the second shape that makes a reshape between the two a bitcast."""

# What cannot give its result another layout than its operands have (`InstructionCanChangeLayout`).
_KEEPS_LAYOUT = frozenset(
    """
    abs acos acosh asin asinh add add-dependency and atan2 atanh bitcast-convert ceil clamp
    count-leading-zeros compare complex concatenate convert cosine cosh all-gather all-gather-start
    all-gather-done all-to-all collective-broadcast collective-permute divide dynamic-slice
    dynamic-update-slice erf exponential exponential-minus-one fft floor imag is-finite log log-plus-one
    logistic map maximum minimum multiply mulhi negate not opt-barrier or xor pad power
    real reduce-precision reduce-window remainder reverse round-nearest-afz round-nearest-even rsqrt scatter
    select select-and-scatter shift-left shift-right-arithmetic shift-right-logical sign sine sinh slice
    sort topk sqrt cbrt subtract stochastic-convert tan tanh popcnt triangular-solve cholesky while
    set-dimension-size all-reduce reduce-scatter all-reduce-start all-reduce-done ragged-all-to-all scan
    """.split()
)


def can_change_layout(instruction: Instruction) -> bool:
    """`InstructionCanChangeLayout`; the target `__gpu$TopK` is named by XLA:GPU's own alone."""
    if instruction.opcode == "custom-call":
        return custom_call_target(instruction) not in ("LayoutConstraint", "__gpu$TopK")
    return instruction.opcode not in _KEEPS_LAYOUT


def goes_depth_first(instruction: Instruction) -> bool:
    """`InstructionShouldPropagateDepthFirst`."""
    opcode = instruction.opcode
    if opcode == "reshape":
        source = instruction.operands[0].shape
        return source.rank == 1 or ones_moved(source, instruction.shape) is not None
    return opcode in ("gather", "scatter", "transpose") or instruction.fusion_kind == "kCustom"


def operand_order(order: Order, instruction: Instruction, number: int, aligned: Aligned) -> Order | None:
    """The layout of an operand that goes well with the result's."""
    operand, opcode = instruction.operands[number].shape, instruction.opcode
    if operand.rank and operand.rank == instruction.shape.rank and not can_change_layout(instruction):
        return order
    if opcode == "reshape":
        if operand.true_rank == 1 and instruction.shape.true_rank == 1:
            return None
        return aligned(relaid(instruction.shape, order), operand)
    if opcode == "transpose":
        return permute(instruction.dimensions, order)
    return None


def row_reduction_order(order: Order, reduce: Instruction) -> Order:
    """The layout of an operand that makes the reduction one of rows."""
    reduced = reduce.dimensions
    remaining = [d for d in range(reduce.operands[0].shape.rank) if d not in reduced]
    return (*reversed(reduced), *(remaining[d] for d in order))


def result_order(order: Order, user: Instruction, number: int, aligned: Aligned) -> Order | None:
    """The layout of the result that goes well with an operand's."""
    operand, opcode = user.operands[number].shape, user.opcode
    if opcode == "reduce" and user.shape.is_tuple:
        return without(relaid(operand, order), user.dimensions).minor_to_major
    if operand.rank and operand.rank == user.shape.rank and not can_change_layout(user):
        return order
    if opcode == "reshape":
        if operand.true_rank == 1 and user.shape.true_rank == 1:
            return None
        return aligned(relaid(operand, order), user.shape)
    if opcode == "transpose":
        back = inverse(user.dimensions)
        return permute(back, order)
    return None


def broadcast_operand_order(order: Order, broadcast: Instruction) -> Order:
    """`GetBroadcastLayoutFromOutput`: the dimensions that come from the operand, as they lie."""
    others = [d for d in range(broadcast.shape.rank) if d not in broadcast.dimensions]
    return without(relaid(broadcast.shape, order), others).minor_to_major


class Requests:
    """What is asked of the layouts of one module (`LayoutAssignment::Set…Layout`)."""

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

    def set_buffer_layout(
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
        constraint = self.of_buffer.get(buffer)
        if constraint is None:
            constraint = self.of_buffer[buffer] = BufferConstraint(buffer, order, mandatory, dfs, priority)
        elif not constraint.update(order, mandatory, dfs, priority) or buffer.shape.rank <= 1:
            return
        self.push(constraint)
        if buffer.instruction.opcode in ("custom-call", "fusion", "call"):
            for output, number, at in output_aliases(buffer.instruction):
                if output == buffer.index and not at:
                    self.set_array_operand_layout(
                        buffer.instruction, number, order, mandatory=mandatory, dfs=dfs, priority=priority
                    )

    def set_operand_layout(
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
        constraint = operands.get((instruction, number))
        if constraint is None:
            constraint = OperandConstraint(instruction, number, shape, mandatory, dfs, priority)
            operands[instruction, number] = constraint
        elif not constraint.update(shape, mandatory, dfs, priority):
            return
        self.push(constraint)

    def set_array_operand_layout(
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
        self.set_operand_layout(instruction, number, shape, mandatory=mandatory, dfs=dfs, priority=priority)

    def set_instruction_layout(self, instruction: Instruction, shape: Shape) -> None:
        """`SetInstructionLayout`: of everything the instruction makes, and of operands that must agree."""
        found = self.buffers.of(instruction)
        for index, inner in subshapes(shape):
            if inner.is_array:
                self.set_buffer_layout(found[index], inner.minor_to_major)
        changes = instruction.opcode in ("while", "conditional") or can_change_layout(instruction)
        if shape.is_array and not changes:
            for number, operand in enumerate(instruction.operands):
                if operand.shape.is_array and operand.shape.rank == shape.rank:
                    self.set_array_operand_layout(instruction, number, shape.minor_to_major)

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
