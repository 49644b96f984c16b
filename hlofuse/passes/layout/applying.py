"""Copies ahead of layout assignment, and those between arrays that were laid out differently."""

from __future__ import annotations

from collections.abc import Callable

from hlofuse.ir.fusing import computation_of
from hlofuse.ir.graph import Computation, Instruction, Module
from hlofuse.ir.removing import set_attribute
from hlofuse.ir.shape import Shape
from hlofuse.passes.common.make import derived
from hlofuse.passes.layout.assignment import LayoutAssignment
from hlofuse.passes.layout.constraints import ComputationConstraint, same_layouts
from hlofuse.passes.layout.requests import output_aliases
from hlofuse.passes.layout.rounds import found_layouts
from hlofuse.rules.rewrites.entries import LAYOUT_COPY
from hlofuse.trace import Recorder


def is_assignable(module: Module, is_left_out: Callable[[Instruction], bool], recorder: Recorder) -> bool:
    """Whether layouts are still open. A bitcast or fusion depends on those its operands have: XLA stops."""
    for i in module.instructions():
        if i.opcode in ("bitcast", "fusion") or is_left_out(i):
            recorder.skipped(i, f"layouts are not assigned to a module with this kind of {i.opcode}")
            return False
    return True


def prepare(module: Module) -> None:
    """Calls that say their layouts and write into an operand get a copy of it
    (`PrepareHloForLayoutAssignment`)."""
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
    """The copies added since `next_id` was `first`."""
    for copy in computation.added_since(first):
        if copy.opcode == "copy":
            source = copy.operands[0]
            has, wanted = source.shape.layout, copy.shape.layout
            if source.opcode == "get-tuple-element" and source.operands[0].opcode == "tuple":
                source = source.operands[0].operands[source.tuple_index]
            reason = f"{source.name} is laid out as {has}, and {reader} takes {wanted}"
            recorder.created_instructions(source.name, [copy], rule=LAYOUT_COPY.code, reason=reason)


def _copy_in_branch(branch: ComputationConstraint, given: Shape, wanted: Shape) -> None:
    computation: Computation = branch.computation
    parameter = computation.parameters[0]
    parameter.shape = given
    users = list(parameter.users)
    copy = copied(parameter, wanted)
    for user in users:
        parameter.replace_use_with(user, copy)
    if computation.root is parameter:
        computation.root = copy
    branch.parameters[0] = given


def copied(instruction: Instruction, shape: Shape) -> Instruction:
    """A copy in another layout; of a tuple, of the elements that differ (`CreateCopyWithNewLayout`)."""
    if not instruction.shape.is_tuple:
        return _copy_attributes(instruction, derived(instruction, "copy", shape, [instruction]))
    parts = []
    for k, (has, wanted) in enumerate(zip(instruction.shape.tuple_shapes, shape.tuple_shapes, strict=True)):
        part = derived(instruction, "get-tuple-element", has, [instruction], index=str(k))
        parts.append(part if same_layouts(has, wanted) else copied(part, wanted))
    return derived(instruction, "tuple", shape, parts)


def _copy_attributes(element: Instruction, copy: Instruction) -> Instruction:
    """JAX gives the elements of what a custom call makes the call's attributes, though the text, which writes
    `call#0`, does not show them."""
    source = element.operands[0] if element.opcode == "get-tuple-element" else element
    if source.opcode == "custom-call":
        for name in ("sharding", "frontend_attributes"):
            text = source.attributes.raw(name)
            if text is not None:
                set_attribute(copy, name, text)
    return copy
