"""The rounds of layout assignment: through every computation, callees first, twice (`RunImpl`). With callers
first (asked), a round before them finds what callees want, and callers leave open what nothing asks for."""

from collections.abc import Callable

from hlofuse.ir import Computation, Dims, Instruction, Module, Predicate, Shape, set_attribute
from hlofuse.passes.common.calls import replace_users
from hlofuse.passes.common.make import derived
from hlofuse.passes.common.shapes import relaid
from hlofuse.passes.loop.parts import body_of, condition_of
from hlofuse.rules.rewrites import LAYOUT_COPY
from hlofuse.trace import Recorder
from .assignment import (
    GIVEN_PRIORITY,
    ROUNDS,
    ComputationConstraint,
    Index,
    LayoutAssignment,
    output_aliases,
    row_major_everywhere,
    same_layouts,
)


def settle(layouts: LayoutAssignment) -> None:
    module = layouts.module
    order = module.non_fusion_computations()
    entry = layouts.constraint_of(module.entry)
    entry.parameters = [p.shape for p in module.entry.parameters]
    entry.result = module.entry.root.shape
    if (given := module.attributes.get("entry_computation_layout")) is not None:
        entry.parameters, entry.result = list(given[0]), given[1]
    entry.priority, entry.parameters_set, entry.result_set = GIVEN_PRIORITY, True, True
    for k in range(ROUNDS + layouts.callers_first):
        layouts.of_buffer.clear()
        layouts.unconstrained.clear()
        for constraint in layouts.computations.values():
            constraint.operands.clear()
        is_extra = layouts.callers_first and not k
        for computation in order:
            _run(layouts, layouts.constraint_of(computation), is_extra)
        if is_extra:
            order.reverse()
        else:
            layouts.priority += 1


def _run(layouts: LayoutAssignment, constraint: ComputationConstraint, is_extra: bool) -> None:
    """`RunOnComputation`."""
    computation, mismatched = constraint.computation, layouts.mismatched
    arrays = layouts.buffers.arrays_defined_in(computation)
    layouts.unconstrained = set(arrays)
    if constraint not in mismatched and constraint.parameters_set:
        for instruction in computation:
            if instruction.opcode == "parameter":
                shape = constraint.parameters[instruction.parameter_number]
                layouts.set_instruction_layout(instruction, shape)
                if layouts.callers_first:
                    _suggest_to_readers(layouts, instruction, shape)
    for instruction in computation:
        if instruction.opcode == "infeed":
            layouts.set_instruction_layout(instruction, row_major_everywhere(instruction.shape))
        elif instruction.opcode == "outfeed":
            layouts.set_operand_layout(instruction, 0, row_major_everywhere(instruction.operand.shape))
        elif instruction.opcode == "while":
            _constrain_while(layouts, instruction)
        elif instruction.opcode == "conditional":
            _constrain_conditional(layouts, instruction)
        elif instruction.opcode == "call":
            _constrain_call(layouts, instruction)
    if constraint in mismatched:
        constraint.result, constraint.result_set = mismatched[constraint], True
        constraint.priority = layouts.priority + ROUNDS
        layouts.push(constraint)
    elif (layouts.callers_first or computation.is_entry or layouts.priority > 0) and constraint.result_set:
        layouts.push(constraint)
    layouts.add_backend_constraints(constraint)
    _constrain_custom_calls(layouts, constraint)
    layouts.places.clear()
    layouts.propagate()
    layouts.free = set(layouts.unconstrained)
    for buffer in arrays:
        if buffer in layouts.unconstrained:
            if buffer.instruction.opcode == "constant":
                order = buffer.shape.minor_to_major
            elif layouts.callers_first and buffer.instruction.opcode == "parameter":
                shape = constraint.parameters[buffer.instruction.parameter_number]
                order = dict(shape.subshapes())[buffer.index].minor_to_major
            else:
                order = tuple(range(buffer.shape.rank - 1, -1, -1))
            layouts.set_buffer_layout(buffer, order, mandatory=False)
            layouts.propagate()
    if layouts.callers_first and not is_extra:
        _constrain_callees(layouts, computation)
    if constraint in mismatched or (layouts.priority == 0 and constraint.priority < ROUNDS):
        if constraint not in mismatched:
            constraint.result = found_layouts(layouts, computation.root)
        constraint.free = _free_elements(layouts, computation.root) if is_extra else frozenset()
        if is_extra:
            return
        constraint.parameters = [found_layouts(layouts, p) for p in computation.parameters]
        constraint.priority = layouts.priority + ROUNDS
        constraint.parameters_set = constraint.result_set = True


def found_layouts(layouts: LayoutAssignment, instruction: Instruction, is_requested: bool = False) -> Shape:
    """The shape with the layouts its buffers have got, or were asked for (`InferArrayLayout`)."""
    buffers = layouts.buffers.of(instruction)

    def laid(shape: Shape, index: Dims) -> Shape:
        if shape.is_tuple:
            return Shape.tuple_of([laid(part, (*index, k)) for k, part in enumerate(shape.tuple_shapes)])
        if not shape.is_array or not shape.rank:
            return shape
        if is_requested and buffers[index] in layouts.free:
            return row_major_everywhere(shape)
        return relaid(shape, layouts.of_buffer[buffers[index]].order)

    return laid(instruction.shape, ())


