"""Loops of a known number of turns (`MakeCountedLoop`, `xla/service/while_util.cc`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hlofuse.ir.fusing import computation_of, module_of
from hlofuse.ir.graph import Computation, Instruction
from hlofuse.ir.shape import Shape
from hlofuse.passes.common import make
from hlofuse.passes.common.make import elements
from hlofuse.passes.common.shapes import array

Body = Callable[[Instruction, list[Instruction]], list[Instruction]]
"""From the number of the turn and the state to the next state."""


def counted_loop(
    at: Instruction, iterations: int, state: Sequence[Instruction], body_of: Body
) -> list[Instruction]:
    """The state after so many turns, as elements of a new loop beside `at`."""
    zero = make.scalar(at, "s32", 0)
    init = make.tuple_of(at, [zero, *state])
    condition, body = _new(at, "while_cond", init.shape), _new(at, "while_body", init.shape)
    _add_zeros(condition, array("pred"))
    parameter = condition.parameters[0]
    limit = make.scalar(parameter, "s32", iterations)
    condition.root = make.compare(parameter, "LT", make.get_tuple_element(parameter, parameter, 0), limit)
    _add_zeros(body, init.shape)
    parameter = body.parameters[0]
    number, *inside = elements(parameter, range(len(state) + 1))
    following = make.binary(parameter, "add", number, make.scalar(parameter, "s32", 1))
    body.root = make.tuple_of(parameter, [following, *body_of(number, inside)])
    called = [("body", body), ("condition", condition)]
    loop = make.add(at, "while", init.shape, [init], called=called, condition="", body="")
    return elements(loop, range(1, len(state) + 1))


def _new(at: Instruction, name: str, shape: Shape) -> Computation:
    computation = Computation(name)
    computation.append_parsed(Instruction("param", shape, "parameter", payload="0"))
    computation.root = computation.parameters[0]
    return module_of(computation_of(at)).add_computation(computation)


def _add_zeros(computation: Computation, shape: Shape) -> None:
    """Zeros that stand in for the result until it is known; the next clean-up removes them."""
    parameter = computation.parameters[0]
    zeros = []
    for _, leaf in shape.leaves():
        zero = make.scalar(parameter, leaf.element_type, 0)
        zeros.append(make.broadcast(parameter, leaf, zero, ()))
    if shape.is_tuple:
        make.tuple_of(parameter, zeros)
