"""Several counters of a loop become one (`TryMergeInductionVariables`)."""

from __future__ import annotations

from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import Shape
from hlofuse.passes.algebraic.facts import scalar_constant
from hlofuse.passes.common import make
from hlofuse.passes.common.cloning import clone_computation, drop, replace_parameter
from hlofuse.passes.common.literals import scalar_of
from hlofuse.passes.common.make import elements
from hlofuse.passes.common.shapes import array
from hlofuse.passes.loop.parts import body_of, condition_of, new_loop, replace_loop


def merge_induction_variables(loop: Instruction, element_type: str) -> Instruction | None:
    """The new loop, where at least two values of the type only count; None otherwise."""
    init, body = loop.operands[0], body_of(loop)
    if init.opcode != "tuple" or body.root.opcode != "tuple":
        return None
    counter: int | None = None
    steps: dict[int, Instruction] = {}
    for k, o in enumerate(body.root.operands):
        step = _step(o, k, element_type)
        if step is None:
            continue
        from_zero = scalar_constant(init.operands[k]) and scalar_of(init.operands[k]) == 0
        if counter is None and scalar_of(step) == 1 and from_zero:
            counter = k
        else:
            steps[k] = step
    if len(steps) + (counter is not None) < 2:
        return None
    shapes = list(loop.shape.tuple_shapes)
    added = counter is None
    if counter is None:
        counter = len(shapes)
        shapes.append(array(element_type))
    form = _Form(loop, steps, counter)
    parts = [clone_computation(c) for c in (condition_of(loop), body)]
    parameter = None
    for part in parts:
        old, parameter = replace_parameter(part, Shape.tuple_of(shapes))
        old.replace_all_uses_with(form.old_tuple(parameter))
        drop(old)
    assert parameter is not None
    new_body = parts[1]
    root = new_body.root
    carried = [
        make.get_tuple_element(root, parameter if k in steps else root, k)
        for k in range(len(loop.shape.tuple_shapes))
    ]
    new_init = init
    if added:
        count = make.get_tuple_element(root, parameter, counter)
        carried.append(make.binary(root, "add", count, make.scalar(root, element_type, 1)))
        values = elements(init, range(len(loop.shape.tuple_shapes)))
        new_init = make.tuple_of(loop, [*values, make.scalar(loop, element_type, 0)])
    new_body.root = make.tuple_of(root, carried)
    new = new_loop(loop, new_init, parts[0], new_body)
    replace_loop(loop, form.old_tuple(new))
    return new


def _step(x: Instruction, index: int, element_type: str) -> Instruction | None:
    """The constant that is added to the element each time."""
    if x.opcode != "add" or x.shape.element_type != element_type:
        return None
    a, b = x.operands
    for variable, constant in ((a, b), (b, a)):
        source = variable.operands[0] if variable.opcode == "get-tuple-element" else None
        if source is None or source.opcode != "parameter" or variable.tuple_index != index:
            continue
        if scalar_constant(constant):
            return constant
    return None


class _Form:
    """How the tuple of the old loop follows from that of the new one."""

    def __init__(self, loop: Instruction, steps: dict[int, Instruction], counter: int) -> None:
        self._shapes = loop.shape.tuple_shapes
        self._steps = steps
        self._counter = counter

    def old_tuple(self, x: Instruction) -> Instruction:
        parts = []
        for k, shape in enumerate(self._shapes):
            value = make.get_tuple_element(x, x, k)
            step = self._steps.get(k)
            if step is not None:
                count = make.get_tuple_element(x, x, self._counter)
                constant = make.add(x, "constant", step.shape, payload=step.payload)
                value = _binary("add", shape, value, _binary("multiply", shape, count, constant))
            parts.append(value)
        return make.tuple_of(x, parts)


def _binary(opcode: str, shape: Shape, a: Instruction, b: Instruction) -> Instruction:
    operands = [x if x.shape.dimensions == shape.dimensions else make.reshape(x, shape, x) for x in (a, b)]
    return make.binary(a, opcode, operands[0], operands[1], shape)
