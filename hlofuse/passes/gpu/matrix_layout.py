"""Which products go to a matrix library, and which arrays it reads or writes as they lie
(`xla/service/gpu/matmul_utils.cc`)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import COMPLEX_TYPES, FLOATING_TYPES, Shape
from hlofuse.passes.common.dots import DotDimensions

_BATCH = 0
_SMALLEST = 100
"""`xla_gpu_gemm_rewrite_size_threshold`."""


def is_matrix(shape: Shape, batch: Sequence[int], rows: Sequence[int], columns: Sequence[int]) -> bool:
    """True if batch, rows and columns are each contiguous and batch is not minor-most
    (`MatrixLayout::For`)."""
    order = shape.minor_to_major
    groups: list[int] = []
    at = 0
    while at < len(order):
        for number, dims in ((1, rows), (2, columns), (0, batch)):
            if dims and order[at] == dims[-1]:
                if tuple(order[at : at + len(dims)]) != tuple(reversed(dims)):
                    return False
                groups.append(number)
                at += len(dims)
                break
        else:
            return False
    groups += [number for number, dims in ((2, columns), (1, rows), (0, batch)) if not dims]
    return len(groups) == 3 and groups[0] != _BATCH


def is_matrix_of_dot(shape: Shape, dot: Instruction) -> bool:
    """True if the dot can write its result in this layout (`DotCanSupportShapeWithLayout`)."""
    dims = DotDimensions.of(dot)
    batch = len(dims.lhs_batch)
    rows = len(dims.free(0, dot.operands[0].shape.rank))
    every = tuple(range(shape.rank))
    return is_matrix(shape, every[:batch], every[batch : batch + rows], every[batch + rows :])


def can_fold_transpose(dot: Instruction, number: int) -> bool:
    """True if the dot can read what the transpose at `number` reads (`CanFoldTransposeOperandIntoDot`)."""
    transpose = dot.operands[number]
    dims = DotDimensions.of(dot)
    mapping = transpose.dimensions
    free = dims.free(number, transpose.shape.rank)
    moved = [mapping[d] for d in free]
    if sorted(moved) != moved:
        return False
    batch = [mapping[d] for d in dims.batch(number)]
    contracting = [mapping[d] for d in dims.contracting(number)]
    return is_matrix(transpose.operands[0].shape, batch, contracting, moved)


def is_for_cublas(dot: Instruction, of_vectors: bool = True) -> bool:
    """`IsCublasSupportedMatMul`; `of_vectors`: also where only one operand is a matrix."""
    dims = DotDimensions.of(dot)
    matrices = 0
    for number, operand in enumerate(dot.operands):
        sizes = operand.shape.dimensions
        if len(dims.contracting(number)) != 1 or len(sizes) - 1 in dims.batch(number):
            return False
        free = dims.free(number, len(sizes))
        if len(free) > 1:
            return False
        matrices += any(sizes[d] != 1 for d in free)
    of = dot.shape.element_type
    if matrices == 0 or (matrices == 1 and (not of_vectors or of == "c128")):
        return False
    if of == "s32":
        return all(o.shape.element_type == "s8" for o in dot.operands)
    return of in FLOATING_TYPES or of in COMPLEX_TYPES


def is_tiny(dot: Instruction, threshold: int = _SMALLEST) -> bool:
    """`IsMatrixMultiplicationTooSmallForRewriting`."""
    dims = DotDimensions.of(dot)
    free = 0
    for number, operand in enumerate(dot.operands):
        shape = operand.shape
        free += math.prod(shape.dimensions[d] for d in dims.free(number, shape.rank))
    sizes = dot.operands[0].shape.dimensions
    return free * math.prod(sizes[d] for d in dims.lhs_contracting) < threshold
