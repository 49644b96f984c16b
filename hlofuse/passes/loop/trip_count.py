"""The trip count of a loop, and the pass that annotates it."""

import json
from collections.abc import Callable
from typing import Any

from hlofuse.analysis.kernels import MIRRORED
from hlofuse.ir import Instruction, Module, Record, Shape, reach, set_attribute
from hlofuse.passes.algebraic.context import scalar_constant
from hlofuse.passes.base import Pass, any_change, substituted
from hlofuse.passes.common import make
from hlofuse.passes.common.calls import clone_computation, copied, replace_parameter
from hlofuse.passes.common.literals import integer_of, scalar_of
from hlofuse.passes.common.shapes import array
from hlofuse.trace import Recorder
from .parts import (
    body_of,
    carried_unchanged,
    condition_of,
    is_element,
    loops_of,
    new_loop,
    only_elements_are_read,
)


def merge_induction_variables(loop: Instruction, element_type: str) -> Instruction | None:
    """The new loop where two values of the type or more only count (`TryMergeInductionVariables`)."""
    init, body = loop.operand, body_of(loop)
    if init.opcode != "tuple" or body.root.opcode != "tuple":
        return None
    counter: int | None = None
    steps = {}
    for k, o in enumerate(body.root.operands):
        step = _increment(o, body.parameter, k, lambda x: x)
        if step is None or step.element_type != element_type or not scalar_constant(step):
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
    place = counter

    def old_tuple(x: Instruction) -> Instruction:
        """The old loop's tuple by that of the new one."""
        parts = []
        for k, shape in enumerate(loop.shape.tuple_shapes):
            value = make.get_tuple_element(x, x, k)
            if k in steps:
                count = make.get_tuple_element(x, x, place)
                value = _binary("add", shape, value, _binary("multiply", shape, count, copied(steps[k], x)))
            parts.append(value)
        return make.tuple_of(x, parts)

    # XLA clones the body once more for its new root, which shows in names.
    body = clone_computation(body)
    condition = clone_computation(condition_of(loop))
    for part in (body, condition):
        replace_parameter(part, Shape.tuple_of(shapes), old_tuple)
    new_body = clone_computation(body)
    body.parent.remove_computation(body)
    parameter = new_body.parameter
    root = new_body.root
    carried = [
        make.get_tuple_element(root, parameter if k in steps else root, k) for k in range(loop.tuple_size)
    ]
    new_init = init
    if added:
        count = make.get_tuple_element(root, parameter, counter)
        carried.append(make.binary(root, "add", count, make.scalar(root, element_type, 1)))
        values = make.elements(init, range(loop.tuple_size))
        new_init = make.tuple_of(loop, [*values, make.scalar(loop, element_type, 0)])
    new_body.root = make.tuple_of(root, carried)
    new = new_loop(loop, new_init, condition, new_body)
    substituted(loop, old_tuple(new))
    return new


def _binary(opcode: str, shape: Shape, a: Instruction, b: Instruction) -> Instruction:
    operands = [x if x.sizes == shape.dimensions else make.reshape(x, shape, x) for x in (a, b)]
    return make.binary(a, opcode, operands[0], operands[1], shape)


