"""The pass: constraints round by round, then layouts and copies (`LayoutAssignment::RunImpl`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hlofuse.ir.computation import Computation
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.ir.shape import Shape
from hlofuse.simplifications import make
from hlofuse.simplifications.layouts.choosing import leaf_orders, row_major, with_leaf
from hlofuse.simplifications.layouts.constraints import GIVEN_PRIORITY, ComputationConstraint
from hlofuse.simplifications.layouts.points_to import PointsTo
from hlofuse.simplifications.layouts.propagation import Propagation, output_aliases

Backend = Callable[[Propagation, Computation], None]
"""What a target asks for (`AddBackendConstraints`)."""
_ROUNDS = 2


def assign_layouts(module: Module, backend: Backend) -> None:
    """Give every array its layout, with copies where two sides do not agree."""
    _copy_aliased(module)
    layouts = Propagation(PointsTo(module))
    computations = module.non_fusion_computations()
    _take_given(layouts, module)
    for _ in range(_ROUNDS):
        layouts.forget()
        for computation in computations:
            _run_on(layouts, computation, backend)
        layouts.priority += 1
    for computation in computations:
        _assign(layouts, computation)


def _copy_aliased(module: Module) -> None:
    """Custom calls that write into an operand do so into a copy (`PrepareHloForLayoutAssignment`)."""
    for computation in module.computations:
        for i in list(computation):
            if i.opcode == "custom-call" and i.attributes.get("operand_layout_constraints") is not None:
                for number in dict.fromkeys(a.operand_number for a in output_aliases(i)):
                    operand = i.operands[number]
                    if operand.opcode != "copy" or len(operand.users) > 1:
                        i.replace_operand(number, _copied(operand.shape, operand))


def _take_given(layouts: Propagation, module: Module) -> None:
    """The layouts of the program's arguments and results."""
    entry = layouts.of(module.entry)
    given: Any = module.attributes.get("entry_computation_layout")
    if given is not None:
        parameters, result = given
    else:
        parameters, result = [p.shape for p in module.entry.parameters], module.entry.root.shape
    entry.reset(list(parameters), result, GIVEN_PRIORITY)


def _run_on(layouts: Propagation, computation: Computation, backend: Backend) -> None:
    """`RunOnComputation`."""
    constraint = layouts.of(computation)
    layouts.unconstrained = dict.fromkeys(layouts.points_to.of_computation(computation))
    for i in list(computation):
        if i.opcode == "parameter":
            shape = constraint.parameters[i.parameter_number]
            if shape is not None:
                layouts.set_instruction(shape, i)
    for i in list(computation):
        if i.opcode == "while":
            _of_while(layouts, i)
        elif i.opcode == "conditional":
            _of_conditional(layouts, i)
        elif i.opcode == "call":
            _of_call(layouts, i)
    if constraint.result is not None and (computation.is_entry or layouts.priority > 0):
        layouts.push(constraint)
    backend(layouts, computation)
    _of_custom_calls(layouts, computation)
    layouts.propagate()
    while layouts.unconstrained:
        buffer = next(iter(layouts.unconstrained))
        layouts.set_buffer(row_major(buffer.shape.rank), buffer, mandatory=False)
        layouts.propagate()
    if layouts.priority == 0 and constraint.priority < _ROUNDS:
        parameters = [_inferred(layouts, p) for p in computation.parameters]
        constraint.reset(list(parameters), _inferred(layouts, computation.root), _ROUNDS)


def _inferred(layouts: Propagation, x: Instruction) -> Shape:
    """The shape of `x` with the layouts of the buffers it points to."""
    shape = x.shape
    for index, buffer in layouts.points_to.of(x).items():
        known = layouts.buffers.get(buffer)
        if known is not None and buffer.shape.is_array:
            shape = with_leaf(shape, index, known.order)
    return shape


# ---------------------------------------------------------------- computations that are called


