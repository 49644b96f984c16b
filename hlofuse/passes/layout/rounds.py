"""The rounds of layout assignment: through every computation, callees first, twice (`RunImpl`)."""

from __future__ import annotations

from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import Shape
from hlofuse.passes.common.shapes import relaid
from hlofuse.passes.layout.assignment import LayoutAssignment
from hlofuse.passes.layout.constraints import (
    GIVEN_PRIORITY,
    ROUNDS,
    ComputationConstraint,
    row_major_everywhere,
    same_layouts,
    subshapes,
)


def settle(layouts: LayoutAssignment) -> None:
    """Find a layout for every buffer."""
    module = layouts.module
    order = module.non_fusion_computations()
    entry = layouts.constraint_of(module.entry)
    entry.parameters = [p.shape for p in module.entry.parameters]
    entry.result = module.entry.root.shape
    given = module.attributes.get("entry_computation_layout")
    if given is not None:
        entry.parameters, entry.result = list(given[0]), given[1]
    entry.priority, entry.parameters_set, entry.result_set = GIVEN_PRIORITY, True, True
    mismatched: dict[ComputationConstraint, Shape] = {}
    for _ in range(ROUNDS):
        layouts.of_buffer.clear()
        layouts.unconstrained.clear()
        for constraint in layouts.computations.values():
            constraint.operands.clear()
        for computation in order:
            constraint = layouts.constraint_of(computation)
            _run(layouts, constraint, mismatched)
        layouts.priority += 1


def _run(
    layouts: LayoutAssignment,
    constraint: ComputationConstraint,
    mismatched: dict[ComputationConstraint, Shape],
) -> None:
    """`RunOnComputation`."""
    computation = constraint.computation
    arrays = layouts.buffers.arrays_defined_in(computation)
    layouts.unconstrained = set(arrays)
    if constraint not in mismatched and constraint.parameters_set:
        for instruction in computation:
            if instruction.opcode == "parameter":
                layouts.set_instruction_layout(
                    instruction, constraint.parameters[instruction.parameter_number]
                )
    for instruction in computation:
        if instruction.opcode == "infeed":
            layouts.set_instruction_layout(instruction, row_major_everywhere(instruction.shape))
        elif instruction.opcode == "outfeed":
            layouts.set_operand_layout(instruction, 0, row_major_everywhere(instruction.operands[0].shape))
        elif instruction.opcode == "while":
            _constrain_while(layouts, instruction)
        elif instruction.opcode == "conditional":
            _constrain_conditional(layouts, instruction, mismatched)
        elif instruction.opcode == "call":
            _constrain_call(layouts, instruction)
    if constraint in mismatched:
        constraint.result, constraint.result_set = mismatched[constraint], True
        constraint.priority = layouts.priority + ROUNDS
        layouts.push(constraint)
    elif (computation.is_entry or layouts.priority > 0) and constraint.result_set:
        layouts.push(constraint)
    layouts.add_backend_constraints(constraint)
    _constrain_custom_calls(layouts, constraint)
    layouts.propagate()
    for buffer in arrays:
        if buffer in layouts.unconstrained:
            if buffer.instruction.opcode == "constant":
                order = buffer.shape.minor_to_major
            else:
                order = tuple(range(buffer.shape.rank - 1, -1, -1))
            layouts.set_buffer_layout(buffer, order, mandatory=False)
            layouts.propagate()
    if constraint in mismatched or (layouts.priority == 0 and constraint.priority < ROUNDS):
        if constraint not in mismatched:
            constraint.result = found_layouts(layouts, computation.root)
        constraint.parameters = [found_layouts(layouts, p) for p in computation.parameters]
        constraint.priority = layouts.priority + ROUNDS
        constraint.parameters_set = constraint.result_set = True


def found_layouts(layouts: LayoutAssignment, instruction: Instruction) -> Shape:
    """The instruction's shape with the layouts its buffers have got (`InferArrayLayout`)."""
    buffers = layouts.buffers.of(instruction)
    orders = {
        index: layouts.of_buffer[buffers[index]].order
        for index, inner in subshapes(instruction.shape)
        if inner.is_array
    }

    def laid(shape: Shape, index: tuple[int, ...]) -> Shape:
        if shape.is_tuple:
            return Shape.tuple_of([laid(s, (*index, k)) for k, s in enumerate(shape.tuple_shapes)])
        return relaid(shape, orders[index]) if shape.is_array and shape.rank else shape

    return laid(instruction.shape, ())


def _constrain_while(layouts: LayoutAssignment, loop: Instruction) -> None:
    """`AddWhileConstraints`: body, condition and loop all take the body's result."""
    called = dict(loop.called)
    body, condition = layouts.constraint_of(called["body"]), layouts.constraint_of(called["condition"])
    for constraint in (body, condition):
        if not same_layouts(constraint.parameters[0], body.result):
            constraint.parameters[0] = body.result
            constraint.priority = layouts.priority + ROUNDS
            constraint.parameters_set = constraint.result_set = True
    layouts.set_operand_layout(loop, 0, body.result)
    layouts.set_instruction_layout(loop, body.result)


def _constrain_conditional(
    layouts: LayoutAssignment, conditional: Instruction, mismatched: dict[ComputationConstraint, Shape]
) -> None:
    """`AddConditionalConstraints`: the largest branch decides."""
    branches = conditional.called_computations
    largest, count = 0, 0
    for k, branch in enumerate(branches):
        empty = (
            not subshapes(conditional.operands[k + 1].shape)[1:]
            and conditional.operands[k + 1].shape.is_tuple
        )
        if len(branch) > count and not empty:
            largest, count = k, len(branch)
    best = layouts.constraint_of(branches[largest])
    for k, branch in enumerate(branches):
        constraint = layouts.constraint_of(branch)
        if not same_layouts(constraint.result, best.result):
            mismatched.setdefault(constraint, best.result)
        else:
            layouts.set_operand_layout(conditional, k + 1, constraint.parameters[0])
    layouts.set_operand_layout(conditional, largest + 1, best.parameters[0])
    layouts.set_instruction_layout(conditional, best.result)


def _constrain_call(layouts: LayoutAssignment, call: Instruction) -> None:
    """`AddCallConstraints`, once the callee has been through a round."""
    callee = layouts.constraint_of(call.called_computations[0])
    if callee.result_set:
        layouts.set_instruction_layout(call, callee.result)
        for number, shape in enumerate(callee.parameters):
            layouts.set_operand_layout(call, number, shape)


def _constrain_custom_calls(layouts: LayoutAssignment, constraint: ComputationConstraint) -> None:
    """`AddCustomCallConstraints`: those that say in which layouts they want their operands."""
    for call in constraint.computation.post_order():
        if "operand_layout_constraints" not in call.attributes:
            continue
        layouts.set_instruction_layout(call, call.shape)
        shapes = call.attributes["operand_layout_constraints"]
        for number, shape in enumerate(shapes):
            if layouts.buffers.forwards(call, number):
                continue
            layouts.set_operand_layout(call, number, shape)
            operand = call.operands[number]
            if operand.opcode == "copy":
                layouts.set_operand_layout(operand, 0, shape)