class Counter(Record):
    """A number from `init` by `step` while below `bound` (`xla/hlo/analysis/while_loop_analysis.cc`)."""

    index: int
    init: int
    step: int
    bound: int  # The first number it must not have

    @property
    def trips(self) -> int:
        return max(0, -(-(self.bound - self.init) // self.step))


def counter_of(loop: Instruction) -> Counter | None:
    """The counter of a loop whose bounds are constants; None for any other loop."""
    index = induction_variable(loop)
    init_tuple = loop.operand
    if index is None or init_tuple.opcode != "tuple":
        return None
    init = integer_of(init_tuple.operands[index])
    body, bound = body_of(loop), _bound(loop, index)
    constant = _increment(_trace(body.root.operands[index]), body.parameter, index)
    step = integer_of(constant) if constant is not None else None
    if init is None or step is None or bound is None or step <= 0:
        return None
    return Counter(index, init, step, bound)


def trip_count(loop: Instruction) -> int | None:
    """`ComputeWhileLoopTripCount` of loops that count."""
    counter = counter_of(loop)
    return counter.trips if counter is not None else None


def counts_to_an_argument(loop: Instruction) -> bool:
    """True if a loop counts up by a constant, to a number that follows from scalar arguments alone."""
    parameter, body, init = condition_of(loop).parameter, body_of(loop), loop.operand
    read = _elements_read(condition_of(loop).root, parameter)
    if not read or not loop.parent.is_entry or {init.opcode, body.root.opcode} != {"tuple"}:
        return False
    given = [i for i in reach([init.operands[k] for k in read], lambda i: i.operands) if not i.operands]
    counts = [
        _increment(_trace(body.root.operands[k]), body.parameter, k)
        for k in read - {x.tuple_index for x in carried_unchanged(body)}
    ]
    is_given = any(i.is_parameter for i in given) and all(i.shape.is_effective_scalar for i in given)
    return is_given and len(counts) == 1 and counts[0] is not None


def awaited_elements(loop: Instruction) -> int:
    """Elements of which any keeps a loop going, as in `jax.vmap` of a while_loop; 0 for other loops."""
    condition, body = condition_of(loop), body_of(loop)
    if not condition.root.is_reduce or condition.root.to_apply.root.opcode != "or":
        return 0
    if body.root.opcode != "tuple" or not only_elements_are_read(loop):
        return 0
    given = body.parameter
    chosen = [x for x in given.users for u in x.users if u.opcode == "select" and u.operands[2] is x]
    found = [x for x in chosen if body.root.operands[x.tuple_index] in x.users]
    tested = condition.root.through("reduce", "reduce-window", "bitcast")
    return tested.element_count if found else 0


def induction_variable(loop: Instruction) -> int | None:
    """The one element the condition depends on, if it follows from itself (`GetLoopInductionVarTupleIdx`)."""
    condition, body = condition_of(loop), body_of(loop)
    read = _elements_read(condition.root, condition.parameter)
    if read is None or len(read) != 1 or body.root.opcode != "tuple":
        return None
    (index,) = read
    if _elements_read(_trace(body.root.operands[index]), body.parameter) != {index}:
        return None
    return index


def _elements_read(x: Instruction, parameter: Instruction) -> set[int] | None:
    """Elements of the parameter that `x` depends on; None where it reads it otherwise."""
    found = set()
    for i in reach([x], lambda i: () if parameter in i.operands else i.operands):
        if i.is_get_tuple_element and i.operand is parameter:
            found.add(i.tuple_index)
        elif i is parameter or parameter in i.operands or i.called:
            return None
    return found


def _trace(x: Instruction) -> Instruction:
    """The source of `x` through copies and elements of known tuples (`TraceThroughCopyAndGteTupleChain`)."""
    while True:
        if x.opcode == "copy":
            x = x.operand
        elif x.is_get_tuple_element and x.operand.opcode == "tuple":
            x = x.operand.operands[x.tuple_index]
        else:
            return x


def _increment(
    x: Instruction,
    parameter: Instruction,
    index: int,
    source: Callable[[Instruction], Instruction] = _trace,
) -> Instruction | None:
    """The constant that `x` adds to an element of the parameter; None for anything else."""
    for variable, constant in (x.operands, x.operands[::-1]) if x.opcode == "add" else ():
        if constant.is_constant and is_element(source(variable), parameter, index):
            return constant
    return None


def _bound(loop: Instruction, index: int) -> int | None:
    condition = condition_of(loop)
    root, parameter = condition.root, condition.parameter
    if root.opcode != "compare":
        return None
    a, b = root.operands
    direction = str(root.raw("direction"))
    if is_element(b, parameter, index):
        a, b, direction = b, a, MIRRORED.get(direction, "")
    if not is_element(a, parameter, index) or not b.is_constant:
        return None
    bound = integer_of(b)
    shift = {"LT": lambda n: n, "LE": lambda n: n + 1}
    return shift[direction](bound) if bound is not None and direction in shift else None


class WhileLoopTripCountAnnotator(Pass):
    """`while-loop-trip-count-annotator`: loops that say how often they run
    (`xla/hlo/transforms/while_loop_trip_count_annotator.cc`). A loop from one constant to another whose
    iterations XLA would have to count by running it is left alone."""

    name = "while-loop-trip-count-annotator"

    def run(self, module: Module, recorder: Recorder) -> bool:
        return any_change(map(_annotate, loops_of(module.computations)))


def _annotate(loop: Instruction) -> bool:
    index, init = induction_variable(loop), loop.operand
    if index is None or init.opcode != "tuple":
        return False
    counter = counter_of(loop)
    config = dict[str, Any]()
    if counter is not None and counter.init >= 0 and counter.trips > 0:
        config["known_trip_count"] = {"n": str(counter.trips)}
        config["known_init_step"] = {"init": str(counter.init), "step": str(counter.step)}
        last = counter.init + counter.step * counter.trips
        for user in list(loop.users):
            if user.is_get_tuple_element and user.tuple_index == counter.index:
                user.replace_all_uses_with(make.scalar(user, user.element_type, last))
    elif init.operands[index].is_constant:
        return False
    config["known_induction_variable"] = {"tuple_index": str(index)}
    config["dynamic_variables"] = []
    set_attribute(loop, "backend_config", json.dumps(config, separators=(",", ":")))
    return True
