"""The rounds of layout assignment: through every computation, callees first, twice (`RunImpl`). From 0.12 on
one round is of all computations at once; what a call hands on has one layout on both sides where it can."""

from collections.abc import Callable

from hlofuse.ir import Computation, Dims, Instruction, Module, Predicate, Shape, set_attribute
from hlofuse.passes.common.calls import replace_users
from hlofuse.passes.common.make import derived
from hlofuse.passes.common.shapes import descending, relaid
from hlofuse.passes.loop.parts import body_of, condition_of
from hlofuse.rules.rewrites import LAYOUT_COPY
from hlofuse.trace import Recorder
from .across_calls import Links
from .assignment import (
    GIVEN_PRIORITY,
    ROUNDS,
    ComputationConstraint,
    LayoutAssignment,
    output_aliases,
    row_major_everywhere,
    same_layouts,
)


def settle(layouts: LayoutAssignment) -> None:
    module = layouts.module
    constraints = [layouts.constraint_of(c) for c in module.non_fusion_computations()]
    entry = layouts.constraint_of(module.entry)
    entry.parameters = [p.shape for p in module.entry.parameters]
    entry.result = module.entry.root.shape
    if (given := module.attributes.get("entry_computation_layout")) is not None:
        entry.parameters, entry.result = list(given[0]), given[1]
    entry.priority, entry.is_set = GIVEN_PRIORITY, True
    parts = [constraints] if layouts.at_once else [[c] for c in constraints]
    links = Links(layouts, [c.computation for c in constraints]) if layouts.at_once else None
    rounds = 1 if layouts.at_once else ROUNDS
    while layouts.priority < rounds:
        count = len(layouts.mismatched)
        layouts.of_buffer.clear()
        layouts.unconstrained.clear()
        for constraint in constraints:
            constraint.operands.clear()
        for part in parts:
            _run(layouts, part, links)
        layouts.priority += 1
        rounds += layouts.at_once and len(layouts.mismatched) > count


def _run(layouts: LayoutAssignment, part: list[ComputationConstraint], links: Links | None) -> None:
    """`RunOnComputation`; from 0.12 on for all computations at once."""
    arrays = [b for c in part for b in layouts.buffers.arrays_defined_in(c.computation)]
    layouts.unconstrained = set(arrays)
    for constraint in part:
        _constrain(layouts, constraint)
    layouts.places.clear()
    layouts.propagate()
    if links is not None:
        links.agree()
    for buffer in arrays:
        if buffer in layouts.unconstrained:
            is_constant = buffer.instruction.is_constant
            shape = buffer.shape if is_constant else descending(buffer.shape)
            layouts.set_buffer_layout(buffer, shape.minor_to_major, mandatory=False)
            layouts.propagate()
            if links is not None and buffer.shape.rank > 1:
                links.agree(buffer)
    for constraint in part:
        computation, is_mismatched = constraint.computation, constraint in layouts.mismatched
        if is_mismatched or (layouts.priority == 0 and constraint.priority < ROUNDS):
            if not is_mismatched:
                constraint.result = found_layouts(layouts, computation.root)
            constraint.parameters = [found_layouts(layouts, p) for p in computation.parameters]
            constraint.priority = layouts.priority + ROUNDS
            constraint.is_set = True
    if layouts.at_once:
        for constraint in part:
            _constrain_callers(layouts, constraint.computation)
        layouts.propagate()


def _constrain(layouts: LayoutAssignment, constraint: ComputationConstraint) -> None:
    """`AddMandatoryConstraints`, and those of the backend and of custom calls."""
    computation, mismatched = constraint.computation, layouts.mismatched
    if constraint not in mismatched and constraint.is_set:
        for parameter, shape in zip(computation.parameters, constraint.parameters, strict=True):
            layouts.set_instruction_layout(parameter, shape)
    for instruction in computation:
        if instruction.opcode == "infeed":
            layouts.set_instruction_layout(instruction, row_major_everywhere(instruction.shape))
        elif instruction.opcode == "outfeed":
            layouts.set_operand_layout(instruction, 0, row_major_everywhere(instruction.operand.shape))
    _constrain_callers(layouts, computation)
    if constraint in mismatched:
        constraint.result = mismatched[constraint]
        constraint.priority = layouts.priority + ROUNDS
        layouts.push(constraint)
    elif (computation.is_entry or layouts.priority > 0) and constraint.is_set:
        layouts.push(constraint)
    layouts.add_backend_constraints(constraint)
    _constrain_custom_calls(layouts, constraint)


def _constrain_callers(layouts: LayoutAssignment, computation: Computation) -> None:
    """Operations that call take the layouts of the computations they call, once those are known."""
    for x in computation:
        if x.opcode in _CALLERS and layouts.constraint_of(x.called_computations[-1]).is_set:
            _CALLERS[x.opcode](layouts, x)


def found_layouts(layouts: LayoutAssignment, instruction: Instruction) -> Shape:
    """The shape with the layouts its buffers have got (`InferArrayLayout`)."""
    buffers = layouts.buffers.of(instruction)

    def laid(shape: Shape, index: Dims) -> Shape:
        if shape.is_tuple:
            return Shape.tuple_of([laid(part, (*index, k)) for k, part in enumerate(shape.tuple_shapes)])
        return (
            relaid(shape, layouts.of_buffer[buffers[index]].order) if shape.is_array and shape.rank else shape
        )

    return laid(instruction.shape, ())


def _constrain_while(layouts: LayoutAssignment, loop: Instruction) -> None:
    """`AddWhileConstraints`: body, condition and loop all take the body's result."""
    body, condition = layouts.constraint_of(body_of(loop)), layouts.constraint_of(condition_of(loop))
    for constraint in (body, condition):
        if not same_layouts(constraint.parameters[0], body.result):
            constraint.parameters[0] = body.result
            constraint.priority = layouts.priority + ROUNDS
            constraint.is_set = True
    layouts.set_operand_layout(loop, 0, body.result)
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
    """`AddCallConstraints`."""
    callee = layouts.constraint_of(call.to_apply)
    layouts.set_instruction_layout(call, callee.result)
    for number, shape in enumerate(callee.parameters):
        layouts.set_operand_layout(call, number, shape)


_CALLERS = {"while": _constrain_while, "conditional": _constrain_conditional, "call": _constrain_call}


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
            if (operand := call.operands[number]).opcode == "copy":
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
    for i in list(module.instructions()):  # `PrepareHloForLayoutAssignment`
        if "operand_layout_constraints" in i.attributes:
            for number in dict.fromkeys(number for _, number, _ in output_aliases(i)):
                operand = i.operands[number]
                if operand.opcode != "copy" or operand.user_count > 1:
                    i.replace_operand(number, copied(operand, operand.shape))
    layouts = layouts_of(module)
    settle(layouts)
    apply(layouts, recorder)
    return True


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
        if not same_layouts(constraint.result, computation.root.shape):
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
        branch = layouts.constraint_of(user.called_computations[number - 1])
        parameter = branch.computation.parameter
        parameter.shape = branch.parameters[0] = operand.shape
        replace_users(list(parameter.users), parameter, copied(parameter, shape))
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
            if source.is_get_tuple_element and source.operand.opcode == "tuple":
                source = source.operand.operands[source.tuple_index]
            reason = f"{source.name} is laid out as {has}, and {reader} takes {wanted}"
            recorder.created_instructions(source.name, [copy], LAYOUT_COPY, reason)


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
