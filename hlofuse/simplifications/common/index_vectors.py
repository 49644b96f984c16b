"""Index vectors of gathers and scatters, and slices at them (`xla/service/hlo_creation_utils.cc`)."""

from __future__ import annotations

from collections.abc import Sequence

from hlofuse.ir.instruction import Instruction
from hlofuse.ir.values.window import PaddingConfig, PaddingDimension
from hlofuse.simplifications.common import make
from hlofuse.simplifications.common.shapes import array


def index_vector(indices: Instruction, place: Instruction) -> Instruction:
    """The one at `place`: of a row of numbers the number, of vectors one below the other the vector."""
    if indices.shape.rank == 1:
        return slice_at(indices, place, [1])
    size = indices.shape.dimensions[1]
    row = slice_at(indices, padded(place, 1), [1, size])
    return make.reshape(row, array(row.shape.element_type, [size]), row)


def in_operand_space(index: Instruction, rank: int, where: Sequence[int]) -> Instruction:
    """A start in each of `rank` dimensions, of which the index says those in `where`
    (`ExpandIndexVectorIntoOperandSpace`)."""
    zero = make.constant(index, array(index.shape.element_type, [1]), [0])
    parts = []
    for d in range(rank):
        if d in where:
            k = where.index(d)
            parts.append(make.slice_of(index, index, [k], [k + 1]))
        else:
            parts.append(zero)
    return make.concatenate(index, parts, 0)


def slice_at(x: Instruction, start: Instruction, sizes: Sequence[int]) -> Instruction:
    return make.dynamic_slice(x, x, scalars(start), sizes)


def scalars(index: Instruction) -> list[Instruction]:
    return [
        make.reshape(index, array(index.shape.element_type), make.slice_of(index, index, [k], [k + 1]))
        for k in range(index.shape.dimensions[0])
    ]


def padded(x: Instruction, zeros: int) -> Instruction:
    """`PadVectorWithZeros`."""
    shape = array(x.shape.element_type, [x.shape.dimensions[0] + zeros])
    zero = make.scalar(x, x.shape.element_type, 0)
    return make.pad(x, shape, x, zero, PaddingConfig((PaddingDimension(0, zeros),)))