def _suggest_to_readers(layouts: LayoutAssignment, x: Instruction, shape: Shape) -> None:
    """`PropagateParameterLayoutToUsers`."""
    for user in x.users:
        if user.opcode == "get-tuple-element":
            element = shape.tuple_shapes[user.tuple_index]
            if element.is_array:
                buffer = layouts.buffers.of(user)[()]
                layouts.set_buffer_layout(buffer, element.minor_to_major, mandatory=False, dfs=False)
            _suggest_to_readers(layouts, user, element)
        elif user.opcode != "tuple":
            layouts.set_operand_layout(user, user.operands.index(x), shape, mandatory=False, dfs=False)


def _constrain_callees(layouts: LayoutAssignment, computation: Computation) -> None:
    """Computations that nothing is asked of yet take the layouts of their caller (`SetCalleeLayout`)."""
    for x in computation.post_order():
        if x.opcode not in ("call", "conditional", "while"):
            continue
        for k, callee in enumerate(x.called_computations):
            constraint = layouts.constraint_of(callee)
            is_mismatched = constraint in layouts.mismatched
            if constraint.priority > layouts.priority and not is_mismatched:
                continue
            if not is_mismatched and (x.opcode != "while" or callee is body_of(x)):
                constraint.result = found_layouts(layouts, x)
            given = x.operands[k + 1 : k + 2] if x.opcode == "conditional" else x.operands
            constraint.parameters = [found_layouts(layouts, o, is_requested=True) for o in given]
            constraint.priority = layouts.priority + 1
            constraint.result_set = True
            constraint.free = _free_elements(layouts, x)


def _free_elements(layouts: LayoutAssignment, x: Instruction) -> frozenset[Index]:
    return frozenset(index for index, buffer in layouts.buffers.of(x).items() if buffer in layouts.free)


def _constrain_while(layouts: LayoutAssignment, loop: Instruction) -> None:
    """`AddWhileConstraints`: body, condition and loop all take the body's result."""
    body, condition = layouts.constraint_of(body_of(loop)), layouts.constraint_of(condition_of(loop))
    if not body.parameters_set:
        for x in (loop.operand, loop):
            found = layouts.buffers.of(x)
            for index, inner in body.result.subshapes():
                if inner.is_array and inner.rank and index not in body.free:
                    layouts.set_buffer_layout(found[index], inner.minor_to_major, mandatory=x is loop)
        return
    for constraint in (body, condition):
        if not same_layouts(constraint.parameters[0], body.result):
            constraint.parameters[0] = body.result
            constraint.priority = layouts.priority + ROUNDS
            constraint.parameters_set = constraint.result_set = True
    layouts.set_operand_layout(loop, 0, body.result, dfs=not layouts.callers_first)
    layouts.set_instruction_layout(loop, body.result)


def _constrain_conditional(layouts: LayoutAssignment, conditional: Instruction) -> None:
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
            layouts.mismatched.setdefault(constraint, best.result)
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
        for number, shape in enumerate(call.attributes["operand_layout_constraints"]):
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
    """Give every instruction a layout; False where none is open: XLA stops at a bitcast or fusion."""
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
                    if operand.opcode != "copy" or operand.user_count > 1:
                        call.replace_operand(number, copied(operand, operand.shape))


def apply(layouts: LayoutAssignment, recorder: Recorder) -> None:
    """Give every instruction the layout found for it (`AssignLayouts`)."""
    for computation in layouts.module.non_fusion_computations():
        constraint = layouts.constraint_of(computation)
        for instruction in computation.post_order():
            instruction.shape = found_layouts(layouts, instruction)
            for number in range(instruction.operand_count):
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
    if user.opcode == "conditional" and number > 0 and operand.user_count == 1:
        _copy_in_branch(layouts.constraint_of(user.called_computations[number - 1]), operand.shape, shape)
        return
    computation = user.parent
    first = computation.next_id
    user.replace_operand(number, copied(operand, shape))
    _record(computation, first, user.name, recorder)


def _record(computation: Computation, first: int, reader: str, recorder: Recorder) -> None:
    for copy in computation.added_since(first):
        if copy.opcode == "copy":
            source = copy.operand
            has, wanted = source.shape.layout, copy.shape.layout
            if source.opcode == "get-tuple-element" and source.operand.opcode == "tuple":
                source = source.operand.operands[source.tuple_index]
            reason = f"{source.name} is laid out as {has}, and {reader} takes {wanted}"
            recorder.created_instructions(source.name, [copy], LAYOUT_COPY, reason)


def _copy_in_branch(branch: ComputationConstraint, given: Shape, wanted: Shape) -> None:
    computation: Computation = branch.computation
    parameter = computation.parameter
    parameter.shape = given
    replace_users(list(parameter.users), parameter, copied(parameter, wanted))
    branch.parameters[0] = given


def copied(instruction: Instruction, shape: Shape) -> Instruction:
    """A copy in another layout; of a tuple, of the elements that differ (`CreateCopyWithNewLayout`)."""
    if not instruction.is_tuple:
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
