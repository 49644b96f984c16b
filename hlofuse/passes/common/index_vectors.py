"""Shared parts of gathers and scatters: index vectors and slices at them (`hlo_creation_utils.cc`)."""

from collections.abc import Callable, Sequence

from hlofuse.ir import Computation, Instruction, Instructions, Ints, Shape
from hlofuse.passes.common import make
from .make import elements
from .shapes import array, is_identity, is_sorted, numbers_of, permute


def flat_indices(indices: Instruction, vector: int) -> Instruction:
    """Index vectors one below the other (`TransformStartIndices`)."""
    rank = indices.rank
    if vector == rank:
        indices = reshaped(indices, [*indices.sizes, 1])
        rank += 1
    else:
        indices = moved(indices, [*(d for d in range(rank) if d != vector), vector])
    if rank > 2:
        size = indices.sizes[-1]
        return reshaped(indices, [indices.element_count // size if size else 0, size])
    return reshaped(indices, [1, *indices.sizes]) if rank == 1 else indices


def with_vectors_last(indices: Instruction, vector: int) -> Instruction:
    """The dimension of numbers that make a vector comes last (`TransposeIndexVectorDimToLast`)."""
    rank = indices.rank
    if vector >= rank - 1:
        return indices
    return make.transpose(indices, indices, [*(d for d in range(rank) if d != vector), vector])


def index_vector(indices: Instruction, place: Instruction) -> Instruction:
    """The one at `place`: of a row of numbers the number, of vectors one below the other the vector."""
    if indices.rank == 1:
        return slice_at(indices, place, [1])
    size = indices.sizes[1]
    return without_dimensions(slice_at(indices, make.padded(place, place, 0, 1), [1, size]), [0])


def in_operand_space(index: Instruction, rank: int, where: Ints) -> Instruction:
    """A start in each of `rank` dimensions, given in `where` (`ExpandIndexVectorIntoOperandSpace`)."""
    zero = make.constant(index, array(index.element_type, [1]), [0])
    parts = []
    for d in range(rank):
        if d in where:
            k = where.index(d)
            parts.append(make.part(index, index, k, k + 1))
        else:
            parts.append(zero)
    return make.concatenate(index, parts, 0)


def slice_at(x: Instruction, start: Instruction, sizes: Ints) -> Instruction:
    return make.dynamic_slice(x, x, scalars(start), sizes)


def scalars(index: Instruction) -> Instructions:
    return [
        make.reshape(index, array(index.element_type), make.part(index, index, k, k + 1))
        for k in range(index.sizes[0])
    ]


def reshaped(x: Instruction, sizes: Ints) -> Instruction:
    return make.reshape(x, array(x.element_type, sizes), x)


def without_dimensions(x: Instruction, dimensions: Ints) -> Instruction:
    return reshaped(x, [n for d, n in enumerate(x.sizes) if d not in dimensions])


def moved(x: Instruction, order: Ints) -> Instruction:
    """`MaybeTranspose`: the result lies in memory in the order of its dimensions."""
    if is_identity(order):
        return x
    return make.transpose(x, x, order, array(x.element_type, permute(x.sizes, order)))


def is_simplified_scatter(scatter: Instruction) -> bool:
    """`IsSimplifiedScatter`."""
    count = scatter.operand_count // 2
    window = numbers_of(scatter, "update_window_dims")
    return (
        int(scatter.attributes["index_vector_dim"]) + 1 == scatter.operands[count].rank
        and scatter.operands[count + 1].rank - len(window) <= 1
        and 0 not in window
        and is_sorted(window)
        and not numbers_of(scatter, "inserted_window_dims")
    )


Body = Callable[[Instruction, Instructions], Instructions]
"""From the iteration number and the state to the next state."""


def counted_loop(
    at: Instruction,
    state: Sequence[Instruction],
    body_of: Body,
    count: int = 1,
    counter: str = "s32",
) -> Instructions:
    """The state after `count` iterations of a loop next to `at` (`MakeCountedLoop`, `while_util.cc`)."""
    init = make.tuple_of(at, [make.scalar(at, counter, 0), *state])
    condition, body = _new(at, "while_cond", init.shape), _new(at, "while_body", init.shape)
    _add_zeros(condition, array("pred"))
    parameter = condition.parameter
    limit = make.scalar(parameter, counter, count)
    condition.root = make.compare(parameter, "LT", make.get_tuple_element(parameter, parameter, 0), limit)
    _add_zeros(body, init.shape)
    parameter = body.parameter
    number, *inside = elements(parameter, range(len(state) + 1))
    following = make.binary(parameter, "add", number, make.scalar(parameter, counter, 1))
    body.root = make.tuple_of(parameter, [following, *body_of(number, inside)])
    called = [("body", body), ("condition", condition)]
    loop = make.add(at, "while", init.shape, [init], called=called, condition="", body="")
    return elements(loop, range(1, len(state) + 1))


def _new(at: Instruction, name: str, shape: Shape) -> Computation:
    computation = Computation(name)
    computation.root = computation.append_parameter("param", shape)
    return at.parent.parent.add_computation(computation)


def _add_zeros(computation: Computation, shape: Shape) -> None:
    """Zeros that stand in for the result until it is known; the next clean-up removes them."""
    parameter = computation.parameter
    zeros = []
    for leaf in shape.leaf_shapes:
        zero = make.scalar(parameter, leaf.element_type, 0)
        zeros.append(make.broadcast(parameter, leaf, zero))
    if shape.is_tuple:
        make.tuple_of(parameter, zeros)
