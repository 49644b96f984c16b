"""Scatters of a single update become a loop of one iteration (`xla/service/scatter_expander.cc`)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from hlofuse.analysis.side_effects import has_side_effect
from hlofuse.ir.computation import Computation
from hlofuse.ir.fusing import computation_of, module_of
from hlofuse.ir.instruction import Instruction
from hlofuse.ir.module import Module
from hlofuse.ir.replacing import replace_instruction
from hlofuse.ir.shape import Shape
from hlofuse.ir.values.window import PaddingConfig, PaddingDimension
from hlofuse.simplifications.common import make
from hlofuse.simplifications.common.index_vectors import reshaped, without_dimensions
from hlofuse.simplifications.common.make import elements
from hlofuse.simplifications.common.reading import numbers_of
from hlofuse.simplifications.common.shapes import array


@dataclass(frozen=True)
class ScatterExpander:
    """`scatter_expander` of simple scatters (`kEliminateSimpleScatters`) into one array, with no batch."""

    name: ClassVar[str] = "scatter_expander"

    def run(self, module: Module) -> bool:
        changed = False
        for computation in module.non_fusion_computations():
            for x in computation.post_order():
                if x.opcode == "scatter" and _is_simple(x):
                    changed |= replace_instruction(
                        x, _expanded(x), has_side_effect, relay_control_dependencies=True
                    )
        return changed


def _is_simple(scatter: Instruction) -> bool:
    if len(scatter.operands) != 3 or numbers_of(scatter, "input_batching_dims"):
        return False
    indices = scatter.operands[1].shape.dimensions
    vector = int(scatter.attributes["index_vector_dim"])
    return math.prod(n for d, n in enumerate(indices) if d != vector) == 1 and bool(scatter.shape.dimensions)


def _expanded(scatter: Instruction) -> Instruction:
    base, indices, updates = scatter.operands
    if updates.shape.element_count == 0:
        return base
    state = [base, _indices(scatter, indices), _updates(scatter, updates)]
    zero = make.scalar(scatter, "s32", 0)
    init = make.tuple_of(scatter, [zero, *state])
    condition, body = _new(scatter, "while_cond", init.shape), _new(scatter, "while_body", init.shape)
    _leave_behind(condition, array("pred"))
    parameter = condition.parameters[0]
    one = make.scalar(parameter, "s32", 1)
    condition.root = make.compare(parameter, "LT", make.get_tuple_element(parameter, parameter, 0), one)
    _leave_behind(body, init.shape)
    _body(scatter, body)
    called = [("body", body), ("condition", condition)]
    loop = make.add(scatter, "while", init.shape, [init], called=called, condition="", body="")
    return elements(loop, [1, 2, 3])[0]


def _new(scatter: Instruction, name: str, shape: Shape) -> Computation:
    computation = Computation(name)
    computation.append_parsed(Instruction("param", shape, "parameter", payload="0"))
    computation.root = computation.parameters[0]
    return module_of(computation_of(scatter)).add_computation(computation)


def _leave_behind(computation: Computation, shape: Shape) -> None:
    """Zeros that stand in for the result until it is known; the next clean-up removes them."""
    parameter = computation.parameters[0]
    zeros = []
    for _, leaf in shape.leaves():
        zero = make.scalar(parameter, leaf.element_type, 0)
        zeros.append(make.broadcast(parameter, leaf, zero, ()))
    if shape.is_tuple:
        make.tuple_of(parameter, zeros)


def _indices(scatter: Instruction, indices: Instruction) -> Instruction:
    """One index vector below the other; scalars where it has one number (`CanonicalizeScatterIndices`)."""
    vector, rank = int(scatter.attributes["index_vector_dim"]), indices.shape.rank
    last = indices
    if vector < rank - 1:
        last = make.transpose(indices, indices, [*(d for d in range(rank) if d != vector), vector])
    inner = 0 if vector == rank else 1
    if vector == rank - 1 and indices.shape.dimensions[-1] == 1:
        inner = 0
        reshaped(indices, indices.shape.dimensions[:-1])  # XLA makes this, too, and does not use it
    sizes = last.shape.dimensions
    if rank == inner:
        return reshaped(last, [1, *sizes])
    return reshaped(last, [math.prod(sizes[: rank - inner]), *sizes[rank - inner :]])


def _updates(scatter: Instruction, updates: Instruction) -> Instruction:
    """One update below the other (`PermuteScatterAndWindowDims`, `AdjustScatterDims`)."""
    window = numbers_of(scatter, "update_window_dims")
    outer = [d for d in range(updates.shape.rank) if d not in window]
    moved = make.transpose(updates, updates, [*outer, *window])
    indices = scatter.operands[1].shape.rank
    count = indices - (int(scatter.attributes["index_vector_dim"]) < indices)
    sizes = moved.shape.dimensions
    return reshaped(moved, [1, *sizes] if count == 0 else [math.prod(sizes[:count]), *sizes[count:]])


def _body(scatter: Instruction, body: Computation) -> None:
    """`ScatterLoopBody`."""
    parameter = body.parameters[0]
    number, base, indices, updates = elements(parameter, range(4))
    following = make.binary(parameter, "add", number, make.scalar(parameter, "s32", 1))
    place = make.broadcast(parameter, array("s32", [1]), number, ())
    if indices.shape.rank == 1:
        index = _dynamic_slice(indices, place, [1])
    else:
        size = indices.shape.dimensions[1]
        index = without_dimensions(_dynamic_slice(indices, _padded(place, 1), [1, size]), [0])
    start = _start(scatter, base, index)
    update = _dynamic_slice(
        updates, _padded(place, updates.shape.rank - 1), [1, *updates.shape.dimensions[1:]]
    )
    part = without_dimensions(update, [0])
    sizes = list(part.shape.dimensions)
    for d in sorted(numbers_of(scatter, "inserted_window_dims")):
        sizes.insert(d, 1)
    part = reshaped(part, sizes)
    old = _dynamic_slice(base, start, sizes)
    valid = _validity(base, start, sizes)
    function = scatter.called_computations[0]
    called = [("to_apply", function)]
    numbers = make.numbers(range(len(sizes)))
    new = make.add(part, "map", part.shape, [old, part], called=called, dimensions=numbers)
    chosen = make.select(part, valid, new, old)
    result = make.dynamic_update_slice(part, base, chosen, _scalars(start))
    body.root = make.tuple_of(parameter, [following, result, indices, updates])


def _scalars(index: Instruction) -> list[Instruction]:
    return [
        make.reshape(index, array(index.shape.element_type), make.slice_of(index, index, [k], [k + 1]))
        for k in range(index.shape.dimensions[0])
    ]


def _dynamic_slice(x: Instruction, start: Instruction, sizes: list[int]) -> Instruction:
    return make.dynamic_slice(x, x, _scalars(start), sizes)


def _padded(x: Instruction, zeros: int) -> Instruction:
    """`PadVectorWithZeros`."""
    shape = array(x.shape.element_type, [x.shape.dimensions[0] + zeros])
    zero = make.scalar(x, x.shape.element_type, 0)
    return make.pad(x, shape, x, zero, PaddingConfig((PaddingDimension(0, zeros),)))


def _start(scatter: Instruction, base: Instruction, index: Instruction) -> Instruction:
    """Where in the array the update goes (`ExpandIndexVectorIntoOperandSpace`)."""
    zero = make.constant(index, array(index.shape.element_type, [1]), [0])
    where = numbers_of(scatter, "scatter_dims_to_operand_dims")
    parts = []
    for d in range(base.shape.rank):
        if d in where:
            k = where.index(d)
            parts.append(make.slice_of(index, index, [k], [k + 1]))
        else:
            parts.append(zero)
    return make.concatenate(index, parts, 0)


def _validity(base: Instruction, start: Instruction, sizes: list[int]) -> Instruction:
    """`CheckIndexValidity`: an update that does not fit is not made."""
    zero = make.scalar(start, start.shape.element_type, 0)
    zeros = make.broadcast(start, start.shape, zero, ())
    above = make.compare(start, "LE", zeros, start)
    room = [n - size for n, size in zip(base.shape.dimensions, sizes, strict=True)]
    most = make.constant(start, start.shape, room)
    inside = make.binary(start, "and", above, make.compare(start, "GE", most, start))
    true = make.scalar(start, "pred", True)
    all_of = make.reduce(start, inside, true, [0], _conjunction(start))
    return make.broadcast(start, array("pred", sizes), all_of, ())


def _conjunction(at: Instruction) -> Computation:
    body = Computation("and.reduce_sub_computation")
    sides = [Instruction(n, array("pred"), "parameter", payload=str(k)) for k, n in enumerate(("lhs", "rhs"))]
    for side in sides:
        body.append_parsed(side)
    body.root = Instruction("and", array("pred"), "and", sides)
    body.append_parsed(body.root)
    return module_of(computation_of(at)).add_computation(body)
