"""For each operand of an operation, which of its elements a result element reads
(`ComputeOutputToInputIndexing` in `xla/hlo/analysis/indexing_analysis.cc`)."""

from __future__ import annotations

import re
from functools import cache
from typing import cast

from hlofuse.analysis.elementwise import ELEMENTWISE_OPCODES
from hlofuse.cost.tiling.dot_dimensions import DotDimensions, dot_dimensions
from hlofuse.cost.tiling.expressions import Expr, add, constant, mul, negate, subtract, variable
from hlofuse.cost.tiling.indexing_map import IndexingMap, from_sizes, identity, make_map
from hlofuse.cost.tiling.reshape_indexing import bitcast_map, reshape_map
from hlofuse.ir.graph import Instruction
from hlofuse.ir.shape import Shape

_LEAVES = frozenset({"parameter", "constant", "iota"})
_SLICE = re.compile(r"\[(\d+):(\d+)(?::(\d+))?\]")


def indexing_key(instruction: Instruction) -> tuple[object, ...]:
    """What the maps of an operation depend on besides the shapes of it and its operands."""
    opcode = instruction.opcode
    if opcode in ("broadcast", "reduce", "transpose", "concatenate", "reverse"):
        return instruction.dimensions
    if opcode == "slice":
        return (instruction.attributes.raw("slice"),)
    if opcode == "dot":
        return dot_dimensions(instruction)
    return ()


def operand_maps(instruction: Instruction) -> tuple[IndexingMap | None, ...]:
    """One map for each operand, None where XLA has no map; empty for what reads no operand."""
    shape = instruction.shape
    operands = tuple(o.shape for o in instruction.operands)
    return _maps(instruction.opcode, shape, operands, indexing_key(instruction))


@cache
def _maps(
    opcode: str, shape: Shape, operands: tuple[Shape, ...], key: tuple[object, ...]
) -> tuple[IndexingMap | None, ...]:
    if opcode in _LEAVES:
        return ()
    dims = shape.dimensions
    if opcode in ELEMENTWISE_OPCODES or opcode in ("map", "all-reduce", "get-tuple-element"):
        # The predicate of a select may be a scalar.
        return tuple(identity(dims) if o.dimensions or not dims else from_sizes([], dims) for o in operands)
    if opcode == "bitcast":
        return (bitcast_map(operands[0], shape),)
    if opcode == "reshape":
        return (reshape_map(operands[0].dimensions, dims),)
    numbers = [k for k in key if isinstance(k, int)]
    if opcode == "broadcast":
        return (from_sizes([variable(d) for d in numbers], dims),)
    if opcode == "transpose":
        results = [variable(numbers.index(d)) for d in range(len(numbers))]
        return (from_sizes(results, dims),)
    if opcode == "reverse":
        return (from_sizes([_reversed(d, n, d in numbers) for d, n in enumerate(dims)], dims),)
    if opcode == "slice":
        windows = _SLICE.findall(str(key[0]))
        starts = [add(mul(variable(d), int(s or 1)), int(a)) for d, (a, _, s) in enumerate(windows)]
        return (from_sizes(starts, dims),)
    if opcode == "reduce":
        return _reduce(shape, operands, set(numbers))
    if opcode == "concatenate":
        return _concatenate(shape, operands, numbers[0])
    if opcode == "dot":
        return _dot(dims, operands[0].dimensions, operands[1].dimensions, cast("DotDimensions", key))
    return (None,) * len(operands)


def _reversed(d: int, size: int, really: bool) -> Expr:
    return add(negate(variable(d)), size - 1) if really else variable(d)


def _reduce(shape: Shape, operands: tuple[Shape, ...], reduced: set[int]) -> tuple[IndexingMap | None, ...]:
    dims = shape.tuple_shapes[0].dimensions if shape.is_tuple else shape.dimensions
    results: list[Expr] = []
    sizes: list[int] = []
    kept = 0
    for d, size in enumerate(operands[0].dimensions):
        if d in reduced:
            results.append(variable(len(dims) + len(sizes)))
            sizes.append(size)
        else:
            results.append(variable(kept))
            kept += 1
    inputs = len(operands) // 2
    return (from_sizes(results, dims, sizes),) * inputs + (from_sizes([], dims),) * inputs


def _concatenate(shape: Shape, operands: tuple[Shape, ...], along: int) -> tuple[IndexingMap | None, ...]:
    maps, offset = [], 0
    for operand in operands:
        size = operand.dimensions[along]
        results = [variable(d) for d in range(shape.rank)]
        results[along] = subtract(results[along], constant(offset))
        bounds = [(0, n - 1) for n in shape.dimensions]
        bounds[along] = (offset, offset + size - 1)
        maps.append(make_map(results, bounds))
        offset += size
    return tuple(maps)


def _dot(
    dims: tuple[int, ...], lhs: tuple[int, ...], rhs: tuple[int, ...], key: DotDimensions
) -> tuple[IndexingMap | None, ...]:
    lhs_batch, rhs_batch, lhs_sum, rhs_sum = key
    number = len(lhs_batch)
    results: list[list[Expr]] = []
    for shape, batch, contracted in ((lhs, lhs_batch, lhs_sum), (rhs, rhs_batch, rhs_sum)):
        exprs: list[Expr] = []
        for d in range(len(shape)):
            if d in batch:
                exprs.append(variable(batch.index(d)))
            elif d in contracted:
                exprs.append(variable(len(dims) + contracted.index(d)))
            else:
                exprs.append(variable(number))
                number += 1
        results.append(exprs)
    sizes = [lhs[d] for d in lhs_sum]
    return tuple(from_sizes(r, dims, sizes) for r in results)
