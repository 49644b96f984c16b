"""The rounds of layout assignment: through every computation, callees first, twice (`RunImpl`)."""

from collections.abc import Callable

from hlofuse.ir import Computation, Instruction, Module, Predicate, Shape, computation_of, set_attribute
from hlofuse.passes.common.calls import replace_users
from hlofuse.passes.common.make import derived
from hlofuse.passes.common.shapes import relaid
from hlofuse.rules.rewrites import LAYOUT_COPY
from hlofuse.trace import Recorder
from .assignment import LayoutAssignment, output_aliases
from .constraints import GIVEN_PRIORITY, ROUNDS, ComputationConstraint, row_major_everywhere, same_layouts


def settle(layouts: LayoutAssignment) -> None:
    module = layouts.module
    order = module.non_fusion_computations()
    entry = layouts.constraint_of(module.entry)
    entry.parameters = [p.shape for p in module.entry.parameters]
    entry.result = module.entry.root.shape
    if (given := module.attributes.get("entry_computation_layout")) is not None:
        entry.parameters, entry.result = list(given[0]), given[1]
    entry.priority, entry.parameters_set, entry.result_set = GIVEN_PRIORITY, True, True
    mismatched = dict[ComputationConstraint, Shape]()
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
            layouts.set_operand_layout(instruction, 0, row_major_everywhere(instruction.operand.shape))
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

    def laid(shape: Shape, index: tuple[int, ...]) -> Shape:
        if shape.is_tuple:
            return Shape.tuple_of([laid(part, (*index, k)) for k, part in enumerate(shape.tuple_shapes)])
        if not shape.is_array or not shape.rank:
            return shape
        return relaid(shape, layouts.of_buffer[buffers[index]].order)

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
        given = conditional.operands[k + 1].shape
        if len(branch) > count and (given.tuple_shapes or not given.is_tuple):
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
    callee = layouts.constraint_of(call.to_apply)
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


def assign_layouts(
    module: Module,
    layouts_of: Callable[[Module], LayoutAssignment],
    recorder: Recorder,
    is_left_out: Predicate = lambda i: False,
) -> bool:
    """Give every instruction a layout; False where layouts are not open any more. A bitcast or fusion depends
    on those its operands have: XLA stops."""
    for i in module.instructions():
        if i.opcode in ("bitcast", "fusion") or is_left_out(i):
            recorder.skipped(i, f"layouts are not assigned to a module with this kind of {i.opcode}")
            return False
    prepare(module)
    layouts = layouts_of(module)
    settle(layouts)
    apply(layouts, recorder)
    return True


def prepare(module: Module) -> None:
    """Calls with layouts that write into an operand get a copy (`PrepareHloForLayoutAssignment`)."""
    for computation in module.computations:
        for call in list(computation):
            if "operand_layout_constraints" in call.attributes:
                for number in dict.fromkeys(number for _, number, _ in output_aliases(call)):
                    operand = call.operands[number]
                    if operand.opcode != "copy" or len(operand.users) > 1:
                        call.replace_operand(number, copied(operand, operand.shape))


def apply(layouts: LayoutAssignment, recorder: Recorder) -> None:
    """Give every instruction the layout found for it (`AssignLayouts`)."""
    for computation in layouts.module.non_fusion_computations():
        constraint = layouts.constraint_of(computation)
        for instruction in computation.post_order():
            instruction.shape = found_layouts(layouts, instruction)
            for number in range(len(instruction.operands)):
                shape = constraint.operand_shape(instruction, number)
                if shape is not None and not same_layouts(shape, instruction.operands[number].shape):
                    _copy_operand(layouts, instruction, number, shape, recorder)
        if constraint.result_set and not same_layouts(constraint.result, computation.root.shape):
            first = computation.next_id
            computation.root = copied(computation.root, constraint.result)
            whose = "the program" if computation.is_entry else computation.name
            _record(computation, first, f"the result of {whose}", recorder)


def _copy_operand(
    layouts: LayoutAssignment, user: Instruction, number: int, shape: Shape, recorder: Recorder
) -> None:
    """`CopyOperandIfLayoutsDiffer`; in a branch that alone reads it, the copy is made there."""
    operand = user.operands[number]
    if user.opcode == "conditional" and number > 0 and len(operand.users) == 1:
        _copy_in_branch(layouts.constraint_of(user.called_computations[number - 1]), operand.shape, shape)
        return
    computation = computation_of(user)
    first = computation.next_id
    user.replace_operand(number, copied(operand, shape))
    _record(computation, first, user.name, recorder)


def _record(computation: Computation, first: int, reader: str, recorder: Recorder) -> None:
    for copy in computation.added_since(first):
        if copy.opcode == "copy":
            source = copy.operand
            has, wanted = source.shape.layout, copy.shape.layout
            if source.opcode == "get-tuple-element" and source.operand.opcode == "tuple":
                source = source.operands[0].operands[source.tuple_index]
            reason = f"{source.name} is laid out as {has}, and {reader} takes {wanted}"
            recorder.created_instructions(source.name, [copy], LAYOUT_COPY, reason)


def _copy_in_branch(branch: ComputationConstraint, given: Shape, wanted: Shape) -> None:
    computation: Computation = branch.computation
    parameter = computation.parameters[0]
    parameter.shape = given
    users = list(parameter.users)
    replace_users(users, parameter, copied(parameter, wanted))
    branch.parameters[0] = given


def copied(instruction: Instruction, shape: Shape) -> Instruction:
    """A copy in another layout; of a tuple, of the elements that differ (`CreateCopyWithNewLayout`)."""
    if not instruction.shape.is_tuple:
        return _copy_attributes(instruction, derived(instruction, "copy", shape, [instruction]))
    parts = []
    for k, (has, wanted) in enumerate(zip(instruction.shape.tuple_shapes, shape.tuple_shapes, strict=True)):
        part = derived(instruction, "get-tuple-element", has, [instruction], index=k)
        parts.append(part if same_layouts(has, wanted) else copied(part, wanted))
    return derived(instruction, "tuple", shape, parts)


def _copy_attributes(element: Instruction, copy: Instruction) -> Instruction:
    """JAX gives elements of a custom call's results the call's attributes, which `call#0` does not show."""
    source = element.past("get-tuple-element")
    if source.opcode == "custom-call":
        for name, text in source.attributes.given("sharding", "frontend_attributes").items():
            set_attribute(copy, name, text)
    return copy