def _of_while(layouts: Propagation, loop: Instruction) -> None:
    """`AddWhileConstraints`: all of a loop carries its values alike."""
    called = dict(loop.called)
    body, condition = layouts.of(called["body"]), layouts.of(called["condition"])
    if body.result is None:
        return
    for constraint in (body, condition):
        if not _same(constraint.parameters[0], body.result):
            constraint.reset([body.result], constraint.result, layouts.priority + _ROUNDS)
    layouts.set_operand(body.result, loop, 0)
    layouts.set_instruction(body.result, loop)


def _same(a: Shape | None, b: Shape) -> bool:
    return a is not None and leaf_orders(a) == leaf_orders(b)


def _of_conditional(layouts: Propagation, x: Instruction) -> None:
    """`AddConditionalConstraints`, where the branches agree on the layout of their results."""
    branches = [layouts.of(c) for c in x.called_computations]
    sizes = [
        len(b.computation) if x.operands[k + 1].shape != Shape("tuple") else 0 for k, b in enumerate(branches)
    ]
    largest = sizes.index(max(sizes))
    best = branches[largest]
    if best.result is None:
        return
    for k, branch in enumerate(branches):
        if branch.result is None or not _same(branch.result, best.result):
            raise NotImplementedError("branches whose results lie differently")
        if branch.parameters[0] is not None:
            layouts.set_operand(branch.parameters[0], x, k + 1)
    layouts.set_instruction(best.result, x)


def _of_call(layouts: Propagation, call: Instruction) -> None:
    """`AddCallConstraints`."""
    callee = layouts.of(call.called_computations[0])
    if callee.result is None:
        return
    layouts.set_instruction(callee.result, call)
    for number, shape in enumerate(callee.parameters):
        if shape is not None:
            layouts.set_operand(shape, call, number)


def _of_custom_calls(layouts: Propagation, computation: Computation) -> None:
    """`AddCustomCallConstraints`."""
    for i in computation.post_order():
        asked: Sequence[Shape] | None = i.attributes.get("operand_layout_constraints")
        if i.opcode != "custom-call" or asked is None:
            continue
        layouts.set_instruction(i.shape, i)
        for number, shape in enumerate(asked):
            if not layouts.points_to.is_forwarded(i, number):
                layouts.set_operand(shape, i, number)
                if i.operands[number].opcode == "copy":
                    layouts.set_operand(shape, i.operands[number], 0)


# ---------------------------------------------------------------- writing it down


def _assign(layouts: Propagation, computation: Computation) -> None:
    """`AssignLayouts`."""
    constraint = layouts.of(computation)
    for i in computation.post_order():
        i.shape = _inferred(layouts, i)
        for number in range(len(i.operands)):
            asked = constraint.operands.get((i, number))
            if asked is not None and not _same(i.operands[number].shape, asked.shape):
                i.replace_operand(number, _copy(asked.shape, i.operands[number]))
    _assign_root(constraint, computation)


def _assign_root(constraint: ComputationConstraint, computation: Computation) -> None:
    result = constraint.result
    if result is not None and not _same(computation.root.shape, result):
        computation.root = _copy(result, computation.root)


def _copy(shape: Shape, x: Instruction) -> Instruction:
    """`x` laid out as `shape` says, elements of tuples one by one (`CreateCopyWithNewLayout`)."""
    if not x.shape.is_tuple:
        return _copied(shape, x)
    elements = []
    for k, wanted in enumerate(shape.tuple_shapes):
        element = make.get_tuple_element(x, x, k)
        elements.append(element if _same(element.shape, wanted) else _copy(wanted, element))
    return make.add(x, "tuple", shape, elements, kept=_kept(x))


def _copied(shape: Shape, x: Instruction) -> Instruction:
    return make.add(x, "copy", shape, [x], kept=_kept(x))


def _kept(x: Instruction) -> dict[str, str]:
    """What a copy says like its original (`SetupCopiedInstruction`). JAX gives the elements of what a custom
    call makes the call's attributes, though the text, which writes `call#0`, does not show them."""
    if x.opcode == "get-tuple-element" and x.operands[0].opcode == "custom-call":
        x = x.operands[0]
    return {n: v for n in ("sharding", "frontend_attributes") if (v := x.attributes.raw(n)) is not None}
