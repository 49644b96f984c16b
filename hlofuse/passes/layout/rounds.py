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
        for asked in layouts.computations.values():
            asked.operands.clear()
        for computation in order:
            asked = layouts.constraint_of(computation)
            _run(layouts, asked, mismatched)
        layouts.priority += 1


def _run(
    layouts: LayoutAssignment, asked: ComputationConstraint, mismatched: dict[ComputationConstraint, Shape]
) -> None:
    """`RunOnComputation`."""
    computation = asked.computation
    arrays = layouts.buffers.arrays_made_in(computation)
    layouts.unconstrained = set(arrays)
    if asked not in mismatched and asked.parameters_set:
        for instruction in computation:
            if instruction.opcode == "parameter":
                layouts.ask_result(instruction, asked.parameters[instruction.parameter_number])
    for instruction in computation:
        if instruction.opcode == "while":
            _ask_while(layouts, instruction)
        elif instruction.opcode == "conditional":
            _ask_conditional(layouts, instruction, mismatched)
        elif instruction.opcode == "call":
            _ask_call(layouts, instruction)
    if asked in mismatched:
        asked.result, asked.result_set = mismatched[asked], True
        asked.priority = layouts.priority + ROUNDS
        layouts.push(asked)
    elif (computation.is_entry or layouts.priority > 0) and asked.result_set:
        layouts.push(asked)
    layouts.add_backend_constraints(asked)
    _ask_custom_calls(layouts, asked)
    layouts.propagate()
    for buffer in arrays:
        if buffer in layouts.unconstrained:
            if buffer.instruction.opcode == "constant":
                order = buffer.shape.minor_to_major
            else:
                order = tuple(range(buffer.shape.rank - 1, -1, -1))
            layouts.ask_buffer(buffer, order, mandatory=False)
            layouts.propagate()
    if asked in mismatched or (layouts.priority == 0 and asked.priority < ROUNDS):
        if asked not in mismatched:
            asked.result = found_layouts(layouts, computation.root)
        asked.parameters = [found_layouts(layouts, p) for p in computation.parameters]
        asked.priority = layouts.priority + ROUNDS
        asked.parameters_set = asked.result_set = True


def found_layouts(layouts: LayoutAssignment, instruction: Instruction) -> Shape:
    """The instruction's shape with the layouts its buffers have got (`InferArrayLayout`)."""
    made = layouts.buffers.of(instruction)
    orders = {
        index: layouts.of_buffer[made[index]].order
        for index, inner in subshapes(instruction.shape)
        if inner.is_array
    }

    def laid(shape: Shape, index: tuple[int, ...]) -> Shape:
        if shape.is_tuple:
            return Shape.tuple_of([laid(s, (*index, k)) for k, s in enumerate(shape.tuple_shapes)])
        return relaid(shape, orders[index]) if shape.is_array and shape.rank else shape

    return laid(instruction.shape, ())


def _ask_while(layouts: LayoutAssignment, loop: Instruction) -> None:
    """`AddWhileConstraints`: body, condition and loop all take the body's result."""
    called = dict(loop.called)
    body, condition = layouts.constraint_of(called["body"]), layouts.constraint_of(called["condition"])
    for asked in (body, condition):
        if not same_layouts(asked.parameters[0], body.result):
            asked.parameters[0] = body.result
            asked.priority = layouts.priority + ROUNDS
            asked.parameters_set = asked.result_set = True
    layouts.ask_operand(loop, 0, body.result)
    layouts.ask_result(loop, body.result)


def _ask_conditional(
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
        asked = layouts.constraint_of(branch)
        if not same_layouts(asked.result, best.result):
            mismatched.setdefault(asked, best.result)
        else:
            layouts.ask_operand(conditional, k + 1, asked.parameters[0])
    layouts.ask_operand(conditional, largest + 1, best.parameters[0])
    layouts.ask_result(conditional, best.result)


def _ask_call(layouts: LayoutAssignment, call: Instruction) -> None:
    """`AddCallConstraints`, once the callee has been through a round."""
    callee = layouts.constraint_of(call.called_computations[0])
    if callee.result_set:
        layouts.ask_result(call, callee.result)
        for number, shape in enumerate(callee.parameters):
            layouts.ask_operand(call, number, shape)


def _ask_custom_calls(layouts: LayoutAssignment, asked: ComputationConstraint) -> None:
    """`AddCustomCallConstraints`: those that say in which layouts they want their operands."""
    for call in asked.computation.post_order():
        if "operand_layout_constraints" not in call.attributes:
            continue
        layouts.ask_result(call, call.shape)
        shapes = call.attributes["operand_layout_constraints"]
        for number, shape in enumerate(shapes):
            if layouts.buffers.forwards(call, number):
                continue
            layouts.ask_operand(call, number, shape)
            operand = call.operands[number]
            if operand.opcode == "copy":
                layouts.ask_operand(operand, 0, shape)
